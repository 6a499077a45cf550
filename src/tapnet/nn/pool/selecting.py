"""The pooling layers that TAP is compared with, on a GraphBatch: the same calls, the same number of nodes kept."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.conv import GraphConv
from tapnet.nn.init import glorot_
from tapnet.nn.pool.select import Pooled, best_nodes, check_ratio
from tapnet.ops.csr import induced_subgraph
from tapnet.ops.dropout import Mask, check_dropout


class SelectingPool(nn.Module, ABC):
    """Keeps the nodes with the highest scores; a layer says what the score is and how it gates the kept rows."""

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels, self.ratio, self.dropout = in_channels, check_ratio(ratio), dropout

    @abstractmethod
    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """[N, d] → [N]"""

    @abstractmethod
    def gate(self, rows: Tensor, score: Tensor) -> Tensor:
        """The kept rows [K, d] and their scores [K] → [K, d]"""

    def coarsen(self, h: Tensor, batch: GraphBatch | DenseBatch) -> Pooled:
        """The same as TAPooling's. Dense graphs have no nodes to choose from: this is for those of the data."""
        assert isinstance(batch, GraphBatch)
        batch.check_rows(h)
        seen = Mask.draw(self.dropout).applied(h) if self.training and self.dropout > 0 else h
        score = self.score(seen, batch)
        perm, ptr = best_nodes(score, self.ratio, batch)
        kept = score.index_select(0, perm)
        return Pooled(self.gate(h.index_select(0, perm), kept), induced_subgraph(batch, perm, ptr), perm, kept.detach())

    def extra_repr(self) -> str:
        return f"{self.in_channels}, ratio={self.ratio}, dropout={self.dropout}"


class TopKPool(SelectingPool):
    """Graph U-Nets' gPool (Gao, Ji 2019): y = Hp / ‖p‖ ranks, sigmoid(y) gates."""

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__(in_channels, ratio, dropout)
        self.projection = nn.Parameter(torch.empty(in_channels))
        glorot_(self.projection)

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        score: Tensor = h @ self.projection / self.projection.norm()
        return score

    def gate(self, rows: Tensor, score: Tensor) -> Tensor:
        return rows * torch.sigmoid(score).unsqueeze(1)


class SortPool(SelectingPool):
    """What SortPooling ranks by (Zhang and others 2018), as a layer: the last channel. It has nothing to learn."""

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        return h[:, -1]

    def gate(self, rows: Tensor, score: Tensor) -> Tensor:
        return rows


class SAGPool(SelectingPool):
    """SAGPool (Lee, Lee, Kang 2019): a graph convolution D̂⁻½ÂD̂⁻½HΘ to one channel ranks, its tanh gates."""

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__(in_channels, ratio, dropout)
        self.conv = GraphConv(in_channels, 1, "symmetric", negative_slope=1.0)  # slope 1: no activation

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        score: Tensor = self.conv(h, batch)
        return score.squeeze(1)

    def gate(self, rows: Tensor, score: Tensor) -> Tensor:
        return rows * torch.tanh(score).unsqueeze(1)
