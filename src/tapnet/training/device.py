"""Which device a model is trained on."""

from __future__ import annotations

from typing import Literal

from tapnet.errors import SettingError

Device = Literal["cpu", "cuda"]


def find_device(name: str) -> Device:
    """Finds the device to use.

    Args:
        name: ``"cpu"``, ``"cuda"``, or ``"auto"`` for CUDA where there is one.

    Raises:
        SettingError: If there is no such device here.
    """
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise SettingError(f"device is auto, cpu or cuda, not {name!r}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise SettingError("device cuda: there is no CUDA device here")
    return "cuda" if available and name != "cpu" else "cpu"
