"""How cost grows with size: CPU time and memory against one size at a time, as exponents fitted by least squares.

Sizes ascend by equal factors while everything else is fixed. Each runs in a process of its own with one thread (the
short version has one process for all sizes of a row), and the cheapest of some repeats counts. The exponent is the
slope of log cost over log size: 1 is linear, 0 does not grow. Memory is the peak above what the process had before it
made its data. The layer is run forward and backward, with 48 channels unless these are varied; torch is told to ask
for huge pages (THP_MEM_ALLOC_ENABLE=1).
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

CHANNELS, NODES, EDGES_A_NODE, GRAPHS = 48, 20_000, 10, 1000
MIN_BYTES = 20_000_000  # growth of less is not told from what the allocator keeps
NEAR = 100  # how far a neighbour's number is at most in a graph with locality
REPEATS, REPEAT_SECONDS = 50, 1.0  # of each size: so many, or as many as take so long, but two at least
LOOK_EVERY, MEMORY_EVERY = 0.1, 10  # seconds between looks at other processes, and how many for one at their memory


class Exponent(NamedTuple):
    """The slope of log cost over log size, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.error:.2f}"


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> Exponent:
    """Fits cost = constant · size ** exponent by least squares of the logarithms.

    Args:
        sizes: three or more different ones.
        costs: of each size, above 0.

    Returns:
        The exponent and its standard error.
    """
    x, y = np.log(sizes), np.log(costs)
    x, y = x - x.mean(), y - y.mean()
    slope = (x @ y) / (x @ x)
    left = y - slope * x
    return Exponent(float(slope), math.sqrt((left @ left) / (len(x) - 2) / (x @ x)))


