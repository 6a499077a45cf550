"""The command's frame: errors, interrupts, options that commands share. Nothing heavy is imported here."""

from __future__ import annotations

import inspect
import math
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from tapnet import __version__
from tapnet.errors import SettingError, TapnetError


class _Tidy:
    """Help whose lines break where the terminal ends, and in which a flag takes no value."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        self.help: str | None = "\n\n".join(" ".join(p.split()) for p in paragraphs)

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # else <bool> stands beside it
        return params


class Command(_Tidy, TyperCommand):
    """One command."""


class Program(_Tidy, TyperGroup):
    """All of them."""


app = typer.Typer(
    name="tapnet",
    cls=Program,
    help="Topology-aware graph pooling: train, compare and look at graph pooling networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MODEL, VOTING, PROTOCOL, TRAINING, MACHINE = "Model", "Voting", "Protocol", "Training", "Machine"  # parts of a help

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with data sets: NAME/, NAME.zip or NAME.txt. Default: TAPNET_DATA."),
]

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error, never a traceback."""
    before = signal.signal(signal.SIGINT, _remember_interrupt)
    sys.unraisablehook = _say_unless_interrupted
    try:
        code = app(standalone_mode=False)
    except TapnetError as error:
        stop(str(error), error.exit_code)
    except TyperException as error:
        if error.format_message():  # empty where help was shown instead
            stop(" ".join(error.format_message().replace("Value error, ", "").split()), 2)
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


def _say_unless_interrupted(lost: Any) -> None:
    """Where an exception cannot be raised Python prints it; a Ctrl-C there is remembered, and needs no words."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def stop(message: str, code: int) -> NoReturn:
    from tapnet.files import printable  # the words may be a stranger's

    print(f"tapnet: {printable(message)}", file=sys.stderr)
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


RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="local|ADDRESS",
        help="Run trials on a Ray cluster: one started here, or that at an address.",
        rich_help_panel=MACHINE,
    ),
]
CpusPerTrial = Annotated[
    float | None, typer.Option(help="With --ray.", show_default="its threads", rich_help_panel=MACHINE)
]
GpusPerTrial = Annotated[
    float | None, typer.Option(help="With --ray.", show_default="1 on cuda, else 0", rich_help_panel=MACHINE)
]


def find_cluster(
    address: str | None, cpus: float | None, gpus: float | None, jobs: int | None, threads: int, device: str
) -> tuple[Any, Any]:
    """The cluster, if there is to be one, and the device that trials use there or here."""
    if address is None:
        for name, value in (("cpus", cpus), ("gpus", gpus)):
            if value is not None:
                raise SettingError(f"--{name}-per-trial says what a trial takes of a cluster: it goes with --ray")
        return None, find_device(device)
    from tapnet.experiments.backends.ray import Cluster, require_ray

    require_ray()
    found = "cuda" if gpus and device == "auto" else find_device(device)
    cpus = threads if cpus is None else cpus
    gpus = float(found == "cuda") if gpus is None else gpus
    return Cluster(address, cpus, gpus, local_cpus=jobs and max(1, math.ceil(jobs * cpus))), found


def find_device(name: str) -> Any:
    from tapnet.training import device

    try:
        return device.find_device(name)
    except SettingError as error:
        raise SettingError(f"--{error}") from None


@contextmanager
def notes() -> Iterator[None]:
    """The warnings of the library, each as one line on standard error, when it comes up."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            typer.echo(f"tapnet: {message}", err=True)
        shown.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
