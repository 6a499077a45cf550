"""What some models compute once for a data set (receptive fields, clusters, kernels), cached part by part."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet._loops.ranges import concatenated_ranges, offsets
from tapnet.files import cache_dir
from tapnet.io.sealed_arrays import read_arrays, write_arrays
from tapnet.machine import is_reproducible
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
    fits: Callable[[Mapping[str, PerItem]], bool] = lambda _: True,
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
        fits: Whether arrays can be those of the items, for what is used as an index; if not, all are computed again.

    Returns:
        The arrays of all items, by name.
    """
    arithmetic = {"reproducible": True} if is_reproducible() else {}  # with other last digits
    words = json.dumps([name, data, items, {**settings, **arithmetic}], sort_keys=True)
    folder = cache_dir() / "prepared" / f"{name}-{hashlib.blake2b(words.encode(), digest_size=8).hexdigest()}"

    def gather(use_cache: bool) -> list[dict[str, Any]]:
        parts = []
        with counting(items, title) as advance:
            for start in range(0, items, at_once):
                stop = min(start + at_once, items)
                file = folder / f"{start:07d}.npz"
                part = _load(file, stop - start) if use_cache else None
                if part is None:
                    part = _joined([compute(i) for i in range(start, stop)])
                    with contextlib.suppress(OSError):
                        write_arrays(file, part, compressed=True)
                parts.append(part)
                advance(stop - start)
        return parts

    parts = gather(use_cache=True)
    try:
        found = _by_name(parts)
        if fits(found):
            return found
    except (LookupError, TypeError, ValueError, RuntimeError):
        pass  # parts of somebody else, which do not go together
    return _by_name(gather(use_cache=False))


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
    part = read_arrays(file)
    if part is None:
        return None
    for key in [key for key in part if key.startswith("values ")]:
        count = part.get(f"count {key.removeprefix('values ')}")
        if count is None or count.shape != (items,) or count.dtype != np.int64 or (count < 0).any():
            return None  # of another at_once: compute again
        if part[key].shape != (count.sum(),):
            return None
    return part
