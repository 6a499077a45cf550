"""Counts of edges, isolated nodes and components, against NetworkX."""

import networkx as nx
from hypothesis import given

from tapnet import GraphDataset
from tapnet.ops.connectivity import Connectivity
from tests.helpers.graphs import datasets


def by_networkx(dataset, index):
    graph = nx.Graph(dataset.to_networkx(index))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return Connectivity(
        1,
        graph.number_of_nodes(),
        graph.number_of_edges(),
        nx.number_of_isolates(graph),
        nx.number_connected_components(graph),
    )


@given(datasets())
def test_counts_are_those_of_networkx_and_add_up(dataset):
    each = [by_networkx(dataset, i) for i in range(len(dataset))]
    assert [Connectivity.of(dataset.batch([i])) for i in range(len(dataset))] == each
    assert Connectivity.of(dataset.batch(range(len(dataset)))) == sum(each[1:], start=each[0])


def test_directed_edges_link_both_ends():
    graphs = [nx.DiGraph([(0, 1), (2, 1)]), nx.DiGraph([(0, 1), (1, 0)])]
    graphs[1].add_node(2)
    batch = GraphDataset.from_networkx(graphs, [0, 1], directed=True).batch([0, 1])
    found = Connectivity.of(batch)
    assert (found.nodes, found.edges, found.isolated, found.components) == (6, 3, 1, 3)
