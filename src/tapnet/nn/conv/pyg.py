"""PyGConv: a convolution of PyG, or one with its calling convention, in a TAPNet."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.linear import Affine
from tapnet.ops.dropout import check_dropout, dropout


def takes_edges(conv: type[nn.Module]) -> bool:
    """Whether a class of convolutions, called as PyG's, reads what edges carry besides their weights."""
    takes, built = inspect.signature(conv.forward).parameters, inspect.signature(conv).parameters
    return "edge_attr" in takes and "edge_dim" in built


def takes_weights(conv: type[nn.Module]) -> bool:
    """Whether it reads the weights of edges."""
    return "edge_weight" in inspect.signature(conv.forward).parameters


class PyGConv(nn.Module):
    """LeakyReLU(conv(H)), for a convolution that is called as ``conv(x, edge_index)``.

    It is built as ``conv(in_channels, out_channels)``. One that takes ``edge_attr`` and is built with an ``edge_dim``
    gets a learned linear function of what the edges carry; one that takes ``edge_weight`` gets the weights.

    Args:
        conv (type): the class of the convolution.
        in_channels (int): the size of each node's features.
        out_channels (int): the size of those that come out.
        dropout (float): applied to the input. (default: ``0.0``)
        edge_channels (int): categories and numbers of an edge; 0 leaves them aside. (default: ``0``)
        negative_slope (float): of the LeakyReLU. (default: ``0.01``)

    Raises:
        SettingError: if the class cannot be built or called so.

    Example:
        >>> from torch_geometric.nn import GATConv
        >>> PyGConv(GATConv, 8, 16).conv
        GATConv(8, 16, heads=1)
    """

    def __init__(
        self,
        conv: type[nn.Module],
        in_channels: int,
        out_channels: int,
        dropout: float = 0.0,
        edge_channels: int = 0,
        negative_slope: float = 0.01,
    ) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.dropout, self.negative_slope = dropout, negative_slope
        reads = edge_channels > 0 and takes_edges(conv)
        self.weighted = takes_weights(conv)
        self.edge = Affine(edge_channels, in_channels) if reads else None
        more: dict[str, Any] = {"edge_dim": in_channels} if reads else {}
        try:
            self.conv = conv(in_channels, out_channels, **more)
        except Exception as error:
            raise SettingError(
                f"{conv.__qualname__}({in_channels}, {out_channels}) cannot be built: {error}"
            ) from error

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
        """[N, in] → [N, out]"""
        if not isinstance(batch, GraphBatch):
            raise ValueError(f"{type(self.conv).__name__} convolves sparse graphs, not a DenseBatch")
        given: dict[str, Tensor] = {}
        if self.edge is not None and batch.edge_attr is not None:
            given["edge_attr"] = self.edge(batch.edge_attr)
        if self.weighted and batch.weight is not None:
            given["edge_weight"] = batch.weight.to(x.dtype)
        edge_index = batch.edge_index.flip(0)  # PyG's messages go from row 0 to row 1
        h = self.conv(dropout(x, self.dropout, self.training), edge_index, **given)
        if h.shape != (len(x), self.out_channels):
            wanted = [len(x), self.out_channels]
            raise SettingError(f"{type(self.conv).__name__} returned {list(h.shape)} where {wanted} was expected")
        return nn.functional.leaky_relu(h, self.negative_slope)
