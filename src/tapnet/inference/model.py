"""A trained network ready to predict: loaded from a file, with what its inputs and answers mean."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.inference.inputs import check_graphs, from_networkx, from_pyg, kind_of
from tapnet.inference.model_file import ModelCard, find_model_file, read_model, unusable, write_model
from tapnet.io.graph_folder import ATTRIBUTES, FileGraph, NodeSchema, join
from tapnet.models.base import GraphClassifier
from tapnet.models.predictor import predict_logits
from tapnet.models.registry import find_model
from tapnet.models.spec import weight_shapes
from tapnet.nn.pool.registry import resolve

if TYPE_CHECKING:
    from tapnet.inference.inputs import Graphs

NAMED_AT_MOST = 3  # graphs in a note, and categories of each


def load_model(path: str | Path, pools: Iterable[type | str] = ()) -> SavedModel:
    """Loads a trained model.

    Reading the file runs no code and imports nothing that the file names, so a stranger's file is safe to load.

    Args:
        path: a model file, or the folder of a run with a final model.
        pools: the user's own pooling layers that the model may use: classes, or their names
            ``"package.module:Class"``, which are imported.

    Returns:
        The model, in evaluation mode.

    Raises:
        DataError: if there is no model at the path, or none that this version can use.

    Example:
        >>> import tapnet
        >>> model = tapnet.load_model("runs/MUTAG/final.safetensors")  # doctest: +SKIP
        >>> model.predict("MUTAG").classes  # doctest: +SKIP
    """
    for pool in pools:
        resolve(pool, allow_import=True)
    return SavedModel.load(find_model_file(path))


@dataclass(frozen=True)
class Predictions:
    """What a model predicts of some graphs.

    Attributes:
        graphs: [G] the names of the graphs: of their files, or their numbers.
        classes: [G] the most probable class of each, as it stood in the training data.
        probabilities: [G, C] of every class.
        class_names: [C] what the columns of ``probabilities`` mean.
    """

    graphs: tuple[str, ...]
    classes: tuple[Hashable, ...]
    probabilities: NDArray[np.float64]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.graphs)


@dataclass
class UnseenCategories:
    """Counts graphs with node categories that no training graph had, and names the first of them.

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
        for graph in graphs[: NAMED_AT_MOST - len(self.first)].tolist():
            nodes = slice(int(dataset.node_ptr[graph]), int(dataset.node_ptr[graph + 1]))
            values = [(dataset.categories or ())[i] for i in dataset.x[nodes][unknown[nodes]].unique().tolist()]
            words = [f"{value!r:.40}" for value in values]
            more = f" and {len(words) - NAMED_AT_MOST} more" if len(words) > NAMED_AT_MOST else ""
            self.first.append(f"{names[graph]}: {', '.join(words[:NAMED_AT_MOST])}{more}")

    def __str__(self) -> str:
        have = "1 graph has" if self.graphs == 1 else f"{self.graphs} graphs have"
        what = "only degrees" if self.features == "degrees" else "node categories"
        more = "; …" if self.graphs > len(self.first) else ""
        return f"{have} {what} that the model was not trained on ({'; '.join(self.first)}{more}): they count as none"


