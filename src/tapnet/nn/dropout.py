"""Dropout from cheap random bits: on a CPU, torch's own draws one slow random number an element."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet.errors import SettingError


def dropout(h: Tensor, p: float, training: bool) -> Tensor:
    """Zeroes each element with probability p and scales the others by 1 / (1-p)."""
    if not training or p == 0:
        return h
    if h.device.type != "cpu":
        return torch.nn.functional.dropout(h, p, training)
    result: Tensor = _Dropout.apply(h, p)
    return result


def check_dropout(p: float) -> None:
    if not 0 <= p < 1:
        raise SettingError(f"dropout is at least 0 and below 1, not {p}")


def keep_mask(like: Tensor, p: float) -> Tensor:
    """1 / (1-p) with probability 1-p, else 0. 16 random bits an element, from torch's generator.

    A float mask is made and applied ten times as fast as ``bernoulli_`` makes one (and as a bool mask is applied).
    """
    if like.device.type != "cpu":
        return torch.empty_like(like).bernoulli_(1 - p).mul_(1 / (1 - p))
    threshold = max(1, round((1 - p) * 2**16))
    count = like.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    mask = torch.empty(like.shape, dtype=like.dtype)
    torch.lt((bits if count % 4 == 0 else bits[:count]).view(like.shape), threshold - 2**15, out=mask)
    return mask.mul_(2**16 / threshold)


class _Dropout(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, p: float) -> Tensor:
        mask = keep_mask(h, p)
        ctx.save_for_backward(mask)
        return h * mask

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return grad * mask, None
