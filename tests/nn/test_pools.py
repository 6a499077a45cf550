"""The other poolings against PyG's layers with the same weights, and DiffPool against its paper's formulas."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv, SAGPooling, TopKPooling, dense_diff_pool

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.diff import DiffPool, diff_pool
from tapnet.nn.pool.sag import SAGPool
from tapnet.nn.pool.select import SelectPooling
from tapnet.nn.pool.sort import SortPool
from tapnet.nn.pool.topk import TopKPool
from tapnet.ops.csr import propagate
from tapnet.ops.readout import readout

CHANNELS = 6


def some_graphs(sizes=(5, 8, 3), seed=0):
    """Random connected graphs as PyG's tensors, in float64."""
    generator = torch.Generator().manual_seed(seed)
    edges, start = [], 0
    for n in sizes:
        for i in range(n):
            for j in range(i):
                if j == i - 1 or torch.rand((), generator=generator) < 0.3:
                    edges += [(start + i, start + j), (start + j, start + i)]
        start += n
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    x = torch.randn(start, CHANNELS, dtype=torch.float64, generator=generator)
    return x, torch.tensor(sorted(edges)).T.contiguous(), batch


def dense_adjacency(edge_index, batch, sizes):
    a = torch.zeros(len(batch), len(batch), dtype=torch.float64)
    a[edge_index[0], edge_index[1]] = 1
    return [a[batch == g][:, batch == g] for g in range(len(sizes))]


def test_topk_is_pygs_with_a_sigmoid():
    x, edge_index, batch = some_graphs()
    ours, theirs = TopKPool(CHANNELS, 0.6).double(), TopKPooling(CHANNELS, 0.6, nonlinearity=torch.sigmoid).double()
    theirs.select.weight.data = ours.projection.data[None].clone()
    pooled = ours(x, GraphBatch.from_edge_index(x, edge_index, batch))
    their_x, _, _, their_batch, perm, _ = theirs(x, edge_index, None, batch)
    order = perm.argsort()
    assert torch.equal(pooled.perm, perm[order])
    torch.testing.assert_close(pooled.x, their_x[order])
    assert torch.equal(pooled.batch.graph, their_batch[order])


def test_sag_is_pygs():
    x, edge_index, batch = some_graphs((5, 8, 6), seed=1)
    closed = torch.eye(len(x)).index_put(tuple(edge_index), torch.tensor(1.0))
    assert len(closed.unique(dim=0)) == len(x)  # two nodes with the same neighbours and themselves would have one score
    ours, theirs = SAGPool(CHANNELS, 0.5).double(), SAGPooling(CHANNELS, 0.5, GNN=GCNConv).double()
    theirs.gnn.lin.weight.data = ours.conv.weight.data.T.clone()
    theirs.gnn.bias.data.fill_(0.25)
    theirs.select.weight.data.fill_(1)  # a number of PyG's own, of which only the sign counts: -1 would keep the worst
    ours.conv.bias.data.fill_(0.25)
    pooled = ours(x, GraphBatch.from_edge_index(x, edge_index, batch))
    their_x, their_edges, _, _, perm, _ = theirs(x, edge_index, None, batch)
    order = perm.argsort()
    assert torch.equal(pooled.perm, perm[order])
    torch.testing.assert_close(pooled.x, their_x[order])
    assert pooled.batch.edge_index.size(1) == their_edges.size(1)


def test_sort_keeps_the_largest_last_channels_as_they_are():
    x, edge_index, batch = some_graphs()
    pooled = SortPool(CHANNELS, 2)(x, GraphBatch.from_edge_index(x, edge_index, batch))
    expected = []
    for g in range(3):
        nodes = (batch == g).nonzero()[:, 0].tolist()
        expected += sorted(sorted(nodes, key=lambda i: -x[i, -1])[:2])
    assert pooled.perm.tolist() == expected
    assert torch.equal(pooled.x, x[expected])


@pytest.mark.parametrize("make", [TopKPool, SAGPool])
def test_gradients_reach_what_ranks(make):
    x, edge_index, batch = some_graphs()
    pool = make(CHANNELS, 0.5).double()
    pool(x, GraphBatch.from_edge_index(x, edge_index, batch)).x.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in pool.parameters())


@pytest.mark.parametrize("make", [TopKPool, SAGPool, SortPool])
def test_rows_that_are_not_there_are_refused(make):
    x, edge_index, batch = some_graphs()
    with pytest.raises(ValueError, match="the graphs have 16 nodes"):
        make(CHANNELS, 0.5).double()(x[:4], GraphBatch.from_edge_index(x, edge_index, batch))


