"""The inner loops, compiled by Numba: plain arrays in, plain arrays out, on a CPU alone.

Why they are here: a step on small graphs is hundreds of operator calls, each dearer than its work; one loop is one
call, reads its rows once, and stores nothing on the way. What a loop computes is said where it is called, next to the
formula in torch that other devices use and that the tests hold it to. They run in one thread: with a pool of their own
beside torch's an epoch of REDDIT-BINARY took a fifth longer on two cores, and so no result depends on the threads.
Large results are allocated by the caller, by NumPy: it asks for huge pages, which Numba and torch do not, and touching
new memory page by page takes longer than most of these loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])
FLOATS = (torch.float32, torch.float64)
u32 = np.uint32


def compiled(h: Tensor) -> bool:
    """Whether the loops of this file can be used on it."""
    return h.device.type == "cpu" and h.dtype in FLOATS


def array(t: Tensor) -> Array:
    """The tensor's memory as a NumPy array."""
    result: Array = (t.detach() if t.requires_grad else t).contiguous().numpy()
    return result


def kernel(function: F) -> F:
    """Compiled at its first call, once a machine: later processes find it in Numba's cache."""

    @cache
    def dispatcher() -> Any:
        from numba import njit

        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
        try:
            return njit(function, cache=True, **options)
        except RuntimeError:  # no place to keep a cache in
            return njit(function, **options)

    @wraps(function)
    def call(*args: Any) -> Any:
        return dispatcher()(*args)

    return call  # type: ignore[return-value]


# ---- graphs ----


@kernel
def cut_graphs(graphs: Array, node_ptr: Array, edge_ptr: Array, neighbor: Array) -> tuple[Array, ...]:
    """Some graphs out of many: ptr, the number of each node, and edge_ptr and neighbor of their union."""
    ptr = np.zeros(len(graphs) + 1, np.int64)
    num_edges = 0
    for g in range(len(graphs)):
        first, last = node_ptr[graphs[g]], node_ptr[graphs[g] + 1]
        ptr[g + 1] = ptr[g] + last - first
        num_edges += edge_ptr[last] - edge_ptr[first]
    nodes = np.empty(ptr[-1], np.int64)
    new_ptr, new_neighbor = np.zeros(ptr[-1] + 1, np.int32), np.empty(num_edges, np.int32)
    at = 0
    for g in range(len(graphs)):
        first, last, start = node_ptr[graphs[g]], node_ptr[graphs[g] + 1], ptr[g]
        shift = at - edge_ptr[first]
        for i in range(last - first):
            nodes[start + i] = first + i
            new_ptr[start + i + 1] = edge_ptr[first + i + 1] + shift
        for e in range(edge_ptr[first], edge_ptr[last]):
            new_neighbor[e + shift] = neighbor[e] + start
        at = edge_ptr[last] + shift
    return ptr, nodes, new_ptr, new_neighbor


@kernel
def restrict(edge_ptr: Array, neighbor: Array, perm: Array) -> tuple[Array, Array]:
    """The rows and columns perm of a matrix in compressed rows, renumbered."""
    number = np.full(len(edge_ptr) - 1, -1, np.int32)
    room = 1
    for i in range(len(perm)):
        number[perm[i]] = i
        room += edge_ptr[perm[i] + 1] - edge_ptr[perm[i]]
    new_ptr, new_neighbor = np.zeros(len(perm) + 1, np.int32), np.empty(room, np.int32)
    at = 0
    for i in range(len(perm)):
        for e in range(edge_ptr[perm[i]], edge_ptr[perm[i] + 1]):
            j = number[neighbor[e]]
            new_neighbor[at] = j  # written over by the next one, unless j is kept
            at += j >= 0
        new_ptr[i + 1] = at
    return new_ptr, new_neighbor[:at]


@kernel
def look_at_edges(edges: Array) -> tuple[int, int, bool]:
    """The lowest and highest number, and whether the edges ascend by (row, column)."""
    rows, columns = edges
    low, high, ascending = 0, -1, True
    for e in range(len(rows)):
        low, high = min(low, rows[e], columns[e]), max(high, rows[e], columns[e])
        if e > 0:
            ascending &= (rows[e - 1] < rows[e]) | ((rows[e - 1] == rows[e]) & (columns[e - 1] <= columns[e]))
    return low, high, ascending


