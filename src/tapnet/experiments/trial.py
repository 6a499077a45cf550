"""A trial: one model trained once, named by everything that its numbers depend on; and its result."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import platform
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet import __version__
from tapnet.data.dataset import GraphDataset, Task
from tapnet.data.splits import Split
from tapnet.errors import SettingError
from tapnet.machine import describe_machine, machine_in_words
from tapnet.models.registry import find_model
from tapnet.models.settings import Settings
from tapnet.nn.pool.diagnostics import PoolDiagnostics
from tapnet.ops.connectivity import Connectivity
from tapnet.training.device import Device as Device
from tapnet.training.metrics import DEFAULT_METRIC
from tapnet.training.protocol import Protocol, Reading, check_protocol, readings, reported_reading, split, test_metric
from tapnet.training.settings import TrainingSettings

Array = NDArray[Any]

LONGEST_CURVE, LARGEST_ARRAY = 1 << 24, 1 << 28  # bytes, unpacked; more is none that is stored
MOST_NODES = 8192  # whose selection is stored with a trial, in less than 1.8 kB of text
# Fields that came after results were stored, with the value that leaves keys as they were.
LATER_DEFAULTS = (
    ("devices", 1),
    ("pool_source", ""),
    ("task", "classification"),
    ("split", ""),
    ("select_by", ""),
    ("class_weight", ""),
    ("reproducible", False),
    ("fold_seed", 0),
    ("tested", True),
)
MOST_AT_ONCE = 10_000  # threads or devices
ARITHMETIC = 2  # raised when the program gives other numbers for the same trial, so that old ones are not taken for new


@dataclass(frozen=True, eq=False)
class Trial:
    """One model trained on one fold of one data set under one protocol.

    Trials with the same ``key``, a hash of all of this, are equal.

    Args:
        dataset: the data set's name.
        data: its checksum.
        model: the name of the system.
        settings: of the system.
        protocol: "paper", "fair" or "nested".
        fold: the one that is tested, from 0.
        folds: how many there are.
        training: how it is trained.
        seed: of initial weights, order and dropout.
        threads: of one trial; sums round differently with another number.
        device: "cpu" or "cuda".
        arithmetic: the version of the program's arithmetic.
        devices: processes that share each step.
        pool_source: a digest of the source of the user's own pooling layer; empty for those of tapnet.
        task: what is predicted; the data's own.
        split: how the user's own splits were chosen, and their digest; empty for stratified folds.
        select_by: the metric that chooses the epoch; empty for what the protocol says.
        class_weight: "balanced", or empty.
        reproducible: whether its arithmetic is the one that every processor of a kind has.
        fold_seed: of the order in which graphs are dealt to folds.
        tested: False for a trial that serves to choose settings: its score is that of its validation graphs, its test
            graphs are not read, and it goes on from a trial of the same settings with fewer epochs.

    Raises:
        SettingError: if there is no such protocol, fold, seed or number of threads, or for a GPU that is to be
            reproducible.
    """

    dataset: str
    data: str
    model: str
    settings: Settings
    protocol: Protocol
    fold: int
    folds: int = 10
    training: TrainingSettings = field(default_factory=TrainingSettings)
    seed: int = 0
    threads: int = 1
    device: Device = "cpu"
    arithmetic: int = ARITHMETIC
    devices: int = 1
    pool_source: str = ""
    task: Task = "classification"
    split: str = ""
    select_by: str = ""
    class_weight: str = ""
    reproducible: bool = False
    fold_seed: int = 0
    tested: bool = True

    def __post_init__(self) -> None:
        check_protocol(self.protocol, self.folds, self.fold, bool(self.split))
        for name in ("seed", "fold_seed"):
            if not 0 <= getattr(self, name) < 2**63:
                raise SettingError(f"{name} is a whole number from 0 to 2⁶³-1, not {getattr(self, name)}")
        for name in ("threads", "devices"):
            if not 1 <= getattr(self, name) <= MOST_AT_ONCE:
                raise SettingError(f"{name} is 1 to {MOST_AT_ONCE}, not {getattr(self, name)}")
        if self.reproducible and self.device != "cpu":
            raise SettingError(f"reproducible numbers are those of a CPU: device is cpu, not {self.device}")

    @cached_property
    def key(self) -> str:
        """16 hexadecimal digits: the name of its files."""
        return digest(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def split_of(self, dataset: GraphDataset) -> Split:
        """The graphs of its data set that train, validate and test; none test where it is not tested."""
        parts = split(dataset, self.protocol, self.folds, self.fold, self.fold_seed)
        return parts if self.tested else parts._replace(test=parts.test[:0])

    @cached_property
    def checkpoint_key(self) -> str:
        """The name of its checkpoints; trials that are not tested share one if they differ only in their epochs."""
        return digest(self._without_epochs(self.to_dict()))

    def _without_epochs(self, values: dict[str, Any]) -> dict[str, Any]:
        """Values that the first epochs depend on: the number of epochs counts only where something follows it.

        Trials of before have it in their seeds; only those that are not tested leave it out.
        """
        if self.tested or self.training.schedule != "constant" or self.settings.follows_epochs:
            return values
        return {**values, "training": {k: v for k, v in values["training"].items() if k != "epochs"}}

    @property
    def derived_seed(self) -> int:
        """The seed of initial weights, order and dropout: it follows from the settings, the fold and the seed."""
        others = ("data", "threads", "device", "devices", "arithmetic", "pool_source", "reproducible")
        given = {k: v for k, v in self._values().items() if k not in others and (k, v) not in LATER_DEFAULTS}
        return int(digest(self._without_epochs(given)), 16) % 2**63

    @property
    def test_metric(self) -> str:
        """The metric of its test curve: what chooses the epoch of ``paper``, else the task's usual one."""
        return self.select_by if self.protocol == "paper" and self.select_by else DEFAULT_METRIC[self.task]

    def to_dict(self) -> dict[str, Any]:
        """Everything that its numbers depend on. Fields that came later are left out where they have their default."""
        return {k: v for k, v in self._values().items() if (k, v) not in LATER_DEFAULTS}

    def _values(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "settings": self.settings.to_dict(), "training": self.training.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trial:
        """From what ``to_dict`` returned; a ``SettingError`` for settings that this version does not know."""
        unknown = values.keys() - {f.name for f in fields(cls)}
        if unknown:  # of a newer version
            raise SettingError(f"this version knows no setting {', '.join(sorted(unknown))}")
        settings = find_model(values["model"]).settings(**values["settings"])
        training = TrainingSettings(**values["training"])
        return cls(**{"arithmetic": 1, **values, "settings": settings, "training": training})


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a network says of some graphs that it was not trained on.

    Attributes:
        graphs: [n] their numbers in the data set.
        y: [n] their classes, or [n, T] targets with NaN for what is missing.
        values: [n, C] probabilities of the classes, or [n, T] of the labels, or numbers.
    """

    graphs: Array
    y: Array
    values: Array

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {name: pack_array(array) for name, array in vars(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Predicted:
        """From what ``to_dict`` returned."""
        graphs, y, outputs = (unpack_array(values[name]) for name in ("graphs", "y", "values"))
        if outputs.ndim != 2 or not outputs.shape[1] or graphs.shape != outputs.shape[:1] or (graphs < 0).any():
            raise ValueError("predictions that do not fit each other")
        if graphs.dtype.kind != "i" or (y.ndim == 1 and y.dtype.kind != "i"):
            raise ValueError("numbers of graphs, or classes, that are not whole")
        are_classes = y.shape == graphs.shape and bool(((y >= 0) & (y < outputs.shape[1])).all())
        if not are_classes and y.shape != outputs.shape:
            raise ValueError("predictions that do not fit the targets")
        return cls(graphs, y, outputs)


@dataclass(frozen=True, eq=False)
class Selection:
    """Which nodes of the first test graphs the first pooling layer kept, after training.

    Attributes:
        sizes: [n] the nodes of each graph; of the last one, those that are told.
        kept: [N] whether each of their nodes is kept.
    """

    sizes: Array
    kept: Array

    @classmethod
    def of(cls, sizes: Array, kept: Array) -> Selection:
        """Of the nodes of test graphs; the first ``MOST_NODES`` are told, so that a stored trial stays small."""
        ends = np.minimum(np.cumsum(sizes), MOST_NODES)
        told = np.diff(ends, prepend=0)
        return cls(told[told > 0], kept[:MOST_NODES])

    def to_dict(self) -> dict[str, Any]:
        """As it is stored: a bit for each node."""
        bits = np.packbits(self.kept)
        words = np.pad(bits, (0, -len(bits) % 8)).view("<i8")
        return {"sizes": pack_array(self.sizes), "kept": pack_array(words)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Selection:
        """From what ``to_dict`` returned."""
        sizes, words = (unpack_array(values[name]) for name in ("sizes", "kept"))
        if any(found.ndim != 1 or found.dtype.kind != "i" for found in (sizes, words)) or (sizes <= 0).any():
            raise ValueError("a selection of no nodes")
        nodes = sum(sizes.tolist())
        if nodes > MOST_NODES or len(words) != -(-nodes // 64):
            raise ValueError("a selection of other nodes than it says")
        return cls(sizes, np.unpackbits(words.view(np.uint8), count=nodes).astype(bool))


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial: curves over the epochs, and the accuracies that can be read off them.

    Args:
        trial: what was trained.
        curves: by name, with a value for each epoch: losses, and accuracies in percent.
        seconds: that it took.
        parameters: of the network.
        versions: of the program and its libraries, and the machine that computed it.
        coarsened: the connectivity of the test graphs after training: as they are, then after each pooling layer.
        predicted: what the network of the epoch that counts says of the "test" and "validation" graphs.
        diagnostics: what each pooling layer made of the test graphs after training; empty if not known.
        selection: which nodes of them the first pooling layer kept, which trials of other seeds are compared with; None
            if it merges nodes, or if it is not known.
    """

    trial: Trial
    curves: Mapping[str, Sequence[float]]
    seconds: float
    parameters: int
    versions: Mapping[str, str]
    coarsened: Sequence[Connectivity] = ()
    predicted: Mapping[str, Predicted] = field(default_factory=dict)
    diagnostics: Sequence[PoolDiagnostics] = ()
    selection: Selection | None = None

    @property
    def diverged(self) -> bool:
        """Whether the last training loss is not a number."""
        return not all(map(math.isfinite, self.curves.get("train_loss", ())[-1:]))

    @property
    def chosen_by_loss(self) -> bool:
        """Whether the metric that was to choose the epoch is not defined on the validation graphs, so the loss did."""
        values = self.curves.get(f"validation_{self.trial.select_by}")
        return self.trial.protocol != "paper" and bool(values) and all(map(math.isnan, values or ()))

    @property
    def machine(self) -> str:
        """The processor, instruction sets and BLAS behind its numbers, in words; or "not recorded"."""
        return machine_in_words(dict(self.versions), any_cpu=self.trial.reproducible)

    @property
    def reading(self) -> Reading:
        """The accuracy that the trial's own protocol reports."""
        trial = self.trial
        return reported_reading(trial.protocol, self.curves, trial.select_by, trial.training.first_choice)

    @property
    def metric(self) -> str:
        """The name of the metric that the reading has."""
        return test_metric(self.curves)

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "key": self.trial.key,
            "trial": self.trial.to_dict(),
            self.metric: or_null(self.reading.score),
            "epoch": self.reading.epoch,
            "readings": {
                name: {"epoch": r.epoch, self.metric: or_null(r.score)} for name, r in readings(self.curves).items()
            },
            "parameters": self.parameters,
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
            "coarsened": [asdict(level) for level in self.coarsened],
            "curves": {name: pack_curve(values) for name, values in self.curves.items()},
            **({"diagnostics": [asdict(layer) for layer in self.diagnostics]} if self.diagnostics else {}),
            **({"selection": self.selection.to_dict()} if self.selection is not None else {}),
            **({"predicted": {part: p.to_dict() for part, p in self.predicted.items()}} if self.predicted else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrialResult:
        """From what ``to_dict`` returned."""
        return cls(
            Trial.from_dict(values["trial"]),
            {name: unpack_curve(curve) for name, curve in values["curves"].items()},
            values["seconds"],
            values["parameters"],
            values["versions"],
            tuple(Connectivity(**level) for level in values.get("coarsened", ())),
            {part: Predicted.from_dict(p) for part, p in values.get("predicted", {}).items()},
            tuple(PoolDiagnostics(**layer) for layer in values.get("diagnostics", ())),
            Selection.from_dict(values["selection"]) if "selection" in values else None,
        )


def rounded(value: float) -> float:
    """A value of a curve: six digits, so that a stored trial is small and equal to what it was before it was stored.

    NaN for what is no number, infinite numbers too.
    """
    return float(f"{value:.6g}") if math.isfinite(value) else math.nan


def or_null(value: Any) -> float | None:
    """A number as JSON has it: None where it is not defined."""
    return float(value) if math.isfinite(value) else None


def pack_curve(curve: Sequence[float]) -> str:
    """A curve as text: JSON (null for a loss that is no number), compressed, in base 64."""
    values = [rounded(v) if math.isfinite(v) else None for v in curve]
    return base64.b64encode(zlib.compress(json.dumps(values, separators=(",", ":")).encode(), 9)).decode()


def unpack_curve(curve: str | Sequence[float | None]) -> list[float]:
    """A curve that was packed; earlier versions stored the list itself."""
    if isinstance(curve, str):
        unzip = zlib.decompressobj()
        text = unzip.decompress(base64.b64decode(curve, validate=True), LONGEST_CURVE)
        if unzip.unconsumed_tail:
            raise ValueError("a curve longer than any")
        return unpack_curve(json.loads(text))
    return [math.nan if v is None else rounded(v) for v in curve]


def pack_array(array: Array) -> dict[str, Any]:
    """An array as JSON has it: whole numbers or single precision, compressed, in base 64."""
    kind = "<i8" if np.issubdtype(array.dtype, np.integer) else "<f4"
    content = zlib.compress(np.ascontiguousarray(array, dtype=kind).tobytes(), 9)
    return {"type": kind, "shape": list(array.shape), "data": base64.b64encode(content).decode()}


def unpack_array(packed: Mapping[str, Any]) -> Array:
    """An array that was packed."""
    kind, shape = np.dtype(packed["type"]), tuple(map(int, packed["shape"]))
    if kind not in (np.dtype("<i8"), np.dtype("<f4")) or min(shape, default=0) < 0:
        raise ValueError("an array of no type that is stored")
    wanted = kind.itemsize * math.prod(shape)
    if wanted > LARGEST_ARRAY:
        raise ValueError("an array larger than any")
    unzip = zlib.decompressobj()
    content = unzip.decompress(base64.b64decode(packed["data"], validate=True), wanted + 1)
    if len(content) != wanted:
        raise ValueError("an array of another size than it says")
    return np.frombuffer(content, kind).reshape(shape)


def versions() -> dict[str, str]:
    """The versions of the program and its libraries, and what `describe_machine` says."""
    return {
        "tapnet": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        **describe_machine(),
        "commit": _commit(),
    }


@cache
def _commit() -> str:
    """The commit of the working copy that the program runs from; empty for an installed one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return ""
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def digest(values: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that change with any of the values."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
