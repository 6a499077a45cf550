"""NoPool: no pooling, as a layer, so that a network without pooling is built as any other."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Kind, Pooled, Pooling


class NoPool(Pooling):
    """The identity: all nodes stay as they are.

    Args:
        in_channels (int): d, the size of each node's features.
    """

    kind: ClassVar[Kind] = "none"
    directed: ClassVar[bool] = True
    about = "keeps every node"
    cost = "O(1)"
    memory = "O(1)"

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = self.out_channels = in_channels

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """The features and graphs that came in."""
        return Pooled(x, batch)
