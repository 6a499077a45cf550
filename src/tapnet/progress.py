"""Progress on a terminal, silence elsewhere. Always on standard error: standard output is for results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, BinaryIO, Literal, cast

CHUNK_BYTES = 1 << 18
LONG_BYTES = 1 << 25  # reading this much takes about a second


def on_terminal() -> bool:
    """Whether somebody watches."""
    return sys.stderr.isatty()


def is_interactive() -> bool:
    """Whether somebody sees a line on standard error: on a terminal, or in a notebook."""
    return on_terminal() or "ipykernel" in sys.modules


class DownloadBar:
    """A bar in the form that pooch moves: ``total`` is set when it is known, ``update`` adds what has arrived."""

    def __init__(self, progress: Any, title: str) -> None:
        self._progress, self._task, self.total = progress, progress.add_task(title, total=None), 0

    def update(self, size: int) -> None:
        """``size`` more bytes are there."""
        self._progress.update(self._task, advance=size, total=self.total or None)

    def reset(self) -> None:
        """pooch calls it when all is there, and then ``update`` with the total."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Nothing is left to do: the bar goes with the block of ``download_bar``."""


@contextmanager
def _bar(*columns: str) -> Iterator[Any]:
    """A bar with these columns of rich after its title, which disappears at the end."""
    from rich import console, progress

    shown = [progress.TextColumn("{task.description}"), *(getattr(progress, name)() for name in columns)]
    with progress.Progress(*shown, console=console.Console(stderr=True), transient=True) as bar:
        yield bar


@contextmanager
def download_bar(title: str) -> Iterator[DownloadBar | Literal[False]]:
    """A bar for a download; False, which is pooch's word for none, where nobody watches."""
    if not on_terminal():
        yield False
        return
    with _bar("BarColumn", "DownloadColumn", "TransferSpeedColumn") as progress:
        yield DownloadBar(progress, title)


def track_reading(source: IO[bytes], total: int, title: str) -> AbstractContextManager[IO[bytes]]:
    """The same stream, with a bar that follows what is read of it, where it is long enough to wait for."""
    if total < LONG_BYTES or not on_terminal():
        return source
    from rich.console import Console
    from rich.progress import wrap_file

    stream = cast(BinaryIO, source)
    return wrap_file(stream, total, description=title, console=Console(stderr=True), transient=True)


def working(title: str) -> AbstractContextManager[object]:
    """A spinner for work of unknown length."""
    if not on_terminal():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(title)


@contextmanager
def counting(total: int, title: str) -> Iterator[Callable[[int], None]]:
    """A bar for work of ``total`` items, advanced by the function that is yielded."""
    if not on_terminal():
        yield lambda _: None
        return
    with _bar("BarColumn", "MofNCompleteColumn", "TimeRemainingColumn") as progress:
        task = progress.add_task(title, total=total)
        yield lambda n: progress.advance(task, n)
