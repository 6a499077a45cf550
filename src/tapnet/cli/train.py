"""`tapnet train`."""

from __future__ import annotations

import inspect
import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tapnet.cli.app import (
    INTERRUPTED,
    POOLS,
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
from tapnet.errors import SettingError
from tapnet.machine import restart_reproducibly

in_model, in_voting, in_data, in_protocol, in_training = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("Model", "Voting", "Data", "Protocol", "Training")
)
THE_MODELS = "the model's"

# Options that other commands have too.
Data = Annotated[
    str,
    typer.Argument(
        help="A data set's name; or a path: TU folder, archive, text, folder of graphs or matrices, molecules."
    ),
]
Pool = Annotated[
    str | None,
    in_model(help=f"Pooling layer of tapnet: {POOLS}, or a class of your own: module:Class.", show_default="tap"),
]
Conv = Annotated[
    str | None,
    in_model(help="Convolution: gcn, gin, gine (reads edges), sage, gat, or module:Class.", show_default="gcn"),
]
NamedSettings = Annotated[
    list[str] | None,
    in_model("--set", metavar="NAME=VALUE", help="Any setting or training option; `tapnet models NAME` lists them."),
]
NodeFeatures = Annotated[
    Literal["labels", "degrees", "log-degrees", "attributes", "all"] | None,
    in_data(help="Node features: labels, degrees, log-degrees, attributes, or all.", metavar="<str>"),
]
Smiles = Annotated[str | None, in_data(help="Column with the SMILES of molecules.", show_default="found")]
Target = Annotated[
    str | None, in_data(help="Column(s) of a table to predict, separated by commas.", show_default="found")
]
Task = Annotated[
    Literal["classification", "multilabel", "regression"] | None,
    in_data(help="classification, multilabel or regression.", metavar="<str>", show_default="found"),
]
Threshold = Annotated[
    float | None, in_data(help="Of matrices: entries up to this size are no edges.", show_default="0")
]
EPOCHS = "200; molecules: 20"
Directed = Annotated[bool, in_data("--directed", help="Keep the directions of edges.")]
NodeLabel = Annotated[
    str | None,
    in_data(help="Of GraphML and JSON: node attribute(s) that are categories, as a,b.", show_default="label or texts"),
]
EdgeLabel = Annotated[
    str | None,
    in_data(help="Of GraphML and JSON: edge attribute(s) that are categories.", show_default="label or texts"),
]
Split = Annotated[
    str | None,
    in_data(help="random, scaffold, deduplicate, group:COLUMN, column:NAME, or FILE.json.", show_default="random"),
]
MetricNames = Annotated[
    str | None,
    in_protocol(help="One or several: accuracy, roc_auc, f1, rmse and others.", show_default="the task's"),
]
SelectBy = Annotated[str | None, in_protocol(help="Metric that chooses the epoch.", show_default="the protocol's")]
ClassWeight = Annotated[
    Literal["balanced"] | None,
    in_training(help="balanced: every class counts the same, and of labels yes and no.", metavar="<str>"),
]
Threads = Annotated[int, machine(help="Threads of each fold.", min=1)]
CheckpointEvery = Annotated[int, in_training(help="Epochs between checkpoints.", min=1)]