def test_diff_pool_is_the_papers_formulas_and_pygs():
    x, edge_index, batch = some_graphs()
    sizes, k = (5, 8, 3), 4
    logits = torch.randn(len(x), k, dtype=torch.float64)
    pooled, coarse, link, entropy, _ = diff_pool(logits, x, GraphBatch.from_edge_index(x, edge_index, batch))
    links, rows = [], []
    for g, a in enumerate(dense_adjacency(edge_index, batch, sizes)):
        h, s = x[batch == g], torch.softmax(logits[batch == g], dim=1)
        torch.testing.assert_close(pooled.view(3, k, -1)[g], s.T @ h)
        torch.testing.assert_close(coarse.adjacency[g], s.T @ a @ s)
        links.append(torch.linalg.norm(a - s @ s.T) / sizes[g] ** 2)
        rows.append(-(s * s.log()).sum(1))
        their_x, their_a, their_link, their_entropy = dense_diff_pool(h, a, logits[batch == g])
        torch.testing.assert_close(coarse.adjacency[g], their_a[0])
        torch.testing.assert_close(links[-1], their_link)
        torch.testing.assert_close(rows[-1].mean(), their_entropy)
    torch.testing.assert_close(link, torch.stack(links).mean())
    torch.testing.assert_close(entropy, torch.cat(rows).mean())
    # a second time, on weighted graphs
    again = torch.randn(3 * k, 2, dtype=torch.float64)
    twice, _, link, *_ = diff_pool(again, pooled, coarse)
    their_x, _, _, _ = dense_diff_pool(pooled.view(3, k, -1), coarse.adjacency, again.view(3, k, 2))
    torch.testing.assert_close(twice.view(3, 2, -1), their_x)
    s = torch.softmax(again.view(3, k, 2), dim=2)
    formula = torch.linalg.norm(coarse.adjacency - s @ s.transpose(1, 2), dim=(1, 2)) / k**2
    torch.testing.assert_close(link, formula.mean())


def test_diff_pool_has_the_gradient_of_the_formula():
    x, edge_index, batch = some_graphs((4, 3))
    structure = GraphBatch.from_edge_index(x, edge_index, batch)
    logits = torch.randn(len(x), 2, dtype=torch.float64, requires_grad=True)
    h = x.clone().requires_grad_()

    def everything(s, h):
        pooled, coarse, link, entropy, _ = diff_pool(s, h, structure)
        return pooled, coarse.adjacency, link, entropy

    assert torch.autograd.gradcheck(everything, (logits, h))


@pytest.mark.parametrize("norm", ["neighbour", "symmetric", "mean", "sum"])
def test_a_convolution_of_dense_graphs_is_that_of_sparse_ones(norm):
    x, edge_index, batch = some_graphs((4, 4))
    dense = DenseBatch(torch.stack(dense_adjacency(edge_index, batch, (4, 4))))
    sparse = GraphBatch.from_edge_index(x, edge_index, batch)
    for width in (3, 9):  # products before and after the matrix
        conv = GraphConv(CHANNELS, width, norm).double()
        torch.testing.assert_close(conv(x, dense), conv(x, sparse))
    torch.testing.assert_close(readout(x, dense), readout(x, sparse))


def test_weights_of_edges_count_in_products_and_degrees():
    x, edge_index, batch = some_graphs((6,))
    structure = GraphBatch.from_edge_index(x, edge_index, batch)
    a = torch.rand(6, 6, dtype=torch.float64)
    a = (a + a.T) * dense_adjacency(edge_index, batch, (6,))[0]
    weighted = GraphBatch(
        x, structure.y, structure.ptr, structure.rowptr, structure.col, weight=a[structure.edge_index.unbind()]
    )
    for norm in ("neighbour", "symmetric", "mean", "sum"):
        torch.testing.assert_close(propagate(x, weighted, norm), propagate(x, DenseBatch(a[None]), norm))


def test_the_diff_layer_learns_to_predict_links_as_its_authors_program_does():
    x, edge_index, batch = some_graphs()
    graphs, layer = GraphBatch.from_edge_index(x, edge_index, batch), DiffPool(CHANNELS, 4, "neighbour").double()
    torch.testing.assert_close(layer(x, graphs).loss, diff_pool(layer.assign(x, graphs), x, graphs).link)


def test_a_layer_names_what_it_is():
    assert "clusters=3" in repr(DiffPool(4, 3, "neighbour"))
    assert "ratio=0.5" in repr(TopKPool(4, 0.5))


class OwnScores(SelectPooling):
    """Scores as a user may return them."""

    def score(self, h, batch):
        return self.of(h, batch)


@pytest.mark.parametrize(
    "of",
    [lambda h, _: h.sum(1, keepdim=True), lambda _, batch: batch.degree, lambda h, _: h[:, 0] > 0],
    ids=["one column", "whole numbers", "booleans"],
)
def test_scores_may_be_a_column_or_whole_numbers(of):
    x, edge_index, batch = some_graphs((4, 6))
    pool = OwnScores(CHANNELS)
    pool.of = of
    rows, *_, perm, score = pool(x, edge_index, None, batch)
    wanted = of(x, GraphBatch.from_edge_index(x, edge_index, batch)).to(x.dtype).flatten()
    assert torch.equal(score, wanted[perm])
    assert rows.dtype == x.dtype


@pytest.mark.parametrize("of", [lambda h, _: h[:2, 0], lambda h, _: h, lambda h, _: h[:, 0].tolist()])
def test_scores_of_another_shape_are_refused(of):
    x, edge_index, batch = some_graphs((4, 6))
    pool = OwnScores(CHANNELS)
    pool.of = of
    with pytest.raises(ValueError, match="OwnScores.score gives each of the 10 nodes a number"):
        pool(x, edge_index, None, batch)
