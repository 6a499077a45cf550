"""Conversions: arrays, PyG, OGB and NetworkX to a GraphDataset and back. Each way in ends in ``assemble``."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet._loops.csr import is_symmetric
from tapnet.data.dataset import NODE_AND_EDGE_DATA, Features, GraphDataset, GraphReference, Task
from tapnet.data.features import MixedFeatures
from tapnet.data.targets import MOST_CLASSES, Targets, detect_task, is_plain_number
from tapnet.errors import DataError, SettingError
from tapnet.files import printable

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

IntArray = NDArray[np.int64]
Values = Sequence[Hashable] | None
Names = str | Sequence[str] | None  # of an attribute, a list of several, or none
Column = NDArray[np.int64] | Sequence[Hashable]  # one value per row, of any hashable kind
_LABEL_NAMES = "_label_names"  # of PyG's Data, beside its attributes, which are collated
NODE_COLUMNS, EDGE_COLUMNS = "node_columns", "edge_columns"  # of a GraphDataset, and of a graph of to_networkx


def assemble(
    *,
    name: str,
    nodes_per_graph: IntArray,
    edge_index: IntArray,
    y: Column,
    node_labels: Column | None = None,
    node_attributes: NDArray[np.float32] | None = None,
    edge_labels: Column | None = None,
    edge_attributes: NDArray[np.float32] | None = None,
    edge_weight: NDArray[Any] | None = None,
    self_loop: NDArray[np.bool_] | Sequence[Hashable] | None = None,
    values: Mapping[str, Sequence[Hashable] | None] | None = None,
    features: Features | None = None,
    source: str = "",
    directed: bool = False,
) -> GraphDataset:
    """Makes a data set of arrays: edges sorted, without self-loops or duplicates, values numbered.

    Args:
        name: The name of the data set.
        nodes_per_graph: ``[G]``
        edge_index: ``[2, E]`` in any order, nodes numbered through the whole data set.
        y: ``[G]`` the class of each graph.
        node_labels: ``[N]`` the category of each node.
        node_attributes: ``[N, F]``
        edge_labels: ``[E]`` the category of each edge. Where an edge is given more than once, the first counts.
        edge_attributes: ``[E, F]`` likewise.
        edge_weight: ``[E]`` Where an edge is given more than once, or in both directions of undirected graphs, the mean
            of its weights counts. Weights that are all 1 are none.
        self_loop: ``[N]`` nodes that have a self-loop, in addition to those in ``edge_index``.
        values: For ``"y"``, ``"node_labels"`` and ``"edge_labels"``, where they hold numbers 0, 1, …: the values that
            these stand for.
        features: What ``x`` holds; by default labels where they tell nodes apart, else degrees.
        source: The files that it was read from.
        directed: Whether edges keep their directions, from row 0 of ``edge_index`` to row 1; else they are made
            symmetric.

    Returns:
        The data set.

    Raises:
        DataError: There are no graphs, a graph has no nodes, a column has another length, or a number is not finite.
    """
    if len(nodes_per_graph) == 0:
        raise DataError(f"{name} has no graphs")
    if nodes_per_graph.min() < 1:
        raise DataError(f"{name}: graph {int(nodes_per_graph.argmin())} has no nodes")
    for what, rows, wanted in (
        ("classes", y, len(nodes_per_graph)),
        ("node labels", node_labels, nodes_per_graph.sum()),
        ("rows of node attributes", node_attributes, nodes_per_graph.sum()),
        ("edge labels", edge_labels, edge_index.shape[1]),
        ("rows of edge attributes", edge_attributes, edge_index.shape[1]),
        ("edge weights", edge_weight, edge_index.shape[1]),
    ):
        if rows is not None and len(rows) != wanted:
            raise DataError(f"{name}: {len(rows)} {what} where {wanted} belong")
    values = values or {}
    node_ptr = np.concatenate([[0], np.cumsum(nodes_per_graph)])
    for what, matrix in (("node", node_attributes), ("edge", edge_attributes)):
        if matrix is not None and not np.isfinite(matrix).all():
            first = int((~np.isfinite(matrix)).reshape(len(matrix), -1).any(axis=1).argmax())
            graph, *nodes = _in_graph(node_ptr, [first] if what == "node" else edge_index[:, first])
            place = f"node {nodes[0]}" if what == "node" else f"the edge from node {nodes[0]} to {nodes[1]}"
            raise DataError(f"{name}: graph {graph}: NaN or infinite among the {what} attributes of {place}")
    edge_index = edge_index[::-1] if directed else edge_index  # a row of the matrix has the edges that lead to a node
    row, col, edge = _clean_edges(edge_index, int(node_ptr[-1]), directed)
    loops = np.zeros(node_ptr[-1], dtype=bool) if self_loop is None else np.array(self_loop, dtype=bool)
    loops[edge_index[0, edge_index[0] == edge_index[1]]] = True
    first_node = np.repeat(node_ptr[:-1], nodes_per_graph)
    clean, num_nodes = (row, col, edge), int(node_ptr[-1])
    parallel = _parallel_note(edge_labels, edge_attributes, edge_index, clean, num_nodes, name, directed)
    if edge_labels is not None:
        edge_labels = edge_labels[edge] if isinstance(edge_labels, np.ndarray) else [edge_labels[i] for i in edge]
    weight: Tensor | None = None
    notes: tuple[str, ...] = ()
    if edge_weight is not None:
        given = _checked_weights(edge_weight, edge_index[::-1] if directed else edge_index, node_ptr, name)
        weight, notes = _weights_of_pairs(given, edge_index, row, col, name, directed)
    notes = (*notes, parallel) if parallel else notes
    y_numbers, classes = _numbered(y, values.get("y"))
    node_numbers, node_values = _numbered(node_labels, values.get("node_labels"))
    edge_numbers, edge_values = _numbered(edge_labels, values.get("edge_labels"))
    dataset = GraphDataset(
        name=name,
        node_ptr=torch.from_numpy(node_ptr),
        rowptr=torch.from_numpy(np.concatenate([[0], np.cumsum(np.bincount(row, minlength=node_ptr[-1]))])),
        col=torch.from_numpy((col - first_node[col]).astype(np.int32)),
        y=y_numbers,
        classes=classes,
        x=torch.empty(0),
        categories=None,
        features="degrees",
        node_labels=node_numbers,
        node_label_values=node_values,
        node_attributes=_float_rows(node_attributes, None),
        edge_labels=edge_numbers,
        edge_label_values=edge_values,
        edge_attributes=_float_rows(edge_attributes, edge),
        edge_weight=weight,
        notes=notes,
        self_loop=torch.from_numpy(loops) if loops.any() else None,
        source=source,
        directed=directed,
    )
    return dataset.with_features(features or ("labels" if len(node_values or ()) > 1 else "degrees"))


def _clean_edges(edge_index: IntArray, num_nodes: int, directed: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Sorted, without self-loops or duplicates: row, col, and the given edge each one stems from.

    Of duplicates the first counts. Unless they are directed, edges are made symmetric: a reverse edge that was not
    there takes the data of its forward edge.
    """
    edge = np.flatnonzero(edge_index[0] != edge_index[1])
    row, col = edge_index[:, edge] if len(edge) < edge_index.shape[1] else edge_index
    row, col, edge = _sorted_unique(row, col, edge, num_nodes)
    if directed:
        return row, col, edge
    rowptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=num_nodes))])
    if not is_symmetric(rowptr, np.ascontiguousarray(col)):
        row, col, edge = _sorted_unique(np.r_[row, col], np.r_[col, row], np.r_[edge, edge], num_nodes)
    return row, col, edge


