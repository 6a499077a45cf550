"""The final model: after a cross-validation, one network trained on every graph, in one file."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import torch

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError, TapnetError
from tapnet.experiments.run_trial import CHECKPOINT_EVERY, make_trainer, resumed
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial
from tapnet.files import remove_partial_files
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import FINAL_MODEL, CrossValidationRecord, FinalRecord, ModelCard, read_model
from tapnet.models.base import GraphClassifier
from tapnet.training.device import isolated

EPOCHS_RULE = "the median of the folds' epochs"
GRAPHS_CHECKED = 256


@dataclass(frozen=True, eq=False)
class FinalTrial(Trial):
    """A trial that tests nothing: it trains on all graphs, whatever its fold."""

    trains_on: Literal["all graphs"] = "all graphs"  # so that its key and seed are those of no fold

    @classmethod
    def after(cls, summary: Summary) -> FinalTrial:
        """With the settings of a cross-validation, for the median of the epochs that its folds report."""
        first = summary.results[0].trial
        epochs = statistics.median_high(r.reading.epoch for r in summary.results)
        values = {f.name: getattr(first, f.name) for f in fields(first)}
        return cls(**values | {"fold": 0, "devices": 1, "training": first.training.replace(epochs=epochs)})


def is_of_another_run(file: Path, summary: Summary) -> bool:
    """Whether there is a final model that does not follow from this cross-validation."""
    card = _card_in(file)
    return card is not None and (card.final is None or card.final.key != FinalTrial.after(summary).key)


def train_final(
    summary: Summary,
    dataset: GraphDataset,
    store: Store,
    *,
    checkpoint_every: int = CHECKPOINT_EVERY,
    progress: Callable[[int], None] = lambda _: None,
) -> Path:
    """Trains the final model, from its last checkpoint if there is one, unless its file is there already.

    Args:
        summary: the cross-validation that it follows.
        dataset: the data, all of which it is trained on.
        store: where the model and its checkpoints go.
        checkpoint_every: so many epochs.
        progress: called with the number of epochs that were added.

    Returns:
        The file of the model.

    Raises:
        TapnetError: if training diverged, so that the model's answers are no numbers.
    """
    trial, file = FinalTrial.after(summary), store.folder / FINAL_MODEL
    card = _describe(trial, dataset, summary)
    with store.claim(trial, wait=True):
        there = _card_in(file)
        if there is None or there.to_dict() != card.to_dict():
            remove_partial_files(file)
            with isolated(trial.threads):
                saved = SavedModel(_trained(trial, dataset, store, checkpoint_every, progress), card)
            some = saved.encode(dataset.subset(range(min(len(dataset), GRAPHS_CHECKED))))
            if not bool(saved.probabilities(some).isfinite().all()):
                advice = f"lr is {trial.training.lr:g}, a smaller one may help"
                raise TapnetError(f"training the final model diverged: its answers are no numbers; {advice}")
            saved.save(file)
        store.drop_checkpoint(trial)
    return file


def _trained(
    trial: FinalTrial, dataset: GraphDataset, store: Store, checkpoint_every: int, progress: Callable[[int], None]
) -> GraphClassifier:
    graphs, state = torch.arange(len(dataset)), store.load_checkpoint(trial)
    trainer = resumed(lambda: make_trainer(trial, dataset, graphs), trial, store, state)
    progress(trainer.epoch)
    for _ in trainer.fit():
        progress(1)
        if trainer.epoch % checkpoint_every == 0:
            store.save_checkpoint(trial, trainer.state())
    return trainer.model.cpu().eval()


def _describe(trial: FinalTrial, dataset: GraphDataset, summary: Summary) -> ModelCard:
    """The card of a final model: also how it was trained, and which accuracy to expect."""
    final = FinalRecord(key=trial.key, graphs=len(dataset), epochs=trial.training.epochs, epochs_rule=EPOCHS_RULE)
    said = {k: v for k, v in summary.to_dict().items() if k in CrossValidationRecord.model_fields}
    folds = [{"fold": r.trial.fold, "epoch": r.reading.epoch, r.metric: r.reading.score} for r in summary.results]
    measured = CrossValidationRecord(**said | {"rules": summary.rules, "folds": folds})
    values = {k: v for k, v in trial.to_dict().items() if k != "trains_on"} | {"fold": None}
    return ModelCard.of(values, dataset, final=final, cross_validation=measured)


def _card_in(file: Path) -> ModelCard | None:
    """What a model file says of its model; None without one that can be read."""
    try:
        return read_model(file)[1]
    except DataError:
        return None
