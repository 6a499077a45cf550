"""`tapnet predict`."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from tapnet.cli.app import DataDir, ModelFile, OwnConv, OwnPool, discard, notes, own_layer, say
from tapnet.errors import DataError, SettingError, TapnetError

if TYPE_CHECKING:
    from tapnet.inference.model import SavedModel

DIGITS = 6
BOM = "\ufeff"
NOTED = ("", "categories")  # in the column unlike_training: nothing, or what is said of unknown categories already


def predict(
    ctx: typer.Context,
    model: ModelFile,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Data sets by name or path (TU folder, archive, text, folder of graphs), files of a graph or matrix, "
            "or SMILES.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="A file for the result; .gz compresses.", show_default="standard output", dir_okay=False),
    ] = None,
    form: Annotated[Literal["csv", "jsonl"], typer.Option("--format", help="jsonl: one JSON object per line.")] = "csv",
    allow_unknown: Annotated[
        bool,
        typer.Option("--allow-unknown", help="Also predict graphs that share no node category with the training data."),
    ] = False,
    smiles: Annotated[
        str | None, typer.Option(help="Column with the SMILES of a table of molecules.", show_default="found")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Such as 0.9: add sets of classes, or intervals of numbers, that are right this often."),
    ] = None,
    pool: OwnPool = None,
    conv: OwnConv = None,
    data_dir: DataDir = None,
) -> None:
    """Write each graph's class and the probability of every class; of labels their probabilities, of numbers these.

    One table of molecules (.csv with SMILES) comes back with the predictions as columns. What cannot be read, or shares
    no node category (or degree) with the training data, is named on standard error and left out (rows of such a table
    stay, without predictions); the exit code is 1.
    """
    from tapnet.experiments.backends.processes import importing
    from tapnet.files import path_exists
    from tapnet.io.dataset_files import MOLECULE_ENDINGS

    is_one_table = form == "csv" and len(inputs) == 1 and inputs[0].lower().endswith(MOLECULE_ENDINGS)
    table: Any = None
    if is_one_table:
        from tapnet.io.molecule_parts import reading_ahead

        table = ctx.with_resource(reading_ahead(inputs[0], smiles))  # by other processes, while this one imports torch
    with importing():
        from tapnet.inference.model import UnseenCategories, load_model
        from tapnet.inference.model_file import FINAL_MODEL
        from tapnet.inference.predict import (
            predict_inputs,
            predict_table_parts,
            uncertainty_columns,
            uncertainty_values,
        )
        from tapnet.inference.training_data import is_single_matrix
        from tapnet.inference.uncertainty import check_confidence

    if smiles is not None and not is_one_table:
        raise SettingError("--smiles is for one table of molecules, such as a .csv file")
    for name in inputs:
        if name.endswith(".safetensors") or path_exists(Path(name) / FINAL_MODEL):
            raise SettingError(f"{name} is a model: one comes first, and graphs after it")
    saved = load_model(model, own_layer(pool), own_layer(conv))
    is_one_table = is_one_table and (smiles is not None or not is_single_matrix(saved, Path(inputs[0])))
    for_machines = out is not None or not sys.stdout.isatty()  # then a terminal is free for a bar
    names, safe = saved.card.class_names or saved.classes, saved.class_names
    if saved.task != "classification":
        names, safe = saved.card.target_names or (), saved.target_names
    classes = tuple(map(str, names if for_machines else safe))
    if len(set(classes)) != len(classes):
        raise DataError(f"{model}: {len(classes)} classes with {len(set(classes))} names")
    if confidence is not None:
        check_confidence(saved.card.conformal, confidence)
    added = uncertainty_columns(saved, classes, confidence)
    header, line = (FORMATS if saved.task == "classification" else FORMATS_OF_NUMBERS)[form]
    how = {"calibration": saved.calibration} if form == "jsonl" and saved.card.calibration is not None else {}
    unseen, done, failed, unlike = UnseenCategories(saved.features), 0, 0, 0

    def report(error: TapnetError) -> None:
        nonlocal failed
        failed += 1
        say(error)

    def count_left_out(rows: int) -> None:
        nonlocal failed
        failed += rows

    with notes(), contextlib.suppress(_NothingToWriteError), _writing(out) as write:
        options: dict[str, Any] = {"unseen": unseen, "allow_unknown": allow_unknown, "on_error": report}
        options["on_left_out"] = count_left_out  # notes name the first of these rows
        options |= {"show_progress": for_machines, "confidence": confidence}
        if is_one_table:
            held: list[str] = []  # until a row is predicted: else nothing is written
            for number, part in enumerate(predict_table_parts(saved, table or inputs[0], smiles, **options)):
                held += [BOM] if part.has_bom and for_machines and not number else []  # by which Excel knows UTF-8
                held.append(_csv_lines(part.rows if number else [part.header, *part.rows], part.mark))
                done += part.predicted
                unlike += sum(row[-1] not in NOTED for row in part.rows if added[-1:] == ["unlike_training"])
                if done:
                    write("".join(held))
                    held.clear()
            inputs = []
        else:
            write(header(classes, added))
        for group in predict_inputs(saved, inputs, data_dir=data_dir, **options):
            sure = uncertainty_values(saved, classes, group.answers)
            rows = zip(group.graphs, group.probabilities.tolist(), sure, strict=True)
            write("".join(line(g, [round(p, DIGITS) for p in row], classes, more | how) for g, row, more in rows))
            done += len(group.graphs)
            unlike += sum(more.get("unlike_training", "") not in NOTED for more in sure)
        if not done:
            raise _NothingToWriteError
    left_out = 0 if allow_unknown else unseen.foreign
    for note in unseen.notes:
        say(note)
    for note in _how_sure(saved, confidence, unlike) if done else ():
        say(note)
    problems = f", {failed} could not be read" if failed else ""
    problems += f", {left_out} left out (--allow-unknown predicts them)" if left_out else ""
    graphs_done = "1 graph" if done == 1 else f"{done} graphs"
    expectation = _expectation(saved) if done + left_out > unseen.foreign else ""  # it says nothing of foreign graphs
    say(f"{graphs_done} predicted{problems}{expectation}")
    if expectation and (warning := _warning(saved)):
        say(warning)
    if failed or left_out:
        raise typer.Exit(1)


def _how_sure(saved: SavedModel, confidence: float | None, unlike: int) -> Iterator[str]:
    """What there is to know of the columns that say how sure the model is."""
    from tapnet.inference.calibration import in_words

    calibration, conformal = saved.card.calibration, saved.card.conformal
    if calibration is not None and calibration.method != "none":
        yield f"probabilities are calibrated ({in_words(calibration)}, fitted to {calibration.graphs} held-out graphs)"
    if confidence is not None and conformal is not None:
        what = "intervals" if saved.task == "regression" else "sets"
        measured = f"measured {100 * saved.coverage(confidence):.1f} % on {conformal.graphs} held-out graphs"
        yield f"{what}: asked for {100 * confidence:g} %, {measured}"
    if unlike:
        are = "1 graph is" if unlike == 1 else f"{unlike} graphs are"
        yield f"{are} unlike the training data; unlike_training says in what"


def _expectation(saved: SavedModel) -> str:
    """The accuracy that the model's file claims, with its protocol."""
    from tapnet.files import printable
    from tapnet.training.baseline import baseline_in_words
    from tapnet.training.metrics import METRICS

    measured = saved.card.cross_validation
    if measured is None:  # of one fold, or from a stranger
        return ""
    metric = METRICS[measured.metric]
    score = f"{metric.in_words(measured.mean, measured.std)} ({printable(measured.rules)[:200]})"
    if trivial := baseline_in_words(measured.baseline, metric.name):
        score += f"; {trivial}"
    what = "accuracy" if metric.name == "accuracy" else "quality"
    return f"; the model's {what} by cross-validation: {score}"


