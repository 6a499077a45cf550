"""The search for settings: from each system's space, by validation graphs alone, the same for the same seed."""

import json
import math
import os
import signal
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapnet
from tapnet.errors import DataError, SettingError
from tapnet.experiments.run_trial import Interrupted, run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial
from tapnet.experiments.tune import GENERIC, draw_randomly, load_settings
from tapnet.models.registry import MODELS, find_model
from tapnet.training.settings import TrainingSettings

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
QUICK = {"configs": 4, "epochs": 3, "jobs": 1}
SMALL = {"hidden_channels": 8, "layers": 2}


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


@pytest.mark.parametrize("model", ["tapnet", "gin", "wl", "sagpool"])
def test_the_best_of_the_configurations_that_were_tried(mutag, model):
    found = tapnet.tune(mutag, model, **QUICK)
    assert len(found.trials) == 4
    assert len({json.dumps(row["settings"]) for row in found.trials}) == 4
    (usual,) = (row["settings"] for row in found.trials if row["config"] == 0)
    spec = find_model(model)
    settings, steps = spec.make_settings("MUTAG", {}), TrainingSettings(**spec.training)
    assert usual == {name: getattr(settings if hasattr(settings, name) else steps, name) for name in usual}
    assert found.settings == found.trials[0]["settings"]
    full = [row["score"] for row in found.trials if row["epochs"] == found.epochs]
    assert found.score == full[0] == max(full)
    scored = tapnet.cross_validate(mutag, model, folds=3, only_folds=[0], epochs=1, jobs=1, **found.settings)
    trial = scored.results[0].trial
    trained = {k: getattr(trial.settings if hasattr(settings, k) else trial.training, k) for k in found.settings}
    assert trained == found.settings


@pytest.mark.parametrize("search", ["random", "tpe"])
def test_the_same_seed_gives_the_same_result(mutag, search):
    def rows(**changes):
        found = tapnet.tune(mutag, "gin", search=search, **{**QUICK, "configs": 10, **SMALL, **changes})
        return [{k: v for k, v in row.items() if k != "seconds"} for row in found.trials]

    assert rows() == (rows(jobs=2) if search == "random" else rows())
    assert rows() != rows(seed=1)


def test_what_is_given_is_not_searched_for(mutag):
    found = tapnet.tune(mutag, pool="none", lr=0.02, hidden_channels=8, **QUICK)
    assert not {"lr", "pool", "hidden_channels"} & found.trials[0]["settings"].keys()
    assert found.settings.items() >= {"lr": 0.02, "pool": "none", "hidden_channels": 8}.items()


def test_without_halving_all_are_trained_to_the_end_and_several_folds_score(mutag):
    found = tapnet.tune(mutag, "gin", halving=False, only_folds=[0, 1], folds=3, **QUICK, **SMALL)
    assert [row["epochs"] for row in found.trials] == [3] * 4
    assert [row["score"] for row in found.trials] == sorted((row["score"] for row in found.trials), reverse=True)


def test_a_training_that_diverges_is_not_chosen(mutag, monkeypatch):
    monkeypatch.setattr("tapnet.experiments.tune.search_space", lambda _: {"lr": (1e30, 1e-9)})
    turned = replace(mutag, y=1 - mutag.y)  # a network that says NaN names the first class, which most graphs are of
    found = tapnet.tune(turned, "gin", halving=False, **QUICK, **SMALL)
    *others, diverged = found.trials
    assert diverged["settings"] == {"lr": 1e30}
    assert math.isnan(diverged["score"])
    assert all(math.isfinite(row["score"]) for row in others)
    assert found.settings["lr"] < 1


def test_a_metric_that_is_to_be_low(mutag):
    found = tapnet.tune(mutag, "gin", metric="brier", halving=False, **QUICK, **SMALL)
    assert found.score == min(row["score"] for row in found.trials)


def test_test_graphs_of_a_file_are_never_read(mutag, tmp_path):
    file = tmp_path / "splits.json"
    file.write_text(json.dumps([{"train": list(range(100)), "val": list(range(100, 140)), "test": [140, 150, 160]}]))
    tapnet.tune(mutag, "gin", split=file, out=tmp_path / "run", **QUICK, **SMALL)
    for result in Store(tmp_path / "run").results():
        assert not result.trial.tested
        assert not any(name.startswith("test") for name in result.curves)
        assert result.predicted.keys() == {"validation"}
        assert result.predicted["validation"].graphs.tolist() == list(range(100, 140))


# ---- more epochs go on from fewer ----


def _trial(mutag, epochs, **training):
    spec = find_model("gin")
    steps = TrainingSettings(**{**spec.training, **training, "epochs": epochs})
    settings = spec.make_settings("MUTAG", SMALL)
    return Trial("MUTAG", mutag.checksum, "gin", settings, "nested", 0, training=steps, tested=False)


