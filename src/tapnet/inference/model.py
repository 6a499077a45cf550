"""A trained network ready to predict: loaded from a file, with what its inputs and answers mean."""

from __future__ import annotations

import contextlib
import json
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

from tapnet.data.convert import check_graphs, directions_note, kind_of
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.features import FeatureRows, MixedFeatures
from tapnet.data.molecules import in_written_order
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.files import printable, read_regular
from tapnet.inference.attribution import DEFAULT_METHOD, Method
from tapnet.inference.calibration import calibrate
from tapnet.inference.ensemble import Ensemble, networks_of
from tapnet.inference.inputs import from_networkx, from_pyg
from tapnet.inference.model_file import (
    MAX_RUN_BYTES,
    RUN,
    ModelCard,
    find_model_file,
    read_model,
    unusable,
    write_model,
)
from tapnet.inference.uncertainty import (
    UNLIKE,
    Answers,
    check_confidence,
    measured_coverage,
    prediction_intervals,
    prediction_sets,
    shares_nearer,
)
from tapnet.io._plain_text import NUMBER
from tapnet.io.graph_folder import ATTRIBUTES, EdgeSchema, FileGraph, NodeSchema, join, plain_text
from tapnet.models.base import GraphClassifier
from tapnet.models.predictor import predict_and_embed, predict_logits
from tapnet.models.registry import find_model
from tapnet.models.spec import weight_shapes
from tapnet.nn.conv.registry import find_conv
from tapnet.nn.pool.registry import resolve
from tapnet.training.task import answers

if TYPE_CHECKING:
    from tapnet.inference.explanation import GraphExplanation
    from tapnet.inference.inputs import Graph, Graphs

NAMED_AT_MOST = 3  # graphs in a note, and categories of each