def _warning(saved: SavedModel) -> str:
    """That the model is no better than the trivial predictor, if so."""
    from tapnet.training.baseline import baseline_warning

    measured = saved.card.cross_validation
    return "" if measured is None else baseline_warning(measured.mean, measured.baseline, measured.metric)


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
            with (
                replacing(out) as file,
                _packed(file) if out.suffix.lower() == ".gz" else contextlib.nullcontext(file) as stream,
            ):
                yield _writer(stream)
    except BrokenPipeError:
        discard(sys.stdout)
        raise typer.Exit from None
    except OSError as error:
        if out is None:
            raise
        raise TapnetError(f"{out}: cannot be written ({error.strerror or error})") from None


def _packed(file: IO[bytes]) -> IO[bytes]:
    """A stream that compresses what it gets; the same bytes for the same text, whenever it is written."""
    return cast("IO[bytes]", gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))


def _writer(stream: IO[bytes]) -> Callable[[str], None]:
    def write(text: str) -> None:
        stream.write(text.encode(errors="backslashreplace"))  # names of files may be any bytes
        stream.flush()

    return write


def _csv_line(words: Sequence[str]) -> str:
    return _csv_lines([words])


def _csv_lines(rows: Sequence[Sequence[str]], mark: str = ",") -> str:
    lines = io.StringIO()
    csv.writer(lines, delimiter=mark, lineterminator="\n").writerows(rows)
    return lines.getvalue()


def _csv_header(classes: Sequence[str], added: Sequence[str]) -> str:
    own = ("graph", "class")
    ambiguous = any(name in (*own, *added) for name in classes)
    return _csv_line([*own, *(f"probability of {name}" if ambiguous else name for name in classes), *added])


def _csv_row(graph: str, row: Sequence[float], classes: Sequence[str], more: Mapping[str, Any]) -> str:
    from tapnet.inference.predict import as_cells

    return _csv_line([graph, classes[row.index(max(row))], *(f"{p:.{DIGITS}f}" for p in row), *as_cells(more)])


def _json_row(graph: str, row: Sequence[float], classes: Sequence[str], more: Mapping[str, Any]) -> str:
    probabilities = dict(zip(classes, row, strict=True))
    best = classes[row.index(max(row))]
    return json.dumps({"graph": graph, "class": best, "probabilities": probabilities, **more}) + "\n"


def _csv_numbers_header(targets: Sequence[str], added: Sequence[str]) -> str:
    taken = ("graph", *added)
    return _csv_line(["graph", *(f"predicted {name}" if name in taken else name for name in targets), *added])


def _csv_numbers(graph: str, row: Sequence[float], targets: Sequence[str], more: Mapping[str, Any]) -> str:
    from tapnet.inference.predict import as_cells

    return _csv_line([graph, *(f"{value:.{DIGITS}g}" for value in row), *as_cells(more)])


def _json_numbers(graph: str, row: Sequence[float], targets: Sequence[str], more: Mapping[str, Any]) -> str:
    return json.dumps({"graph": graph, "predictions": dict(zip(targets, row, strict=True)), **more}) + "\n"


_Header = Callable[[Sequence[str], Sequence[str]], str]
_Line = Callable[[str, Sequence[float], Sequence[str], Mapping[str, Any]], str]
FORMATS: dict[str, tuple[_Header, _Line]] = {"csv": (_csv_header, _csv_row), "jsonl": (lambda *_: "", _json_row)}
FORMATS_OF_NUMBERS: dict[str, tuple[_Header, _Line]] = {
    "csv": (_csv_numbers_header, _csv_numbers),
    "jsonl": (lambda *_: "", _json_numbers),
}
