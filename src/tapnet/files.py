"""Writing files so that they are whole or not there: to a temporary name, flushed to the disk, then renamed."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tapnet.errors import TapnetError

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
    """The file is whole or it is not there; what prevents it is said in one sentence."""
    try:
        with replacing(file) as out:
            out.write(content)
    except OSError as error:
        raise TapnetError(f"{file}: cannot be written ({error.strerror or error})") from None


def remove_partial_files(file: Path) -> None:
    """What programs that were killed had written of a file, for one who knows that no other is writing it now."""
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
