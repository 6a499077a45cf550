"""From targets to the trials that they need, by data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DatasetNotFoundError
from tapnet.experiments.backends.pool import DataReference
from tapnet.experiments.trial import Device, Trial
from tapnet.models.registry import find_model
from tapnet.paper.budgets import Effort
from tapnet.paper.targets import Row, Target
from tapnet.training.protocol import Protocol
from tapnet.training.settings import TrainingSettings


def make_trials(
    row: Row,
    dataset: GraphDataset,
    protocol: Protocol,
    effort: Effort,
    device: Device = "cpu",
    reproducible: bool = False,
) -> list[Trial]:
    """Makes the trials of one system on one data set, one per fold."""
    training, settings = training_settings(row, effort.epochs), row.settings(dataset.name)
    system = (dataset.name, dataset.checksum, row.model, settings, protocol)
    same: dict[str, Any] = {"folds": effort.folds, "training": training, "device": device, "reproducible": reproducible}
    return [Trial(*system, fold=fold, **same) for fold in range(effort.folds_to_run)]


def training_settings(row: Row, epochs: int) -> TrainingSettings:
    """How a system is trained; one that is not trained in epochs has a single one."""
    spec = find_model(row.model)
    return TrainingSettings(**{**spec.training, "epochs": epochs if spec.fit is None else 1})


@dataclass(frozen=True)
class DatasetPlan:
    """The trials on one data set; none where the data are not here, and ``note`` says so."""

    name: str
    dataset: GraphDataset | None = None
    reference: DataReference | None = None
    trials: tuple[Trial, ...] = ()
    note: str = ""


def make_plan(
    targets: Sequence[Target],
    efforts: Mapping[str, Effort],
    protocols: Sequence[Protocol],
    data_dir: Path | None,
    device: Device,
    reproducible: bool = False,
) -> list[DatasetPlan]:
    """Loads the data sets of the targets and makes their trials; one that several targets need is there once."""
    plan = []
    for name in dict.fromkeys(name for target in targets for name in target.datasets):
        reference = reference_to(name, data_dir, efforts[name].graphs)
        try:
            dataset = reference.load()
        except DatasetNotFoundError:
            plan.append(DatasetPlan(name, note=f"{name} is not here: `tapnet.load_dataset` fetches it."))
            continue
        trials = {
            trial.key: trial
            for target in targets
            if name in target.datasets
            for row in target.rows
            for protocol in protocols
            for trial in make_trials(row, dataset, protocol, efforts[name], device, reproducible)
        }
        plan.append(DatasetPlan(name, dataset, reference, tuple(trials.values())))
    return plan


def reference_to(name: str, data_dir: Path | None, graphs: int | None = None) -> DataReference:
    """A data set that is read from this machine, never downloaded."""
    return DataReference(name, None if data_dir is None else str(data_dir), download=False, graphs=graphs)
