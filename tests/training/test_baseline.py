"""The accuracy of the majority class, and the warning of a model that is not above it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

from tapnet import load_dataset
from tapnet.training.baseline import baseline_in_words, baseline_warning, majority_accuracy
from tapnet.training.protocol import split, splits


@given(st.lists(st.integers(0, 3), min_size=4, max_size=40), st.integers(1, 3))
def test_it_is_scikit_learns_dummy(classes, tested):
    y = np.asarray(classes)
    train, test = np.arange(tested, len(y)), np.arange(tested)
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(train), 1)), y[train])
    found = majority_accuracy(torch.from_numpy(y), torch.from_numpy(train), torch.from_numpy(test))
    assert found == pytest.approx(100 * dummy.score(np.zeros((tested, 1)), y[test]))


def test_a_warning_names_both_numbers():
    for accuracy in (90.0, 92.5, 92.5004):  # stored accuracies are rounded
        warning = baseline_warning(accuracy, {"accuracy": 92.5})
        assert f"{accuracy:.1f} %" in warning
        assert "not above 92.5 %" in warning
    assert baseline_warning(92.6, {"accuracy": 92.5}) == baseline_warning(10.0, None) == ""


def test_every_metric_that_is_defined_is_said():
    baseline = {"accuracy": 66.5, "f1": 0.7987, "mcc": None}
    assert baseline_in_words(baseline, "accuracy", "mcc") == "majority class: 66.5 %"
    assert baseline_in_words(baseline, "f1", "accuracy").endswith(": f1 0.799, 66.5 %")
    assert baseline_in_words(baseline, "mcc") == baseline_in_words(None, "f1") == ""
    assert baseline_warning(0.1, baseline, "mcc") == ""


@pytest.mark.parametrize("protocol", ["paper", "fair"])
def test_several_splits_are_those_made_one_by_one(protocol):
    mutag = load_dataset("MUTAG")
    for fold, part in zip((0, 2), splits(mutag, protocol, 4, (0, 2)), strict=True):
        alone = split(mutag, protocol, 4, fold)
        assert part.train.tolist() == alone.train.tolist()
        assert part.test.tolist() == alone.test.tolist()
        assert (part.validation is None) == (alone.validation is None) == (protocol == "paper")
