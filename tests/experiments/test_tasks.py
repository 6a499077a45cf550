"""Numbers, several labels with gaps, metrics, splits and edges, through the same call as classes."""

import csv
import json
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import tapnet
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.experiments.load_run import load_run
from tapnet.io.splits import choose_splits


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


FEW = {"epochs": 3, "folds": 3, "jobs": 1, "progress": lambda _: None}


@pytest.fixture
def sizes(mutag):
    """MUTAG with a number to predict: the size of the graph in hundreds, one of them missing."""
    y = mutag.nodes_per_graph.float().unsqueeze(1) * 100
    y[3] = math.nan
    return replace(mutag, y=y, classes=(), class_names=None, task="regression", target_names=("size",))


@pytest.fixture
def labels(mutag):
    """MUTAG with two yes/no labels and gaps."""
    y = torch.stack([mutag.y.float(), (mutag.nodes_per_graph > 17).float()], dim=1)
    y[::5, 0] = math.nan
    return replace(mutag, y=y, classes=(), class_names=None, task="multilabel", target_names=("active", "large"))


def test_a_number_is_learned_in_its_own_units(sizes):
    found = tapnet.cross_validate(sizes, metric="rmse,r2,mae", lr=0.01, **FEW | {"epochs": 25})
    assert found.metric == "rmse"
    assert found.mean < found.baseline["rmse"]
    assert found.baseline["rmse"] == pytest.approx(450, rel=0.2)  # in hundreds of nodes, not in deviations
    values = found.to_dict()
    assert values["task"] == "regression"
    assert values["metrics"].keys() == values["baseline"].keys() == {"rmse", "r2", "mae"}
    assert all("validation" in fold for fold in values["folds"])
    json.dumps(values, allow_nan=False)


def test_labels_with_gaps_are_learned(labels):
    found = tapnet.cross_validate(labels, lr=0.01, **FEW | {"epochs": 15})
    assert found.metric == "roc_auc"
    assert found.mean > 0.6
    assert found.baseline["roc_auc"] == 0.5


@pytest.mark.parametrize(("model", "jobs"), [("tapnet", 1), ("tapnet", 2), ("size", 1)])
def test_the_first_metric_is_the_one_that_is_shown_of_each_fold(mutag, model, jobs):
    from tapnet.experiments.progress import score_of

    told = []
    options = FEW | {"epochs": 1, "jobs": jobs, "progress": told.append}
    found = tapnet.cross_validate(mutag, model=model, metric="roc_auc,f1", **options)
    shown = {event.trial.fold: score_of(event) for event in told}
    assert shown == {fold: f"roc_auc {score:.3f}" for fold, score in enumerate(found.scores)}
    usual = tapnet.cross_validate(mutag, model=model, **options)
    assert score_of(told[-1]) == f"accuracy {usual.scores[told[-1].trial.fold]:.1f} %"


def test_a_gap_has_no_part_in_the_loss(labels):
    from tapnet.models.base import DataShape
    from tapnet.models.registry import find_model
    from tapnet.training.task import mean_loss

    model = find_model("tapnet").network(DataShape.of(labels), find_model("tapnet").make_settings("", {}))
    outputs, y = torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([[1.0, math.nan], [0.0, 1.0]])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.tensor([1.0, 3.0, -1.0]), torch.tensor([1.0, 0.0, 1.0])
    )
    torch.testing.assert_close(mean_loss(model, outputs, y), expected)


def test_predictions_of_every_graph_are_stored(mutag, tmp_path):
    found = tapnet.cross_validate(mutag, out=tmp_path, metric="roc_auc,accuracy", **FEW)
    rows = list(csv.DictReader((tmp_path / "predictions.csv").open()))
    assert [int(row["graph"]) for row in rows] == list(range(188))
    right = np.mean([row["class"] == row["prediction"] for row in rows])
    assert {row["class"] for row in rows} == {"mutagenic", "not mutagenic"}
    for row in rows:  # the columns of probabilities have the names of the classes
        chances = {name[2:-1]: float(value) for name, value in row.items() if name.startswith("p(")}
        assert max(chances, key=chances.get) == row["prediction"]
    folds = {r.trial.fold: len(r.predicted["test"].graphs) for r in found.results}
    accuracy = sum(score * folds[i] for i, score in enumerate(found.scores_by("accuracy"))) / 188
    assert 100 * right == pytest.approx(accuracy, abs=0.01)
    again = load_run(tmp_path)
    assert again.metric == "roc_auc"
    assert again.scores == found.scores