def load_model(path: str | Path, pools: Iterable[type | str] = (), convs: Iterable[type | str] = ()) -> SavedModel:
    """Loads a trained model.

    Reading the file runs no code and imports nothing that the file names, so a stranger's file is safe to load.

    Args:
        path: a model file, or the folder of a run with a final model.
        pools: the user's own pooling layers that the model may use: classes, or their names
            ``"package.module:Class"``, which are imported.
        convs: the convolutions of PyG, or of the user's own, that it may use, likewise.

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
    for conv in convs:
        find_conv(conv, allow_import=True)
    return SavedModel.load(find_model_file(path))


@dataclass(frozen=True)
class Predictions:
    """What a model predicts of some graphs.

    Attributes:
        graphs: [G] the names of the graphs: of their files, or their numbers.
        classes: [G] the most probable class of each, as it stood in the training data; empty for labels and numbers.
        probabilities: [G, C] of every class, or [G, T] of every label; empty for numbers.
        class_names: [C] what the columns of ``probabilities`` mean.
        values: [G, T] numbers in the units of the training data; empty for classes and labels.
        target_names: [T] what the columns of ``values`` mean.
        std: the deviation of ``probabilities`` or ``values`` over the networks of an ensemble; empty of one network.
        sets: [G] with a confidence, the classes that cannot be ruled out; of labels for each of them 0, 1, or both.
        low: [G, T] with a confidence, the lower ends of the intervals of numbers.
        high: [G, T] the upper ends.
        distance: [G] how far each graph is from the training graphs: the share of held-out ones that are nearer; empty
            where the model file does not say what these were like.
        unlike_training: [G] what is unlike the training graphs: "distance", "categories", "size", separated by "; ".
        calibration: how the probabilities were calibrated: "temperature", "isotonic", or "none".
        coverage: with a confidence, the share of held-out graphs whose set or interval was right.
    """

    graphs: tuple[str, ...]
    classes: tuple[Hashable, ...]
    probabilities: NDArray[np.float64]
    class_names: tuple[str, ...]
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    target_names: tuple[str, ...] = ()
    std: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    sets: tuple[tuple[Any, ...], ...] = ()
    low: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    high: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    distance: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    unlike_training: tuple[str, ...] = ()
    calibration: str = "none"
    coverage: float | None = None

    def __len__(self) -> int:
        return len(self.graphs)


@dataclass
class UnseenCategories:
    """Counts graphs with node categories that no training graph had, and names the first of them.

    Degrees grow with the graphs, and one or the other is new in most; only a graph with no known degree is noted.

    Attributes:
        features: what a node is to the model.
        graphs: how many have some unknown categories, foreign ones included.
        foreign: how many have no known category at all: the model can say nothing about them.
        first: the names of the first ones that are not foreign, with their categories.
        first_foreign: those of the first foreign ones.
        advice: what would be known, where graphs have numbers and the model's categories have names; else empty.
    """

    features: Features
    graphs: int = 0
    foreign: int = 0
    first: list[str] = field(default_factory=list)
    first_foreign: list[str] = field(default_factory=list)
    advice: str = ""

    def add(
        self,
        dataset: GraphDataset,
        known: Tensor,
        number: Tensor,
        names: Sequence[str],
        known_names: Sequence[str] = (),
    ) -> None:
        """Notes the graphs of a data set by their names.

        Args:
            dataset: as it came, with its own categories.
            known: [N, K] whether the model knows the categories of each node.
            number: [categories] the model's number for each category of the data set, or -1.
            names: [G] of the graphs.
            known_names: of the model's categories, where they have other names than their numbers.
        """
        own_names = dataset.category_names
        values = own_names if own_names is dataset.label_names else dataset.categories or ()
        if known_names and all(is_code(value) for value, own in zip(values, number.tolist(), strict=True) if own < 0):
            listed = ", ".join(map(printable, known_names[:NAMED_AT_MOST])) + ", …" * (len(known_names) > NAMED_AT_MOST)
            self.advice = f"; the model knows categories by their names ({listed}), not by numbers"
        unknown = ~known.all(dim=1)
        foreign = ~_any_node(known.any(dim=1), dataset)
        some = _any_node(unknown, dataset) & ~foreign & (self.features != "degrees")
        self.graphs += int((foreign | some).sum())
        self.foreign += int(foreign.sum())
        for marked, noted in ((some, self.first), (foreign, self.first_foreign)):
            for graph in marked.nonzero().flatten()[: NAMED_AT_MOST - len(noted)].tolist():
                nodes = slice(int(dataset.node_ptr[graph]), int(dataset.node_ptr[graph + 1]))
                there = _categories_of(dataset.x[nodes][unknown[nodes]])
                strange = (values[i] for i in there if number[i] < 0)
                words = [f"{' '.join(map(str, v)) if isinstance(v, tuple) else repr(v):.40}" for v in strange]
                more = f" and {len(words) - NAMED_AT_MOST} more" if len(words) > NAMED_AT_MOST else ""
                noted.append(f"{names[graph]}: {', '.join(words[:NAMED_AT_MOST])}{more}")

    @property
    def notes(self) -> list[str]:
        """One sentence about the graphs that the model knows in part, and one about the foreign ones."""
        found = []
        if partly := self.graphs - self.foreign:
            have = "1 graph has" if partly == 1 else f"{partly} graphs have"
            named = _some_of(self.first, partly)
            unknown = f"node categories that the model was not trained on ({named}): they count as none"
            found.append(f"{have} {unknown}{self.advice}")
        if self.foreign:
            share = "1 graph shares" if self.foreign == 1 else f"{self.foreign} graphs share"
            what = "degree" if self.features == "degrees" else "category"
            named = _some_of(self.first_foreign, self.foreign)
            found.append(
                f"{share} no node {what} with the model's training data ({named}), so a prediction means nothing"
                f"{self.advice}"
            )
        return found

    def __str__(self) -> str:
        return "; ".join(self.notes)


def _categories_of(x: FeatureRows) -> list[int]:
    """Those that occur."""
    numbers = x.table[x.combination] if isinstance(x, MixedFeatures) else x
    assert isinstance(numbers, Tensor)
    return [i for i in numbers.unique().tolist() if i >= 0]


def _some_of(named: Sequence[str], total: int) -> str:
    return "; ".join(named) + ("; …" if total > len(named) else "")


def _any_node(marked: Tensor, dataset: GraphDataset) -> Tensor:
    """[G] whether any node of a graph is marked."""
    return torch.cat([marked.new_zeros(1, dtype=torch.int64), marked.cumsum(0)])[dataset.node_ptr].diff() > 0


def foreign_graphs(encoded: GraphDataset) -> Tensor:
    """[G] whether a graph that went through ``SavedModel.encode`` has no category that the model knows."""
    return ~_any_node(_known_categories(encoded).any(dim=1), encoded)


def unknown_graphs(encoded: GraphDataset) -> Tensor:
    """[G] whether such a graph has a category that the model does not know; of degrees, whether it knows none."""
    if encoded.features == "degrees":
        return foreign_graphs(encoded)
    return _any_node(~_known_categories(encoded).all(dim=1), encoded)


def _known_categories(encoded: GraphDataset) -> Tensor:
    """[N, K] whether the model knows the categories of each node."""
    x = encoded.x
    if isinstance(x, MixedFeatures):
        return (x.table >= 0)[x.combination]
    if encoded.categories is None or x.dim() == 1:
        return torch.ones(encoded.num_nodes, 1, dtype=torch.bool)
    return x.any(dim=1, keepdim=True)


@dataclass(frozen=True)
class SavedModel:
    """A trained network with its card.

    Args:
        network: the network, in evaluation mode; an `Ensemble` of several whose answers are averaged.
        card: what it reads and what its answers mean.
        data_places: where the run that trained it found its data.
    """

    network: GraphClassifier
    card: ModelCard
    data_places: tuple[Path, ...] = field(default=(), repr=False, compare=False)

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
    def task(self) -> Task:
        """What it predicts."""
        return self.card.shape.task

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the labels or numbers that it predicts, safe to print."""
        return tuple(map(printable, self.card.target_names or ()))

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
        words = f"classes: {', '.join(self.class_names)}"
        if self.task != "classification":
            words = f"{self.task} of {', '.join(self.target_names)}"
        several = f"{self.card.members} × " if self.card.members > 1 else ""
        return f"SavedModel({several}{self.card.trial.model}, trained on {self.name}, {words})"

    def is_training_data(self, dataset: GraphDataset) -> bool:
        """Whether it was trained on exactly this data set."""
        reads_numbers = self.categories is None or self.card.shape.in_channels > len(self.categories)
        if isinstance(dataset.x, MixedFeatures) and not reads_numbers:
            dataset = replace(dataset, x=replace(dataset.x, numbers=None))
        if self._has_checksum_of(dataset):
            return True
        is_whole = dataset.smiles is not None and dataset.edge_weight is None
        return is_whole and self._has_checksum_of(in_written_order(dataset))  # of a model from before that order

    def _has_checksum_of(self, dataset: GraphDataset) -> bool:
        if not dataset.num_edge_features:
            return dataset.checksum == self.card.trial.data
        with_edges = dataset.with_edge_features()  # also those of some networks that do not read them
        first, second = (with_edges, dataset) if self.network.reads_edges else (dataset, with_edges)
        return self.card.trial.data in (first.checksum, second.checksum)

    def warn_if_other_data(self, dataset: GraphDataset) -> None:
        """Warns where a data set has the name of the training data but other content."""
        if not self.is_training_data(dataset):
            what = dataset.source or dataset.name
            message = f"{what} is not the {self.name} that the model was trained on, or it has changed since"
            warnings.warn(message, stacklevel=2)

    # ---- prediction ----

    def predict(
        self,
        graphs: Graphs | str | Path,
        data_dir: str | Path | None = None,
        *,
        allow_unknown: bool = False,
        confidence: float | None = None,
    ) -> Predictions:
        """Predicts the class of graphs.

        Args:
            graphs: a GraphDataset; a list of NetworkX graphs, PyG ``Data`` or SMILES (an array or a Series, too); or a
                data set by name or path: also a .graphml or .json file, or a folder of them.
            data_dir: the folder with data sets by name.
            allow_unknown: whether to predict graphs none of whose node categories (or degrees) a training graph had.
            confidence: such as 0.9, for sets of classes or intervals of numbers that are right for this share of
                graphs from where the training graphs came from.

        Returns:
            The names of the graphs, their classes, the probability of every class, and how sure the model is.

        Raises:
            DataError: if a graph cannot be read or lacks what the model reads, if it shares no node category with the
                training data (unless ``allow_unknown``), if the model's answer is not a number, or if the model
                promises no confidence.
            SettingError: if there were too few graphs for the confidence.

        Warns:
            DataNote: for what is not used of the graphs, such as directions.
            UserWarning: for node categories that no training graph had.
        """
        from tapnet.inference.predict import PredictedGroup, predict_inputs, raise_error

        unseen = UnseenCategories(self.features)
        if isinstance(graphs, str | os.PathLike):
            options: dict[str, Any] = {"data_dir": data_dir, "unseen": unseen, "allow_unknown": allow_unknown}
            options["confidence"] = confidence
            groups = list(predict_inputs(self, [str(graphs)], on_error=raise_error, **options))
        else:
            dataset = self.to_dataset(check_graphs(graphs))
            for note in () if isinstance(graphs, GraphDataset) else dataset.notes:
                warnings.warn(note, DataNote, stacklevel=2)
            numbered = [f"graph {i}" for i in range(len(dataset))]
            encoded = self.encode(dataset, numbered, unseen)
            groups = [PredictedGroup(numbered, self.answer(encoded, confidence))]
        if unseen.foreign and not allow_unknown:
            raise DataError(f"{unseen.notes[-1]}; pass allow_unknown=True to predict them all the same")
        for note in unseen.notes:
            warnings.warn(note, stacklevel=2)
        answer = Answers.join([group.answers for group in groups])
        found = answer.values.double().numpy()
        names = tuple(name for group in groups for name in group.graphs)
        if not np.isfinite(found).all():
            first = names[int(np.isnan(found).any(axis=1).argmax())]
            raise DataError(f"{first}: the model's answer is not a number")
        sure = self._how_sure(answer, confidence)
        if self.task == "regression":
            return Predictions(names, (), np.empty((0, 0)), (), found, self.target_names, **sure)
        if self.task == "multilabel":
            return Predictions(names, (), found, self.target_names, **sure)
        classes = tuple(self.classes[i] for i in found.argmax(axis=1).tolist())
        return Predictions(names, classes, found, self.class_names, **sure)

    def _how_sure(self, answer: Answers, confidence: float | None) -> dict[str, Any]:
        """The fields of `Predictions` about uncertainty, as far as they are known."""
        values: dict[str, Any] = {"calibration": self.calibration}
        if answer.std is not None:
            values["std"] = answer.std.double().numpy()
        if answer.sets is not None:
            names = self.classes if self.task == "classification" else (0, 1)
            values["sets"] = tuple(_chosen(row, names) for row in answer.sets)
        if answer.low is not None:
            values |= {"low": answer.low, "high": answer.high}
        if answer.distance is not None and answer.unlike_training is not None:
            values |= {"distance": answer.distance, "unlike_training": tuple(answer.unlike_training.tolist())}
        if confidence is not None:
            values["coverage"] = self.coverage(confidence)
        return values

    @property
    def calibration(self) -> str:
        """How its probabilities are calibrated: "temperature", "isotonic", or "none"."""
        return "none" if self.card.calibration is None else self.card.calibration.method

    def coverage(self, confidence: float) -> float:
        """The share of held-out graphs whose set or interval of this confidence was right.

        Raises:
            DataError: if the model promises no confidence.
            SettingError: if there were too few graphs for this one.
        """
        return measured_coverage(check_confidence(self.card.conformal, confidence), confidence)

    def probabilities(self, dataset: GraphDataset) -> Tensor:
        """What the model says of graphs that went through ``encode``: of an ensemble the mean of its networks.

        Returns:
            [G, C] the probability of every class, [G, T] of every label, or [G, T] numbers in the units of the targets.
            Probabilities are calibrated if the model's card says how.
        """
        return self._mean(self._calibrated(self.member_answers(dataset)))

    def answer(self, dataset: GraphDataset, confidence: float | None = None) -> Answers:
        """What the model says of graphs that went through ``encode``, and how sure it is.

        Args:
            dataset: the graphs.
            confidence: such as 0.9, for sets or intervals.

        Raises:
            DataError: if the model promises no confidence.
            SettingError: if there were too few graphs for this one.
        """
        record = None if confidence is None else check_confidence(self.card.conformal, confidence)
        raw, embeddings = self._run(dataset, with_embeddings=self.card.reference is not None)
        calibrated = self._calibrated(raw)
        values = self._mean(calibrated)
        found: dict[str, Any] = {"std": calibrated.std(dim=0, correction=0) if len(raw) > 1 else None}
        if record is not None and confidence is not None and self.task == "regression":
            found["low"], found["high"] = prediction_intervals(record, raw.numpy(), confidence)
        elif record is not None and confidence is not None:
            sets = prediction_sets(record, self.task, raw.numpy(), confidence)
            best = values.argmax(dim=1) if self.task == "classification" else (values >= 0.5).long()
            np.put_along_axis(sets, best.unsqueeze(-1).numpy(), True, axis=-1)  # as calibration may have turned it
            found["sets"] = sets
        if embeddings is not None:
            found["distance"], found["unlike_training"] = self._unlike_training(dataset, embeddings.numpy())
        return Answers(values, **found)

    def member_answers(self, dataset: GraphDataset) -> Tensor:
        """[M, G, C]: what each network says of graphs that went through ``encode``, before calibration."""
        return self._run(dataset)[0]

    @torch.inference_mode()
    def _run(self, dataset: GraphDataset, with_embeddings: bool = False) -> tuple[Tensor, Tensor | None]:
        """[M, G, C] what each network says, and [G, width] the embeddings by the first one."""
        first, *others = networks_of(self.network)
        embeddings = None
        if with_embeddings:
            logits, embeddings = predict_and_embed(first, dataset, self.card.shape.num_classes)
        else:
            logits = predict_logits(first, dataset)
        rest = [answers(one, predict_logits(one, dataset)) for one in others]
        return torch.stack([answers(first, logits), *rest]), embeddings

    def _calibrated(self, members: Tensor) -> Tensor:
        """Each network's probabilities calibrated, as the networks of the folds were that this was fitted to."""
        if self.calibration == "none":
            return members
        rows = calibrate(self.task, self.card.calibration, members.flatten(0, 1).numpy())
        return torch.from_numpy(rows).to(members.dtype).view_as(members)

    def _mean(self, members: Tensor) -> Tensor:
        return members.mean(dim=0) if len(members) > 1 else members[0]

    def _unlike_training(
        self, dataset: GraphDataset, embeddings: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """[G] the share of held-out graphs that are nearer to the training graphs, and what is unlike these."""
        assert self.card.reference is not None
        if embeddings.shape[1] != len(self.card.reference.mean):
            raise DataError("what the model file says of the training graphs does not fit its network")
        distance = shares_nearer(self.card.reference, embeddings)
        smallest, largest = self.card.shape.node_deciles[0], self.card.shape.node_deciles[-1]
        sizes = dataset.nodes_per_graph.numpy()
        marks = {
            "distance": distance > UNLIKE,
            "categories": unknown_graphs(dataset).numpy(),
            "size": (sizes < smallest) | (sizes > largest),
        }
        rows = zip(*marks.values(), strict=True)
        words = ["; ".join(word for word, marked in zip(marks, row, strict=True) if marked) for row in rows]
        return distance, np.array(words, dtype=object)

    # ---- explanation ----

    def explain(
        self,
        graph: int | str | Path | Graph,
        method: Method = DEFAULT_METHOD,
        target: object = None,
        *,
        dataset: str | Path | None = None,
        data_dir: str | Path | None = None,
    ) -> GraphExplanation:
        """Explains the prediction of one graph: what each node and edge does for it, and how far that is true.

        Args:
            graph: a NetworkX graph or PyG ``Data``; a file with one graph; a SMILES, where the model reads molecules;
                or a graph of the data set, by its number or by the name of its file.
            method: ``"surrogate"``, ``"occlusion"``, ``"masking"``, ``"shapley"`` or ``"gradients"``,
                as :func:`tapnet.inference.attribution.attribute_graphs` has them.
            target: the class, label or number to speak of; None: the predicted class, the most probable label, or the
                first number.
            dataset: the data set that a number belongs to; None for the one that the model was trained on.
            data_dir: the folder with data sets by name.

        Returns:
            The attribution of every node and edge by the names that they have, its fidelity, the prediction, and what
            pooling kept; printed as a table, ``plot()`` draws it.

        Raises:
            SettingError: if there is no such method or target, if no gradient reaches the input of the network, or if a
                file has several graphs.
            DataError: if there is no such graph, or it does not fit the model.
            DatasetNotFoundError: if the data set is not here.

        Warns:
            UserWarning: for node categories that no training graph had, and for a data set that has changed.

        Example:
            >>> import tapnet
            >>> explanation = tapnet.load_model("runs/MUTAG").explain(0)  # doctest: +SKIP
            >>> max(explanation.nodes, key=lambda node: node.attribution).node  # doctest: +SKIP
        """
        from tapnet.inference.explain_graph import attribute_graph, find_graph

        return attribute_graph(self, find_graph(self, graph, dataset, data_dir), method, target)

    # ---- how graphs of other sources are read ----

    def to_dataset(self, graphs: Any) -> GraphDataset:
        """Graphs that went through ``check_graphs``, with the features that the model reads and no classes."""
        kind, nothing = kind_of(graphs), np.zeros(len(graphs), np.int64)
        fitted = self.card.estimator
        if kind == "NetworkX" and fitted is not None:
            names = (fitted.node_label, fitted.node_attributes, fitted.edge_label, fitted.edge_weight)
            return from_networkx(graphs, nothing, self.features, *names, directed=self.card.directed)
        if kind == "NetworkX":
            return self.join_files([FileGraph.of(g, f"graph {i}") for i, g in enumerate(graphs)], "graphs")
        if kind == "PyG":  # those cut out of a data set such as the model was trained on have its numbers for labels
            cut = fitted is None or fitted.input == "GraphDataset"
            own = (self.categories, self.card.category_names) if cut else (None, None)
            return from_pyg(graphs, nothing, self.features, *own, directed=self.card.directed)
        return self._with_own_features(graphs)

    def _with_own_features(self, dataset: GraphDataset) -> GraphDataset:
        if dataset.features == self.features:
            return dataset
        what = "categories and numbers" if self.features == "all" else self.features
        try:
            found = dataset.with_features(self.features)
        except SettingError:  # which the user has no choice of
            raise DataError(f"the model reads node {what}; {dataset.name} has none") from None
        if found.features == "degrees" != self.features:  # in the place of all that is not there
            raise DataError(f"the model reads node {what}; {dataset.name} has none")
        return found

    def join_files(self, files: Sequence[FileGraph], name: str) -> GraphDataset:
        """Graphs of files, each read by the names that its nodes' and edges' attributes had in the training data."""
        edges = EdgeSchema(weight=self.card.edge_weighted)
        if self.network.reads_edges:
            numbers = tuple(self.card.edge_attribute_names or ())
            edges = edges._replace(categories=self.card.edge_category_names, numbers=numbers)
            files = [file.with_edges_as(edges) for file in files]
        names = self.card.node_categories, self.card.attribute_names
        schemas = [NodeSchema.named(file, *names) for file in files]
        options: dict[str, Any] = {"features": self.features, "directed": self.card.directed}
        dataset = join(files, schemas, name=name, edges=edges, **options)
        one_way = 0 if self.card.directed else sum(file.is_one_way for file in files)
        of = name if len(files) > 1 else files[0].file
        notes = (directions_note(of, one_way, len(files)),) if one_way else ()
        return replace(dataset, notes=(*notes, *dataset.notes))

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
        dataset = self._with_own_features(dataset)
        self._check_names(dataset)
        if dataset.directed != self.card.directed:
            ours, theirs = ("directed", "undirected") if self.card.directed else ("undirected", "directed")
            raise DataError(f"the model reads {ours} graphs; those of {dataset.name} are read as {theirs} ones")
        if not self.card.edge_weighted:
            dataset = replace(dataset, edge_weight=None)
        if self.network.reads_edges:
            dataset = self._with_edges(dataset)
        wanted, has = self.card.shape.in_channels, dataset.num_features
        if self.categories is None:
            if dataset.categories is not None or has != wanted:
                raise DataError(f"the model reads {wanted} numbers a node; {dataset.name} has {has}")
            return dataset
        if dataset.categories is None:
            raise DataError(f"the model reads node categories; {dataset.name} has numbers")
        number = torch.tensor(self._category_numbers(dataset), dtype=torch.int64)
        x = dataset.x
        if isinstance(x, MixedFeatures):
            numbers, given = wanted - len(self.categories), has - len(dataset.categories)
            if not numbers:  # such as a model of molecules from before their atoms had numbers
                x, given = replace(x, numbers=None), 0
            if numbers != given:
                raise DataError(f"the model reads {numbers} numbers a node; {dataset.name} has {given}")
            table = torch.where(x.table < 0, x.table, number[x.table.clamp(min=0)])
            self._note_unseen(dataset, (table >= 0)[x.combination], number, names, unseen)
            return replace(dataset, x=replace(x, table=table), categories=self.categories, prepared={})
        if wanted > len(self.categories):
            raise DataError(f"the model reads {wanted - len(self.categories)} numbers a node; {dataset.name} has none")
        known = number[x] >= 0 if len(number) else x >= 0
        found = number[x] if len(number) else x
        if not bool(known.all()):
            self._note_unseen(dataset, known.unsqueeze(1), number, names, unseen)
            found = torch.nn.functional.one_hot(found.clamp(min=0), len(self.categories)).float() * known.unsqueeze(1)
        # what a model computes once per data set is left to the network, batch by batch
        return replace(dataset, x=found, categories=self.categories, label_names=None, prepared={})

    def _note_unseen(
        self,
        dataset: GraphDataset,
        known: Tensor,
        number: Tensor,
        names: Sequence[str] | None,
        unseen: UnseenCategories | None,
    ) -> None:
        """Counts graphs with categories that no training graph had; ``known`` [N, K] says which."""
        if bool(known.all()):
            return
        found = UnseenCategories(self.features) if unseen is None else unseen
        one = [dataset.name] if len(dataset) == 1 else None
        own = self._named_categories
        found.add(dataset, known, number, names or one or [f"graph {i}" for i in range(len(dataset))], tuple(own or ()))
        for note in found.notes if unseen is None else ():
            warnings.warn(note, stacklevel=3)

    def _with_edges(self, dataset: GraphDataset) -> GraphDataset:
        """With what edges carry, in the model's numbers; a kind of edge that no training graph had counts as none."""
        ours = {_plain(value): i for i, value in enumerate(self.card.edge_categories or ())}
        numbers = self.card.shape.edge_channels - len(ours)
        theirs = 0 if dataset.edge_attributes is None else dataset.edge_attributes.size(1)
        if not dataset.num_edges:  # edges that are not there carry nothing
            nothing = torch.zeros(0, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)
            return replace(dataset, edge_attr=MixedFeatures(*nothing, torch.zeros(0, numbers) if numbers else None))
        if theirs != numbers or (ours and dataset.edge_labels is None):
            raise DataError(f"the model reads what edges carry, and those of {dataset.name} do not carry it")
        edges = dataset.with_edge_features().edge_attr
        assert edges is not None
        number = torch.tensor([ours.get(_plain(value), -1) for value in dataset.edge_categories], dtype=torch.int64)
        table = number[edges.table] if len(number) else edges.table
        return replace(dataset, edge_attr=replace(edges, table=table))

    def _check_names(self, dataset: GraphDataset) -> None:
        """Other attributes than those of the training data are no input, even if they are as many."""
        ours, theirs = (tuple(names or ()) for names in (self.card.attribute_names, dataset.attribute_names))
        unnamed = {(), (ATTRIBUTES,)}
        if self.features in ("attributes", "all") and ours != theirs and not unnamed & {ours, theirs}:
            wanted, has = (printable(", ".join(names))[:200] for names in (ours, theirs))
            raise DataError(f"the model reads the numbers {wanted}; {dataset.name} has {has}")

    @property
    def _named_categories(self) -> dict[str, int] | None:
        """The model's number for each name of a category; None where they have no names but their values."""
        names, values = self.card.category_names or (), self.categories or ()
        if len(set(names)) < len(values) or all(map(str.__eq__, names, map(str, values))):
            return None
        return {name: i for i, name in enumerate(names)}

    def _category_numbers(self, dataset: GraphDataset) -> list[int]:
        """The model's number for each category of a data set, or -1: by its name where the model knows names, or value.

        Copies of a set number their labels differently: carbon is MUTAG's 0 in one, and 2 in another. So a number is no
        name, and means nothing to a model that knows names.
        """
        values, exact = dataset.categories or (), {value: i for i, value in enumerate(self.categories or ())}
        if values is self.categories:
            return list(range(len(values)))
        named, names = self._named_categories, dataset.category_names
        if named is not None and names is dataset.label_names and len(set(names)) == len(names):
            return [named.get(name, -1) for name in names]
        if named is not None:
            known = {value: i for value, i in exact.items() if not is_code(value)}
            known |= {_plain(name): i for name, i in named.items()}
            return [known.get(_plain(value), -1) for value in values]
        plain = {_plain(value): i for value, i in exact.items()}
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
            shapes = weight_shapes(spec.network, card.shape, settings)
            if len(weights) == card.members * len(shapes) and card.members > 1:
                shapes = {f"members.{i}.{k}": shape for i in range(card.members) for k, shape in shapes.items()}
            if {k: tuple(v.shape) for k, v in weights.items()} != shapes:
                raise ValueError("its weights are not of the shapes that its settings ask for")
            network = build_network(card, settings)
            for name, tensor in network.state_dict().items():
                if weights[name].dtype != tensor.dtype:
                    raise ValueError(f"its weight {name} is {weights[name].dtype}, which has to be {tensor.dtype}")
            network.load_state_dict(weights)
        except Exception as error:  # whatever a stranger's description makes of it
            raise unusable(file, error) from None
        return cls(network.eval(), card, _data_places(Path(file)))


def build_network(card: ModelCard, settings: Any) -> GraphClassifier:
    """The network that a card describes with new weights, or an ensemble of them.

    Args:
        card: Of the model.
        settings: Of the network: the card's, or others.
    """
    spec = find_model(card.trial.model)
    members = [spec.network(card.shape, settings) for _ in range(card.members)]
    return Ensemble(members) if card.ensemble is not None else members[0]


def _chosen(mask: NDArray[np.bool_], names: Sequence[Hashable]) -> tuple[Any, ...]:
    """[C] the names that are marked; of [T, 2] a tuple of them for each label."""
    if mask.ndim > 1:
        return tuple(_chosen(row, names) for row in mask)
    return tuple(name for name, marked in zip(names, mask, strict=True) if marked)


def _data_places(file: Path) -> tuple[Path, ...]:
    """Where the run whose folder a model file is in (or in ``models``) found its data: relative to it, and absolute."""
    for folder in file.resolve().parents[:2]:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if (folder / RUN).is_file():
                data = json.loads(read_regular(folder / RUN, MAX_RUN_BYTES))["data"]
                near = [os.path.normpath(folder / data["relative"])] if data.get("relative") else []
                return tuple(map(Path, [*near, *([data["source"]] if data["source"] else [])]))
    return ()


def _plain(value: Hashable) -> Hashable:
    """1, 1.0 and "1" are one category, whichever way a file wrote it; also one of several, with its column."""
    if isinstance(value, tuple) and len(value) == 2:
        return value[0], plain_text(value[1])
    return plain_text(value)


def is_code(value: Hashable) -> bool:
    """Whether a category is a bare number, also as text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and NUMBER.fullmatch(value.strip()) is not None)
