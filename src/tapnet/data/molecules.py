"""Molecules as graphs: atoms and bonds with what RDKit knows of them, from SMILES or MOL blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.data import _molecule_arrays as arrays
from tapnet.data.checks import graph_codes
from tapnet.data.convert import assemble
from tapnet.data.dataset import GraphDataset, Task
from tapnet.data.targets import Targets, detect_task
from tapnet.errors import DataError, SettingError
from tapnet.files import printable

SHOWN = 3  # of what is wrong, the first ones are named


def check_rdkit() -> None:
    """Raises a SettingError where RDKit, which reads molecules, is not installed."""
    if find_spec("rdkit") is None:
        raise SettingError('molecules need RDKit: pip install "tapnet[molecules]", or pip install rdkit')


def from_smiles(
    smiles: Sequence[str], y: Any, name: str, names: Sequence[str] | None, task: Task | None
) -> GraphDataset:
    """``GraphDataset.from_smiles``"""
    check_rdkit()
    texts = [str(text).strip() for text in smiles]
    columns = None if y is None else _target_columns(y)
    targets = None
    if columns is not None:
        lengths = {len(column) for column in columns.values()} or {0}
        if lengths != {len(texts)}:
            raise DataError(f"{len(texts)} SMILES, but {max(lengths)} targets")
        targets = detect_task(columns, task)
        if targets.task == "classification" and not targets.known.all():
            raise DataError(f"molecule {int(targets.known.argmin())} has no class; leave out molecules without one")
    read = arrays.molecule_arrays(texts)
    if wrong := np.flatnonzero(read.num_atoms == 0).tolist():
        named = name_invalid([texts[i] for i in wrong], [f"molecule {i}" for i in wrong])
        raise DataError(f"{len(wrong)} of {len(texts)} SMILES are not valid: {named}")
    dataset = molecule_dataset(read, targets, name=name, names=names)
    return dataset if targets is None else replace(dataset, notes=(*targets.remarks, *dataset.notes))


def _target_columns(y: Any) -> dict[str, Sequence[Any]]:
    """The target columns of a list, an array, a tensor, a mapping, or a Series or DataFrame of pandas."""
    if isinstance(y, Mapping) or hasattr(y, "columns"):
        return {str(key): list(y[key]) for key in (y if isinstance(y, Mapping) else y.columns)}
    values = y.tolist() if hasattr(y, "tolist") else list(y)
    if any(isinstance(row, list | tuple) for row in values):
        if len({len(row) if isinstance(row, list | tuple) else -1 for row in values}) > 1:
            raise DataError("y does not have the same number of targets for every molecule")
        return {f"target {i + 1}": column for i, column in enumerate(zip(*values, strict=True))}
    return {str(getattr(y, "name", None) or "y"): values}


def name_invalid(texts: Sequence[str], places: Sequence[object]) -> str:
    """Names the first of some molecules that are not valid, with the reason.

    Args:
        texts: The SMILES or MOL block of each.
        places: Where each of them stands.
    """
    named = []
    for text, place in list(zip(texts, places, strict=True))[:SHOWN]:
        shown = "" if not text or "\n" in text else f"{printable(text)[:60]}: "
        named.append(f"{place} ({shown}{arrays.why_not_valid(text)})")
    return ", ".join(named) + (f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else "")


def molecule_dataset(
    read: arrays.MoleculeArrays,
    targets: Targets | None,
    *,
    name: str,
    names: Sequence[str] | None = None,
    source: str = "",
) -> GraphDataset:
    """Makes the data set of the molecules that are valid.

    Args:
        read: The arrays of molecules.
        targets: The targets of those that are valid; None: not known, which is enough for prediction.
        name: The name of the data set.
        names: What the valid molecules are called; by default their SMILES.
        source: The file that they were read from.

    Returns:
        The data set, with a note on copies among the molecules.
    """
    valid = read.num_atoms > 0
    smiles = tuple(text for text, good in zip(read.smiles, valid, strict=True) if good)
    first_atom = np.repeat(np.cumsum(read.num_atoms) - read.num_atoms, read.num_bonds)
    atom_codes, atoms = np.unique(read.atoms, return_inverse=True)
    bond_codes, bonds = np.unique(read.bonds, return_inverse=True)
    atom_values, bond_values = arrays.atom_values(atom_codes), arrays.bond_values(bond_codes)
    has_classes = targets is not None and targets.task == "classification"
    dataset = assemble(
        name=name,
        nodes_per_graph=read.num_atoms[valid],
        edge_index=read.ends + first_atom,
        y=targets.y if targets is not None and has_classes else np.zeros(len(smiles), np.int64),
        node_labels=atoms,
        node_attributes=np.ascontiguousarray(read.numbers.T),
        edge_labels=bonds,
        values={
            "y": targets.classes if targets is not None and has_classes else (None,),
            "node_labels": atom_values,
            "edge_labels": bond_values,
        },
        features="labels",
        source=source,
    )
    notes = copies_of_molecules(dataset, smiles, targets)
    if targets is not None:
        y = dataset.y if has_classes else torch.from_numpy(targets.y)
        dataset = replace(dataset, task=targets.task, y=y, classes=targets.classes, target_names=targets.names)
    return replace(
        dataset,
        label_names=tuple(value[0] for value in atom_values),
        label_attribute=arrays.ATOM_COLUMNS[0],
        attribute_names=arrays.ATOM_NUMBERS,
        node_columns=arrays.ATOM_COLUMNS,
        edge_columns=arrays.BOND_COLUMNS,
        smiles=smiles,
        graph_names=smiles if names is None else tuple(names),
        notes=notes,
    ).with_features("all")


def copies_of_molecules(dataset: GraphDataset, smiles: Sequence[str], targets: Targets | None) -> tuple[str, ...]:
    """Counts the molecules that are there more than once, by canonical SMILES, and those that are mixtures.

    Args:
        dataset: The molecules with the numbers of their atoms' labels as features.
        smiles: Of each molecule.
        targets: Of each molecule.

    Returns:
        A note of each kind, as far as there are any.
    """
    notes = []
    if mixtures := sum("." in text for text in smiles):
        notes.append(f"{mixtures} of {len(smiles)} molecules are salts or mixtures (several fragments)")
    _, code, count = np.unique(graph_codes(dataset), return_inverse=True, return_counts=True)
    alike = np.flatnonzero(count[code] > 1)  # canonical SMILES of all would take as long as reading them did
    canonical = arrays.canonical_smiles([smiles[i] for i in alike])
    _, group, count = np.unique(canonical, return_inverse=True, return_counts=True)
    copied = count[group] > 1 if len(alike) else np.zeros(0, np.bool_)
    if copied.any():
        other = 0 if targets is None else int((copied & _contradicted(targets.y[alike], group)).sum())
        copies = f"{int(copied.sum())} of {len(smiles)} molecules have a copy (the same canonical SMILES)"
        notes.append(copies + (f", {other} of them one with another target" if other else ""))
    return tuple(notes)


def _contradicted(y: NDArray[Any], group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[G] whether the known targets of a molecule's group differ."""
    values = y.reshape(len(y), -1).astype(np.float64)
    lowest, highest = np.full((2, group.max() + 1, values.shape[1]), np.inf)
    np.minimum.at(lowest, group, np.where(np.isnan(values), np.inf, values))
    highest *= -1
    np.maximum.at(highest, group, np.where(np.isnan(values), -np.inf, values))
    return np.asarray((lowest < highest).any(axis=1)[group])
