"""`tapnet predict`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, NamedTuple

import typer

from tapnet.cli.app import DataDir, notes
from tapnet.errors import DataError, SettingError, TapnetError

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset
    from tapnet.inference.saved import SavedModel, Unseen
    from tapnet.io.archive import Place
    from tapnet.io.graph_folder import FileGraph

GRAPHS_AT_ONCE, NODES_AT_ONCE = 256, 1 << 20  # what is in memory of a folder of graphs
DIGITS = 6


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, or the folder of a run that has a final model.")],
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Data sets by name or path (TU folder, archive, text, folder of graphs), .graphml and .json files.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="A file for the result.", show_default="standard output")] = None,
    form: Annotated[str, typer.Option("--format", help="csv, or jsonl: a JSON object a line.")] = "csv",
    data_dir: DataDir = None,
) -> None:
    """Write each graph's class and the probability of every class.

    What cannot be read is named on standard error and left out; the exit code is 1 then.
    """
    if form not in FORMATS:
        raise SettingError(f"--format is one of {', '.join(FORMATS)}, not {form!r}")
    if out is not None and out.is_dir():
        raise SettingError(f"--out is a file, and {out} is a folder")
    from tapnet.experiments.final import FILE, model_file
    from tapnet.files import path_exists
    from tapnet.inference.saved import SavedModel

    for name in inputs:
        if name.endswith(".safetensors") or path_exists(Path(name) / FILE):
            raise SettingError(f"{name} is a model: one comes first, and graphs after it")
    run = _Prediction(SavedModel.load(model_file(model)), out is not None or not sys.stdout.isatty())
    if len(set(run.classes)) != len(run.saved.classes):
        raise DataError(f"{model}: {len(run.saved.classes)} classes with {len(set(run.classes))} names")
    header, line = FORMATS[form]
    with contextlib.suppress(_NothingToWriteError), _writing(out) as write:
        write(header(run.classes))
        for name in inputs:
            try:
                for rows in run.of(name, data_dir, several=len(inputs) > 1):
                    write("".join(line(row, run.classes) for row in rows))
            except TapnetError as error:
                run.report(str(error))
        if not run.done:
            raise _NothingToWriteError
    for words in run.summary():
        typer.echo(f"tapnet: {words}", err=True)
    if run.failed:
        raise typer.Exit(1)


# ---- prediction, a group of graphs at a time ----


class Row(NamedTuple):
    """What is written of a graph."""

    graph: str
    best: str
    probabilities: list[float]  # [C]


@dataclass
class _Prediction:
    """The model, and what has come of its inputs so far."""

    saved: SavedModel
    for_machines: bool  # what is written goes to a file or a program, so a terminal is free for a bar
    done: int = 0
    failed: int = 0
    unseen: Unseen = field(init=False)

    def __post_init__(self) -> None:
        from tapnet.inference.saved import Unseen

        self.unseen = Unseen(self.saved.features)

    @property
    def classes(self) -> tuple[str, ...]:
        """As they stood in the training data; on a terminal without what could move its cursor."""
        names = self.saved.about.get("class_names") or self.saved.classes
        return tuple(map(str, names if self.for_machines else self.saved.class_names))

    def of(self, name: str, data_dir: Path | None, several: bool) -> Iterator[list[Row]]:
        """The rows of one input; with several inputs its name stands before those of the graphs.

        An error that is raised ends the input; what is wrong with a single file is reported, and the next one read.
        """
        from tapnet.io.graph_folder import file_names
        from tapnet.io.load import load_dataset
        from tapnet.io.locate import find

        layout = find(name, data_dir).layout
        place, prefix = layout.place, f"{name.rstrip(os.sep)}/" if several else ""
        if layout.kind != "graphs":
            with notes():
                dataset = load_dataset(name, data_dir, features=self.saved.features)
            yield from self._of_dataset(dataset, prefix)
        elif place.is_file():
            folder = name.removesuffix(place.name) if several else ""
            yield from self._of_files(layout.root.parent, [place.name], folder)
        else:
            yield from self._of_files(place, file_names(place), prefix)

    def _of_dataset(self, dataset: GraphDataset, prefix: str) -> Iterator[list[Row]]:
        with self._counting(len(dataset), dataset.name) as advance:
            for start in range(0, len(dataset), GRAPHS_AT_ONCE):
                numbers = range(start, min(start + GRAPHS_AT_ONCE, len(dataset)))
                yield self._rows(dataset.subset(numbers), [f"{prefix}{i}" for i in numbers])
                advance(len(numbers))

    def _of_files(self, folder: Place, names: Sequence[str], prefix: str) -> Iterator[list[Row]]:
        from tapnet.io.graph_folder import FileGraph

        group: list[tuple[str, FileGraph]] = []
        with self._counting(len(names), folder.name) as advance:
            for name in names:
                try:
                    group.append((prefix + name, FileGraph.read(folder / name)))
                except DataError as error:
                    self.report(str(error))
                if len(group) == GRAPHS_AT_ONCE or sum(graph.size for _, graph in group) > NODES_AT_ONCE:
                    yield self._rows_of_files(group)
                    group = []
                advance(1)
            if group:
                yield self._rows_of_files(group)

    def _rows_of_files(self, group: Sequence[tuple[str, FileGraph]]) -> list[Row]:
        """Each file is read as if it were alone; where they do not go together, one by one."""
        graphs = [graph for _, graph in group]
        try:
            dataset = self.saved.joined(graphs, graphs[0].file if len(graphs) == 1 else "graphs")
            return self._rows(dataset, [name for name, _ in group])
        except TapnetError as error:
            if len(group) == 1:
                self.report(str(error))
                return []
            return [row for one in group for row in self._rows_of_files([one])]

    def _rows(self, dataset: GraphDataset, names: Sequence[str]) -> list[Row]:
        read = self.saved.encode(dataset, names, self.unseen)
        rows = []
        for name, found in zip(names, self.saved.probabilities(read).tolist(), strict=True):
            if all(map(math.isfinite, found)):
                rows.append(Row(name, self.classes[found.index(max(found))], [round(p, DIGITS) for p in found]))
            else:
                self.report(f"{name}: the model's answer is not a number")
        self.done += len(rows)
        return rows

    def _counting(self, total: int, title: str) -> contextlib.AbstractContextManager[Callable[[int], None]]:
        from tapnet.progress import counting

        return counting(total, title) if self.for_machines else contextlib.nullcontext(lambda _: None)

    def report(self, reason: str) -> None:
        """One line of something that could not be read."""
        typer.echo(f"tapnet: {reason}", err=True)
        self.failed += 1

    def summary(self) -> Iterator[str]:
        """A warning, if there is reason for one, and what was done by which model."""
        if self.unseen.graphs:
            yield str(self.unseen)
        failed = f", {self.failed} could not be read" if self.failed else ""
        graphs = "graph" if self.done == 1 else "graphs"
        yield f"{self.done} {graphs} predicted{failed}{self._expectation() if self.done else ''}"

    def _expectation(self) -> str:
        """The accuracy that the model's file claims, with its protocol."""
        from tapnet.files import printable

        try:
            of = self.saved.about["cross_validation"]
            rules = printable(of["rules"])[:200]
            return f"; the model's accuracy by cross-validation: {of['mean']:.1f} ± {of['std']:.1f} % ({rules})"
        except (KeyError, TypeError, ValueError, OverflowError):  # of one fold, or from a stranger
            return ""


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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        raise typer.Exit from None
    except OSError as error:
        raise TapnetError(f"{out or 'standard output'}: cannot be written ({error.strerror or error})") from None


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


def _csv_row(row: Row, classes: Sequence[str]) -> str:
    return _csv_line([row.graph, row.best, *(f"{p:.{DIGITS}f}" for p in row.probabilities)])


def _json_row(row: Row, classes: Sequence[str]) -> str:
    probabilities = dict(zip(classes, row.probabilities, strict=True))
    return json.dumps({"graph": row.graph, "class": row.best, "probabilities": probabilities}) + "\n"


FORMATS: dict[str, tuple[Callable[[Sequence[str]], str], Callable[[Row, Sequence[str]], str]]] = {
    "csv": (_csv_header, _csv_row),
    "jsonl": (lambda _: "", _json_row),
}
