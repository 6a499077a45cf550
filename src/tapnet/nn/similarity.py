"""r(hᵢ, hⱼ): how alike two nodes are. Over the edges of a graph for local voting, over all pairs for links."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from tapnet.data.batch import GraphBatch, scaled_product

Similarity = Literal["bilinear", "dot", "gaussian", "concat"]
SIMILARITIES: tuple[Similarity, ...] = ("bilinear", "dot", "gaussian", "concat")

EDGES_AT_ONCE = 1 << 17  # bounds what is gathered at a time


def weight_shape(similarity: Similarity, channels: int) -> tuple[int, ...] | None:
    """The shape of its learned weight; None if it has none."""
    return {"bilinear": (channels, channels), "concat": (2 * channels,)}.get(similarity)


def pairwise(similarity: Similarity, weight: Tensor | None, a: Tensor, b: Tensor) -> Tensor:
    """[…, n, d] and […, m, d] → […, n, m]: r of every row of a with every row of b."""
    if similarity == "concat":
        first, second = _halves(weight)
        return torch.relu((a @ first).unsqueeze(-1) + (b @ second).unsqueeze(-2))
    if similarity == "bilinear":
        assert weight is not None
        a = a @ weight
    product = a @ b.transpose(-1, -2)
    return finite_exp(product) if similarity == "gaussian" else product


def linear_logits(
    h: Tensor, weight: Tensor | None, projection: Tensor | None, batch: GraphBatch
) -> tuple[Tensor, Tensor]:
    """[N] and [N]: Σⱼ (D̂⁻¹Â)ᵢⱼ hᵢ W_r hⱼᵀ, and Ĥᵢ p, with Ĥ = D̂⁻¹ÂH.

    r is linear in hⱼ, so the mean of r(hᵢ, ·) is r(hᵢ, the mean): (H W_r)ᵢ · Ĥᵢ. Both come from one product, and
    nothing is stored per edge.
    """
    mean, projected = _LinearLogits.apply(h, weight, projection, batch)
    return mean, projected


class _LinearLogits(Function):
    """As one step, since on small graphs most of the time is the number of calls."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor | None, projection: Tensor | None, batch: GraphBatch
    ) -> tuple[Tensor, Tensor]:
        inverse = batch.inverse_degree(h.dtype)
        aggregated = scaled_product(h, None, inverse, batch)  # Ĥ
        left = h if weight is None else h @ weight  # H W_r
        ctx.save_for_backward(h, weight, projection, aggregated, left)
        ctx.structure = inverse, batch
        mean = (left * aggregated).sum(dim=1)
        return mean, mean.new_zeros(len(h)) if projection is None else aggregated @ projection

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_mean: Tensor, of_projected: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, projection, aggregated, left = ctx.saved_tensors
        inverse, batch = ctx.structure
        of_mean = of_mean.unsqueeze(1)
        of_aggregated = of_mean * left
        if projection is not None:
            of_aggregated.addr_(of_projected, projection)
        of_left = of_mean * aggregated
        of_h = scaled_product(of_aggregated, inverse, None, batch, transpose=True)
        of_h = of_h.add_(of_left) if weight is None else of_h.addmm_(of_left, weight.t())
        return (
            of_h,
            None if weight is None else h.t() @ of_left,
            None if projection is None else of_projected @ aggregated,
            None,
        )


def mean_over_edges(similarity: Similarity, weight: Tensor | None, h: Tensor, batch: GraphBatch) -> Tensor:
    """[N]: Σⱼ (D̂⁻¹Â)ᵢⱼ r(hᵢ, hⱼ) for an r that is not linear: edge by edge, a bounded number at a time."""
    total = _paired(similarity, weight, h, h)  # each node with itself: Âᵢᵢ = 1
    for start in range(0, len(batch.neighbor), EDGES_AT_ONCE):
        row, col = batch.edge_index[:, start : start + EDGES_AT_ONCE]
        # recomputed going back, so that only one chunk's rows are ever held
        r = checkpoint(lambda i, j: _paired(similarity, weight, h[i], h[j]), row, col, use_reentrant=False)
        total = total.index_add(0, row, r)
    return total / (batch.degree + 1)


def _paired(similarity: Similarity, weight: Tensor | None, a: Tensor, b: Tensor) -> Tensor:
    """[n, d] and [n, d] → [n]: r of each row of a with the same row of b."""
    if similarity == "concat":
        first, second = _halves(weight)
        return torch.relu(a @ first + b @ second)
    return finite_exp((a * b).sum(dim=1))


def _halves(weight: Tensor | None) -> tuple[Tensor, Tensor]:
    assert weight is not None
    first, second = weight.chunk(2)
    return first, second


def finite_exp(values: Tensor) -> Tensor:
    """exp, cut off far enough below the largest number that sums over a graph stay finite."""
    return values.clamp(max=math.log(torch.finfo(values.dtype).max) - 24).exp()
