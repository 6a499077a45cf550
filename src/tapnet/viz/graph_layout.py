"""Where the nodes are drawn: distances on paper follow those in the graph, for large graphs within a second or two."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet._loops.csr import to_csr
from tapnet._loops.jit import Array, array, kernel

PAIRS = 2_000_000  # of nodes, whose distance on paper is compared with that in the graph
STEPS = 150_000_000  # along edges, to find these distances
ROUNDS = 20
SPREAD_STEPS = 120_000  # of nodes that cover each other
STARTS = 12  # of which the best counts, while all of them together take no time


def graph_layout(edges: NDArray[np.int64], num_nodes: int) -> NDArray[np.float64]:
    """Computes where each node of a graph is drawn; the same graph gives the same places.

    After Zheng, Pawar and Goodman, "Graph drawing by stochastic gradient descent" (2018). All pairs of nodes count
    in graphs of up to 2,000 nodes; in larger ones the edges, and some pairs drawn at random.

    Args:
        edges: Both ends of each edge, once, ``[2, E]``.
        num_nodes: Of the graph.

    Returns:
        Places in the unit square, ``[N, 2]``, with the longest side across.

    Example:
        >>> import numpy as np
        >>> from tapnet.viz.graph_layout import graph_layout
        >>> graph_layout(np.array([[0, 1, 2], [1, 2, 0]]), 3).shape
        (3, 2)
    """
    random = np.random.default_rng(0)
    i, j, distance = _distances(edges, num_nodes, random)
    largest = distance.max(initial=1.0)
    steps = largest**2 * (0.1 / largest**2) ** np.linspace(0, 1, ROUNDS)
    found, least = np.zeros((num_nodes, 2)), np.inf
    for _ in range(int(np.clip(PAIRS // 100 // max(len(distance), 1), 1, STARTS))):
        at, order = random.random((num_nodes, 2)) * largest, random.permutation(len(distance))
        stress = _descend(at, i[order], j[order], distance[order], steps)
        found, least = (at, stress) if stress < least else (found, least)
    return _turned(_spread(_turned(found), edges))


def _spread(at: NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Moves nodes apart that would cover each other: the leaves of a hub, a cluster of many. Others stay."""
    from scipy.spatial import KDTree

    usual = np.median(np.linalg.norm(at[edges[0]] - at[edges[1]], axis=1)) if edges.size else 1.0
    room = min(0.5 * np.sqrt(np.prod(np.ptp(at, axis=0).clip(0.1)) / len(at)), 0.6 * float(usual))
    for _ in range(int(np.clip(SPREAD_STEPS // len(at), 10, 60))):
        pairs = KDTree(at).query_pairs(room, output_type="ndarray")
        if not len(pairs):
            break
        apart = at[pairs[:, 0]] - at[pairs[:, 1]]
        length = np.linalg.norm(apart, axis=1, keepdims=True).clip(1e-9)
        move = 0.35 * (room / length - 1).clip(max=1e3) * apart
        step = np.zeros_like(at)
        np.add.at(step, pairs[:, 0], move)
        np.add.at(step, pairs[:, 1], -move)
        length = np.linalg.norm(step, axis=1, keepdims=True).clip(1e-9)
        at = at + step * np.minimum(1.0, room / length)
    return at


def _distances(edges: NDArray[np.int64], num_nodes: int, random: np.random.Generator) -> tuple[Array, Array, Array]:
    """Pairs of nodes, and the length of the shortest path between the two of each."""
    both = np.concatenate([edges, edges[::-1]], axis=1)
    rowptr, col = map(array, to_csr(torch.from_numpy(both), num_nodes)[0])
    if num_nodes * (num_nodes - 1) // 2 <= PAIRS:
        i, j = np.triu_indices(num_nodes, 1)
        first = np.concatenate([[0], np.cumsum(np.arange(num_nodes - 1, -1, -1))])
    else:
        sources = np.sort(random.permutation(num_nodes)[: STEPS // (num_nodes + len(col))])
        partners = PAIRS // len(sources)
        i, j = np.repeat(sources, partners), random.integers(0, num_nodes, partners * len(sources))
        first = np.arange(len(sources) + 1) * partners
    far = np.empty(len(i))
    _search(rowptr, col, i, j, first, far)
    near = np.isfinite(far) & (far > 0)
    far[np.isinf(far)] = 1.5 * far[near].mean() + 1 if near.any() else 1  # components are drawn side by side
    apart = far > 0
    ends, one = (edges[0], edges[1]), np.ones(edges.shape[1])
    return np.concatenate([i[apart], ends[0]]), np.concatenate([j[apart], ends[1]]), np.concatenate([far[apart], one])


@kernel
def _search(rowptr: Array, col: Array, i: Array, j: Array, first: Array, far: Array) -> None:
    """Breadth first from i[first[s]], for each s: how far j[first[s]] to j[first[s+1]] are; infinite if not connected.

    SciPy's csgraph has these distances by Dijkstra's algorithm alone, which takes three to five times as long.
    """
    away, queue = np.empty(len(rowptr) - 1), np.empty(len(rowptr) - 1, np.int64)
    for s in range(len(first) - 1):
        if first[s] == first[s + 1]:
            continue
        away[:] = np.inf
        queue[0], away[i[first[s]]] = i[first[s]], 0
        done, waiting = 0, 1
        while done < waiting:
            node = queue[done]
            done += 1
            for e in range(rowptr[node], rowptr[node + 1]):
                if away[col[e]] == np.inf:
                    away[col[e]] = away[node] + 1
                    queue[waiting] = col[e]
                    waiting += 1
        for pair in range(first[s], first[s + 1]):
            far[pair] = away[j[pair]]


@kernel
def _descend(at: Array, i: Array, j: Array, distance: Array, steps: Array) -> float:
    """Moves each pair towards its distance, round after round in ever smaller steps; the stress that is left."""
    stress = 0.0
    for step in steps:
        stress = 0.0
        for pair in range(len(distance)):
            a, b, wanted = i[pair], j[pair], distance[pair]
            x, y = at[a, 0] - at[b, 0], at[a, 1] - at[b, 1]
            length = max(np.sqrt(x * x + y * y), 1e-9)
            move = min(step / (wanted * wanted), 1.0) * (length - wanted) / (2 * length)
            stress += (length / wanted - 1) ** 2
            at[a, 0] -= move * x
            at[a, 1] -= move * y
            at[b, 0] += move * x
            at[b, 1] += move * y
    return stress


def _turned(at: NDArray[np.float64]) -> NDArray[np.float64]:
    at = at - at.mean(axis=0)
    at = at @ np.linalg.svd(at, full_matrices=False)[2].T if len(at) > 1 else at
    at = at * np.where((at**3).sum(axis=0) < 0, -1, 1)  # an axis has two directions; this is the one
    span = np.ptp(at, axis=0).max() or 1.0
    return np.asarray((at - at.min(axis=0)) / span)
