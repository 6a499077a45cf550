"""`tapnet train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    check_counts,
    find_cluster,
    interrupts,
    notes,
    stop,
)
from tapnet.errors import SettingError

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset
    from tapnet.experiments.store import Store
    from tapnet.experiments.summary import Summary
    from tapnet.experiments.trial import Trial


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
    }
    check_counts(jobs=jobs, checkpoint_every=checkpoint_every, threads=threads, devices=devices)
    from tapnet.experiments.backends.processes import available_cores, get_ready, torchrun_rank, torchrun_size

    devices = devices or torchrun_size() or 1
    if devices > 1 and ray is not None:
        raise SettingError("--devices shares a fold, --ray hands out whole folds: one or the other")
    if devices > 1:
        from tapnet.experiments.backends.fabric import require_fabric

        require_fabric()
    cluster, found_device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, threads, device)
    jobs = jobs or max(1, available_cores() // threads)
    if jobs > 1 and devices == 1 and cluster is None:
        get_ready()
    from tapnet.experiments.backends.pool import DataReference, run_trials
    from tapnet.experiments.store import Store
    from tapnet.experiments.trial import Trial
    from tapnet.io.graph_folder import require_classes
    from tapnet.io.load import check_features, load_dataset
    from tapnet.models.registry import find_model
    from tapnet.training import protocol as protocols
    from tapnet.training.settings import TrainingSettings

    spec = find_model(model)
    wanted = check_features(features)
    named = _named_settings(other_settings or [])
    of_training = {*TrainingSettings.names()} - {"epochs"}
    steps = {"batch_size": batch_size, "lr": lr, "weight_decay": weight_decay}
    steps = {k: v for k, v in steps.items() if v is not None} | {k: v for k, v in named.items() if k in of_training}
    given = {k: v for k, v in {**chosen, **named}.items() if v is not None and k not in of_training}
    spec.settings.check_names(given, f"the model {model}", also=of_training)
    spec.make_settings(dataset, given)
    if spec.fit is not None and steps:
        raise SettingError(f"the model {model} is not trained in steps: it has no {', '.join(steps)}")
    if spec.fit is not None and devices > 1:
        raise SettingError(f"the model {model} is no network, so --devices has nothing to share")
    if spec.fit is not None and final:
        raise SettingError(f"the model {model} is no network, so --final has nothing to save")
    training = TrainingSettings(**{**spec.training, **steps, "epochs": epochs if spec.fit is None else 1})
    rules = protocols.check(protocol, folds)
    chosen_folds = _fold_numbers(only_folds, folds)
    with notes():
        data = load_dataset(dataset, data_dir, features=wanted)
    require_classes(data)
    protocols.split(data.y, rules, folds, 0)
    spec.prepare(data, spec.make_settings(data.name, given))  # here with a bar; the folds find it in the cache
    trials = [
        Trial(
            dataset=data.name,
            data=data.checksum,
            model=model,
            settings=spec.make_settings(data.name, given),
            protocol=rules,
            fold=fold,
            folds=folds,
            training=training,
            seed=seed,
            threads=threads,
            device=found_device,
            devices=devices,
        )
        for fold in chosen_folds
    ]
    reference = DataReference(dataset, None if data_dir is None else str(data_dir), features=wanted)
    if torchrun_rank() > 0:  # the first process of the team speaks and keeps the store
        run_trials(trials, reference, Store(Path()), checkpoint_every=checkpoint_every)
        return
    _run(trials, data, reference, out, jobs, cluster, checkpoint_every, final, as_json)


def _run(
    trials: list[Trial],
    data: GraphDataset,
    reference: Any,
    out: Path | None,
    jobs: int,
    cluster: Any,
    checkpoint_every: int,
    final: bool,
    as_json: bool,
) -> None:
    from tapnet.cli.terminal import print_summary, training_progress
    from tapnet.experiments.backends.pool import run_trials
    from tapnet.experiments.final import FILE, is_of_another_run
    from tapnet.experiments.store import Store
    from tapnet.experiments.summary import Summary, changed_settings
    from tapnet.paper.numbers import printed

    first = trials[0]
    folder = out or Path("runs") / _run_name(first)
    store = Store(folder)
    done = sum(store.load(t) is not None for t in trials)
    if interrupts:
        raise KeyboardInterrupt
    about = {
        "trials": [t.key for t in trials],
        "data": {"source": str(Path(data.source).resolve()), "checksum": data.checksum},
        "folder": str(folder),
    }
    store.save_run({**first.to_dict(), "state": "running", **about})  # also shows at once whether it can be written
    with training_progress(trials, done) as on_event:
        complete = run_trials(
            trials,
            reference,
            store,
            jobs=jobs,
            cluster=cluster,
            checkpoint_every=checkpoint_every,
            on_event=on_event,
        )
    results = [result for t in trials if (result := store.load(t)) is not None]
    if not complete:
        stop(
            f"stopped with {len(results)} of {len(trials)} folds done; the same command goes on from there", INTERRUPTED
        )
    summary = Summary(results)
    changed = changed_settings(first)
    paper = printed(first.model, first.dataset, changed)
    values = {
        **summary.to_dict(),
        "changed": changed,
        "paper": None if paper is None else paper._asdict(),
        **about,
    }
    store.save_run({**values, "state": "complete"})
    if not as_json:
        print_summary(summary, changed, None if paper is None else str(paper), str(folder))
    if final:
        values["final"] = _final(summary, data, store, checkpoint_every)
        store.save_run({**values, "state": "complete"})
        if not as_json:
            words = "Final model: {file}, trained on all {graphs} graphs; number of epochs: {epochs}, {epochs_rule}"
            typer.echo(words.format_map(values["final"]))
    elif is_of_another_run(folder / FILE, summary):
        typer.echo(f"tapnet: {folder / FILE} is of an earlier run with other settings; --final replaces it", err=True)
    if as_json:
        print(json.dumps(values))


def _final(summary: Summary, data: GraphDataset, store: Store, checkpoint_every: int) -> dict[str, Any]:
    """The model that is trained on everything: its file, and what that says of its training."""
    from tapnet.experiments.final import FinalTrial, train_final
    from tapnet.inference.saved import SavedModel
    from tapnet.progress import counting

    epochs = FinalTrial.after(summary).training.epochs
    try:
        with counting(epochs, f"final model, all {len(data)} graphs: epochs") as advance:
            file = train_final(summary, data, store, checkpoint_every=checkpoint_every, progress=advance)
    except KeyboardInterrupt:
        stop("stopped while training the final model; the same command goes on from its last checkpoint", INTERRUPTED)
    return {"file": str(file), **SavedModel.load(file).about["final"]}


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


def _run_name(trial: Trial) -> str:
    """One folder for trials that differ only in their fold."""
    from tapnet.experiments.trial import digest

    same = {key: value for key, value in trial.to_dict().items() if key != "fold"}
    pool = getattr(trial.settings, "pool", "tap")
    layer = "" if pool == "tap" else f"-{pool}"
    return f"{trial.dataset}-{trial.model}{layer}-{trial.protocol}-{digest(same)[:8]}"


def _fold_numbers(text: str | None, folds: int) -> list[int]:
    if text is None:
        return list(range(folds))
    try:
        numbers = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise SettingError(f"--only-folds is a list such as 0,3, not {text!r}") from None
    for number in numbers:
        if not 0 <= number < folds:
            raise SettingError(f"--only-folds: the folds are 0 to {folds - 1}; there is no fold {number}")
    return numbers
