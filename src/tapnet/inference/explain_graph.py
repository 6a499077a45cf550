"""One graph explained by a stored model: found by number, by file, by SMILES or as an object."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.convert import check_graphs, kind_of
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.features import MixedFeatures
from tapnet.errors import DataError, DataNote, DatasetNotFoundError, SettingError, TapnetError
from tapnet.files import check_name, path_exists, printable
from tapnet.inference.attribution import DEFAULT_METHOD, Method, Probe, check_method, find_target, predicted_targets
from tapnet.inference.attribution_fidelity import measure_fidelity
from tapnet.inference.attribution_groups import find_groups
from tapnet.inference.attribution_stability import measure_stability
from tapnet.inference.explain import Explanation, explain
from tapnet.inference.explanation import (
    EdgeAttribution,
    GraphExplanation,
    GroupAttribution,
    LayerExplanation,
    NodeAttribution,
)
from tapnet.inference.model import SavedModel
from tapnet.inference.shown import ShownOrder
from tapnet.inference.training_data import find_graphs, load_graphs, read_smiles, reads_molecules
from tapnet.io.dataset_files import is_matrix_file
from tapnet.io.graph_file import read_graph
from tapnet.io.graph_folder import FileGraph, class_of, graph_names
from tapnet.io.read import names_of_nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tapnet.inference.inputs import Graph

LONGEST_NAME = 60  # characters that are shown
MOST_SHOWN = 4  # labels or numbers in a line


@dataclass(frozen=True)
class ExplainedGraph:
    """A graph, what a network's pooling layers kept of it, and the predicted class.

    Attributes:
        name: What the graph is called, such as ``"MUTAG, graph 0"``.
        stem: The same as part of a file's name, such as ``"MUTAG-0"``.
        file: The name of its file in a folder of graphs.
        true_class: The name of its class (or its labels or numbers), where that is known.
        predicted: The name of the class that the model predicts; else the labels or numbers, in words.
        explanation: The layers, and the probabilities of all classes or labels, or the numbers.
        edges: Both ends of each edge, once, ``[2, E]``; of a directed graph, first where it begins.
        category: The category of each node, ``[N]``.
        category_names: What the categories mean.
        features: What the categories are: labels or degrees; ``"attributes"`` where nodes have numbers instead.
        smiles: Of a molecule; nodes are numbered as the atoms in it.
        task: What the model predicts.
        directed: Whether edges have directions.
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
    task: Task = "classification"
    directed: bool = False

    @property
    def answer(self) -> str:
        """The predicted class with its probability; or the labels or numbers."""
        if self.task != "classification":
            return self.predicted
        return f"{self.predicted} ({100 * self.explanation.probabilities.max():.0f} %)"

    def __str__(self) -> str:
        file = f", {self.file}" if self.file else ""
        what = {"classification": "class", "multilabel": "labels", "regression": "value"}[self.task]
        truth = "" if self.true_class is None else f"; true {what}: {printable(self.true_class)}"
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
    found = find_graph(model, graph, dataset, data_dir)
    read = model.encode(found.data.subset([found.number]), [found.name])
    explanation = explain(model.network, read.batch([0]))
    answer, order = _answer(model, read), ShownOrder.of(found.data, found.number)
    return _described(model, found, read, replace(explanation, probabilities=answer), order)


