"""Chains of coarser graphs, the bases of EigenPooling and HaarPooling, and their layers, against dense formulas."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from tapnet import load_dataset
from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.nn.pool import chain as chain_module
from tapnet.nn.pool.chain import chain_sizes, make_chain
from tapnet.nn.pool.eigen import EigenPool
from tapnet.nn.pool.haar import HaarPool
from tapnet.nn.pool.select import kept_nodes
from tapnet.ops import spectral as spectral_module
from tapnet.ops.csr import propagate
from tapnet.ops.spectral import (
    cluster_vectors,
    coarsened,
    edges_between,
    eigen_matrix,
    eigenvectors,
    haar_basis,
    haar_matrices,
    local_haar_basis,
    spectral_clusters,
)
from tests.helpers import dense
from tests.helpers.batches import batches, graphs_of


def random_graph(n, density, seed):
    """Weighted, symmetric, in any number of pieces."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1) * rng.integers(1, 4, (n, n))
    return (upper + upper.T).astype(float)


graphs = st.builds(random_graph, st.integers(1, 14), st.floats(0, 0.7), st.integers(0, 10**6))

ODD = {
    "one node": np.zeros((1, 1)),
    "two nodes": np.zeros((2, 2)),
    "an edge": np.ones((2, 2)) - np.eye(2),
    "no edges": np.zeros((7, 7)),
    "isolated": np.pad(nx.to_numpy_array(nx.path_graph(4)), (1, 3)),
    "pieces": nx.to_numpy_array(nx.disjoint_union_all([nx.cycle_graph(4), nx.star_graph(5), nx.path_graph(3)])),
    "star": nx.to_numpy_array(nx.star_graph(11)),
    "cycle": nx.to_numpy_array(nx.cycle_graph(12)),
    "complete": nx.to_numpy_array(nx.complete_graph(9)),
}


def omega(label, clusters):
    """[n, K]: 1 where a node is in a cluster."""
    return (label[:, None] == np.arange(clusters)).astype(float)


# ---- the chain ----


@given(graphs, st.floats(0.01, 1))
def test_there_are_as_many_clusters_as_asked_for_and_none_is_empty(a, share):
    clusters = int(np.ceil(share * len(a)))
    label = spectral_clusters(a, clusters)
    assert sorted(set(label)) == list(range(clusters))


@pytest.mark.parametrize("name", ODD)
def test_odd_graphs_have_chains_of_every_length(name):
    a = ODD[name]
    for first in range(1, len(a) + 1):
        chain = coarsened(a, [first, 1])
        assert np.bincount(chain[0].label, minlength=first).min() >= 1
        assert chain[1].adjacency.shape == (1, 1)
    assert np.array_equal(np.sort(coarsened(a, [len(a)])[0].label), np.arange(len(a)))


@given(graphs)
def test_as_many_clusters_as_components_are_the_components(a):
    count, component = connected_components(a, directed=False)
    label = spectral_clusters(a, count)
    together = component[:, None] == component
    assert np.array_equal(label[:, None] == label, together)


def test_it_finds_groups_that_are_there():
    a = nx.to_numpy_array(nx.connected_caveman_graph(6, 5))
    label = spectral_clusters(a, 6)
    assert np.array_equal(label[:, None] == label, np.kron(np.eye(6), np.ones((5, 5))) == 1)


@given(graphs, st.floats(0.01, 1))
def test_the_coarser_graph_has_the_edges_between_the_clusters(a, share):
    clusters = int(np.ceil(share * len(a)))
    (step,) = coarsened(a, [clusters])
    external = np.where(step.label[:, None] == step.label, 0, a)  # A_ext
    o = omega(step.label, clusters)
    assert np.array_equal(step.adjacency, o.T @ external @ o)
    assert (np.diff(step.adjacency.sum(axis=1)) <= 0).all()  # degrees, highest first


