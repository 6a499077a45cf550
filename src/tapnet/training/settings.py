"""How a network is trained."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tapnet.models.settings import Settings, Weight


class TrainingSettings(Settings):
    """How a network is trained; the defaults are the paper's and its authors' earlier program's."""

    epochs: Annotated[int, Field(ge=1, lt=2**31)] = 200
    batch_size: Annotated[int, Field(ge=1, lt=2**31)] = 64
    lr: Annotated[float, Field(gt=0)] = 0.001
    weight_decay: Weight = 0.0008
    amsgrad: bool = True
    halve_lr_every: Annotated[int, Field(ge=0, lt=2**31)] = 0  # epochs; 0: never
