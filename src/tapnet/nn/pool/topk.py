"""TopKPool: top-k pooling by a learned projection."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.select import SelectPooling


class TopKPool(SelectPooling):
    r"""The gPool layer from *Graph U-Nets* (Gao, Ji, ICML 2019).

    .. math::
        \mathbf{y} = H \mathbf{p} / \lVert \mathbf{p} \rVert, \qquad
        H' = H_{\mathrm{idx}} \odot \sigma(\mathbf{y}_{\mathrm{idx}})

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
        dropout (float): applied to the features that are projected. (default: ``0.0``)
    """

    paper = "Gao, Ji: Graph U-Nets, ICML"
    year = 2019
    about = "keeps the nodes whose features project furthest on a learned vector"
    cost = "O(N·d + E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__(in_channels, ratio, dropout)
        self.projection = nn.Parameter(torch.empty(in_channels))
        nn.init.xavier_uniform_(self.projection.data.view(-1, 1))

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """y = Hp / ‖p‖"""
        score: Tensor = h @ self.projection / self.projection.norm()
        return score

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        """Multiplied by sigmoid(y)."""
        return rows * torch.sigmoid(score).unsqueeze(1)
