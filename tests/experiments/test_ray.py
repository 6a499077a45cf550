"""Trials on a Ray cluster: the serial run's numbers, also when a node is lost."""

import json
import os
import signal
import sys

import pytest

from tapnet import load_dataset
from tapnet.cli.app import find_cluster
from tapnet.errors import DamagedFileWarning, SettingError, TapnetError
from tapnet.experiments.backends.pool import DataReference, Event, run_trials
from tapnet.experiments.backends.ray import Cluster, Mailbox
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings
from tests.helpers.commands import tapnet, tapnet_ends

MUTAG = DataReference("MUTAG", None)
SMALL = {"num_cpus": 1, "object_store_memory": 80 << 20}


def make(folds, epochs=12):
    mutag = load_dataset("MUTAG")
    settings = find_model("tapnet").make_settings("MUTAG", {})
    return [
        Trial("MUTAG", mutag.checksum, "tapnet", settings, "fair", fold, training=TrainingSettings(epochs=epochs))
        for fold in range(folds)
    ]


def same_bits(a, b, trials):
    for trial in trials:
        assert a.load(trial).curves == b.load(trial).curves
        assert a.load(trial).coarsened == b.load(trial).coarsened
        assert a.model_file(trial).read_bytes() == b.model_file(trial).read_bytes()


@pytest.fixture
def nodes():
    pytest.importorskip("ray", reason="needs the extra cluster")
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args=SMALL)
    yield nodes
    nodes.shutdown()


@pytest.mark.slow
def test_every_trial_completes_when_a_node_is_killed_in_the_middle(nodes, tmp_path):
    doomed, _ = nodes.add_node(**SMALL), nodes.add_node(**SMALL)
    trials, serial, store = make(6, epochs=30), Store(tmp_path / "serial"), Store(tmp_path / "ray")
    first_epochs, places, killed = {}, set(), []

    def watch(event):
        places.add(event.where)
        first_epochs.setdefault((event.trial.fold, event.where), event.epoch)
        if event.epoch == 5 and event.where.endswith(doomed.node_id[:6]) and not killed:
            killed.append(event.trial.fold)
            nodes.remove_node(doomed, allow_graceful=False)

    assert run_trials(trials, MUTAG, store, checkpoint_every=2, on_event=watch, cluster=Cluster(nodes.address))
    assert run_trials(trials, MUTAG, serial)
    same_bits(serial, store, trials)
    assert len(places) == 3
    assert killed
    gone = doomed.node_id[:6]
    (second,) = (epoch for (fold, place), epoch in first_epochs.items() if fold == killed[0] and gone not in place)
    assert second in range(5, 30, 2)  # it went on elsewhere, from a checkpoint, of which there is one every two epochs
    assert not any((store.folder / "checkpoints").iterdir())


@pytest.mark.slow
def test_a_stopped_run_leaves_checkpoints_that_go_on_without_the_cluster(nodes, tmp_path):
    trials, serial, store = make(2, epochs=80), Store(tmp_path / "serial"), Store(tmp_path / "ray")

    def stop(event):
        if event.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    assert not run_trials(trials, MUTAG, store, on_event=stop, cluster=Cluster(nodes.address))
    assert sum(store.checkpoint_file(trial).exists() for trial in trials) == 1  # on one CPU one trial was under way
    assert run_trials(trials, MUTAG, store)
    assert run_trials(trials, MUTAG, serial)
    same_bits(serial, store, trials)


@pytest.mark.slow
def test_a_checkpoint_that_a_worker_cannot_use_is_set_aside_and_said(tmp_path):
    pytest.importorskip("ray", reason="needs the extra cluster")
    (trial,), store = make(1, epochs=2), Store(tmp_path)
    store.save_checkpoint(trial, {"state": "of another trial"})  # under a seal that fits
    with pytest.warns(DamagedFileWarning, match=r"not a state of this trial; the trial begins again; .* is .*damaged"):
        assert run_trials([trial], MUTAG, store, cluster=Cluster("local", local_cpus=1))
    assert store.load(trial) is not None
    assert store.checkpoint_file(trial).with_suffix(".damaged").exists()
    assert not store.checkpoint_file(trial).exists()


