"""`tapnet show` and what it draws from: explanations, fixed places, stored models."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from safetensors.torch import save_file

from commands import tapnet_ends as tapnet
from graphs import datasets, write_graph
from tapnet import TAPNet, load_dataset
from tapnet.errors import DataError, SettingError
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.explain import explain
from tapnet.inference.model import SavedModel
from tapnet.nn.pool.select import kept_nodes
from tapnet.viz.graph_layout import graph_layout
from writers import write_tu


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
    at = graph_layout(edges, n)
    assert at.shape == (n, 2)
    assert np.isfinite(at).all()
    assert at.min() >= 0
    assert at.max() <= 1
    assert len(np.unique(at.round(6), axis=0)) == n
    np.testing.assert_array_equal(at, graph_layout(edges, n))


# ---- stored models ----


def test_a_stored_model_predicts_what_it_did_while_it_was_trained(run, model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    read = saved.encode(mutag)
    assert read.checksum == mutag.checksum
    one, many = saved.probabilities(read.subset([5])), saved.probabilities(read)
    torch.testing.assert_close(one[0], many[5])
    torch.testing.assert_close(many.sum(1), torch.ones(188))


def test_a_copy_that_numbers_its_labels_otherwise_is_read_by_what_they_mean(model, tmp_path):
    mutag = load_dataset("MUTAG")
    write_tu(replace(mutag, node_label_values=(2, 5, 6, 3, 4, 1, 0)), tmp_path / "MUTAG")
    copy = load_dataset("MUTAG", tmp_path)
    assert (copy.category_names[0], copy.category_names[2]) == ("Br", "C")
    saved = SavedModel.load(model)
    assert torch.equal(saved.encode(copy).x, saved.encode(mutag).x)
    assert saved.encode(copy).category_names == tuple(map(str, mutag.categories))
    first, second = (Explorer(saved, data).graph(0, Choice()) for data in (mutag, copy))
    assert [first["categories"][i] for i in first["category"]] == [second["categories"][i] for i in second["category"]]


def test_a_category_that_it_never_saw_counts_as_none_and_is_named(model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    other = mutag.subset([0])
    strange = type(other)(**{**vars(other), "categories": ("Xe", *other.categories[1:]), "label_names": None})
    with pytest.warns(UserWarning, match="Xe"):
        read = saved.encode(strange)
    assert read.x.shape == (17, 7)
    assert read.x.sum() == (other.x != 0).sum()


@pytest.mark.parametrize("damage", ["weights", "settings", "no description", "not a file of tensors", "huge"])
def test_a_file_that_is_no_model_is_one_sentence(model, tmp_path, damage):
    from safetensors.torch import load_file

    from tapnet.inference.model_file import read_model

    weights, about = load_file(model), read_model(model)[1].to_dict()
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
    assert re.fullmatch(
        r"MUTAG, graph 0: .*mutagenic \(\d+ %\); true class: mutagenic\nWritten: molecule.svg\n", done.stdout
    )
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
        ([".", "0"], ".: this folder has no final model; train with --final", 1),
        (["FOLDER", "0"], "this folder has no final model; give one of those in ", 1),
        (["MODEL", "nowhere.json"], "nowhere.json: no such file, and MUTAG has no graph of that name", 1),
        (["."], "no run of `tapnet train`", 1),
    ],
)
def test_mistakes_are_one_line(model, tmp_path, words, message, code):
    done = tapnet(
        "show", *({"MODEL": model, "FOLDER": model.parent}.get(w, w) for w in words), folder=tmp_path, code=code
    )
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


# ---- graphs of one's own ----


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run with a final model on a folder of rings and stars, of which labels.csv leaves one out."""
    folder = tmp_path_factory.mktemp("own")
    rows = ["graph,class"]
    for i in range(12):
        graph = nx.cycle_graph(5 + i) if i % 2 else nx.star_graph(5 + i)
        nx.set_node_attributes(graph, {node: "ab"[node % 2] for node in graph}, "label")
        write_graph(graph, folder / "shapes" / f"shape{i}.json", edges="edges")
        rows.append(f"shape{i},{'ring' if i % 2 else 'star'}")
    (folder / "shapes/labels.csv").write_text("\n".join(rows[:-1]))
    words = ("--epochs", 1, "--folds", 3, "--jobs", 1, "--out", "run", "--final")
    tapnet("train", "shapes", *words, "--set", "hidden_channels=8", folder=folder)
    return folder


def test_a_graph_of_one_s_own_is_shown_with_its_file_and_its_class(own):
    by_number, by_name, by_ending = (
        tapnet("show", "run", g, folder=own).stdout for g in (10, "shape10", "shape10.json")
    )
    assert by_number == by_name == by_ending
    assert re.fullmatch(
        r"shapes, graph 10, shape10.json: (ring|star) \(\d+ %\); true class: star\nWritten: shapes-10.png\n", by_number
    )
    assert (own / "shapes-10.png").stat().st_size > 5000
    by_file = tapnet("show", "run", "shapes/shape1.json", folder=own).stdout
    assert re.match(r"shape1: (ring|star) \(\d+ %\); true class: ring\n", by_file)
    not_listed = tapnet("show", "run", "shapes/shape11.json", folder=own).stdout
    assert re.match(r"shape11: (ring|star) \(\d+ %\)\n", not_listed)


def test_a_folder_of_graphs_is_not_one_graph(own):
    done = tapnet("show", "run", "shapes", folder=own, code=2)
    assert "shapes has 11 graphs; which one? Its number goes with --dataset shapes" in done.stderr


def test_nodes_of_an_unknown_category_are_drawn_beside_the_others(own):
    graph = nx.path_graph(6)
    nx.set_node_attributes(graph, {node: "abc"[node % 3] for node in graph}, "label")
    write_graph(graph, own / "strange.json", edges="edges")
    done = tapnet("show", "run", "strange.json", "--out", "strange.svg", folder=own)
    assert done.stderr == (
        "tapnet: 1 graph has node categories that the model was not trained on (strange: 'c'): they count as none\n"
    )
    drawn = ET.parse(own / "strange.svg").iter("{http://www.w3.org/2000/svg}text")
    assert {"a", "b", "unknown"} <= {word for e in drawn for word in "".join(e.itertext()).split(": ")}
