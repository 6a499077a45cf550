"""GraphConv: the graph convolution of Kipf and Welling, on categories or floats, with the normalisation to choose."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch, Norm
from tapnet.nn.dropout import dropout, keep_mask
from tapnet.nn.init import glorot_


class GraphConv(nn.Module):
    r"""LeakyReLU(norm(Â) dropout(H) W + b), with Â = A + I.

    ``norm`` is ``"neighbour"`` (ÂD̂⁻¹: a neighbour's features divided by that neighbour's degree, as in the
    authors' Graph U-Nets program), ``"symmetric"`` (D̂⁻½ÂD̂⁻½, which the paper cites), ``"mean"`` (D̂⁻¹Â) or
    ``"sum"`` (Â). Integer input ``[N]`` stands for its one-hot encoding, which is never built: one-hot times W is
    a row of W, and dropout keeps or drops a one-hot row whole.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        norm: Norm = "neighbour",
        dropout: float = 0.0,
        negative_slope: float = 0.01,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.norm: Norm = norm
        self.dropout, self.negative_slope = dropout, negative_slope
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """[N] categories or [N, in] floats → [N, out]"""
        if not x.is_floating_point():
            h = batch.propagate(self._looked_up(x), self.norm) + self.bias
        elif self.in_channels <= self.out_channels:  # the narrower side is propagated
            h = torch.addmm(self.bias, batch.propagate(dropout(x, self.dropout, self.training), self.norm), self.weight)
        else:
            h = batch.propagate(dropout(x, self.dropout, self.training) @ self.weight, self.norm) + self.bias
        return nn.functional.leaky_relu(h, self.negative_slope, inplace=True)

    def _looked_up(self, categories: Tensor) -> Tensor:
        rows = nn.functional.embedding(categories, self.weight)
        if self.training and self.dropout > 0:
            rows = rows * keep_mask((len(rows), 1), self.dropout, rows.dtype).to(rows.device)
        return rows

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, norm={self.norm!r}, dropout={self.dropout}"
