"""Trials: the same numbers after a stop, with any number of processes, and nothing believed that is damaged."""

import base64
import json
import os
import zlib
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tapnet import load_dataset
from tapnet.errors import DamagedFileWarning, DataError
from tapnet.experiments.backends import processes
from tapnet.experiments.backends.pool import DataReference, run_trials
from tapnet.experiments.run_trial import Interrupted, run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import (
    Selection,
    Trial,
    TrialResult,
    digest,
    pack_array,
    pack_curve,
    rounded,
    unpack_curve,
)
from tapnet.files import replacing
from tapnet.inference.explain import pooling_steps
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import read_model
from tapnet.models.registry import find_model
from tapnet.nn.pool.select import kept_nodes
from tapnet.ops.connectivity import Connectivity
from tapnet.training.protocol import split
from tapnet.training.settings import TrainingSettings

MUTAG = DataReference("MUTAG", None)


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def make(mutag, fold=0, epochs=6, **changes):
    settings = find_model("tapnet").make_settings("MUTAG", changes.pop("settings", {}))
    return Trial(
        "MUTAG", mutag.checksum, "tapnet", settings, changes.pop("protocol", "fair"), fold,
        training=TrainingSettings(epochs=epochs), **changes,
    )  # fmt: skip


def same_numbers(a, b):
    return a.curves == b.curves and a.trial == b.trial


def test_a_trial_that_diverges_says_so_and_is_stored(mutag, tmp_path):
    trial = replace(make(mutag), training=TrainingSettings(epochs=2, lr=1e30))
    result = run_trial(trial, mutag, Store(tmp_path))
    assert result.diverged
    text = Store(tmp_path).result_file(trial).read_text()
    assert "NaN" not in text
    assert Store(tmp_path).load(trial).diverged


# ---- trials ----


def test_a_trial_is_named_by_everything_that_its_numbers_depend_on(mutag):
    trial = make(mutag)
    assert hash(trial) == hash(make(mutag))
    assert trial.key == make(mutag).key
    others = [
        make(mutag, fold=1), make(mutag, epochs=7), make(mutag, protocol="paper"), make(mutag, seed=1),
        make(mutag, threads=2), make(mutag, settings={"gate": "none"}), replace(trial, data="other"),
    ]  # fmt: skip
    assert len({t.key for t in (trial, *others)}) == 8
    assert make(mutag, threads=2).derived_seed == trial.derived_seed
    assert make(mutag, settings={"connectivity": 1}).key == make(mutag, settings={"connectivity": 1.0}).key
    assert make(mutag, settings={"ratios": (1,)}) != make(mutag, settings={"ratios": (1.0,)})
    assert len({t.derived_seed for t in (trial, *others[:4])}) == 5


def test_a_trial_and_its_result_survive_json(mutag, tmp_path):
    trial = make(mutag, epochs=2)
    result = run_trial(trial, mutag, Store(tmp_path))
    stored = Store(tmp_path).load(trial)
    assert same_numbers(result, stored)
    assert stored.trial == trial
    values = json.loads(Store(tmp_path).result_file(trial).read_text())
    assert values["accuracy"] == result.reading.accuracy
    assert set(values["readings"]) == {"best_test_epoch", "last_epoch", "lowest_validation_loss"}
    assert {"torch", "tapnet", "python"} <= set(values["versions"])
    assert len(stored.curves["test_accuracy"]) == 2


def test_the_same_trial_gives_the_same_numbers(mutag, tmp_path):
    trial = make(mutag, epochs=3)
    assert same_numbers(run_trial(trial, mutag, Store(tmp_path / "a")), run_trial(trial, mutag, Store(tmp_path / "b")))


@pytest.mark.parametrize("protocol", ["paper", "fair"])
def test_a_resumed_trial_equals_an_uninterrupted_one_to_the_bit(mutag, tmp_path, protocol):
    trial = make(mutag, epochs=7, protocol=protocol)
    whole = run_trial(trial, mutag, Store(tmp_path / "whole"))
    store, epochs = Store(tmp_path / "stopped"), []
    for stop_after in (2, 5):
        with pytest.raises(Interrupted):
            run_trial(
                trial, mutag, store, should_stop=lambda: epochs[-1] == stop_after,  # noqa: B023
                progress=lambda epoch, _: epochs.append(epoch),
            )  # fmt: skip
        torch.rand(5)  # whatever else draws random numbers in between
    resumed = run_trial(trial, mutag, store, progress=lambda epoch, _: epochs.append(epoch))
    assert epochs == [1, 2, 3, 4, 5, 6, 7]
    assert same_numbers(whole, resumed)
    ours, theirs = (read_model(s.model_file(trial))[0] for s in (store, Store(tmp_path / "whole")))
    assert all(torch.equal(ours[k], theirs[k]) for k in theirs)
    assert not store.checkpoint_file(trial).exists()