@dataclass(frozen=True)
class Growth:
    """One row of the table.

    Attributes:
        size: what was varied.
        of: the work, with what was fixed.
        sizes: in ascending order.
        seconds: of CPU time, for each size.
        bytes: at the peak, above the start, for each size.
    """

    size: str
    of: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    bytes: tuple[int, ...]

    @property
    def time(self) -> Exponent:
        """The exponent of the CPU time."""
        return fit_exponent(self.sizes, self.seconds)

    @property
    def memory(self) -> Exponent | None:
        """The exponent of the peak memory above the start; None if the largest size takes less than ``MIN_BYTES``."""
        return fit_exponent(self.sizes, self.bytes) if self.bytes[-1] >= MIN_BYTES else None

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it, each exponent with its standard error, or null."""
        exponents = {"time_exponent": self.time, "memory_exponent": self.memory}
        return asdict(self) | {name: found and found._asdict() for name, found in exponents.items()}


Work = Callable[[], object]


@dataclass(frozen=True)
class Knob:
    """What is varied: how the work of one size is prepared, and the sizes of each range."""

    size: str
    of: str
    prepare: Callable[[int], Work]
    full: tuple[int, ...]
    short: tuple[int, ...] = ()
    tiny: tuple[int, ...] = ()
    processes: bool = False  # the work is done by other processes, too


# ---- the work ----


def _layer(nodes: int, edges: int, channels: int = CHANNELS, kind: str = "near") -> Work:
    """The layer forward and backward on one graph, whose neighbours have near numbers, or any."""
    import torch

    from tapnet import TAPooling

    from .cases import DenseTAP

    half = torch.randint(nodes, (2, edges // 2))
    if kind == "near":
        half[1] = (half[0] + torch.randint(1, NEAR, half[0].shape)) % nodes
    edge_index = torch.cat([half, half.flip(0)], dim=1)
    edge_index = edge_index[:, torch.argsort(edge_index[0] * nodes + edge_index[1])]
    x, batch = torch.randn(nodes, channels), torch.zeros(nodes, dtype=torch.long)
    pool = DenseTAP(channels, 0.5) if kind == "dense" else TAPooling(channels, 0.5)

    def once() -> None:
        h = x.detach().requires_grad_()
        pool(h, edge_index, None, batch)[0].square().sum().backward()

    return once


def _graphs(graphs: int, classes: int = 2) -> Any:
    """Random graphs as large as those of PROTEINS, with labels of nodes and classes that mean nothing."""
    from tapnet.data.convert import assemble

    rng, nodes, edges = np.random.default_rng(0), 39, 73
    start = np.repeat(np.arange(graphs) * nodes, edges)
    return assemble(
        name="growth",
        nodes_per_graph=np.full(graphs, nodes),
        edge_index=rng.integers(0, nodes, (2, len(start))) + start,
        y=np.arange(graphs) % classes,
        node_labels=rng.integers(0, 3, graphs * nodes),
    )


def _epoch(graphs: int, classes: int = 2) -> Work:
    from .cases import our_epoch

    return our_epoch(_graphs(graphs, classes))


def _cross_validation(folds: int, epochs: int, jobs: int = 1) -> Work:
    from tapnet import cross_validate

    dataset = _graphs(GRAPHS // 5)
    return lambda: cross_validate(dataset, folds=folds, epochs=epochs, jobs=jobs, device="cpu")


_EPOCH = "epoch of TAPNet, graphs of 39 nodes"
_CROSS_VALIDATION = f"cross-validation, {GRAPHS // 5} graphs"
KNOBS = [
    Knob(
        "nodes",
        f"TAPooling, {NODES * EDGES_A_NODE:,} edges",
        lambda n: _layer(n, NODES * EDGES_A_NODE),
        full=(5_000, 10_000, 20_000, 40_000, 80_000, 160_000),
        short=(10_000, 20_000, 40_000, 80_000),
        tiny=(200, 400, 800, 1600),
    ),
    Knob(
        "edges",
        f"TAPooling, {NODES // 4:,} nodes",
        lambda n: _layer(NODES // 4, n),
        full=(25_000, 50_000, 100_000, 200_000, 400_000, 800_000),
        short=(100_000, 200_000, 400_000, 800_000),
        tiny=(200, 400, 800, 1600),
    ),
    Knob(
        "nodes and edges",
        f"TAPooling, {EDGES_A_NODE} edges a node, near neighbours",
        lambda n: _layer(n, EDGES_A_NODE * n),
        full=(10_000, 30_000, 100_000, 300_000, 1_000_000),
        short=(10_000, 20_000, 40_000, 80_000),
        tiny=(200, 400, 800, 1600),
    ),
    Knob(
        "nodes and edges",
        f"TAPooling, {EDGES_A_NODE} edges a node, neighbours anywhere",
        lambda n: _layer(n, EDGES_A_NODE * n, kind="random"),
        full=(10_000, 30_000, 100_000, 300_000, 1_000_000),
    ),
    Knob(
        "nodes and edges",
        f"the formula as written, n×n, {EDGES_A_NODE} edges a node",
        lambda n: _layer(n, EDGES_A_NODE * n, kind="dense"),
        full=(1_000, 2_000, 4_000, 8_000),
    ),
    Knob(
        "channels",
        f"TAPooling, {NODES:,} nodes, {NODES * EDGES_A_NODE:,} edges",
        lambda n: _layer(NODES, NODES * EDGES_A_NODE, n),
        full=(16, 32, 64, 128, 256, 512),
        short=(16, 32, 64, 128),
        tiny=(2, 4, 8, 16),
    ),
    Knob(
        "graphs",
        _EPOCH,
        _epoch,
        full=(500, 1000, 2000, 4000, 8000, 16_000),
        short=(250, 500, 1000, 2000),
        tiny=(4, 8, 16, 32),
    ),
    Knob(
        "classes",
        f"{_EPOCH}, {GRAPHS:,} of them",
        lambda n: _epoch(GRAPHS, n),
        full=(2, 8, 32, 128, 512),
        short=(2, 8, 32, 128),
        tiny=(2, 4, 8, 16),
    ),
    Knob(
        "folds",
        f"{_CROSS_VALIDATION}, 2 epochs, one process",
        lambda n: _cross_validation(n, 2),
        full=(5, 10, 20, 40),
        short=(4, 8, 16, 32),
        tiny=(3, 4, 6, 8),
    ),
    Knob(
        "processes",
        f"{_CROSS_VALIDATION}, 8 folds of 10 epochs",
        lambda n: _cross_validation(8, 10, n),
        full=(1, 2, 4, 8),
        short=(1, 2, 3, 4),
        tiny=(1, 2, 3, 4),
        processes=True,
    ),
]


# ---- measured ----


class Cost(NamedTuple):
    """What one run of the work took."""

    seconds: float  # of CPU time
    bytes: int  # at the peak


def _alone(work: Work) -> Cost:
    """What the work takes in this process."""
    from .measure import forget_peak, peak_memory

    gc.collect()
    forget_peak()  # of making the data
    start = time.process_time()
    work()
    return Cost(time.process_time() - start, peak_memory())


def _with_others(work: Work) -> Cost:
    """What the work takes in this process and those it starts, looked at every ``LOOK_EVERY`` seconds."""
    import psutil  # type: ignore[import-untyped]  # a dependency of PyG

    this, ended = psutil.Process(), threading.Event()
    cpu: dict[int, float] = {}
    peak, spent = 0, 0.0

    def look(at_memory: bool) -> None:
        nonlocal peak
        memory = 0
        for process in [this, *this.children(recursive=True)]:
            with suppress(psutil.Error):
                cpu[process.pid] = sum(process.cpu_times()[:2])
                if at_memory:  # pages that processes share count once, where the system says so
                    memory += getattr(process.memory_full_info(), "pss", 0) or process.memory_info().rss
        peak = max(peak, memory)

    def watch() -> None:
        nonlocal spent
        for turn in itertools.count(1):
            if ended.wait(LOOK_EVERY):
                return
            look(at_memory=turn % MEMORY_EVERY == 0)
            spent = time.thread_time()

    look(at_memory=True)
    before = dict(cpu)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        ended.set()
        watcher.join()
    look(at_memory=False)
    return Cost(sum(cpu.values()) - sum(before.values()) - spent, peak)


def costs(knob: Knob, sizes: Sequence[int]) -> list[Cost]:
    """Seconds and peak bytes above the start of each size, in this process; sizes ascend."""
    import torch

    torch.set_num_threads(1)
    measure = _with_others if knob.processes else _alone
    knob.prepare(knob.tiny[-1] if knob.tiny else sizes[0])()  # loads what is loaded on first use
    before = measure(lambda: None).bytes
    found = []
    for size in sizes:
        torch.manual_seed(0)
        work, end = knob.prepare(size), time.perf_counter() + REPEAT_SECONDS
        runs: list[Cost] = []
        while len(runs) < 2 or (len(runs) < REPEATS and time.perf_counter() < end):
            runs.append(measure(work))
        found.append(Cost(min(run.seconds for run in runs), max(1, min(run.bytes for run in runs) - before)))
        del work
    return found


def measure_growth(
    which: str = "short",
    progress: Callable[[Growth], None] = lambda _: None,
    sizes: Sequence[str] | None = None,
) -> list[Growth]:
    """Measures how cost grows with each size.

    Args:
        which: the range of sizes: ``"short"`` (a minute or two), ``"full"`` or ``"tiny"``, which proves that it runs.
        progress: called with each row.
        sizes: what is varied, by name; None means everything.

    Returns:
        One row for each, with the costs and the exponents of time and memory.
    """
    rows = []
    for number, knob in enumerate(KNOBS):
        values: tuple[int, ...] = getattr(knob, which)
        if not values or (sizes is not None and knob.size not in sizes):
            continue
        groups = [[value] for value in values] if which == "full" else [values]
        found = [cost for group in groups for cost in _in_child(number, group)]
        seconds, peaks = zip(*found, strict=True)
        rows.append(Growth(knob.size, knob.of, values, seconds, peaks))
        progress(rows[-1])
    return rows


def _in_child(number: int, sizes: Sequence[int]) -> list[Cost]:
    command = [sys.executable, "-m", f"{__package__}.growth", str(number), *map(str, sizes)]
    path = os.pathsep.join(filter(None, sys.path))  # it finds this package, too
    environment = {**os.environ, "PYTHONPATH": path, "THP_MEM_ALLOC_ENABLE": "1", "OMP_NUM_THREADS": "1"}
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return [Cost(*cost) for cost in json.loads(answer.splitlines()[-1])]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # there is nothing to learn here, as cross-validation finds
    print(json.dumps(costs(KNOBS[int(sys.argv[1])], [int(size) for size in sys.argv[2:]])))
