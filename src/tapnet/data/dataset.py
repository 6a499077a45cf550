"""GraphDataset: every graph of a data set in flat arrays, and the doors to PyG and NetworkX."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet._loops.csr import cut_graphs
from tapnet._loops.jit import array
from tapnet._loops.ranges import concatenated_ranges, offsets
from tapnet.data.batch import GraphBatch
from tapnet.errors import DataError, SettingError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

Features = Literal["labels", "degrees", "attributes"]
Indices = Sequence[int] | range | NDArray[Any] | Tensor  # numbers of graphs, or one boolean a graph


class Prepared(Protocol):
    """Something computed for each graph of a data set."""

    def cut(self, graphs: Tensor) -> Any:
        """That of these graphs, with a method ``to(device)``: it travels with their batch."""


@dataclass(frozen=True, eq=False)
class GraphDataset:
    """G undirected graphs with N nodes in all and E directed edges (each undirected edge twice), as flat arrays.

    There are no self-loops and no duplicate edges, every edge's reverse is there too, and the edges are sorted
    by (source, target). What the models see is ``x``: integer categories, or floats where attributes were
    asked for. Whatever else came with the graphs stays beside it.
    """

    name: str
    node_ptr: Tensor  # [G+1] int64: the nodes of graph g are node_ptr[g] to node_ptr[g+1]
    rowptr: Tensor  # [N+1] int64: the edges that leave node i are rowptr[i] to rowptr[i+1]
    col: Tensor  # [E]   int32: where each edge leads, as a node's number within its graph
    y: Tensor  # [G]   int64: class 0 … C-1
    classes: tuple[Hashable, ...]  # [C] the class's value in the original data
    x: Tensor  # [N]   int64 categories 0 … K-1, or [N, F] floats
    categories: tuple[Hashable, ...] | None  # [K] the category's original value; None for float features
    features: Features  # what x was made of
    node_labels: Tensor | None = None  # [N] int64
    node_label_values: tuple[Hashable, ...] | None = None
    node_attributes: Tensor | None = None  # [N, F] float32
    edge_labels: Tensor | None = None  # [E] int64
    edge_label_values: tuple[Hashable, ...] | None = None
    edge_attributes: Tensor | None = None  # [E, F] float32
    # [N] bool: the nodes that the files join to themselves. Such an edge is no edge here, but it counts in the
    # degree that is a node's feature, as it did for the paper and its predecessors (COLLAB has 2,837 of them).
    self_loop: Tensor | None = None
    label_names: tuple[str, ...] | None = None  # what each node label means (elements), where that is known
    class_names: tuple[str, ...] | None = None  # what each class means, where that is known
    label_attribute: str | None = None  # what the files call the labels of nodes, where they have names for things
    attribute_names: tuple[str, ...] | None = None  # and their numbers
    notes: tuple[str, ...] = ()  # what there was to say when the files were read
    source: str = ""  # the files it was read from
    place: str = ""  # in what kind of place they were found
    prepared: Mapping[str, Prepared] = field(default_factory=dict)  # what some model computes once for all its graphs

    # ---- sizes ----

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def shape(self) -> tuple[int]:
        """[G]: scikit-learn's splitters cut what has a shape as an array, ``dataset[indices, ...]``."""
        return (len(self),)

    @property
    def num_graphs(self) -> int:
        return len(self)

    @property
    def num_nodes(self) -> int:
        return len(self.rowptr) - 1

    @property
    def num_edges(self) -> int:
        """Directed edges: twice the number of undirected ones."""
        return len(self.col)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def num_features(self) -> int:
        """The number of categories (the width of their one-hot encoding) or of float features."""
        return self.x.size(1) if self.categories is None else len(self.categories)

    @cached_property
    def nodes_per_graph(self) -> Tensor:  # [G]
        return self.node_ptr.diff()

    @cached_property
    def degree(self) -> Tensor:  # [N]
        return self.rowptr.diff()

    @property
    def category_names(self) -> tuple[str, ...]:
        """What each category of x means: its name where that is known, else its original value."""
        if self.features == "labels" and self.label_names is not None:
            return self.label_names
        return tuple(map(str, self.categories or ()))

    def __repr__(self) -> str:
        return (
            f"GraphDataset({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, "
            f"edges={self.num_edges // 2}, classes={self.num_classes}, {self.features}={self.num_features})"
        )

    @cached_property
    def checksum(self) -> str:
        """A digest of everything a model can see: equal for equal data, wherever and however it was stored."""
        digest = hashlib.blake2b(digest_size=16)
        for tensor in (self.node_ptr, self.rowptr, self.col, self.y, self.x):
            digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()

    # ---- graphs out of it ----

    def batch(self, indices: Indices) -> GraphBatch:
        """The disjoint union of the graphs with these numbers, in this order, cut out of the flat arrays."""
        graphs = self._graph_numbers(indices)
        arrays = (array(t) for t in (graphs, self.node_ptr, self.rowptr, self.col))
        ptr, nodes, rowptr, col = map(torch.from_numpy, cut_graphs(*arrays))
        return GraphBatch(
            self.x.index_select(0, nodes),
            self.y.index_select(0, graphs),
            ptr,
            rowptr,
            col,
            prepared={name: values.cut(graphs) for name, values in self.prepared.items()},
        )

    def subset(self, indices: Indices) -> GraphDataset:
        """The data set of these graphs alone; classes and categories keep their numbers."""
        graphs = self._graph_numbers(indices)
        sizes = self.nodes_per_graph[graphs]
        nodes = concatenated_ranges(self.node_ptr[graphs], sizes)
        edges = concatenated_ranges(self.rowptr[nodes], self.degree[nodes])

        def pick(values: Tensor | None, rows: Tensor) -> Tensor | None:
            return None if values is None else values[rows]

        return replace(
            self,
            prepared={},
            node_ptr=offsets(sizes),
            rowptr=offsets(self.degree[nodes]),
            col=self.col[edges],
            y=self.y[graphs],
            x=self.x[nodes],
            node_labels=pick(self.node_labels, nodes),
            node_attributes=pick(self.node_attributes, nodes),
            edge_labels=pick(self.edge_labels, edges),
            edge_attributes=pick(self.edge_attributes, edges),
            self_loop=pick(self.self_loop, nodes),
        )

    def _graph_numbers(self, indices: Indices) -> Tensor:
        numbers = np.asarray(indices)
        if numbers.dtype == bool and numbers.shape == (len(self),):
            numbers = np.flatnonzero(numbers)
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            raise IndexError(f"graphs are chosen by whole numbers or by {len(self)} booleans")
        graphs = torch.from_numpy(numbers.astype(np.int64).reshape(-1))
        if len(graphs) and not (-len(self) <= int(graphs.min()) and int(graphs.max()) < len(self)):
            raise IndexError(f"{self.name} has graphs 0 to {len(self) - 1}")
        return torch.where(graphs < 0, graphs + len(self), graphs)

    def with_features(self, features: Features) -> GraphDataset:
        """The same graphs with other inputs: node labels, distinct degrees, or float attributes."""
        if features == "labels":
            if self.node_labels is None:
                raise SettingError(f"{self.name} has no node labels; features='degrees' works on every data set")
            return replace(self, x=self.node_labels, categories=self.node_label_values, features=features, prepared={})
        if features == "attributes":
            if self.node_attributes is None:
                raise SettingError(f"{self.name} has no node attributes")
            return replace(self, x=self.node_attributes, categories=None, features=features, prepared={})
        if features == "degrees":
            listed = self.degree if self.self_loop is None else self.degree + self.self_loop
            values, x = torch.unique(listed, return_inverse=True)
            return replace(self, x=x, categories=tuple(values.tolist()), features=features, prepared={})
        raise SettingError(f"features is 'labels', 'degrees' or 'attributes', not {features!r}")

    # ---- PyG ----

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice | Indices) -> GraphDataset: ...
    def __getitem__(self, index: int | slice | Indices) -> Data | GraphDataset:
        """A number gives that graph as a PyG ``Data``, with ``node_labels`` … ``edge_attributes`` where the set
        has them; a slice or several numbers give the data set of those graphs."""
        from torch_geometric.data import Data

        if isinstance(index, tuple) and index[1:] == (...,):
            index = index[0]
        if isinstance(index, slice):
            return self.subset(range(*index.indices(len(self))))
        if np.ndim(index) > 0:
            return self.subset(index)  # type: ignore[arg-type]
        graph = int(self._graph_numbers(np.asarray([index])))
        nodes = slice(int(self.node_ptr[graph]), int(self.node_ptr[graph + 1]))
        edges = slice(int(self.rowptr[nodes.start]), int(self.rowptr[nodes.stop]))
        size = nodes.stop - nodes.start
        row = torch.repeat_interleave(torch.arange(size), self.degree[nodes])
        data = Data(
            x=self.x[nodes],
            edge_index=torch.stack([row, self.col[edges].long()]),
            y=self.y[graph : graph + 1],
            num_nodes=size,
        )
        for key, where in _NODE_AND_EDGE_DATA.items():
            values = getattr(self, key)
            if values is not None:
                data[key] = values[nodes if where == "node" else edges]
        return data

    def __iter__(self) -> Iterator[Data]:
        return (self[i] for i in range(len(self)))

    @classmethod
    def from_pyg(
        cls,
        graphs: Sequence[Data],
        *,
        name: str = "graphs",
        classes: Sequence[Hashable] | None = None,
        categories: Sequence[Hashable] | None = None,
        edge_categories: Sequence[Hashable] | None = None,
        features: Features | None = None,
    ) -> GraphDataset:
        """From PyG's ``Data`` objects: ``x`` as integer categories ``[n]``, one-hot rows, or floats ``[n, F]``.

        ``classes``, ``categories`` and ``edge_categories`` name the values behind the numbers in ``y``, ``x``
        and ``edge_attr``; without them the numbers that occur stand for themselves, and are counted from 0. So parts of
        one data set that are read by several calls need ``classes=range(C)`` and ``categories=range(K)``. With
        ``features="degrees"`` ``x`` is not looked at. A directed ``edge_index`` is made symmetric.
        """
        from tapnet.data.convert import assemble

        for i, g in enumerate(graphs):
            if g.edge_index is None or g.num_nodes is None:
                raise DataError(f"graph {i} has no edge_index, or its number of nodes is not known")
            if g.y is None or g.y.numel() != 1 or g.y != g.y.long():
                raise DataError(f"graph {i}: y is its class, one whole number, not {g.y}")
        sizes = np.asarray([g.num_nodes for g in graphs], dtype=np.int64)
        edges = [np.asarray(g.edge_index) for g in graphs]
        _check_edges(edges, sizes)
        edges = [e + first for e, first in zip(edges, np.cumsum(sizes) - sizes, strict=True)]
        given = {key: _stack_all(graphs, key) for key in _NODE_AND_EDGE_DATA}
        x = None if features == "degrees" else _stack_all(graphs, "x")
        for side, column in (("node", x), ("edge", _stack_all(graphs, "edge_attr"))):
            if column is not None and given[f"{side}_labels"] is None and given[f"{side}_attributes"] is None:
                labels = _as_categories(column)
                kind = "attributes" if labels is None else "labels"
                given[f"{side}_{kind}"] = column if labels is None else labels
                if side == "node" and labels is None and features is None:
                    features = "attributes"
        return assemble(
            name=name,
            nodes_per_graph=sizes,
            edge_index=np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1),
            y=np.asarray([int(g.y) for g in graphs], dtype=np.int64),
            values={"y": classes, "node_labels": categories, "edge_labels": edge_categories},
            features=features,
            **given,  # type: ignore[arg-type]
        )

    # ---- NetworkX ----

    def to_networkx(self, index: int) -> nx.Graph:
        """Graph ``index`` with original values: node and edge ``label`` and ``attributes``, ``graph["y"]``.

        A ``DiGraph`` where an edge and its reverse carry different data, else a ``Graph``.
        """
        import networkx as nx

        data = self[index]
        pairs = [(u, v) for u, v in data.edge_index.t().tolist()]

        def column(key: str, names: Sequence[Hashable] | None = None) -> list[Any] | None:
            cells = data[key].tolist() if key in data else None
            return cells if cells is None or names is None else [names[i] for i in cells]

        columns = {"label": column("edge_labels", self.edge_label_values), "attributes": column("edge_attributes")}
        on_edges = {key: dict(zip(pairs, cells, strict=True)) for key, cells in columns.items() if cells is not None}
        one_way = any(cells[u, v] != cells[v, u] for cells in on_edges.values() for u, v in pairs)
        graph = (nx.DiGraph if one_way else nx.Graph)(name=f"{self.name}[{index}]", y=self.classes[int(data.y)])
        graph.add_nodes_from(range(data.num_nodes))
        graph.add_edges_from(pairs)
        for key, cells in on_edges.items():
            nx.set_edge_attributes(graph, cells, key)
        on_nodes = {
            "label": column("node_labels", self.node_label_values),
            "attributes": column("node_attributes"),
            "self_loop": column("self_loop"),
        }
        for key, values in on_nodes.items():
            if values is not None:
                nx.set_node_attributes(graph, dict(enumerate(values)), key)
        return graph

    @classmethod
    def from_networkx(
        cls,
        graphs: Sequence[nx.Graph],
        y: Sequence[Hashable] | None = None,
        *,
        name: str = "graphs",
        node_label: str = "label",
        node_attributes: str = "attributes",
        edge_label: str = "label",
        edge_attributes: str = "attributes",
        features: Features | None = None,
    ) -> GraphDataset:
        """From NetworkX graphs, their classes in ``y`` or each in ``graph.graph["y"]``; values of any kind.

        An attribute counts if every node (or edge) of every graph has it. Nodes are numbered in the order of
        the graph; direction, parallel edges and self-loops are dropped.
        """
        from tapnet.data.convert import assemble

        sizes = np.asarray([len(g) for g in graphs], dtype=np.int64)
        ends: list[tuple[int, int]] = []
        for g, first in zip(graphs, np.cumsum(sizes) - sizes, strict=True):
            number = {node: int(first) + i for i, node in enumerate(g)}
            ends += [(number[u], number[v]) for u, v in g.edges()]
        nodes = [d for g in graphs for _, d in g.nodes(data=True)]
        edges = [d for g in graphs for _, _, d in g.edges(data=True)]
        if y is None:
            missing = next((i for i, g in enumerate(graphs) if "y" not in g.graph), None)
            if missing is not None:
                raise DataError(f'graph {missing} has no class: give y, or set graph.graph["y"]')
            y = [g.graph["y"] for g in graphs]
        if len(y) != len(graphs):
            raise DataError(f"{len(y)} classes for {len(graphs)} graphs")
        dataset = assemble(
            name=name,
            nodes_per_graph=sizes,
            edge_index=np.asarray(ends, dtype=np.int64).reshape(-1, 2).T,
            y=y.tolist() if isinstance(y, (Tensor, np.ndarray)) else list(y),
            node_labels=_column(nodes, node_label),
            node_attributes=_matrix(nodes, node_attributes),
            self_loop=_column(nodes, "self_loop"),
            edge_labels=_column(edges, edge_label),
            edge_attributes=_matrix(edges, edge_attributes),
            features=features,
        )
        return replace(dataset, label_attribute=node_label, attribute_names=(node_attributes,))


