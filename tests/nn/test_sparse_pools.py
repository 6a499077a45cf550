"""Poolings of sparse graphs against PyG's layers with the same weights, and against their formulas."""

from __future__ import annotations

import copy

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch_geometric.nn import ASAPooling, EdgePooling, GraphMultisetTransformer, Set2Set
from torch_geometric.nn.pool import ClusterPooling
from torch_geometric.utils import softmax

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.asap import ASAPool
from tapnet.nn.pool.base import PoolSetup
from tapnet.nn.pool.cluster import ClusterPool
from tapnet.nn.pool.complement import ComplementPool
from tapnet.nn.pool.degree import DegreePool
from tapnet.nn.pool.edge import EdgePool
from tapnet.nn.pool.gmt import GMTPool
from tapnet.nn.pool.graclus import GraclusPool
from tapnet.nn.pool.kmis import KMISPool
from tapnet.nn.pool.ndp import NDPPool
from tapnet.nn.pool.none import NoPool
from tapnet.nn.pool.pan import PANPool
from tapnet.nn.pool.random import RandomClustersPool, RandomPool
from tapnet.nn.pool.registry import POOLS, resolve
from tapnet.nn.pool.set2set import Set2SetPool
from tests.helpers.batches import CHANNELS, random_batch

NAMES = ("asap", "edge", "graclus", "ndp", "kmis", "pan", "cluster", "gmt", "set2set")
CONTROLS = ("random", "random-fixed", "degree", "random-clusters", "complement")


def make(name, ratio=0.5):
    return resolve(name).build(PoolSetup(CHANNELS, (ratio,), mean_nodes=6.0)).double()


def graphs(sizes=(5, 8, 3, 1), seed=0, density=2.0):
    x, edge_index, batch = random_batch(sizes, density, seed, directed=False)
    return x, GraphBatch.from_edge_index(x, edge_index, batch)


def adjacency(batch):
    a = torch.zeros(batch.num_nodes, batch.num_nodes, dtype=torch.float64)
    a[tuple(batch.edge_index)] = 1.0 if batch.weight is None else batch.weight.double()
    return a


# ---- what all do ----


@pytest.mark.parametrize("name", [*NAMES, *CONTROLS])
def test_a_layer_says_what_it_is(name):
    cls = POOLS[name]
    assert cls.about
    assert cls.cost.startswith("O(")
    assert cls.memory.startswith("O(")
    assert cls.year is None or 2007 <= cls.year <= 2024
    assert name in ("random", "random-fixed", "degree") or (cls.paper and cls.year)
    assert str(CHANNELS) in repr(make(name)) or name in ("gmt", "set2set")


@pytest.mark.parametrize("name", [*NAMES, *CONTROLS])
def test_rows_that_are_not_there_and_dense_graphs_are_refused(name):
    x, batch = graphs()
    with pytest.raises(ValueError, match="the graphs have 17 nodes"):
        make(name)(x[:4], batch)
    with pytest.raises(ValueError, match="sparse graphs"):
        make(name)(x[:4], DenseBatch(torch.ones(2, 2, 2, dtype=torch.float64)))


@pytest.mark.parametrize("name", ["asap", "edge", "kmis", "pan", "cluster"])
def test_half_precision_is_computed_in_full(name):
    torch.manual_seed(0)
    pool, (x, batch) = resolve(name)(CHANNELS), graphs()
    with torch.autocast("cpu", torch.bfloat16):
        pooled = pool(x.bfloat16(), batch)
    assert torch.isfinite(pooled.x).all()
    assert torch.equal(pooled.batch.ptr, pool(x.bfloat16().float(), batch).batch.ptr)


# ---- each by its formula ----


