"""Splits of a data set: stratified folds, of which some train, one may validate, and one tests."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.errors import SettingError


class Split(NamedTuple):
    """The numbers of the graphs that train, validate and test."""

    train: Tensor
    validation: Tensor | None  # None: no graphs are kept for validation
    test: Tensor


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of a data set that a user chose in the place of stratified folds.

    Attributes:
        name: how they were chosen, such as "scaffold" or "group:site".
        parts: the split of each fold.
    """

    name: str
    parts: tuple[Split, ...]

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that change with any of the parts."""
        digest = hashlib.blake2b(digest_size=8)
        for part in self.parts:
            for numbers in (part.train, part.validation, part.test):
                digest.update(b"|" if numbers is None else numbers.numpy().astype(np.int64).tobytes() + b";")
        return digest.hexdigest()


def stratified_folds(y: Tensor, folds: int) -> list[NDArray[np.int64]]:
    """The graphs of each fold of scikit-learn's ``StratifiedKFold(folds, shuffle=True, random_state=0)``.

    Numbers are stratified by their quantiles; where there are several targets, the folds are drawn regardless of them.

    Args:
        y: ``[G]`` the class of each graph, or ``[G, T]`` numbers.
        folds: The number of folds.

    Returns:
        For each fold the numbers of its graphs, ascending.

    Raises:
        SettingError: There are more folds than graphs, or than graphs of the largest class.
    """
    from sklearn.model_selection import StratifiedKFold

    if folds > len(y):
        raise SettingError(f"{folds} folds of {len(y)} graphs: there cannot be more folds than graphs")
    if y.is_floating_point():
        y = _quantiles(y, folds)
    largest = int(y.bincount().max())
    if folds > largest:
        raise SettingError(f"{folds} folds cannot be made: even the largest class has only {largest} graphs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer graphs than folds: some folds lack it
        splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
        return [test for _, test in splitter.split(np.zeros(len(y)), y.numpy())]


def _quantiles(y: Tensor, folds: int) -> Tensor:
    """[G, T] → [G] which of up to ten equal parts of the range a number is in; all in one for several targets."""
    parts = min(10, len(y) // folds) if y.size(1) == 1 else 1
    rank = y[:, 0].nan_to_num(nan=-torch.inf).argsort(stable=True).argsort()
    return rank * max(parts, 1) // len(y)


def grouped_folds(groups: Sequence[Hashable], folds: int, y: Tensor) -> list[NDArray[np.int64]]:
    """Folds that keep graphs of one group together, stratified as far as the groups allow.

    Args:
        groups: ``[G]`` the group of each graph.
        folds: the number of folds.
        y: ``[G]`` the class of each graph, or ``[G, T]`` numbers.

    Returns:
        For each fold the numbers of its graphs, ascending.

    Raises:
        SettingError: There are fewer groups than folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    if len(number) < folds:
        raise SettingError(f"{folds} folds cannot be made of {len(number)} groups that stay together")
    strata = _quantiles(y, folds) if y.is_floating_point() else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer graphs than folds
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=0)
        codes = np.asarray([number[group] for group in groups])
        try:
            parts = [test for _, test in splitter.split(np.zeros(len(y)), strata.numpy(), codes)]
        except ValueError:  # no class has as many graphs as there are folds
            parts = [test for _, test in splitter.split(np.zeros(len(y)), np.zeros(len(y), np.int64), codes)]
    if not all(map(len, parts)):
        raise SettingError(f"the groups are too few or too large for {folds} folds: one of them would be empty")
    return parts


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
