"""EdgeScorePooling: base of the layers that score edges by a linear layer and merge nodes by these scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from tapnet._loops.ranges import repeated
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.nn.pool.merge import Clusters, merged, sparse_and_undirected
from tapnet.ops.dropout import check_dropout, dropout
from tapnet.ops.precision import full_precision, widened


class EdgeScorePooling(Pooling):
    r"""Base of layers that compute :math:`\mathbf{w}^T [h_i \,\Vert\, h_j] + b` of each edge from i to j.

    The clusters that a layer makes of it are linked by edges without weights. A layer implements ``merge``.

    Args:
        in_channels (int): d, the size of each node's features.
        dropout (float): applied to the edges' scores. (default: ``0.0``)
    """

    bias: ClassVar[bool]  # whether there is a b

    def __init__(self, in_channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels = self.out_channels = in_channels
        self.dropout = dropout
        self.lin = nn.Linear(2 * in_channels, 1, bias=self.bias)

    @abstractmethod
    def merge(self, x: Tensor, score: Tensor, target: Tensor, batch: GraphBatch) -> tuple[Tensor, Clusters]:
        """The features of the clusters, [K, d], and the clusters.

        Args:
            x: [N, d]
            score: [E] of each edge, before any activation.
            target: [E] the node that each edge leads to; ``batch.col`` is where it comes from.
            batch: the graphs, undirected.
        """

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] and the graphs between clusters, without weights."""
        batch = sparse_and_undirected(self, x, batch)
        x = widened(x)
        with full_precision(x):
            source, target = batch.col, repeated(torch.arange(batch.num_nodes, device=x.device), batch.degree)
            of_source, of_target = (x @ self.lin.weight.to(x.dtype).view(2, -1).T).unbind(1)
            score = of_source.index_select(0, source) + of_target.index_select(0, target)
            if self.bias:
                score = score + self.lin.bias.to(x.dtype)
            score = dropout(score.unsqueeze(1), self.dropout, self.training).squeeze(1)
            rows, clusters = self.merge(x, score, target, batch)
        return Pooled(rows, merged(batch, clusters, weighted=False), assignment=clusters.assignment)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, dropout={self.dropout}"
