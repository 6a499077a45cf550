"""The corrected t-test against SciPy's and against its formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tapnet.experiments.statistics import corrected_t_test

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
