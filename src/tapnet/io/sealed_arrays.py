"""Arrays in an .npz file with a checksum of their names, types, shapes and content: whole, or not read at all."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from xxhash import xxh3_128

from tapnet._loops.jit import Array
from tapnet.files import open_regular, replacing

CHECKSUM = "checksum"
MAX_COMPRESSION, ALWAYS_BEARABLE_BYTES = 200, 1 << 24  # more than this is not what was written


def write_arrays(file: Path, arrays: Mapping[str, Array], *, compressed: bool = False) -> None:
    """Writes the arrays, whole or not at all; an OSError where that cannot be done."""
    write: Any = np.savez_compressed if compressed else np.savez
    with replacing(file) as out:
        write(out, **arrays, **{CHECKSUM: _checksum(arrays)})  # before NumPy 2.1 allow_pickle would be an array's name


def read_arrays(file: Path) -> dict[str, Array] | None:
    """The arrays; None where there is no such file, or it is not what was written."""
    try:
        with open_regular(file) as stream:
            with zipfile.ZipFile(stream) as archive:
                unpacked = sum(entry.file_size for entry in archive.infolist())
            if unpacked > max(ALWAYS_BEARABLE_BYTES, MAX_COMPRESSION * os.fstat(stream.fileno()).st_size):
                return None
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        found = arrays.pop(CHECKSUM)
        return arrays if np.array_equal(found, _checksum(arrays)) else None
    except Exception:  # not there, or whatever a damaged file makes NumPy raise
        return None


def _checksum(arrays: Mapping[str, Array]) -> Array:
    content = xxh3_128()  # at the speed of memory; it is against damage, and what is believed is checked besides
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(repr((name, array.dtype.str, arrays[name].shape)).encode())
        content.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(content.digest(), dtype=np.uint8)
