"""Cross-validation: a system trained on every fold of a data set, and perhaps a final model of all graphs."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from tapnet.data.checks import copies_note, features_note
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataNote, SettingError
from tapnet.experiments.backends.pool import DataReference, Event, run_trials
from tapnet.experiments.backends.processes import available_cores, torchrun_rank
from tapnet.experiments.final import FinalTrial, is_of_another_run, train_final
from tapnet.experiments.predictions import write_predictions
from tapnet.experiments.progress import progress_bars
from tapnet.experiments.run_trial import CHECKPOINT_EVERY, Interrupted, describe_model
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary, changed_settings, or_null
from tapnet.experiments.trial import Trial, digest
from tapnet.files import printable
from tapnet.inference.model_file import FINAL_MODEL, read_model
from tapnet.io.graph_folder import require_targets
from tapnet.io.load import check_features, load_dataset
from tapnet.io.splits import choose_splits
from tapnet.machine import require_reproducible
from tapnet.models.registry import find_model
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv.registry import conv_digest, find_conv
from tapnet.nn.pool.registry import find_name, source_digest
from tapnet.progress import counting
from tapnet.training.baseline import baseline_warning, trivial_scores
from tapnet.training.device import find_device
from tapnet.training.metrics import METRICS, find_metrics
from tapnet.training.protocol import check_protocol, splits
from tapnet.training.settings import TrainingSettings

if TYPE_CHECKING:
    from tapnet.experiments.backends.ray import Cluster


USUAL_EPOCHS = 200


@dataclass(frozen=True, repr=False)
class CrossValidation(Summary):
    """The result of `cross_validate`: the folds' results, and what they amount to.

    Attributes:
        results: of the folds, with their curves.
        folder: of the run, with results and models; None where nothing was kept.
        final: the file of the final model, if one was asked for.
        data: where the data came from, and their checksum.
        baseline: by metric, what always predicting the majority class of the training graphs gives on the same test
            folds, in percent; None for a run that was stored without it.
        notes: what there is to know of the data: what is not used, copies of a graph in several folds.

    Its properties are those of `Summary`: ``mean``, ``std``, ``scores``, ``rules``, ``other_readings``.
    """

    folder: Path | None = None
    final: Path | None = None
    data: Mapping[str, str] | None = None
    baseline: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def baseline_warning(self) -> str:
        """One sentence where the mean is not better than the baseline; else an empty string."""
        return baseline_warning(self.mean, self.baseline, self.metric)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that are not those of the system's paper."""
        return changed_settings(self.results[0].trial)

    def __repr__(self) -> str:
        known = self.baseline is not None and self.metric in self.baseline
        return f"{super().__repr__()}{f'; {self.baseline_in_words}' if known else ''}"

    @property
    def baseline_in_words(self) -> str:
        """What the trivial predictor gives by the first metric; the baseline has to be known."""
        assert self.baseline is not None
        who = "majority class" if self.metric == "accuracy" else "the same for every graph"
        return f"{who}: {METRICS[self.metric].in_words(self.baseline[self.metric])}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it, the settings and keys of the trials included."""
        values = super().to_dict() | {
            "changed": self.changed,
            "trials": [r.trial.key for r in self.results],
            "data": self.data,
            "baseline": None if self.baseline is None else {k: or_null(v) for k, v in self.baseline.items()},
            "baseline_warning": self.baseline_warning or None,
            "notes": list(self.notes),
            "folder": None if self.folder is None else str(self.folder),
        }
        if self.final is not None:
            card, size = read_model(self.final)[1], self.final.stat().st_size
            values["final"] = {"file": str(self.final), "bytes": size, "members": 1, **card.to_dict()["final"]}
        return values


