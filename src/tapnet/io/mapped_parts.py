"""Data sets that are read in parts: the parts are put together in arrays on disk, which are mapped."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet.data.dataset import NODE_AND_EDGE_DATA, GraphDataset
from tapnet.files import cache_dir

ROWS_AT_ONCE = 1 << 20

_COUNTED = ("y", "node_labels", "edge_labels", "degrees")  # numbers of values, which each part counts for itself
_FILLED = {"edge_weight": 1.0, "self_loop": 0.0}  # which a part has not where it would have nothing else
_WORDS = (
    "label_attribute",
    "attribute_names",
    "node_columns",
    "edge_columns",
    "edge_label_attribute",
    "edge_attribute_names",
    "directed",
)


class NotInPartsError(Exception):
    """The files cannot be read in parts, but perhaps as a whole."""


class _GrowingArray:
    """An array on disk that grows at its end."""

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        folder = cache_dir() / "parsed"
        folder.mkdir(parents=True, exist_ok=True)
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - mapped as long as the data set is used
        self.dtype, self.shape, self.ends = dtype, shape, [0]

    def append(self, rows: Array) -> None:
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.ends.append(self.ends[-1] + len(rows))

    def fill(self, length: int, value: float) -> None:
        """Makes it so long."""
        while self.ends[-1] < length:
            self.append(np.full((min(length - self.ends[-1], ROWS_AT_ONCE), *self.shape), value, self.dtype))

    def mapped(self) -> Array:
        self.file.flush()
        if not self.ends[-1]:
            return np.empty((0, *self.shape), self.dtype)
        return np.memmap(self.file, self.dtype, "r+", shape=(self.ends[-1], *self.shape))


class MappedParts:
    """Puts data sets together, one after another, in memory for one of them.

    The result is what ``assemble`` makes of all graphs at once. Of each graph some 20 bytes stay in memory, of the
    other arrays none: they are in files without a name, which are gone when the data set is.

    Example:
        >>> from tapnet import load_dataset
        >>> parts, mutag = MappedParts(), load_dataset("MUTAG")
        >>> for graphs in (range(100), range(100, 188)):
        ...     parts.add(mutag.subset(graphs))
        >>> len(parts.dataset())
        188
    """

    def __init__(self) -> None:
        self.arrays: dict[str, _GrowingArray] = {}
        self.values: dict[str, list[Sequence[Hashable]]] = {key: [] for key in _COUNTED}  # of each part
        self.sizes: list[Array] = []
        self.y: list[Array] = []
        self.nodes = self.edges = 0
        self.first: GraphDataset | None = None
        self.carried: dict[str, set[str]] = {}

    def add(self, part: GraphDataset) -> None:
        """Adds graphs.

        Raises:
            NotInPartsError: They carry something else than the others, or there is something to say of them.
        """
        part = part if part.features == "degrees" else part.with_features("degrees")
        if self.first is None:
            nothing: dict[str, Any] = dict.fromkeys(NODE_AND_EDGE_DATA)
            self.first = replace(part, **nothing, x=torch.empty(0), col=torch.empty(0))
            self._append("rowptr", np.zeros(1, np.int64))
        if part.notes or any(getattr(part, key) != getattr(self.first, key) for key in _WORDS):
            raise NotInPartsError
        self._append("rowptr", part.rowptr[1:].numpy() + self.edges)
        self._append("col", part.col.numpy())
        assert isinstance(part.x, Tensor)
        self._append("degrees", part.x.numpy(), part.categories)
        values = {"node_labels": part.node_label_values, "edge_labels": part.edge_label_values}
        for of, count, before in (("node", part.num_nodes, self.nodes), ("edge", part.num_edges, self.edges)):
            data = {key: getattr(part, key) for key, on in NODE_AND_EDGE_DATA.items() if on == of and count}
            keys = {key for key, rows in data.items() if rows is not None}
            if count and self.carried.setdefault(of, keys - _FILLED.keys()) != keys - _FILLED.keys():
                raise NotInPartsError
            for key in keys:
                if key in _FILLED:
                    self._array(key, data[key].numpy()).fill(before, _FILLED[key])
                self._append(key, data[key].numpy(), values.get(key))
        self.sizes.append(part.nodes_per_graph.numpy())
        self.y.append(part.y.numpy())
        self.values["y"].append(part.classes)
        self.nodes, self.edges = self.nodes + part.num_nodes, self.edges + part.num_edges

    def _array(self, key: str, like: Array) -> _GrowingArray:
        if key not in self.arrays:
            self.arrays[key] = _GrowingArray(like.dtype, like.shape[1:])
        if self.arrays[key].shape != like.shape[1:]:
            raise NotInPartsError
        return self.arrays[key]

    def _append(self, key: str, rows: Array, values: Sequence[Hashable] | None = None) -> None:
        self._array(key, rows).append(rows)
        if key in _COUNTED:
            self.values[key].append(values or ())

    def dataset(self) -> GraphDataset:
        """All graphs with their degrees as features; nothing can be added any more.

        Raises:
            NotInPartsError: There are none, or their labels have no common order.
        """
        if self.first is None:
            raise NotInPartsError
        for key, value in _FILLED.items():
            if key in self.arrays:
                self.arrays[key].fill(self.nodes if NODE_AND_EDGE_DATA[key] == "node" else self.edges, value)
        values: dict[str, tuple[Any, ...]] = {}
        tensors: dict[str, Any] = {}
        for key, growing in self.arrays.items():
            array = growing.mapped()
            if key in _COUNTED:  # from each part's own numbers to those of all
                values[key], numbers = self._renumbered(key)
                for number, (start, end) in zip(numbers, pairwise(growing.ends), strict=True):
                    array[start:end] = number[array[start:end]]
            tensors[key] = torch.from_numpy(array)
        classes, numbers = self._renumbered("y")
        y = np.concatenate([number[some] for number, some in zip(numbers, self.y, strict=True)])
        return replace(
            self.first,
            node_ptr=torch.from_numpy(np.concatenate([[0], np.cumsum(np.concatenate(self.sizes))])),
            y=torch.from_numpy(y),
            classes=classes,
            x=tensors.pop("degrees"),
            categories=values["degrees"],
            node_label_values=values.get("node_labels"),
            edge_label_values=values.get("edge_labels"),
            **tensors,
        )

    def _renumbered(self, key: str) -> tuple[tuple[Any, ...], list[Array]]:
        """The values that occur, sorted, and for each part the new numbers of its own."""
        distinct: set[Any] = {value for some in self.values[key] for value in some}
        if len({type(value) for value in distinct}) > 1:
            raise NotInPartsError
        values = tuple(sorted(distinct))
        position = {value: i for i, value in enumerate(values)}
        return values, [np.array([position[value] for value in some], np.int64) for some in self.values[key]]
