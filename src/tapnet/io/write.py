"""Writing data sets in the two formats that are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError
from tapnet.io.formats import TU_PARTS


def write_tu(dataset: GraphDataset, folder: Path) -> None:
    """The data set as ``folder/NAME_A.txt`` … with its original labels."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = dataset.batch(range(len(dataset)))
    loops = np.zeros((0, 2)) if dataset.self_loop is None else dataset.self_loop.nonzero().expand(-1, 2).numpy()

    def with_loops(table: Any) -> Any:  # listed last; the data of a self-loop are not kept, so any will do
        return table if table is None or not len(loops) else np.concatenate([table, table[[0] * len(loops)]])

    tables: dict[str, Any] = {
        "A": np.concatenate([whole.edge_index.T.numpy(), loops]) + 1,
        "graph_indicator": whole.graph.numpy() + 1,
        "graph_labels": _original(dataset.y, dataset.classes),
        "node_labels": _original(dataset.node_labels, dataset.node_label_values),
        "node_attributes": dataset.node_attributes,
        "edge_labels": with_loops(_original(dataset.edge_labels, dataset.edge_label_values)),
        "edge_attributes": with_loops(dataset.edge_attributes),
    }
    for part, table in tables.items():
        if table is not None:
            fmt = "%d" if TU_PARTS[part][0] is np.int64 else "%.9g"
            np.savetxt(folder / f"{dataset.name}_{part}.txt", np.asarray(table), fmt=fmt, delimiter=", ")


def write_text(dataset: GraphDataset, file: Path) -> None:
    """The data set in the one-file format; without node labels every tag is 0. Edge data have no place there."""
    labels, classes = (
        _original(dataset.node_labels, dataset.node_label_values),
        _original(dataset.y, dataset.classes),
    )
    if labels is not None and labels.ndim > 1:
        raise DataError("the one-file format holds one label a node, and this data set has several")
    node_ptr, rowptr = dataset.node_ptr.tolist(), dataset.rowptr.tolist()
    with file.open("w", encoding="ascii") as out:
        out.write(f"{len(dataset)}\n")
        for g in range(len(dataset)):
            out.write(f"{node_ptr[g + 1] - node_ptr[g]} {int(classes[g])}\n")  # type: ignore[index]
            for i in range(node_ptr[g], node_ptr[g + 1]):
                neighbors = dataset.col[rowptr[i] : rowptr[i + 1]].tolist()
                words = [0 if labels is None else int(labels[i]), len(neighbors), *neighbors]
                attributes = [] if dataset.node_attributes is None else dataset.node_attributes[i].tolist()
                out.write(" ".join([*map(str, words), *(f"{a:.9g}" for a in attributes)]) + "\n")


def _original(numbers: Any, values: tuple[Any, ...] | None) -> NDArray[np.int64] | None:
    if numbers is None or values is None:
        return None
    table = np.asarray(values)
    if not np.issubdtype(table.dtype, np.integer):
        raise DataError("these formats hold whole numbers as labels, and this data set has others")
    original: NDArray[np.int64] = table[np.asarray(numbers)]
    return original
