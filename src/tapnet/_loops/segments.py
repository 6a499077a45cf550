"""Reductions over the segments of a flat array: segment g is ptr[g] to ptr[g+1], the nodes of a graph, say."""

from __future__ import annotations

import numpy as np

from tapnet._loops.jit import Array, kernel


@kernel
def kept_ptr(ptr: Array, numerator: int, denominator: int) -> Array:
    """Where each run begins when ⌈numerator · n / denominator⌉ of its n entries are kept."""
    new_ptr = np.zeros(len(ptr), np.int64)
    for g in range(len(ptr) - 1):
        new_ptr[g + 1] = new_ptr[g] - (-(ptr[g + 1] - ptr[g]) * numerator // denominator)
    return new_ptr


@kernel
def top_k_per_segment(key: Array, ptr: Array, new_ptr: Array) -> Array:
    """The new_ptr[g+1] - new_ptr[g] highest keys of each run, ties to the lower number; ascending."""
    perm = np.empty(new_ptr[-1], np.int64)
    for g in range(len(ptr) - 1):
        first, last, at, end = ptr[g], ptr[g + 1], new_ptr[g], new_ptr[g + 1]
        if end - at == last - first:
            for i in range(last - first):
                perm[at + i] = first + i
        elif last - first <= 64:  # counting the better ones of each is faster than what follows
            for i in range(first, last):
                better = 0
                for j in range(first, last):
                    better += (key[j] > key[i]) | ((key[j] == key[i]) & (j < i))
                if better < end - new_ptr[g]:
                    perm[at] = i
                    at += 1
        elif at < end:
            lowest = np.partition(key[first:last], last - first - (end - at))[last - first - (end - at)]
            ties = end - at
            for i in range(first, last):
                ties -= key[i] > lowest
            for i in range(first, last):
                if key[i] > lowest or (key[i] == lowest and ties > 0):
                    ties -= key[i] == lowest
                    perm[at] = i
                    at += 1
    return perm


@kernel
def readout(ptr: Array, h: Array) -> Array:
    """Maximum, mean and sum of each run's rows side by side; zeros for an empty run."""
    d = h.shape[1]
    out = np.zeros((len(ptr) - 1, 3 * d), h.dtype)
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        if first == last:
            continue
        highest, total = h[first].copy(), h[first].copy()
        for i in range(first + 1, last):
            row = h[i]
            for c in range(d):
                highest[c] = row[c] if row[c] > highest[c] else highest[c]
                total[c] += row[c]
        size = h.dtype.type(last - first)
        for c in range(d):
            out[g, c], out[g, d + c], out[g, 2 * d + c] = highest[c], total[c] / size, total[c]
    return out


@kernel
def readout_backward(ptr: Array, h: Array, out: Array, grad: Array, grad_h: Array) -> None:
    """The gradient of the rows: a maximum's goes to the one row that has it (the first of equals)."""
    d = h.shape[1]
    for g in range(len(ptr) - 1):
        size = h.dtype.type(max(ptr[g + 1] - ptr[g], 1))
        row, rest = np.empty(d, h.dtype), np.empty(d, h.dtype)
        for c in range(d):
            row[c], rest[c] = grad[g, 2 * d + c] + grad[g, d + c] / size, grad[g, c]
        for i in range(ptr[g], ptr[g + 1]):
            for c in range(d):
                grad_max = rest[c] if h[i, c] == out[g, c] else h.dtype.type(0)
                grad_h[i, c] = row[c] + grad_max
                rest[c] -= grad_max


@kernel
def softmax(ptr: Array, values: Array) -> Array:
    """A softmax within each run."""
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


@kernel
def softmax_backward(ptr: Array, grad: Array, result: Array) -> Array:
    """The gradient of the values, given that of their softmax."""
    out = np.empty(len(result), result.dtype)
    for g in range(len(ptr) - 1):
        mean = out.dtype.type(0)
        for i in range(ptr[g], ptr[g + 1]):
            mean += grad[i] * result[i]
        for i in range(ptr[g], ptr[g + 1]):
            out[i] = result[i] * (grad[i] - mean)
    return out
