"""The straight-through gate: kept rows pass unchanged, and their scores get a gradient nevertheless."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops.jit import array, is_compiled
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
    rows: Tensor = apply_function(_StraightThrough, x, perm, score)
    return rows


class _StraightThrough(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
        rows = x.index_select(0, perm)
        ctx.save_for_backward(rows, perm, score)
        return rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        rows, perm, score = ctx.saved_tensors
        least = torch.finfo(score.dtype).tiny ** 0.5  # the quotient by a smaller score would overflow
        if is_compiled(grad) and is_compiled(score):
            out_x, out_score = np.zeros((len(score), grad.size(1)), array(grad).dtype), np.zeros_like(array(score))
            gate_backward(array(perm), array(grad), array(rows), array(score), least, out_x, out_score)
            return torch.from_numpy(out_x), None, torch.from_numpy(out_score)
        grad_x = grad.new_zeros(len(score), grad.size(1)).index_copy_(0, perm, grad)
        grad_score = torch.zeros_like(score).index_copy_(0, perm, (grad * rows).sum(dim=1).to(score.dtype))
        return grad_x, None, grad_score.div_(score.masked_fill(score.abs() < least, 1))
