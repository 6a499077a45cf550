"""Products with the normalised adjacency matrix, and the subgraph of some nodes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import edges as loops
from tapnet._loops.csr import induced_csr, induced_entries
from tapnet._loops.jit import array, is_compiled
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.ops.autograd import apply_function

# Up to so many values one thread adds the same up as fast: torch's operator wakes all threads for any number, and waits
# for milliseconds where another program has their core.
FEW = 1 << 17
Norm = Literal["neighbour", "symmetric", "mean", "sum"]


def propagate(h: Tensor, batch: GraphBatch | DenseBatch, norm: Norm) -> Tensor:
    """[N, d] → [N, d]: ÂD̂⁻¹H ("neighbour"), D̂⁻½ÂD̂⁻½H ("symmetric"), D̂⁻¹ÂH ("mean") or ÂH ("sum")."""
    if isinstance(batch, DenseBatch):
        return _propagate_dense(h, batch, norm)
    return scaled_product(h, *scales(batch, norm, h.dtype), batch)


def scales(batch: GraphBatch, norm: Norm, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """What multiplies the rows before and after the product with Â, each [N, 1] or None."""
    if norm == "sum":
        return None, None
    inverse = batch.inverse_degree(dtype)
    if norm == "symmetric":
        root = inverse.sqrt()
        return root, root
    return (inverse, None) if norm == "neighbour" else (None, inverse)


def scaled_product(h: Tensor, before: Tensor | None, after: Tensor | None, batch: GraphBatch) -> Tensor:
    """after · Â · before · H, where before and after are scales of rows [N, 1], which get no gradient."""
    return apply_function(_ScaledProduct, h, before, after, batch)


class _ScaledProduct(Function):
    """after · Â · before · H; its backward is the same with before and after exchanged and Â transposed."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, before: Tensor | None, after: Tensor | None, batch: GraphBatch) -> Tensor:
        ctx.scales, ctx.batch = (before, after), batch
        return scaled_product_forward(h, before, after, batch)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        before, after = ctx.scales
        return scaled_product_forward(grad, after, before, ctx.batch, transpose=True), None, None, None


def scaled_product_forward(
    h: Tensor, before: Tensor | None, after: Tensor | None, batch: GraphBatch, transpose: bool = False
) -> Tensor:
    """``scaled_product`` (with Âᵀ for ``transpose``) without a gradient."""
    rows = h.contiguous() if before is None else h * before
    result = neighbor_sum(rows, batch, transpose=transpose).add_(rows)
    return result if after is None else result.mul_(after)


def neighbor_sum(h: Tensor, batch: GraphBatch, *, transpose: bool = False) -> Tensor:
    """AH (or AᵀH), without a gradient. One bag of rows per node: many times as fast as gather and scatter."""
    if h.size(0) == 0 or h.size(1) == 0:
        return torch.zeros_like(h)
    (rowptr, col), weight = (batch.rowptr, batch.col), batch.weight
    if transpose and batch.transposed:
        (rowptr, col), weight = batch.transposed, batch.transposed_weight
    if weight is None and len(col) * h.size(1) <= FEW and is_compiled(h):
        out = np.empty(h.shape, array(h).dtype)
        loops.neighbor_sum(array(rowptr), array(col), array(h), out)
        return torch.from_numpy(out)
    weight = None if weight is None else weight.to(h.dtype)
    return torch.embedding_bag(h, col, rowptr[:-1], mode=0, per_sample_weights=weight)[0]


def induced_subgraph(batch: GraphBatch, perm: Tensor, ptr: Tensor) -> GraphBatch:
    """The subgraph of these nodes (ascending; graph g has perm[ptr[g]:ptr[g+1]]): A′ = A[perm, perm].

    The edges between them keep what they carry.
    """
    transposed = batch.transposed and induced_csr(*batch.transposed, perm)
    weight = edge_attr = transposed_weight = None
    if batch.weight is not None or batch.edge_attr is not None:
        kept = induced_entries(batch.rowptr, batch.col, perm)
        weight = None if batch.weight is None else batch.weight.index_select(0, kept)
        edge_attr = None if batch.edge_attr is None else batch.edge_attr.index_select(0, kept)
    if batch.transposed is not None and batch.transposed_weight is not None:
        transposed_weight = batch.transposed_weight.index_select(0, induced_entries(*batch.transposed, perm))
    rowptr, col = induced_csr(batch.rowptr, batch.col, perm)
    structure = (ptr, rowptr, col, transposed, weight)
    return GraphBatch(batch.x, batch.y, *structure, edge_attr=edge_attr, transposed_weight=transposed_weight)


def _propagate_dense(h: Tensor, batch: DenseBatch, norm: Norm) -> Tensor:
    """The same with Â = A + I and D̂ its row sums."""
    hat = batch.adjacency + torch.eye(batch.adjacency.size(1), dtype=h.dtype, device=h.device)
    degree = hat.sum(dim=2, keepdim=True)
    before = {"neighbour": 1 / degree, "symmetric": degree.rsqrt()}.get(norm)
    after = {"mean": 1 / degree, "symmetric": degree.rsqrt()}.get(norm)
    rows = h.view(batch.num_graphs, -1, h.size(1))
    result = hat @ (rows if before is None else before * rows)
    return (result if after is None else after * result).flatten(0, 1)