def test_a_kill_loses_at_most_the_epochs_since_the_last_checkpoint(mutag, tmp_path):
    trial, store, epochs = make(mutag, epochs=8), Store(tmp_path), []

    def killed_at_five(epoch, _):
        epochs.append(epoch)
        if epoch == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_trial(trial, mutag, store, checkpoint_every=2, progress=killed_at_five)
    resumed = run_trial(trial, mutag, store, progress=lambda epoch, _: epochs.append(epoch))
    assert epochs == [1, 2, 3, 4, 5, 5, 6, 7, 8]
    assert same_numbers(resumed, run_trial(trial, mutag, Store(tmp_path / "whole")))


def test_any_number_of_processes_gives_the_same_numbers_and_nothing_is_done_twice(mutag, tmp_path):
    trials = [make(mutag, fold=f, epochs=2) for f in range(3)]
    results = []
    for jobs in (1, 2):
        store, events = Store(tmp_path / str(jobs)), []
        assert run_trials(trials, MUTAG, store, jobs=jobs, on_event=events.append)
        assert len(events) == 6
        results.append([store.load(t) for t in trials])
        assert run_trials(trials, MUTAG, store, jobs=jobs, on_event=events.append)
        assert len(events) == 6
    assert all(same_numbers(a, b) for a, b in zip(*results, strict=True))


def test_a_listener_that_fails_ends_the_run_and_does_not_hang_it(mutag, tmp_path):
    def closed(event):
        raise BrokenPipeError

    trials = [make(mutag, fold=f, epochs=300) for f in range(3)]
    with pytest.raises(BrokenPipeError):
        run_trials(trials, MUTAG, Store(tmp_path), jobs=2, on_event=closed)
    assert not list((tmp_path / "trials").glob("*.json") if (tmp_path / "trials").exists() else [])


# ---- several programs ----


def test_a_trial_is_claimed_by_one_at_a_time(mutag, tmp_path):
    trial, other, store = make(mutag), make(mutag, fold=1), Store(tmp_path)
    with store.claim(trial) as first, store.claim(trial) as second, store.claim(other) as third:
        assert (first, second, third) == (True, False, True)
    with store.claim(trial) as again:
        assert again
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_where_files_cannot_be_locked_every_trial_is_ours(mutag, tmp_path):
    (tmp_path / "checkpoints").write_text("a file, so that nothing can be made in it")
    with Store(tmp_path).claim(make(mutag)) as first, Store(tmp_path).claim(make(mutag)) as second:
        assert first
        assert second


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_another_program_has_claimed_is_done_last_and_only_if_it_must_be(mutag, tmp_path, jobs):
    trials = [make(mutag, fold=f, epochs=2) for f in range(4)]
    elsewhere, store, events = Store(tmp_path / "elsewhere"), Store(tmp_path / "store"), []
    run_trials(trials[:1], MUTAG, elsewhere)
    stored, died = ExitStack(), ExitStack()
    assert stored.enter_context(store.claim(trials[0]))
    assert died.enter_context(store.claim(trials[1]))

    def watch(event):
        events.append((event.trial.fold, event.epoch))
        if set(events) >= {(2, 2), (3, 2)}:
            store.save_model(trials[0], *read_model(elsewhere.model_file(trials[0])))
            store.save(elsewhere.load(trials[0]))
            stored.close()
            died.close()

    assert run_trials(trials, MUTAG, store, jobs=jobs, on_event=watch)
    assert sorted(events[:4]) == [(2, 1), (2, 2), (3, 1), (3, 2)]
    assert sorted(event for event in events[4:] if event[1]) == [(0, 2), (1, 1), (1, 2)]
    assert all(store.load(trial) for trial in trials)
    assert not list(tmp_path.rglob("*.lock"))


