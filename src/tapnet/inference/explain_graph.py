"""One graph explained by a stored model: found by number, by file or as an object, with what is known of it."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.dataset import Features, GraphDataset
from tapnet.data.features import MixedFeatures
from tapnet.errors import DataError, DatasetNotFoundError, SettingError
from tapnet.files import check_name, path_exists, printable
from tapnet.inference.explain import Explanation, explain
from tapnet.inference.inputs import check_graphs
from tapnet.inference.model import SavedModel
from tapnet.inference.training_data import load_training_data
from tapnet.io.graph_folder import FileGraph, class_of, graph_names
from tapnet.io.load import load_dataset
from tapnet.io.locate import find

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tapnet.inference.inputs import Graph


@dataclass(frozen=True)
class ExplainedGraph:
    """A graph, what a network's pooling layers kept of it, and the predicted class.

    Attributes:
        name: What the graph is called, such as ``"MUTAG, graph 0"``.
        stem: The same as part of a file's name, such as ``"MUTAG-0"``.
        file: The name of its file in a folder of graphs.
        true_class: The name of its class, where that is known.
        predicted: The name of the class that the model predicts.
        explanation: The layers, and the probabilities of all classes.
        edges: Both ends of each edge, once, ``[2, E]``.
        category: The category of each node, ``[N]``.
        category_names: What the categories mean.
        features: What the categories are: labels or degrees; ``"attributes"`` where nodes have numbers instead.
        smiles: Of a molecule.
    """

    name: str
    stem: str
    file: str | None
    true_class: str | None
    predicted: str
    explanation: Explanation
    edges: NDArray[np.int64]
    category: NDArray[np.int64]
    category_names: tuple[str, ...]
    features: Features = "labels"
    smiles: str | None = None

    @property
    def answer(self) -> str:
        """The predicted class with its probability."""
        return f"{self.predicted} ({100 * self.explanation.probabilities.max():.0f} %)"

    def __str__(self) -> str:
        file = f", {self.file}" if self.file else ""
        truth = "" if self.true_class is None else f"; true class: {printable(self.true_class)}"
        return f"{self.name}{file}: {self.answer}{truth}"

    def to_dict(self) -> dict[str, Any]:
        """The graph, its classes, and the numbers of the nodes that each pooling layer kept, as JSON has them."""
        return {
            "graph": self.name,
            "file": self.file,
            "true_class": self.true_class,
            "prediction": self.predicted,
            "probabilities": self.explanation.probabilities.tolist(),
            "kept": [layer.nodes[layer.kept].tolist() for layer in self.explanation.layers],
        }

    def plot(self) -> Figure:
        """Draws the graph and what each pooling layer kept of it; a notebook displays the figure.

        Returns:
            The figure of :func:`tapnet.viz.draw_explanation`.
        """
        # By name, as pandas loads its plotting: drawing comes after inference, which needs none of it.
        figure: Figure = import_module("tapnet.viz").draw_explanation(self)
        return figure


def explain_graph(
    model: SavedModel,
    graph: int | str | Path | Graph,
    dataset: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> ExplainedGraph:
    """Finds a graph and explains what a model does with it.

    Args:
        model: A network whose pooling layers keep some of the nodes.
        graph: A NetworkX graph or PyG ``Data``; a file with one graph; or a graph of the data set, by its number or by
            the name of its file.
        dataset: The data set that a number belongs to; None for the one that the model was trained on.
        data_dir: The folder with data sets by name.

    Raises:
        SettingError: If the network keeps no nodes, or a file has several graphs.
        DataError: If there is no such graph, or it does not fit the model.
        DatasetNotFoundError: If the data set is not here.

    Warns:
        UserWarning: For node categories that no training graph had, and for a data set that has changed.

    Example:
        >>> from tapnet import load_model
        >>> print(explain_graph(load_model("runs/MUTAG"), 0))  # doctest: +SKIP
        MUTAG, graph 0: mutagenic (92 %); true class: mutagenic
    """
    found = _find(model, graph, dataset, data_dir)
    return explain_member(model, found.data, found.number, found.name, found.file, found.true_class)


def explain_member(
    model: SavedModel,
    data: GraphDataset,
    number: int,
    name: str,
    file: str | None = None,
    true_class: str | None = None,
) -> ExplainedGraph:
    """Explains what a model does with one graph of a data set.

    Args:
        model: A network whose pooling layers keep some of the nodes.
        data: The data set.
        number: The graph's number in it.
        name: What the graph is called.
        file: The name of its file.
        true_class: The name of its class.

    Raises:
        SettingError: If the network keeps no nodes.
        DataError: If the graph does not fit the model.

    Warns:
        UserWarning: For node categories that no training graph had.
    """
    read = model.encode(data.subset([number]), [name])
    batch = read.batch([0])
    explanation = explain(model.network, batch)
    found = model.probabilities(read)[0].double().numpy()  # calibrated
    explanation = replace(explanation, probabilities=found)
    if not np.isfinite(explanation.probabilities).all():
        raise DataError(f"{name}: the model's answer is not a number")
    category, names = _displayed_categories(read, model)
    return ExplainedGraph(
        name,
        f"{data.name}-{number}",
        file,
        true_class,
        model.class_names[int(explanation.probabilities.argmax())],
        explanation,
        batch.edges_once.numpy(),
        category.numpy(),
        names,
        model.features,
        data.smiles[number] if data.smiles else None,
    )


def _displayed_categories(read: GraphDataset, model: SavedModel) -> tuple[Tensor, tuple[str, ...]]:
    """[N] the category that each node is drawn with, and their names; of several columns the first is shown."""
    x, names = read.x, (*model.category_names, "unknown")
    if read.categories is None:
        return torch.zeros(read.num_nodes, dtype=torch.int64), ("node",)
    if isinstance(x, MixedFeatures):
        first = x.table[x.combination, 0]
        values = (c[1] if isinstance(c, tuple) else c for c in model.categories or ())
        return torch.where(first < 0, len(read.categories), first), (*map(printable, values), "unknown")
    if x.dim() > 1:  # a row of zeros is of no category that the model knows
        return torch.where(x.any(dim=1), x.argmax(dim=1), len(read.categories)), names
    return x, names


@dataclass(frozen=True)
class _Found:
    data: GraphDataset
    number: int
    name: str
    file: str | None = None
    true_class: str | None = None


def _find(
    model: SavedModel, graph: int | str | Path | Graph, dataset: str | Path | None, data_dir: str | Path | None
) -> _Found:
    if not isinstance(graph, int | str | os.PathLike):
        return _Found(model.to_dataset(check_graphs([graph])), 0, "the graph")
    text = str(graph)
    check_name(text)
    is_number = re.fullmatch("-?[0-9]{1,18}", text) is not None
    if not is_number and path_exists(Path(text)):
        return _read_file(model, Path(text), data_dir)
    try:
        if dataset is None:
            data = load_training_data(model, data_dir)
        else:
            data = load_dataset(dataset, data_dir, features=model.features, download=False)
    except DatasetNotFoundError as error:
        if dataset is not None:
            raise
        if not is_number:
            raise DataError(f"{text}: no such file") from None
        raise DatasetNotFoundError(f"graph {text} of which data set? Give dataset=NAME ({error})") from None
    if is_number and not 0 <= int(text) < len(data):
        raise DataError(f"{data.name} has graphs 0 to {len(data) - 1}; there is no graph {text}")
    try:
        files = graph_names(data.source)
    except DataError:  # no folder of graphs
        files = []
    numbers = [int(text)] if is_number else [i for i, file in enumerate(files) if text in (file, Path(file).stem)]
    if len(numbers) != 1:
        raise DataError(f"{text}: no such file, and {data.name} has no graph of that name")
    (number,) = numbers
    code = int(data.y[number])
    true_class = _class_name(model, data.classes[code], data.class_names[code] if data.class_names else None)
    return _Found(data, number, f"{data.name}, graph {number}", files[number] if files else None, true_class)


def _read_file(model: SavedModel, file: Path, data_dir: str | Path | None) -> _Found:
    layout = find(file, data_dir, download=False).layout
    if layout.kind == "graphs" and layout.place.is_file():
        data = model.join_files([FileGraph.read(layout.place)], layout.prefix)
    else:
        data = load_dataset(file, data_dir, features=model.features, download=False)
    if len(data) > 1:
        raise SettingError(f"{file} has {len(data)} graphs; which one? Give its number with dataset={file}")
    return _Found(data, 0, data.name, true_class=_class_name(model, class_of(file)))


def _class_name(model: SavedModel, value: Hashable | None, own: str | None = None) -> str | None:
    """What the model calls a class, or else the data set; None for one that is not known."""
    known = dict(zip(map(str, model.classes), model.class_names, strict=True))
    return None if value is None else known.get(str(value), own or str(value))
