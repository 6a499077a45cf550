"""A dense layer whose input may be categories: a one-hot row times W is a row of W."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tapnet.data.features import FeatureRows
from tapnet.ops.features import product


class Affine(nn.Module):
    """xW + b for [N, in] floats, [N] integer categories, or both; initialised as torch's Linear."""

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        bound = 1 / math.sqrt(max(in_channels, 1))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-bound, bound)

    def product(self, x: FeatureRows) -> Tensor:
        """xW"""
        return product(x, self.weight)

    def forward(self, x: FeatureRows) -> Tensor:
        """xW + b"""
        return self.shifted(self.product(x))

    def shifted(self, h: Tensor) -> Tensor:
        """h + b"""
        return h if self.bias is None else h + self.bias
