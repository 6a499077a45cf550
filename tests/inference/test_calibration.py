"""Calibration: known distortions are found and undone, and what is measured is out of fold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from tapnet.inference.calibration import calibrate, fit_calibration, reliability_curve
from tapnet.inference.model_file import CalibrationRecord


def drawn(n, classes=2, temperature=1.0, seed=0):
    """Targets, and what a network says that is overconfident by a temperature; fold numbers."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, classes))
    true, said = (np.exp(t * logits) / np.exp(t * logits).sum(axis=1, keepdims=True) for t in (1.0, temperature))
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return y, said.astype(np.float32), np.arange(n) % 5


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_known_temperature_is_found(classes, temperature):
    y, said, folds = drawn(4000, classes, temperature)
    found = fit_calibration("classification", y, said, folds)
    assert found.method == "temperature"
    assert found.record.temperature == pytest.approx([temperature], rel=0.1)
    assert found.after["ece"] < 0.03 < found.before["ece"]
    assert found.after["log_loss"] < found.before["log_loss"]
    assert f"temperature {found.record.temperature[0]:.2f}" in str(found)


def test_what_is_calibrated_already_stays_as_it_is():
    y, said, folds = drawn(300, seed=3)
    found = fit_calibration("classification", y, said, folds)
    if found.method == "none":
        assert found.before == found.after
    assert found.after["log_loss"] <= found.before["log_loss"] + 1e-6
    np.testing.assert_array_equal(calibrate("classification", CalibrationRecord(method="none"), said), said)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_distortion_that_is_no_temperature_needs_a_curve(classes):
    y, said, folds = drawn(3000, classes)
    bent = said**3 if classes == 2 else said
    bent[:, 0] = 0.8 + 0.2 * bent[:, 0]  # class 0 is never improbable
    bent /= bent.sum(axis=1, keepdims=True)
    found = fit_calibration("classification", y, bent, folds)
    assert found.method == "isotonic"
    assert len(found.record.isotonic) == (1 if classes == 2 else 3)
    after = calibrate("classification", found.record, bent)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    assert found.after["ece"] < 0.05 < found.before["ece"]
    assert found.after["accuracy"] > found.before["accuracy"] + 5
    assert "accuracy" in str(found)  # other classes are the most probable ones now


def test_labels_have_a_temperature_each_and_gaps_count_for_nothing():
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(4000, 2))
    y = (rng.random((4000, 2)) < 1 / (1 + np.exp(-logits))).astype(np.float32)
    said = 1 / (1 + np.exp(-logits * [2.0, 4.0]))
    y[::3, 0], said[::3, 0] = np.nan, 0.999
    found = fit_calibration("multilabel", y, said.astype(np.float32), np.arange(4000) % 5)
    assert found.method == "temperature"
    assert found.record.temperature == pytest.approx([2, 4], rel=0.15)
    assert calibrate("multilabel", found.record, np.array([[0.5, 0.5]])) == pytest.approx(np.array([[0.5, 0.5]]))


@pytest.mark.parametrize("n", [20, 300])
def test_graphs_that_are_all_right_do_not_make_the_next_one_certain(n):
    y = np.arange(n) % 2
    said = np.where(np.eye(2)[y] == 1, 0.9, 0.1)
    found = fit_calibration("classification", y, said, np.arange(n) % 5)
    after = calibrate("classification", found.record, said)
    assert 0.9 < after.max() <= 1 - 1 / (n + 3)


def test_the_expected_calibration_error_by_hand():
    p = np.array([[0.05, 0.95], [0.05, 0.95], [0.35, 0.65], [0.65, 0.35]])
    y = np.array([1, 0, 1, 0])
    curve = reliability_curve(y, p)
    assert curve.count.tolist() == [2, 2]
    assert curve.frequency.tolist() == [1.0, 0.5]
    assert curve.error == pytest.approx((2 * abs(0.65 - 1) + 2 * abs(0.95 - 0.5)) / 4)


def test_scores_are_those_of_scikit_learn_and_cross_fitted():
    y, said, folds = drawn(500, temperature=3.0)
    found = fit_calibration("classification", y, said, folds)
    assert found.before["log_loss"] == pytest.approx(log_loss(y, said.astype(float)), rel=1e-4)
    assert found.before["brier"] == pytest.approx(brier_score_loss(y, said[:, 1]), rel=1e-4)
    after = np.empty((500, 2))
    for fold in range(5):
        rest = folds != fold
        one = fit_calibration("classification", y[rest], said[rest], np.zeros(rest.sum()))
        assert one.method == found.method
        after[~rest] = calibrate("classification", one.record, said[~rest])
    assert found.after["log_loss"] == pytest.approx(log_loss(y, after), rel=1e-4)


@given(
    st.integers(2, 40), st.integers(2, 4), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from([0.0, 1e-9, 1.0])
)
def test_any_probabilities_stay_probabilities(n, classes, folds, seed, sharp):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.1 + sharp), n).astype(np.float32)
    y = rng.integers(0, classes, n)
    found = fit_calibration("classification", y, p, rng.integers(0, folds, n))
    after = calibrate("classification", found.record, p)
    assert np.isfinite(after).all()
    assert (after >= 0).all()
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(list(found.after.values())).all()
    assert CalibrationRecord(**found.record.model_dump()) == found.record


def test_the_diagram_names_both_curves():
    y, said, folds = drawn(500, temperature=3.0)
    figure = fit_calibration("classification", y, said, folds).plot()
    words = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert any("as predicted" in word for word in words)
    assert any("temperature" in word for word in words)
