"""One model on a Ray cluster, trained data-parallel on mapped shards; a node is killed in the middle.

`python benchmarks/ray_shards.py` starts three nodes on this machine, each with shards on a disk of its own (a folder),
and trains one TAPNet with Ray Train, one process on each node. Every process reads the shards of its node only. When a
node is killed, Ray Train starts the others again from the last checkpoint, and the lost node's shards, of which a copy
has to be somewhere, are shared by those that are left. Needs ``pip install "ray[train]"``. Linux only.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import threading
import time
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m

from benchmarks.mapped import NUMBERS, write_copy

CHECKPOINT = "state.pt"
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100_000_000}
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_health_check_period_ms": "1000",  # a node that does not answer ten times is dead, after ten seconds or so
    "RAY_health_check_failure_threshold": "10",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "10",  # to wait for nodes that are not there any more
}
Trained = tuple[int, tuple[int, ...], float]  # a turn that is done: its epoch, the shard of every process, the loss


@dataclass(frozen=True)
class Run:
    """What is trained, as every process gets it.

    Args:
        folder: that all nodes see: of the shards, the checkpoints and the record.
        shards: their number; shard i is on disk i modulo ``disks``.
        disks: their number, one for each node.
        graphs: of each shard.
        epochs: of training.
        batch_size: of one process's part of a step.
    """

    folder: str
    shards: int
    disks: int
    graphs: int
    epochs: int
    batch_size: int = 64

    def shard(self, number: int) -> Path:
        """The folder of a shard."""
        return Path(self.folder, f"disk{number % self.disks}", f"SHARD{number}")

    def on_disk(self, disk: int | None) -> list[int]:
        """The shards of a disk; none of a node that has none."""
        return [number for number in range(self.shards) if number % self.disks == disk]

    def record(self) -> list[dict[str, Any]]:
        """What processes wrote of their turns, in the order of time."""
        lines = [line for file in Path(self.folder).glob("*.jsonl") for line in file.read_text().splitlines()]
        return sorted((json.loads(line) for line in lines), key=lambda turn: turn["end"])


# ---- in each process ----


def train(config: dict[str, Any]) -> None:
    """What Ray Train calls in every process: restores the last checkpoint, then trains turn after turn."""
    import ray.train
    import torch

    from tapnet import TAPNet
    from tapnet.experiments.backends.fabric import ShardedGroup, make_fabric
    from tapnet.training.settings import TrainingSettings
    from tapnet.training.shards import graphs_of_turn, plan_turns, train_turn
    from tapnet.training.trainer import make_optimizer

    torch.set_num_threads(1)
    run, node = Run(**config["run"]), ray.get_runtime_context().get_node_id()
    os.environ["TORCHELASTIC_RUN_ID"] = "ray"  # Ray Train has made the group, and set what torchrun would set
    fabric = make_fabric("cpu", ray.train.get_context().get_world_size())
    fabric.launch()
    group = ShardedGroup(fabric)
    held: list[list[int]] = [[]] * group.size
    torch.distributed.all_gather_object(held, run.on_disk(config["disks"].get(node)))
    torch.manual_seed(0)
    model = TAPNet(NUMBERS, 2)
    optimizer = make_optimizer(model, TrainingSettings())
    history: list[Trained] = []
    if (checkpoint := ray.train.get_checkpoint()) is not None:
        state = load_checkpoint(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        history = state["history"]
    joined = group.join(model)
    record = Path(run.folder, f"{node}-{os.getpid()}.jsonl")
    datasets: dict[int, Any] = {}
    for epoch in range(run.epochs):
        done = {shard for earlier, turn, _ in history if earlier == epoch for shard in turn}
        for turn in plan_turns(held, set(range(run.shards)) - done):
            mine = turn[group.rank]
            if mine not in datasets:  # mapped: those that are open take no memory
                datasets[mine] = load_mapped(run, mine)
            parts = [graphs_of_turn(turn, process, run.graphs) for process in range(group.size)]
            torch.manual_seed(group.dropout_seed(0, epoch * run.shards + mine))
            start, cpu = time.time(), time.process_time()
            loss = train_turn(
                joined,
                optimizer,
                datasets[mine],
                parts[group.rank],
                batch_size=run.batch_size,
                sizes=[len(part) for part in parts],
                group=group,
                generator=torch.Generator().manual_seed(epoch),
            )
            found = {
                "node": node,
                "processes": group.size,
                "epoch": epoch,
                "shard": mine,
                "graphs": len(parts[group.rank]),
            }
            times = {"start": start, "end": time.time(), "cpu": time.process_time() - cpu}
            with record.open("a") as file:
                file.write(json.dumps(found | times | {"loss": loss}) + "\n")
            history.append((epoch, turn, loss))
            save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": history}, group.rank)


def load_mapped(run: Run, number: int) -> Any:
    """A shard, mapped whatever its size."""
    from tapnet import load_dataset
    from tapnet.io import sealed_arrays

    sealed_arrays.MAPPED_BYTES = 0
    os.environ["TAPNET_CACHE"] = str(run.shard(number).parent / "cache")
    return load_dataset(run.shard(number))


def save(state: dict[str, Any], rank: int) -> None:
    """Reports a turn to Ray Train, which waits for all processes; the first one has the checkpoint."""
    import ray.train
    import torch

    if rank > 0:
        ray.train.report({})
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state, Path(folder, CHECKPOINT))
        ray.train.report({}, checkpoint=ray.train.Checkpoint.from_directory(folder))


def load_checkpoint(checkpoint: Any) -> dict[str, Any]:
    """What `save` stored."""
    import torch

    with checkpoint.as_directory() as folder:
        state: dict[str, Any] = torch.load(Path(folder, CHECKPOINT))
    return state


# ---- here ----


def run_on_nodes(run: Run, kill_in_epoch: int) -> dict[str, Any]:
    """Starts a node for each disk, trains, kills the last node in an epoch, and says what happened."""
    os.environ |= SETTINGS | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # of the processes on the nodes
    import ray
    from ray.cluster_utils import Cluster
    from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0, "include_dashboard": False})
    nodes: list[Any] = []
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(0.05):
            if any(turn["epoch"] == kill_in_epoch for turn in run.record()):  # its first turn is done
                cluster.remove_node(nodes[-1], allow_graceful=False)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        nodes += [cluster.add_node(**NODE) for _ in range(run.disks)]
        disks = {node.node_id: disk for disk, node in enumerate(nodes)}
        ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        trainer = TorchTrainer(
            train,
            train_loop_config={"run": asdict(run), "disks": disks},
            scaling_config=ScalingConfig(num_workers=(1, run.disks)),  # type: ignore[arg-type]  # typed as before Ray 2.50
            run_config=RunConfig(
                storage_path=run.folder,
                failure_config=FailureConfig(max_failures=5),
                checkpoint_config=CheckpointConfig(num_to_keep=2),
            ),
        )
        state = load_checkpoint(trainer.fit().checkpoint)
    finally:
        ended.set()
        killer.join()
        ray.shutdown()
        cluster.shutdown()
    return of_history(run, state) | of_record(run, disks)


def of_history(run: Run, state: dict[str, Any]) -> dict[str, Any]:
    """What the last checkpoint says: all turns that its weights come from, and no others."""
    from tapnet.training.shards import graphs_of_turn, steps_of_turn

    times_seen = np.zeros((run.epochs, run.shards, run.graphs), dtype=int)
    losses, steps = np.zeros(run.epochs), 0
    for epoch, turn, loss in state["history"]:
        parts = [graphs_of_turn(turn, process, run.graphs).numpy() for process in range(len(turn))]
        for shard, part in zip(turn, parts, strict=True):
            times_seen[epoch, shard, part] += 1
            losses[epoch] += loss * len(part) / (run.shards * run.graphs)
        steps += steps_of_turn([len(part) for part in parts], run.batch_size)
    return {
        "graphs": run.shards * run.graphs,
        "steps": steps,
        "losses of the epochs": losses.round(4).tolist(),
        "each graph seen in an epoch, times": [int(times_seen.min()), int(times_seen.max())],
        "bytes of gradients": 4 * sum(value.numel() for value in state["model"].values()),
    }


def of_record(run: Run, disks: dict[str, int]) -> dict[str, Any]:
    """What the processes wrote down: who trained on what, and how fast."""
    turns = run.record()
    found: dict[str, Any] = {}
    for size in sorted({turn["processes"] for turn in turns}, reverse=True):
        some = [turn for turn in turns if turn["processes"] == size]
        graphs = sum(t["graphs"] for t in some)
        found[f"{size} processes"] = {
            "graphs a second": round(size * graphs / sum(t["end"] - t["start"] for t in some)),
            "CPU µs a graph": round(sum(t["cpu"] for t in some) / graphs * 1e6),
        }
    before = [turn for turn in turns if turn["processes"] == run.disks]
    after = [turn for turn in turns if turn["processes"] < run.disks]
    for name, some in (("before", before), ("after", after)) if after else (("all", turns),):
        read: dict[int, set[int]] = {}
        for turn in some:
            read.setdefault(disks[turn["node"]], set()).add(turn["shard"])
        found[f"shards read, {name}"] = {node: sorted(read[node]) for node in sorted(read)}
    if after:
        found["loss before, after"] = [round(before[-1]["loss"], 4), round(after[0]["loss"], 4)]
        found["seconds lost"] = round(min(t["start"] for t in after) - max(t["end"] for t in before), 1)
    return found


def make_shards(run: Run) -> None:
    """Writes every shard to its disk, each with graphs of its own."""
    for number in range(run.shards):
        folder = run.shard(number)
        folder.parent.mkdir(exist_ok=True)
        os.environ["TAPNET_CACHE"] = str(folder.parent / "cache")
        write_copy(folder, run.graphs, seed=number)


def main() -> None:
    """Makes the shards, trains and prints what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--graphs", type=int, default=2000, help="of each shard")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--kill-in-epoch", type=int, default=1, help="counted from 0; -1 kills none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, options.shards, options.nodes, options.graphs, options.epochs)
        make_shards(run)
        with redirect_stdout(sys.stderr):  # where Ray reports on its nodes
            found = run_on_nodes(run, options.kill_in_epoch)
    print(json.dumps(found) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
