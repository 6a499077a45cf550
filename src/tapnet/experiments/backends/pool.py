"""Running many trials: one after another, in several processes, or on a cluster. The numbers are the same."""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tapnet._loops.jit import announce_for_processes, compile_for_training
from tapnet.data.dataset import Features, GraphDataset
from tapnet.data.splits import Splits
from tapnet.errors import DamagedFileWarning, TapnetError
from tapnet.experiments.backends import processes
from tapnet.experiments.run_trial import CHECKPOINT_EVERY, Interrupted, run_trial
from tapnet.experiments.store import Store, TrialStore
from tapnet.experiments.trial import Trial, TrialResult
from tapnet.io.load import load_dataset
from tapnet.models.registry import find_model
from tapnet.nn.pool.registry import resolve
from tapnet.training.distributed import SINGLE_PROCESS, ProcessGroup

if TYPE_CHECKING:
    from tapnet.experiments.backends.ray import Cluster


class Event(NamedTuple):
    """A trial has finished an epoch; with epoch 0, another program is training it.

    Attributes:
        trial: which one.
        epoch: epochs that were trained.
        accuracy: what the protocol would report now: the accuracy in percent, or the task's usual metric.
        where: the node of a cluster that trains it.
        metric: the first metric that was asked for, if it is another one; known of a trial that has ended.
        score: by that metric.
    """

    trial: Trial
    epoch: int
    accuracy: float
    where: str = ""
    metric: str = ""
    score: float = math.nan


OnEvent = Callable[[Event], None]

LOOK_EVERY = 0.3  # seconds, while other programs train what is left


