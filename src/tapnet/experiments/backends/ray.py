"""Trials on a Ray cluster: Ray decides what runs where, and runs again what a lost node had; the store stays here.

A worker needs nothing but the program: the data come through Ray's object store, once for each node, and the events,
checkpoints, model and result of a trial return through a mailbox beside the store.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError, TapnetError
from tapnet.experiments.backends.pool import Event, Session, import_pools
from tapnet.experiments.backends.processes import available_cores
from tapnet.experiments.run_trial import Interrupted, run_trial
from tapnet.experiments.store import TrialStore, pack_checkpoint, unpack_checkpoint
from tapnet.experiments.trial import Trial, TrialResult
from tapnet.files import write_atomically
from tapnet.inference.model_file import ModelCard

RETRIES = 5  # of a trial whose worker or node was lost
LOCAL = "local"


@dataclass(frozen=True)
class Cluster:
    """Where trials run, and what each of them takes of a node.

    Args:
        address: of a cluster's head; "local" starts one here, for the run.
        cpus_per_trial: a whole number, or a part of one.
        gpus_per_trial: a whole number, or a part of one.
        local_cpus: of a local cluster; None means all cores.

    Raises:
        SettingError: for numbers that Ray cannot give.
    """

    address: str
    cpus_per_trial: float = 1
    gpus_per_trial: float = 0
    local_cpus: int | None = None

    def __post_init__(self) -> None:
        for name in ("cpus_per_trial", "gpus_per_trial"):
            value = getattr(self, name)
            if not 0 <= value < float("inf") or (value > 1 and value != int(value)):
                raise SettingError(f"{name} is a whole number, or a part of one between 0 and 1, not {value:g}")
        if self.cpus_per_trial == 0:
            raise SettingError("cpus_per_trial is more than 0: Ray would start every trial at once")


def run_on_cluster(trials: Sequence[Trial], session: Session, cluster: Cluster) -> None:
    """Runs every trial; those that were asked to stop early have checkpoints in the store then."""
    with _connected(cluster) as ray:
        try:
            _run_trials(ray, trials, session, cluster)
        except ray.exceptions.RayTaskError:
            raise  # a fault of the program, as `_answer` found
        except ray.exceptions.RayError as error:  # the mailbox was killed, or the node that has it
            raise _lost("the connection to the trials", error) from None


def _run_trials(ray: Any, trials: Sequence[Trial], session: Session, cluster: Cluster) -> None:
    store = session.store
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    mailbox = ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
    begun = [(trial, state) for trial in trials if (state := store.load_checkpoint(trial)) is not None]
    ray.get([mailbox.keep.remote(trial.key, pack_checkpoint(trial, state)) for trial, state in begun])
    task = ray.remote(_run_on_worker).options(
        num_cpus=cluster.cpus_per_trial,
        num_gpus=cluster.gpus_per_trial,
        max_retries=RETRIES,
        scheduling_strategy="SPREAD",
    )
    shared = [ray.put(session.data.load())], mailbox, session.checkpoint_every, session.pools
    running, by_key = {task.remote(trial, *shared): trial for trial in trials}, {t.key: t for t in trials}
    while running:
        ended, _ = ray.wait(list(running), timeout=0.2)
        if session.should_stop():
            mailbox.stop.remote()
        done = set()  # stored before anything else is asked for: what is computed is kept
        for one in ended:
            if (answer := _answer(ray, one)) is not None:
                if answer.model is not None:
                    store.save_model(running[one], *answer.model)
                store.save(answer.result)
                if running[one].tested:
                    done.add(running[one].key)
        mail = ray.get(mailbox.take.remote([running.pop(one).key for one in ended]))
        for key, reason in mail.rejected.items():
            store.reject_checkpoint(by_key[key], reason)
        for key, packed in mail.checkpoints.items():
            if key not in done:
                write_atomically(store.checkpoint_file(by_key[key]), packed)
        for key in done:
            store.drop_checkpoint(by_key[key])
        for event in mail.events:
            session.on_event(event)


class Answer(NamedTuple):
    """What a worker returns of a trial: the result, and the model if there is one."""

    result: TrialResult
    model: tuple[Mapping[str, Tensor], ModelCard] | None


class Mail(NamedTuple):
    """What workers reported."""

    events: list[Event]
    checkpoints: dict[str, bytes]  # by the key of the trial
    rejected: dict[str, str]  # why its checkpoint was of no use


class Mailbox:
    """An actor beside the store: it collects what workers report, and keeps checkpoints for a second attempt."""

    def __init__(self) -> None:
        self.stopped = False
        self.events: list[Event] = []
        self.checkpoints: dict[str, bytes] = {}
        self.new: set[str] = set()  # checkpoints that the store does not have yet
        self.rejected: dict[str, str] = {}

    def stop(self) -> None:
        """Asks all trials to end after their epoch."""
        self.stopped = True

    def tell(self, event: Event) -> bool:
        """Whether the trial is to stop."""
        self.events.append(event)
        return self.stopped

    def keep(self, key: str, checkpoint: bytes, new: bool = False) -> None:
        """Keeps the last checkpoint of a trial."""
        self.checkpoints[key] = checkpoint
        if new:
            self.new.add(key)

    def reject(self, key: str, reason: str) -> None:
        """Forgets a checkpoint that does not fit its trial, for the store to set aside."""
        self.checkpoints.pop(key, None)
        self.new.discard(key)
        self.rejected[key] = reason

    def begin(self, key: str) -> tuple[bool, bytes | None]:
        """Whether to stop before it has begun, and what to go on from."""
        return self.stopped, self.checkpoints.get(key)

    def take(self, ended: Sequence[str]) -> Mail:
        """Everything since the last time; ``ended`` trials are forgotten then."""
        mail = Mail(self.events, {key: self.checkpoints[key] for key in self.new}, self.rejected)
        self.events, self.new, self.rejected = [], set(), {}
        for key in ended:
            self.checkpoints.pop(key, None)
        return mail


# ---- on a worker ----


@dataclass
class RemoteStore(TrialStore):
    """The store in a worker: checkpoints go to the mailbox, the model returns with the result."""

    mailbox: Any
    checkpoint: bytes | None
    model: tuple[Mapping[str, Tensor], ModelCard] | None = field(default=None, init=False)

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        """The state to continue from."""
        return None if self.checkpoint is None else unpack_checkpoint(trial, self.checkpoint)

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None:
        """Sends it to the mailbox."""
        _answered(self.mailbox.keep.remote(trial.key, pack_checkpoint(trial, state), new=True))

    def reject_checkpoint(self, trial: Trial, reason: str) -> None:
        """Has the store set it aside, which says so to the user."""
        _answered(self.mailbox.reject.remote(trial.key, reason))

    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], card: ModelCard) -> None:
        """Keeps it, to be returned with the result."""
        self.model = (weights, card)


_held: dict[str, GraphDataset] = {}  # by checksum: the data set that this worker has unpacked


def _run_on_worker(
    trial: Trial, data: list[Any], mailbox: Any, checkpoint_every: int, pools: Sequence[str]
) -> Answer | None:
    """A trial on a worker; None if it was asked to stop."""
    import_pools(pools)
    stopped, checkpoint = _answered(mailbox.begin.remote(trial.key))
    if stopped:
        return None
    if trial.data not in _held:
        _held.clear()
        _held[trial.data] = _answered(data[0])
    store, where = RemoteStore(mailbox, checkpoint), _this_node()

    def tell(epoch: int, accuracy: float) -> None:
        nonlocal stopped
        stopped = _answered(mailbox.tell.remote(Event(trial, epoch, accuracy, where)))

    try:
        options: dict[str, Any] = {"checkpoint_every": checkpoint_every, "should_stop": lambda: stopped}
        return Answer(run_trial(trial, _held[trial.data], store, progress=tell, **options), store.model)
    except Interrupted:
        return None


def _answered(question: Any) -> Any:
    """What comes back, waited for beside the main thread: while that waits, Ray gives the trial's CPUs to another."""
    import ray

    with ThreadPoolExecutor(1) as beside:
        return beside.submit(ray.get, question).result()


