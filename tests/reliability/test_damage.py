"""Damage of every kind to what is stored: it is noticed, set aside and done again, never believed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tapnet import GraphDataset, cross_validate, load_dataset
from tapnet.errors import DamagedFileWarning, DataError, TapnetError
from tapnet.experiments.backends.pool import DataReference, run_trials
from tapnet.experiments.load_run import load_run
from tapnet.experiments.run_trial import Interrupted, run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial, digest
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import read_model, write_model
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings
from tests.helpers.faults import SMALL

EPOCHS = 3


@pytest.fixture(scope="module")
def dataset(rings: Path) -> GraphDataset:
    return load_dataset(rings)


def make(dataset: GraphDataset, fold: int = 0) -> Trial:
    small = {name: int(value) for name, value in (word.split("=") for word in SMALL[1::2])}
    settings = find_model("tapnet").make_settings(dataset.name, small)
    training = TrainingSettings(epochs=EPOCHS)
    return Trial(dataset.name, dataset.checksum, "tapnet", settings, "fair", fold, folds=4, training=training)


def cut(whole: bytes) -> Iterator[bytes]:
    """At every tenth of its length, the beginning among them, and before its last byte."""
    yield from (whole[: len(whole) * tenth // 10] for tenth in range(10))
    yield whole[:-1]


def flipped(whole: bytes) -> Iterator[bytes]:
    """One bit, at every tenth byte; of a long file, at a thousand places."""
    for place in range(0, len(whole), max(10, len(whole) // 1000)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        yield bytes(changed)


def other_types(values: Any) -> Iterator[Any]:
    """The same JSON with one value somewhere replaced by one of another type, or left out."""
    strange = (None, [], {}, "x", -1, True, 1e999, [[]], {"x": []})
    if isinstance(values, dict):
        for key, value in values.items():
            yield {k: v for k, v in values.items() if k != key}
            yield from ({**values, key: one} for one in strange if type(one) is not type(value))
            yield from ({**values, key: inner} for inner in other_types(value))


# ---- results ----


@pytest.fixture(scope="module")
def stored(dataset: GraphDataset, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two trials that are done."""
    store = Store(tmp_path_factory.mktemp("stored"))
    for fold in (0, 1):
        run_trial(make(dataset, fold), dataset, store)
    return store


def believes(store: Store, trial: Trial, content: bytes) -> bool:
    """Whether this content counts as the trial's result; if not, it has been set aside as it was."""
    file = store.result_file(trial)
    file.write_bytes(content)
    if store.load(trial) is not None:
        return True
    assert not file.exists()
    assert file.with_suffix(".damaged").read_bytes() == content
    return False


def test_a_result_that_was_cut_is_not_believed(dataset, stored):
    trial = make(dataset)
    whole = stored.result_file(trial).read_bytes()
    assert not any(believes(stored, trial, content) for content in cut(whole) if content != whole.rstrip())
    assert believes(stored, trial, whole)


def test_a_result_with_a_flipped_bit_is_not_believed(dataset, stored):
    trial = make(dataset)
    whole = stored.result_file(trial).read_bytes()
    for content in flipped(whole):
        if believes(stored, trial, content):  # 1E-5 for 1e-5: the same in other letters
            assert json.loads(content) == json.loads(whole)
    assert believes(stored, trial, whole)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 500,
        b"null",
        b"3",
        b'"x"',
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe{}",
        b"1" * 9999,
    ],
    ids=lambda content: repr(content[:8]),
)
def test_what_is_no_result_is_not_believed(dataset, stored, content):
    trial = make(dataset)
    whole = stored.result_file(trial).read_bytes()
    assert not believes(stored, trial, content)
    assert believes(stored, trial, whole)


def test_the_result_of_another_trial_is_not_believed(dataset, stored):
    first, second = make(dataset, 0), make(dataset, 1)
    whole, other = (stored.result_file(trial).read_bytes() for trial in (first, second))
    assert not believes(stored, first, other)
    assert believes(stored, first, whole)


def test_a_result_of_other_types_is_not_believed_or_can_be_used(dataset, stored):
    """Even if the checksum fits, as in a file that was made to deceive."""
    trial = make(dataset)
    file = stored.result_file(trial)
    whole = file.read_bytes()
    values = json.loads(whole)
    del values["digest"]
    tried = 0
    for wrong in other_types(values):
        file.write_text(json.dumps({**wrong, "digest": digest(wrong)}))
        tried += 1
        if (result := stored.load(trial)) is not None:
            json.dumps(result.to_dict())
            json.dumps(Summary([result]).to_dict())
    assert tried > 300
    file.write_bytes(whole)


