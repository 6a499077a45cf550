"""The summary of a set of folds: mean and deviation under the protocol, and the other readings of the same curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, zip_longest
from typing import Any

import numpy as np

from tapnet.errors import SettingError
from tapnet.experiments.trial import Trial, TrialResult, digest, or_null, rounded
from tapnet.files import counted
from tapnet.inference.stability import corrected_overlap
from tapnet.machine import NOT_RECORDED
from tapnet.models.registry import find_model
from tapnet.nn.pool.diagnostics import PoolDiagnostics
from tapnet.training.metrics import METRICS
from tapnet.training.protocol import PROTOCOLS, best_epoch, readings

READINGS = {
    "best_test_epoch": "best test epoch of each fold",
    "last_epoch": "last epoch",
    "lowest_validation_loss": "epoch with the lowest validation loss",
}


COMMON_EPOCH = "best test epoch of the folds' mean"  # one epoch for all folds, as GIN's authors report


def deviation(scores: Sequence[float]) -> float:
    """The standard deviation of scores, with NumPy's default of no correction; NaN for one score, which has none."""
    return float(np.std(scores)) if len(scores) > 1 else math.nan


def changed_settings(trial: Trial) -> dict[str, Any]:
    """The settings of the model that are not those of its paper on that data set."""
    usual = find_model(trial.model).make_settings(trial.dataset, {})
    return {name: value for name, value in trial.settings.to_dict().items() if value != getattr(usual, name)}


def machines_of(results: Iterable[TrialResult]) -> list[str]:
    """The machines that results were computed on, in words; "not recorded" is the last."""
    return sorted({r.machine for r in results}, key=lambda words: (words == NOT_RECORDED, words))


def machines_note(results: Iterable[TrialResult]) -> str:
    """One sentence where results of different machines stand together; else an empty string."""
    machines = machines_of(results)
    if sum(words != NOT_RECORDED for words in machines) < 2:
        return ""
    return f"Numbers of different machines, which round differently: {'; '.join(machines)}."


def in_words(trial: Trial) -> str:
    """A trial in a few words, for progress and lists: the system, the protocol and the fold."""
    return f"{system_in_words(trial)}, fold {trial.fold}"


def system_name(trial: Trial) -> str:
    """``"gin"``; ``"tapnet:topk"`` where the pooling layer is another than the system's own."""
    pool = changed_settings(trial).get("pool")
    return f"{trial.model}:{pool}" if pool else trial.model


def weights_in_words(trial: Trial) -> str:
    """How its classes count in training, to be added to the rules; empty where they all count alike."""
    return f"; class weights {trial.class_weight}" if trial.class_weight else ""


def system_in_words(trial: Trial) -> str:
    """What the folds of a trial have in common: the system and the protocol."""
    changed = ", ".join(f"{k}={v}" for k, v in changed_settings(trial).items())
    what = trial.protocol if trial.tested else "validation"
    return f"{trial.model}{f' ({changed})' if changed else ''}, {what}"


