"""What a cross-validation or a search for settings trains: everything that a user asks for, checked, as one trial."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ValidationError

from tapnet.data.checks import copies_note, features_note
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import SettingError, TapnetError, did_you_mean
from tapnet.experiments.backends.pool import DataReference, Event, OnEvent, run_trials
from tapnet.experiments.backends.processes import available_cores
from tapnet.experiments.progress import progress_bars
from tapnet.experiments.run_trial import Interrupted, describe_model
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial, TrialResult
from tapnet.files import printable
from tapnet.io.graph_folder import require_targets
from tapnet.io.load import AnyDataset, check_features, load_dataset
from tapnet.io.splits import choose_splits
from tapnet.machine import require_reproducible
from tapnet.models.registry import find_model
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv.registry import conv_digest, find_conv
from tapnet.nn.pool.registry import find_name, source_digest
from tapnet.training.device import find_device
from tapnet.training.metrics import METRICS, find_metrics
from tapnet.training.protocol import check_protocol, splits, validation_note, validation_splits
from tapnet.training.settings import TrainingSettings

if TYPE_CHECKING:
    from tapnet.experiments.backends.ray import Cluster

USUAL_EPOCHS = 200
Search = Literal["random", "tpe"]
SEARCHES: tuple[Search, ...] = ("random", "tpe")


@dataclass(frozen=True)
class Setup:
    """A trial and its data; the other trials of a run differ from it in fold, seed or settings.

    Attributes:
        spec: the system.
        data: the data, with the user's own splits.
        reference: how processes get them.
        first: the first fold's trial.
        numbers: of the folds to run.
        metrics: the names of what is measured.
        notes: what there is to know of the data.
        given: the settings that the user gave, of the system and of training.
        options: of `run_trials`.
    """

    spec: ModelSpec
    data: GraphDataset
    reference: DataReference
    first: Trial
    numbers: list[int]
    metrics: list[str]
    notes: tuple[str, ...]
    given: Mapping[str, Any]
    options: Mapping[str, Any]

    def trial(self, chosen: Mapping[str, Any], **changes: Any) -> Trial:
        """The first trial with other settings of the system and of training, fold, seed and the like."""
        steps = {name: value for name, value in chosen.items() if name in TrainingSettings.names()}
        own = {name: value for name, value in chosen.items() if name not in steps}
        settings = self.first.settings.replace(**own) if own else self.first.settings
        self.spec.check_directions(self.data, settings)
        return replace(self.first, settings=settings, training=self.first.training.replace(**steps), **changes)

    def run(
        self, trials: Sequence[Trial], store: Store, progress: OnEvent | None, title: str = "", unit: str = "folds"
    ) -> list[TrialResult]:
        """Runs trials on the data, those that the store does not have yet.

        Args:
            trials: what to run.
            store: where results go.
            progress: called with every event; None shows bars on a terminal or in a notebook.
            title: of the bar of all trials.
            unit: what a trial is, in the plural.

        Returns:
            Their results, in the same order.

        Raises:
            Interrupted: after Ctrl-C, when checkpoints are stored.
        """
        done = sum(store.load(trial) is not None for trial in trials)
        with nullcontext(progress) if progress else progress_bars(trials, done, title) as on_event:
            tell = self._with_metric(store, on_event)
            complete = run_trials(trials, self.reference, store, on_event=tell, **self.options)
        results = [result for trial in trials if (result := store.load(trial)) is not None]
        if not complete:
            raise Interrupted(f"stopped with {len(results)} of {len(trials)} {unit} done")
        return results

    def _with_metric(self, store: Store, on_event: OnEvent) -> OnEvent:
        """The events of trials that have ended get their score by the first metric, from the stored predictions."""
        metric = self.metrics[0]
        if metric == self.first.test_metric:
            return on_event

        def tell(event: Event) -> None:
            if event.trial.tested and event.epoch == event.trial.training.epochs:
                result = store.load(event.trial)
                if result is not None and (found := result.predicted.get("test")) is not None:
                    event = event._replace(metric=metric, score=METRICS[metric](found.y, found.values))
            on_event(event)

        return tell


def prepare_run(
    dataset: AnyDataset,
    model: str,
    *,
    protocol: str,
    pool: str | type | None,
    conv: str | type | None,
    metric: str | Iterable[str] | None,
    select_by: str | None,
    split: str | Path | None,
    class_weight: str | None,
    folds: int,
    only_folds: Iterable[int] | None,
    epochs: int | None,
    seed: int,
    new_folds: bool,
    features: Features | None,
    data_dir: str | Path | None,
    jobs: int | None,
    threads: int,
    device: str,
    devices: int,
    cluster: Cluster | None,
    checkpoint_every: int,
    reproducible: bool,
    reading: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
    tested: bool = True,
) -> Setup:
    """Checks what a user asks for, loads the data and describes the first trial.

    Args are those of `cross_validate`. Without ``tested``, the folds are for validation and nothing is tested.

    Raises:
        SettingError: for a setting that does not exist or does not fit.
        DataError: for data that cannot be read or learned from.
    """
    counts = {"jobs": jobs, "threads": threads, "devices": devices, "checkpoint_every": checkpoint_every}
    check_counts(**counts)
    if reproducible:
        require_reproducible()
        device = "cpu" if device == "auto" else device
    if devices > 1 and cluster is not None:
        raise SettingError("several devices share a fold, a cluster takes whole folds: choose one of them")
    if devices > 1:
        from tapnet.experiments.backends.fabric import require_fabric

        require_fabric()
    spec = find_model(model)
    if spec.fit is not None and devices > 1:
        raise SettingError(f"the model {model} is no network, so several devices have nothing to share")
    own_pool = "" if pool is None else find_name(pool, allow_import=True)  # a class of the user's own is known now
    own_conv = "" if conv is None else find_conv(conv, allow_import=True)
    layers = {"pool": own_pool or None, "conv": own_conv or None}
    given = {name: value for name, value in {**layers, **settings}.items() if value is not None}
    steps = _training_settings(spec, given)
    own = {name: value for name, value in given.items() if name not in steps}
    features = check_features(features)
    if class_weight not in (None, "balanced"):
        raise SettingError(f"class_weight is 'balanced' or None, not {class_weight!r}")
    only_here = [name for name in (own_pool, own_conv) if name.startswith("__main__:") or "<locals>" in name]
    if only_here and (devices > 1 or cluster is not None):
        raise SettingError(f"other processes cannot import {only_here[0]}: put the class into a module")
    spec.make_settings("", own)  # what is wrong with them is said before anything is read
    options_of_reading = dict(reading or {})
    if isinstance(dataset, GraphDataset):
        data = dataset
    else:
        data = load_dataset(dataset, data_dir, features=features, **options_of_reading)
    data = data if features in (None, data.features) else data.with_features(features)
    source = str(dataset) if isinstance(dataset, str | os.PathLike) else ""
    require_targets(data)
    spec.check_task(data)
    if class_weight is not None and data.task == "regression":
        raise SettingError(f"class_weight is for classes and labels, and the task of {data.name} is {data.task}")
    data = replace(data, splits=choose_splits(split, data, folds))
    if not tested:
        data = replace(data, splits=validation_splits(data, folds))
    folds = folds if data.splits is None else len(data.splits.parts)
    rules = check_protocol(protocol, folds, own_splits=data.splits is not None)
    numbers = list(range(folds)) if only_folds is None else sorted(set(only_folds))
    if not numbers:
        raise SettingError("only_folds names no fold")
    for number in numbers:
        check_protocol(protocol, folds, number, data.splits is not None)
    if new_folds and data.splits is not None and data.splits.groups is None:
        raise SettingError(f"the folds of {data.splits.name} are given: they cannot be drawn anew for each seed")
    measured = [m.name for m in find_metrics(metric, data.task)]
    chooser = "" if select_by in (None, "loss") else find_metrics(select_by, data.task)[0].name
    reference = DataReference(
        source, data_dir, True, features, dataset=data, reading=options_of_reading, splits=data.splits
    )
    usual, usual_steps = usual_settings(spec, data, own)
    chosen = spec.make_settings(data.name, {**usual, **own})
    steps = {**spec.training, **usual_steps, **steps}
    epochs = steps.get("epochs", USUAL_EPOCHS) if epochs is None else epochs
    spec.check_directions(data, chosen)
    prepared = spec.prepare(data, chosen)  # computed here with a bar; the folds find it in the cache
    notes = [features_note(data, reads_edges=spec.reads_edges(chosen)), spec.weights_note(data, chosen)]
    if spec.fit is None:
        notes.append(validation_note(data.splits, rules))
    fold_seed = seed if new_folds else 0
    parts = list(splits(data, rules, folds, numbers, fold_seed))
    held_out = [part.test if tested else part.validation for part in parts]
    notes.append(copies_note(prepared, [np.zeros(0, np.int64) if p is None else p.numpy() for p in held_out]))
    first = Trial(
        dataset=data.name,
        data=prepared.checksum,
        model=model,
        settings=chosen,
        protocol=rules,
        fold=numbers[0],
        folds=folds,
        training=TrainingSettings(**{**steps, "epochs": epochs if spec.fit is None else 1}),
        seed=seed,
        threads=threads,
        device=find_device(device),
        devices=devices,
        pool_source=source_digest(own_pool) + conv_digest(own_conv),
        task=data.task,
        split="" if data.splits is None else f"{data.splits.name}#{data.splits.digest}",
        select_by=chooser,
        class_weight=class_weight or "",
        reproducible=reproducible,
        fold_seed=fold_seed,
        tested=tested,
    )
    if spec.fit is None:
        _check_card(first, data)
    options: dict[str, Any] = {
        "jobs": 1 if only_here or _has_values_of_main(data) else jobs or max(1, available_cores() // threads),
        "cluster": cluster,
        "checkpoint_every": checkpoint_every,
        "pools": [own_pool] if ":" in own_pool else [],
    }
    about_data = tuple(f"{printable(data.name)}: {note}" for note in notes if note)
    return Setup(spec, data, reference, first, numbers, measured, about_data, given, options)


def _has_values_of_main(data: GraphDataset) -> bool:
    """Whether classes or categories are of a type that only the user's script has, which other processes do not run."""
    values = (data.classes, data.categories, data.node_label_values, data.edge_label_values)
    return any(type(value).__module__ == "__main__" for some in values for value in some or ())


