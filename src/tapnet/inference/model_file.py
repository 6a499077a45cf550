"""The file of a trained model: its weights, and a `ModelCard` that says what they are. Reading it runs no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, WrapValidator
from pydantic import model_validator as validator
from torch import Tensor

from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.files import check_name, is_special_file, path_exists, printable, write_atomically
from tapnet.models.base import DataShape
from tapnet.models.settings import AsTuple
from tapnet.training.metrics import METRICS

FINAL_MODEL = "final.safetensors"  # in the folder of a run
RUN, MAX_RUN_BYTES = "run.json", 1 << 28  # what that run was
PRETRAINED = Path(__file__).with_name("pretrained")  # models that come with tapnet
MODELS = "TAPNET_MODELS"  # the environment's name for a folder of more
M = TypeVar("M", bound="_Part")


# ---- what a file says of its model ----


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is not text")
    return value  # also what is no Unicode: a file's name may be anything


def _dataset_name(value: Any) -> str:
    name = _word(value)
    check_name(name)
    if name != Path(name).name or name == ".." or name.startswith("~"):
        raise ValueError(f"it names {name!r} where the name of a data set belongs")
    return name


def _shape(value: Any) -> Any:
    return DataShape(**value | {"node_deciles": tuple(value["node_deciles"])}) if isinstance(value, dict) else value


def _values(values: Any) -> Any:
    """JSON has lists where there were tuples."""
    return tuple(tuple(v) if isinstance(v, list) else v for v in values) if isinstance(values, list | tuple) else values


def _or_none(value: Any, validate: Any) -> Any:
    """What is only of interest, and not as it should be in a stranger's file, does not make the model useless."""
    try:
        return validate(value)
    except ValidationError:
        return None


Word = Annotated[str, PlainValidator(_word)]
Words = Annotated[tuple[Word, ...] | None, AsTuple]
Lenient = WrapValidator(_or_none)


class _Part(BaseModel):
    """Unknown keys, of a newer version or a stranger, are kept and do nothing."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False, protected_namespaces=())

    def replace(self: M, **changes: Any) -> M:
        """The same but for these values, validated again."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)


class TrainingRecord(_Part):
    """What was trained, with which settings, on which data; a fold's model also says which fold of which protocol."""

    dataset: Annotated[str, PlainValidator(_dataset_name)]
    data: str = ""  # the checksum of the data set
    model: str
    settings: dict[str, Any]  # of the model
    protocol: str | None = None
    fold: int | None = None  # None for a model of all graphs
    folds: int | None = None
    training: dict[str, Any] = {}
    seed: int | None = None
    threads: int | None = None
    device: str | None = None
    split: str = ""  # how the user's own splits were chosen; empty for stratified folds
    fold_seed: int = 0


class FinalRecord(_Part):
    """How a model of all graphs was trained after a cross-validation."""

    key: str  # of the trial that trained it, or a digest of those of an ensemble
    graphs: int
    epochs: int
    epochs_rule: str
    members: int = 1  # networks


def _metric(value: Any) -> str:
    if value not in METRICS:
        raise ValueError(f"{value!r:.40} is no metric")
    return str(value)


class CrossValidationRecord(_Part):
    """The accuracy (in percent) or other metric to expect of a model, and how it was measured."""

    mean: float
    std: float | None  # over the folds; None for one fold
    metric: Annotated[str, BeforeValidator(_metric)] = "accuracy"
    protocol: str | None = None
    reading: Word = ""  # which epoch counts, in words
    rules: Word = ""  # the protocol, folds and epochs in words
    num_folds: int | None = None
    epochs: int | None = None
    folds: list[dict[str, Any]] = []  # number, epoch and accuracy of each
    baseline: dict[str, float | None] | None = None  # by metric, what the trivial predictor gives; None: not defined


class EnsembleRecord(_Part):
    """The networks in a file whose answers are averaged: those of the folds of a cross-validation."""

    folds: Annotated[list[int], Field(min_length=2)]  # the number of each one's fold
    keys: list[str] = []  # of the trials that trained them

    @property
    def members(self) -> int:
        """How many there are."""
        return len(self.folds)


Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(ge=0)]


