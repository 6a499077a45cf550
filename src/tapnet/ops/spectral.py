"""Chains of coarser graphs by spectral clustering, and the matrices by which EigenPooling and HaarPooling pool.

A graph is a dense matrix here, one at a time; ``tapnet.nn.pool.chain`` keeps the results for a data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from tapnet._loops.jit import Array

ChainKind = Literal["eigen", "haar", "ndp"]
RAMP = 1e-5  # what settles the eigenvectors of a repeated eigenvalue, see eigenvectors
VERSION = 1  # raised when the same graphs give other matrices, so that old ones in the cache are not taken for new


@dataclass(frozen=True)
class Chain:
    """How graphs are coarsened and pooled: everything that is computed for a graph follows from it."""

    kind: ChainKind
    ratios: tuple[float | int, ...]  # of the graph as it comes into each pooling layer; of "ndp" their number counts
    vectors: int = 1  # H: the vectors that EigenPooling takes of each cluster

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)  # the ratio 1 is one node, 1.0 is all of them


# ---- the chain ----


class Coarsening(NamedTuple):
    """One step of a chain."""

    label: Array  # [n] the cluster of each node
    adjacency: Array  # [K, K] of the coarser graph, whose nodes are the clusters


def coarsened(adjacency: Array, clusters: Sequence[int]) -> list[Coarsening]:
    """A chain of coarser and coarser graphs with so many nodes each.

    The nodes of each are in the order of their degrees, highest first, as the Haar basis wants them.
    """
    chain = []
    for count in clusters:
        label = spectral_clusters(adjacency, count)
        between = edges_between(adjacency, label, count)
        order = np.argsort(-between.sum(axis=1), kind="stable")
        adjacency = between[np.ix_(order, order)]
        chain.append(Coarsening(np.argsort(order)[label], adjacency))
    return chain


def edges_between(adjacency: Array, label: Array, clusters: int) -> Array:
    """[K, K] ΩᵀA_extΩ: the edges from cluster to cluster, their weights added; none within a cluster."""
    i, j = np.nonzero(adjacency)
    weight = np.bincount(label[i] * clusters + label[j], adjacency[i, j], clusters * clusters).astype(float)
    matrix = weight.reshape(clusters, clusters)
    np.fill_diagonal(matrix, 0)
    return matrix


def spectral_clusters(adjacency: Array, clusters: int) -> Array:
    """[n] → so many clusters, none of them empty, by the lowest eigenvectors of the normalised Laplacian.

    The vectors' rows are grouped by a QR decomposition with pivoting (Damle, Minden, Ying: Simple, Direct and Efficient
    Multi-Way Spectral Clustering, 2019; scikit-learn's cluster_qr) instead of k-means: it needs no random start, and
    each of its pivots is a node that stands for a cluster, so there are as many as asked for. Its normalised cuts are
    within about a tenth of those of k-means on MUTAG, PTC and PROTEINS, better where clusters are small, at a twentieth
    of the time. A node without edges is a component.
    """
    from scipy.linalg import qr

    n = len(adjacency)
    if clusters >= n:
        return np.arange(n)
    degree = adjacency.sum(axis=1)
    root = np.sqrt(np.maximum(degree, np.finfo(float).tiny))
    laplacian = np.diag((degree > 0).astype(float)) - adjacency / root[:, None] / root
    lowest = eigenvectors(laplacian)[:, :clusters]
    pivots = qr(lowest.T, mode="r", pivoting=True)[1][:clusters]
    left, _, right = np.linalg.svd(lowest[pivots])
    turned = lowest @ (left @ right).T  # so that the pivots are near the axes
    label: Array = np.abs(turned).argmax(axis=1)
    label[pivots] = np.arange(clusters)
    return label


def eigenvectors(matrix: Array) -> Array:
    """[…, n, n] symmetric → its eigenvectors as columns, those of the lowest eigenvalues first.

    Graphs are symmetric and their eigenvalues repeat: which vectors come of one would be left to the rounding of the
    machine. A very small ramp over the nodes settles it; it is orthogonal to the constant vector, which stays an
    eigenvector where it is one. A vector's first entry that is not about zero is positive.
    """
    n = matrix.shape[-1]
    centered = np.eye(n) - 1 / n
    vectors = np.linalg.eigh(matrix + centered * np.linspace(0, RAMP, n) @ centered)[1]
    first = np.argmax(np.abs(vectors) > 1e-4, axis=-2, keepdims=True)
    return np.asarray(vectors * np.sign(np.take_along_axis(vectors, first, axis=-2)))


# ---- EigenPooling ----


def cluster_vectors(adjacency: Array, label: Array, vectors: int) -> Array:
    """[n, H] the first eigenvectors of each cluster's own Laplacian, side by side; zeros where it has fewer nodes.

    Θ_l of the paper is [n, K], column l of this spread over the clusters.
    """
    theta = np.zeros((len(label), vectors))
    size = np.bincount(label)
    by_cluster = np.argsort(label, kind="stable")
    for m in np.unique(size):  # all clusters of m nodes at once
        nodes = by_cluster[size[label[by_cluster]] == m].reshape(-1, m)
        inside = adjacency[nodes[:, :, None], nodes[:, None, :]]
        laplacian = np.eye(m) * inside.sum(axis=2, keepdims=True) - inside
        # Less 1/m everywhere, the constant vector has eigenvalue -1: it is the first, though a cluster be in pieces.
        theta[nodes, :m] = eigenvectors(laplacian - 1 / m)[:, :, :vectors]
    return theta


def eigen_matrix(adjacency: Array, coarsening: Coarsening, vectors: int) -> Any:
    """[K·H, n] sparse: row k·H + l holds vector l of cluster k, and no entry if the cluster has no such vector."""
    from scipy.sparse import csr_array

    label, clusters = coarsening.label, len(coarsening.adjacency)
    theta = cluster_vectors(adjacency, label, vectors)
    size = np.bincount(label, minlength=clusters)
    node, vector = np.nonzero(np.arange(vectors) < size[label][:, None])
    row = label[node] * vectors + vector
    return csr_array((theta[node, vector], (row, node)), shape=(clusters * vectors, len(label)))


# ---- HaarPooling ----


def haar_matrices(labels: Sequence[Array], coarsest: int) -> list[Array]:
    """The compressive Haar basis Φ [n, K] of each step of a chain that ends with so many nodes."""
    bases = [local_haar_basis(coarsest)]
    for label in reversed(labels[1:]):
        bases.append(haar_basis(label, bases[-1]))
    return [spread(basis, label) for label, basis in zip(labels, reversed(bases), strict=True)]


def haar_basis(label: Array, coarse: Array) -> Array:
    """[n, n] the Haar basis of a graph as columns, from that of the coarser graph [K, K].

    First that one's, spread over the clusters (the low frequencies), then those within each cluster (the high ones).
    """
    n, clusters = len(label), len(coarse)
    basis = np.zeros((n, n))
    basis[:, :clusters] = spread(coarse, label)
    done = clusters
    for cluster in range(clusters):
        nodes = np.flatnonzero(label == cluster)
        basis[nodes, done : done + len(nodes) - 1] = local_haar_basis(len(nodes))[:, 1:]
        done += len(nodes) - 1
    return basis


def spread(coarse: Array, label: Array) -> Array:
    """[K, K] → [n, K]: each vector of the coarser graph over its clusters, divided by √(nodes of the cluster)."""
    size = np.bincount(label, minlength=len(coarse))
    return np.asarray(coarse[label] / np.sqrt(size[label])[:, None])


def local_haar_basis(n: int) -> Array:
    """[n, n] as columns: the constant one, then √(r / (r+1)) · (a node minus the mean of the r nodes after it)."""
    basis = np.zeros((n, n))
    basis[:, :1] = 1 / np.sqrt(max(n, 1))
    after = np.arange(n - 1, 0, -1)
    factor = np.sqrt(after / (after + 1))
    basis[:, 1:] = np.tril(np.ones((n, max(n - 1, 0))), -1) * (-factor / after)
    np.fill_diagonal(basis[:, 1:], factor)
    return basis


# ---- one graph ----


def dense(rowptr: Array, col: Array, first: int = 0, weight: Array | None = None) -> Array:
    """[n, n] from compressed rows, of which rowptr [n+1] is one graph's part; its nodes are numbered from first."""
    n, edges = len(rowptr) - 1, slice(rowptr[0], rowptr[-1])
    matrix = np.zeros((n, n))
    row, column = np.repeat(np.arange(n), np.diff(rowptr)), col[edges] - first
    matrix[row, column] = 1 if weight is None else weight[edges]
    return matrix


