"""Molecules as graphs: atoms and bonds with what RDKit knows of them, from SMILES or MOL blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from xxhash import xxh3_128_digest

from tapnet.data import _molecule_arrays as arrays
from tapnet.data.checks import graph_codes
from tapnet.data.convert import assemble
from tapnet.data.dataset import GraphDataset, Task
from tapnet.data.targets import Targets, detect_task, target_columns
from tapnet.errors import DataError


def from_smiles(
    smiles: Sequence[str], y: Any, name: str, names: Sequence[str] | None, task: Task | None
) -> GraphDataset:
    """``GraphDataset.from_smiles``"""
    arrays.check_rdkit()
    texts = [str(text).strip() for text in smiles]
    if names is not None and len(names) != len(texts):
        raise DataError(f"{len(texts)} SMILES, but {len(names)} names")
    columns = None if y is None else target_columns(y)
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
        named = arrays.name_invalid([texts[i] for i in wrong], [f"molecule {i}" for i in wrong])
        raise DataError(f"{len(wrong)} of {len(texts)} SMILES are not valid: {named}")
    dataset = assemble_molecules(read, targets, name=name, names=names)
    remarks = () if targets is None else targets.remarks
    notes = copies_of_molecules(dataset, molecule_codes(dataset, read), targets)
    return replace(dataset, notes=(*remarks, *notes))


def assemble_molecules(
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
    """
    read = read.valid()
    return describe_molecules(plain_molecules(read, name=name, source=source), read.smiles, targets, names)


def plain_molecules(read: arrays.MoleculeArrays, *, name: str, source: str = "") -> GraphDataset:
    """The graphs of valid molecules alone; the values of their labels are the packed atoms and bonds."""
    first_atom = np.repeat(np.cumsum(read.num_atoms) - read.num_atoms, read.num_bonds)
    atom_codes, atoms = np.unique(read.atoms, return_inverse=True)
    bond_codes, bonds = np.unique(read.bonds, return_inverse=True)
    return assemble(
        name=name,
        nodes_per_graph=read.num_atoms,
        edge_index=read.ends + first_atom,
        y=np.zeros(len(read.smiles), np.int64),
        node_labels=atoms,
        node_attributes=np.ascontiguousarray(read.numbers.T),
        edge_labels=bonds,
        values={"y": (None,), "node_labels": atom_codes.tolist(), "edge_labels": bond_codes.tolist()},
        features="labels",
        source=source,
    )


def describe_molecules(
    plain: GraphDataset, smiles: Sequence[str], targets: Targets | None, names: Sequence[str] | None = None
) -> GraphDataset:
    """The data set of plain molecules with what their atoms and bonds are, and what is known of them.

    A molecule without a name is called by its SMILES.
    """
    atom_codes, bond_codes = (np.asarray(v, np.int64) for v in (plain.node_label_values, plain.edge_label_values or ()))
    atom_values, bond_values = arrays.atom_values(atom_codes), arrays.bond_values(bond_codes)
    if targets is not None:
        y = torch.from_numpy(targets.y)
        plain = replace(plain, task=targets.task, y=y, classes=targets.classes, target_names=targets.names)
    return replace(
        plain,
        node_label_values=tuple(atom_values),
        edge_label_values=tuple(bond_values),
        label_names=tuple(value[0] for value in atom_values),
        label_attribute=arrays.ATOM_COLUMNS[0],
        attribute_names=arrays.ATOM_NUMBERS,
        node_columns=arrays.ATOM_COLUMNS,
        edge_columns=arrays.BOND_COLUMNS,
        smiles=tuple(smiles),
        graph_names=_filled(smiles if names is None else names, smiles),
    ).with_features("all")


def _filled(names: Sequence[str], smiles: Sequence[str]) -> tuple[str, ...]:
    """The names, with the SMILES in place of those that are empty."""
    given = ("" if name is None else str(name) for name in names)
    return tuple(name if name.strip() else text for name, text in zip(given, smiles, strict=True))


