"""Nested cross-validation: settings chosen for each fold on a part of its training graphs, then trained and tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapnet.experiments.backends.pool import Event, keeping_processes
from tapnet.experiments.cross_validate import CrossValidation
from tapnet.experiments.setup import Search, Setup
from tapnet.experiments.store import Store
from tapnet.experiments.summary import deviation, weights_in_words
from tapnet.experiments.trial import Predicted, TrialResult, or_null
from tapnet.experiments.tune import Study, run_studies
from tapnet.files import counted
from tapnet.training.metrics import METRICS


@dataclass(frozen=True)
class OuterFold:
    """What was chosen for a fold, and the trainings with it.

    Attributes:
        fold: its number.
        seed: of the choice.
        settings: that were chosen, of the system and of training.
        validation: the score by which they were chosen; None where there was no choice.
        validation_epochs: how long they had been trained by then.
        configs: how many configurations there were to choose from.
        results: of the trainings that were tested, which differ in their seed.
    """

    fold: int
    seed: int
    settings: Mapping[str, Any]
    validation: float | None
    validation_epochs: int
    configs: int
    results: Sequence[TrialResult]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without the results."""
        return {k: v for k, v in vars(self).items() if k not in ("results", "validation")}


@dataclass(frozen=True, repr=False)
class NestedValidation(CrossValidation):
    """The result of protocol ``"nested"``: a score for each outer fold, the mean of its trainings.

    Attributes:
        outer: what was chosen for each fold, and how that did.
        given: the settings that the user gave, which were not searched for.
        search: how configurations were drawn.
    """

    outer: Sequence[OuterFold] = ()
    given: Mapping[str, Any] | None = None
    search: str = "random"

    def scores_by(self, metric: str, part: str = "test") -> list[float]:
        """A metric of each outer fold: the mean over its trainings."""
        every = super().scores_by(metric, part)
        ends = np.cumsum([len(fold.results) for fold in self.outer])
        return [float(np.mean(scores)) for scores in np.split(np.asarray(every), ends[:-1])]

    def averaged_by(self, metric: str) -> list[float]:
        """A metric of each outer fold, of the mean of its trainings' predictions: an ensemble, not single networks.

        Empty where results were stored without predictions, or where there is nothing to average.
        """
        found = [[p for r in fold.results if (p := r.predicted.get("test")) is not None] for fold in self.outer]
        complete = all(len(runs) == len(fold.results) > 1 for fold, runs in zip(self.outer, found, strict=True))
        if not self.has_epochs or not complete or not all(_are_of_the_same_graphs(runs) for runs in found):
            return []
        return [METRICS[metric](runs[0].y, np.mean([p.values for p in runs], axis=0)) for runs in found]

    @property
    def _fold_numbers(self) -> list[int]:
        return [fold.fold for fold in self.outer]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the choices."""
        return list(dict.fromkeys(fold.seed for fold in self.outer))

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that the user gave."""
        return dict(self.given or {})

    @property
    def other_readings(self) -> dict[str, tuple[float, float]]:
        """The mean prediction of each fold's runs; not what the test graphs, which chose nothing, would have chosen."""
        scores = self.averaged_by(self.metric)
        words = f"{len(self.outer[0].results)} runs of each fold averaged"
        return {words: (float(np.mean(scores)), deviation(scores))} if scores else {}

    @property
    def rules(self) -> str:
        """The protocol, folds and epochs behind the numbers, in words."""
        trial, seeds = self.results[0].trial, len(self.seeds)
        some = f"{len(self.outer) // seeds} of " if len(self.outer) < trial.folds * seeds else ""
        folds = some + counted(trial.folds, "fold") + (f" by {trial.split.partition('#')[0]}" if trial.split else "")
        runs = len(self.outer[0].results)
        chosen = f"settings chosen from {counted(self.outer[0].configs, 'configuration')} on validation graphs"
        trained = f"{folds} × {runs} runs" + (f" × {trial.training.epochs} epochs" if self.has_epochs else "")
        how = f"{chosen}; {self.reading}; {trained}" if self.has_epochs else f"{chosen}; {trained}"
        if seeds > 1:
            how += f" × {seeds} seeds{' with new folds' if self.new_folds else ''}"
        return f"protocol {trial.protocol}: {how}{weights_in_words(trial)}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it; ``settings`` and ``training`` have what all folds share."""
        trials = [r.trial for r in self.results]
        shared: dict[str, Any] = {"settings": _shared([t.settings.to_dict() for t in trials])}
        if self.has_epochs:
            shared["training"] = _shared([t.training.to_dict() for t in trials])
        search = {"configs": self.outer[0].configs, "search": self.search, "runs": len(self.outer[0].results)}
        return super().to_dict() | shared | search | {"seed": self.seeds[0]}

    def folds_to_list(self, scores: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
        """What JSON has of each outer fold: also the chosen settings, and the scores of its trainings."""
        rows, every, start = [], {m: CrossValidation.scores_by(self, m) for m in scores}, 0
        for i, fold in enumerate(self.outer):
            here = slice(start, start + len(fold.results))
            start = here.stop
            runs = [
                {"seed": r.trial.seed, **{m: or_null(values[here][j]) for m, values in every.items()}}
                | {"key": r.trial.key}
                | ({"epoch": r.reading.epoch, "diverged": r.diverged} if self.has_epochs else {})
                for j, r in enumerate(fold.results)
            ]
            chosen = None if fold.validation is None else {self.metric: or_null(fold.validation)}
            measured = {m: or_null(values[i]) for m, values in scores.items()}
            rows.append({**fold.to_dict(), **measured, "validation": chosen, "runs": runs})
        return rows


def _shared(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {k: v for k, v in every[0].items() if all(k in other and other[k] == v for other in every)}


@keeping_processes()
def nested_validation(
    setup: Setup,
    draws: Mapping[int, int],
    store: Store,
    progress: Callable[[Event], None] | None,
    *,
    configs: int,
    search: Search,
    final_seeds: int,
) -> NestedValidation:
    """Chooses settings for each fold on its validation graphs, then trains and tests with these.

    The searches of all folds run together, round by round. Test graphs are read only after every choice is made.

    Args:
        setup: the system, the data and the folds.
        draws: by seed, that of the folds; the whole is repeated for each.
        store: where results go.
        progress: called with every event; None shows bars.
        configs: how many configurations are tried for each fold.
        search: how they are drawn.
        final_seeds: how often the chosen one is trained.

    Raises:
        Interrupted: after Ctrl-C; what is done is stored.
    """
    places = [(seed, drawn, fold) for seed, drawn in draws.items() for fold in setup.numbers]
    studies = [Study(setup, [fold], configs, search, seed=seed, fold_seed=drawn) for seed, drawn, fold in places]
    found = run_studies(studies, setup, store, progress)
    trials = [
        setup.trial(candidates[0].settings, fold=fold, seed=seed * final_seeds + i, fold_seed=drawn)
        for (seed, drawn, fold), candidates in zip(places, found, strict=True)
        for i in range(final_seeds)
    ]
    results = setup.run(trials, store, progress, f"{final_seeds} runs of each fold", "runs")
    outer = []
    for i, ((seed, _, fold), candidates) in enumerate(zip(places, found, strict=True)):
        best, runs = candidates[0], results[i * final_seeds : (i + 1) * final_seeds]
        score = best.score if best.results else None
        outer.append(OuterFold(fold, seed, best.settings, score, best.epochs, len(candidates), runs))
    return NestedValidation(results, outer=outer, given=dict(setup.given), search=search)


def _are_of_the_same_graphs(runs: Sequence[Predicted]) -> bool:
    """Whether predictions can be averaged; those of stored results that were put together by hand cannot."""
    first = runs[0]
    return all(np.array_equal(p.graphs, first.graphs) and p.values.shape == first.values.shape for p in runs)


def load_outer_folds(stored: Sequence[Mapping[str, Any]], results: Sequence[TrialResult]) -> list[OuterFold]:
    """The outer folds of a stored run whose trainings are all there.

    Args:
        stored: what `NestedValidation.to_dict` has under "folds".
        results: of the run.

    Raises:
        LookupError: for values that are not those of a nested run; or TypeError.
    """
    by_key, outer = {r.trial.key: r for r in results}, []
    for row in stored:
        runs = [by_key.get(run["key"]) for run in row["runs"]]
        if all(run is not None for run in runs):
            (score,), epochs = (row["validation"] or {"": None}).values(), row["validation_epochs"]
            kept = [run for run in runs if run is not None]
            outer.append(OuterFold(row["fold"], row["seed"], row["settings"], score, epochs, row["configs"], kept))
    return outer
