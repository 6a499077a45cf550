"""What soft clusterings ask of a batch, whether its graphs are sparse or dense: padded rows, XᵀY, AH, ‖A‖²."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.ops.autograd import apply_function
from tapnet.ops.csr import propagate
from tapnet.ops.precision import widened


def to_padded(h: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [B, n, d], with zeros below the rows of smaller graphs."""
    if isinstance(batch, DenseBatch):
        return h.view(batch.num_graphs, -1, h.size(1))
    sizes = batch.nodes_per_graph
    longest = int(sizes.max())
    within = torch.arange(len(h), device=h.device) - batch.ptr.index_select(0, batch.graph)
    rows = h.new_zeros(len(sizes) * longest, h.size(1))
    return rows.index_copy_(0, batch.graph * longest + within, h).view(len(sizes), longest, h.size(1))


def graph_products(x: Tensor, y: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, K] and [N, d] → [B, K, d]: XᵀY of the rows of each graph.

    Where graphs differ much in size nothing is padded: in PROTEINS a padded row of 15 would be a node's.
    """
    if isinstance(batch, DenseBatch) or batch.num_graphs * int(batch.nodes_per_graph.max()) <= 2 * len(x):
        rows = to_padded(x, batch)
        return rows.transpose(1, 2) @ (rows if y is x else to_padded(y, batch))
    return apply_function(_GraphProducts, widened(x), widened(y), batch.nodes_per_graph.tolist())


class _GraphProducts(Function):
    """The products one graph after another, of rows that stay as they are."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes
        ctx.save_for_backward(x, y)
        out = x.new_empty(len(sizes), x.size(1), y.size(1))
        for product, of_x, of_y in zip(out, x.split(sizes), y.split(sizes), strict=True):
            torch.mm(of_x.t(), of_y, out=product)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (x, y), sizes = ctx.saved_tensors, ctx.sizes
        grad_x = _rows_times(y, grad.transpose(1, 2), sizes) if ctx.needs_input_grad[0] else None
        grad_y = _rows_times(x, grad, sizes) if ctx.needs_input_grad[1] else None
        return grad_x, grad_y, None


def _rows_times(rows: Tensor, matrices: Tensor, sizes: list[int]) -> Tensor:
    """[N, K] and [B, K, d] → [N, d]: the rows of each graph times its matrix."""
    out = rows.new_empty(len(rows), matrices.size(2))
    for of_out, of_rows, matrix in zip(out.split(sizes), rows.split(sizes), matrices, strict=True):
        torch.mm(of_rows, matrix, out=of_out)
    return out


def graph_sums(h: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [B, d]: the sum of the rows of each graph."""
    if isinstance(batch, DenseBatch):
        return to_padded(h, batch).sum(dim=1)
    return h.new_zeros(batch.num_graphs, h.size(1)).index_add(0, batch.graph, h)


def adjacency_product(h: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [N, d]: AH, with a gradient."""
    if isinstance(batch, DenseBatch):
        return (batch.adjacency @ to_padded(h, batch)).flatten(0, 1)
    return propagate(h, batch, "sum") - h


def squared_norm(batch: GraphBatch | DenseBatch) -> Tensor:
    """[B] ‖A‖², the sum of the squares of A; of a graph without weights the number of its ones."""
    if isinstance(batch, DenseBatch):
        return batch.adjacency.square().sum(dim=(1, 2))
    return batch.rowptr.index_select(0, batch.ptr).diff()
