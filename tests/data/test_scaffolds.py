"""Scaffold splits: no scaffold in two parts, and the parts are chemprop's."""

import csv
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tapnet.data.scaffolds import scaffold_groups, scaffold_split
from tapnet.data.splits import grouped_folds, quantile_strata
from tapnet.errors import DataError, SettingError


def test_molecules_with_the_same_rings_are_a_group():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "Cc1ccccc1", "C1CCCCC1", "[CH3:1][c:2]1ccccc1", "CC", "C[C@H]1CC1CN", "C[C@@H]1CC1CO"]
    assert scaffold_groups(smiles) == [0, 1, 2, 1, 0, 3, 3]
    with pytest.raises(DataError, match="molecule 1"):
        scaffold_groups(["C", "x"])


GROUPS = st.lists(st.integers(0, 30), min_size=40, max_size=200)


@given(GROUPS, st.integers(0, 5), st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0.25, 0.25), (0.7, 0.0, 0.3)]))
def test_no_group_is_torn_apart_and_no_part_overfilled(groups, seed, sizes):
    try:
        split = scaffold_split(groups, sizes, seed)
    except SettingError:  # a part would be empty
        assert min(Counter(groups).values()) > 1 or min(sizes[1:]) * len(groups) < 10
        return
    assert (split.validation is None) == (sizes[1] == 0)
    parts = [split.train, split.test] + ([] if split.validation is None else [split.validation])
    assert sorted(torch.cat(parts).tolist()) == list(range(len(groups)))
    of_group = Counter(group for part in parts for group in {groups[i] for i in part})
    assert set(of_group.values()) == {1}
    assert len(split.test) <= sizes[2] * len(groups)
    assert split.validation is None or len(split.validation) <= sizes[1] * len(groups)


@pytest.mark.parametrize(
    ("seed", "validation", "test"),
    [(0, [7, 13, 14], [6, 9, 11]), (1, [6, 9, 11], [2, 5, 14]), (2, [3, 10, 11], [6, 13, 14])],
)
def test_the_split_is_that_of_chemprop(seed, validation, test):
    """Made by chemprop 2.3's ``make_split_indices(mols, "scaffold_balanced", (0.6, 0.2, 0.2), seed)``."""
    split = scaffold_split([0, 0, 1, 2, 0, 3, 4, 5, 0, 6, 2, 7, 0, 8, 9], (0.6, 0.2, 0.2), seed)
    assert (split.validation.tolist(), split.test.tolist()) == (validation, test)


def test_the_parts_of_bbbp_are_as_large_as_those_of_chemprop(real_data):
    Chem = pytest.importorskip("rdkit.Chem")
    from rdkit import rdBase

    with rdBase.BlockLogs(), (real_data / "molecules" / "BBBP.csv").open() as file:
        smiles = [row["smiles"] for row in csv.DictReader(file) if Chem.MolFromSmiles(row["smiles"])]
    split = scaffold_split(groups := scaffold_groups(smiles))
    assert len(set(groups)) == 1025
    assert [len(split.train), len(split.validation), len(split.test)] == [1633, 203, 203]
    assert int(split.test.sum()) == 187496  # the same molecules


@pytest.mark.parametrize("sizes", [(0.8, 0.1, 0.2), (1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1)])
def test_shares_that_are_none_are_refused(sizes):
    with pytest.raises(SettingError, match="add up to 1"):
        scaffold_split([0, 1, 2], sizes)


# ---- folds ----


@given(GROUPS, st.integers(2, 5), st.integers(0, 3), st.data())
def test_folds_of_groups(groups, folds, seed, data):
    if len(set(groups)) < folds:
        with pytest.raises(SettingError, match="groups"):
            grouped_folds(groups, folds, seed)
        return
    y = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=len(groups), max_size=len(groups))))
    made = grouped_folds(groups, folds, seed, y)
    assert np.sort(np.concatenate(made)).tolist() == list(range(len(groups)))
    assert all(len(fold) for fold in made)
    in_folds = [{groups[i] for i in fold} for fold in made]
    assert sum(map(len, in_folds)) == len(set(groups))
    assert [fold.tolist() for fold in grouped_folds(groups, folds, seed, y)] == [fold.tolist() for fold in made]


def test_no_fold_is_empty_where_each_group_is_of_one_class():
    y = torch.tensor([0, 1] * 14)
    made = grouped_folds(list("ABCD") * 7, 3, 0, y)  # those of one class alone would fill two folds
    assert sorted(map(len, made)) == [7, 7, 14]


def test_folds_have_the_same_sizes_and_classes_where_groups_allow_it():
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(300), generator.integers(1, 8, 300))
    y = torch.from_numpy((generator.random(len(groups)) < 0.1).astype(np.int64))
    made = grouped_folds([f"patient {i}" for i in groups], 5, 0, y)
    sizes, rare = [len(fold) for fold in made], [int(y[fold].sum()) for fold in made]
    assert max(sizes) - min(sizes) <= 3
    assert max(rare) - min(rare) <= 1
    assert [f.tolist() for f in grouped_folds(groups, 5, 1, y)] != [f.tolist() for f in made]


def test_numbers_count_by_their_quantiles():
    y = torch.arange(100.0)[:, None]
    assert torch.bincount(quantile_strata(y)).tolist() == [10] * 10
    assert quantile_strata(torch.tensor([[1.0], [float("nan")], [1.0]])).tolist() == [1, 1, 1]
    assert quantile_strata(torch.tensor([2, 0])).tolist() == [2, 0]
    made = grouped_folds(np.repeat(np.arange(50), 2), 5, 0, y)
    assert max(float(y[fold].mean()) for fold in made) - min(float(y[fold].mean()) for fold in made) < 5
