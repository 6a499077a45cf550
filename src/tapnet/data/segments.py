"""Reductions over the runs of a flat array: one run a graph, no loop over graphs, no scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def segment_softmax(values: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """[N] → [N]: a softmax within each run ptr[g] to ptr[g+1]; ``segment`` is the run that each entry is in."""
    result: Tensor = _SegmentSoftmax.apply(values, ptr, segment)
    return result


class _SegmentSoftmax(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
        result = softmax_of(values, ptr, segment)
        ctx.save_for_backward(result, ptr, segment)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return softmax_gradient(grad, *ctx.saved_tensors), None, None


def softmax_of(values: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """``segment_softmax`` without a gradient."""
    highest = torch.segment_reduce(values, "max", offsets=ptr)
    result = (values - highest.index_select(0, segment)).exp_()
    return result.div_(torch.segment_reduce(result, "sum", offsets=ptr).index_select(0, segment))


def softmax_gradient(grad: Tensor, result: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """The gradient of the values, given that of their softmax."""
    weighted = grad * result
    mean = torch.segment_reduce(weighted, "sum", offsets=ptr)
    return weighted.addcmul_(result, mean.index_select(0, segment), value=-1)


def segment_readout(h: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """[N, d] → [B, 3d]: each run's maximum, mean and sum, side by side."""
    result: Tensor = _SegmentReadout.apply(h, ptr, segment)
    return result


class _SegmentReadout(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
        nodes, starts = torch.arange(len(h), device=h.device), ptr[:-1]
        total = torch.embedding_bag(h, nodes, starts, mode=0)[0]
        highest, _, _, where = torch.embedding_bag(h, nodes, starts, mode=2)
        size = ptr.diff().unsqueeze(1)
        ctx.some_are_empty = not bool(size.all())
        if ctx.some_are_empty:
            size = size.clamp(min=1)
        ctx.save_for_backward(where, size, segment)
        return torch.cat([highest, total / size, total], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        where, size, segment = ctx.saved_tensors
        of_max, of_mean, of_sum = grad.chunk(3, dim=1)
        grad_h = (of_sum + of_mean / size).index_select(0, segment)
        # A maximum's gradient goes to the one node that has it (the first of equals).
        if ctx.some_are_empty:
            of_max, where = of_max.masked_fill(where < 0, 0), where.clamp(min=0)
        return grad_h.scatter_add_(0, where, of_max), None, None


def top_k(score: Tensor, k: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """The k[g] highest scores of each run g, ties to the lower number: their numbers in ascending order."""
    if score.dtype == torch.float32 and score.device.type == "cpu":
        return _top_k_by_threshold(score, k, ptr, segment)
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(segment[order], stable=True)]  # each run together, best first
    rank = torch.arange(len(order), device=order.device) - ptr[segment]
    return order[rank < k[segment]].sort().values


def _top_k_by_threshold(score: Tensor, k: Tensor, ptr: Tensor, segment: Tensor) -> Tensor:
    """The same, five times as fast on a CPU: sorting numbers is much cheaper than sorting where they stand.

    Run and score become one integer that orders by run, then by descending score; the k-th of a run is the
    threshold, and the first of those equal to it fill up what is missing.
    """
    bits = score.numpy().view(np.int32)
    ascending = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # orders as the floats do (-0.0 just below 0.0)
    runs = segment.numpy()
    key = (runs << 32) - ascending
    bounds, wanted = ptr.numpy(), k.numpy()
    threshold = np.sort(key)[(bounds[:-1] + wanted - 1).clip(min=0)] if len(key) else key
    limit = threshold[runs]
    keep = key <= limit
    if np.count_nonzero(keep) > wanted.sum():  # more nodes than wanted are equal to a threshold
        ties = key == limit
        rank = np.concatenate([[0], np.cumsum(ties)])
        kept = np.concatenate([[0], np.cumsum(keep)])
        surplus = np.diff(kept[bounds]) - wanted  # so many of the last ties of a run have to go
        last_tie = np.repeat(rank[bounds[1:]], np.diff(bounds))
        keep &= ~(ties & (last_tie - rank[1:] < surplus[runs]))
    return torch.from_numpy(np.flatnonzero(keep))
