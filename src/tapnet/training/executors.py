"""Running many trials: one after another, or in several processes. The numbers are the same whatever is chosen."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tapnet.data.dataset import Features, GraphDataset
from tapnet.data.load import load_dataset
from tapnet.errors import TapnetError
from tapnet.training.loop import CHECKPOINT_EVERY, Interrupted, run_trial
from tapnet.training.processes import deaf_to_interrupts, process_context
from tapnet.training.store import Store
from tapnet.training.trial import Trial


class Event(NamedTuple):
    """Something that happened to a trial."""

    trial: Trial
    epoch: int
    accuracy: float


OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class DataReference:
    """How a process loads the data set by itself, from the parsed copy."""

    name_or_path: str
    data_dir: str | None
    download: bool = True
    features: Features | None = None
    graphs: int | None = None  # so many of them, evenly spread over the set; None: all

    def load(self) -> GraphDataset:
        dataset = load_dataset(self.name_or_path, self.data_dir, features=self.features, download=self.download)
        if self.graphs is None or self.graphs >= len(dataset):
            return dataset
        return dataset.subset(np.linspace(0, len(dataset) - 1, self.graphs).astype(int))


def run_trials(
    trials: Sequence[Trial],
    data: DataReference,
    store: Store,
    *,
    jobs: int = 1,
    checkpoint_every: int = CHECKPOINT_EVERY,
    on_event: OnEvent = lambda _: None,
) -> bool:
    """Runs what the store does not have yet. False if Ctrl-C ended it early; checkpoints are there then."""
    missing = [trial for trial in trials if store.load(trial) is None]
    jobs = min(jobs, len(missing))
    with _stop_on_interrupt() as stop:
        if jobs > 1:
            return _run_in_processes(missing, data, store, jobs, checkpoint_every, on_event, stop)
        dataset = data.load() if missing else None
        for trial in missing:
            assert dataset is not None
            report = reporter(trial, on_event)
            try:
                run_trial(
                    trial, dataset, store, checkpoint_every=checkpoint_every, progress=report, should_stop=stop.is_set
                )
            except Interrupted:
                return False
        return True


def reporter(trial: Trial, send: OnEvent) -> Callable[[int, float], None]:
    return lambda epoch, accuracy: send(Event(trial, epoch, accuracy))


class _Flag:
    def __init__(self) -> None:
        self._on = False

    def set(self) -> None:
        self._on = True

    def is_set(self) -> bool:
        return self._on


@contextlib.contextmanager
def _stop_on_interrupt() -> Iterator[_Flag]:
    """The first Ctrl-C (or a polite kill) asks the running trials to stop after their epoch; the second ends it all."""
    flag = _Flag()

    def ask(number: int, frame: FrameType | None) -> None:
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()

    if threading.current_thread() is not threading.main_thread():
        yield flag  # whoever owns the main thread handles signals
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---- several processes ----

_worker: dict[str, Any] = {}  # what each process was given when it started


def _start_worker(data: DataReference, store: Store, events: Any, stop: Any, checkpoint_every: int) -> None:
    events.cancel_join_thread()  # a parent that no longer listens must not keep this process from ending
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker.update(dataset=data.load(), store=store, events=events, stop=stop, checkpoint_every=checkpoint_every)


def _end_with_parent() -> None:
    """A parent that was killed cannot tell its processes; without this they would go on alone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_in_worker(trial: Trial) -> bool:
    if _worker["stop"].is_set():
        return False
    try:
        run_trial(
            trial,
            _worker["dataset"],
            _worker["store"],
            checkpoint_every=_worker["checkpoint_every"],
            progress=reporter(trial, _worker["events"].put),
            should_stop=_worker["stop"].is_set,
        )
    except Interrupted:
        return False
    return True


def _listen(futures: Sequence[Future[bool]], events: Any, on_event: OnEvent, stop: _Flag, stop_all: Any) -> None:
    """Passes events on until every trial has ended; asks all to stop when asked to, or when one has failed."""
    while True:
        done = all(future.done() for future in futures)  # asked first: what they sent is in the queue by then
        failed = any(future.done() and future.exception() is not None for future in futures)
        if stop.is_set() or failed:
            stop_all.set()
        try:
            on_event(events.get(timeout=0.1))
        except queue.Empty:
            if done:
                return


def _run_in_processes(
    trials: Sequence[Trial],
    data: DataReference,
    store: Store,
    jobs: int,
    checkpoint_every: int,
    on_event: OnEvent,
    stop: _Flag,
) -> bool:
    context = process_context()
    events, stop_all = context.Queue(), context.Event()
    arguments = (data, store, events, stop_all, checkpoint_every)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=arguments) as pool:
        with deaf_to_interrupts():
            futures = [pool.submit(_run_in_worker, trial) for trial in trials]
        try:
            _listen(futures, events, on_event, stop, stop_all)
        except BaseException:
            stop_all.set()  # leaving the pool waits for its processes: they end after their epoch
            raise
        try:
            return all(future.result() for future in futures)
        except BrokenProcessPool:
            if stop.is_set():
                return False
            raise TapnetError(
                "a process of the run died (out of memory?); the same command goes on from the last checkpoint, "
                "with --jobs 1 in one process"
            ) from None
