"""Operations on the segments of a flat array, with gradients: one segment per graph, no Python loop, no scatter.

Segment g is ptr[g] to ptr[g+1]. On a CPU each operation is one compiled loop, elsewhere torch's operations; both stand
in ``tapnet._loops.segments``.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import segments as loops
from tapnet.ops.autograd import apply_function

top_k = loops.top_k


def segment_softmax(values: Tensor, ptr: Tensor) -> Tensor:
    """A softmax within each segment.

    Args:
        values: ``[N]``
        ptr: ``[B+1]`` where each segment begins, and where the last one ends.

    Returns:
        ``[N]``
    """
    return apply_function(_SegmentSoftmax, values, ptr)


class _SegmentSoftmax(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ptr: Tensor) -> Tensor:
        result = loops.softmax(values, ptr)
        ctx.save_for_backward(result, ptr)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return loops.softmax_backward(grad, *ctx.saved_tensors), None


def segment_readout(h: Tensor, ptr: Tensor) -> Tensor:
    """Maximum, mean and sum of the rows of each segment, side by side.

    Args:
        h: ``[N, d]``
        ptr: ``[B+1]`` where each segment begins, and where the last one ends.

    Returns:
        ``[B, 3d]``, zeros for an empty segment.
    """
    return apply_function(_SegmentReadout, h, ptr)


class _SegmentReadout(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, ptr: Tensor) -> Tensor:
        out, saved, ctx.gradient = loops.readout(h, ptr)
        ctx.save_for_backward(*saved, ptr)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.gradient(grad, *ctx.saved_tensors), None
