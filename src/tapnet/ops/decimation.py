"""Node decimation: of each graph the nodes on one side of a large cut, linked by Kron reduction.

Done for one graph at a time, sparse where it is large; ``tapnet.nn.pool.chain`` keeps the results for a data set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh, splu

from tapnet._loops.jit import Array
from tapnet.ops.spectral import RAMP, eigenvectors, step_arrays

DENSE_UP_TO = 256  # nodes: beyond, iterations on sparse matrices are faster than a decomposition
SPARSER = 1e-2  # weights of the coarser graph that are below are left out; the paper's δ


def decimated(adjacency: Any, steps: int) -> list[tuple[Array, Any]]:
    """The pyramid of a graph.

    Args:
        adjacency: [n, n] symmetric, sparse or an array, without a diagonal.
        steps: the number of times that nodes are dropped.

    Returns:
        Of each step the nodes that stay, ascending, and [K, K] the adjacency matrix between them, an array if small.
    """
    pyramid = []
    for _ in range(steps):
        kept = one_side(adjacency)
        adjacency = kron_reduction(adjacency, kept)
        pyramid.append((np.flatnonzero(kept), adjacency))
    return pyramid


def one_side(adjacency: Any) -> Array:
    """[n] bool: the nodes where the eigenvector of the largest eigenvalue of the normalised Laplacian is not negative.

    Of each component on its own: the Laplacian falls into blocks, and how the signs of two of them go together would be
    left to rounding. Where the cut has less than half of the edges' weight, sides are drawn, as the paper does.
    """
    count, label = connected_components(adjacency, directed=False)
    if count == 1 and len(label) > 1:
        return _one_side_of_component(adjacency)
    kept = np.ones(len(label), bool)
    size = np.bincount(label, minlength=count)
    by_component, end = np.argsort(label, kind="stable"), np.cumsum(size)
    for c in np.flatnonzero(size > 1):
        nodes = by_component[end[c] - size[c] : end[c]]
        kept[nodes] = _one_side_of_component(adjacency[nodes][:, nodes])
    return kept


def _one_side_of_component(adjacency: Any) -> Array:
    n = adjacency.shape[0]
    root = 1 / np.sqrt(adjacency.sum(axis=1))
    if n <= DENSE_UP_TO:
        vector = eigenvectors(np.eye(n) - _dense(adjacency) * root[:, None] * root)[:, -1]
    else:  # the highest of -D^(-1/2) A D^(-1/2); the ramp settles repeated eigenvalues
        scale = diags_array(root)
        matrix = csr_array(diags_array(np.linspace(0, RAMP, n)) - scale @ csr_array(adjacency) @ scale)
        vector = eigsh(matrix, k=1, which="LA", v0=np.linspace(1, 2, n))[1][:, 0]
        vector = vector * np.sign(vector[np.argmax(np.abs(vector) > 1e-4)])
    kept: Array = vector >= -1e-9
    if 2 * adjacency[kept][:, ~kept].sum() < adjacency.sum() / 2:
        kept = np.random.default_rng(n).random(n) < 0.5
        kept[0] = True
    return kept


def kron_reduction(adjacency: Any, kept: Array) -> Any:
    """[K, K] the adjacency matrix of the Laplacian L₊₊ - L₊₋ L₋₋⁻¹ L₋₊; small weights are left out."""
    if kept.all():
        return adjacency
    across = -_dense(adjacency[~kept][:, kept])
    inner = adjacency[~kept][:, ~kept]
    degree = adjacency.sum(axis=1)[~kept]
    if len(kept) <= DENSE_UP_TO:
        solved = np.linalg.solve(np.diag(degree) - _dense(inner), across)
    else:
        solved = splu(csc_array(diags_array(degree) - csr_array(inner))).solve(across)
    reduced = _dense(adjacency[kept][:, kept]) + across.T @ solved
    np.fill_diagonal(reduced, 0)
    reduced = (reduced + reduced.T) / 2
    reduced[reduced < SPARSER] = 0
    return reduced if len(reduced) <= DENSE_UP_TO else csr_array(reduced)


def _dense(matrix: Any) -> Array:
    array: Array = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return array


def decimation_arrays(
    rowptr: Array, col: Array, steps: int, first: int = 0, weight: Array | None = None
) -> dict[str, Array]:
    """All that is kept of one graph: of each step the matrix that selects its nodes, and the coarser graph.

    Args:
        rowptr: [n+1] the graph's part of compressed rows.
        col: the columns of all rows.
        steps: the number of times that nodes are dropped.
        first: the number of the graph's first node.
        weight: those of the entries, of which the absolute values count; None: ones.
    """
    n, edges = len(rowptr) - 1, slice(rowptr[0], rowptr[-1])
    value = np.ones(rowptr[-1] - rowptr[0]) if weight is None else np.abs(weight[edges]).astype(float)
    matrix = csr_array((value, col[edges] - first, rowptr - rowptr[0]), shape=(n, n))
    matrix = (
        csr_array(matrix.maximum(matrix.T)) if n > DENSE_UP_TO else np.maximum(matrix.toarray(), matrix.toarray().T)
    )
    pyramid = decimated(matrix, steps)
    sizes = [n, *(len(kept) for kept, _ in pyramid)]
    selections = [
        csr_array((np.ones(len(kept)), kept, np.arange(len(kept) + 1)), shape=(len(kept), size))
        for (kept, _), size in zip(pyramid, sizes, strict=False)
    ]
    return step_arrays(selections, [csr_array(adjacency) for _, adjacency in pyramid])
