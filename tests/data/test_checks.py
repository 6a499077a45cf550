"""What is said of data before training: what is not used, copies, targets that are no classes."""

from itertools import combinations
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from tapnet import GraphDataset, load_dataset
from tapnet.data.checks import check_classes, copies_note, copy_groups, features_note, graph_codes
from tapnet.data.generate import generate
from tapnet.errors import DataError
from tests.helpers.graphs import datasets
from tests.helpers.tu_files import write


def weighted(**attributes):
    graphs = [nx.path_graph(3), nx.cycle_graph(4)]
    for graph in graphs:
        nx.set_edge_attributes(graph, 0.5, "weight")
        for name, value in attributes.items():
            nx.set_node_attributes(graph, value, name)
    return graphs


# ---- what is not used ----


@pytest.mark.parametrize(
    ("missing", "used", "unused"),
    [
        ((), "3 node labels", ["2 node attributes", "3 edge labels", "1 edge attribute"]),
        (("node_labels",), "2 node attributes", ["3 edge labels", "1 edge attribute"]),
        (("node_labels", "node_attributes", "edge_labels"), "3 degrees", ["1 edge attribute"]),
        (("node_attributes", "edge_labels", "edge_attributes"), None, []),
    ],
)
def test_what_a_tu_set_holds_and_is_not_used_is_named(missing, used, unused, tmp_path):
    note = features_note(load_dataset(write(tmp_path, **dict.fromkeys(missing))))
    assert (note == "") == (used is None)
    if used:
        assert note.startswith(f"the node features are {used}; not used: ")
        assert note.partition("not used: ")[2].split(", ") == unused


def test_a_chosen_feature_leaves_the_others(tmp_path):
    dataset = load_dataset(write(tmp_path))
    assert "3 node labels" in features_note(dataset.with_features("attributes"))
    assert "node" not in features_note(dataset.with_features("degrees"), only_edges=True).partition("not used")[2]


def test_weights_and_other_attributes_of_networkx_that_are_not_read_are_named():
    dataset = GraphDataset.from_networkx(weighted(charge=1.5, label=1), [0, 1], edge_weight="")
    assert dataset.not_read == ("node attribute charge", "edge attribute weight")
    assert all(name in features_note(dataset) for name in dataset.not_read)
    assert features_note(dataset.subset([0])) == features_note(dataset)
    assert "label" not in features_note(dataset).partition("not used")[2]  # the same everywhere: it says nothing


def test_weights_of_pyg_are_read():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    graph = Data(x=torch.tensor([0, 1]), edge_index=edge_index, edge_weight=torch.rand(2), y=torch.tensor([0]))
    dataset = GraphDataset.from_pyg([graph, graph])
    assert dataset.edge_weight is not None
    assert "edge_weight" not in features_note(dataset)


def test_what_is_not_read_of_files_is_named_also_from_the_parsed_copy(tmp_path):
    for i, graph in enumerate(weighted(name="x", id="y")):
        nx.write_graphml(graph, tmp_path / f"{i}.graphml")
    (tmp_path / "labels.csv").write_text("graph,class\n0,a\n1,b\n")
    with pytest.warns(UserWarning, match="left aside: node attribute id, node attribute name"):
        first = load_dataset(tmp_path)
    with pytest.warns(UserWarning, match="left aside: node attribute id, node attribute name"):
        again = load_dataset(tmp_path)
    assert first.not_read == again.not_read == ("node attribute id", "node attribute name")
    assert torch.equal(first.edge_weight, again.edge_weight)


@pytest.mark.parametrize("name", ["COLORS-3", "ENZYMES"])
def test_real_sets_with_attributes(real_data, name):
    dataset = load_dataset(name, real_data)
    if name == "COLORS-3":
        assert (dataset.features, dataset.num_features) == ("attributes", 4)
        assert "attribute" not in features_note(dataset).partition("not used")[2]
    else:
        assert "3 node labels" in features_note(dataset)
        assert "18 node attributes" in features_note(dataset)


# ---- targets ----


@pytest.mark.parametrize(
    "classes", [[str(i / 7) for i in range(40)], list(range(11)), [0.1, 0.2, 0.3], [np.float64(i) for i in range(30)]]
)
def test_a_continuous_target_is_called_one(classes):
    with pytest.raises(DataError, match=f"{len(classes)} different numbers .*task=.regression"):
        check_classes("data", classes, len(classes) + 1)


@pytest.mark.parametrize(
    ("classes", "graphs"),
    [
        (["0", "1"], 2),
        (list(range(10)), 10),
        ([0.5, 1.5], 100),
        ([f"person {i}" for i in range(40)], 40),
        ([True, 0], 2),
    ],
)
def test_classes_are_classes(classes, graphs):
    check_classes("data", classes, graphs)


def test_one_class_is_said_to_be_one():
    with pytest.raises(DataError, match="every graph is of class a"):
        check_classes("data", ["a"], 5)


