"""The summary of a set of folds: mean and deviation under the protocol, and the other readings of the same curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapnet.experiments.trial import Trial, TrialResult
from tapnet.models.registry import find_model
from tapnet.training.protocol import PROTOCOLS, readings

READINGS = {
    "best_test_epoch": "best test epoch of each fold",
    "last_epoch": "last epoch",
    "lowest_validation_loss": "epoch with the lowest validation loss",
}


COMMON_EPOCH = "best test epoch of the folds' mean"  # one epoch for all folds, as GIN's authors report


def changed_settings(trial: Trial) -> dict[str, Any]:
    """The settings of the model that are not those of its paper on that data set."""
    usual = find_model(trial.model).make_settings(trial.dataset, {}).to_dict()
    return {name: value for name, value in trial.settings.to_dict().items() if value != usual[name]}


def in_words(trial: Trial) -> str:
    """A trial in a few words, for progress and lists: the system, the protocol and the fold."""
    return f"{system_in_words(trial)}, fold {trial.fold}"


def system_in_words(trial: Trial) -> str:
    """What the folds of a trial have in common: the system and the protocol."""
    changed = ", ".join(f"{k}={v}" for k, v in changed_settings(trial).items())
    return f"{trial.model}{f' ({changed})' if changed else ''}, {trial.protocol}"


@dataclass(frozen=True, repr=False)
class Summary:
    """Results of trials that differ only in their fold.

    Args:
        results: of the folds.
    """

    results: Sequence[TrialResult]

    @property
    def scores(self) -> list[float]:
        """The accuracy of each fold, in percent, as the protocol reports it."""
        return [r.reading.accuracy for r in self.results]

    @property
    def mean(self) -> float:
        """The mean of the scores."""
        return float(np.mean(self.scores))

    @property
    def std(self) -> float:
        """The standard deviation of the scores over the folds, with NumPy's default of no correction."""
        return float(np.std(self.scores))

    @property
    def has_epochs(self) -> bool:
        """Whether the system is trained epoch by epoch, so that the protocols differ in which epoch counts."""
        return find_model(self.results[0].trial.model).fit is None

    @property
    def rules(self) -> str:
        """The protocol, folds and epochs behind the numbers, in words."""
        trial = self.results[0].trial
        some = f"{len(self.results)} of " if len(self.results) < trial.folds else ""
        how = f"{PROTOCOLS[trial.protocol]}; {some}{trial.folds} folds × {trial.training.epochs} epochs"
        if not self.has_epochs:
            how = f"no epochs, settings chosen within the training folds; {some}{trial.folds} folds"
        return f"protocol {trial.protocol}: {how}"

    @property
    def other_readings(self) -> dict[str, tuple[float, float]]:
        """Mean and deviation by the other ways to read the same curves, which are described in words."""
        trial = self.results[0].trial
        if not self.has_epochs:
            return {}
        every = [readings(r.curves) for r in self.results]
        columns = {READINGS[name]: [fold[name].accuracy for fold in every] for name in every[0]}
        del columns[PROTOCOLS[trial.protocol]]
        tests = np.array([r.curves["test_accuracy"] for r in self.results])
        columns[COMMON_EPOCH] = tests[:, tests.mean(axis=0).argmax()].tolist()
        return {words: (float(np.mean(column)), float(np.std(column))) for words, column in columns.items()}

    def __repr__(self) -> str:
        trial = self.results[0].trial
        changed = ", ".join(f"{name} {value}" for name, value in changed_settings(trial).items())
        name = f"{trial.model} with {changed}" if changed else trial.model
        return f"{trial.dataset}, {name}: {self.mean:.1f} ± {self.std:.1f} % ({self.rules})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        trial = self.results[0].trial
        return {
            "dataset": trial.dataset,
            "model": trial.model,
            "pool": getattr(trial.settings, "pool", None),
            "protocol": trial.protocol,
            "reading": PROTOCOLS[trial.protocol] if self.has_epochs else "settings chosen within the training folds",
            "num_folds": trial.folds,
            "epochs": trial.training.epochs if self.has_epochs else None,
            "folds": [
                {"fold": r.trial.fold, "accuracy": r.reading.accuracy, "key": r.trial.key}
                | ({"epoch": r.reading.epoch, "diverged": r.diverged} if self.has_epochs else {})
                for r in self.results
            ],
            "mean": self.mean,
            "std": self.std,
            "beside": {words: {"mean": mean, "std": std} for words, (mean, std) in self.other_readings.items()},
            "parameters": self.results[0].parameters if self.has_epochs else None,
            "settings": trial.settings.to_dict(),
            "training": trial.training.to_dict() if self.has_epochs else None,
            "seed": trial.seed,
            "threads": trial.threads,
            "device": trial.device,
            "seconds": sum(r.seconds for r in self.results),
        }
