"""Graphs of PyG and NetworkX with any kind of target, and categories in several columns."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tapnet import GraphDataset
from tapnet.data.targets import detect_task
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


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int64])
@pytest.mark.parametrize(("distinct", "task"), [(10, "classification"), (12, "regression")])
def test_whole_numbers_mean_what_they_mean_in_a_table(kind, distinct, task):
    y = [kind(10 * (i % distinct)) for i in range(36)]
    wanted = detect_task({"y": list(map(str, y))})
    for given in (y, np.asarray(y), torch.as_tensor(np.asarray(y))):
        dataset = GraphDataset.from_networkx([nx.path_graph(2)] * 36, given)
        assert (dataset.task, wanted.task) == (task, task)
        assert dataset.classes == (tuple(range(0, 100, 10)) if task == "classification" else ())
        np.testing.assert_array_equal(dataset.y.numpy(), wanted.y)
    assert bool(dataset.notes) == (task == "regression")  # says how they become classes
    classes = GraphDataset.from_networkx([nx.path_graph(2)] * 36, y, task="classification")
    assert (classes.num_classes, classes.notes) == (distinct, ())


def test_integers_of_pyg_are_classes_as_they_are_there():
    assert GraphDataset.from_pyg(with_targets([[i] for i in range(12)])).num_classes == 12


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


# ---- values that are wrong, with their place ----


def named_path(key, values, of="node"):
    """A ring without anything, and a path from a to c whose nodes (or edges) have these values."""
    graph = nx.path_graph(["a", "b", "c"])
    places = list(graph) if of == "node" else list(graph.edges)
    good = nx.cycle_graph(3)
    for one, set_values in ((good, dict.fromkeys(good if of == "node" else good.edges, values[0])), (graph, None)):
        found = set_values or dict(zip(places, values, strict=True))
        (nx.set_node_attributes if of == "node" else nx.set_edge_attributes)(one, found, key)
    return [good, graph]


@pytest.mark.parametrize(
    ("key", "values", "of", "reason"),
    [
        ("label", ["C", None, "O"], "node", "graph 1: the 'label' of the node 'b' is None, where a category belongs"),
        ("label", ["s", None], "edge", "graph 1: the 'label' of the edge from 'b' to 'c' is None, where a category"),
        ("attributes", [[1, 2], None, [1, 2]], "node", "graph 1: the 'attributes' of the node 'b' is None, where 2"),
        ("attributes", [[1, 2], [1], [1, 2]], "node", r"graph 1: the 'attributes' of the node 'b' is \[1\], where 2"),
        (
            "attributes",
            [1.5, [1.0, 2], 2],
            "node",
            r"graph 1: the 'attributes' of the node 'b' is \[1.0, 2\], where a finite number",
        ),
        (
            "attributes",
            [1.5, "x", 2],
            "node",
            "graph 1: the 'attributes' of the node 'b' is 'x', where a finite number",
        ),
        (
            "attributes",
            [1, 2, float("nan")],
            "node",
            "graph 1: the 'attributes' of the node 'c' is nan, where a finite",
        ),
        (
            "attributes",
            [[1], [2], [1e99]],
            "node",
            r"graph 1: the 'attributes' of the node 'c' is \[1e\+99\], where a finite",
        ),
        (
            "attributes",
            [[1], [float("inf")]],
            "edge",
            r"graph 1: the 'attributes' of the edge from 'b' to 'c' is \[inf\]",
        ),
    ],
)
def test_a_value_of_networkx_that_is_wrong_is_named_with_graph_and_place(key, values, of, reason):
    with pytest.raises(DataError, match=reason):
        GraphDataset.from_networkx(named_path(key, values, of), [0, 1])


@pytest.mark.parametrize("of", ["node", "edge"])
def test_a_part_of_a_label_is_not_none(of):
    graphs = named_path("size", [1, None, 2][: 3 if of == "node" else 2], of)
    for graph in graphs:
        nx.set_node_attributes(graph, "a", "kind")
        nx.set_edge_attributes(graph, "a", "kind")
    with pytest.raises(DataError, match=f"graph 1: the 'size' of the {of} .*b.* is None, where a category belongs"):
        GraphDataset.from_networkx(graphs, [0, 1], **{f"{of}_label": ["kind", "size"]})


def test_attributes_of_any_shape_are_one_row_a_node():
    for values in (
        [1, 2, 3],
        [[1], [2], [3]],
        np.eye(3),
        [torch.ones(2)] * 3,
        [np.float32(1), True, 2],
        [[[1, 2]]] * 3,
    ):
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, dict(enumerate(values)), "attributes")
        found = GraphDataset.from_networkx([graph], [0]).node_attributes
        assert torch.equal(found, torch.stack([torch.as_tensor(v, dtype=torch.float32).reshape(-1) for v in values]))


def test_attributes_that_are_not_finite_are_named_with_graph_and_node():
    good = {"edge_index": PAIR, "y": torch.tensor([1])}
    x = torch.tensor([[0.5], [torch.nan]])
    with pytest.raises(DataError, match="graph 1: NaN or infinite among the node attributes of node 1"):
        GraphDataset.from_pyg([Data(x=torch.rand(2, 1), **good), Data(x=x, **good)])
    with pytest.raises(
        DataError, match="graph 1: NaN or infinite among the edge attributes of the edge from node 1 to 0"
    ):
        GraphDataset.from_pyg([Data(x=torch.rand(2, 1), edge_attr=e, **good) for e in (torch.rand(2, 1), x)])


# ---- parallel edges ----


@pytest.mark.parametrize("directed", [False, True])
def test_parallel_edges_with_different_labels_are_said(directed):
    graph = (nx.MultiDiGraph if directed else nx.MultiGraph)()
    for label, weight in (("a", 1.0), ("b", 4.0)):
        graph.add_edge(0, 1, label=label, weight=weight, attributes=[weight])
    graph.add_edge(1, 2, label="a", weight=2.0, attributes=[1])
    graph.add_edge(1, 2, label="a", weight=2.0, attributes=[1])
    dataset = GraphDataset.from_networkx([graph], [0], directed=directed)
    assert [dataset.edge_label_values[i] for i in dataset.edge_labels] == ["a"] * (2 if directed else 4)
    assert sorted(dataset.edge_weight.tolist()) == ([2, 2.5] if directed else [2, 2, 2.5, 2.5])
    assert dataset.num_edges == (2 if directed else 4)
    parallel = "1 edge is given several times with different labels and attributes: the first counts"
    assert sum(parallel in note for note in dataset.notes) == 1
    graph.edges[0, 1, 1]["label"] = "a"
    found = GraphDataset.from_networkx([graph], [0], directed=directed).notes
    assert sum("with different attributes: the first" in note for note in found) == 1
    del graph.edges[0, 1, 1]["attributes"]
    assert not any("the first" in note for note in GraphDataset.from_networkx([graph], [0], directed=directed).notes)


def test_an_edge_in_two_directions_keeps_both_labels_and_nothing_is_said():
    graph = nx.DiGraph([(0, 1, {"label": "a"}), (1, 0, {"label": "b"}), (0, 0, {"label": "c"}), (1, 2, {"label": "a"})])
    dataset = GraphDataset.from_networkx([graph], [0])
    assert [dataset.edge_label_values[i] for i in dataset.edge_labels] == ["a", "b", "a", "a"]
    assert not any("the first" in note for note in dataset.notes)


def test_parallel_edges_that_pyg_gives_in_both_directions_are_counted_once():
    twice = torch.cat([PAIR, PAIR], dim=1)
    attributes = torch.tensor([0, 0, 1, 1])
    for directed, count in ((False, "1 edge is"), (True, "2 edges are")):
        data = Data(x=torch.tensor([0, 1]), edge_index=twice, edge_attr=attributes, y=0)
        (note,) = GraphDataset.from_pyg([data], directed=directed).notes
        assert f"{count} given several times with different labels" in note
