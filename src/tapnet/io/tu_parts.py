"""Files of the TU layout that do not fit into memory: read in parts of whole graphs into arrays on disk."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import IO, Any

import numpy as np

from tapnet._loops.jit import Array
from tapnet.data.convert import assemble, one_way_note
from tapnet.data.dataset import NODE_AND_EDGE_DATA, GraphDataset
from tapnet.errors import DataError
from tapnet.io.archive import UNREADABLE, Place, file_size
from tapnet.io.dataset_files import Layout
from tapnet.io.mapped_parts import MappedParts, NotInPartsError
from tapnet.io.tu import TU_PARTS, open_text, part_files

LARGE_BYTES = 1 << 30  # of text: smaller data sets are read as a whole
NODES_AT_ONCE, LINES_AT_ONCE = 1 << 18, 1 << 16


def read_large_tu(layout: Layout) -> GraphDataset | None:
    """What ``read_tu`` reads, in memory for a part of the graphs at a time; the arrays are in files without a name.

    Args:
        layout: The files.

    Returns:
        The data set. None where the files are small or in another format, where they do not name graph after graph in
        order, and where something is wrong with them: ``read_tu`` sorts them, or says what is wrong.
    """
    if layout.kind != "tu":
        return None
    try:
        files = part_files(layout.place, layout.prefix)
        return None if sum(map(file_size, files.values())) < LARGE_BYTES else _read(layout, files)
    except (NotInPartsError, DataError, ValueError, OverflowError, Warning, *UNREADABLE):
        return None


def _table(lines: Iterable[str], dtype: type) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an empty file, an integer written as a float
        return np.loadtxt(lines, dtype=dtype, delimiter=",", comments=None, ndmin=2)


class _Rows:
    """The rows of a file, taken from its beginning on."""

    def __init__(self, lines: IO[str], dtype: type, columns: int | None) -> None:
        self.lines, self.dtype, self.columns = lines, dtype, columns
        self.rest: Array = np.empty((0, columns or 0), dtype)

    def _more(self) -> bool:
        some = list(islice(self.lines, LINES_AT_ONCE))
        if not some:
            return False
        if any(not line.isspace() for line in some):
            rows = _table(some, self.dtype)
            self.columns = self.columns or rows.shape[1]
            if rows.shape[1] != self.columns or not np.isfinite(rows).all():
                raise NotInPartsError
            self.rest = np.concatenate([self.rest, rows]) if len(self.rest) else rows
        return True

    def take(self, count: int) -> Array:
        while (len(self.rest) < count or self.columns is None) and self._more():
            pass
        if len(self.rest) < count:
            raise NotInPartsError
        rows, self.rest = self.rest[:count], self.rest[count:]
        return rows

    def take_up_to(self, largest: int) -> Array:
        """The rows before the first whose first number is larger."""
        parts: list[Array] = []
        while True:
            beyond = np.flatnonzero(self.rest[:, 0] > largest) if len(self.rest) else np.empty(0, np.int64)
            end = int(beyond[0]) if len(beyond) else len(self.rest)
            parts.append(self.rest[:end])
            self.rest = self.rest[end:]
            if len(beyond) or not self._more():
                return np.concatenate(parts)

    def at_end(self) -> bool:
        while not len(self.rest) and self._more():
            pass
        return not len(self.rest)


def _read(layout: Layout, files: Mapping[str, Place]) -> GraphDataset:
    with ExitStack() as stack:
        rows = {
            part: _Rows(stack.enter_context(open_text(file)), *TU_PARTS[part])
            for part, file in files.items()
            if part != "graph_labels"
        }
        with open_text(files["graph_labels"]) as lines:
            labels = _table(lines, np.int64)
        if labels.shape[1] != 1:
            raise NotInPartsError
        classes, y = np.unique(labels[:, 0], return_inverse=True)
        return _Assembly(layout, rows, y, classes.tolist()).read()


class _Assembly:
    def __init__(self, layout: Layout, rows: Mapping[str, _Rows], y: Array, classes: Sequence[Hashable]) -> None:
        self.layout, self.rows, self.y, self.classes = layout, rows, y, classes
        self.parts = MappedParts()

    def read(self) -> GraphDataset:
        graph = node = 0
        while not self.rows["graph_indicator"].at_end():
            sizes = self._next_graphs(graph)
            self._add(graph, node, sizes)
            graph, node = graph + len(sizes), node + int(sizes.sum())
        if graph != len(self.y) or not all(rows.at_end() for rows in self.rows.values()):
            raise NotInPartsError
        dataset = self.parts.dataset()
        if len(dataset.node_label_values or ()) > 1:
            return dataset.with_features("labels")
        return dataset if dataset.node_attributes is None else dataset.with_features("attributes")

    def _next_graphs(self, graph: int) -> Array:
        """The sizes of the next graphs, about NODES_AT_ONCE nodes in all."""
        indicator, parts = self.rows["graph_indicator"], []
        nodes = 0
        while nodes < NODES_AT_ONCE and not indicator.at_end():
            parts.append(indicator.rest)
            nodes += len(indicator.rest)
            indicator.rest = indicator.rest[:0]
        numbers = np.concatenate(parts)[:, 0]
        if (np.diff(numbers) < 0).any():
            raise NotInPartsError
        last = numbers[-1]
        numbers = np.concatenate([numbers, indicator.take_up_to(last)[:, 0]])  # to the end of the last graph
        if numbers[0] != graph + 1 or (np.diff(numbers) < 0).any() or last > len(self.y):
            raise NotInPartsError
        sizes = np.bincount(numbers - graph - 1)
        if not sizes.all():  # left out by read_tu, with a note
            raise NotInPartsError
        return sizes

    def _add(self, graph: int, node: int, sizes: Array) -> None:
        """Reads some graphs, beginning with these, and adds them to the arrays."""
        nodes = int(sizes.sum())
        edges = self.rows["A"].take_up_to(node + nodes) - node - 1
        owner = np.repeat(np.arange(len(sizes)), sizes)
        if len(edges) and (edges.min() < 0 or edges.max() >= nodes or (owner[edges[:, 0]] != owner[edges[:, 1]]).any()):
            raise NotInPartsError
        data: dict[str, Any] = {}
        for key, rows in self.rows.items():
            if key in NODE_AND_EDGE_DATA:
                data[key] = rows.take(nodes if NODE_AND_EDGE_DATA[key] == "node" else len(edges))
        part = assemble(
            name=self.layout.prefix,
            nodes_per_graph=sizes,
            edge_index=np.ascontiguousarray(edges.T),
            y=self.y[graph : graph + len(sizes)],
            values={"y": self.classes},
            features="degrees",
            source=str(self.layout.place),
            **data,
        )
        if one_way_note(edges.T, part):  # read_tu says it
            raise NotInPartsError
        self.parts.add(part)