class CalibrationRecord(_Part):
    """What makes a network's probabilities as frequent as they say; see `tapnet.inference.calibration`."""

    method: Literal["none", "temperature", "isotonic"]
    temperature: list[Annotated[float, Field(ge=1e-4, le=1e4)]] = []  # one, or one for each label
    isotonic: list[dict[Literal["x", "y"], Annotated[list[Share], Field(min_length=1)]]] = []  # corners of a curve each
    graphs: int = 0  # held out, that it was fitted to
    before: dict[str, float] = {}  # log loss, Brier score, accuracy and expected calibration error on held-out graphs
    after: dict[str, float] = {}

    @validator(mode="after")
    def _check_curves(self) -> CalibrationRecord:
        for curve in self.isotonic:
            if curve.keys() != {"x", "y"} or len(curve["x"]) != len(curve["y"]):
                raise ValueError("a curve has as many x as y")
            if any(a > b for values in curve.values() for a, b in pairwise(values)) or curve["y"][0] <= 0:
                raise ValueError("a curve rises")
        return self

    def fits(self, shape: DataShape) -> bool:
        """Whether it has a temperature, or a curve, for each of the outputs."""
        labels = shape.num_classes if shape.task == "multilabel" else 0
        curves = labels or (1 if shape.num_classes == 2 else shape.num_classes)
        wanted = {"none": (0, 0), "temperature": (labels or 1, 0), "isotonic": (0, curves)}[self.method]
        return (len(self.temperature), len(self.isotonic)) == wanted


class ConformalRecord(_Part):
    """How far off networks were for graphs held out; see `tapnet.inference.uncertainty`."""

    scores: list[list[list[Score]]]  # by target column (one of classes), and by fold
    graphs: int  # held out
    coverage: dict[str, float] = {}  # by confidence, the share of held-out graphs whose set or interval is right

    def fits(self, shape: DataShape, members: int) -> bool:
        """Whether it has scores for each target, and of several networks by network."""
        columns = 1 if shape.task == "classification" else shape.num_classes
        right = members == 1 or all(len(folds) == members for folds in self.scores)
        return len(self.scores) == columns and right and all(folds for folds in self.scores)


class ReferenceRecord(_Part):
    """What the embeddings of the training graphs are like; see `tapnet.inference.uncertainty`."""

    mean: Annotated[list[float], Field(min_length=1)]  # [W]
    scale: list[Annotated[float, Field(gt=0)]]  # [W]
    directions: list[list[float]]  # [D, W] of the largest variance, divided by their deviations
    residual: Annotated[float, Field(gt=0)]  # the usual length of what is in none of these directions
    quantiles: Annotated[list[Score], Field(min_length=2)]  # of the distances of graphs held out, from 0 to 1

    @validator(mode="after")
    def _check_lengths(self) -> ReferenceRecord:
        if {len(self.mean)} != {len(self.scale), *map(len, self.directions)}:
            raise ValueError("its rows are not of one length")
        if any(a > b for a, b in pairwise(self.quantiles)):
            raise ValueError("quantiles rise")
        return self


class EstimatorRecord(_Part):
    """How the estimator that trained a model reads graphs."""

    input: str = "GraphDataset"  # or "NetworkX" or "PyG": the kind of graphs it was fitted to
    node_label: Annotated[str | tuple[str, ...], BeforeValidator(_values)] = "label"
    node_attributes: str = "attributes"
    edge_label: Annotated[str | tuple[str, ...], BeforeValidator(_values)] = "label"
    edge_weight: str = "weight"


