"""GraphDataset: cleaning, batches cut by index arithmetic, and round trips that lose nothing."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from tapnet import GraphDataset
from tapnet.data.convert import assemble
from tapnet.errors import DataError, SettingError
from tests.helpers.graphs import assert_same, datasets


def small(edges, sizes=(4, 3), **given):
    edge_index = np.asarray(edges, dtype=np.int64).reshape(-1, 2).T
    y = given.pop("y", np.arange(len(sizes)))
    return assemble(name="small", nodes_per_graph=np.asarray(sizes), edge_index=edge_index, y=y, **given)


def test_edges_become_symmetric_sorted_and_unique_and_isolated_nodes_stay():
    dataset = small([(2, 0), (0, 1), (0, 1), (1, 1), (5, 6)])
    assert dataset[0].edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert dataset[1].edge_index.tolist() == [[1, 2], [2, 1]]
    assert dataset.degree.tolist() == [2, 1, 1, 0, 0, 1, 1]
    assert dataset.self_loop.tolist() == [False, True] + 5 * [False]


def test_edge_data_follow_their_edges():
    dataset = small([(2, 0), (0, 1), (1, 0), (0, 1), (1, 1)], (4,), edge_labels=np.array([7, 5, 9, 1, 3]), y=[0])
    values = dict(zip(map(tuple, dataset[0].edge_index.T.tolist()), dataset.edge_labels.tolist(), strict=True))
    original = {pair: dataset.edge_label_values[v] for pair, v in values.items()}
    # the first of two duplicates counts, a reverse edge that is there keeps its own data, a missing one copies
    assert original == {(0, 1): 5, (1, 0): 9, (2, 0): 7, (0, 2): 7}


def test_categories_are_consecutive_in_the_order_of_the_original_values():
    dataset = small([(0, 1)], node_labels=np.array([30, -2, 30, 7, 7, 7, -2]), y=np.array([5, -1]))
    assert dataset.x.tolist() == [2, 0, 2, 1, 1, 1, 0]
    assert dataset.categories == (-2, 7, 30)
    assert (dataset.y.tolist(), dataset.classes) == ([1, 0], (-1, 5))


def test_degree_features_number_the_distinct_degrees():
    dataset = small([(0, 1), (0, 2), (0, 3)])
    assert (dataset.features, dataset.categories) == ("degrees", (0, 1, 3))
    assert dataset.x.tolist() == [2, 1, 1, 1, 0, 0, 0]


def test_log_degrees_are_one_float_and_self_loops_count():
    dataset = replace(small([(0, 1), (0, 2), (0, 3)]), self_loop=torch.tensor([False] * 6 + [True]))
    seen = dataset.with_features("log-degrees")
    torch.testing.assert_close(seen.x, torch.tensor([3.0, 1, 1, 1, 0, 0, 1]).log1p().unsqueeze(1))
    assert (seen.features, seen.categories, seen.num_features) == ("log-degrees", None, 1)
    assert "log_degrees=1" in repr(seen)
    assert seen.checksum != dataset.checksum


def test_features_that_are_not_there_are_refused():
    dataset = small([(0, 1)])
    with pytest.raises(SettingError, match="no node labels"):
        dataset.with_features("labels")
    with pytest.raises(SettingError, match="no node attributes"):
        dataset.with_features("attributes")
    with pytest.raises(SettingError, match="labels, degrees, log-degrees, attributes, all"):
        dataset.with_features("colour")


@given(datasets(weights=True), st.data())
def test_a_batch_is_the_disjoint_union_in_the_order_asked_for(dataset, data):
    chosen = data.draw(st.lists(st.integers(0, len(dataset) - 1), min_size=1, max_size=8))
    ours, pyg = dataset.batch(chosen), Batch.from_data_list([dataset[i] for i in chosen])
    assert torch.equal(ours.x, pyg.x)
    assert torch.equal(ours.y, pyg.y)
    assert torch.equal(ours.ptr, pyg.ptr)
    assert torch.equal(ours.graph, pyg.batch)
    assert torch.equal(ours.edge_index, pyg.edge_index)


@given(datasets(weights=True), st.data())
def test_a_subset_holds_the_same_graphs(dataset, data):
    chosen = data.draw(st.lists(st.integers(-len(dataset), len(dataset) - 1), min_size=1, max_size=8))
    subset = dataset.subset(chosen)
    assert len(subset) == len(chosen)
    for i, graph in enumerate(chosen):
        a, b = subset[i], dataset[graph]
        assert a.keys() == b.keys()
        assert all(torch.equal(a[k], b[k]) if torch.is_tensor(a[k]) else a[k] == b[k] for k in a.keys())  # noqa: SIM118


def test_a_graph_number_out_of_range_is_an_index_error():
    with pytest.raises(IndexError, match="graphs 0 to 1"):
        small([(0, 1)])[2]


@given(datasets(weights=True))
def test_pyg_and_back(dataset):
    graphs = list(dataset)
    assert all(isinstance(g, Data) and g.validate() and g.is_undirected() for g in graphs)
    back = GraphDataset.from_pyg(
        graphs,
        classes=dataset.classes,
        categories=dataset.node_label_values,
        edge_categories=dataset.edge_label_values,
        features=dataset.features,
    )
    assert_same(dataset, back)


@given(datasets(weights=True))
def test_networkx_and_back(dataset):
    graphs = [dataset.to_networkx(i) for i in range(len(dataset))]
    back = GraphDataset.from_networkx(graphs, features=dataset.features)
    assert_same(dataset, back)


@given(datasets(weights=True, labels=True, edge_data=True), st.data())
def test_names_and_several_categories_survive_networkx_and_back(dataset, data):
    names = tuple(f"kind {value}" for value in dataset.node_label_values)
    named = replace(dataset, label_names=names)
    back = GraphDataset.from_networkx([named.to_networkx(i) for i in range(len(named))])
    assert [back.node_label_values[i] for i in back.node_labels] == [names[i] for i in dataset.node_labels]
    several = replace(
        dataset,
        node_label_values=tuple((i % 2, f"b{i}", i % 3 == 0) for i in range(len(names))),
        node_columns=("a", "b", "c"),
        edge_label_values=tuple((f"x{i}", i) for i in range(len(dataset.edge_label_values or ()))),
        edge_columns=("x", "y") if dataset.num_edges else None,
        label_names=("same",) * len(names),  # which tell nothing apart
    ).with_features("all")
    graphs = [several.to_networkx(i) for i in range(len(several))]
    back = GraphDataset.from_networkx(graphs)
    assert (back.node_columns, back.edge_columns) == (several.node_columns, several.edge_columns)
    for key in ("node", "edge") if several.num_edges else ("node",):
        labels, values = getattr(back, f"{key}_labels"), getattr(back, f"{key}_label_values")
        expected, theirs = getattr(several, f"{key}_labels"), getattr(several, f"{key}_label_values")
        assert [values[i] for i in labels] == [theirs[i] for i in expected]
    kinds = [kind for graph in graphs for _, kind in graph.nodes(data="b")]
    assert kinds == [several.node_label_values[i][1] for i in several.node_labels]


def test_pyg_one_hot_rows_become_categories_and_floats_stay_floats():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    one_hot = Data(x=torch.eye(3)[[2, 0]], edge_index=edge_index, y=torch.tensor([1]))
    dataset = GraphDataset.from_pyg([one_hot, one_hot])
    assert (dataset.x.tolist(), dataset.categories) == ([1, 0, 1, 0], (0, 2))
    floats = Data(x=torch.randn(2, 3), edge_index=edge_index, y=torch.tensor([1]))
    assert GraphDataset.from_pyg([floats], features="attributes").x.shape == (2, 3)
    assert GraphDataset.from_pyg([floats]).features == "attributes"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"y": None}, "graph 1: y is its class"),
        ({"y": torch.tensor([0.5, torch.nan])}, "graph 1 has 2 targets"),
        ({"edge_index": None}, "graph 1 has no edge_index"),
        ({"edge_index": torch.tensor([[0, 2], [2, 0]])}, "graph 1: edge_index names node 2; its nodes are 0 to 1"),
        ({"x": None}, "graph 1 has no x, but others have"),
        ({"x": torch.randn(2, 4)}, "x does not have the same width"),
        ({"x": torch.tensor([[0.0] * 3, [torch.nan] * 3])}, "NaN or infinite among the node attributes"),
        ({"edge_attr": torch.randn(3, 1)}, "graph 0 has no edge_attr, but others have"),
    ],
)
def test_pyg_graphs_that_are_wrong_are_named(changes, reason):
    good = {"x": torch.randn(2, 3), "edge_index": torch.tensor([[0, 1], [1, 0]]), "y": torch.tensor([1])}
    with pytest.raises(DataError, match=reason):
        GraphDataset.from_pyg([Data(**good, num_nodes=2), Data(**{**good, **changes}, num_nodes=2)])


def test_graphs_are_chosen_by_numbers_booleans_and_slices():
    dataset = small([(0, 1), (4, 5)], (4, 3, 2), y=[1, 0, 1])
    assert dataset.subset(dataset.y == 1).nodes_per_graph.tolist() == [4, 2]
    assert dataset[1:].nodes_per_graph.tolist() == [3, 2]
    assert dataset[[2, 0]].nodes_per_graph.tolist() == [2, 4]
    assert dataset[-1].num_nodes == 2
    for wrong in ([0.9], [True], ["a"]):
        with pytest.raises(IndexError, match="whole numbers or by 3 booleans"):
            dataset.batch(wrong)


def test_networkx_graphs_with_names_strings_and_direction():
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")])
    nx.set_node_attributes(graph, {"a": "red", "b": "blue", "c": "red"}, "colour")
    dataset = GraphDataset.from_networkx([graph, graph], ["yes", "no"], node_label="colour")
    assert (dataset.classes, dataset.categories) == (("no", "yes"), ("blue", "red"))
    assert dataset.x.tolist() == [1, 0, 1] * 2
    assert dataset.num_edges == 12
    with pytest.raises(DataError, match="graph 0 has no class"):
        GraphDataset.from_networkx([graph])
    with pytest.raises(DataError, match="2 classes"):
        GraphDataset.from_networkx([graph], [0, 1])
    assert GraphDataset.from_networkx([graph, graph], torch.tensor([0, 0])).num_classes == 1
    nx.set_node_attributes(graph, {"a": [1], "b": [1, 2], "c": [1]}, "attributes")
    with pytest.raises(DataError, match=r"graph 0: the 'attributes' of the node 'b' is \[1, 2\]"):
        GraphDataset.from_networkx([graph], [0])


def test_values_of_mixed_kinds_get_an_order_too():
    dataset = small([(0, 1)], node_labels=["x", 1, None, (2, 3), "x", 1, "y"])
    assert [dataset.categories[i] for i in dataset.x.tolist()] == ["x", 1, None, (2, 3), "x", 1, "y"]


def test_the_checksum_sees_what_a_model_sees():
    a, b = small([(0, 1)]), small([(0, 1), (1, 0), (0, 1)])
    assert a.checksum == b.checksum
    assert a.checksum != small([(0, 2)]).checksum
    assert a.checksum != small([(0, 1)], y=[1, 1]).checksum


# ---- weights of edges ----


def weighted(*edges, kind=nx.Graph, **values):
    graph = kind(y=0, **values)
    for u, v, weight in edges:
        graph.add_edge(u, v, weight=weight)
    return graph


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.floats(-1e6, 1e6, width=32)), max_size=12))
def test_the_weight_of_an_edge_is_the_mean_of_what_was_given_for_it(edges):
    edge_index = np.asarray([(u, v) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2).T
    dataset = assemble(
        name="W",
        nodes_per_graph=np.asarray([5]),
        edge_index=edge_index,
        y=np.zeros(1, np.int64),
        edge_weight=np.asarray([w for *_, w in edges]),
    )
    between = {}
    for u, v, weight in edges:
        between.setdefault(frozenset((u, v)), []).append(weight)
    wanted = {pair: np.float32(np.mean(found)) for pair, found in between.items() if len(pair) == 2}
    if dataset.edge_weight is None:
        assert all(weight == 1 for u, v, weight in edges if u != v)
        return
    ends = dataset[0].edge_index.T.tolist()
    for (u, v), weight in zip(ends, dataset.edge_weight.tolist(), strict=True):
        assert weight == pytest.approx(wanted[frozenset((u, v))], rel=1e-6, abs=1e-9)
    both = dict(zip(map(tuple, ends), dataset.edge_weight.tolist(), strict=True))
    assert all(both[u, v] == both[v, u] for u, v in both)


def test_weights_come_from_networkx_and_pyg_and_differing_ones_are_said():
    graph = weighted((0, 1, 2.0), (1, 0, 4.0), (1, 2, 0.0), kind=nx.DiGraph)
    dataset = GraphDataset.from_networkx([graph])
    assert dataset.edge_weight.tolist() == [3.0, 3.0, 0.0, 0.0]  # an edge of weight 0 stays
    assert "mean" in dataset.notes[0]
    assert dataset.not_read == ()
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([[2.0], [2.0]]), y=torch.tensor(0))
    data.num_nodes = 2
    again = GraphDataset.from_pyg([data, data])
    assert again.edge_weight.tolist() == [2.0] * 4
    assert again.notes == ()
    assert again.batch([1]).weight.tolist() == [2.0, 2.0]


def test_weights_of_one_are_none_and_a_weight_that_some_edges_lack_is_left_aside():
    assert GraphDataset.from_networkx([weighted((0, 1, 1), (1, 2, 1.0))]).edge_weight is None
    lacking = weighted((0, 1, 2.0))
    lacking.add_edge(1, 2)
    dataset = GraphDataset.from_networkx([lacking])
    assert dataset.edge_weight is None
    assert dataset.not_read == ("edge attribute weight",)
    other = GraphDataset.from_networkx([weighted((0, 1, 2.0))], edge_weight="strength")
    assert (other.edge_weight, other.not_read) == (None, ("edge attribute weight",))


@pytest.mark.parametrize("weight", ["heavy", None, True, float("nan"), float("inf"), 10**400, [1.0]])
def test_a_weight_that_is_no_number_is_named_with_graph_and_edge(weight):
    with pytest.raises(DataError, match=r"graph 1: the 'weight' of the edge from 'b' to 'c'"):
        GraphDataset.from_networkx([weighted((0, 1, 1.0)), weighted(("a", "b", 1), ("b", "c", weight))])


def test_pyg_weights_that_are_wrong_are_named():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([1.0]), y=torch.tensor(0))
    data.num_nodes = 2
    with pytest.raises(DataError, match="graph 0: 1 edge weights for 2 edges"):
        GraphDataset.from_pyg([data])
    data.edge_weight = torch.tensor([1.0, float("nan")])
    with pytest.raises(DataError, match="graph 0: the weight of the edge from node 1 to 0 is nan"):
        GraphDataset.from_pyg([data])
