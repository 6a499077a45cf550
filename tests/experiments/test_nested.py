"""Nested cross-validation: nothing is chosen by the test graphs, and everything that was chosen is told."""

import csv
import json
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

import tapnet
from tapnet.cli.terminal import print_summary
from tapnet.data.checks import graph_codes
from tapnet.data.splits import stratified_folds
from tapnet.errors import DataError, SettingError
from tapnet.experiments.load_run import load_run
from tapnet.experiments.run_trial import Interrupted
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.viz import plot_run

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SMALL = {"hidden_channels": 8, "layers": 2}
NESTED = {"protocol": "nested", "configs": 4, "epochs": 3, "folds": 3}


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


@pytest.fixture(scope="module")
def run(mutag, tmp_path_factory):
    return tapnet.cross_validate(mutag, "gin", jobs=1, out=tmp_path_factory.mktemp("run"), **NESTED, **SMALL)


def test_no_choice_and_no_curve_depends_on_the_test_labels(mutag, tmp_path, run):
    run.save_splits(tmp_path / "splits.json")
    ask = {**NESTED, **SMALL, "split": tmp_path / "splits.json", "only_folds": [0], "jobs": 1}
    honest = tapnet.cross_validate(mutag, "gin", out=tmp_path / "honest", **ask)
    y, test = mutag.y.clone(), honest.splits[0].test
    y[test] = 1 - y[test]
    flipped = tapnet.cross_validate(replace(mutag, y=y), "gin", out=tmp_path / "flipped", **ask)

    def curves(folder):
        every = {}
        for r in Store(tmp_path / folder).results():
            trial = json.dumps({**r.trial.to_dict(), "data": ""})  # the checksum of the data has the labels
            every[trial] = {name: curve for name, curve in r.curves.items() if not name.startswith("test_")}
        return every

    assert len(curves("honest")) == 4 + 3
    assert curves("honest") == curves("flipped")
    assert [fold.to_dict() for fold in honest.outer] == [fold.to_dict() for fold in flipped.outer]
    assert flipped.scores == pytest.approx([100 - score for score in honest.scores], abs=1e-3)


def test_a_metric_that_a_fold_does_not_have_is_printed(mutag, capsys):
    rare = torch.zeros_like(mutag.y)
    rare[:2] = 1  # so that test folds have one class
    run = tapnet.cross_validate(replace(mutag, y=rare), "majority", metric="roc_auc", jobs=1, **NESTED)
    assert np.isnan(run.mean)
    print_summary(run, None, None)
    assert "nan" in capsys.readouterr().out


def test_nothing_is_tested_while_settings_are_chosen(run):
    results = list(Store(run.folder).results())
    chosen_by = [r for r in results if not r.trial.tested]
    assert len(results) - len(chosen_by) == 9
    assert chosen_by
    for result in chosen_by:
        assert result.predicted.keys() == {"validation"}
        assert not any(name.startswith("test") for name in result.curves)


def test_a_tenth_of_the_training_folds_validates(mutag, run):
    for fold, (train, validation, test) in enumerate(run.splits):
        assert test.tolist() == stratified_folds(mutag.y, 3)[fold].tolist()
        assert sorted([*train.tolist(), *validation.tolist(), *test.tolist()]) == list(range(188))
        assert len(validation) == pytest.approx(188 * 2 / 3 / 10, abs=1)
        share = [float((mutag.y[part] == 1).double().mean()) for part in (train, validation)]
        assert share[0] == pytest.approx(share[1], abs=0.06)


def test_a_folds_score_is_the_mean_of_its_runs(mutag, run):
    assert len(run.scores) == 3
    assert len(run.results) == 9
    for i, fold in enumerate(run.outer):
        assert run.scores[i] == pytest.approx(np.mean([r.reading.score for r in fold.results]))
        assert [r.trial.seed for r in fold.results] == [0, 1, 2]
        assert {r.trial.fold for r in fold.results} == {i}
        assert fold.settings.keys() == {"readout", "dropout", "lr", "batch_size"}
        for result in fold.results:
            trial = result.trial
            assert trial.settings.readout == fold.settings["readout"]
            assert trial.training.batch_size == fold.settings["batch_size"]
    assert (run.mean, run.std) == (np.mean(run.scores), np.std(run.scores))
    for fact in ("nested", "4 configurations", "3 folds × 3 runs × 3 epochs"):
        assert fact in repr(run)
    one = replace(run, outer=tuple(replace(fold, configs=1) for fold in run.outer))
    assert "from 1 configuration on" in one.rules


