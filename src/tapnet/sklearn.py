"""TAPClassifier and TAPRegressor: TAPNet with scikit-learn's conventions, for graphs of any kind and SMILES."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tapnet.data.checks import check_classes, copies_note, features_note
from tapnet.data.convert import check_edge_attribute, check_graphs, kind_of, listed_names
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.splits import Split
from tapnet.data.targets import Targets, detect_task, target_columns
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.files import printable
from tapnet.inference.attribution import DEFAULT_METHOD, Method
from tapnet.inference.explain_graph import attribute_graph, find_graph
from tapnet.inference.explanation import GraphExplanation as GraphExplanation
from tapnet.inference.explanation import LayerExplanation as LayerExplanation
from tapnet.inference.explanation import NodeVotes as NodeVotes
from tapnet.inference.inputs import from_networkx, from_pyg
from tapnet.inference.model import SavedModel, load_model
from tapnet.inference.model_file import EstimatorRecord, ModelCard
from tapnet.io.graph_folder import require_targets
from tapnet.models.base import DataShape
from tapnet.models.predictor import embed_graphs, predict_logits
from tapnet.models.settings import Settings
from tapnet.models.tapnet import SPEC, Activation, Conv, Pool, Readout, TAPNet, TAPNetSettings
from tapnet.nn.conv.registry import find_conv
from tapnet.nn.link import LinkReading
from tapnet.nn.pool.registry import find_name
from tapnet.nn.similarity import Similarity
from tapnet.nn.tap import Gate, VoteScale
from tapnet.ops.csr import Norm
from tapnet.progress import counting
from tapnet.training.baseline import baseline_in_words, baseline_warning, trivial_scores
from tapnet.training.device import isolated
from tapnet.training.metrics import DEFAULT_METRIC, METRICS
from tapnet.training.settings import TrainingSettings
from tapnet.training.task import sum_of_losses
from tapnet.training.trainer import Trainer

if TYPE_CHECKING:
    from tapnet.inference.inputs import Graph, Graphs

E = TypeVar("E", bound="_TAPEstimator")

VALUES_PRINTED = 5  # classes in a message


class _EstimatorSettings(Settings):
    """Parameters of the estimator alone, to be checked like all settings."""

    node_label: str | tuple[str, ...]
    node_attributes: str
    edge_label: str | tuple[str, ...]
    edge_weight: str
    directed: bool
    validation_fraction: Annotated[float, Field(gt=0, lt=1)]
    n_iter_no_change: Annotated[int, Field(ge=1)]
    threads: Annotated[int, Field(ge=1)]


@dataclass(kw_only=True, eq=False, repr=False)  # scikit-learn reads the parameters off the signature
class _TAPEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the two estimators share: parameters, training, embeddings, files."""

    epochs: int = 100
    batch_size: int = 64
    lr: float = 0.001
    weight_decay: float = 0.0008
    hidden_channels: int = 48
    ratios: Sequence[float] = (0.8, 0.6, 0.4)
    pool: Pool | type = "tap"
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
    conv: Conv | type = "gcn"
    readout: Readout = "all"
    heads: int = 1
    vote_scale: VoteScale = "nodes"
    learn_connectivity: bool = False
    edge_votes: bool = False
    connectivity_end: float | None = None
    ensemble_size: int = 1
    classifier_heads: int = 1
    readout_norm: bool = False
    optimizer: str = "adam"
    schedule: str = "constant"
    ema_decay: float = 0.0
    average_power: float = 0.0
    select_from: float = 0.0
    features: Features | None = None
    node_label: str | Sequence[str] = "label"
    node_attributes: str = "attributes"
    edge_label: str | Sequence[str] = "label"
    edge_weight: str = "weight"
    directed: bool = False
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    random_state: int | np.random.RandomState | None = None
    threads: int = 1
    verbose: bool | int = False

    # ---- training ----

    def _fit(
        self,
        graphs: Any,
        dataset: GraphDataset,
        strata: Any,
        weight: NDArray[np.float64] | None,
        label_weight: str | None = None,
    ) -> SavedModel:
        """Trains on a data set with its targets; a part that is held out is stratified by ``strata``."""
        settings, training = self._settings()
        SPEC.check_directions(dataset, settings)
        has_nothing = dataset.node_labels is None and dataset.node_attributes is None
        if self.features is None and has_nothing:
            self._warn_of_unused_attributes(graphs)
        only_edges = self.features is not None or has_nothing
        unused = features_note(dataset, only_edges, SPEC.reads_edges(settings))
        read_here = () if isinstance(graphs, GraphDataset) else dataset.notes
        copies = copies_note(dataset, [np.arange(len(dataset))])  # only if all are copies of one
        for note in (unused, SPEC.weights_note(dataset, settings), copies, *read_here):
            if note:
                warnings.warn(note, DataNote, stacklevel=3)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        train, held_out = self._split(len(dataset), strata, rng)
        card = self._card(dataset, settings, training, seed, kind_of(graphs))
        with isolated(int(self.threads), seed):
            model = SavedModel(SPEC.network(DataShape.of(dataset), settings), card)
            chosen = None if weight is None else torch.from_numpy(weight)[train]
            weights: dict[str, Any] = {"sample_weight": chosen, "class_weight": label_weight}
            trainer = Trainer(model.network, model.encode(dataset), train, training, seed=seed, **weights)
            self._train(trainer, model, None if held_out is None else model.encode(dataset.subset(held_out)))
            if self.verbose:
                self._print_score(model, dataset, train, held_out)
        self.model_, self.n_features_in_ = model, dataset.num_features
        return model

    def _print_score(self, model: SavedModel, dataset: GraphDataset, train: Tensor, held_out: Tensor | None) -> None:
        """Prints the usual metric on both parts with that of the trivial predictor; warns where it is not better."""
        metric, warning = METRICS[DEFAULT_METRIC[dataset.task]], ""
        for part, words in ((train, "training graphs"), (held_out, "graphs held out")):
            if part is not None:
                said = model.probabilities(model.encode(dataset.subset(part)))
                score = metric(dataset.y[part].numpy(), said.double().numpy())
                trivial = trivial_scores(dataset, [Split(train, None, part)], [metric])
                shown = f"{metric.in_words(score)}; {baseline_in_words(trivial, metric.name)}"
                what = "accuracy on" if metric.name == "accuracy" else "on"
                print(f"{type(self).__name__}: {what} {len(part)} {words}: {shown}", file=sys.stderr)
                warning = baseline_warning(score, trivial, metric.name)
        if warning:
            warnings.warn(warning, stacklevel=4)

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
        with counting(epochs, type(self).__name__) if self.verbose else nullcontext(lambda _: None) as advance:
            for loss in trainer.fit():
                losses.append(loss)
                advance(1)
                if not math.isfinite(losses[-1]):
                    reason = f"the loss is {losses[-1]}; lr is {lr:g}, a smaller one may help"
                    raise SettingError(f"training diverged in epoch {trainer.epoch}: {reason}")
                if validation is None:
                    continue
                validation_losses.append(_validation_loss(model, validation))
                if trainer.epoch <= trainer.settings.first_choice:
                    continue
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
        params["pool"] = find_name(params["pool"], allow_import=True)  # what a user names may be imported
        params["conv"] = find_conv(params["conv"], allow_import=True)
        network, training, own = (
            {name: params[name] for name in kind.names() if name in params}
            for kind in (TAPNetSettings, TrainingSettings, _EstimatorSettings)
        )
        _EstimatorSettings(**own)
        return SPEC.make_settings("", network), TrainingSettings(**training)

    def _split(self, graphs: int, strata: Any, rng: np.random.RandomState) -> tuple[Tensor, Tensor | None]:
        """The numbers of the graphs to train on, and of those held out."""
        every, fraction = np.arange(graphs), float(self.validation_fraction)
        if not self.early_stopping:
            return torch.from_numpy(every), None
        try:
            parts = train_test_split(every, test_size=fraction, stratify=strata, random_state=rng)
        except ValueError as error:
            raise DataError(f"{fraction} of {graphs} graphs cannot be held out: {error}") from None
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

    def transform(self, X: Graphs) -> NDArray[np.float32]:
        """[G, width] graph embeddings: the readouts of all levels, which are what the classifier gets."""
        data = self._encoded(X)
        with isolated(int(self.threads)):
            return embed_graphs(self._network, data).numpy()

    def explain(
        self, graph: Graph | GraphDataset, method: Method = DEFAULT_METHOD, target: object = None
    ) -> GraphExplanation:
        """Explains the prediction of one graph: what each node and edge does for it, and how far that is true.

        Args:
            graph: A NetworkX graph, PyG ``Data``, or a data set or list of one graph or SMILES.
            method: ``"surrogate"``, ``"occlusion"``, ``"masking"``, ``"shapley"`` or ``"gradients"``, as
                `SavedModel.explain` has them.
            target: The class or number to speak of; None: the predicted class, or the first number.

        Returns:
            The attributions by the names of the nodes, their fidelity, and what pooling kept; printed as a table,
            ``plot()`` draws it.
        """
        check_is_fitted(self)
        found = find_graph(self.model_, graph)
        classes = self.classes_.tolist() if self.model_.task == "classification" else None
        with isolated(int(self.threads)):
            return attribute_graph(self.model_, found, method, target, classes)

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
    def load(cls: type[E], path: str | Path, pools: Iterable[type | str] = (), convs: Iterable[type | str] = ()) -> E:
        """Loads an estimator from a file that ``save`` or a run wrote; a stranger's file is safe to load.

        Args:
            path: a model file, or the folder of a run with a final model.
            pools: the user's own pooling layers that the model may use, as `load_model` takes them.
            convs: the convolutions of PyG, or of the user's own, likewise.

        Raises:
            DataError: if there is no model at the path, none that this version can use, or another one than TAPNet.
        """
        saved = load_model(path, pools, convs)
        record, estimator = saved.card.trial, saved.card.estimator
        if saved.task not in cls._TASKS:
            raise DataError(f"{path}: holds a model for {saved.task}, which {cls.__name__} is not")
        if saved.card.members > 1:
            raise DataError(
                f"{path}: holds {saved.card.members} networks, an estimator one; tapnet.load_model reads it"
            )
        if not isinstance(saved.network, TAPNet):
            raise DataError(f"{path}: holds the model {record.model}, which is not TAPNet")
        try:
            said = {**record.training, **(estimator.model_dump() if estimator else {})}
            said |= saved.network.settings.to_dict()
            found = cls(**{k: v for k, v in said.items() if k in cls().get_params()})
            found._after_load(saved)
            found._settings()
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"{path}: not a model that this version can use ({error})") from None
        found.model_, found.n_features_in_ = saved, saved.network.in_channels
        return found

    # ---- graphs ----

    _TASKS: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")

    def _after_load(self, saved: SavedModel) -> None:
        """What the attributes say that are not of the network."""

    def _dataset(self, graphs: Any) -> GraphDataset:
        """Graphs of any kind without their targets, to be fitted to."""
        kind, nothing = kind_of(graphs), np.zeros(len(graphs), np.int64)
        if kind == "NetworkX":
            names = (_native(self.node_label), self.node_attributes, _native(self.edge_label), self.edge_weight)
            for name in (*listed_names(names[2]), self.edge_weight):
                if name not in ("label", "weight"):  # which need not be there
                    check_edge_attribute(graphs, name)
            return from_networkx(graphs, nothing, self.features, *names, directed=self.directed)
        if kind == "PyG":
            return from_pyg(graphs, nothing, self.features, directed=self.directed)
        dataset: GraphDataset = graphs
        return dataset if self.features in (None, dataset.features) else dataset.with_features(self.features)


