"""The statistics against SciPy, statsmodels, their formulas, and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from tapnet.experiments.statistics import (
    corrected_t_test,
    holm,
    p_values,
    smallest_visible_difference,
    standard_error,
)

accuracies = st.lists(st.floats(40, 100), min_size=10, max_size=10)


@given(accuracies, accuracies)
def test_without_correction_it_is_the_paired_t_test(ours, theirs):
    if np.ptp(np.subtract(ours, theirs)) < 1e-6:
        return
    found, theirs = corrected_t_test(dict(enumerate(ours)), dict(enumerate(theirs)), 0.0), stats.ttest_rel(ours, theirs)
    assert found.p_value == pytest.approx(theirs.pvalue, abs=1e-9)
    low, high = theirs.confidence_interval(0.95)
    assert found.difference - found.half_width == pytest.approx(low, abs=1e-6)
    assert found.difference + found.half_width == pytest.approx(high, abs=1e-6)


def test_the_correction_is_that_of_nadeau_and_bengio():
    """Ten folds: the variance of the mean is (1/10 + 1/9) s² instead of s²/10."""
    ours = dict(enumerate([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    theirs = dict.fromkeys(range(10), 4.0)
    d = np.arange(1, 11) - 4.0
    t = d.mean() / np.sqrt((1 / 10 + 1 / 9) * d.var(ddof=1))
    assert corrected_t_test(ours, theirs, 1 / 9).p_value == pytest.approx(2 * stats.t.sf(t, 9))
    assert corrected_t_test(ours, theirs, 1 / 9).p_value > corrected_t_test(ours, theirs, 0).p_value


@given(accuracies, accuracies)
def test_what_differs_is_what_lies_outside_the_interval(ours, theirs):
    found = corrected_t_test(dict(enumerate(ours)), dict(enumerate(theirs)), 1 / 9)
    if found is not None and abs(abs(found.difference) - found.half_width) > 1e-6:
        assert found.differs == (abs(found.difference) > found.half_width)


def test_folds_that_only_one_of_them_has_do_not_count():
    ours, theirs = {0: 1.0, 1: 2.0, 2: 4.0, 7: 100.0}, {0: 3.0, 1: 3.0, 2: 3.0, 8: 0.0}
    same = corrected_t_test({0: 1.0, 1: 2.0, 2: 4.0}, {0: 3.0, 1: 3.0, 2: 3.0}, 0.5)
    assert corrected_t_test(ours, theirs, 0.5) == same
    assert corrected_t_test({0: 1.0}, {0: 2.0}, 0.5) is None
    assert corrected_t_test(ours, ours, 0.5) is None


@given(accuracies, accuracies, st.floats(0, 0.5))
def test_the_other_way_round_the_difference_changes_its_sign_alone(ours, theirs, ratio):
    one, other = dict(enumerate(ours)), dict(enumerate(theirs))
    found, turned = corrected_t_test(one, other, ratio), corrected_t_test(other, one, ratio)
    if found is None:
        assert turned is None
        return
    assert turned.difference == pytest.approx(-found.difference, abs=1e-12)
    assert (turned.half_width, turned.p_value) == pytest.approx((found.half_width, found.p_value))


@given(accuracies, accuracies, st.floats(-20, 20), st.permutations(range(10)))
def test_neither_a_shift_of_both_nor_the_order_of_the_folds_matters(ours, theirs, shift, order):
    if np.ptp(np.subtract(ours, theirs)) < 1e-6:
        return
    found = corrected_t_test(dict(enumerate(ours)), dict(enumerate(theirs)), 0.125)
    moved = corrected_t_test({i: ours[i] + shift for i in order}, {i: theirs[i] + shift for i in order}, 0.125)
    assert moved == pytest.approx(found, abs=1e-6)


# ---- several comparisons ----

some_p = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.mark.parametrize("number", [1, 2, 7])
def test_holm_is_that_of_statsmodels(number):
    p = np.random.default_rng(number).random(number).round(1) ** 2  # some of them equal
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


@given(some_p, st.randoms())
def test_holm_does_not_depend_on_the_order(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    assert holm([p[i] for i in order]).tolist() == holm(p)[order].tolist()


def test_nothing_to_adjust_is_no_trouble():
    assert holm([]).tolist() == []
    assert holm([0.2]).tolist() == [0.2]


# ---- what could have been seen ----


@pytest.mark.parametrize(("folds", "comparisons"), [(5, 1), (10, 1), (10, 4), (30, 7)])
def test_the_smallest_visible_difference_is_the_power_analysis_of_statsmodels(folds, comparisons):
    d = np.random.default_rng(0).normal(size=folds)
    effect = TTestPower().solve_power(nobs=folds, alpha=0.05 / comparisons, power=0.8)
    assert smallest_visible_difference(d, 0.0, comparisons) == pytest.approx(effect * d.std(ddof=1), rel=1e-4)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=20), st.integers(1, 10))
def test_it_is_larger_than_the_interval_and_grows_with_the_number_of_comparisons(d, comparisons):
    if np.ptp(d) < 1e-6:
        return
    found = corrected_t_test(dict(enumerate(d)), dict.fromkeys(range(len(d)), 0.0), 0.125)
    visible = smallest_visible_difference(d, 0.125, comparisons)
    assert visible > found.half_width
    assert smallest_visible_difference(d, 0.125, comparisons + 1) > visible


# ---- simulations of the model that the correction assumes: folds whose differences are correlated ----


def differences(experiments, folds, ratio, rng, shift=0.0):
    """[experiments, folds] of variance 1 and correlation ρ, with ρ/(1−ρ) = n_test/n_train (Nadeau and Bengio)."""
    rho = ratio / (1 + ratio)
    common, own = rng.normal(size=(experiments, 1)), rng.normal(size=(experiments, folds))
    return np.sqrt(rho) * common + np.sqrt(1 - rho) * own + shift


@pytest.mark.parametrize(("folds", "ratio"), [(10, 1 / 8), (5, 1 / 4), (50, 1 / 9)])
def test_without_a_true_difference_one_experiment_in_twenty_is_marked(folds, ratio):
    d = differences(40_000, folds, ratio, np.random.default_rng(0))
    assert np.mean(p_values(d, ratio) < 0.05) == pytest.approx(0.05, abs=0.004)  # 3.7 standard errors
    assert np.mean(p_values(d, 0.0) < 0.05) > 0.1  # the usual t-test marks far more


def test_the_simulated_p_is_that_of_the_test():
    d = differences(3, 10, 1 / 8, np.random.default_rng(1))
    for row, p in zip(d, p_values(d, 1 / 8), strict=True):
        assert corrected_t_test(dict(enumerate(row)), dict.fromkeys(range(10), 0.0), 1 / 8).p_value == pytest.approx(p)


def test_with_holm_the_chance_of_any_false_mark_is_the_level():
    rng, systems = np.random.default_rng(0), 6
    p = np.stack([p_values(differences(5_000, 10, 1 / 8, rng), 1 / 8) for _ in range(systems)], axis=1)
    assert np.mean((p < 0.05).any(axis=1)) > 0.2  # without it
    assert np.mean([(holm(row) < 0.05).any() for row in p]) == pytest.approx(0.05, abs=0.011)


@pytest.mark.parametrize(("folds", "comparisons"), [(3, 8), (10, 1), (10, 7)])
def test_the_smallest_visible_difference_is_seen_in_four_of_five_experiments(folds, comparisons):
    """In units of the true standard error, which it is proportional to."""
    ratio = 1 / 8
    unit = np.array([1.0, -1.0] + [0.0] * (folds - 2))
    shift = smallest_visible_difference(unit, ratio, comparisons) / standard_error(unit, ratio)
    rho = ratio / (1 + ratio)
    shift *= np.sqrt((1 / folds + ratio) * (1 - rho))
    d = differences(20_000, folds, ratio, np.random.default_rng(0), shift)
    assert np.mean(p_values(d, ratio) < 0.05 / comparisons) == pytest.approx(0.8, abs=0.011)
