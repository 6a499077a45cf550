"""The format of the TU Dortmund collection: a folder of NAME_A.txt, NAME_graph_indicator.txt, …"""

from __future__ import annotations

import io
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.convert import assemble, one_way_note
from tapnet.data.dataset import NODE_AND_EDGE_DATA, Features, GraphDataset
from tapnet.errors import DataError
from tapnet.files import counted, write_atomically
from tapnet.io._plain_text import BOM, NUMBER, WHOLE, not_plain_text
from tapnet.io.archive import UNREADABLE, Place, children
from tapnet.progress import track_reading

BLANKS = " \t\r\n\v\f"  # around a number; str.strip removes separators such as \x1f too, which int refuses
LONGEST_WORD = 100  # letters of a number; the longest that fit have twenty
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
TRUTH = "node_truth"  # a part of our own: the nodes that the classes of generated data depend on


def read_tu(folder: Place, *, name: str, features: Features | None = None, directed: bool = False) -> GraphDataset:
    """Reads NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt and whichever of the other files are there.

    Args:
        folder: The folder of the files.
        name: The name of the data set, with which the files' names begin.
        features: What ``x`` holds; by default labels where they tell nodes apart, else attributes, else degrees.
        directed: Whether edges keep their directions, from the first node of a line of NAME_A.txt to the second.

    Returns:
        The data set.

    Raises:
        DataError: A file is missing or wrong; the message names the file and the line.
    """
    present = part_files(folder, name)
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
    _require(
        np.logical_and.reduce((edges >= 0) & (edges < num_nodes)),
        present["A"],
        lambda i: "edge {}, {}: the nodes are 1 to {}; one is outside every graph".format(*edges[:, i] + 1, num_nodes),
    )
    _require(
        graph[edges[0]] == graph[edges[1]],
        present["A"],
        lambda i: "edge {}, {} joins graph {} and graph {}".format(*edges[:, i] + 1, *graph[edges[:, i]] + 1),
    )
    data: dict[str, Any] = {part: rows for part, rows in table.items() if part in NODE_AND_EDGE_DATA}
    for part, rows in data.items():
        wanted = num_nodes if NODE_AND_EDGE_DATA[part] == "node" else num_edges
        if len(rows) != wanted:
            raise DataError(
                f"{present[part]}: {counted(len(rows), 'line')} for {counted(wanted, NODE_AND_EDGE_DATA[part])}"
            )

    if (np.diff(graph) < 0).any():  # nodes of a graph that do not stand together: sort them by graph
        order = np.argsort(graph, kind="stable")
        edges = np.argsort(order, kind="stable")[edges]
        data |= {part: rows[order] for part, rows in data.items() if NODE_AND_EDGE_DATA[part] == "node"}
    notes: tuple[str, ...] = ()
    sizes = np.bincount(graph, minlength=num_graphs)
    if not sizes.all():  # Fingerprint of the collection labels graphs without nodes
        words = f"{int((sizes == 0).sum())} of {num_graphs} graphs have no nodes"
        if 2 * (sizes == 0).sum() >= num_graphs:
            raise DataError(f"{present['graph_labels']}: {words} in {present['graph_indicator'].name}")
        notes = (f"{name}: {words} and are left out",)
        y, sizes = y[sizes > 0], sizes[sizes > 0]
    dataset = assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=edges,
        y=y,
        features=features,
        source=str(folder),
        directed=directed,
        **data,
    )
    if not directed and (one_way := one_way_note(edges, dataset)):
        notes = (*notes, f"{present['A']}: {one_way}")
    if features is None and dataset.features == "degrees" and dataset.node_attributes is not None:
        dataset = dataset.with_features("attributes")
    return replace(dataset, notes=notes)


def part_files(folder: Place, name: str) -> dict[str, Place]:
    """The files of the parts that are there.

    Raises:
        DataError: A file that has to be there is missing.
    """
    there = {file.name.lower(): file for file in children(folder) if file.is_file()}
    present = {part: there[key] for part in TU_PARTS if (key := f"{name}_{part}.txt".lower()) in there}
    for part in ("A", "graph_indicator", "graph_labels"):
        if part not in present:
            raise DataError(f"{folder / f'{name}_{part}.txt'}: this file is missing")
    return present


