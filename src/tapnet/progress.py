"""Progress on a terminal (on standard error: standard output is for results) or in a notebook; silence elsewhere."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, BinaryIO, cast

CHUNK_BYTES = 1 << 18
LONG_BYTES = 1 << 25  # reading this much takes about a second
REFRESH_SECONDS, NOTEBOOK_COLUMNS = 0.2, 100


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows what IPython displays."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def is_watched() -> bool:
    """Whether somebody sees bars."""
    return on_terminal() or in_notebook()


@contextmanager
def _bar(*columns: str) -> Iterator[Any]:
    """A bar with these columns of rich after its title, which disappears at the end."""
    from rich import progress

    with progress_display("{task.description}", *(getattr(progress, name)() for name in columns)) as bar:
        yield bar


def progress_display(*columns: Any, expand: bool = False) -> Any:
    """A ``rich.progress.Progress`` with these columns, which disappears at the end.

    In a notebook it is a display that is updated in place; rich's own one needs ipywidgets.
    """
    from rich.console import Console
    from rich.progress import Progress

    if not in_notebook():
        return Progress(*columns, console=Console(stderr=True), transient=True, expand=expand)
    from IPython.display import display

    class NotebookProgress(Progress):
        shown = 0.0

        def start(self) -> None:
            self.handle = display({"text/plain": ""}, raw=True, display_id=True)

        def stop(self) -> None:
            self.handle.update({"text/plain": "", "text/html": ""}, raw=True)

        def refresh(self) -> None:
            if time.monotonic() - self.shown < REFRESH_SECONDS:
                return
            self.shown = time.monotonic()
            text = io.StringIO()
            console = Console(file=text, record=True, width=NOTEBOOK_COLUMNS, force_jupyter=False)
            console.print(self.get_renderable())
            page = console.export_html(inline_styles=True, code_format='<pre style="line-height:1.2">{code}</pre>')
            self.handle.update({"text/plain": text.getvalue(), "text/html": page}, raw=True)

        def update(self, *args: Any, **values: Any) -> None:
            super().update(*args, **values)
            self.refresh()

        def advance(self, *args: Any, **values: Any) -> None:
            super().advance(*args, **values)
            self.refresh()

    return NotebookProgress(*columns, console=Console(file=io.StringIO()), auto_refresh=False, expand=expand)


@contextmanager
def download_bar(total: int | None, title: str) -> Iterator[Callable[[int], None]]:
    """A bar for a download of ``total`` bytes (None: not known), advanced by the function that is yielded."""
    if not is_watched():
        yield lambda _: None
        return
    with _bar("BarColumn", "DownloadColumn", "TransferSpeedColumn") as progress:
        task = progress.add_task(title, total=total)
        yield lambda n: progress.advance(task, n)


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
    if not is_watched():
        yield lambda _: None
        return
    with _bar("BarColumn", "MofNCompleteColumn", "TimeRemainingColumn") as progress:
        task = progress.add_task(title, total=total)
        yield lambda n: progress.advance(task, n)