def cross_validate(
    dataset: str | Path | GraphDataset,
    model: str = "tapnet",
    *,
    pool: str | type | None = None,
    conv: str | type | None = None,
    protocol: str = "fair",
    metric: str | Iterable[str] | None = None,
    select_by: str | None = None,
    split: str | Path | None = None,
    class_weight: str | None = None,
    folds: int = 10,
    only_folds: Iterable[int] | None = None,
    epochs: int | None = None,
    seed: int = 0,
    features: Features | None = None,
    data_dir: str | Path | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    threads: int = 1,
    device: str = "auto",
    devices: int = 1,
    cluster: Cluster | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    final: bool | Literal["single", "ensemble"] = False,
    reproducible: bool = False,
    progress: Callable[[Event], None] | None = None,
    reading: Mapping[str, Any] | None = None,
    **settings: Any,
) -> CrossValidation:
    """Trains a system on every fold of a data set and reports its accuracy with the protocol behind it.

    With the same ``out`` the same call does only what is missing: folds that are stored are not trained again, and
    those that were interrupted continue from their last checkpoint, to the same numbers.

    Args:
        dataset: a name (``"MUTAG"``), a path as `load_dataset` takes it, or a data set.
        model: the name of the system.
        pool: the pooling layer of TAPNet: a name, ``"package.module:Class"``, or a class of the user's own.
        conv: its convolution: ``"gcn"``, ``"gin"``, ``"gine"`` (reads edges), ``"sage"``, ``"gat"``, a class of PyG or
            ``"package.module:Class"``.
        protocol: which epoch's test accuracy counts. ``"fair"``: the one with the lowest validation loss;
            ``"paper"``: the best one, which is known only afterwards.
        metric: one or several (a list, or separated by commas); the first decides what ``mean`` and ``scores`` are.
            None means accuracy, the ROC-AUC of several labels, or the RMSE of numbers. Accuracies are in percent.
        select_by: the metric on the validation graphs that chooses the epoch of ``fair``, and on the test graphs that
            of ``paper``; None means the validation loss, and the usual metric.
        split: ``"random"``, ``"scaffold"``, ``"group:COLUMN"``, ``"column:NAME"``, ``"deduplicate"``, or a JSON file;
            see `tapnet.io.splits.choose_splits`. None and ``"random"`` mean stratified folds.
        class_weight: ``"balanced"`` gives every class the same weight in the loss.
        folds: the number of folds.
        only_folds: the numbers of those to run, from 0; None runs all.
        epochs: of training on a fold; None means 200, or what the system has for molecules.
        seed: of initial weights, order and dropout.
        features: what a node is: "labels", "degrees" or "attributes"; None chooses as `load_dataset` does.
        data_dir: the folder with data sets by name.
        out: the folder for results, models and checkpoints; None keeps nothing. ``{run}`` in it stands for a name
            that is made of the settings.
        jobs: folds at a time; None takes as many as there are cores for their threads.
        threads: of one fold; sums round differently with another number.
        device: "cpu", "cuda", or "auto".
        devices: processes that share each step of a fold.
        cluster: the Ray cluster to run folds on.
        checkpoint_every: so many epochs.
        final: whether to train a model on all graphs as well; it needs ``out``. ``"ensemble"`` keeps the folds' models
            in one file instead, whose prediction is their mean.
        reproducible: whether to use only arithmetic that every processor of a kind has: slower, and the same bits on
            each. Python has to be started with some variables set; a ``SettingError`` says which.
        progress: called with an `Event` after every epoch; None shows bars on a terminal or in a notebook.
        reading: how the data are read, by name as `load_dataset` takes it: ``{"smiles": …, "target": …, "task": …}``.
        **settings: of the system or of training, by name, such as ``lr=0.01``.

    Returns:
        Mean, deviation and scores of the folds, with everything behind them.

    Raises:
        SettingError: for a setting that does not exist or does not fit.
        DataError: for data that cannot be read or learned from.
        Interrupted: a ``KeyboardInterrupt``, after Ctrl-C, when checkpoints are stored.

    Warns:
        DataNote: for what is not used of the data, and for copies of a graph in several folds.
        UserWarning: for a mean that is not above the majority class.

    Example:
        >>> import tapnet
        >>> result = tapnet.cross_validate("MUTAG", epochs=2, folds=3, only_folds=[0])
        >>> result.scores == [result.mean]
        True
    """
    counts = {"jobs": jobs, "threads": threads, "devices": devices, "checkpoint_every": checkpoint_every}
    for name, count in counts.items():
        if count is not None and count < 1:
            raise SettingError(f"{name} is at least 1, not {count}")
    if reproducible:
        require_reproducible()
        device = "cpu" if device == "auto" else device
    if devices > 1 and cluster is not None:
        raise SettingError("several devices share a fold, a cluster takes whole folds: choose one of them")
    if devices > 1:
        from tapnet.experiments.backends.fabric import require_fabric

        require_fabric()
    if final not in (True, False, "single", "ensemble"):
        raise SettingError(f"final is True, False, 'single' or 'ensemble', not {final!r}")
    if final and out is None:
        raise SettingError("a final model needs a folder to be kept in: give out")
    spec = find_model(model)
    if spec.fit is not None and (devices > 1 or final):
        lacks = "several devices have nothing to share" if devices > 1 else "there is no final model to save"
        raise SettingError(f"the model {model} is no network, so {lacks}")
    own_pool = "" if pool is None else find_name(pool, allow_import=True)  # a class of the user's own is known now
    own_conv = "" if conv is None else find_conv(conv, allow_import=True)
    layers = {"pool": own_pool or None, "conv": own_conv or None}
    given = {name: value for name, value in {**layers, **settings}.items() if value is not None}
    steps = _training_settings(spec, given)  # of training; the rest of what was given is the system's
    features = check_features(features)
    if class_weight not in (None, "balanced"):
        raise SettingError(f"class_weight is 'balanced' or None, not {class_weight!r}")
    only_here = [name for name in (own_pool, own_conv) if name.startswith("__main__:") or "<locals>" in name]
    if only_here and (devices > 1 or cluster is not None):
        raise SettingError(f"other processes cannot import {only_here[0]}: put the class into a module")
    spec.make_settings("", given)  # what is wrong with them is said before anything is read
    options_of_reading = dict(reading or {})
    if isinstance(dataset, GraphDataset):
        data = dataset
    else:
        data = load_dataset(dataset, data_dir, features=features, **options_of_reading)
    data = data if features in (None, data.features) else data.with_features(features)
    source = "" if isinstance(dataset, GraphDataset) else str(dataset)
    require_targets(data)
    if data.task != "classification" and (spec.fit is not None or class_weight is not None):
        what = f"the model {model} predicts classes" if spec.fit is not None else "class_weight is for classes"
        raise SettingError(f"{what}, and the targets of {data.name} are none: its task is {data.task}")
    data = replace(data, splits=choose_splits(split, data, folds))
    folds = folds if data.splits is None else len(data.splits.parts)
    rules = check_protocol(protocol, folds, own_splits=data.splits is not None)
    numbers = list(range(folds)) if only_folds is None else sorted(set(only_folds))
    if not numbers:
        raise SettingError("only_folds names no fold")
    if final == "ensemble" and len(numbers) < 2:
        raise SettingError("an ensemble is made of the models of several folds, and there is one")
    for number in numbers:
        check_protocol(protocol, folds, number, data.splits is not None)
    measured = [m.name for m in find_metrics(metric, data.task)]
    chooser = "" if select_by in (None, "loss") else find_metrics(select_by, data.task)[0].name
    reference = DataReference(
        source, data_dir, True, features, dataset=data, reading=options_of_reading, splits=data.splits
    )
    usual, usual_steps = _usual_settings(spec, data)
    chosen = spec.make_settings(data.name, {**usual, **given})
    steps = {**spec.training, **usual_steps, **steps}
    epochs = steps.get("epochs", USUAL_EPOCHS) if epochs is None else epochs
    prepared = spec.prepare(data, chosen)  # computed here with a bar; the folds find it in the cache
    notes = [features_note(data, reads_edges=prepared.edge_attr is not None)]
    if data.edge_weight is not None and not spec.reads_weights:
        notes.append(f"{model} does not use the edges' weights")
    parts = list(splits(data, rules, folds, numbers))
    notes.append(copies_note(prepared, [part.test.numpy() for part in parts]))
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
    )
    if spec.fit is None:
        _check_card(first, data)
    trials = [replace(first, fold=fold) for fold in numbers]
    options: dict[str, Any] = {
        "jobs": 1 if only_here or _has_values_of_main(data) else jobs or max(1, available_cores() // threads),
        "cluster": cluster,
        "checkpoint_every": checkpoint_every,
        "pools": [own_pool] if ":" in own_pool else [],
    }
    if torchrun_rank() > 0:  # the first process of the group has the store, and the result
        run_trials(trials, reference, Store(Path()), **options)
        return CrossValidation([])
    kept = None if out is None else str(out).replace("{run}", _run_name(first))
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="tapnet-") as folder:
        store = Store(Path(folder), keeps_predictions=True)
        about_data = tuple(f"{printable(data.name)}: {note}" for note in notes if note)
        found = _run(trials, data, reference, store, progress, options, about_data)
        names = dict.fromkeys([*measured, first.test_metric])
        baseline = trivial_scores(data, parts, [METRICS[name] for name in names])
        found = replace(found, metrics=measured, baseline=baseline)
        write_predictions(store.folder / "predictions.csv", found.results, data)
        found = found if kept else replace(found, folder=None)
        if final:
            found = replace(found, final=_train_final(found, data, store, checkpoint_every, final == "ensemble"))
        elif is_of_another_run(store.folder / FINAL_MODEL, found):
            warnings.warn(f"{store.folder / FINAL_MODEL} is of an earlier run with other settings", stacklevel=2)
        store.save_run({**found.to_dict(), "state": "complete"})
        if found.baseline_warning:
            warnings.warn(f"{printable(data.name)}, {model}: {found.baseline_warning}", stacklevel=2)
        return found


