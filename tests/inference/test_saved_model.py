"""Stored models: what they read and predict, and files that are none."""

import json
import shutil
from dataclasses import replace

import networkx as nx
import pytest
import torch
from safetensors.torch import load_file, save_file

from tapnet import GraphDataset, load_dataset
from tapnet.errors import DataError
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.explain_graph import explain_graph
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import read_model
from tests.helpers.graphs import write_graph
from tests.helpers.pages import make_model
from tests.helpers.writers import write_tu


def test_a_stored_model_predicts_what_it_did_while_it_was_trained(model):
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


def test_a_copy_that_numbers_its_labels_otherwise_is_read_alike_through_networkx_pyg_and_files(model, tmp_path):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    write_tu(replace(mutag, node_label_values=(2, 5, 6, 3, 4, 1, 0)), tmp_path / "MUTAG")
    copy = load_dataset("MUTAG", tmp_path)[:20]
    expected = torch.from_numpy(saved.predict(mutag[:20]).probabilities)
    graphs = [copy.to_networkx(i) for i in range(20)]
    for i, graph in enumerate(graphs):
        write_graph(graph, tmp_path / f"{i:02}.json")
    shutil.rmtree(tmp_path / "MUTAG")
    for given in (copy, graphs, GraphDataset.from_networkx(graphs), list(copy), tmp_path):
        torch.testing.assert_close(torch.from_numpy(saved.predict(given).probabilities), expected)


def test_names_are_those_of_all_features_too(tmp_path):
    mutag = load_dataset("MUTAG", features="all")
    assert mutag.category_names == ("C", "N", "O", "F", "I", "Cl", "Br")
    write_tu(replace(mutag, node_label_values=(2, 5, 6, 3, 4, 1, 0)), tmp_path / "MUTAG")
    copy, saved = load_dataset("MUTAG", tmp_path, features="all"), make_model(mutag)
    expected = torch.from_numpy(saved.predict(mutag).probabilities)
    torch.testing.assert_close(torch.from_numpy(saved.predict(copy).probabilities), expected)
    graphs = [copy.to_networkx(i) for i in range(9)]
    torch.testing.assert_close(torch.from_numpy(saved.predict(graphs).probabilities), expected[:9])
    assert set(explain_graph(saved, graphs[0]).category_names) == {*mutag.category_names, "unknown"}


@pytest.mark.parametrize("as_text", [False, True])
def test_bare_numbers_are_unknown_to_a_model_whose_categories_have_names(model, as_text):
    saved = SavedModel.load(model)
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {0: 0, 1: 1, 2: 2, 3: 0}, "label")
    if as_text:
        nx.set_node_attributes(graph, {node: str(code) for node, code in graph.nodes(data="label")}, "label")
    with pytest.raises(DataError, match=r"shares no node category.*by their names \(C, N, O, …\), not by numbers"):
        saved.predict([graph])
    graph.nodes[0]["label"] = "C"
    with pytest.warns(UserWarning, match="not by numbers"):
        found = saved.predict([graph]).probabilities
    nx.set_node_attributes(graph, {1: "unknown", 2: "unknown", 3: "unknown"}, "label")
    with pytest.warns(UserWarning, match="'unknown'") as told:
        assert saved.predict([graph]).probabilities == pytest.approx(found)
    assert not any("numbers" in str(warning.message) for warning in told)


def test_the_names_of_another_data_set_are_not_matched_by_its_numbers(model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")[:3]
    with pytest.warns(UserWarning, match="Xe"):
        read = saved.encode(replace(mutag, label_names=("Xe", "C", *mutag.label_names[2:])))
    as_nitrogen = mutag.x == 1
    assert bool((read.x[as_nitrogen].argmax(dim=1) == 0).all())  # they are called C there


def test_a_category_that_it_never_saw_counts_as_none_and_is_named(model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    other = mutag.subset([0])
    strange = replace(other, label_names=("Xe", *other.label_names[1:]))
    with pytest.warns(UserWarning, match="Xe"):
        read = saved.encode(strange)
    assert read.x.shape == (17, 7)
    assert read.x.sum() == (other.x != 0).sum()


@pytest.mark.parametrize("damage", ["weights", "types", "settings", "no description", "not a file of tensors", "huge"])
def test_a_file_that_is_no_model_is_one_sentence(model, tmp_path, damage):
    weights, about = load_file(model), read_model(model)[1].to_dict()
    file = tmp_path / "bad.safetensors"
    if damage == "weights":
        weights.pop(next(iter(weights)))
    if damage == "types":
        weights = {name: weight.half() for name, weight in weights.items()}
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
