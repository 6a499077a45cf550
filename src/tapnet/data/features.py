"""MixedFeatures: several categories and numbers of each node (or edge), without a one-hot matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class MixedFeatures:
    """What N nodes (or edges) carry: K categorical columns, and F numbers.

    Few of the possible combinations of categories occur, so each node has the number of its combination, and a table
    says which categories that is. All columns share one numbering, 0 … C-1: column k's categories follow those of
    column k-1. A layer of width C + F multiplies it as if the categories were one-hot rows side by side with the
    numbers (``tapnet.ops.features.product``).

    Example:
        >>> import torch
        >>> x = MixedFeatures(torch.tensor([0, 1, 0]), torch.tensor([[0, 2], [1, 3]]), torch.rand(3, 5))
        >>> len(x), x[torch.tensor([2])].combination.tolist()
        (3, [0])
    """

    combination: Tensor  # [N] int64: 0 … R-1
    table: Tensor  # [R, K] int64: the categories of each combination, 0 … C-1; -1 for one that is not known
    numbers: Tensor | None = None  # [N, F] floats

    def __len__(self) -> int:
        return len(self.combination)

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.combination.device

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, K + F)``"""
        return len(self), self.table.size(1) + (0 if self.numbers is None else self.numbers.size(1))

    def __getitem__(self, rows: Tensor | slice) -> MixedFeatures:
        numbers = None if self.numbers is None else self.numbers[rows]
        return MixedFeatures(self.combination[rows], self.table, numbers)

    def index_select(self, dim: int, rows: Tensor) -> MixedFeatures:
        """Those of some nodes, as a tensor's ``index_select(0, rows)``."""
        numbers = None if self.numbers is None else self.numbers.index_select(dim, rows)
        return MixedFeatures(self.combination.index_select(dim, rows), self.table, numbers)

    def to(self, device: torch.device | str) -> MixedFeatures:
        """The same on another device."""
        numbers = None if self.numbers is None else self.numbers.to(device)
        return MixedFeatures(self.combination.to(device), self.table.to(device), numbers)


FeatureRows: TypeAlias = Tensor | MixedFeatures  # [N] categories, [N, F] floats, or both


def as_categories(x: FeatureRows) -> Tensor | None:
    """[N] one category for each node: as they are, or the combination; None where the features are floats."""
    if isinstance(x, MixedFeatures):
        return x.combination
    return None if x.is_floating_point() else x


def numbers_of(x: FeatureRows) -> Tensor | None:
    """[N, F] the numbers of each node; None where there are only categories."""
    if isinstance(x, MixedFeatures):
        return x.numbers
    return x if x.is_floating_point() else None
