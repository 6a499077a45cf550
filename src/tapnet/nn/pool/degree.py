"""DegreePool: the nodes of the highest degrees, a control."""

from __future__ import annotations

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.select import SelectPooling


class DegreePool(SelectPooling):
    """Keeps the nodes of the highest degrees, as they are: what the connectivity term of TAP would do alone.

    There is nothing to learn. With weighted edges the degree is the sum of the weights.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
    """

    about = "a control: keeps the nodes of the highest degrees; nothing is learned"
    cost = "O(N·d + E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, ratio: float | int = 0.5) -> None:
        super().__init__(in_channels, ratio)

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """The degree."""
        return batch.row_sum.to(h.dtype)

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        """As they are."""
        return rows
