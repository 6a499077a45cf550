"""``load_dataset``: from a name, a path, or what a user holds in memory to a GraphDataset."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, get_args

from torch.utils.data import Dataset

from tapnet.data.catalog import find_entry, names_by_count
from tapnet.data.convert import from_graphs
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.files import reading
from tapnet.io import parsed_cache
from tapnet.io.dataset_files import Layout
from tapnet.io.download import is_intact
from tapnet.io.graph_frames import graph_column, read_graph_frame
from tapnet.io.locate import find
from tapnet.io.molecules import read_dataframe
from tapnet.io.read import read_layout
from tapnet.io.tu_parts import read_large_tu

ACCEPTED = (
    "a data set is a name, a path, a GraphDataset, a data set of PyG or OGB, a list of PyG Data or NetworkX graphs, "
    "or a DataFrame with a column of SMILES or of such graphs"
)


class DataFrame(Protocol):
    """A table of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""

    def __getitem__(self, name: Any, /) -> Any: ...


AnyDataset: TypeAlias = str | Path | GraphDataset | Sequence[Any] | Dataset[Any] | DataFrame


def load_dataset(
    name_or_path: AnyDataset,
    data_dir: str | Path | None = None,
    *,
    features: Features | None = None,
    download: bool = True,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    threshold: float | None = None,
    directed: bool = False,
    node_label: str | Sequence[str] | None = None,
    edge_label: str | Sequence[str] | None = None,
) -> GraphDataset:
    """Loads a data set by its name, from its files, or from what is in memory. What was parsed of files is cached.

    A name is looked up in ``data_dir`` or the folder TAPNET_DATA, in this package (MUTAG), in the user's cache, and is
    downloaded into it last.

    Args:
        name_or_path: A name such as ``"MUTAG"``, or a path: a TU folder, a .zip of one, a one-file text, a folder of
            graphs in GraphML or JSON, the file of one graph, a folder of matrices (.npy, .npz, .csv), or molecules
            (.csv or .tsv with SMILES, .smi, .sdf). Or what is in memory: a data set of PyG or OGB, a list of PyG
            ``Data`` with ``y`` or of NetworkX graphs with ``graph.graph["y"]``, or a pandas DataFrame with a column of
            SMILES, which is read as the same table in a .csv would be, or of PyG or NetworkX graphs. The split of an
            OGB data set is taken by ``split="column:split"`` of `cross_validate`. A ``GraphDataset`` is left as it is.
        data_dir: A folder with data sets (``NAME/``, ``NAME.zip`` or ``NAME.txt``).
        features: What ``x`` holds: ``"labels"`` (node labels as integer categories), ``"degrees"`` (distinct degrees
            as integer categories), ``"log-degrees"`` (one float), ``"attributes"`` (floats) or ``"all"`` (labels and
            attributes, in GraphML and JSON with every attribute that holds text as a category of its own). By default
            what the paper uses, and for sets that it does not use, labels if there are any, else degrees; in the TU
            layout attributes before degrees; all where nodes have several categories.
        download: Whether to download a data set that is nowhere else.
        smiles: Of a table of molecules the column of SMILES, as :func:`tapnet.io.molecules.read_molecules` says. Of a
            DataFrame with a column of graphs, too, this column counts where it is named.
        target: The target column of this table, or of the targets.csv of a folder of graphs or matrices; or several.
        task: What the target columns hold, where it is not what would be found.
        threshold: Of matrices: entries whose absolute value is not larger are no edges; by default zeros are none.
        directed: Whether edges keep their directions; by default an edge in one direction counts for both.
        node_label: Of GraphML, JSON and NetworkX graphs: the node attribute that is a category; or several, a list or
            names with commas between them, each of which is a category of its own. By default ``label``; in files
            where there is none, every attribute that holds text. An empty list: none.
        edge_label: The edge attribute that is a category, or several, likewise.

    Returns:
        The data set; ``dataset[i]`` is graph i as a PyG ``Data``.

    Raises:
        DatasetNotFoundError: There is no such data set.
        DownloadError: The download failed.
        DataError: A file is wrong; the message names the file and, where it can, the line. Or this is no data set.
        SettingError: ``data_dir`` is not a folder, or the data set has no such features.

    Example:
        >>> from tapnet import load_dataset
        >>> load_dataset("MUTAG")
        GraphDataset('MUTAG', graphs=188, nodes=3371, edges=3721, classes=2, labels=7)
    """
    attributes = {"node_label": _names(node_label, "node_label"), "edge_label": _names(edge_label, "edge_label")}
    if not isinstance(name_or_path, str | os.PathLike):
        dataset = _from_memory(name_or_path, features, smiles, target, task, threshold, directed, attributes)
        if not isinstance(name_or_path, GraphDataset):
            _show_notes(dataset)
        return dataset
    with reading(name_or_path):
        layout, place = find(name_or_path, data_dir, download=download)
        options: dict[str, Any] = {"smiles": smiles, "target": target, "task": task, "threshold": threshold}
        options |= attributes
        all_texts = features == "all" and layout.kind == "graphs"  # which are more than those that count by default
        if layout.kind == "molecules" or directed or any(given is not None for given in options.values()):
            dataset = read_layout(layout, features="all" if all_texts else None, directed=directed, **options)
        else:
            dataset = parsed_cache.load(layout) or _read(layout, place)
            if all_texts and any(what.startswith("node") for what in dataset.not_read):
                dataset = read_layout(layout, features="all")
    _show_notes(dataset)  # of a parsed copy, too: what is left out is left out again
    dataset = replace(dataset, source=str(layout.root), place=place)
    entry = find_entry(layout.prefix) if place == "path" else find_entry(str(name_or_path))
    if layout.kind in ("molecules", "matrices") or dataset.task != "classification":
        entry = None
    if entry is not None:
        labels = names_by_count(dataset.node_labels, entry.label_counts)
        classes = names_by_count(dataset.y, entry.class_counts)
        dataset = replace(dataset, name=entry.name, label_names=labels, class_names=classes)
    wanted = features or (entry.features if entry else dataset.features)
    if wanted == "labels" and features is None and (dataset.node_labels is None or dataset.node_columns is not None):
        wanted = dataset.features  # somebody's own data under the name of one of the paper's sets
    return dataset if wanted == dataset.features else dataset.with_features(wanted)


