"""PATCHY-SAN: receptive fields against breadth-first search by NetworkX, the convolution against torch's own."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.loader import DataLoader

from tapnet import GraphDataset, load_dataset
from tapnet.errors import SettingError
from tapnet.io.computed_cache import AT_ONCE
from tapnet.models import pscn
from tapnet.models.base import DataShape
from tapnet.models.preprocess.receptive_fields import fields_of_graph, node_sequence
from tapnet.models.pscn import PSCN, SPEC, FieldConv, PSCNSettings, prepare
from tests.helpers.graphs import with_attributes


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def on(dataset, **chosen):
    """A model in float64, and what it computes once for the data set."""
    settings = PSCNSettings(**chosen)
    return PSCN(DataShape.of(dataset), settings).double(), prepare(dataset, settings)


# ---- receptive fields ----


def arrays_of(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray]:
    """rowptr and col of a graph with the nodes 0 … n-1."""
    rows = [sorted(graph[v]) for v in range(len(graph))]
    return np.cumsum([0, *map(len, rows)]), np.asarray([u for row in rows for u in row], dtype=np.int64)


def sequence_of(graph: nx.Graph, colours) -> list[int]:
    return node_sequence(*arrays_of(graph), np.asarray(colours, dtype=np.int64)).tolist()


def fields_of(graph: nx.Graph, categories, width: int, size: int) -> np.ndarray:
    ends = np.asarray([0, len(graph)])
    return fields_of_graph(0, width, size, ends, *arrays_of(graph), np.asarray(categories, dtype=np.int64))


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:
    n, seed = draw(st.integers(1, 24)), draw(st.integers(0, 2**32 - 1))
    return nx.gnm_random_graph(n, draw(st.integers(0, 2 * n)), seed=seed)


@st.composite
def trees(draw: st.DrawFn) -> nx.Graph:
    """A few trees side by side, some of them equal: many nodes that only automorphisms tell apart."""
    forest = nx.Graph()
    for n in draw(st.lists(st.integers(2, 8), min_size=1, max_size=2)):
        code = draw(st.lists(st.integers(0, n - 1), min_size=n - 2, max_size=n - 2))
        for _ in range(draw(st.integers(1, 2))):
            forest = nx.disjoint_union(forest, nx.from_prufer_sequence(code))
    return forest


def renumbered(graph: nx.Graph, new: list[int]) -> nx.Graph:
    other = nx.Graph()
    other.add_nodes_from(range(len(graph)))
    other.add_edges_from((new[u], new[v]) for u, v in graph.edges)
    return other


@given(graphs(), st.integers(0, 3), st.integers(1, 30), st.integers(1, 12))
def test_a_field_is_its_root_and_the_nearest_nodes_in_the_order_of_the_sequence(graph, kinds, width, size):
    categories = np.arange(len(graph)) % (kinds + 1)
    degree = np.asarray([graph.degree[v] for v in graph])
    sequence = sequence_of(graph, degree * (kinds + 1) - categories)
    assert sorted(sequence) == list(graph)
    assert [(-degree[v], categories[v]) for v in sequence] == sorted(zip(-degree, categories, strict=True))
    rank = {v: i for i, v in enumerate(sequence)}
    fields = fields_of(graph, categories, width, size)
    assert fields.shape == (width, size)
    for root, field in zip(sequence, fields.tolist(), strict=False):
        distance = nx.single_source_shortest_path_length(graph, root)
        nearest = sorted(distance, key=lambda v: (distance[v], rank[v]))[:size]
        assert field == nearest + [-1] * (size - len(nearest))
    assert (fields[len(graph) :] == -1).all()


@given(graphs(), st.randoms(use_true_random=False))
def test_renumbering_nodes_of_distinct_categories_changes_nothing(graph, random):
    n = len(graph)
    categories, new = random.sample(range(n), n), random.sample(range(n), n)
    moved = np.empty(n, dtype=np.int64)
    moved[new] = categories

    def seen(fields, names):
        return np.where(fields < 0, -1, np.asarray(names)[fields])

    expected = seen(fields_of(graph, categories, 12, 6), categories)
    np.testing.assert_array_equal(seen(fields_of(renumbered(graph, new), moved, 12, 6), moved), expected)


@given(trees(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_sequence_is_canonical_where_equal_colours_are_automorphic(graph, kinds, random):
    """Refinement knows the orbits of forests, so their adjacency matrix in the sequence's order is a normal form."""
    n = len(graph)
    colours, new = [random.randrange(kinds) for _ in range(n)], random.sample(range(n), n)
    moved = np.empty(n, dtype=np.int64)
    moved[new] = colours

    def normal_form(graph, colours):
        order = sequence_of(graph, colours)
        return [colours[v] for v in order], nx.to_numpy_array(graph, nodelist=order).tolist()

    assert normal_form(renumbered(graph, new), moved) == normal_form(graph, colours)


