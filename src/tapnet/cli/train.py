"""`tapnet train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tapnet.cli.app import (
    INTERRUPTED,
    MACHINE,
    MODEL,
    PROTOCOL,
    TRAINING,
    VOTING,
    AsJson,
    CpusPerTrial,
    DataDir,
    GpusPerTrial,
    RayAddress,
    find_cluster,
    interrupts,
    notes,
    stop,
)
from tapnet.errors import SettingError


def train(
    dataset: Annotated[
        str, typer.Argument(help="A data set's name; or a path: TU folder, archive, text, or folder of graphs.")
    ] = "MUTAG",
    model: Annotated[
        str, typer.Option(help="The system; `tapnet models` lists them.", rich_help_panel=MODEL)
    ] = "tapnet",
    pool: Annotated[
        str | None,
        typer.Option(
            help="Pooling layer of tapnet: tap, topk, sort, diff, sag, eigen, haar or none.",
            show_default="tap",
            rich_help_panel=MODEL,
        ),
    ] = None,
    connectivity: Annotated[
        float | None,
        typer.Option(help="λ, the weight of the degree in the score.", show_default="0.1", rich_help_panel=MODEL),
    ] = None,
    similarity: Annotated[
        str | None,
        typer.Option(help="bilinear, dot, gaussian or concat.", show_default="bilinear", rich_help_panel=MODEL),
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(
            help="straight-through, none, sigmoid or tanh.", show_default="straight-through", rich_help_panel=MODEL
        ),
    ] = None,
    norm: Annotated[
        str | None,
        typer.Option(
            help="Of the GCN: neighbour, symmetric, mean or sum.", show_default="neighbour", rich_help_panel=MODEL
        ),
    ] = None,
    local_voting: Annotated[
        bool | None,
        typer.Option(
            "--local-voting/--no-local-voting",
            help="The neighbours' vote (Eq. 1).",
            show_default="on",
            rich_help_panel=VOTING,
        ),
    ] = None,
    global_voting: Annotated[
        bool | None,
        typer.Option(
            "--global-voting/--no-global-voting",
            help="The whole graph's vote (Eq. 2).",
            show_default="on",
            rich_help_panel=VOTING,
        ),
    ] = None,
    aux: Annotated[
        float | None,
        typer.Option(
            help="Weight of the link prediction objective; 0 is off.", show_default="0", rich_help_panel=MODEL
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(help="On the inputs of GCN and pooling layers.", show_default="0.3", rich_help_panel=MODEL),
    ] = None,
    other_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any setting or training option; `tapnet models NAME` lists them.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Node features: labels, degrees or attributes.", rich_help_panel=MODEL)
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(help="fair: epoch of lowest validation loss; paper: best test epoch.", rich_help_panel=PROTOCOL),
    ] = "fair",
    folds: Annotated[int, typer.Option(help="The number of folds.", rich_help_panel=PROTOCOL)] = 10,
    only_folds: Annotated[
        str | None, typer.Option(help="Run some of them, such as 0,3.", rich_help_panel=PROTOCOL)
    ] = None,
    epochs: Annotated[int, typer.Option(help="Epochs a fold.", rich_help_panel=TRAINING)] = 200,
    batch_size: Annotated[
        int | None, typer.Option(help="Graphs a step.", show_default="the model's", rich_help_panel=TRAINING)
    ] = None,
    lr: Annotated[
        float | None, typer.Option(help="Learning rate of Adam.", show_default="the model's", rich_help_panel=TRAINING)
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="L2 regularisation.", show_default="the model's", rich_help_panel=TRAINING)
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Another seed gives other initial weights, order and dropout.", rich_help_panel=PROTOCOL)
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Folds at a time.", show_default="cores ÷ threads", rich_help_panel=MACHINE)
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads a fold.", rich_help_panel=MACHINE)] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=MACHINE)] = "auto",
    devices: Annotated[
        int | None,
        typer.Option(
            help="Processes or GPUs that share each step of a fold.",
            show_default="1; torchrun's",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    ray: RayAddress = None,
    cpus_per_trial: CpusPerTrial = None,
    gpus_per_trial: GpusPerTrial = None,
    checkpoint_every: Annotated[int, typer.Option(help="Epochs between checkpoints.", rich_help_panel=TRAINING)] = 20,
    final: Annotated[
        bool, typer.Option("--final", help="Then train one model on all graphs: final.safetensors in the run's folder.")
    ] = False,
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/DATASET-MODEL-…")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model by cross-validation and print its accuracy with the protocol behind it.

    The same command again does only what is missing. A folder of graphs holds a .graphml or .json file a graph, and
    labels.csv: a header (graph,class), then a line a graph.
    """
    chosen: dict[str, Any] = {
        "pool": pool,
        "connectivity": connectivity,
        "similarity": similarity,
        "gate": gate,
        "norm": norm,
        "local_voting": local_voting,
        "global_voting": global_voting,
        "aux": aux,
        "dropout": dropout,
        "batch_size": batch_size,
        "lr": lr,
        "weight_decay": weight_decay,
    }
    from tapnet.experiments.backends.processes import available_cores, get_ready, torchrun_rank, torchrun_size

    devices = devices or torchrun_size() or 1
    if jobs != 1 and devices == 1 and ray is None and available_cores() > 1:
        get_ready()  # other processes import what they need while this one does
    cluster, found_device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, threads, device)
    from tapnet.cli.terminal import fold_lines, print_summary
    from tapnet.experiments.cross_validate import cross_validate
    from tapnet.experiments.progress import is_watched
    from tapnet.experiments.run_trial import Interrupted
    from tapnet.paper.numbers import printed

    if interrupts:
        raise KeyboardInterrupt
    try:
        with notes():
            result = cross_validate(
                dataset,
                model,
                protocol=protocol,
                folds=folds,
                only_folds=_fold_numbers(only_folds),
                epochs=epochs,
                seed=seed,
                features=features,  # type: ignore[arg-type]
                data_dir=data_dir,
                out=out or Path("runs") / "{run}",
                jobs=jobs,
                threads=threads,
                device=found_device,
                devices=devices,
                cluster=cluster,
                checkpoint_every=checkpoint_every,
                final=final,
                progress=None if is_watched() else fold_lines(),
                **{name: value for name, value in chosen.items() if value is not None},
                **_named_settings(other_settings or []),
            )
    except Interrupted as stopped:
        stop(f"{stopped}; the same command goes on from there", INTERRUPTED)
    if torchrun_rank() > 0:  # the first process of the group reports
        return
    first, values = result.results[0].trial, result.to_dict()
    paper = printed(first.model, first.dataset, result.changed)
    if as_json:
        print(json.dumps(values | {"paper": None if paper is None else paper._asdict()}))
        return
    print_summary(result, result.changed, None if paper is None else str(paper), str(result.folder))
    if final:
        words = "Final model: {file}, trained on all {graphs} graphs; number of epochs: {epochs}, {epochs_rule}"
        typer.echo(words.format_map(values["final"]))


def _named_settings(words: list[str]) -> dict[str, Any]:
    """["dropout=0.5", "readout=mean"] → values as JSON reads them, else as text."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise SettingError(f"--set takes NAME=VALUE, not {word!r}")
        if name in ("model", "features", "protocol", "folds", "seed", "epochs"):
            raise SettingError(f"--set {name}: that is an option of its own, --{name}")
        try:
            values[name.strip().replace("-", "_")] = json.loads(text)
        except (ValueError, RecursionError):
            values[name.strip().replace("-", "_")] = text
    return values


def _fold_numbers(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(word) for word in text.split(",")]
    except ValueError:
        raise SettingError(f"--only-folds is a list such as 0,3, not {text!r}") from None
