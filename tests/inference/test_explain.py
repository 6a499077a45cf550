"""Explanations: what each pooling layer kept of a graph."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

from tapnet import TAPNet, load_dataset, load_model
from tapnet.errors import DataError, DatasetNotFoundError, SettingError
from tapnet.inference.explain import explain
from tapnet.inference.explain_graph import explain_graph
from tapnet.nn.pool.select import kept_nodes
from tests.helpers.graphs import datasets


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


# ---- one graph by a stored model ----


def test_a_graph_is_found_by_number_or_given_as_an_object(run):
    model = load_model(run.folder)
    by_number = explain_graph(model, 3)
    assert (by_number.name, by_number.stem, by_number.file) == ("MUTAG, graph 3", "MUTAG-3", None)
    assert by_number.true_class in model.class_names
    assert by_number.predicted in str(by_number)
    assert str(explain_graph(model, "3")) == str(by_number)
    assert by_number.edges.shape[0] == 2
    assert by_number.category.max() < len(by_number.category_names)
    given = explain_graph(model, load_dataset("MUTAG")[3])
    np.testing.assert_array_equal(given.category, by_number.category)
    np.testing.assert_allclose(given.explanation.probabilities, by_number.explanation.probabilities)
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, "C", "label")
    assert explain_graph(model, graph).true_class is None


def test_what_cannot_be_found_is_said_without_a_flag(run):
    model = load_model(run.folder)
    with pytest.raises(DataError, match="graphs 0 to 187"):
        explain_graph(model, 188)
    with pytest.raises(DataError, match="no graph of that name"):
        explain_graph(model, "nothing.json")
    elsewhere = model.card.trial.replace(dataset="ELSEWHERE")
    moved = type(model)(model.network, model.card.replace(trial=elsewhere))
    with pytest.raises(DatasetNotFoundError, match="dataset=NAME") as error:
        explain_graph(moved, 0)
    assert "--" not in str(error.value)


def test_a_system_that_keeps_no_nodes_has_nothing_to_explain(run):
    model = load_model(run.folder)
    with pytest.raises(SettingError, match="keeps no nodes"):
        explain_graph(type(model)(torch.nn.Identity(), model.card), 0)
