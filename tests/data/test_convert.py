"""Graphs of PyG and NetworkX with any kind of target, and categories in several columns."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tapnet import GraphDataset
from tapnet.errors import DataError

PAIR = torch.tensor([[0, 1], [1, 0]])


def with_targets(rows):
    return [Data(x=torch.tensor([0, 1]), edge_index=PAIR, y=torch.as_tensor(row)) for row in rows]


@pytest.mark.parametrize(
    ("rows", "task", "y"),
    [
        ([[0], [3]], "classification", [0, 1]),
        ([[0.0], [1.0]], "classification", [0, 1]),
        ([0.5, 2.0], "regression", [[0.5], [2.0]]),
        ([[[0.5, 1.0]], [[2.0, 4.0]]], "regression", [[0.5, 1.0], [2.0, 4.0]]),
        ([[[0.0, 1.0]], [[1.0, float("nan")]]], "multilabel", [[0.0, 1.0], [1.0, float("nan")]]),
    ],
)
def test_what_y_asks_for(rows, task, y):
    dataset = GraphDataset.from_pyg(with_targets(rows))
    assert dataset.task == task
    np.testing.assert_array_equal(dataset.y.numpy(), y)
    if task != "classification":
        nested = [np.ravel(row).tolist() for row in rows]
        same = GraphDataset.from_networkx([nx.path_graph(2)] * 2, [row[0] if len(row) == 1 else row for row in nested])
        assert (same.task, same.target_names) == (dataset.task, dataset.target_names)
        np.testing.assert_array_equal(same.y.numpy(), y)


def test_the_task_can_be_named():
    numbers = GraphDataset.from_pyg(with_targets([[0], [3]]), task="regression")
    assert (numbers.task, numbers.y.tolist()) == ("regression", [[0.0], [3.0]])
    ages = GraphDataset.from_networkx([nx.path_graph(2)] * 2, [40, 50], task="regression")
    assert (ages.task, ages.y.tolist()) == ("regression", [[40.0], [50.0]])


@pytest.mark.parametrize(
    ("rows", "words"),
    [([[0.5], [1.0, 2.0]], "graph 1 has 2"), ([[[0.5, 1.0]], [[float("nan")] * 2]], "graph 1 has no target")],
)
def test_targets_that_do_not_fit_are_named(rows, words):
    with pytest.raises(DataError, match=words):
        GraphDataset.from_pyg(with_targets(rows))


def test_integer_columns_are_categories_each():
    """As the molecules of OGB come: x [n, 9] and edge_attr [E, 3] of integers."""
    graphs = [
        Data(
            x=torch.tensor([[5, 0], [7, 2]]), edge_index=PAIR, edge_attr=torch.tensor([[1, 0]] * 2), y=torch.tensor([0])
        ),
        Data(
            x=torch.tensor([[5, 2], [5, 0]]), edge_index=PAIR, edge_attr=torch.tensor([[1, 3]] * 2), y=torch.tensor([1])
        ),
    ]
    dataset = GraphDataset.from_pyg(graphs)
    assert dataset.features == "all"
    assert [value for _, value in dataset.categories] == [5, 7, 0, 2]
    seen = dataset.x.table[dataset.x.combination].tolist()
    assert [[dataset.categories[c][1] for c in row] for row in seen] == [[5, 0], [7, 2], [5, 2], [5, 0]]
    assert [value for _, value in dataset.edge_categories] == [1, 0, 3]


def test_several_attributes_are_categories_each():
    graphs = [nx.path_graph(3), nx.cycle_graph(4)]
    for graph in graphs:
        nx.set_node_attributes(graph, {n: {"kind": "ab"[n % 2], "size": n // 2} for n in graph})
        nx.set_edge_attributes(graph, {e: {"order": 1 + e[0] % 2, "ring": len(graph) > 3} for e in graph.edges})
    dataset = GraphDataset.from_networkx(graphs, [0, 1], node_label=["kind", "size"], edge_label=("order", "ring"))
    assert (dataset.features, dataset.not_read) == ("all", ())
    assert dataset.categories == (("kind", "a"), ("kind", "b"), ("size", 0), ("size", 1))
    assert dataset.x.table[dataset.x.combination[:3]].tolist() == [[0, 2], [1, 2], [0, 3]]
    assert dataset.edge_categories == (("order", 1), ("order", 2), ("ring", False), ("ring", True))
    one = GraphDataset.from_networkx(graphs, [0, 1], node_label=["kind"])
    assert one.categories == (("kind", "a"), ("kind", "b"))
    alone = GraphDataset.from_networkx(graphs, [0, 1], node_label="kind", features="all")
    assert alone.categories == ("a", "b")
    nothing = GraphDataset.from_networkx(graphs, [0, 1], node_label=None, edge_label=None)
    assert (nothing.features, nothing.label_attribute) == ("degrees", None)


@pytest.mark.parametrize("features", [None, "labels"])
def test_several_attributes_are_there_at_every_node(features):
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, "a", "kind")
    graph.nodes[0]["size"] = 1
    with pytest.raises(DataError, match="'size'"):
        GraphDataset.from_networkx([graph], [0], node_label=["kind", "size"], features=features)
    with pytest.raises(DataError, match="not every edge has the attribute 'order'"):
        GraphDataset.from_networkx([graph], [0], edge_label=["order"])
