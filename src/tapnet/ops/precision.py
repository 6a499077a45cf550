"""Full precision where half would be wrong: scores, losses, and steps whose gradient is written out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """Autocast off within it; costs nothing where autocast is off already."""
    device = x.device.type
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def widened(x: Tensor) -> Tensor:
    """Half precision → float32; float32, float64 and integers as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
