"""TAPClassifier: TAPNet as a scikit-learn estimator, for graphs as NetworkX, PyG or GraphDataset hold them."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Hashable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tapnet.data.checks import check_classes, copies_note, features_note
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.inference.explain import Layer
from tapnet.inference.explain_graph import ExplainedGraph, explain_member
from tapnet.inference.inputs import check_graphs, from_networkx, from_pyg, kind_of
from tapnet.inference.model import SavedModel, load_model
from tapnet.inference.model_file import EstimatorRecord, ModelCard
from tapnet.io.graph_folder import require_targets
from tapnet.models.base import DataShape
from tapnet.models.predictor import embed_graphs
from tapnet.models.settings import Settings
from tapnet.models.tapnet import SPEC, Activation, Pool, TAPNet, TAPNetSettings
from tapnet.nn.link import LinkReading
from tapnet.nn.similarity import Similarity
from tapnet.nn.tap import Gate
from tapnet.ops.csr import Norm
from tapnet.progress import counting
from tapnet.training.baseline import baseline_warning, majority_accuracy
from tapnet.training.device import isolated
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import Trainer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tapnet.inference.inputs import Graph, Graphs

ROWS_PRINTED = 10  # nodes of a pooling layer
VALUES_PRINTED = 5  # classes in a message


@dataclass(frozen=True)
class NodeVotes:
    """A node that came into a pooling layer: whether it was kept, its score and the parts of it."""

    node: Hashable  # its name in the graph
    kept: bool
    score: float
    local: float | None = None  # the parts of the score, where TAP gave it
    global_: float | None = None
    connectivity: float | None = None


@dataclass(frozen=True)
class LayerExplanation:
    """What one pooling layer kept of the nodes that came in, highest score first."""

    nodes: tuple[NodeVotes, ...]

    @property
    def kept(self) -> tuple[NodeVotes, ...]:
        """The nodes that went on."""
        return tuple(n for n in self.nodes if n.kept)


@dataclass(frozen=True, repr=False)
class GraphExplanation:
    """A prediction, and what pooling kept. Printed as a table; ``pandas.DataFrame(layer.nodes)`` has it all.

    A score says which nodes a layer kept. It does not measure a node's effect on the prediction.
    """

    prediction: Any
    probabilities: dict[Any, float]
    layers: tuple[LayerExplanation, ...]
    graph: ExplainedGraph | None = field(default=None, compare=False)  # what ``plot`` draws

    def plot(self) -> Figure:
        """Draws the graph and what each pooling layer kept of it; a notebook displays the figure."""
        if self.graph is None:
            raise ValueError("there is no graph to plot: take the explanation from TAPClassifier.explain")
        return self.graph.plot()

    def __repr__(self) -> str:
        chances = ", ".join(f"{name} {p:.3f}" for name, p in self.probabilities.items())
        lines = [f"prediction: {self.prediction} ({chances})"]
        for number, layer in enumerate(self.layers, 1):
            lines.append(f"pooling layer {number}: {len(layer.kept)} of {len(layer.nodes)} nodes kept")
            lines += _table(layer.kept[:ROWS_PRINTED], 3 + len(str(len(layer.nodes))))  # votes are about 1/n
            if len(layer.kept) > ROWS_PRINTED:
                lines.append(f"  … and {len(layer.kept) - ROWS_PRINTED} more")
        return "\n".join(lines)


class _EstimatorSettings(Settings):
    """Parameters of the estimator alone, to be checked like all settings."""

    node_label: str
    node_attributes: str
    validation_fraction: Annotated[float, Field(gt=0, lt=1)]
    n_iter_no_change: Annotated[int, Field(ge=1)]
    threads: Annotated[int, Field(ge=1)]


@dataclass(kw_only=True, eq=False, repr=False)  # scikit-learn reads the parameters off the signature
class TAPClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """TAPNet with scikit-learn's conventions: it fits into ``cross_val_score``, ``GridSearchCV`` and ``Pipeline``.

    Graphs come as a list (a tuple, an object array) of NetworkX graphs or of PyG ``Data``, or as a ``GraphDataset``.
    Of PyG's ``Data`` it reads ``x``. In the middle of a pipeline it gives graph embeddings. Meta-estimators that make
    a table of their input, as ``BaggingClassifier`` does, take a ``GraphDataset`` or an object array of shape [G, 1].

    Args:
        epochs, batch_size, lr, weight_decay: as ``TrainingSettings`` says.
        hidden_channels … link_reading: every field of ``TAPNetSettings``, by name; the defaults are the paper's.
        features: what a node is to the network: "labels", "degrees", "attributes", or None for what is there: labels
            where they tell nodes apart, else attributes, else degrees. A ``GraphDataset`` has chosen already.
        node_label: the name of the node attribute of NetworkX graphs with a category, of any hashable kind.
        node_attributes: the name of the one with a number, or as many numbers at each node.
        early_stopping: hold out a stratified part, stop when its loss has not fallen for ``n_iter_no_change``
            epochs, and take the weights of the epoch where it was lowest.
        validation_fraction: of the graphs, held out for that.
        n_iter_no_change: epochs.
        random_state: an int, a ``RandomState`` or None; the same int gives the same numbers.
        threads: of one fit or prediction; sums round differently with another number.
        verbose: show a bar while training, on a terminal or in a notebook, and then print the accuracy beside that of
            the majority class.

    Attributes:
        classes_: [C] as they are in y, sorted.
        n_features_in_: the number of node categories, or of node attributes.
        n_iter_: epochs that were trained.
        loss_curve_: the mean training loss of a graph, an epoch each.
        validation_loss_curve_: with early stopping, the mean loss of a graph that was held out; else None.
        best_epoch_: the epoch, from 1, whose weights were taken.
        model_: a ``SavedModel``; ``model_.network`` is the ``TAPNet``.

    Example:
        >>> import networkx as nx
        >>> graphs = [nx.cycle_graph(n) for n in range(5, 15)] + [nx.star_graph(n) for n in range(5, 15)]
        >>> model = TAPClassifier(epochs=20, random_state=0).fit(graphs, ["ring"] * 10 + ["star"] * 10)
        >>> model.predict([nx.cycle_graph(30), nx.star_graph(20)]).tolist()
        ['ring', 'star']
    """

    epochs: int = 100
    batch_size: int = 64
    lr: float = 0.001
    weight_decay: float = 0.0008
    hidden_channels: int = 48
    ratios: Sequence[float] = (0.8, 0.6, 0.4)
    pool: Pool = "tap"
    connectivity: float = 0.1
    similarity: Similarity = "bilinear"
    local_voting: bool = True
    global_voting: bool = True
    gate: Gate = "straight-through"
    norm: Norm = "neighbour"
    activation: Activation = "relu"
    dropout: float = 0.3
    classifier_channels: int = 512
    classifier_dropout: float = 0.2
    aux: float = 0.0
    link_reading: LinkReading = "sigmoid"
    features: Features | None = None
    node_label: str = "label"
    node_attributes: str = "attributes"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    random_state: int | np.random.RandomState | None = None
    threads: int = 1
    verbose: bool | int = False

    # ---- training ----

    def fit(self, X: Graphs, y: ArrayLike | None = None) -> TAPClassifier:
        """Trains on graphs and their classes.

        Args:
            X: the graphs.
            y: their classes; None where the graphs carry them: NetworkX as ``graph.graph["y"]``, PyG as ``data.y``.

        Returns:
            The estimator itself.

        Raises:
            SettingError: for a parameter that does not fit, or training that diverged.
            DataError: for graphs or classes that cannot be learned from.

        Warns:
            DataNote: for what is not used of the graphs, and for graphs that are all the same.
        """
        settings, training = self._settings()
        graphs = check_graphs(X)
        classes, codes = _numbered(_targets(graphs, y))
        dataset = self._dataset(graphs, codes)
        has_nothing = dataset.node_labels is None and dataset.node_attributes is None
        if self.features is None and has_nothing:
            self._warn_of_unused_attributes(graphs)
        unused = features_note(dataset, only_edges=self.features is not None or has_nothing)
        for note in (unused, copies_note(dataset, [np.arange(len(codes))])):  # only if all are copies of one
            if note:
                warnings.warn(note, DataNote, stacklevel=2)
        values = tuple(classes.tolist())
        names = dataset.class_names if values == dataset.classes else None
        dataset = replace(dataset, y=torch.from_numpy(codes), classes=values, class_names=names)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        train, held_out = self._split(codes, rng)
        card = self._card(dataset, settings, training, seed, kind_of(graphs))
        with isolated(int(self.threads), seed):
            assert SPEC.build is not None
            model = SavedModel(SPEC.build(DataShape.of(dataset), settings), card)
            trainer = Trainer(model.network, model.encode(dataset), train, training, seed=seed)
            self._train(trainer, model, None if held_out is None else model.encode(dataset.subset(held_out)))
            if self.verbose:
                _print_accuracy(model, dataset, train, held_out)
        self.model_, self.classes_, self.n_features_in_ = model, classes, dataset.num_features
        return self

    def _warn_of_unused_attributes(self, graphs: Any) -> None:
        """Warns of node attributes under another name than the one that is read."""
        names = [set(v) for g in graphs for _, v in g.nodes(data=True)] if kind_of(graphs) == "NetworkX" else [set()]
        have = "nodes have" if (common := set.intersection(*names) - {"self_loop"}) else "some nodes have"
        if unused := sorted(common or set.union(*names) - {"self_loop"}, key=str):
            warnings.warn(
                f"no node has the attribute {self.node_label!r}, so a node is its degree; {have} "
                f"{', '.join(map(repr, unused))}: node_label={unused[0]!r} makes it their category, "
                'features="degrees" keeps the degree',
                stacklevel=3,
            )

    def _train(self, trainer: Trainer, model: SavedModel, validation: GraphDataset | None) -> None:
        epochs, lr = trainer.settings.epochs, trainer.settings.lr
        losses, validation_losses = list[float](), list[float]()
        best, best_weights = 0, model.network.state_dict()
        with counting(epochs, "TAPClassifier") if self.verbose else nullcontext(lambda _: None) as advance:
            for loss in trainer.fit():
                losses.append(loss)
                advance(1)
                if not math.isfinite(losses[-1]):
                    reason = f"the loss is {losses[-1]}; lr is {lr:g}, a smaller one may help"
                    raise SettingError(f"training diverged in epoch {trainer.epoch}: {reason}")
                if validation is None:
                    continue
                validation_losses.append(_validation_loss(model, validation))
                if best == 0 or validation_losses[-1] < validation_losses[best - 1]:
                    best, best_weights = trainer.epoch, {k: v.clone() for k, v in model.network.state_dict().items()}
                elif trainer.epoch - best >= self.n_iter_no_change:
                    break
        model.network.load_state_dict(best_weights)
        model.network.eval()
        self.n_iter_, self.loss_curve_ = len(losses), losses
        self.validation_loss_curve_ = validation_losses if best else None
        self.best_epoch_ = best or len(losses)

    def _settings(self) -> tuple[TAPNetSettings, TrainingSettings]:
        params = {name: _native(value) for name, value in self.get_params().items()}
        network, training, own = (
            {name: params[name] for name in kind.names() if name in params}
            for kind in (TAPNetSettings, TrainingSettings, _EstimatorSettings)
        )
        _EstimatorSettings(**own)
        return SPEC.make_settings("", network), TrainingSettings(**training)

    def _split(self, codes: NDArray[np.int64], rng: np.random.RandomState) -> tuple[Tensor, Tensor | None]:
        """The numbers of the graphs to train on, and of those held out."""
        every, fraction = np.arange(len(codes)), float(self.validation_fraction)
        if not self.early_stopping:
            return torch.from_numpy(every), None
        try:
            parts = train_test_split(every, test_size=fraction, stratify=codes, random_state=rng)
        except ValueError as error:
            raise DataError(f"{fraction} of {len(codes)} graphs cannot be held out: {error}") from None
        train, held_out = (torch.from_numpy(np.sort(part)) for part in parts)
        return train, held_out

    def _card(
        self, dataset: GraphDataset, settings: TAPNetSettings, training: TrainingSettings, seed: int, kind: str
    ) -> ModelCard:
        """What a model file says, and how this estimator was made."""
        record = {"dataset": dataset.name, "data": dataset.checksum, "model": SPEC.name, "device": "cpu", "seed": seed}
        record |= {"settings": settings.to_dict(), "training": training.to_dict(), "threads": _native(self.threads)}
        said = settings.to_dict() | training.to_dict()
        own = {name: _native(value) for name, value in self.get_params().items() if name not in said}
        estimator = EstimatorRecord(**{k: v for k, v in own.items() if _in_json(v)} | {"input": kind})
        return ModelCard.of(record, dataset, estimator=estimator)

    # ---- prediction ----

    def predict(self, X: Graphs) -> NDArray[Any]:
        """[G] the most probable class of each graph.

        A warning names graphs with node categories that no training graph had, and those that have no others.
        """
        check_is_fitted(self)
        best: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return best

    def predict_proba(self, X: Graphs) -> NDArray[np.float64]:
        """[G, C] in the order of ``classes_``."""
        data = self._encoded(X)
        with isolated(int(self.threads)):
            return self.model_.probabilities(data).double().numpy()

    def transform(self, X: Graphs) -> NDArray[np.float32]:
        """[G, width] graph embeddings: the readouts of all levels, which are what the classifier gets."""
        data = self._encoded(X)
        with isolated(int(self.threads)):
            return embed_graphs(self._network, data).numpy()

    def score(self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy; without ``y`` by the classes that the graphs carry.

        Raises:
            DataError: if ``classes_`` are text and ``y`` has numbers, or the other way round.
        """
        check_is_fitted(self)
        given = column_or_1d(_targets(check_graphs(X), y))
        for words, numbers in ((self.classes_, given), (given, self.classes_)):
            if all(isinstance(v, str) for v in words.tolist()) and not any(
                isinstance(v, str) for v in numbers.tolist()
            ):
                of = "y has numbers" if numbers is given else "y has text"
                raise DataError(f"the model's classes are {_listed(self.classes_)}; {of}: {_listed(np.unique(given))}")
        return float(super().score(X, given, sample_weight))

    def explain(self, graph: Graph | GraphDataset) -> GraphExplanation:
        """Which nodes each pooling layer kept of one graph, by their names, and their scores.

        Args:
            graph: A NetworkX graph, PyG ``Data``, or a data set or list of one graph.

        Returns:
            The prediction and the layers; printed as a table, ``plot()`` draws them.
        """
        check_is_fitted(self)
        graphs = check_graphs(graph if isinstance(graph, GraphDataset | list | tuple) else [graph])
        if len(graphs) != 1:
            raise DataError(f"one graph is explained at a time, not {len(graphs)}")
        data = self.model_.to_dataset(graphs)
        with isolated(int(self.threads)):
            drawn = explain_member(self.model_, data, 0, "the graph")
        found = drawn.explanation
        names = list(graphs[0]) if kind_of(graphs) == "NetworkX" else range(data.num_nodes)
        classes = self.classes_.tolist()
        return GraphExplanation(
            classes[int(found.probabilities.argmax())],
            dict(zip(classes, found.probabilities.tolist(), strict=True)),
            tuple(_explained(layer, names) for layer in found.layers),
            drawn,
        )

    def _encoded(self, X: Graphs) -> GraphDataset:
        """The graphs as the network reads them."""
        check_is_fitted(self)
        dataset = self.model_.to_dataset(check_graphs(X))
        return self.model_.encode(dataset, [f"graph {i}" for i in range(len(dataset))])

    @property
    def _network(self) -> TAPNet:
        assert isinstance(self.model_.network, TAPNet)
        return self.model_.network

    @property
    def _n_features_out(self) -> int:  # what get_feature_names_out counts
        return self._network.classifier.hidden.in_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags

    # ---- one file ----

    def save(self, path: str | Path) -> None:
        """Weights and settings in one file, for ``load`` and for the commands; reading it runs no code.

        It holds classes and node categories that are text, numbers, booleans, None or tuples of them. Pickling the
        estimator keeps any, and the loss curve too.
        """
        check_is_fitted(self)
        given = {what: _native(getattr(self.model_, what)) for what in ("classes", "categories")}
        for what, values in given.items():
            for value in values or ():
                if not all(map(_in_json, value if isinstance(value, tuple) else (value,))):
                    raise DataError(f"a model file cannot hold {value!r}, one of the {what}; pickle the estimator")
        replace(self.model_, card=self.model_.card.replace(**given)).save(Path(path))

    @classmethod
    def load(cls, path: str | Path, pools: Iterable[type | str] = ()) -> TAPClassifier:
        """Loads an estimator from a file that ``save`` or a run wrote; a stranger's file is safe to load.

        Args:
            path: a model file, or the folder of a run with a final model.
            pools: the user's own pooling layers that the model may use, as `load_model` takes them.

        Raises:
            DataError: if there is no model at the path, none that this version can use, or another one than TAPNet.
        """
        saved = load_model(path, pools)
        record, estimator = saved.card.trial, saved.card.estimator
        if not isinstance(saved.network, TAPNet):
            raise DataError(f"{path}: holds the model {record.model}, which is not TAPNet")
        try:
            said = {**record.training, **(estimator.model_dump() if estimator else {})}
            said |= saved.network.settings.to_dict()
            found = cls(**{k: v for k, v in said.items() if k in cls().get_params()})
            found.classes_ = column_or_1d(saved.classes)
            found._settings()
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"{path}: not a model that this version can use ({error})") from None
        found.model_, found.n_features_in_ = saved, saved.network.in_channels
        return found

    # ---- graphs ----

    def _dataset(self, graphs: Any, codes: NDArray[np.int64]) -> GraphDataset:
        """Graphs of any kind with these numbers for classes, to be fitted to."""
        kind = kind_of(graphs)
        if kind == "NetworkX":
            return from_networkx(graphs, codes, self.features, self.node_label, self.node_attributes)
        if kind == "PyG":
            return from_pyg(graphs, codes, self.features)
        dataset: GraphDataset = graphs
        return dataset if self.features in (None, dataset.features) else dataset.with_features(self.features)