def test_what_a_kill_left_of_a_finished_trial_is_removed(mutag, tmp_path):
    trial, store = make(mutag, epochs=1), Store(tmp_path)
    run_trials([trial], MUTAG, store)
    files = set(tmp_path.rglob("*"))
    store.checkpoint_file(trial).write_bytes(b"of the epoch before")
    store.lock_file(trial).touch()
    assert run_trials([trial], MUTAG, store)
    assert set(tmp_path.rglob("*")) == files


# ---- the store ----


@pytest.mark.parametrize("damage", ["cut", "changed", "not json", "other trial", "a list"])
def test_a_damaged_result_is_set_aside_and_redone(mutag, tmp_path, damage):
    trial, store = make(mutag, epochs=1), Store(tmp_path)
    result = run_trial(trial, mutag, store)
    file = store.result_file(trial)
    text = file.read_text()
    values = json.loads(text)
    broken = {
        "cut": text[: len(text) // 2],
        "changed": text.replace('"epoch":1', '"epoch":2', 1),
        "not json": "\0\0\0",
        "other trial": json.dumps({**values, "key": "0" * 16}),
        "a list": "[]",
    }[damage]
    assert broken != text
    file.write_text(broken)
    assert store.load(trial) is None
    assert file.with_suffix(".damaged").exists()
    assert same_numbers(run_trial(trial, mutag, store), result)


@pytest.mark.parametrize("build", ["a newer one", "an older one"])
def test_a_trial_of_another_build_is_left_where_it_is_and_not_taken_for_one_of_this(mutag, tmp_path, build):
    trial, store = make(mutag, epochs=1), Store(tmp_path)
    run_trial(trial, mutag, store)
    values = json.loads(store.result_file(trial).read_text())
    del values["digest"]
    if build == "a newer one":
        values["trial"]["settings"]["a_setting_to_come"] = 1
    else:
        del values["trial"]["settings"]["connectivity"]
    values["key"] = digest(values["trial"])
    values["digest"] = digest(values)
    other = store.result_file(trial).with_name(values["key"] + ".json")
    other.write_text(json.dumps(values))
    assert [result.trial for result in store.results()] == [trial]
    assert other.exists()


def test_parts_of_killed_writers_are_removed_and_those_of_living_ones_are_not(mutag, tmp_path):
    """Whatever the clocks say: a writer's lock tells whether it lives."""
    trial, store = make(mutag, epochs=1), Store(tmp_path)
    run_trials([trial], MUTAG, store)
    folder = store.result_file(trial).parent
    dead = [folder / f".partial-{stem}-x.json" for stem in ("old", trial.key)]
    for file in dead:
        file.touch()
    store.result_file(trial).unlink()
    with replacing(folder / "other.json"):
        (living,) = set(folder.glob(".partial-*")) - set(dead)
        os.utime(living, (0, 0))
        run_trials([trial], MUTAG, store)
        assert living.exists()
    assert not any(file.exists() for file in dead)
    assert (folder / "other.json").exists()


def test_readers_see_finished_files_only_and_leave_those_of_writers_alone(mutag, tmp_path):
    trial, store = make(mutag, epochs=1), Store(tmp_path)
    result = run_trial(trial, mutag, store)
    file = store.result_file(trial)
    before = file.read_bytes()
    (file.parent / "notes.json").write_text("mine")
    with replacing(file) as out:
        out.write(b"half of a res")
        out.flush()
        assert [same_numbers(found, result) for found in store.results()] == [True]
        assert same_numbers(store.load(trial), result)
        out.seek(0)
        out.write(before)
    assert same_numbers(store.load(trial), result)
    assert {f.name for f in file.parent.iterdir()} == {file.name, "notes.json"}


def test_a_damaged_result_is_renamed_by_the_program_that_has_claimed_its_trial(mutag, tmp_path):
    trial, store = make(mutag, epochs=1), Store(tmp_path)
    run_trial(trial, mutag, store)
    file = store.result_file(trial)
    with store.claim(trial):
        file.write_bytes(b"{}")
        assert store.load(trial) is None
        assert list(store.results()) == []
        assert file.exists()
    with pytest.warns(DamagedFileWarning, match=file.name):
        assert store.load(trial) is None
    assert file.with_suffix(".damaged").exists()


def test_a_damaged_checkpoint_is_set_aside(mutag, tmp_path):
    trial, store = make(mutag, epochs=3), Store(tmp_path)
    with pytest.raises(Interrupted):
        run_trial(trial, mutag, store, should_stop=lambda: True)
    file = store.checkpoint_file(trial)
    file.write_bytes(file.read_bytes()[:-100])
    assert same_numbers(run_trial(trial, mutag, store), run_trial(trial, mutag, Store(tmp_path / "whole")))


@pytest.mark.parametrize("select_from", [0.0, 0.8])
def test_a_stored_model_gives_the_accuracy_that_was_reported(mutag, tmp_path, select_from):
    trial, store = make(mutag, epochs=5), Store(tmp_path)
    trial = replace(trial, training=trial.training.replace(select_from=select_from))
    result = run_trial(trial, mutag, store)
    assert result.reading.epoch > trial.training.first_choice == int(5 * select_from)
    assert ("from epoch 5 on" in Summary([result]).rules) == (select_from == 0.8)
    saved = SavedModel.load(store.model_file(trial))
    assert Trial.from_dict(saved.card.to_dict()["trial"]) == trial
    batch = mutag.batch(split(mutag, "fair", 10, 0).test)
    accuracy = 100 * (saved.network(batch).argmax(1) == batch.y).double().mean()
    assert float(accuracy) == pytest.approx(result.reading.accuracy)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"\x80\x04cos\nsystem\n")
    for name in ("x.safetensors", "nothing.safetensors"):
        with pytest.raises(DataError, match=name):
            read_model(tmp_path / name)


