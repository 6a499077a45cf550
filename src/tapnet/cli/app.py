"""The command's frame: errors, interrupts, options that commands share. Nothing heavy is imported here."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import Abort, TyperException

from tapnet import __version__
from tapnet.errors import SettingError, TapnetError

app = typer.Typer(
    name="tapnet",
    help="Topology-aware graph pooling: train, compare and look at graph pooling networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with data sets: NAME/, NAME.zip or NAME.txt. Default: TAPNET_DATA."),
]

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error, never a traceback."""
    before = signal.signal(signal.SIGINT, _remember_interrupt)
    try:
        code = app(standalone_mode=False)
    except TapnetError as error:
        stop(str(error), error.exit_code)
    except TyperException as error:
        if error.format_message():  # empty where help was shown instead
            stop(" ".join(error.format_message().split()), 2)
        raise SystemExit(2) from None
    except (Abort, KeyboardInterrupt):
        code = INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    if code == INTERRUPTED:
        stop("stopped", INTERRUPTED)
    raise SystemExit(code or 0)


interrupts: list[int] = []


def _remember_interrupt(number: int, _: FrameType | None) -> None:
    """A KeyboardInterrupt can get lost in the imports of a library; before the work starts, this one is asked for."""
    interrupts.append(number)
    raise KeyboardInterrupt


def stop(message: str, code: int) -> NoReturn:
    print(f"tapnet: {message}", file=sys.stderr)
    raise SystemExit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tapnet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def check_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise SettingError(f"--{name.replace('_', '-')} is at least 1, not {count}")


def find_device(name: str) -> Any:
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise SettingError(f"--device is auto, cpu or cuda, not {name!r}")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise SettingError("--device cuda: there is no CUDA device here")
    return "cuda" if there and name != "cpu" else "cpu"


@contextmanager
def notes() -> Iterator[None]:
    """What the library warns of is a line each on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for note in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"tapnet: {note}", err=True)
