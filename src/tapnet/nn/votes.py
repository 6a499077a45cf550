"""The votes that make a node's score (Eq. 1, 2 and 4)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import rows as loops
from tapnet._loops.jit import array, is_compiled
from tapnet.data.batch import GraphBatch
from tapnet.nn.similarity import Similarity, is_linear, mean_over_edges
from tapnet.ops.autograd import apply_function
from tapnet.ops.csr import propagate, scaled_product_forward
from tapnet.ops.dropout import Mask
from tapnet.ops.precision import full_precision
from tapnet.ops.segments import segment_softmax


class Votes(NamedTuple):
    """The parts of each node's score, one value a node."""

    local: Tensor  # yᴸ, Eq. 1: zeros when local voting is off
    global_: Tensor  # yᴳ, Eq. 2: zeros when global voting is off
    connectivity: Tensor  # λ dᵢ / n, Eq. 4
    score: Tensor  # their sum


def votes_of(
    h: Tensor,
    batch: GraphBatch,
    weight: Tensor | None,
    projection: Tensor | None,
    *,
    similarity: Similarity = "bilinear",
    local_voting: bool = True,
    connectivity: float = 0.1,
    mask: Mask | None = None,
) -> Votes:
    """Eq. 1, 2 and 4 with W_r (or a similarity without a weight), p (None: no global voting) and λ.

    Where r is linear in hⱼ, its mean over the neighbours is r(hᵢ, their mean): with Ĥ = D̂⁻¹ÂH, the local vote is a
    softmax of (H W_r)ᵢ · Ĥᵢ / n and the global one of Ĥᵢ p. Both come from one product, and nothing is stored per
    edge. The votes see the features through ``mask``.
    """
    batch.check_rows(h)
    if projection is not None and h.size(1) != len(projection):  # the compiled loop does not look
        raise ValueError(f"nodes have {h.size(1)} features, and the layer is for {len(projection)}")
    if is_compiled(h) and is_linear(similarity) and (local_voting or projection is not None):
        return Votes(*apply_function(_LinearVotes, h, weight, projection, local_voting, connectivity, mask, batch))
    h = h if mask is None else mask.applied(h)
    y_local = y_global = torch.zeros_like(h[:, 0])
    linear = local_voting and is_linear(similarity)
    mean = propagate(h, batch, "mean") if linear or projection is not None else h
    if linear:
        left = h if weight is None else h @ weight
        y_local = segment_softmax((left * mean).sum(dim=1) / batch.size, batch.ptr)
    elif local_voting:
        y_local = segment_softmax(mean_over_edges(similarity, weight, h, batch) / batch.size, batch.ptr)
    if projection is not None:
        y_global = segment_softmax(mean @ projection, batch.ptr)
    degrees = batch.degree.to(h.dtype) * connectivity / batch.size
    return Votes(y_local, y_global, degrees, y_local + y_global + degrees)


class _LinearVotes(Function):
    """The same as one step with its gradient written out, for a CPU (``tapnet._loops`` says why)."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor | None,
        projection: Tensor | None,
        local_voting: bool,
        connectivity: float,
        mask: Mask | None,
        batch: GraphBatch,
    ) -> tuple[Tensor, ...]:
        h = h if mask is None else mask.on(h)
        inverse = batch.inverse_degree(h.dtype)
        mean = scaled_product_forward(h, None, inverse, batch)  # Ĥ
        left = h if weight is None else h @ weight  # H W_r
        p = mean.new_zeros(mean.size(1)) if projection is None else projection
        ptr, factors = array(batch.ptr), (array(left), array(mean), array(p))
        parts = loops.votes(ptr, array(batch.degree), *factors, connectivity, local_voting, projection is not None)
        votes = tuple(map(torch.from_numpy, parts))
        ctx.save_for_backward(h, weight, projection, mean, *votes[:2])
        ctx.arrays, ctx.mask, ctx.batch = (ptr, array(inverse)[:, 0], *factors), mask, batch
        ctx.mark_non_differentiable(votes[2])
        ctx.set_materialize_grads(False)
        return votes

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_local: Tensor | None, grad_global: Tensor | None, _: None, grad_score: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        h, weight, projection, mean, y_local, y_global = ctx.saved_tensors
        grad_local, grad_global = _sum(grad_local, grad_score, y_local), _sum(grad_global, grad_score, y_global)
        votes = (array(t) for t in (grad_local, grad_global, y_local, y_global))
        results = [np.empty(t.shape, array(t).dtype) for t in (mean, mean, y_global)]
        loops.votes_backward(*ctx.arrays, *votes, *results)
        grad_left, grad_mean, grad_projected = map(torch.from_numpy, results)
        grad_h = scaled_product_forward(grad_mean, None, None, ctx.batch, transpose=True)
        grad_weight = None
        with full_precision(h):
            grad_projection = None if projection is None else grad_projected @ mean
            if weight is not None:
                grad_h.addmm_(grad_left, weight.t())
                grad_weight = h.t() @ grad_left
            else:
                grad_h += grad_left
        return grad_h if ctx.mask is None else ctx.mask.on(grad_h), grad_weight, grad_projection, None, None, None, None


def _sum(a: Tensor | None, b: Tensor | None, like: Tensor) -> Tensor:
    if a is None or b is None:
        rest = b if a is None else a
        return torch.zeros_like(like) if rest is None else rest
    return a + b
