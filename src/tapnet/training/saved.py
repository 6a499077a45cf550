"""A trained network in one file, and how graphs of other sources are read by it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError, SettingError
from tapnet.models.base import DataShape, GraphClassifier
from tapnet.models.registry import find_model
from tapnet.training.store import load_model_file, save_model_file

GRAPHS_AT_ONCE = 256


@dataclass(frozen=True)
class SavedModel:
    """A network ready to predict, with what its inputs and answers mean. Made by ``load``, or from training."""

    network: GraphClassifier  # in evaluation mode
    about: Mapping[str, Any]  # what `describe_model` says; kept in the file as JSON

    # ---- meaning ----

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The class values as they stood in the training data."""
        return tuple(self.about["classes"])

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.about.get("class_names") or map(str, self.classes))

    @property
    def features(self) -> Features:
        return cast(Features, self.about["features"])

    @property
    def categories(self) -> tuple[Hashable, ...] | None:
        """The values that nodes had in the training data; None where they are floats."""
        values = self.about["categories"]
        return None if values is None else tuple(tuple(v) if isinstance(v, list) else v for v in values)

    @property
    def category_names(self) -> tuple[str, ...]:
        return tuple(self.about.get("category_names") or map(str, self.categories or ()))

    @property
    def name(self) -> str:
        """Of the data set that it was trained on."""
        return str(self.about["trial"]["dataset"])

    # ---- prediction ----

    def reading(self, dataset: GraphDataset) -> GraphDataset:
        """The data set as this network reads it: its own features and numbers of categories.

        A category that no training graph had gets a row of zeros, and a warning says which.
        """
        dataset = dataset if dataset.features == self.features else dataset.with_features(self.features)
        if self.categories is None:
            if dataset.categories is not None or dataset.num_features != self.about["shape"]["in_channels"]:
                wanted = self.about["shape"]["in_channels"]
                raise DataError(f"the model reads {wanted} numbers a node; {dataset.name} has {dataset.num_features}")
            return dataset
        if dataset.categories is None:
            raise DataError(f"the model reads node categories; {dataset.name} has numbers")
        exact = {value: i for i, value in enumerate(self.categories)}
        named = {name: i for i, name in enumerate(self.category_names)}  # "C" for MUTAG's 0
        plain = named | {_plain(value): i for value, i in exact.items()}
        numbers = [exact.get(value, plain.get(_plain(value), -1)) for value in dataset.categories]
        place = torch.tensor(numbers, dtype=torch.int64)
        x = place[dataset.x] if len(place) else dataset.x
        if bool((x < 0).any()):
            unknown = sorted({str(dataset.categories[int(i)]) for i in dataset.x[x < 0].unique()})
            warnings.warn(
                f"{dataset.name}: {self.features} that the model was not trained on count as none: {some(unknown)}",
                stacklevel=2,
            )
            known = (x >= 0).unsqueeze(1)
            x = torch.nn.functional.one_hot(x.clamp(min=0), len(self.categories)).float() * known
        return replace(dataset, x=x, categories=self.categories, prepared={})  # prepared by the network, as it goes

    @torch.inference_mode()
    def probabilities(self, dataset: GraphDataset) -> Tensor:
        """[G, C]: softmax of the network's answer for each graph of a data set that went through ``reading``."""
        found = torch.zeros(len(dataset), len(self.classes))
        for graphs in torch.arange(len(dataset)).split(GRAPHS_AT_ONCE):
            for part in self.network.parts(graphs, dataset.nodes_per_graph[graphs]):
                found[part] = self.network.outputs(dataset.batch(part)).logits.softmax(dim=1)
        return found

    # ---- one file ----

    def save(self, file: Path) -> None:
        """Weights and settings alone; reading the file runs no code."""
        save_model_file(file, self.network.state_dict(), self.about)

    @classmethod
    def load(cls, file: str | Path) -> SavedModel:
        """From a file that ``save``, a run or a stranger wrote; it can do nothing but predict."""
        weights, about = load_model_file(Path(file))
        try:
            spec = find_model(about["trial"]["model"])
            settings = spec.settings(**about["trial"]["settings"])
            sizes: dict[str, Any] = dict(about["shape"])
            shape = DataShape(**sizes | {"node_deciles": tuple(sizes["node_deciles"])})
            assert spec.build is not None
            expected = _sizes(spec.build, shape, settings)
            if {k: tuple(v.shape) for k, v in weights.items()} != expected:
                raise ValueError("its weights are not of the shapes that its settings ask for")
            network = spec.build(shape, settings)
            network.load_state_dict(weights)
            found = cls(network.eval(), about)
            inputs = shape.in_channels if found.categories is None else len(found.categories)
            if (len(found.classes), max(inputs, 1)) != (shape.num_classes, shape.in_channels):
                raise ValueError("its classes or categories do not fit its settings")
            hash((found.classes, found.categories))  # a TypeError for what can be no value
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError, RuntimeError, SettingError) as error:
            raise DataError(f"{file}: not a model that this version can use ({error})") from None
        return found


def _sizes(build: Any, shape: DataShape, settings: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of a network's weights, without making them: a file may claim any size."""
    with torch.device("meta"):
        return {k: tuple(v.shape) for k, v in build(shape, settings).state_dict().items()}


def _plain(value: Hashable) -> Hashable:
    """1, 1.0 and "1" are one category, whichever way a file wrote it."""
    return str(int(value)) if isinstance(value, int | float) and float(value).is_integer() else str(value)


def some(words: list[str], at_most: int = 5) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(words[:at_most]) + (f" and {len(words) - at_most} more" if len(words) > at_most else "")