def attribute_graph(
    model: SavedModel,
    graph: FoundGraph,
    method: Method = DEFAULT_METHOD,
    target: object = None,
    classes: Sequence[Any] | None = None,
    encoded: GraphDataset | None = None,
) -> GraphExplanation:
    """Explains the prediction of one graph: `SavedModel.explain` for a graph that was found.

    Args:
        model: Any trained network.
        graph: From `find_graph`.
        method: ``"surrogate"``, ``"occlusion"``, ``"masking"``, ``"shapley"`` or ``"gradients"``,
            as `tapnet.inference.attribution.attribute_graphs` has them.
        target: The class, label or number to speak of; None: the predicted class, the most probable label, or the
            first number.
        classes: What to call the classes; None: by their names.
        encoded: The graph as the model reads it, where that was made before.

    Returns:
        The prediction, the attributions, their fidelity, and what pooling kept.

    Raises:
        SettingError: There is no such method or target, or no gradient reaches the input of the network.
        DataError: The graph does not fit the model, or its answer is not a number.
    """
    check_method(method)
    chosen = find_target(model, target)
    read = model.encode(graph.data.subset([graph.number]), [graph.name]) if encoded is None else encoded
    said = _answer(model, read)
    probe = Probe(model.network, read, predicted_targets(model, said[None]) if chosen is None else chosen)
    found = probe.attributions(method)
    try:
        layers = explain(model.network, read.batch([0])).layers
    except SettingError:  # nodes are merged, or there is no pooling
        layers = ()
    labels = classes or (model.card.class_names or model.classes if model.task == "classification" else None)
    labels = tuple(labels or model.card.target_names or range(probe.outputs.size(1)))
    label = labels[int(found.target[0])]
    prediction: Any = labels[int(said.argmax())]
    if model.task == "multilabel":
        prediction = tuple(name for name, p in zip(labels, said, strict=True) if p >= 0.5)
    elif model.task == "regression":
        prediction = float(said[0]) if len(said) == 1 else dict(zip(labels, said.tolist(), strict=True))
    names: Sequence[Hashable] = graph.node_names or range(read.num_nodes)
    shown_order = ShownOrder.of(graph.data, graph.number)
    drawn = _described(model, graph, read, Explanation(layers, said), shown_order)
    layers = drawn.explanation.layers
    kept: list[int | None] = [None] * len(names)
    if layers:
        kept = np.bincount(np.concatenate([layer.nodes[layer.kept] for layer in layers]), minlength=len(names)).tolist()
    errors = found.errors[shown_order.node].tolist() if found.errors.any() else [None] * len(names)
    shown = model.task == "regression"
    unit = printable(label) if shown else f"log odds of {printable(label)}"
    what = printable(label) if shown else f"the probability of {printable(label)}"
    edges, which = shown_order.edges(found.edge_index, directed=read.directed)
    return GraphExplanation(
        prediction,
        {} if shown else dict(zip(labels, said.tolist(), strict=True)),
        tuple(LayerExplanation.of(layer, names) for layer in layers),
        drawn,
        tuple(map(NodeAttribution, names, found.nodes[shown_order.node].tolist(), kept, errors)),
        tuple(
            EdgeAttribution(names[u], names[v], lost)
            for u, v, lost in zip(*edges.tolist(), found.edges[which].tolist(), strict=True)
        ),
        _groups(probe, edges, found.nodes[shown_order.node], drawn.smiles, names, shown_order),
        measure_fidelity(probe, found.nodes, what),
        method,
        label,
        unit,
        float(found.value[0]),
        float(found.baseline[0]),
        measure_stability(probe, method),
    )


def _groups(
    probe: Probe,
    edges: NDArray[np.int64],
    nodes: NDArray[np.float64],
    smiles: str | None,
    names: Sequence[Hashable],
    order: ShownOrder,
) -> tuple[GroupAttribution, ...]:
    """What the value loses without each group, the largest first; edges and nodes are in the order that is shown."""
    groups = find_groups(edges, nodes, smiles)
    there = np.ones((len(groups), len(nodes)), dtype=bool)
    for row, group in zip(there, groups, strict=True):
        row[order.node[list(group.nodes)]] = False
    zeros = torch.zeros(len(groups), dtype=torch.int64)
    lost = probe.value[0] - probe.values(zeros, torch.from_numpy(there).flatten())
    rows = [
        GroupAttribution(group.kind, group.name, tuple(names[i] for i in group.nodes), float(value))
        for group, value in zip(groups, lost, strict=True)
    ]
    return tuple(sorted(rows, key=lambda group: -abs(group.attribution)))


def _answer(model: SavedModel, read: GraphDataset) -> NDArray[np.float64]:
    """[C] what `predict` says of the graph: calibrated probabilities, or numbers."""
    return model.probabilities(read)[0].double().numpy()


