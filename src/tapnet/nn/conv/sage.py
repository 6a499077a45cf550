"""SAGEConv: the mean of the neighbours beside the node itself."""

from __future__ import annotations

from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.ops.csr import propagate
from tapnet.ops.dropout import check_dropout, dropout


class SAGEConv(nn.Module):
    r"""LeakyReLU(hᵢ W₁ + (D̂⁻¹Â H)ᵢ W₂ + b), from *Inductive Representation Learning on Large Graphs* (Hamilton and
    others, 2017), with the node itself in its mean, as its authors' mean aggregator has it.

    Args:
        in_channels (int): the size of each node's features.
        out_channels (int): the size of those that come out.
        dropout (float): applied to the input. (default: ``0.0``)
        negative_slope (float): of the LeakyReLU. (default: ``0.01``)
    """  # noqa: D205

    def __init__(self, in_channels: int, out_channels: int, dropout: float = 0.0, negative_slope: float = 0.01) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.dropout, self.negative_slope = dropout, negative_slope
        self.own = nn.Linear(in_channels, out_channels)
        self.neighbours = nn.Linear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
        """[N, in] → [N, out]"""
        x = dropout(x, self.dropout, self.training)
        h = self.own(x) + self.neighbours(propagate(x, batch, "mean"))
        return nn.functional.leaky_relu(h, self.negative_slope)
