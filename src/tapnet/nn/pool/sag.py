"""SAGPool: self-attention graph pooling."""

from __future__ import annotations

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.select import SelectPooling


class SAGPool(SelectPooling):
    r"""The layer from *Self-Attention Graph Pooling* (Lee, Lee, Kang, ICML 2019).

    A graph convolution to one channel ranks the nodes, its tanh multiplies the kept rows:

    .. math::
        \mathbf{y} = \hat D^{-1/2} \hat A \hat D^{-1/2} H \Theta, \qquad
        H' = H_{\mathrm{idx}} \odot \tanh(\mathbf{y}_{\mathrm{idx}})

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
        dropout (float): applied to the features that the convolution sees. (default: ``0.0``)
    """

    paper = "Lee, Lee, Kang: Self-Attention Graph Pooling, ICML"
    year = 2019
    about = "keeps the nodes that a graph convolution to one channel scores highest"
    cost = "O(N·d + E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__(in_channels, ratio, dropout)
        self.conv = GraphConv(in_channels, 1, "symmetric", negative_slope=1.0)  # slope 1: no activation

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """y, the convolution to one channel."""
        score: Tensor = self.conv(h, batch)
        return score.squeeze(1)
