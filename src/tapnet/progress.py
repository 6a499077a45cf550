"""Progress on a terminal, silence elsewhere. Always on standard error: standard output is for results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, Protocol, cast

CHUNK_BYTES = 1 << 18
LONG_BYTES = 1 << 25  # reading this much takes about a second


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def on_terminal() -> bool:
    return sys.stderr.isatty()


def copy_with_progress(source: _Readable, target: IO[bytes], total: int | None, title: str) -> int:
    """Copies all of source to target and returns the number of bytes."""
    if not on_terminal():
        return _copy(source, target, lambda _: None)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        return _copy(source, target, lambda n: progress.advance(task, n))


def _copy(source: _Readable, target: IO[bytes], advance: Callable[[int], None]) -> int:
    copied = 0
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
        advance(len(chunk))
        copied += len(chunk)
    return copied


@contextmanager
def track_reading(source: IO[bytes], total: int, title: str) -> Iterator[IO[bytes]]:
    """The same stream, with a bar that follows what is read of it, where it is long enough to wait for."""
    if total < LONG_BYTES or not on_terminal():
        with source:
            yield source
        return
    from rich.console import Console
    from rich.progress import wrap_file

    console = Console(stderr=True)
    with wrap_file(cast(BinaryIO, source), total, description=title, console=console, transient=True) as wrapped:
        yield wrapped


@contextmanager
def working(title: str) -> Iterator[None]:
    """A sign of life for work whose end cannot be foreseen."""
    if not on_terminal():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield


@contextmanager
def counting(total: int, title: str) -> Iterator[Callable[[int], None]]:
    """A bar for work of so many items, moved on by what is yielded; gone when it is done."""
    if not on_terminal():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda n: progress.advance(task, n)
