"""Where a model is trained: the device, and torch's threads and generator, which belong to the whole process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from tapnet.errors import SettingError

Device = Literal["cpu", "cuda"]
_lock = threading.RLock()


def find_device(name: str) -> Device:
    """Finds the device to use.

    Args:
        name: ``"cpu"``, ``"cuda"``, or ``"auto"`` for CUDA where there is one.

    Raises:
        SettingError: If there is no such device here.
    """
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise SettingError(f"device is auto, cpu or cuda, not {name!r}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise SettingError("device cuda: there is no CUDA device here")
    return "cuda" if available and name != "cpu" else "cpu"


@contextmanager
def isolated(threads: int, seed: int | None = None) -> Iterator[None]:
    """Sets torch's threads and, with a seed, its generator; afterwards both are as they were.

    Both belong to the whole process, so one caller at a time is inside: threads of joblib would draw from one another.
    """
    import torch

    with _lock, torch.random.fork_rng(devices=[]):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(before)
