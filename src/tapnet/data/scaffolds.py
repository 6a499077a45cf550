"""Scaffold splits: molecules with the same Bemis-Murcko scaffold are never in two parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import floor

import numpy as np
import torch

from tapnet.data.splits import Split
from tapnet.errors import DataError, SettingError


def scaffold_groups(smiles: Sequence[str]) -> list[int]:
    """Numbers molecules by their Bemis-Murcko scaffold: rings and what joins them, without chirality.

    All molecules without a ring are one group, as chemprop has it.

    Args:
        smiles: The SMILES of each molecule.

    Returns:
        The group of each molecule; groups are numbered in the order in which they first occur.

    Raises:
        DataError: A SMILES is not valid.
        SettingError: RDKit is not installed.

    Example:
        >>> from tapnet.data.scaffolds import scaffold_groups
        >>> scaffold_groups(["CC", "c1ccccc1C", "Oc1ccccc1", "CCO"])
        [0, 1, 1, 0]
    """
    from tapnet.data._molecule_arrays import check_rdkit, murcko_scaffolds, name_invalid

    check_rdkit()
    scaffolds = murcko_scaffolds(smiles)
    if None in scaffolds:
        wrong = [i for i, scaffold in enumerate(scaffolds) if scaffold is None]
        raise DataError(f"not valid: {name_invalid([smiles[i] for i in wrong], [f'molecule {i}' for i in wrong])}")
    number: dict[str | None, int] = {}
    return [number.setdefault(scaffold, len(number)) for scaffold in scaffolds]


def scaffold_split(
    groups: Sequence[Hashable], sizes: tuple[float, float, float] = (0.8, 0.1, 0.1), seed: int = 0
) -> Split:
    """Splits molecules as chemprop's ``scaffold_balanced`` does: no group is in two parts.

    Groups that are too large for validation or test train. The others, in a random order, fill the test part, then the
    validation part as far as they fit, and what is left trains. With the same seed the parts are those of chemprop 2.

    Args:
        groups: The group of each molecule, as `scaffold_groups` numbers them.
        sizes: The shares of training, validation and test; validation may be 0.
        seed: Of the random order.

    Returns:
        The numbers of the molecules of each part, ascending.

    Raises:
        SettingError: The shares do not add up to 1, or a part would be empty.
    """
    if min(sizes) < 0 or abs(sum(sizes) - 1) > 1e-6 or not sizes[0] or not sizes[2]:
        raise SettingError(f"the shares of training, validation and test add up to 1, unlike {sizes}")
    train_size, validation_size, test_size = (floor(len(groups) * share) for share in sizes)
    count = dict(sorted(Counter(groups).items(), key=lambda item: item[1]))  # stable: as they first occur
    small_enough = min(test_size, validation_size if sizes[1] else train_size)
    small = [group for group, size in count.items() if size <= small_enough]
    order = list(range(len(small)))
    np.random.default_rng(seed).shuffle(order)  # a list, as there
    small = [small[i] for i in order]
    part, test, validation = {}, 0, 0
    for group in [*small, *(group for group, size in count.items() if size > small_enough)]:
        if test + count[group] <= test_size:
            part[group], test = "test", test + count[group]
        elif validation + count[group] <= validation_size:
            part[group], validation = "validation", validation + count[group]
        else:
            part[group] = "train"
    parts = np.asarray([part[group] for group in groups])
    if not test or (sizes[1] and not validation) or not (parts == "train").any():
        raise SettingError(f"{len(count)} groups of {len(groups)} molecules cannot be split {sizes}: a part is empty")
    train, kept, tested = (torch.from_numpy(np.flatnonzero(parts == name)) for name in ("train", "validation", "test"))
    return Split(train, kept if sizes[1] else None, tested)