def chain_arrays(adjacency: Array, chain: Chain, clusters: Sequence[int]) -> dict[str, Array]:
    """All that is kept of one graph: its pooling matrices and coarser graphs, in compressed rows."""
    from scipy.sparse import csr_array

    with _thread_pools().limit(limits=1, user_api="blas"):
        steps = coarsened(adjacency, clusters)
        if chain.kind == "eigen":
            finer = [adjacency, *(step.adjacency for step in steps)]
            matrices = [eigen_matrix(a, step, chain.vectors) for a, step in zip(finer, steps, strict=False)]
        else:
            bases = haar_matrices([step.label for step in steps], len(steps[-1].adjacency))
            matrices = [csr_array(basis.T) for basis in bases]
    return step_arrays(matrices, [csr_array(step.adjacency) for step in steps])


@cache
def _thread_pools() -> Any:
    """Those of BLAS: on matrices this small its threads wait for each other, 15 times as long on two busy cores."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def step_arrays(matrices: Sequence[Any], adjacencies: Sequence[Any]) -> dict[str, Array]:
    """The sparse pooling matrices and coarser graphs of a graph as arrays by name."""
    arrays: dict[str, Array] = {}
    for i, pair in enumerate(zip(matrices, adjacencies, strict=True)):
        for name, rows in zip((f"pooling {i}", f"adjacency {i}"), pair, strict=True):
            arrays[f"{name} count"] = np.diff(rows.indptr).astype(np.int32)
            arrays[f"{name} column"] = rows.indices.astype(np.int32)
            arrays[f"{name} value"] = rows.data.astype(np.float32)
    return arrays
