"""Parsed copies of data sets, so that a text file is parsed once: one .npz a data set, replaced when it changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.data.sources import cache_dir

LAYOUT = 1  # to be raised when what is stored, or how files are parsed, changes

_ARRAYS = [f.name for f in fields(GraphDataset) if "Tensor" in str(f.type)]
_WORDS = [f.name for f in fields(GraphDataset) if f.name not in _ARRAYS]


def load(source: Path) -> GraphDataset | None:
    """The parsed copy of these files, if there is one and the files have not changed since."""
    try:
        with np.load(_place(source), allow_pickle=False) as stored:
            words = json.loads(stored["words"].tobytes())
            if words.pop("signature") != _signature(source):
                return None
            arrays: dict[str, Any] = {key: torch.from_numpy(stored[key]) for key in _ARRAYS if key in stored}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # not there, or damaged: parse again
    return GraphDataset(**arrays, **{key: _tuples(value) for key, value in words.items()})


def save(source: Path, dataset: GraphDataset) -> None:
    """To a temporary name, then renamed. A cache that cannot be written is no reason to fail."""
    words = {key: getattr(dataset, key) for key in _WORDS} | {"signature": _signature(source)}
    arrays: dict[str, Any] = {key: getattr(dataset, key).numpy() for key in _ARRAYS if _is_tensor(dataset, key)}
    arrays["words"] = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
    place = _place(source)
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".partial-")
        try:
            with os.fdopen(handle, "wb") as out:
                np.savez(out, **arrays)
            Path(temporary).replace(place)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _is_tensor(dataset: GraphDataset, key: str) -> bool:
    return isinstance(getattr(dataset, key), Tensor)


def _place(source: Path) -> Path:
    digest = hashlib.blake2b(str(source.resolve()).encode(), digest_size=8).hexdigest()
    return cache_dir() / "parsed" / f"{source.stem}-{digest}.npz"


def _signature(source: Path) -> list[Any]:
    """Changes whenever a file of the data set is written."""
    files = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
    stats = [(file, file.stat()) for file in files]
    return [
        LAYOUT,
        *([str(file.relative_to(source)), stat.st_size, stat.st_mtime_ns] for file, stat in stats),
    ]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