def test_the_epoch_is_chosen_by_the_metric_that_was_asked_for(mutag):
    found = tapnet.cross_validate(mutag, select_by="roc_auc", **FEW)
    for result in found.results:
        curve = result.curves["validation_roc_auc"]
        assert result.reading.epoch == 1 + int(np.argmax(curve))
    assert found.results[0].trial.key != tapnet.cross_validate(mutag, **FEW).results[0].trial.key


def test_balanced_classes_count_the_same(mutag):
    from tapnet.training.task import balanced_weights

    weight = balanced_weights(mutag.y, 2)
    count = mutag.y.bincount()
    assert weight[0] * count[0] == pytest.approx(float(weight[1] * count[1]))
    found = tapnet.cross_validate(mutag, class_weight="balanced", metric="balanced_accuracy", **FEW)
    assert found.results[0].trial.class_weight == "balanced"


def test_yes_and_no_of_each_label_count_the_same(labels, sizes):
    from tapnet.training.task import balanced_label_weights, mean_loss

    y = torch.cat([labels.y, torch.zeros(188, 1), torch.full((188, 1), math.nan)], dim=1)
    weight = balanced_label_weights(y)
    yes, no = (y == 1).sum(0), (y == 0).sum(0)
    torch.testing.assert_close(weight[1, :2] * yes[:2], (yes + no)[:2] / 2)
    torch.testing.assert_close(weight[0, :2] * no[:2], (yes + no)[:2] / 2)
    assert weight[0, 2] == 1  # all are alike
    assert weight.isfinite().all()
    model = SimpleNamespace(task="multilabel")
    outputs = torch.randn(188, 2)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    expected = 0.0
    for column in (0, 1):
        there = ~y[:, column].isnan()
        one, said = y[there, column], outputs[there, column]
        expected += there.sum() * (loss(said[one == 1], one[one == 1]) + loss(said[one == 0], one[one == 0])) / 2
    found = mean_loss(model, outputs, labels.y, weight[:, :2])
    torch.testing.assert_close(found, expected / (~labels.y.isnan()).sum())
    found = tapnet.cross_validate(labels, class_weight="balanced", **FEW)
    assert found.results[0].trial.class_weight == "balanced"
    assert found.scores != tapnet.cross_validate(labels, **FEW).scores
    with pytest.raises(SettingError, match="class_weight"):
        tapnet.cross_validate(sizes, class_weight="balanced", **FEW)