def _run(
    trials: Sequence[Trial],
    data: GraphDataset,
    reference: DataReference,
    store: Store,
    progress: Callable[[Event], None] | None,
    options: Mapping[str, Any],
    notes: tuple[str, ...],
) -> CrossValidation:
    done = sum(store.load(trial) is not None for trial in trials)
    origin = _origin(data, store.folder)
    about = {"trials": [t.key for t in trials], "data": origin, "folder": str(store.folder)}
    store.save_run({**trials[0].to_dict(), "state": "running", **about})  # also shows at once if it cannot be written
    for note in notes:
        warnings.warn(note, DataNote, stacklevel=3)
    with nullcontext(progress) if progress else progress_bars(trials, done) as on_event:
        complete = run_trials(trials, reference, store, on_event=on_event, **options)
    results = [result for trial in trials if (result := store.load(trial)) is not None]
    if not complete:
        raise Interrupted(f"stopped with {len(results)} of {len(trials)} folds done")
    return CrossValidation(results, folder=store.folder, data=origin, notes=notes)


def _has_values_of_main(data: GraphDataset) -> bool:
    """Whether classes or categories are of a type that only the user's script has, which other processes do not run."""
    values = (data.classes, data.categories, data.node_label_values, data.edge_label_values)
    return any(type(value).__module__ == "__main__" for some in values for value in some or ())


