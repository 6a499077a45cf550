"""The two formats in which this field keeps data sets, read and checked: TU folders and one-file text."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tapnet.data.convert import IntArray, assemble
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.io.graph_files import read_graphs
from tapnet.io.layout import UNREADABLE, Layout, Place, layout_of
from tapnet.progress import track_reading


def read(path: Path, *, name: str | None = None, features: Features | None = None) -> GraphDataset:
    """A data set from a TU folder, a .zip of one, a one-file text, or a folder of graphs."""
    return read_layout(layout_of(path), name=name, features=features)


def read_layout(layout: Layout, *, name: str | None = None, features: Features | None = None) -> GraphDataset:
    if layout.kind == "tu":
        return read_tu(layout.place, layout.prefix, name=name or layout.prefix, features=features)
    if layout.kind == "graphs":
        return read_graphs(layout.place, name=name or layout.prefix, features=features)
    return read_text(layout.place, name=name or layout.prefix, features=features)


# ---- TU folders ----


def read_tu(folder: Place, prefix: str, *, name: str, features: Features | None = None) -> GraphDataset:
    """NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt and what else of the TU layout is there."""
    files = {part: folder / f"{prefix}_{part}.txt" for part in TU_PARTS}
    present = {part: file for part, file in files.items() if file.is_file()}
    for part in ("A", "graph_indicator", "graph_labels"):
        if part not in present:
            raise DataError(f"{files[part]}: this file is missing")
    table = {part: _read_table(file, *TU_PARTS[part]) for part, file in present.items()}

    graph = table["graph_indicator"][:, 0] - 1
    y = table["graph_labels"][:, 0]
    edges = np.ascontiguousarray(table["A"].T) - 1
    num_graphs, num_nodes, num_edges = len(y), len(graph), edges.shape[1]
    _require(
        (graph >= 0) & (graph < num_graphs),
        present["graph_indicator"],
        lambda i: f"graph {graph[i] + 1}, but {present['graph_labels'].name} has graphs 1 to {num_graphs}",
    )
    sizes = np.bincount(graph, minlength=num_graphs)
    _require(
        sizes > 0,
        present["graph_labels"],
        lambda g: f"graph {g + 1} has no nodes in {present['graph_indicator'].name}",
    )
    _require(
        np.logical_and.reduce((edges >= 0) & (edges < num_nodes)),
        present["A"],
        lambda i: (
            f"edge {edges[0, i] + 1}, {edges[1, i] + 1}: the nodes are 1 to {num_nodes}; one is outside every graph"
        ),
    )
    _require(
        graph[edges[0]] == graph[edges[1]],
        present["A"],
        lambda i: (
            f"edge {edges[0, i] + 1}, {edges[1, i] + 1} joins graph {graph[edges[0, i]] + 1} "
            f"and graph {graph[edges[1, i]] + 1}"
        ),
    )
    for part, wanted, what in (
        ("node_labels", num_nodes, "nodes"),
        ("node_attributes", num_nodes, "nodes"),
        ("edge_labels", num_edges, "edges"),
        ("edge_attributes", num_edges, "edges"),
    ):
        if part in table and len(table[part]) != wanted:
            raise DataError(f"{present[part]}: {len(table[part])} lines for {wanted} {what}")

    if (np.diff(graph) < 0).any():  # nodes of a graph that do not stand together: sort them by graph
        order = np.argsort(graph, kind="stable")
        edges = np.argsort(order, kind="stable")[edges]
        table.update({part: table[part][order] for part in ("node_labels", "node_attributes") if part in table})
    return assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=edges,
        y=y,
        features=features,
        source=str(folder),
        node_labels=table.get("node_labels"),
        node_attributes=table.get("node_attributes"),
        edge_labels=table.get("edge_labels"),
        edge_attributes=table.get("edge_attributes"),
    )


# part of the TU layout → type of its numbers, and how many stand in a line (None: as many as in the first)
TU_PARTS: dict[str, tuple[type, int | None]] = {
    "A": (np.int64, 2),
    "graph_indicator": (np.int64, 1),
    "graph_labels": (np.int64, 1),
    "node_labels": (np.int64, None),
    "node_attributes": (np.float32, None),
    "edge_labels": (np.int64, None),
    "edge_attributes": (np.float32, None),
}


def _read_table(file: Place, dtype: type, columns: int | None) -> NDArray[Any]:
    """Comma-separated numbers, [lines, columns]."""
    table: NDArray[Any]
    try:
        with _open_text(file) as lines, warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file, an integer written as a float
            table = np.loadtxt(lines, dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OverflowError, Warning, *UNREADABLE) as error:
        _explain(file, dtype, columns, error)
    if columns is not None and table.shape[1] != columns:
        _explain(file, dtype, columns, ValueError(f"{table.shape[1]} numbers in a line where {columns} belong"))
    if dtype is np.float32:
        _require(np.isfinite(table).all(1), file, lambda _: "NaN or infinite")
    return table


def _explain(file: Place, dtype: type, columns: int | None, error: BaseException) -> NoReturn:
    """The first line that is wrong, in words: found by a second, slow look."""
    whole = dtype is np.int64
    number, kind = (_WHOLE, "a whole number") if whole else (_NUMBER, "a number")
    rows = 0
    try:
        for line, words in _rows(file):
            rows += 1
            columns = columns or len(words)
            if len(words) != columns:
                raise DataError(f"{file}:{line}: {len(words)} values where {columns} belong")
            for word in words:
                if not number.fullmatch(word.strip()):
                    raise DataError(f"{file}:{line}: {word.strip()[:40]!r} where {kind} belongs")
                if whole and (len(word) > LONGEST_WORD or abs(int(word)) >= 2**63):
                    raise DataError(f"{file}:{line}: {word.strip()[:40]} is too large")
    except UnicodeDecodeError:
        raise DataError(f"{file}{_undecodable_line(file)}: not plain text, so it cannot be read") from None
    except UNREADABLE as unreadable:
        raise DataError(f"{file}: cannot be read to its end ({unreadable})") from None
    if rows == 0:
        raise DataError(f"{file}: the file is empty")
    raise DataError(f"{file}: {error}") from None


LONGEST_WORD = 100  # letters of a number; the longest that fit have twenty
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


def _undecodable_line(file: Place) -> str:
    """ ":" and the first line that is no plain text; nothing where it is the file's name in its archive."""
    try:
        with file.open("rb") as lines:
            return next((f":{i}" for i, line in enumerate(lines, start=1) if not line.isascii()), "")
    except UnicodeDecodeError:
        return ""


