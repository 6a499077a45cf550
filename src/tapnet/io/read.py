"""A data set from its files, whatever their format. A new format is added here and in ``dataset_files``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.errors import SettingError, TapnetError
from tapnet.io.dataset_files import Layout, layout_of
from tapnet.io.graph_folder import node_names, read_graphs
from tapnet.io.matrices import matrix_node_names, read_matrices
from tapnet.io.molecules import read_molecules
from tapnet.io.text import read_text
from tapnet.io.tu import read_tu


def read(path: Path, *, features: Features | None = None) -> GraphDataset:
    """Reads and checks the data set at a path, without the cache.

    Args:
        path: A TU folder, a .zip of one, a one-file text, a folder of graphs or matrices, or a table of molecules.
        features: What ``x`` holds; by default node labels where they tell nodes apart, else degrees.

    Returns:
        The data set.

    Raises:
        DataError: A file is missing or wrong; the message names the file and, where it can, the line.
    """
    return read_layout(layout_of(path), features=features)


def read_layout(
    layout: Layout,
    *,
    features: Features | None = None,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    threshold: float | None = None,
    directed: bool = False,
    node_label: Sequence[str] | None = None,
    edge_label: Sequence[str] | None = None,
) -> GraphDataset:
    """``read`` of files that were found; the last seven are those of `load_dataset`, attributes as lists of names."""
    kind, place, name = layout.kind, layout.place, layout.prefix
    if smiles is not None and kind != "molecules":
        raise SettingError(f"{layout.root}: smiles is for tables of molecules, which this is not")
    if threshold is not None and kind != "matrices":
        raise SettingError(f"{layout.root}: threshold is for matrices, which these are not")
    if (node_label is not None or edge_label is not None) and kind != "graphs":
        raise SettingError(f"{layout.root}: node_label and edge_label are for GraphML and JSON, which this is not")
    check_directions(layout, directed)
    if kind == "molecules":
        return read_molecules(layout.root, smiles, target, task, name=name, features=features)
    if kind == "matrices":
        options = {"target": target, "task": task, "threshold": threshold, "directed": directed}
        return read_matrices(place, name=name, features=features, **options)  # type: ignore[arg-type]
    if kind == "graphs":
        labels = {"node_label": node_label, "edge_label": edge_label}
        return read_graphs(place, name=name, features=features, target=target, task=task, directed=directed, **labels)
    if target is not None or task is not None:
        raise SettingError(
            f"{layout.root}: target and task are for tables of molecules and folders of graphs, which this is not"
        )
    return (read_tu if kind == "tu" else read_text)(place, name=name, features=features, directed=directed)


def check_directions(layout: Layout, directed: bool) -> None:
    """Raises a SettingError where directions are asked for that such files do not have."""
    if directed and layout.kind == "molecules":
        raise SettingError(f"{layout.root}: the bonds of molecules have no directions")


def names_of_nodes(dataset: GraphDataset, number: int, layout: Layout | None = None) -> Sequence[Hashable] | None:
    """What its files call the nodes of a graph.

    Args:
        dataset: A data set that was read from a folder of graphs or matrices, or from the file of one.
        number: The number of the graph.
        layout: Its files; by default they are found.

    Returns:
        ``[n]``, or None where nodes have no names, or the files cannot be read any more or have changed since.
    """
    names: Sequence[Hashable] | None = None
    if layout is None and not dataset.source:
        return None
    try:
        layout = layout or layout_of(Path(dataset.source))
        if layout.kind == "graphs":
            names = node_names(dataset.source, number)
        elif layout.kind == "matrices" and dataset.graph_names is not None:
            place = layout.place
            names = matrix_node_names(place if place.is_file() else place / dataset.graph_names[number])
    except (TapnetError, OSError):
        return None
    return names if names is not None and len(names) == int(dataset.nodes_per_graph[number]) else None
