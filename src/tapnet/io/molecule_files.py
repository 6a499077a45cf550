"""Files of molecules as tables of text (.csv, .tsv, .smi, .sdf), and which column is what. Does not import torch."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from tapnet.data._molecule_arrays import SHOWN, name_invalid
from tapnet.data.targets import (
    MISSING,
    MOST_CLASSES,
    NUMBERS,
    POINT_AMONG_COMMAS,
    WITH_UNIT,
    Targets,
    have_few_units,
    is_gap,
    row_at_fault,
    why_no_number,
)
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.archive import Place, read_content
from tapnet.io.tables import HEAD_LINES, Table, decode_table, parse_table, separator, without_separator

MAX_BYTES, MOST_HEADER = 1 << 30, 1 << 20
MOST_SHOWN = 300  # characters of a list of columns
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "isosmiles", "smi", "mol", "molecule", "structure")
NAME_COLUMN = re.compile(r"(^|.*[ _-])(name|title)", re.IGNORECASE)
ID_COLUMN = re.compile(r"((^|.*[ _-])(id|cid|cas|index|idx)|num|no\.?|unnamed: 0|)", re.IGNORECASE)
DAMAGED_GZ = (OSError, EOFError, zlib.error)
SMI_HEADER = ("smiles", "name")
NO_MOLECULES = "holds no molecules"
SDF_FIELD = re.compile(r"^> .*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


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
    """The columns with the molecules (or graphs), the targets and the names, and why others are not the target."""

    smiles: str
    targets: tuple[str, ...]
    names: str | None
    reasons: tuple[tuple[str, str], ...] = ()  # a column, and why
    holds: Literal["molecules", "graphs"] = "molecules"  # what the first of them has

    @classmethod
    def choose(
        cls,
        table: MoleculeCells,
        smiles: str | None,
        target: str | Sequence[str] | None,
        holds: Literal["molecules", "graphs"] = "molecules",
    ) -> Columns:
        """Those that are named, or else found."""
        chosen = table.find(smiles) if smiles is not None else table.smiles_column()
        others = [name for name in table.header if name != chosen]
        named = [name for name in others if NAME_COLUMN.fullmatch(name)]
        named += [name for name in others if name and ID_COLUMN.fullmatch(name) and name not in named]
        targets = table.target_column(others) if target is None else table.find_all(target)
        if chosen in targets:
            raise DataError(f"{table.path}: the column {chosen} holds the {holds} and cannot be the target")
        reasons = table.why_no_target(others, targets) if target is None else {}
        name = next((n for n in named if n not in targets), None)
        return cls(chosen, tuple(targets), name, tuple(reasons.items()), holds)

    def no_molecule(self, path: Place) -> DataError:
        """The error where no row has a molecule."""
        return DataError(f"{path}: no row has a molecule in the column {printable(self.smiles)}")

    def describe(self, targets: Targets | None, header: Sequence[str], remark: str = "") -> str:
        """Which column is what, in one line."""
        why = {name: f" ({reason})" for name, reason in self.reasons}
        rest = [name for name in header if name and name not in (self.smiles, *self.targets, self.names)]
        aside = ", ".join(f"{name}{why.get(name, '')}" for name in rest)
        parts = [
            f"{self.holds} from the column {printable(self.smiles)}",
            "no target" if targets is None else targets.note,
            remark,
            f"names from {printable(self.names)}" if self.names else "",
            f"left aside: {printable(aside):.{MOST_SHOWN}}" if rest else "",
        ]
        return "; ".join(filter(None, parts))


class MoleculeCells(Table):
    """A table of molecules as text."""

    def smiles_column(self) -> str:
        """The column of SMILES, by its name; of an .sdf that of the MOL blocks, which every record has."""
        if isinstance(self.path, Path) and file_kind(self.path) == "sdf":
            return self.header[0]
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

    def why_no_target(self, others: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
        """Why columns that are no ids or names are not the target: those of numbers, and all where there is none."""
        named = [n for n in others if n and not (ID_COLUMN.fullmatch(n) or NAME_COLUMN.fullmatch(n))]
        reasons = {name: self._why_aside(name, numbers_only=bool(targets)) for name in named if name not in targets}
        return {name: reason for name, reason in reasons.items() if reason}

    def _why_aside(self, name: str, *, numbers_only: bool) -> str:
        """Why a column was not chosen as the target."""
        cells = {row: cell.strip() for row, cell in enumerate(self.column(name)) if not is_gap(cell)}
        if cells and _are_numbers(list(cells.values())):
            return "taken for an id: whole numbers that only rise"
        names = not have_few_units(cells.values())
        odd = {row: why_no_number(cell) for row, cell in cells.items() if not _are_numbers([cell])}
        odd = {row: "" if names and WITH_UNIT.fullmatch(cells[row]) else why for row, why in odd.items()}
        written = len(cells) - sum(not why for why in odd.values())
        if cells and written >= NUMBERS * len(cells):
            row = row_at_fault(cells, next(iter(odd)))
            why = odd.get(row, POINT_AMONG_COMMAS) or "not a number"
            return f"{cells[row][:40]!r} in {self.place(row)}: {why}"
        different = len(set(cells.values()))
        text = f"{different} different texts" if different > 1 else "the same everywhere" if cells else "empty"
        return "" if numbers_only else text


class DataFrameCells(MoleculeCells):
    """A DataFrame as such a table; its "lines" are the values of its index."""

    def place(self, row: int) -> str:
        """What a row is called."""
        return f"row {printable(self.lines[row])}"

    def where(self, row: int) -> str:
        """The same with the table."""
        return f"{self.path}, {self.place(row)}"


def _named_smiles(header: Sequence[str]) -> str | None:
    lower = [name.lower().replace(" ", "_") for name in header]
    found = [header[lower.index(word)] for word in SMILES_NAMES if word in lower]
    return next(iter(found or [name for name in header if "smiles" in name.lower()]), None)


def has_smiles_column(path: Path) -> bool:
    """Whether the header of a .csv names a column of SMILES; true also of what is no table, which its reader says."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = list(islice(iter(partial(lines.readline, MOST_HEADER), ""), HEAD_LINES))
            rows = csv.reader(without_separator(chain(first, lines)), delimiter=separator("".join(first)))
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


