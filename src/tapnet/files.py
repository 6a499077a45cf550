"""Files: written whole or not at all, names that are safe to print, and the folder of the caches."""

from __future__ import annotations

import glob
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tapnet.errors import DataError, TapnetError

ABANDONED = 3600  # seconds without a change, after which the writer of a part must have been killed


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes ``file`` when the block ends well, and nothing when it does not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove(file.parent.glob(".partial-*"), age=ABANDONED)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=_prefix(file), suffix=file.suffix)
    os.close(handle)
    partial = Path(temporary)
    try:
        with partial.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        partial.chmod(0o666 & ~_umask())  # mkstemp's files are for their owner alone
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def write_atomically(file: Path, content: bytes) -> None:
    """Writes a file that is whole or not there; a TapnetError says in one sentence what prevents it."""
    try:
        with replacing(file) as out:
            out.write(content)
    except OSError as error:
        raise TapnetError(f"{file}: cannot be written ({error.strerror or error})") from None


def remove_partial_files(file: Path) -> None:
    """Removes what killed programs had written of a file. Only for a caller who knows that no other writes it now."""
    _remove(file.parent.glob(glob.escape(_prefix(file)) + "*"), age=0)


def _prefix(file: Path) -> str:
    return f".partial-{file.stem[:16]}-"


def _remove(parts: Iterator[Path], age: float) -> None:
    for part in parts:
        with suppress(OSError):
            if time.time() - part.stat().st_mtime >= age:
                part.unlink()


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# ---- names and kinds of files ----

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def printable(text: object) -> str:
    r"""The text in one line, with control characters and the like as escapes such as \x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def check_name(name: object) -> None:
    """Raises a DataError for a name with control characters: names stand in messages, which a terminal shows."""
    if _CONTROL.search(str(name)):
        raise DataError(f"{printable(name)}: a name with control characters in it, which is not read for safety")


def path_exists(path: Path) -> bool:
    """``path.exists()``, and False where the name cannot be one of a file."""
    with suppress(OSError):  # for a name too long for a file, for one
        return path.exists()
    return False


def is_special_file(path: Path) -> bool:
    """Whether it is a pipe, a device or a socket, which may block whoever opens it."""
    return path_exists(path) and not (path.is_file() or path.is_dir())


# ---- the cache ----


def cache_dir() -> Path:
    """The folder of downloads, parsed copies and what was computed once: TAPNET_CACHE, or the user's cache folder."""
    if chosen := os.environ.get("TAPNET_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("tapnet", appauthor=False)
