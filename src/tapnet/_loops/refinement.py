"""One step of Weisfeiler-Lehman refinement; there is no version for other devices, since it hashes node by node."""

from __future__ import annotations

import numpy as np

from tapnet._loops.jit import Array, kernel


@kernel
def refined_labels(label: Array, rowptr: Array, col: Array) -> Array:
    """A new label for each combination of a node's label and those of its neighbours, regardless of their order.

    Args:
        label: [N] integers.
        rowptr: [N+1] where each node's neighbours begin.
        col: [E] the neighbours.

    Returns:
        [N] labels from 0 on, in the order in which the combinations come. They are told apart exactly: two nodes whose
        hashes collide are compared.
    """
    n, slots = len(label), 1
    while slots < 2 * n:
        slots *= 2
    first, found = np.full(slots, -1), np.empty(n, np.int64)  # the first node of each combination, by its hash
    near, known = np.empty(len(col), np.int32), 0
    for i in range(n):
        begin, end, key = rowptr[i], rowptr[i + 1], label[i]
        if end - begin > 32:
            for e in range(begin, end):
                near[e] = label[col[e]]
            near[begin:end].sort()
        else:  # by insertion: few neighbours
            for e in range(begin, end):
                value, at = label[col[e]], e
                while at > begin and near[at - 1] > value:
                    near[at] = near[at - 1]
                    at -= 1
                near[at] = value
        for e in range(begin, end):
            key = (key ^ near[e]) * 1099511628211  # as FNV-1a does
            key ^= key >> 29
        slot = key & (slots - 1)
        while True:
            j = first[slot]
            if j < 0:
                first[slot], found[i] = i, known
                known += 1
                break
            same = label[j] == label[i] and rowptr[j + 1] - rowptr[j] == end - begin
            e, other = begin, rowptr[j]
            while same and e < end:
                same = near[e] == near[other]
                e, other = e + 1, other + 1
            if same:
                found[i] = found[j]
                break
            slot = (slot + 1) & (slots - 1)
    return found