def check_counts(**counts: int | None) -> None:
    """A ``SettingError`` for the first that is below 1; None is as it is where nothing was asked for."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise SettingError(f"{name} is at least 1, not {count}")


def check_search(search: str) -> None:
    """A ``SettingError`` for a search that is not known, a ``TapnetError`` for one that needs what is not installed."""
    if search not in SEARCHES:
        near = did_you_mean(str(search), SEARCHES)
        raise SettingError(f"search is one of {', '.join(SEARCHES)}, not {search!r}{near}")
    if search == "tpe":
        require_optuna()


def require_optuna() -> Any:
    """The library, which is an extra."""
    try:
        import optuna
    except ImportError:
        raise TapnetError("search 'tpe' needs Optuna: pip install optuna") from None
    return optuna


def _check_card(trial: Trial, data: GraphDataset) -> None:
    """Refuses data of which no model file could speak, before anything is trained."""
    try:
        describe_model(trial, data)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise SettingError(f"{data.name}: a model of this data set could not be read again: {reason}") from None


def _training_settings(spec: ModelSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of training among ``given``; the others are the system's."""
    names = {*TrainingSettings.names()} - {"epochs"}
    spec.settings.check_names(given, f"the model {spec.name}", also=names)
    values = {name: value for name, value in given.items() if name in names}
    if spec.fit is not None and values:
        raise SettingError(f"the model {spec.name} is not trained in steps: it has no {', '.join(values)}")
    return values


def usual_settings(
    spec: ModelSpec, data: GraphDataset, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a system has for molecules in the place of its paper's settings: its own, and those of training.

    Args:
        spec: the system.
        data: the data set.
        given: settings of the system that were chosen; what does not go with them is left out.

    Returns:
        Settings of the system, and of training.
    """
    values = dict(spec.molecules) if data.smiles is not None else {}
    for name in spec.excluded_by(given):
        values.pop(name, None)
    if "conv" in values and not data.num_edge_features:
        values["conv"] = "gin"  # molecules without a bond
    steps = {name: values.pop(name) for name in TrainingSettings.names() if name in values}
    return values, steps
