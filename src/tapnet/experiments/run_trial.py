"""Training one trial: epochs, evaluation, checkpoints; resumed runs equal uninterrupted ones to the bit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tapnet.data.dataset import GraphDataset
from tapnet.data.splits import Split
from tapnet.experiments.trial import Trial, TrialResult, rounded, versions
from tapnet.models.base import DataShape, GraphClassifier
from tapnet.models.registry import find_model
from tapnet.ops.connectivity import Connectivity
from tapnet.training.distributed import SINGLE_PROCESS, ProcessGroup
from tapnet.training.protocol import Reading, read_off, split
from tapnet.training.settings import TrainingSettings

CHECKPOINT_EVERY = 20  # epochs

Progress = Callable[[int, float], None]  # epochs done, accuracy that the protocol would report now


class Interrupted(Exception):
    """The trial was asked to stop; what it had done is in its checkpoint."""


class TrialStore(Protocol):
    """Where a trial leaves what it gives: a `Store`, or what stands for it where that is elsewhere."""

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None: ...
    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None: ...
    def drop_checkpoint(self, trial: Trial) -> None: ...
    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None: ...
    def save(self, result: TrialResult) -> None: ...


def run_trial(
    trial: Trial,
    dataset: GraphDataset,
    store: TrialStore,
    *,
    checkpoint_every: int = CHECKPOINT_EVERY,
    progress: Progress = lambda *_: None,
    should_stop: Callable[[], bool] = lambda: False,
    team: ProcessGroup = SINGLE_PROCESS,
) -> TrialResult:
    """Trains from the last checkpoint, if there is one, and stores the result and the model."""
    torch.set_num_threads(trial.threads)
    if find_model(trial.model).fit is not None:
        return _fit(trial, dataset, store, progress)
    run = Run(trial, dataset, team)
    state = team.broadcast(store.load_checkpoint(trial))
    if state is not None:
        run.restore(state)
    started = time.perf_counter() - run.seconds
    while run.epoch < trial.training.epochs:
        run.train_epoch()
        run.evaluate()
        run.seconds = time.perf_counter() - started
        progress(run.epoch, run.reading.accuracy)
        finished = run.epoch == trial.training.epochs
        if not finished and team.broadcast(should_stop()):
            store.save_checkpoint(trial, run.state())
            raise Interrupted
        if not finished and run.epoch % checkpoint_every == 0:
            store.save_checkpoint(trial, run.state())
    result = run.result()
    store.save_model(trial, run.best_weights, describe_model(trial, dataset))
    store.save(result)
    store.drop_checkpoint(trial)
    return result


def _fit(trial: Trial, dataset: GraphDataset, store: TrialStore, progress: Progress) -> TrialResult:
    """A system without epochs: it learns from everything but the test fold, choosing among its settings within that."""
    spec, started = find_model(trial.model), time.perf_counter()
    assert spec.fit is not None
    parts = split(dataset.y, trial.protocol, trial.folds, trial.fold)
    training = parts.train if parts.validation is None else torch.cat([parts.train, parts.validation])
    accuracy = spec.fit(spec.prepare(dataset, trial.settings), trial.settings, training, parts.test)
    result = TrialResult(trial, {"test_accuracy": [rounded(accuracy)]}, time.perf_counter() - started, 0, versions())
    progress(trial.training.epochs, accuracy)
    store.save(result)
    return result


def describe_model(trial: Trial, dataset: GraphDataset) -> dict[str, Any]:
    """What is needed to build the model again and to read its answers."""
    return {
        "trial": trial.to_dict(),
        "shape": asdict(DataShape.of(dataset)),
        "classes": list(dataset.classes),
        "features": dataset.features,
        "class_names": list(dataset.class_names or map(str, dataset.classes)),
        "categories": None if dataset.categories is None else list(dataset.categories),
        "category_names": list(dataset.category_names),
        "label_attribute": dataset.label_attribute if dataset.features == "labels" else None,
        "attribute_names": list(dataset.attribute_names or ()) or None if dataset.features == "attributes" else None,
    }


def make_optimizer(model: GraphClassifier, chosen: TrainingSettings) -> torch.optim.Optimizer:
    return torch.optim.Adam(
        model.parameters(), chosen.lr, weight_decay=chosen.weight_decay, amsgrad=chosen.amsgrad, fused=True
    )


def train_epoch(
    model: GraphClassifier,
    optimizer: torch.optim.Optimizer,
    dataset: GraphDataset,
    steps: Iterable[Tensor],
    device: str = "cpu",
    team: ProcessGroup = SINGLE_PROCESS,
) -> float:
    """One step of the optimizer for each group of graphs; the mean loss of a graph."""
    model.train()
    total, count = torch.zeros((), device=device), 0
    for graphs in steps:
        optimizer.zero_grad()
        mine, weight = team.shard(graphs)
        parts = model.micro_batches(mine, dataset.nodes_per_graph[mine])
        for i, part in enumerate(parts, 1):
            batch = dataset.batch(part).to(device)
            logits, auxiliary = model.outputs(batch)
            loss = cross_entropy(logits, batch.y)
            if auxiliary is not None:
                loss = loss + auxiliary
            scale = weight * len(part) / len(graphs)
            # the team takes the mean over its members, of which each has a part of the sum
            team.backward(model, loss if scale * team.size == 1 else loss * (scale * team.size), last=i == len(parts))
            total += loss.detach() * (weight * len(part))
        optimizer.step()
        count += len(graphs)
    return float(team.total(total)) / count


class Run:
    """The state of a trial between two epochs."""

    def __init__(self, trial: Trial, dataset: GraphDataset, team: ProcessGroup = SINGLE_PROCESS) -> None:
        spec = find_model(trial.model)
        self.trial, self.dataset = trial, spec.prepare(dataset, trial.settings)
        self.split: Split = split(dataset.y, trial.protocol, trial.folds, trial.fold)
        torch.manual_seed(trial.derived_seed)  # initialisation and dropout
        self.order = torch.Generator().manual_seed(trial.derived_seed)
        assert spec.build is not None
        self.model: GraphClassifier = spec.build(DataShape.of(dataset), trial.settings)
        self.model.to(trial.device)
        self.team, self.trained = team, team.join(self.model)
        self.optimizer = make_optimizer(self.model, trial.training)
        self.epoch = 0
        self.seconds = 0.0
        self.curves: dict[str, list[float]] = {"train_loss": [], "test_accuracy": []}
        if self.split.validation is not None:
            self.curves |= {"validation_loss": [], "validation_accuracy": []}
        self.best_weights: dict[str, Tensor] = {}

    def train_epoch(self) -> None:
        if every := self.trial.training.halve_lr_every:
            for group in self.optimizer.param_groups:
                group["lr"] = self.trial.training.lr * 0.5 ** (self.epoch // every)
        train = self.split.train
        shuffled = train[torch.randperm(len(train), generator=self.order)]
        steps = shuffled.split(self.trial.training.batch_size)
        if (seed := self.team.dropout_seed(self.trial.derived_seed, self.epoch)) is not None:
            torch.manual_seed(seed)
        loss = train_epoch(self.trained, self.optimizer, self.dataset, steps, self.trial.device, self.team)
        self.curves["train_loss"].append(rounded(loss))
        self.epoch += 1

    def evaluate(self) -> None:
        _, accuracy = self._loss_and_accuracy(self.split.test)
        self.curves["test_accuracy"].append(rounded(accuracy))
        if self.split.validation is not None:
            loss, accuracy = self._loss_and_accuracy(self.split.validation)
            self.curves["validation_loss"].append(rounded(loss))
            self.curves["validation_accuracy"].append(rounded(accuracy))
        if self.reading.epoch == self.epoch:  # the best so far
            self.best_weights = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}

    @torch.inference_mode()
    def _loss_and_accuracy(self, graphs: Tensor) -> tuple[float, float]:
        self.model.eval()
        loss = correct = torch.zeros((), dtype=torch.float64)
        mine, weight = self.team.shard(graphs)
        for many in mine.split(4 * self.trial.training.batch_size):
            for part in self.model.micro_batches(many, self.dataset.nodes_per_graph[many]):
                batch = self.dataset.batch(part).to(self.trial.device)
                logits = self.model.outputs(batch).logits
                loss = loss + cross_entropy(logits, batch.y, reduction="sum").double().cpu()
                correct = correct + (logits.argmax(1) == batch.y).sum().cpu()
        loss, correct = self.team.total(weight * torch.stack([loss, correct]))
        return float(loss) / len(graphs), 100 * float(correct) / len(graphs)

    @property
    def reading(self) -> Reading:
        return read_off(self.trial.protocol, self.curves)

    def result(self) -> TrialResult:
        parameters, coarsened = self.model.num_parameters, self._coarsened()
        return TrialResult(self.trial, self.curves, self.seconds, parameters, versions(), coarsened)

    @torch.inference_mode()
    def _coarsened(self) -> tuple[Connectivity, ...]:
        """How the test graphs hang together as they are, and after each pooling layer."""
        self.model.eval()
        levels: list[Connectivity] = []
        for graphs in self.split.test.split(4 * self.trial.training.batch_size):
            batch = self.dataset.batch(graphs).to(self.trial.device)
            if not (pooled := self.model.coarsened(batch)):
                return ()
            found = [Connectivity.of(b) for b in (batch, *pooled)]
            levels = [a + b for a, b in zip(levels, found, strict=True)] if levels else found
        return tuple(levels)

    def state(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "curves": self.curves,
            "best_weights": self.best_weights,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.order.get_state(),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state() if self.trial.device == "cuda" else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.epoch, self.seconds = state["epoch"], state["seconds"]
        self.curves, self.best_weights = state["curves"], state["best_weights"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.set_state(state["order"])
        torch.set_rng_state(state["random"])
        if state["random_cuda"] is not None:
            torch.cuda.set_rng_state(state["random_cuda"])
