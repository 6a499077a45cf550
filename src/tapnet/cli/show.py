"""`tapnet show`."""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tapnet.cli.app import DataDir, notes
from tapnet.errors import DataError, DatasetNotFoundError, SettingError

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset
    from tapnet.inference.model import SavedModel

FORMATS = (".png", ".svg", ".pdf")


def show(
    model: Annotated[
        Path, typer.Argument(help="A model file; or a run's folder, for its curves or a graph by its final model.")
    ],
    graph: Annotated[
        str | None, typer.Argument(help="A graph's number or file name in the data set, or a file with one graph.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A .png, .svg or .pdf file.", show_default="NAME-GRAPH.png")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The data set that a number belongs to.", show_default="the model's own")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Draw a graph and what a trained network keeps of it; or the learning curves of a run.

    Node size is the score, colour the category, grey what was dropped.
    """
    if out is not None and out.suffix.lower() not in FORMATS:
        raise SettingError(f"--out is a {', '.join(FORMATS)} file, not {out.name!r}")
    if graph is not None:
        _show_graph(model, graph, out, dataset, data_dir)
    elif model.is_dir():
        _show_run(model, out, data_dir)
    else:
        raise SettingError("which graph? Give its number in the data set, or a file with one graph")


def _show_graph(file: Path, graph: str, out: Path | None, dataset: str | None, data_dir: Path | None) -> None:
    import numpy as np
    import torch

    from tapnet.files import printable
    from tapnet.inference.explain import explain
    from tapnet.inference.model import SavedModel
    from tapnet.inference.model_file import find_model_file
    from tapnet.models.tapnet import TAPNet
    from tapnet.viz import draw_explanation, save

    file = find_model_file(file)
    saved = SavedModel.load(file)
    if not isinstance(saved.network, TAPNet):
        raise SettingError(f"{file} holds the model {saved.card.trial.model}, which keeps no nodes to show")
    with notes():
        found = _find_graph(saved, graph, dataset, data_dir)
        read = saved.encode(found.data.subset([found.number]), [found.name])
    batch = read.batch([0])
    explanation = explain(saved.network, batch)
    if not np.isfinite(explanation.probabilities).all():
        raise DataError(f"{found.name}: the model's answer is not a number")
    best = int(explanation.probabilities.argmax())
    answer = f"{saved.class_names[best]} ({100 * explanation.probabilities[best]:.0f} %)"
    category, names = read.x, (*saved.category_names, "unknown")
    if read.categories is None:
        category, names = torch.zeros(read.num_nodes, dtype=torch.int64), ("node",)
    elif read.x.dim() > 1:  # a row of zeros is of no category that the model knows
        category = torch.where(read.x.any(dim=1), read.x.argmax(dim=1), len(read.categories))
    figure = draw_explanation(
        batch.edges_once.numpy(),
        explanation,
        category.numpy(),
        names,
        f"{found.name}: {answer}",
    )
    target = out or Path(f"{found.data.name}-{found.number}.png")
    save(figure, target.with_suffix(""), (target.suffix.lower()[1:],))
    file_name = f", {found.file}" if found.file else ""
    truth = f"; true class: {printable(found.truth)}" if found.truth is not None else ""
    typer.echo(f"{found.name}{file_name}: {answer}{truth}")
    typer.echo(f"Written: {target}")


class _Found(NamedTuple):
    """A graph, and what is known of it."""

    data: GraphDataset
    number: int
    name: str
    file: str | None  # its name, in a folder of graphs
    truth: str | None  # its class


def _find_graph(saved: SavedModel, graph: str, dataset: str | None, data_dir: Path | None) -> _Found:
    """By its file, or by its number or its file's name in a data set."""
    from tapnet.files import check_name, path_exists
    from tapnet.io.graph_folder import FileGraph, class_of
    from tapnet.io.load import load_dataset
    from tapnet.io.locate import find

    check_name(graph)
    is_number = re.fullmatch("-?[0-9]{1,18}", graph) is not None
    if not is_number and path_exists(Path(graph)):
        layout = find(Path(graph), data_dir, download=False).layout
        if layout.kind == "graphs" and layout.place.is_file():
            data = saved.join_files([FileGraph.read(layout.place)], layout.prefix)
        else:
            data = load_dataset(Path(graph), data_dir, features=saved.features, download=False)
        if len(data) > 1:
            raise SettingError(f"{graph} has {len(data)} graphs; which one? Its number goes with --dataset {graph}")
        return _Found(data, 0, data.name, None, _class_name(saved, class_of(Path(graph))))
    try:
        data = load_dataset(dataset or saved.name, data_dir, features=saved.features, download=False)
    except DatasetNotFoundError as error:
        if dataset is not None:
            raise
        if not is_number:
            raise DataError(f"{graph}: no such file") from None
        raise DatasetNotFoundError(f"graph {graph} of which data set? Name it with --dataset ({error})") from None
    if dataset is None:
        saved.warn_if_other_data(data)
    files = _files(data)
    if is_number and not 0 <= int(graph) < len(data):
        raise DataError(f"{data.name} has graphs 0 to {len(data) - 1}; there is no graph {graph}")
    numbers = [int(graph)] if is_number else [i for i, file in enumerate(files) if graph in (file, Path(file).stem)]
    if len(numbers) != 1:
        raise DataError(f"{graph}: no such file, and {data.name} has no graph of that name")
    (number,) = numbers
    own = data.class_names[int(data.y[number])] if data.class_names else None
    truth = _class_name(saved, data.classes[int(data.y[number])], own)
    return _Found(data, number, f"{data.name}, graph {number}", files[number] if files else None, truth)


def _files(data: GraphDataset) -> list[str]:
    """Of a folder of graphs, in the order of their numbers; none for another data set."""
    from tapnet.io.graph_folder import graph_names

    try:
        return graph_names(data.source)
    except DataError:
        return []


def _class_name(saved: SavedModel, value: Hashable | None, own: str | None = None) -> str | None:
    """What the model calls a class, or else the data set; None for one that is not known."""
    known = dict(zip(map(str, saved.classes), saved.class_names, strict=True))
    return None if value is None else known.get(str(value), own or str(value))


def _show_run(folder: Path, out: Path | None, data_dir: Path | None) -> None:
    from tapnet.experiments.store import Store
    from tapnet.experiments.summary import Summary, changed_settings
    from tapnet.viz import draw_run, save

    run = _read_run(folder)
    wanted = set(run["trials"])
    results = [r for r in Store(folder).results() if r.trial.key in wanted]
    if not results:
        raise DataError(f"{folder}: no fold of the run is finished yet")
    summary = Summary(sorted(results, key=lambda r: r.trial.fold))
    confusion, classes = _confusion(folder, summary, run, data_dir)
    if confusion is None and summary.has_epochs:
        typer.echo(
            "tapnet: no confusion matrix: the run's models, or the data that it was trained on, are not here", err=True
        )
    first = summary.results[0].trial
    changed = ", ".join(f"{k} {v}" for k, v in changed_settings(first).items())
    title = f"{first.dataset}, {first.model}{f' with {changed}' if changed else ''}: "
    title += f"{summary.mean:.1f} ± {summary.std:.1f} % ({summary.rules})"
    if not summary.has_epochs:
        raise DataError(f"{folder}: {first.model} is not trained in epochs, so there are no curves to show")
    target = out or folder / "curves.png"
    figure = draw_run([r.curves for r in summary.results], confusion, classes, title)
    save(figure, target.with_suffix(""), (target.suffix.lower()[1:],))
    typer.echo(f"{title}\nWritten: {target}")


def _read_run(folder: Path) -> dict[str, Any]:
    from tapnet.files import is_special_file

    try:
        if is_special_file(folder / "run.json"):
            raise OSError("not a file")
        run: dict[str, Any] = json.loads((folder / "run.json").read_text())
        return run | {"trials": list(map(str, run["trials"]))}
    except FileNotFoundError:
        raise DataError(f"{folder}: no run of `tapnet train` (it has no run.json)") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{folder / 'run.json'}: cannot be read ({error})") from None


def _source(run: dict[str, Any]) -> list[Path]:
    """Where the run found its data, if it says so."""
    about = run.get("data")
    source = about.get("source") if isinstance(about, dict) else None
    return [Path(source)] if source and isinstance(source, str) else []


def _confusion(folder: Path, summary: Any, run: dict[str, Any], data_dir: Path | None) -> tuple[Any, tuple[str, ...]]:
    """Counts of true and predicted classes over the test folds, by each fold's stored model; None without the data."""
    import numpy as np

    from tapnet.errors import TapnetError
    from tapnet.experiments.store import Store
    from tapnet.files import printable
    from tapnet.inference.model import SavedModel
    from tapnet.io.load import load_dataset
    from tapnet.training.protocol import split

    first, store = summary.results[0].trial, Store(folder)
    try:
        models = [SavedModel.load(store.model_file(r.trial)) for r in summary.results]
    except TapnetError:
        return None, ()
    data = None
    for place in (first.dataset, *_source(run)):
        with contextlib.suppress(TapnetError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say was said when it was trained
            found = load_dataset(place, data_dir, features=models[0].features, download=False)
            data = data or (found if found.checksum == first.data else None)
    if data is None:
        return None, ()
    counts = np.zeros((data.num_classes, data.num_classes), dtype=np.int64)
    for result, saved in zip(summary.results, models, strict=True):
        test = split(data.y, result.trial.protocol, result.trial.folds, result.trial.fold).test
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fold may have categories that the others lack
            read = saved.encode(data.subset(test))
        np.add.at(counts, (data.y[test].numpy(), saved.probabilities(read).argmax(dim=1).numpy()), 1)
    return counts, tuple(map(printable, data.class_names or data.classes))
