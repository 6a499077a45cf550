"""`tapnet show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tapnet.cli.app import DataDir
from tapnet.errors import DataError, DatasetNotFoundError, SettingError

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset
    from tapnet.training.saved import SavedModel

FORMATS = (".png", ".svg", ".pdf")


def show(
    model: Annotated[Path, typer.Argument(help="A model file; or the folder of a run, for its curves.")],
    graph: Annotated[
        str | None, typer.Argument(help="A graph's number in the data set, or a file with one graph.")
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
    if model.is_dir():
        if graph is not None:
            raise SettingError(f"{model} is a run's folder; a graph is shown with one of its models: {model}/models/…")
        _show_run(model, out, data_dir)
    elif graph is None:
        raise SettingError("which graph? Give its number in the data set, or a file with one graph")
    else:
        _show_graph(model, graph, out, dataset, data_dir)


def _show_graph(file: Path, graph: str, out: Path | None, dataset: str | None, data_dir: Path | None) -> None:
    import numpy as np

    from tapnet.models.explain import explain
    from tapnet.models.tapnet import TAPNet
    from tapnet.pictures import draw_explanation, save
    from tapnet.training.saved import SavedModel

    saved = SavedModel.load(file)
    if not isinstance(saved.network, TAPNet):
        raise SettingError(f"{file} holds the model {saved.about['trial']['model']}, which keeps no nodes to show")
    data, number = _find_graph(saved, graph, dataset, data_dir)
    read = saved.reading(data.subset([number]))
    batch = read.batch([0])
    explanation = explain(saved.network, batch)
    best = int(explanation.probabilities.argmax())
    name = f"{data.name}, graph {number}" if len(data) > 1 else data.name
    title = f"{name}: {saved.class_names[best]} ({100 * explanation.probabilities[best]:.0f} %)"
    unlabelled = read.categories is None or read.x.dim() > 1
    figure = draw_explanation(
        batch.edges_once.numpy(),
        explanation,
        np.zeros(read.num_nodes, dtype=np.int64) if unlabelled else read.x.numpy(),
        ("node",) if unlabelled else saved.category_names,
        title,
    )
    target = out or Path(f"{data.name}-{number}.png")
    save(figure, target.with_suffix(""), (target.suffix.lower()[1:],))
    typer.echo(f"{title}\nWritten: {target}")


def _find_graph(saved: SavedModel, graph: str, dataset: str | None, data_dir: Path | None) -> tuple[GraphDataset, int]:
    """The data set that a graph is in, and its number there."""
    from tapnet.data.load import load_dataset

    if not graph.lstrip("-").isdigit():
        return load_dataset(Path(graph), data_dir, features=saved.features, download=False), 0
    try:
        data = load_dataset(dataset or saved.name, data_dir, features=saved.features, download=False)
    except DatasetNotFoundError as error:
        if dataset is not None:
            raise
        raise DatasetNotFoundError(f"graph {graph} of which data set? Name it with --dataset ({error})") from None
    if not 0 <= int(graph) < len(data):
        raise DataError(f"{data.name} has graphs 0 to {len(data) - 1}; there is no graph {graph}")
    return data, int(graph)


def _show_run(folder: Path, out: Path | None, data_dir: Path | None) -> None:
    from tapnet.pictures import draw_run, save
    from tapnet.training.store import Store
    from tapnet.training.summary import Summary, changed_settings

    run = _read_run(folder)
    wanted = set(run["trials"])
    results = [r for r in Store(folder).results() if r.trial.key in wanted]
    if not results:
        raise DataError(f"{folder}: no fold of the run is finished yet")
    summary = Summary(sorted(results, key=lambda r: r.trial.fold))
    confusion, classes = _confusion(folder, summary, run, data_dir)
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
    try:
        run: dict[str, Any] = json.loads((folder / "run.json").read_text())
        return run | {"trials": list(run["trials"])}
    except FileNotFoundError:
        raise DataError(f"{folder}: no run of `tapnet train` (it has no run.json)") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / 'run.json'}: cannot be read ({error})") from None


def _confusion(folder: Path, summary: Any, run: dict[str, Any], data_dir: Path | None) -> tuple[Any, tuple[str, ...]]:
    """Counts of true and predicted classes over the test folds, by each fold's stored model; None without the data."""
    import numpy as np

    from tapnet.data.load import load_dataset
    from tapnet.errors import TapnetError
    from tapnet.training.protocol import split
    from tapnet.training.saved import SavedModel
    from tapnet.training.store import Store

    first, store = summary.results[0].trial, Store(folder)
    try:
        models = [SavedModel.load(store.model_file(r.trial)) for r in summary.results]
        data = load_dataset(first.dataset, data_dir, features=models[0].features, download=False)
        if data.checksum != first.data:
            data = load_dataset(Path(run["data"]["source"]), features=models[0].features, download=False)
    except TapnetError:
        return None, ()
    if data.checksum != first.data:
        return None, ()
    counts = np.zeros((data.num_classes, data.num_classes), dtype=np.int64)
    for result, saved in zip(summary.results, models, strict=True):
        test = split(data.y, result.trial.protocol, result.trial.folds, result.trial.fold).test
        read = saved.reading(data.subset(test))
        np.add.at(counts, (data.y[test].numpy(), saved.probabilities(read).argmax(dim=1).numpy()), 1)
    return counts, models[0].class_names
