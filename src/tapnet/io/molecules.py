"""Files of molecules: tables (.csv, .tsv) with a column of SMILES, lists of SMILES (.smi) and SDF, all also as .gz."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.data._molecule_arrays import available_cores, molecule_arrays
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.molecules import (
    SHOWN,
    check_rdkit,
    copies_of_molecules,
    describe_molecules,
    molecule_codes,
    name_invalid,
    plain_molecules,
)
from tapnet.data.targets import MISSING, MOST_CLASSES, Targets, detect_task, is_gap
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.archive import Place, read_content
from tapnet.io.dataset_files import molecules_name
from tapnet.io.mapped_parts import MappedParts, NotInPartsError
from tapnet.io.tables import Table, decode_table, parse_table, separator, without_separator
from tapnet.progress import counting

MAX_BYTES, MOST_HEADER = 1 << 30, 1 << 20
LARGE_ROWS = 1 << 18  # from so many molecules on, their arrays are on disk
ROWS_PER_CORE, MOST_ROWS = 1 << 13, 1 << 17  # of a large file, read at once
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "isosmiles", "smi", "mol", "molecule", "structure")
NAME_COLUMN = re.compile(r"(^|.*[ _-])(name|title)", re.IGNORECASE)
ID_COLUMN = re.compile(r"((^|.*[ _-])(id|cid|cas|index|idx)|num|no\.?|unnamed: 0|)", re.IGNORECASE)
DAMAGED_GZ = (OSError, EOFError, zlib.error)
SMI_HEADER = ("smiles", "name")
NO_MOLECULES = "holds no molecules"
DATAFRAME_GAPS = ("nan", "None", "<NA>", "NaT")
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
    return _read_rows(_read_table(path), smiles, target, task, name or molecules_name(path), str(path))


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
    header = tuple(map(str, frame.columns))
    if twice := [name for i, name in enumerate(header) if name in header[:i]]:
        raise DataError(f"DataFrame: two columns are called {printable(twice[0])!r}")
    columns = [[_cell_text(value) for value in frame[name]] for name in frame.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    if not rows:
        raise DataError(f"DataFrame: {NO_MOLECULES}")
    table = _DataFrameCells(Path("DataFrame"), header, rows, list(getattr(frame, "index", range(len(rows)))), mark="")
    return _read_rows(table, smiles, target, task, "molecules", "").dataset


def _cell_text(value: Any) -> str:
    """A value as a .csv has it; gaps are empty."""
    text = str(value)
    return "" if not isinstance(value, str) and text in DATAFRAME_GAPS else text


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
        targets = _targets(table, columns.targets, task, kept)
        remarks = targets.remarks
        for i in np.flatnonzero(~targets.known):
            no_target.add(table.place(kept[i]))
        kept = [kept[i] for i in np.flatnonzero(targets.known)]
        task = targets.task
    chosen = [texts[i] for i in kept]
    read = _read_large(chosen, name, source) or _read_all(chosen, name, source)
    for i, valid in zip(kept, read.valid, strict=True):
        if not valid:
            invalid.add(table.place(i), texts[i])
    if read.plain is None:
        raise invalid.nothing_left(path)
    kept = [i for i, valid in zip(kept, read.valid, strict=True) if valid]
    found = _targets(table, columns.targets, task, kept) if columns.targets else None
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


def _targets(table: MoleculeCells, names: Sequence[str], task: Task | None, rows: Sequence[int]) -> Targets:
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


def molecule_text(cell: str) -> str:
    """The SMILES or MOL block of a cell; empty where it has none."""
    return cell if "M  END" in cell else cell.strip()


@dataclass
class LeftOut:
    """Counts rows that are left out for one reason, and keeps the first of them to name."""

    why: str
    count: int = 0
    places: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, place: str, text: str = "") -> None:
        """A row that stands somewhere; ``text`` is the molecule that is not valid."""
        self.count += 1
        if len(self.places) < SHOWN:
            self.places.append(place)
            self.texts.append(text)

    def named(self) -> str:
        """The first of them, and how many more there are."""
        if any(self.texts):
            return name_invalid(self.texts, self.places, self.count)
        return ", ".join(self.places) + (f" and {self.count - SHOWN} more" if self.count > SHOWN else "")

    def note(self, rows: int) -> str:
        """One sentence, where the table has so many rows."""
        return f"{self.count} of {rows} rows are left out, {self.why}: {self.named()}"

    def nothing_left(self, path: Place) -> DataError:
        """The error where every row with a molecule is left out."""
        return DataError(f"{path}: no row has a valid molecule: {self.named()}")


# ---- which column is what ----


class Columns(NamedTuple):
    """The columns with the molecules, the targets and the names."""

    smiles: str
    targets: tuple[str, ...]
    names: str | None

    @classmethod
    def choose(cls, table: MoleculeCells, smiles: str | None, target: str | Sequence[str] | None) -> Columns:
        """Those that are named, or else found."""
        chosen = table.find(smiles) if smiles is not None else table.smiles_column()
        others = [name for name in table.header if name != chosen]
        named = [name for name in others if NAME_COLUMN.fullmatch(name)]
        named += [name for name in others if name and ID_COLUMN.fullmatch(name) and name not in named]
        targets = table.target_column(others) if target is None else table.find_all(target)
        if chosen in targets:
            raise DataError(f"{table.path}: the column {chosen} holds the molecules and cannot be the target")
        return cls(chosen, tuple(targets), next((n for n in named if n not in targets), None))

    def no_molecule(self, path: Place) -> DataError:
        """The error where no row has a molecule."""
        return DataError(f"{path}: no row has a molecule in the column {printable(self.smiles)}")

    def describe(self, targets: Targets | None, header: Sequence[str], remark: str = "") -> str:
        """Which column is what, in one line."""
        rest = [name for name in header if name and name not in (self.smiles, *self.targets, self.names)]
        parts = [
            f"molecules from the column {printable(self.smiles)}",
            "no target" if targets is None else targets.note,
            remark,
            f"names from {printable(self.names)}" if self.names else "",
            f"left aside: {printable(', '.join(rest)):.200}" if rest else "",
        ]
        return "; ".join(filter(None, parts))


class MoleculeCells(Table):
    """A table of molecules as text."""

    def smiles_column(self) -> str:
        """The column of SMILES, by its name."""
        found = _named_smiles(self.header)
        if found is None:
            raise DataError(f"{self.path}: which column holds the SMILES? The columns are {self.listed()}")
        return found

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


class _DataFrameCells(MoleculeCells):
    """A DataFrame as such a table; its "lines" are the values of its index."""

    def place(self, row: int) -> str:
        return f"row {printable(self.lines[row])}"

    def where(self, row: int) -> str:
        return f"{self.path}, {self.place(row)}"


def _named_smiles(header: Sequence[str]) -> str | None:
    lower = [name.lower().replace(" ", "_") for name in header]
    found = [header[lower.index(word)] for word in SMILES_NAMES if word in lower]
    return next(iter(found or [name for name in header if "smiles" in name.lower()]), None)


def has_smiles_column(path: Path) -> bool:
    """Whether the header of a .csv names a column of SMILES; true also of what is no table, which its reader says."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = lines.readline(MOST_HEADER)
            rows = csv.reader(without_separator(chain([first], lines)), delimiter=separator(first))
            return _named_smiles(next(filter(any, rows), [])) is not None
    except (OSError, ValueError, csv.Error):
        return True


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