@dataclass(frozen=True, repr=False)
class Summary:
    """Results of trials that differ only in their fold and seed.

    Args:
        results: of the folds, one seed after another.
        metrics: the names of those that are reported; the first decides what ``mean``, ``std`` and ``scores`` are. None
            means the one of the results' test curves.
        targets: the names of the classes, of the labels or of the numbers; empty where they are not known.
    """

    results: Sequence[TrialResult]
    metrics: Sequence[str] = ()
    targets: Sequence[str] = ()

    @property
    def metric(self) -> str:
        """The name of the metric that ``mean``, ``std`` and ``scores`` are of."""
        return self.metrics[0] if self.metrics else self.results[0].trial.test_metric

    def scores_by(self, metric: str, part: str = "test") -> list[float]:
        """A metric of each fold's test (or validation) graphs, at the epoch that the protocol reports.

        Raises:
            SettingError: if a result was stored without its predictions, and they are needed.
        """
        if part == "test" and metric == self.results[0].trial.test_metric:
            return [r.reading.score for r in self.results]
        found = [r.predicted.get(part) for r in self.results]
        if any(p is None for p in found):
            raise SettingError(f"these results were stored without predictions, so there is no {metric} of them")
        return [METRICS[metric](p.y, p.values) for p in found if p is not None]

    @property
    def scores(self) -> list[float]:
        """The metric of each fold, one seed after another, as the protocol reports it; accuracies are in percent."""
        return self.scores_by(self.metric)

    @property
    def mean(self) -> float:
        """The mean of the scores."""
        return float(np.mean(self.scores))

    @property
    def std(self) -> float:
        """The standard deviation of the scores over the folds, without correction; NaN for one fold."""
        return deviation(self.scores)

    @property
    def positive_class(self) -> str | None:
        """Of two classes the last one, of which F1 and average precision are; None for other tasks."""
        two_classes = self.results[0].trial.task == "classification" and len(self.targets) == 2
        return self.targets[1] if two_classes else None

    @property
    def by_target(self) -> dict[str, dict[str, list[float]]]:
        """Where there are several labels or numbers: by the name of each, the metrics of the folds."""
        parts = [r.predicted.get("test") for r in self.results]
        if self.results[0].trial.task == "classification" or len(self.targets) < 2 or None in parts:
            return {}
        found: dict[str, dict[str, list[float]]] = {name: {} for name in self.targets}
        for metric in self.metrics or [self.metric]:
            rows = [METRICS[metric].by_target(part.y, part.values) for part in parts if part is not None]
            for name, scores in zip(self.targets, zip(*rows, strict=True), strict=True):
                found[name][metric] = list(scores)
        return found

    @property
    def by_target_in_words(self) -> str:
        """Mean and deviation of every metric for each of several labels or numbers."""
        words = []
        for name, found in self.by_target.items():
            every = (METRICS[m].in_words(float(np.mean(scores)), deviation(scores)) for m, scores in found.items())
            words.append(f"{name}: {', '.join(every)}")
        return "; ".join(words)

    @property
    def undefined(self) -> list[str]:
        """A sentence for each metric that is not defined on the test graphs of some folds."""
        found = []
        for metric in self.metrics or [self.metric]:
            scores = zip(self._fold_numbers, self.scores_by(metric), strict=True)
            folds = {fold for fold, score in scores if not math.isfinite(score)}
            if folds:
                found.append(
                    f"{metric} of the test graphs of {_folds_in_words(folds)} is not defined, so it has no mean"
                )
        return found

    @property
    def remarks(self) -> list[str]:
        """What a reader has to know of the numbers: a sentence each."""
        chooser = self.results[0].trial.select_by
        diverged = {r.trial.fold for r in self.results if r.diverged}
        by_loss = {r.trial.fold for r in self.results if r.chosen_by_loss}
        found = self.undefined
        for name, scores in self.by_target.items():
            pairs = zip(self.results, scores[self.metric], strict=True)
            without = {r.trial.fold for r, score in pairs if not math.isfinite(score)}
            if without:
                where = f"of {name} is not defined on the test graphs of {_folds_in_words(without)}"
                found.append(f"{self.metric} {where}, whose mean over the targets leaves it out")
        if by_loss:
            why = f"{chooser} is not defined on the validation graphs of {_folds_in_words(by_loss)}"
            found.append(f"{why}: there the epoch with the lowest validation loss counts")
        if diverged:
            found.append(f"training diverged in {_folds_in_words(diverged)}: the last training loss is not a number")
        return found

    @property
    def _fold_numbers(self) -> list[int]:
        """The number of the fold of each score."""
        return [r.trial.fold for r in self.results]

    @property
    def seeds(self) -> list[int]:
        """The seeds that the results are of."""
        return list(dict.fromkeys(r.trial.seed for r in self.results))

    @property
    def new_folds(self) -> bool:
        """Whether each seed has folds of its own."""
        return len({r.trial.fold_seed for r in self.results}) > 1

    @property
    def has_epochs(self) -> bool:
        """Whether the system is trained epoch by epoch, so that the protocols differ in which epoch counts."""
        return find_model(self.results[0].trial.model).fit is None

    @property
    def reading(self) -> str:
        """Which epoch counts, in words."""
        trial = self.results[0].trial
        if not self.has_epochs:
            chosen = not find_model(trial.model).baseline
            return "settings chosen within the training folds" if chosen else "nothing to choose"
        words = PROTOCOLS[trial.protocol]
        if trial.protocol == "paper":
            usual = self.metric == trial.test_metric and not trial.select_by
            return words if usual else f"{words} by {trial.test_metric}"
        if trial.select_by:
            words = f"epoch with the best validation {trial.select_by}"
        first = trial.training.first_choice
        return f"{words}, from epoch {first + 1} on" if first else words

    @property
    def rules(self) -> str:
        """The protocol, folds and epochs behind the numbers, in words."""
        trial = self.results[0].trial
        done, wanted = len(self.results), trial.folds * len(self.seeds)
        some = f"{done // len(self.seeds) if done % len(self.seeds) == 0 else done} of " if done < wanted else ""
        folds = counted(trial.folds, "fold") + (f" by {trial.split.partition('#')[0]}" if trial.split else "")
        how = f"{self.reading}; {some}{folds} × {counted(trial.training.epochs, 'epoch')}"
        if not self.has_epochs:
            how = f"no epochs, {self.reading}; {some}{folds}"
        if len(self.seeds) > 1:
            how += f" × {len(self.seeds)} seeds{' with new folds' if self.new_folds else ''}"
        return f"protocol {trial.protocol}: {how}{weights_in_words(trial)}"

    @property
    def other_readings(self) -> dict[str, tuple[float, float]]:
        """Mean and deviation by the other ways to read the same curves, which are described in words."""
        trial = self.results[0].trial
        if not self.has_epochs or self.metric != trial.test_metric:
            return {}
        every = [readings(r.curves) for r in self.results]
        own = "best_test_epoch" if trial.protocol == "paper" else f"best_validation_{trial.select_by}"
        own = own if trial.protocol == "paper" or trial.select_by else "lowest_validation_loss"
        shown = [name for name in every[0] if name != own or trial.training.first_choice]
        names = {name: READINGS.get(name, name.replace("_", " ", 2)) for name in shown}
        columns = {words: [fold[name].score for fold in every] for name, words in names.items()}
        tests = np.array([r.curves[f"test_{self.metric}"] for r in self.results])
        columns[COMMON_EPOCH] = tests[:, best_epoch(self.metric, tests.mean(axis=0).tolist())].tolist()
        return {words: (float(np.mean(column)), deviation(column)) for words, column in columns.items()}

    @property
    def diagnostics(self) -> list[PoolDiagnostics]:
        """What each pooling layer made of the test graphs, the mean of the folds; empty where it is not known.

        Where folds have chosen different numbers of layers, a layer is the mean of the folds that have it. The first
        layer also has the mean stability of its selection, where a fold was trained with several seeds.
        """
        known = [r.diagnostics for r in self.results if r.diagnostics]
        layers = ([layer for layer in of if layer is not None] for of in zip_longest(*known))
        means = [PoolDiagnostics.mean(of) for of in layers]
        if means and (stability := list(self.stability.values())):
            means[0] = replace(means[0], stability=rounded(float(np.mean(stability))))
        return means

    @property
    def stability(self) -> dict[tuple[int, int], float]:
        """How far the first pooling layer keeps the same nodes with other seeds, by the seed and number of the fold.

        The mean over its test graphs and the pairs of trials that differ in their seed alone, as
        `tapnet.inference.stability.corrected_overlap` has it: 1 for the same nodes, 0 for what chance has in common.
        Empty where a fold has one seed, or nodes are merged.
        """
        alike: dict[str, list[TrialResult]] = {}
        for result in self.results:
            same = {name: value for name, value in result.trial.to_dict().items() if name != "seed"}
            alike.setdefault(digest(same), []).append(result)
        found: dict[tuple[int, int], list[float]] = {}
        for several in alike.values():
            trial = several[0].trial
            chosen = [result.selection for result in several if result.selection is not None]
            for one, other in combinations(chosen, 2):
                if np.array_equal(one.sizes, other.sizes):
                    overlap = corrected_overlap(one.kept, other.kept, one.sizes)
                    found.setdefault((trial.fold_seed, trial.fold), []).extend(overlap[np.isfinite(overlap)].tolist())
        return {fold: float(np.mean(values)) for fold, values in found.items() if values}

    @property
    def machines(self) -> list[str]:
        """The machines that the folds were trained on; "not recorded" for results of earlier versions."""
        return machines_of(self.results)

    @property
    def machines_note(self) -> str:
        """One sentence where the folds are of different machines; else an empty string."""
        return machines_note(self.results)

    @property
    def in_words(self) -> str:
        """Mean and deviation of every metric that is reported."""
        words = []
        for name in self.metrics or [self.metric]:
            scores, metric = self.scores_by(name), METRICS[name]
            of_class = f" (class {self.positive_class})" if metric.of_last_class and self.positive_class else ""
            words.append(metric.in_words(float(np.mean(scores)), deviation(scores)) + of_class)
        return ", ".join(words)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that are not those of the system's paper."""
        return changed_settings(self.results[0].trial)

    def __repr__(self) -> str:
        trial = self.results[0].trial
        changed = ", ".join(f"{name} {value}" for name, value in self.changed.items())
        name = f"{trial.model} with {changed}" if changed else trial.model
        return f"{trial.dataset}, {name}: {self.in_words} ({self.rules})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        trial = self.results[0].trial
        scores = {name: self.scores_by(name) for name in dict.fromkeys([*self.metrics, self.metric, trial.test_metric])}
        return {
            "dataset": trial.dataset,
            "model": trial.model,
            "pool": getattr(trial.settings, "pool", None),
            "task": trial.task,
            "protocol": trial.protocol,
            "reading": self.reading,
            "num_folds": trial.folds,
            "split": trial.split or None,
            "epochs": trial.training.epochs if self.has_epochs else None,
            "folds": self.folds_to_list(scores),
            "metric": self.metric,
            "mean": or_null(self.mean),
            "std": or_null(self.std),
            "metrics": {m: _mean_and_std(v) for m, v in scores.items()},
            "targets": list(self.targets),
            "positive_class": self.positive_class,
            "by_target": {t: {m: _mean_and_std(v) for m, v in of.items()} for t, of in self.by_target.items()},
            "beside": {words: {"mean": m, "std": or_null(std)} for words, (m, std) in self.other_readings.items()},
            "parameters": self.results[0].parameters if self.has_epochs else None,
            "diagnostics": [asdict(layer) for layer in self.diagnostics],
            "settings": trial.settings.to_dict(),
            "training": trial.training.to_dict() if self.has_epochs else None,
            "seed": trial.seed,
            "seeds": len(self.seeds),
            "new_folds": self.new_folds,
            "threads": trial.threads,
            "device": trial.device,
            "reproducible": trial.reproducible,
            "machines": self.machines,
            "seconds": sum(r.seconds for r in self.results),
        }

    def folds_to_list(self, scores: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
        """What JSON has of each fold.

        Args:
            scores: by metric, that of each fold.
        """
        return [
            {"fold": r.trial.fold, "seed": r.trial.seed}
            | {**{m: or_null(values[i]) for m, values in scores.items()}, "key": r.trial.key}
            | ({"epoch": r.reading.epoch, "diverged": r.diverged} if self.has_epochs else {})
            | self._validation(r)
            for i, r in enumerate(self.results)
        ]

    def _validation(self, result: TrialResult) -> dict[str, Any]:
        """The metrics of a fold's validation graphs, where they are known."""
        found = result.predicted.get("validation")
        if found is None:
            return {}
        return {"validation": {m: or_null(METRICS[m](found.y, found.values)) for m in self.metrics or [self.metric]}}


def _folds_in_words(folds: Iterable[int]) -> str:
    numbers = sorted(set(folds))
    return f"{'fold' if len(numbers) == 1 else 'folds'} {', '.join(map(str, numbers))}"


def _mean_and_std(scores: Sequence[float]) -> dict[str, float | None]:
    return {"mean": or_null(np.mean(scores)), "std": or_null(deviation(scores))}
