"""Files: written whole or not at all, regular ones only, names that are safe to print, the folder of the caches."""

from __future__ import annotations

import glob
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tapnet.errors import DataError, SettingError, TapnetError

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be deleted anyway
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes ``file`` when the block ends well, and nothing when it does not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove_unclaimed(file.parent.glob(".partial-*"))
    claim, partial = _claimed_partial_file(file)
    try:
        with partial.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        partial.chmod(0o666 & ~_umask())  # mkstemp's files are for their owner alone
        partial.replace(file)
    finally:
        with suppress(OSError):
            partial.unlink()
        if claim is not None:
            os.close(claim)


def write_atomically(file: Path, content: bytes) -> None:
    """Writes a file that is whole or not there; a TapnetError says in one sentence what prevents it."""
    check_name(file)
    try:
        with replacing(file) as out:
            out.write(content)
    except OSError as error:
        raise TapnetError(f"{file}: cannot be written ({error.strerror or error})") from None


def remove_partial_files(file: Path) -> None:
    """Removes what killed programs had written of a file; what a living one is writing stays."""
    _remove_unclaimed(file.parent.glob(glob.escape(_prefix(file)) + "*"))


def _prefix(file: Path) -> str:
    return f".partial-{file.stem[:16]}-"


def _claimed_partial_file(file: Path) -> tuple[int | None, Path]:
    """A new file next to ``file``, and the lock on it, which the system releases when this process ends."""
    while True:
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=_prefix(file), suffix=file.suffix[:16])
        if fcntl is None:
            os.close(handle)
            return None, Path(temporary)
        with suppress(OSError):  # a file system without locks: nothing is ever removed there
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # else another program took it for a dead one's before it was locked
            return handle, Path(temporary)
        os.close(handle)


def _remove_unclaimed(parts: Iterable[Path]) -> None:
    """Removes files whose writers are dead: their locks can be taken."""
    for part in parts if fcntl is not None else ():
        with suppress(OSError), open_regular(part) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(stream.fileno()), part.lstat()):
                part.unlink()


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# ---- reading ----


class IrregularFileError(OSError):
    """A pipe, a device or a folder, which could block or never end, or more bytes than such a file has."""


@contextmanager
def open_regular(file: Path) -> Iterator[IO[bytes]]:
    """Opens a regular file for reading; an IrregularFileError for anything else."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IrregularFileError("not a regular file")
        yield stream


def read_regular(file: Path, limit: int) -> bytes:
    """The content of a regular file; an IrregularFileError for one of more than ``limit`` bytes."""
    with open_regular(file) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > limit:
            raise IrregularFileError(f"{size:,} bytes, which is more than such a file has")
        return stream.read(size)


@contextmanager
def reading(name: object) -> Iterator[None]:
    """Has what the system or the memory refuses while ``name`` is read said in one sentence.

    Raises:
        DataError: instead of an OSError or a MemoryError; the message names the file.
    """
    try:
        yield
    except TapnetError:
        raise
    except MemoryError:
        raise DataError(f"{name}: needs more memory than there is") from None
    except OSError as error:
        raise DataError(f"{error.filename or name}: cannot be read ({error.strerror or error})") from None


# ---- names and kinds of files ----

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def counted(number: int, what: str) -> str:
    """A number of things: ``1 graph``, ``2 graphs``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def printable(text: object) -> str:
    r"""The text in one line, with control characters and the like as escapes such as \x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def check_name(name: object) -> None:
    """Raises a DataError for a name with control characters: names stand in messages, which a terminal shows."""
    if _CONTROL.search(str(name)):
        raise DataError(f"{printable(name)}: a name with control characters in it, which is not used for safety")


def path_exists(path: Path) -> bool:
    """``path.exists()``, and False where the name cannot be one of a file."""
    with suppress(OSError):  # for a name too long for a file, for one
        return path.exists()
    return False


def is_special_file(path: Path) -> bool:
    """Whether it is a pipe, a device or a socket, which may block whoever opens it."""
    return path_exists(path) and not (path.is_file() or path.is_dir())


def expanded(path: str | Path) -> Path:
    """The path with the home folder for ``~``; a SettingError where no such user has one."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SettingError(f"{path}: there is no home folder of {Path(path).parts[0]}") from None


# ---- the cache ----


def cache_dir() -> Path:
    """The folder of downloads, parsed copies and what was computed once: TAPNET_CACHE, or the user's cache folder."""
    if chosen := os.environ.get("TAPNET_CACHE"):
        return expanded(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("tapnet", appauthor=False)
