"""Products of node or edge features with a weight: categories are looked up, never made one-hot."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding

from tapnet.data.features import FeatureRows, MixedFeatures


def product(x: FeatureRows, weight: Tensor) -> Tensor:
    """XW, where categories stand for their one-hot rows.

    Args:
        x: ``[N]`` categories, ``[N, F]`` floats, or both as ``MixedFeatures``.
        weight: ``[in, out]``; for ``MixedFeatures`` a row for each category, then one for each number.

    Returns:
        ``[N, out]``
    """
    if isinstance(x, MixedFeatures):
        numbers = 0 if x.numbers is None else x.numbers.size(1)
        rows = embedding(x.combination, combination_rows(x.table, weight[: len(weight) - numbers]))
        return rows if x.numbers is None else torch.addmm(rows, x.numbers.to(weight.dtype), weight[-numbers:])
    return x @ weight if x.is_floating_point() else embedding(x, weight)


def combination_rows(table: Tensor, weight: Tensor) -> Tensor:
    """[R, out]: for each combination the sum of its categories' rows of W; a category that is not known adds none."""
    if not len(weight):
        return weight.new_zeros(len(table), weight.size(1))
    rows = embedding(table.clamp(min=0), weight)
    return (rows * (table >= 0).unsqueeze(2)).sum(dim=1)
