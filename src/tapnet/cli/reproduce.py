"""`tapnet reproduce`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tapnet.cli.app import (
    INTERRUPTED,
    AsJson,
    CpusPerTrial,
    DataDir,
    Device,
    GpusPerTrial,
    RayAddress,
    Reproducible,
    find_cluster,
    interrupts,
    machine,
    stop,
)
from tapnet.machine import restart_reproducibly
from tapnet.paper.budgets import BUDGETS, BudgetName
from tapnet.paper.run import Reproduction
from tapnet.paper.selection import Protocols

if TYPE_CHECKING:
    from tapnet.experiments.backends.pool import OnEvent
    from tapnet.experiments.trial import Trial


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="table1 to table5, lambda, norm, pools, connectivity; overview, coarsening, voting, architecture; all."
        ),
    ],
    datasets: Annotated[str | None, typer.Option(help="Some of the target's data sets, such as PTC,MUTAG.")] = None,
    systems: Annotated[str | None, typer.Option(help="Some of the target's rows, such as TAPNet,GIN.")] = None,
    protocol: Annotated[Protocols, typer.Option(help="Which epoch's accuracy counts.")] = "both",
    budget: Annotated[
        BudgetName | None,
        typer.Option(
            help="quick: a minute, proves the path; standard: an evening on two cores; paper: 10 folds × 200 epochs.",
            show_default="quick; paper with --stored",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Run only so many of the folds.", show_default="the budget's", min=1)
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of each fold.", show_default="the budget's", min=1)] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Train nothing: tables of what is stored.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Train nothing: list what is not stored yet.")] = False,
    jobs: Annotated[int | None, machine(help="Trials at a time.", show_default="the cores", min=1)] = None,
    device: Device = "auto",
    reproducible: Reproducible = False,
    ray: RayAddress = None,
    cpus_per_trial: CpusPerTrial = None,
    gpus_per_trial: GpusPerTrial = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of trials, tables and pictures.", show_default="results; results/quick for quick"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also put the tables into this Markdown file, between its two marks.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce a table or figure of the paper: its number, ours by its protocol, ours by a fair one.

    Trials are stored: nothing is computed twice, the same command goes on where it stopped, and files of another
    machine's trials/ can be copied into this one's.
    """
    if reproducible:
        restart_reproducibly()
    from tapnet import paper

    budget = budget or ("paper" if stored else "quick")
    cluster = None
    if any(option is not None for option in (ray, cpus_per_trial, gpus_per_trial)):
        cluster, device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, 1, device)
    asked: dict[str, Any] = {
        "datasets": datasets,
        "systems": systems,
        "protocol": protocol,
        "budget": budget,
        "folds": folds,
        "epochs": epochs,
        "out": out,
        "data_dir": data_dir,
        "device": device,
        "reproducible": reproducible,
    }
    if missing:
        listed = paper.missing(target, **asked)
        print(json.dumps(listed.to_dict()) if as_json else listed)
        return
    try:
        done = paper.reproduce(
            target, **asked, stored=stored, jobs=jobs, cluster=cluster, report=report, progress=_progress
        )
    except KeyboardInterrupt as stopped:
        if stopped.args:
            stop(f"{stopped}; the same command goes on from there", INTERRUPTED)
        raise
    if as_json:
        print(json.dumps(done.to_dict()))
        return
    _show(done)
    if stored and done.rows and not any(row["mean"] for row in done.rows):
        typer.echo(f"\nNothing is stored in {done.folder} for this; --out names another folder.")
    typer.echo("")
    if not (stored or folds or epochs) and (done.tables or any(figure.name == "coarsening" for figure in done.figures)):
        typer.echo(f"Budget {budget}: {BUDGETS[budget].description}.")
    typer.echo(f"Written to {done.folder}: {', '.join(file.name for file in done.files) or 'nothing'}")


def _progress(trials: Sequence[Trial]) -> AbstractContextManager[OnEvent]:
    from tapnet.cli.terminal import training_progress

    if interrupts:
        raise KeyboardInterrupt
    return training_progress(trials, 0)


def _show(done: Reproduction) -> None:
    from tapnet.cli.terminal import print_sections

    for table in done.tables:
        print_sections(table.title, table.sections, table.explanation)
    for figure in done.figures:
        if figure.text:
            typer.echo(f"\n{figure.title}\n{figure.text}")