def test_groups_stay_together_and_files_of_splits_are_read(mutag, tmp_path):
    groups = tuple(str(i // 4) for i in range(188))
    data = replace(mutag, graph_columns={"batch": groups})
    found = tapnet.cross_validate(data, split="group:batch", **FEW)
    parts = [{groups[i] for i in r.predicted["test"].graphs.tolist()} for r in found.results]
    assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
    whole = list(range(188))
    file = tmp_path / "splits.json"
    errica = {"test": whole[:20], "model_selection": [{"train": whole[40:], "validation": whole[20:40]}]}
    file.write_text(json.dumps([errica]))
    one = tapnet.cross_validate(mutag, split=file, **FEW)
    assert one.results[0].predicted["test"].graphs.tolist() == whole[:20]
    assert one.results[0].predicted["validation"].graphs.tolist() == whole[20:40]
    assert one.results[0].trial.folds == 1
    file.write_text(json.dumps([{"train": [1, 2], "test": [2]}]))
    with pytest.raises(DataError, match="twice"):
        tapnet.cross_validate(mutag, split=file, **FEW)
    file.write_text(json.dumps([{"train": [1, 2], "test": [188]}]))
    with pytest.raises(DataError, match="188"):
        tapnet.cross_validate(mutag, split=file, **FEW)
    with pytest.raises(SettingError, match="batches"):
        tapnet.cross_validate(data, split="group:batches", **FEW)


def test_a_group_is_one_whatever_spaces_are_around_it_and_gaps_are_said(mutag):
    groups = tuple(["a", "a ", " b", "b", "", "NA", "C", "c"][i % 8] for i in range(188))
    data = replace(mutag, graph_columns={"batch": groups})
    with pytest.warns(
        UserWarning, match=r"4\d graphs have no group and are one together in the column 'batch'"
    ) as notes:
        codes = choose_splits("group:batch", data, 3).groups
    assert any("has groups that differ only in case or spaces: 'C', 'c'" in str(note.message) for note in notes)
    assert codes[:8].tolist() == [0, 0, 1, 1, 2, 2, 3, 4]


def test_where_validation_graphs_come_from_is_said(mutag, tmp_path):
    thirds = [list(range(i, 188, 3)) for i in range(3)]
    one = {"train": thirds[0] + thirds[1], "test": thirds[2]}
    folds = [{"train": sorted(set(range(188)) - set(test)), "test": test} for test in thirds]
    whole = {"train": thirds[0], "validation": thirds[1], "test": thirds[2]}
    for parts, protocol, said in (
        ([one], "fair", "a tenth of the training graphs"),
        ([one, whole], "fair", "1 of 2 splits have no validation part: a tenth"),
        (folds, "fair", "the test graphs of the next fold"),
        ([whole], "fair", None),
        ([one], "paper", None),
    ):
        (tmp_path / "splits.json").write_text(json.dumps(parts))
        options = FEW | {"epochs": 1, "only_folds": [0]}
        found = tapnet.cross_validate(mutag, split=tmp_path / "splits.json", protocol=protocol, **options)
        notes = [note for note in found.notes if "no validation part" in note]
        assert len(notes) == (said is not None)
        assert said is None or said in notes[0]
    assert not any("no validation part" in note for note in tapnet.cross_validate(mutag, **options).notes)


def test_copies_of_a_graph_stay_together(mutag):
    from tapnet.data.checks import graph_codes

    found = tapnet.cross_validate(mutag, split="deduplicate", **FEW)
    codes = graph_codes(mutag)
    parts = [set(codes[r.predicted["test"].graphs].tolist()) for r in found.results]
    assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]


def test_a_model_of_edges_is_stored_and_predicts(mutag, tmp_path):
    tapnet.cross_validate(mutag, conv="gine", out=tmp_path, final=True, **FEW)
    model = tapnet.load_model(tmp_path)
    assert model.network.reads_edges
    with_edges = model.predict(mutag).probabilities
    assert np.isfinite(with_edges).all()
    other = replace(mutag, edge_labels=torch.zeros_like(mutag.edge_labels))
    assert not np.allclose(with_edges, model.predict(other).probabilities)
    without = replace(mutag, edge_labels=None, edge_label_values=None)
    with pytest.raises(DataError, match="edges"):
        model.predict(without)


def test_a_model_of_numbers_predicts_in_their_units(sizes, tmp_path):
    tapnet.cross_validate(sizes, out=tmp_path, final=True, lr=0.01, **FEW | {"epochs": 25})
    found = tapnet.load_model(tmp_path).predict(sizes)
    assert found.target_names == ("size",)
    assert found.values.shape == (188, 1)
    assert abs(found.values.mean() - 1790) < 500


def test_a_metric_without_a_value_for_constants_leaves_the_other_baselines(sizes, tmp_path):
    result = tapnet.cross_validate(sizes, metric="rmse,spearman", final=True, out=tmp_path / "run", **FEW)
    assert result.baseline["spearman"] is None
    assert result.baseline["rmse"] > 0
    assert f"rmse {result.baseline['rmse']:.3f}" in result.baseline_in_words
    assert load_run(tmp_path / "run").baseline == result.baseline
    assert tapnet.load_model(tmp_path / "run").card.cross_validation.baseline == result.baseline


@pytest.mark.parametrize(
    ("conv", "edges", "weights"),
    [
        ("gcn", False, True),
        ("gine", True, True),
        ("gat", True, False),
        ("torch_geometric.nn:SAGEConv", False, False),
        ("torch_geometric.nn:GCNConv", False, True),
        ("torch_geometric.nn:GATv2Conv", True, False),
    ],
)
def test_what_a_convolution_does_not_read_of_edges_is_said(mutag, conv, edges, weights):
    weighted = replace(mutag, edge_weight=torch.full((mutag.num_edges,), 0.5))
    found = tapnet.cross_validate(weighted, conv=conv, only_folds=[0], **FEW | {"epochs": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tapnet.TAPClassifier(epochs=1, conv=conv).fit(weighted, mutag.y.numpy())
    for text in (" ".join(found.notes), " ".join(str(warning.message) for warning in caught)):
        assert ("4 edge labels" in text) is not edges
        assert ("does not use the edges' weights (the pooling does)" in text) is not weights


def test_a_model_that_reads_no_edges_needs_none_and_knows_its_data(mutag, tmp_path):
    tapnet.cross_validate(mutag, conv="torch_geometric.nn:SAGEConv", out=tmp_path, final=True, **FEW | {"epochs": 1})
    model = tapnet.load_model(tmp_path)
    assert not model.network.reads_edges
    assert model.is_training_data(mutag)
    without = replace(mutag, edge_labels=None, edge_label_values=None)
    assert np.array_equal(model.predict(mutag).probabilities, model.predict(without).probabilities)


def test_edges_are_part_of_the_data_of_a_model_that_reads_them(mutag):
    plain = tapnet.cross_validate(mutag, **FEW).results[0].trial
    edges = tapnet.cross_validate(mutag, conv="gine", **FEW).results[0].trial
    assert plain.data == mutag.checksum
    assert edges.data != plain.data
    other = replace(mutag, edge_labels=torch.zeros_like(mutag.edge_labels))
    assert tapnet.cross_validate(other, conv="gine", **FEW).results[0].trial.data != edges.data


def test_one_fold_has_no_deviation(mutag, tmp_path):
    found = tapnet.cross_validate(mutag, only_folds=[0], **FEW)
    assert math.isnan(found.std)
    assert found.to_dict()["std"] is None
    assert found.to_dict()["metrics"]["accuracy"]["std"] is None
    assert "±" not in repr(found)
    run = tapnet.cross_validate(mutag, only_folds=[0], final=True, out=tmp_path, **FEW)
    assert tapnet.load_model(run.final).card.cross_validation.std is None


def test_the_class_that_f1_is_of_is_named(mutag, tmp_path):
    found = tapnet.cross_validate(replace(mutag, class_names=("no", "yes")), metric="f1,roc_auc", out=tmp_path, **FEW)
    values = found.to_dict()
    assert (values["positive_class"], values["targets"]) == ("yes", ["no", "yes"])
    assert "(class yes), roc_auc" in repr(found)
    assert load_run(tmp_path).positive_class == "yes"


def test_each_of_several_numbers_has_its_own_score(mutag):
    y = torch.stack([mutag.nodes_per_graph, 1000 * mutag.nodes_per_graph], dim=1).float()
    data = replace(mutag, task="regression", y=y, classes=(), class_names=None, target_names=("small", "large"))
    found = tapnet.cross_validate(data, metric="mae", **FEW)
    small, large = (found.to_dict()["by_target"][name]["mae"]["mean"] for name in ("small", "large"))
    assert large > 100 * small
    assert found.mean == pytest.approx((small + large) / 2)
    assert "small: mae" in found.by_target_in_words


def test_a_metric_that_a_fold_cannot_have_is_said_with_the_fold(mutag):
    rare = torch.zeros_like(mutag.y)
    rare[:2] = 1  # two graphs in three folds
    with pytest.warns(DataNote, match="size: roc_auc of the test graphs of fold . is not defined"):
        found = tapnet.cross_validate(replace(mutag, y=rare), "size", metric="roc_auc", folds=3)
    assert found.to_dict()["mean"] is None
    assert any("is not defined" in note for note in found.notes)
    assert "roc_auc undefined" in repr(found)


def test_a_fold_whose_usual_metric_is_not_defined_is_stored(labels, tmp_path):
    y = torch.zeros_like(labels.y)
    y[:2] = 1  # three folds, and two of the graphs have a label
    for _ in range(2):
        found = tapnet.cross_validate(replace(labels, y=y), "gin", out=tmp_path, **FEW)
        assert any(math.isnan(score) for score in found.scores)
    assert load_run(tmp_path).scores == pytest.approx(found.scores, nan_ok=True)
    for file in (tmp_path / "trials").glob("*.json"):
        json.loads(file.read_text(), parse_constant=pytest.fail)  # no NaN, which is not JSON


def test_a_label_that_a_fold_leaves_out_is_said(labels):
    y = labels.y.clone()
    y[:, 1] = 0
    y[:2, 1] = 1
    found = tapnet.cross_validate(replace(labels, y=y), "size", folds=3)
    (note,) = (note for note in found.notes if "roc_auc of large" in note)
    folds = [i for i, score in enumerate(found.by_target["large"]["roc_auc"]) if math.isnan(score)]
    assert folds
    assert ", ".join(map(str, folds)) in note
    assert "leaves it out" in note


def test_a_training_that_diverges_is_stored_and_said(sizes, tmp_path):
    with pytest.warns(DataNote, match="training diverged in folds 0, 1, 2"):
        found = tapnet.cross_validate(sizes, "gin", lr=1e30, out=tmp_path, **FEW)
    assert len(load_run(tmp_path).results) == 3
    assert any("diverged" in note for note in found.notes)


def test_a_metric_that_cannot_choose_the_epoch_leaves_it_to_the_loss(mutag):
    y = torch.zeros_like(mutag.y)
    y[:2] = 1  # most validation folds are of one class
    ask = FEW | {"epochs": 6, "folds": 5}
    with pytest.warns(DataNote, match=r"roc_auc is not defined on the validation graphs of folds .* lowest validation"):
        found = tapnet.cross_validate(replace(mutag, y=y), "gin", select_by="roc_auc", **ask)
    by_loss = [r for r in found.results if r.chosen_by_loss]
    assert len(by_loss) >= 3
    assert all(r.reading.epoch == 1 + int(np.argmin(r.curves["validation_loss"])) for r in by_loss)
    assert any(r.reading.epoch > 1 for r in by_loss)


def test_the_paper_protocol_names_the_metric_that_chose_the_epoch(mutag):
    ask = FEW | {"protocol": "paper", "metric": "roc_auc"}
    usual = tapnet.cross_validate(mutag, "gin", **ask)
    chosen = tapnet.cross_validate(mutag, "gin", select_by="roc_auc", **ask)
    assert "best test epoch of each fold by accuracy" in usual.rules
    assert "best test epoch of each fold by roc_auc" in chosen.rules
    assert "by " not in tapnet.cross_validate(mutag, "gin", **FEW | {"protocol": "paper"}).rules


@pytest.mark.parametrize("options", [{}, {"select_by": "roc_auc", "metric": "roc_auc"}, {"protocol": "paper"}])
def test_other_readings_are_others(mutag, options):
    found = tapnet.cross_validate(mutag, "gin", **FEW | options)
    assert found.reading.removeprefix("epoch with the ") not in " ".join(found.other_readings)


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_the_majority_system_is_the_trivial_predictor_beside_it(mutag, metric):
    found = tapnet.cross_validate(mutag, "majority", metric=metric, folds=4)
    assert found.baseline[metric] == pytest.approx(found.mean)


def test_graphs_of_a_file_of_splits_are_counted_and_named(mutag, tmp_path):
    file = tmp_path / "splits.json"
    file.write_text(json.dumps({"train": [1, 2, 3], "validation": [4], "test": [5]}))
    with pytest.warns(DataNote, match="183 of 188 graphs are in no part"):
        choose_splits(file, mutag, 10)
    file.write_text(json.dumps({"train": [1, 2], "validation": [4], "test": [2]}))
    with pytest.raises(DataError, match="split 0: graph 2 is named twice, in train and in test"):
        choose_splits(file, mutag, 10)
    file.write_text(json.dumps({"train": [1, 2], "test": []}))
    with pytest.raises(DataError, match="test: the list is empty"):
        choose_splits(file, mutag, 10)


def test_what_was_said_when_the_data_were_read_stays_with_the_result(mutag):
    found = tapnet.cross_validate(replace(mutag, notes=("3 rows are left out",)), "majority", folds=3)
    assert found.to_dict()["notes"][0] == "3 rows are left out"
