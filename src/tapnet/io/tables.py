"""Tables of a folder of graphs: labels.csv with their classes, targets.csv with any targets.

labels.csv has a header and one line per graph: the file's name, with its ending or without, and its class, any text.
The columns may be named ``graph`` or ``file``, and ``class`` or ``label``; else they are the first and the second.
Where every class is a whole number, classes are integers; else they are text.

targets.csv has a header and one line per graph: first the file's name, with its ending or without, then any number of
columns, some of which are the targets.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tapnet.data.targets import DECIMAL_COMMA, YES_NO, Targets, Task, detect_task, is_gap, plain_minus, remark_similar
from tapnet.errors import DataError, did_you_mean
from tapnet.files import counted, printable
from tapnet.io._plain_text import WHOLE
from tapnet.io.archive import Place, read_content, readable_files

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset

LABELS, TARGETS = "labels.csv", "targets.csv"
FILE_ENDINGS = ".graphml, .json, .npy, .npz and .csv"
EXCEL_ENDINGS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
EXCEL_CONTENT = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")  # what these files begin with
OTHER_ENDINGS = (".txt", ".tsv", ".gml", ".gexf", ".mat", ".edges", ".edgelist", *EXCEL_ENDINGS)  # not read there
MAX_TABLE_BYTES = 1 << 27
INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")  # 01 and +1 are names
EXCEL_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?', re.IGNORECASE)
QUOTED = re.compile(r'(^|[,;\t\r\n]) ?"(?:[^"]|"")*"')
BETWEEN_DIGITS = re.compile(r"(?<=\d),(?=\d)")  # perhaps a decimal comma
MOST_HEAD, HEAD_LINES = 1 << 18, 50  # characters and lines that say what separates cells
SHOWN = 3  # files or rows in a note
NO_ROWS = "there are no rows; a table has a header and one row for each entry"


# ---- any table ----


class Table(NamedTuple):
    """A table as text.

    Attributes:
        path: The file.
        header: ``[C]`` the names of the columns.
        rows: ``[R]`` the cells of each row, ``[C]`` each.
        lines: ``[R]`` the line of the file in which each row begins.
        mark: What separates the cells.
    """

    path: Place
    header: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    mark: str = ","

    def place(self, row: int) -> str:
        """Where a row stands, for a message that names the file already."""
        return f"line {self.lines[row]}"

    def where(self, row: int) -> str:
        """The file and the line of a row, for a message."""
        return f"{self.path}:{self.lines[row]}"

    def column(self, name: str) -> list[str]:
        """The cells of a column; numbers with decimal commas have points."""
        cells = self._cells(name)
        return [cell.replace(",", ".") for cell in cells] if self._has_decimal_commas(cells) else cells

    def decimal_commas_note(self, names: Sequence[str]) -> str:
        """Which of the columns have decimal commas; an empty string where none has."""
        found = [name for name in names if self._has_decimal_commas(self._cells(name))]
        return f"{self.listed(found)} {'has' if len(found) == 1 else 'have'} decimal commas" if found else ""

    def _cells(self, name: str) -> list[str]:
        number = self.header.index(name)
        return [plain_minus(row[number]) for row in self.rows]

    def _has_decimal_commas(self, cells: Sequence[str]) -> bool:
        return has_decimal_commas(([cell] for cell in cells), self.mark)

    def find(self, name: str) -> str:
        """The name of a column; a DataError that lists the columns where there is none of this name."""
        if name not in self.header:
            near = did_you_mean(name, self.header)
            raise DataError(f"{self.path}: no column {printable(name)}{near or '; the columns are ' + self.listed()}")
        return name

    def find_all(self, names: str | Sequence[str]) -> list[str]:
        """Several columns: a list, or names with commas between them."""
        if isinstance(names, str):
            names = [names] if names in self.header else names.split(",")
        return list(dict.fromkeys(self.find(name.strip()) for name in names))

    def listed(self, names: Sequence[str] | None = None) -> str:
        """The names of the columns, or of some, for a message."""
        return printable(", ".join(filter(None, self.header if names is None else names)))[:300]


def has_decimal_commas(rows: Iterable[Sequence[str]], mark: str) -> bool:
    """Whether commas do not separate cells and a column holds numbers, some with a comma and none with a point."""
    found: dict[int, bool] | None = None  # the columns that may be such, and whether there was a comma
    for row in rows if mark != "," else ():
        found = dict.fromkeys(range(len(row)), False) if found is None else found
        for column in list(found):
            cell = plain_minus(row[column].strip())
            if DECIMAL_COMMA.fullmatch(cell):
                found[column] = True
            elif not WHOLE.fullmatch(cell) and not is_gap(cell):
                del found[column]
        if not found:
            return False
    return any((found or {}).values())


def read_table(path: Place) -> Table:
    """Reads a table with a header, separated by commas, semicolons or tabs; a DataError names the line."""
    return parse_table(read_table_text(path), path)


def read_table_text(path: Place, limit: int = MAX_TABLE_BYTES) -> str:
    """The text of a file that is not too large; a DataError where it is none."""
    content = read_content(path, limit + 1)
    if len(content) > limit:
        raise DataError(f"{path}: larger than {limit >> 20} MB, which is too much for a table")
    return decode_table(content, path)


def decode_table(content: bytes, path: Place) -> str:
    """The content of a file as text; a DataError where it is none."""
    return "".join(decode_blocks([content], path))


def decode_blocks(blocks: Iterable[bytes], path: Place) -> Iterator[str]:
    """``decode_table`` of a file that is read in blocks."""
    decoder, begin = codecs.getincrementaldecoder("utf-8-sig")(), True
    for block in chain(blocks, [b""]):
        if begin and block.startswith(EXCEL_CONTENT):
            raise excel_error(path)
        begin = False
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError:
            excel = "; in Excel, save it as 'CSV UTF-8'" if ".csv" in path.name.lower() else ""
            raise DataError(f"{path}: not UTF-8 text{excel}") from None
        if "\0" in text:
            raise DataError(f"{path}: not text: it has NUL bytes")
        if text:
            yield text


def is_excel_name(name: str) -> bool:
    """Whether a file of this name is a spreadsheet (and no lock of an open one)."""
    return name.lower().endswith(EXCEL_ENDINGS) and not name.startswith((".", "~$"))


def excel_error(path: object) -> DataError:
    """The error for a spreadsheet in the place of a table."""
    return DataError(f"{path}: an Excel file; save it as CSV (UTF-8)")


def excel_targets(folder: Place) -> Place | None:
    """A spreadsheet that somebody meant as the table of targets of a folder; None where there is none."""
    meant = {PurePath(table).stem for table in (TARGETS, LABELS)}
    names = readable_files(folder, lambda name: is_excel_name(name) and PurePath(name).stem.lower() in meant)
    return folder / min(names) if names else None


def separator(text: str) -> str:
    """What stands between the cells of a table, by its first lines; the very first may be Excel's ``sep=;``.

    It is what the rows have as often as the header, of two such marks the one that is more than a decimal comma.

    Args:
        text: The table, or how it begins.
    """
    said = EXCEL_SEPARATOR.fullmatch(text.partition("\n")[0].rstrip("\r\n"))
    if said:
        return said[1]
    head = text[:MOST_HEAD]
    marks = [mark for mark in ",;\t" if mark in head]
    if len(marks) < 2:
        return marks[0] if marks else ","
    lines = list(filter(str.strip, QUOTED.sub(r"\1-", head).splitlines()))
    lines = lines[:-1] if len(text) > MOST_HEAD and len(lines) > 1 else lines  # that is cut off
    return max(marks, key=lambda mark: _fit(lines[:HEAD_LINES], mark))


def _fit(lines: Sequence[str], mark: str) -> tuple[float, float, int]:
    """The shares of rows that have a mark as often as the header, the latter without decimal commas; and how often."""
    plain = [BETWEEN_DIGITS.sub("", line).count(mark) for line in lines] or [0]
    shares = [_share_like_first(counts) for counts in ([line.count(mark) for line in lines] or [0], plain)]
    return max(shares), shares[1], plain[0]


def _share_like_first(counts: Sequence[int]) -> float:
    """The share of the others that are what the first is; -1 where that is 0."""
    first, *others = counts
    if not first:
        return -1.0
    return sum(count == first for count in others) / len(others) if others else 1.0


def without_separator(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a table with an empty one in place of Excel's ``sep=;``."""
    for number, line in enumerate(lines):
        yield line if number or not EXCEL_SEPARATOR.fullmatch(line.rstrip("\r\n")) else "\n"


