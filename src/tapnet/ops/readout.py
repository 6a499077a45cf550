"""The readout of the paper: maximum, mean and sum over the nodes of each graph, side by side."""

from __future__ import annotations

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.ops.dense import to_padded
from tapnet.ops.segments import segment_readout


def readout(h: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [B, 3d]: max, mean and sum over the nodes of each graph."""
    if isinstance(batch, DenseBatch):
        rows = to_padded(h, batch)
        return torch.cat([rows.amax(dim=1), rows.mean(dim=1), rows.sum(dim=1)], dim=1)
    batch.check_rows(h)
    return segment_readout(h, batch.ptr)