def _print_accuracy(model: SavedModel, dataset: GraphDataset, train: Tensor, held_out: Tensor | None) -> None:
    """Prints the accuracy on both parts beside that of the majority class, and warns where it is not above it."""
    for part, words in ((train, "training graphs"), (held_out, "graphs held out")):
        if part is not None:
            predicted = model.probabilities(model.encode(dataset.subset(part))).argmax(dim=1)
            accuracy = 100 * float((predicted == dataset.y[part]).double().mean())
            majority = majority_accuracy(dataset.y, train, part)
            text = f"accuracy on {len(part)} {words}: {accuracy:.1f} %; majority class: {majority:.1f} %"
            print(f"TAPClassifier: {text}", file=sys.stderr)
            warning = baseline_warning(accuracy, {"accuracy": majority})
    if warning:
        warnings.warn(warning, stacklevel=3)


def _validation_loss(model: SavedModel, dataset: GraphDataset) -> float:
    """The mean cross-entropy of a graph; infinite where the network's answer is not a number."""
    model.network.eval()
    given = model.probabilities(dataset).gather(1, dataset.y.unsqueeze(1))
    return float(given.clamp(min=torch.finfo(given.dtype).tiny).log().neg().mean().nan_to_num(nan=math.inf))


def _targets(graphs: Any, y: ArrayLike | None) -> Any:
    """[G] the classes as they were given, or as the graphs carry them."""
    if y is not None:
        y = np.asarray(y)
        if y.ndim and len(y) != len(graphs):
            raise DataError(f"{len(y)} classes for {len(graphs)} graphs")
        return y
    kind = kind_of(graphs)
    if kind == "GraphDataset":
        require_targets(graphs)
        return np.asarray([graphs.classes[i] for i in graphs.y.tolist()])
    if kind == "NetworkX":
        own, where = [g.graph.get("y") for g in graphs], 'graph.graph["y"]'
    else:
        values = [torch.empty(0) if g.y is None else torch.as_tensor(g.y) for g in graphs]
        own, where = [v.item() if v.numel() == 1 else None for v in values], "data.y, one number"
    if lacking := [i for i, value in enumerate(own) if value is None]:
        raise DataError(f"graph {lacking[0]} has no class: give y, or set {where}")
    return np.asarray(own)


