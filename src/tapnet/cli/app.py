"""The command's frame: errors, interrupts, options that commands share. Nothing heavy is imported here."""

from __future__ import annotations

import inspect
import math
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from tapnet import __version__
from tapnet.errors import SettingError, TapnetError


class _Tidy:
    """Help whose lines break where the terminal ends, and in which types are short."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        self.help: str | None = "\n\n".join(" ".join(p.split()) for p in paragraphs)

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # else <bool> stands beside it
            elif not get_origin(param.type_descriptor.annotation) and param.type_descriptor.is_ranged:
                param.metavar = "<int>"  # its range stands beside it
        return params


class Command(_Tidy, TyperCommand):
    """One command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, now with the names of the pooling layers: looking them up imports torch."""
        self.name_pools()
        super().format_help(ctx, formatter)

    def name_pools(self) -> None:
        """Writes the names into the help of the option that takes one."""
        for param in self.params:
            if POOLS in (getattr(param, "help", None) or ""):
                from tapnet.nn.pool.registry import available

                param.help = param.help.replace(POOLS, ", ".join(pool.name for pool in available()))  # type: ignore[attr-defined]


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

POOLS = "{pools}"  # in a help: the names of the pooling layers

machine = partial(typer.Option, rich_help_panel="Machine")

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with data sets: NAME/, NAME.zip or NAME.txt. Default: TAPNET_DATA."),
]

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]

ModelFile = Annotated[Path, typer.Argument(help="A model file, or the folder of a run that has a final model.")]

OwnPool = Annotated[
    str | None, typer.Option("--pool", metavar="MODULE:CLASS", help="The model's pooling layer, if it is your own.")
]


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error, never a traceback."""
    for stream in (sys.stdout, sys.stderr):  # a pipe on Windows cannot hold every letter
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    before = signal.signal(signal.SIGINT, _remember_interrupt)
    sys.unraisablehook = _say_unless_interrupted
    try:
        code = app(standalone_mode=False)
    except TapnetError as error:
        stop(_with_flags(str(error)), error.exit_code)
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
    """Prints the message as one line on standard error and ends the program with the code."""
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


def _with_flags(message: str) -> str:
    """The library's words for what a call can give, as options of a command."""
    message = re.sub(r"(?<=\s)dataset=", "--dataset ", message)
    message = re.sub(r"; (.*)train one$", r"; \1train one with --final", message)
    message = re.sub(
        r"import the class and pass it \(pools=.*?\), or register it first", "name it with --pool", message
    )
    names = "data_dir|only_folds|cpus_per_trial|gpus_per_trial"
    return re.sub(rf"(?:(?<=\s)|^)({names})(?=[\s:])", lambda name: "--" + name[1].replace("_", "-"), message)


def own_pool(name: str | None) -> list[str]:
    """The class that the user named; its module may be in the current folder, where a console script does not look."""
    if name and ":" in name:
        sys.path.insert(0, str(Path.cwd()))
    return [name] if name else []


Device = Annotated[Literal["auto", "cpu", "cuda"], machine(help="auto: CUDA where there is a device.")]
RayAddress = Annotated[
    str | None,
    machine(
        "--ray", metavar="local|ADDRESS", help="Run trials on a Ray cluster: one started here, or that at an address."
    ),
]
CpusPerTrial = Annotated[float | None, machine(help="With --ray.", show_default="its threads")]
GpusPerTrial = Annotated[float | None, machine(help="With --ray.", show_default="1 on cuda, else 0")]


def find_cluster(
    address: str | None, cpus: float | None, gpus: float | None, jobs: int | None, threads: int, device: str
) -> tuple[Any, Any]:
    """The cluster, if there is to be one, and the device that trials use there or here."""
    if address is None:
        if cpus is not None or gpus is not None:
            name = "gpus" if cpus is None else "cpus"
            raise SettingError(f"--{name}-per-trial says what a trial takes of a cluster: it goes with --ray")
        return None, device
    from tapnet.experiments.backends.ray import Cluster, require_ray
    from tapnet.training.device import find_device

    require_ray()
    found = "cuda" if gpus and device == "auto" else find_device(device)
    cpus = threads if cpus is None else cpus
    gpus = float(found == "cuda") if gpus is None else gpus
    return Cluster(address, cpus, gpus, local_cpus=jobs and max(1, math.ceil(jobs * cpus))), found


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
