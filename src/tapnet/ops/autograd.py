"""A function whose gradient is written out, taken with or without the bookkeeping of the backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def apply_function(function: type[Function], *args: Any) -> Tensor:
    """``function.apply``; where no gradient is wanted its forward alone, at half of what a small graph's calls cost."""
    result: Tensor = function.apply(*args) if torch.is_grad_enabled() else function.forward(_NoContext(), *args)
    return result


class _NoContext:
    """What a forward is given to remember things in, when nobody will ask."""

    def save_for_backward(self, *_: Any) -> None: ...

    def mark_non_differentiable(self, *_: Any) -> None: ...

    def set_materialize_grads(self, _: bool) -> None: ...
