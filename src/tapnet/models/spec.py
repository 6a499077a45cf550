"""What the registry knows of a system; each model's file ends with its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.models.base import DataShape, GraphClassifier


@dataclass(frozen=True)
class ModelSpec:
    """One system of the comparison."""

    name: str
    system: str
    paper: str  # authors, venue
    year: int
    about: str  # how it was built here, and where it departs from its paper
    settings: type[Any]  # a frozen dataclass with its paper's values as defaults
    build: Callable[[DataShape, Any], GraphClassifier] | None = None  # None: not a network, see fit
    on_dataset: Callable[[str], Mapping[str, Any]] = lambda _: {}  # settings that its paper chooses by data set
    training: Mapping[str, Any] = field(default_factory=dict)  # what it trains with, where that is not TAPNet's
    prepare: Callable[[GraphDataset, Any], GraphDataset] = lambda dataset, _: dataset  # computed once, then cached
    fit: Callable[[GraphDataset, Any, Tensor, Tensor], float] | None = None  # training and test graphs → accuracy

    def make_settings(self, dataset: str, chosen: Mapping[str, Any]) -> Any:
        """The paper's settings on a data set, but for what was chosen."""
        known = {f.name for f in fields(self.settings)}
        for name in chosen:
            if name not in known:
                has = ", ".join(sorted(known))
                raise SettingError(f"the model {self.name} has no setting {name!r}; it has {has}")
        return self.settings(**{**self.on_dataset(dataset), **chosen})
