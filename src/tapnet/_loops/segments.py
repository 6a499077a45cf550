"""Reductions over the segments of a flat array: segment g is ptr[g] to ptr[g+1], the nodes of a graph, say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array, array, compiled_by, is_compiled, kernel
from tapnet._loops.ranges import offsets, repeated

# ---- where segments begin, how many entries they keep, and which ----


@kernel
def _ascending_ptr_loop(segment: Array) -> Array:
    before = segment[0]
    for i in range(len(segment)):
        if segment[i] < before:
            return np.empty(0, np.int64)
        before = segment[i]
    ptr, g = np.empty(before + 2, np.int64), 0
    for i in range(len(segment)):
        while g <= segment[i]:
            ptr[g] = i
            g += 1
    ptr[g] = len(segment)
    return ptr


def ascending_ptr(segment: Tensor) -> Tensor | None:
    """[N] the segment of each entry → [B+1] where each segment begins; None if the numbers do not ascend."""
    if segment.is_cpu and segment.dtype == torch.int64 and len(segment) and segment[0] >= 0:
        ptr: Tensor = _ascending_ptr_loop(segment)
        return ptr if len(ptr) else None
    return offsets(torch.bincount(segment)) if bool((segment[1:] >= segment[:-1]).all()) else None


@partial(kernel, in_training="i8[::1], i8, i8")
def _kept_ptr_loop(ptr: Array, numerator: int, denominator: int) -> Array:
    new_ptr = np.empty(len(ptr), np.int64)
    new_ptr[0] = 0
    for g in range(len(ptr) - 1):
        new_ptr[g + 1] = new_ptr[g] - (-(ptr[g + 1] - ptr[g]) * numerator // denominator)
    return new_ptr


@compiled_by(_kept_ptr_loop)
def kept_ptr(ptr: Tensor, numerator: int, denominator: int) -> Tensor:
    """Where each segment begins when ⌈numerator · n / denominator⌉ of its n entries are kept."""
    return offsets(-(-ptr.diff() * numerator // denominator))


def _top_k_loop(score: Tensor, new_ptr: Tensor, ptr: Tensor) -> Tensor:
    """Without sorting: the k-th highest is found in linear time; what is not below it stays."""
    values = array(score)
    bits: Array = values.view(np.int32 if score.dtype == torch.float32 else np.int64)
    key = np.empty(len(bits), np.uint32 if score.dtype == torch.float32 else np.uint64)
    return torch.from_numpy(_top_k_of_bits(values, bits, key, array(ptr), array(new_ptr)))


@partial(kernel, in_training="f4[::1], i4[::1], u4[::1], i8[::1], i8[::1]")
def _top_k_of_bits(values: Array, bits: Array, key: Array, ptr: Array, new_ptr: Array) -> Array:
    """The new_ptr[g+1] - new_ptr[g] highest values of each segment, ties to the lower number; ascending.

    ``bits`` are the values' own as whole numbers, and ``key`` is room for unsigned ones in the same order.
    """
    sign, least = bits.dtype.type(8 * bits.itemsize - 1), bits.dtype.type(-1) << bits.dtype.type(8 * bits.itemsize - 1)
    for i in range(len(bits)):
        this = bits[i] if values[i] != 0 else bits.dtype.type(0)  # -0.0 and 0.0 are equal
        key[i] = this ^ ((this >> sign) | least)
        if values[i] != values[i]:  # NaN is the highest, as torch sorts it, whatever its sign
            key[i] = ~key.dtype.type(0)
    perm, count = np.empty(new_ptr[-1], np.int64), np.empty(256, np.int64)
    for g in range(len(ptr) - 1):
        first, last, at, end = ptr[g], ptr[g + 1], new_ptr[g], new_ptr[g + 1]
        lowest, ties = key.dtype.type(0), end - at  # the lowest key that is kept, found eight bits at a time
        for shift in range(8 * key.itemsize - 8, -8, -8):
            for digit in range(256):
                count[digit] = 0
            for i in range(first, last):
                digit = (key[i] ^ lowest) >> key.dtype.type(shift)
                if digit < 256:  # the same higher bits
                    count[digit] += 1
            digit = 255
            while digit > 0 and count[digit] < ties:
                ties -= count[digit]
                digit -= 1
            lowest |= key.dtype.type(digit) << key.dtype.type(shift)
            if count[digit] == ties:
                break
        for i in range(first, last):
            if key[i] > lowest or (key[i] == lowest and ties > 0):
                ties -= key[i] == lowest
                perm[at] = i
                at += 1
    return perm


@compiled_by(_top_k_loop)
def top_k(score: Tensor, new_ptr: Tensor, ptr: Tensor) -> Tensor:
    """The numbers of the highest scores of each segment, ascending; ties go to the lower number.

    So many that segment g becomes new_ptr[g] to new_ptr[g+1].
    """
    k = new_ptr.diff()
    segment = repeated(torch.arange(len(k), device=k.device), ptr.diff())
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(segment[order], stable=True)]  # each segment together, best first
    rank = torch.arange(len(order), device=order.device) - ptr[segment]
    return order[rank < k[segment]].sort().values


# ---- softmax ----


@kernel
def _softmax_loop(values: Array, ptr: Array) -> Array:
    out = np.empty(len(values), values.dtype)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        highest = values[first] if first < last else values.dtype.type(0)
        for i in range(first, last):
            highest = max(highest, values[i])
        total = values.dtype.type(0)
        for i in range(first, last):
            out[i] = np.exp(values[i] - highest)
            total += out[i]
        for i in range(first, last):
            out[i] /= total
    return out


@compiled_by(_softmax_loop)
def softmax(values: Tensor, ptr: Tensor) -> Tensor:
    """[N] → [N]: a softmax within each segment, without a gradient."""
    highest = torch.segment_reduce(values, "max", offsets=ptr)
    result = (values - repeated(highest, ptr.diff())).exp_()
    return result.div_(repeated(torch.segment_reduce(result, "sum", offsets=ptr), ptr.diff()))


@kernel
def _softmax_backward_loop(grad: Array, result: Array, ptr: Array) -> Array:
    out = np.empty(len(result), result.dtype)
    for g in range(len(ptr) - 1):
        mean = out.dtype.type(0)
        for i in range(ptr[g], ptr[g + 1]):
            mean += grad[i] * result[i]
        for i in range(ptr[g], ptr[g + 1]):
            out[i] = result[i] * (grad[i] - mean)
    return out


@compiled_by(_softmax_backward_loop)
def softmax_backward(grad: Tensor, result: Tensor, ptr: Tensor) -> Tensor:
    """The gradient of the values, given that of their softmax."""
    weighted = grad * result
    mean = torch.segment_reduce(weighted, "sum", offsets=ptr)
    return weighted.addcmul_(result, repeated(mean, ptr.diff()), value=-1)


# ---- maximum, mean and sum ----


def readout(h: Tensor, ptr: Tensor) -> tuple[Tensor, tuple[Tensor, ...], Callable[..., Tensor]]:
    """Maximum, mean and sum of each segment's rows; the function of its gradient, and what that needs before ptr."""
    if is_compiled(h):
        out = readout_loop(h, ptr)
        return out, (h, out), readout_backward_loop
    out, where = readout_torch(h, ptr)
    return out, (where,), readout_backward_torch


