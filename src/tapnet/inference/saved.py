"""A trained network in one file, and how graphs of other sources are read by it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args

import torch
from torch import Tensor

from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.experiments.store import load_model_file, save_model_file
from tapnet.files import check_name, is_special_file, printable
from tapnet.io.graph_folder import ATTRIBUTES, FileGraph, NodeSchema, join
from tapnet.models.base import DataShape, GraphClassifier
from tapnet.models.registry import find_model
from tapnet.models.spec import weight_shapes

GRAPHS_AT_ONCE = 256
FIRST = 3  # of graphs that a note names, and of categories of each


@dataclass
class Unseen:
    """Graphs with node categories that no training graph had: how many they are, and the first of them.

    Degrees grow with the graphs, and one or the other is new in most; only a graph with no known degree is noted.
    """

    features: Features
    graphs: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, dataset: GraphDataset, unknown: Tensor, names: Sequence[str]) -> None:
        """Notes the graphs of a data set by their names; ``unknown`` [N] marks nodes."""
        sizes = dataset.nodes_per_graph
        count = torch.repeat_interleave(torch.arange(len(dataset)), sizes)[unknown].bincount(minlength=len(dataset))
        graphs = (count == sizes if self.features == "degrees" else count > 0).nonzero().flatten()
        self.graphs += len(graphs)
        for graph in graphs[: FIRST - len(self.first)].tolist():
            nodes = slice(int(dataset.node_ptr[graph]), int(dataset.node_ptr[graph + 1]))
            values = [(dataset.categories or ())[i] for i in dataset.x[nodes][unknown[nodes]].unique().tolist()]
            self.first.append(f"{names[graph]}: {some([f'{value!r:.40}' for value in values], FIRST)}")

    def __str__(self) -> str:
        have = "1 graph has" if self.graphs == 1 else f"{self.graphs} graphs have"
        what = "only degrees" if self.features == "degrees" else "node categories"
        more = "; …" if self.graphs > len(self.first) else ""
        return f"{have} {what} that the model was not trained on ({'; '.join(self.first)}{more}): they count as none"


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
        return tuple(map(printable, self.about.get("class_names") or self.classes))

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
        return tuple(map(printable, self.about.get("category_names") or self.categories or ()))

    @property
    def name(self) -> str:
        """Of the data set that it was trained on."""
        return str(self.about["trial"]["dataset"])

    def note_another_copy(self, data: GraphDataset) -> None:
        """A warning where data of the model's own name is not what it was trained on."""
        if data.checksum != self.about["trial"].get("data"):
            warnings.warn(
                f"{data.source or data.name} is not the {self.name} that the model was trained on, or it has changed "
                "since; --dataset names another",
                stacklevel=2,
            )

    # ---- prediction ----

    def joined(self, files: Sequence[FileGraph], name: str) -> GraphDataset:
        """Graphs of files, each read for itself by the names that its nodes' attributes had in the training data."""
        names = self.about.get("label_attribute"), self.about.get("attribute_names")
        return join(files, [NodeSchema.named(file, *names) for file in files], name=name, features=self.features)

    def _check_names(self, dataset: GraphDataset) -> None:
        """Other attributes than those of the training data are no input, even if they are as many."""
        ours, theirs = (tuple(names or ()) for names in (self.about.get("attribute_names"), dataset.attribute_names))
        unnamed = {(), (ATTRIBUTES,)}
        if self.features == "attributes" and ours != theirs and not unnamed & {ours, theirs}:
            wanted, has = (printable(", ".join(names))[:200] for names in (ours, theirs))
            raise DataError(f"the model reads the numbers {wanted}; {dataset.name} has {has}")

    def encode(
        self, dataset: GraphDataset, names: Sequence[str] | None = None, unseen: Unseen | None = None
    ) -> GraphDataset:
        """The data set as this network reads it: its own features and numbers of categories.

        A category that no training graph had gets a row of zeros. Such graphs are added to ``unseen`` under their
        ``names``, or else a warning tells of them.
        """
        dataset = dataset if dataset.features == self.features else dataset.with_features(self.features)
        self._check_names(dataset)
        if self.categories is None:
            if dataset.categories is not None or dataset.num_features != self.about["shape"]["in_channels"]:
                wanted = self.about["shape"]["in_channels"]
                raise DataError(f"the model reads {wanted} numbers a node; {dataset.name} has {dataset.num_features}")
            return dataset
        if dataset.categories is None:
            raise DataError(f"the model reads node categories; {dataset.name} has numbers")
        place = torch.tensor(self._numbers_of(dataset), dtype=torch.int64)
        x = place[dataset.x] if len(place) else dataset.x
        if bool((x < 0).any()):
            found = Unseen(self.features) if unseen is None else unseen
            one = [dataset.name] if len(dataset) == 1 else None
            found.add(dataset, x < 0, names or one or [f"graph {i}" for i in range(len(dataset))])
            if unseen is None and found.graphs:
                warnings.warn(str(found), stacklevel=2)
            known = (x >= 0).unsqueeze(1)
            x = torch.nn.functional.one_hot(x.clamp(min=0), len(self.categories)).float() * known
        # prepared by the network, as it goes
        return replace(dataset, x=x, categories=self.categories, label_names=None, prepared={})

    def _numbers_of(self, dataset: GraphDataset) -> list[int]:
        """The model's number for each category of a data set, or -1: by what it means where both say so, else by value.

        Copies of a set number their labels differently: carbon is MUTAG's 0 in one, and 2 in another.
        """
        exact = {value: i for i, value in enumerate(self.categories or ())}
        named = {name: i for i, name in enumerate(self.category_names)}  # also of a file that says "C"
        plain = named | {_plain(value): i for value, i in exact.items()}
        values, names = dataset.categories or (), dataset.category_names
        if dataset.label_names is not None and named.keys() >= set(names):
            return [named[name] for name in names]
        return [exact.get(value, plain.get(_plain(value), -1)) for value in values]

    @torch.inference_mode()
    def probabilities(self, dataset: GraphDataset) -> Tensor:
        """[G, C]: softmax of the network's answer for each graph of a data set that went through ``encode``."""
        found = torch.zeros(len(dataset), len(self.classes))
        for graphs in torch.arange(len(dataset)).split(GRAPHS_AT_ONCE):
            for part in self.network.micro_batches(graphs, dataset.nodes_per_graph[graphs]):
                found[part] = self.network.outputs(dataset.batch(part)).logits.softmax(dim=1)
        return found

    # ---- one file ----

    def save(self, file: Path) -> None:
        """Weights and settings alone; reading the file runs no code."""
        save_model_file(file, self.network.state_dict(), self.about)

    @classmethod
    def load(cls, file: str | Path) -> SavedModel:
        """From a file that ``save``, a run or a stranger wrote; it can do nothing but predict."""
        check_name(file)
        if is_special_file(Path(file)):
            raise DataError(f"{file}: not a model of tapnet, and not even a file")
        weights, about = load_model_file(Path(file))
        try:
            spec = find_model(about["trial"]["model"])
            settings = spec.settings(**about["trial"]["settings"])
            sizes: dict[str, Any] = dict(about["shape"])
            shape = DataShape(**sizes | {"node_deciles": tuple(sizes["node_deciles"])})
            assert spec.build is not None, "it is no network"
            expected = weight_shapes(spec.build, shape, settings)
            if {k: tuple(v.shape) for k, v in weights.items()} != expected:
                raise ValueError("its weights are not of the shapes that its settings ask for")
            _check_words(about)
            network = spec.build(shape, settings)
            network.load_state_dict(weights)
            found = cls(network.eval(), about)
            inputs = shape.in_channels if found.categories is None else len(found.categories)
            if (len(found.classes), max(inputs, 1)) != (shape.num_classes, shape.in_channels):
                raise ValueError("its classes or categories do not fit its settings")
            hash((found.classes, found.categories))  # a TypeError for what can be no value
        except Exception as error:  # whatever a stranger's description makes of it
            raise DataError(f"{file}: not a model that this version can use ({printable(error):.200})") from None
        return found


