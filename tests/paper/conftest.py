"""Stored trials that were never run, and the cells made of them."""

from dataclasses import replace

import pytest

from tapnet import load_dataset
from tapnet.experiments.trial import TrialResult
from tapnet.paper.budgets import Effort
from tapnet.paper.cells import StoredResults, make_cells
from tapnet.paper.plan import make_trials


@pytest.fixture(scope="session")
def mutag():
    return load_dataset("MUTAG")


@pytest.fixture(scope="session")
def store_results():
    """Trials of a system as if they had been run: each fold ends with the accuracy that is given."""

    def store_results(store, dataset, row, epochs, accuracies, folds_to_run=10, **changed):
        trials = make_trials(row, dataset, "paper", Effort(epochs, folds_to_run=folds_to_run))
        for trial, accuracy in zip(trials, accuracies, strict=True):
            curves = {"train_loss": [1.0] * epochs, "test_accuracy": [50.0] * (epochs - 1) + [accuracy]}
            store.save(TrialResult(replace(trial, **changed), curves, 1.0, 1, {}))

    return store_results


@pytest.fixture(scope="session")
def cells_of():
    """The cells of a target on some data sets."""

    def cells_of(target, datasets, protocols, results, **some):
        return make_cells(replace(target, datasets=tuple(datasets)), protocols, StoredResults(results, **some), {})

    return cells_of
