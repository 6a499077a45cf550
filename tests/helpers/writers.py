"""Writers of the formats of numbers in plain text, for tests that read what they write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapnet import GraphDataset
from tapnet.errors import DataError
from tapnet.io.tu import TU_PARTS


def write_tu(dataset: GraphDataset, folder: Path) -> None:
    """Writes a data set as ``folder/NAME_A.txt`` … with its original labels.

    Args:
        dataset: The data set.
        folder: The folder, which is made if it is not there.

    Raises:
        DataError: A label is not a whole number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole = dataset.batch(range(len(dataset)))
    loops = np.zeros((0, 2)) if dataset.self_loop is None else dataset.self_loop.nonzero().expand(-1, 2).numpy()

    def with_loops(table: Any) -> Any:  # listed last; the data of a self-loop are not kept, so any will do
        return table if table is None or not len(loops) else np.concatenate([table, table[[0] * len(loops)]])

    tables: dict[str, Any] = {
        "A": np.concatenate([whole.edge_index.T.numpy(), loops]) + 1,
        "graph_indicator": whole.graph.numpy() + 1,
        "graph_labels": original_labels(dataset.y, dataset.classes),
        "node_labels": original_labels(dataset.node_labels, dataset.node_label_values),
        "node_attributes": dataset.node_attributes,
        "edge_labels": with_loops(original_labels(dataset.edge_labels, dataset.edge_label_values)),
        "edge_attributes": with_loops(dataset.edge_attributes),
    }
    for part, table in tables.items():
        if table is not None:
            fmt = "%d" if TU_PARTS[part][0] is np.int64 else "%.9g"
            np.savetxt(folder / f"{dataset.name}_{part}.txt", np.asarray(table), fmt=fmt, delimiter=", ")


def write_text(dataset: GraphDataset, file: Path) -> None:
    """Writes a data set as one text file; without node labels every tag is 0. Edge data are left out.

    Args:
        dataset: The data set.
        file: The file.

    Raises:
        DataError: A label is not a whole number, or a node has several.
    """
    labels = original_labels(dataset.node_labels, dataset.node_label_values)
    classes = original_labels(dataset.y, dataset.classes)
    if labels is not None and labels.ndim > 1:
        raise DataError("the one-file format holds one label per node, and this data set has several")
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


def original_labels(numbers: Any, values: tuple[Any, ...] | None) -> NDArray[np.int64] | None:
    """The whole numbers behind the categories; None where there are no categories."""
    if numbers is None or values is None:
        return None
    table = np.asarray(values)
    if not np.issubdtype(table.dtype, np.integer):
        raise DataError("these formats hold whole numbers as labels, and this data set has others")
    return np.asarray(table[np.asarray(numbers)])
