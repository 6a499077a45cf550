"""Parsed copies of data sets, so that a file is parsed once: one .npz per data set, replaced when a file changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tapnet.data.dataset import GraphDataset
from tapnet.files import cache_dir, replacing
from tapnet.io.dataset_files import Layout

VERSION = 6  # to be raised when what is stored, or how files are parsed, changes

_ARRAYS = [f.name for f in fields(GraphDataset) if "Tensor" in str(f.type)]
_WORDS = [f.name for f in fields(GraphDataset) if f.name not in _ARRAYS and f.name != "prepared"]


def load(layout: Layout) -> GraphDataset | None:
    """The parsed copy of these files, if there is one and the files have not changed since."""
    try:
        with np.load(_file(layout), allow_pickle=False) as stored:
            words = json.loads(stored["words"].tobytes())
            if words.pop("signature") != signature(layout):
                return None
            arrays: dict[str, Any] = {key: torch.from_numpy(stored[key]) for key in _ARRAYS if key in stored}
        return GraphDataset(**arrays, **{key: _tuples(value) for key, value in words.items()})
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None  # not there, damaged, or of another version: parse again


def save(layout: Layout, dataset: GraphDataset, signed: list[Any]) -> None:
    """Keeps a parsed copy. ``signed`` is the signature from before the files were read. Failures are ignored."""
    words = {key: getattr(dataset, key) for key in _WORDS} | {"signature": signed}
    arrays: dict[str, Any] = {key: array.numpy() for key in _ARRAYS if (array := getattr(dataset, key)) is not None}
    arrays["words"] = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
    with contextlib.suppress(OSError), replacing(_file(layout)) as out:
        np.savez(out, **arrays)


def _file(layout: Layout) -> Path:
    name = hashlib.blake2b(f"{layout.root.resolve()} {layout.prefix}".encode(), digest_size=8).hexdigest()
    return cache_dir() / "parsed" / f"{layout.prefix}-{name}.npz"


def signature(layout: Layout) -> list[Any]:
    """Changes whenever a file of the data set is written."""
    stats = [(file, file.stat()) for file in layout.files()]
    return [VERSION, *([file.name, stat.st_size, stat.st_mtime_ns] for file, stat in stats)]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