def train(
    dataset: Data = "MUTAG",
    model: Annotated[
        str | None, in_model(help="The system; `tapnet models` lists them.", show_default="tapnet")
    ] = None,
    pool: Pool = None,
    conv: Conv = None,
    connectivity: Annotated[
        float | None, in_model(help="λ, the weight of the degree in the score.", show_default="0.1")
    ] = None,
    similarity: Annotated[
        str | None, in_model(help="bilinear, dot, gaussian or concat.", show_default="bilinear")
    ] = None,
    gate: Annotated[
        str | None, in_model(help="straight-through, none, sigmoid or tanh.", show_default="straight-through")
    ] = None,
    norm: Annotated[
        str | None, in_model(help="Of the GCN: neighbour, symmetric, mean or sum.", show_default="neighbour")
    ] = None,
    local_voting: Annotated[
        bool | None,
        in_voting("--local-voting/--no-local-voting", help="The neighbours' vote (Eq. 1).", show_default="on"),
    ] = None,
    global_voting: Annotated[
        bool | None,
        in_voting("--global-voting/--no-global-voting", help="The whole graph's vote (Eq. 2).", show_default="on"),
    ] = None,
    aux: Annotated[
        float | None, in_model(help="Weight of the link prediction objective; 0 is off.", show_default="0")
    ] = None,
    dropout: Annotated[
        float | None, in_model(help="On the inputs of GCN and pooling layers.", show_default="0.3")
    ] = None,
    settings_file: Annotated[
        Path | None, in_model("--settings", metavar="FILE", help="Settings that `tapnet tune` found.")
    ] = None,
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
    protocol: Annotated[
        Literal["paper", "fair", "nested"],
        in_protocol(
            help="fair: epoch of lowest validation loss; paper: best test epoch; nested: settings chosen per fold."
        ),
    ] = "fair",
    configs: Annotated[
        int | None,
        in_protocol(help="Of nested: configurations tried for each fold.", min=1, show_default="16"),
    ] = None,
    search: Annotated[
        Literal["random", "tpe"] | None, in_protocol(help="Of nested: how they are drawn.", show_default="random")
    ] = None,
    folds: Annotated[int, in_protocol(help="The number of folds.")] = 10,
    only_folds: Annotated[str | None, in_protocol(help="Run some of them, such as 0,3.")] = None,
    epochs: Annotated[int | None, in_training(help="Epochs of each fold.", min=1, show_default=EPOCHS)] = None,
    batch_size: Annotated[int | None, in_training(help="Graphs in a step.", show_default=THE_MODELS)] = None,
    lr: Annotated[float | None, in_training(help="Learning rate of Adam.", show_default=THE_MODELS)] = None,
    weight_decay: Annotated[float | None, in_training(help="L2 regularisation.", show_default=THE_MODELS)] = None,
    seed: Annotated[int, in_protocol(help="Another seed gives other initial weights, order and dropout.", min=0)] = 0,
    seeds: Annotated[int, in_protocol(help="Train every fold with so many seeds, from --seed on.", min=1)] = 1,
    new_folds: Annotated[bool, in_protocol("--new-folds", help="Each seed draws folds of its own.")] = False,
    jobs: Annotated[int | None, machine(help="Folds at a time.", show_default="cores ÷ threads", min=1)] = None,
    threads: Threads = 1,
    device: Device = "auto",
    devices: Annotated[
        int | None,
        machine(help="Processes or GPUs that share each step of a fold.", show_default="1; torchrun's", min=1),
    ] = None,
    reproducible: Reproducible = False,
    ray: RayAddress = None,
    cpus_per_trial: CpusPerTrial = None,
    gpus_per_trial: GpusPerTrial = None,
    checkpoint_every: CheckpointEvery = 20,
    final: Annotated[
        Literal["single", "ensemble"] | None,
        typer.Option(
            "--final",
            metavar="[single|ensemble]",
            help="Then train one model on all graphs, or keep the folds' models in one: RUN/final.safetensors.",
        ),
    ] = None,
    save_splits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the folds' graphs as JSON, which --split takes.")
    ] = None,
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/DATASET-MODEL-…")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model by cross-validation and print its accuracy with the protocol behind it.

    The same command again does only what is missing. A folder of graphs holds a .graphml or .json file for each graph,
    and labels.csv: a header (graph,class), then one line per graph.

    Example: tapnet train PTC --model gin --protocol nested --configs 16.
    """
    from tapnet.experiments.backends.processes import (
        available_cores,
        get_ready,
        importing,
        torchrun_rank,
        torchrun_size,
    )

    of_nested = nested_options(protocol, configs=configs, search=search)
    if reproducible:
        restart_reproducibly()
    own_layer(pool)
    own_layer(conv)
    devices = devices or torchrun_size() or 1
    if jobs != 1 and devices == 1 and ray is None and available_cores() > 1:
        get_ready()  # other processes import what they need while this one does
    cluster, trial_device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, threads, device)
    with importing():
        from tapnet.cli.terminal import fold_lines, print_summary
        from tapnet.experiments.cross_validate import cross_validate
        from tapnet.experiments.progress import is_watched
        from tapnet.experiments.run_trial import Interrupted
        from tapnet.experiments.tune import load_settings
        from tapnet.paper.numbers import printed

    if interrupts:
        raise KeyboardInterrupt
    settings: dict[str, Any] = {
        "pool": pool,
        "conv": conv,
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
    reading = {"smiles": smiles, "target": target, "task": task, "threshold": threshold, "directed": directed or None}
    reading |= {"node_label": node_label, "edge_label": edge_label}
    known = inspect.signature(cross_validate).parameters.keys() - {"pool", "conv"}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= named_settings(other_settings or [], known)
    if settings_file is not None:
        named, found = load_settings(settings_file)
        if model is not None and named not in (None, model):
            raise SettingError(f"{settings_file} has settings of {named:.100}, not of {model}")
        found_epochs = found.pop("epochs", None)
        model, epochs = model or named, found_epochs if epochs is None else epochs
        for name in found.keys() & known:
            raise SettingError(f"{settings_file}: {name} is not a setting of the model or of training")
        for name in ("pool", "conv"):
            if ":" in str(found.get(name)) and name not in settings:  # nothing is imported because a file says so
                raise SettingError(f"{settings_file} uses the class {found[name]!s:.100}: name it with --{name}")
        settings = {**found, **settings}
    try:
        with notes():
            result = cross_validate(
                dataset,
                model or "tapnet",
                protocol=protocol,
                folds=folds,
                only_folds=fold_numbers(only_folds),
                epochs=epochs,
                seed=seed,
                seeds=seeds,
                new_folds=new_folds,
                metric=metric,
                select_by=select_by,
                split=split,
                class_weight=class_weight,
                features=features,
                reading={k: v for k, v in reading.items() if v is not None},
                data_dir=data_dir,
                out=out or Path("runs") / "{run}",
                jobs=jobs,
                threads=threads,
                device=trial_device,
                devices=devices,
                cluster=cluster,
                checkpoint_every=checkpoint_every,
                final=final or False,
                reproducible=reproducible,
                progress=None if is_watched() else fold_lines(several_seeds=seeds > 1 or protocol == "nested"),
                **of_nested,
                **settings,
            )
    except Interrupted as stopped:
        stop(f"{stopped}; the same command goes on from there", INTERRUPTED)
    if torchrun_rank() > 0:  # the first process of the group reports
        return
    if save_splits is not None:
        result.save_splits(save_splits)
    first, values = result.results[0].trial, result.to_dict()
    paper = printed(first.model, first.dataset, result.changed)
    if as_json:
        print(json.dumps(values | {"paper": None if paper is None else paper._asdict()}))
        return
    print_summary(result, paper, values.get("final"))


def named_settings(words: list[str], others: set[str]) -> dict[str, Any]:
    """["dropout=0.5", "readout=mean"] → values as JSON reads them, else as text."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        if not name or not equals:
            raise SettingError(f"--set takes NAME=VALUE, not {word!r}")
        if name in others:
            raise SettingError(f"--set {name}: not a setting of the model or of training; see `tapnet train --help`")
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
        if values[name] is None:
            raise SettingError(f"--set {name}=null: a setting that is left out has its default")
    return values


def nested_options(protocol: str, **options: Any) -> dict[str, Any]:
    """Those that were given; a SettingError for one that only the protocol nested uses."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and protocol != "nested":
        raise SettingError(f"--{next(iter(given))} is an option of the protocol nested, not of {protocol}")
    return given


def fold_numbers(text: str | None) -> list[int] | None:
    """The numbers in a text such as "0,3"."""
    try:
        return None if text is None else [int(word) for word in text.split(",")]
    except ValueError:
        raise SettingError(f"--only-folds is a list such as 0,3, not {text!r}") from None
