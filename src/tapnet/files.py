"""Writing files so that they are whole or not there: to a temporary name, flushed to the disk, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes ``file`` when the block ends well, and nothing when it does not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".partial-", suffix=file.suffix)
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


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
