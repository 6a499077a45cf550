"""Reductions over the runs of a flat array: one run a graph, no Python loop over graphs, no scatter.

A run g is ptr[g] to ptr[g+1]. On a CPU each is one compiled loop (``tapnet._loops``); elsewhere, torch's operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import segments as loops
from tapnet._loops.jit import array, is_compiled
from tapnet._loops.ranges import repeated
from tapnet.ops.autograd import apply_function


def segment_softmax(values: Tensor, ptr: Tensor) -> Tensor:
    """[N] → [N]: a softmax within each run."""
    result: Tensor = apply_function(_SegmentSoftmax, values, ptr)
    return result


class _SegmentSoftmax(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ptr: Tensor) -> Tensor:
        result = softmax_of(values, ptr)
        ctx.save_for_backward(result, ptr)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return softmax_gradient(grad, *ctx.saved_tensors), None


def softmax_of(values: Tensor, ptr: Tensor) -> Tensor:
    """``segment_softmax`` without a gradient."""
    if is_compiled(values):
        return torch.from_numpy(loops.softmax(array(ptr), array(values)))
    highest = torch.segment_reduce(values, "max", offsets=ptr)
    result = (values - repeated(highest, ptr.diff())).exp_()
    return result.div_(repeated(torch.segment_reduce(result, "sum", offsets=ptr), ptr.diff()))


def softmax_gradient(grad: Tensor, result: Tensor, ptr: Tensor) -> Tensor:
    """The gradient of the values, given that of their softmax."""
    if is_compiled(result):
        return torch.from_numpy(loops.softmax_backward(array(ptr), array(grad), array(result)))
    weighted = grad * result
    mean = torch.segment_reduce(weighted, "sum", offsets=ptr)
    return weighted.addcmul_(result, repeated(mean, ptr.diff()), value=-1)


def segment_readout(h: Tensor, ptr: Tensor) -> Tensor:
    """[N, d] → [B, 3d]: each run's maximum, mean and sum, side by side; zeros for an empty run."""
    result: Tensor = apply_function(_SegmentReadout if is_compiled(h) else _SegmentReadoutByBags, h, ptr)
    return result


class _SegmentReadout(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, ptr: Tensor) -> Tensor:
        out = torch.from_numpy(loops.readout(array(ptr), array(h)))
        ctx.save_for_backward(ptr, h, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ptr, h, out = (array(t) for t in ctx.saved_tensors)
        grad_h = np.empty_like(h)
        loops.readout_backward(ptr, h, out, array(grad), grad_h)
        return torch.from_numpy(grad_h), None


class _SegmentReadoutByBags(Function):
    """The same by torch, as bags of rows."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, ptr: Tensor) -> Tensor:
        nodes, starts = torch.arange(len(h), device=h.device), ptr[:-1]
        total = torch.embedding_bag(h, nodes, starts, mode=0)[0]
        highest, _, _, where = torch.embedding_bag(h, nodes, starts, mode=2)
        size = ptr.diff().unsqueeze(1)
        ctx.some_are_empty = not bool(size.all())
        ctx.save_for_backward(where, size.clamp(min=1), ptr)
        return torch.cat([highest, total / size.clamp(min=1), total], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        where, size, ptr = ctx.saved_tensors
        grad_max, grad_mean, grad_sum = grad.chunk(3, dim=1)
        grad_h = repeated(grad_sum + grad_mean / size, ptr.diff())
        # A maximum's gradient goes to the one node that has it (the first of equals).
        if ctx.some_are_empty:
            grad_max, where = grad_max.masked_fill(where < 0, 0), where.clamp(min=0)
        return grad_h.scatter_add_(0, where, grad_max), None


def top_k(score: Tensor, new_ptr: Tensor, ptr: Tensor) -> Tensor:
    """The highest scores of each run, so many that run g becomes new_ptr[g] to new_ptr[g+1]; ties to the lower number.

    Their numbers, in ascending order.
    """
    return (_top_k_by_threshold if is_compiled(score) else top_k_by_torch)(score, new_ptr, ptr)


def top_k_by_torch(score: Tensor, new_ptr: Tensor, ptr: Tensor) -> Tensor:
    """The same on any device, by sorting."""
    k = new_ptr.diff()
    segment = repeated(torch.arange(len(k), device=k.device), ptr.diff())
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(segment[order], stable=True)]  # each run together, best first
    rank = torch.arange(len(order), device=order.device) - ptr[segment]
    return order[rank < k[segment]].sort().values


def _top_k_by_threshold(score: Tensor, new_ptr: Tensor, ptr: Tensor) -> Tensor:
    """The same without sorting: the k-th highest of a run is found in linear time, and what is not below it stays."""
    bits: NDArray[Any] = array(score).view(np.int32 if score.dtype == torch.float32 else np.int64)
    sign, rest = 8 * bits.itemsize - 1, np.iinfo(bits.dtype).max
    key = bits ^ ((bits >> sign) & rest)  # orders as the floats do (-0.0 just below 0.0)
    return torch.from_numpy(loops.top_k_per_segment(key, array(ptr), array(new_ptr)))
