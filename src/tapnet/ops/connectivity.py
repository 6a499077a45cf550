"""How connected graphs are (edges, isolated nodes, components): what the paper's connectivity term is about."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch


@dataclass(frozen=True)
class Connectivity:
    """Counts over a number of graphs; the counts of more graphs can be added."""

    graphs: int
    nodes: int
    edges: int  # undirected
    isolated: int  # nodes without a neighbour
    components: int

    @classmethod
    def of(cls, batch: GraphBatch) -> Connectivity:
        """Counts the graphs of a batch."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        starts, neighbors = batch.rowptr.cpu().numpy(), batch.col.cpu().numpy()
        n = batch.num_nodes
        matrix = csr_array((np.ones(len(neighbors), dtype=np.int8), neighbors, starts), shape=(n, n))
        components = connected_components(matrix, directed=False, return_labels=False) if n else 0
        edges = len(neighbors) // 2 if batch.transposed is None else batch.edges_once.size(1)
        return cls(batch.num_graphs, n, edges, int(batch.isolated.sum()), int(components))

    def __add__(self, other: Connectivity) -> Connectivity:
        return Connectivity(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def components(edge_index: Tensor, num_nodes: int) -> Tensor:
    """[N] the lowest node of the component that each node is in; edges count in both directions."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = edge_index.cpu().numpy()
    matrix = csr_array((np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1])), shape=(num_nodes, num_nodes))
    label = connected_components(matrix, directed=False)[1]
    lowest = np.unique(label, return_index=True)[1]
    return torch.from_numpy(lowest[label]).to(edge_index.device)
