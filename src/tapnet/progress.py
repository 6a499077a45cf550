"""Progress on a terminal, silence elsewhere. Always on standard error: standard output is for results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import IO, BinaryIO, Protocol, cast

CHUNK_BYTES = 1 << 18


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def on_terminal() -> bool:
    return sys.stderr.isatty()


def copy_with_progress(source: _Readable, target: BinaryIO, total: int | None, title: str) -> int:
    """Copies all of source to target and returns the number of bytes."""
    if not on_terminal():
        return _copy(source, target, lambda _: None)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        return _copy(source, target, lambda n: progress.advance(task, n))


def _copy(source: _Readable, target: BinaryIO, advance: Callable[[int], None]) -> int:
    copied = 0
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
        advance(len(chunk))
        copied += len(chunk)
    return copied


def read_with_progress(source: IO[bytes], total: int, title: str) -> IO[bytes]:
    """The same stream, with a bar that follows what is read of it, where it is long enough to wait for."""
    if total < 1 << 25 or not on_terminal():
        return source
    from rich.console import Console
    from rich.progress import wrap_file

    wrapped = wrap_file(cast(BinaryIO, source), total, description=title, console=Console(stderr=True), transient=True)
    return wrapped.__enter__()  # ends with the stream: closing it is closing this
