"""`tapnet datasets`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tapnet.cli.app import AsJson, DataDir, notes
from tapnet.errors import DatasetNotFoundError, SettingError, TapnetError

if TYPE_CHECKING:
    pass


def datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Names or paths; without any, the paper's ten.")] = None,
    data_dir: DataDir = None,
    download: Annotated[bool, typer.Option("--download", help="Download what is not here.")] = False,
    as_json: AsJson = False,
) -> None:
    """List data sets: where each is found, its size, and whether that is what the paper says."""
    from tapnet.cli.terminal import print_datasets
    from tapnet.data.catalog import CATALOG

    rows = [_dataset_row(name, data_dir, download, strict=bool(names)) for name in names or CATALOG]
    if as_json:
        print(json.dumps({"datasets": rows}, indent=2))
    else:
        print_datasets(rows)
    if any(row.get("problem") for row in rows):
        raise typer.Exit(1)


def _dataset_row(name: str, data_dir: Path | None, download: bool, strict: bool) -> dict[str, Any]:
    from tapnet.data.catalog import Statistics, find_entry
    from tapnet.io.load import load_dataset

    try:
        with notes():
            dataset = load_dataset(name, data_dir, download=download)
    except TapnetError as error:
        if strict or isinstance(error, SettingError):
            raise
        return {"name": name, "found": None, "problem": None if isinstance(error, DatasetNotFoundError) else str(error)}
    statistics, entry = Statistics.of(dataset), find_entry(dataset.name)
    return {
        "name": dataset.name,
        "found": dataset.source,
        "place": dataset.place,
        "graphs": statistics.graphs,
        "mean_nodes": round(statistics.mean_nodes, 2),
        "mean_edges": round(statistics.mean_edges, 2),
        "classes": statistics.classes,
        "features": dataset.features,
        "num_features": dataset.num_features,
        "class_values": dict(
            zip(map(str, dataset.classes), dataset.class_names or map(str, dataset.classes), strict=True)
        ),
        "category_values": dict(zip(map(str, dataset.categories or ()), dataset.category_names, strict=True)),
        "differs_from_paper": None if entry is None else statistics.differences(entry),
        "checksum": dataset.checksum,
    }
