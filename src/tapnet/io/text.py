"""The one-file text format of GIN and DGCNN.

The first line is the number of graphs. Each graph is a line ``n label``, then for each of its n nodes a line
``tag degree neighbours… [attributes…]``, neighbours numbered from 0 within the graph.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tapnet.data.convert import IntArray, assemble, one_way_note
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.files import counted
from tapnet.io._plain_text import BOM, NUMBER, not_plain_text
from tapnet.io.archive import UNREADABLE, Place, file_size, read_content
from tapnet.io.mapped_parts import MappedParts, NotInPartsError
from tapnet.io.tables import FILE_ENDINGS

LARGE_BYTES, LINES_AT_ONCE = 1 << 30, 1 << 18  # of files that are read in parts
READ_AS = f"; this is read as the text of GIN and DGCNN, while files of one graph are {FILE_ENDINGS}"


def read_text(file: Place, *, name: str, features: Features | None = None, directed: bool = False) -> GraphDataset:
    """Reads a data set from one text file.

    Args:
        file: The file.
        name: The name of the data set.
        features: What ``x`` holds; by default labels where they tell nodes apart, else degrees.
        directed: Whether edges keep their directions, from a node to those that its line lists.

    Returns:
        The data set.

    Raises:
        DataError: A line is wrong; the message names the file and the line.
    """
    dataset = _read_large(file, name, directed) or _parse(read_content(file).removeprefix(BOM), file, name, directed)
    return dataset.with_features(features or ("labels" if len(dataset.node_label_values or ()) > 1 else "degrees"))


def _read_large(file: Place, name: str, directed: bool) -> GraphDataset | None:
    """In memory for some graphs at a time; None where the file is small, or has to be read as a whole."""
    if file_size(file) < LARGE_BYTES:
        return None
    parts = MappedParts()
    try:
        with file.open("rb") as stream:
            lines = (line if line.endswith(b"\n") else line + b"\n" for line in stream if not line.isspace())
            graphs = _count(next(lines, b"").removeprefix(BOM), 1)
            while graphs > 0:
                some: list[bytes] = []
                count = 0
                while count < graphs and len(some) < LINES_AT_ONCE:
                    header = next(lines, b"")
                    some += [header, *islice(lines, _count(header, 2))]
                    count += 1
                parts.add(_parse(b"".join([b"%d\n" % count, *some]), file, name, directed))
                graphs -= count
            return parts.dataset() if next(lines, None) is None else None
    except (NotInPartsError, DataError, OverflowError, *UNREADABLE):
        return None  # as a whole it is read, or it is said what is wrong


def _count(line: bytes, words: int) -> int:
    """The number at the beginning of a line of so many words."""
    if len(line.split()) != words or not line.split()[0].isdigit():
        raise NotInPartsError
    return int(line.split()[0])


def _parse(text: bytes, file: Place, name: str, directed: bool) -> GraphDataset:
    if not text.isascii():
        raise not_plain_text(file)
    numbers, start, line = _tokens(text, file)
    count = np.diff(np.append(start, len(numbers)))  # words in each line

    def wrong(row: int, reason: str) -> NoReturn:
        raise DataError(f"{file}:{line[row]}: {reason}")

    def check(good: NDArray[np.bool_], rows: IntArray, reason: Callable[[int], str]) -> None:
        if not good.all():
            bad = int(np.argmin(good))
            wrong(int(rows[bad]), reason(bad))

    def whole(position: IntArray | int, row: Any) -> Any:
        value = numbers[position]
        good = np.isfinite(value) & (value == np.floor(value)) & (np.abs(value) < 2**53)
        check(good, np.atleast_1d(row), lambda i: f"{np.atleast_1d(value)[i]:g} where a whole number belongs")
        return value.astype(np.int64)

    if len(start) == 0:
        raise DataError(f"{file}: the file is empty")
    if count[0] != 1:
        wrong(0, f"{counted(count[0], 'value')} where the number of graphs belongs{READ_AS}")
    num_graphs = int(whole(0, 0))
    if num_graphs < 1:
        wrong(0, f"{num_graphs} graphs: the data set has no graphs")
    headers = np.empty(min(num_graphs, len(start)), dtype=np.int64)
    row = 1
    for g in range(num_graphs):
        if row >= len(start):
            raise DataError(f"{file}: ends before graph {g + 1} of {num_graphs}")
        if count[row] != 2:
            wrong(row, f"{counted(count[row], 'value')} where graph {g + 1} should begin with 'n label'")
        headers[g] = row
        size = int(whole(int(start[row]), row))
        if size < 1:
            wrong(row, f"graph {g + 1} has {size} nodes")
        row += 1 + size
    if row > len(start):
        raise DataError(f"{file}: ends before the last node of graph {num_graphs}")
    if row < len(start):
        wrong(row, f"more lines than the {num_graphs} graphs that the first line announces")

    sizes = whole(start[headers], headers)
    is_node = np.ones(len(start), dtype=bool)
    is_node[0] = is_node[headers] = False
    nodes = np.flatnonzero(is_node)
    check(count[nodes] >= 2, nodes, lambda i: "a node's line begins with 'tag degree'")
    tags, degree = whole(start[nodes], nodes), whole(start[nodes] + 1, nodes)
    check(
        (degree >= 0) & (degree <= count[nodes] - 2),
        nodes,
        lambda i: f"{degree[i]} neighbours announced, {count[nodes[i]] - 2} values follow",
    )
    width = count[nodes] - 2 - degree
    check(width == width[0], nodes, lambda i: f"{width[i]} attributes where the first node has {width[0]}")

    source = np.repeat(np.arange(len(nodes)), degree)
    within = np.arange(len(source)) - np.repeat(np.cumsum(degree) - degree, degree)
    target = whole(np.repeat(start[nodes] + 2, degree) + within, nodes[source])
    size_of = np.repeat(sizes, sizes)[source]
    check(
        (target >= 0) & (target < size_of),
        nodes[source],
        lambda i: f"neighbour {target[i]}, but the graph's nodes are 0 to {size_of[i] - 1}",
    )
    attributes = None
    if width[0]:
        first = start[nodes] + 2 + degree
        with np.errstate(over="ignore"):  # becomes infinite, which the next line refuses
            attributes = numbers[first[:, None] + np.arange(width[0])].astype(np.float32)
        check(np.isfinite(attributes).all(1), nodes, lambda i: "NaN or infinite")
    first_node = np.repeat(np.cumsum(sizes) - sizes, sizes)
    edge_index = np.stack([source, target + first_node[source]])
    dataset = assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=edge_index,
        y=whole(start[headers] + 1, headers),
        node_labels=tags,
        node_attributes=attributes,
        features="degrees",
        source=str(file),
        directed=directed,
    )
    note = "" if directed else one_way_note(edge_index, dataset)
    return replace(dataset, notes=(f"{file}: {note}",)) if note else dataset


def _tokens(text: bytes, file: Place) -> tuple[NDArray[np.float64], IntArray, IntArray]:
    """All numbers of a text, where each non-blank line begins among them, and that line's number in the file."""
    letters = np.frombuffer(text, dtype=np.uint8)
    visible = np.concatenate([[False], letters > 32])
    begins = np.flatnonzero(visible[1:] & ~visible[:-1])
    line_of_word = np.searchsorted(np.flatnonzero(letters == ord("\n")), begins)
    line, start = np.unique(line_of_word, return_index=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.fromstring(text, dtype=np.float64, sep=" ") if len(begins) else np.empty(0)
        if len(numbers) != len(begins):
            raise ValueError
    except (ValueError, DeprecationWarning):
        for number, words in enumerate(io.BytesIO(text), start=1):
            for word in words.split():
                if not NUMBER.fullmatch(word.decode("ascii")):
                    shown = word.decode("ascii")[:40]
                    why = READ_AS if number == 1 else ""
                    raise DataError(f"{file}:{number}: {shown!r} where a number belongs{why}") from None
        raise DataError(f"{file}: holds something other than numbers") from None
    return numbers, start, line + 1