def read_table(path: Path) -> MoleculeCells:
    """A file of molecules as a table."""
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


def smi_rows(lines: Iterable[str], on_blank: Callable[[], None] | None = None) -> Iterator[tuple[int, list[str]]]:
    """SMILES and, after a space, a name in each line, with the line's number; the first line may be a header.

    ``on_blank`` is called for each blank line after the first row.
    """
    number, first = 0, True
    for some in lines:
        for line in some.splitlines():
            number += 1
            if words := line.split(maxsplit=1):
                if not first or words[0].lower() != "smiles":
                    yield number, [*words, ""][:2]
                first = False
            elif on_blank is not None and not first:
                on_blank()


def sdf_records(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each record's MOL block as ``molecule``, its title as ``name``, and its data fields; with the line of each.

    A blank record has an empty molecule. What follows the last mark is a record unless it is blank.
    """
    record: list[str] = []
    begin = 1
    for line in chain(lines, [None]):
        if line is not None and not line.startswith("$$$$"):
            record.append(line.replace("\r\n", "\n"))
            continue
        text = "".join(record)
        if line is not None and not text.strip():
            yield begin, {"molecule": "", "name": ""}
        elif text.strip():
            block, end, data = text.partition("M  END")
            own = {"molecule": f"{block}{end}\n", "name": block.partition("\n")[0].strip()}
            yield begin, own | {key: value.strip() for key, value in SDF_FIELD.findall(data) if key not in own}
        begin += len(record) + 1
        record = []


def sdf_header(records: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The fields of all records, in the order in which they come up."""
    return tuple(dict.fromkeys(key for record in records for key in record))
