"""The votes of TAP pooling as one step with its gradient written out, for a CPU: ``tapnet.nn.tap`` has the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import rows as loops
from tapnet._loops.jit import array
from tapnet.data.batch import GraphBatch
from tapnet.ops.autograd import apply_function
from tapnet.ops.csr import scaled_product_forward
from tapnet.ops.dropout import Mask
from tapnet.ops.precision import full_precision


def linear_votes(
    h: Tensor,
    weight: Tensor | None,
    projection: Tensor | None,
    local_voting: bool,
    connectivity: float,
    mask: Mask | None,
    batch: GraphBatch,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Local and global votes, connectivity and score, [N] each, for a similarity that is linear in hⱼ."""
    votes: Any = apply_function(_LinearVotes, h, weight, projection, local_voting, connectivity, mask, batch)
    return tuple(votes)


class _LinearVotes(Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor | None, projection: Tensor | None, *settings: Any
    ) -> tuple[Tensor, ...]:
        local_voting, connectivity, mask, batch = settings
        h = h if mask is None else mask.on(h)
        inverse = batch.inverse_degree(h.dtype)
        mean = scaled_product_forward(h, None, inverse, batch)  # Ĥ
        left = h if weight is None else h @ weight  # H W_r
        p = mean.new_zeros(mean.size(1)) if projection is None else projection
        ptr, factors = array(batch.ptr), (array(left), array(mean), array(p))
        degree = batch.degree if batch.weight is None else batch.row_sum.to(h.dtype)
        parts = loops.votes(ptr, array(degree), *factors, connectivity, local_voting, projection is not None)
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
        grads, votes = (array(grad_local), array(grad_global)), (array(y_local), array(y_global))
        results = tuple(np.empty(t.shape, array(t).dtype) for t in (mean, mean, y_global))
        loops.votes_backward(*ctx.arrays, grads, votes, results)
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
