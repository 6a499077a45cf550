"""Whether two small graphs are the same but for the order of their nodes; there is no version for other devices."""

from __future__ import annotations

import numpy as np

from tapnet._loops.jit import Array, kernel

DIFFERENT, SAME, UNDECIDED = 0, 1, 2


@kernel
def compare_graphs(
    rowptr: Array, col: Array, edge: Array, color: Array, rowptr_b: Array, col_b: Array, edge_b: Array, color_b: Array
) -> int:
    """Looks for a one-to-one map of the nodes that keeps colours, edges and what edges carry.

    Nodes are mapped one after another, each after a neighbour of it where there is one, and a node that fits nowhere
    sends the search back to the one before.

    Args:
        rowptr: [N+1] where each node's neighbours begin; every edge is in the rows of both its ends.
        col: [E] the neighbours.
        edge: [E] what the edges carry, as a code.
        color: [N] what the nodes carry, as a code.
        rowptr_b: as above, of a graph with as many nodes and edges.
        col_b: likewise.
        edge_b: likewise.
        color_b: likewise.

    Returns:
        DIFFERENT, SAME, or UNDECIDED after too many steps.
    """
    n, steps = len(color), 0
    order, parent = np.empty(n, np.int64), np.empty(n, np.int64)  # breadth first, and the neighbour that is before
    seen = np.zeros(n, np.bool_)
    at = end = 0
    for start in range(n):
        if not seen[start]:
            seen[start], order[end], parent[end] = True, start, -1
            end += 1
        while at < end:
            i = order[at]
            at += 1
            for e in range(rowptr[i], rowptr[i + 1]):
                if not seen[col[e]]:
                    seen[col[e]], order[end], parent[end] = True, col[e], i
                    end += 1
    image, taken = np.full(n, -1), np.zeros(n, np.bool_)  # the map, and which nodes of the other graph it has
    entry, stamp, mark = np.empty(n, np.int64), np.zeros(n, np.int64), 0  # of the row of a candidate
    next_one, at = np.zeros(n + 1, np.int64), 0  # the candidate to be tried next
    while 0 <= at < n:
        i, near = order[at], parent[at]
        count = n if near < 0 else rowptr_b[image[near] + 1] - rowptr_b[image[near]]
        found = -1
        while found < 0 and next_one[at] < count:
            j = next_one[at] if near < 0 else col_b[rowptr_b[image[near]] + next_one[at]]
            next_one[at] += 1
            if taken[j] or color[i] != color_b[j] or rowptr[i + 1] - rowptr[i] != rowptr_b[j + 1] - rowptr_b[j]:
                continue
            mark, balance, fits = mark + 1, 0, True  # mapped neighbours: as many here as there
            steps += 1 + rowptr[i + 1] - rowptr[i]
            for e in range(rowptr_b[j], rowptr_b[j + 1]):
                stamp[col_b[e]], entry[col_b[e]] = mark, e
                balance += taken[col_b[e]]
            for e in range(rowptr[i], rowptr[i + 1]):
                k = image[col[e]]
                if k >= 0:
                    balance -= 1
                    fits = fits and stamp[k] == mark and edge_b[entry[k]] == edge[e]
            if fits and balance == 0:
                found = j
        if steps > 1_000_000 + 100 * len(col):
            return 2
        if found >= 0:
            image[i], taken[found] = found, True
            at += 1
            next_one[at] = 0
        else:
            at -= 1
            if at >= 0:
                taken[image[order[at]]] = False
                image[order[at]] = -1
    return 1 if at == n else 0
