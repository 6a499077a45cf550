"""The command's frame: errors, interrupts, options that commands share. Nothing heavy is imported here."""

from __future__ import annotations

import errno
import inspect
import io
import math
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from tapnet import __version__
from tapnet.errors import SettingError, TapnetError
from tapnet.machine import wait_briefly


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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words; an option that may stand alone gets the value that it then has."""
        given = [
            f"{word}={ALONE[word][0]}" if _stands_alone(word, args[i + 1 :]) else word for i, word in enumerate(args)
        ]
        try:
            found: list[str] = super().parse_args(ctx, given)
        except TyperException as error:
            if "extra argument" in error.message:  # perhaps meant as the value of such an option
                error.message += "".join(f"; {word} takes {' or '.join(ALONE[word])}" for word in args if word in ALONE)
            raise
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, now with the names of the pooling layers: looking them up imports torch."""
        self.name_pools()
        super().format_help(ctx, formatter)

    def name_pools(self) -> None:
        """Writes the names into the help of the option that takes one."""
        for param in self.params:
            if POOLS in (getattr(param, "help", None) or ""):
                from tapnet.nn.pool.registry import known_names

                param.help = param.help.replace(POOLS, ", ".join(known_names()))  # type: ignore[attr-defined]


# Options that may stand alone: what they take, the value without one first. Any other word after them is not theirs.
ALONE = {"--final": ("single", "ensemble")}


def _stands_alone(word: str, following: list[str]) -> bool:
    return word in ALONE and following[:1] not in [[value] for value in ALONE[word]]


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

# Of a file without a name: standard output, as everything else is written in `tapnet.files`.
OUTPUT_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EPIPE}

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
OwnConv = Annotated[
    str | None, typer.Option("--conv", metavar="MODULE:CLASS", help="Its convolution, if it is PyG's or your own.")
]


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error, never a traceback."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  # closed by whoever started the program
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # else a letter that the encoding lacks is the end of all work
            stream.reconfigure(errors="backslashreplace")
    wait_briefly()
    before = signal.signal(signal.SIGINT, _remember_interrupt)
    sys.unraisablehook = _say_unless_interrupted
    try:
        code = _run()
    except SystemExit as ended:
        code = ended.code
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _output_failed(error)
    raise SystemExit(code)


def _run() -> Any:
    """The exit code of the command, or a SystemExit with it."""
    try:
        code = app(standalone_mode=False)
    except TapnetError as error:
        stop(_with_flags(str(error)), error.exit_code)
    except TyperException as error:
        if error.format_message():  # empty where help was shown instead
            stop(" ".join(error.format_message().replace("Value error, ", "").split()), 2)
        return 2
    except (Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except MemoryError as error:
        stop(f"there is not enough memory for this{f' ({error})' if str(error) else ''}", 1)
    except RuntimeError as error:
        if not any(words in str(error) for words in ("allocate memory", "not enough memory", "out of memory")):
            raise  # else torch's words
        stop("there is not enough memory for this", 1)
    except OSError as error:
        if error.filename is not None:
            stop(f"{error.filename}: {error.strerror}", 1)
        if error.errno not in OUTPUT_ERRORS:
            raise
        return _output_failed(error)
    if code == INTERRUPTED:
        stop("stopped", INTERRUPTED)
    return code or 0


def _output_failed(error: OSError) -> int:
    """The exit code for standard output that cannot be written; a reader who has had enough is no failure."""
    discard(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return 0
    say(f"standard output: cannot be written ({error.strerror or error})")
    return 1


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
    say(message)
    raise SystemExit(code)


def say(message: object) -> None:
    """Prints ``tapnet: message`` as one line on standard error; where that cannot be written, nothing."""
    from tapnet.files import printable  # the words may be a stranger's

    print_error(f"tapnet: {printable(message)}")


def print_error(line: str) -> None:
    """Prints a line on standard error; that it cannot be written is no reason to lose what is computed."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: Any) -> None:
    """Lets what is still in the stream go nowhere: Python would complain when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


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
    message = re.sub(r"(which column is the target\?.*; name one or several)$", r"\1 with --target", message)
    message = re.sub(r"(which column holds the SMILES\?.*)$", r"\1; name it with --smiles", message)
    message = re.sub(r"(no target is known; name the column to predict)", r"\1 with --target", message)
    message = re.sub(r" \(regression\), not a class; choose that task", ", no class; choose --task regression", message)
    message = re.sub(r"; (.*)train one$", r"; \1train one with --final", message)
    message = re.sub(
        r"import the class and pass it \((pool|conv)s=.*?\)(, or register it first)?", r"name it with --\1", message
    )
    names = "data_dir|only_folds|cpus_per_trial|gpus_per_trial|node_label|edge_label"
    return re.sub(rf"(?:(?<=\s)|^)({names})(?=[\s:])", lambda name: "--" + name[1].replace("_", "-"), message)


def own_layer(name: str | None) -> list[str]:
    """The class that the user named; its module may be in the current folder, where a console script does not look."""
    if name and ":" in name:
        sys.path.insert(0, str(Path.cwd()))
    return [name] if name else []


Reproducible = Annotated[
    bool, machine("--reproducible", help="The same bits on every processor of a kind; slower, and on the CPU alone.")
]
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
def notes() -> Iterator[set[str]]:
    """The warnings of the library, each as one line on standard error, when it comes up; those that were shown."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            say(message)
        shown.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield shown
