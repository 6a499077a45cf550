"""GraphConv: the graph convolution of Kipf and Welling, on categories or floats, with the normalisation to choose."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.data.features import FeatureRows, MixedFeatures
from tapnet.errors import SettingError
from tapnet.ops.autograd import apply_function
from tapnet.ops.csr import Norm, propagate, scaled_product, scaled_product_forward, scales
from tapnet.ops.dropout import Mask, check_dropout, dropout
from tapnet.ops.features import product
from tapnet.ops.precision import full_precision, widened

Structure = tuple[Tensor | None, Tensor | None, GraphBatch]  # factors before and after the product with Â, and Â


class GraphConv(nn.Module):
    r"""LeakyReLU(norm(Â) dropout(H) W + b), with Â = A + I.

    The graph convolution of *Semi-Supervised Classification with Graph Convolutional Networks* (Kipf, Welling, 2017),
    with a choice of the normalisation. Integer input ``[N]`` stands for its one-hot encoding, which is never built:
    one-hot times W is a row of W, and dropout keeps or drops a one-hot row whole.

    Args:
        in_channels (int): the number of features, or of categories.
        out_channels (int): the size of each node's features that come out.
        norm (str): ``"neighbour"`` (ÂD̂⁻¹: a neighbour's features divided by that neighbour's degree, as in the
            authors' Graph U-Nets program), ``"symmetric"`` (D̂⁻½ÂD̂⁻½, which the paper cites), ``"mean"`` (D̂⁻¹Â) or
            ``"sum"`` (Â). (default: ``"neighbour"``)
        dropout (float): applied to the input. (default: ``0.0``)
        negative_slope (float): of the LeakyReLU; 1 means no activation, 0 ReLU. (default: ``0.01``)

    Raises:
        SettingError: if the normalisation or the dropout cannot be.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        norm: Norm = "neighbour",
        dropout: float = 0.0,
        negative_slope: float = 0.01,
    ) -> None:
        super().__init__()
        if norm not in get_args(Norm):
            raise SettingError(f"norm is one of {', '.join(get_args(Norm))}, not {norm!r}")
        check_dropout(dropout)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.norm: Norm = norm
        self.dropout, self.negative_slope = dropout, negative_slope
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weight anew, by Xavier's uniform distribution; the bias is zero."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: FeatureRows, batch: GraphBatch | DenseBatch) -> Tensor:
        """[N] categories, [N, in] floats, or both → [N, out]"""
        with full_precision(self.weight if isinstance(x, MixedFeatures) else x):
            return self._convolved(x if isinstance(x, MixedFeatures) else widened(x), batch)

    def _convolved(self, x: FeatureRows, batch: GraphBatch | DenseBatch) -> Tensor:
        if isinstance(x, MixedFeatures) or not x.is_floating_point():
            assert isinstance(batch, GraphBatch)
            return nn.functional.leaky_relu_(self._looked_up(x, batch) + self.bias, self.negative_slope)
        if isinstance(batch, GraphBatch) and self.in_channels <= self.out_channels:  # the narrower side is propagated
            structure = (*scales(batch, self.norm, x.dtype), batch)
            result: Tensor = apply_function(
                _PropagateThenMultiply, x, self.weight, self.bias, self._mask(), structure, self.negative_slope
            )
            return result
        rows = propagate(dropout(x, self.dropout, self.training) @ self.weight, batch, self.norm)
        return nn.functional.leaky_relu_(rows + self.bias, self.negative_slope)

    def _looked_up(self, x: FeatureRows, batch: GraphBatch) -> Tensor:
        rows = product(x, self.weight)
        before, after = scales(batch, self.norm, rows.dtype)
        if mask := self._mask():  # a whole row is kept or dropped: one more factor of it
            before = mask.on(rows.new_ones(len(rows), 1) if before is None else before)
        return scaled_product(rows, before, after, batch)

    def _mask(self) -> Mask | None:
        return Mask.draw(self.dropout) if self.training and self.dropout > 0 else None

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, {self.out_channels}, norm={self.norm!r}, dropout={self.dropout}"


class _PropagateThenMultiply(Function):
    """LeakyReLU(norm(Â) (mask · X) W + b) as one step: on small graphs most of the time is the number of calls."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mask: Mask | None, structure: Structure, slope: float
    ) -> Tensor:
        aggregated = scaled_product_forward(x if mask is None else mask.on(x), *structure)
        out = nn.functional.leaky_relu_(torch.addmm(bias, aggregated, weight), slope)
        ctx.save_for_backward(aggregated, weight, out)
        ctx.structure, ctx.mask, ctx.slope = structure, mask, slope
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        aggregated, weight, out = ctx.saved_tensors
        (before, after, batch), mask = ctx.structure, ctx.mask
        with full_precision(grad):  # autocast would change the type of the gradient, and a mask draws by type
            grad = torch.ops.aten.leaky_relu_backward(grad, out, ctx.slope, True)
            grad_x = scaled_product_forward(grad @ weight.t(), after, before, batch, transpose=True)
            if mask is not None:
                grad_x = mask.on(grad_x)
            return grad_x, aggregated.t() @ grad, grad.sum(0), None, None, None
