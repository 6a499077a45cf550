"""SortPool: the nodes that are largest in the last channel."""

from __future__ import annotations

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.select import SelectPooling


class SortPool(SelectPooling):
    """What the SortPooling of *An End-to-End Deep Learning Architecture for Graph Classification* ranks by, as a layer.

    The score yᵢ is the last channel of hᵢ; the kept rows go on as they are. There is nothing to learn.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
        dropout (float): applied to the channel that is ranked. (default: ``0.0``)
    """

    paper = "Zhang, Cui, Neumann, Chen: An End-to-End Deep Learning Architecture for Graph Classification, AAAI"
    year = 2018
    about = "keeps the nodes with the largest last channel; nothing is learned"
    cost = "O(N·d + E)"
    memory = "O(N·d + E)"

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """The last channel."""
        return h[:, -1]

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        """As they are."""
        return rows
