"""Every model by name: its settings, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from tapnet.errors import SettingError
from tapnet.models.base import GraphClassifier
from tapnet.models.tapnet import TAPNet, TAPNetSettings, activation_on


@dataclass(frozen=True)
class ModelSpec:
    """One system of the comparison."""

    name: str
    settings: type[Any]  # a frozen dataclass with its paper's values as defaults
    build: Callable[[int, int, Any], GraphClassifier]  # in_channels, num_classes, settings
    on_dataset: Callable[[str], Mapping[str, Any]] = lambda _: {}  # settings that its paper chooses by data set

    def make_settings(self, dataset: str, chosen: Mapping[str, Any]) -> Any:
        """The paper's settings on a data set, but for what was chosen."""
        known = {f.name for f in fields(self.settings)}
        for name in chosen:
            if name not in known:
                raise SettingError(f"the model {self.name} has no setting {name!r}")
        return self.settings(**{**self.on_dataset(dataset), **chosen})


MODELS: dict[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        ModelSpec(
            "tapnet", TAPNetSettings, TAPNet.from_settings, on_dataset=lambda name: {"activation": activation_on(name)}
        ),
    )
}


def find_model(name: str) -> ModelSpec:
    if name not in MODELS:
        raise SettingError(f"model is one of {', '.join(MODELS)}, not {name!r}")
    return MODELS[name]
