"""The search for settings: random or TPE, with successive halving on epochs, scored on validation graphs alone."""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tapnet.data.dataset import Features
from tapnet.errors import DataError, DataNote
from tapnet.experiments.backends.pool import Event, keeping_processes
from tapnet.experiments.cross_validate import run_name
from tapnet.experiments.run_trial import CHECKPOINT_EVERY
from tapnet.experiments.setup import (
    Search,
    Setup,
    check_counts,
    check_search,
    prepare_run,
    require_optuna,
    usual_settings,
)
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial, TrialResult, or_null
from tapnet.files import counted, read_regular, write_atomically
from tapnet.io.load import AnyDataset
from tapnet.training.metrics import METRICS

if TYPE_CHECKING:
    from tapnet.experiments.backends.ray import Cluster

KEPT = 3  # one in so many configurations goes on, for so many times the epochs
MOST_HALVINGS = 2  # so the first look is after a ninth of the epochs
TPE_BATCH = 8  # configurations that are drawn at a time: a fixed number, so that jobs do not matter
# What is tried of a system that declares no space of its own, as far as it has these settings.
GENERIC: Mapping[str, tuple[Any, ...]] = {
    "hidden_channels": (32, 64, 128),
    "dropout": (0.0, 0.3, 0.5),
    "lr": (0.0003, 0.001, 0.003, 0.01),
    "batch_size": (32, 128),
}
SETTINGS = "settings.json"
MAX_SETTINGS_BYTES = 1 << 26


@dataclass(frozen=True, repr=False)
class Tuning:
    """The result of `tune`.

    Attributes:
        dataset: the name of the data set.
        model: the name of the system.
        settings: what was found, of the system and of training, with what the user gave: `cross_validate` takes it as
            ``**settings``.
        score: the metric of the validation graphs.
        metric: its name.
        epochs: of training; None for a system without epochs.
        trials: a row for each configuration, the best first: its number, settings, the epochs that it was trained for,
            its score and its validation loss.
        search: how configurations were drawn.
        seed: of the draws and of training.
        validation: which graphs validate, in words.
        folder: where results are; None where nothing was kept.
    """

    dataset: str
    model: str
    settings: dict[str, Any]
    score: float
    metric: str
    epochs: int | None
    trials: list[dict[str, Any]]
    search: str
    seed: int
    validation: str
    folder: Path | None = None

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        best = METRICS[self.metric].in_words(self.score)
        tried = f"the best of {counted(len(self.trials), 'configuration')} on {self.validation}"
        return f"{self.dataset}, {self.model}: {found or 'the usual settings'} ({best}, {tried})"

    @property
    def file(self) -> Path | None:
        """``settings.json`` in the folder, if there is one."""
        return None if self.folder is None else self.folder / SETTINGS

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it; the content of ``settings.json``."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "settings": self.settings,
            "epochs": self.epochs,
            "metric": self.metric,
            "score": or_null(self.score),
            "validation": self.validation,
            "search": self.search,
            "configs": len(self.trials),
            "seed": self.seed,
            "trials": [
                {**row, "score": or_null(row["score"]), "validation_loss": or_null(row["validation_loss"])}
                for row in self.trials
            ],
            "folder": None if self.folder is None else str(self.folder),
        }

    def save(self, file: str | Path) -> None:
        """Writes a JSON file that `load_settings` and ``tapnet train --settings`` read."""
        write_atomically(Path(file), json.dumps(self.to_dict(), indent=1).encode())


