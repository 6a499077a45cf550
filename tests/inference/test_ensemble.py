"""The folds' networks as one model: the mean of their answers, in a file that is checked like any other."""

import json
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import tapnet
from tapnet.errors import DataError, SettingError
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.attribution_stability import compare_attributions
from tapnet.inference.explain_graph import explain_graph
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import read_model
from tapnet.sklearn import TAPClassifier

FEW = {"epochs": 2, "folds": 3, "jobs": 1, "hidden_channels": 8, "progress": lambda _: None}


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


@pytest.fixture(scope="module")
def made(mutag, tmp_path_factory):
    """A run whose final model is its folds' models."""
    return tapnet.cross_validate(mutag, out=tmp_path_factory.mktemp("ensemble"), final="ensemble", **FEW)


@pytest.fixture
def tasks(mutag):
    """The same graphs with a number, and with two labels, to predict."""
    sizes = mutag.nodes_per_graph.float().unsqueeze(1) * 100
    labels = torch.stack([mutag.y.float(), (mutag.nodes_per_graph > 17).float()], dim=1)
    labels[::5, 0] = math.nan
    own = {"classes": (), "class_names": None}
    return {
        "regression": replace(mutag, y=sizes, task="regression", target_names=("size",), **own),
        "multilabel": replace(mutag, y=labels, task="multilabel", target_names=("active", "large"), **own),
    }


def test_its_answer_is_the_mean_of_the_folds_to_the_bit(made, mutag):
    saved = tapnet.load_model(made.folder)
    members = [SavedModel.load(file) for file in sorted((made.folder / "models").iterdir())]
    rows = saved.encode(mutag)
    every = torch.stack(
        [replace(m, card=m.card.replace(calibration=saved.card.calibration)).probabilities(rows) for m in members]
    )
    order = [next(i for i, m in enumerate(members) if m.card.trial.fold == fold) for fold in (0, 1, 2)]
    assert torch.equal(saved.probabilities(rows), every[order].mean(dim=0))
    found = saved.predict(mutag)
    np.testing.assert_array_equal(found.probabilities, every[order].mean(dim=0).double().numpy())
    np.testing.assert_allclose(found.std, every.std(dim=0, correction=0), atol=1e-6)
    assert (saved.card.members, saved.card.ensemble.folds) == (3, [0, 1, 2])
    assert made.to_dict()["final"]["members"] == 3
    assert made.to_dict()["final"]["bytes"] == made.final.stat().st_size
    assert "3 × tapnet" in repr(saved)


def test_its_network_is_one_module_whose_softmax_is_the_mean(made, mutag):
    saved = tapnet.load_model(made.folder)
    batch = mutag.batch([0, 1, 2])
    logits = saved.network(batch)
    torch.testing.assert_close(logits.softmax(dim=1), saved.member_answers(mutag.subset([0, 1, 2])).mean(dim=0))
    logits[0, 0].backward()
    assert all(any(p.grad is not None for p in member.parameters()) for member in saved.network.members)


def test_graphs_are_explained_and_shown(made, mutag):
    saved = tapnet.load_model(made.folder)
    explained = explain_graph(saved, 0)
    assert len(explained.explanation.layers) == 3
    np.testing.assert_allclose(explained.explanation.probabilities, saved.predict(mutag).probabilities[0], atol=1e-6)
    page = Explorer(saved, mutag)
    view = page.graph(0, Choice())
    assert view["probabilities"] == pytest.approx(explained.explanation.probabilities, abs=1e-5)
    assert page.graph(0, Choice(connectivity=5.0))["probabilities"] != view["probabilities"]


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_other_tasks_have_ensembles_sets_and_intervals_too(tasks, task, tmp_path):
    data = tasks[task]
    tapnet.cross_validate(data, out=tmp_path, final="ensemble", **FEW | {"lr": 0.01})
    saved = tapnet.load_model(tmp_path)
    batch, members = data.batch([0, 1]), saved.member_answers(data.subset([0, 1]))
    found = saved.predict(data, confidence=0.9)
    assert found.std.shape == (188, data.num_outputs)
    assert 0.8 < found.coverage <= 1
    if task == "regression":
        torch.testing.assert_close(saved.network(batch), members.mean(dim=0))
        inside = (found.low <= found.values) & (found.values <= found.high)
        assert inside.all()
        assert np.median(found.high - found.low) > 200  # in hundreds of nodes, not in deviations
        assert (found.sets, saved.card.calibration) == ((), None)
    else:
        torch.testing.assert_close(saved.network(batch).sigmoid(), members.mean(dim=0))
        assert {label for row in found.sets for label in row} <= {(0,), (1,), (0, 1)}
        assert found.low.size == 0


