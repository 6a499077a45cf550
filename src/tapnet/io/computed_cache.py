"""What some models compute once for a data set (receptive fields, clusters, kernels), cached part by part."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet._loops.ranges import concatenated_ranges, offsets
from tapnet.files import cache_dir, replacing
from tapnet.progress import counting

AT_ONCE = 64  # items between two writes: what a kill can lose


@dataclass(frozen=True)
class PerItem:
    """An array for each item (each graph, say), of any length, all in one."""

    values: Tensor
    ptr: Tensor  # [items + 1] int64: item i has values[ptr[i]:ptr[i+1]]

    def of(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """The values of these items, one after another, and where each one's begin."""
        count = self.ptr.diff().index_select(0, items)
        return self.values[concatenated_ranges(self.ptr.index_select(0, items), count)], offsets(count)


def computed_once(
    name: str,
    data: str,
    settings: Mapping[str, Any],
    items: int,
    compute: Callable[[int], Mapping[str, Array]],
    title: str,
    at_once: int = AT_ONCE,
) -> dict[str, PerItem]:
    """Computes arrays for each item, or reads them from the cache.

    They are written in parts as they are done: a run that was killed continues after the last part, and another process
    finds what is there.

    Args:
        name: What is computed.
        data: The checksum of the data.
        settings: What else the arrays depend on.
        items: The number of items.
        compute: The arrays of item i, by name.
        title: The title of the progress bar.
        at_once: The items of a part.

    Returns:
        The arrays of all items, by name.
    """
    words = json.dumps([name, data, items, dict(settings)], sort_keys=True)
    folder = cache_dir() / "prepared" / f"{name}-{hashlib.blake2b(words.encode(), digest_size=8).hexdigest()}"
    parts = []
    with counting(items, title) as advance:
        for start in range(0, items, at_once):
            stop = min(start + at_once, items)
            file = folder / f"{start:07d}.npz"
            part = _load(file, stop - start)
            if part is None:
                part = _joined([compute(i) for i in range(start, stop)])
                with contextlib.suppress(OSError), replacing(file) as out:
                    np.savez_compressed(out, **part)
            parts.append(part)
            advance(stop - start)
    return _by_name(parts)


def computed_now(items: int, compute: Callable[[int], Mapping[str, Array]]) -> dict[str, PerItem]:
    """``computed_once`` without the cache."""
    return _by_name([_joined([compute(i) for i in range(items)])])


def _by_name(parts: list[dict[str, Any]]) -> dict[str, PerItem]:
    def joined(key: str) -> Tensor:
        return torch.from_numpy(np.concatenate([part[key] for part in parts]))

    names = [key.removeprefix("values ") for key in (parts[0] if parts else {}) if key.startswith("values ")]
    return {key: PerItem(joined(f"values {key}"), offsets(joined(f"count {key}"))) for key in names}


def _joined(items: list[Mapping[str, Array]]) -> dict[str, Any]:
    part: dict[str, Any] = {}
    for key in items[0]:
        part[f"values {key}"] = np.concatenate([item[key].ravel() for item in items])
        part[f"count {key}"] = np.array([item[key].size for item in items], dtype=np.int64)
    return part


def _load(file: Path, items: int) -> dict[str, Any] | None:
    try:
        with np.load(file, allow_pickle=False) as stored:
            part = {key: stored[key] for key in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None  # not there, or damaged: compute again
    counts = [count for key, count in part.items() if key.startswith("count ")]
    return part if all(len(count) == items for count in counts) else None  # of another at_once: compute again
