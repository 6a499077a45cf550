"""Parsed copies of data sets, so that a file is parsed once: one .npz per data set, replaced when a file changes.

The arrays of a large copy are mapped, not loaded (``tapnet.io.sealed_arrays``): what is used of them is read from the
file when it is used. They cannot be written to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from tapnet.data.dataset import Features, GraphDataset
from tapnet.data.features import MixedFeatures
from tapnet.data.structure import check_structure
from tapnet.files import cache_dir
from tapnet.io.dataset_files import Layout
from tapnet.io.sealed_arrays import read_arrays, write_arrays

VERSION = 12  # to be raised when what is stored, or how files are parsed, changes

_ARRAYS = [f.name for f in fields(GraphDataset) if "Tensor" in str(f.type)]
_NOT_STORED = ("prepared", "edge_attr", "splits")  # what no reader of files with a parsed copy gives
_WORDS = [f.name for f in fields(GraphDataset) if f.name not in (*_ARRAYS, *_NOT_STORED)]


def load(layout: Layout) -> GraphDataset | None:
    """The parsed copy of these files, if there is one, it is whole and the files have not changed since."""
    arrays = read_arrays(_file(layout))
    if arrays is None:
        return None
    try:
        words = json.loads(arrays.pop("words").tobytes())
        if words.pop("signature") != signature(layout) or words["name"] != layout.prefix:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mapped array cannot be written to
            values: dict[str, Any] = {key: torch.from_numpy(array) for key, array in arrays.items()}
        values |= {key: _tuples(value) for key, value in words.items()}
        _check_words(values)
        dataset = GraphDataset(**values)
        check_structure(dataset)
        return dataset.with_features("all") if dataset.features == "all" else dataset
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # made by somebody else: parse again


def save(layout: Layout, dataset: GraphDataset, signed: list[Any]) -> None:
    """Keeps a parsed copy. ``signed`` is the signature from before the files were read. Failures are ignored."""
    features = dataset.features
    if isinstance(dataset.x, MixedFeatures):  # made again of labels and attributes, which are stored
        dataset = dataset.with_features("labels")
    words = {key: getattr(dataset, key) for key in _WORDS} | {"signature": signed, "features": features}
    arrays: dict[str, Any] = {key: array.numpy() for key in _ARRAYS if (array := getattr(dataset, key)) is not None}
    arrays["words"] = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
    with contextlib.suppress(OSError):
        write_arrays(_file(layout), arrays)


def _file(layout: Layout) -> Path:
    place = os.fsencode(f"{layout.root.resolve()} {layout.prefix}")
    name = hashlib.blake2b(place, digest_size=8).hexdigest()
    return cache_dir() / "parsed" / f"{layout.prefix[:32]}-{name}.npz"


def signature(layout: Layout) -> list[Any]:
    """Changes whenever a file of the data set is written, even if its size and the time of its content stay the same.

    Raises:
        OSError: A file of the data set is not there any more, or cannot be looked at.
    """
    stats = [(file.name, file.stat()) for file in layout.files()]
    return [VERSION, *([name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for name, s in stats)]


def _check_words(values: dict[str, Any]) -> None:
    """Raises a TypeError for what no reader gives."""
    hash(tuple(values[key] for key in _WORDS if key != "graph_columns"))
    columns = values["graph_columns"] or {}
    if not all(len(cells) == len(values["node_ptr"]) - 1 for cells in columns.values()):
        raise TypeError("a column of the graphs has another length")
    lists = ("notes", "label_names", "class_names", "attribute_names", "edge_attribute_names", "graph_names")
    names = [values[key] or () for key in (*lists, "node_columns", "edge_columns")] + list(columns.values())
    single = (values[key] or "" for key in ("label_attribute", "edge_label_attribute"))
    texts = [*single, *(name for some in names for name in some)]
    if not all(isinstance(text, str) for text in texts) or values["features"] not in get_args(Features):
        raise TypeError("not the words of a data set")


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(v) for key, v in value.items()}
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
