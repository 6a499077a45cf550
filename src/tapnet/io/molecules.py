"""Files of molecules: tables (.csv, .tsv) with a column of SMILES, lists of SMILES (.smi) and SDF, all also as .gz."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.data._molecule_arrays import available_cores, check_rdkit, molecule_arrays
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.molecules import copies_of_molecules, describe_molecules, molecule_codes, plain_molecules
from tapnet.data.targets import Targets, detect_task
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.dataset_files import molecules_name
from tapnet.io.mapped_parts import MappedParts, NotInPartsError
from tapnet.io.molecule_files import (
    NO_MOLECULES,
    Columns,
    DataFrameCells,
    LeftOut,
    MoleculeCells,
    molecule_text,
    read_table,
)
from tapnet.progress import counting

LARGE_ROWS = 1 << 18  # from so many molecules on, their arrays are on disk
ROWS_PER_CORE, MOST_ROWS = 1 << 13, 1 << 17  # of a large file, read at once
DATAFRAME_GAPS = ("nan", "None", "<NA>", "NaT")


class MoleculeTable(NamedTuple):
    """A file of molecules as a table, and the data set of the rows that could be used.

    Attributes:
        header: ``[C]`` the names of the columns.
        rows: ``[R]`` the cells of each row, ``[C]`` each.
        dataset: The molecules.
        kept: ``[G]`` the row of each molecule of the data set; the other rows were left out.
    """

    header: tuple[str, ...]
    rows: list[list[str]]
    dataset: GraphDataset
    kept: list[int]


def read_molecules(
    path: str | Path,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    *,
    name: str | None = None,
    features: Features | None = None,
) -> GraphDataset:
    """Reads the molecules of a file.

    Rows without a valid molecule and rows without any target are left out. The notes of the data set say how many, with
    the lines of the first ones; which columns were used, and for what; and how many molecules are mixtures or copies.

    Args:
        path: A .csv or .tsv with a header, a .smi or an .sdf, each also compressed as .gz.
        smiles: The column of SMILES; by default the one that is called so.
        target: The column with the target, or several: a list, or names with commas between them. By default the only
            column of numbers that is not an id. An empty list: none, which is enough for prediction.
        task: ``"classification"``, ``"multilabel"`` or ``"regression"``; by default what the columns ask for, as
            :func:`tapnet.data.targets.detect_task` says.
        name: The name of the data set; by default that of the file.
        features: What ``x`` holds; by default everything that is known of atoms.

    Returns:
        The data set, as :meth:`tapnet.GraphDataset.from_smiles` makes it.

    Raises:
        DataError: The file is not such a table, no molecule is valid, or the target is not clear; the message names the
            line or the columns.
        SettingError: RDKit is not installed.

    Example:
        >>> from tapnet.io.molecules import read_molecules
        >>> read_molecules("BBBP.csv", target="p_np")  # doctest: +SKIP
        GraphDataset('BBBP', graphs=2039, nodes=49068, edges=52900, classes=2, all=61)
    """
    dataset = read_molecule_table(path, smiles, target, task, name=name).dataset
    return dataset if features is None else dataset.with_features(features)


def read_molecule_table(
    path: str | Path,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    *,
    name: str | None = None,
) -> MoleculeTable:
    """``read_molecules``, and the table with all its rows."""
    check_rdkit()
    path = Path(path)
    return _read_rows(read_table(path), smiles, target, task, name or molecules_name(path), str(path))


def read_dataframe(
    frame: Any, smiles: str | None = None, target: str | Sequence[str] | None = None, task: Task | None = None
) -> GraphDataset:
    """``read_molecules`` of a DataFrame (of pandas or polars), whose rows are called by their index.

    Args:
        frame: The table.
        smiles: The column of SMILES.
        target: The column with the target, or several.
        task: What these hold.

    Returns:
        The data set, called ``molecules``.

    Raises:
        DataError: No column is called SMILES, no molecule is valid, or the target is not clear.
        SettingError: RDKit is not installed.
    """
    check_rdkit()
    table = frame_cells(frame)
    if not table.rows:
        raise DataError(f"DataFrame: {NO_MOLECULES}")
    return _read_rows(table, smiles, target, task, "molecules", "").dataset


def frame_cells(frame: Any, without: Any = None) -> DataFrameCells:
    """A DataFrame as text.

    Args:
        frame: The DataFrame.
        without: A column whose cells hold no text, and are empty in the table.

    Returns:
        The table, whose rows are called by the index.

    Raises:
        DataError: Two columns have one name.
    """
    header = tuple(map(str, frame.columns))
    if twice := [name for i, name in enumerate(header) if name in header[:i]]:
        raise DataError(f"DataFrame: two columns are called {printable(twice[0])!r}")
    columns = [
        ["" if without is not None and name == without else _cell_text(value) for value in frame[name]]
        for name in frame.columns
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return DataFrameCells(Path("DataFrame"), header, rows, list(getattr(frame, "index", range(len(rows)))), mark="")


def _cell_text(value: Any) -> str:
    """A value as a .csv has it; gaps are empty."""
    return "" if is_frame_gap(value) else str(value)


def is_frame_gap(value: Any) -> bool:
    """Whether a cell of a DataFrame is empty."""
    return not isinstance(value, str) and str(value) in DATAFRAME_GAPS


def _read_rows(
    table: MoleculeCells,
    smiles: str | None,
    target: str | Sequence[str] | None,
    task: Task | None,
    name: str,
    source: str,
) -> MoleculeTable:
    """The molecules of a table, as ``read_molecules`` says."""
    path = table.path
    columns = Columns.choose(table, smiles, target)
    if task is not None and target is None and not columns.targets:
        raise DataError(f"{path}: which column is the target? The columns are {table.listed()}; name one or several")
    texts = list(map(molecule_text, table.column(columns.smiles)))
    empty, no_target, invalid = LeftOut("without a molecule"), LeftOut("without a target"), LeftOut("not valid")
    remarks: tuple[str, ...] = ()
    for i, text in enumerate(texts):
        if not text:
            empty.add(table.place(i))
    kept = [i for i, text in enumerate(texts) if text]
    if not kept:
        raise columns.no_molecule(path)
    if columns.targets:
        targets, kept = rows_with_targets(table, columns.targets, task, kept, no_target)
        remarks, task = targets.remarks, targets.task
    chosen = [texts[i] for i in kept]
    read = _read_large(chosen, name, source) or _read_all(chosen, name, source)
    for i, valid in zip(kept, read.valid, strict=True):
        if not valid:
            invalid.add(table.place(i), texts[i])
    if read.plain is None:
        raise invalid.nothing_left(path)
    kept = [i for i, valid in zip(kept, read.valid, strict=True) if valid]
    found = read_targets(table, columns.targets, task, kept) if columns.targets else None
    cells = {key: tuple(table.rows[i][c] for i in kept) for c, key in enumerate(table.header)}
    names = cells.get(columns.names or "")
    names = names if names and any(map(str.strip, names)) else None
    dataset = describe_molecules(read.plain, read.smiles, found, names)
    copies = copies_of_molecules(dataset, read.codes, found)
    left_out = [why.note(len(texts)) for why in (empty, no_target, invalid) if why.count]
    described = columns.describe(found, table.header, table.decimal_commas_note(columns.targets))
    notes = [f"{path}: {note}" for note in (described, *remarks, *left_out, *copies)]
    others = {key: column for key, column in cells.items() if key not in (columns.smiles, *columns.targets)}
    dataset = replace(dataset, notes=tuple(notes), graph_columns=others or None)
    return MoleculeTable(table.header, table.rows, dataset, kept)


def rows_with_targets(
    table: MoleculeCells, names: Sequence[str], task: Task | None, rows: Sequence[int], left_out: LeftOut
) -> tuple[Targets, list[int]]:
    """The targets of some rows, and those of the rows that have one; the others are added to what is left out."""
    targets = read_targets(table, names, task, rows)
    for i in np.flatnonzero(~targets.known):
        left_out.add(table.place(rows[i]))
    return targets, [rows[i] for i in np.flatnonzero(targets.known)]


def read_targets(table: MoleculeCells, names: Sequence[str], task: Task | None, rows: Sequence[int]) -> Targets:
    """The targets of some rows, from the columns of these names."""
    cells = {name: table.column(name) for name in names}
    columns = {name: [column[i] for i in rows] for name, column in cells.items()}
    return detect_task(columns, task, [table.where(i) for i in rows])


# ---- the graphs of molecules ----


class _Read(NamedTuple):
    """What RDKit makes of T texts, G of which are valid molecules."""

    valid: NDArray[np.bool_]  # [T]
    smiles: list[str]  # [G]
    codes: NDArray[np.uint64]  # [G]
    plain: GraphDataset | None  # None where G is 0


def _read_all(texts: Sequence[str], name: str, source: str) -> _Read:
    found = molecule_arrays(texts)
    read = found.valid()
    plain = plain_molecules(read, name=name, source=source) if read.smiles else None
    codes = np.zeros(0, np.uint64) if plain is None else molecule_codes(plain, read)
    return _Read(found.num_atoms > 0, read.smiles, codes, plain)


def _read_large(texts: Sequence[str], name: str, source: str) -> _Read | None:
    """The same with arrays on disk, in memory for some molecules at a time; None of few, and where the disk is full."""
    if len(texts) < LARGE_ROWS:
        return None
    parts, found, size = MappedParts(), list[_Read](), rows_at_once()
    try:
        with counting(len(texts), f"reading {name}") as advance:
            for start in range(0, len(texts), size):
                some = _read_all(texts[start : start + size], name, source)
                if some.plain is not None:
                    parts.add(some.plain)
                found.append(some._replace(plain=None))
                advance(len(some.valid))
        smiles = [text for some in found for text in some.smiles]
        plain = parts.dataset().with_features("labels") if smiles else None
    except (NotInPartsError, OSError):
        return None
    valid, codes = (np.concatenate(column) for column in (*zip(*((s.valid, s.codes) for s in found), strict=True),))
    return _Read(valid, smiles, codes, plain)


def rows_at_once() -> int:
    """How many rows of a large file are read at once."""
    return min(MOST_ROWS, ROWS_PER_CORE * available_cores())
