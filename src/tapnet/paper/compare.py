"""Whether two systems differ beyond chance, folds being no independent samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

LEVEL = 0.05


def corrected_p_value(ours: Mapping[int, float], theirs: Mapping[int, float], test_to_train: float) -> float | None:
    """Two-sided p of the paired t-test corrected for overlapping training sets (Nadeau and Bengio, 2003).

    t = mean(d) / √((1/J + n_test/n_train) · var(d)), with J − 1 degrees of freedom, over the J folds that both have;
    None where there are fewer than three, or fold for fold no difference at all.
    """
    from scipy.stats import t as student

    folds = sorted(set(ours) & set(theirs))
    difference = np.array([ours[fold] - theirs[fold] for fold in folds])
    if len(folds) < 3 or not difference.any():
        return None
    variance = difference.var(ddof=1) * (1 / len(folds) + test_to_train)
    if variance == 0:
        return 0.0  # the same difference in every fold
    return float(2 * student.sf(abs(difference.mean()) / np.sqrt(variance), len(folds) - 1))
