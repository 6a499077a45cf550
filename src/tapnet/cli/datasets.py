"""`tapnet datasets`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tapnet.cli.app import AsJson, DataDir, notes
from tapnet.cli.train import Directed, EdgeLabel, NodeFeatures, NodeLabel, Smiles, Target, Task, Threshold
from tapnet.errors import DatasetNotFoundError, SettingError, TapnetError

in_making = partial(typer.Option, rich_help_panel="Generate")


def datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Names or paths; without any, the paper's ten.")] = None,
    data_dir: DataDir = None,
    download: Annotated[bool, typer.Option("--download", help="Download what is not here.")] = False,
    features: NodeFeatures = None,
    smiles: Smiles = None,
    target: Target = None,
    task: Task = None,
    threshold: Threshold = None,
    directed: Directed = False,
    node_label: NodeLabel = None,
    edge_label: EdgeLabel = None,
    make: Annotated[
        str | None,
        in_making(help="Generate data with a known truth: colors, triangles, needle, path or wl.", show_default=False),
    ] = None,
    graphs: Annotated[int, in_making(help="Their number.")] = 1000,
    nodes: Annotated[int, in_making(help="Of the largest graph; the smallest has half of them.")] = 50,
    seed: Annotated[int, in_making(help="The same seed makes the same data.", min=0)] = 0,
    out: Annotated[
        Path | None, in_making(help="The folder that is written, in the TU layout.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List data sets: where each is found, its size, and whether that is what the paper says; or generate one."""
    from tapnet.cli.terminal import print_datasets
    from tapnet.data.catalog import CATALOG

    if (make is None) != (out is None) or (make is not None and names):
        raise SettingError("--make KIND and --out FOLDER go together, without names of data sets")
    if make is not None and out is not None:
        from tapnet.data.generate import generate
        from tapnet.io.tu import write_tu

        made = generate(make, graphs, nodes, seed)
        write_tu(made.dataset, out, made.truth)
        names = [str(out)]
    options: dict[str, Any] = {"features": features, "smiles": smiles, "target": target, "task": task}
    options |= {
        "threshold": threshold,
        "directed": directed,
        "node_label": node_label,
        "edge_label": edge_label,
        "data_dir": data_dir,
        "download": download,
    }
    with notes() as said:
        rows = [_row(name, options, strict=bool(names)) for name in names or CATALOG]
    if as_json:
        print(json.dumps({"datasets": rows}, indent=2))
    else:
        print_datasets(rows, bool(names), said)
    if any(row.get("problem") for row in rows):
        raise typer.Exit(1)


def _row(name: str, options: dict[str, Any], strict: bool) -> dict[str, Any]:
    """A data set of the paper may be missing or broken; one that was named is an error then."""
    from tapnet.data.catalog import describe
    from tapnet.io.load import load_dataset

    try:
        return describe(load_dataset(name, **options))
    except TapnetError as error:
        if strict or isinstance(error, SettingError):
            raise
        return {"name": name, "found": None, "problem": None if isinstance(error, DatasetNotFoundError) else str(error)}