def parse_table(text: str, path: Place, mark: str | None = None) -> Table:
    """``read_table`` of text; ``mark`` separates the cells, by default what the first lines say."""
    mark = mark or separator(text)
    rows = list(table_rows(io.StringIO(text, newline=""), path, mark))
    if len(rows) < 2:
        raise DataError(f"{path}: {NO_ROWS}")
    (_, header), *rest = rows
    return Table(path, tuple(header), [row for _, row in rest], [line for line, _ in rest], mark)


def table_rows(
    lines: Iterable[str], path: Place, mark: str, on_blank: Callable[[], None] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The header of a table, then its rows, each with the line in which it begins.

    Args:
        lines: The lines of the file, with their ends.
        path: The file, for errors.
        mark: What separates the cells.
        on_blank: Called for each blank row after the header.

    Yields:
        Rows as wide as the header; blank ones are left out.

    Raises:
        DataError: A line is wrong, or two columns have one name; the message names the line.
    """
    reader = csv.reader(without_separator(lines), delimiter=mark)
    width = end = 0
    try:
        for row in reader:
            begin, end = end + 1, reader.line_num
            if not any(map(str.strip, row)):
                if width and on_blank is not None:
                    on_blank()
                continue
            if not width:
                row = list(map(str.strip, row))
                while not row[-1]:  # columns that a spreadsheet left behind
                    row.pop()
                width = len(row)
                if twice := [name for i, name in enumerate(row) if name in row[:i]]:
                    raise DataError(f"{path}:{begin}: two columns are called {printable(twice[0])!r}")
            if any(map(str.strip, row[width:])):
                raise DataError(f"{path}:{begin}: {counted(len(row), 'cell')} where the header has {width}")
            yield begin, [*row[:width], *[""] * (width - len(row))]
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not a table ({error})") from None


# ---- the graphs of a folder, and what a table says of them ----


class Listing(NamedTuple):
    """The graphs of a folder.

    Attributes:
        files: ``[G]`` the names of their files, in the order of the data set.
        targets: Their targets; None: not known.
        columns: ``[G]`` each, what else the table says of them.
        notes: What a user should know.
    """

    files: list[str]
    targets: Targets | None = None
    columns: Mapping[str, tuple[str, ...]] | None = None
    notes: tuple[str, ...] = ()

    def apply(self, dataset: GraphDataset) -> GraphDataset:
        """The data set of these files with their names, their targets and the notes."""
        notes = (*self.notes, *dataset.notes)
        dataset = replace(dataset, graph_names=tuple(self.files), graph_columns=self.columns, notes=notes)
        if self.targets is None:
            return dataset
        import torch

        task, y, classes, _, names, _ = self.targets
        return replace(dataset, task=task, y=torch.from_numpy(y), classes=classes, target_names=names or None)


def list_graphs(
    folder: Place,
    there: Sequence[str],
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
) -> Listing:
    """Finds out which files of a folder are graphs of the data set, and what their targets are.

    targets.csv counts, else labels.csv. Without a choice of ``target`` the target of targets.csv is its only column
    beside the files' names, or all columns if they hold nothing but 0 and 1. Graphs without any target are left out.

    Args:
        folder: The folder.
        there: The names of the graph files in it, sorted.
        target: The target column, or several: a list, or names with commas between them. An empty list: none, which is
            enough for prediction.
        task: ``"classification"``, ``"multilabel"`` or ``"regression"``; by default what the columns ask for, as
            :func:`tapnet.data.targets.detect_task` says.

    Returns:
        The files and what is known of them. Without a table all files, and no targets.

    Raises:
        DataError: The table is wrong, or the target is not clear; the message names the line or the columns.
    """
    tables, aside = [name for name in (TARGETS, LABELS) if (folder / name).is_file()], left_aside_note(folder)
    if target is not None and not target:
        return Listing(list(there), notes=aside)
    if not tables:
        if target is not None or task is not None:
            if (excel := excel_targets(folder)) is not None:
                raise excel_error(excel)
            raise DataError(f"{folder}: there is no {TARGETS} with the targets of the graphs")
        return Listing(list(there), notes=aside)
    table = folder / tables[0]
    if tables[0] == TARGETS or target is not None or task is not None:
        listing = _read_targets(read_table(table), there, target, task, aside=", ".join(tables[1:]))
    else:
        listing = _read_labels(table, there)
    notes = list(listing.notes)
    if tables[1:]:
        notes.append(f"{folder}: the targets are those of {TARGETS}; {LABELS} is left aside")
    return listing._replace(notes=(*notes, *aside))


def _read_labels(table: Place, there: Sequence[str]) -> Listing:
    classes = read_classes(table, there)
    distinct = tuple(sorted(set(classes.values())))
    position = {value: i for i, value in enumerate(distinct)}
    y = np.asarray([position[value] for value in classes.values()], dtype=np.int64)
    notes = [f"{table}: {remark}" for remark in remark_similar(distinct)]
    return Listing(
        list(classes), Targets("classification", y, distinct, "", ()), notes=(*notes, *_unlisted(table, there, classes))
    )


def _read_targets(
    table: Table, there: Sequence[str], target: str | Sequence[str] | None, task: Task | None, aside: str
) -> Listing:
    first, *others = table.header
    if not others:
        raise DataError(f"{table.path}:1: the first column names the files; the targets are in further columns")
    by_name, files = _by_name(there), dict[str, int]()
    for row, line in enumerate(table.lines):
        file = _file_of(table.rows[row][0].strip(), by_name, table.path, line)
        if file in files:
            raise DataError(f"{table.path}:{line}: {file} is listed twice")
        files[file] = row
    names = _target_columns(table, others, aside) if target is None else table.find_all(target)
    if first in names:
        raise DataError(f"{table.path}: the column {printable(first)} names the files and cannot be the target")
    rows, notes = list(range(len(files))), list(_unlisted(table.path, there, files))
    targets = _targets(table, names, task, rows)
    notes += [f"{table.path}: {remark}" for remark in targets.remarks]
    if not targets.known.all():
        lines = [table.place(row) for row in np.flatnonzero(~targets.known)]
        notes.append(f"{table.path}: {len(lines)} of {len(rows)} graphs are left out, without a target: {_some(lines)}")
        rows = np.flatnonzero(targets.known).tolist()
        targets = _targets(table, names, targets.task, rows)
    rest = [name for name in others if name not in names]
    commas = table.decimal_commas_note(names)
    aside = f"; left aside: {table.listed(rest):.200}" if any(rest) else ""
    columns = {name: tuple(table.rows[row][table.header.index(name)] for row in rows) for name in rest}
    listed, note = list(files), f"{table.path}: {targets.note}{commas and '; '}{commas}{aside}"
    return Listing([listed[row] for row in rows], targets, columns or None, (note, *notes))


def _targets(table: Table, names: Sequence[str], task: Task | None, rows: Sequence[int]) -> Targets:
    columns = {name: table.column(name) for name in names}
    cells = {name: [column[row] for row in rows] for name, column in columns.items()}
    return detect_task(cells, task, [table.where(row) for row in rows])


def _target_columns(table: Table, others: Sequence[str], aside: str) -> Sequence[str]:
    """The only column, or all if they hold nothing but 0 and 1; else a DataError that lists them.

    ``aside`` is the other table of the folder, which does not count.
    """
    if len(others) == 1:
        return others
    cells = {name: {cell.strip().lower() for cell in table.column(name) if not is_gap(cell)} for name in others}
    if all(found and found <= {"0", "1", "0.0", "1.0", *YES_NO} for found in cells.values()):
        return others
    counts = f" counts, and {aside} is left aside" if aside else ""
    raise DataError(
        f"{table.path}{counts}: which column is the target? The columns are {table.listed(others)}; name one or several"
    )


def may_hold_graphs(text: str) -> bool:
    """Whether a .txt file of this name may be a data set."""
    return not any(word in text.lower() for word in ("readme", "license", "licence", "requirements"))


def is_left_aside(name: str) -> bool:
    """Whether somebody may take a file of this name for one of a folder of graphs, while it is not read."""
    return name.lower().endswith(OTHER_ENDINGS) and not name.startswith((".", "~$")) and may_hold_graphs(name)


def left_aside_note(folder: Place) -> tuple[str, ...]:
    """Says which files of a folder of graphs are not read, spreadsheets in a line of their own."""
    names = sorted(readable_files(folder, is_left_aside))
    excel = [name for name in names if is_excel_name(name)]
    others = [name for name in names if name not in excel]
    what = f"no graph file ({FILE_ENDINGS})" if len(others) == 1 else f"no graph files ({FILE_ENDINGS})"
    notes = [f"{folder}: left aside: {printable(_some(others))[:200]}, {what}"] if others else []
    files = "an Excel file" if len(excel) == 1 else "Excel files"
    save = f"save {'it' if len(excel) == 1 else 'them'} as CSV (UTF-8)"
    notes += [f"{folder}: left aside: {printable(_some(excel))[:200]}, {files}; {save}"] if excel else []
    return tuple(notes)


def _by_name(there: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The files that a name, with its ending or without, can stand for."""
    by_name: dict[str, list[str]] = {}
    for file in there:
        by_name.setdefault(file.rpartition(".")[0], []).append(file)
    return by_name | {file: [file] for file in there}


def _file_of(name: str, by_name: Mapping[str, Sequence[str]], table: Place, line: int) -> str:
    files = by_name.get(name, ())
    if len(files) != 1:
        which = f"stands for {' and '.join(files)}" if files else "is no graph file in this folder"
        others = readable_files(cast(Place, table.parent), lambda file: name in (file, file.rpartition(".")[0]))
        if name and others and not files:
            which += f"; there is {printable(', '.join(sorted(others)))[:100]}, but graph files are {FILE_ENDINGS}"
        raise DataError(f"{table}:{line}: {printable(name)[:100]!r} {which}")
    return files[0]


def _unlisted(table: Place, there: Sequence[str], listed: Mapping[str, object]) -> tuple[str, ...]:
    left_out = [file for file in there if file not in listed]
    return (f"{table} does not list {_some(left_out)}: left out",) if left_out else ()


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:SHOWN]) + (f" and {len(words) - SHOWN} more" if len(words) > SHOWN else "")