@kernel
def compress(edges: Array, num_nodes: int) -> tuple[Array, Array]:
    """Edges in any order → compressed rows, their columns in the order of the edges."""
    rows, columns = edges
    edge_ptr = np.zeros(num_nodes + 1, np.int32)
    for e in range(len(rows)):
        edge_ptr[rows[e] + 1] += 1
    for i in range(num_nodes):
        edge_ptr[i + 1] += edge_ptr[i]
    neighbor, at = np.empty(len(rows), np.int32), edge_ptr[:-1].copy()
    for e in range(len(rows)):
        neighbor[at[rows[e]]] = columns[e]
        at[rows[e]] += 1
    return edge_ptr, neighbor


@kernel
def compress_ascending(edges: Array, num_nodes: int) -> tuple[Array, Array]:
    """Edges that ascend by (row, column) → compressed rows, each column once and no self-loop."""
    rows, columns = edges
    edge_ptr, neighbor, at = np.zeros(num_nodes + 1, np.int32), np.empty(len(rows) + 1, np.int32), 0
    for e in range(len(rows)):
        again = e > 0 and rows[e] == rows[e - 1] and columns[e] == columns[e - 1]
        neighbor[at] = columns[e]
        at += (rows[e] != columns[e]) & (not again)
        edge_ptr[rows[e] + 1] = at
    for i in range(num_nodes):
        edge_ptr[i + 1] = max(edge_ptr[i], edge_ptr[i + 1])
    return edge_ptr, neighbor[:at]


@kernel
def transpose(edge_ptr: Array, neighbor: Array) -> Array:
    """[2, E]: the edges of a square matrix in compressed rows, turned round and ascending."""
    n = len(edge_ptr) - 1
    at = np.zeros(n + 1, np.int32)
    for e in range(len(neighbor)):
        at[neighbor[e] + 1] += 1
    for i in range(n):
        at[i + 1] += at[i]
    edges = np.empty((2, len(neighbor)), np.int32)
    for i in range(n):
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            j = neighbor[e]
            edges[0, at[j]], edges[1, at[j]] = j, i
            at[j] += 1
    return edges


@kernel
def is_symmetric(edge_ptr: Array, neighbor: Array) -> bool:
    """Of a square matrix in compressed rows, each column once: whether (i, j) and (j, i) are the same set.

    Compares sums of 64-bit hashes, in the order of the memory: looking each (j, i) up would wait for memory twice an
    edge. That two different sets have one sum has a chance of 2⁻⁶⁴.
    """
    total = np.uint64(0)
    for i in range(len(edge_ptr) - 1):
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            there, back = np.uint64(i) << np.uint64(32), np.uint64(i)
            there, back = there | np.uint64(neighbor[e]), back | (np.uint64(neighbor[e]) << np.uint64(32))
            for z, sign in ((there, np.uint64(1)), (back, np.uint64(0xFFFFFFFFFFFFFFFF))):  # + and -
                z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                total += sign * (z ^ (z >> np.uint64(31)))
    return bool(total == np.uint64(0))


@kernel
def keep_edges(perm: Array, edges: Array, num_nodes: int) -> tuple[Array, Array]:
    """[2, K] the edges with both ends in perm, renumbered, and [K] their numbers, in their order."""
    rows, columns = edges
    number = np.full(num_nodes, -1, np.int32)
    for i in range(len(perm)):
        number[perm[i]] = i
    kept, at = np.empty(len(rows) + 1, np.int64), 0
    for e in range(len(rows)):
        kept[at] = e
        at += (number[rows[e]] >= 0) & (number[columns[e]] >= 0)
    ends = np.empty((2, at), np.int64)
    for i in range(at):
        ends[0, i], ends[1, i] = number[rows[kept[i]]], number[columns[kept[i]]]
    return ends, kept[:at]


# ---- reductions over the nodes of each graph ----


