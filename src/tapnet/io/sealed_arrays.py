"""Arrays in an .npz file with a checksum of their names, types, shapes and content: whole, or not read at all.

Large files are mapped instead of loaded: their arrays are read-only and take no memory of the process.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from xxhash import xxh3_128

from tapnet._loops.jit import Array
from tapnet.files import open_regular, replacing

CHECKSUM = "checksum"
MAX_COMPRESSION, ALWAYS_BEARABLE_BYTES = 200, 1 << 24  # more than this is not what was written
MAPPED_BYTES = 1 << 29  # files of at least so many bytes are mapped,
MAPPED_ARRAY_BYTES = 1 << 20  # their arrays of at least so many; smaller ones are loaded
ALIGNMENT = 64  # of an array in the file: a cache line, and what the widest loads want
PADDING = 0xD935  # the extra field that fills a zip's header up


def write_arrays(file: Path, arrays: Mapping[str, Array], *, compressed: bool = False) -> None:
    """Writes the arrays, whole or not at all; an OSError where that cannot be done."""
    sealed = {**arrays, CHECKSUM: _checksum(arrays)}
    with replacing(file) as out:
        if compressed:
            write: Any = np.savez_compressed  # earlier NumPy takes allow_pickle for the name of an array
            write(out, **sealed)
        else:
            _write_aligned(out, sealed)


def _write_aligned(out: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """As ``np.savez``, with the content of every array where it can be mapped."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            # 30 bytes, the name, 20 for sizes of more than 32 bits, then this field; .npy's own header is a multiple
            room = -(out.tell() + 30 + len(entry.filename.encode()) + 20 + 4) % ALIGNMENT
            entry.extra = struct.pack("<HH", PADDING, room) + bytes(room)
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def read_arrays(file: Path) -> dict[str, Array] | None:
    """The arrays; None where there is no such file, or it is not what was written.

    All of it is compared with the checksum at every call. Of a mapped file that reads every byte once, in order.
    """
    try:
        with open_regular(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            with zipfile.ZipFile(stream) as archive:
                entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > max(ALWAYS_BEARABLE_BYTES, MAX_COMPRESSION * size):
                return None
            places = {entry.filename.removesuffix(".npy"): _place(stream, entry) for entry in entries}
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as stored:
                arrays = {}
                for name in stored.files:
                    at, dtype, shape = places[name]
                    large = size >= MAPPED_BYTES and math.prod(shape) * dtype.itemsize >= MAPPED_ARRAY_BYTES
                    mapped = large and at % ALIGNMENT == 0
                    arrays[name] = np.memmap(stream, dtype, "r", at, shape) if mapped else stored[name]
        found = arrays.pop(CHECKSUM)
        return arrays if np.array_equal(found, _checksum(arrays)) else None
    except Exception:  # not there, or whatever a damaged file makes NumPy raise
        return None


def _place(stream: IO[bytes], entry: zipfile.ZipInfo) -> tuple[int, np.dtype[np.generic], tuple[int, ...]]:
    """Where the content of a stored array begins, its type and shape; an odd place for what cannot be mapped."""
    if entry.compress_type != zipfile.ZIP_STORED:
        return 1, np.dtype(np.uint8), ()
    stream.seek(entry.header_offset + 26)
    name, extra = struct.unpack("<HH", stream.read(4))
    stream.seek(name + extra, os.SEEK_CUR)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        return 1, np.dtype(np.uint8), ()
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    return 1 if fortran or dtype.hasobject else stream.tell(), dtype, shape


def _checksum(arrays: Mapping[str, Array]) -> Array:
    content = xxh3_128()  # at the speed of memory; it is against damage, and what is believed is checked besides
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(repr((name, array.dtype.str, arrays[name].shape)).encode())
        content.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(content.digest(), dtype=np.uint8)