@pytest.mark.parametrize("name", ["star", "cycle", "complete", "pieces", "no edges"])
def test_rounding_does_not_choose_the_eigenvectors(name):
    """All of these have repeated eigenvalues: a change of the last digit would turn their vectors at will."""
    a = ODD[name]
    laplacian = np.diag(a.sum(axis=1)) - a
    noise = 1e-15 * random_graph(len(a), 1.0, 0)
    np.testing.assert_allclose(eigenvectors(laplacian), eigenvectors(laplacian + noise), atol=1e-5)
    for clusters in range(1, len(a) + 1):
        assert np.array_equal(spectral_clusters(a, clusters), spectral_clusters(a + noise * a, clusters))


# ---- EigenPooling ----


@given(graphs, st.floats(0.01, 1), st.integers(1, 4))
def test_eigen_bases_are_orthonormal_and_keep_a_constant(a, share, vectors):
    (step,) = coarsened(a, [int(np.ceil(share * len(a)))])
    clusters = len(step.adjacency)
    matrix = eigen_matrix(a, step, vectors).toarray().reshape(clusters, vectors, len(a))
    theta = matrix.transpose(1, 2, 0)  # Θ_l [n, K]
    size = np.bincount(step.label, minlength=clusters)
    for k in range(vectors):
        for m in range(vectors):
            defined = np.diag((size > k).astype(float)) if k == m else np.zeros((clusters, clusters))
            np.testing.assert_allclose(theta[k].T @ theta[m], defined, atol=1e-10)
    one = np.ones(len(a))
    np.testing.assert_allclose(theta[0] @ theta[0].T @ one, one, atol=1e-7)
    assert ((theta != 0) <= omega(step.label, clusters)).all()  # nothing outside a vector's own cluster


@given(graphs, st.floats(0.01, 1), st.integers(2, 5))
def test_cluster_vectors_are_those_of_the_clusters_laplacians(a, share, vectors):
    label = spectral_clusters(a, int(np.ceil(share * len(a))))
    theta = cluster_vectors(a, label, vectors)
    for cluster in np.unique(label):
        nodes = np.flatnonzero(label == cluster)
        inside = a[np.ix_(nodes, nodes)]
        laplacian = np.diag(inside.sum(axis=1)) - inside
        used = theta[nodes, : len(nodes)]
        values = np.einsum("il,ij,jl->l", used, laplacian, used)
        np.testing.assert_allclose(laplacian @ used, used * values, atol=1e-4)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(laplacian)[: used.shape[1]], atol=1e-4)
        assert not theta[nodes, len(nodes) :].any()


def test_eigen_vectors_of_a_path_by_hand():
    """Two clusters: a path of three nodes and a single node."""
    a = nx.to_numpy_array(nx.path_graph(4))
    theta = cluster_vectors(a, np.array([0, 0, 0, 1]), 3)
    path = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]).T / np.sqrt([3, 2, 6])
    np.testing.assert_allclose(theta, np.vstack([path, [1, 0, 0]]), atol=1e-4)
    np.testing.assert_array_equal(edges_between(a, np.array([0, 0, 0, 1]), 2), [[0, 1], [1, 0]])


def test_of_a_cluster_in_two_pieces_too_the_first_vector_is_the_constant():
    a = np.kron(np.eye(2), np.ones((60, 60)) - np.eye(60))
    theta = cluster_vectors(a, np.zeros(120, int), 2)
    np.testing.assert_allclose(theta[:, 0], 120**-0.5, rtol=1e-12)
    np.testing.assert_allclose(theta[:, 1], np.repeat([1, -1], 60) * 120**-0.5, rtol=1e-4)


# ---- HaarPooling ----


def test_haar_basis_by_hand():
    """Four nodes in two pairs, the pairs in one: the Haar wavelets that everybody knows."""
    pairs, whole = np.array([0, 0, 1, 1]), np.array([0, 0])
    coarse = haar_basis(whole, local_haar_basis(1))
    r = np.sqrt(0.5)
    np.testing.assert_allclose(coarse, [[r, r], [r, -r]])
    expected = np.array([[0.5, 0.5, r, 0], [0.5, 0.5, -r, 0], [0.5, -0.5, 0, r], [0.5, -0.5, 0, -r]])
    np.testing.assert_allclose(haar_basis(pairs, coarse), expected)
    phi = haar_matrices([pairs, whole], 1)
    np.testing.assert_allclose(phi[0], expected[:, :2])
    np.testing.assert_allclose(phi[1], coarse[:, :1])