@kernel
def kept_ptr(ptr: Array, numerator: int, denominator: int) -> Array:
    """Where each run begins when ⌈numerator · n / denominator⌉ of its n entries are kept."""
    new_ptr = np.zeros(len(ptr), np.int64)
    for g in range(len(ptr) - 1):
        new_ptr[g + 1] = new_ptr[g] - (-(ptr[g + 1] - ptr[g]) * numerator // denominator)
    return new_ptr


@kernel
def inverse_degrees(edge_ptr: Array, out: Array) -> None:
    """1 / (degree + 1)"""
    for i in range(len(out)):
        out[i] = 1 / out.dtype.type(edge_ptr[i + 1] - edge_ptr[i] + 1)


@kernel
def best_of_each(key: Array, ptr: Array, new_ptr: Array) -> Array:
    """The new_ptr[g+1] - new_ptr[g] highest keys of each run, ties to the lower number; ascending."""
    perm = np.empty(new_ptr[-1], np.int64)
    for g in range(len(ptr) - 1):
        first, last, at, end = ptr[g], ptr[g + 1], new_ptr[g], new_ptr[g + 1]
        if end - at == last - first:
            for i in range(last - first):
                perm[at + i] = first + i
        elif last - first <= 64:  # counting the better ones of each is faster than what follows
            for i in range(first, last):
                better = 0
                for j in range(first, last):
                    better += (key[j] > key[i]) | ((key[j] == key[i]) & (j < i))
                if better < end - new_ptr[g]:
                    perm[at] = i
                    at += 1
        elif at < end:
            lowest = np.partition(key[first:last], last - first - (end - at))[last - first - (end - at)]
            ties = end - at
            for i in range(first, last):
                ties -= key[i] > lowest
            for i in range(first, last):
                if key[i] > lowest or (key[i] == lowest and ties > 0):
                    ties -= key[i] == lowest
                    perm[at] = i
                    at += 1
    return perm


@kernel
def read_out(ptr: Array, h: Array) -> Array:
    """Maximum, mean and sum of each run's rows side by side; zeros for an empty run."""
    d = h.shape[1]
    out = np.zeros((len(ptr) - 1, 3 * d), h.dtype)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        if first == last:
            continue
        highest, total = h[first].copy(), h[first].copy()
        for i in range(first + 1, last):
            row = h[i]
            for c in range(d):
                highest[c] = row[c] if row[c] > highest[c] else highest[c]
                total[c] += row[c]
        size = h.dtype.type(last - first)
        for c in range(d):
            out[g, c], out[g, d + c], out[g, 2 * d + c] = highest[c], total[c] / size, total[c]
    return out


@kernel
def read_out_back(ptr: Array, h: Array, out: Array, grad: Array, of_h: Array) -> None:
    """The gradient of the rows: a maximum's goes to the one row that has it (the first of equals)."""
    d = h.shape[1]
    for g in range(len(ptr) - 1):
        size = h.dtype.type(max(ptr[g + 1] - ptr[g], 1))
        row, rest = np.empty(d, h.dtype), np.empty(d, h.dtype)
        for c in range(d):
            row[c], rest[c] = grad[g, 2 * d + c] + grad[g, d + c] / size, grad[g, c]
        for i in range(ptr[g], ptr[g + 1]):
            for c in range(d):
                of_max = rest[c] if h[i, c] == out[g, c] else h.dtype.type(0)
                of_h[i, c] = row[c] + of_max
                rest[c] -= of_max


@kernel
def softmax(ptr: Array, values: Array) -> Array:
    """A softmax within each run."""
    out = np.empty(len(values), values.dtype)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        highest = values[first] if first < last else values.dtype.type(0)
        for i in range(first, last):
            highest = max(highest, values[i])
        total = values.dtype.type(0)
        for i in range(first, last):
            out[i] = np.exp(values[i] - highest)
            total += out[i]
        for i in range(first, last):
            out[i] /= total
    return out


@kernel
def softmax_back(ptr: Array, grad: Array, result: Array) -> Array:
    """The gradient of the values, given that of their softmax."""
    out = np.empty(len(result), result.dtype)
    for g in range(len(ptr) - 1):
        mean = out.dtype.type(0)
        for i in range(ptr[g], ptr[g + 1]):
            mean += grad[i] * result[i]
        for i in range(ptr[g], ptr[g + 1]):
            out[i] = result[i] * (grad[i] - mean)
    return out


# ---- rows ----


@kernel
def drop(h: Array, seed: int, threshold: int, scale: float, out: Array) -> None:
    """[n] → each element times the scale where its 32 random bits are below the threshold, else zero.

    The bits are a hash of the seed and the element's place (two rounds as in MurmurHash3, whose high bits are good),
    so that going back can draw them again instead of storing them.
    """
    low, high, limit = u32(seed & 0xFFFFFFFF), u32((seed >> 32) & 0xFFFFFFFF), u32(threshold)
    factor, zero = h.dtype.type(scale), h.dtype.type(0)
    for i in range(len(h)):
        z = u32(u32(u32(i) * u32(0x9E3779B1)) + low)
        z = u32(u32(u32(z ^ (z >> u32(16))) ^ high) * u32(0x85EBCA6B))
        z = u32(u32(z ^ (z >> u32(13))) * u32(0xC2B2AE35))
        out[i] = h[i] * (factor if z < limit else zero)


@kernel
def vote(
    ptr: Array, degree: Array, left: Array, mean: Array, projection: Array, weight: float, local: bool, global_: bool
) -> tuple[Array, ...]:
    """Softmaxes of leftᵢ · meanᵢ / n and of meanᵢ · p within each graph, weight · degreeᵢ / n, and their sum."""
    zero, n = mean.dtype.type(0), mean.shape[0]
    y_local, y_global = np.zeros(n, mean.dtype), np.zeros(n, mean.dtype)
    connectivity, score = np.empty(n, mean.dtype), np.empty(n, mean.dtype)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        size = mean.dtype.type(max(last - first, 1))
        for i in range(first, last):
            alike, seen = zero, zero
            for c in range(mean.shape[1]):
                alike += left[i, c] * mean[i, c]
                seen += mean[i, c] * projection[c]
            y_local[i], y_global[i] = alike / size, seen
        for y, counts in ((y_local[first:last], local), (y_global[first:last], global_)):
            highest, total = y.max() if len(y) else zero, zero
            for i in range(len(y)):
                y[i] = np.exp(y[i] - highest) if counts else zero
                total += y[i]
            for i in range(len(y)):
                y[i] /= total if counts else mean.dtype.type(1)
        for i in range(first, last):
            connectivity[i] = weight * degree[i] / size
            score[i] = y_local[i] + y_global[i] + connectivity[i]
    return y_local, y_global, connectivity, score


@kernel
def vote_back(
    ptr: Array,
    inverse: Array,
    left: Array,
    mean: Array,
    projection: Array,
    of_local: Array,
    of_global: Array,
    y_local: Array,
    y_global: Array,
    of_left: Array,
    of_mean: Array,
    of_seen: Array,
) -> None:
    """The gradients of left, of mean (divided by the node's degree + 1) and of meanᵢ · p."""
    for g in range(len(ptr) - 1):
        size = mean.dtype.type(max(ptr[g + 1] - ptr[g], 1))
        mean_local, mean_global = mean.dtype.type(0), mean.dtype.type(0)
        for i in range(ptr[g], ptr[g + 1]):
            mean_local += of_local[i] * y_local[i]
            mean_global += of_global[i] * y_global[i]
        for i in range(ptr[g], ptr[g + 1]):
            of_alike = y_local[i] * (of_local[i] - mean_local) / size
            of_seen[i] = y_global[i] * (of_global[i] - mean_global)
            a, b = of_alike * inverse[i], of_seen[i] * inverse[i]
            for c in range(mean.shape[1]):
                of_left[i, c] = of_alike * mean[i, c]
                of_mean[i, c] = a * left[i, c] + b * projection[c]


@kernel
def gate_back(perm: Array, grad: Array, rows: Array, score: Array, least: float, of_x: Array, of_score: Array) -> None:
    """The gradients of x and score, for rows · s / stop_gradient(s), where rows = x[perm] and s = score[perm].

    Where s is below ``least`` in size, it is not divided by.
    """
    for k in range(len(perm)):
        total = score.dtype.type(0)
        for c in range(grad.shape[1]):
            of_x[perm[k], c] = grad[k, c]
            total += grad[k, c] * rows[k, c]
        s = score[perm[k]]
        of_score[perm[k]] = total / s if abs(s) >= least else total
