"""GINConv: the convolutions of GIN, and of GINE where edges carry something."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tapnet.data.batch import NO_EDGE_ATTR, GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.linear import Affine
from tapnet.nn.norm import BatchNorm
from tapnet.ops.csr import propagate
from tapnet.ops.dropout import check_dropout, dropout
from tapnet.ops.edges import sum_of_messages


class GINConv(nn.Module):
    r"""LeakyReLU(MLP(hᵢ + Σⱼ mᵢⱼ)), an MLP of two layers with batch norm between them.

    Without features of edges the message mᵢⱼ is Aᵢⱼ hⱼ, as in *How Powerful are Graph Neural Networks?* (Xu, Hu,
    Leskovec, Jegelka, ICLR 2019); with them it is Aᵢⱼ ReLU(hⱼ + eᵢⱼ), as in *Strategies for Pre-training Graph Neural
    Networks* (Hu and others, ICLR 2020), with e a learned linear function of what the edge carries.

    Args:
        in_channels (int): the size of each node's features.
        out_channels (int): the size of those that come out.
        dropout (float): applied to the input. (default: ``0.0``)
        edge_channels (int): categories and numbers of an edge; 0 leaves them aside. (default: ``0``)
        negative_slope (float): of the LeakyReLU. (default: ``0.01``)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        dropout: float = 0.0,
        edge_channels: int = 0,
        negative_slope: float = 0.01,
    ) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels, self.out_channels, self.edge_channels = in_channels, out_channels, edge_channels
        self.dropout, self.negative_slope = dropout, negative_slope
        self.edge = Affine(edge_channels, in_channels) if edge_channels else None
        self.first, self.norm = nn.Linear(in_channels, out_channels), BatchNorm(out_channels)
        self.second = nn.Linear(out_channels, out_channels)  # no norm after it: sizes of graphs would be lost

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
        """[N, in] → [N, out]"""
        x = dropout(x, self.dropout, self.training)
        if self.edge is None or not isinstance(batch, GraphBatch):  # soft clusters have no edges of their own
            h = propagate(x, batch, "sum")
        elif batch.edge_attr is None:
            raise SettingError(f"the convolution reads what edges carry, {NO_EDGE_ATTR}")
        else:
            h = x + sum_of_messages(x, self.edge.weight, self.edge.bias, batch)
        h = self.second(torch.relu(self.norm(self.first(h))))
        return nn.functional.leaky_relu(h, self.negative_slope)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, {self.out_channels}, dropout={self.dropout}, edge_channels={self.edge_channels}"