def test_the_local_basis_is_the_formula_of_the_paper():
    n = 6
    basis, chi = local_haar_basis(n), np.eye(n)
    np.testing.assert_allclose(basis[:, 0], n**-0.5)
    for k in range(2, n + 1):  # u_k = √((n-k+1)/(n-k+2)) (χ_{k-1} - (Σ_{j≥k} χ_j) / (n-k+1))
        rest = n - k + 1
        expected = np.sqrt(rest / (rest + 1)) * (chi[k - 2] - chi[k - 1 :].sum(axis=0) / rest)
        np.testing.assert_allclose(basis[:, k - 1], expected)


@given(graphs, st.floats(0.2, 1), st.floats(0.2, 1))
def test_haar_bases_are_orthonormal_and_keep_what_is_constant_in_each_cluster(a, first, second):
    n = len(a)
    counts = [int(np.ceil(first * n)), int(np.ceil(second * np.ceil(first * n)))]
    chain = coarsened(a, counts)
    labels = [step.label for step in chain]
    basis = local_haar_basis(counts[-1])
    for label, phi in zip(reversed(labels), reversed(haar_matrices(labels, counts[-1])), strict=True):
        clusters = len(basis)
        basis = haar_basis(label, basis)
        np.testing.assert_allclose(basis.T @ basis, np.eye(len(label)), atol=1e-10)  # square: complete
        np.testing.assert_allclose(phi, basis[:, :clusters])
        signal = np.random.default_rng(0).normal(size=clusters)[label]
        np.testing.assert_allclose(phi @ phi.T @ signal, signal, atol=1e-10)
        np.testing.assert_allclose(phi @ phi.T @ np.ones(len(label)), 1, atol=1e-10)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 3))
def test_of_clusters_of_one_size_the_first_haar_coefficient_is_the_constant(factors, coarsest):
    """The first vector is 1/√n where the clusters of each step are equally large; else it is so at the last step."""
    labels, n = [], coarsest
    for factor in factors:
        labels.insert(0, np.random.default_rng(n).permutation(np.repeat(np.arange(n), factor)))
        n *= factor
    for label, phi in zip(labels, haar_matrices(labels, coarsest), strict=True):
        coefficients = phi.T @ np.ones(len(label))
        np.testing.assert_allclose(coefficients[0], np.sqrt(len(label)))
        np.testing.assert_allclose(coefficients[1:], 0, atol=1e-10)
    (phi,) = haar_matrices([np.zeros(5, int)], 1)
    np.testing.assert_allclose(phi, 5**-0.5 * np.ones((5, 1)))


# ---- the layers ----


def layers(kind, channels, ratios):
    if kind == "eigen":
        widths = [channels * 2**level for level in range(len(ratios))]
        return [EigenPool(width, ratios, level, vectors=2) for level, width in enumerate(widths)]
    return [HaarPool(channels, ratios, level) for level in range(len(ratios))]


def dense_pooled(kind, h, a, ratios):
    """The features and graphs of every level, dense."""
    counts = [int(kept_nodes(ratios[0], torch.tensor(len(a))))]
    for ratio in ratios[1:]:
        counts.append(int(kept_nodes(ratio, torch.tensor(counts[-1]))))
    chain = coarsened(np.maximum(a, a.T), counts)
    haar = haar_matrices([step.label for step in chain], counts[-1])
    finer = np.maximum(a, a.T)
    for step, phi in zip(chain, haar, strict=True):
        if kind == "haar":
            h = torch.from_numpy(phi).T @ h
        else:
            theta = cluster_vectors(finer, step.label, 2)
            o = omega(step.label, len(step.adjacency))
            h = torch.cat([torch.from_numpy(o * theta[:, [k]]).T @ h for k in range(2)], dim=1)
        finer = step.adjacency
        yield h, torch.from_numpy(step.adjacency)