def by_first_member(cluster, rows):
    """PyG's clusters in the order of their first nodes."""
    order = sorted(range(len(rows)), key=lambda c: int((cluster == c).nonzero()[0]))
    return rows[order]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_edge_is_pygs(seed):
    x, batch = graphs((7, 9, 1), seed, density=3.0)
    torch.manual_seed(seed)
    ours, theirs = EdgePool(CHANNELS).double(), EdgePooling(CHANNELS).double()
    theirs.lin.weight.data = ours.lin.weight.data.clone()
    source, target = batch.edge_index
    scores = softmax(theirs.lin(torch.cat([x[source], x[target]], dim=1))[:, 0], target)
    assume(scores.sort().values.diff().min() > 1e-9)  # of ties PyG takes what its sort has first
    pooled = ours(x, batch)
    rows, edge_index, _, info = theirs(x, batch.edge_index, batch.graph)
    torch.testing.assert_close(pooled.x, by_first_member(info.cluster, rows))
    ends = edge_index[:, edge_index[0] != edge_index[1]]
    assert pooled.batch.edge_index.size(1) == ends.size(1)
    assert pooled.batch.weight is None
    same = pooled.assignment[:, None] == pooled.assignment
    assert torch.equal(same, info.cluster[:, None] == info.cluster)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_cluster_is_pygs(seed):
    x, batch = graphs((7, 9, 1), seed, density=1.0)
    torch.manual_seed(seed)
    x, ours, theirs = x.float(), ClusterPool(CHANNELS), ClusterPooling(CHANNELS)  # PyG's takes no others
    theirs.lin.load_state_dict(ours.lin.state_dict())
    if not len(batch.col):
        return  # PyG's fails
    pooled = ours(x, batch)
    rows, edge_index, graph, info = theirs(x, batch.edge_index, batch.graph)
    torch.testing.assert_close(pooled.x, by_first_member(info.cluster, rows), rtol=1e-4, atol=1e-4)
    assert pooled.batch.edge_index.size(1) == edge_index.size(1)
    assert torch.equal(pooled.batch.graph, by_first_member(info.cluster, graph))


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_asap_is_pygs(seed):
    x, batch = graphs((7, 9, 1), seed)
    torch.manual_seed(seed)
    ours, theirs = ASAPool(CHANNELS, 0.6).double(), ASAPooling(CHANNELS, 0.6).double()
    theirs.lin.load_state_dict(ours.lin.state_dict())
    theirs.att.load_state_dict(ours.att.state_dict())
    for name, layer in (("lin1", ours.neighbor), ("lin2", ours.centre), ("lin3", ours.own)):
        getattr(theirs.gnn_score, name).load_state_dict(layer.state_dict())
    theirs.select.weight.data.fill_(1)
    pooled = ours(x, batch)
    weight = torch.ones(len(batch.col), dtype=torch.float64)
    rows, edge_index, edge_weight, _, perm = theirs(x, batch.edge_index, weight, batch.graph)
    order = perm.argsort()
    if not torch.equal(perm[order], pooled.perm):  # nodes with the same neighbourhood have the same score
        assert pooled.scores.sort().values.diff().min() < 1e-12
        return
    torch.testing.assert_close(pooled.x, rows[order])
    a = torch.zeros(len(perm), len(perm), dtype=torch.float64)
    a[tuple(edge_index)] = edge_weight.detach()
    torch.testing.assert_close(adjacency(pooled.batch), a[order][:, order], rtol=1e-6, atol=1e-7)


def test_pan_ranks_by_the_formula():
    x, batch = graphs((6, 4))
    pool, a = PANPool(CHANNELS, 0.5, filter_size=3).double(), adjacency(batch)
    with torch.no_grad():
        pool.energy.uniform_(0, 1)
        pool.projection.normal_()
    weights = torch.exp(-pool.energy)
    paths = sum(w * torch.linalg.matrix_power(a, power) for power, w in enumerate(weights))
    root = paths.sum(1).rsqrt()
    m = root[:, None] * paths * root
    expected = pool.beta[0] * (x @ pool.projection) + pool.beta[1] * m.sum(1)
    pooled = pool(x, batch)
    torch.testing.assert_close(pooled.scores, expected.detach())
    torch.testing.assert_close(pooled.x, x[pooled.perm] * torch.tanh(expected[pooled.perm, None]))
    torch.testing.assert_close(torch.exp(-PANPool(3).energy), torch.tensor([0.5, 0.25, 0.125]))
    with pytest.raises(SettingError, match="filter_size"):
        PANPool(3, filter_size=0)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_kmis_takes_nodes_by_the_definition(seed, k):
    x, batch = graphs((9, 6), seed, density=1.2)
    torch.manual_seed(seed)
    pool, a = KMISPool(CHANNELS, k).double(), adjacency(batch)
    pooled = pool(x, batch)
    score = torch.sigmoid(pool.lin(x))[:, 0].detach()
    near = torch.linalg.matrix_power(a + torch.eye(len(a), dtype=a.dtype), k)
    taken: list[int] = []
    for i in torch.argsort(score / near.sum(1), descending=True).tolist():
        if all(near[i, j] == 0 for j in taken):
            taken.append(i)
    first = [next(j for j in taken if near[i, j] > 0) for i in range(len(x))]
    assert [sorted(taken)[c] for c in pooled.assignment.tolist()] == first
    s = torch.zeros(len(x), len(taken), dtype=a.dtype)
    s[torch.arange(len(x)), pooled.assignment] = 1
    torch.testing.assert_close(pooled.x.detach(), (s * score[:, None]).T @ x)
    torch.testing.assert_close(adjacency(pooled.batch), (s.T @ a @ s).fill_diagonal_(0))


