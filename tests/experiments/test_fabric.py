"""One model on several devices: the steps of one process, shared by two."""

import atexit
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tapnet import load_dataset
from tapnet.experiments.backends.fabric import FabricGroup, ShardedGroup, make_fabric
from tapnet.experiments.backends.pool import DataReference, run_trials
from tapnet.experiments.run_trial import run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.nn.norm import BatchNorm
from tapnet.training.distributed import SINGLE_PROCESS
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import train_steps
from tests.helpers.commands import tapnet

pytest.importorskip("lightning_fabric", reason="needs the extra cluster")
MUTAG = DataReference("MUTAG", None)


def make(model, batch_size=64, epochs=3, protocol="fair", lr=1e-4, **changed):
    mutag = load_dataset("MUTAG")
    settings = find_model(model).make_settings("MUTAG", changed)
    training = TrainingSettings(epochs=epochs, batch_size=batch_size, lr=lr)
    return Trial("MUTAG", mutag.checksum, model, settings, protocol, 0, training=training)


def test_two_processes_lose_what_one_loses_with_the_same_steps(tmp_path):
    one = make("tapnet", dropout=0.0, classifier_dropout=0.0)
    two = replace(one, devices=2)
    store, events = Store(tmp_path), []
    alone = run_trial(one, load_dataset("MUTAG"), store)
    assert run_trials([two], MUTAG, store, checkpoint_every=2, on_event=events.append)
    shared = store.load(two)
    for curve in ("train_loss", "validation_loss"):
        assert torch.tensor(shared.curves[curve]) == pytest.approx(torch.tensor(alone.curves[curve]), rel=2e-4)
    assert [event.epoch for event in events] == [1, 2, 3]
    assert [file.name for file in (tmp_path / "checkpoints").iterdir()] == []


DETERMINISTIC = {"dropout": 0.0, "classifier_dropout": 0.0}
NETWORKS = {  # with the sizes of their steps; a graph alone is too little to share
    "tapnet": ("tapnet", DETERMINISTIC, [64, 50, 1]),
    "tapnet without gate": ("tapnet", {**DETERMINISTIC, "gate": "none"}, [64, 50, 1]),
    "dgcnn": ("dgcnn", {"dropout": 0.0}, [64, 50, 1]),
    "gin": ("gin", {"dropout": 0.0}, [64]),  # batch norms over both processes; torch's own rounds at 3e-5 here
}


def steps_of(name, group):
    """The mean loss and the weights after some plain steps of gradient descent."""
    mutag, (model, changed, sizes) = load_dataset("MUTAG"), NETWORKS[name]
    spec = find_model(model)
    torch.manual_seed(0)
    network = spec.build(DataShape.of(mutag), spec.make_settings("MUTAG", changed))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    *steps, _ = torch.randperm(len(mutag)).split([*sizes, len(mutag) - sum(sizes)])
    loss = train_steps(group.join(network), optimizer, mutag, steps, group=group)
    return loss, {key: value for key, value in network.state_dict().items() if value.is_floating_point()}


SHARDS = [range(100), range(100, 180)]  # of MUTAG, one for each process; their steps:
SHARD_STEPS = [[[3, 50, 99, 7], [1, 2]], [[0, 79], [5, 6, 8]]]


def sharded_steps_of(group):
    """The same with plain steps, by processes that have different graphs."""
    mutag, spec = load_dataset("MUTAG"), find_model("tapnet")
    torch.manual_seed(0)
    network = spec.build(DataShape.of(mutag), spec.make_settings("MUTAG", DETERMINISTIC))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    if group.size == 1:
        data, steps = mutag, [[SHARDS[i][g] for i in range(2) for g in SHARD_STEPS[i][step]] for step in range(2)]
    else:
        data, steps = mutag.subset(SHARDS[group.rank]), SHARD_STEPS[group.rank]
    loss = train_steps(group.join(network), optimizer, data, list(map(torch.tensor, steps)), group=group)
    return loss, network.state_dict()


def batch_norm_of(rows, rank):
    """One of two processes: its half of the rows, through a norm that both share."""
    norm = BatchNorm(3).train()
    norm.together = True
    mine = rows.tensor_split(2)[rank].clone().requires_grad_()
    out = norm(mine)
    out.square().mul(torch.arange(1.0, 4)).sum().backward()
    for parameter in norm.parameters():
        torch.distributed.all_reduce(parameter.grad)
    return [out.detach(), mine.grad, norm.weight.grad, norm.running_mean, norm.running_var]


def _in_each_process(fabric, folder, rows):
    still_in = Path(folder, f"{fabric.global_rank}.still-in-group")
    atexit.register(lambda: still_in.write_text(str(torch.distributed.is_initialized())))  # called after later ones
    group = FabricGroup(fabric)
    steps = {name: steps_of(name, group) for name in NETWORKS}
    sharded = sharded_steps_of(ShardedGroup(fabric))
    torch.save((steps, batch_norm_of(rows, group.rank), sharded), f"{folder}/{group.rank}")