@dataclass(frozen=True)
class DataReference:
    """How every process of a run gets the data set: from the parsed copy, or with the reference if it has no name.

    Args:
        name_or_path: as `load_dataset` takes it; empty for data that are only in memory.
        data_dir: the folder with data sets by name.
        download: whether a data set that is not there may be downloaded.
        features: what a node is.
        graphs: so many of the smaller half, evenly spread over the set; None means all.
        dataset: the data set, where it is loaded already.
        reading: how the data are read, by name as `load_dataset` takes it.
        splits: the user's own.
    """

    name_or_path: str
    data_dir: str | Path | None
    download: bool = True
    features: Features | None = None
    graphs: int | None = None
    dataset: GraphDataset | bytes | None = field(default=None, repr=False)
    reading: Mapping[str, Any] = field(default_factory=dict)
    splits: Splits | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """For another process: plain bytes instead of torch's shared memory, of which there may be little."""
        return self.__dict__ | {"dataset": None if self.name_or_path else pickle.dumps(self.dataset)}

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal where other processes get the same data set and splits."""
        checksum = self.dataset.checksum if isinstance(self.dataset, GraphDataset) else ""
        splits = None if self.splits is None else (self.splits.name, self.splits.digest)
        how = (self.name_or_path, self.data_dir, self.download, self.features, self.graphs, dict(self.reading))
        return (*how, splits, checksum)

    def load(self) -> GraphDataset:
        """The data set."""
        if isinstance(self.dataset, bytes):
            found: GraphDataset = pickle.loads(self.dataset)
            return found
        if self.dataset is not None:
            return self.dataset
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the process that started the run has shown them
            where: dict[str, Any] = {"data_dir": self.data_dir, "features": self.features, "download": self.download}
            dataset = replace(load_dataset(self.name_or_path, **where, **self.reading), splits=self.splits)
        if self.graphs is None or self.graphs >= len(dataset):
            return dataset
        by_size = dataset.nodes_per_graph.argsort(stable=True)
        small = by_size[: max(self.graphs, len(dataset) // 2)].sort().values
        return dataset.subset(small[np.linspace(0, len(small) - 1, self.graphs).astype(int)])


@dataclass(frozen=True)
class Session:
    """What the trials of a run share: their data, where results go, who hears of them, and when to stop."""

    data: DataReference
    store: Store
    checkpoint_every: int
    on_event: OnEvent
    should_stop: Callable[[], bool]
    pools: tuple[str, ...] = ()  # pooling layers that the user named, which other processes may import


def import_pools(names: Sequence[str]) -> None:
    """Makes pooling layers that the user named known in this process."""
    for name in names:
        resolve(name, allow_import=True)


def run_trials(
    trials: Sequence[Trial],
    data: DataReference,
    store: Store,
    *,
    jobs: int = 1,
    cluster: Cluster | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    on_event: OnEvent = lambda _: None,
    pools: Sequence[str] = (),
) -> bool:
    """Runs the trials that the store does not have yet.

    Several programs may share a store: each trains what no other is training, then waits for what the others train.

    Args:
        trials: what to run, all on the same data.
        data: how processes get the data set.
        store: where results go.
        jobs: how many trials at a time, in as many processes; 1 runs them in this one.
        cluster: runs them on a Ray cluster instead.
        checkpoint_every: so many epochs.
        on_event: called with every epoch of every trial, in this process.
        pools: the user's own pooling layers as ``"package.module:Class"``; other processes import them.

    Returns:
        False if Ctrl-C or SIGTERM ended it early; there are checkpoints then.

    Raises:
        TapnetError: if a process of the run dies, or results that were stored disappear again and again.
    """
    rank, missing = processes.torchrun_rank(), trials
    if rank == 0:  # another process of the group would have the store
        missing = [trial for trial in trials if store.load_complete(trial) is None]
        for trial in set(trials).difference(missing):
            store.tidy(trial)
    with _stop_on_interrupt() if rank == 0 else contextlib.nullcontext(lambda: False) as should_stop:
        session = Session(data, store, checkpoint_every, on_event, should_stop, tuple(pools))
        if processes.torchrun_size():
            from tapnet.experiments.backends.fabric import run_in_group

            # all of them: the other processes wait for this one to join
            return run_in_group(trials, session) and (rank > 0 or not _lost(trials, store, again=False))
        for again in (True, False):
            if missing and not _run_missing(missing, session, jobs, cluster):
                return False
            missing = missing and _lost(trials, store, again=again)
        return True


def _run_missing(missing: Sequence[Trial], session: Session, jobs: int, cluster: Cluster | None) -> bool:
    if missing[0].devices > 1:
        from tapnet.experiments.backends.fabric import run_in_group

        return run_in_group(missing, session)
    if cluster is not None:
        return _run_on_cluster(missing, session, cluster)
    if min(jobs, len(missing)) > 1:
        return _run_in_processes(missing, session, min(jobs, len(missing)))
    return run_in_turn(missing, session)


def _lost(trials: Sequence[Trial], store: Store, again: bool) -> list[Trial]:
    """The trials whose results or models are not there any more: somebody deletes or damages files of the run."""
    lost = [trial for trial in trials if store.load_complete(trial) is None]
    if not lost:
        return lost
    gone = f"{store.folder}: files of {len(lost)} of {len(trials)} trials were deleted or damaged during the run"
    if not again:
        raise TapnetError(f"{gone}; running it again computes them again")
    warnings.warn(f"{gone}; they are computed again", DamagedFileWarning, stacklevel=3)
    return lost


def run_in_turn(trials: Sequence[Trial], session: Session, group: ProcessGroup = SINGLE_PROCESS) -> bool:
    """One after another, in this process and those of its group; False if it was asked to stop early."""
    dataset = session.data.load()

    def run(left: Sequence[Trial]) -> list[Trial]:
        return [trial for trial in left if not attempt(trial, dataset, session, group)]

    return _until_done(trials, run, session, group)


def attempt(trial: Trial, dataset: GraphDataset, session: Session, group: ProcessGroup = SINGLE_PROCESS) -> bool:
    """Trains a trial, unless another program is training it; whether its result is in the store now."""
    store = session.store
    if group.broadcast(session.should_stop()):
        return False
    with store.claim(trial) if group.rank == 0 else contextlib.nullcontext(False) as claimed:
        result = store.load_complete(trial) if claimed else None  # another program may have stored it meanwhile
        ours, there = group.broadcast((claimed, result is not None))
        if result is not None:
            session.on_event(_stored_event(result))
        if there or not ours:
            return there
        try:
            run_trial(
                trial,
                dataset,
                store if claimed else TrialStore(),
                checkpoint_every=session.checkpoint_every,
                progress=reporter(trial, session.on_event),
                should_stop=session.should_stop,
                group=group,
            )
        except Interrupted:
            return False
        return True


def _until_done(
    trials: Sequence[Trial],
    run: Callable[[Sequence[Trial]], Sequence[Trial]],
    session: Session,
    group: ProcessGroup = SINGLE_PROCESS,
) -> bool:
    """Runs what ``run`` says is left, again and again: another program may store it, or die and leave it to us."""
    for turn in itertools.count():
        trials = run(trials)
        if not trials or group.broadcast(session.should_stop()):
            break
        for trial in trials if turn == 0 else ():
            session.on_event(Event(trial, 0, math.nan))
        time.sleep(LOOK_EVERY)
    return not trials


def reporter(trial: Trial, send: OnEvent) -> Callable[[int, float], None]:
    """What `run_trial` calls after an epoch, so that an event is sent."""
    return lambda epoch, accuracy: send(Event(trial, epoch, accuracy))


def _stored_event(result: TrialResult) -> Event:
    """The event of a trial that another program has stored meanwhile."""
    return Event(result.trial, result.trial.training.epochs, result.reading.score)


def _run_on_cluster(trials: Sequence[Trial], session: Session, cluster: Cluster) -> bool:
    from tapnet.experiments.backends.ray import run_on_cluster

    store = session.store

    def run(left: Sequence[Trial]) -> list[Trial]:
        with contextlib.ExitStack() as claims:
            todo = []
            for trial in left:
                if claims.enter_context(store.claim(trial)):
                    if (result := store.load_complete(trial)) is None:
                        todo.append(trial)
                    else:
                        session.on_event(_stored_event(result))
            if todo:
                run_on_cluster(todo, session, cluster)
        return [trial for trial in left if store.load_complete(trial) is None]

    return _until_done(trials, run, session)


@contextlib.contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Whether to stop: the first Ctrl-C (or SIGTERM) asks trials to end after their epoch, the second ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # whoever owns the main thread handles signals
        return
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    names = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not there on Windows
    before = {number: signal.signal(number, ask) for name in names if (number := getattr(signal, name, None))}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---- several processes ----

ENDED: Any = "ended"  # sent after the events of a trial: nothing of it is under way any more
_worker: list[tuple[GraphDataset, Session]] = []  # what this process got when it started


def _start_worker(session: Session, events: Any) -> None:
    processes.ignore_sigint()
    events.cancel_join_thread()  # a parent that no longer listens must not keep this process from ending
    threading.Thread(target=processes.end_with_parent, daemon=True).start()
    forward_warnings(events.put)
    _worker.append((session.data.load(), session))


def forward_warnings(send: Callable[[Any], None]) -> None:
    """Has damaged files said by the process that listens, where somebody reads it."""
    show = warnings.showwarning

    def forward(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, DamagedFileWarning):
            send(message)
        else:
            show(message, category, *place, **more)

    warnings.simplefilter("always", DamagedFileWarning)
    warnings.showwarning = forward


def _attempt_in_worker(trial: Trial, store: Store, checkpoint_every: int, pools: tuple[str, ...]) -> bool:
    dataset, session = _worker[0]
    import_pools(pools)
    if find_model(trial.model).fit is None:
        compile_for_training(backwards=processes.process_number() % 2 == 0)
    try:
        return attempt(trial, dataset, replace(session, store=store, checkpoint_every=checkpoint_every))
    finally:
        session.on_event(ENDED)


def listen(futures: Sequence[Future[bool]], events: Any, session: Session, stop_all: Any) -> None:
    """Passes events on until all has ended; asks all to stop when asked to, or when something has failed."""
    ended = 0
    try:
        while ended < len(futures):
            done = all(future.done() for future in futures)  # asked first: what they sent is in the queue by then
            failed = any(future.done() and future.exception() is not None for future in futures)
            if session.should_stop() or failed:
                stop_all.set()
            try:
                event = events.get(timeout=0.1)
            except queue.Empty:
                if done:
                    return
                continue
            if isinstance(event, TapnetError):  # of a process whose exceptions do not return otherwise
                raise event
            if isinstance(event, Warning):
                warnings.warn(event, stacklevel=2)
            elif event == ENDED:
                ended += 1
            else:
                session.on_event(event)
        wait(futures)
    except BaseException:
        stop_all.set()  # whoever waits for the processes now: they end after their epoch
        raise


def process_died(session: Session, advice: str = "") -> bool:
    """False if it was asked to stop, which may end processes in any way; else a ``TapnetError``."""
    if session.should_stop():
        return False
    raise TapnetError(
        f"a process of the run died{advice}; running it again continues from the last checkpoint"
    ) from None


class _Workers:
    """Processes that have the data set of a run each, and take one trial after another."""

    def __init__(self, session: Session, jobs: int) -> None:
        announce_for_processes()
        context = processes.process_context()
        self.events, self.stop_all = context.Queue(), context.Event()
        theirs = replace(session, on_event=self.events.put, should_stop=self.stop_all.is_set)
        start: dict[str, Any] = {"initializer": _start_worker, "initargs": (theirs, self.events)}
        self.pool = ProcessPoolExecutor(jobs, mp_context=context, **start)
        self._data, self._jobs = session.data.identity, jobs

    def serve(self, data: DataReference, jobs: int) -> bool:
        """Whether they can take so many trials at a time, on these data."""
        return data.identity == self._data and jobs <= self._jobs and not self.stop_all.is_set()

    def submit(self, trials: Sequence[Trial], session: Session) -> list[Future[bool]]:
        """Hands them trials."""
        of_run = session.store, session.checkpoint_every, session.pools
        with processes.block_sigint(), processes.main_module_hidden():
            return [self.pool.submit(_attempt_in_worker, trial, *of_run) for trial in trials]


_kept: ContextVar[list[_Workers] | None] = ContextVar("_kept", default=None)


@contextlib.contextmanager
def keeping_processes() -> Iterator[None]:
    """Runs within this on the same data share their processes, which take as long to start as a short trial."""
    if _kept.get() is not None:
        yield
        return
    kept = list[_Workers]()
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)
        for workers in kept:
            workers.pool.shutdown()


def _find_workers(session: Session, jobs: int) -> _Workers:
    kept = _kept.get()
    assert kept is not None
    while kept and not kept[0].serve(session.data, jobs):
        kept.pop().pool.shutdown()
    if not kept:
        kept.append(_Workers(session, jobs))
    return kept[0]


def _run_in_processes(trials: Sequence[Trial], session: Session, jobs: int) -> bool:
    with keeping_processes():
        workers = _find_workers(session, jobs)

        def run(left: Sequence[Trial]) -> list[Trial]:
            futures = workers.submit(left, session)
            listen(futures, workers.events, session, workers.stop_all)
            return [trial for trial, future in zip(left, futures, strict=True) if not future.result()]

        try:
            return _until_done(trials, run, session)
        except BrokenProcessPool:
            return process_died(session, " (out of memory? fewer jobs take less)")
