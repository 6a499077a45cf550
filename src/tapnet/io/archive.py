"""Files on disk or in a .zip archive: an archive is checked before anything is read from it."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tapnet.errors import DataError
from tapnet.files import check_name

Place = Path | zipfile.Path  # a folder or file, on disk or in an archive

# The largest data set of the field unpacks to a few GB; an archive that claims more, or that shrank its text more
# than text shrinks, is not a data set.
MAX_UNPACKED_BYTES = 64 << 30
MAX_COMPRESSION, ALWAYS_BEARABLE_BYTES = 200, 1 << 24


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
        DataError: It is damaged or encrypted, an entry leaves the folder, or it unpacks to more than a data set has.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise DataError(f"{path}: not a readable .zip archive, or cut off ({error})") from None
    unpacked = 0
    for entry in archive.infolist():
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if ".." in parts or entry.filename.startswith(("/", "\\")) or (parts and parts[0].endswith(":")):
            raise DataError(f"{path}: the entry {entry.filename!r} leaves the folder; the archive is not opened")
        check_name(f"{path}/{entry.filename}")
        if entry.flag_bits & 1:
            raise DataError(f"{path}: the entry {entry.filename!r} is encrypted")
        unpacked += entry.file_size
        entry.filename = "/".join(parts) + "/" * entry.is_dir()  # as unzip reads NAME//NAME_A.txt and ./NAME_A.txt
    archive.NameToInfo = {entry.filename: entry for entry in archive.infolist()}
    bearable = max(ALWAYS_BEARABLE_BYTES, MAX_COMPRESSION * path.stat().st_size)
    if unpacked > min(MAX_UNPACKED_BYTES, bearable):
        raise DataError(f"{path}: unpacks to {unpacked / 1e9:.1f} GB from {path.stat().st_size / 1e6:.1f} MB: refused")
    return zipfile.Path(archive)


def readable_files(folder: Place, wanted: Callable[[str], bool]) -> list[str]:
    """The names of the files in a folder for which ``wanted`` is true."""
    found = [child for child in folder.iterdir() if wanted(child.name)]
    for child in found:
        check_name(child)
    return [child.name for child in found if child.is_file()]


def read_content(file: Place, limit: int = -1) -> bytes:
    """The first ``limit`` bytes of a file, or all of them."""
    try:
        with file.open("rb") as stream:
            return stream.read(limit)
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
