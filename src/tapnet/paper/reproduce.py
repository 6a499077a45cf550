"""From a target to its trials, and from stored trials to the cells of its table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DatasetNotFoundError
from tapnet.experiments.backends.pool import DataReference
from tapnet.experiments.statistics import Comparison, compare
from tapnet.experiments.store import Store
from tapnet.experiments.summary import COMMON_EPOCH, Summary
from tapnet.experiments.trial import ARITHMETIC, Device, Trial, TrialResult, digest
from tapnet.models.registry import find_model
from tapnet.paper.budgets import BUDGETS, Effort
from tapnet.paper.numbers import Printed
from tapnet.paper.targets import TAPNET, Row, Target
from tapnet.training.protocol import Protocol
from tapnet.training.settings import TrainingSettings


def trials_of(
    row: Row, dataset: GraphDataset, protocol: Protocol, effort: Effort, device: Device = "cpu"
) -> list[Trial]:
    """One trial a fold."""
    spec = find_model(row.model)
    first = Trial(
        dataset=dataset.name,
        data=dataset.checksum,
        model=row.model,
        settings=spec.make_settings(dataset.name, row.changed),
        protocol=protocol,
        fold=0,
        folds=effort.folds,
        training=_training(row, effort.epochs),
        device=device,
    )
    return [replace(first, fold=fold) for fold in range(effort.run)]


def _training(row: Row, epochs: int) -> TrainingSettings:
    spec = find_model(row.model)
    return TrainingSettings(**{**spec.training, "epochs": epochs if spec.fit is None else 1})


@dataclass(frozen=True)
class Work:
    """What is to be run on one data set; nothing where the set is not here, and why."""

    name: str
    dataset: GraphDataset | None = None
    reference: DataReference | None = None
    trials: tuple[Trial, ...] = ()
    note: str = ""


def plan_of(
    targets: Sequence[Target],
    efforts: Mapping[str, Effort],
    protocols: Sequence[Protocol],
    data_dir: Path | None,
    device: Device,
) -> list[Work]:
    """Every trial behind the targets, by data set; a trial that several of them need is there once."""
    plan = []
    for name in dict.fromkeys(name for target in targets for name in target.datasets):
        folder = None if data_dir is None else str(data_dir)
        reference = DataReference(name, folder, download=False, graphs=efforts[name].graphs)
        try:
            dataset = reference.load()
        except DatasetNotFoundError:
            plan.append(Work(name, note=f"{name} is not here: `tapnet datasets {name} --download` fetches it."))
            continue
        trials = {
            trial.key: trial
            for target in targets
            if name in target.datasets
            for row in target.rows
            for protocol in protocols
            for trial in trials_of(row, dataset, protocol, efforts[name], device)
        }
        plan.append(Work(name, dataset, reference, tuple(trials.values())))
    return plan


class Stored:
    """What a store holds, by the questions that tables ask: all of it, or what has so many epochs, or so many folds."""

    def __init__(self, store: Store, epochs: int | None = None, folds: int | None = None) -> None:
        self._groups: dict[tuple[Any, ...], list[TrialResult]] = defaultdict(list)
        for result in store.results():
            t = result.trial
            has_epochs = find_model(t.model).fit is None
            asked = (not has_epochs or epochs in (None, t.training.epochs)) and (folds is None or t.fold < folds)
            if asked and t.seed == 0 and t.arithmetic == ARITHMETIC:
                self._groups[t.dataset, t.model, digest(t.settings.to_dict()), t.protocol].append(result)

    def copies(self, dataset: str) -> set[str]:
        """The checksums of the copies of a data set that trials are of."""
        return {r.trial.data for (name, *_), found in self._groups.items() if name == dataset for r in found}

    def find(
        self, dataset: str, row: Row, protocol: Protocol, data: str | None = None, epochs: int | None = None
    ) -> tuple[TrialResult, ...]:
        """The folds of one system: of this copy of the data, if one is named, and with so many epochs.

        Without a number of epochs, the most folds, and of these the most epochs, up to the paper's.
        """
        settings = digest(find_model(row.model).make_settings(dataset, row.changed).to_dict())
        alike: dict[tuple[Any, ...], list[TrialResult]] = defaultdict(list)
        for result in self._groups.get((dataset, row.model, settings, protocol), ()):
            t = result.trial
            if (
                t.training == _training(row, t.training.epochs)
                and data in (None, t.data)
                and epochs in (None, t.training.epochs)
            ):
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
    against_tapnet: Comparison | None = None

    @property
    def summary(self) -> Summary | None:
        return Summary(self.results) if self.results else None

    @property
    def behind(self) -> str:
        """How many folds and epochs, in short."""
        if not self.results:
            return ""
        t, n = self.results[0].trial, len(self.results)
        folds = f"{n}" if n == t.folds else f"{n} of {t.folds}"
        return f"{folds} × {t.training.epochs}" if Summary(self.results).has_epochs else f"{folds} folds"

    def to_dict(self, target: str) -> dict[str, Any]:
        """One line of the CSV file."""
        s, against = self.summary, self.against_tapnet
        first = self.results[0] if self.results else None
        values: dict[str, Any] = {
            "target": target,
            "dataset": self.dataset,
            "system": self.row.label,
            "model": self.row.model,
            "changed": ";".join(f"{k}={v}" for k, v in self.row.changed.items()),
            "protocol": self.protocol,
            "paper_mean": None if self.printed is None else self.printed.mean,
            "paper_std": None if self.printed is None else self.printed.std,
            "mean": s and round(s.mean, 2),
            "std": s and round(s.std, 2),
        }
        beside = s.beside if s else {}
        for name, words in (("common_epoch", COMMON_EPOCH), ("last_epoch", "last epoch")):
            mean, std = beside.get(words, (None, None))
            values[f"{name}_mean"], values[f"{name}_std"] = mean and round(mean, 2), std and round(std, 2)
        return values | {
            "folds": len(self.results) or None,
            "epochs": (first and s and s.has_epochs and first.trial.training.epochs) or None,
            "difference_from_tapnet": against and round(against.difference, 2),
            "half_width_95": against and round(against.half_width, 2),
            "p_against_tapnet": against and round(against.p_value, 4),
            "parameters": (first and first.parameters) or None,
            "seconds": round(sum(r.seconds for r in self.results), 1) or None,
            "data": first and first.trial.data,
        }


def cells_of(
    target: Target, datasets: Sequence[str], protocols: Sequence[Protocol], stored: Stored, data: dict[str, str]
) -> Iterator[Cell]:
    """Every cell, row by row; ``data`` has the checksums of the copies that count, where one does.

    A system is tested against TAPNet after as many epochs; one that has no epochs, against TAPNet as it stands.
    """
    for name in datasets:
        for protocol in protocols:
            for row in target.rows:
                found = stored.find(name, row, protocol, data.get(name))
                cell = Cell(name, row, protocol, target.printed(row, name), found)
                if found and (row.changed or row.model != "tapnet"):
                    has_epochs = find_model(row.model).fit is None
                    epochs = found[0].trial.training.epochs if has_epochs else None
                    usual = stored.find(name, TAPNET, protocol, data.get(name), epochs)
                    cell = replace(cell, against_tapnet=_compared(found, usual))
                yield cell


def _compared(ours: Sequence[TrialResult], usual: Sequence[TrialResult]) -> Comparison | None:
    if not usual or _conditions(ours[0]) != _conditions(usual[0]):
        return None
    t = usual[0].trial
    training_folds = t.folds - (2 if t.protocol == "fair" else 1)
    columns = [{r.trial.fold: r.reading.accuracy for r in results} for results in (ours, usual)]
    return compare(columns[0], columns[1], 1 / training_folds)


def _conditions(result: TrialResult) -> tuple[Any, ...]:
    """What two systems must share for their folds to be compared."""
    t = result.trial
    return t.data, t.folds, t.protocol