def load_settings(file: str | Path) -> tuple[str | None, dict[str, Any]]:
    """Reads settings that `Tuning.save` wrote, or that somebody wrote by hand: ``{"model": …, "settings": {…}}``.

    Returns:
        The name of the model, if the file has one; and the settings, ``epochs`` among them if the file has it. A layer
        ``"package.module:Class"`` among them is imported by who trains with it: read a stranger's file first.

    Raises:
        DataError: if the file cannot be read.
    """
    try:
        content = json.loads(read_regular(Path(file), MAX_SETTINGS_BYTES))
        if not isinstance(content["settings"], dict):
            raise TypeError
        values = content["settings"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or 'an object with "settings" was expected'
        raise DataError(f"{file}: no settings can be read ({reason})") from None
    model, epochs = content.get("model"), content.get("epochs")
    if not isinstance(model, str | None) or not isinstance(epochs, int | None) or "epochs" in values:
        raise DataError(f'{file}: "model" is a name and "epochs" a whole number, both outside "settings"')
    return model, values if epochs is None else {"epochs": epochs, **values}


def tune(
    dataset: AnyDataset,
    model: str = "tapnet",
    *,
    pool: str | type | None = None,
    conv: str | type | None = None,
    configs: int = 32,
    search: Search = "random",
    halving: bool = True,
    metric: str | None = None,
    select_by: str | None = None,
    split: str | Path | None = None,
    class_weight: str | None = None,
    folds: int = 10,
    only_folds: Iterable[int] | None = (0,),
    epochs: int | None = None,
    seed: int = 0,
    features: Features | None = None,
    data_dir: str | Path | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    threads: int = 1,
    device: str = "auto",
    cluster: Cluster | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    reproducible: bool = False,
    progress: Callable[[Event], None] | None = None,
    reading: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Tuning:
    """Searches for settings of a system on a data set, by the score of validation graphs.

    The first configuration is the system's usual one; the others are drawn from the space that the system declares
    beside its settings (`ModelSpec.search`). The same seed gives the same configurations and the same result, however
    many run at a time; with the same ``out``, the same call does only what is missing.

    Args:
        dataset: as `cross_validate` takes it.
        model: the name of the system.
        pool: the pooling layer of TAPNet; it is not searched for.
        conv: its convolution; None searches among those of the space.
        configs: how many configurations are tried.
        search: ``"random"`` without repetition, or ``"tpe"``: Optuna's tree-structured Parzen estimator.
        halving: whether all are trained for a part of the epochs first and the best third goes on (successive
            halving); else all are trained to the end.
        metric: what is to be good on the validation graphs; None means as in `cross_validate`.
        select_by: the metric that chooses the epoch; None means the validation loss.
        split: as in `cross_validate`. Of splits in a file the validation graphs validate; test graphs are never read.
        class_weight: ``"balanced"`` gives every class the same weight in the loss, and yes and no of each label.
        folds: the number of folds.
        only_folds: the numbers of the folds that validate, each after training on all others; the score is their mean.
            The first alone is a stratified hold-out of a tenth of the graphs. None takes all.
        epochs: of training; None means as in `cross_validate`.
        seed: of the draws, and of initial weights, order and dropout.
        features: as in `cross_validate`.
        data_dir: the folder with data sets by name.
        out: the folder for results and ``settings.json``; None keeps nothing. ``{run}`` in it stands for a name.
        jobs: trainings at a time; None takes as many as there are cores for their threads.
        threads: of one training.
        device: "cpu", "cuda", or "auto".
        cluster: the Ray cluster to run on.
        checkpoint_every: so many epochs.
        reproducible: as in `cross_validate`.
        progress: called with an `Event` after every epoch; None shows bars on a terminal or in a notebook.
        reading: how the data are read.
        **settings: of the system or of training; what is given is not searched for.

    Returns:
        The settings that were found, and all that were tried.

    Raises:
        SettingError: for a setting that does not exist or does not fit.
        DataError: for data that cannot be read or learned from.
        TapnetError: if Optuna is needed and not installed.
        Interrupted: a ``KeyboardInterrupt``, after Ctrl-C, when checkpoints are stored.

    Example:
        >>> import tapnet
        >>> found = tapnet.tune("MUTAG", "gin", configs=2, epochs=2)
        >>> result = tapnet.cross_validate("MUTAG", "gin", epochs=2, folds=3, only_folds=[0], **found.settings)
    """
    check_counts(configs=configs)
    check_search(search)
    setup = prepare_run(
        dataset,
        model,
        protocol="nested",
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
        new_folds=False,
        features=features,
        data_dir=data_dir,
        jobs=jobs,
        threads=threads,
        device=device,
        devices=1,
        cluster=cluster,
        checkpoint_every=checkpoint_every,
        reproducible=reproducible,
        reading=reading,
        settings=settings,
        tested=False,
    )
    study = Study(setup, setup.numbers, configs, search, halving=halving, to_the_end=True)
    about = {"configs": configs, "search": search, "halving": halving, "folds": setup.numbers}
    kept = None if out is None else str(out).replace("{run}", run_name(setup.first, **about))
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="tapnet-") as folder:
        store = Store(Path(folder), keeps_predictions=True)
        for note in setup.notes:
            warnings.warn(note, DataNote, stacklevel=2)
        (candidates,) = run_studies([study], setup, store, progress)
        found = _tuning(setup, study, candidates, Path(folder) if kept else None)
        if found.file is not None:
            found.save(found.file)
        return found


def _tuning(setup: Setup, study: Study, candidates: Sequence[Candidate], folder: Path | None) -> Tuning:
    first, graphs = setup.first, setup.data.splits
    assert graphs is not None
    has_epochs = setup.spec.fit is None
    part = f"fold {setup.numbers[0]}" if len(setup.numbers) == 1 else f"{len(setup.numbers)} folds"
    rows = [
        {
            "config": one.number,
            "settings": one.settings,
            "epochs": one.epochs if has_epochs else None,
            "score": one.score,
            "validation_loss": one.loss,
            "seconds": sum(r.seconds for r in one.results),
        }
        for one in candidates
    ]
    best = candidates[0]
    return Tuning(
        first.dataset,
        first.model,
        {**setup.given, **best.settings},
        best.score,
        study.metric,
        first.training.epochs if has_epochs else None,
        rows,
        study.search,
        first.seed,
        f"{part} of {first.folds} for validation",
        folder,
    )


# ---- the space ----


def search_space(setup: Setup) -> dict[str, tuple[Any, ...]]:
    """The values that each setting may have: the system's own space, without what the user gave.

    Molecules have a convolution that reads bonds, which stays.
    """
    spec = setup.spec
    known = {*spec.settings.names(), *(("lr", "batch_size") if spec.fit is None else ())}
    space = spec.search or {name: values for name, values in GENERIC.items() if name in known}
    fixed = {*setup.given, *({"conv"} & usual_settings(spec, setup.data, setup.given)[0].keys())}
    return {name: tuple(values) for name, values in space.items() if name not in fixed}


def usual_configuration(setup: Setup, names: Iterable[str]) -> dict[str, Any]:
    """The values that the first trial has of these settings."""
    steps = setup.first.training
    return {
        name: getattr(setup.first.settings if name in setup.spec.settings.names() else steps, name) for name in names
    }


def draw_randomly(space: Mapping[str, Sequence[Any]], first: Mapping[str, Any], count: int, seed: int) -> list[Any]:
    """So many different configurations, or all that there are: the first is given, the others are drawn."""
    sizes = [len(values) for values in space.values()]
    total = math.prod(sizes)
    drawn = np.random.default_rng(seed).choice(total, size=min(count, total), replace=False).tolist()
    found = [dict(first)]
    for number in drawn:
        config = {}
        for name, values in space.items():
            number, place = divmod(number, len(values))
            config[name] = values[place]
        if config not in found:
            found.append(config)
    return found[:count]


# ---- the search ----


@dataclass
class Candidate:
    """A configuration, and what was found of it so far.

    Attributes:
        number: in the order of the draws, from 0.
        settings: of the system and of training.
        epochs: that it was trained for.
        results: of its folds.
        score: the mean of the metric over the validation graphs of the folds.
        loss: the mean of their loss, which decides between equal scores.
    """

    number: int
    settings: dict[str, Any]
    epochs: int = 0
    results: list[TrialResult] = field(default_factory=list)
    score: float = math.nan
    loss: float = math.nan


@dataclass(frozen=True)
class Study:
    """One search: the configurations that are tried on some folds, in rounds of more and more epochs.

    Args:
        setup: the system and the data.
        folds: the numbers of those whose validation graphs score a configuration.
        configs: how many are tried.
        search: how they are drawn.
        halving: whether only the best third of each round goes on.
        to_the_end: whether the last one is trained for all epochs too, so that its score is that of a whole training.
        seed: of the draws and of training; None means the setup's.
        fold_seed: of the folds.
    """

    setup: Setup
    folds: Sequence[int]
    configs: int
    search: Search = "random"
    halving: bool = True
    to_the_end: bool = False
    seed: int | None = None
    fold_seed: int = 0

    @property
    def metric(self) -> str:
        """The name of the metric that scores."""
        return self.setup.metrics[0]

    def rounds(self, configs: int) -> list[int]:
        """The epochs of each round."""
        epochs = self.setup.first.training.epochs
        halvings = 0
        while self.halving and KEPT ** (halvings + 1) <= configs and halvings < MOST_HALVINGS:
            halvings += 1
        return list(dict.fromkeys(math.ceil(epochs / KEPT**i) for i in range(halvings, -1, -1)))

    def run(self) -> Generator[list[Trial], list[TrialResult], list[Candidate]]:
        """The trials of one round after another, for whose results it waits; returns candidates, the best first."""
        space = search_space(self.setup)
        usual = usual_configuration(self.setup, space)
        wanted = min(self.configs, math.prod(map(len, space.values())) + 1) if space else 1
        if wanted == 1 and not self.to_the_end:
            return [Candidate(0, usual)]  # nothing to choose from
        rounds = self.rounds(wanted)
        candidates = yield from self._first_round(space, usual, rounds[0])
        left, out = self._ranked(candidates), list[Candidate]()
        for epochs in rounds[1:]:
            going_on = max(1, len(left) // KEPT)
            left, out = left[:going_on], left[going_on:] + out
            if len(left) == 1 and not self.to_the_end:
                break
            yield from self._trained(left, epochs)
            left = self._ranked(left)
        return left + out

    def _first_round(
        self, space: Mapping[str, Sequence[Any]], usual: dict[str, Any], epochs: int
    ) -> Generator[list[Trial], list[TrialResult], list[Candidate]]:
        seed = self.setup.first.seed if self.seed is None else self.seed
        if self.search == "random":
            drawn = draw_randomly(space, usual, self.configs, seed)
            candidates = [Candidate(i, config) for i, config in enumerate(drawn)]
            yield from self._trained(candidates, epochs)
            return candidates
        optuna = require_optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=TPE_BATCH)
        direction = "maximize" if METRICS[self.metric].higher_is_better else "minimize"
        study = optuna.create_study(direction=direction, sampler=sampler)
        candidates = [Candidate(0, usual)]
        yield from self._trained(candidates, epochs)
        for _ in range(self.configs):  # a batch that has nothing new ends it
            asked = [study.ask() for _ in range(min(TPE_BATCH, self.configs - len(candidates)))]
            places = [{name: one.suggest_int(name, 0, len(v) - 1) for name, v in space.items()} for one in asked]
            configs = [{name: values[at[name]] for name, values in space.items()} for at in places]
            known = len(candidates)
            for config in configs:
                if all(config != one.settings for one in candidates):
                    candidates.append(Candidate(len(candidates), config))
            yield from self._trained(candidates[known:], epochs)
            for one, config in zip(asked, configs, strict=True):
                score = next(c.score for c in candidates if c.settings == config)
                failed = math.isnan(score)
                study.tell(one, None if failed else score, state=optuna.trial.TrialState.FAIL if failed else None)
            if len(candidates) in (known, self.configs):
                break
        return candidates

    def _trained(self, candidates: Sequence[Candidate], epochs: int) -> Generator[list[Trial], list[TrialResult], None]:
        """Waits for the results of these after so many epochs."""
        if not candidates:
            return
        of = {"seed": self.setup.first.seed if self.seed is None else self.seed, "fold_seed": self.fold_seed}
        trials = [
            self.setup.trial({**one.settings, "epochs": epochs}, fold=fold, tested=False, **of)
            for one in candidates
            for fold in self.folds
        ]
        results = yield trials
        for i, one in enumerate(candidates):
            one.epochs, one.results = epochs, results[i * len(self.folds) : (i + 1) * len(self.folds)]
            one.score = float(np.mean([_validation_score(r, self.metric) for r in one.results]))
            one.loss = float(np.mean([_validation_loss(r) for r in one.results]))

    def _ranked(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The best first; of equal scores, the lower loss, then the one that was drawn first."""
        sign = -1 if METRICS[self.metric].higher_is_better else 1

        def rank(one: Candidate) -> tuple[float, float, int]:
            worst = math.inf
            return (
                worst if math.isnan(one.score) else sign * one.score,
                worst if math.isnan(one.loss) else one.loss,
                one.number,
            )

        return sorted(candidates, key=rank)


@keeping_processes()
def run_studies(
    studies: Sequence[Study], setup: Setup, store: Store, progress: Callable[[Event], None] | None
) -> list[list[Candidate]]:
    """Runs searches in step: what all of them ask for in a round is trained together.

    Args:
        studies: the searches.
        setup: the system and the data that they share.
        store: where results go.
        progress: called with every event; None shows bars.

    Returns:
        The candidates of each search, the best first.

    Raises:
        Interrupted: after Ctrl-C.
    """
    found: dict[int, list[Candidate]] = {}
    running = {i: study.run() for i, study in enumerate(studies)}
    asked = {i: _next(generator, None, i, found) for i, generator in running.items()}
    trained: set[Trial] = set()
    while waiting := {i: trials for i, trials in asked.items() if trials is not None}:
        every = list(dict.fromkeys(trial for trials in waiting.values() for trial in trials))
        epochs = f" × {every[0].training.epochs} epochs" if setup.spec.fit is None else ""
        title = f"choosing settings, {len(every)} trials{epochs}"
        results = dict(zip(every, setup.run(every, store, progress, title, "trials"), strict=True))
        trained.update(every)
        asked = {i: _next(running[i], [results[t] for t in trials], i, found) for i, trials in waiting.items()}
    for trial in trained:
        store.drop_checkpoint(trial)
    return [found[i] for i in range(len(studies))]


def _next(
    generator: Generator[list[Trial], list[TrialResult], list[Candidate]],
    results: list[TrialResult] | None,
    number: int,
    found: dict[int, list[Candidate]],
) -> list[Trial] | None:
    """What a search asks for next; None when it has ended, and what it found is there."""
    try:
        return next(generator) if results is None else generator.send(results)
    except StopIteration as ended:
        found[number] = ended.value
        return None


def _validation_score(result: TrialResult, metric: str) -> float:
    """The score of the validation graphs; NaN of a training that diverged, which is no candidate."""
    if math.isnan(_validation_loss(result)):
        return math.nan
    if metric == result.metric:
        return result.reading.score
    found = result.predicted["validation"]
    return METRICS[metric](found.y, found.values)


def _validation_loss(result: TrialResult) -> float:
    losses = result.curves.get("validation_loss")
    return losses[result.reading.epoch - 1] if losses else 0.0
