"""The settings of training."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tapnet.errors import SettingError
from tapnet.models.settings import Settings, Weight


class TrainingSettings(Settings):
    """How a network is trained; the defaults are those of the paper and of its authors' earlier program.

    Args:
        epochs: passes over the training graphs.
        batch_size: graphs in a step.
        lr: the learning rate of Adam.
        weight_decay: L2 regularisation.
        amsgrad: Adam's variant that keeps the largest second moment.
        halve_lr_every: so many epochs; 0 keeps the learning rate.
        optimizer: ``"adam"``, or ``"adamw"``, whose weight decay is apart from the gradient.
        schedule: ``"constant"``, or ``"one-cycle"``: the learning rate rises during the first tenth of the steps and
            then falls to near 0 along a cosine.
        ema_decay: what each step leaves of an exponential moving average of the weights, which begins anew with each
            epoch; the average is what is evaluated and kept. 0: the weights themselves.
        average_power: the power of the number of a step by which it counts in an average of the weights over all steps
            so far; that average is then what is evaluated and kept. 0: the weights themselves.
        select_from: the share of the epochs that is over before the validation graphs may choose one.

    Raises:
        SettingError: for an unknown name or a value out of range.

    Example:
        >>> TrainingSettings(lr=0.01).replace(epochs=50).epochs
        50
    """

    epochs: Annotated[int, Field(ge=1, lt=2**31)] = 200
    batch_size: Annotated[int, Field(ge=1, lt=2**31)] = 64
    lr: Annotated[float, Field(gt=0)] = 0.001
    weight_decay: Weight = 0.0008
    amsgrad: bool = True
    halve_lr_every: Annotated[int, Field(ge=0, lt=2**31)] = 0
    optimizer: Literal["adam", "adamw"] = "adam"
    schedule: Literal["constant", "one-cycle"] = "constant"
    ema_decay: Annotated[float, Field(ge=0, lt=1)] = 0.0
    average_power: Annotated[float, Field(ge=0, le=1000)] = 0.0
    select_from: Annotated[float, Field(ge=0, lt=1)] = 0.0

    ADDED_LATER = ("optimizer", "schedule", "ema_decay", "average_power", "select_from")

    @model_validator(mode="after")
    def _check_averages(self) -> TrainingSettings:
        if self.ema_decay and self.average_power:
            raise SettingError("ema_decay and average_power are two averages of the weights: choose one of them")
        return self

    @property
    def averages(self) -> bool:
        """Whether an average of the weights is evaluated and kept."""
        return bool(self.ema_decay or self.average_power)

    @property
    def first_choice(self) -> int:
        """The first epoch, from 0, that the validation graphs may choose."""
        return int(self.select_from * self.epochs)
