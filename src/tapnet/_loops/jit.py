"""The decorator that compiles a loop, and what a tensor must be for it: plain arrays in, plain arrays out, on a CPU.

Why there are loops: a step on small graphs is hundreds of operator calls, each dearer than its work; one loop is one
call, reads its rows once, and stores nothing on the way. Beside each stands the same in torch, which other devices use
and which the tests compare it with. Loops run in one thread: with a pool of their own beside torch's an epoch of
REDDIT-BINARY took a fifth longer on two cores, and so no result depends on the threads. Large results are allocated by
the caller, by NumPy: it asks for huge pages, which Numba and torch do not, and touching new memory page by page takes
longer than most of these loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])
FLOATS = (torch.float32, torch.float64)


def is_compiled(h: Tensor) -> bool:
    """Whether the loops can be used on it."""
    return h.device.type == "cpu" and h.dtype in FLOATS


def array(t: Tensor) -> Array:
    """The tensor's memory as a NumPy array."""
    result: Array = (t.detach() if t.requires_grad else t).contiguous().numpy()
    return result


def kernel(function: F) -> F:
    """Compiled at its first call, once a machine: later processes find it in Numba's cache."""

    @cache
    def dispatcher() -> Any:
        from numba import njit

        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
        try:
            return njit(function, cache=True, **options)
        except RuntimeError:  # no place to keep a cache in
            return njit(function, **options)

    @wraps(function)
    def call(*args: Any) -> Any:
        return dispatcher()(*args)

    return call  # type: ignore[return-value]