@pytest.mark.slow
def test_a_killed_mailbox_is_one_sentence_and_checkpoints_are_kept(nodes, tmp_path, monkeypatch):
    trials, store = make(2, epochs=200), Store(tmp_path / "ray")

    class KilledMailbox(Mailbox):
        def take(self, ended):
            found = super().take(ended)
            if any(event.epoch > 20 for event in found[0]):
                os.kill(os.getpid(), signal.SIGKILL)
            return found

    monkeypatch.setattr("tapnet.experiments.backends.ray.Mailbox", KilledMailbox)
    with pytest.raises(TapnetError, match="running it again continues"):
        run_trials(trials, MUTAG, store, checkpoint_every=1, cluster=Cluster(nodes.address))
    assert any(store.checkpoint_file(trial).exists() for trial in trials)


@pytest.mark.slow
def test_a_trial_that_no_node_can_hold_is_refused_at_once(nodes, tmp_path):
    done = tapnet("train", "MUTAG", "--ray", nodes.address, "--cpus-per-trial", 64, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "more than any node of the cluster has (1 CPUs and 0 GPUs)" in done.stderr.splitlines()[-1]


def test_a_command_gives_the_same_numbers_through_ray(tmp_path):
    pytest.importorskip("ray", reason="needs the extra cluster")
    words = ["train", "MUTAG", "--epochs", "2", "--folds", "3", "--json"]
    alone = json.loads(tapnet_ends(*words, "--jobs", 1, "--out", "alone", folder=tmp_path).stdout)
    through = tapnet_ends(*words, "--ray", "local", "--out", "ray", folder=tmp_path)
    numbers = json.loads(through.stdout)
    assert numbers["folds"] == alone["folds"]
    assert "on " in through.stderr  # which node a fold was trained on
    again = tapnet_ends(*words, "--ray", "local", "--out", "ray", folder=tmp_path)
    assert json.loads(again.stdout)["mean"] == alone["mean"]
    assert " on " not in again.stderr.replace("on a", "")  # nothing was left to do, so no cluster was started


def test_an_address_where_nothing_answers_is_one_line(tmp_path):
    pytest.importorskip("ray", reason="needs the extra cluster")
    done = tapnet_ends("train", "MUTAG", "--ray", "nowhere", "--epochs", "1", folder=tmp_path, code=1)
    assert "no Ray cluster answers at nowhere" in done.stderr
    assert "no Ray cluster" in done.stderr.splitlines()[-1]


def test_without_ray_one_line_says_what_to_install(tmp_path):
    program = [sys.executable, "-c", "import sys; sys.modules['ray'] = None; from tapnet.cli import main; main()"]
    done = tapnet("train", "MUTAG", "--ray", "local", "--out", tmp_path / "run", program=program)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install ray" in done.stderr


@pytest.mark.parametrize("cpus", [0, -1, 1.5, float("nan"), float("inf")])
def test_what_a_trial_takes_is_a_part_of_a_node_or_whole_numbers(cpus):
    with pytest.raises(SettingError, match="cpus_per_trial is"):
        Cluster("local", cpus)


@pytest.mark.parametrize(("jobs", "cpus", "cores"), [(2, 1, 2), (4, 0.5, 2), (1, 0.25, 1), (3, 2, 6), (None, 1, None)])
def test_a_local_cluster_has_the_cores_that_its_jobs_take(jobs, cpus, cores):
    cluster, _ = find_cluster("local", cpus, None, jobs, threads=1, device="cpu")
    assert cluster.local_cpus == cores


def test_the_mailbox_hands_over_everything_once():
    trial, mailbox = make(1)[0], Mailbox()
    assert mailbox.begin(trial.key) == (False, None)
    assert mailbox.tell(Event(trial, 1, 50.0)) is False
    mailbox.keep(trial.key, b"old")
    mailbox.keep(trial.key, b"new", new=True)
    assert mailbox.begin(trial.key) == (False, b"new")
    assert mailbox.take([]) == ([Event(trial, 1, 50.0)], {trial.key: b"new"}, {})
    mailbox.reject(trial.key, "damaged")
    assert mailbox.begin(trial.key) == (False, None)
    assert mailbox.take([trial.key]) == ([], {}, {trial.key: "damaged"})
    assert mailbox.take([]) == ([], {}, {})
    mailbox.stop()
    assert mailbox.begin(trial.key) == (True, None)
    assert mailbox.tell(Event(trial, 2, 50.0)) is True