def in_written_order(dataset: GraphDataset) -> GraphDataset:
    """The molecules with atoms in the order of their SMILES, as they were before they had RDKit's canonical order.

    What is not in ``checksum`` is left as it is.
    """
    first = dataset.node_ptr[:-1]
    orders = [arrays.atom_order(text) for text in dataset.smiles or ()]
    if list(map(len, orders)) != dataset.nodes_per_graph.tolist():
        return dataset  # SMILES that somebody else put there
    offset = torch.repeat_interleave(first, dataset.nodes_per_graph)
    place = torch.from_numpy(np.concatenate(orders)) + offset
    node = torch.argsort(place)
    row = torch.repeat_interleave(place, dataset.degree)
    col = place[dataset.col + torch.repeat_interleave(offset, dataset.degree)]
    edge = torch.from_numpy(np.lexsort((col.numpy(), row.numpy())))
    moved: dict[str, Any] = {"x": dataset.x[node], "col": (col - offset[row])[edge].int()}
    moved["rowptr"] = torch.cat([torch.zeros(1, dtype=torch.int64), dataset.degree[node].cumsum(0)])
    for key in ("edge_labels", "edge_attributes", "edge_attr"):
        values = getattr(dataset, key)
        moved[key] = None if values is None else values[edge]
    return replace(dataset, **moved)


def molecule_codes(dataset: GraphDataset, read: arrays.MoleculeArrays) -> NDArray[np.uint64]:
    """[G] a code for each molecule, the same wherever the molecule is read; see `graph_codes`."""
    return graph_codes(replace(dataset, x=torch.from_numpy(read.atoms), categories=()))


def copies_of_molecules(dataset: GraphDataset, codes: NDArray[np.uint64], targets: Targets | None) -> tuple[str, ...]:
    """Counts the molecules that are there more than once, by canonical SMILES, mixtures, and those with isotopes.

    Args:
        dataset: The molecules.
        codes: Of each molecule.
        targets: Of each molecule.

    Returns:
        A note of each kind, as far as there are any.
    """
    smiles = dataset.smiles or ()
    alike = np.flatnonzero(have_copies(codes))  # canonical SMILES of all would take as long as reading them did
    digests = canonical_digests([smiles[i] for i in alike])
    copied, other = have_copies(digests), 0
    if targets is not None and copied.any():
        group = np.unique(digests, return_inverse=True)[1]
        other = int((copied & _contradicted(targets.y[alike], group)).sum())
    isotopic = sum(map(arrays.has_isotopic_hydrogen, smiles))
    return molecule_notes(len(smiles), sum(map(is_mixture, smiles)), isotopic, int(copied.sum()), other)


def molecule_notes(total: int, mixtures: int, isotopic: int, copied: int, other: int = 0) -> tuple[str, ...]:
    """What a user should know of molecules.

    Args:
        total: The number of molecules.
        mixtures: How many of them are salts or mixtures.
        isotopic: How many have deuterium or tritium.
        copied: How many have a copy.
        other: How many of these have a copy with another target.

    Returns:
        A note of each kind, as far as there are any.
    """
    notes = []
    if mixtures:
        notes.append(f"{mixtures} of {total} molecules are salts or mixtures (several fragments)")
    if isotopic:
        notes.append(f"{isotopic} of {total} molecules have deuterium or tritium, which is read as any hydrogen")
    if copied:
        copies = f"{copied} of {total} molecules have a copy (the same canonical SMILES)"
        notes.append(copies + (f", {other} of them one with another target" if other else ""))
    return tuple(notes)


def is_mixture(smiles: str) -> bool:
    """Whether a molecule has several fragments."""
    return "." in smiles


def have_copies(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """[n] whether a code is there more than once."""
    _, code, count = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(count[code] > 1)


def canonical_digests(smiles: Sequence[str]) -> NDArray[np.bytes_]:
    """[n] a digest of the canonical SMILES of each molecule."""
    return np.array([xxh3_128_digest(text.encode()) for text in arrays.canonical_smiles(smiles)], "S16")


def _contradicted(y: NDArray[Any], group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[G] whether the known targets of a molecule's group differ."""
    values = y.reshape(len(y), -1).astype(np.float64)
    lowest, highest = np.full((2, group.max() + 1, values.shape[1]), np.inf)
    np.minimum.at(lowest, group, np.where(np.isnan(values), np.inf, values))
    highest *= -1
    np.maximum.at(highest, group, np.where(np.isnan(values), -np.inf, values))
    return np.asarray((lowest < highest).any(axis=1)[group])
