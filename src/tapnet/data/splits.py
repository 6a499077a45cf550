"""Splits of a data set: stratified folds, of which some train, one may validate, and one tests."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.errors import SettingError
from tapnet.files import counted


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
        groups: ``[G]`` the group of each graph, where folds keep groups together and can be drawn anew; None elsewhere.
    """

    name: str
    parts: tuple[Split, ...]
    groups: NDArray[np.int64] | None = None

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that change with any of the parts."""
        digest = hashlib.blake2b(digest_size=8)
        for part in self.parts:
            for numbers in (part.train, part.validation, part.test):
                digest.update(b"|" if numbers is None else numbers.numpy().astype(np.int64).tobytes() + b";")
        return digest.hexdigest()


def stratified_folds(y: Tensor, folds: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """The graphs of each fold of scikit-learn's ``StratifiedKFold(folds, shuffle=True, random_state=seed)``.

    Numbers are stratified by their quantiles; where there are several targets, the folds are drawn regardless of them.

    Args:
        y: ``[G]`` the class of each graph, or ``[G, T]`` numbers.
        folds: The number of folds.
        seed: Of the random order; scikit-learn takes its last 32 bits.

    Returns:
        For each fold the numbers of its graphs, ascending.

    Raises:
        SettingError: There are more folds than graphs, or than graphs of the largest class.
    """
    if folds > len(y):
        raise SettingError(f"{folds} folds of {len(y)} graphs: there cannot be more folds than graphs")
    if y.is_floating_point():
        y = quantile_strata(y, min(10, len(y) // folds)) if y.size(1) == 1 else torch.zeros(len(y), dtype=torch.int64)
    largest = int(y.bincount().max())
    if folds > largest:
        raise SettingError(f"{folds} folds cannot be made: even the largest class has only {counted(largest, 'graph')}")
    return _stratify(y.numpy(), folds, np.random.RandomState(seed % 2**32))


def _stratify(y: NDArray[np.int64], folds: int, random: np.random.RandomState) -> list[NDArray[np.int64]]:
    """As scikit-learn does it, number by number; loading that library takes longer than many a fold."""
    found, first = np.unique(y, return_index=True)
    classes = found[np.argsort(first)]  # in the order in which they appear
    ends = np.cumsum([np.count_nonzero(y == c) for c in classes])
    fold_of = np.empty(len(y), np.int64)
    for c, begin, end in zip(classes, np.r_[0, ends], ends, strict=False):
        dealt = np.sort(np.arange(begin, end) % folds)  # the graphs, class by class, are dealt out to the folds in turn
        random.shuffle(dealt)
        fold_of[y == c] = dealt
    return [np.flatnonzero(fold_of == fold) for fold in range(folds)]


def split_by_folds(folds: Sequence[NDArray[np.int64]], fold: int, *, validation: bool) -> Split:
    """Fold ``fold`` tests, the next one validates if asked for, and the others train.

    Args:
        folds: For each fold the numbers of its graphs.
        fold: The fold that tests, counted from 0.
        validation: Whether a fold is kept for validation.

    Returns:
        The numbers of the graphs of each part.

    Example:
        >>> import torch
        >>> folds = stratified_folds(torch.tensor([0, 1] * 6), 3)
        >>> [len(part) for part in split_by_folds(folds, 0, validation=True)]
        [4, 4, 4]
    """
    test, kept = folds[fold], folds[(fold + 1) % len(folds)] if validation else None
    graphs = np.arange(sum(map(len, folds)))
    train = np.setdiff1d(graphs, test if kept is None else np.concatenate([test, kept]))
    return Split(torch.from_numpy(train), None if kept is None else torch.from_numpy(kept), torch.from_numpy(test))


def hold_out(
    y: Tensor, graphs: Tensor, seed: int = 0, groups: NDArray[np.int64] | None = None
) -> tuple[Tensor, Tensor]:
    """Keeps a tenth of some graphs for validation: the first of ten stratified folds, or of ten folds of whole groups.

    Args:
        y: ``[G]`` the class of each graph of the data set, or ``[G, T]`` numbers.
        graphs: The numbers of the graphs to part.
        seed: Of the random order.
        groups: ``[G]`` the group of each graph, if groups have to stay together.

    Returns:
        The numbers of the graphs that train, and of those that validate.

    Raises:
        SettingError: There are too few graphs.

    Example:
        >>> import torch
        >>> [len(part) for part in hold_out(torch.tensor([0, 1] * 20), torch.arange(40))]
        [36, 4]
    """
    if groups is not None:
        own = groups[graphs.numpy()]
        kept = grouped_folds(own, max(2, min(HELD_OUT, len(np.unique(own)))), seed, y[graphs])[0]
    else:
        most = len(graphs) if y.is_floating_point() else int(y[graphs].bincount().max())
        kept = stratified_folds(y[graphs], max(2, min(HELD_OUT, most)), seed)[0]
    validates = torch.zeros(len(graphs), dtype=torch.bool).index_fill_(0, torch.from_numpy(kept), True)
    return graphs[~validates], graphs[validates]


HELD_OUT = 10  # one in so many graphs validates


def grouped_folds(
    groups: Sequence[Hashable] | NDArray[np.int64], folds: int, seed: int = 0, y: Tensor | None = None
) -> list[NDArray[np.int64]]:
    """Folds of about the same size in which no group is torn apart, with about the same classes where they allow it.

    Args:
        groups: ``[G]`` the group of each graph: its scaffold, its patient, its source.
        folds: The number of folds.
        seed: Of the random order.
        y: ``[G]`` the class of each graph, or a number to predict, which counts by its quantiles; None: no matter.

    Returns:
        For each fold the numbers of its graphs, ascending.

    Raises:
        SettingError: There are fewer groups than folds.

    Example:
        >>> import torch
        >>> from tapnet.data.splits import grouped_folds
        >>> print(*grouped_folds("aabbcc", 3)[0])
        4 5
    """
    position = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    if len(position) < folds:
        raise SettingError(f"{folds} folds of {len(position)} groups: there cannot be more folds than groups")
    number = np.asarray([position[group] for group in groups])
    strata = np.zeros(len(number), np.int64) if y is None else quantile_strata(y).numpy()
    count = np.zeros((len(position), int(strata.max()) + 1))
    np.add.at(count, (number, strata), 1)
    # As scikit-learn's StratifiedGroupKFold, but large groups, which leave the least choice, come first, and the sizes
    # of the folds count: on BBBP's scaffolds its ten folds have 101 to 351 molecules, these 203 or 204.
    order = np.random.default_rng(seed).permutation(len(count))
    order = order[np.argsort(-count[order].sum(axis=1), kind="stable")]
    share, fold_of = np.maximum(count.sum(axis=0) / folds, 1e-9), np.empty(len(count), np.int64)
    filled = np.zeros((folds, count.shape[1]))
    for left, group in zip(range(len(order), 0, -1), order, strict=True):
        more = (((filled + count[group]) / share) ** 2 - (filled / share) ** 2).sum(axis=1)
        empty = filled.sum(axis=1) == 0
        if left <= empty.sum():  # each of the last groups is needed where there is none
            more[~empty] = np.inf
        fold_of[group] = np.argmin(more)
        filled[fold_of[group]] += count[group]
    return [np.flatnonzero(fold_of[number] == fold) for fold in range(folds)]


def quantile_strata(y: Tensor, most: int = 10) -> Tensor:
    """The stratum of each graph: its class, or which of ``most`` quantiles its number is in.

    Args:
        y: ``[G]`` classes; or ``[G, T]`` numbers, of which the mean of the standardised columns counts, gaps left out.
        most: The number of quantiles.

    Returns:
        ``[G]`` int64.
    """
    if not y.is_floating_point():
        return y
    columns = y.reshape(len(y), -1).double()
    spread = (columns - columns.nanmean(dim=0)).square().nanmean(dim=0).sqrt().clamp(min=1e-12)
    level = ((columns - columns.nanmean(dim=0)) / spread).nanmean(dim=1).nan_to_num()
    edges = torch.quantile(level, torch.arange(1, most, dtype=torch.float64) / most) if len(y) < 2**24 else level[:0]
    return torch.searchsorted(edges.unique(), level, right=True)