@pytest.fixture(scope="module")
def rows():
    return torch.randn(11, 3, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def both(rows, tmp_path_factory):
    """A folder, and what each of two processes computed: its steps, its half of the norm."""
    folder = tmp_path_factory.mktemp("both")
    torch.set_num_threads(1)
    make_fabric("cpu", 2).launch(_in_each_process, str(folder), rows)
    return folder, [torch.load(folder / str(rank)) for rank in range(2)]


def test_a_process_that_ends_has_left_its_group(both):
    folder, _ = both
    assert [(folder / f"{rank}.still-in-group").read_text() for rank in range(2)] == ["False", "False"]


def test_two_processes_take_the_steps_of_one(both):
    _, ((first, *_), (second, *_)) = both
    for name in NETWORKS:
        loss, weights = steps_of(name, SINGLE_PROCESS)
        assert first[name][0] == second[name][0] == pytest.approx(loss, rel=1e-4)
        for key, value in weights.items():
            torch.testing.assert_close(first[name][1][key], second[name][1][key], rtol=0, atol=0)
            torch.testing.assert_close(first[name][1][key], value, rtol=1e-3, atol=1e-4)


def test_processes_with_different_graphs_take_the_steps_of_one_that_has_all(both):
    loss, weights = sharded_steps_of(SINGLE_PROCESS)
    _, ((*_, first), (*_, second)) = both
    assert first[0] == second[0] == pytest.approx(loss, rel=1e-4)
    for key, value in weights.items():
        torch.testing.assert_close(first[1][key], second[1][key], rtol=0, atol=0)
        torch.testing.assert_close(first[1][key], value, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_stopped_team_goes_on_from_its_checkpoint_to_the_same_bits(tmp_path):
    trial = replace(make("tapnet", epochs=4), devices=2)  # with dropout
    whole, parted = Store(tmp_path / "whole"), Store(tmp_path / "parted")
    assert run_trials([trial], MUTAG, whole)
    two_epochs = Store(tmp_path / "parted")
    assert not run_trials([trial], MUTAG, two_epochs, checkpoint_every=1, on_event=stop_after(2))
    assert parted.checkpoint_file(trial).exists()
    assert run_trials([trial], MUTAG, parted)
    assert parted.load(trial).curves == whole.load(trial).curves
    assert parted.model_file(trial).read_bytes() == whole.model_file(trial).read_bytes()


def stop_after(epoch):
    def stop(event):
        if event.epoch == epoch:
            os.kill(os.getpid(), signal.SIGTERM)  # as a service manager stops the command

    return stop


@pytest.mark.slow
def test_torchrun_gives_what_devices_gives(tmp_path):
    words = ["train", "MUTAG", "--epochs", "2", "--only-folds", "0,1"]
    by_option = tapnet(*words, "--devices", 2, "--out", tmp_path / "option")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "tapnet"]
    by_torchrun = tapnet(*words, "--out", tmp_path / "torchrun", program=command)
    assert by_option.returncode == by_torchrun.returncode == 0, by_option.stderr + by_torchrun.stderr
    assert by_torchrun.stdout.count("MUTAG, tapnet:") == 1  # one of the processes speaks for all
    ours, theirs = (sorted((tmp_path / name / "models").iterdir()) for name in ("option", "torchrun"))
    assert [file.name for file in ours] == [file.name for file in theirs]
    assert [file.read_bytes() for file in ours] == [file.read_bytes() for file in theirs]
    again = tapnet(*words, "--out", tmp_path / "torchrun", program=command)
    assert again.returncode == 0, again.stderr
    assert again.stdout == by_torchrun.stdout


def test_without_fabric_one_line_says_what_to_install(tmp_path):
    program = "import sys; sys.modules['lightning_fabric'] = None; from tapnet.cli import main; main()"
    words = ["train", "MUTAG", "--devices", "2", "--out", tmp_path / "run"]
    done = tapnet(*words, program=[sys.executable, "-c", program])
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Lightning Fabric" in done.stderr
    assert "pip install lightning-fabric" in done.stderr
    assert not (tmp_path / "run").exists()


def test_shares_cover_a_step_and_few_graphs_are_not_shared():
    members = [FabricGroup(Standing(rank, 3)) for rank in range(3)]
    for count in (3, 4, 64):
        graphs = torch.randperm(count)
        shares = [member.shard(graphs) for member in members]
        assert torch.cat([share.graphs for share in shares]).tolist() == graphs.tolist()
        assert {share.weight for share in shares} == {1.0}
    few = [member.shard(torch.tensor([7])) for member in members]
    assert [share.graphs.tolist() for share in few] == [[7]] * 3
    assert sum(share.weight for share in few) == pytest.approx(1)
    assert SINGLE_PROCESS.shard(torch.arange(5)).graphs.tolist() == [0, 1, 2, 3, 4]


class Standing:
    """What a team asks of Fabric before any step."""

    def __init__(self, rank, size):
        self.global_rank, self.world_size = rank, size


def test_a_trial_on_one_device_is_named_as_it_always_was():
    trial = make("tapnet")
    assert "devices" not in trial.to_dict()
    assert Trial.from_dict(trial.to_dict()) == trial
    shared = replace(trial, devices=2)
    assert shared.key != trial.key  # sums round differently
    assert shared.derived_seed == trial.derived_seed
    assert Trial.from_dict(shared.to_dict()) == shared


def test_a_batch_norm_of_two_processes_is_that_of_one(both, rows):
    _, computed = both
    halves = [half for _, half, _ in computed]
    norm, whole = torch.nn.BatchNorm1d(3).train(), rows.clone().requires_grad_()
    out = norm(whole)
    out.square().mul(torch.arange(1.0, 4)).sum().backward()
    torch.testing.assert_close(torch.cat([half[0] for half in halves]), out.detach())
    torch.testing.assert_close(torch.cat([half[1] for half in halves]), whole.grad, atol=1e-5, rtol=1e-4)
    for half in halves:
        torch.testing.assert_close(half[2:], [norm.weight.grad, norm.running_mean, norm.running_var])
