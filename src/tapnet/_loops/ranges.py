"""Index arithmetic on flat arrays: what replaces a loop over graphs or nodes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def offsets(counts: Tensor) -> Tensor:
    """[n] counts → [n+1] where each run starts, and where the last one ends."""
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def repeated(values: Tensor, count: Tensor) -> Tensor:
    """values[0] count[0] times, then values[1] count[1] times, …"""
    if values.device.type == "cpu" and values.dtype != torch.bfloat16:  # the same in NumPy takes a third of the time
        return torch.from_numpy(np.repeat(values.numpy(), count.numpy(), axis=0))
    return torch.repeat_interleave(values, count, dim=0)


def concatenated_ranges(start: Tensor, count: Tensor) -> Tensor:
    """start[0], start[0]+1, … (count[0] of them), then start[1], … : the numbers of all runs, one after another."""
    shift = repeated(start - offsets(count)[:-1], count)
    return shift.add_(torch.arange(len(shift), dtype=shift.dtype, device=start.device))
