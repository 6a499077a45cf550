"""Sums over neighbours, and of messages along edges that carry something. Plain versions are in ops."""

from __future__ import annotations

from functools import partial

import numpy as np

from tapnet._loops.jit import Array, kernel


@partial(kernel, in_training="i4[::1], i4[::1], f4[:, ::1], f4[:, ::1]")
def neighbor_sum(rowptr: Array, col: Array, h: Array, out: Array) -> None:
    """Fills ``out`` with AH."""
    for i in range(len(out)):
        row = out[i]
        for c in range(len(row)):
            row[c] = h.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            other = h[col[e]]
            for c in range(len(row)):
                row[c] += other[c]


@kernel
def sum_of_messages(h: Array, rows: Array, kind: Array, scale: Array, rowptr: Array, col: Array) -> Array:
    """out[i] = Σ over the entries e of row i of scale[e] · ReLU(h[col[e]] + rows[kind[e]]); no scale: ones."""
    n, d = h.shape
    out = np.zeros((n, d), h.dtype)
    for i in range(n):
        for e in range(rowptr[i], rowptr[i + 1]):
            j, r = col[e], kind[e]
            factor = scale[e] if len(scale) else h.dtype.type(1)
            for c in range(d):
                out[i, c] += factor * max(h[j, c] + rows[r, c], h.dtype.type(0))
    return out


@kernel
def sum_of_messages_backward(
    grad: Array, h: Array, rows: Array, kind: Array, scale: Array, rowptr: Array, col: Array
) -> tuple[Array, Array]:
    """The gradients of h and of rows."""
    n, d = h.shape
    grad_h, grad_rows = np.zeros((n, d), h.dtype), np.zeros(rows.shape, rows.dtype)
    for i in range(n):
        for e in range(rowptr[i], rowptr[i + 1]):
            j, r = col[e], kind[e]
            factor = scale[e] if len(scale) else h.dtype.type(1)
            for c in range(d):
                passed = factor * grad[i, c] if h[j, c] + rows[r, c] > 0 else h.dtype.type(0)
                grad_h[j, c] += passed
                grad_rows[r, c] += passed
    return grad_h, grad_rows
