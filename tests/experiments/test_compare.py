"""Comparisons: the table against the statistics, the verdict, same conditions, and what is stored."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import tapnet
from tapnet.errors import DataError, SettingError
from tapnet.experiments.backends import pool
from tapnet.experiments.comparison import load_comparison
from tapnet.experiments.cross_validate import CrossValidation
from tapnet.experiments.load_run import load_run
from tapnet.experiments.statistics import corrected_t_test
from tapnet.experiments.trial import Predicted, Trial, TrialResult, digest
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings

GRAPHS = np.arange(100)


def run(model="gin", scores=(80.0,) * 10, seeds=1, new_folds=False, checksum="a", settings=None, **changes):
    """A cross-validation with these scores, that nobody had to train."""
    spec, folds = find_model(model), len(scores) // seeds
    chosen = spec.make_settings("MUTAG", settings or {})
    results = []
    for i, score in enumerate(scores):
        seed, fold = divmod(i, folds)
        values = {"dataset": "MUTAG", "protocol": "fair", "fold_seed": seed if new_folds else 0, **changes}
        training = TrainingSettings(epochs=1)
        trial = Trial(
            data=checksum, model=model, settings=chosen, fold=fold, folds=folds, seed=seed, training=training, **values
        )
        curves = {"test_accuracy": [score]}
        if spec.fit is None:
            curves |= {"train_loss": [1.0], "validation_loss": [1.0]}
        test = GRAPHS[fold::folds]
        predicted = {"test": Predicted(test, test % 2, np.eye(2, dtype=np.float32)[test % 2])}
        results.append(TrialResult(trial, curves, 1.0, 10, {}, predicted=predicted))
    return CrossValidation(results, ["accuracy"], data={"source": "", "relative": "", "checksum": checksum})


def noisy(mean, seed, folds=10, scatter=1.0):
    return tuple((mean + scatter * np.random.default_rng(seed).normal(size=folds)).tolist())


@pytest.fixture
def table():
    """Two systems that do not differ, one that is far worse, and two baselines."""
    runs = {
        "tapnet": run("tapnet", noisy(85, 0)),
        "gin": run("gin", noisy(85.2, 1)),
        "wl": run("wl", noisy(75, 2)),
        "majority": run("majority", noisy(60, 3)),
        "bag": run("bag", noisy(84.9, 4)),
    }
    return tapnet.compare_runs(runs)


def test_differences_are_those_of_the_corrected_test_and_p_is_adjusted_by_holm(table):
    assert table.reference == "tapnet"
    assert table["tapnet"].difference is None
    others = [row for row in table.systems if row.name != "tapnet"]
    for row in others:
        columns = [dict(enumerate(table[name].scores)) for name in (row.name, "tapnet")]
        expected = corrected_t_test(*columns, 1 / 8)
        d = row.difference
        assert d.mean == pytest.approx(row.mean - table["tapnet"].mean)
        assert (d.p, (d.high - d.low) / 2) == pytest.approx((expected.p_value, expected.half_width))
    adjusted = multipletests([row.difference.p for row in others], method="holm")[1]
    assert [row.difference.p_adjusted for row in others] == pytest.approx(adjusted.tolist())
    assert [row.rank for row in table.systems] == [2, 1, 4, 5, 3]
    assert table.smallest_visible_difference == max(table[n].difference.smallest_visible for n in ("gin", "wl"))


def test_the_verdict_names_what_differs_and_the_baseline_that_is_not_beaten(table):
    assert "wl is worse than tapnet by 10." in table.verdict
    assert "no other system that was asked for differs from tapnet" in table.verdict
    assert "is found four times in five" in table.verdict  # a smaller one was found
    assert "better than the baseline bag (84." in table.verdict


def test_the_verdict_of_systems_that_differ_by_chance_alone():
    runs = {"tapnet:none": run("tapnet", noisy(85, 0), settings={"pool": "none"}), "gin": run("gin", noisy(85, 1))}
    one = tapnet.compare_runs(runs)
    assert one.verdict.startswith("gin does not differ from tapnet:none by more than chance; differences above ")
    several = tapnet.compare_runs(runs | {"wl": run("wl", noisy(85, 2)), "majority": run("majority", noisy(60, 3))})
    assert several.verdict.startswith("no system differs from tapnet:none by more than chance; differences above ")
    assert several.verdict.endswith(
        "every system is better than the best baseline, majority (59.9 %), by more than chance"
    )


def test_folds_that_could_show_no_possible_difference_say_so():
    found = tapnet.compare_runs({"a": run(scores=(20.0, 90.0, 50.0)), "b": run(scores=(90.0, 20.0, 60.0))})
    assert found.smallest_visible_difference > 100
    assert found.verdict.endswith("no difference would have shown with so few folds, however large")


def test_baselines_alone_have_a_verdict_too():
    found = tapnet.compare_runs({"size": run("size", noisy(85, 0)), "bag": run("bag", noisy(60, 1))})
    assert found.verdict.startswith("bag is worse than size by 24.9 points (95 % interval -26.1 to -23.6, ")


def test_what_is_lower_is_better_by_the_metric():
    def numbers(model, errors):
        found = run(model, errors)
        results = [
            replace(r, trial=replace(r.trial, task="regression"), curves={"test_rmse": r.curves["test_accuracy"]})
            for r in found.results
        ]
        curves = {"train_loss": [1.0], "validation_loss": [1.0]}
        results = [replace(r, curves=r.curves | curves if model == "gin" else r.curves) for r in results]
        return replace(found, results=results, metrics=["rmse"])

    found = tapnet.compare_runs(
        {"majority": numbers("majority", noisy(3, 0, scatter=0.1)), "gin": numbers("gin", noisy(1, 1, scatter=0.1))}
    )
    assert [row.rank for row in found.systems] == [2, 1]
    assert "gin is better than majority by 1.9" in found.verdict
    assert "points" not in found.verdict


# ---- seeds ----


def test_seeds_on_the_same_folds_are_averaged_and_new_folds_all_count():
    ours, theirs = noisy(85, 0, 20), noisy(84, 1, 20)
    kept = tapnet.compare_runs({"a": run("gin", ours, seeds=2), "b": run("gin", theirs, seeds=2)})
    columns = [dict(enumerate(np.reshape(scores, (2, 10)).mean(0).tolist())) for scores in (theirs, ours)]
    assert kept["b"].difference.p == pytest.approx(corrected_t_test(*columns, 1 / 8).p_value)
    anew = {"seeds": 2, "new_folds": True}
    drawn = tapnet.compare_runs({"a": run("gin", ours, **anew), "b": run("gin", theirs, **anew)})
    columns = [dict(enumerate(scores)) for scores in (theirs, ours)]
    assert drawn["b"].difference.p == pytest.approx(corrected_t_test(*columns, 1 / 8).p_value)
    assert (kept.seeds, kept.new_folds, drawn.new_folds) == (2, False, True)


# ---- what is not defined ----


@pytest.mark.parametrize(
    ("theirs", "word"),
    [
        ([80.0, 81.0, 82.0], "the scores are the same"),
        ([81.0, 82.0, 83.0], "the difference is the same"),
        ([80.0, math.nan, 82.0], "not defined on fold 1"),
    ],
)
def test_what_is_not_defined_is_null_with_a_reason(theirs, word):
    found = tapnet.compare_runs({"a": run("gin", [80.0, 81.0, 82.0]), "b": run("gin", theirs)})
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))["systems"][1]
    assert [row["difference"][name] for name in ("low", "high", "p", "p_adjusted")] == [None] * 4
    assert word in row["difference"]["reason"]
    assert found.smallest_visible_difference is None
    assert word in found.reason
    assert "is open" in found.verdict
    assert repr(found)
    assert found.plot() is not None


def test_two_folds_are_too_few():
    runs = {
        name: run(name, scores, protocol="paper") for name, scores in (("gin", [80.0, 81.0]), ("bag", [70.0, 72.0]))
    }
    found = tapnet.compare_runs(runs)
    assert "too few" in found["bag"].difference.reason
    assert found["bag"].difference.mean == pytest.approx(-9.5)


# ---- same conditions ----


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol": "paper"}, "protocol: fair and paper"),
        ({"scores": (80.0,) * 5}, "number of folds: 10 and 5"),
        ({"split": "scaffold#abc"}, "split: stratified folds and scaffold"),
        ({"seeds": 2}, "number of folds: 10 and 5"),
        ({"scores": (80.0,) * 20, "seeds": 2}, "seeds: 0 and 0, 1"),
        ({"checksum": "b"}, "graphs of the data set"),
        ({"dataset": "PTC"}, "data set: MUTAG and PTC"),
    ],
)
def test_numbers_of_different_conditions_are_refused(changes, words):
    with pytest.raises(SettingError, match=r"^a and b cannot be compared: they differ in the ") as refused:
        tapnet.compare_runs({"a": run(), "b": run(**changes)})
    assert words in str(refused.value)


def test_different_metrics_are_refused_unless_one_is_named():
    runs = {"a": run(), "b": replace(run(), metrics=["roc_auc"])}
    with pytest.raises(SettingError, match="metric: accuracy and roc_auc"):
        tapnet.compare_runs(runs)
    assert tapnet.compare_runs(runs, metric="roc_auc").metric == "roc_auc"


def test_different_test_graphs_and_folds_are_refused():
    other = run()
    moved = [
        replace(r, predicted={"test": replace(r.predicted["test"], graphs=r.predicted["test"].graphs + 1)})
        for r in other.results
    ]
    with pytest.raises(SettingError, match="graphs of the test folds$"):
        tapnet.compare_runs({"a": run(), "b": replace(other, results=moved)})
    with pytest.raises(SettingError, match="folds that were run"):
        tapnet.compare_runs({"a": run(), "b": replace(other, results=other.results[:4])})
    two = {"scores": (80.0,) * 20, "seeds": 2}
    with pytest.raises(SettingError, match="folds of the seeds: the same and new ones for each$"):
        tapnet.compare_runs({"a": run(**two), "b": run(**two, new_folds=True)})


def test_trials_without_predictions_can_be_compared_with_trials_that_have_them():
    packed = run()
    packed = replace(packed, results=[replace(r, predicted={}) for r in packed.results])
    assert [s.name for s in tapnet.compare_runs({"a": run(), "b": packed}).systems] == ["a", "b"]


def test_a_stored_comparison_takes_more_systems_without_its_runs(tmp_path):
    runs = {name: run(name, noisy(80 + i, i)) for i, name in enumerate(("tapnet", "gin", "wl", "bag"))}
    stored = tapnet.compare_runs({name: runs[name] for name in ("tapnet", "gin", "bag")}).save(tmp_path)
    together = tapnet.compare_runs([stored.folder, runs["wl"]])
    assert [row.name for row in together.systems] == ["tapnet", "gin", "wl", "bag"]
    assert replace(together, folder=None) == tapnet.compare_runs(runs)
    assert tapnet.compare_runs([stored], reference="gin").reference == "gin"


def test_of_a_system_in_several_comparisons_the_last_counts_and_other_rules_are_noted():
    stored = tapnet.compare_runs({"tapnet": run("tapnet", noisy(80, 0)), "gin": run("gin", noisy(81, 1))})
    stored = replace(stored, rules="ten epochs")
    again = tapnet.compare_runs([stored, run("gin", noisy(90, 2))])
    assert again["gin"].scores == noisy(90, 2)
    assert again["tapnet"] == stored["tapnet"]
    assert again.rules == "ten epochs"
    assert any(note.startswith("gin: protocol fair") for note in again.notes)


def test_another_call_with_the_same_folder_adds_its_systems(tmp_path):
    shared = {"folds": 3, "epochs": 1, "jobs": 1, "out": tmp_path}
    first = tapnet.compare("MUTAG", ["wl"], **shared)
    both = tapnet.compare("MUTAG", ["size", "wl"], **shared)
    assert {row.name for row in both.systems} == {"wl", "majority", "size", "bag"}
    later = tapnet.compare("MUTAG", ["majority"], metric="f1", **shared)  # of the same runs
    assert {row.name for row in later.systems} == {"wl", "majority", "size", "bag"}
    assert later["wl"].scores == pytest.approx(load_run(tmp_path / "wl").scores_by("f1"))
    added = tapnet.compare("MUTAG", ["wl", "gin"], metric="f1", **shared)
    again = tapnet.compare("MUTAG", ["majority"], metric="f1", **shared)
    assert again["gin"].scores == added["gin"].scores
    assert again.reference == "majority"
    assert first["wl"].scores == both["wl"].scores


@pytest.mark.parametrize("options", [{"protocol": "paper"}, {"seeds": 2}, {"folds": 4}, {"features": "degrees"}])
def test_a_stored_comparison_is_not_replaced_by_one_of_other_conditions(tmp_path, options):
    shared = {"folds": 3, "epochs": 1, "jobs": 1, "out": tmp_path}
    tapnet.compare("MUTAG", ["majority"], **shared)
    before = (tmp_path / "comparison.json").read_bytes()
    with pytest.raises(SettingError, match="choose another folder"):
        tapnet.compare("MUTAG", ["size"], **shared | options)
    assert (tmp_path / "comparison.json").read_bytes() == before


def test_a_system_without_its_run_keeps_a_comparison_from_another_metric(tmp_path):
    shared = {"folds": 3, "epochs": 1, "jobs": 1, "out": tmp_path / "all"}
    tapnet.compare("MUTAG", ["wl"], **shared)
    (tmp_path / "all" / "wl" / "run.json").unlink()
    with pytest.raises(SettingError, match="by accuracy, and not the runs of wl"):
        tapnet.compare("MUTAG", ["majority"], metric="f1", **shared)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"checksum": "b"}, "graphs of the data set"),
        ({"seed": 7}, "seeds: 0 and 7"),
        ({"only": range(5, 10)}, "folds that were run"),
    ],
)
def test_stored_comparisons_are_of_the_same_graphs_seeds_and_folds(tmp_path, changes, words):
    def made(name, checksum="a", seed=0, only=range(5)):
        found = run(name, noisy(80, 0), checksum=checksum)
        results = [replace(r, trial=replace(r.trial, seed=seed)) for r in found.results if r.trial.fold in only]
        return replace(found, results=results)

    stored = tapnet.compare_runs({"tapnet": made("tapnet"), "bag": made("bag")}).save(tmp_path)
    assert tapnet.compare_runs([stored, made("gin")])["gin"].difference.mean == 0
    with pytest.raises(SettingError, match=words):
        tapnet.compare_runs([stored, made("gin", **changes)])
    earlier = replace(stored, checksum=None, seed_numbers=None, fold_numbers=None)
    assert len(tapnet.compare_runs([earlier, made("gin", **changes)])["gin"].scores) == 5


def test_rules_that_systems_do_not_share_are_said_of_each():
    by_loss, by_auc = run("tapnet", noisy(80, 0)), run("gin", noisy(81, 1), select_by="roc_auc")
    for r in by_auc.results:
        r.curves["validation_roc_auc"] = [0.5]
    weighted = run("gin", noisy(81, 1), class_weight="balanced")
    for runs in ({"a": by_loss, "b": by_auc}, {"a": by_auc, "b": by_loss}, {"a": by_loss, "b": weighted}):
        table = tapnet.compare_runs(runs)
        assert table.rules.startswith("protocol fair: ")
        assert "10 folds × 1 epoch" in table.rules
        for name, one in runs.items():
            assert f"{name}: {one.rules}." in table.notes
    assert "roc_auc" not in tapnet.compare_runs({"a": by_loss, "b": by_auc}).rules
    assert "class weights balanced" in weighted.rules


def test_another_metric_than_that_of_a_stored_comparison_is_refused(table):
    with pytest.raises(SettingError, match="is by accuracy"):
        tapnet.compare_runs([table], metric="roc_auc")


def test_a_training_that_diverged_is_said(table):
    broken = run("gin", noisy(50, 0))
    broken.results[3].curves["train_loss"][:] = [math.nan]
    assert any("diverged in fold 3" in remark for remark in broken.remarks)
    notes = tapnet.compare_runs({"tapnet": run("tapnet", noisy(80, 1)), "gin": broken}).notes
    assert any(note.startswith("gin: ") and "diverged in fold 3" in note for note in notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"protocol": "paper"}, "protocol"), ({"dataset": "PTC"}, "data set"), ({"split": "a.json#1"}, "split")],
)
def test_comparisons_of_other_conditions_are_refused(table, changes, words):
    with pytest.raises(SettingError, match=words):
        tapnet.compare_runs([table, run("gin", noisy(90, 2), **changes)])
    with pytest.raises(SettingError, match="folds"):
        tapnet.compare_runs([table, run("gin", noisy(90, 2, folds=5))])


def test_different_machines_are_said():
    def on(processor):
        found = run()
        versions = {"machine": "x86_64", "cpu": processor, "instructions": "avx2", "blas": "mkl", "torch": "2"}
        return replace(found, results=[replace(r, versions=versions) for r in found.results])

    found = tapnet.compare_runs({"a": on("one"), "b": on("another")})
    assert any("different machines" in note for note in found.notes)
    assert "different machines" in repr(found)
    assert tapnet.compare_runs({"a": on("one"), "b": on("one")}).notes == ()


# ---- as text, and stored ----


def test_the_table_as_text_csv_latex_and_pandas(table, tmp_path):
    text = repr(table)
    assert all(
        name in text for name in ("tapnet (reference)", "bag (baseline)", "95 % interval", "adjusted p", "Verdict: ")
    )
    rows = list(csv.DictReader(io.StringIO(table.to_csv(tmp_path / "a.csv"))))
    assert [row["system"] for row in rows] == [row.name for row in table.systems]
    assert [float(s) for s in rows[1]["scores"].split(";")] == list(table["gin"].scores)
    assert (tmp_path / "a.csv").read_text() == table.to_csv()
    latex = table.to_latex(tmp_path / "a.tex")
    assert latex.count(r"\\") == 6
    assert "$-$" in latex
    assert "visible" in latex
    assert [line for line in latex.splitlines() if "%" in line.replace(r"\%", "") and line[0] != "%"] == []
    frame = table.to_pandas()
    assert frame.loc["gin", "p_adjusted"] == table["gin"].difference.p_adjusted
    assert list(frame.index) == [row.name for row in table.systems]


def test_json_has_the_fields_that_are_promised(table):
    values = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert {"systems", "reference", "metric", "protocol", "smallest_visible_difference", "verdict"} <= values.keys()
    for row in values["systems"]:
        assert {"name", "mean", "std", "scores", "difference"} <= row.keys()
        if row["name"] == values["reference"]:
            assert row["difference"] is None
        else:
            assert {"mean", "low", "high", "p", "p_adjusted"} <= row["difference"].keys()


def test_what_is_stored_is_read_again(table, tmp_path):
    stored = table.save(tmp_path)
    for path in (tmp_path, tmp_path / "comparison.json"):
        assert tapnet.load_comparison(path) == stored
    file = tmp_path / "comparison.json"
    file.write_text(file.read_text().replace("gin", "gun", 1))
    with pytest.raises(DataError, match="not what was written"):
        tapnet.load_comparison(tmp_path)
    with pytest.raises(DataError, match="no comparison is stored"):
        tapnet.load_comparison(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"metric": "magic"}, "no metric 'magic'"),
        ({"systems": []}, "none of its systems"),
        ({"reference": ["gin"]}, "reference: "),
        ({"test_to_train": 10**400}, "not JSON compliant|valid number"),
        ({"systems": None}, "systems: "),
    ],
)
def test_a_comparison_under_a_checksum_that_fits_is_checked_too(table, tmp_path, change, fact):
    def store(values):
        (tmp_path / "comparison.json").write_text(json.dumps(values | {"digest": digest(values)}))

    values = json.loads(json.dumps(table.to_dict()))
    store(values | {"verdict": "\x1b[31mred\n"})
    assert tapnet.load_comparison(tmp_path).verdict == r"\x1b[31mred\n"
    store(values | change)
    with pytest.raises(DataError, match=fact):
        tapnet.load_comparison(tmp_path)


# ---- training ----

FEW = {"folds": 3, "epochs": 1, "jobs": 1}


def test_systems_are_trained_on_the_same_folds_with_the_baselines(tmp_path):
    events = []
    options = FEW | {"out": tmp_path / "out", "progress": events.append, "metric": "roc_auc"}
    first = tapnet.compare("MUTAG", ["tapnet:none", "gin"], **options)
    assert [row.name for row in first.systems] == ["tapnet:none", "gin", "majority", "size", "bag"]
    assert [row.baseline for row in first.systems] == [False, False, True, True, True]
    assert first.metric == "roc_auc"
    assert first["majority"].scores == (0.5,) * 3
    assert first["size"].parameters is None
    assert tapnet.load_comparison(tmp_path / "out") == first
    trained = len(events)
    again = tapnet.compare("MUTAG", ["gin", "tapnet:none", "wl"], reference="tapnet:none", **options)
    assert {event.trial.model for event in events[trained:]} <= {"wl"}  # the others are stored
    assert again["gin"].scores == first["gin"].scores
    assert again["gin"].difference.mean == first["gin"].difference.mean
    folders = [tmp_path / "out" / str(row.folder) for row in again.systems]
    alone = tapnet.compare_runs(folders, reference="tapnet:none")
    assert [row.name for row in alone.systems] == [row.name for row in again.systems]
    assert alone.verdict == again.verdict


def numbers_of_mutag():
    """MUTAG with a number to predict, the size of a graph."""
    mutag = tapnet.load_dataset("MUTAG")
    y = mutag.nodes_per_graph.float().unsqueeze(1)
    return replace(mutag, y=y, classes=(), class_names=None, task="regression", target_names=("size",))


def test_what_there_is_to_know_of_the_data_is_said_once(recwarn):
    data = replace(tapnet.load_dataset("MUTAG"), not_read=("charge",))
    tapnet.compare(data, ["majority", "wl"], progress=lambda _: None, **FEW)
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == len(set(said)) > 0


def test_nested_has_a_score_for_each_fold_and_baselines_work_for_numbers(tmp_path):
    options = {"protocol": "nested", "configs": 2, "final_seeds": 2, "progress": lambda _: None}
    found = tapnet.compare(numbers_of_mutag(), ["bag"], out=tmp_path, **FEW | options)
    assert [len(row.scores) for row in found.systems] == [3] * 3
    assert (found.protocol, found.metric, found.seeds) == ("nested", "rmse", 1)
    assert found["size"].rank == 1
    assert found["size"].mean < 0.1 * found["majority"].mean
    assert found.test_to_train == pytest.approx(1 / 2 / 0.9, rel=0.05)
    stored = tapnet.compare_runs([tmp_path / "bag", tmp_path / "majority", tmp_path / "size"])
    assert [stored[name].difference for name in ("majority", "size")] == [
        found[name].difference for name in ("majority", "size")
    ]


def test_nested_also_has_the_mean_prediction_of_each_folds_runs(tmp_path):
    options = {"protocol": "nested", "configs": 1, "final_seeds": 2, "progress": lambda _: None}
    table = tapnet.compare("MUTAG", ["gin"], out=tmp_path, **FEW | options)
    run = load_run(tmp_path / "gin")
    assert table["gin"].averaged == pytest.approx(run.averaged_by("accuracy"))
    assert table["gin"].averaged_mean == pytest.approx(np.mean(run.averaged_by("accuracy")))
    assert table["majority"].averaged == ()
    head, *rows = table.rows()
    cells = {row[0].split()[0]: row[head.index("averaged")] for row in rows}
    assert (cells["gin"], cells["majority"]) == (f"{table['gin'].averaged_mean:.1f}", "")
    assert load_comparison(tmp_path) == table
    assert "averaged" not in json.loads(json.dumps(table.to_dict()))["systems"][1]
    assert f"& {table['gin'].averaged_mean:.1f} &" in table.to_latex()
    assert table.to_pandas().averaged["gin"] == pytest.approx(table["gin"].averaged_mean)


def test_the_ratio_of_test_to_training_graphs_is_that_of_the_splits(tmp_path):
    parts = [{"train": list(range(60 + i)), "validation": list(range(100, 120)), "test": [150 + i]} for i in range(4)]
    (tmp_path / "splits.json").write_text(json.dumps(parts))
    table = tapnet.compare("MUTAG", ["gin"], split=tmp_path / "splits.json", out=tmp_path / "out", **FEW | {"folds": 4})
    assert table.test_to_train == pytest.approx(1 / 61.5)
    again = tapnet.compare_runs([load_run(tmp_path / "out" / name) for name in ("gin", "size")])
    assert again.test_to_train == table.test_to_train


def test_a_layer_of_pyg_is_a_system_as_it_is():
    from torch_geometric.nn import SAGPooling

    table = tapnet.compare("MUTAG", ["tapnet", SAGPooling], **FEW)
    assert table.systems[1].name == "tapnet:torch_geometric.nn.pool.sag_pool:SAGPooling"


@pytest.mark.parametrize(
    ("systems", "options", "words"),
    [
        (["tapnte"], {}, "did you mean tapnet"),
        (["tapnet:topkk"], {}, "topk"),
        (["gin:topk"], {}, "the model gin has no setting 'pool'"),
        (["gin", "gin"], {}, "named twice"),
        ([], {}, "needs a system"),
        (["gin"], {"reference": "wl"}, "the reference is one of gin, majority, size, bag, not 'wl'"),
        (["gin"], {"lr": 0.1}, "no option 'lr'"),
        (["gin"], {"metric": "rmse"}, "not for classification"),
        (["gin"], {"protocol": "unfair"}, "protocol is one of"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(systems, options, words):
    with pytest.raises(SettingError, match=words):
        tapnet.compare("MUTAG", systems, progress=pytest.fail, **FEW | options)


def test_a_system_that_does_not_fit_the_targets_is_refused_at_once():
    with pytest.raises(SettingError, match="wl is for classification, and the task of .* is regression"):
        tapnet.compare(numbers_of_mutag(), ["gin", "wl"], progress=pytest.fail, **FEW)


def test_the_systems_of_a_comparison_share_their_processes(monkeypatch):
    started = []

    class Counted(pool.ProcessPoolExecutor):
        def __init__(self, *args, **values):
            started.append(args)
            super().__init__(*args, **values)

    monkeypatch.setattr(pool, "ProcessPoolExecutor", Counted)
    here, there = (tapnet.compare("MUTAG", ["size"], folds=3, epochs=1, jobs=jobs) for jobs in (1, 2))
    assert len(started) == 1
    assert [row.scores for row in here.systems] == [row.scores for row in there.systems]