@dataclass(frozen=True)
class SavedModel:
    """A trained network with its card.

    Args:
        network: the network, in evaluation mode.
        card: what it reads and what its answers mean.
    """

    network: GraphClassifier
    card: ModelCard

    # ---- what it says of itself ----

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The class values as they stood in the training data."""
        return self.card.classes

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, safe to print."""
        return tuple(map(printable, self.card.class_names or self.classes))

    @property
    def features(self) -> Features:
        """What a node is to the network."""
        return self.card.features

    @property
    def categories(self) -> tuple[Hashable, ...] | None:
        """The values that nodes had in the training data; None where they are floats."""
        return self.card.categories

    @property
    def category_names(self) -> tuple[str, ...]:
        """The names of these values, safe to print."""
        return tuple(map(printable, self.card.category_names or self.categories or ()))

    @property
    def name(self) -> str:
        """The name of the data set that it was trained on."""
        return self.card.trial.dataset

    def __repr__(self) -> str:
        return f"SavedModel({self.card.trial.model}, trained on {self.name}, classes: {', '.join(self.class_names)})"

    def warn_if_other_data(self, dataset: GraphDataset) -> None:
        """Warns where a data set has the name of the training data but other content."""
        if dataset.checksum != self.card.trial.data:
            what = dataset.source or dataset.name
            message = f"{what} is not the {self.name} that the model was trained on, or it has changed since"
            warnings.warn(message, stacklevel=2)

    # ---- prediction ----

    def predict(self, graphs: Graphs | str | Path, data_dir: str | Path | None = None) -> Predictions:
        """Predicts the class of graphs.

        Args:
            graphs: a GraphDataset; a list of NetworkX graphs or PyG ``Data``; or a data set by name or path: also a
                .graphml or .json file, or a folder of them.
            data_dir: the folder with data sets by name.

        Returns:
            The names of the graphs, their classes, and the probability of every class.

        Raises:
            DataError: if a graph cannot be read or lacks what the model reads, or the model's answer is not a number.

        Warns:
            UserWarning: for node categories that no training graph had.
        """
        from tapnet.inference.predict import PredictedGroup, predict_inputs, raise_error

        unseen = UnseenCategories(self.features)
        if isinstance(graphs, str | os.PathLike):
            groups = list(predict_inputs(self, [str(graphs)], data_dir=data_dir, unseen=unseen, on_error=raise_error))
        else:
            dataset = self.to_dataset(check_graphs(graphs))
            numbered = [f"graph {i}" for i in range(len(dataset))]
            groups = [PredictedGroup(numbered, self.probabilities(self.encode(dataset, numbered, unseen)))]
        if unseen.graphs:
            warnings.warn(str(unseen), stacklevel=2)
        found = torch.cat([probabilities for _, probabilities in groups]).double().numpy()
        names = tuple(name for group, _ in groups for name in group)
        if not np.isfinite(found).all():
            first = names[int(np.isnan(found).any(axis=1).argmax())]
            raise DataError(f"{first}: the model's answer is not a number")
        classes = tuple(self.classes[i] for i in found.argmax(axis=1).tolist())
        return Predictions(names, classes, found, self.class_names)

    @torch.inference_mode()
    def probabilities(self, dataset: GraphDataset) -> Tensor:
        """[G, C]: the probability of every class, for graphs that went through ``encode``."""
        return predict_logits(self.network, dataset).softmax(dim=1)

    # ---- how graphs of other sources are read ----

    def to_dataset(self, graphs: Any) -> GraphDataset:
        """Graphs that went through ``check_graphs``, with the features that the model reads and no classes."""
        kind, nothing = kind_of(graphs), np.zeros(len(graphs), np.int64)
        fitted = self.card.estimator
        if kind == "NetworkX" and fitted is not None:
            return from_networkx(graphs, nothing, self.features, fitted.node_label, fitted.node_attributes)
        if kind == "NetworkX":
            return self.join_files([FileGraph.of(g, f"graph {i}") for i, g in enumerate(graphs)], "graphs")
        if kind == "PyG":  # those cut out of a data set such as the model was trained on have its numbers for labels
            cut = fitted is None or fitted.input == "GraphDataset"
            return from_pyg(graphs, nothing, self.features, self.categories if cut else None)
        dataset: GraphDataset = graphs
        return dataset if dataset.features == self.features else dataset.with_features(self.features)

    def join_files(self, files: Sequence[FileGraph], name: str) -> GraphDataset:
        """Graphs of files, each read by the names that its nodes' attributes had in the training data."""
        names = self.card.label_attribute, self.card.attribute_names
        return join(files, [NodeSchema.named(file, *names) for file in files], name=name, features=self.features)

    def encode(
        self, dataset: GraphDataset, names: Sequence[str] | None = None, unseen: UnseenCategories | None = None
    ) -> GraphDataset:
        """The data set as this network reads it: its own features and its own numbers for categories.

        Args:
            dataset: graphs from any source.
            names: [G] what the graphs are called in notes.
            unseen: counts the graphs with categories that no training graph had; without it a warning names them.
                Such a category is a row of zeros.

        Raises:
            DataError: if the graphs lack what the model reads.
        """
        dataset = dataset if dataset.features == self.features else dataset.with_features(self.features)
        self._check_names(dataset)
        if self.categories is None:
            wanted = self.card.shape.in_channels
            if dataset.categories is not None or dataset.num_features != wanted:
                raise DataError(f"the model reads {wanted} numbers a node; {dataset.name} has {dataset.num_features}")
            return dataset
        if dataset.categories is None:
            raise DataError(f"the model reads node categories; {dataset.name} has numbers")
        number = torch.tensor(self._category_numbers(dataset), dtype=torch.int64)
        x = number[dataset.x] if len(number) else dataset.x
        if bool((x < 0).any()):
            found = UnseenCategories(self.features) if unseen is None else unseen
            one = [dataset.name] if len(dataset) == 1 else None
            found.add(dataset, x < 0, names or one or [f"graph {i}" for i in range(len(dataset))])
            if unseen is None and found.graphs:
                warnings.warn(str(found), stacklevel=2)
            known = (x >= 0).unsqueeze(1)
            x = torch.nn.functional.one_hot(x.clamp(min=0), len(self.categories)).float() * known
        # what a model computes once per data set is left to the network, batch by batch
        return replace(dataset, x=x, categories=self.categories, label_names=None, prepared={})

    def _check_names(self, dataset: GraphDataset) -> None:
        """Other attributes than those of the training data are no input, even if they are as many."""
        ours, theirs = (tuple(names or ()) for names in (self.card.attribute_names, dataset.attribute_names))
        unnamed = {(), (ATTRIBUTES,)}
        if self.features == "attributes" and ours != theirs and not unnamed & {ours, theirs}:
            wanted, has = (printable(", ".join(names))[:200] for names in (ours, theirs))
            raise DataError(f"the model reads the numbers {wanted}; {dataset.name} has {has}")

    def _category_numbers(self, dataset: GraphDataset) -> list[int]:
        """The model's number for each category of a data set, or -1: by what it means where both say so, else by value.

        Copies of a set number their labels differently: carbon is MUTAG's 0 in one, and 2 in another.
        """
        exact = {value: i for i, value in enumerate(self.categories or ())}
        named = {name: i for i, name in enumerate(self.category_names)}  # also of a file that says "C"
        plain = named | {_plain(value): i for value, i in exact.items()}
        values, names = dataset.categories or (), dataset.category_names
        is_named = dataset.label_names is not None and len(set(names)) == len(names)  # many kinds of atoms are called C
        if is_named and named.keys() >= set(names):
            return [named[name] for name in names]
        return [exact.get(value, plain.get(_plain(value), -1)) for value in values]

    # ---- one file ----

    def save(self, file: str | Path) -> None:
        """Writes weights and card into one file; reading it runs no code."""
        write_model(Path(file), self.network.state_dict(), self.card)

    @classmethod
    def load(cls, file: str | Path) -> SavedModel:
        """From a file that ``save``, a run or a stranger wrote; see `load_model`.

        Raises:
            DataError: if it is no model that this version can use.
        """
        weights, card = read_model(file)
        try:
            spec = find_model(card.trial.model)
            settings = spec.settings(**card.trial.settings)
            if spec.build is None:
                raise ValueError(f"{card.trial.model} is no network")
            if {k: tuple(v.shape) for k, v in weights.items()} != weight_shapes(spec.build, card.shape, settings):
                raise ValueError("its weights are not of the shapes that its settings ask for")
            network = spec.build(card.shape, settings)
            network.load_state_dict(weights)
        except Exception as error:  # whatever a stranger's description makes of it
            raise unusable(file, error) from None
        return cls(network.eval(), card)


def _plain(value: Hashable) -> Hashable:
    """1, 1.0 and "1" are one category, whichever way a file wrote it."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if whole else str(value)  # type: ignore[call-overload]
