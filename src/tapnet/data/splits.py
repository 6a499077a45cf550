"""Splits of a data set: stratified folds, of which some train, one may validate, and one tests."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.errors import SettingError


@dataclass(frozen=True)
class Split:
    """The numbers of the graphs that train, validate and test."""

    train: Tensor
    validation: Tensor | None  # None: no graphs are kept for validation
    test: Tensor


def stratified_folds(y: Tensor, folds: int) -> list[NDArray[np.int64]]:
    """The graphs of each fold of scikit-learn's ``StratifiedKFold(folds, shuffle=True, random_state=0)``.

    Args:
        y: ``[G]`` the class of each graph.
        folds: The number of folds.

    Returns:
        For each fold the numbers of its graphs, ascending.

    Raises:
        SettingError: There are more folds than graphs, or than graphs of the largest class.
    """
    from sklearn.model_selection import StratifiedKFold

    if folds > len(y):
        raise SettingError(f"{folds} folds of {len(y)} graphs: there cannot be more folds than graphs")
    largest = int(y.bincount().max())
    if folds > largest:
        raise SettingError(f"{folds} folds cannot be made: even the largest class has only {largest} graphs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer graphs than folds: some folds lack it
        splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
        return [test for _, test in splitter.split(np.zeros(len(y)), y.numpy())]


def stratified_split(y: Tensor, folds: int, fold: int, *, validation: bool) -> Split:
    """Fold ``fold`` tests, the next one validates if asked for, and the others train.

    Args:
        y: ``[G]`` the class of each graph.
        folds: The number of folds.
        fold: The fold that tests, counted from 0.
        validation: Whether a fold is kept for validation.

    Returns:
        The numbers of the graphs of each part.

    Raises:
        SettingError: So many folds cannot be made.

    Example:
        >>> import torch
        >>> from tapnet.data.splits import stratified_split
        >>> split = stratified_split(torch.tensor([0, 1] * 6), folds=3, fold=0, validation=True)
        >>> len(split.train), len(split.validation), len(split.test)
        (4, 4, 4)
    """
    return split_by_folds(stratified_folds(y, folds), fold, validation=validation)


def split_by_folds(folds: Sequence[NDArray[np.int64]], fold: int, *, validation: bool) -> Split:
    """`stratified_split` of folds that are made already."""
    test, kept = folds[fold], folds[(fold + 1) % len(folds)] if validation else None
    graphs = np.arange(sum(map(len, folds)))
    train = np.setdiff1d(graphs, test if kept is None else np.concatenate([test, kept]))
    return Split(torch.from_numpy(train), None if kept is None else torch.from_numpy(kept), torch.from_numpy(test))
