"""`load_dataset`: from a name or a path to a GraphDataset."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import get_args

from tapnet.data.catalog import class_names, find_entry, label_names
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import SettingError
from tapnet.io import formats
from tapnet.io import locate as sources
from tapnet.io import parsed_cache as cache


def load_dataset(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    *,
    features: Features | None = None,
    download: bool = True,
) -> GraphDataset:
    """A data set by name (``"MUTAG"``) or path (a TU folder, a .zip of one, a one-file text, a folder of graphs).

    A name is looked up in ``data_dir`` or the folder TAPNET_DATA, among the files of GraKeL, in the user's
    cache, and last downloaded into it. ``features`` chooses what ``x`` holds: ``"labels"`` (node labels as
    integer categories), ``"degrees"`` (distinct degrees as integer categories) or ``"attributes"`` (floats);
    by default what the paper uses, and for sets that it does not use, labels if there are any, else degrees.
    """
    layout, place = sources.find(name_or_path, data_dir, download=download)
    dataset = cache.load(layout)
    if dataset is None:
        signed = cache.signature(layout)
        dataset = formats.read_layout(layout)
        cache.save(layout, dataset, signed)
    for note in dataset.notes:  # of a parsed copy, too: what is left out is left out again
        warnings.warn(note, stacklevel=2)
    dataset = replace(dataset, source=str(layout.root), place=place)
    entry = find_entry(layout.prefix) if place == "path" else find_entry(str(name_or_path))
    if entry is not None:
        dataset = replace(
            dataset, name=entry.name, label_names=label_names(dataset, entry), class_names=class_names(dataset, entry)
        )
    wanted = features or (entry.features if entry else dataset.features)
    if wanted == "labels" and features is None and dataset.node_labels is None:
        wanted = dataset.features  # somebody's own data under the name of one of the paper's sets
    return dataset if wanted == dataset.features else dataset.with_features(wanted)


def check_features(features: str | None) -> Features | None:
    """A word as one of the features, or an error that names them."""
    words = get_args(Features)
    if features is not None and features not in words:
        raise SettingError(f"features is one of {', '.join(words)}, not {features!r}")
    return features  # type: ignore[return-value]