def test_what_was_not_believed_is_done_again_with_the_same_numbers(dataset, rings, tmp_path):
    store, trials = Store(tmp_path), [make(dataset, fold) for fold in range(2)]
    assert run_trials(trials, DataReference(str(rings), None), store)
    before = [store.load(trial).curves for trial in trials]
    file = store.result_file(trials[0])
    file.write_bytes(file.read_bytes()[:-40])
    epochs = []
    assert run_trials(trials, DataReference(str(rings), None), store, on_event=lambda e: epochs.append(e.trial.fold))
    assert epochs == [0] * EPOCHS
    assert [store.load(trial).curves for trial in trials] == before
    assert file.with_suffix(".damaged").exists()


# ---- checkpoints ----


def begun(dataset: GraphDataset, store: Store, fold: int = 0) -> Path:
    """The checkpoint of a trial after its first epoch."""
    with pytest.raises(Interrupted):
        run_trial(make(dataset, fold), dataset, store, should_stop=lambda: True)
    return store.checkpoint_file(make(dataset, fold))


def test_a_checkpoint_that_is_not_what_was_written_is_not_believed(dataset, tmp_path):
    trial, store = make(dataset), Store(tmp_path)
    file, other = begun(dataset, store), begun(dataset, store, fold=1)
    whole, tried = file.read_bytes(), 0
    for content in (*cut(whole), *flipped(whole), other.read_bytes(), b"\0" * len(whole)):
        file.write_bytes(content)
        assert store.load_checkpoint(trial) is None
        assert file.with_suffix(".damaged").read_bytes() == content
        assert not file.exists()
        tried += 1
    assert tried > 500
    file.write_bytes(whole)
    assert store.load_checkpoint(trial)["epoch"] == 1


def test_a_trial_whose_checkpoint_is_damaged_begins_again_and_gives_the_same_numbers(dataset, tmp_path):
    trial, store, epochs = make(dataset), Store(tmp_path / "a"), []
    file = begun(dataset, store)
    middle = bytearray(file.read_bytes())
    middle[len(middle) // 2] ^= 1
    file.write_bytes(middle)
    result = run_trial(trial, dataset, store, progress=lambda epoch, _: epochs.append(epoch))
    assert epochs == [1, 2, 3]
    assert result.curves == run_trial(trial, dataset, Store(tmp_path / "b")).curves


def other_state(dataset: GraphDataset, store: Store, change: Callable[[dict[str, Any]], None]) -> Path:
    """A checkpoint whose content was changed, under a seal that fits."""
    trial = make(dataset)
    begun(dataset, store)
    state = store.load_checkpoint(trial)
    change(state)
    store.save_checkpoint(trial, state)
    return store.checkpoint_file(trial)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.clear(),
        lambda state: state.update(epoch=10**9),
        lambda state: state.update(epoch="1"),
        lambda state: state.update(model={}),
        lambda state: state["model"].update({k: v[:1] for k, v in state["model"].items()}),
        lambda state: state["optimizer"]["state"][0].update(exp_avg=torch.zeros(1)),
        lambda state: state["optimizer"]["param_groups"][0].update(weight_decay=5.0),
        lambda state: state.update(random=torch.zeros(3, dtype=torch.uint8)),
        lambda state: state["curves"].update(test_accuracy=[]),
        lambda state: state["curves"].update(test_accuracy=["x"]),
        lambda state: state.update(best_weights={}),
        lambda state: state.update(seconds=None),
    ],
)
def test_a_checkpoint_of_another_shape_is_set_aside_even_with_a_seal_that_fits(dataset, stored, tmp_path, change):
    trial, store, epochs = make(dataset), Store(tmp_path), []
    file = other_state(dataset, store, change)
    with pytest.warns(DamagedFileWarning, match=file.name):
        result = run_trial(trial, dataset, store, progress=lambda epoch, _: epochs.append(epoch))
    assert epochs == [1, 2, 3]
    assert file.with_suffix(".damaged").exists()
    assert result.curves == stored.load(trial).curves


