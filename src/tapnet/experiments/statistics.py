"""Whether systems differ beyond chance, given that the folds of a cross-validation are not independent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LEVEL = 0.05
POWER = 0.8
FEWEST_FOLDS = 3  # that a difference is tested on


class Difference(NamedTuple):
    """The difference of two systems over the folds that both have."""

    difference: float  # in points, ours − theirs
    half_width: float  # of its 95 % interval: smaller differences cannot be told from none
    p_value: float  # two-sided, of no difference

    @property
    def differs(self) -> bool:
        """Whether the difference is significant at 5 %."""
        return self.p_value < LEVEL


def corrected_t_test(ours: Mapping[Any, float], theirs: Mapping[Any, float], test_to_train: float) -> Difference | None:
    """The paired t-test corrected for overlapping training sets (Nadeau and Bengio, 2003).

    t = mean(d) / √((1/J + n_test/n_train) · var(d)), with J − 1 degrees of freedom, over the J folds that both have. Of
    a repeated cross-validation, J counts the folds of all repetitions (Bouckaert and Frank, 2004).

    Args:
        ours: The accuracy of the one system by fold.
        theirs: The accuracy of the other by fold.
        test_to_train: n_test/n_train, the size of the test fold over that of the training folds.

    Returns:
        The difference; None where fewer than three folds are shared, or no fold differs.

    Example:
        >>> corrected_t_test({0: 90.0, 1: 88.0, 2: 91.0}, {0: 71.0, 1: 70.0, 2: 69.0}, 1 / 9).differs
        True
    """
    from scipy.stats import t as student

    d = np.array([ours[fold] - theirs[fold] for fold in ours if fold in theirs])
    if len(d) < FEWEST_FOLDS or not d.any():
        return None
    deviation, p_value = standard_error(d, test_to_train), p_values(d, test_to_train)
    half_width = deviation * student.isf(LEVEL / 2, len(d) - 1)
    return Difference(float(d.mean()), float(half_width), float(p_value))


def standard_error(d: Array, test_to_train: float) -> Array:
    """Of the mean difference: √((1/J + n_test/n_train) · var(d)).

    Args:
        d: ``[…, J]`` the difference on each fold.
        test_to_train: n_test/n_train.

    Returns:
        ``[…]``
    """
    error: Array = np.sqrt((1 / d.shape[-1] + test_to_train) * d.var(axis=-1, ddof=1))
    return error


def p_values(d: Array, test_to_train: float) -> Array:
    """The p-value of `corrected_t_test` for many sets of differences, ``[…, J]`` → ``[…]``."""
    from scipy.stats import t as student

    with np.errstate(divide="ignore"):  # the same difference on every fold
        p: Array = 2 * student.sf(np.abs(d.mean(axis=-1)) / standard_error(d, test_to_train), d.shape[-1] - 1)
    return p


def holm(p: ArrayLike) -> Array:
    """P-values adjusted for their number (Holm, 1979): the chance of one false mark or more stays below the level.

    Args:
        p: ``[m]`` the p-values of the comparisons that are made together.

    Returns:
        ``[m]``: the smallest level at which each would be marked, at most 1.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


def smallest_visible_difference(d: Sequence[float], test_to_train: float, comparisons: int = 1) -> float:
    """The true difference that `corrected_t_test` would mark in four of five such experiments.

    It is the difference at which the two-sided test at 5 %, divided by the number of comparisons (the first and
    strictest step of Holm), has a power of 80 %, if the differences of the folds scatter as those that were seen.

    Args:
        d: ``[J]`` the difference on each fold.
        test_to_train: n_test/n_train.
        comparisons: How many are made together.

    Returns:
        In the units of ``d``; always above the half width of the interval.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct
    from scipy.stats import t as student

    freedom = len(d) - 1
    limit = float(student.isf(LEVEL / comparisons / 2, freedom))

    def missing_power(shift: float) -> float:  # the other tail does not matter where the power is that high
        return float(nct.sf(limit, freedom, shift)) - POWER

    shift = brentq(missing_power, limit / 2, 10 * limit + 10)
    return float(shift * standard_error(np.asarray(d, dtype=np.float64), test_to_train))