def _described(
    model: SavedModel, graph: FoundGraph, read: GraphDataset, explanation: Explanation, order: ShownOrder
) -> ExplainedGraph:
    """The graph with what is known of it; ``read`` is the graph as the model reads it, ``order`` how it is shown."""
    said = explanation.probabilities
    if not np.isfinite(said).all():
        raise DataError(f"{graph.name}: the model's answer is not a number")
    category, names = displayed_categories(read, model)
    data = graph.data
    return ExplainedGraph(
        graph.name,
        f"{data.name}-{graph.number}",
        graph.file,
        graph.truth,
        model.class_names[int(said.argmax())] if model.task == "classification" else answer_words(model, said.tolist()),
        replace(explanation, layers=order.layers(explanation.layers)),
        order.edges(read.batch([0]).edge_list.numpy(), directed=read.directed)[0],
        category.numpy()[order.node],
        names,
        "attributes" if read.categories is None else model.features,
        data.smiles[graph.number] if data.smiles else None,
        model.task,
        read.directed,
    )


def answer_words(model: SavedModel, values: Sequence[float]) -> str:
    """The labels that are likely, with their probabilities, or the numbers, by their names; NaN is left out."""
    known = [(name, value) for name, value in zip(model.target_names, values, strict=False) if not math.isnan(value)]
    if model.task == "regression":
        words = [f"{name} {value:.4g}" for name, value in known]
    else:
        likely = sorted((pair for pair in known if pair[1] >= 0.5), key=lambda pair: -pair[1])
        words = [f"{name} ({100 * value:.0f} %)" for name, value in likely] or ["no label"]
    return ", ".join(words[:MOST_SHOWN]) + (f" and {len(words) - MOST_SHOWN} more" if len(words) > MOST_SHOWN else "")


def displayed_categories(read: GraphDataset, model: SavedModel) -> tuple[Tensor, tuple[str, ...]]:
    """``[N]`` the category that each node is shown with, and their names; of several columns the first."""
    x, names = read.x, (*model.category_names, "unknown")
    if read.categories is None:
        return torch.zeros(read.num_nodes, dtype=torch.int64), ("node",)
    if isinstance(x, MixedFeatures):
        first = x.table[x.combination, 0]
        values = [c[1] if isinstance(c, tuple) else c for c in model.categories or ()]
        shown = map(printable, values) if any(isinstance(c, tuple) for c in model.categories or ()) else names[:-1]
        return torch.where(first < 0, len(read.categories), first), (*shown, "unknown")
    if x.dim() > 1:  # a row of zeros is of no category that the model knows
        return torch.where(x.any(dim=1), x.argmax(dim=1), len(read.categories)), names
    return x, names


# ---- which graph ----


@dataclass(frozen=True)
class FoundGraph:
    """A graph of a data set.

    Attributes:
        data: The data set.
        number: The graph's number in it.
        name: What the graph is called.
        file: The name of its file in a folder of graphs.
        truth: The name of its class, or its labels or numbers in words; None where that is not known.
        node_names: What its nodes are called; None: by their numbers.
    """

    data: GraphDataset
    number: int
    name: str
    file: str | None = None
    truth: str | None = None
    node_names: Sequence[Hashable] | None = None