def _parallel_note(
    labels: Column | None,
    attributes: NDArray[np.float32] | None,
    edge_index: IntArray,
    clean: tuple[IntArray, IntArray, IntArray],
    num_nodes: int,
    name: str,
    directed: bool,
) -> str:
    """Says that of edges that are given more than once only the first counts, where they carry different things."""
    if labels is None and attributes is None:
        return ""
    row, col, edge = clean
    dropped = edge_index[0] != edge_index[1]
    dropped[edge] = False
    if not dropped.any():
        return ""
    others = np.flatnonzero(dropped)
    low, high = edge_index[:, others]
    first = edge[np.searchsorted(row * num_nodes + col, low * num_nodes + high)]
    other_labels, other_attributes = np.zeros((2, len(others)), dtype=bool)
    if labels is not None:
        other_labels[:] = [np.any(labels[i] != labels[j]) for i, j in zip(first, others, strict=True)]
    if attributes is not None:
        other_attributes[:] = (attributes[first] != attributes[others]).reshape(len(others), -1).any(axis=1)
    if not directed:
        low, high = np.minimum(low, high), np.maximum(low, high)
    count = len(np.unique((low * num_nodes + high)[other_labels | other_attributes]))
    if not count:
        return ""
    several = "1 edge is" if count == 1 else f"{count} edges are"
    what = " and ".join(["labels"] * bool(other_labels.any()) + ["attributes"] * bool(other_attributes.any()))
    return f"{name}: {several} given several times with different {what}: the first counts"


def _in_graph(node_ptr: IntArray, nodes: Iterable[int]) -> tuple[int, ...]:
    """The graph that nodes are in, and their numbers in it."""
    found = np.asarray(list(nodes))
    graph = int(np.searchsorted(node_ptr, found[0], side="right")) - 1
    return graph, *(found - node_ptr[graph]).tolist()


def _checked_weights(weight: NDArray[Any], edge_index: IntArray, node_ptr: IntArray, name: str) -> NDArray[np.float64]:
    """[E] the weights; a DataError names the first that float32 cannot hold."""
    weight = np.asarray(weight, dtype=np.float64).reshape(-1)
    wrong = ~(np.abs(weight) <= np.finfo(np.float32).max)
    wrong &= edge_index[0] != edge_index[1]
    if wrong.any():
        edge = int(wrong.argmax())
        graph, source, target = _in_graph(node_ptr, edge_index[:, edge])
        raise DataError(
            f"{name}: graph {graph}: the weight of the edge from node {source} to {target} is {weight[edge]:g}, "
            "where a finite number belongs"
        )
    return weight