def _check_words(about: Mapping[str, Any]) -> None:
    """What a description says beside its sizes is of the right kind; a ValueError or TypeError if not."""
    json.dumps(about, allow_nan=False)  # every number is one
    if about["features"] not in get_args(Features):
        raise ValueError(f"features {about['features']!r}")
    for names, values in (("class_names", "classes"), ("category_names", "categories")):
        given = about.get(names) or []
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise ValueError(f"its {names} are not a list of words")
        if given and len(given) != len(about[values]):
            raise ValueError(f"{len(given)} {names} for {len(about[values])} {values}")
    label, numbers = about.get("label_attribute"), about.get("attribute_names")
    if not isinstance(label, str | None) or not isinstance(numbers, list | None):
        raise ValueError("its label_attribute is no word, or its attribute_names are no list")
    if not all(isinstance(name, str) for name in numbers or []):
        raise ValueError("its attribute_names are not a list of words")
    dataset = about["trial"]["dataset"]
    check_name(dataset)
    if dataset != Path(dataset).name or dataset.startswith((".", "~")):
        raise ValueError(f"it names {dataset!r} where the name of a data set belongs")


def _plain(value: Hashable) -> Hashable:
    """1, 1.0 and "1" are one category, whichever way a file wrote it."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if whole else str(value)  # type: ignore[call-overload]


def some(words: Sequence[str], at_most: int) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(words[:at_most]) + (f" and {len(words) - at_most} more" if len(words) > at_most else "")
