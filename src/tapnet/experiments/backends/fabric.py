"""One model on several devices: Lightning Fabric starts a process for each, and they share every step of every trial.

Each process has all the data. Each takes a shard of a step's graphs, gradients are averaged (gloo on CPUs, NCCL on
GPUs), and so the step is that of one process with the same graphs, up to rounding and each process's own dropout.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor
from torch.multiprocessing.spawn import ProcessExitedException

from tapnet.errors import SettingError, TapnetError
from tapnet.experiments.backends.pool import (
    Session,
    forward_warnings,
    import_pools,
    listen,
    process_died,
    run_in_turn,
)
from tapnet.experiments.backends.processes import block_sigint, end_with_parent, torchrun_size
from tapnet.experiments.trial import Trial
from tapnet.models.base import GraphClassifier
from tapnet.nn.norm import BatchNorm
from tapnet.training.device import Device
from tapnet.training.distributed import ProcessGroup, Shard

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")
logging.getLogger("lightning_fabric.utilities").setLevel(logging.WARNING)  # else each process announces itself


class FabricGroup(ProcessGroup):
    """This process and the others that Fabric started."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric, self.rank, self.size = fabric, fabric.global_rank, fabric.world_size
        atexit.register(_leave_group)  # a process that ends inside a group of gloo can be aborted by its threads

    def join(self, model: GraphClassifier) -> GraphClassifier:
        """Lets Fabric average the gradients of the model, and layers share what they need of all graphs."""
        if type(model).micro_batches is GraphClassifier.micro_batches:  # else processes may differ in their steps
            for module in model.modules():
                if isinstance(module, BatchNorm):
                    module.together = True
        joined = self.fabric.setup_module(model)
        joined.mark_forward_method("outputs")
        return joined  # type: ignore[return-value]  # has the model's methods

    def shard(self, graphs: Tensor) -> Shard:
        """This process's part of the graphs of a step; all of them where there are fewer than processes."""
        if len(graphs) < self.size:
            return Shard(graphs, 1 / self.size)  # too few to share: each takes all, with a part of the weight
        return Shard(graphs.tensor_split(self.size)[self.rank])

    def backward(self, model: GraphClassifier, loss: Tensor, last: bool) -> None:
        """Adds the gradients of a micro-batch; with the last one of a step they are exchanged."""
        with self.fabric.no_backward_sync(model, enabled=not last):  # type: ignore[arg-type]
            self.fabric.backward(loss)

    def total(self, values: Tensor) -> Tensor:
        """The sum over the processes."""
        return cast(Tensor, self.fabric.all_reduce(values, reduce_op="sum"))

    def broadcast(self, value: T) -> T:
        """The first process's value, in all of them."""
        return self.fabric.broadcast(value)

    def dropout_seed(self, seed: int, epoch: int) -> int | None:
        """Processes drop different nodes; a resumed epoch drops the same ones again."""
        return (seed + 1_000_003 * epoch + self.rank) % 2**63


class ShardedGroup(FabricGroup):
    """Processes that each have data of their own: a step is the graphs that all of them take of theirs."""

    def shard(self, graphs: Tensor) -> Shard:
        """All of them: they are numbered in this process's data."""
        return Shard(graphs)

    def count(self, graphs: Tensor) -> int:
        """The number of graphs of a step, in all processes."""
        return int(self.total(torch.tensor(len(graphs))))


def _leave_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def run_in_group(trials: Sequence[Trial], session: Session) -> bool:
    """Trial after trial, each on all its devices; False if it was asked to stop early.

    Under torchrun this process is one of the group already; otherwise its processes are started here.
    """
    fabric = make_fabric(trials[0].device, trials[0].devices)
    if torchrun_size():
        fabric.launch()
        return _run_as_member(fabric, trials, session)
    context = torch.multiprocessing.get_context("spawn")
    events, stop = context.Queue(), context.Event()
    theirs = replace(session, on_event=events.put, should_stop=stop.is_set)
    # bound, since Fabric would look into arguments
    member = partial(_start_member, trials=trials, session=theirs, events=events)

    def launch() -> bool:
        with block_sigint():  # of this thread, and so of the processes that it starts
            return cast(bool, fabric.launch(member))

    with ThreadPoolExecutor(1) as beside:
        future = beside.submit(launch)
        listen([future], events, session, stop)
        try:
            return future.result()
        except ProcessExitedException:
            return process_died(session)


def require_fabric() -> Any:
    """Lightning Fabric, which is an extra; a ``TapnetError`` says how to install it."""
    try:
        import lightning_fabric
    except ImportError:
        raise TapnetError("training on several devices needs Lightning Fabric: pip install lightning-fabric") from None
    return lightning_fabric


def make_fabric(device: Device, devices: int) -> Fabric:
    """Fabric for a group of so many processes, started here or by torchrun."""
    lightning_fabric = require_fabric()
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # of the processes: torch would warn of the flag below
    of_torchrun = torchrun_size()
    if of_torchrun and of_torchrun != devices:
        raise SettingError(f"torchrun has started {of_torchrun} processes, not {devices}")
    local = int(os.environ["LOCAL_WORLD_SIZE"]) if of_torchrun else devices
    fabric: Fabric = lightning_fabric.Fabric(
        accelerator=device,
        devices=local,
        num_nodes=devices // local,
        strategy=lightning_fabric.strategies.DDPStrategy(
            start_method="popen" if of_torchrun else "spawn",
            find_unused_parameters=True,  # a layer may have weights that a choice of settings leaves out
        ),
    )
    return fabric


# ---- in each process ----


def _start_member(fabric: Fabric, trials: Sequence[Trial], session: Session, events: Any) -> bool:
    threading.Thread(target=end_with_parent, daemon=True).start()
    forward_warnings(events.put)
    import_pools(session.pools)
    try:
        return _run_as_member(fabric, trials, session)
    except TapnetError as error:
        events.put(error)
        return False


def _run_as_member(fabric: Fabric, trials: Sequence[Trial], session: Session) -> bool:
    group = FabricGroup(fabric)
    missing = [trial for trial in trials if session.store.load_complete(trial) is None] if group.rank == 0 else []
    if group.rank > 0:
        session = replace(session, on_event=lambda _: None)  # the first one reports
    return run_in_turn(group.broadcast(missing), session, group)
