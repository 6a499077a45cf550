"""Whether two systems differ beyond chance, given that the folds of a cross-validation are not independent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

LEVEL = 0.05


class Comparison(NamedTuple):
    """The difference of two systems over the folds that both have."""

    difference: float  # in points, ours − theirs
    half_width: float  # of its 95 % interval: smaller differences cannot be told from none
    p_value: float  # two-sided, of no difference

    @property
    def differs(self) -> bool:
        """Whether the difference is significant at 5 %."""
        return self.p_value < LEVEL


def corrected_t_test(ours: Mapping[int, float], theirs: Mapping[int, float], test_to_train: float) -> Comparison | None:
    """The paired t-test corrected for overlapping training sets (Nadeau and Bengio, 2003).

    t = mean(d) / √((1/J + n_test/n_train) · var(d)), with J − 1 degrees of freedom, over the J folds that both have.

    Args:
        ours: The accuracy of the one system by fold.
        theirs: The accuracy of the other by fold.
        test_to_train: n_test/n_train, the size of the test fold over that of the training folds.

    Returns:
        The comparison; None where fewer than three folds are shared, or no fold differs.

    Example:
        >>> corrected_t_test({0: 90.0, 1: 88.0, 2: 91.0}, {0: 71.0, 1: 70.0, 2: 69.0}, 1 / 9).differs
        True
    """
    from scipy.stats import t as student

    folds = sorted(set(ours) & set(theirs))
    d = np.array([ours[fold] - theirs[fold] for fold in folds])
    if len(folds) < 3 or not d.any():
        return None
    deviation = np.sqrt((1 / len(folds) + test_to_train) * d.var(ddof=1))
    half_width = deviation * student.isf(LEVEL / 2, len(folds) - 1)
    if deviation == 0:
        return Comparison(float(d.mean()), 0.0, 0.0)  # the same difference in every fold
    p_value = 2 * student.sf(abs(d.mean()) / deviation, len(folds) - 1)
    return Comparison(float(d.mean()), float(half_width), float(p_value))