def _this_node() -> str:
    """Its address, and the beginning of its name in the cluster: several nodes may share a machine."""
    import ray

    return f"{ray.util.get_node_ip_address()} {ray.get_runtime_context().get_node_id()[:6]}"


# ---- the connection ----


def require_ray() -> Any:
    """The library, which is an extra."""
    try:
        import ray
    except ImportError:
        raise TapnetError("a cluster needs Ray: pip install ray") from None
    return ray


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    """Ray, connected; a local cluster ends with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as in Ray's next version; it warns until then
    ray = require_ray()
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if cluster.address == LOCAL:
        options |= {"num_cpus": cluster.local_cpus or available_cores(), "include_dashboard": False}
    sigterm_handler = signal.getsignal(signal.SIGTERM)
    _allow_many_files()
    try:
        ray.init(cluster.address, **options)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise TapnetError(f"no Ray cluster answers at {cluster.address} ({_first_line(error)})") from None
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, sigterm_handler)  # Ray has put its own
        _require_a_node(ray, cluster)
        with (
            Path(os.devnull).open("w", encoding="utf-8") as nowhere,
            redirect_stdout(nowhere),
        ):  # Ray would report on its nodes there
            yield ray
    finally:
        ray.shutdown()


def _allow_many_files() -> None:
    """A claim holds a file, and there is one for each trial."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _require_a_node(ray: Any, cluster: Cluster) -> None:
    """Ray would wait for a node that is large enough, for ever."""
    sizes = [(n["Resources"].get("CPU", 0), n["Resources"].get("GPU", 0)) for n in ray.nodes() if n["Alive"]]
    if not any(cluster.cpus_per_trial <= cpus and cluster.gpus_per_trial <= gpus for cpus, gpus in sizes):
        there = ", ".join(f"{cpus:g} CPUs and {gpus:g} GPUs" for cpus, gpus in sorted(set(sizes), reverse=True))
        takes = f"{cluster.cpus_per_trial:g} CPUs and {cluster.gpus_per_trial:g} GPUs"
        raise SettingError(f"a trial takes {takes}, more than any node of the cluster has ({there})")


def _answer(ray: Any, task: Any) -> Answer | None:
    try:
        return ray.get(task)  # type: ignore[no-any-return]
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, TapnetError):
            raise error.cause from None
        if isinstance(error.cause, ray.exceptions.RayError):  # the mailbox was killed
            raise _lost("the connection of a trial", error.cause) from None
        raise
    except ray.exceptions.RayError as error:
        raise _lost(f"a trial, {RETRIES + 1} times,", error) from None


def _lost(what: str, error: Exception) -> TapnetError:
    again = "running it again continues from the last checkpoint"
    return TapnetError(f"the cluster has lost {what} ({_first_line(error)}); {again}")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