def _show_notes(dataset: GraphDataset) -> None:
    for note in dataset.notes:
        warnings.warn(note, DataNote, stacklevel=3)


def _from_memory(
    source: Any,
    features: Features | None,
    smiles: str | None,
    target: str | Sequence[str] | None,
    task: Task | None,
    threshold: float | None,
    directed: bool,
    attributes: Mapping[str, tuple[str, ...] | None],
) -> GraphDataset:
    """What is no file; the options are those of `load_dataset`."""
    is_table = hasattr(source, "columns")
    of_files = {"threshold": threshold, **({} if is_table else {"smiles": smiles, "target": target})}
    if given := [name for name, value in of_files.items() if value is not None]:
        raise SettingError(f"{given[0]} is for tables and files, and this is a {type(source).__name__}")
    chosen = {
        name: (names if len(names) > 1 else next(iter(names), None))
        for name, names in attributes.items()
        if names is not None
    }
    graphs = graph_column(source) if is_table and smiles is None else None
    if chosen and graphs is None and (is_table or isinstance(source, GraphDataset)):
        raise SettingError(f"{next(iter(chosen))} is for graphs, and this is a {type(source).__name__}")
    if graphs is not None:
        return read_graph_frame(source, graphs, target, task, features=features, directed=directed, **chosen)
    if is_table:
        if directed:
            raise SettingError("the bonds of molecules have no directions")
        dataset = read_dataframe(source, smiles, target, task)
        return dataset if features in (None, dataset.features) else dataset.with_features(features)
    if isinstance(source, GraphDataset):
        if task is not None or directed:
            raise SettingError(f"{source.name} is a data set already: task and directed are chosen where it is made")
        return source if features in (None, source.features) else source.with_features(features)
    if isinstance(source, Mapping) or not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
        raise DataError(f"{ACCEPTED}, not {type(source).__name__}")
    return from_graphs(source, features, task, directed, **chosen)


def _names(names: str | Sequence[str] | None, option: str) -> tuple[str, ...] | None:
    """A list of names, which may be empty, or those in a text with commas between them."""
    if names is None:
        return None
    listed = names.split(",") if isinstance(names, str) else names
    is_list = isinstance(listed, list | tuple) and all(isinstance(name, str) for name in listed)
    found = tuple(dict.fromkeys(name.strip() for name in listed)) if is_list else ("",)
    if not all(found):
        raise SettingError(f"{option} names an attribute, or several with commas between them, not {names!r}")
    return found


def _read(layout: Layout, place: str) -> GraphDataset:
    """Parses the files, and keeps what was parsed."""
    if place == "cache" and not is_intact(layout.root):
        raise DataError(f"{layout.root}: has changed since it was downloaded; delete it to download it again")
    signature = parsed_cache.signature(layout)
    dataset = read_large_tu(layout) or read_layout(layout)
    if parsed_cache.signature(layout) != signature:
        raise DataError(f"{layout.root}: was changed while it was read; load it again")
    parsed_cache.save(layout, dataset, signature)
    return dataset


def check_features(features: str | None) -> Features | None:
    """A word as one of the features, or an error that names them."""
    words = get_args(Features)
    if features is not None and features not in words:
        raise SettingError(f"features is one of {', '.join(words)}, not {features!r}")
    return features  # type: ignore[return-value]