@given(batches, st.sampled_from(["eigen", "haar"]), st.sampled_from([(0.5, 0.5), (0.8, 0.6, 1), (1.0, 3), (1,)]))
@settings(max_examples=40)
def test_layers_equal_the_dense_products_and_so_do_their_gradients(graphs, kind, ratios):
    x, edge_index, batch = graphs
    x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
    structure = GraphBatch.from_edge_index(x, edge_index, batch)
    expected = [list(dense_pooled(kind, h, a.numpy(), ratios)) for _, h, a in graphs_of(x2, edge_index, batch)]
    h, total = x1, 0.0
    for level, pool in enumerate(layers(kind, x.size(1), ratios)):
        h, structure, *_ = pool(h, structure)
        assert h.size(1) == pool.out_channels
        rows, matrices = zip(*(graph[level] for graph in expected), strict=True)
        torch.testing.assert_close(h, torch.cat(rows), rtol=1e-5, atol=1e-5)
        block = torch.block_diag(*matrices)
        torch.testing.assert_close(propagate(h, structure, "mean"), dense.propagate(h, block, "mean"))
        assert structure.nodes_per_graph.tolist() == [len(matrix) for matrix in matrices]
        weights = torch.rand(h.shape, dtype=torch.float64)
        total = total + (h * weights).sum() - (torch.cat(rows) * weights).sum()
    total.backward()
    torch.testing.assert_close(x1.grad, -x2.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["eigen", "haar"])
def test_gradcheck_of_the_pooling_product(kind):
    edge_index = torch.tensor(np.array(nx.to_numpy_array(nx.barbell_graph(4, 2)).nonzero()))
    batch = GraphBatch.from_edge_index(torch.zeros(11, 1), edge_index, torch.tensor([0] * 10 + [1]))
    pool = layers(kind, 3, (0.5, 1))[0]
    h = torch.randn(11, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: pool(h, batch).x, (h,))


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


@pytest.mark.parametrize("kind", ["eigen", "haar"])
def test_what_was_prepared_equals_what_is_computed_for_the_batch(mutag, kind):
    ratios = (0.6, 0.5, 1)
    ready = EigenPool.prepare(mutag, ratios, 2) if kind == "eigen" else HaarPool.prepare(mutag, ratios)
    chosen = [5, 170, 5, 33]
    prepared, plain = ready.batch(chosen), mutag.batch(chosen)
    assert set(prepared.prepared) == {kind}
    assert not plain.prepared
    h1 = h2 = torch.randn(plain.num_nodes, 3)
    for pool in layers(kind, 3, ratios):
        h1, prepared, *_ = pool(h1, prepared)
        h2, plain, *_ = pool(h2, plain)
        assert torch.equal(h1, h2)
        for key in ("ptr", "rowptr", "col", "weight"):
            assert torch.equal(getattr(prepared, key), getattr(plain, key))
        assert (prepared.ptr.dtype, prepared.rowptr.dtype, prepared.col.dtype) == (
            torch.int64,
            torch.int32,
            torch.int32,
        )
    assert plain.num_nodes == 4


def test_sizes_are_those_of_the_other_poolings(mutag):
    chain = make_chain("haar", (0.8, 0.6, 7))
    sizes = chain_sizes(chain, mutag.nodes_per_graph)
    ready = HaarPool.prepare(mutag, chain.ratios).batch(range(len(mutag)))
    expected = mutag.nodes_per_graph
    for i, ratio in enumerate(chain.ratios):
        expected = kept_nodes(ratio, expected)
        assert torch.equal(sizes[i + 1], expected)
        assert torch.equal(ready.prepared["haar"].levels[i].ptr.diff(), expected)