def test_refinement_tells_apart_what_degrees_do_not():
    #  0 - 1 - 2 - 3 - 4, 5 at 2: the leaf at the hub is not like the leaves at the ends
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)])
    sequence = sequence_of(graph, [graph.degree[v] for v in range(6)])
    assert sequence[0] == 2
    assert set(sequence[1:3]) == {1, 3}
    assert sequence[3] == 5  # next to the highest node
    # the leaf whose neighbour comes first comes first: the choice between the two arms was made once for both
    assert [abs(leaf - arm) for leaf, arm in zip(sequence[4:], sequence[1:3], strict=True)] == [1, 1]


def test_small_graphs_are_padded():
    edge = fields_of(nx.path_graph(2), [1, 0], 4, 3)
    assert edge.tolist() == [[1, 0, -1], [0, 1, -1], [-1] * 3, [-1] * 3]
    apart = fields_of(nx.empty_graph(2), [0, 1], 3, 2)  # nothing can be reached
    assert apart.tolist() == [[0, -1], [1, -1], [-1, -1]]


# ---- computed once ----


def test_prepared_fields_are_those_of_each_graph(mutag):
    prepared = prepare(mutag, PSCNSettings())
    batch = prepared.batch([5, 0, 9]).prepared["pscn"]
    assert (batch.shape, batch.dtype) == ((3, 18, 10), torch.int32)  # MUTAG's graphs have 17.93 nodes on average
    for graph, fields in zip([5, 0, 9], batch, strict=True):
        expected = fields_of(mutag.to_networkx(graph), mutag[graph].x, 18, 10)
        np.testing.assert_array_equal(fields.numpy(), expected)


def test_a_kill_between_parts_loses_nothing(mutag, monkeypatch, tmp_path):
    expected = prepare(mutag, PSCNSettings()).prepared["pscn"].numbers
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path))
    computed, killed_at = [], AT_ONCE + 7

    def counted(graph, *args):
        if graph == killed_at:
            raise KeyboardInterrupt
        computed.append(graph)
        return fields_of_graph(graph, *args)

    monkeypatch.setattr(pscn, "fields_of_graph", counted)
    with pytest.raises(KeyboardInterrupt):
        prepare(mutag, PSCNSettings())
    assert computed == list(range(AT_ONCE + 7))
    computed, killed_at = [], None
    assert torch.equal(prepare(mutag, PSCNSettings()).prepared["pscn"].numbers, expected)
    assert computed == list(range(AT_ONCE, len(mutag)))  # one part had been written
    computed = []
    prepare(mutag, PSCNSettings())
    assert computed == []
    prepare(mutag, PSCNSettings(field=5))
    assert len(computed) == len(mutag)  # other fields are not taken for these


# ---- the network ----


def test_the_defaults_are_the_papers(mutag):
    settings = SPEC.make_settings("MUTAG", {})
    assert (settings.field, settings.channels, settings.dense_channels, settings.dropout) == (10, (16, 8), 128, 0.5)
    model = SPEC.build(DataShape.of(mutag), settings)
    assert model.width == 18
    weights = [7 * 10 * 16 + 16, 16 * 10 * 8 + 8, 8 * (18 - 9) * 128 + 128, 128 * 2 + 2]
    assert model.num_parameters == sum(weights)
    assert PSCN(DataShape(7, 2, mean_nodes=3.2), settings).width == 10  # as many as the second convolution sees