def _weights_of_pairs(
    weight: NDArray[np.float64], edge_index: IntArray, row: IntArray, col: IntArray, name: str, directed: bool
) -> tuple[Tensor | None, tuple[str, ...]]:
    """[E] the weight of each clean edge, the mean of all that were given for its ends, and a note where they differ."""
    given = np.flatnonzero(edge_index[0] != edge_index[1])
    if (weight[given] == 1).all():
        return None, ()
    low, high = edge_index[:, given]
    first, second = row, col
    if not directed:
        low, high = np.minimum(low, high), np.maximum(low, high)
        first, second = np.minimum(row, col), np.maximum(row, col)
    nodes = int(edge_index.max(initial=0)) + 1
    pairs, pair = np.unique(low * nodes + high, return_inverse=True)
    mean = np.bincount(pair, weight[given]) / np.bincount(pair)
    others = np.abs(weight[given] - mean[pair]) > 1e-6 * np.abs(weight[given])  # beyond the rounding of float32
    clean = mean[np.searchsorted(pairs, first * nodes + second)]
    notes: tuple[str, ...] = ()
    if count := len(np.unique(pair[others])):
        several = "1 edge is" if count == 1 else f"{count} edges are"
        how = "several times" if directed else "several times or in both directions"
        notes = (f"{name}: {several} given {how} with different weights: the mean counts",)
    return torch.from_numpy(clean.astype(np.float32)), notes


def _sorted_unique(row: IntArray, col: IntArray, edge: IntArray, num_nodes: int) -> tuple[IntArray, IntArray, IntArray]:
    key = row * num_nodes + col
    if (np.diff(key) > 0).all():  # files are mostly written in this order, and sorting 25 million edges takes seconds
        return row, col, edge
    order = np.argsort(key, kind="stable")
    kept = order[np.concatenate([[True], np.diff(key[order]) > 0])]
    return row[kept], col[kept], edge[kept]


def _numbered(column: Column | None, known: Values) -> tuple[Any, Any]:
    """Values → a tensor of consecutive numbers in the order of the values, and the values in that order.

    With ``known`` values the column holds their positions already. Without a column both are None.
    """
    if column is None:
        return None, None
    if known is not None:
        numbers = np.asarray(column, dtype=np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(known)):
            raise DataError(f"a number outside 0 to {len(known) - 1}, the values that were named")
        return torch.from_numpy(numbers), tuple(known)
    if isinstance(column, np.ndarray):
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        values, numbers = np.unique(column, return_inverse=True, axis=0 if column.ndim == 2 else None)
        names = tuple(tuple(v) if isinstance(v, list) else v for v in values.tolist())
        return torch.from_numpy(numbers.reshape(-1).astype(np.int64)), names
    types = set(map(type, column))
    if all(issubclass(t, int | float) for t in types):  # sorted, as numbers of a file could all have one hash
        values, numbers = np.unique(_number_array(column, types), return_inverse=True)
        return torch.from_numpy(numbers.reshape(-1).astype(np.int64)), tuple(values.tolist())
    try:
        distinct = sorted(set(column))  # type: ignore[type-var]
    except TypeError:  # they have no order of their own
        distinct = sorted(set(column), key=lambda v: (type(v).__name__, repr(v)))
    position = {value: i for i, value in enumerate(distinct)}
    return torch.tensor([position[v] for v in column], dtype=torch.int64), tuple(distinct)


def _number_array(column: Sequence[Any], types: set[type]) -> NDArray[Any]:
    """Numbers as an array that gives the same ones back; of whole ones an array is sorted several times as fast."""
    with suppress(OverflowError):
        if types == {int}:
            return np.asarray(column, dtype=np.int64)
    return np.asarray(column, dtype=object)


def _float_rows(matrix: NDArray[np.float32] | None, rows: IntArray | None) -> Tensor | None:
    if matrix is None:
        return None
    chosen = matrix if rows is None else matrix[rows]
    chosen = chosen[:, None] if chosen.ndim == 1 else chosen
    return torch.from_numpy(np.ascontiguousarray(chosen, dtype=np.float32))


def has_one_way_edges(edge_index: IntArray) -> bool:
    """Whether some edge's reverse is not among the edges [2, E]."""
    row, col = edge_index
    nodes = int(edge_index.max(initial=0)) + 1
    return not np.array_equal(np.unique(row * nodes + col), np.unique(col * nodes + row))


def directions_note(what: object, directed: int, graphs: int) -> str:
    """Says that directions are not read."""
    if graphs == 1:
        return f"{what} is directed: an edge in one direction counts for both"
    return f"{what}: {directed} of {graphs} graphs are directed: an edge in one direction counts for both"


def one_way_note(edge_index: IntArray, dataset: GraphDataset) -> str:
    """Says that directions are not read, where some edges [2, E] were given in one direction and others in both."""
    row, col = edge_index[:, edge_index[0] != edge_index[1]]
    given = len(np.unique(row * dataset.num_nodes + col))
    one_way = dataset.num_edges - given
    if not 0 < one_way < given:  # all in both directions, or each once, as undirected edges are also written
        return ""
    return f"{one_way} of {dataset.num_edges // 2} edges are given in one direction only, which counts for both"


def joined_edges(edges: Sequence[IntArray], sizes: IntArray) -> IntArray:
    """[2, E] of all graphs, nodes numbered through the whole data set, from the edges and the size of each graph."""
    first = np.repeat(np.cumsum(sizes) - sizes, [e.shape[1] for e in edges])
    return np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1) + first


# ---- PyG ----


