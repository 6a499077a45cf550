"""The command `tapnet`. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from tapnet import __version__
from tapnet.errors import DatasetNotFoundError, TapnetError

app = typer.Typer(
    name="tapnet",
    help="Topology-aware graph pooling: train, compare and look at graph pooling networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="TAPNET_DATA", help="Folder with data sets: NAME/, NAME.zip or NAME.txt."),
]


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error, never a traceback."""
    try:
        app()
    except TapnetError as error:
        _stop(str(error), error.exit_code)


def _stop(message: str, code: int) -> NoReturn:
    print(f"tapnet: {message}", file=sys.stderr)
    raise SystemExit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tapnet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


@app.command()
def datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Names or paths; without any, the paper's ten.")] = None,
    data_dir: DataDir = None,
    download: Annotated[bool, typer.Option("--download", help="Download what is not here.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """List data sets: where each is found, its size, and whether that is what the paper says."""
    from tapnet.data.catalog import CATALOG

    rows = [_dataset_row(name, data_dir, download, strict=bool(names)) for name in names or CATALOG]
    if as_json:
        print(json.dumps({"datasets": rows}, indent=2))
    else:
        _print_datasets(rows)


def _dataset_row(name: str, data_dir: Path | None, download: bool, strict: bool) -> dict[str, Any]:
    from tapnet.data.catalog import Statistics, category_names, class_names, find_entry
    from tapnet.data.load import load_dataset

    entry = find_entry(name)
    try:
        dataset = load_dataset(name, data_dir, download=download)
    except DatasetNotFoundError:
        if strict:
            raise
        return {"name": name, "found": None}
    statistics = Statistics.of(dataset)
    return {
        "name": dataset.name,
        "found": dataset.source,
        "graphs": statistics.graphs,
        "mean_nodes": round(statistics.mean_nodes, 2),
        "mean_edges": round(statistics.mean_edges, 2),
        "classes": statistics.classes,
        "features": dataset.features,
        "num_features": dataset.num_features,
        "class_values": dict(zip(map(str, dataset.classes), class_names(dataset), strict=True)),
        "category_values": dict(zip(map(str, dataset.categories or ()), category_names(dataset), strict=True)),
        "differs_from_paper": None if entry is None else statistics.differences(entry),
        "checksum": dataset.checksum,
    }


def _print_datasets(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("data set", no_wrap=True)
    table.add_column("found", overflow="fold")
    for title in ("graphs", "nodes", "edges"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("cls", justify="right", no_wrap=True)
    table.add_column("features", no_wrap=True)
    table.add_column("as paper")
    for row in rows:
        if row["found"] is None:
            table.add_row(row["name"], "[dim]not here[/]", *["[dim]–[/]"] * 4, "[dim]–[/]", "[dim]–[/]")
            continue
        differs = row["differs_from_paper"]
        verdict = "[dim]not in it[/]" if differs is None else ("[yellow]" + "; ".join(differs) if differs else "yes")
        table.add_row(
            row["name"],
            row["found"],
            str(row["graphs"]),
            f"{row['mean_nodes']:.2f}",
            f"{row['mean_edges']:.2f}",
            str(row["classes"]),
            f"{row['num_features']} {row['features']}",
            verdict,
        )
    console = Console()
    console.print(table)
    if any(row["found"] is None for row in rows):
        console.print(
            "[dim]Not here: name a folder that has it with --data-dir or TAPNET_DATA, or download it with "
            "--download.[/]"
        )
