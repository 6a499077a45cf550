"""Running many trials: one after another, or in several processes. The numbers are the same whatever is chosen."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tapnet.data.dataset import Features, GraphDataset
from tapnet.data.load import load_dataset
from tapnet.errors import TapnetError
from tapnet.training.loop import CHECKPOINT_EVERY, Interrupted, run_trial
from tapnet.training.processes import (
    deaf_to_interrupts,
    end_with_parent,
    process_context,
    torchrun_rank,
    torchrun_size,
)
from tapnet.training.store import Store
from tapnet.training.team import ALONE, Nowhere, Team
from tapnet.training.trial import Trial

if TYPE_CHECKING:
    from tapnet.training.cluster import Cluster


class Event(NamedTuple):
    """Something that happened to a trial."""

    trial: Trial
    epoch: int
    accuracy: float
    where: str = ""  # the node of a cluster


OnEvent = Callable[[Event], None]

LOOK_EVERY = 0.3  # seconds, while other programs train what is left


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
    cluster: Cluster | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    on_event: OnEvent = lambda _: None,
) -> bool:
    """Runs what the store does not have yet: here, in ``jobs`` processes, or on a cluster.

    False if Ctrl-C ended it early; checkpoints are there then.

    Several programs may share a store: each trains what no other is training, then waits for what the others are at.
    """
    if torchrun_rank() > 0:  # another process of the team keeps the store
        return _run_in_team(trials, data, store, checkpoint_every, on_event, lambda: False)
    missing = [trial for trial in trials if store.load(trial) is None]
    for trial in set(trials).difference(missing):
        store.tidy(trial)
    jobs = min(jobs, len(missing))
    with _stop_on_interrupt() as stop:
        if torchrun_size() or (missing and missing[0].devices > 1):
            return _run_in_team(missing, data, store, checkpoint_every, on_event, stop.is_set)
        if cluster is not None and missing:
            return _run_on_cluster(missing, data, store, cluster, checkpoint_every, on_event, stop.is_set)
        if jobs > 1:
            return _run_in_processes(missing, data, store, jobs, checkpoint_every, on_event, stop)
        dataset = data.load() if missing else None

        def run(left: Sequence[Trial]) -> list[Trial]:
            assert dataset is not None
            return [t for t in left if not attempt(t, dataset, store, checkpoint_every, on_event, stop.is_set)]

        return until_done(missing, run, stop.is_set)


def attempt(
    trial: Trial,
    dataset: GraphDataset,
    store: Store,
    checkpoint_every: int,
    on_event: OnEvent,
    should_stop: Callable[[], bool],
    team: Team = ALONE,
) -> bool:
    """Trains a trial, unless another program is at it; whether its result is in the store now."""
    if team.said_by_first(should_stop()):
        return False
    with store.claim(trial) if team.rank == 0 else contextlib.nullcontext(False) as claimed:
        result = store.load(trial) if claimed else None  # another program may have stored it meanwhile
        ours, there = team.said_by_first((claimed, result is not None))
        if result is not None:
            on_event(Event(trial, trial.training.epochs, result.reading.accuracy))
        if there or not ours:
            return there
        try:
            run_trial(
                trial,
                dataset,
                store if claimed else Nowhere(),
                checkpoint_every=checkpoint_every,
                progress=reporter(trial, on_event),
                should_stop=should_stop,
                team=team,
            )
        except Interrupted:
            return False
        return True


def until_done(
    trials: Sequence[Trial], run: Callable[[Sequence[Trial]], Sequence[Trial]], should_stop: Callable[[], bool]
) -> bool:
    """Runs what ``run`` says is left, again and again: another program may store it, or die and leave it to us."""
    while trials:
        trials = run(trials)
        if not trials or should_stop():
            break
        time.sleep(LOOK_EVERY)
    return not trials


def reporter(trial: Trial, send: OnEvent) -> Callable[[int, float], None]:
    return lambda epoch, accuracy: send(Event(trial, epoch, accuracy))


def _run_in_team(
    trials: Sequence[Trial],
    data: DataReference,
    store: Store,
    checkpoint_every: int,
    on_event: OnEvent,
    should_stop: Callable[[], bool],
) -> bool:
    from tapnet.training.parallel import run_in_team

    return run_in_team(
        trials, data, store, checkpoint_every=checkpoint_every, on_event=on_event, should_stop=should_stop
    )


def _run_on_cluster(
    trials: Sequence[Trial],
    data: DataReference,
    store: Store,
    cluster: Cluster,
    checkpoint_every: int,
    on_event: OnEvent,
    should_stop: Callable[[], bool],
) -> bool:
    from tapnet.training.cluster import run_on_cluster

    def run(left: Sequence[Trial]) -> list[Trial]:
        with contextlib.ExitStack() as claims:
            ours = [trial for trial in left if claims.enter_context(store.claim(trial))]
            there = [result for trial in ours if (result := store.load(trial)) is not None]
            for result in there:  # another program has stored it meanwhile
                on_event(Event(result.trial, result.trial.training.epochs, result.reading.accuracy))
            if todo := [trial for trial in ours if trial not in {result.trial for result in there}]:
                run_on_cluster(
                    todo,
                    data.load(),
                    store,
                    cluster,
                    checkpoint_every=checkpoint_every,
                    on_event=on_event,
                    should_stop=should_stop,
                )
        return [trial for trial in left if store.load(trial) is None]

    return until_done(trials, run, should_stop)


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
    threading.Thread(target=end_with_parent, daemon=True).start()
    _worker.update(dataset=data.load(), store=store, events=events, stop=stop, checkpoint_every=checkpoint_every)


def _attempt_in_worker(trial: Trial) -> bool:
    w = _worker
    return attempt(trial, w["dataset"], w["store"], w["checkpoint_every"], w["events"].put, w["stop"].is_set)


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

        def run(left: Sequence[Trial]) -> list[Trial]:
            with deaf_to_interrupts():
                futures = [pool.submit(_attempt_in_worker, trial) for trial in left]
            try:
                _listen(futures, events, on_event, stop, stop_all)
            except BaseException:
                stop_all.set()  # leaving the pool waits for its processes: they end after their epoch
                raise
            return [trial for trial, future in zip(left, futures, strict=True) if not future.result()]

        try:
            return until_done(trials, run, stop.is_set)
        except BrokenProcessPool:
            if stop.is_set():
                return False
            raise TapnetError(
                "a process of the run died (out of memory?); the same command goes on from the last checkpoint, "
                "with --jobs 1 in one process"
            ) from None
