"""The result of a comparison: its table as text, JSON, CSV, LaTeX and pandas, and its file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tapnet.errors import DataError, TapnetError
from tapnet.experiments.statistics import LEVEL, POWER
from tapnet.experiments.trial import digest
from tapnet.files import printable, read_regular, write_atomically
from tapnet.nn.pool.diagnostics import PoolDiagnostics
from tapnet.training.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

COMPARISON = "comparison.json"  # in the folder of a comparison
MAX_BYTES, MAX_SYSTEMS, MAX_SCORES = 1 << 26, 1000, 1_000_000  # more is no comparison, and could not be drawn
COLUMNS = ("difference", "95 % interval", "p", "adjusted p", "visible", "rank", "seconds", "parameters")


@dataclass(frozen=True)
class FromReference:
    """How a system differs from the reference; what is not defined is None, and ``reason`` says why.

    Attributes:
        mean: the mean difference over the folds, system − reference.
        low: the lower end of its 95 % interval.
        high: the upper end.
        p: two-sided, of no difference (Nadeau and Bengio).
        p_adjusted: for the number of systems that are compared with the reference (Holm).
        smallest_visible: the difference that would have been marked in four of five such experiments, see
            `tapnet.experiments.statistics.smallest_visible_difference`.
        reason: why some of them are None.
    """

    mean: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    smallest_visible: float | None = None
    reason: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the difference is significant at 5 %, adjusted for the number of comparisons."""
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


