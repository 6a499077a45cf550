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
from tapnet.data.segments import softmax_gradient, softmax_of
from tapnet.errors import SettingError

Similarity = Literal["bilinear", "dot", "gaussian", "concat"]
SIMILARITIES: tuple[Similarity, ...] = ("bilinear", "dot", "gaussian", "concat")

EDGES_AT_ONCE = 1 << 17  # bounds what is gathered at a time


def check_similarity(similarity: str) -> None:
    if similarity not in SIMILARITIES:
        raise SettingError(f"similarity is one of {', '.join(SIMILARITIES)}, not {similarity!r}")


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


def linear_votes(
    h: Tensor, weight: Tensor | None, projection: Tensor | None, local: bool, batch: GraphBatch
) -> tuple[Tensor, Tensor]:
    """[N] and [N]: yᴸ of Eq. 1 with r(hᵢ, hⱼ) = hᵢ W_r hⱼᵀ (without a weight, the dot product), and yᴳ of Eq. 2.

    r is linear in hⱼ, so the mean of r(hᵢ, ·) over the neighbours is r(hᵢ, their mean): with Ĥ = D̂⁻¹ÂH, the local
    vote is a softmax of (H W_r)ᵢ · Ĥᵢ / n and the global one of Ĥᵢ p. Both come from one product, and nothing is
    stored per edge. Without ``local``, or without a projection, that vote is zero.
    """
    y_local, y_global = _LinearVotes.apply(h, weight, projection, local, batch)
    return y_local, y_global


class _LinearVotes(Function):
    """As one step with its gradient written out, since on small graphs most of the time is the number of calls."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor | None, projection: Tensor | None, local: bool, batch: GraphBatch
    ) -> tuple[Tensor, Tensor]:
        inverse, size = batch.inverse_degree(h.dtype), batch.size.to(h.dtype)
        aggregated = scaled_product(h, None, inverse, batch)  # Ĥ
        left, y_local, y_global = None, h.new_zeros(len(h)), h.new_zeros(len(h))
        if local:
            left = h if weight is None else h @ weight  # H W_r
            y_local = softmax_of((left * aggregated).sum(dim=1).div_(size), batch.ptr, batch.graph)
        if projection is not None:
            y_global = softmax_of(aggregated @ projection, batch.ptr, batch.graph)
        ctx.save_for_backward(h, weight, projection, aggregated, left, y_local, y_global)
        ctx.structure = inverse, size, batch
        return y_local, y_global

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_local: Tensor, grad_global: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, projection, aggregated, left, y_local, y_global = ctx.saved_tensors
        inverse, size, batch = ctx.structure
        of_left = of_weight = of_projection = None
        of_aggregated = torch.zeros_like(h) if left is None else left
        if left is not None:
            of_mean = softmax_gradient(grad_local, y_local, batch.ptr, batch.graph).div_(size).unsqueeze(1)
            of_aggregated, of_left = of_mean * left, of_mean * aggregated
        if projection is not None:
            of_projected = softmax_gradient(grad_global, y_global, batch.ptr, batch.graph)
            of_aggregated.addr_(of_projected, projection)
            of_projection = of_projected @ aggregated
        of_h = scaled_product(of_aggregated, inverse, None, batch, transpose=True)
        if of_left is not None and weight is not None:
            of_h.addmm_(of_left, weight.t())
            of_weight = h.t() @ of_left
        elif of_left is not None:
            of_h += of_left
        return of_h, of_weight, of_projection, None, None


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
