"""Files of molecules: tables (.csv, .tsv) with a column of SMILES, lists of SMILES (.smi) and SDF, all also as .gz."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapnet.data._molecule_arrays import molecule_arrays
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.molecules import SHOWN, check_rdkit, molecule_dataset, name_invalid
from tapnet.data.targets import MISSING, MOST_CLASSES, Targets, detect_task, is_gap
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.archive import read_content
from tapnet.io.dataset_files import molecules_name
from tapnet.io.tables import Table, decode_table, parse_table

MAX_BYTES = 1 << 30
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "isosmiles", "smi", "mol", "molecule", "structure")
NAME_COLUMN = re.compile(r"(^|.*[ _-])(name|title)", re.IGNORECASE)
ID_COLUMN = re.compile(r"((^|.*[ _-])(id|cid|cas|index|idx)|num|no\.?|unnamed: 0|)", re.IGNORECASE)
SDF_FIELD = re.compile(r"^> .*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


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
    table = _read_table(path)
    columns = _Columns.choose(table, smiles, target)
    if task is not None and target is None and not columns.targets:
        raise DataError(f"{path}: which column is the target? The columns are {table.listed()}; name one or several")
    texts = [cell if "M  END" in cell else cell.strip() for cell in table.column(columns.smiles)]
    places = [f"line {line}" for line in table.lines]
    notes = []

    def left_out(rows: Sequence[int], why: str, named: str | None = None) -> None:
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        named = named or ", ".join(places[i] for i in rows[:SHOWN]) + more
        notes.append(f"{path}: {len(rows)} of {len(texts)} rows are left out, {why}: {named}")

    kept = [i for i, text in enumerate(texts) if text]
    if len(kept) < len(texts):
        left_out([i for i, text in enumerate(texts) if not text], "without a molecule")
    if not kept:
        raise DataError(f"{path}: no row has a molecule in the column {printable(columns.smiles)}")
    if columns.targets:
        targets = _targets(table, columns.targets, task, kept, path)
        notes += [f"{path}: {remark}" for remark in targets.remarks]
        if not targets.known.all():
            left_out([kept[i] for i in np.flatnonzero(~targets.known)], "without a target")
            kept = [kept[i] for i in np.flatnonzero(targets.known)]
        task = targets.task
    read = molecule_arrays([texts[i] for i in kept])
    if wrong := [i for i, atoms in zip(kept, read.num_atoms, strict=True) if not atoms]:
        named = name_invalid([texts[i] for i in wrong], [places[i] for i in wrong])
        if len(wrong) == len(kept):
            raise DataError(f"{path}: no row has a valid molecule: {named}")
        left_out(wrong, "not valid", named)
        kept = [i for i, atoms in zip(kept, read.num_atoms, strict=True) if atoms]
    found = _targets(table, columns.targets, task, kept, path) if columns.targets else None
    cells = {key: tuple(table.rows[i][c] for i in kept) for c, key in enumerate(table.header)}
    names = cells.get(columns.names or "")
    dataset = molecule_dataset(
        read,
        found,
        name=name or molecules_name(path),
        names=names if names and any(map(str.strip, names)) else None,
        source=str(path),
    )
    notes = [f"{path}: {columns.describe(found, table)}", *notes, *(f"{path}: {note}" for note in dataset.notes)]
    others = {key: column for key, column in cells.items() if key not in (columns.smiles, *columns.targets)}
    dataset = replace(dataset, notes=tuple(notes), graph_columns=others or None)
    return MoleculeTable(table.header, table.rows, dataset, kept)


def _targets(table: _Table, names: Sequence[str], task: Task | None, rows: Sequence[int], path: Path) -> Targets:
    cells = {name: table.column(name) for name in names}
    columns = {name: [column[i] for i in rows] for name, column in cells.items()}
    return detect_task(columns, task, [f"{path}:{table.lines[i]}" for i in rows])


# ---- which column is what ----


class _Columns(NamedTuple):
    smiles: str
    targets: tuple[str, ...]
    names: str | None

    @classmethod
    def choose(cls, table: _Table, smiles: str | None, target: str | Sequence[str] | None) -> _Columns:
        chosen = table.find(smiles) if smiles is not None else table.smiles_column()
        others = [name for name in table.header if name != chosen]
        named = [name for name in others if NAME_COLUMN.fullmatch(name)]
        named += [name for name in others if name and ID_COLUMN.fullmatch(name) and name not in named]
        targets = table.target_column(others) if target is None else table.find_all(target)
        if chosen in targets:
            raise DataError(f"{table.path}: the column {chosen} holds the molecules and cannot be the target")
        return cls(chosen, tuple(targets), next((n for n in named if n not in targets), None))

    def describe(self, targets: Targets | None, table: _Table) -> str:
        """Which column is what, in one line."""
        rest = [name for name in table.header if name not in (self.smiles, *self.targets, self.names)]
        parts = [
            f"molecules from the column {printable(self.smiles)}",
            "no target" if targets is None else targets.note,
            table.decimal_commas_note(self.targets),
            f"names from {printable(self.names)}" if self.names else "",
            f"left aside: {table.listed(rest):.200}" if any(rest) else "",
        ]
        return "; ".join(filter(None, parts))


class _Table(Table):
    """A table of molecules."""

    def smiles_column(self) -> str:
        lower = [name.lower().replace(" ", "_") for name in self.header]
        found = [self.header[lower.index(word)] for word in SMILES_NAMES if word in lower]
        found = found or [name for name in self.header if "smiles" in name.lower()]
        if not found:
            raise DataError(f"{self.path}: which column holds the SMILES? The columns are {self.listed()}")
        return found[0]

    def target_column(self, others: Sequence[str]) -> list[str]:
        """The only column of numbers that is no id, or the only one of few words; empty where there is none."""
        cells = {name: [c.strip() for c in self.column(name) if c.strip().lower() not in MISSING] for name in others}
        values = {name: [c for c in column if not is_gap(c)] for name, column in cells.items()}
        named = [name for name in others if not (ID_COLUMN.fullmatch(name) or NAME_COLUMN.fullmatch(name))]
        numbers = [name for name in named if values[name] and _are_numbers(values[name])]
        found = [name for name in numbers if not _counts_rows(values[name])]
        found = found or [name for name in named if 1 < len(set(cells[name])) <= min(MOST_CLASSES, len(self.rows) // 2)]
        if len(found) > 1:
            raise DataError(
                f"{self.path}: which column is the target? It could be {self.listed(found)}; name one or several"
            )
        return found


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        return bool(np.isfinite(np.asarray(cells, dtype=np.float64)).all())
    except ValueError:
        return False


def _counts_rows(cells: Sequence[str]) -> bool:
    """Whether a column is 1, 2, 3 and so on, perhaps with gaps, and not a few classes in their order."""
    numbers = np.asarray(cells, dtype=np.float64)
    return len(cells) > MOST_CLASSES and bool((np.diff(numbers) > 0).all() and (numbers == np.floor(numbers)).all())


# ---- files ----


def _read_table(path: Path) -> _Table:
    text = _read_text(path)
    kind = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    if kind in (".sdf", ".sd"):
        return _read_sdf(text, path)
    if kind == ".smi":
        return _read_smi(text, path)
    return _Table(*parse_table(text, path, "\t" if kind == ".tsv" else None))


def _read_text(path: Path) -> str:
    content = read_content(path, MAX_BYTES + 1)
    if path.suffix.lower() == ".gz":
        try:
            with gzip.open(io.BytesIO(content)) as unpacked:
                content = unpacked.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: cannot be unpacked ({error})") from None
    if len(content) > MAX_BYTES:
        raise DataError(f"{path}: larger than {MAX_BYTES >> 30} GB")
    return decode_table(content, path)


def _read_smi(text: str, path: Path) -> _Table:
    """SMILES and, after a space, a name in each line; the first line may be a header."""
    lines = [(i, line.split(maxsplit=1)) for i, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if lines and lines[0][1][0].lower() == "smiles":
        del lines[0]
    if not lines:
        raise DataError(f"{path}: holds no molecules")
    return _Table(path, ("smiles", "name"), [[*words, ""][:2] for _, words in lines], [i for i, _ in lines])


def _read_sdf(text: str, path: Path) -> _Table:
    """Each record's MOL block as the column ``molecule``, its title as ``name``, and its data fields."""
    fields: list[Mapping[str, str]] = []
    begins, line = [], 1
    for record in re.split(r"^\$\$\$\$[^\n]*\n?", text.replace("\r\n", "\n"), flags=re.MULTILINE):
        if record.strip():
            block, end, data = record.partition("M  END")
            own = {"molecule": f"{block}{end}\n", "name": block.partition("\n")[0].strip()}
            fields.append(own | {key: value.strip() for key, value in SDF_FIELD.findall(data) if key not in own})
            begins.append(line)
        line += record.count("\n") + 1
    if not fields:
        raise DataError(f"{path}: holds no molecules")
    header = tuple(dict.fromkeys(key for row in fields for key in row))
    return _Table(path, header, [[row.get(key, "") for key in header] for row in fields], begins)