def test_mean_and_deviation_are_numpys(mutag, tmp_path):
    store = Store(tmp_path)
    results = [run_trial(make(mutag, fold=f, epochs=2, protocol="paper"), mutag, store) for f in (0, 1)]
    summary = Summary(results)
    values = [r.reading.accuracy for r in results]
    assert (summary.mean, summary.std) == (np.mean(values), np.std(values))
    assert set(summary.other_readings) == {"last epoch", "best test epoch of the folds' mean"}
    curves = np.array([r.curves["test_accuracy"] for r in results])
    assert summary.other_readings["best test epoch of the folds' mean"][0] == curves.mean(axis=0).max()
    assert summary.other_readings["last epoch"][0] == curves[:, -1].mean()


# ---- what is kept of a trial ----


@given(st.lists(st.floats(allow_infinity=False, width=64), min_size=1, max_size=30))
def test_a_packed_curve_reads_as_it_was_recorded(values):
    recorded = [rounded(v) for v in values]
    np.testing.assert_array_equal(unpack_curve(pack_curve(recorded)), recorded)


def test_a_curve_that_unpacks_to_far_more_than_a_curve_is_refused():
    bomb = base64.b64encode(zlib.compress(b"[" + b"1," * (1 << 24) + b"1]")).decode()
    with pytest.raises(ValueError, match="longer than any"):
        unpack_curve(bomb)


def test_a_trial_records_how_its_test_graphs_hang_together_after_each_pooling(mutag, tmp_path):
    result = run_trial(make(mutag, epochs=1), mutag, Store(tmp_path))
    before, *after = result.coarsened
    test = split(mutag, "fair", 10, 0).test
    assert before == Connectivity.of(mutag.batch(test))
    sizes = mutag.nodes_per_graph[test]
    for level, ratio in zip(after, (0.8, 0.6, 0.4), strict=True):
        sizes = kept_nodes(ratio, sizes)
        assert level.nodes == int(sizes.sum())
        assert level.edges < before.edges
    stored = Store(tmp_path).load(result.trial)
    assert (stored.coarsened, stored.diagnostics) == (result.coarsened, result.diagnostics)
    assert [layer.entropy for layer in result.diagnostics] == [None] * 3
    assert all(-1 <= layer.degree_correlation <= 1 for layer in result.diagnostics)
    assert result.diagnostics[0].edges == pytest.approx(after[0].edges / before.edges, abs=0.05)
    earlier = {name: value for name, value in result.to_dict().items() if name != "diagnostics"}
    assert TrialResult.from_dict(earlier).diagnostics == ()
    assert not run_trial(make(mutag, epochs=1, settings={"pool": "none"}), mutag, Store(tmp_path)).coarsened


