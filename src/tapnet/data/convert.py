"""From edges in any order to a GraphDataset: sorted, symmetric, without self-loops or duplicates, numbered."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError

IntArray = NDArray[np.int64]
Column = NDArray[np.int64] | Sequence[Hashable]  # one value a row, of any hashable kind


def assemble(
    *,
    name: str,
    nodes_per_graph: IntArray,  # [G]
    edge_index: IntArray,  # [2, E] nodes numbered through the whole data set
    y: Column,  # [G]
    node_labels: Column | None = None,  # [N]
    node_attributes: NDArray[np.float32] | None = None,  # [N, F]
    edge_labels: Column | None = None,  # [E]
    edge_attributes: NDArray[np.float32] | None = None,  # [E, F]
    self_loop: NDArray[np.bool_] | Sequence[Hashable] | None = None,  # [N] beside those among the edges
    values: Mapping[str, Sequence[Hashable] | None] | None = None,  # the values behind numbers, where known
    features: Features | None = None,
    source: str = "",
) -> GraphDataset:
    """The one way in: every reader and every converter ends here."""
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
    ):
        if rows is not None and len(rows) != wanted:
            raise DataError(f"{name}: {len(rows)} {what} where {wanted} belong")
    for what, matrix in (("node", node_attributes), ("edge", edge_attributes)):
        if matrix is not None and not np.isfinite(matrix).all():
            raise DataError(f"{name}: NaN or infinite among the {what} attributes")
    values = values or {}
    node_ptr = np.concatenate([[0], np.cumsum(nodes_per_graph)])
    row, col, edge = clean_edges(edge_index, int(node_ptr[-1]))
    loops = np.zeros(node_ptr[-1], dtype=bool) if self_loop is None else np.array(self_loop, dtype=bool)
    loops[edge_index[0, edge_index[0] == edge_index[1]]] = True
    first_node = np.repeat(node_ptr[:-1], nodes_per_graph)
    y_numbers, classes = numbered(y, values.get("y"))
    node_numbers, node_values = _numbered_rows(node_labels, None, values.get("node_labels"))
    edge_numbers, edge_values = _numbered_rows(edge_labels, edge, values.get("edge_labels"))
    dataset = GraphDataset(
        name=name,
        node_ptr=torch.from_numpy(node_ptr),
        rowptr=torch.from_numpy(np.concatenate([[0], np.cumsum(np.bincount(row, minlength=node_ptr[-1]))])),
        col=torch.from_numpy((col - first_node[col]).astype(np.int32)),
        y=torch.from_numpy(y_numbers),
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
        self_loop=torch.from_numpy(loops) if loops.any() else None,
        source=source,
    )
    return dataset.with_features(features or default_features(dataset))


def default_features(dataset: GraphDataset) -> Features:
    """Node labels where they tell nodes apart, else degrees."""
    return "labels" if len(dataset.node_label_values or ()) > 1 else "degrees"


def clean_edges(edge_index: IntArray, num_nodes: int) -> tuple[IntArray, IntArray, IntArray]:
    """Sorted and symmetric, without self-loops or duplicates: row, col, and the given edge each one stems from.

    Of duplicates the first counts; a reverse edge that was not there takes the data of its forward edge.
    """
    edge = np.flatnonzero(edge_index[0] != edge_index[1])
    row, col = edge_index[:, edge] if len(edge) < edge_index.shape[1] else edge_index
    row, col, edge = _sorted_unique(row, col, edge, num_nodes)
    if not _is_symmetric(row, col, num_nodes):
        row, col, edge = _sorted_unique(
            np.concatenate([row, col]), np.concatenate([col, row]), np.concatenate([edge, edge]), num_nodes
        )
    return row, col, edge


def _sorted_unique(row: IntArray, col: IntArray, edge: IntArray, num_nodes: int) -> tuple[IntArray, IntArray, IntArray]:
    key = row * num_nodes + col
    step = np.diff(key)
    if (step > 0).all():  # files are mostly written in this order, and sorting 25 million edges takes seconds
        return row, col, edge
    order = np.argsort(key, kind="stable")
    first = np.concatenate([[True], np.diff(key[order]) > 0])
    kept = order[first]
    return row[kept], col[kept], edge[kept]


def _is_symmetric(row: IntArray, col: IntArray, num_nodes: int) -> bool:
    rows = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=num_nodes))])
    ones = np.ones(len(col), dtype=np.int8)
    transposed = csr_array((ones, col, rows), shape=(num_nodes, num_nodes)).tocsc()
    return np.array_equal(transposed.indptr, rows) and np.array_equal(transposed.indices, col)


def numbered(column: Column, known: Sequence[Hashable] | None = None) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Values → consecutive numbers in the order of the values, and the values in that order.

    With ``known`` values the column holds their positions already.
    """
    if known is not None:
        numbers = np.asarray(column, dtype=np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(known)):
            raise DataError(f"a number outside 0 to {len(known) - 1}, the values that were named")
        return numbers, tuple(known)
    if isinstance(column, np.ndarray):
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        values, numbers = np.unique(column, return_inverse=True, axis=0 if column.ndim == 2 else None)
        names = values.tolist()
        return numbers.reshape(-1).astype(np.int64), tuple(tuple(v) if isinstance(v, list) else v for v in names)
    distinct = sorted_values(set(column))
    position = {value: i for i, value in enumerate(distinct)}
    return np.asarray([position[v] for v in column], dtype=np.int64), tuple(distinct)


def sorted_values(values: set[Hashable]) -> list[Hashable]:
    """In their own order where they have one, else by type and text."""
    try:
        return sorted(values)  # type: ignore[type-var]
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, repr(v)))


def _numbered_rows(
    column: Column | None, rows: IntArray | None, known: Sequence[Hashable] | None
) -> tuple[Tensor | None, tuple[Hashable, ...] | None]:
    if column is None:
        return None, None
    if rows is not None:
        column = column[rows] if isinstance(column, np.ndarray) else [column[i] for i in rows]
    numbers, names = numbered(column, known)
    return torch.from_numpy(numbers), names


def _float_rows(matrix: NDArray[np.float32] | None, rows: IntArray | None) -> Tensor | None:
    if matrix is None:
        return None
    chosen = matrix if rows is None else matrix[rows]
    if chosen.ndim == 1:
        chosen = chosen[:, None]
    return torch.from_numpy(np.ascontiguousarray(chosen, dtype=np.float32))
