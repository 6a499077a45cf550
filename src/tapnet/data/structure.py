"""Checks of the arrays of a data set that was not made here: compiled loops trust their pointers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tapnet.data.dataset import NODE_AND_EDGE_DATA, GraphDataset
from tapnet.data.features import MixedFeatures
from tapnet.errors import DataError

AT_ONCE = 1 << 22  # pointers
_DTYPES = {"node_ptr": torch.int64, "rowptr": torch.int64, "col": torch.int32}
_CATEGORIES = {"node_labels": "node_label_values", "edge_labels": "edge_label_values"}
_OTHER_DTYPES = {"self_loop": torch.bool} | dict.fromkeys(
    ("node_attributes", "edge_attributes", "edge_weight"), torch.float32
)


def check_structure(dataset: GraphDataset) -> None:
    """Checks types, shapes, pointers and ranges, so that no index leads out of an array.

    Args:
        dataset: The data set, with tensors in memory.

    Raises:
        DataError: An array does not fit the others; the message names it.
    """
    for name, dtype in _DTYPES.items():
        tensor = getattr(dataset, name)
        _require(isinstance(tensor, Tensor) and tensor.dtype == dtype and tensor.dim() == 1, dataset, name)
    graphs, edges = len(dataset.node_ptr) - 1, len(dataset.col)
    nodes = len(dataset.rowptr) - 1
    _require_pointers(dataset, "node_ptr", nodes)
    _require_pointers(dataset, "rowptr", edges)
    _require(isinstance(dataset.y, Tensor) and len(dataset.y) == graphs, dataset, "y")
    if dataset.task == "classification":
        y = dataset.y
        _require(y.dtype == torch.int64 and y.dim() == 1 and _is_within(y, len(dataset.classes)), dataset, "y")
    else:
        _require(dataset.y.dtype == torch.float32 and dataset.y.dim() == 2, dataset, "y")
    col, begin = dataset.col.numpy(), dataset.rowptr.numpy()[dataset.node_ptr.numpy()]  # where each graph's edges begin
    has_edges = np.diff(begin) > 0
    largest = np.maximum.reduceat(col, begin[:-1][has_edges]) if has_edges.any() else col
    _require(
        _is_within(dataset.col, nodes) and (largest < dataset.nodes_per_graph.numpy()[has_edges]).all(), dataset, "col"
    )
    rows = {"node": nodes, "edge": edges}
    for name, of in NODE_AND_EDGE_DATA.items():
        if (values := getattr(dataset, name)) is None:
            continue
        _require(isinstance(values, Tensor) and values.dim() in (1, 2) and len(values) == rows[of], dataset, name)
        if name in _CATEGORIES:
            categories = getattr(dataset, _CATEGORIES[name])
            _require(values.dtype == torch.int64 and categories is not None, dataset, name)
            _require(_is_within(values, len(categories)), dataset, name)
        else:
            _require(values.dtype == _OTHER_DTYPES[name], dataset, name)
    x = dataset.x
    if isinstance(x, MixedFeatures):
        kinds = len(dataset.categories or ())
        _require(len(x) == nodes and _is_within(x.combination, len(x.table)), dataset, "x")
        _require(not x.table.numel() or int(x.table.max()) < kinds, dataset, "x")
        return
    _require(len(x) == nodes, dataset, "x")
    if dataset.categories is None:
        _require(x.dim() == 2 and x.is_floating_point(), dataset, "x")
    else:
        _require(x.dtype == torch.int64 and x.dim() == 1 and _is_within(x, len(dataset.categories)), dataset, "x")


def _require_pointers(dataset: GraphDataset, name: str, end: int) -> None:
    pointers = getattr(dataset, name).numpy()
    _require(len(pointers) > 0 and pointers[0] == 0 and pointers[-1] == end, dataset, name)
    for start in range(0, len(pointers), AT_ONCE):  # of a mapped array only so much is in memory at a time
        some = pointers[start : start + AT_ONCE + 1]
        _require((some[:-1] <= some[1:]).all(), dataset, name)


def _is_within(values: Tensor, count: int) -> bool:
    return not values.numel() or (int(values.min()) >= 0 and int(values.max()) < count)


def _require(good: bool | np.bool_, dataset: GraphDataset, name: str) -> None:
    if not good:
        raise DataError(f"{dataset.name}: the array {name} does not fit the data set")
