"""The decorator that compiles a loop, and what a tensor must be for it: plain arrays in, plain arrays out, on a CPU.

Why there are loops: a step on small graphs is hundreds of operator calls, each dearer than its work; one loop is one
call, reads its rows once, and stores nothing on the way. Beside each stands the same in torch, which other devices use
and which the tests compare it with. Loops run in one thread: with a pool of their own beside torch's an epoch of
REDDIT-BINARY took a fifth longer on two cores, in torch's own threads no less time, since memory is what they wait for;
and so no result depends on the threads. Large results are allocated by the caller, by NumPy: it asks for huge pages,
which Numba and torch do not, and touching new memory page by page takes longer than most of these loops. What is simple
compiles fast: ``np.zeros`` or ``np.full`` in a loop cost 0.2 s at the first use on a machine, the method ``max`` of an
array 0.6 s, ``np.partition`` 6 s.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.progress import is_watched

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])
FLOATS = (torch.float32, torch.float64)


def is_compiled(*tensors: Tensor) -> bool:
    """Whether the loops can be used on them: on a CPU, and not in half precision."""
    return all(t.is_cpu and (t.dtype in FLOATS or not t.is_floating_point()) for t in tensors)


def array(t: Tensor) -> Array:
    """The tensor's memory as a NumPy array."""
    result: Array = (t.detach() if t.requires_grad else t).contiguous().numpy()
    return result


def kernel(function: Callable[..., Any], in_training: str | None = None) -> Callable[..., Any]:
    """Compiled at its first call, once per machine: later processes find it in Numba's cache.

    It takes tensors in the place of arrays, and then returns tensors. ``in_training`` are the types of its arguments in
    the training of TAPNet, in Numba's words: see ``compile_for_training``.
    """
    compiled: Any = None

    def dispatcher() -> Any:
        nonlocal compiled
        if compiled is None:
            compiled = _dispatcher(function)
        return compiled

    if in_training is not None:
        loops_of_training[function.__name__] = dispatcher, in_training

    @wraps(function)
    def call(*args: Any) -> Any:
        nonlocal compiled
        arrays = [array(a) if isinstance(a, Tensor) else a for a in args]
        try:
            result = dispatcher()(*arrays)
        except OSError:  # the disk is full, say: compiled, but not to be kept
            compiled = _dispatcher(function, cache=False)
            result = compiled(*arrays)
        if not isinstance(args[0], Tensor):
            return result
        return tuple(map(torch.from_numpy, result)) if isinstance(result, tuple) else torch.from_numpy(result)

    return call


loops_of_training: dict[str, tuple[Callable[[], Any], str]] = {}  # by name, what compiles it, and for which types


@cache
def compile_for_training(backwards: bool) -> None:
    """Compiles the loops of a training step before they are needed, in their order or from the last one on.

    So that of two processes on a machine that has none of them each compiles half, and finds the rest in the cache.
    """
    loops = list(loops_of_training.values())
    for dispatcher, types in reversed(loops) if backwards else loops:
        with suppress(OSError):
            dispatcher().compile(f"({types},)")


def _dispatcher(function: Callable[..., Any], cache: bool = True) -> Any:
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}}
    if not cache:
        return njit(function, **options)
    try:
        found = njit(function, cache=True, **options)
    except RuntimeError:  # no place to keep a cache in
        found = njit(function, **options)
    _announce_compilation(found.stats.cache_path)
    return found


_looked: list[bool] = []  # whether this process has looked for compiled loops


def _announce_compilation(cache_path: str | None) -> None:
    """Says to whoever watches that loops are compiled now, if there are none in the cache; once in a process."""
    if not _looked and is_watched() and multiprocessing.parent_process() is None:
        if cache_path is None:
            print("tapnet: compiling its loops, which cannot be kept: some seconds", file=sys.stderr)
        elif not any(Path(cache_path).glob("*.nbi")):
            print("tapnet: compiling its loops, once on this machine: some seconds", file=sys.stderr)
    _looked.append(True)


def announce_for_processes() -> None:
    """Says the same for processes that are about to be started, and are silent themselves."""
    usual = any((Path(__file__).parent / "__pycache__").glob("*.nbi")) and "NUMBA_CACHE_DIR" not in os.environ
    if is_watched() and not usual:
        _dispatcher(announce_for_processes)  # only to find the cache: nothing is compiled before a call


def compiled_by(loop: Callable[..., Any]) -> Callable[[F], F]:
    """Lets a loop do on a CPU what the decorated function, the plain version, does on any device.

    Both take the same arguments. The plain version stays within reach as ``__wrapped__``.
    """

    def decorate(plain: F) -> F:
        @wraps(plain)
        def call(*args: Any) -> Any:
            return (loop if is_compiled(*(a for a in args if isinstance(a, Tensor))) else plain)(*args)

        return call  # type: ignore[return-value]

    return decorate
