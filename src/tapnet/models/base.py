"""What every model of the comparison is: a GraphBatch in, logits (and perhaps an auxiliary loss) out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch


class Outputs(NamedTuple):
    logits: Tensor  # [B, C]
    auxiliary: Tensor | None = None  # a loss to be added to the cross-entropy while training


class GraphClassifier(nn.Module, ABC):
    """Classifies graphs. Called with a GraphBatch, or as PyG's models with ``x, edge_index, batch``."""

    @abstractmethod
    def outputs(self, batch: GraphBatch) -> Outputs: ...

    def forward(self, x: Tensor | GraphBatch, edge_index: Tensor | None = None, batch: Tensor | None = None) -> Tensor:
        """x: [N] integer categories or [N, F] floats → [B, C] logits"""
        logits: Tensor = self._logits(x, edge_index, batch)
        return logits

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _logits(self, x: Tensor | GraphBatch, edge_index: Tensor | None, batch: Tensor | None) -> Tensor:
        if isinstance(x, GraphBatch):
            return self.outputs(x).logits
        if edge_index is None:
            raise TypeError("call the model with a GraphBatch, or with x, edge_index and batch")
        if x.dim() != (2 if x.is_floating_point() else 1):
            raise TypeError(f"x is [N] integer categories or [N, F] floats, not {list(x.shape)} {x.dtype}")
        return self.outputs(GraphBatch.from_edge_index(x, edge_index, batch)).logits

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())