_NODE_AND_EDGE_DATA = {
    "node_labels": "node",
    "node_attributes": "node",
    "self_loop": "node",
    "edge_labels": "edge",
    "edge_attributes": "edge",
}


def _check_edges(edges: Sequence[NDArray[Any]], sizes: NDArray[np.int64]) -> None:
    for i, (edge_index, size) in enumerate(zip(edges, sizes, strict=True)):
        if edge_index.size and not (edge_index.min() >= 0 and edge_index.max() < size):
            raise DataError(f"graph {i}: edge_index names node {edge_index.max()}; its nodes are 0 to {size - 1}")


def _stack_all(graphs: Sequence[Data], key: str) -> NDArray[Any] | None:
    columns = [g.get(key) for g in graphs]
    lacking = [i for i, column in enumerate(columns) if column is None]
    if len(lacking) == len(columns):
        return None
    if lacking:
        raise DataError(f"graph {lacking[0]} has no {key}, but others have")
    try:
        stacked: NDArray[Any] = np.concatenate([c.detach().cpu().numpy() for c in columns])
    except ValueError:
        raise DataError(f"{key} does not have the same width in every graph") from None
    return stacked


def _as_categories(x: NDArray[Any]) -> NDArray[Any] | None:
    """[N] integers as they are, one-hot rows as the column that is 1; None if x is neither."""
    labels: NDArray[np.int64] | None = None
    if x.ndim == 1 and np.issubdtype(x.dtype, np.integer):
        labels = x.astype(np.int64)
    if x.ndim == 2 and x.shape[1] > 1 and ((x == 0) | (x == 1)).all() and (x.sum(1) == 1).all():
        labels = x.argmax(1).astype(np.int64)
    if x.ndim == 2 and x.shape[1] == 1 and np.issubdtype(x.dtype, np.integer):
        labels = x[:, 0].astype(np.int64)
    return labels


def _column(rows: list[dict[str, Any]], key: str) -> list[Hashable] | None:
    return [row[key] for row in rows] if rows and all(key in row for row in rows) else None


def _matrix(rows: list[dict[str, Any]], key: str) -> NDArray[np.float32] | None:
    column = _column(rows, key)
    if column is None:
        return None
    try:
        return np.asarray(column, dtype=np.float32).reshape(len(rows), -1)
    except (ValueError, TypeError):
        raise DataError(f"the attribute {key!r} is not the same number of numbers everywhere") from None