def test_a_trial_with_more_epochs_goes_on_to_the_same_bits(mutag, tmp_path):
    short, long = _trial(mutag, 2), _trial(mutag, 5)
    assert short.key != long.key
    whole = run_trial(long, mutag, Store(tmp_path / "whole"))
    store, epochs = Store(tmp_path / "parts", keeps_predictions=True), []
    first = run_trial(short, mutag, store)
    store.tidy(short)
    rest = run_trial(long, mutag, store, progress=lambda epoch, _: epochs.append(epoch))
    assert epochs == [3, 4, 5]
    assert rest.curves == whole.curves
    assert {name: curve[:2] for name, curve in rest.curves.items()} == first.curves
    assert store.load_complete(long).curves == whole.curves  # it has no model, and needs none
    assert not list(tmp_path.glob("*/models/*"))


def test_a_schedule_that_follows_the_epochs_begins_anew(mutag, tmp_path):
    short, long = (_trial(mutag, epochs, schedule="one-cycle") for epochs in (2, 3))
    store, epochs = Store(tmp_path), []
    run_trial(short, mutag, store)
    run_trial(long, mutag, store, progress=lambda epoch, _: epochs.append(epoch))
    assert epochs == [1, 2, 3]
    settings = find_model("tapnet").make_settings("MUTAG", {"hidden_channels": 4, "connectivity_end": 0.5})
    short, long = (replace(trial, model="tapnet", settings=settings) for trial in (_trial(mutag, 2), _trial(mutag, 3)))
    assert short.checkpoint_key != long.checkpoint_key
    assert short.derived_seed != long.derived_seed


def test_an_interrupted_search_goes_on(mutag, tmp_path):
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == 6:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="trials"):
        tapnet.tune(mutag, "gin", out=tmp_path, progress=stop, **{**QUICK, "epochs": 6}, **SMALL)
    resumed = tapnet.tune(mutag, "gin", out=tmp_path, progress=seen.append, **{**QUICK, "epochs": 6}, **SMALL)
    whole = tapnet.tune(mutag, "gin", **{**QUICK, "epochs": 6}, **SMALL)
    assert len(seen) == len({(event.trial.checkpoint_key, event.epoch) for event in seen})  # no epoch twice
    assert (resumed.settings, resumed.score) == (whole.settings, whole.score)
    assert not list(tmp_path.glob("checkpoints/*"))


# ---- spaces ----


@pytest.mark.parametrize("model", MODELS)
def test_every_value_of_a_space_is_one_that_the_setting_can_have(model):
    spec = find_model(model)
    for name, values in (spec.search or {n: v for n, v in GENERIC.items() if n in spec.settings.names()}).items():
        assert len(set(values)) == len(values)
        for value in values:
            if name in spec.settings.names():
                assert getattr(spec.make_settings("MUTAG", {name: value}), name) == value
            else:
                assert getattr(TrainingSettings(**{name: value}), name) == value


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), max_size=4), st.integers(1, 40), st.integers(0, 99))
def test_configurations_differ_and_begin_with_the_usual_one(sizes, count, seed):
    space = {name: tuple(range(size)) for name, size in sizes.items()}
    usual = dict.fromkeys(space, 0)
    drawn = draw_randomly(space, usual, count, seed)
    assert drawn[0] == usual
    assert len(drawn) == min(count, math.prod(sizes.values()))
    assert len({tuple(config.items()) for config in drawn}) == len(drawn)
    assert all(config[name] in space[name] for config in drawn for name in space)
    assert drawn == draw_randomly(space, usual, count, seed)


# ---- files and mistakes ----


def test_settings_are_read_as_they_were_saved(mutag, tmp_path):
    found = tapnet.tune(mutag, "gin", out=tmp_path / "{run}", **QUICK)
    model, settings = load_settings(found.folder / "settings.json")
    assert (model, settings.pop("epochs")) == ("gin", 3)
    assert settings == found.settings
    found.save(tmp_path / "other.json")
    assert (tmp_path / "other.json").read_bytes() == (found.folder / "settings.json").read_bytes()
    assert f"{found.score:.1f}" in repr(found)
    again = tapnet.tune(mutag, "gin", out=tmp_path / "{run}", progress=pytest.fail, **QUICK)
    assert again.to_dict() == found.to_dict()


@pytest.mark.parametrize(
    "content", ["[1]", "{}", '{"settings": 3}', '{"settings": []}', '{"settings": {}, "epochs": "many"}', "?"]
)
def test_a_file_without_settings_is_one_sentence(tmp_path, content):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(DataError, match=r"settings\.json"):
        load_settings(tmp_path / "settings.json")


@pytest.mark.parametrize(
    ("changed", "fact"),
    [
        ({"configs": 0}, "configs is at least 1"),
        ({"search": "grid"}, "search is one of random, tpe"),
        ({"folds": 1}, "at least 2 folds"),
        ({"only_folds": [10]}, "no fold 10"),
        ({"lr": -1}, "lr"),
    ],
)
def test_a_mistake_is_a_sentence(mutag, changed, fact):
    with pytest.raises(SettingError, match=fact):
        tapnet.tune(mutag, "gin", **{**QUICK, **changed})


def test_optuna_is_asked_for_in_a_sentence(mutag, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(tapnet.TapnetError, match="pip install"):
        tapnet.tune(mutag, "gin", search="tpe", **QUICK)
    assert len(tapnet.tune(mutag, "gin", **{**QUICK, "configs": 1}).trials) == 1
