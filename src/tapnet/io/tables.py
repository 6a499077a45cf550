"""labels.csv: the classes of a folder of graphs.

It has a header and one line per graph: the file's name, with its ending or without, and its class, any text. The
columns may be named ``graph`` or ``file``, and ``class`` or ``label``; else they are the first and the second. Where
every class is a whole number, classes are integers; else they are text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

from tapnet.errors import DataError
from tapnet.io.archive import Place, read_content

LABELS = "labels.csv"
MAX_TABLE_BYTES = 1 << 27
INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")  # 01 and +1 are names


def read_classes(table: Place, there: Sequence[str]) -> Mapping[str, str | int]:
    """Reads the classes of graph files.

    Args:
        table: The table.
        there: The names of the graph files in its folder.

    Returns:
        The class of each file that is listed, in the table's order.

    Raises:
        DataError: The table is wrong; the message names the line.
    """
    try:
        text = read_content(table, MAX_TABLE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{table}: not UTF-8 text") from None
    if "\0" in text:
        raise DataError(f"{table}: not text: it has NUL bytes")
    by_name: dict[str, list[str]] = {}
    for file in there:
        by_name.setdefault(file.rpartition(".")[0], []).append(file)
    by_name |= {file: [file] for file in there}
    header = text.partition("\n")[0]
    mark = next((mark for mark in ",;\t" if mark in header), ",")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
    classes: dict[str, str] = {}
    try:
        graph, label = _columns(next(lines, []), table, by_name)
        for line in lines:
            if not any(line):
                continue
            where = f"{table}:{lines.line_num}"
            name, value = ("".join(line[i : i + 1]).strip() for i in (graph, label))
            if not name or not value:
                raise DataError(f"{where}: a file's name and its class belong here, not {','.join(line)[:40]!r}")
            files = by_name.get(name, ())
            if len(files) != 1:
                which = f"stands for {' and '.join(files)}" if files else "is no graph file beside it"
                raise DataError(f"{where}: {name!r} {which}")
            if files[0] in classes:
                raise DataError(f"{where}: {files[0]} is listed twice")
            classes[files[0]] = value
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
