"""`tapnet show` and what it draws from: explanations, fixed places, stored models."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from hypothesis import given
from safetensors.torch import save_file

from commands import tapnet_ends as tapnet
from graphs import datasets
from tapnet import TAPNet, load_dataset
from tapnet.errors import DataError, SettingError
from tapnet.models.explain import explain
from tapnet.nn.select import kept_nodes
from tapnet.places import node_places
from tapnet.training.saved import SavedModel


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("show")
    tapnet("train", "MUTAG", "--epochs", 2, "--folds", 3, "--jobs", 1, "--out", "run", folder=folder)
    return folder


@pytest.fixture(scope="module")
def model(run):
    return sorted((run / "run/models").iterdir())[0]


# ---- explanations ----


@given(datasets(labels=True))
def test_each_layer_keeps_the_best_of_what_the_layer_before_it_kept(dataset):
    torch.manual_seed(0)
    network = TAPNet(dataset.num_features, 2).eval()
    explanation = explain(network, dataset.batch([0]))
    came = np.arange(int(dataset.nodes_per_graph[0]))
    for layer, ratio in zip(explanation.layers, (0.8, 0.6, 0.4), strict=True):
        assert layer.nodes.tolist() == came.tolist()
        assert layer.kept.sum() == int(kept_nodes(ratio, torch.tensor([len(came)])))
        if not layer.kept.all():
            assert layer.score[layer.kept].min() >= layer.score[~layer.kept].max()
        np.testing.assert_allclose(layer.local + layer.global_ + layer.connectivity, layer.score, rtol=1e-5, atol=1e-6)
        came = came[layer.kept]
    expected = network(dataset.batch([0]))[0].softmax(0)
    np.testing.assert_allclose(explanation.probabilities, expected.detach().numpy(), rtol=1e-5)


def test_a_layer_that_merges_nodes_has_none_to_show():
    mutag = load_dataset("MUTAG")
    with pytest.raises(SettingError, match="merges nodes"):
        explain(TAPNet(7, 2, pool="diff", mean_nodes=18.0).eval(), mutag.batch([0]))


# ---- places ----


@given(datasets())
def test_every_node_has_a_place_of_its_own_the_same_every_time(dataset):
    batch = dataset.batch([0])
    edges, n = batch.edge_index.numpy(), batch.num_nodes
    at = node_places(edges, n)
    assert at.shape == (n, 2)
    assert np.isfinite(at).all()
    assert at.min() >= 0
    assert at.max() <= 1
    assert len(np.unique(at.round(6), axis=0)) == n
    np.testing.assert_array_equal(at, node_places(edges, n))


# ---- stored models ----


def test_a_stored_model_predicts_what_it_did_while_it_was_trained(run, model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    read = saved.reading(mutag)
    assert read.checksum == mutag.checksum
    one, many = saved.probabilities(read.subset([5])), saved.probabilities(read)
    torch.testing.assert_close(one[0], many[5])
    torch.testing.assert_close(many.sum(1), torch.ones(188))


def test_a_category_that_it_never_saw_counts_as_none_and_is_named(model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    other = mutag.subset([0])
    strange = type(other)(**{**vars(other), "categories": ("Xe", *other.categories[1:])})
    with pytest.warns(UserWarning, match="Xe"):
        read = saved.reading(strange)
    assert read.x.shape == (17, 7)
    assert read.x.sum() == (other.x != 0).sum()


@pytest.mark.parametrize("damage", ["weights", "settings", "no description", "not a file of tensors", "huge"])
def test_a_file_that_is_no_model_is_one_sentence(model, tmp_path, damage):
    from safetensors.torch import load_file

    from tapnet.training.store import load_model_file

    weights, about = load_file(model), load_model_file(model)[1]
    file = tmp_path / "bad.safetensors"
    if damage == "weights":
        weights.pop(next(iter(weights)))
    if damage == "settings":
        about["trial"]["settings"]["pool"] = "__import__('os')"
    if damage == "huge":
        about["shape"]["in_channels"] = 10**15
    described = {} if damage == "no description" else {"tapnet": json.dumps(about)}
    save_file(weights, file, metadata=described)
    if damage == "not a file of tensors":
        file.write_bytes(b"\x80\x04\x95" + b"pickle" * 10)
    with pytest.raises(DataError, match="not a model"):
        SavedModel.load(file)


# ---- the command ----


def test_a_molecule_is_drawn_with_its_elements(model, tmp_path):
    done = tapnet("show", model, 0, "--out", "molecule.svg", folder=tmp_path)
    assert "graph 0: " in done.stdout
    drawn = ET.parse(tmp_path / "molecule.svg").iter("{http://www.w3.org/2000/svg}text")
    words = {"".join(e.itertext()) for e in drawn}
    assert {"C", "N", "O", "dropped", "17 nodes, 19 edges"} <= words
    assert any(word.startswith("14 nodes, ") for word in words)
    for ending in ("png", "pdf"):
        tapnet("show", model, 0, "--out", f"molecule.{ending}", folder=tmp_path)
        assert (tmp_path / f"molecule.{ending}").stat().st_size > 5000


def test_a_run_is_drawn_as_curves_and_confusion(run):
    done = tapnet("show", "run", folder=run)
    assert "protocol fair" in done.stdout
    assert "3 folds × 2 epochs" in done.stdout
    assert (run / "run/curves.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["MODEL"], "which graph?", 2),
        (["MODEL", "188"], "has graphs 0 to 187", 1),
        (["MODEL", "0", "--out", "x.gif"], "--out is a .png, .svg, .pdf file", 2),
        (["nothing", "0"], "no such file", 1),
        ([".", "0"], "is a run's folder", 2),
        (["."], "no run of `tapnet train`", 1),
    ],
)
def test_mistakes_are_one_line(model, tmp_path, words, message, code):
    done = tapnet("show", *(model if w == "MODEL" else w for w in words), folder=tmp_path, code=code)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
