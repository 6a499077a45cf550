"""Soft clusters without an n×n matrix against their dense formulas, and PyG's layers where there are any."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import DMoNPooling, MemPooling, dense_mincut_pool

from tapnet._loops.csr import common_neighbors
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.base import PoolSetup
from tapnet.nn.pool.dmon import DMoNPool
from tapnet.nn.pool.hosc import HOSCPool, triangles
from tapnet.nn.pool.just_balance import JustBalancePool
from tapnet.nn.pool.lapool import LaPool
from tapnet.nn.pool.maxcut import MaxCutPool
from tapnet.nn.pool.mem import MemPool
from tapnet.nn.pool.mincut import MinCutPool

D, K = 5, 3
SOFT = [MinCutPool, DMoNPool, JustBalancePool, HOSCPool, MemPool]


def some_graphs(sizes=(6, 9, 4), seed=0, density=0.5):
    """Random graphs in float64: their features, batch, and dense adjacency matrices."""
    generator = torch.Generator().manual_seed(seed)
    dense = []
    for n in sizes:
        upper = (torch.rand(n, n, generator=generator) < density).triu(1).double()
        dense.append(upper + upper.T)
    x = torch.randn(sum(sizes), D, dtype=torch.float64, generator=generator)
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return x, GraphBatch.from_edge_index(x, torch.block_diag(*dense).nonzero().T.contiguous(), graph), dense


def parts(x, batch):
    return [x[first:last] for first, last in zip(batch.ptr[:-1], batch.ptr[1:], strict=True)]


def normalized(a):
    a = a - a.diag().diag()
    root = a.sum(1).sqrt()
    return a / root[:, None] / root[None]


def per_graph(pool, x, batch, dense):
    """S, A and what the layer made, of each graph."""
    pooled = pool(x, batch)
    assert pooled.perm is None
    for g, a in enumerate(dense):
        s = parts(pooled.assignment, batch)[g]
        torch.testing.assert_close(s.sum(1), torch.ones(len(s), dtype=torch.float64))
        yield s, a, pooled.x.view(len(dense), K, -1)[g], pooled.batch.adjacency[g]


def test_mincut_is_pygs():
    x, batch, dense = some_graphs()
    pool = MinCutPool(D, K).double()
    losses = []
    for h, (s, a, rows, coarse) in zip(parts(x, batch), per_graph(pool, x, batch, dense), strict=True):
        their_x, their_a, cut, orthogonality = dense_mincut_pool(h, a, pool.assign(h))
        torch.testing.assert_close(rows, their_x[0])
        torch.testing.assert_close(coarse, their_a[0])
        d = a.sum(1).diag()
        torch.testing.assert_close(cut, -torch.trace(s.T @ a @ s) / torch.trace(s.T @ d @ s))
        losses.append(cut + orthogonality)
    torch.testing.assert_close(pool(x, batch).loss, torch.stack(losses).mean())


def test_dmon_is_pygs():
    x, batch, dense = some_graphs()
    ours, theirs = DMoNPool(D, K).double(), DMoNPooling(D, K).double()
    theirs.mlp.lins[0].weight.data = ours.assign.weight.data.T.clone()
    theirs.mlp.lins[0].bias.data = ours.assign.bias.data.clone()
    losses = []
    for h, (s, a, rows, coarse) in zip(parts(x, batch), per_graph(ours, x, batch, dense), strict=True):
        their_s, their_x, their_a, modularity, _, collapse = theirs(h, a)
        torch.testing.assert_close(s, their_s[0])
        torch.testing.assert_close(rows, their_x[0])
        torch.testing.assert_close(coarse, their_a[0])
        losses.append(modularity + collapse)
    torch.testing.assert_close(ours(x, batch).loss, torch.stack(losses).mean())


def test_just_balance_is_its_formula():
    x, batch, dense = some_graphs()
    pool = JustBalancePool(D, K).double()
    losses = []
    for h, (s, a, rows, coarse) in zip(parts(x, batch), per_graph(pool, x, batch, dense), strict=True):
        torch.testing.assert_close(rows, s.T @ h)
        torch.testing.assert_close(coarse, normalized(s.T @ a @ s))
        losses.append(-(s.T @ s).sqrt().trace() / (len(s) * K) ** 0.5)
    torch.testing.assert_close(pool(x, batch).loss, torch.stack(losses).mean())


def test_hosc_is_its_formula():
    x, batch, dense = some_graphs(density=0.9)
    pool = HOSCPool(D, K, alpha=0.3, mu=0.7).double()
    losses = []
    for h, (s, a, rows, coarse) in zip(parts(x, batch), per_graph(pool, x, batch, dense), strict=True):
        torch.testing.assert_close(rows, s.T @ h)
        torch.testing.assert_close(coarse, normalized(s.T @ a @ s))
        cuts = []
        for m in (a, a @ a * a):
            cuts.append((s.T @ m @ s).diag() / (s.T @ m.sum(1).diag() @ s).diag())
        orthogonality = (K**0.5 - s.norm(dim=0).sum() / len(s) ** 0.5) / (K**0.5 - 1)
        losses.append(-(0.7 * cuts[0] + 0.3 * cuts[1]).mean() + 0.7 * orthogonality)
    torch.testing.assert_close(pool(x, batch).loss, torch.stack(losses).mean())
    # on the dense graphs of a pooling before it
    a = pool(x, batch).batch.adjacency
    torch.testing.assert_close(triangles(DenseBatch(a)).adjacency, a @ a * a)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_triangles_of_edges_are_those_of_the_dense_product(seed, density, weighted):
    _, batch, dense = some_graphs((7, 1, 5), seed, density)
    a = torch.block_diag(*dense)
    if weighted:
        w = torch.rand(len(a), len(a), dtype=torch.float64)
        a = a * (w + w.T)
    weight = a[tuple(batch.edge_index)]
    expected = (a @ a * a)[tuple(batch.edge_index)]
    for count in (common_neighbors, common_neighbors.__wrapped__):
        torch.testing.assert_close(count(batch.rowptr, batch.col, weight), expected)


def test_triangles_of_directed_edges_count_both_ways():
    x = torch.zeros(4, 1)
    one_way = GraphBatch.from_edge_index(x, torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]]))
    found = triangles(one_way)
    assert found.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1], [2, 3], [3, 2]]
    assert found.weight.tolist() == [1, 1, 1, 1, 1, 1, 0, 0]


def test_mem_is_pygs():
    x, batch, _ = some_graphs()
    ours, theirs = MemPool(D, K, heads=4).double(), MemPooling(D, D, heads=4, num_clusters=K).double()
    theirs.k.data = ours.keys.data.clone()
    theirs.conv.weight.data = ours.mix.data.view(1, 4, 1, 1).clone()
    theirs.lin.weight.data = ours.linear.weight.data.T.clone()
    pooled = ours(x, batch)
    their_x, their_s = theirs(x, batch.graph)
    torch.testing.assert_close(pooled.x.view(3, K, D), their_x)
    losses = []
    for g, s in enumerate(parts(pooled.assignment, batch)):
        torch.testing.assert_close(s, their_s[g, : len(s)])
        losses.append(MemPooling.kl_loss(s[None]) / len(s))
    torch.testing.assert_close(pooled.loss, torch.stack(losses).mean())
    assert not pooled.batch.adjacency.any()


@pytest.mark.parametrize("make", [MinCutPool, DMoNPool, JustBalancePool])
def test_the_loss_alone_finds_planted_communities(make):
    torch.manual_seed(0)
    community = torch.arange(45) // 15
    together = community[:, None] == community
    upper = (torch.rand(45, 45) < torch.where(together, 0.6, 0.03)).triu(1)
    adjacency = (upper | upper.T).double()
    near = (adjacency + torch.eye(45)) / (adjacency.sum(1, keepdim=True) + 1)
    x = near @ near  # what two convolutions make of nodes that are all different
    batch = GraphBatch.from_edge_index(x, adjacency.nonzero().T)
    pool = make(45, 3).double()
    optimizer = torch.optim.Adam(pool.parameters(), lr=0.05)
    for _ in range(120):
        optimizer.zero_grad()
        pool(x, batch).loss.backward()
        optimizer.step()
    found = pool(x, batch).assignment.argmax(1)
    assert ((found[:, None] == found) == together).double().mean() > 0.95


def test_lapool_is_its_formula():
    x, batch, dense = some_graphs((9, 12, 1), seed=3, density=0.3)
    pooled = LaPool(D)(x, batch)
    weights = torch.zeros(len(pooled.x), len(pooled.x), dtype=torch.float64)
    weights[tuple(pooled.batch.edge_index)] = pooled.batch.weight
    for g, (h, a) in enumerate(zip(parts(x, batch), dense, strict=True)):
        variation = ((a.sum(1).diag() - a) @ h).norm(dim=1)
        leads = [bool((variation[i] >= variation[a[i] > 0]).all()) for i in range(len(a))]
        leaders = torch.tensor(leads).nonzero()[:, 0]
        s = torch.stack([nearest_on_simplex(torch.cosine_similarity(row[None], h[leaders])) for row in h])
        s[leaders] = torch.eye(len(leaders), dtype=torch.float64)
        first, last = pooled.batch.ptr[g], pooled.batch.ptr[g + 1]
        torch.testing.assert_close(pooled.x[first:last], s.T @ h)
        coarse = s.T @ a @ s
        torch.testing.assert_close(weights[first:last, first:last], coarse - coarse.diag().diag(), atol=1e-4, rtol=0)
        torch.testing.assert_close(parts(pooled.scores, batch)[g], variation)
        assert torch.equal(parts(pooled.assignment, batch)[g][leaders], first + torch.arange(len(leaders)))


def nearest_on_simplex(z):
    """By bisection of the threshold."""
    low, high = z.min() - 1, z.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (z - middle).clamp(min=0).sum() > 1 else (low, middle)
    return (z - low).clamp(min=0)


def test_maxcut_is_its_formula():
    x, batch, dense = some_graphs((9, 6), seed=4, density=0.3)
    pool = MaxCutPool(D, 0.4).double()
    pooled = pool(x, batch)
    losses, first = [], 0
    for g, (h, a) in enumerate(zip(parts(x, batch), dense, strict=True)):
        d = a.sum(1)
        root = torch.where(d > 0, d, 1).rsqrt()
        p = torch.eye(len(a), dtype=torch.float64) * (1 - 2) + 2 * root[:, None] * a * root
        h = pool.embed(h)
        for conv in pool.convs:
            h = torch.tanh(p @ h @ conv.weight + conv.bias)
        for layer in pool.dense[:-1]:
            h = torch.relu(layer(h))
        score = torch.tanh(pool.dense[-1](h))[:, 0]
        torch.testing.assert_close(parts(pooled.scores, batch)[g], score.detach())
        losses.append(score @ a @ score / a.sum())
        kept = score.argsort(descending=True)[: -(-4 * len(a) // 10)].sort().values
        assert torch.equal(pooled.perm[pooled.batch.graph == g], kept + first)
        rows = parts(x, batch)[g][kept] * score[kept, None]
        torch.testing.assert_close(pooled.x[pooled.batch.graph == g], rows)
        graph = nx.from_numpy_array(a.numpy())
        for node, cluster in enumerate(parts(pooled.assignment, batch)[g]):
            lengths = nx.single_source_shortest_path_length(graph, node)
            mine = int(pooled.perm[cluster] - first)
            near = [lengths[int(k)] for k in kept if int(k) in lengths]
            assert lengths[mine] == min(near) if near else mine == kept[0]
        first += len(a)
    torch.testing.assert_close(pooled.loss, torch.stack(losses).mean())
    between = batch.graph.new_zeros(len(pooled.x), len(pooled.x))
    ends = pooled.assignment[batch.edge_index]
    between.index_put_(tuple(ends), torch.ones_like(ends[0]), accumulate=True).fill_diagonal_(0)
    assert torch.equal(pooled.batch.edge_index, between.nonzero().T)
    assert pooled.batch.weight.tolist() == between[tuple(between.nonzero().T)].tolist()


@pytest.mark.parametrize("make", [*SOFT, MaxCutPool])
def test_gradients_of_the_loss_are_right(make):
    x, batch, _ = some_graphs((4, 5), seed=2, density=0.7)
    pool = make(D).double() if make is MaxCutPool else make(D, K).double()
    names, values = zip(*pool.named_parameters(), strict=True)

    def loss(x, *values):
        return torch.func.functional_call(pool, dict(zip(names, values, strict=True)), (x, batch)).loss

    inputs = (x.requires_grad_(), *(v.detach().requires_grad_() for v in values))
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=make is MaxCutPool)  # which has thousands of parameters


@pytest.mark.parametrize("make", SOFT)
@pytest.mark.parametrize("clusters", [1, 4])
def test_two_levels_without_edges_or_of_one_node_have_finite_gradients(make, clusters):
    x, batch, _ = some_graphs((1, 4, 3), density=0.0)
    x.requires_grad_()
    first, second = make(D, clusters).double(), make(D, clusters).double()
    middle = first(x, batch)
    last = second(middle.x, middle.batch)
    (middle.loss + last.loss + last.x.square().sum() + last.batch.adjacency.sum()).backward()
    for grad in [x.grad, *(p.grad for p in (*first.parameters(), *second.parameters()) if p.grad is not None)]:
        assert grad.isfinite().all()
        assert grad.abs().max() < 1e6


def test_the_number_of_clusters_is_that_of_a_mean_graph():
    setup = PoolSetup(D, (0.8, 0.5), level=1, mean_nodes=18.0)
    for make in SOFT:
        assert make.build(setup).clusters == 8  # ⌈18 · 0.8 · 0.5⌉
        with pytest.raises(SettingError, match="mean_nodes"):
            make.build(PoolSetup(D, (0.8,)))
        with pytest.raises(SettingError, match="at least 1"):
            make(D, 0)
    assert MinCutPool.build(PoolSetup(D, (0.5, 3), level=1, mean_nodes=18.0)).clusters == 3
