"""`tapnet predict`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import typer

from tapnet.cli.app import DataDir, ModelFile, OwnPool, discard, notes, own_pool, say
from tapnet.errors import DataError, SettingError, TapnetError

if TYPE_CHECKING:
    from tapnet.inference.model import SavedModel

DIGITS = 6


def predict(
    model: ModelFile,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Data sets by name or path (TU folder, archive, text, folder of graphs), .graphml and .json files.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A file for the result.", show_default="standard output", dir_okay=False)
    ] = None,
    form: Annotated[Literal["csv", "jsonl"], typer.Option("--format", help="jsonl: one JSON object per line.")] = "csv",
    pool: OwnPool = None,
    data_dir: DataDir = None,
) -> None:
    """Write each graph's class and the probability of every class.

    What cannot be read is named on standard error and left out; the exit code is 1 then.
    """
    from tapnet.files import path_exists
    from tapnet.inference.model import UnseenCategories, load_model
    from tapnet.inference.model_file import FINAL_MODEL
    from tapnet.inference.predict import predict_inputs

    for name in inputs:
        if name.endswith(".safetensors") or path_exists(Path(name) / FINAL_MODEL):
            raise SettingError(f"{name} is a model: one comes first, and graphs after it")
    saved = load_model(model, own_pool(pool))
    for_machines = out is not None or not sys.stdout.isatty()  # then a terminal is free for a bar
    names = saved.card.class_names or saved.classes
    classes = tuple(map(str, names if for_machines else saved.class_names))
    if len(set(classes)) != len(classes):
        raise DataError(f"{model}: {len(classes)} classes with {len(set(classes))} names")
    header, line = FORMATS[form]
    unseen, done, failed = UnseenCategories(saved.features), 0, 0

    def report(error: TapnetError) -> None:
        nonlocal failed
        failed += 1
        say(error)

    with notes(), contextlib.suppress(_NothingToWriteError), _writing(out) as write:
        write(header(classes))
        for graphs, probabilities in predict_inputs(
            saved, inputs, data_dir=data_dir, unseen=unseen, on_error=report, show_progress=for_machines
        ):
            rows = zip(graphs, probabilities.tolist(), strict=True)
            write("".join(line(graph, [round(p, DIGITS) for p in row], classes) for graph, row in rows))
            done += len(graphs)
        if not done:
            raise _NothingToWriteError
    if unseen.graphs:
        say(unseen)
    problems = f", {failed} could not be read" if failed else ""
    graphs_done = "1 graph" if done == 1 else f"{done} graphs"
    say(f"{graphs_done} predicted{problems}{_expectation(saved) if done else ''}")
    if failed:
        raise typer.Exit(1)


def _expectation(saved: SavedModel) -> str:
    """The accuracy that the model's file claims, with its protocol."""
    from tapnet.files import printable

    measured = saved.card.cross_validation
    if measured is None:  # of one fold, or from a stranger
        return ""
    accuracy = f"{measured.mean:.1f} ± {measured.std:.1f} %"
    return f"; the model's accuracy by cross-validation: {accuracy} ({printable(measured.rules)[:200]})"


# ---- writing ----


class _NothingToWriteError(Exception):
    """A file without a graph is not written."""


@contextlib.contextmanager
def _writing(out: Path | None) -> Iterator[Callable[[str], None]]:
    """Takes text for a file, which is whole or not there, or for standard output until its reader has had enough."""
    from tapnet.files import replacing

    try:
        if out is None:
            yield _writer(sys.stdout.buffer)  # a bar would put something else into the place of sys.stdout
        else:
            with replacing(out) as file:
                yield _writer(file)
    except BrokenPipeError:
        discard(sys.stdout)
        raise typer.Exit from None
    except OSError as error:
        if out is None:
            raise
        raise TapnetError(f"{out}: cannot be written ({error.strerror or error})") from None


def _writer(stream: IO[bytes]) -> Callable[[str], None]:
    def write(text: str) -> None:
        stream.write(text.encode(errors="backslashreplace"))  # names of files may be any bytes
        stream.flush()

    return write


def _csv_line(words: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(words)
    return line.getvalue()


def _csv_header(classes: Sequence[str]) -> str:
    return _csv_line(["graph", "class", *classes])


def _csv_row(graph: str, row: Sequence[float], classes: Sequence[str]) -> str:
    return _csv_line([graph, classes[row.index(max(row))], *(f"{p:.{DIGITS}f}" for p in row)])


def _json_row(graph: str, row: Sequence[float], classes: Sequence[str]) -> str:
    probabilities = dict(zip(classes, row, strict=True))
    return json.dumps({"graph": graph, "class": classes[row.index(max(row))], "probabilities": probabilities}) + "\n"


FORMATS: dict[str, tuple[Callable[[Sequence[str]], str], Callable[[str, Sequence[float], Sequence[str]], str]]] = {
    "csv": (_csv_header, _csv_row),
    "jsonl": (lambda _: "", _json_row),
}
