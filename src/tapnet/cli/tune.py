"""`tapnet tune`."""

from __future__ import annotations

import inspect
import json
import shlex
from dataclasses import replace
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
    RayAddress,
    Reproducible,
    find_cluster,
    interrupts,
    machine,
    notes,
    own_layer,
    stop,
)
from tapnet.cli.train import (
    EPOCHS,
    CheckpointEvery,
    ClassWeight,
    Conv,
    Data,
    Directed,
    EdgeLabel,
    MetricNames,
    NamedSettings,
    NodeFeatures,
    NodeLabel,
    Pool,
    SelectBy,
    Smiles,
    Split,
    Target,
    Task,
    Threads,
    Threshold,
    fold_numbers,
    in_model,
    in_protocol,
    in_training,
    named_settings,
)
from tapnet.machine import restart_reproducibly

ALL = "all"


def tune(
    dataset: Data = "MUTAG",
    model: Annotated[str, in_model(help="The system; `tapnet models` lists them.")] = "tapnet",
    pool: Pool = None,
    conv: Conv = None,
    configs: Annotated[int, in_protocol(help="Configurations that are tried; the first is the usual one.", min=1)] = 32,
    search: Annotated[Literal["random", "tpe"], in_protocol(help="How they are drawn; tpe: Optuna's.")] = "random",
    no_halving: Annotated[
        bool, in_protocol("--no-halving", help="Train all to the end, not only the best third of each round.")
    ] = False,
    other_settings: NamedSettings = None,
    features: NodeFeatures = None,
    smiles: Smiles = None,
    target: Target = None,
    task: Task = None,
    threshold: Threshold = None,
    directed: Directed = False,
    node_label: NodeLabel = None,
    edge_label: EdgeLabel = None,
    split: Split = None,
    metric: MetricNames = None,
    select_by: SelectBy = None,
    class_weight: ClassWeight = None,
    folds: Annotated[int, in_protocol(help="The number of folds.")] = 10,
    only_folds: Annotated[str, in_protocol(help="Those that validate, such as 0,3, or all.")] = "0",
    epochs: Annotated[
        int | None, in_training(help="Epochs of the longest trainings.", min=1, show_default=EPOCHS)
    ] = None,
    seed: Annotated[int, in_protocol(help="Of the draws and of training.", min=0)] = 0,
    jobs: Annotated[int | None, machine(help="Trainings at a time.", show_default="cores ÷ threads", min=1)] = None,
    threads: Threads = 1,
    device: Device = "auto",
    reproducible: Reproducible = False,
    ray: RayAddress = None,
    cpus_per_trial: CpusPerTrial = None,
    gpus_per_trial: GpusPerTrial = None,
    checkpoint_every: CheckpointEvery = 20,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of results and settings.json.", show_default="runs/DATASET-MODEL-…")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search for settings of a system on a data set, by the score of graphs kept for validation.

    Writes settings.json, which `tapnet train --settings FILE` takes. The same command again does only what is missing.
    Example: tapnet tune PTC --model gin --configs 32.
    """
    from tapnet.experiments.backends.processes import available_cores, get_ready, importing

    if reproducible:
        restart_reproducibly()
    own_layer(pool)
    own_layer(conv)
    if jobs != 1 and ray is None and available_cores() > 1:
        get_ready()
    cluster, trial_device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, threads, device)
    with importing():
        from tapnet.cli.terminal import fold_lines, print_tuning
        from tapnet.experiments.progress import is_watched
        from tapnet.experiments.run_trial import Interrupted
        from tapnet.experiments.tune import tune as search_settings

    if interrupts:
        raise KeyboardInterrupt
    reading = {"smiles": smiles, "target": target, "task": task, "threshold": threshold, "directed": directed or None}
    reading |= {"node_label": node_label, "edge_label": edge_label}
    known = inspect.signature(search_settings).parameters.keys() - {"pool", "conv"}
    try:
        with notes():
            found = search_settings(
                dataset,
                model,
                pool=pool,
                conv=conv,
                configs=configs,
                search=search,
                halving=not no_halving,
                metric=metric,
                select_by=select_by,
                split=split,
                class_weight=class_weight,
                folds=folds,
                only_folds=None if only_folds == ALL else fold_numbers(only_folds),
                epochs=epochs,
                seed=seed,
                features=features,
                data_dir=data_dir,
                out=out or Path("runs") / "{run}",
                jobs=jobs,
                threads=threads,
                device=trial_device,
                cluster=cluster,
                checkpoint_every=checkpoint_every,
                reproducible=reproducible,
                progress=None if is_watched() else fold_lines(one_system=False),
                reading={k: v for k, v in reading.items() if v is not None},
                **named_settings(other_settings or [], known),
            )
    except Interrupted as stopped:
        stop(f"{stopped}; the same command goes on from there", INTERRUPTED)
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        print_tuning(replace(found, dataset=shlex.quote(dataset)))  # as a command takes it, which may be a path
