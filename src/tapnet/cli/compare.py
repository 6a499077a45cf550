"""`tapnet compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from tapnet.cli.app import (
    INTERRUPTED,
    AsJson,
    CpusPerTrial,
    DataDir,
    Device,
    GpusPerTrial,
    OwnConv,
    OwnPool,
    RayAddress,
    find_cluster,
    interrupts,
    machine,
    notes,
    own_layer,
    stop,
)
from tapnet.cli.show import FORMATS
from tapnet.cli.train import (
    EPOCHS,
    ClassWeight,
    Directed,
    EdgeLabel,
    NodeLabel,
    SelectBy,
    in_data,
    in_protocol,
    in_training,
    nested_options,
)
from tapnet.errors import SettingError

OF_STORED_RUNS = {"data", "reference", "metric", "pool", "conv", "out", "csv", "latex", "plot", "as_json"}
EXPLANATION = (
    "difference: from the reference, with its 95 % interval for folds that share training graphs (Nadeau and Bengio); "
    "adjusted p: for the number of comparisons (Holm), * below 5 %; visible: a difference as large would have been "
    "marked with a probability of 80 %"
)


def compare(
    context: typer.Context,
    data: Annotated[
        list[str],
        typer.Argument(help="A data set's name or path, with --systems; or the folders of runs and comparisons."),
    ],
    systems: Annotated[
        str | None,
        typer.Option(help="MODEL or MODEL:POOL, separated by commas: tapnet,tapnet:topk,gin,wl."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="The one that the others are compared with.", show_default="the first")
    ] = None,
    protocol: Annotated[
        Literal["paper", "fair", "nested"],
        in_protocol(help="fair: epoch of lowest validation loss; nested: settings chosen too; paper: best test epoch."),
    ] = "fair",
    metric: Annotated[
        str | None, in_protocol(help="accuracy, roc_auc, f1, rmse or another.", show_default="the task's")
    ] = None,
    select_by: SelectBy = None,
    class_weight: ClassWeight = None,
    seeds: Annotated[int, in_protocol(help="Train every fold with so many seeds.", min=1)] = 1,
    new_folds: Annotated[bool, in_protocol("--new-folds", help="Each seed draws folds of its own.")] = False,
    folds: Annotated[int, in_protocol(help="The number of folds.")] = 10,
    configs: Annotated[
        int | None, in_protocol(help="Of nested: settings that are tried for each fold.", min=1, show_default="16")
    ] = None,
    epochs: Annotated[int | None, in_training(help="Epochs of each fold.", min=1, show_default=EPOCHS)] = None,
    features: Annotated[
        Literal["labels", "degrees", "log-degrees", "attributes", "all"] | None,
        in_data(help="Node features: labels, degrees, log-degrees, attributes, or all.", metavar="<str>"),
    ] = None,
    smiles: Annotated[str | None, in_data(help="Column with the SMILES of molecules.", show_default="found")] = None,
    target: Annotated[
        str | None, in_data(help="Column(s) of a table to predict, separated by commas.", show_default="found")
    ] = None,
    task: Annotated[
        Literal["classification", "multilabel", "regression"] | None,
        in_data(help="classification, multilabel or regression.", metavar="<str>", show_default="found"),
    ] = None,
    threshold: Annotated[
        float | None, in_data(help="Of matrices: entries up to this size are no edges.", show_default="0")
    ] = None,
    directed: Directed = False,
    node_label: NodeLabel = None,
    edge_label: EdgeLabel = None,
    split: Annotated[
        str | None,
        in_data(help="random, scaffold, deduplicate, group:COLUMN, column:NAME, or FILE.json.", show_default="random"),
    ] = None,
    jobs: Annotated[int | None, machine(help="Folds at a time.", show_default="cores ÷ threads", min=1)] = None,
    threads: Annotated[int, machine(help="Threads of each fold.", min=1)] = 1,
    device: Device = "auto",
    ray: RayAddress = None,
    cpus_per_trial: CpusPerTrial = None,
    gpus_per_trial: GpusPerTrial = None,
    pool: OwnPool = None,
    conv: OwnConv = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the comparison.", show_default="runs/DATASET-compare-…")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the table to a CSV file.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the table to a LaTeX file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it: a .png, .svg or .pdf file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare systems on the same folds, and say which differ by more than chance.

    The baselines majority, size and bag are always among them. The same command again does only what is missing.
    """
    from tapnet.experiments.backends.processes import available_cores, get_ready, importing

    if plot is not None and plot.suffix.lower() not in FORMATS:
        raise SettingError(f"--plot is a {', '.join(FORMATS)} file, not {plot.name!r}")
    if systems is None and len(data) == 1:
        raise SettingError(
            "which systems? Name them, such as --systems tapnet,tapnet:topk,gin; or give two runs or more"
        )
    if systems is not None and len(data) > 1:
        raise SettingError(f"--systems are compared on one data set, not on {len(data)}; stored runs need no --systems")
    if systems is None:
        _refuse_options_of_training(context)
    of_nested = nested_options(protocol, configs=configs)
    named = (systems or "").split(",")
    for system in named:
        own_layer(system.partition(":")[2])
    if systems is not None and jobs != 1 and ray is None and available_cores() > 1:
        get_ready()  # other processes import what they need while this one does
    cluster, trial_device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, threads, device)
    with importing():
        from tapnet.cli.terminal import fold_lines
        from tapnet.experiments.compare import compare as compare_systems
        from tapnet.experiments.compare import compare_runs, load_stored
        from tapnet.experiments.progress import is_watched
        from tapnet.experiments.run_trial import Interrupted
        from tapnet.viz import save

    if interrupts:
        raise KeyboardInterrupt
    reading = {"smiles": smiles, "target": target, "task": task, "threshold": threshold, "directed": directed or None}
    reading |= {"node_label": node_label, "edge_label": edge_label}
    try:
        with notes():
            if systems is None:
                runs = [load_stored(run, own_layer(pool), own_layer(conv)) for run in data]
                table = compare_runs(runs, reference=reference, metric=metric)
                table = table if out is None else table.save(out)
            else:
                table = compare_systems(
                    data[0],
                    named,
                    reference=reference,
                    protocol=protocol,
                    metric=metric,
                    select_by=select_by,
                    class_weight=class_weight,
                    seeds=seeds,
                    new_folds=new_folds,
                    folds=folds,
                    epochs=epochs,
                    split=split,
                    features=features,
                    reading={k: v for k, v in reading.items() if v is not None},
                    data_dir=data_dir,
                    out=out or Path("runs") / "{run}",
                    jobs=jobs,
                    threads=threads,
                    device=trial_device,
                    cluster=cluster,
                    progress=None if is_watched() else fold_lines(False, seeds > 1 or protocol == "nested"),
                    **of_nested,
                )
    except Interrupted as stopped:
        stop(f"{stopped}; the same command goes on from there", INTERRUPTED)
    if csv is not None:
        table.to_csv(csv)
    if latex is not None:
        table.to_latex(latex)
    if plot is not None:
        save(table.plot(), plot.with_suffix(""), (plot.suffix.lower()[1:],))
    if as_json:
        print(json.dumps(table.to_dict()))
        return
    typer.echo(repr(table))
    typer.echo(f"({EXPLANATION})")
    if table.folder is not None:
        typer.echo(f"Comparison, runs and models: {table.folder}")


def _refuse_options_of_training(context: typer.Context) -> None:
    """Stored runs were trained with options of their own."""
    for name in context.params.keys() - OF_STORED_RUNS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = name.replace("_", "-")
            raise SettingError(f"--{option} is for training with --systems; stored runs were trained with their own")
