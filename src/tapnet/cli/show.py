"""`tapnet show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tapnet.cli.app import AsJson, DataDir, OwnConv, OwnPool, notes, own_layer
from tapnet.errors import DataError, SettingError
from tapnet.files import path_exists

COMPARISON = "comparison.json"
FORMATS = (".png", ".svg", ".pdf")


def show(
    model: Annotated[
        Path, typer.Argument(help="A model file; or the folder of a run (its curves, or a graph) or a comparison.")
    ],
    graph: Annotated[
        str | None, typer.Argument(help="A graph's number or file name in the data set, or a file with one graph.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A .png, .svg or .pdf file.", show_default="NAME-GRAPH.png")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The data set that a number belongs to.", show_default="the model's own")
    ] = None,
    pool: OwnPool = None,
    conv: OwnConv = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Draw what a prediction rests on, then what pooling kept; the curves and calibration of a run; or a comparison.

    Orange nodes and edges speak for the prediction, blue ones against it.
    """
    if out is not None and out.suffix.lower() not in FORMATS:
        raise SettingError(f"--out is a {', '.join(FORMATS)} file, not {out.name!r}")
    stored = model / COMPARISON if model.is_dir() else model
    is_comparison = graph is None and stored.name == COMPARISON and stored.exists()
    if graph is None and not model.is_dir() and not is_comparison:
        from tapnet.inference.model_file import find_model_file

        if not path_exists(find_model_file(model)):
            raise DataError(f"{model}: no such file, folder or model")
        raise SettingError("which graph? Give its number in the data set, or a file with one graph")
    from tapnet.experiments.calibration import calibration
    from tapnet.experiments.comparison import load_comparison
    from tapnet.experiments.load_run import load_run
    from tapnet.inference.model import load_model
    from tapnet.viz import draw_attributions, plot_comparison, plot_run, save

    with notes():
        if is_comparison:
            table = load_comparison(stored)
            figure, target, text = plot_comparison(table), stored.with_suffix(".png"), repr(table)
            values = table.to_dict()
        elif graph is None:
            run = load_run(model, own_layer(pool), own_layer(conv))
            figure, target, text = plot_run(run, data_dir), model / "curves.png", repr(run)
            layers = (f"Pooling layer {i}: {layer}" for i, layer in enumerate(run.diagnostics, 1))
            try:
                found = calibration(run)
                calibrated, values = str(found), run.to_dict() | {"calibration": found.to_dict()}
            except SettingError:  # numbers, or a run without predictions
                calibrated, values = "", run.to_dict() | {"calibration": None}
            lines = (calibrated, *layers, run.baseline_warning, run.machines_note, *run.notes)
            text = "\n".join([text, *(line for line in lines if line)])
        else:
            saved = load_model(model, own_layer(pool), own_layer(conv))
            explained = saved.explain(graph, dataset=dataset, data_dir=data_dir)
            drawn = explained.graph
            assert drawn is not None
            figure, target = draw_attributions([explained], kept=True), Path(f"{drawn.stem}.png")
            text, values = explained.report(), explained.to_dict() | drawn.to_dict()
    target = out or target
    save(figure, target.with_suffix(""), (target.suffix.lower()[1:],))
    typer.echo(json.dumps(values | {"written": str(target)}) if as_json else f"{text}\nWritten: {target}")
