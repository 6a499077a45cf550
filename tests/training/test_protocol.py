"""Which graphs each protocol trains, validates and tests on, and which epoch it reports."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from tapnet import load_dataset
from tapnet.data.splits import Split, Splits, split_by_folds, stratified_folds
from tapnet.errors import SettingError
from tapnet.training.protocol import readings, reported_reading, split, validation_splits
from tapnet.training.settings import TrainingSettings


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def test_folds_are_the_stratified_ones_of_seed_zero(mutag):
    expected = [t for _, t in StratifiedKFold(10, shuffle=True, random_state=0).split(np.zeros(188), mutag.y.numpy())]
    for fold in range(10):
        paper, fair = (split(mutag, protocol, 10, fold) for protocol in ("paper", "fair"))
        assert paper.test.tolist() == fair.test.tolist() == expected[fold].tolist()
        assert paper.validation is None
        assert fair.validation.tolist() == expected[(fold + 1) % 10].tolist()
        assert sorted([*paper.train.tolist(), *paper.test.tolist()]) == list(range(188))
        parts = [*fair.train.tolist(), *fair.validation.tolist(), *fair.test.tolist()]
        assert sorted(parts) == list(range(188))


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("seed", range(20))
def test_folds_are_scikit_learns_whatever_the_classes(seed):
    random = np.random.default_rng(seed)
    y = 2 * random.integers(0, random.integers(1, 6), random.integers(30, 200))  # a class may be rare, or lack
    folds = int(random.integers(2, 7))
    expected = [t for _, t in StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)]
    found = stratified_folds(torch.from_numpy(y), folds, seed)
    assert [fold.tolist() for fold in found] == [fold.tolist() for fold in expected]


@pytest.mark.parametrize(
    ("protocol", "folds", "fold", "reason"),
    [
        ("fair", 2, 0, "needs at least 3 folds"),
        ("paper", 1, 0, "needs at least 2 folds"),
        ("best", 10, 0, "protocol is one of paper, fair"),
        ("fair", 10, 10, "there is no fold 10"),
        ("fair", 189, 0, "more folds than graphs"),
        ("fair", 150, 0, "150 folds cannot be made: even the largest class has only 125 graphs"),
    ],
)
def test_folds_that_cannot_be_are_refused(mutag, protocol, folds, fold, reason):
    with pytest.raises(SettingError, match=reason):
        split(mutag, protocol, folds, fold)


def test_each_protocol_reads_its_own_epoch():
    curves = {"test_accuracy": [50.0, 90.0, 90.0, 70.0], "validation_loss": [0.9, 0.8, 0.3, 0.3]}
    assert reported_reading("paper", curves) == (2, 90.0)
    assert reported_reading("fair", curves) == (3, 90.0)
    assert readings(curves)["last_epoch"] == (4, 70.0)


def test_an_epoch_whose_loss_is_no_number_is_never_chosen():
    curves = {"test_accuracy": [50.0, 60.0, 33.0], "validation_loss": [0.9, 0.8, float("nan")]}
    assert reported_reading("fair", curves) == (2, 60.0)


def test_a_metric_of_the_validation_graphs_may_choose_the_epoch():
    curves = {
        "test_accuracy": [50.0, 60.0, 70.0],
        "validation_loss": [0.9, 0.8, 0.7],
        "validation_accuracy": [1.0, 3.0, 2],
    }
    assert reported_reading("fair", curves, "accuracy") == (2, 60.0)


def test_early_epochs_may_be_left_out_of_the_choice():
    curves = {"test_accuracy": [50.0, 90.0, 60.0, 70.0], "validation_loss": [0.1, 0.2, 0.4, 0.3]}
    assert [reported_reading("fair", curves, first=first).epoch for first in range(4)] == [1, 2, 4, 4]
    assert reported_reading("paper", curves, first=3) == (2, 90.0)  # its epoch is not chosen by validation
    begun = {name: values[:2] for name, values in curves.items()}
    assert reported_reading("fair", begun, first=3) == (2, 90.0)  # the last, until there is one to choose


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 50))
def test_the_first_choice_is_an_epoch_that_is_trained(share, epochs):
    settings = TrainingSettings(select_from=share, epochs=epochs)
    assert 0 <= settings.first_choice < epochs
    assert settings.first_choice <= share * epochs


def test_where_every_epoch_may_be_chosen_keys_of_trials_stay():
    assert "select_from" not in TrainingSettings().to_dict()
    assert TrainingSettings(select_from=0.5).to_dict()["select_from"] == 0.5


def test_without_test_graphs_the_validation_graphs_are_read():
    curves = {"train_loss": [1.0, 1.0], "validation_loss": [0.9, 0.8], "validation_accuracy": [70.0, 60.0]}
    assert reported_reading("nested", curves) == (2, 60.0)
    assert readings(curves).keys() == {"last_epoch", "lowest_validation_loss"}


def test_the_folds_of_a_search_validate_and_nothing_tests(mutag):
    parts = validation_splits(mutag, 5).parts
    assert sorted(torch.cat([part.validation for part in parts]).tolist()) == list(range(188))
    assert all(len(part.test) == 0 for part in parts)
    assert all(sorted([*part.train.tolist(), *part.validation.tolist()]) == list(range(188)) for part in parts)


@pytest.mark.parametrize(
    "tests",
    [
        [range(20, 28)],  # one split
        [range(20, 28), range(20, 28)],  # the same test graphs twice
        [range(20, 28), range(24, 30), range(26, 34)],  # hold-outs that overlap
        [range(94), range(94, 188)],  # the next fold's test graphs are all that could train
    ],
)
def test_no_graph_that_is_tested_chooses_the_epoch(mutag, tests):
    every = torch.arange(188)
    parts = [Split(every[~torch.isin(every, test)], None, test) for test in map(torch.tensor, map(list, tests))]
    dataset = replace(mutag, splits=Splits("mine.json", tuple(parts)))
    for fold, part in enumerate(parts):
        train, validation, test = split(dataset, "fair", len(parts), fold)
        assert test.tolist() == part.test.tolist()
        assert len(train) > len(validation) > 0
        assert sorted([*train.tolist(), *validation.tolist()]) == part.train.tolist()


def test_folds_that_part_the_graphs_validate_each_other(mutag):
    folds = stratified_folds(mutag.y, 4)
    dataset = replace(mutag, splits=Splits("x", tuple(split_by_folds(folds, i, validation=False) for i in range(4))))
    assert split(dataset, "fair", 4, 3).validation.tolist() == folds[0].tolist()