def test_the_mean_prediction_of_a_folds_runs_is_another_reading(run, capsys):
    scores = []
    for fold in run.outer:
        tested = [r.predicted["test"] for r in fold.results]
        votes = sum(p.values.astype(float) for p in tested)
        scores.append(100 * float((votes.argmax(1) == tested[0].y).mean()))
    assert run.averaged_by("accuracy") == pytest.approx(scores)
    (reading,) = run.other_readings.values()
    assert reading == pytest.approx((np.mean(scores), np.std(scores)))
    ((words, stored),) = run.to_dict()["beside"].items()
    assert (stored["mean"], "3 runs" in words) == (pytest.approx(np.mean(scores)), True)
    print_summary(run, None, None)
    assert " ".join(words.split()) in " ".join(capsys.readouterr().out.split())
    single = replace(run, outer=[replace(fold, results=fold.results[:1]) for fold in run.outer])
    assert single.averaged_by("accuracy") == []
    bare = [replace(fold, results=[replace(r, predicted={}) for r in fold.results]) for fold in run.outer]
    assert replace(run, outer=bare).other_readings == {}
    mixed = [
        replace(a, results=[*a.results[:2], b.results[2]]) for a, b in zip(run.outer, run.outer[::-1], strict=True)
    ]
    assert replace(run, outer=mixed[:1]).averaged_by("accuracy") == []  # not of the same graphs


def test_json_tells_what_was_chosen(run):
    values = run.to_dict()
    stored = json.loads((run.folder / "run.json").read_text())
    assert stored == json.loads(json.dumps(values)) | {"state": "complete", "digest": stored["digest"]}
    assert (values["protocol"], values["configs"], values["search"], values["seeds"]) == ("nested", 4, "random", 1)
    assert values["metrics"] == {"accuracy": {"mean": run.mean, "std": run.std}}
    assert values["baseline"]["accuracy"] == pytest.approx(66.5, abs=0.1)
    for row, fold in zip(values["folds"], run.outer, strict=True):
        assert row["accuracy"] == pytest.approx(np.mean([one["accuracy"] for one in row["runs"]]))
        assert row["validation"] == {"accuracy": fold.validation}
        assert row["settings"] == fold.settings
        assert row["configs"] == 4
        assert len(row["runs"]) == 3
    assert not values["folds"][0]["settings"].keys() & {"hidden_channels", "layers"}
    assert values["settings"].items() >= SMALL.items()


def test_a_stored_run_is_read_and_drawn(run):
    loaded = load_run(run.folder)
    assert repr(loaded) == repr(run)
    assert json.dumps(loaded.to_dict()) == json.dumps(run.to_dict())
    assert plot_run(run.folder).get_suptitle()
    with pytest.raises(SettingError, match="splits"):
        loaded.save_splits("splits.json")


@pytest.mark.parametrize(
    "folds",
    [3, [], [{"runs": []}], [{"runs": [{"key": []}]}], [{"runs": [{"key": "?"}]}], [{"runs": [], "validation": [1]}]],
)
def test_a_damaged_page_of_a_run_is_one_sentence(run, tmp_path, folds):
    shutil.copytree(run.folder, tmp_path / "run")
    page = json.loads((tmp_path / "run/run.json").read_text())
    del page["digest"]
    (tmp_path / "run/run.json").write_text(json.dumps(page | {"folds": folds}))
    with pytest.raises(DataError):
        load_run(tmp_path / "run")


