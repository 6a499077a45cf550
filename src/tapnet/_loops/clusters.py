"""Clusters of the nodes of sparse graphs: matchings, independent sets, and the graph between clusters.

A matching and an independent set grow node by node, so there is no version for other devices: their tensors are copied
to the CPU and back. Each cluster is told by one of its nodes, its representative.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array, compiled_by, kernel
from tapnet._loops.ranges import offsets, repeated


def _on_cpu(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a loop take tensors of any device; it returns a tensor, or a tuple of them, there."""

    @wraps(loop)
    def call(*args: Any) -> Any:
        device = next(a for a in args if isinstance(a, Tensor)).device
        result = loop(*(a.cpu() if isinstance(a, Tensor) else a for a in args))
        return tuple(t.to(device) for t in result) if isinstance(result, tuple) else result.to(device)

    return call


# ---- which nodes go together ----


@_on_cpu
@kernel
def edge_matching(source: Array, target: Array, order: Array, num_nodes: int) -> tuple[Array, Array]:
    """Takes the edges in this order, each that has no end in common with one taken before.

    Returns:
        [N] the representative of each node's cluster, the lower end of its edge or itself; and [N] the edge that was
        taken at each representative, -1 where there is none.
    """
    first, edge = np.arange(num_nodes), np.full(num_nodes, -1)
    free = np.ones(num_nodes, np.bool_)
    for e in order:
        i, j = source[e], target[e]
        if free[i] and free[j]:
            free[i] = free[j] = False
            first[i] = first[j] = min(i, j)
            edge[min(i, j)] = e
    return first, edge


@_on_cpu
@kernel
def heavy_edge_matching(rowptr: Array, col: Array, weight: Array, degree: Array, order: Array) -> Array:
    """Takes the nodes in this order, each with the free neighbour of the largest w_ij (1/d_i + 1/d_j); no weight: ones.

    Returns:
        [N] the representative of each node's cluster: the lower of two nodes, or the node itself.
    """
    first = np.arange(len(order))
    free = np.ones(len(order), np.bool_)
    for i in order:
        if not free[i]:
            continue
        free[i] = False
        best, highest = -1, 0.0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            if free[j]:
                w = abs(weight[e]) if len(weight) else 1.0
                value = w * (1.0 / degree[i] + 1.0 / degree[j])
                if best < 0 or value > highest:
                    best, highest = j, value
        if best >= 0:
            free[best] = False
            first[i] = first[best] = min(i, best)
    return first


@_on_cpu
@kernel
def complement_matching(ptr: Array, rowptr: Array, col: Array, order: Array) -> Array:
    """Takes the nodes of each graph in this order, each with the next one that is free and not its neighbour.

    Returns:
        [N] the representative of each node's cluster: the lower of two nodes, or the node itself.
    """
    n = len(order)
    first, linked_to = np.arange(n), np.full(n, -1)
    for g in range(len(ptr) - 1):
        begin, end = ptr[g], ptr[g + 1]
        after = np.arange(1, end - begin + 1)  # a chain of the nodes that are free
        head = 0
        while head < end - begin:
            i = order[begin + head]
            for e in range(rowptr[i], rowptr[i + 1]):
                linked_to[col[e]] = i
            before, at = head, after[head]
            while at < end - begin and linked_to[order[begin + at]] == i:
                before, at = at, after[at]
            if at < end - begin:
                j = order[begin + at]
                first[i] = first[j] = min(i, j)
                after[before] = after[at]
            head = after[head]
    return first


@_on_cpu
@kernel
def independent_set(rowptr: Array, col: Array, order: Array, k: int) -> Array:
    """Takes the nodes in this order, each that is more than k steps from all that were taken before.

    Returns:
        [N] the first taken node within k steps of each: the representative of its cluster.
    """
    n = len(order)
    first, reached_by, queue = np.full(n, -1), np.full(n, -1), np.empty(n, np.int64)
    for i in order:
        if first[i] >= 0:
            continue
        queue[0], begin, end = i, 0, 1
        reached_by[i] = first[i] = i
        for _ in range(k):
            last = end
            for q in range(begin, last):
                for e in range(rowptr[queue[q]], rowptr[queue[q] + 1]):
                    j = col[e]
                    if reached_by[j] != i:
                        reached_by[j] = i
                        queue[end] = j
                        end += 1
                        if first[j] < 0:
                            first[j] = i
            begin = last
    return first


# ---- the graph between clusters ----


@kernel
def _merged_csr_loop(
    rowptr: Array, col: Array, weight: Array, cluster: Array, clusters: int
) -> tuple[Array, Array, Array]:
    begin = np.zeros(clusters + 1, np.int64)
    for i in range(len(cluster)):
        begin[cluster[i] + 1] += 1
    for c in range(clusters):
        begin[c + 1] += begin[c]
    members, at = np.empty(len(cluster), np.int64), begin[:-1].copy()
    for i in range(len(cluster)):
        members[at[cluster[i]]] = i
        at[cluster[i]] += 1
    new_ptr, new_col = np.zeros(clusters + 1, np.int32), np.empty(len(col), np.int32)
    new_weight = np.empty(len(weight), weight.dtype)
    total, seen_by, end = np.zeros(clusters, weight.dtype), np.full(clusters, -1), 0
    for c in range(clusters):
        start = end
        for m in members[begin[c] : begin[c + 1]]:
            for e in range(rowptr[m], rowptr[m + 1]):
                k = cluster[col[e]]
                if k != c:
                    if seen_by[k] != c:
                        seen_by[k] = c
                        total[k] = 0
                        new_col[end] = k
                        end += 1
                    total[k] += weight[e]
        new_col[start:end] = np.sort(new_col[start:end])
        for e in range(start, end):
            new_weight[e] = total[new_col[e]]
        new_ptr[c + 1] = end
    return new_ptr, new_col[:end], new_weight[:end]


@compiled_by(_merged_csr_loop)
def merged_csr(rowptr: Tensor, col: Tensor, weight: Tensor, cluster: Tensor, clusters: int) -> tuple[Tensor, ...]:
    """rowptr, col and weight of the graph whose nodes are clusters: the weights between two are added.

    Args:
        rowptr: [N+1] of the graph.
        col: [E]
        weight: [E]
        cluster: [N] the cluster of each node.
        clusters: their number.
    """
    row = cluster[repeated(torch.arange(len(cluster), device=col.device), rowptr.diff())]
    column = cluster[col.long()]
    between = row != column
    key, place = torch.unique((row * clusters + column)[between], return_inverse=True)
    total = weight.new_zeros(len(key)).index_add_(0, place, weight[between])
    count = torch.bincount(key // max(clusters, 1), minlength=clusters)
    return offsets(count).int(), (key % max(clusters, 1)).int(), total
