"""Rows of features: dropout, the votes of TAP (Eq. 1, 2 and 4) and its gate, with their gradients."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array, array, compiled_by, kernel

Arrays = tuple[Array, ...]
u32 = np.uint32


def _dropout_loop(h: Tensor, p: float, seed: int) -> Tensor:
    """Torch draws one slow random number per element; here they are hashes."""
    limit = min(max(1, round((1 - p) * 2**32)), 2**32 - 1)
    out = np.empty(h.shape, array(h).dtype)
    _dropout(array(h).ravel(), seed, limit, 2**32 / limit, out.ravel())
    return torch.from_numpy(out)


@partial(kernel, in_training="f4[::1], i8, i8, f8, f4[::1]")
def _dropout(h: Array, seed: int, threshold: int, scale: float, out: Array) -> None:
    """[n] → each element times the scale where its 32 random bits are below the threshold, else zero.

    The bits are a hash of the seed and the element's place (two rounds as in MurmurHash3, whose high bits are good),
    so that the backward pass can draw them again instead of storing them.
    """
    low, high, limit = u32(seed & 0xFFFFFFFF), u32((seed >> 32) & 0xFFFFFFFF), u32(threshold)
    factor, zero = h.dtype.type(scale), h.dtype.type(0)
    for i in range(len(h)):
        z = u32(u32(u32(i) * u32(0x9E3779B1)) + low)
        z = u32(u32(u32(z ^ (z >> u32(16))) ^ high) * u32(0x85EBCA6B))
        z = u32(u32(z ^ (z >> u32(13))) * u32(0xC2B2AE35))
        out[i] = h[i] * (factor if z < limit else zero)


@compiled_by(_dropout_loop)
def dropout(h: Tensor, p: float, seed: int) -> Tensor:
    """h / (1-p) with probability 1-p, else 0: the same elements for the same seed, without a gradient.

    The loop draws other random bits.
    """
    generator = torch.Generator(h.device).manual_seed(seed)
    kept = torch.empty(h.shape, dtype=h.dtype, device=h.device)  # in the same order however h is laid out
    return h * kept.bernoulli_(1 - p, generator=generator).div_(1 - p)


@partial(
    kernel,
    in_training="i8[::1], i4[::1], f4[::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[::1], f8, b1, b1",
)
def votes(
    ptr: Array,
    degree: Array,
    inverse: Array,
    h: Array,
    left: Array,
    mean: Array,
    projection: Array,
    weight: float,
    local: bool,
    global_: bool,
) -> tuple[Array, ...]:
    """Softmaxes of leftᵢ · meanᵢ / n and of meanᵢ · p within each graph, weight · degreeᵢ / n, and their sum.

    ``mean`` holds AH at first, and then Ĥ = D̂⁻¹(A + I)H. The plain versions, of which autograd makes the gradient, are
    ``local_voting``, ``global_voting`` and ``connectivity_term`` in ``tapnet.nn.tap``.
    """
    zero, infinity, n = mean.dtype.type(0), mean.dtype.type(np.inf), mean.shape[0]
    y_local, y_global = np.empty(n, mean.dtype), np.empty(n, mean.dtype)
    connectivity, score = np.empty(n, mean.dtype), np.empty(n, mean.dtype)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        size = mean.dtype.type(last - first)
        for i in range(first, last):
            for c in range(mean.shape[1]):
                mean[i, c] = (mean[i, c] + h[i, c]) * inverse[i]
            alike, seen = zero, zero
            for c in range(mean.shape[1]):
                alike += left[i, c] * mean[i, c]
                seen += mean[i, c] * projection[c]
            y_local[i], y_global[i] = alike / size, seen
        for y, counts in ((y_local[first:last], local), (y_global[first:last], global_)):
            highest, total = -infinity, zero
            for i in range(len(y)):
                highest = y[i] if y[i] > highest else highest
            for i in range(len(y)):
                y[i] = np.exp(y[i] - highest) if counts else zero
                total += y[i]
            for i in range(len(y)):
                y[i] /= total if counts else mean.dtype.type(1)
        for i in range(first, last):
            connectivity[i] = weight * degree[i] / size
            score[i] = y_local[i] + y_global[i] + connectivity[i]
    return y_local, y_global, connectivity, score


@partial(
    kernel,
    in_training="i8[::1], f4[::1], f4[:, ::1], f4[:, ::1], f4[::1], UniTuple(f4[::1], 2), UniTuple(f4[::1], 2), "
    "UniTuple(f4[::1], 2)",
)
def votes_backward(
    ptr: Array, inverse: Array, left: Array, mean: Array, projection: Array, grads: Arrays, votes: Arrays, sums: Arrays
) -> None:
    """Turns ``mean`` into the gradient of left, ``left`` into that of mean divided by the node's degree + 1, in place.

    New memory for them would take longer than the arithmetic. ``grads`` and ``votes`` are those of the local and the
    global votes. The gradient of the projection is added to the first of ``sums``; the second is room for the sum over
    some nodes, so that a sum over many is exact enough.
    """
    (grad_local, grad_global), (y_local, y_global), (grad_projection, part) = grads, votes, sums
    for g in range(len(ptr) - 1):
        size = mean.dtype.type(ptr[g + 1] - ptr[g])
        mean_local, mean_global = mean.dtype.type(0), mean.dtype.type(0)
        for i in range(ptr[g], ptr[g + 1]):
            mean_local += grad_local[i] * y_local[i]
            mean_global += grad_global[i] * y_global[i]
        for start in range(ptr[g], ptr[g + 1], 512):
            for c in range(len(part)):
                part[c] = 0
            for i in range(start, min(start + 512, ptr[g + 1])):
                of_alike = y_local[i] * (grad_local[i] - mean_local) / size
                of_seen = y_global[i] * (grad_global[i] - mean_global)
                a, b = of_alike * inverse[i], of_seen * inverse[i]
                for c in range(mean.shape[1]):
                    part[c] += of_seen * mean[i, c]
                    mean[i, c] = of_alike * mean[i, c]
                    left[i, c] = a * left[i, c] + b * projection[c]
            for c in range(len(part)):
                grad_projection[c] += part[c]


def _gate_backward_loop(perm: Tensor, grad: Tensor, x: Tensor, score: Tensor) -> Tensor:
    grad_score = np.zeros_like(array(score))
    _gate_backward(array(perm), array(grad), array(x), array(score), _smallest_divisor(score), grad_score)
    return torch.from_numpy(grad_score)


def _smallest_divisor(score: Tensor) -> float:
    return float(torch.finfo(score.dtype).tiny ** 0.5)


@partial(kernel, in_training="i8[::1], f4[:, ::1], f4[:, ::1], f4[::1], f8, f4[::1]")
def _gate_backward(perm: Array, grad: Array, x: Array, score: Array, least: float, grad_score: Array) -> None:
    """Fills the gradient, which holds zeros; a score below ``least`` in size is not divided by."""
    for k in range(len(perm)):
        i, total = perm[k], score.dtype.type(0)
        for c in range(grad.shape[1]):
            total += grad[k, c] * x[i, c]
        grad_score[i] = total / score[i] if abs(score[i]) >= least else total


@compiled_by(_gate_backward_loop)
def gate_backward(perm: Tensor, grad: Tensor, x: Tensor, score: Tensor) -> Tensor:
    """The gradient of the scores, for the rows x[perm] · s / stop_gradient(s), where s = score[perm].

    A score so small that the quotient by it would overflow is not divided by.
    """
    products = (grad * x.index_select(0, perm)).sum(dim=1).to(score.dtype)
    grad_score = torch.zeros_like(score).index_copy_(0, perm, products)
    return grad_score.div_(score.masked_fill(score.abs() < _smallest_divisor(score), 1))


@partial(kernel, in_training="f4[:, ::1], i8[::1], f4[:, ::1]")
def add_rows(out: Array, perm: Array, rows: Array) -> None:
    """Adds each row of ``rows`` to its row of ``out``, in place; a row is named once."""
    for k in range(len(perm)):
        i = perm[k]
        for c in range(out.shape[1]):
            out[i, c] += rows[k, c]