def _read_table(path: Path) -> MoleculeCells:
    text, kind = _read_text(path), file_kind(path)
    if kind == "sdf":
        records = list(sdf_records(io.StringIO(text, newline="\n")))
        header = sdf_header(record for _, record in records)
        rows = [(line, [record.get(key, "") for key in header]) for line, record in records]
    elif kind == "smi":
        header, rows = SMI_HEADER, list(smi_rows(io.StringIO(text, newline="")))
    else:
        return MoleculeCells(*parse_table(text, path, "\t" if kind == "tsv" else None))
    if not rows:
        raise DataError(f"{path}: {NO_MOLECULES}")
    return MoleculeCells(path, header, [row for _, row in rows], [line for line, _ in rows])


def _read_text(path: Path) -> str:
    content = read_content(path, MAX_BYTES + 1)
    if path.suffix.lower() == ".gz":
        try:
            with gzip.open(io.BytesIO(content)) as unpacked:
                content = unpacked.read(MAX_BYTES + 1)
        except DAMAGED_GZ as error:
            raise DataError(f"{path}: cannot be unpacked ({error})") from None
    if len(content) > MAX_BYTES:
        raise DataError(f"{path}: larger than {MAX_BYTES >> 30} GB")
    return decode_table(content, path)


def file_kind(path: Path) -> Literal["csv", "tsv", "smi", "sdf"]:
    """What a file of molecules is, by its ending."""
    ending = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    kinds: dict[str, Literal["csv", "tsv", "smi", "sdf"]] = {".tsv": "tsv", ".smi": "smi", ".sdf": "sdf", ".sd": "sdf"}
    return kinds.get(ending, "csv")


def smi_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """SMILES and, after a space, a name in each line, with the line's number; the first line may be a header."""
    number, first = 0, True
    for some in lines:
        for line in some.splitlines():
            number += 1
            if words := line.split(maxsplit=1):
                if not first or words[0].lower() != "smiles":
                    yield number, [*words, ""][:2]
                first = False


def sdf_records(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each record's MOL block as ``molecule``, its title as ``name``, and its data fields; with the line of each."""
    record: list[str] = []
    begin = 1
    for line in chain(lines, ["$$$$"]):
        if not line.startswith("$$$$"):
            record.append(line.replace("\r\n", "\n"))
            continue
        text = "".join(record)
        if text.strip():
            block, end, data = text.partition("M  END")
            own = {"molecule": f"{block}{end}\n", "name": block.partition("\n")[0].strip()}
            yield begin, own | {key: value.strip() for key, value in SDF_FIELD.findall(data) if key not in own}
        begin += len(record) + 1
        record = []


def sdf_header(records: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The fields of all records, in the order in which they come up."""
    return tuple(dict.fromkeys(key for record in records for key in record))
