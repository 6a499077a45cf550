"""Labels of nodes by Weisfeiler-Lehman refinement, counted for each graph (Shervashidze and others, JMLR 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from tapnet._loops.jit import array
from tapnet._loops.refinement import refined_labels
from tapnet.data.dataset import GraphDataset
from tapnet.data.features import as_categories


def label_counts(dataset: GraphDataset, height: int) -> list[Any]:
    """How often each graph has each label, before and after each refinement: sparse, [G, labels] each."""
    from scipy.sparse import csr_array

    node_ptr, rowptr = array(dataset.node_ptr), array(dataset.rowptr)
    graph = np.repeat(np.arange(len(dataset)), np.diff(node_ptr))
    first_node = np.repeat(node_ptr[:-1], np.diff(rowptr[node_ptr]))  # of the graph that an edge is in
    col, label, counts = array(dataset.col) + first_node, array(_labels(dataset)).astype(np.int64), []
    for step in range(height + 1):
        label = refined_labels(label, rowptr, col) if step else label
        counts.append(csr_array((np.ones(len(label)), (graph, label)), shape=(len(dataset), label.max(initial=0) + 1)))
    return counts


def _labels(dataset: GraphDataset) -> Tensor:
    labels = as_categories(dataset.x)
    assert labels is not None
    return labels
