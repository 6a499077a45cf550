"""Counts of edges, isolated nodes and components, against NetworkX."""

import networkx as nx
from hypothesis import given

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