def test_sets_hold_the_prediction_and_values_of_classes(made, mutag):
    found = tapnet.load_model(made.folder).predict(mutag, confidence=0.9)
    assert all(c in s and set(s) <= {-1, 1} for c, s in zip(found.classes, found.sets, strict=True))
    assert found.coverage == tapnet.load_model(made.folder).coverage(0.9)
    assert not tapnet.load_model(made.folder).predict(mutag).sets


def test_a_graph_unlike_the_training_graphs_is_marked(made, mutag):
    saved = tapnet.load_model(made.folder)
    usual = saved.predict(mutag)
    assert sum(map(bool, usual.unlike_training)) < 19
    assert usual.distance.shape == (188,)
    large = nx.random_regular_graph(6, 200, seed=0)
    nx.set_node_attributes(large, mutag.category_names[0], "label")
    nx.set_edge_attributes(large, 0, "label")
    small = nx.relabel_nodes(nx.path_graph(20), str)
    nx.set_node_attributes(small, mutag.category_names[0], "label")
    small.nodes["3"]["label"] = "Xe"
    with pytest.warns(UserWarning, match="Xe"):
        found = saved.predict([large, small])
    assert found.unlike_training[0] == "distance; size"
    assert "categories" in found.unlike_training[1]
    assert "size" not in found.unlike_training[1]
    assert found.distance[0] == 1


def test_an_older_file_loads_as_before_and_says_what_it_lacks(made, mutag, tmp_path):
    saved = SavedModel.load(sorted((made.folder / "models").iterdir())[0])
    found = saved.predict(mutag)
    assert (found.sets, found.unlike_training, found.distance.size, found.std.size) == ((), (), 0, 0)
    assert found.calibration == "none"
    with pytest.raises(DataError, match="no confidence"):
        saved.predict(mutag, confidence=0.9)


