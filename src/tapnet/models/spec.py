"""What the registry knows of a system; each model's file ends with its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

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
        check_types(self.settings, chosen)
        hints = get_type_hints(self.settings)
        exact = {name: float(value) if hints[name] is float else value for name, value in chosen.items()}
        return self.settings(**{**self.on_dataset(dataset), **exact})  # 0 and 0.0 are one setting


def check_types(settings: type[Any], chosen: Mapping[str, Any]) -> None:
    """Values for fields of a dataclass of settings are of the fields' types, or a sentence says which is not."""
    hints = get_type_hints(settings)
    for name, value in chosen.items():
        if not fits(value, hints[name]):
            raise SettingError(f"{name} is {in_words(hints[name])}, not {value!r}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value, as JSON or a command line gives it, is of a setting's type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(fits(v, args[0]) for v in value)
    if origin is Literal:
        return value in args
    if args:  # a union
        return any(fits(value, one) for one in args)
    if hint in (int, float):
        return type(value) in ((int,) if hint is int else (int, float)) and abs(value) < math.inf  # True is no number
    return isinstance(value, hint)


def in_words(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return "a list such as [0.8, 0.6]" if args[0] is float else "a list such as [1, 2]"
    if args and origin is not Literal:
        return " or ".join("null" if one is type(None) else in_words(one) for one in args)
    if origin is Literal:
        return "one of " + ", ".join(args)
    return {int: "a whole number", float: "a finite number", bool: "true or false"}.get(hint, "a word")
