"""PANPool: nodes ranked by their features and by the paths through them."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.select import SelectPooling
from tapnet.ops.dense import adjacency_product


class PANPool(SelectPooling):
    r"""The layer from *Path Integral Based Convolution and Pooling for Graph Neural Networks* (Ma et al., 2020).

    With the maximal entropy transition matrix

    .. math::
        M = Z^{-1/2} \sum_{l=0}^{L} e^{-\varepsilon_l} A^l Z^{-1/2}

    and Z the row sums of the sum, the scores are :math:`\mathbf{s} = \beta_1 H \mathbf{p} + \beta_2 M \mathbf{1}`; the
    kept rows are multiplied by tanh of them. M is never made: M1 is 2L products of A with a vector. The start values
    are those of PyG's ``PANPooling`` and ``PANConv``: p = 1, β = 0.5, weights of 2⁻¹, 2⁻², … The coarsened graph has
    the edges of A between the kept nodes, where PyG has those of M.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
        dropout (float): applied to the features that are projected. (default: ``0.0``)
        filter_size (int): L, the length of the longest paths. (default: ``2``)

    Raises:
        SettingError: if an argument cannot have the given value.
    """

    paper = "Ma, Xuan, Wang, Li, Liò: Path Integral Based Convolution and Pooling for Graph Neural Networks, NeurIPS"
    year = 2020
    about = "keeps the nodes of the highest projection plus weight of the paths through them"
    cost = "O(N·d + E)"
    memory = "O(N·d + E)"
    directed = False

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0, filter_size: int = 2) -> None:
        super().__init__(in_channels, ratio, dropout)
        if filter_size < 1:
            raise SettingError(f"filter_size is a whole number, at least 1, not {filter_size}")
        self.projection = nn.Parameter(torch.ones(in_channels))  # p
        self.beta = nn.Parameter(torch.full((2,), 0.5))
        self.energy = nn.Parameter(math.log(2) * torch.arange(1.0, filter_size + 2))  # ε

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """β₁Hp + β₂M1"""
        weights = torch.exp(-self.energy).to(h.dtype)
        graphs = replace(batch, weight=None, transposed_weight=None)

        def paths(start: Tensor) -> Tensor:
            total = weights[0] * start
            for weight in weights[1:]:
                start = adjacency_product(start, graphs)
                total = total + weight * start
            return total

        root = paths(h.new_ones(len(h), 1)).rsqrt()  # Z^(-1/2)
        through = (root * paths(root)).squeeze(1)  # M1
        beta = self.beta.to(h.dtype)
        return beta[0] * (h @ self.projection.to(h.dtype)) + beta[1] * through