@dataclass(frozen=True)
class ComparedSystem:
    """One row of a comparison.

    Attributes:
        name: ``"gin"``, ``"tapnet:topk"``.
        scores: of the folds, one seed after another; None where the metric is not defined.
        mean: of the scores; None where one is not defined.
        std: of the scores.
        difference: from the reference; None for the reference itself.
        rank: by the mean, from 1, the best.
        seconds: that its trials took, all together.
        parameters: of the network; None for what is none.
        baseline: whether it is one of ``majority``, ``size`` and ``bag``.
        changed: its settings that are not those of its paper.
        folder: of its run, within that of the comparison.
        diagnostics: what each of its pooling layers made of the test graphs, on the mean over the folds.
        averaged: of protocol ``"nested"``, the score of each fold by the mean prediction of its runs, which are one
            ensemble then; empty where that is not known.
    """

    name: str
    scores: tuple[float | None, ...]
    mean: float | None
    std: float | None
    difference: FromReference | None
    rank: int | None
    seconds: float
    parameters: int | None
    baseline: bool = False
    changed: Mapping[str, Any] = field(default_factory=dict)
    folder: str | None = None
    diagnostics: tuple[PoolDiagnostics, ...] = ()
    averaged: tuple[float | None, ...] = ()

    @property
    def averaged_mean(self) -> float | None:
        """The mean of the folds' ``averaged``; None where it is not known."""
        known = [score for score in self.averaged if score is not None]
        return sum(known) / len(known) if known and len(known) == len(self.averaged) else None


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of `compare`: a table with a row for each system, and one sentence that sums it up.

    Attributes:
        systems: in the order in which they were named, the baselines last.
        reference: the name of the one that the others are compared with.
        dataset: its name.
        metric: the name of the metric; accuracies are in percent.
        protocol: by which it was measured.
        rules: the protocol, folds and epochs in words.
        num_folds: how many folds there are.
        seeds: how many seeds each was trained with.
        new_folds: whether each seed drew its own folds.
        split: how the user's own splits were chosen; None for stratified folds.
        test_to_train: n_test/n_train, which the correction for overlapping training sets needs.
        smallest_visible_difference: the largest ``smallest_visible`` of the systems that are no baselines: differences
            above it would have shown, with a probability of 80 % at least. None where it is not defined.
        reason: why it is not.
        verdict: what follows, in one sentence.
        notes: what else there is to know.
        folder: of the comparison; None where nothing was kept.
        checksum: of the data set; None in comparisons of earlier versions, as what follows.
        seed_numbers: the seeds.
        fold_numbers: the folds that were run.
    """

    systems: tuple[ComparedSystem, ...]
    reference: str
    dataset: str
    metric: str
    protocol: str
    rules: str
    num_folds: int
    seeds: int
    new_folds: bool
    split: str | None
    test_to_train: float
    smallest_visible_difference: float | None
    reason: str | None
    verdict: str
    notes: tuple[str, ...] = ()
    folder: Path | None = None
    checksum: str | None = None
    seed_numbers: tuple[int, ...] | None = None
    fold_numbers: tuple[int, ...] | None = None

    def __getitem__(self, name: str) -> ComparedSystem:
        for system in self.systems:
            if system.name == name:
                return system
        raise KeyError(name)

    def rows(self) -> list[tuple[str, ...]]:
        """The table in words: its head, and a row for each system."""
        return [("system", self.metric, *self._columns), *map(self._cells, self.systems)]

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*(("averaged",) if self._has_averaged else ()), *COLUMNS)

    @property
    def _has_averaged(self) -> bool:
        return any(system.averaged for system in self.systems)

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *cells in rows:
            aligned = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
        return "\n".join([f"{self.dataset}, {self.rules}", *lines, f"Verdict: {self.verdict}.", *self.notes])

    def label(self, system: ComparedSystem) -> str:
        """The name of a system, and what it is in this comparison."""
        what = "reference" if system.name == self.reference else "baseline" if system.baseline else ""
        return f"{system.name} ({what})" if what else system.name

    def digits(self, value: float | None, sign: str = "") -> str:
        """A score or a difference as it is printed: percents with one digit after the point, others with three."""
        return "" if value is None else METRICS[self.metric].digits(value, sign)

    def _cells(self, system: ComparedSystem) -> tuple[str, ...]:
        """A row of the table in words."""
        d = system.difference
        cells = ["", "", "", "", ""]
        if d is not None:
            interval = "" if d.low is None else f"{self.digits(d.low, '+')} to {self.digits(d.high, '+')}"
            numbers = (_p_in_words(d.p), _p_in_words(d.p_adjusted) + ("*" if d.differs else ""))
            cells = [self.digits(d.mean, "+"), interval, *numbers, self.digits(d.smallest_visible)]
        return (
            self.label(system),
            METRICS[self.metric].in_table(system.mean, system.std),
            *((self.digits(system.averaged_mean),) if self._has_averaged else ()),
            *cells,
            str(system.rank or ""),
            f"{system.seconds:.0f}",
            "" if system.parameters is None else f"{system.parameters:,}",
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it; what is not defined is null."""
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "protocol": self.protocol,
            "rules": self.rules,
            "num_folds": self.num_folds,
            "seeds": self.seeds,
            "new_folds": self.new_folds,
            "split": self.split,
            "reference": self.reference,
            "systems": [_lists(asdict(system)) for system in self.systems],
            "level": LEVEL,
            "power": POWER,
            "test_to_train": self.test_to_train,
            "smallest_visible_difference": self.smallest_visible_difference,
            "reason": self.reason,
            "verdict": self.verdict,
            "notes": list(self.notes),
            "folder": None if self.folder is None else str(self.folder),
            "checksum": self.checksum,
            "seed_numbers": None if self.seed_numbers is None else list(self.seed_numbers),
            "fold_numbers": None if self.fold_numbers is None else list(self.fold_numbers),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Comparison:
        """From what ``to_dict`` returned.

        Raises:
            ValueError: in one sentence, if it is none.
        """
        from pydantic import TypeAdapter, ValidationError

        try:
            found = TypeAdapter(cls).validate_json(json.dumps(_printable(values)), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))) from None
        json.dumps(found.to_dict(), allow_nan=False)  # every number is one
        if found.metric not in METRICS:
            raise ValueError(f"there is no metric {found.metric!r:.40}")
        if found.reference not in [system.name for system in found.systems]:
            raise ValueError("its reference is none of its systems")
        if len(found.systems) > MAX_SYSTEMS or sum(len(system.scores) for system in found.systems) > MAX_SCORES:
            raise ValueError(f"more than {MAX_SYSTEMS:,} systems or {MAX_SCORES:,} scores")
        return found

    def _records(self) -> list[dict[str, Any]]:
        """A flat row for each system; what its first pooling layer did has names that begin with ``pool_``."""
        empty = FromReference(None)
        return [
            {
                "system": system.name,
                "baseline": system.baseline,
                "metric": self.metric,
                "mean": system.mean,
                "std": system.std,
                "difference": d.mean,
                "low": d.low,
                "high": d.high,
                "p": d.p,
                "p_adjusted": d.p_adjusted,
                "smallest_visible": d.smallest_visible,
                "rank": system.rank,
                "seconds": system.seconds,
                "parameters": system.parameters,
                "scores": list(system.scores),
                "averaged": system.averaged_mean,
                **{f"pool_{name}": value for name, value in asdict(first).items()},
            }
            for system in self.systems
            for d, first in [(system.difference or empty, (*system.diagnostics, PoolDiagnostics())[0])]
        ]

    def to_pandas(self) -> DataFrame:
        """The table as a DataFrame, indexed by the name of the system.

        Raises:
            TapnetError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise TapnetError("a DataFrame needs pandas: pip install pandas") from None
        return pandas.DataFrame(self._records()).set_index("system")

    def to_csv(self, file: str | Path | None = None) -> str:
        """The table as CSV, the scores of the folds separated by semicolons.

        Args:
            file: Where to write it as well.
        """
        records = [
            {**r, "scores": ";".join("" if s is None else repr(s) for s in r["scores"])} for r in self._records()
        ]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return _written(text.getvalue(), file)

    def to_latex(self, file: str | Path | None = None) -> str:
        """The table for LaTeX (package booktabs); the protocol and the verdict are comments above it.

        Args:
            file: Where to write it as well.
        """
        rows = [(_metric_name(self.metric), *self._columns), *(c[1:] for c in map(self._cells, self.systems))]
        names = ("system", *(self.label(system) for system in self.systems))
        lines = [" & ".join(map(_latex, (name, *cells))) + r" \\" for name, cells in zip(names, rows, strict=True)]
        above = [f"% {' '.join(line.split())}" for line in (f"{self.dataset}, {self.rules}", self.verdict, *self.notes)]
        table = [rf"\begin{{tabular}}{{l{'r' * len(rows[0])}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
        return _written("\n".join([*above, *table, r"\bottomrule", r"\end{tabular}", ""]), file)

    def plot(self) -> Figure:
        """The scores of every fold, and the differences with their intervals: `tapnet.viz.plot_comparison`."""
        figure: Figure = import_module("tapnet.viz").plot_comparison(self)  # a room to the right: looked up when asked
        return figure

    def save(self, folder: str | Path) -> Comparison:
        """Writes ``comparison.json`` into a folder, from which `load_comparison` reads it.

        Returns:
            The comparison with that folder.
        """
        stored = replace(self, folder=Path(folder))
        values = json.loads(json.dumps(stored.to_dict()))
        values["digest"] = digest(values)
        write_atomically(Path(folder) / COMPARISON, json.dumps(values, indent=1).encode())
        return stored


def load_comparison(path: str | Path) -> Comparison:
    """Reads a comparison that was stored.

    Args:
        path: The folder of the comparison, or its file ``comparison.json``.

    Returns:
        The table and the verdict, as they were.

    Raises:
        DataError: If there is none, or it is not what was written.

    Example:
        >>> from tapnet import compare_runs, cross_validate
        >>> runs = [cross_validate("MUTAG", name, folds=3, out=f"runs/{name}").folder for name in ("majority", "size")]
        >>> stored = compare_runs(runs).save("comparison")
        >>> load_comparison(stored.folder).reference
        'majority'
    """
    file = Path(path) / COMPARISON if Path(path).is_dir() else Path(path)
    try:
        values = json.loads(read_regular(file, MAX_BYTES))
        if values.pop("digest") != digest(values):
            raise ValueError("its content is not what was written")
        return replace(Comparison.from_dict(values), folder=file.parent)
    except FileNotFoundError:
        raise DataError(f"{path}: no comparison is stored here (there is no {COMPARISON})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise DataError(f"{file}: cannot be read as a comparison ({printable(error)})") from None


def _lists(system: Mapping[str, Any]) -> dict[str, Any]:
    """A system as JSON has it; ``averaged`` is there where it is known, as earlier versions do not know it."""
    values = {**system, "scores": list(system["scores"]), "averaged": list(system["averaged"])}
    return values if values["averaged"] else {k: v for k, v in values.items() if k != "averaged"}


def _printable(value: Any) -> Any:
    """The same with every text, of a stranger's file too, safe to print."""
    if isinstance(value, Mapping):
        return {key: _printable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    return printable(value) if isinstance(value, str) else value


def _p_in_words(p: float | None) -> str:
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _metric_name(metric: str) -> str:
    return metric.replace("_", " ")


def _latex(text: str) -> str:
    """Text as LaTeX has it; a minus before a digit is a mathematical one."""
    for letter in "\\&%$#_{}":
        text = text.replace(letter, {"\\": r"\textbackslash "}.get(letter, f"\\{letter}"))
    replaced = {"±": r"$\pm$", "-": "$-$", "+": "$+$", "<": "$<$", "~": r"\textasciitilde ", "^": r"\textasciicircum "}
    if any(letter.isdigit() for letter in text) and not text[:1].isalpha():
        text = "".join(replaced.get(letter, letter) for letter in text)
    return text


def _written(text: str, file: str | Path | None) -> str:
    if file is not None:
        write_atomically(Path(file), text.encode())
    return text