def readout_torch(h: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """[N, d] → [B, 3d]: maximum, mean and sum of each segment's rows side by side, zeros for an empty segment.

    Also [B, d], the row that has each maximum (the first of equals; -1: an empty segment).
    """
    nodes, starts, size = torch.arange(len(h), device=h.device), ptr[:-1], ptr.diff().unsqueeze(1)
    total = torch.embedding_bag(h, nodes, starts, mode=0)[0]
    highest, _, _, where = torch.embedding_bag(h, nodes, starts, mode=2)
    where = where.masked_fill(size == 0, -1)  # torch itself says -1 on some devices and 0 on others
    return torch.cat([highest, total / size.clamp(min=1), total], dim=1), where


def readout_loop(h: Tensor, ptr: Tensor) -> Tensor:
    """The same, compiled, without the places of the maxima."""
    out = np.zeros((len(ptr) - 1, 3 * h.size(1)), array(h).dtype)
    _readout(array(ptr), array(h), out)
    return torch.from_numpy(out)


@partial(kernel, in_training="i8[::1], f4[:, ::1], f4[:, ::1]")
def _readout(ptr: Array, h: Array, out: Array) -> None:
    """Fills ``out``, which holds zeros."""
    d = h.shape[1]
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        if first < last:
            for c in range(d):
                out[g, c] = h[first, c]
                out[g, 2 * d + c] = h[first, c]
            for i in range(first + 1, last):
                for c in range(d):
                    if h[i, c] > out[g, c]:
                        out[g, c] = h[i, c]
                    out[g, 2 * d + c] += h[i, c]
            size = h.dtype.type(last - first)
            for c in range(d):
                out[g, d + c] = out[g, 2 * d + c] / size


def readout_backward_torch(grad: Tensor, where: Tensor, ptr: Tensor) -> Tensor:
    """The gradient of the rows: a maximum's goes to the one row that has it."""
    grad_max, grad_mean, grad_sum = grad.chunk(3, dim=1)
    grad_h = repeated(grad_sum + grad_mean / ptr.diff().unsqueeze(1).clamp(min=1), ptr.diff())
    if len(grad_h) == 0:
        return grad_h
    return grad_h.scatter_add_(0, where.clamp(min=0), grad_max.masked_fill(where < 0, 0))


def readout_backward_loop(grad: Tensor, h: Tensor, out: Tensor, ptr: Tensor) -> Tensor:
    """The same, compiled, from the rows and their readout."""
    rows = array(h)
    grad_h = np.empty_like(rows)
    _readout_backward(array(ptr), rows, array(out), array(grad), grad_h)
    return torch.from_numpy(grad_h)


@partial(kernel, in_training="i8[::1], f4[:, ::1], f4[:, ::1], f4[:, ::1], f4[:, ::1]")
def _readout_backward(ptr: Array, h: Array, out: Array, grad: Array, grad_h: Array) -> None:
    """The gradient of the rows: a maximum's goes to the one row that has it (the first of equals)."""
    d = h.shape[1]
    for g in range(len(ptr) - 1):
        size = h.dtype.type(ptr[g + 1] - ptr[g])
        row, rest = np.empty(d, h.dtype), np.empty(d, h.dtype)
        for c in range(d):
            row[c], rest[c] = grad[g, 2 * d + c] + grad[g, d + c] / size, grad[g, c]
        for i in range(ptr[g], ptr[g + 1]):
            for c in range(d):
                grad_max = rest[c] if h[i, c] == out[g, c] else h.dtype.type(0)
                grad_h[i, c] = row[c] + grad_max
                rest[c] -= grad_max
