"""r(hᵢ, hⱼ): how alike two nodes are. Over the edges of a graph for local voting, over all pairs for links."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError

Similarity = Literal["bilinear", "dot", "gaussian", "concat"]
SIMILARITIES: tuple[Similarity, ...] = ("bilinear", "dot", "gaussian", "concat")

EDGES_AT_ONCE = 1 << 17  # bounds what is gathered at a time


def check_similarity(similarity: str) -> None:
    """Raises SettingError for a word that is no similarity."""
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


def is_linear(similarity: Similarity) -> bool:
    """Whether r(hᵢ, hⱼ) is linear in hⱼ."""
    return similarity in ("bilinear", "dot")


def mean_over_edges(similarity: Similarity, weight: Tensor | None, h: Tensor, batch: GraphBatch) -> Tensor:
    """[N]: Σⱼ (D̂⁻¹Â)ᵢⱼ r(hᵢ, hⱼ) for an r that is not linear: edge by edge, a bounded number at a time."""
    total = _paired(similarity, weight, h, h)  # each node with itself: Âᵢᵢ = 1
    for start in range(0, len(batch.col), EDGES_AT_ONCE):
        row, col = batch.edge_index[:, start : start + EDGES_AT_ONCE]
        # recomputed in the backward pass, so that only one chunk's rows are ever held
        r = checkpoint(lambda i, j: _paired(similarity, weight, h[i], h[j]), row, col, use_reentrant=False)
        if batch.weight is not None:
            r = r * batch.weight[start : start + EDGES_AT_ONCE].to(r.dtype)
        total = total.index_add(0, row, r)
    return total / (batch.row_sum + 1)


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
