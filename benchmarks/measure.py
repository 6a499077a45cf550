"""Two sides timed in turn in one process, compared as a ratio with its spread; never a bare time."""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROUND = 0.2  # seconds of our side in a round, at least: single calls of milliseconds differ too much


@dataclass(frozen=True)
class Ratio:
    """The peer's cost ÷ ours, so higher is better; one value a round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{self.median:.1f}"
        return f"{self.median:.1f} ({min(self.values):.1f} to {max(self.values):.1f})"


class DifferentWorkError(RuntimeError):
    """The two sides did not do the same."""


def check(same: bool, what: str) -> None:
    """Raises DifferentWorkError unless the two sides did the same."""
    if not same:
        raise DifferentWorkError(what)


def compare(ours: Callable[[], object], peer: Callable[[], object], rounds: int, warm_up: int = 1) -> Ratio:
    """Alternates the two sides, each first in every other round; what takes milliseconds is done often in a round."""
    times = 1
    for _ in range(warm_up):
        times = math.ceil(ROUND / min(ROUND, seconds(ours)))
        peer()
    values = []
    for i in range(rounds):
        first, second = (ours, peer) if i % 2 == 0 else (peer, ours)
        a, b = seconds(first, times), seconds(second, times)
        values.append(b / a if i % 2 == 0 else a / b)
    return Ratio(tuple(values))


def seconds(work: Callable[[], object], times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - start


def peak_memory() -> int:
    """Bytes of this process at its peak. Linux hands ru_maxrss on from the parent, so it is not asked there."""
    if sys.platform == "win32":
        import psutil  # a dependency of PyG

        return int(psutil.Process().memory_info().peak_wset)
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # macOS, which counts in bytes
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def forget_peak() -> None:
    """The peak is counted from here, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
