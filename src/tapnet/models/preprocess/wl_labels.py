"""Labels of nodes by Weisfeiler-Lehman refinement, counted for each graph (Shervashidze and others, JMLR 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from torch import Tensor

from tapnet._loops.jit import Array, array
from tapnet.data.dataset import GraphDataset
from tapnet.data.features import as_categories


def label_counts(dataset: GraphDataset, height: int) -> list[Any]:
    """How often each graph has each label, before and after each refinement: sparse, [G, labels] each."""
    node_ptr, rowptr = array(dataset.node_ptr), array(dataset.rowptr)
    graph = np.repeat(np.arange(len(dataset)), np.diff(node_ptr))
    first_node = np.repeat(node_ptr[:-1], np.diff(rowptr[node_ptr]))  # of the graph that an edge is in
    col, label, counts = array(dataset.col) + first_node, array(_labels(dataset)), []
    for step in range(height + 1):
        label = _refined(label, rowptr, col) if step else label
        counts.append(csr_array((np.ones(len(label)), (graph, label)), shape=(len(dataset), label.max(initial=0) + 1)))
    return counts


def _refined(label: Array, rowptr: Array, col: Array) -> Array:
    """A new label for each combination of a node's label and those of its neighbours, regardless of their order."""
    degree = np.diff(rowptr)
    near = label[col]
    near = near[np.lexsort((near, np.repeat(np.arange(len(degree)), degree)))]  # sorted, for each node by itself
    found, known = np.empty(len(label), np.int64), 0
    for d in np.unique(degree):
        nodes = np.flatnonzero(degree == d)
        rows = np.column_stack([label[nodes], near[rowptr[nodes, None] + np.arange(d)]])
        distinct, number = np.unique(rows, axis=0, return_inverse=True)
        found[nodes] = known + number.reshape(-1)
        known += len(distinct)
    return found


def _labels(dataset: GraphDataset) -> Tensor:
    labels = as_categories(dataset.x)
    assert labels is not None
    return labels