def to_pyg(dataset: GraphDataset, graph: int) -> Data:
    """``GraphDataset[graph]``"""
    from torch_geometric.data import Data

    nodes = slice(int(dataset.node_ptr[graph]), int(dataset.node_ptr[graph + 1]))
    edges = slice(int(dataset.rowptr[nodes.start]), int(dataset.rowptr[nodes.stop]))
    size = nodes.stop - nodes.start
    row, col = torch.repeat_interleave(torch.arange(size), dataset.degree[nodes]), dataset.col[edges].long()
    data = Data(
        x=dataset.x[nodes],
        edge_index=torch.stack([col, row] if dataset.directed else [row, col]),
        y=dataset.y[graph : graph + 1],
        num_nodes=size,
    )
    for key, where in NODE_AND_EDGE_DATA.items():
        values = getattr(dataset, key)
        if values is not None:
            data[key] = values[nodes if where == "node" else edges]
    if dataset.label_names is not None:
        data.__dict__[_LABEL_NAMES] = dataset.label_names
    return data


def label_names_of(graphs: Sequence[Data]) -> tuple[str, ...] | None:
    """The names of the numbers in ``node_labels`` of graphs that ``to_pyg`` made; None where they are not known."""
    said = {g.__dict__.get(_LABEL_NAMES) for g in graphs}
    return said.pop() if len(said) == 1 else None


def from_pyg(
    graphs: Sequence[Data],
    name: str,
    classes: Values,
    categories: Values,
    edge_categories: Values,
    features: Features | None,
    task: Task | None,
    directed: bool,
) -> GraphDataset:
    """``GraphDataset.from_pyg``"""
    for i, g in enumerate(graphs):
        if g.edge_index is None or g.num_nodes is None:
            raise DataError(f"graph {i} has no edge_index, or its number of nodes is not known")
    rows = [_target_row(g.y, i) for i, g in enumerate(graphs)]
    sizes = np.asarray([g.num_nodes for g in graphs], dtype=np.int64)
    edges = [np.asarray(g.edge_index) for g in graphs]
    for i, (g, edge_index, size) in enumerate(zip(graphs, edges, sizes, strict=True)):
        if edge_index.size and not (edge_index.min() >= 0 and edge_index.max() < size):
            raise DataError(f"graph {i}: edge_index names node {edge_index.max()}; its nodes are 0 to {size - 1}")
        if (weight := g.get("edge_weight")) is not None and weight.numel() != edge_index.shape[1]:
            raise DataError(f"graph {i}: {weight.numel()} edge weights for {edge_index.shape[1]} edges")
    given = {key: _stack_all(graphs, key) for key in NODE_AND_EDGE_DATA}
    x = None if features in ("degrees", "log-degrees") else _stack_all(graphs, "x")
    columns: dict[str, Any] = {}
    for side, column in (("node", x), ("edge", _stack_all(graphs, "edge_attr"))):
        if column is not None and given[f"{side}_labels"] is None and given[f"{side}_attributes"] is None:
            labels = _as_categories(column)
            kind = "attributes" if labels is None else "labels"
            given[f"{side}_{kind}"] = column if labels is None else labels
            if side == "node" and labels is None and features is None:
                features = "attributes"
            if labels is not None and labels.ndim == 2:
                columns[f"{side}_columns"] = tuple(f"{side} column {k}" for k in range(labels.shape[1]))
                features = "all" if side == "node" and features is None else features
    if classes is not None or (task is None and all(len(row) == 1 and row.dtype.kind in "bui" for row in rows)):
        task = "classification"
    targets = None if task == "classification" else _targets(rows, task)
    dataset = assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=joined_edges(edges, sizes),
        y=_whole_numbers(rows) if targets is None else np.zeros(len(rows), dtype=np.int64),
        values={"y": classes, "node_labels": categories, "edge_labels": edge_categories},
        features=features,
        directed=directed,
        **given,  # type: ignore[arg-type]
    )
    not_read = unread_of_pyg(graphs, {"x", "edge_attr", *NODE_AND_EDGE_DATA})
    dataset = replace(dataset, not_read=not_read, **columns)
    return _with_targets(dataset.with_features("all") if features == "all" else dataset, targets)


def _target_row(y: Any, graph: int) -> NDArray[Any]:
    """[T] the targets of a graph: a tensor, an array, a list or a number."""
    try:
        row = torch.empty(0) if y is None else torch.as_tensor(y)
    except (TypeError, ValueError, RuntimeError):
        row = torch.empty(0)
    if row.numel() < 1:
        raise DataError(f"graph {graph}: y is its class, its number or its labels, not {y!r:.80}")
    return np.asarray(row.detach().cpu().reshape(-1).numpy())