def test_a_second_time_nothing_is_computed(mutag, monkeypatch):
    first = EigenPool.prepare(mutag, (0.3, 1), 2)
    monkeypatch.setattr(chain_module, "chain_arrays", lambda *_: pytest.fail("computed again"))
    second = EigenPool.prepare(mutag, (0.3, 1), 2)
    arrays = (first.prepared["eigen"].arrays, second.prepared["eigen"].arrays)
    assert arrays[0].keys() == arrays[1].keys()
    for name in arrays[0]:
        assert torch.equal(arrays[0][name].values, arrays[1][name].values)


def test_the_chain_of_other_settings_is_not_taken(mutag):
    ready = EigenPool.prepare(mutag, (0.3, 1), 2).batch([0, 1])
    h = torch.randn(ready.num_nodes, 3)
    pool = EigenPool(3, (0.5, 1), vectors=2)
    expected = pool(h, mutag.batch([0, 1]))
    other = pool(h, ready)
    assert torch.equal(other.x, expected.x)
    assert other.batch.nodes_per_graph.tolist() == kept_nodes(0.5, mutag.nodes_per_graph[:2]).tolist()
    all_nodes = HaarPool(3, (1.0,))(h, HaarPool.prepare(mutag, (1,)).batch([0, 1]))  # not one node
    assert all_nodes.batch.nodes_per_graph.tolist() == mutag.nodes_per_graph[:2].tolist()


def test_both_kinds_side_by_side_and_on_a_device(mutag):
    both = EigenPool.prepare(HaarPool.prepare(mutag, (0.5, 1)), (0.5, 1), 2)
    batch = both.batch([3, 4]).to("cpu")
    assert set(batch.prepared) == {"haar", "eigen"}
    h = torch.randn(batch.num_nodes, 3)
    haar, eigen = (layers(kind, 3, (0.5, 1))[0](h, batch) for kind in ("haar", "eigen"))
    assert torch.equal(haar.batch.col, eigen.batch.col)  # one clustering for both
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = layers("haar", 3, (0.5, 1))[0](h.bfloat16(), batch).x
    assert half.dtype == torch.float32
    assert (half - haar.x).abs().max() < 0.05


def test_a_graph_without_nodes():
    batch = GraphBatch.from_edge_index(torch.zeros(3, 1), torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 0, 2]))
    for kind in ("eigen", "haar"):
        h, structure = torch.ones(3, 1), batch
        for pool in layers(kind, 1, (0.5, 1)):
            h, structure, *_ = pool(h, structure)
        assert structure.nodes_per_graph.tolist() == [1, 0, 1]
        assert torch.isfinite(h).all()


def test_wrong_use_is_refused(mutag):
    batch = mutag.batch([0])
    h = torch.randn(batch.num_nodes, 3)
    with pytest.raises(ValueError, match="step 1 of a chain pools the graphs that step 0 returned"):
        HaarPool(3, (0.5, 0.5), 1)(h, batch)
    with pytest.raises(SettingError, match="level is from 0 to 1, not 2"):
        HaarPool(3, (0.5, 0.5), 2)
    with pytest.raises(SettingError, match="at least one step"):
        HaarPool(3, ())
    with pytest.raises(SettingError, match="at least one vector"):
        EigenPool(3, (0.5,), vectors=0)
    with pytest.raises(SettingError, match="ratio is"):
        EigenPool(3, (1.5,))
    with pytest.raises(ValueError, match="features are"):
        EigenPool(3, (0.5,))(h[1:], batch)


def test_a_chain_is_computed_in_one_thread_and_the_others_are_left_as_they_are(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    inside, usual = [], spectral_module.coarsened
    monkeypatch.setattr(spectral_module, "coarsened", lambda *given: [inside.append(threads()), usual(*given)][1])
    with threadpool_limits(2, "blas"):
        before = threads()
        spectral_module.chain_arrays(random_graph(8, 0.5, 0), make_chain("eigen", (0.5,), 2), [4])
        assert threads() == before
    assert inside == [{1}]
