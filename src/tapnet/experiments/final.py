"""The final model: after a cross-validation, a network trained on every graph, or those of the folds, in one file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError, SettingError, TapnetError
from tapnet.experiments.calibration import of_first_seed, out_of_fold
from tapnet.experiments.run_trial import CHECKPOINT_EVERY, make_trainer, resumed
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial, TrialResult, digest
from tapnet.files import remove_partial_files
from tapnet.inference.calibration import fit_calibration
from tapnet.inference.ensemble import Ensemble
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import (
    FINAL_MODEL,
    CrossValidationRecord,
    EnsembleRecord,
    FinalRecord,
    ModelCard,
    ReferenceRecord,
    read_model,
)
from tapnet.inference.uncertainty import conformal_scores, distances, fit_reference, with_quantiles
from tapnet.models.base import GraphClassifier
from tapnet.models.predictor import embed_graphs
from tapnet.models.registry import find_model
from tapnet.training.device import isolated

EPOCHS_RULE = "the median of the folds' epochs"
ENSEMBLE_RULE = "each network those of its fold"
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
        values["settings"] = first.settings.shortened((epochs - 1) / max(1, first.training.epochs - 1))
        return cls(**values | {"fold": 0, "devices": 1, "training": first.training.replace(epochs=epochs)})


def is_of_another_run(file: Path, summary: Summary) -> bool:
    """Whether there is a final model that does not follow from this cross-validation."""
    card = _card_in(file)
    keys = (FinalTrial.after(summary).key, _ensemble_key(summary.results))
    return card is not None and (card.final is None or card.final.key not in keys)


def train_final(
    summary: Summary,
    dataset: GraphDataset,
    store: Store,
    *,
    ensemble: bool = False,
    checkpoint_every: int = CHECKPOINT_EVERY,
    progress: Callable[[int], None] = lambda _: None,
) -> Path:
    """Makes the final model, unless its file is there already.

    One network is trained on all graphs, from its last checkpoint if there is one; an ensemble is the folds' networks.
    The model's card gets a calibration, the scores of held-out graphs and what the training graphs are like, so that
    the model can say how sure it is.

    Args:
        summary: the cross-validation that it follows.
        dataset: the data, all of which it is trained on.
        store: where the model and its checkpoints go.
        ensemble: whether the folds' networks are the model.
        checkpoint_every: so many epochs.
        progress: called with the number of epochs that were added.

    Returns:
        The file of the model.

    Raises:
        SettingError: if an ensemble would be of one fold.
        TapnetError: if training diverged, so that the model's answers are no numbers.
    """
    trial, file = FinalTrial.after(summary), store.folder / FINAL_MODEL
    card = _describe(trial, dataset, summary, ensemble)
    with store.claim(trial, wait=True):
        there = _card_in(file)
        if there is None or there.to_dict() | {"reference": None} != card.to_dict() | {"reference": None}:
            remove_partial_files(file)
            with isolated(trial.threads):
                results = of_first_seed(summary.results)
                folds = _fold_networks(results, store, ensemble)
                trained = None if ensemble else _trained(trial, dataset, store, checkpoint_every, progress)
                saved = SavedModel(Ensemble(folds).eval() if trained is None else trained, card)
                some = saved.encode(dataset.subset(range(min(len(dataset), GRAPHS_CHECKED))))
                if not bool(saved.probabilities(some).isfinite().all()):
                    advice = f"lr is {trial.training.lr:g}, a smaller one may help"
                    raise TapnetError(f"training the final model diverged: its answers are no numbers; {advice}")
                reference = _reference(trained, folds, results, dataset)
            if reference is not None:
                saved = replace(saved, card=card.replace(reference=reference))
            saved.save(file)
        store.drop_checkpoint(trial)
    return file


def _reference(
    trained: GraphClassifier | None,
    folds: Sequence[GraphClassifier],
    results: Sequence[TrialResult],
    data: GraphDataset,
) -> ReferenceRecord | None:
    """What the training graphs are like to the model: to the network of all graphs, or to the first of an ensemble.

    How far away is usual is learned from the folds' networks and the graphs that each was not trained on; without
    these networks, from the training graphs.
    """
    trial = results[0].trial
    prepared = find_model(trial.model).prepare(data, trial.settings)
    of_folds, held_out = [], []
    try:
        for network, result in zip(folds, results, strict=bool(folds)):
            rows = embed_graphs(network, prepared).numpy()
            parts = result.trial.split_of(data)
            of_folds.append(fit_reference(rows[parts.train.numpy()]))
            held_out.append(distances(of_folds[-1], rows[parts.test.numpy()]))
        record = of_folds[0] if trained is None else fit_reference(embed_graphs(trained, prepared).numpy())
    except SettingError:  # a network without embeddings
        return None
    return with_quantiles(record, np.concatenate(held_out)) if held_out else record


def _fold_networks(results: Sequence[TrialResult], store: Store, needed: bool) -> list[GraphClassifier]:
    """The networks of the folds; none where one is missing, unless they are needed."""
    try:
        return [SavedModel.load(store.model_file(r.trial)).network for r in results]
    except DataError:
        if needed:
            raise
        return []


def _ensemble_key(results: Sequence[TrialResult]) -> str:
    return digest({"members": [r.trial.key for r in of_first_seed(results)]})


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


def _describe(trial: FinalTrial, dataset: GraphDataset, summary: Summary, ensemble: bool) -> ModelCard:
    """The card of a final model: also how it was trained, which accuracy to expect, and how sure it can be."""
    results = of_first_seed(summary.results)
    folds = [r.trial.fold for r in results]
    more: dict[str, Any] = {}
    final: dict[str, Any] = {"key": trial.key, "epochs_rule": EPOCHS_RULE}
    if ensemble:
        if len(results) < 2:
            raise SettingError("an ensemble is made of the networks of two folds or more")
        more["ensemble"] = EnsembleRecord(folds=folds, keys=[r.trial.key for r in results])
        final = {"key": _ensemble_key(results), "epochs_rule": ENSEMBLE_RULE, "members": len(results)}
    if (found := out_of_fold(results)) is not None:
        if found.task != "regression":
            more["calibration"] = fit_calibration(*found).record
        if (conformal := conformal_scores(*found, numbers=folds)) is not None:
            more["conformal"] = conformal
    more["final"] = FinalRecord(graphs=len(dataset), epochs=trial.training.epochs, **final)
    said = {k: v for k, v in summary.to_dict().items() if k in CrossValidationRecord.model_fields}
    by_fold = [{"fold": r.trial.fold, "epoch": r.reading.epoch, r.metric: r.reading.score} for r in summary.results]
    measured = None  # of a metric that is not defined there is nothing to expect
    if said["mean"] is not None:
        measured = CrossValidationRecord(**said | {"rules": summary.rules, "folds": by_fold})
    values = {k: v for k, v in trial.to_dict().items() if k != "trains_on"} | {"fold": None}
    return ModelCard.of(values, dataset, cross_validation=measured, **more)


def _card_in(file: Path) -> ModelCard | None:
    """What a model file says of its model; None without one that can be read."""
    try:
        return read_model(file)[1]
    except DataError:
        return None