@pytest.mark.parametrize("kind", ["categories", "floats"])
def test_the_first_layer_is_a_convolution_of_width_and_stride_k(kind):
    torch.manual_seed(0)
    conv = FieldConv(4, 3, 5).double()
    torch.nn.init.normal_(conv.bias)
    x = torch.randint(4, (9,)) if kind == "categories" else torch.randn(9, 4, dtype=torch.double)
    fields = torch.tensor([[0, 1, 2], [8, 3, -1], [4, -1, -1], [-1, -1, -1]])
    rows = torch.nn.functional.one_hot(x, 4).double() if kind == "categories" else x
    axis = torch.cat([rows, torch.zeros(1, 4)])[fields.flatten()]  # missing nodes are zero rows
    kernel = conv.weight.view(4, 3, 5).permute(2, 0, 1)
    expected = torch.nn.functional.conv1d(axis.T.unsqueeze(0), kernel, conv.bias, stride=3)
    found = conv(x, fields)
    torch.testing.assert_close(found, expected[0].T)
    weights = torch.randn(4, 5, dtype=torch.double)
    ours = torch.autograd.grad((found * weights).sum(), list(conv.parameters()))
    theirs = torch.autograd.grad((expected[0].T * weights).sum(), list(conv.parameters()))
    torch.testing.assert_close(ours, theirs)


def test_a_graph_alone_and_in_a_batch_gives_the_same_logits(mutag):
    torch.manual_seed(0)
    model, prepared = on(mutag)
    model.eval()
    together = model(prepared.batch(range(30)))
    assert together.std(dim=0).min() > 0.001
    torch.testing.assert_close(torch.cat([model(prepared.batch([i])) for i in range(30)]), together)


def test_without_anything_prepared(mutag):
    torch.manual_seed(0)
    model, prepared = on(mutag)
    model.eval()
    expected = model(prepared.batch(range(16)))
    torch.testing.assert_close(model(mutag.batch(range(16))), expected)
    data = next(iter(DataLoader([mutag[i] for i in range(16)], batch_size=16)))
    torch.testing.assert_close(model(data.x, data.edge_index, data.batch), expected)
    one_hot = torch.nn.functional.one_hot(data.x, 7).double()
    torch.testing.assert_close(model(one_hot, data.edge_index, data.batch), expected)
    alone = model(mutag[3].x, mutag[3].edge_index)
    torch.testing.assert_close(alone, expected[3:4])


def test_renumbering_the_atoms_of_a_molecule_changes_nothing(mutag):
    """The ties that refinement leaves in MUTAG are automorphic."""
    torch.manual_seed(0)
    model, _ = on(mutag)
    model.eval()
    for graph in range(0, len(mutag), 9):
        data = mutag[graph]
        order = torch.randperm(data.num_nodes)
        moved = model(data.x[order], torch.argsort(order)[data.edge_index])
        torch.testing.assert_close(moved, model(data.x, data.edge_index))


def test_attributes_as_input():
    dataset = with_attributes()
    model, prepared = on(dataset)
    model.eval()
    prepared_batch, batch = prepared.batch(range(9)), dataset.batch(range(9))
    logits = model(prepared_batch.x.double(), batch.edge_index, batch.graph)
    assert logits.shape == (9, 3)
    torch.testing.assert_close(model.float()(prepared_batch), logits.float(), rtol=1e-4, atol=1e-4)


def test_graphs_smaller_than_a_field_and_a_graph_of_one_node():
    graphs = [nx.path_graph(2), nx.empty_graph(1), nx.star_graph(20)]
    dataset = GraphDataset.from_networkx(graphs, y=[0, 1, 0], features="degrees")
    model, prepared = on(dataset)
    logits = model(prepared.batch(range(3)))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    model.eval()
    # a graph without nodes, between two others
    gap = model(torch.zeros(3, dtype=torch.long), torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 0, 2]))
    nothing = model(torch.zeros(1, 3, dtype=torch.double), torch.empty(2, 0, dtype=torch.long))  # a row of zeros
    torch.testing.assert_close(gap[1:2], nothing)


def test_an_edge_between_two_graphs_is_refused(mutag):
    model, _ = on(mutag)
    with pytest.raises(IndexError, match="leads out of graph 0"):
        model(torch.zeros(3, dtype=torch.long), torch.tensor([[0, 2], [2, 0]]), torch.tensor([0, 0, 1]))


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"width": 9}, "width is"),
        ({"field": 0}, "field is at least 1"),
        ({"channels": (16,)}, "channels is"),
        ({"channels": (16, 0)}, "channels is"),
        ({"dropout": 1.0}, "dropout is at least 0 and below 1"),
    ],
)
def test_wrong_settings_are_refused(chosen, reason):
    with pytest.raises(SettingError, match=reason):
        PSCNSettings(**chosen)