def _whole_numbers(rows: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """[G] the class of each graph; a DataError for what is none."""
    for i, row in enumerate(rows):
        if len(row) != 1 or row[0] != np.floor(row[0]):
            raise DataError(f"graph {i}: y is its class, one whole number, not {row.tolist()}")
    return np.asarray([row[0] for row in rows], dtype=np.int64)


def _targets(rows: Sequence[Any], task: Task | None) -> Targets:
    """What one value or several of each graph ask for."""
    widths = [np.size(row) for row in rows]
    for i, width in enumerate(widths):
        if width != widths[0]:
            raise DataError(f"graph {i} has {width} targets, graph 0 has {widths[0]}")
    columns = list(zip(*(np.asarray(row, dtype=object).reshape(-1) for row in rows), strict=True))
    names = ["y"] if len(columns) == 1 else [f"y{k}" for k in range(len(columns))]
    found = detect_task(dict(zip(names, columns, strict=True)), task, [f"graph {i}" for i in range(len(rows))])
    if not found.known.all():
        raise DataError(f"graph {int(found.known.argmin())} has no target")
    return found


def _with_targets(dataset: GraphDataset, targets: Targets | None) -> GraphDataset:
    """The data set with these targets in the place of its classes."""
    if targets is None:
        return dataset
    names = None if targets.task == "classification" else targets.names
    y = torch.from_numpy(targets.y)
    return replace(dataset, y=y, classes=targets.classes, task=targets.task, target_names=names)


def unread_of_pyg(graphs: Sequence[Data], read: set[str]) -> tuple[str, ...]:
    """Names the usual attributes of PyG's ``Data`` that are there and not read, by the first graph."""
    there = set(graphs[0].to_dict()) - read if graphs else set[str]()
    return name_unread(there & {"x", "pos", "z"}, (key for key in there - {"edge_index"} if key.startswith("edge_")))


def _stack_all(graphs: Sequence[Data], key: str) -> NDArray[Any] | None:
    columns = [g.get(key) for g in graphs]
    lacking = [i for i, column in enumerate(columns) if column is None]
    if len(lacking) == len(columns):
        return None
    if lacking:
        raise DataError(f"graph {lacking[0]} has no {key}, but others have")
    if mixed := [i for i, column in enumerate(columns) if isinstance(column, MixedFeatures)]:
        raise DataError(
            f"graph {mixed[0]}: its {key} holds categories and numbers together, as only a GraphDataset does: "
            "dataset[[0, 1]] has some of its graphs"
        )
    try:
        return np.asarray(np.concatenate([c.detach().cpu().numpy() for c in columns]))
    except ValueError:
        raise DataError(f"{key} does not have the same width in every graph") from None


def _as_categories(x: NDArray[Any]) -> NDArray[Any] | None:
    """[N] or [N, K] integers as they are, one-hot rows as the column that is 1; None if x is neither."""
    is_one_hot = x.ndim == 2 and x.shape[1] > 1 and ((x == 0) | (x == 1)).all() and (x.sum(1) == 1).all()
    if is_one_hot:
        return np.asarray(np.argmax(x, axis=1))
    if x.ndim > 2 or not np.issubdtype(x.dtype, np.integer):
        return None
    return (x.reshape(-1) if x.shape[1:] in ((), (1,)) else x).astype(np.int64)


# ---- NetworkX ----


def to_networkx(dataset: GraphDataset, index: int) -> nx.Graph:
    """``GraphDataset.to_networkx``"""
    import networkx as nx

    data = dataset[index]
    pairs = [(u, v) for u, v in data.edge_index.t().tolist()]

    def column(key: str, names: Sequence[Hashable] | None = None) -> list[Any] | None:
        cells = data[key].tolist() if key in data else None
        return cells if cells is None or names is None else [names[i] for i in cells]

    columns = {
        "label": column("edge_labels", dataset.edge_label_values),
        "attributes": column("edge_attributes"),
        "weight": column("edge_weight"),
    } | _parts_of_labels(column("edge_labels", dataset.edge_label_values), dataset.edge_columns)
    on_edges = {key: dict(zip(pairs, cells, strict=True)) for key, cells in columns.items() if cells is not None}
    one_way = dataset.directed or any(cells[u, v] != cells[v, u] for cells in on_edges.values() for u, v in pairs)
    y = dataset.classes[int(data.y)] if dataset.task == "classification" else data.y.squeeze().tolist()
    graph = (nx.DiGraph if one_way else nx.Graph)(name=f"{dataset.name}[{index}]", y=y)
    for key in (NODE_COLUMNS, EDGE_COLUMNS):
        if (parts := getattr(dataset, key)) is not None:
            graph.graph[key] = list(parts)
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(pairs)
    for key, cells in on_edges.items():
        nx.set_edge_attributes(graph, cells, key)
    names = dataset.label_names if dataset.node_columns is None else None
    labels = column("node_labels", names if _tell_apart(names) else dataset.node_label_values)
    on_nodes = {
        "label": labels,
        "attributes": column("node_attributes"),
        "self_loop": column("self_loop"),
    } | _parts_of_labels(labels, dataset.node_columns)
    for key, values in on_nodes.items():
        if values is not None:
            nx.set_node_attributes(graph, dict(enumerate(values)), key)
    return graph


def _tell_apart(names: Sequence[str] | None) -> bool:
    """Whether there are names, each of another category."""
    return names is not None and len(set(names)) == len(names)


def _parts_of_labels(labels: list[Any] | None, names: Sequence[str] | None) -> dict[str, list[Any] | None]:
    """The parts of labels that are tuples, each under its name."""
    if labels is None or names is None:
        return {}
    return {name: [label[k] for label in labels] for k, name in enumerate(names)}


def _own_columns(graphs: Sequence[nx.Graph], key: str, rows: list[dict[str, Any]]) -> tuple[str, ...] | None:
    """What graphs of ``to_networkx`` say of the parts of their labels; None where they do not all say the same."""
    said = {tuple(map(str, names)) if isinstance(names := g.graph.get(key), list) else None for g in graphs}
    names = said.pop() if len(said) == 1 else None
    return names if names and all(_column(rows, name) is not None for name in names) else None


def from_networkx(
    graphs: Sequence[nx.Graph],
    y: Values,
    name: str,
    attributes: tuple[Names, str, Names, str, str],
    features: Features | None,
    task: Task | None,
    directed: bool,
) -> GraphDataset:
    """``GraphDataset.from_networkx``; ``attributes`` are the names of its five keyword arguments, in their order."""
    if directed:
        graphs = [g if g.is_directed() else g.to_directed(as_view=True) for g in graphs]
    node_label, node_attributes, edge_label, edge_attributes, edge_weight = attributes
    node_label, edge_label = (None if names in ((), []) else names for names in (node_label, edge_label))
    for key in {"labels": listed_names(node_label), "attributes": (node_attributes,)}.get(features or "", ()):
        check_node_attribute(graphs, key, needed=False)
    sizes = np.asarray([len(g) for g in graphs], dtype=np.int64)
    nodes = [d for g in graphs for _, d in g.nodes(data=True)]
    edges = [d for g in graphs for _, _, d in g.edges(data=True)]
    if node_label == "label":
        node_label = _own_columns(graphs, NODE_COLUMNS, nodes) or node_label
    if edge_label == "label":
        edge_label = _own_columns(graphs, EDGE_COLUMNS, edges) or edge_label
    if y is None:
        missing = next((i for i, g in enumerate(graphs) if "y" not in g.graph), None)
        if missing is not None:
            raise DataError(
                f'graph {missing} has no class: set graph.graph["y"], or give y to GraphDataset.from_networkx'
            )
        y = [g.graph["y"] for g in graphs]
    y = y.tolist() if isinstance(y, (Tensor, np.ndarray)) else list(y)
    if task is None and not all(map(is_plain_number, y)) and all(isinstance(value, Hashable) for value in y):
        task = "classification"  # text, or anything else that is no number
    targets = None if task == "classification" else _targets(y, task)
    dataset = assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=joined_edges([networkx_edges(g) for g in graphs], sizes),
        y=y if targets is None else np.zeros(len(y), dtype=np.int64),
        node_labels=_labels(graphs, nodes, node_label, "node"),
        node_attributes=_matrix(graphs, nodes, node_attributes, "node"),
        self_loop=_column(nodes, "self_loop"),
        edge_labels=_labels(graphs, edges, edge_label, "edge"),
        edge_attributes=_matrix(graphs, edges, edge_attributes, "edge"),
        edge_weight=_weights(graphs, edges, edge_weight),
        features=features,
        directed=directed,
    )
    on_nodes = set.intersection(*map(set, nodes)) - {*listed_names(node_label), node_attributes, "self_loop"}
    names = (*listed_names(edge_label), edge_attributes, edge_weight)
    on_edges = set[str]().union(*edges) - {key for key in names if _column(edges, key) is not None}
    not_read = name_unread(on_nodes, on_edges)
    dataset = replace(
        dataset,
        label_attribute=node_label if isinstance(node_label, str) else ", ".join(_parts(node_label) or ()) or None,
        attribute_names=(node_attributes,),
        node_columns=_parts(node_label),
        edge_columns=_parts(edge_label) if edges else None,
        edge_label_attribute=None if dataset.edge_labels is None else ", ".join(map(str, listed_names(edge_label))),
        not_read=not_read,
    )
    if dataset.node_columns is not None and features in (None, "all"):
        dataset = dataset.with_features("all")
    one_way = 0 if directed else sum(g.is_directed() and has_one_way_edges(networkx_edges(g)) for g in graphs)
    if one_way:
        dataset = replace(dataset, notes=(*dataset.notes, directions_note(name, one_way, len(graphs))))
    dataset = replace(dataset, notes=(*dataset.notes, *_note_of_task(name, targets, task)))
    return _with_targets(dataset, targets)


