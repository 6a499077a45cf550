"""Splits that a user chooses: by groups, by scaffolds, by a column of the table, or out of a JSON file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.checks import copy_groups
from tapnet.data.dataset import GraphDataset
from tapnet.data.splits import Split, Splits, grouped_folds, split_by_folds
from tapnet.data.targets import is_gap, remark_similar
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.files import printable, read_regular, write_atomically

WORDS = ("random", "scaffold", "deduplicate", "group:COLUMN", "column:NAME", "FILE.json")
MAX_SPLITS_BYTES = 1 << 28
PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def choose_splits(split: str | Path | None, dataset: GraphDataset, folds: int) -> Splits | None:
    """Makes the splits that a user asks for.

    Args:
        split: None or ``"random"`` for stratified folds; ``"scaffold"`` for folds that keep molecules of one
            Bemis-Murcko scaffold together; ``"deduplicate"`` for folds that keep copies of a graph together;
            ``"group:COLUMN"`` for folds that keep graphs of equal values in a column of the table together;
            ``"column:NAME"`` for one split that a column of the table names (train, validation, test); or a JSON file:
            a list of splits with the numbers of graphs under "train", "validation" (or "val") and "test", or the format
            of Errica and others ("test" and "model_selection").
        dataset: the data.
        folds: the number of folds, where they are made here.

    Returns:
        The splits; None for stratified folds.

    Raises:
        SettingError: for words that mean nothing here, or folds that cannot be made.
        DataError: for a file that cannot be read, or does not fit the data.
    """
    if split is None or split == "random":
        return None
    words = str(split)
    if words == "scaffold":
        from tapnet.data.scaffolds import scaffold_groups

        if dataset.smiles is None:
            raise SettingError(f"{dataset.name} has no molecules, so there are no scaffolds to split by")
        return _by_groups(words, scaffold_groups(dataset.smiles), dataset, folds)
    if words == "deduplicate":
        return _by_groups(words, copy_groups(dataset).tolist(), dataset, folds)
    kind, colon, column = words.partition(":")
    if colon and kind == "group":
        return _by_groups(words, _groups(dataset, column), dataset, folds)
    if colon and kind == "column":
        return Splits(words, (_by_names(dataset, column),))
    if words.endswith(".json"):
        return read_splits(Path(words), len(dataset))
    raise SettingError(f"split is one of {', '.join(WORDS)}, not {words!r}")


def _by_groups(name: str, groups: Sequence[Hashable], dataset: GraphDataset, folds: int) -> Splits:
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    codes = np.asarray([number[group] for group in groups])
    parts = grouped_folds(codes, folds, y=dataset.y)
    whole = [split_by_folds(parts, fold, validation=False) for fold in range(folds)]
    return Splits(name, tuple(whole), codes)


def _column(dataset: GraphDataset, name: str) -> Sequence[Hashable]:
    columns = dataset.graph_columns or {}
    if name not in columns:
        known = f"it has {', '.join(columns)}" if columns else "it has none"
        raise SettingError(f"the table of {dataset.name} has no other column {name!r}; {known}")
    return columns[name]


def _groups(dataset: GraphDataset, column: str) -> list[str]:
    """The groups that a column names, spaces around them aside; what is to be known of them is said."""
    found = [str(value).strip() for value in _column(dataset, column)]
    notes = []
    if empty := sum(map(is_gap, found)):
        has = "graph has no group and is one" if empty == 1 else "graphs have no group and are one together"
        notes.append(f"{empty} {has} in the column {column!r}")
    notes += [f"the column {column!r} has {remark}" for remark in remark_similar(sorted(set(found)), "groups")]
    for note in notes:
        warnings.warn(f"{dataset.name}: {note}", DataNote, stacklevel=2)
    return ["" if is_gap(group) else group for group in found]


def _by_names(dataset: GraphDataset, column: str) -> Split:
    found: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    empty = 0
    names = dataset.graph_names or dataset.smiles
    where = dataset.source or dataset.name
    for i, value in enumerate(_column(dataset, column)):
        part = PARTS.get(str(value).strip().lower())
        if part is None and not str(value).strip():
            empty += 1
            continue
        if part is None:
            which = f"graph {i}" + (f" ({printable(names[i]):.60})" if names and names[i] else "")
            raise DataError(
                f"{where}: the column {column!r} says {value!r} of {which}, where train, validation or test belongs"
            )
        found[part].append(i)
    if not found["train"] or not found["test"]:
        raise DataError(f"{where}: the column {column!r} names no graphs for training, or none for testing")
    if empty:
        warnings.warn(f"{empty} graphs have no part in the column {column!r} and are left out", DataNote, stacklevel=2)
    parts = {name: torch.tensor(numbers) for name, numbers in found.items()}
    return Split(parts["train"], parts["validation"] if found["validation"] else None, parts["test"])


# ---- files ----


def read_splits(file: Path, graphs: int) -> Splits:
    """Reads splits from a JSON file.

    Args:
        file: a list (or one) of objects with "train", "validation" or "val", and "test", or of Errica and others' with
            "test" and "model_selection".
        graphs: how many there are.

    Raises:
        DataError: if the file cannot be read, or names graphs that are not there, twice, or in two parts.
    """
    try:
        content = json.loads(read_regular(file, MAX_SPLITS_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: no splits can be read ({getattr(error, 'strerror', None) or error})") from None
    listed = content if isinstance(content, list) else [content]
    if not listed or not all(isinstance(one, Mapping) for one in listed):
        raise DataError(f"{file}: a list of splits was expected, each with train and test")
    parts = tuple(_split_in(one, f"{file}, split {i}", graphs) for i, one in enumerate(listed))
    named = torch.cat([numbers for part in parts for numbers in part if numbers is not None]).unique()
    if len(named) < graphs:
        note = f"{file}: {graphs - len(named)} of {graphs} graphs are in no part of a split and are left out"
        warnings.warn(note, DataNote, stacklevel=2)
    return Splits(file.name, parts)


def write_splits(file: Path, parts: Sequence[Split]) -> None:
    """Writes splits to a JSON file in the format of Errica and others, which `read_splits` reads.

    Each has "test", and in "model_selection" one object with "train" and, where graphs validate, "validation".

    Args:
        file: what to write; it is replaced.
        parts: the split of each fold.
    """
    listed = []
    for train, validation, test in parts:
        inner = {"train": train.tolist()} | ({} if validation is None else {"validation": validation.tolist()})
        listed.append({"test": test.tolist(), "model_selection": [inner]})
    write_atomically(file, json.dumps(listed).encode())


def _split_in(one: Mapping[str, Any], where: str, graphs: int) -> Split:
    chosen = one.get("model_selection", [one])
    inner = chosen[0] if isinstance(chosen, list) and chosen and isinstance(chosen[0], Mapping) else one
    train, test = (
        _numbers(inner.get("train"), f"{where}, train", graphs),
        _numbers(one.get("test"), f"{where}, test", graphs),
    )
    held_out = inner.get("validation", inner.get("val", inner.get("valid")))
    validation = None if held_out is None else _numbers(held_out, f"{where}, validation", graphs)
    parts = {"train": train, "validation": validation, "test": test}
    there = {name: numbers for name, numbers in parts.items() if numbers is not None}
    graph, count = torch.cat(list(there.values())).unique(return_counts=True)
    if (count > 1).any():
        twice = int(graph[count > 1][0])
        named = [name for name, numbers in there.items() for number in numbers.tolist() if number == twice]
        raise DataError(f"{where}: graph {twice} is named twice, in {named[0]} and in {named[1]}")
    return Split(train, validation, test)


def _numbers(values: Any, where: str, graphs: int) -> Tensor:
    try:
        numbers: NDArray[Any] = np.asarray(values)
    except ValueError:
        numbers = np.zeros(0)
    if isinstance(values, list) and not values:
        raise DataError(f"{where}: the list is empty; it has to name a graph")
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise DataError(f"{where}: a list of the numbers of graphs was expected")
    outside = numbers[(numbers < 0) | (numbers >= graphs)]
    if len(outside):
        raise DataError(f"{where}: graph {int(outside[0])} is not there; the graphs are 0 to {graphs - 1}")
    return torch.from_numpy(numbers.astype(np.int64))