def test_numbers_in_a_tu_file_of_classes_are_said_to_be_a_target(tmp_path):
    with pytest.raises(DataError, match=r"SMALL_graph_labels.txt:2: '0.75' .*regression"):
        load_dataset(write(tmp_path, graph_labels="1\n0.75\n"))


# ---- copies ----


def named(graphs, y=None):
    return GraphDataset.from_networkx(graphs, y or [i % 2 for i in range(len(graphs))])


def test_copies_are_counted_by_class_and_fold():
    paths = [nx.path_graph(4), nx.relabel_nodes(nx.path_graph(4), {0: 3, 3: 0, 1: 2, 2: 1}), nx.path_graph(5)]
    dataset = named([*paths, nx.cycle_graph(4), nx.star_graph(3), nx.star_graph(3)], [0, 0, 0, 1, 1, 0])
    note = copies_note(dataset)
    assert note.startswith("4 of 6 graphs have a copy ")
    assert "2 of them" in note
    assert copies_note(dataset, [np.array([0, 1, 4]), np.array([2, 3, 5])]).startswith(
        "2 of 6 graphs have a copy in an"
    )
    assert copies_note(dataset, [np.arange(6)]) == ""
    assert copies_note(named(paths[1:])) == ""


def test_graphs_that_are_all_the_same_are_said_to_be():
    dataset = named([nx.complete_graph(5)] * 4)
    assert copies_note(dataset).startswith("all 4 graphs are the same")
    assert copies_note(dataset, [np.arange(4)]).startswith("all 4 graphs are the same")


def test_node_features_tell_graphs_apart():
    graphs = [nx.path_graph(2) for _ in range(3)]
    for graph, value in zip(graphs, (0.0, -0.0, 1.0), strict=True):
        nx.set_node_attributes(graph, [value, 2.0], "attributes")
    codes = graph_codes(GraphDataset.from_networkx(graphs, [0, 1, 0], features="attributes"))
    assert codes[0] == codes[1] != codes[2]


@given(datasets(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_a_renumbered_graph_has_the_same_code(dataset, random):
    """Also one at a time, and whatever stands beside it."""
    codes = graph_codes(dataset)
    assert [int(graph_codes(dataset.subset([i]))[0]) for i in range(len(dataset))] == codes.tolist()
    if dataset.categories is not None and dataset.features == "degrees":
        for i in range(len(dataset)):
            graph = dataset.to_networkx(i).to_undirected()
            nodes = list(graph)
            random.shuffle(nodes)
            moved = nx.relabel_nodes(graph, dict(zip(graph, nodes, strict=True)))
            other = GraphDataset.from_networkx([graph, moved], [0, 1], node_label="", features="degrees")
            assert len(set(graph_codes(other).tolist())) == 1


def test_memory_is_bounded_by_parts_that_change_nothing(monkeypatch):
    dataset = load_dataset("MUTAG")
    whole, groups = graph_codes(dataset), copy_groups(dataset)
    monkeypatch.setattr("tapnet.data.checks.VALUES_AT_ONCE", 50)
    assert np.array_equal(graph_codes(dataset), whole)
    assert np.array_equal(copy_groups(dataset), groups)


def test_graphs_that_only_refinement_takes_for_the_same_are_no_copies():
    """Decalin and bicyclopentyl, a hexagon and two triangles, and pairs that are made so."""
    decalin = nx.Graph([*nx.cycle_graph(10).edges, (0, 5)])
    pentagons = nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(5))
    pentagons.add_edge(0, 5)
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    dataset = named([decalin, pentagons, nx.cycle_graph(6), triangles])
    assert len(set(graph_codes(dataset).tolist())) == 2
    assert len(set(copy_groups(dataset).tolist())) == 4
    assert copies_note(dataset) == ""
    assert copies_note(generate("wl", graphs=30, nodes=20, seed=3)[0]) == ""


@given(st.integers(2, 7), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.2, 0.5, 0.8]), st.booleans())
@settings(max_examples=60)
def test_copies_are_what_networkx_says_is_isomorphic(nodes, seed, directed, density, compiled):
    rng = np.random.default_rng(seed)
    graphs = [nx.gnp_random_graph(nodes, density, int(rng.integers(1 << 30)), directed=directed) for _ in range(6)]
    for graph in graphs:
        nx.set_edge_attributes(graph, {edge: float(rng.integers(1, 3)) for edge in graph.edges}, "weight")
    for graph in graphs[:3]:
        moved = nx.relabel_nodes(graph, dict(zip(graph, rng.permutation(nodes).tolist(), strict=True)))
        graphs.append(nx.compose(nx.empty_graph(nodes, create_using=type(graph)), moved))
    dataset = GraphDataset.from_networkx(graphs, [0, 1, 0] * 3, features="degrees", directed=directed)
    with patch("tapnet.data.checks.WORTH_COMPILING", 0 if compiled else 1 << 30):
        group = copy_groups(dataset)
    for i, j in combinations(range(len(graphs)), 2):
        same = nx.is_isomorphic(graphs[i], graphs[j], edge_match=lambda a, b: a == b)
        assert (group[i] == group[j]) == same, (i, j)