def _origin(data: GraphDataset, folder: Path) -> dict[str, str]:
    """Where the data were found: absolute, and relative to the run, which may be moved or shared with its data."""
    source, relative = str(Path(data.source).resolve()) if data.source else "", ""
    if source:
        with suppress(ValueError):  # another drive
            relative = os.path.relpath(source, folder.resolve())
    return {"source": source, "relative": relative, "checksum": data.checksum}


def _train_final(
    found: CrossValidation, data: GraphDataset, store: Store, checkpoint_every: int, ensemble: bool
) -> Path:
    store.save_run({**found.to_dict(), "state": "complete"})  # of the folds, should this be stopped
    epochs = FinalTrial.after(found).training.epochs
    try:
        if ensemble:
            return train_final(found, data, store, ensemble=True)
        with counting(epochs, f"final model, all {len(data)} graphs: epochs") as advance:
            return train_final(found, data, store, checkpoint_every=checkpoint_every, progress=advance)
    except KeyboardInterrupt:
        raise Interrupted("stopped while training the final model") from None


def _check_card(trial: Trial, data: GraphDataset) -> None:
    """Refuses data of which no model file could speak, before anything is trained."""
    try:
        describe_model(trial, data)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise SettingError(f"{data.name}: a model of this data set could not be read again: {reason}") from None


def _training_settings(spec: ModelSpec, given: dict[str, Any]) -> dict[str, Any]:
    """The settings of training among ``given``, which are taken out of it."""
    names = {*TrainingSettings.names()} - {"epochs"}
    spec.settings.check_names(given, f"the model {spec.name}", also=names)
    values = {name: given.pop(name) for name in names & given.keys()}
    if spec.fit is not None and values:
        raise SettingError(f"the model {spec.name} is not trained in steps: it has no {', '.join(values)}")
    return values


def _usual_settings(spec: ModelSpec, data: GraphDataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a system has for molecules in the place of its paper's settings: its own, and those of training."""
    values = dict(spec.molecules) if data.smiles is not None else {}
    if "conv" in values and not data.num_edge_features:
        values["conv"] = "gin"  # molecules without a bond
    steps = {name: values.pop(name) for name in TrainingSettings.names() if name in values}
    return values, steps


def _run_name(trial: Trial) -> str:
    """One name for trials that differ only in their fold."""
    same = {key: value for key, value in trial.to_dict().items() if key != "fold"}
    pool = str(getattr(trial.settings, "pool", "tap")).rpartition(":")[2]
    layer = "" if pool == "tap" else f"-{pool}"
    return f"{trial.dataset}-{trial.model}{layer}-{trial.protocol}-{digest(same)[:8]}"