def test_predictions_have_a_line_for_each_run(run):
    with (run.folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 188
    assert {row["seed"] for row in rows} == {"0", "1", "2"}


def test_the_number_of_jobs_changes_nothing(mutag, run):
    other = tapnet.cross_validate(mutag, "gin", jobs=2, **NESTED, **SMALL)
    assert other.scores == run.scores
    assert [fold.to_dict() for fold in other.outer] == [fold.to_dict() for fold in run.outer]


def test_a_stopped_run_goes_on_and_what_is_stored_is_not_trained_again(mutag, run, tmp_path):
    for after in (3, 20):  # while choosing, and while testing
        seen = []

        def stop(event, seen=seen, after=after):
            seen.append(event)
            if len(seen) == after:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(Interrupted):
            tapnet.cross_validate(mutag, "gin", jobs=1, out=tmp_path, progress=stop, **NESTED, **SMALL)
    resumed = tapnet.cross_validate(mutag, "gin", jobs=1, out=tmp_path, **NESTED, **SMALL)
    assert resumed.scores == run.scores
    assert not list(tmp_path.glob("checkpoints/*"))
    tapnet.cross_validate(mutag, "gin", jobs=1, out=tmp_path, progress=pytest.fail, **NESTED, **SMALL)


@pytest.mark.parametrize("model", ["tapnet", "wl"])
def test_other_systems(mutag, model):
    found = tapnet.cross_validate(mutag, model, jobs=1, only_folds=[1], **{**NESTED, "epochs": 2})
    assert len(found.scores) == 1
    assert found.outer[0].configs == 4


def test_one_configuration_is_no_choice(mutag):
    seen = []
    ask = {**NESTED, "configs": 1, "only_folds": [0], "final_seeds": 2}
    found = tapnet.cross_validate(mutag, "gin", jobs=1, progress=seen.append, **ask, **SMALL)
    assert all(event.trial.tested for event in seen)
    assert found.outer[0].validation is None
    assert len(found.results) == 2


def test_the_metric_that_chooses_the_epoch_does_so_and_is_named(mutag):
    ask = {**NESTED, "configs": 1, "only_folds": [0], "final_seeds": 2, "select_by": "accuracy"}
    found = tapnet.cross_validate(mutag, "gin", jobs=1, **ask, **SMALL)
    assert "best validation accuracy" in found.rules
    for result in found.results:
        epoch = int(np.argmax(result.curves["validation_accuracy"]))
        assert result.reading.score == result.curves["test_accuracy"][epoch]


def test_several_seeds_repeat_the_whole(mutag):
    ask = {**NESTED, "configs": 2, "only_folds": [0, 1], "epochs": 1}
    found = tapnet.cross_validate(mutag, "gin", jobs=1, seeds=2, new_folds=True, final_seeds=2, **ask, **SMALL)
    assert [(fold.seed, fold.fold) for fold in found.outer] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [[r.trial.seed for r in fold.results] for fold in found.outer] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert len(found.scores) == 4
    assert found.to_dict()["seeds"] == 2


def test_the_validation_part_keeps_groups_together(mutag):
    ask = {**NESTED, "configs": 1, "final_seeds": 1, "epochs": 1, "split": "deduplicate"}
    found = tapnet.cross_validate(mutag, "gin", jobs=1, **ask, **SMALL)
    codes = torch.as_tensor(np.asarray(graph_codes(mutag)))
    for train, validation, test in found.splits:
        parts = [set(codes[part].tolist()) for part in (train, validation, test)]
        assert len(set.union(*parts)) == sum(map(len, parts))


@pytest.mark.parametrize(
    ("changed", "fact"),
    [
        ({"final": True, "out": "run"}, "final"),
        ({"devices": 2}, "devices"),
        ({"configs": 0}, "configs is at least 1"),
        ({"search": "all"}, "search is one of"),
    ],
)
def test_a_mistake_is_a_sentence(mutag, tmp_path, monkeypatch, changed, fact):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=fact) as error:
        tapnet.cross_validate(mutag, "gin", **{**NESTED, **changed})
    assert "--" not in str(error.value)


# ---- published splits ----


@pytest.mark.parametrize("protocol", ["nested", "fair"])
def test_erricas_splits_are_used_as_they_are(protocol, real_data, tmp_path):
    file = real_data.parent / "splits" / "PROTEINS_full.json"
    if not file.exists():
        pytest.skip("needs the published splits next to the real data sets")
    ask = {**NESTED, "protocol": protocol, "epochs": 1, "configs": 1, "final_seeds": 1, "only_folds": [0, 7]}
    found = tapnet.cross_validate("PROTEINS", "gin", split=file, data_dir=real_data, jobs=1, **ask, **SMALL)
    published = json.loads(file.read_text())
    for number, (train, validation, test) in zip((0, 7), found.splits, strict=True):
        (inner,) = published[number]["model_selection"]
        assert test.tolist() == published[number]["test"]
        assert (train.tolist(), validation.tolist()) == (inner["train"], inner["validation"])
    assert found.to_dict()["num_folds"] == 10
    found.save_splits(tmp_path / "splits.json")
    assert json.loads((tmp_path / "splits.json").read_text()) == [published[0], published[7]]


def test_folds_that_chose_different_numbers_of_layers_are_summed_up(mutag):
    small = {"hidden_channels": 4, "classifier_channels": 4, "epochs": 1, "folds": 3, "jobs": 1}
    one, three = (
        tapnet.cross_validate(mutag, only_folds=[fold], ratios=ratios, **small)
        for fold, ratios in ((0, (0.5,)), (1, (0.8, 0.6, 0.4)))
    )
    both = Summary([*one.results, *three.results])
    assert both.diagnostics[1:] == three.diagnostics[1:]
    assert both.diagnostics[0].edges == pytest.approx(
        (one.diagnostics[0].edges + three.diagnostics[0].edges) / 2, abs=1e-4
    )
    assert len(both.to_dict()["diagnostics"]) == 3
