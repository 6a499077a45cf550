"""Messages along edges that carry something: Σⱼ Aᵢⱼ ReLU(hⱼ + eᵢⱼ), with its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import edges as loops
from tapnet._loops.jit import is_compiled
from tapnet.data.batch import GraphBatch
from tapnet.data.features import MixedFeatures
from tapnet.ops.autograd import apply_function
from tapnet.ops.features import combination_rows, product


def sum_of_messages(h: Tensor, weight: Tensor, bias: Tensor | None, batch: GraphBatch) -> Tensor:
    """[N, d]: for each node i the sum over its edges of Aᵢⱼ ReLU(hⱼ + eᵢⱼ), with e = edge_attr · W + b.

    Few kinds of edges occur, so that e is a table with a row for each kind; only where edges carry numbers it has a
    row for each edge.

    Args:
        h: ``[N, d]``
        weight: ``[edge channels, d]``
        bias: ``[d]``, or None
        batch: the graphs, with ``edge_attr``.
    """
    attr = batch.edge_attr
    assert attr is not None
    if isinstance(attr, MixedFeatures) and attr.numbers is None:
        kind, rows = attr.combination, combination_rows(attr.table, weight)
    elif isinstance(attr, Tensor) and not attr.is_floating_point():
        kind, rows = attr, weight
    else:
        kind, rows = torch.arange(len(attr), device=h.device), product(attr, weight)
    rows = rows if bias is None else rows + bias
    if is_compiled(h, rows):
        return apply_function(_SumOfMessages, h, rows, kind, batch)
    source, target = batch.edge_index[1], batch.edge_index[0]
    messages = torch.relu(h.index_select(0, source) + rows.index_select(0, kind))
    if batch.weight is not None:
        messages = messages * batch.weight.to(h.dtype).unsqueeze(1)
    return torch.zeros_like(h).index_add(0, target, messages)


class _SumOfMessages(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, rows: Tensor, kind: Tensor, batch: GraphBatch) -> Tensor:
        scale = torch.ones(0, dtype=h.dtype) if batch.weight is None else batch.weight.to(h.dtype)
        ctx.save_for_backward(h, rows, kind, scale)
        ctx.batch = batch
        result: Tensor = loops.sum_of_messages(h, rows, kind, scale, batch.rowptr, batch.col)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, rows, kind, scale = ctx.saved_tensors
        structure = (kind, scale, ctx.batch.rowptr, ctx.batch.col)
        grad_h, grad_rows = loops.sum_of_messages_backward(grad.contiguous(), h, rows, *structure)
        return grad_h, grad_rows, None, None
