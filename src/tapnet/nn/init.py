"""Xavier initialisation, as the paper's authors use it: uniform weights, zero biases."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def glorot_(weight: Tensor) -> None:
    """Uniform within ±√(6 / (fan in + fan out)); a vector counts as a matrix with one column."""
    fan_in, fan_out = weight.shape if weight.dim() == 2 else (len(weight), 1)
    bound = math.sqrt(6 / (fan_in + fan_out))
    with torch.no_grad():
        weight.uniform_(-bound, bound)