def _rows(file: Place) -> Iterator[tuple[int, list[str]]]:
    """(line number, values) of the lines that are not empty."""
    with _open_text(file) as lines:
        for line, text in enumerate(lines, start=1):
            if text.strip("\r\n"):
                yield line, text.split(",")


def _require(good: NDArray[np.bool_], file: Place, reason: Any) -> None:
    """Every row is good, or an error that names the line of the first that is not."""
    if not good.all():
        bad = int(np.argmin(good))
        line = next(islice((line for line, _ in _rows(file)), bad, None))
        raise DataError(f"{file}:{line}: {reason(bad)}")


@contextmanager
def _open_text(file: Place) -> Iterator[IO[str]]:
    size = file.stat().st_size if isinstance(file, Path) else file.root.getinfo(file.at).file_size
    with track_reading(file.open("rb"), size, f"reading {file.name}") as raw:
        yield io.TextIOWrapper(raw, encoding="ascii")


# ---- one-file text ----


def read_text(file: Place, *, name: str, features: Features | None = None) -> GraphDataset:
    """The text format of GIN and DGCNN.

    First line: the number of graphs. Each graph: a line ``n label``, then for each of its n nodes a line
    ``tag degree neighbours… [attributes…]``, neighbours numbered from 0 within the graph.
    """
    try:
        with file.open("rb") as stream:
            text = stream.read()
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
    if not text.isascii():
        raise DataError(f"{file}{_undecodable_line(file)}: not plain text, so it cannot be read")
    numbers, start, line = _tokens(text, file)
    count = np.diff(np.append(start, len(numbers)))  # words in each line

    def wrong(row: int, reason: str) -> NoReturn:
        raise DataError(f"{file}:{line[row]}: {reason}")

    def whole(position: IntArray | int, row: Any) -> Any:
        value = numbers[position]
        good = np.isfinite(value) & (value == np.floor(value)) & (np.abs(value) < 2**53)
        if not np.all(good):
            bad = int(np.argmin(good)) if np.ndim(good) else 0
            row = int(np.asarray(row).reshape(-1)[bad])
            wrong(row, f"{np.asarray(value).reshape(-1)[bad]:g} where a whole number belongs")
        return value.astype(np.int64)

    if len(start) == 0:
        raise DataError(f"{file}: the file is empty")
    if count[0] != 1:
        wrong(0, f"{count[0]} values where the number of graphs belongs")
    num_graphs = int(whole(0, 0))
    if num_graphs < 1:
        wrong(0, f"{num_graphs} graphs: the data set has no graphs")
    headers = np.empty(min(num_graphs, len(start)), dtype=np.int64)
    row = 1
    for g in range(num_graphs):
        if row >= len(start):
            raise DataError(f"{file}: ends before graph {g + 1} of {num_graphs}")
        if count[row] != 2:
            wrong(row, f"{count[row]} values where graph {g + 1} should begin with 'n label'")
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
    _check_rows(count[nodes] >= 2, nodes, wrong, lambda i: "a node's line begins with 'tag degree'")
    tags, degree = whole(start[nodes], nodes), whole(start[nodes] + 1, nodes)
    _check_rows(
        (degree >= 0) & (degree <= count[nodes] - 2),
        nodes,
        wrong,
        lambda i: f"{degree[i]} neighbours announced, {count[nodes[i]] - 2} values follow",
    )
    width = count[nodes] - 2 - degree
    _check_rows(
        width == width[0],
        nodes,
        wrong,
        lambda i: f"{width[i]} attributes where the first node has {width[0]}",
    )

    source = np.repeat(np.arange(len(nodes)), degree)
    within = np.arange(len(source)) - np.repeat(np.cumsum(degree) - degree, degree)
    target = whole(np.repeat(start[nodes] + 2, degree) + within, nodes[source])
    size_of = np.repeat(sizes, sizes)[source]
    _check_rows(
        (target >= 0) & (target < size_of),
        nodes[source],
        wrong,
        lambda i: f"neighbour {target[i]}, but the graph's nodes are 0 to {size_of[i] - 1}",
    )
    attributes = None
    if width[0]:
        first = start[nodes] + 2 + degree
        with np.errstate(over="ignore"):  # becomes infinite, which the next line refuses
            attributes = numbers[first[:, None] + np.arange(width[0])].astype(np.float32)
        _check_rows(np.isfinite(attributes).all(1), nodes, wrong, lambda i: "NaN or infinite")
    first_node = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=np.stack([source, target + first_node[source]]),
        y=whole(start[headers] + 1, headers),
        node_labels=tags,
        node_attributes=attributes,
        features=features,
        source=str(file),
    )


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
                if not _NUMBER.fullmatch(word.decode("ascii")):
                    shown = word.decode("ascii")[:40]
                    raise DataError(f"{file}:{number}: {shown!r} where a number belongs") from None
        raise DataError(f"{file}: holds something other than numbers") from None
    return numbers, start, line + 1


def _check_rows(good: NDArray[np.bool_], rows: IntArray, wrong: Any, reason: Any) -> None:
    if not good.all():
        bad = int(np.argmin(good))
        wrong(int(rows[bad]), reason(bad))