@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_a_checkpoint_that_is_no_regular_file_is_not_waited_for(dataset, tmp_path, kind):
    store = Store(tmp_path)
    file = store.checkpoint_file(make(dataset))
    file.parent.mkdir()
    os.mkfifo(file) if kind == "a pipe" else file.symlink_to("/dev/zero")
    with pytest.warns(DamagedFileWarning):
        assert store.load_checkpoint(make(dataset)) is None


# ---- models ----


@pytest.mark.parametrize("damage", ["empty", "deleted", "swapped", "a pipe"])
def test_the_model_of_a_fold_that_is_not_what_was_written_is_trained_again(dataset, rings, tmp_path, damage):
    store, trials = Store(tmp_path), [make(dataset, fold) for fold in range(2)]
    data = DataReference(str(rings), None)
    assert run_trials(trials, data, store)
    files = [store.model_file(trial) for trial in trials]
    before, results = [file.read_bytes() for file in files], [store.load(trial).curves for trial in trials]
    if damage == "empty":
        files[0].write_bytes(b"")
    elif damage == "swapped":
        files[0].write_bytes(before[1])
    else:
        files[0].unlink()
        if damage == "a pipe":
            os.mkfifo(files[0])
    folds = set()
    with pytest.warns(DamagedFileWarning, match=files[0].name):
        assert run_trials(trials, data, store, on_event=lambda event: folds.add(event.trial.fold))
    assert folds == {0}
    assert [file.read_bytes() for file in files] == before
    assert [store.load(trial).curves for trial in trials] == results


def test_results_that_are_deleted_during_the_run_are_computed_again(dataset, rings, tmp_path):
    store, trials, deleted = Store(tmp_path), [make(dataset, fold) for fold in range(2)], []

    def delete(event: Any) -> None:
        if event.trial.fold == 1 and not deleted:
            deleted.append(store.result_file(trials[0]).unlink())

    with pytest.warns(DamagedFileWarning, match="1 of 2"):
        assert run_trials(trials, DataReference(str(rings), None), store, on_event=delete)
    assert all(store.load(trial) for trial in trials)


def test_a_run_that_loses_its_results_again_and_again_does_not_end_as_complete(dataset, rings, tmp_path):
    store, trials = Store(tmp_path), [make(dataset, fold) for fold in range(2)]

    def delete(event: Any) -> None:
        store.result_file(trials[1 - event.trial.fold]).unlink(missing_ok=True)

    with pytest.warns(DamagedFileWarning), pytest.raises(TapnetError, match="deleted"):
        run_trials(trials, DataReference(str(rings), None), store, on_event=delete)


def test_a_run_of_which_results_are_lost_says_so(rings, tmp_path):
    run = cross_validate(rings, epochs=1, folds=3, jobs=1, out=tmp_path, hidden_channels=8)
    Store(tmp_path).result_file(run.results[0].trial).unlink()
    with pytest.warns(DamagedFileWarning, match="1 of the run's 3"):
        assert len(load_run(tmp_path).results) == 2
    page = tmp_path / "run.json"
    page.write_text(page.read_text().replace('"complete"', '"running"'))
    with pytest.raises(DataError, match="not what was written"):
        load_run(tmp_path)


def test_a_model_with_a_flipped_bit_is_refused(dataset, stored, tmp_path):
    whole = stored.model_file(make(dataset)).read_bytes()
    weights, card = read_model(stored.model_file(make(dataset)))
    file, noticed = tmp_path / "model.safetensors", 0
    for content in (*cut(whole), *flipped(whole)):
        file.write_bytes(content)
        try:
            found, said = read_model(file)
        except DataError:
            noticed += 1
        else:  # in the word "checksum": the rest is whole
            assert all(torch.equal(found[name], weights[name]) for name in weights)
            assert said.to_dict().items() >= card.to_dict().items()
    assert noticed > 500


def test_a_model_without_a_checksum_is_read(dataset, stored, tmp_path):
    from safetensors.torch import save_file

    weights, card = read_model(stored.model_file(make(dataset)))
    save_file(weights, tmp_path / "old.safetensors", metadata={"tapnet": json.dumps(card.to_dict())})
    assert SavedModel.load(tmp_path / "old.safetensors").card == card
    assert "checksum" not in card.to_dict()


def test_the_same_model_gives_the_same_bytes(dataset, stored, tmp_path):
    file = stored.model_file(make(dataset))
    write_model(tmp_path / "again.safetensors", *read_model(file))
    assert (tmp_path / "again.safetensors").read_bytes() == file.read_bytes()
