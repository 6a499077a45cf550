"""Directed graphs: Aᵢⱼ is the weight of the edge from j to i, in every formula and in every gradient."""

from functools import partial

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import GraphConv as PyGGraphConv

from tapnet import GraphDataset, TAPNet, TAPooling
from tapnet.nn.conv.gin import GINConv
from tapnet.nn.conv.pyg import PyGConv
from tapnet.nn.pool.sag import SAGPool
from tapnet.nn.pool.topk import TopKPool
from tapnet.ops.csr import propagate
from tests.helpers import dense

# weights and their sums are float32
assert_close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)
few = settings(max_examples=20)


@st.composite
def directed_sets(draw, weighted=None):
    """A few directed graphs as a data set, and the matrix of each."""
    seed, has_weights = draw(st.integers(0, 10**6)), draw(st.booleans()) if weighted is None else weighted
    generator = torch.Generator().manual_seed(seed)
    matrices, graphs = [], []
    for n in draw(st.lists(st.integers(1, 7), min_size=2, max_size=4)):
        there = (torch.rand(n, n, generator=generator) < 0.4).double().fill_diagonal_(0)
        a = there * torch.rand(n, n, generator=generator) if has_weights else there
        graph = nx.empty_graph(n, nx.DiGraph)
        graph.add_edges_from((j, i, {"weight": float(a[i, j])}) for i, j in a.nonzero().tolist())
        graphs.append(graph)
        matrices.append(a.float().double())
    dataset = GraphDataset.from_networkx(graphs, list(range(len(graphs))), directed=True)
    return dataset, matrices, torch.randn(sum(map(len, matrices)), 4, generator=generator, dtype=torch.float64)


def chosen(dataset, matrices, x):
    """The batch of the last graph and the first, their features, and the matrix of both."""
    numbers = [len(dataset) - 1, 0]
    parts = x.split(dataset.nodes_per_graph.tolist())
    return dataset.batch(numbers), torch.cat([parts[i] for i in numbers]), [matrices[i] for i in numbers]


@pytest.mark.parametrize("norm", ["neighbour", "symmetric", "mean", "sum"])
@few
@given(directed_sets())
def test_products_and_their_gradients_are_the_dense_formulas(norm, drawn):
    batch, x, matrices = chosen(*drawn)
    x.requires_grad_()
    expected = torch.cat(
        [dense.propagate(rows, a, norm) for rows, a in zip(x.split([len(a) for a in matrices]), matrices, strict=True)]
    )
    found = propagate(x, batch, norm)
    assert_close(found, expected)
    upstream = torch.randn_like(found)
    assert_close(torch.autograd.grad(found, x, upstream), torch.autograd.grad(expected, x, upstream))


@pytest.mark.parametrize("similarity", ["bilinear", "gaussian"])
@few
@given(directed_sets())
def test_votes_and_their_gradients_are_the_dense_formulas(similarity, drawn):
    batch, x, matrices = chosen(*drawn)
    pool = TAPooling(4, similarity=similarity).double()
    x.requires_grad_()
    parts = zip(x.split([len(a) for a in matrices]), matrices, strict=True)
    expected = [torch.cat(part) for part in zip(*(dense.votes(pool, rows, a) for rows, a in parts), strict=True)]
    found = pool.votes(x, batch)
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs)
    upstream, inputs = torch.randn_like(expected[3]), (x, *pool.parameters())
    ours = torch.autograd.grad(found.score, inputs, upstream, allow_unused=True)
    theirs = torch.autograd.grad(expected[3], inputs, upstream, allow_unused=True)
    assert_close(ours, theirs)


@pytest.mark.parametrize("layer", [TAPooling, TopKPool, SAGPool])
@few
@given(directed_sets())
def test_pooling_keeps_directions_and_weights(layer, drawn):
    batch, x, matrices = chosen(*drawn)
    _, coarse, perm, *_ = layer(4, 0.5).double()(x, batch)
    a = torch.block_diag(*matrices)[perm][:, perm]
    h = torch.randn(len(perm), 3, dtype=torch.float64, requires_grad=True)
    found = propagate(h, coarse, "sum")
    assert_close(found, h + a @ h)
    upstream = torch.randn_like(found)
    (gradient,) = torch.autograd.grad(found, h, upstream)
    assert_close(gradient, upstream + a.T @ upstream)


@few
@given(directed_sets(weighted=True))
def test_pyg_s_convolutions_send_messages_along_the_edges(drawn):
    batch, x, matrices = chosen(*drawn)
    conv = PyGConv(PyGGraphConv, 4, 3).double()
    a = torch.block_diag(*matrices) if batch.weight is not None else (torch.block_diag(*matrices) != 0).double()
    own = conv.conv
    expected = own.lin_rel(a @ x) + own.lin_root(x)
    assert_close(conv(x, batch), torch.nn.functional.leaky_relu(expected))


def test_a_network_passes_its_gradient_check():
    drawn = GraphDataset.from_networkx(
        [nx.DiGraph([(0, 1), (1, 2), (3, 1)]), nx.DiGraph([(1, 0), (2, 0), (0, 3), (3, 4)])], [0, 1], directed=True
    )
    batch = drawn.batch([0, 1])
    for conv in (TAPNet(5, 2, 4, (0.8, 0.6), gate="sigmoid").double().eval().embedding, GINConv(5, 4).double().eval()):
        x = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda rows, conv=conv: conv(rows, batch), (x,))


@few
@given(directed_sets())
def test_a_data_set_gives_its_graphs_back(drawn):
    dataset, matrices, _ = drawn
    again = GraphDataset.from_pyg(list(dataset), features="degrees", directed=True)
    through_networkx = GraphDataset.from_networkx([dataset.to_networkx(i) for i in range(len(dataset))], directed=True)
    for other in (again, through_networkx):
        assert torch.equal(other.rowptr, dataset.rowptr)
        assert torch.equal(other.col, dataset.col)
        assert (other.edge_weight is None) == (dataset.edge_weight is None)
        if other.edge_weight is not None:
            assert torch.equal(other.edge_weight, dataset.edge_weight)
    for i, a in enumerate(matrices):
        source, target = dataset[i].edge_index
        found = torch.zeros_like(a).index_put((target, source), torch.ones(1, dtype=a.dtype))
        assert torch.equal(found, (a != 0).double())
        assert len(dataset.batch([i]).edges_once[0]) == int(((a != 0) | (a.T != 0)).sum()) // 2
