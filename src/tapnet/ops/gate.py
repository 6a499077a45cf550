"""The straight-through gate: kept rows pass unchanged, and their scores get a gradient nevertheless."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops.rows import gate_backward
from tapnet.ops.autograd import apply_function


def straight_through(x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
    """H[perm] · s / stop_gradient(s): forward H[perm] to the bit, backward as if the rows were multiplied by s.

    Args:
        x: [N, d] node features.
        perm: [K] the kept nodes.
        score: [N] the scores of all nodes.

    Returns:
        [K, d]
    """
    return apply_function(_StraightThrough, x, perm, score)


class _StraightThrough(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
        ctx.save_for_backward(x, perm, score)
        return x.index_select(0, perm)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        x, perm, score = ctx.saved_tensors
        grad_x = grad.new_zeros(x.shape).index_copy_(0, perm, grad)
        return grad_x, None, gate_backward(perm, grad, x, score)
