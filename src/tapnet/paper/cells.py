"""From stored trials to the cells of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tapnet.experiments.statistics import Difference, corrected_t_test
from tapnet.experiments.summary import COMMON_EPOCH, Summary
from tapnet.experiments.trial import ARITHMETIC, TrialResult, digest
from tapnet.models.registry import find_model
from tapnet.paper.budgets import BUDGETS
from tapnet.paper.numbers import Printed
from tapnet.paper.plan import training_settings
from tapnet.paper.targets import TAPNET, Row, Target
from tapnet.training.protocol import Protocol


class StoredResults:
    """Results of trials, grouped by system.

    Args:
        results: Of any trials; those of another seed, or computed by another arithmetic, are left out.
        epochs: If given, only trials of that many epochs count.
        folds: If given, only the first folds count.
        reproducible: Which of the two arithmetics counts.
    """

    def __init__(
        self,
        results: Iterable[TrialResult],
        epochs: int | None = None,
        folds: int | None = None,
        reproducible: bool = False,
    ) -> None:
        self._groups: dict[tuple[Any, ...], list[TrialResult]] = defaultdict(list)
        for result in results:
            t = result.trial
            has_epochs = find_model(t.model).fit is None
            asked = (not has_epochs or epochs in (None, t.training.epochs)) and (folds is None or t.fold < folds)
            if asked and t.seed == 0 and t.arithmetic == ARITHMETIC and t.reproducible == reproducible:
                self._groups[t.dataset, t.model, digest(t.settings.to_dict()), t.protocol].append(result)

    def checksums(self, dataset: str) -> set[str]:
        """The checksums of the copies of a data set that there are results of."""
        return {r.trial.data for (name, *_), found in self._groups.items() if name == dataset for r in found}

    def find(
        self, dataset: str, row: Row, protocol: Protocol, data: str | None = None, epochs: int | None = None
    ) -> tuple[TrialResult, ...]:
        """Finds the folds of one system.

        Args:
            dataset: The name of the data set.
            row: The system.
            protocol: By which the epoch was chosen.
            data: If given, the checksum of the copy of the data set.
            epochs: If None, the most folds count, and of these the most epochs, up to the paper's.

        Returns:
            Results that differ in their fold alone, in its order; none if nothing is stored.
        """
        settings = digest(row.settings(dataset).to_dict())
        alike: dict[tuple[Any, ...], list[TrialResult]] = defaultdict(list)
        for result in self._groups.get((dataset, row.model, settings, protocol), ()):
            t = result.trial
            asked = data in (None, t.data) and epochs in (None, t.training.epochs)
            if asked and t.training == training_settings(row, t.training.epochs):
                alike[t.data, t.folds, t.training.epochs, t.threads, t.device, t.devices].append(result)
        groups = sorted(alike.values(), key=_weight)
        return tuple(sorted(groups[-1], key=lambda r: r.trial.fold)) if groups else ()


def _weight(group: Sequence[TrialResult]) -> tuple[int, int, int]:
    """More folds count for more, then more epochs, but epochs beyond the paper's for nothing.

    So the first folds of a longer run do not take the place of a whole cross-validation.
    """
    epochs = group[0].trial.training.epochs
    return len(group), min(epochs, BUDGETS["paper"].small.epochs), -epochs


@dataclass(frozen=True)
class Cell:
    """One system on one data set under one protocol: what the paper prints, and what is stored."""

    dataset: str
    row: Row
    protocol: Protocol
    printed: Printed | None
    results: tuple[TrialResult, ...]
    against_tapnet: Difference | None = None

    @cached_property
    def summary(self) -> Summary | None:
        """Mean and deviation over the folds; None where nothing is stored."""
        return Summary(self.results) if self.results else None

    @property
    def has_epochs(self) -> bool:
        """Whether something is stored, of a system that is trained in epochs."""
        return self.summary is not None and self.summary.has_epochs

    @property
    def folds_and_epochs(self) -> str:
        """How many folds and epochs were run, such as "10 × 200"; empty where nothing is stored."""
        if not self.results:
            return ""
        t, n = self.results[0].trial, len(self.results)
        folds = f"{n}" if n == t.folds else f"{n} of {t.folds}"
        return f"{folds} × {t.training.epochs}" if self.has_epochs else f"{folds} folds"

    def to_dict(self, target: str, digits: int = 2) -> dict[str, Any]:
        """The cell as a row of the CSV file, rounded to so many digits."""
        s, against = self.summary, self.against_tapnet
        first = self.results[0] if self.results else None
        values: dict[str, Any] = {
            "target": target,
            "dataset": self.dataset,
            "system": self.row.label,
            "model": self.row.model,
            "changed": ";".join(f"{k}={v}" for k, v in self.row.changed.items()),
            "protocol": self.protocol,
            "paper_mean": self.printed and self.printed.mean,
            "paper_std": self.printed and self.printed.std,
            "mean": s and round(s.mean, digits),
            "std": s and round(s.std, digits),
        }
        others = s.other_readings if s else {}
        for name, words in (("common_epoch", COMMON_EPOCH), ("last_epoch", "last epoch")):
            mean, std = others.get(words, (None, None))
            values[f"{name}_mean"], values[f"{name}_std"] = mean and round(mean, digits), std and round(std, digits)
        return values | {
            "folds": len(self.results) or None,
            "epochs": (first and s and s.has_epochs and first.trial.training.epochs) or None,
            "difference_from_tapnet": against and round(against.difference, digits),
            "half_width_95": against and round(against.half_width, digits),
            "p_against_tapnet": against and round(against.p_value, digits + 2),
            "parameters": (first and first.parameters) or None,
            "seconds": round(sum(r.seconds for r in self.results), 1) or None,
            "data": first and first.trial.data,
        }


def make_cells(
    target: Target, protocols: Sequence[Protocol], stored: StoredResults, checksums: Mapping[str, str]
) -> list[Cell]:
    """Fills the cells of a target with what is stored.

    A system is tested against TAPNet after as many epochs; one that has no epochs, against TAPNet as it stands.

    Args:
        target: The table.
        protocols: By which its accuracies are read.
        stored: The results.
        checksums: For some data sets, the copy whose results count.

    Returns:
        A cell for each data set, protocol and row, in this order.
    """
    cells = []
    for name in target.datasets:
        for protocol in protocols:
            for row in target.rows:
                found = stored.find(name, row, protocol, checksums.get(name))
                cell = Cell(name, row, protocol, target.printed(row, name), found)
                if found and (row.changed or row.model != "tapnet"):
                    has_epochs = find_model(row.model).fit is None
                    epochs = found[0].trial.training.epochs if has_epochs else None
                    usual = stored.find(name, TAPNET, protocol, checksums.get(name), epochs)
                    cell = replace(cell, against_tapnet=_compared(found, usual))
                cells.append(cell)
    return cells


def _compared(ours: Sequence[TrialResult], usual: Sequence[TrialResult]) -> Difference | None:
    """None where nothing is stored of the same folds of the same data."""
    if not usual:
        return None
    t, other = usual[0].trial, ours[0].trial
    if (t.data, t.folds, t.protocol) != (other.data, other.folds, other.protocol):
        return None
    training_folds = t.folds - (2 if t.protocol == "fair" else 1)
    columns = [{r.trial.fold: r.reading.accuracy for r in results} for results in (ours, usual)]
    return corrected_t_test(columns[0], columns[1], 1 / training_folds)