def _note_of_task(name: str, targets: Targets | None, task: Task | None) -> tuple[str, ...]:
    """Says that whole numbers are not taken for classes, where nobody said what they are."""
    if task is not None or targets is None or targets.task != "regression" or (targets.y % 1 > 0).any():
        return ()
    return (
        f"{name}: {targets.note}: more than {MOST_CLASSES} whole numbers are no classes without task='classification'",
    )


def name_unread(on_nodes: Iterable[Hashable], on_edges: Iterable[Hashable]) -> tuple[str, ...]:
    """The names of attributes that are not read, as `GraphDataset.not_read` holds them."""
    names = (("node", on_nodes), ("edge", on_edges))
    return tuple(f"{where} attribute {name}" for where, found in names for name in sorted(map(str, found)))


def networkx_edges(graph: nx.Graph) -> IntArray:
    """[2, E] with the nodes as numbers, in the order of the graph."""
    number = {node: i for i, node in enumerate(graph)}
    return np.asarray([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2).T


def check_node_attribute(graphs: Sequence[nx.Graph], key: str, needed: bool) -> bool:
    """Whether every node has the attribute; a ``DataError`` if only some have it, or none has it and it is needed."""
    having = [[key in values for _, values in g.nodes(data=True)] for g in graphs]
    some = any(map(any, having))
    lacking = next((i for i, has in enumerate(having) if not all(has)), None)
    if lacking is not None and (some or needed):
        node = list(graphs[lacking])[having[lacking].index(False)]
        others = "others have" if some else "no node has"
        own = ", ".join(map(repr, graphs[lacking].nodes[node]))
        has = f"; it has {own}" if own else ""
        raise DataError(f"graph {lacking}: the node {node!r} has no attribute {key!r}; {others}{has}")
    return some


def check_edge_attribute(graphs: Sequence[nx.Graph], key: str) -> None:
    """Raises a ``DataError`` for the first edge that lacks the attribute."""
    for i, graph in enumerate(graphs):
        for u, v, values in graph.edges(data=True):
            if key not in values:
                has = f"; it has {', '.join(map(repr, values))}" if values else ""
                raise DataError(f"graph {i}: the edge from {u!r:.40} to {v!r:.40} has no attribute {key!r}{has}")


def _column(rows: list[dict[str, Any]], key: str) -> list[Hashable] | None:
    return [row[key] for row in rows] if rows and all(key in row for row in rows) else None


def _parts(names: Names) -> tuple[str, ...] | None:
    """What the parts of a label are called; None where it is one attribute."""
    return tuple(names) if isinstance(names, list | tuple) else None


def listed_names(names: Names) -> tuple[Any, ...]:
    """One name, or several, as a tuple."""
    parts = _parts(names)
    return (names,) if parts is None else parts


def _labels(
    graphs: Sequence[nx.Graph], rows: list[dict[str, Any]], names: Names, what: Literal["node", "edge"]
) -> list[Hashable] | None:
    """[N] one attribute, None where some lack it; or tuples of several, which all have to have."""
    parts = _parts(names)
    for key in listed_names(names):
        column = _column(rows, key)
        if rows and column is None and parts is not None:
            raise DataError(f"not every {what} has the attribute {key!r}")
        for number, value in enumerate(column or ()):
            if value is None:
                raise _wrong_value(graphs, what, number, key, value, "a category belongs")
    if parts is None:
        return _column(rows, names)  # type: ignore[arg-type]
    return [tuple(row[key] for key in parts) for row in rows] if rows else None


def _weights(graphs: Sequence[nx.Graph], rows: list[dict[str, Any]], key: str) -> NDArray[np.float64] | None:
    """[E] the attribute of all edges; None where some have none, a DataError for one that is no number."""
    column = _column(rows, key)
    if column is None:
        return None
    for number, value in enumerate(column):
        if not is_finite_number(value):
            raise _wrong_value(graphs, "edge", number, key, value, "a finite number belongs")
    return np.asarray(column, dtype=np.float64)


def _wrong_value(
    graphs: Sequence[nx.Graph], what: Literal["node", "edge"], number: int, key: str, value: Any, wanted: str
) -> DataError:
    """The error about the attribute of a node (or edge), by its number among those of all graphs."""
    places = ((i, place) for i, graph in enumerate(graphs) for place in (graph if what == "node" else graph.edges()))
    i, place = next(islice(places, number, None))
    words = f"the node {place!r:.40}" if what == "node" else f"the edge from {place[0]!r:.40} to {place[1]!r:.40}"
    return DataError(f"graph {i}: the {key!r} of {words} is {printable(repr(value)):.40}, where {wanted}")


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number, as a weight has to be."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _matrix(
    graphs: Sequence[nx.Graph], rows: list[dict[str, Any]], key: str, what: Literal["node", "edge"]
) -> NDArray[np.float32] | None:
    """[N, F] the attribute of all nodes (or edges); None where some have none, a DataError names one that is wrong."""
    column = _column(rows, key)
    if column is None:
        return None
    with suppress(ValueError, TypeError):
        found = np.asarray(column, dtype=np.float32).reshape(len(rows), -1)
        if np.isfinite(found).all():
            return found
    made = [_float_row(value) for value in column]
    width = next((len(row) for row in made if row is not None), 1)
    number = next((i for i, row in enumerate(made) if row is None or len(row) != width), 0)
    wanted = "a finite number belongs" if width == 1 else f"{width} finite numbers belong"
    raise _wrong_value(graphs, what, number, key, column[number], wanted)


