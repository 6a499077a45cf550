"""Index arithmetic on flat arrays: what replaces a loop over graphs or nodes."""

from __future__ import annotations

import torch
from torch import Tensor


def offsets(counts: Tensor) -> Tensor:
    """[n] counts → [n+1] where each run starts, and where the last one ends."""
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def concatenated_ranges(start: Tensor, count: Tensor) -> Tensor:
    """start[0], start[0]+1, … (count[0] of them), then start[1], … : the numbers of all runs, one after another."""
    begin = offsets(count)
    shift = torch.repeat_interleave(start - begin[:-1], count)
    return torch.arange(int(begin[-1]), device=start.device) + shift
