"""TAP pooling as one step with its gradient written out, for a CPU: ``tapnet.nn.tap`` has the formulas."""

from __future__ import annotations

from collections.abc import Callable
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
from tapnet.ops.csr import neighbor_sum, scaled_product_forward
from tapnet.ops.dropout import Mask
from tapnet.ops.precision import full_precision

Select = Callable[[Tensor], Tensor]  # [N] scores → [K] the kept nodes, ascending


def linear_votes(
    x: Tensor,
    weight: Tensor | None,
    projection: Tensor | None,
    local_voting: bool,
    connectivity: float,
    mask: Mask | None,
    batch: GraphBatch,
    select: Select | None = None,
) -> tuple[Tensor, ...]:
    """Local and global votes, connectivity and score, [N] each, for a similarity that is linear in hⱼ.

    With ``select``, then also the nodes that it names and their rows of ``x``, which pass on the gradient of the
    straight-through gate: what ``tapnet.ops.gate`` does, without writing an [N, d] gradient that is mostly zeros.
    """
    votes: Any = apply_function(_LinearVotes, x, weight, projection, local_voting, connectivity, mask, batch, select)
    return tuple(votes)


class _LinearVotes(Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, projection: Tensor | None, *settings: Any
    ) -> tuple[Tensor, ...]:
        local_voting, connectivity, mask, batch, select = settings
        h = (x if mask is None else mask.on(x)).contiguous()
        inverse = array(batch.inverse_degree(h.dtype))[:, 0]
        mean = neighbor_sum(h, batch)  # Ĥ, once the loop has added H and divided by the degrees
        left = h if weight is None else h @ weight  # H W_r
        p = mean.new_zeros(mean.size(1)) if projection is None else projection
        ptr, factors = array(batch.ptr), (array(left), array(mean), array(p))
        degree = batch.degree if batch.weight is None else batch.row_sum.to(h.dtype)
        weights = connectivity, local_voting, projection is not None
        votes = tuple(map(torch.from_numpy, loops.votes(ptr, array(degree), inverse, array(h), *factors, *weights)))
        perm = None if select is None else select(votes[3])
        ctx.save_for_backward(x, h, weight, p, *votes, perm)
        ctx.left_and_mean, ctx.mask, ctx.batch = (left, mean), mask, batch
        ctx.set_materialize_grads(False)
        if perm is None:
            ctx.mark_non_differentiable(votes[2])
            return votes
        ctx.mark_non_differentiable(votes[2], perm)
        return *votes, perm, x.index_select(0, perm)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        grad_local: Tensor | None,
        grad_global: Tensor | None,
        _: None,
        grad_score: Tensor | None,
        __: None = None,
        grad_rows: Tensor | None = None,
    ) -> tuple[Tensor | None, ...]:
        x, h, weight, p, y_local, y_global, _, score, perm = ctx.saved_tensors
        needs_x, needs_weight, needs_projection, *_ = ctx.needs_input_grad
        if grad_rows is not None:
            grad_rows = grad_rows.contiguous()
            grad_gate = loops.gate_backward(perm, grad_rows, x, score)
            grad_score = grad_gate if grad_score is None else grad_gate + grad_score
        grad_local, grad_global = _sum(grad_local, grad_score, y_local), _sum(grad_global, grad_score, y_global)
        grads, votes = (array(grad_local), array(grad_global)), (array(y_local), array(y_global))
        left, mean = _take_left_and_mean(ctx, h, weight)
        grad_projection = torch.zeros_like(p)
        ptr, inverse = array(ctx.batch.ptr), array(ctx.batch.inverse_degree(h.dtype))[:, 0]
        sums = array(grad_projection), np.empty_like(array(grad_projection))
        loops.votes_backward(ptr, inverse, array(left), array(mean), array(p), grads, votes, sums)
        grad_left, grad_mean = mean, left
        with full_precision(h):
            grad_weight = h.t() @ grad_left if needs_weight else None
            if not needs_x:
                return None, grad_weight, grad_projection if needs_projection else None, None, None, None, None, None
            grad_x = scaled_product_forward(grad_mean, None, None, ctx.batch, transpose=True)
            if weight is not None:
                grad_x.addmm_(grad_left, weight.t())
            else:
                grad_x += grad_left
        grad_x = grad_x if ctx.mask is None else ctx.mask.on(grad_x)
        if grad_rows is not None:
            loops.add_rows(array(grad_x), array(perm), array(grad_rows))
        return grad_x, grad_weight, grad_projection if needs_projection else None, None, None, None, None, None


def _take_left_and_mean(ctx: Any, h: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """H W_r and Ĥ to write over; a second backward pass computes them again."""
    kept, ctx.left_and_mean = ctx.left_and_mean, None
    if kept is None:
        mean = scaled_product_forward(h, None, ctx.batch.inverse_degree(h.dtype), ctx.batch)
        with full_precision(h):
            return h.clone() if weight is None else h @ weight, mean
    left, mean = kept
    return left.clone() if weight is None else left, mean


def _sum(a: Tensor | None, b: Tensor | None, like: Tensor) -> Tensor:
    if a is None or b is None:
        rest = b if a is None else a
        return torch.zeros_like(like) if rest is None else rest
    return a + b
