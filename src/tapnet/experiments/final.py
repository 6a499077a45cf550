"""The model to keep: after the cross-validation, one network trained on every graph, in one file."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch

from tapnet.data.dataset import GraphDataset
from tapnet.data.splits import Split
from tapnet.errors import DataError, TapnetError
from tapnet.experiments.run_trial import CHECKPOINT_EVERY, Run, describe_model
from tapnet.experiments.store import Store, load_model_file
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial
from tapnet.files import path_exists, remove_partial_files
from tapnet.inference.saved import GRAPHS_AT_ONCE, SavedModel
from tapnet.training.protocol import PROTOCOLS

FILE = "final.safetensors"
EPOCHS_RULE = "the median of the folds' epochs"


@dataclass(frozen=True, eq=False)
class FinalTrial(Trial):
    """A trial that tests nothing: it trains on all graphs, whatever its fold."""

    trains_on: Literal["all graphs"] = "all graphs"  # so that its key and seed are no fold's

    @classmethod
    def after(cls, summary: Summary) -> FinalTrial:
        """With the cross-validation's settings, for as many epochs as its median fold chose."""
        first = summary.results[0].trial
        epochs = statistics.median_high(r.reading.epoch for r in summary.results)
        values = {f.name: getattr(first, f.name) for f in fields(first)}
        return cls(**values | {"fold": 0, "devices": 1, "training": first.training.replace(epochs=epochs)})


def model_file(path: Path) -> Path:
    """A model's file as it is, and of a run's folder its final model."""
    if not (path_exists(path) and path.is_dir()):
        return path
    if not (path / FILE).is_file():
        models = next((folder for folder in (path, path / "models") if any(folder.glob("*.safetensors"))), None)
        which = "train with --final" if models is None else f"give one of those in {models}, or train with --final"
        raise DataError(f"{path}: this folder has no final model; {which}")
    return path / FILE


def is_of_another_run(file: Path, summary: Summary) -> bool:
    """Whether a final model is there, but not the one that would follow from this cross-validation."""
    about = _description(file)
    return about is not None and about.get("final", {}).get("key") != FinalTrial.after(summary).key


def train_final(
    summary: Summary,
    dataset: GraphDataset,
    store: Store,
    *,
    checkpoint_every: int = CHECKPOINT_EVERY,
    progress: Callable[[int], None] = lambda _: None,  # told the number of epochs that were added
) -> Path:
    """The file of the final model; trained only if it is not there yet, and from the last checkpoint."""
    trial, file = FinalTrial.after(summary), store.folder / FILE
    about = describe_final(trial, dataset, summary)
    with store.claim(trial, wait=True):
        if _description(file) != about:
            remove_partial_files(file)
            run = _trained(trial, dataset, store, checkpoint_every, progress)
            saved = SavedModel(run.model.cpu().eval(), about)
            _check_answers(saved, dataset, trial.training.lr)
            saved.save(file)
        store.drop_checkpoint(trial)
    return file


def _trained(
    trial: FinalTrial, dataset: GraphDataset, store: Store, checkpoint_every: int, progress: Callable[[int], None]
) -> Run:
    torch.set_num_threads(trial.threads)
    run = Run(trial, dataset)
    run.split = Split(train=torch.arange(len(dataset)), validation=None, test=torch.arange(0))
    if (state := store.load_checkpoint(trial)) is not None:
        run.restore(state)
    progress(run.epoch)
    while run.epoch < trial.training.epochs:
        run.train_epoch()
        progress(1)
        if run.epoch % checkpoint_every == 0:
            store.save_checkpoint(trial, run.state())
    return run


def _check_answers(saved: SavedModel, dataset: GraphDataset, lr: float) -> None:
    """Of some graphs that it was trained on; a model that answers nonsense is not worth a file."""
    some = saved.encode(dataset.subset(range(min(len(dataset), GRAPHS_AT_ONCE))))
    if not bool(saved.probabilities(some).isfinite().all()):
        raise TapnetError(
            f"training the final model diverged: its answers are no numbers; lr is {lr:g}, a smaller one may help"
        )


def describe_final(trial: FinalTrial, dataset: GraphDataset, summary: Summary) -> dict[str, Any]:
    """What every model's file says, and beside it how this one was trained and which accuracy to expect of it."""
    about = describe_model(trial, dataset)
    about["trial"] = {k: v for k, v in about["trial"].items() if k != "trains_on"} | {"fold": None}
    about["final"] = {
        "key": trial.key,
        "graphs": len(dataset),
        "epochs": trial.training.epochs,
        "epochs_rule": EPOCHS_RULE,
    }
    first = summary.results[0].trial
    about["cross_validation"] = {
        "mean": summary.mean,
        "std": summary.std,
        "protocol": first.protocol,
        "reading": PROTOCOLS[first.protocol],
        "rules": summary.rules,
        "num_folds": first.folds,
        "epochs": first.training.epochs,
        "folds": [{"fold": r.trial.fold, **r.reading._asdict()} for r in summary.results],
    }
    as_stored: dict[str, Any] = json.loads(json.dumps(about))
    return as_stored


def _description(file: Path) -> dict[str, Any] | None:
    """What a model's file says of itself; None without one that can be read."""
    try:
        return load_model_file(file)[1]
    except DataError:
        return None
