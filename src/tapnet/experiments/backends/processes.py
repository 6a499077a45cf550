"""How processes for trials are made. Free of torch, so that they get ready while the command still imports it."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext

PRELOAD = ["tapnet.experiments.backends.preload"]  # imported by the server that forks the processes
CAN_BLOCK_SIGNALS = hasattr(signal, "pthread_sigmask")  # not on Windows


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_context() -> BaseContext:
    """Never by forking this process, which would take torch's threads with it."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context


def get_ready() -> None:
    """Starts the server early: it imports what trials need (seconds) while this process does the same for itself."""
    if process_context().get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        with block_sigint():
            ensure_running()


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """No garbage is looked for within this, nor later among what is there at its end.

    What is imported stays, and looking through it again and again takes a fifth of the time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def main_module_hidden() -> Iterator[None]:
    """Processes started within this do not run the user's script again, which need not guard its calls for that."""
    main = sys.modules["__main__"]
    names = ["__spec__", "__file__"]
    hidden = {name: vars(main).pop(name) for name in names if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)


def end_with_parent() -> None:
    """A parent that was killed cannot tell its processes; without this, in a thread, they would go on alone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def block_sigint() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; those started within this never see it, and the parent answers.

    Blocked, not ignored: processes inherit that too, and a Ctrl-C that comes meanwhile reaches the parent afterwards.
    Windows cannot block a signal: see ``ignore_sigint``.
    """
    if sys.platform == "win32" or not CAN_BLOCK_SIGNALS:
        yield
        return
    resource_tracker.ensure_running()  # the first process of all: once it is there, starting others unblocks nothing
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_sigint() -> None:
    """For a process that was not started with the signal blocked, as on Windows."""
    if not CAN_BLOCK_SIGNALS:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def process_number() -> int:
    """The number of this process among those that its parent has started, from 1; 0 for the main process."""
    numbers = re.findall(r"\d+", multiprocessing.current_process().name)  # "Process-1:2" is the second of the first
    return int(numbers[-1]) if numbers else 0


def torchrun_size() -> int:
    """How many processes torchrun has started of this program; 0 if it was started by hand."""
    return int(os.environ.get("WORLD_SIZE", 0)) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def torchrun_rank() -> int:
    """The number of this process among those of torchrun; 0 if it was started by hand."""
    return int(os.environ.get("RANK", 0)) if torchrun_size() else 0