@dataclass(kw_only=True, eq=False, repr=False)
class TAPClassifier(ClassifierMixin, _TAPEstimator):  # type: ignore[misc]
    """TAPNet with scikit-learn's conventions: it fits into ``cross_val_score``, ``GridSearchCV`` and ``Pipeline``.

    Graphs come as a list (a tuple, an object array) of NetworkX graphs or of PyG ``Data``, or as a ``GraphDataset``.
    Of PyG's ``Data`` it reads ``x``. Molecules may come as SMILES: a list, an array, a Series or one column of a
    DataFrame; RDKit is needed, and one that is not valid is an error that names its position. In the middle of a
    pipeline it gives graph embeddings. Meta-estimators that make a table of their input, as ``BaggingClassifier`` does,
    take a ``GraphDataset`` or an object array of shape [G, 1].

    Several yes/no labels for each graph are a ``y`` of shape [G, L] with 0 and 1, and NaN where a label is not known.
    As in scikit-learn's multilabel classifiers, ``predict`` and ``predict_proba`` are then [G, L], and ``score`` is the
    share of graphs all of whose labels are right; labels that are not known do not count. scikit-learn's own metrics
    take no NaN, and ``cross_val_score`` takes it in ``y`` only with a splitter, such as ``cv=KFold(5)``.

    Args:
        epochs, batch_size, lr, weight_decay, optimizer, schedule, ema_decay, average_power: as ``TrainingSettings``
            says.
        hidden_channels … readout_norm: every field of ``TAPNetSettings``, by name; the defaults are the paper's.
            ``pool`` and ``conv`` are a name, ``"package.module:Class"``, which is imported, or a class.
        features: what a node is to the network: "labels", "degrees", "log-degrees", "attributes", "all", or None for
            what is there: labels where they tell nodes apart, else attributes, else degrees. A ``GraphDataset`` has
            chosen already.
        node_label: the name of the node attribute of NetworkX graphs with a category, of any hashable kind; or a list
            of several, each of which has an embedding of its own.
        node_attributes: the name of the one with a number, or as many numbers at each node.
        edge_label: the name of the edge attribute with a category, for a ``conv`` that reads it, or a list of several.
        edge_weight: the name of the edge attribute with the weight; ``weight`` counts where every edge has it, another
            name has to be there.
        directed: whether edges keep their directions; else an edge in one direction counts for both. A
            ``GraphDataset`` has chosen already.
        select_from: with ``early_stopping``, the share of the epochs that is over before the part that is held out may
            choose one, or end the training.
        early_stopping: hold out a stratified part, stop when its loss has not fallen for ``n_iter_no_change``
            epochs, and take the weights of the epoch where it was lowest.
        validation_fraction: of the graphs, held out for that.
        n_iter_no_change: epochs.
        class_weight: ``"balanced"``, or the weight of each class by its value; None the same for all. Of
            several labels ``"balanced"`` alone: yes and no of each label count the same.
        random_state: an int, a ``RandomState`` or None; the same int gives the same numbers.
        threads: of one fit or prediction; sums round differently with another number.
        verbose: show a bar while training, on a terminal or in a notebook, and then print the accuracy beside that of
            the majority class.

    Attributes:
        classes_: [C] as they are in y, sorted; of several labels their numbers 0 … L-1.
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

    class_weight: str | Mapping[Hashable, float] | None = None

    def fit(self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> TAPClassifier:
        """Trains on graphs and their classes.

        Args:
            X: the graphs.
            y: their classes, or [G, L] labels of 0 and 1, NaN where one is missing; None where the graphs carry their
                classes: NetworkX as ``graph.graph["y"]``, PyG as ``data.y``.
            sample_weight: [G] how much each graph counts; None the same.

        Returns:
            The estimator itself.

        Raises:
            SettingError: for a parameter that does not fit, or training that diverged.
            DataError: for graphs or classes that cannot be learned from.

        Warns:
            DataNote: for what is not used of the graphs, and for graphs that are all the same.
        """
        self._settings()
        graphs = check_graphs(X)
        labels = _labels(graphs, y)
        if labels is not None:
            return self._fit_labels(graphs, labels, sample_weight)
        given = _targets(graphs, y)
        classes, codes = _numbered(given)
        dataset = self._dataset(graphs)
        values = tuple(classes.tolist())
        names = dataset.class_names if values == dataset.classes else None
        targets: dict[str, Any] = {"y": torch.from_numpy(codes), "classes": values, "class_names": names}
        dataset = replace(dataset, **targets, task="classification", target_names=None)
        weight = _checked_weight(sample_weight, len(codes))
        if self.class_weight is not None:
            named = self.class_weight if isinstance(self.class_weight, Mapping) else {}
            if unknown := [key for key in named if key not in values]:
                listed = printable(", ".join(map(repr, values)))[:200]
                raise SettingError(f"class_weight: {printable(repr(unknown[0])):.60} is no class; they are {listed}")
            try:
                by_class = compute_sample_weight(self.class_weight, column_or_1d(given))
            except ValueError as error:
                raise SettingError(f"class_weight: {error}") from None
            weight = by_class if weight is None else weight * by_class
        self._fit(graphs, dataset, codes, weight)
        self.classes_ = classes
        return self

    def _fit_labels(self, graphs: Any, labels: Targets, sample_weight: ArrayLike | None) -> TAPClassifier:
        """``fit`` to several labels of each graph."""
        if self.class_weight not in (None, "balanced"):
            raise SettingError(f"class_weight of several labels is 'balanced' or None, not {self.class_weight!r:.100}")
        targets: dict[str, Any] = {"y": torch.from_numpy(labels.y), "target_names": labels.names}
        dataset = replace(self._dataset(graphs), **targets, classes=(), class_names=None, task="multilabel")
        require_targets(dataset)
        weight = _checked_weight(sample_weight, len(dataset))
        self._fit(graphs, dataset, None, weight, "balanced" if self.class_weight else None)
        self.classes_ = np.arange(len(labels.names))
        return self

    def _after_load(self, saved: SavedModel) -> None:
        if saved.task == "multilabel":
            self.classes_ = np.arange(saved.card.shape.num_classes)
        else:
            self.classes_ = column_or_1d(saved.classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # ---- prediction ----

    def predict(self, X: Graphs) -> NDArray[Any]:
        """[G] the most probable class of each graph, or [G, L] 0 and 1 for several labels.

        A warning names graphs with node categories that no training graph had, and those that have no others.
        """
        check_is_fitted(self)
        said = self.predict_proba(X)
        if self.model_.task == "multilabel":
            return (said > 0.5).astype(np.int64)
        best: NDArray[Any] = self.classes_[said.argmax(axis=1)]
        return best

    def predict_proba(self, X: Graphs) -> NDArray[np.float64]:
        """[G, C] in the order of ``classes_``; of several labels [G, L], the probability that each is 1."""
        data = self._encoded(X)
        with isolated(int(self.threads)):
            return self.model_.probabilities(data).double().numpy()

    def score(self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy; without ``y`` by the classes that the graphs carry.

        Of several labels it is the share of graphs all of whose known labels are right.

        Raises:
            DataError: if ``classes_`` are text and ``y`` has numbers, or the other way round, or labels are others.
        """
        check_is_fitted(self)
        if self.model_.task == "multilabel":
            labels = _labels(check_graphs(X), y)
            if labels is None or len(labels.names) != len(self.classes_):
                raise DataError(f"the model has {len(self.classes_)} labels; y has other ones")
            right = (self.predict(X) == labels.y) | np.isnan(labels.y)
            return float(np.average(right.all(axis=1), weights=sample_weight))
        given = _checked_classes(column_or_1d(_targets(check_graphs(X), y)))
        for words, numbers in ((self.classes_, given), (given, self.classes_)):
            if all(isinstance(v, str) for v in words.tolist()) and not any(
                isinstance(v, str) for v in numbers.tolist()
            ):
                of = "y has numbers" if numbers is given else "y has text"
                raise DataError(f"the model's classes are {_listed(self.classes_)}; {of}: {_listed(np.unique(given))}")
        return float(super().score(X, given, sample_weight))


