"""Receptive fields of a graph: a canonical sequence of its nodes, and the ordered neighbourhood of each.

Niepert, Ahmed and Kutzkov (ICML 2016) call the steps node sequence selection (Algorithm 1), neighbourhood assembly
(Algorithm 3) and normalisation (Algorithm 4).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array, array, kernel
from tapnet.data.features import FeatureRows, as_categories


def fields_of_graph(
    graph: int, width: int, size: int, node_ptr: Array, rowptr: Array, col: Array, category: Array
) -> Array:
    """[width, size] int32: the fields of the first nodes of the sequence, as numbers within the graph; -1 for none.

    The arrays are those of a GraphDataset. Nodes of a higher degree come first, then those of a lower category, then
    as ``node_sequence`` tells them apart.
    """
    nodes = slice(node_ptr[graph], node_ptr[graph + 1])
    ends = rowptr[nodes.start : nodes.stop + 1].astype(np.int64)
    within, to = ends - ends[0], col[ends[0] : ends[-1]].astype(np.int64)
    names = category[nodes].astype(np.int64)
    if to.size and not (to.min() >= 0 and to.max() < len(names)):  # the compiled loops do not look
        raise IndexError(f"an edge leads out of graph {graph}")
    colour = np.diff(within) * (names.max(initial=0) + 1) - names
    fields: Array = receptive_fields(within, to, node_sequence(within, to, colour), width, size)
    return fields


def colours(x: FeatureRows) -> Array:
    """[N] categories as they are; [N, F] floats as the number of each distinct row, the same for one-hot rows."""
    if (categories := as_categories(x)) is not None:
        return array(categories.cpu())
    assert isinstance(x, Tensor)
    rows, number = torch.unique(x.detach().cpu(), dim=0, return_inverse=True)
    return array(len(rows) - 1 - number)


@kernel
def node_sequence(rowptr: Array, col: Array, colour: Array) -> Array:
    """All nodes, the highest colour first; equal colours are told apart by 1-dimensional Weisfeiler-Lehman refinement.

    Nodes of one colour are a cell. A cell is split by how many neighbours its nodes have in another one, more of them
    being higher, until no cell splits another. Where a cell of several nodes is left, one of them is put above the
    others and the refinement goes on. If they are images of each other under an automorphism, as nearly always, it does
    not matter which, and the sequence is canonical: renumbering the nodes gives the same sequence, up to
    automorphism. NAUTY would try each of them for the rest (in regular graphs, say); here the numbering decides.
    """
    n = len(colour)
    order = np.argsort(colour, kind="mergesort")  # from the lowest to the highest
    place, cell, size = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    start = 0
    for i in range(n):
        if colour[order[i]] != colour[order[start]]:
            start = i
        place[order[i]], cell[order[i]] = i, start  # a cell is known by its first place in the order
        size[start] += 1
    queue, waits, head, waiting = np.empty(n, np.int64), np.zeros(n, np.bool_), 0, 0  # cells that may split others
    for i in range(n - 1, -1, -1):
        if size[i] > 0:
            queue[waiting], waits[i] = i, True
            waiting += 1
    count, found, unsettled = np.zeros(n, np.int64), np.empty(n, np.int64), 0
    while True:
        if waiting == 0:
            while unsettled < n and size[unsettled] == 1:
                unsettled += 1
            if unsettled == n:
                return order[::-1].copy()
            size[unsettled] -= 1
            top = unsettled + size[unsettled]
            cell[order[top]], size[top] = top, 1
            queue[head], waits[top], waiting = top, True, 1
        splitter = queue[head]
        head, waiting, waits[splitter] = (head + 1) % n, waiting - 1, False
        # Its neighbours, by cell and number of edges to it. The node's number only makes the keys distinct.
        many = 0
        for i in range(splitter, splitter + size[splitter]):
            for e in range(rowptr[order[i]], rowptr[order[i] + 1]):
                v = col[e]
                if count[v] == 0:
                    found[many] = v
                    many += 1
                count[v] += 1
        keys = np.empty(many, np.int64)
        for i in range(many):
            keys[i] = (cell[found[i]] * (n + 1) + count[found[i]]) * n + found[i]
        keys.sort()
        i = 0
        while i < many:
            here = cell[keys[i] % n]
            j = i
            while j < many and keys[j] // n // (n + 1) == here:
                j += 1
            # The neighbours go to the end of their cell, in the order of their keys, and are cut off by their counts.
            end, waited = here + size[here], waits[here]
            first = end - (j - i)
            size[here] = first - here
            for p in range(first, end):
                v, other = keys[i + p - first] % n, order[p]
                order[place[v]], order[p] = other, v
                place[other], place[v] = place[v], p
                if p == first or count[v] != count[order[p - 1]]:
                    start = p
                cell[v] = start
                size[start] += 1
            # What the whole cell has split before, all its pieces but one will split as well: leave out the largest.
            largest, p = here, here
            while p < end:
                largest = p if size[p] > size[largest] else largest
                p += size[p]
            p = here
            while p < end:
                if not waits[p] and (waited or p != largest):
                    queue[(head + waiting) % n], waits[p] = p, True
                    waiting += 1
                p += size[p]
            i = j
        for i in range(many):
            count[found[i]] = 0


@kernel
def receptive_fields(rowptr: Array, col: Array, sequence: Array, width: int, size: int) -> Array:
    """[width, size]: each of the first nodes of the sequence, its neighbours, theirs, … until there are enough.

    Within one distance the sequence orders them; where they are too many, the last are cut off. -1 for none.
    """
    n = len(sequence)
    rank = np.empty(n, np.int64)
    for i in range(n):
        rank[sequence[i]] = i
    fields, seen, found = np.full((width, size), -1, np.int32), np.full(n, -1, np.int64), np.empty(n, np.int64)
    for root in range(min(width, n)):
        found[0], seen[root] = root, root  # nodes go by their ranks
        start, stop = 0, 1
        while start < stop < size:
            end = stop
            for i in range(start, stop):
                for e in range(rowptr[sequence[found[i]]], rowptr[sequence[found[i]] + 1]):
                    r = rank[col[e]]
                    if seen[r] != root:
                        seen[r], found[end] = root, r
                        end += 1
            found[stop:end].sort()
            start, stop = stop, end
        for i in range(min(stop, size)):
            fields[root, i] = sequence[found[i]]
    return fields