def _float_row(value: Any) -> NDArray[np.float32] | None:
    """[F] one number or several; None for what is none, or not finite."""
    try:
        row = np.asarray(value, dtype=np.float32).reshape(-1)
    except (ValueError, TypeError):
        return None
    return row if np.isfinite(row).all() else None


# ---- whatever a user holds ----


def from_graphs(
    graphs: Any,
    features: Features | None,
    task: Task | None,
    directed: bool,
    y: Sequence[Any] | None = None,
    **labels: Names,
) -> GraphDataset:
    """Makes a data set of what a user holds: graphs of NetworkX or PyG in a list, or a data set of PyG or OGB.

    Args:
        graphs: The graphs, each with its target: ``graph.graph["y"]`` of NetworkX, ``data.y`` of PyG. SMILES have none.
        features: What ``x`` holds, as :meth:`GraphDataset.from_pyg` and :meth:`GraphDataset.from_networkx` have it.
        task: What the targets are, as these find out.
        directed: Whether edges keep their directions.
        y: ``[G]`` what counts in place of the graphs' own targets.
        labels: ``node_label`` and ``edge_label`` of :meth:`GraphDataset.from_networkx`.

    Returns:
        The data set. The split that OGB's data sets come with is the column ``split`` of ``graph_columns``.

    Raises:
        DataError: These are no graphs, or one of them is wrong; the message names it.
        SettingError: Labels are named that these graphs do not have.
    """
    name = getattr(graphs, "name", None)
    name = (PurePath(name).name if isinstance(name, str) else "") or "graphs"
    found = check_graphs(graphs)
    if labels and (isinstance(found, GraphDataset) or kind_of(found) != "NetworkX"):
        raise SettingError(f"{next(iter(labels))} is for graphs of NetworkX and in files, which these are not")
    if isinstance(found, GraphDataset):
        return found if features in (None, found.features) else found.with_features(features)
    if kind_of(found) == "NetworkX":
        for key in filter(None, listed_names(labels.get("node_label"))):
            check_node_attribute(found, key, needed=True)
        for key in filter(None, listed_names(labels.get("edge_label"))):
            check_edge_attribute(found, key)
        options: dict[str, Any] = {"features": features, "task": task, "directed": directed, **labels}
        dataset = GraphDataset.from_networkx(found, y, name=name, **options)
    else:
        found = found if y is None else [_with_y(graph, own) for graph, own in zip(found, y, strict=True)]
        dataset = GraphDataset.from_pyg(found, name=name, features=features, task=task, directed=directed)
    split = _own_split(graphs, len(found))
    if split is None:
        return dataset
    parts = ", ".join(dict.fromkeys(filter(None, split)))
    note = f"{name} has a split of its own ({parts}): split='column:split' takes it"
    return replace(dataset, graph_columns={"split": split}, notes=(*dataset.notes, note))


