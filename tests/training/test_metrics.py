"""Metrics are scikit-learn's; gaps and several targets; the trivial predictor."""

import math

import numpy as np
import pytest
import sklearn.metrics as reference
from hypothesis import given
from hypothesis import strategies as st

from tapnet.errors import SettingError
from tapnet.training.metrics import METRICS, find_metrics, trivial_predictions


def two_classes(seed, n=40):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    p = rng.random(n)
    return y, np.stack([1 - p, p], axis=1)


@given(st.integers(0, 2**32))
def test_metrics_of_two_classes_are_scikit_learn_s(seed):
    y, p = two_classes(seed)
    said = p.argmax(1)
    expected = {
        "accuracy": 100 * reference.accuracy_score(y, said),
        "balanced_accuracy": 100 * reference.balanced_accuracy_score(y, said),
        "roc_auc": reference.roc_auc_score(y, p[:, 1]),
        "average_precision": reference.average_precision_score(y, p[:, 1]),
        "f1": reference.f1_score(y, said, zero_division=0),
        "mcc": reference.matthews_corrcoef(y, said),
        "log_loss": reference.log_loss(y, p),
        "brier": reference.brier_score_loss(y, p[:, 1]),
    }
    for name, value in expected.items():
        assert METRICS[name](y, p) == pytest.approx(value), name


@given(st.integers(0, 2**32))
def test_metrics_of_numbers_are_scikit_learn_s(seed):
    rng = np.random.default_rng(seed)
    y, said = rng.normal(size=(30, 1)), rng.normal(size=(30, 1))
    assert METRICS["rmse"](y, said) == pytest.approx(math.sqrt(reference.mean_squared_error(y, said)))
    assert METRICS["mae"](y, said) == pytest.approx(reference.mean_absolute_error(y, said))
    assert METRICS["r2"](y, said) == pytest.approx(reference.r2_score(y, said))


def test_gaps_are_left_out_and_columns_averaged():
    y = np.array([[0, 1.0], [1, np.nan], [1, 0], [np.nan, 1]])
    p = np.array([[0.2, 0.9], [0.7, 0.5], [0.4, 0.3], [0.9, 0.2]])
    first = reference.roc_auc_score([0, 1, 1], [0.2, 0.7, 0.4])
    second = reference.roc_auc_score([1, 0, 1], [0.9, 0.3, 0.2])
    assert METRICS["roc_auc"](y, p) == pytest.approx((first + second) / 2)


def test_what_is_not_defined_is_nan_and_a_label_of_one_class_is_left_out():
    y, p = np.zeros(5, np.int64), np.tile([0.5, 0.5], (5, 1))
    assert math.isnan(METRICS["roc_auc"](y, p))
    labels = np.array([[0.0, 0], [0, 1], [0, 1]])
    assert METRICS["roc_auc"](labels, np.array([[0.1, 0.2], [0.2, 0.7], [0.3, 0.9]])) == 1


def test_names_are_checked_against_the_task():
    assert [m.name for m in find_metrics(["ROC-AUC", "f1"], "classification")] == ["roc_auc", "f1"]
    assert find_metrics(None, "regression")[0].name == "rmse"
    with pytest.raises(SettingError, match="roc_auc"):
        find_metrics("rocauc", "classification")
    with pytest.raises(SettingError, match="regression"):
        find_metrics("accuracy", "regression")


def test_the_trivial_predictor_knows_only_the_training_targets():
    y = np.array([0, 0, 1, 1, 1, 1])
    said = trivial_predictions("classification", y, np.array([0, 1, 2]), np.array([3, 4, 5]), 2)
    assert METRICS["accuracy"](y[3:], said) == 0
    numbers = np.array([[1.0], [3], [np.nan], [10]])
    assert trivial_predictions("regression", numbers, np.array([0, 1, 2]), np.array([3]), 0) == [[2.0]]


def test_f1_of_several_classes_is_their_mean_on_every_fold():
    p = np.eye(3)[[0, 1, 1, 0]]
    y = np.array([0, 0, 1, 1])  # a fold without a graph of the third class
    assert METRICS["f1"](y, p) == pytest.approx(reference.f1_score(y, p.argmax(1), average="macro"))


def test_each_target_has_a_score_of_its_own():
    y, said = np.array([[0.0, 100], [1, np.nan], [2, 300]]), np.array([[0.0, 110], [1, 0], [2, 310]])
    assert METRICS["mae"].by_target(y, said) == [0, 10]
    assert METRICS["mae"](y, said) == 5
    assert math.isnan(METRICS["mae"].by_target(np.full((2, 1), np.nan), np.zeros((2, 1)))[0])


def test_one_fold_has_no_deviation_and_what_is_not_defined_is_said():
    assert METRICS["accuracy"].in_words(75.0, math.nan) == METRICS["accuracy"].in_words(75.0) == "75.0 %"
    assert METRICS["roc_auc"].in_words(math.nan, math.nan) == "roc_auc undefined"
