"""The command `tapnet`. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.exceptions import Abort, TyperException

from tapnet import __version__
from tapnet.errors import DatasetNotFoundError, SettingError, TapnetError

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset
    from tapnet.training.trial import Trial

app = typer.Typer(
    name="tapnet",
    help="Topology-aware graph pooling: train, compare and look at graph pooling networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with data sets: NAME/, NAME.zip or NAME.txt. Default: TAPNET_DATA."),
]


def main() -> None:
    """Runs the command; a user's mistake is one line on standard error, never a traceback."""
    before = signal.signal(signal.SIGINT, _remember_interrupt)
    try:
        code = app(standalone_mode=False)
    except TapnetError as error:
        _stop(str(error), error.exit_code)
    except TyperException as error:
        if error.format_message():  # empty where help was shown instead
            _stop(" ".join(error.format_message().split()), 2)
        raise SystemExit(2) from None
    except (Abort, KeyboardInterrupt):
        code = INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    if code == INTERRUPTED:
        _stop("stopped", INTERRUPTED)
    raise SystemExit(code or 0)


_interrupts: list[int] = []


def _remember_interrupt(number: int, _: FrameType | None) -> None:
    """A KeyboardInterrupt can get lost in the imports of a library; before the work starts, this one is asked for."""
    _interrupts.append(number)
    raise KeyboardInterrupt


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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


# ---- datasets ----


