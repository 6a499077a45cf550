"""What the registry knows of a system; each model's file ends with its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError, did_you_mean
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
        self.check(chosen)
        hints = get_type_hints(self.settings)
        exact = {name: float(value) if hints[name] is float else value for name, value in chosen.items()}
        settings = self.settings(**{**self.on_dataset(dataset), **exact})  # 0 and 0.0 are one setting
        if chosen and self.build is not None:
            _check_size(self.build, settings)
        return settings

    def check(self, chosen: Mapping[str, Any]) -> None:
        """Settings that this system has, of their types, and no number of layers or channels beyond reason."""
        self.check_names(chosen)
        check_types(self.settings, chosen)
        for name, value in chosen.items():
            if isinstance(value, int) and get_type_hints(self.settings)[name] is not float and value > LARGEST:
                raise SettingError(f"{name} is at most {LARGEST:,}, not {value}")

    def check_names(self, chosen: Iterable[str], also: Iterable[str] = ()) -> None:
        """Each is the name of a setting, or one of these others."""
        known = {f.name for f in fields(self.settings)} | set(also)
        for name in chosen:
            if name not in known:
                has = ", ".join(sorted(known))
                near = did_you_mean(name, known)
                raise SettingError(f"the model {self.name} has no setting {name!r}; it has {has}{near}")


# ---- how large a network is ----

LARGEST = 10_000  # layers, channels and the like
MOST_TENSORS = 10_000
MOST_WEIGHTS = 1 << 28  # a GB, and five times as much while training
SMALLEST = DataShape(1, 1)


def weight_shapes(
    build: Callable[[DataShape, Any], GraphClassifier], shape: DataShape, settings: Any
) -> dict[str, tuple[int, ...]]:
    """The shapes of a network's weights, without making them: settings may ask for any size."""
    tensors = weights = 0

    def count(_module: object, _name: str, parameter: Tensor | None) -> None:
        nonlocal tensors, weights
        tensors, weights = tensors + 1, weights + (0 if parameter is None else parameter.numel())
        if tensors > MOST_TENSORS or weights > MOST_WEIGHTS:
            raise SettingError(TOO_LARGE)

    counting = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"):
            return {name: tuple(tensor.shape) for name, tensor in build(shape, settings).state_dict().items()}
    except (OverflowError, RuntimeError):  # larger than a tensor can be
        raise SettingError(TOO_LARGE) from None
    finally:
        counting.remove()


TOO_LARGE = f"these settings ask for a network of more than {MOST_TENSORS:,} tensors or {MOST_WEIGHTS:,} weights"


@cache
def _check_size(build: Callable[[DataShape, Any], GraphClassifier], settings: Any) -> None:
    """Not too large even for the smallest data."""
    weight_shapes(build, SMALLEST, settings)


# ---- types ----


def check_types(settings: type[Any], chosen: Mapping[str, Any]) -> None:
    """Values for fields of a dataclass of settings are of the fields' types, or a sentence says which is not."""
    hints = get_type_hints(settings)
    for name, value in chosen.items():
        if not fits(value, hints[name]):
            near = did_you_mean(str(value), _words(hints[name]))
            raise SettingError(f"{name} is {in_words(hints[name])}, not {value!r}{near}")


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


def _words(hint: Any) -> list[str]:
    """Those that a setting of this type can be."""
    if isinstance(hint, str):
        return [hint]
    return [word for one in get_args(hint) for word in _words(one)]


def in_words(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        return "a list such as [0.8, 0.6]" if args[0] is float else "a list such as [1, 2]"
    if args and origin is not Literal:
        return " or ".join("null" if one is type(None) else in_words(one) for one in args)
    if origin is Literal:
        return "one of " + ", ".join(args)
    return {int: "a whole number", float: "a finite number", bool: "true or false"}.get(hint, "a word")