@dataclass(kw_only=True, eq=False, repr=False)
class TAPRegressor(RegressorMixin, _TAPEstimator):  # type: ignore[misc]
    """TAPNet for numbers, with scikit-learn's conventions: one target of a graph, or several, some of them missing.

    Graphs come as for ``TAPClassifier``. Targets are scaled inside and predicted in their own units.

    Args:
        **parameters: those of ``TAPClassifier`` but for ``class_weight``.

    Attributes:
        n_features_in_: the number of node categories, or of node attributes.
        n_outputs_: the number of targets.
        n_iter_, loss_curve_, validation_loss_curve_, best_epoch_: as ``TAPClassifier`` has them.
        model_: a ``SavedModel``; ``model_.network`` is the ``TAPNet``.

    Example:
        >>> import networkx as nx
        >>> graphs = [nx.path_graph(n) for n in range(5, 25)]
        >>> model = TAPRegressor(epochs=30, lr=0.01, random_state=0).fit(graphs, [float(n) for n in range(5, 25)])
        >>> model.predict([nx.path_graph(10)]).shape
        (1,)
    """

    _TASKS: ClassVar[tuple[Task, ...]] = ("regression",)

    def fit(self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> TAPRegressor:
        """Trains on graphs and their numbers.

        Args:
            X: the graphs.
            y: [G] or [G, T] numbers, NaN where one is missing; None where the graphs carry them.
            sample_weight: [G] how much each graph counts; None the same.

        Returns:
            The estimator itself.

        Raises:
            SettingError: for a parameter that does not fit, or training that diverged.
            DataError: for graphs or numbers that cannot be learned from.

        Warns:
            DataNote: for what is not used of the graphs, and for graphs that are all the same.
            UserWarning: if every graph has the same targets.
        """
        self._settings()
        graphs = check_graphs(X)
        targets = _numbers(graphs, y)
        rows = torch.from_numpy(targets.reshape(len(targets), -1).astype(np.float32))
        dataset = replace(self._dataset(graphs), y=rows, classes=(), class_names=None, task="regression")
        if dataset.target_names is None or len(dataset.target_names) != rows.size(1):
            names = ("target",) if rows.size(1) == 1 else tuple(f"target {i}" for i in range(rows.size(1)))
            dataset = replace(dataset, target_names=names)
        self._one_column = targets.ndim == 1
        try:
            require_targets(dataset)
        except DataError as constant:  # which scikit-learn's regressors fit, too
            warnings.warn(str(constant), stacklevel=2)
        self._fit(graphs, dataset, None, _checked_weight(sample_weight, len(targets)))
        self.n_outputs_ = rows.size(1)
        return self

    def _after_load(self, saved: SavedModel) -> None:
        self.n_outputs_ = saved.card.shape.num_classes
        self._one_column = self.n_outputs_ == 1

    def predict(self, X: Graphs) -> NDArray[np.float64]:
        """[G] the number of each graph, or [G, T] where there are several."""
        data = self._encoded(X)
        with isolated(int(self.threads)):
            found: NDArray[np.float64] = self.model_.probabilities(data).double().numpy()
        return found[:, 0] if self._one_column else found

    def score(self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R²; without ``y`` by the numbers that the graphs carry."""
        check_is_fitted(self)
        return float(super().score(X, _numbers(check_graphs(X), y), sample_weight))


def _checked_weight(weight: ArrayLike | None, graphs: int) -> NDArray[np.float64] | None:
    if weight is None:
        return None
    found = np.asarray(weight, dtype=np.float64)
    if found.shape != (graphs,) or not np.isfinite(found).all() or found.min() < 0 or not found.any():
        came = "" if found.shape == (graphs,) else f", not {' × '.join(map(str, found.shape)) or 'one number'}"
        raise DataError(f"sample_weight is {graphs} finite numbers, none below 0 and not all 0{came}")
    return found


def _numbers(graphs: Any, y: ArrayLike | None) -> NDArray[np.float64]:
    """[G] or [G, T] the numbers as they were given, or as the graphs carry them."""
    if y is None and kind_of(graphs) == "GraphDataset":
        if graphs.task == "classification":
            raise DataError(f"the targets of {graphs.name} are classes: give y, or take TAPClassifier")
        own: NDArray[np.float64] = graphs.y.double().numpy()
        return own[:, 0] if own.shape[1] == 1 else own
    try:
        found: NDArray[np.float64] = check_array(
            _targets(graphs, y), dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
    except ValueError as error:
        raise DataError(f"targets are numbers: {error}") from None
    if not np.isfinite(found).reshape(len(found), -1).any(axis=0).all():
        raise DataError("a target has no number at all")
    return found


def _labels(graphs: Any, y: Any) -> Targets | None:
    """Several yes/no labels of each graph, as given or as a data set carries them; None where y is no such thing."""
    if y is None:
        if not isinstance(graphs, GraphDataset) or graphs.task != "multilabel":
            return None
        return detect_task(dict(zip(graphs.target_names or (), graphs.y.numpy().T, strict=True)), "multilabel")
    y = y.toarray() if hasattr(y, "toarray") else y  # one of SciPy's sparse matrices
    if getattr(y, "ndim", None) != 2:
        y = np.asarray(y)
    if y.ndim != 2 or y.shape[1] < 2:
        return None
    if len(y) != len(graphs):
        raise DataError(f"{len(y)} rows of labels for {len(graphs)} graphs")
    return detect_task(target_columns(y), "multilabel", [f"graph {i}" for i in range(len(y))])


def _validation_loss(model: SavedModel, dataset: GraphDataset) -> float:
    """The mean loss of a graph; infinite where the network's answer is not a number."""
    model.network.eval()
    if dataset.task != "classification":
        losses = sum_of_losses(model.network, predict_logits(model.network, dataset), dataset.y) / len(dataset)
        return float(losses.nan_to_num(nan=math.inf))
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
        if graphs.task == "regression":
            raise DataError(f"the targets of {graphs.name} are numbers: give y, or take TAPRegressor")
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
    y = _checked_classes(column_or_1d(y, warn=True))
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    check_classes("y", classes.tolist(), len(y), "use TAPRegressor")
    return classes, codes.astype(np.int64)


def _checked_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Classes of any kind; a DataError names the first that is None or NaN."""
    for i, value in enumerate(y.tolist() if y.dtype == object else ()):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise DataError(f"y[{i}] is {value}, where a class belongs")
    return y


def _listed(values: NDArray[Any]) -> str:
    """The first few, as Python writes them."""
    return ", ".join(map(repr, values[:VALUES_PRINTED].tolist())) + (", …" if len(values) > VALUES_PRINTED else "")


def _native(value: Any) -> Any:
    """A value of NumPy's as Python's own: a grid of settings is often an array."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(map(_native, value)) if isinstance(value, list | tuple) else value


def _in_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