def _numbered(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes, sorted, and the number of each graph's."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    check_classes("y", classes.tolist(), len(y))
    return classes, codes.astype(np.int64)


def _listed(values: NDArray[Any]) -> str:
    """The first few, as Python writes them."""
    return ", ".join(map(repr, values[:VALUES_PRINTED].tolist())) + (", …" if len(values) > VALUES_PRINTED else "")


def _explained(layer: Layer, names: Sequence[Hashable]) -> LayerExplanation:
    parts = [layer.score, layer.local, layer.global_, layer.connectivity]
    columns = [part.tolist() if part is not None else [None] * len(layer.nodes) for part in parts]
    rows = zip(layer.nodes.tolist(), layer.kept.tolist(), *columns, strict=True)
    nodes = [NodeVotes(names[number], *values) for number, *values in rows]
    return LayerExplanation(tuple(sorted(nodes, key=lambda n: (not n.kept, -n.score))))


def _table(nodes: Sequence[NodeVotes], decimals: int) -> list[str]:
    """One line for each node under a line of headings; parts of the score that there are not have no column."""
    names = [name for name in ("score", "local", "global_", "connectivity") if getattr(nodes[0], name) is not None]
    rows = [["node", *(name.rstrip("_") for name in names)]]
    rows += [[str(n.node), *(f"{getattr(n, name):.{decimals}f}" for name in names)] for n in nodes]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [[first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])] for first, *rest in rows]
    return ["  " + "  ".join(cells) for cells in aligned]


def _native(value: Any) -> Any:
    """A value of NumPy's as Python's own: a grid of settings is often an array."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(map(_native, value)) if isinstance(value, list | tuple) else value


def _in_json(value: Any) -> bool:
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
