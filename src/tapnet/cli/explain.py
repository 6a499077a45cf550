"""`tapnet explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from tapnet.cli.app import AsJson, DataDir, ModelFile, OwnConv, OwnPool, notes, own_layer
from tapnet.cli.show import FORMATS
from tapnet.errors import SettingError


def explain(
    model: ModelFile,
    graphs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH",
            help="A graph's number or file name in the data set, a file with one graph, or a SMILES; several of them.",
        ),
    ] = None,
    method: Annotated[
        Literal["surrogate", "occlusion", "masking", "shapley", "gradients"],
        typer.Option(
            metavar="METHOD",
            help="surrogate (linear model of the network with random nodes hidden), occlusion (node removed), masking "
            "(node with mean features), shapley, or gradients (integrated).",
        ),
    ] = "surrogate",
    target: Annotated[
        str | None,
        typer.Option(help="The class, label or number to explain.", show_default="the predicted class"),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="The data set that a number belongs to.", show_default="the model's own"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A picture: a .png, .svg or .pdf file.")] = None,
    kept: Annotated[bool, typer.Option("--kept", help="In the picture, also what each pooling layer kept.")] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Which categories and groups carry the classes of the data set.")
    ] = False,
    as_json: AsJson = False,
    pool: OwnPool = None,
    conv: OwnConv = None,
    data_dir: DataDir = None,
) -> None:
    """Say what each node and edge of a graph does for a prediction, and how far that is true.

    The fidelity of an explanation is how far the prediction changes without its top nodes, against random ones.
    """
    if out is not None and out.suffix.lower() not in FORMATS:
        raise SettingError(f"--out is a {', '.join(FORMATS)} file, not {out.name!r}")
    if summary and (graphs or out is not None):
        raise SettingError("--summary is of a whole data set: it takes no graph and draws no picture")
    if not summary and not graphs:
        raise SettingError("which graph? Give its number in the data set, a file with one graph, or a SMILES")
    if kept and out is None:
        raise SettingError("--kept is a row of the picture: give --out FILE.svg, too")
    from tapnet.inference.attribution_summary import summarize_attributions
    from tapnet.inference.model import load_model

    with notes():
        saved = load_model(model, own_layer(pool), own_layer(conv))
        if summary:
            table = summarize_attributions(saved, dataset, method, target, data_dir=data_dir)
            typer.echo(json.dumps(table.to_dict(), indent=2) if as_json else str(table))
            return
        found = [saved.explain(graph, method, target, dataset=dataset, data_dir=data_dir) for graph in graphs or ()]
    if out is not None:
        from tapnet.viz import draw_attributions, save

        save(draw_attributions(found, kept=kept), out.with_suffix(""), (out.suffix.lower()[1:],))
    if as_json:
        values = [explanation.to_dict() for explanation in found]
        typer.echo(json.dumps(values[0] if len(values) == 1 else {"graphs": values}, indent=2))
        return
    texts = [explanation.report() for explanation in found]
    typer.echo("\n\n".join([*texts, *([] if out is None else [f"Written: {out}"])]))
