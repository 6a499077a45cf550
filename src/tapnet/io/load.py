"""``load_dataset``: from a name or a path to a GraphDataset."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from tapnet.data.catalog import find_entry, names_by_count
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.errors import DataError, SettingError
from tapnet.files import reading
from tapnet.io import parsed_cache
from tapnet.io.dataset_files import Layout
from tapnet.io.download import is_intact
from tapnet.io.locate import find
from tapnet.io.read import read_layout
from tapnet.io.tu_parts import read_large_tu


def load_dataset(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    *,
    features: Features | None = None,
    download: bool = True,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    threshold: float | None = None,
    directed: bool = False,
) -> GraphDataset:
    """Loads a data set by its name or from its files. What was parsed is cached.

    A name is looked up in ``data_dir`` or the folder TAPNET_DATA, in this package (MUTAG), in the user's cache, and is
    downloaded into it last.

    Args:
        name_or_path: A name such as ``"MUTAG"``, or a path: a TU folder, a .zip of one, a one-file text, a folder of
            graphs in GraphML or JSON, the file of one graph, a folder of matrices (.npy, .npz, .csv), or molecules
            (.csv or .tsv with SMILES, .smi, .sdf).
        data_dir: A folder with data sets (``NAME/``, ``NAME.zip`` or ``NAME.txt``).
        features: What ``x`` holds: ``"labels"`` (node labels as integer categories), ``"degrees"`` (distinct degrees
            as integer categories) or ``"attributes"`` (floats). By default what the paper uses, and for sets that it
            does not use, labels if there are any, else degrees; in the TU layout attributes before degrees.
        download: Whether to download a data set that is nowhere else.
        smiles: Of a table of molecules the column of SMILES, as :func:`tapnet.io.molecules.read_molecules` says.
        target: The target column of this table, or of the targets.csv of a folder of graphs or matrices; or several.
        task: What the target columns hold, where it is not what would be found.
        threshold: Of matrices: entries whose absolute value is not larger are no edges; by default zeros are none.
        directed: Whether edges keep their directions; by default an edge in one direction counts for both.

    Returns:
        The data set; ``dataset[i]`` is graph i as a PyG ``Data``.

    Raises:
        DatasetNotFoundError: There is no such data set.
        DownloadError: The download failed.
        DataError: A file is wrong; the message names the file and, where it can, the line.
        SettingError: ``data_dir`` is not a folder, or the data set has no such features.

    Example:
        >>> from tapnet import load_dataset
        >>> load_dataset("MUTAG")
        GraphDataset('MUTAG', graphs=188, nodes=3371, edges=3721, classes=2, labels=7)
    """
    with reading(name_or_path):
        layout, place = find(name_or_path, data_dir, download=download)
        options = {"smiles": smiles, "target": target, "task": task, "threshold": threshold}
        if layout.kind == "molecules" or directed or any(given is not None for given in options.values()):
            dataset = read_layout(layout, directed=directed, **options)  # type: ignore[arg-type]
        else:
            dataset = parsed_cache.load(layout) or _read(layout, place)
    for note in dataset.notes:  # of a parsed copy, too: what is left out is left out again
        warnings.warn(note, stacklevel=2)
    dataset = replace(dataset, source=str(layout.root), place=place)
    entry = find_entry(layout.prefix) if place == "path" else find_entry(str(name_or_path))
    if layout.kind in ("molecules", "matrices") or dataset.task != "classification":
        entry = None
    if entry is not None:
        labels = names_by_count(dataset.node_labels, entry.label_counts)
        classes = names_by_count(dataset.y, entry.class_counts)
        dataset = replace(dataset, name=entry.name, label_names=labels, class_names=classes)
    wanted = features or (entry.features if entry else dataset.features)
    if wanted == "labels" and features is None and dataset.node_labels is None:
        wanted = dataset.features  # somebody's own data under the name of one of the paper's sets
    return dataset if wanted == dataset.features else dataset.with_features(wanted)


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