@app.command()
def datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Names or paths; without any, the paper's ten.")] = None,
    data_dir: DataDir = None,
    download: Annotated[bool, typer.Option("--download", help="Download what is not here.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """List data sets: where each is found, its size, and whether that is what the paper says."""
    from tapnet.data.catalog import CATALOG
    from tapnet.terminal import print_datasets

    rows = [_dataset_row(name, data_dir, download, strict=bool(names)) for name in names or CATALOG]
    if as_json:
        print(json.dumps({"datasets": rows}, indent=2))
    else:
        print_datasets(rows)
    if any(row.get("problem") for row in rows):
        raise typer.Exit(1)


def _dataset_row(name: str, data_dir: Path | None, download: bool, strict: bool) -> dict[str, Any]:
    from tapnet.data.catalog import Statistics, find_entry
    from tapnet.data.load import load_dataset

    try:
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


# ---- train ----


@app.command()
def train(
    dataset: Annotated[str, typer.Argument(help="A data set's name, or the path of one.")] = "MUTAG",
    model: Annotated[str, typer.Option(help="The system; `tapnet models` lists them.")] = "tapnet",
    pool: Annotated[
        str | None,
        typer.Option(
            help="Pooling layer of tapnet: tap, topk, sort, diff, sag, eigen, haar or none.", show_default="tap"
        ),
    ] = None,
    connectivity: Annotated[
        float | None, typer.Option(help="λ, the weight of the degree in the score.", show_default="0.1")
    ] = None,
    similarity: Annotated[
        str | None, typer.Option(help="bilinear, dot, gaussian or concat.", show_default="bilinear")
    ] = None,
    gate: Annotated[
        str | None, typer.Option(help="straight-through, none, sigmoid or tanh.", show_default="straight-through")
    ] = None,
    norm: Annotated[
        str | None, typer.Option(help="Of the GCN: neighbour, symmetric, mean or sum.", show_default="neighbour")
    ] = None,
    local_voting: Annotated[bool | None, typer.Option("--local-voting/--no-local-voting", help="Eq. 1.")] = None,
    global_voting: Annotated[bool | None, typer.Option("--global-voting/--no-global-voting", help="Eq. 2.")] = None,
    aux: Annotated[
        float | None, typer.Option(help="Weight of the link prediction objective; 0 is off.", show_default="0")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="On the inputs of GCN and pooling layers.", show_default="0.3")
    ] = None,
    other_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any setting or training option; `tapnet models NAME` lists them."
        ),
    ] = None,
    features: Annotated[str | None, typer.Option(help="Node features: labels, degrees or attributes.")] = None,
    protocol: Annotated[
        str, typer.Option(help="fair: epoch of lowest validation loss; paper: best test epoch.")
    ] = "fair",
    folds: Annotated[int, typer.Option(help="The number of folds.")] = 10,
    only_folds: Annotated[str | None, typer.Option(help="Run some of them, such as 0,3.")] = None,
    epochs: Annotated[int, typer.Option(help="Epochs a fold.")] = 200,
    batch_size: Annotated[int | None, typer.Option(help="Graphs a step.", show_default="the model's")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of Adam.", show_default="the model's")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="L2 regularisation.", show_default="the model's")] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other initial weights, order and dropout.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Folds at a time.", show_default="cores ÷ threads")] = None,
    threads: Annotated[int, typer.Option(help="Threads a fold.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    checkpoint_every: Annotated[int, typer.Option(help="Epochs between checkpoints.")] = 20,
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/DATASET-MODEL-…")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Train a model by cross-validation and print its accuracy with the protocol behind it.

    The same command again does only what is missing.
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
    _check_counts(jobs=jobs, checkpoint_every=checkpoint_every)
    from tapnet.data.load import check_features, load_dataset
    from tapnet.models.registry import find_model
    from tapnet.models.spec import check_types
    from tapnet.training import protocol as protocols
    from tapnet.training.executors import DataReference
    from tapnet.training.trial import TrainingSettings, Trial

    spec = find_model(model)
    wanted = check_features(features)
    named = _named_settings(other_settings or [])
    of_training = {f.name for f in fields(TrainingSettings)} - {"epochs"}
    steps = {"batch_size": batch_size, "lr": lr, "weight_decay": weight_decay}
    steps = {k: v for k, v in steps.items() if v is not None} | {k: v for k, v in named.items() if k in of_training}
    given = {k: v for k, v in {**chosen, **named}.items() if v is not None and k not in of_training}
    spec.make_settings(dataset, given)
    check_types(TrainingSettings, steps)
    if spec.fit is not None and steps:
        raise SettingError(f"the model {model} is not trained in steps: it has no {', '.join(steps)}")
    training = TrainingSettings(**{**spec.training, **steps, "epochs": epochs if spec.fit is None else 1})
    rules = protocols.check(protocol, folds)
    chosen_folds = _fold_numbers(only_folds, folds)
    data = load_dataset(dataset, data_dir, features=wanted)
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
            device=_device(device),
        )
        for fold in chosen_folds
    ]
    reference = DataReference(dataset, None if data_dir is None else str(data_dir), wanted)
    _run(trials, data, reference, out, jobs, checkpoint_every, as_json)


def _run(
    trials: list[Trial],
    data: GraphDataset,
    reference: Any,
    out: Path | None,
    jobs: int | None,
    checkpoint_every: int,
    as_json: bool,
) -> None:
    from tapnet.paper.numbers import printed
    from tapnet.terminal import print_summary, training_progress
    from tapnet.training.executors import available_cores, run_trials
    from tapnet.training.store import Store
    from tapnet.training.summary import Summary, changed_settings

    first = trials[0]
    folder = out or Path("runs") / _run_name(first)
    store = Store(folder)
    done = sum(store.load(t) is not None for t in trials)
    if _interrupts:
        raise KeyboardInterrupt
    about = {
        "trials": [t.key for t in trials],
        "data": {"source": data.source, "checksum": data.checksum},
        "folder": str(folder),
    }
    store.save_run({**asdict(first), "state": "running", **about})  # also shows at once whether it can be written
    with training_progress(trials, done) as on_event:
        complete = run_trials(
            trials,
            reference,
            store,
            jobs=jobs or max(1, available_cores() // first.threads),
            checkpoint_every=checkpoint_every,
            on_event=on_event,
        )
    results = [result for t in trials if (result := store.load(t)) is not None]
    if not complete:
        _stop(
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
    if as_json:
        print(json.dumps(values))
    else:
        print_summary(summary, changed, None if paper is None else str(paper), str(folder))


def _named_settings(words: list[str]) -> dict[str, Any]:
    """["dropout=0.5", "readout=mean"] → values as JSON reads them, else as text."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise SettingError(f"--set takes NAME=VALUE, not {word!r}")
        try:
            values[name.strip().replace("-", "_")] = json.loads(text)
        except ValueError:
            values[name.strip().replace("-", "_")] = text
    return values


# ---- models ----


@app.command()
def models(
    names: Annotated[list[str] | None, typer.Argument(help="Names; without any, all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """List the systems that can be trained, with paper, parameters, and where each departs from its paper."""
    from tapnet.models.registry import MODELS, describe, find_model
    from tapnet.terminal import print_models
    from tapnet.training.trial import TrainingSettings

    rows = []
    for spec in map(find_model, names or MODELS):
        training = asdict(TrainingSettings(**spec.training)) if spec.fit is None else {}
        rows.append({**describe(spec), "training": training})
    if as_json:
        print(json.dumps({"models": rows}, indent=2))
    else:
        print_models(rows, in_full=bool(names))


# ---- bench ----


@app.command()
def bench(
    data_dir: DataDir = None,
    threads: Annotated[int | None, typer.Option(help="Threads of both sides.", show_default="all cores")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Time tapnet and PyG side by side on this machine; prints ratios. Takes a minute or two."""
    _check_counts(threads=threads)
    import torch

    from tapnet.bench import cases
    from tapnet.progress import working
    from tapnet.terminal import print_bench
    from tapnet.training.executors import available_cores

    torch.set_num_threads(threads or available_cores())
    with working("tapnet and PyG in turn"):
        measured = cases.short(data_dir)
    if as_json:
        print(json.dumps({"threads": torch.get_num_threads(), "cases": [case.to_dict() for case in measured]}))
    else:
        print_bench(measured, torch.get_num_threads())


# ---- helpers ----


def _run_name(trial: Trial) -> str:
    """One folder for trials that differ only in their fold."""
    from tapnet.training.trial import digest

    same = {key: value for key, value in asdict(trial).items() if key != "fold"}
    pool = getattr(trial.settings, "pool", "tap")
    layer = "" if pool == "tap" else f"-{pool}"
    return f"{trial.dataset}-{trial.model}{layer}-{trial.protocol}-{digest(same)[:8]}"


def _check_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise SettingError(f"--{name.replace('_', '-')} is at least 1, not {count}")


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


def _device(name: str) -> Any:
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise SettingError(f"--device is auto, cpu or cuda, not {name!r}")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise SettingError("--device cuda: there is no CUDA device here")
    return "cuda" if there and name != "cpu" else "cpu"
