"""Readouts as layers: all nodes of a graph become one. Base of those that are learned."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Kind, Pooled, Pooling, PoolSetup
from tapnet.nn.pool.none import NoPool
from tapnet.ops.precision import full_precision, widened


class ReadoutPooling(Pooling):
    """Base of layers that read a graph into one node, without a ratio.

    In a network the last pooling layer is one; the others leave all nodes, so that the convolutions between them are
    those of the other networks.
    """

    kind: ClassVar[Kind] = "readout"
    directed: ClassVar[bool] = True

    @abstractmethod
    def read(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """[N, in] → [B, out]"""

    @classmethod
    def build_readout(cls, setup: PoolSetup) -> Pooling:
        """The layer at the end of a network."""
        return super().build(setup)

    @classmethod
    def build(cls, setup: PoolSetup) -> Pooling:
        """The readout as the last layer of a network, no pooling before."""
        return cls.build_readout(setup) if setup.level == len(setup.ratios) - 1 else NoPool(setup.in_channels)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, in] → [B, out] and graphs of one node each."""
        if not isinstance(batch, GraphBatch):
            raise ValueError(f"{type(self).__name__} reads sparse graphs, not a DenseBatch")
        batch.check_rows(x)
        with full_precision(x):
            rows = self.read(widened(x), batch)
        ptr = torch.arange(batch.num_graphs + 1, device=x.device)
        rowptr, col = torch.zeros_like(ptr, dtype=torch.int32), batch.col[:0]
        return Pooled(rows, GraphBatch(batch.x, batch.y, ptr, rowptr, col), assignment=batch.graph)
