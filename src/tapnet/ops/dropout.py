"""Dropout from cheap random bits: on a CPU, torch's own draws one slow random number an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops import rows
from tapnet.errors import SettingError
from tapnet.ops.autograd import apply_function


@dataclass(frozen=True)
class Mask:
    """Which elements are kept. It is the seed alone: applying it again, as the backward pass does, draws the same."""

    p: float
    seed: int

    @classmethod
    def draw(cls, p: float) -> Mask:
        """A new one from torch's generator."""
        return cls(p, int(torch.empty((), dtype=torch.int64).random_()))

    def on(self, h: Tensor) -> Tensor:
        """h / (1-p) with probability 1-p, else 0. Without a gradient."""
        return rows.dropout(h, self.p, self.seed)

    def applied(self, h: Tensor) -> Tensor:
        """The same with a gradient."""
        return apply_function(_Dropout, h, self)


def dropout(h: Tensor, p: float, training: bool) -> Tensor:
    """Zeroes each element with probability p and scales the others by 1 / (1-p)."""
    if not training or p == 0:
        return h
    return Mask.draw(p).applied(h)


def check_dropout(p: float) -> None:
    """Raises SettingError for what is no probability of dropout."""
    if not 0 <= p < 1:
        raise SettingError(f"dropout is at least 0 and below 1, not {p}")


class _Dropout(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, mask: Mask) -> Tensor:
        ctx.mask = mask
        return mask.on(h)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.mask.on(grad), None