def test_a_trial_records_which_nodes_of_its_test_graphs_the_first_layer_kept(mutag, tmp_path):
    store = Store(tmp_path)
    trial = make(mutag, epochs=1, settings={"pool": "topk"})
    result = run_trial(trial, mutag, store)
    model, test = SavedModel.load(store.model_file(trial)).network, split(mutag, "fair", 10, 0).test
    batch = mutag.batch(test)
    first = pooling_steps(model.eval(), batch)[0][0].pooled.perm.numpy()
    for found in (result.selection, store.load(trial).selection):
        np.testing.assert_array_equal(found.sizes, mutag.nodes_per_graph[test].numpy())
        np.testing.assert_array_equal(found.kept, np.isin(np.arange(batch.num_nodes), first))
    earlier = {name: value for name, value in result.to_dict().items() if name != "selection"}
    assert TrialResult.from_dict(earlier).selection is None
    for pool in ("none", "mincut"):
        assert run_trial(make(mutag, epochs=1, settings={"pool": pool}), mutag, Store(tmp_path)).selection is None


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=9), st.integers(0, 2**32 - 1))
def test_a_selection_is_stored_in_few_bytes_and_reads_as_it_was(sizes, seed):
    kept = np.random.default_rng(seed).random(sum(sizes)) < 0.5
    selection = Selection.of(np.array(sizes), kept)
    told = min(sum(sizes), 8192)
    assert selection.sizes.sum() == told
    assert selection.sizes[:-1].tolist() == sizes[: len(selection.sizes) - 1]
    np.testing.assert_array_equal(selection.kept, kept[:told])
    text = json.dumps(selection.to_dict())
    assert len(text) < 1800
    stored = Selection.from_dict(json.loads(text))
    np.testing.assert_array_equal(stored.sizes, selection.sizes)
    np.testing.assert_array_equal(stored.kept, selection.kept)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([3], []),
        ([3], [1, 2]),
        ([0], []),
        ([-3, 6], [1]),
        ([8193], [0] * 129),
        ([[3]], [1]),
        ([3.0], [1]),
        ([3], [1.0]),
    ],
)
def test_a_selection_that_does_not_fit_its_graphs_is_refused(sizes, words):
    with pytest.raises(ValueError, match="a selection of"):
        Selection.from_dict({"sizes": pack_array(np.array(sizes)), "kept": pack_array(np.array(words))})


def test_a_store_can_keep_the_models_of_the_first_fold_alone(mutag, tmp_path):
    store = Store(tmp_path, every_model=False)
    first, second = make(mutag, epochs=1), replace(make(mutag, epochs=1), fold=1)
    for trial in (first, second):
        run_trial(trial, mutag, store)
    assert store.model_file(first).exists()
    assert not store.model_file(second).exists()


def test_results_of_a_build_with_other_settings_are_passed_over_not_thrown_away(mutag, tmp_path):
    store = Store(tmp_path)
    run_trial(make(mutag, epochs=1), mutag, store)
    file = store.result_file(make(mutag, epochs=1))
    values = json.loads(file.read_text())
    del values["digest"]
    values["trial"]["model"] = "unheard of"
    file.write_text(json.dumps({**values, "digest": digest(values)}))
    assert list(store.results()) == []
    assert file.exists()


@pytest.mark.parametrize(
    ("name", "number"), [("ForkServerProcess-2", 2), ("SpawnProcess-1:3", 3), ("MainProcess", 0), ("mine", 0)]
)
def test_a_process_knows_its_number_whoever_started_it(name, number, monkeypatch):
    monkeypatch.setattr(processes.multiprocessing, "current_process", lambda: SimpleNamespace(name=name))
    assert processes.process_number() == number


def test_a_model_has_the_connectivity_of_the_epoch_that_counts(mutag, tmp_path):
    store = Store(tmp_path, keeps_predictions=True)
    trial = make(mutag, settings={"connectivity": 0.0, "connectivity_end": 1.0, "hidden_channels": 8})
    whole = run_trial(trial, mutag, store)
    saved = SavedModel.load(store.model_file(trial))
    for pool in saved.network.pools:
        assert pool.scheduled_connectivity.item() == pytest.approx((whole.reading.epoch - 1) / 5)
    test = whole.predicted["test"]
    said = saved.probabilities(saved.encode(mutag.subset(torch.from_numpy(test.graphs.copy()))))
    np.testing.assert_allclose(said.numpy(), test.values, rtol=1e-4)
    parts = Store(tmp_path / "parts")
    with pytest.raises(Interrupted):
        run_trial(trial, mutag, parts, should_stop=iter([False, False, True]).__next__)
    assert run_trial(trial, mutag, parts).curves == whole.curves