def test_kmis_needs_a_step():
    with pytest.raises(SettingError, match="k is"):
        KMISPool(4, k=0)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.booleans())
def test_graclus_matches_by_the_definition(seed, weighted):
    x, batch = graphs((9, 6), seed, density=1.5)
    a = adjacency(batch)
    if weighted:
        w = torch.rand(a.shape, dtype=a.dtype, generator=torch.Generator().manual_seed(seed)).float().double()
        a = a * (w + w.T)
        batch = GraphBatch(
            batch.x, batch.y, batch.ptr, batch.rowptr, batch.col, weight=a[tuple(batch.edge_index)].float()
        )
        a = adjacency(batch)
    degree = batch.row_sum.double()
    free, partner = set(range(len(x))), {}
    for i in sorted(range(len(x)), key=lambda i: (degree[i], i)):
        if i not in free:
            continue
        free.remove(i)
        near = [j for j in sorted(free) if a[i, j] > 0]
        if near:
            j = max(near, key=lambda j: (float(a[i, j] * (1 / degree[i] + 1 / degree[j])), -j))
            free.remove(j)
            partner[i], partner[j] = j, i
    pooled = GraclusPool(CHANNELS)(x, batch)
    for i in range(len(x)):
        together = (pooled.assignment == pooled.assignment[i]).nonzero()[:, 0].tolist()
        assert together == sorted({i, partner.get(i, i)})
    torch.testing.assert_close(pooled.x[pooled.assignment[0]], torch.maximum(x[0], x[partner.get(0, 0)]))
    s = torch.nn.functional.one_hot(pooled.assignment).double()
    torch.testing.assert_close(adjacency(pooled.batch), (s.T @ a @ s).fill_diagonal_(0), rtol=1e-5, atol=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_complement_matches_nodes_that_are_not_linked(seed):
    x, batch = graphs((9, 6, 1), seed, density=2.5)
    pooled, a = ComplementPool(CHANNELS)(x, batch), adjacency(batch)
    cluster, size = pooled.assignment, torch.bincount(pooled.assignment)
    assert size.max() <= 2
    linked = (cluster[:, None] == cluster) & (a > 0)
    assert not linked.any()
    single = (size[cluster] == 1).nonzero()[:, 0]  # of one graph: all linked to each other, or they would be a pair
    for i in single:
        for j in single:
            assert i == j or batch.graph[i] != batch.graph[j] or a[i, j] > 0


def test_random_keeps_nodes_anew_in_training_and_the_same_in_evaluation():
    x, batch = graphs((20, 30))
    for pool in (RandomPool(CHANNELS, 0.4), RandomClustersPool(CHANNELS, 0.4)):
        what = "perm" if isinstance(pool, RandomPool) else "assignment"
        torch.manual_seed(0)
        first, second = (getattr(pool.train()(x, batch), what) for _ in range(2))
        assert not torch.equal(first, second)
        torch.manual_seed(0)
        assert torch.equal(getattr(pool(x, batch), what), first)
        state = torch.get_rng_state()
        fixed = [getattr(copy.deepcopy(pool).eval()(x, batch), what) for _ in range(2)]
        assert torch.equal(*fixed)
        assert torch.equal(torch.get_rng_state(), state)
        other = type(pool)(CHANNELS, 0.4, seed=1).eval()
        assert not torch.equal(getattr(other(x, batch), what), fixed[0])
    pooled = RandomPool(CHANNELS, 0.4).eval()(x, batch)
    assert pooled.batch.nodes_per_graph.tolist() == [8, 12]
    assert torch.equal(pooled.x, x[pooled.perm])
    pooled = RandomClustersPool(CHANNELS, 0.3)(x, batch)
    assert torch.bincount(pooled.assignment).tolist() == [4, 4, 3, 3, 3, 3] + [4, 4, 4] + [3] * 6
    assert torch.equal(pooled.batch.graph[pooled.assignment], batch.graph)


def test_random_fixed_keeps_the_same_nodes_in_training():
    x, batch = graphs((20, 30))
    pool = resolve("random-fixed").build(PoolSetup(CHANNELS, (0.4, 0.4), level=1))
    kept = RandomPool(CHANNELS, 0.4, seed=1).eval()(x, batch).perm
    assert torch.equal(pool.train()(x, batch).perm, kept)
    assert torch.equal(pool.eval()(x, batch).perm, kept)


def test_degree_keeps_the_nodes_with_the_most_neighbours():
    x, batch = graphs((7, 9), density=3.0)
    pooled = DegreePool(CHANNELS, 3)(x, batch)
    for g in range(2):
        degree = batch.degree[batch.graph == g].sort(descending=True).values[:3]
        assert (
            batch.degree[pooled.perm[pooled.batch.graph == g]].sort(descending=True).values.tolist() == degree.tolist()
        )
    assert torch.equal(pooled.x, x[pooled.perm])


def test_ndp_cuts_bipartite_graphs_and_reduces_by_krons_formula():
    graph = nx.grid_2d_graph(3, 4)
    a = torch.from_numpy(nx.to_numpy_array(graph))
    x = torch.randn(12, CHANNELS, dtype=torch.float64)
    batch = GraphBatch.from_edge_index(x, a.nonzero().T)
    pooled = NDPPool(CHANNELS)(x, batch)
    side = [i for i, (r, c) in enumerate(graph) if (r + c) % 2 == 0]
    assert pooled.perm.tolist() == side
    assert torch.equal(pooled.x, x[side])
    rest = [i for i in range(12) if i not in side]
    laplacian = torch.diag(a.sum(1)) - a
    inverse = torch.linalg.inv(laplacian[rest][:, rest])
    reduced = laplacian[side][:, side] - laplacian[side][:, rest] @ inverse @ laplacian[rest][:, side]
    expected = (-reduced).fill_diagonal_(0)
    expected[expected < 0.01] = 0
    torch.testing.assert_close(adjacency(pooled.batch), expected, rtol=1e-5, atol=1e-6)


def test_ndp_of_a_large_graph_is_that_of_a_small_one(monkeypatch):
    """The sparse way and the dense way agree; a chain goes on from step to step."""
    from tapnet.ops import decimation

    graph = nx.barabasi_albert_graph(60, 2, seed=1)
    sparse = nx.to_scipy_sparse_array(graph, dtype=float, format="csr")
    dense = decimation.decimated(sparse, 2)
    monkeypatch.setattr(decimation, "DENSE_UP_TO", 8)
    for (kept, small), (also, large) in zip(dense, decimation.decimated(sparse, 2), strict=True):
        assert kept.tolist() == also.tolist()
        np.testing.assert_allclose(small, large.toarray(), atol=1e-8)
    assert 20 < len(dense[0][0]) < 40
    x = torch.randn(60, CHANNELS)
    ends = torch.tensor(list(graph.edges)).T
    batch = GraphBatch.from_edge_index(x, torch.cat([ends, ends.flip(0)], dim=1))
    layers = [NDPPool(CHANNELS, (0.5, 0.5), level) for level in range(2)]
    first = layers[0](x, batch)
    second = layers[1](first.x, first.batch)
    assert second.perm.tolist() == dense[1][0].tolist()
    torch.testing.assert_close(second.x, x[dense[0][0]][dense[1][0]])


def test_readouts_are_pygs_and_stand_at_the_end_of_a_network():
    x, batch = graphs((5, 8, 3))
    torch.manual_seed(0)
    for pool, theirs in (
        (Set2SetPool(CHANNELS), Set2Set(CHANNELS, 3)),
        (GMTPool(CHANNELS, 2), GraphMultisetTransformer(CHANNELS, 2)),
    ):
        theirs.load_state_dict(pool.aggr.state_dict())
        pooled = pool.double()(x, batch)
        torch.testing.assert_close(pooled.x, theirs.double()(x, batch.graph, dim_size=3))
        assert pooled.batch.ptr.tolist() == [0, 1, 2, 3]
        assert torch.equal(pooled.assignment, batch.graph)
        pooled.x.square().sum().backward()
        assert any(p.grad.abs().max() > 0 for p in pool.parameters())
    layers = [Set2SetPool.build(PoolSetup(4, (0.5, 0.5), level)) for level in range(2)]
    assert [type(layer) for layer in layers] == [NoPool, Set2SetPool]
    assert GMTPool.build(PoolSetup(4, (0.5,), mean_nodes=17.9)).k == 5
    with pytest.raises(SettingError, match="mean_nodes"):
        GMTPool.build(PoolSetup(4, (0.5,)))
