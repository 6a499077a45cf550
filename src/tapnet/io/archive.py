"""Files on disk or in a .zip archive: an archive is checked before anything is read from it."""

from __future__ import annotations

import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from weakref import WeakKeyDictionary

from tapnet.errors import DataError
from tapnet.files import check_name, printable

Place = Path | zipfile.Path  # a folder or file, on disk or in an archive

# The largest data set of the field unpacks to a few GB; an archive that claims more, or that shrank its text more
# than text shrinks, is not a data set.
MAX_UNPACKED_BYTES = 64 << 30
MAX_COMPRESSION, ALWAYS_BEARABLE_BYTES = 200, 1 << 24
MAX_DIRECTORY_BYTES = 1 << 24  # of the list of its entries, which is read as a whole
SMALL_BYTES = 1 << 16  # what is asked of a file first: memory for all that it may have is slow to get
MAX_ENTRIES, MAX_DEPTH, MAX_NAME = 100_000, 10, 1_000  # folders within folders; characters

# The names directly in each folder of an open archive: zipfile goes through all entries for each folder.
_children: WeakKeyDictionary[zipfile.ZipFile, dict[str, list[str]]] = WeakKeyDictionary()

# What the standard library raises for a damaged file or archive.
_DAMAGED = (UnicodeDecodeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
UNREADABLE = (*_DAMAGED, NotImplementedError, EOFError, OSError)


def open_archive(path: Path) -> zipfile.Path:
    """Opens an archive after a check of its entries.

    Args:
        path: The .zip file.

    Returns:
        The archive as a folder.

    Raises:
        DataError: It is damaged or encrypted, an entry leaves the folder, or it has more, deeper or larger entries
            than a data set has.
    """
    try:
        with _DirectoryReader(io.FileIO(path)) as file:
            entries = len(zipfile.ZipFile(file).infolist())
        if entries > MAX_ENTRIES:
            raise DataError(f"{path}: {entries:,} entries; at most {MAX_ENTRIES:,} are read")
        archive = zipfile.ZipFile(path)
    except DataError:
        raise
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise DataError(f"{path}: not a readable .zip archive, or cut off ({error})") from None
    unpacked = 0
    inside: dict[str, dict[str, None]] = {}  # a folder → the names in it
    for entry in archive.infolist():
        if not entry.filename:
            raise DataError(f"{path}: an entry without a name; the archive is not opened")
        if len(entry.filename) > MAX_NAME or entry.filename.count("/") + entry.filename.count("\\") > MAX_DEPTH:
            limits = f"at most {MAX_NAME:,} characters, {MAX_DEPTH} folders deep"
            raise DataError(f"{path}: the path of the entry {printable(entry.filename):.60}… is too long ({limits})")
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if ".." in parts or entry.filename.startswith(("/", "\\")) or (parts and parts[0].endswith(":")):
            raise DataError(f"{path}: the entry {entry.filename!r} leaves the folder; the archive is not opened")
        check_name(f"{path}/{entry.filename}")
        if entry.flag_bits & 1:
            raise DataError(f"{path}: the entry {entry.filename!r} is encrypted")
        unpacked += entry.file_size
        for depth in range(len(parts)):
            inside.setdefault("".join(f"{part}/" for part in parts[:depth]), {})[parts[depth]] = None
        entry.filename = "/".join(parts) + "/" * entry.is_dir()  # as unzip reads NAME//NAME_A.txt and ./NAME_A.txt
    _children[archive] = {folder: list(names) for folder, names in inside.items()}
    archive.NameToInfo = {entry.filename: entry for entry in archive.infolist()}
    bearable = max(ALWAYS_BEARABLE_BYTES, MAX_COMPRESSION * path.stat().st_size)
    if unpacked > min(MAX_UNPACKED_BYTES, bearable):
        raise DataError(f"{path}: unpacks to {unpacked / 1e9:.1f} GB from {path.stat().st_size / 1e6:.1f} MB: refused")
    return zipfile.Path(archive)


class _DirectoryReader(io.BufferedReader):
    """A file of which no more is read at once than the list of entries may have, whatever size it claims."""

    def read(self, size: int | None = -1) -> bytes:
        """As ever, but for the limit."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"its list of entries has {size / 1e6:.1f} MB")
        return super().read(size)


def children(folder: Place) -> list[Place]:
    """The files and folders directly in a folder."""
    if isinstance(folder, Path):
        return list(folder.iterdir())
    return [folder / name for name in _children[folder.root].get(folder.at, ())]


def readable_files(folder: Place, wanted: Callable[[str], bool]) -> list[str]:
    """The names of the files in a folder for which ``wanted`` is true."""
    if isinstance(folder, Path):
        with os.scandir(folder) as entries:  # no Path and no stat for each of many files
            files = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries if wanted(entry.name)}
        for name in files:
            check_name(f"{folder}{os.sep}{name}")
        return [name for name, plain in files.items() if plain or (folder / name).is_file()]
    found = [child for child in children(folder) if wanted(child.name)]
    for child in found:
        check_name(child)
    return [child.name for child in found if child.is_file()]


def subfolders(folder: Place) -> list[Place]:
    """The folders directly in a folder."""
    if isinstance(folder, Path):
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if not entry.is_file(follow_symlinks=False)]
        return [folder / name for name in names if (folder / name).is_dir()]
    return [child for child in children(folder) if child.is_dir()]


def file_size(file: Place) -> int:
    """Bytes of a file, in an archive those that it unpacks to."""
    return file.stat().st_size if isinstance(file, Path) else file.root.getinfo(file.at).file_size


def total_size(folder: Place, names: Iterable[str]) -> int:
    """Bytes of files of a folder."""
    if isinstance(folder, Path):  # no Path for each of many files
        return sum(os.stat(f"{folder}{os.sep}{name}").st_size for name in names)  # noqa: PTH116
    return sum(file_size(folder / name) for name in names)


def read_content(file: Place, limit: int = -1) -> bytes:
    """The first ``limit`` bytes of a file, or all of them."""
    try:
        with file.open("rb") as stream:
            start = stream.read(SMALL_BYTES if limit < 0 else min(limit, SMALL_BYTES))
            return start if len(start) < SMALL_BYTES else start + stream.read(limit - len(start) if limit > 0 else -1)
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