def find_graph(
    model: SavedModel,
    graph: int | str | Path | Graph,
    dataset: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> FoundGraph:
    """Finds a graph as `explain_graph` takes it; see there."""
    if not isinstance(graph, int | np.integer | str | os.PathLike):
        graphs = check_graphs(graph if isinstance(graph, GraphDataset | list | tuple) else [graph])
        if len(graphs) != 1:
            raise DataError(f"one graph is explained at a time, not {len(graphs)}")
        names = list(graphs[0]) if kind_of(graphs) == "NetworkX" else None
        data = model.to_dataset(graphs)
        if not isinstance(graphs, GraphDataset):
            _show_notes(data)
        return FoundGraph(data, 0, "the graph", node_names=names)
    text = str(graph)
    check_name(text)
    is_number = re.fullmatch("-?[0-9]{1,18}", text) is not None
    if not is_number and path_exists(Path(text)):
        return _read_file(model, Path(text), data_dir)
    may_be_smiles = not is_number and dataset is None
    if may_be_smiles and (molecule := read_smiles(model, text)) is not None:
        return FoundGraph(molecule, 0, printable(text))
    no_smiles = ", no valid SMILES" if may_be_smiles and reads_molecules(model) else ""
    try:
        data = load_graphs(model, dataset, data_dir)
    except TapnetError as error:
        if dataset is not None or (is_number and not isinstance(error, DatasetNotFoundError)):
            raise
        if not is_number:
            raise DataError(f"{text}: no such file{no_smiles}") from None
        raise DatasetNotFoundError(f"graph {text} of which data set? Give dataset=NAME ({error})") from None
    if is_number and not 0 <= int(text) < len(data):
        raise DataError(f"{data.name} has graphs 0 to {len(data) - 1}; there is no graph {text}")
    try:
        files = graph_names(data.source)
    except DataError:  # no folder of graphs
        files = []
    numbers = [int(text)] if is_number else [i for i, file in enumerate(files) if text in (file, Path(file).stem)]
    if not numbers:
        named = list(enumerate(data.graph_names or ()))
        numbers = [i for i, name in named if name == text]
        numbers = numbers or [i for i, name in named if is_matrix_file(name) and Path(name).stem == text]
    if len(numbers) > 1:
        some = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
        raise DataError(f"{data.name} has {len(numbers)} graphs that are called {text}: {some}; give a number")
    if not numbers:
        raise DataError(f"{text}: no such file{no_smiles}, and {data.name} has no graph of that name")
    return dataset_graph(model, data, numbers[0], files)


def dataset_graph(model: SavedModel, data: GraphDataset, number: int, files: Sequence[str] = ()) -> FoundGraph:
    """A graph of a data set with what is known of it; ``files`` are those of a folder of graphs."""
    names = names_of_nodes(data, number)
    file, called = files[number] if files else None, f"{data.name}, graph {number}"
    own = data.graph_names[number] if data.graph_names and not files else ""
    if own and (data.smiles is None or own != data.smiles[number]):
        called += f" ({printable(own)[:LONGEST_NAME]})"
    return FoundGraph(data, number, called, file, _truth(model, data, number), names)


def _truth(model: SavedModel, data: GraphDataset, number: int) -> str | None:
    if data.task == "classification":
        code = int(data.y[number])
        return _class_name(model, data.classes[code], data.class_names[code] if data.class_names else None)
    if data.task != model.task or data.y.size(1) != len(model.target_names) or bool(data.y[number].isnan().all()):
        return None
    if data.task == "regression":
        return answer_words(model, data.y[number].tolist())
    yes = [name for name, value in zip(model.target_names, data.y[number].tolist(), strict=True) if value == 1]
    return (
        ", ".join(yes[:MOST_SHOWN]) + (f" and {len(yes) - MOST_SHOWN} more" if len(yes) > MOST_SHOWN else "") or "none"
    )


def _read_file(model: SavedModel, file: Path, data_dir: str | Path | None) -> FoundGraph:
    names: Sequence[Hashable] | None = None
    layout = find_graphs(model, file, data_dir, download=False)
    if layout.kind == "graphs" and layout.place.is_file():
        graph = read_graph(layout.place)
        data, names = model.join_files([FileGraph.of(graph, str(layout.place))], layout.prefix), list(graph)
        _show_notes(data)
    else:
        data = load_graphs(model, file, data_dir)
    if len(data) > 1:
        raise SettingError(f"{file} has {len(data)} graphs; which one? Give its number with dataset={file}")
    names = names if names is not None else names_of_nodes(data, 0, layout)
    return FoundGraph(data, 0, data.name, truth=_class_name(model, class_of(file)), node_names=names)


def _show_notes(data: GraphDataset) -> None:
    for note in data.notes:
        warnings.warn(note, DataNote, stacklevel=3)


def _class_name(model: SavedModel, value: Hashable | None, own: str | None = None) -> str | None:
    """What the model calls a class, or else the data set; None for one that is not known."""
    known = dict(zip(map(str, model.classes), model.class_names, strict=True))
    return None if value is None else known.get(str(value), own or str(value))
