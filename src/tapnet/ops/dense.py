"""What soft clusterings ask of a batch, whether its graphs are sparse or dense: padded rows, AH, ‖A‖²."""

from __future__ import annotations

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.ops.csr import propagate


def to_padded(h: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [B, n, d], with zeros below the rows of smaller graphs."""
    if isinstance(batch, DenseBatch):
        return h.view(batch.num_graphs, -1, h.size(1))
    sizes = batch.nodes_per_graph
    longest = int(sizes.max())
    within = torch.arange(len(h), device=h.device) - batch.ptr.index_select(0, batch.graph)
    rows = h.new_zeros(len(sizes) * longest, h.size(1))
    return rows.index_copy_(0, batch.graph * longest + within, h).view(len(sizes), longest, h.size(1))


def adjacency_product(h: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [N, d]: AH, with a gradient."""
    if isinstance(batch, DenseBatch):
        return (batch.adjacency @ to_padded(h, batch)).flatten(0, 1)
    return propagate(h, batch, "sum") - h


def squared_norm(batch: GraphBatch | DenseBatch) -> Tensor:
    """[B] ‖A‖², the sum of the squares of A; of a graph without weights the number of its ones."""
    if isinstance(batch, DenseBatch):
        return batch.adjacency.square().sum(dim=(1, 2))
    return batch.rowptr.index_select(0, batch.ptr).diff()