def _with_y(graph: Data, y: Any) -> Data:
    """The same graph with another target; the tensors are shared."""
    changed = copy(graph)
    changed.y = torch.as_tensor([y])
    return changed


def _own_split(graphs: Any, count: int) -> tuple[str, ...] | None:
    """[G] the part in which OGB's ``get_idx_split`` has each graph; None where it says nothing of these graphs."""
    find = getattr(graphs, "get_idx_split", None)
    if not callable(find) or getattr(graphs, "_indices", None) is not None:  # some graphs of it, in another order
        return None
    words = [""] * count
    for part, members in find().items():
        for number in np.asarray(members).reshape(-1).tolist():
            words[number] = str(part)
    return tuple(words)


def check_graphs(graphs: Any) -> Any:
    """A GraphDataset as it is, SMILES as the GraphDataset of their molecules, else a list of graphs of one kind.

    An object array may have one column (``[G, 1]``), as scikit-learn's ``BaggingClassifier`` asks for, and a DataFrame.

    Raises:
        DataError: saying what is wrong, and with which graph.
    """
    if isinstance(graphs, GraphDataset):
        if len(graphs) == 0:
            raise DataError(f"{graphs.name} has no graphs")
        return graphs
    if _is_networkx(graphs) or (hasattr(graphs, "edge_index") and kind_of([graphs])):
        raise DataError("one graph is not a list of graphs: put it in one")
    if getattr(graphs, "shape", ())[1:] == (1,) and len(graphs):  # also a data frame
        graphs = np.asarray(graphs, dtype=object)[:, 0]
    if isinstance(graphs, str | bytes | dict) or not hasattr(graphs, "__len__") or getattr(graphs, "ndim", 1) != 1:
        shape = f" of shape {graphs.shape}" if hasattr(graphs, "shape") else ""
        only = "; take its column of SMILES alone" if hasattr(graphs, "columns") else ""
        raise DataError(
            f"graphs come as a list of NetworkX graphs, PyG Data or SMILES, not as {type(graphs).__name__}{shape}{only}"
        )
    found = [_read_pair(g) if _is_pair(g) else g for g in graphs]
    if not found:
        raise DataError("there are no graphs: the list is empty")
    if isinstance(found[0], GraphReference):
        dataset, numbers = (
            found[0].dataset,
            [g.number for g in found if getattr(g, "dataset", None) is found[0].dataset],
        )
        if len(numbers) < len(found):
            raise DataError("graphs of several data sets in one array: each numbers its categories in its own way")
        return dataset.subset(numbers)
    kinds = [kind_of([g]) for g in found]
    for i, kind in enumerate(kinds):
        if not kind:
            what = type(found[i]).__name__
            raise DataError(f"graph {i} is neither a NetworkX graph nor a PyG Data nor a SMILES but {what}")
        if kind != kinds[0]:
            raise DataError(f"graphs are all of one kind: graph 0 is of {kinds[0]}, graph {i} of {kind}")
        if kind != "SMILES" and (len(found[i]) if kind == "NetworkX" else found[i].num_nodes) == 0:
            raise DataError(f"graph {i} has no nodes")
    return GraphDataset.from_smiles(found) if kinds[0] == "SMILES" else found


def kind_of(graphs: Any) -> str:
    """What graphs are: "GraphDataset", "NetworkX", "PyG", "SMILES", or "" for something else, by the first one."""
    if isinstance(graphs, GraphDataset):
        return "GraphDataset"
    if _is_networkx(graphs[0]):
        return "NetworkX"
    if isinstance(graphs[0], str):
        return "SMILES"
    from torch_geometric.data import Data

    return "PyG" if isinstance(graphs[0], Data) else ""


def _is_networkx(item: Any) -> bool:
    """Whether it is a graph of NetworkX; that takes 0.15 s to import, and who has such a graph has done so."""
    graph = getattr(sys.modules.get("networkx"), "Graph", None)
    return graph is not None and isinstance(item, graph)


def _is_pair(item: Any) -> bool:
    """Whether a graph is a pair of a dictionary and a label, as OGB's library-agnostic data sets have it."""
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Mapping) and "edge_index" in item[0]


def _read_pair(pair: tuple[Mapping[str, Any], Any]) -> Data:
    """Such a graph as PyG's."""
    from torch_geometric.data import Data

    graph, y = pair
    names = {"edge_index": "edge_index", "edge_feat": "edge_attr", "node_feat": "x"}
    rows = {name: torch.as_tensor(graph[key]) for key, name in names.items() if graph.get(key) is not None}
    return Data(**rows, num_nodes=graph.get("num_nodes"), y=y)