class ModelCard(_Part):
    """What a model file says of its model: how to build it, what it reads, what its answers mean.

    Attributes:
        trial: what was trained, with which settings, on which data.
        shape: the sizes of the data that the network was built for.
        classes: the class values as they stood in the training data.
        features: what a node is to the network: its label, its degree or its attributes.
        class_names: the names of the classes.
        categories: the values that nodes had in the training data; None where they are floats.
        category_names: the names of these values.
        label_attribute: what the training data call the labels of nodes, where they have a name for them.
        node_columns: what they call each of several categories of nodes.
        attribute_names: what they call the attributes of nodes.
        target_names: what the numbers or labels are called that it predicts; of classes, the column of a table.
        edge_categories: what edges can be, for a network that reads them.
        edge_label_attribute: what the training data call the labels of edges, where that is not ``label``.
        edge_columns: what they call each of several categories of edges.
        edge_attribute_names: what the training data call the numbers of edges, where they have names for them.
        edge_weighted: whether the edges of the training data had weights.
        threshold: what entries of matrices had to exceed to be edges.
        directed: whether edges have directions.
        final: for a model of all graphs, how many they are and how long it was trained.
        cross_validation: the accuracy to expect, if it was measured.
        estimator: for a model of `TAPClassifier`, how that reads graphs.
        ensemble: for several networks whose answers are averaged, which they are.
        calibration: what makes the probabilities as frequent as they say.
        conformal: how far off the networks of the folds were for graphs held out.
        reference: what the embeddings of the training graphs are like.
    """

    trial: TrainingRecord
    shape: Annotated[DataShape, BeforeValidator(_shape)]
    classes: Annotated[tuple[Any, ...], AsTuple]
    features: Features
    class_names: Words = None
    categories: Annotated[tuple[Any, ...] | None, BeforeValidator(_values)]
    category_names: Words = None
    label_attribute: Word | None = None
    node_columns: Words = None
    attribute_names: Words = None
    target_names: Words = None
    edge_categories: Annotated[tuple[Any, ...] | None, BeforeValidator(_values)] = None
    edge_label_attribute: Word | None = None
    edge_columns: Words = None
    edge_attribute_names: Words = None
    edge_weighted: bool = False
    threshold: float | None = None
    directed: bool = False
    final: Annotated[FinalRecord | None, Lenient] = None
    cross_validation: Annotated[CrossValidationRecord | None, Lenient] = None
    estimator: EstimatorRecord | None = None
    ensemble: EnsembleRecord | None = None
    calibration: CalibrationRecord | None = None
    conformal: ConformalRecord | None = None
    reference: ReferenceRecord | None = None

    @property
    def node_categories(self) -> tuple[str, ...]:
        """The names of the attributes that are the categories of nodes; none where they are not known."""
        return tuple(self.node_columns or filter(None, [self.label_attribute]))

    @property
    def edge_category_names(self) -> tuple[str, ...]:
        """The names of the attributes that are the categories of edges; none where there are no such categories."""
        return tuple(self.edge_columns or [self.edge_label_attribute or "label"]) if self.edge_categories else ()

    @property
    def members(self) -> int:
        """The number of networks whose answers are averaged: 1 but for an ensemble."""
        return 1 if self.ensemble is None else self.ensemble.members

    @validator(mode="after")
    def _check_sizes(self) -> ModelCard:
        for names, values in ((self.class_names, self.classes), (self.category_names, self.categories)):
            if names and len(names) != len(values or ()):
                raise ValueError(f"{len(names)} names for {len(values or ())} classes or categories")
        inputs = self.shape.in_channels if self.categories is None else len(self.categories)
        numbers = self.shape.in_channels - max(inputs, 1)
        targets = self.classes if self.shape.task == "classification" else self.target_names
        if len(targets or ()) != self.shape.num_classes or numbers < 0 or (numbers and self.features != "all"):
            raise ValueError("its classes or categories do not fit its sizes")
        counts = (self.shape.node_numbers, self.shape.in_channels), (self.shape.edge_numbers, self.shape.edge_channels)
        if not all(0 <= numbers <= channels for numbers, channels in counts):
            raise ValueError("the numbers of its nodes or edges do not fit its sizes")
        if len(self.edge_categories or ()) > self.shape.edge_channels:
            raise ValueError("the categories of edges do not fit its sizes")
        if self.calibration is not None and not self.calibration.fits(self.shape):
            raise ValueError("its calibration does not fit its classes")
        if self.conformal is not None and not self.conformal.fits(self.shape, self.members):
            raise ValueError("the scores of held-out graphs do not fit its classes or networks")
        hash((self.classes, self.categories, self.edge_categories))  # a ``TypeError`` for what cannot be one
        return self

    @classmethod
    def of(cls, trial: Mapping[str, Any], dataset: GraphDataset, **more: Any) -> ModelCard:
        """The card of a model that is trained on a data set; ``trial`` has the values of a `TrainingRecord`."""
        if dataset.task != "classification":
            more["target_names"] = dataset.target_names or tuple(f"target {i}" for i in range(dataset.num_outputs))
        elif dataset.target_names is not None:
            more["target_names"] = dataset.target_names
        if dataset.num_edge_features:
            more["edge_categories"] = dataset.edge_categories
        if dataset.node_columns is not None and dataset.features in ("labels", "all"):
            more["node_columns"] = dataset.node_columns
        if dataset.edge_label_attribute not in (None, "label"):
            more["edge_label_attribute"] = dataset.edge_label_attribute
        if dataset.edge_columns is not None:
            more["edge_columns"] = dataset.edge_columns
        if dataset.edge_attribute_names is not None:
            more["edge_attribute_names"] = dataset.edge_attribute_names
        if dataset.edge_weight is not None:
            more["edge_weighted"] = True
        if dataset.threshold is not None:
            more["threshold"] = dataset.threshold
        if dataset.directed:
            more["directed"] = True
        return cls(
            trial=TrainingRecord(**trial),
            shape=DataShape.of(dataset),
            classes=dataset.classes,
            features=dataset.features,
            class_names=tuple(dataset.class_names or map(str, dataset.classes)),
            categories=dataset.categories,
            category_names=dataset.category_names,
            label_attribute=dataset.label_attribute if dataset.features in ("labels", "all") else None,
            attribute_names=(dataset.attribute_names or None) if dataset.features in ("attributes", "all") else None,
            **more,
        )

    def facts(self) -> dict[str, Any]:
        """What to know before its answers are used: data, what was measured and how, calibration."""
        measured, calibration, conformal = self.cross_validation, self.calibration, self.conformal
        predicts = self.class_names or self.classes if self.shape.task == "classification" else self.target_names
        return {
            "dataset": self.trial.dataset,
            "model": self.trial.model,
            "task": self.shape.task,
            "predicts": [printable(name) for name in predicts or ()],
            "features": self.features,
            "graphs": self.final.graphs if self.final else None,
            "networks": self.members,
            "metric": measured and measured.metric,
            "mean": measured and measured.mean,
            "std": measured and measured.std,
            "baseline": measured and measured.baseline and measured.baseline.get(measured.metric),
            "rules": measured.rules if measured else "not measured",
            "calibration": calibration.method if calibration else "none",
            "calibration_error": calibration.after.get("ece") if calibration else None,
            "coverage": dict(conformal.coverage) if conformal else {},
        }

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file, as JSON has it."""
        values: dict[str, Any] = json.loads(json.dumps(self.model_dump(exclude_unset=True)))
        return values

    @classmethod
    def from_dict(cls, values: Any) -> ModelCard:
        """From what stands in a file.

        Raises:
            ValueError: in one sentence, if it is no card of a model.
            TypeError: for a class or category that is not hashable.
        """
        json.dumps(values, allow_nan=False)  # every number is one
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'its card'}: {first['msg']}") from None


# ---- files ----


def named_models() -> dict[str, Path]:
    """Model files that a name is enough for: those in the folder `TAPNET_MODELS`, then those that come with tapnet.

    Example:
        >>> sorted(named_models())
        ['MUTAG']
    """
    folders = [PRETRAINED, *([Path(os.environ[MODELS])] if os.environ.get(MODELS) else [])]
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.safetensors"))}


def find_model_file(path: str | Path) -> Path:
    """The file of a model: the path itself, the final model in the folder of a run, or one of `named_models`.

    Raises:
        DataError: for a folder without a final model.
    """
    name, path = str(path), Path(path)
    if not path_exists(path):
        return named_models().get(name, path)
    if not path.is_dir():
        return path
    if not (path / FINAL_MODEL).is_file():
        models = next((folder for folder in (path, path / "models") if any(folder.glob("*.safetensors"))), None)
        which = "train one" if models is None else f"give one of those in {models}, or train one"
        raise DataError(f"{path}: this folder has no final model; {which}")
    return path / FINAL_MODEL


def describe_models(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """What to know of trained models: of each its name, its file and `ModelCard.facts`.

    Args:
        names: Names, files or folders of runs; None means all of `named_models`.

    Raises:
        DataError: if one is not there, or no model of tapnet.
    """
    files = {name: find_model_file(name) for name in names} if names else named_models()
    return [{"name": name, "file": str(file), **read_model(file)[1].facts()} for name, file in files.items()]


def write_model(file: Path, weights: Mapping[str, Tensor], card: ModelCard) -> None:
    """Writes weights, card and their checksum into one file, whole or not at all."""
    from safetensors.torch import save

    said = card.to_dict()
    sealed = {**said, "checksum": _checksum(weights, said)}
    write_atomically(file, save(dict(weights), metadata={"tapnet": json.dumps(sealed)}))


def read_model(file: str | Path) -> tuple[dict[str, Tensor], ModelCard]:
    """The weights and the card in a file; a checksum is optional, but if there is one, it has to be right.

    Raises:
        DataError: if the file is not there, damaged, or no model of tapnet.
    """
    from safetensors import SafetensorError, safe_open

    check_name(file)
    if is_special_file(Path(file)):
        raise DataError(f"{file}: not a model of tapnet, and not even a file")
    try:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata() or {}
            weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        said = json.loads(metadata["tapnet"])
        checksum = said.pop("checksum", None)
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    except MemoryError:
        raise DataError(f"{file}: needs more memory than there is") from None
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{file}: not a model of tapnet, which are .safetensors files with a description") from None
    except OSError as error:
        raise DataError(f"{file}: not a model of tapnet ({error.strerror or error})") from None
    if checksum not in (None, _checksum(weights, said)):
        raise DataError(f"{file}: damaged: its content is not what was written")
    try:
        return weights, ModelCard.from_dict(said)
    except Exception as error:  # whatever a stranger's description makes of it
        raise unusable(file, error) from None


def unusable(file: str | Path, reason: Exception) -> DataError:
    """The error of a file that is a model, but none that can be used."""
    return DataError(f"{file}: not a model that this version can use ({printable(reason):.300})")


def _checksum(weights: Mapping[str, Tensor], said: Mapping[str, Any]) -> str:
    from safetensors.torch import save

    content = hashlib.blake2b(json.dumps(said).encode(), digest_size=16)
    content.update(save(dict(weights)))
    return content.hexdigest()