@pytest.mark.parametrize(
    "change",
    [
        {"ensemble": {"folds": [0, 1]}},  # two networks for the weights of three
        {"ensemble": {"folds": list(range(10**6))}},
        {"ensemble": {"folds": [0]}},
        {"ensemble": None},
        {"calibration": {"method": "temperature", "temperature": [0.0]}},
        {"calibration": {"method": "temperature", "temperature": [1.0, 2.0]}},
        {"calibration": {"method": "temperature"}},
        {"calibration": {"method": "__import__('os')"}},
        {"calibration": {"method": "isotonic", "isotonic": [{"x": [0.9, 0.1], "y": [0.1, 0.9]}]}},
        {"calibration": {"method": "isotonic", "isotonic": [{"x": [0.1], "y": [0.1, 0.9]}]}},
        {"calibration": {"method": "isotonic", "isotonic": [{"x": [], "y": []}]}},
        {"conformal": {"scores": [], "graphs": 1}},
        {"conformal": {"scores": [[[0.1]]], "graphs": 1}},  # of one fold, for three networks
        {"conformal": {"scores": [[[-1.0], [0.1], [0.1]]], "graphs": 3}},
        {"conformal": {"scores": "many", "graphs": 3}},
        {"reference": {"mean": [0.0], "scale": [0.0], "directions": [], "residual": 1.0, "quantiles": [0.0, 1.0]}},
        {"reference": {"mean": [0.0], "scale": [], "directions": [], "residual": 1.0, "quantiles": [0.0, 1.0]}},
        {"reference": {"mean": [0.0], "scale": [1.0], "directions": [], "residual": 1.0, "quantiles": [1.0, 0.0]}},
        {"reference": {"mean": [], "scale": [], "directions": [], "residual": 1.0, "quantiles": [0.0, 1.0]}},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_a_card_that_does_not_fit_is_refused(made, tmp_path, change):
    card = read_model(made.final)[1].to_dict() | change
    save_file(load_file(made.final), tmp_path / "bad.safetensors", metadata={"tapnet": json.dumps(card)})
    with pytest.raises(DataError, match="not a model that this version can use"):
        tapnet.load_model(tmp_path / "bad.safetensors")


def test_a_reference_of_another_width_is_refused_where_it_is_used(made, mutag):
    saved = tapnet.load_model(made.folder)
    short = saved.card.reference.replace(mean=[0.0], scale=[1.0], directions=[])
    with pytest.raises(DataError, match="does not fit its network"):
        replace(saved, card=saved.card.replace(reference=short)).predict(mutag)


def test_a_damaged_file_and_a_strange_weight_are_refused(made, tmp_path):
    content = bytearray(made.final.read_bytes())
    content[-5] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        tapnet.load_model(tmp_path / "damaged.safetensors")
    weights, card = load_file(made.final), read_model(made.final)[1].to_dict()
    last = next(name for name in weights if name.startswith("members.2."))
    for others in ({last: weights[last].half()}, {last: weights[last][..., :-1].contiguous()}):
        save_file(weights | others, tmp_path / "bad.safetensors", metadata={"tapnet": json.dumps(card)})
        with pytest.raises(DataError, match="not a model that this version can use"):
            tapnet.load_model(tmp_path / "bad.safetensors")


def test_what_cannot_be_an_ensemble_is_said(made, mutag, tmp_path):
    with pytest.raises(SettingError, match="several folds"):
        tapnet.cross_validate(mutag, out=tmp_path, final="ensemble", only_folds=[0], **FEW)
    with pytest.raises(SettingError, match="'single' or 'ensemble'"):
        tapnet.cross_validate(mutag, out=tmp_path, final="both", **FEW)
    with pytest.raises(DataError, match="3 networks"):
        TAPClassifier.load(made.folder)


def test_one_final_model_can_follow_the_other(made, mutag):
    ensemble = made.final.read_bytes()
    one = tapnet.cross_validate(mutag, out=made.folder, final=True, **FEW)
    assert tapnet.load_model(one.folder).card.members == 1
    assert tapnet.load_model(one.folder).card.calibration is not None
    again = tapnet.cross_validate(mutag, out=made.folder, final="ensemble", **FEW)
    assert again.final.read_bytes() == ensemble
    written = again.final.stat().st_mtime_ns
    tapnet.cross_validate(mutag, out=made.folder, final="ensemble", **FEW)
    assert again.final.stat().st_mtime_ns == written


def test_an_explanation_says_how_far_the_networks_agree(made):
    found = tapnet.load_model(made.folder).explain(3)
    assert found.stability.members == 3
    assert -1 <= found.stability.correlation <= 1
    assert 0 <= found.stability.top <= 1
    assert found.to_dict()["stability"] == found.stability.__dict__
    assert found.stability.sentence in found.report()
    single = SavedModel.load(sorted((made.folder / "models").iterdir())[0]).explain(3)
    assert single.stability is None
    assert single.to_dict()["stability"] is None


def test_attributions_that_agree_and_that_do_not():
    values = np.arange(10.0)
    same, opposite = compare_attributions([values, 2 * values]), compare_attributions([values, -values])
    assert (same.correlation, same.top) == (pytest.approx(1), 1)
    assert (opposite.correlation, opposite.top) == (pytest.approx(-1), 0)
    assert compare_attributions([values, -values], signed=False).top == 1
    both = compare_attributions([values, values, -values])
    assert (both.correlation, both.top) == (pytest.approx(-1 / 3), pytest.approx(1 / 3))
    assert compare_attributions([np.zeros(5), np.zeros(5)]).correlation is None
    assert compare_attributions([np.ones(1), np.zeros(1)]).top == 1
