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

import numpy as np

from tapnet.data.dataset import Features, GraphDataset
from tapnet.data.splits import Split
from tapnet.errors import DataNote, SettingError
from tapnet.experiments.backends.pool import Event, run_trials
from tapnet.experiments.backends.processes import torchrun_rank, torchrun_size
from tapnet.experiments.final import FinalTrial, is_of_another_run, train_final
from tapnet.experiments.predictions import write_predictions
from tapnet.experiments.run_trial import CHECKPOINT_EVERY, Interrupted
from tapnet.experiments.setup import Search, check_counts, check_search, prepare_run
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial, digest
from tapnet.files import printable
from tapnet.inference.model_file import FINAL_MODEL, read_model
from tapnet.io.load import AnyDataset
from tapnet.io.splits import write_splits
from tapnet.models.registry import find_model
from tapnet.progress import counting
from tapnet.training.baseline import Baseline, baseline_in_words, baseline_warning, trivial_scores
from tapnet.training.metrics import METRICS
from tapnet.training.protocol import splits, without_validation

if TYPE_CHECKING:
    from tapnet.experiments.backends.ray import Cluster


@dataclass(frozen=True, repr=False)
class CrossValidation(Summary):
    """The result of `cross_validate`: the folds' results, and what they amount to.

    Attributes:
        results: of the folds, with their curves.
        folder: of the run, with results and models; None where nothing was kept.
        final: the file of the final model, if one was asked for.
        data: where the data came from, and their checksum.
        baseline: by metric, what always predicting the majority class (or the mean) of the training graphs gives on the
            same test folds, None where that is not defined; None for a run that was stored without it.
        notes: what there is to know of the data: what was left out when they were read, what is not used, copies of a
            graph in several folds.
        splits: the graphs that train, validate and test in each fold; None for a run that was loaded.
        sizes: the mean numbers of graphs that ``train``, ``validate`` and ``test`` in a fold; None for a run that was
            stored without them.

    Its properties are those of `Summary`: ``mean``, ``std``, ``scores``, ``rules``, ``other_readings``.
    """

    folder: Path | None = None
    final: Path | None = None
    data: Mapping[str, str] | None = None
    baseline: Baseline | None = None
    notes: tuple[str, ...] = ()
    splits: Sequence[Split] | None = None
    sizes: Mapping[str, float] | None = None

    def save_splits(self, file: str | Path) -> None:
        """Writes the splits of the folds to a JSON file, in the format of Errica and others; ``split`` takes it.

        Raises:
            SettingError: if the run was loaded from its folder, which does not hold them.
        """
        if self.splits is None:
            raise SettingError("a stored run does not hold its splits: run it again, which trains nothing anew")
        write_splits(Path(file), self.splits)

    @property
    def baseline_warning(self) -> str:
        """One sentence where the mean is not better than the baseline; else an empty string."""
        return baseline_warning(self.mean, self.baseline, self.metric)

    def __repr__(self) -> str:
        return "; ".join(filter(None, (super().__repr__(), self.baseline_in_words)))

    @property
    def baseline_in_words(self) -> str:
        """What the trivial predictor gives by each metric; an empty string where that is not known."""
        return baseline_in_words(self.baseline, *(self.metrics or [self.metric]))

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it, the settings and keys of the trials included."""
        values = super().to_dict() | {
            "changed": self.changed,
            "class_weight": self.results[0].trial.class_weight or None,
            "trials": [r.trial.key for r in self.results],
            "data": self.data,
            "baseline": None if self.baseline is None else dict(self.baseline),
            "baseline_warning": self.baseline_warning or None,
            "sizes": None if self.sizes is None else dict(self.sizes),
            "notes": list(self.notes),
            "folder": None if self.folder is None else str(self.folder),
        }
        if self.final is not None:
            card, size = read_model(self.final)[1], self.final.stat().st_size
            values["final"] = {"file": str(self.final), "bytes": size, "members": 1, **card.to_dict()["final"]}
        return values


def cross_validate(
    dataset: AnyDataset,
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
    seeds: int = 1,
    new_folds: bool = False,
    configs: int = 16,
    search: Search = "random",
    final_seeds: int = 3,
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
        dataset: a name (``"MUTAG"``), a path, or a data set in memory (ours, PyG's, OGB's, a list of graphs, a
            DataFrame with SMILES or graphs), as `load_dataset` takes it.
        model: the name of the system.
        pool: the pooling layer of TAPNet: a name, ``"package.module:Class"``, or a class of the user's own.
        conv: its convolution: ``"gcn"``, ``"gin"``, ``"gine"`` (reads edges), ``"sage"``, ``"gat"``, a class of PyG or
            ``"package.module:Class"``.
        protocol: which epoch's test accuracy counts. ``"fair"``: the one with the lowest validation loss;
            ``"paper"``: the best one, which is known only afterwards; ``"nested"``: as ``"fair"``, with settings that
            are chosen for each fold on a tenth of its training graphs, and ``final_seeds`` trainings, whose mean is the
            fold's score.
        metric: one or several (a list, or separated by commas); the first decides what ``mean`` and ``scores`` are.
            None means accuracy, the ROC-AUC of several labels, or the RMSE of numbers. Accuracies are in percent.
        select_by: the metric on the validation graphs that chooses the epoch of ``fair``, and on the test graphs that
            of ``paper``; None means the validation loss, and the usual metric.
        split: ``"random"``, ``"scaffold"``, ``"group:COLUMN"``, ``"column:NAME"``, ``"deduplicate"``, or a JSON file;
            see `tapnet.io.splits.choose_splits`. None and ``"random"`` mean stratified folds.
        class_weight: ``"balanced"`` gives every class the same weight in the loss, and yes and no of each label.
        folds: the number of folds.
        only_folds: the numbers of those to run, from 0; None runs all.
        epochs: of training on a fold; None means 200, or what the system has for molecules.
        seed: of initial weights, order and dropout.
        seeds: every fold is trained with so many: ``seed``, ``seed + 1``, …; ``scores`` has one for each seed and fold.
        new_folds: whether each seed draws folds of its own (repeated cross-validation).
        configs: of protocol ``"nested"``: how many configurations are tried for each fold.
        search: of protocol ``"nested"``: how they are drawn, see `tapnet.tune`.
        final_seeds: of protocol ``"nested"``: how often the chosen configuration of a fold is trained and tested.
        features: what a node is: "labels", "degrees", "log-degrees", "attributes" or "all"; None chooses as
            `load_dataset` does.
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
    check_counts(seeds=seeds, configs=configs, final_seeds=final_seeds)
    check_search(search)
    if final not in (True, False, "single", "ensemble"):
        raise SettingError(f"final is True, False, 'single' or 'ensemble', not {final!r}")
    if final and out is None:
        raise SettingError("a final model needs a folder to be kept in: give out")
    if final and find_model(model).fit is not None:
        raise SettingError(f"the model {model} is no network, so there is no final model to save")
    if protocol == "nested" and final:
        raise SettingError(
            "nested chooses settings for each fold: for a final model, tune and train with what it finds"
        )
    if protocol == "nested" and (devices > 1 or torchrun_size()):
        raise SettingError("nested trains many trials, one on each device: several devices cannot share a fold")
    setup = prepare_run(
        dataset,
        model,
        protocol=protocol,
        pool=pool,
        conv=conv,
        metric=metric,
        select_by=select_by,
        split=split,
        class_weight=class_weight,
        folds=folds,
        only_folds=only_folds,
        epochs=epochs,
        seed=seed,
        new_folds=new_folds,
        features=features,
        data_dir=data_dir,
        jobs=jobs,
        threads=threads,
        device=device,
        devices=devices,
        cluster=cluster,
        checkpoint_every=checkpoint_every,
        reproducible=reproducible,
        reading=reading,
        settings=settings,
    )
    data, first, numbers = setup.data, setup.first, setup.numbers
    if final == "ensemble" and len(numbers) < 2:
        raise SettingError("an ensemble is made of the models of several folds, and there is one")
    draws = {seed + i: seed + i if new_folds else 0 for i in range(seeds)}  # the seed of the folds by that of training
    trials = [replace(first, fold=fold, seed=s, fold_seed=drawn) for s, drawn in draws.items() for fold in numbers]
    if torchrun_rank() > 0:  # the first process of the group has the store, and the result
        run_trials(trials, setup.reference, Store(Path()), **setup.options)
        return CrossValidation([])
    search_of: dict[str, Any] = {}
    if protocol == "nested":
        search_of = {"configs": configs, "search": search, "final_seeds": final_seeds}
    kept = None if out is None else str(out).replace("{run}", run_name(first, **search_of))
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="tapnet-") as folder:
        store = Store(Path(folder), keeps_predictions=True)
        origin = _origin(data, store.folder)
        about = {"trials": [t.key for t in trials], "data": origin, "folder": str(store.folder)}
        store.save_run({**first.to_dict(), "state": "running", **about})  # also shows at once if it cannot be written
        for note in setup.notes:
            warnings.warn(note, DataNote, stacklevel=2)
        if protocol == "nested":
            from tapnet.experiments.nested import nested_validation

            found: CrossValidation = nested_validation(setup, draws, store, progress, **search_of)
        else:
            found = CrossValidation(setup.run(trials, store, progress))
        parts = [
            part
            for drawn in dict.fromkeys(draws.values())
            for part in splits(data, first.protocol, first.folds, numbers, drawn)
        ]
        names = dict.fromkeys([*setup.metrics, first.test_metric])
        learned_from = parts if setup.spec.fit is None else [without_validation(part) for part in parts]
        baseline = trivial_scores(data, learned_from, [METRICS[name] for name in names])
        notes = tuple(dict.fromkeys((*map(printable, data.notes), *setup.notes)))
        about_run: dict[str, Any] = {"folder": store.folder, "data": origin, "notes": notes, "baseline": baseline}
        about_run |= {"splits": parts, "sizes": _sizes(parts), "metrics": setup.metrics, "targets": _target_names(data)}
        found = replace(found, **about_run)
        for remark in found.remarks:
            warnings.warn(f"{printable(data.name)}, {model}: {remark}", DataNote, stacklevel=2)
        found = replace(found, notes=(*found.notes, *found.remarks))
        write_predictions(store.folder / "predictions.csv", found.results, data)
        found = found if kept else replace(found, folder=None)
        if final:
            found = replace(found, final=_train_final(found, data, store, checkpoint_every, final == "ensemble"))
        elif protocol != "nested" and is_of_another_run(store.folder / FINAL_MODEL, found):
            warnings.warn(f"{store.folder / FINAL_MODEL} is of an earlier run with other settings", stacklevel=2)
        store.save_run({**found.to_dict(), "state": "complete"})
        if found.baseline_warning and not setup.spec.baseline:
            warnings.warn(f"{printable(data.name)}, {model}: {found.baseline_warning}", stacklevel=2)
        return found


def _sizes(parts: Sequence[Split]) -> dict[str, float]:
    """The mean number of graphs in each part of the folds."""
    lengths = [(len(p.train), 0 if p.validation is None else len(p.validation), len(p.test)) for p in parts]
    return dict(zip(("train", "validate", "test"), map(float, np.mean(lengths, axis=0)), strict=True))


def _target_names(data: GraphDataset) -> tuple[str, ...]:
    """Those of the classes, or of the labels or numbers."""
    names = data.class_names or data.classes if data.task == "classification" else data.target_names or ()
    return tuple(printable(name) for name in names)


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


def run_name(trial: Trial, **more: Any) -> str:
    """One name for trials that differ only in their fold; and in what else there is to tell runs apart."""
    same = {key: value for key, value in trial.to_dict().items() if key != "fold"} | more
    usual = getattr(type(trial.settings)(), "pool", "")  # the system's own layer is not named
    pool = str(getattr(trial.settings, "pool", usual))
    layer = "" if pool == usual else f"-{pool.rpartition(':')[2]}"
    return f"{trial.dataset}-{trial.model}{layer}-{trial.protocol if trial.tested else 'tune'}-{digest(same)[:8]}"
