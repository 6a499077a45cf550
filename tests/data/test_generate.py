"""Generated data: the classes are what they are said to be, and the truth of the nodes is true."""

import networkx as nx
import numpy as np
import pytest
import torch

from tapnet import load_dataset
from tapnet.data.convert import assemble
from tapnet.data.generate import KINDS, generate
from tapnet.errors import DataError, SettingError
from tapnet.io.tu import read_node_truth, write_tu
from tests.helpers.graphs import assert_same


def graphs_of(kind, graphs=44, nodes=60, seed=3):
    """NetworkX graphs, their classes, and the nodes of their truth."""
    dataset, truth = generate(kind, graphs, nodes, seed)
    assert truth.shape == (dataset.num_nodes,)
    for g in range(graphs):
        nodes_of = truth[dataset.node_ptr[g] : dataset.node_ptr[g + 1]].nonzero()[:, 0].tolist()
        yield dataset.to_networkx(g), int(dataset.y[g]), nodes_of


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_makes_the_data(kind):
    (first, truth), (again, also), (other, _) = (generate(kind, 30, 60, seed) for seed in (0, 0, 1))
    assert_same(first, again)
    assert torch.equal(truth, also)
    assert not (first.num_nodes == other.num_nodes and torch.equal(first.col[:20], other.col[:20]))
    assert (first.nodes_per_graph >= 28).all()
    assert (first.nodes_per_graph <= 60).all()
    counts = first.y.bincount()
    assert counts.max() - counts.min() <= 1
    assert len(generate(kind, 31, 60).dataset) == 31


def test_colors_count_the_green_nodes():
    for graph, y, truth in graphs_of("colors"):
        green = [node for node, label in graph.nodes(data="label") if label == 1]
        assert (len(green), green) == (y, truth)
        assert nx.is_connected(graph)


def test_triangles_are_counted_and_nothing_else_tells_their_number():
    edges = set()
    for graph, y, truth in graphs_of("triangles"):
        corners = nx.triangles(graph)
        assert sum(corners.values()) == 3 * y
        assert [node for node in graph if corners[node]] == truth
        assert nx.is_connected(graph)
        edges.add(graph.number_of_edges() - graph.number_of_nodes())
    assert edges == {9}


def test_a_needle_carries_the_class():
    dataset, truth = generate("needle", 200, 400)
    count = torch.zeros(200).index_add_(0, dataset.batch(range(200)).graph, truth.float())
    assert torch.equal(count, (dataset.nodes_per_graph // 100).clamp(min=3).float())
    x, y = dataset.node_attributes, dataset.y[dataset.batch(range(200)).graph]
    assert x[truth, 0].mean() > 4.5
    assert x[~truth].mean().abs() < 0.02
    assert (x[truth & (y == 1), 1].mean() > 1.7) & (x[truth & (y == 0), 1].mean() < -1.7)
    assert dataset.features == "attributes"


def test_two_nodes_are_joined_by_a_path_or_not():
    for graph, y, truth in graphs_of("path"):
        one, other = (node for node, label in graph.nodes(data="label") if label == 1)
        assert nx.number_connected_components(graph) == 2
        assert nx.has_path(graph, one, other) == bool(y)
        assert truth == sorted(nx.shortest_path(graph, one, other) if y else [one, other])


def test_pairs_that_the_weisfeiler_leman_test_cannot_tell_apart():
    made = list(graphs_of("wl"))
    for (two, first, truth), (one, second, _) in zip(made[::2], made[1::2], strict=True):
        assert (first, second, truth) == (0, 1, [])
        assert nx.weisfeiler_lehman_graph_hash(two, iterations=20) == nx.weisfeiler_lehman_graph_hash(
            one, iterations=20
        )
        assert nx.number_connected_components(two) == 2
        assert nx.is_connected(one)
        halves = [two.subgraph(part) for part in nx.connected_components(two)]
        assert nx.faster_could_be_isomorphic(*halves)
        assert halves[0].number_of_edges() >= halves[0].number_of_nodes()


def test_what_cannot_be_made_is_refused():
    for arguments, reason in (
        (("colours",), "did you mean colors"),
        (("triangles", 100, 20), "at least 40 nodes"),
        (("colors", 5), "at least 11 graphs"),
        (("wl", 10, 50, -1), "seed"),
    ):
        with pytest.raises(SettingError, match=reason):
            generate(*arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_files_hold_the_same(kind, tmp_path):
    dataset, truth = generate(kind, 24, 50)
    write_tu(dataset, tmp_path / "OWN", truth)
    assert_same(load_dataset(tmp_path / "OWN"), dataset)
    assert torch.equal(read_node_truth(tmp_path / "OWN"), truth)
    with pytest.raises(DataError, match="not empty"):
        write_tu(dataset, tmp_path / "OWN")
    with pytest.raises(DataError, match="missing"):
        read_node_truth(tmp_path)


def test_the_layout_has_no_place_for_weights(tmp_path):
    weighted = assemble(
        name="WEIGHTED",
        nodes_per_graph=np.array([2, 2]),
        edge_index=np.array([[0, 2], [1, 3]]),
        y=np.array([0, 1]),
        edge_weight=np.array([0.5, 2.0]),
    )
    with pytest.raises(DataError, match="TU layout"):
        write_tu(weighted, tmp_path / "OWN")
    mutag = load_dataset("MUTAG")
    write_tu(mutag, tmp_path / "AGAIN")
    assert_same(load_dataset(tmp_path / "AGAIN"), mutag)
    assert np.loadtxt(tmp_path / "AGAIN" / "AGAIN_A.txt", delimiter=",").shape == (mutag.num_edges, 2)