def write_tu(dataset: GraphDataset, folder: Path, node_truth: Tensor | None = None) -> None:
    """Writes classes, structure, labels and attributes as files of the TU layout, which ``load_dataset`` reads.

    Args:
        dataset: The data set; its classes and labels are whole numbers.
        folder: Where the files go; their names begin with its name.
        node_truth: ``[N]`` of each node, whether the class depends on it: a further file NAME_node_truth.txt.

    Raises:
        DataError: The data set has what the layout has no place for, or there are files in the folder.
        TapnetError: A file cannot be written.
    """
    if folder.is_dir() and any(folder.iterdir()):  # parts of another data set would be read with these
        raise DataError(f"{folder}: this folder is not empty; name a new one")
    values = (*dataset.classes, *(dataset.node_label_values or ()), *(dataset.edge_label_values or ()))
    whole = all(isinstance(value, int | np.integer) for value in values)
    if (
        dataset.task != "classification"
        or dataset.edge_weight is not None
        or dataset.self_loop is not None
        or not whole
    ):
        raise DataError(
            f"{dataset.name}: the TU layout has classes and labels that are whole numbers, and no weights or self-loops"
        )

    def named(numbers: Tensor | None, of: Sequence[Hashable] | None) -> NDArray[Any] | None:
        return None if numbers is None else np.asarray(of)[numbers.numpy()]

    sizes = dataset.nodes_per_graph.numpy()
    source = np.repeat(np.arange(dataset.num_nodes), dataset.rowptr.diff().numpy())
    first = np.repeat(dataset.node_ptr[:-1].numpy(), sizes)
    ends = [source, first[source] + dataset.col.numpy()]
    tables = {
        "A": np.stack(ends[::-1] if dataset.directed else ends, axis=1) + 1,
        "graph_indicator": np.repeat(np.arange(len(sizes)), sizes) + 1,
        "graph_labels": named(dataset.y, dataset.classes),
        "node_labels": named(dataset.node_labels, dataset.node_label_values),
        "node_attributes": dataset.node_attributes,
        "edge_labels": named(dataset.edge_labels, dataset.edge_label_values),
        "edge_attributes": dataset.edge_attributes,
        TRUTH: None if node_truth is None else node_truth.int(),
    }
    for part, rows in tables.items():
        if rows is not None:
            lines = np.asarray(rows).reshape(len(rows), -1).tolist()
            text = "".join(", ".join(map(repr, line)) + "\n" for line in lines)
            write_atomically(folder / f"{folder.name}_{part}.txt", text.encode("ascii"))


def read_node_truth(folder: Path) -> Tensor:
    """The file NAME_node_truth.txt of a folder that ``write_tu`` wrote.

    Args:
        folder: The folder of the files.

    Returns:
        ``[N]`` bool: whether the class of its graph depends on the node.

    Raises:
        DataError: There is no such file, or it is wrong.
    """
    file = folder / f"{folder.name}_{TRUTH}.txt"
    if not file.is_file():
        raise DataError(f"{file}: this file is missing")
    return torch.from_numpy(_read_table(file, np.int64, 1)[:, 0] != 0)


def _read_table(file: Place, dtype: type, columns: int | None) -> NDArray[Any]:
    """Comma-separated numbers, [lines, columns]."""
    table: NDArray[Any]
    try:
        with open_text(file) as lines, warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file, an integer written as a float
            table = np.loadtxt(lines, dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OverflowError, Warning, *UNREADABLE) as error:
        _explain(file, dtype, columns, error)
    if columns is not None and table.shape[1] != columns:
        _explain(
            file, dtype, columns, ValueError(f"{counted(table.shape[1], 'number')} in a line where {columns} belong")
        )
    if dtype is np.float32:
        _require(np.isfinite(table).all(1), file, lambda _: "NaN or infinite")
    return table


def _explain(file: Place, dtype: type, columns: int | None, error: BaseException) -> NoReturn:
    """Raises an error that names the first wrong line, found by reading the file again, slowly."""
    whole = dtype is np.int64
    number, kind = (WHOLE, "a whole number") if whole else (NUMBER, "a number")
    rows = 0
    try:
        for line, words in _rows(file):
            rows += 1
            columns = columns or len(words)
            if len(words) != columns:
                raise DataError(f"{file}:{line}: {counted(len(words), 'value')} where {columns} belong")
            for word in (text.strip(BLANKS) for text in words):
                if not number.fullmatch(word):
                    is_target = file.name.lower().endswith("_graph_labels.txt") and NUMBER.fullmatch(word)
                    why = ", the number of a class: a number to predict (regression) is not one" if is_target else ""
                    raise DataError(f"{file}:{line}: {word[:40]!r} where {kind} belongs{why}")
                if whole and (len(word) > LONGEST_WORD or abs(int(word)) >= 2**63):
                    raise DataError(f"{file}:{line}: {word[:40]} is too large")
    except UnicodeDecodeError:
        raise not_plain_text(file) from None
    except UNREADABLE as unreadable:
        raise DataError(f"{file}: cannot be read to its end ({unreadable})") from None
    if rows == 0:
        raise DataError(f"{file}: the file is empty")
    raise DataError(f"{file}: {error}") from None


def _rows(file: Place) -> Iterator[tuple[int, list[str]]]:
    """(line number, values) of the lines that are not empty."""
    with open_text(file) as lines:
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
def open_text(file: Place) -> Iterator[IO[str]]:
    """The file as ASCII text, without a byte order mark, with a bar that follows what is read of it."""
    size = file.stat().st_size if isinstance(file, Path) else file.root.getinfo(file.at).file_size
    with track_reading(file.open("rb"), size, f"reading {file.name}") as raw:
        if raw.read(len(BOM)) != BOM:
            raw.seek(0)
        yield io.TextIOWrapper(raw, encoding="ascii")