# ---- labels.csv ----


def read_classes(table: Place, there: Sequence[str]) -> Mapping[str, str | int]:
    """Reads the classes of graph files from labels.csv.

    Args:
        table: The table.
        there: The names of the graph files in its folder.

    Returns:
        The class of each file that is listed, in the table's order.

    Raises:
        DataError: The table is wrong; the message names the line.
    """
    text = read_table_text(table)
    by_name = _by_name(there)
    content = without_separator(io.StringIO(text, newline=""))
    lines = csv.reader(content, delimiter=separator(text), skipinitialspace=True)
    classes: dict[str, str] = {}
    try:
        graph, label = _columns(next(filter(None, lines), []), table, by_name)
        for line in lines:
            if not any(line):
                continue
            where = f"{table}:{lines.line_num}"
            name, value = ("".join(line[i : i + 1]).strip() for i in (graph, label))
            if not name or not value:
                raise DataError(f"{where}: a file's name and its class belong here, not {','.join(line)[:40]!r}")
            file = _file_of(name, by_name, table, lines.line_num)
            if file in classes:
                raise DataError(f"{where}: {file} is listed twice")
            classes[file] = plain_minus(value)
    except csv.Error as error:
        raise DataError(f"{table}:{lines.line_num}: not a table ({error})") from None
    if not classes:
        raise DataError(f"{table}: lists no graphs")
    if all(map(INTEGER.fullmatch, classes.values())):
        return {file: int(value) for file, value in classes.items()}
    return classes


def _columns(header: Sequence[str], table: Place, files: Mapping[str, object]) -> tuple[int, int]:
    """Which columns hold the files' names and the classes."""
    titles = [title.strip().lower() for title in header]
    if len(titles) < 2 or (header[0].strip() in files and tuple(titles) != ("graph", "class")):
        raise DataError(f"{table}:1: the first line is a header of two columns, such as graph,class")
    named = [
        next((titles.index(word) for word in words if word in titles), None)
        for words in (("graph", "file"), ("class", "label"))
    ]
    others = (i for i in range(len(titles)) if i not in named)
    graph, label = (next(others) if i is None else i for i in named)
    return graph, label
