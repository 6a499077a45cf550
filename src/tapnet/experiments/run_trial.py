"""Running one trial: trainer, protocol, curves, checkpoints. A resumed trial equals an uninterrupted one to the bit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.experiments.store import TrialStore
from tapnet.experiments.trial import Predicted, Selection, Trial, TrialResult, rounded, versions
from tapnet.inference.explain import pooling_steps
from tapnet.inference.model_file import ModelCard
from tapnet.machine import require_reproducible
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.nn.pool.diagnostics import Columns, PoolDiagnostics, diagnose, summarize
from tapnet.ops.connectivity import Connectivity
from tapnet.training.device import isolated
from tapnet.training.distributed import SINGLE_PROCESS, ProcessGroup
from tapnet.training.metrics import DEFAULT_METRIC, METRICS
from tapnet.training.protocol import Reading, reported_reading
from tapnet.training.trainer import EVALUATION_STEPS, Evaluation, Trainer

CHECKPOINT_EVERY = 20  # epochs

_OWN_STATE = ("seconds", "curves", "best_weights", "predicted")  # of a trial, in its checkpoints

Progress = Callable[[int, float], None]  # epochs done, accuracy that the protocol would report now


class Resumable(Protocol):
    """What can continue from a checkpoint."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continues from a state; an exception for one that does not fit."""


R = TypeVar("R", bound=Resumable)


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop; what was done is in the checkpoints."""


def run_trial(
    trial: Trial,
    dataset: GraphDataset,
    store: TrialStore,
    *,
    checkpoint_every: int = CHECKPOINT_EVERY,
    progress: Progress = lambda *_: None,
    should_stop: Callable[[], bool] = lambda: False,
    group: ProcessGroup = SINGLE_PROCESS,
) -> TrialResult:
    """Trains from the last checkpoint, if there is one, and stores the result and the model.

    Args:
        trial: what to train.
        dataset: the data set that the trial names.
        store: where checkpoints, model and result go.
        checkpoint_every: so many epochs.
        progress: called after each epoch.
        should_stop: asked after each epoch.
        group: the processes that train it together.

    Raises:
        Interrupted: if it was asked to stop, after storing a checkpoint.
        SettingError: if the trial is to be reproducible, and this process was not started for it.
    """
    if trial.reproducible:
        require_reproducible()
    with isolated(trial.threads):
        if find_model(trial.model).fit is not None:
            return _fit(trial, dataset, store, progress)
        return _train(trial, dataset, store, checkpoint_every, progress, should_stop, group)


def _train(
    trial: Trial,
    dataset: GraphDataset,
    store: TrialStore,
    checkpoint_every: int,
    progress: Progress,
    should_stop: Callable[[], bool],
    group: ProcessGroup,
) -> TrialResult:
    state = group.broadcast(store.load_checkpoint(trial))
    run = resumed(lambda: TrialRun(trial, dataset, group), trial, store, state)
    started = time.perf_counter() - run.seconds
    for loss in run.trainer.fit():
        run.record(loss)
        run.seconds = time.perf_counter() - started
        if run.epoch < trial.training.epochs:
            progress(run.epoch, run.reading.score)
            stopped = group.broadcast(should_stop())
            if stopped or run.epoch % checkpoint_every == 0:
                store.save_checkpoint(trial, run.state())
            if stopped:
                raise Interrupted
    result = run.result()
    if trial.tested:
        store.save_model(trial, run.best_weights, describe_model(trial, dataset))
    else:
        store.save_checkpoint(trial, run.state())  # a trial with more epochs goes on from it
    store.save(result)
    if trial.tested:
        store.drop_checkpoint(trial)
    progress(run.epoch, run.reading.score)  # whoever hears of it finds the result stored
    return result


def resumed(make: Callable[[], R], trial: Trial, store: TrialStore, state: dict[str, Any] | None) -> R:
    """What ``make`` returns, continued from a checkpoint; one that does not fit is set aside."""
    run = make()
    if state is None:
        return run
    try:
        run.restore(state)
    except Exception:  # whatever a state of another shape makes torch raise
        store.reject_checkpoint(trial, "damaged: it is not a state of this trial")
        return make()
    return run


def _fit(trial: Trial, dataset: GraphDataset, store: TrialStore, progress: Progress) -> TrialResult:
    """A system without epochs: it learns from everything but the test fold, choosing among its settings within that.

    A trial that is not tested learns from the training graphs, and is scored on those for validation.
    """
    spec, started = find_model(trial.model), time.perf_counter()
    assert spec.fit is not None
    parts = trial.split_of(dataset)
    training, part, scored = parts.train, "validation", parts.validation
    if trial.tested:
        training = parts.train if parts.validation is None else torch.cat([parts.train, parts.validation])
        part, scored = "test", parts.test
    assert scored is not None
    found = spec.fit(spec.prepare(dataset, trial.settings), trial.settings, training, scored)
    y = dataset.y[scored].numpy()
    values = np.eye(dataset.num_classes)[found] if found.ndim == 1 else found  # of classes alone: all or nothing
    predicted = {part: Predicted(scored.numpy(), y, values.astype(np.float32))}
    score = rounded(METRICS[trial.test_metric](y, predicted[part].values))
    seconds = time.perf_counter() - started
    result = TrialResult(trial, {f"{part}_{trial.test_metric}": [score]}, seconds, 0, versions(), predicted=predicted)
    store.save(result)
    progress(trial.training.epochs, score)
    return result


def describe_model(trial: Trial, dataset: GraphDataset, **more: Any) -> ModelCard:
    """The card of the model of a trial."""
    return ModelCard.of(trial.to_dict(), dataset, **more)


def make_trainer(trial: Trial, dataset: GraphDataset, graphs: Tensor, group: ProcessGroup = SINGLE_PROCESS) -> Trainer:
    """The trainer of a trial on some graphs of its data set, with initial weights drawn from the trial's seed."""
    spec = find_model(trial.model)
    prepared = spec.prepare(dataset, trial.settings)
    torch.manual_seed(trial.derived_seed)  # initial weights and dropout
    model = spec.network(DataShape.of(dataset), trial.settings)
    where: dict[str, Any] = {"device": trial.device, "group": group, "class_weight": trial.class_weight or None}
    return Trainer(model, prepared, graphs, trial.training, seed=trial.derived_seed, **where)


class TrialRun:
    """A trial under way: its trainer, its curves, and the weights of the epoch that counts so far."""

    def __init__(self, trial: Trial, dataset: GraphDataset, group: ProcessGroup = SINGLE_PROCESS) -> None:
        self.trial = trial
        self.split = trial.split_of(dataset)
        self.trainer = make_trainer(trial, dataset, self.split.train, group)
        self.seconds = 0.0
        self._validation_metrics = [m for m in dict.fromkeys([DEFAULT_METRIC[trial.task], trial.select_by]) if m]
        self.curves: dict[str, list[float]] = {"train_loss": []}
        if trial.tested:
            self.curves[f"test_{trial.test_metric}"] = []
        if self.split.validation is not None:
            self.curves |= {"validation_loss": []} | {f"validation_{m}": [] for m in self._validation_metrics}
        self.best_weights: dict[str, Tensor] = {}
        self.predicted: dict[str, Tensor] = {}  # of the epoch that counts so far, by part

    @property
    def epoch(self) -> int:
        """The number of epochs that were trained."""
        return self.trainer.epoch

    @property
    def reading(self) -> Reading:
        """What the protocol would report now."""
        trial = self.trial
        return reported_reading(trial.protocol, self.curves, trial.select_by, trial.training.first_choice)

    def record(self, train_loss: float) -> None:
        """Evaluates the epoch that was trained; its weights are kept if the protocol would report it."""
        values, predicted = {"train_loss": train_loss}, dict[str, Tensor]()
        if self.trial.tested:
            tested, metric = self.trainer.evaluate(self.split.test), self.trial.test_metric
            predicted["test"] = tested.predicted
            values[f"test_{metric}"] = self._measured(metric, tested, self.split.test)
        if self.split.validation is not None:
            held_out = self.trainer.evaluate(self.split.validation)
            predicted["validation"], values["validation_loss"] = held_out.predicted, held_out.loss
            for metric in self._validation_metrics:
                values[f"validation_{metric}"] = self._measured(metric, held_out, self.split.validation)
        for name, value in values.items():
            self.curves[name].append(rounded(value))
        if self.reading.epoch == self.epoch:
            weights = self.trainer.model.state_dict()
            self.best_weights = {k: v.detach().cpu().clone() for k, v in weights.items()}
            self.predicted = predicted

    def _held_out(self) -> dict[str, Tensor]:
        """The graphs of the parts that it is not trained on."""
        parts = {"test": self.split.test if self.trial.tested else None, "validation": self.split.validation}
        return {part: graphs for part, graphs in parts.items() if graphs is not None}

    def _measured(self, metric: str, found: Evaluation, graphs: Tensor) -> float:
        if metric == "accuracy" and self.trial.task == "classification":
            return found.accuracy
        return METRICS[metric](self.trainer.dataset.y[graphs].numpy(), found.predicted.numpy())

    def result(self) -> TrialResult:
        """The result of the trial, if this was its last epoch."""
        parameters = self.trainer.model.num_parameters
        y = self.trainer.dataset.y
        predicted = {
            part: Predicted(graphs.numpy(), y[graphs].numpy(), self.predicted[part].numpy())
            for part, graphs in self._held_out().items()
        }
        connected, layers, selection = self._pooled()
        about = (parameters, versions(), connected, predicted, layers, selection)
        return TrialResult(self.trial, self.curves, self.seconds, *about)

    @torch.inference_mode()
    def _pooled(self) -> tuple[tuple[Connectivity, ...], tuple[PoolDiagnostics, ...], Selection | None]:
        """Of the test graphs: how they are connected before and after nodes are kept, what each layer did, and kept."""
        if not self.trial.tested:
            return (), (), None
        model, dataset, test = self.trainer.model.eval(), self.trainer.dataset, self.split.test
        connected, layers = list[Connectivity](), list[list[Columns]]()
        sizes, selected = list[Tensor](), list[Tensor]()
        generator = torch.Generator().manual_seed(self.trial.derived_seed)
        for some in test.split(EVALUATION_STEPS * self.trial.training.batch_size):
            for graphs in model.micro_batches(some, dataset.nodes_per_graph[some]):
                batch = dataset.batch(graphs).to(self.trial.device)
                steps = [step for step in pooling_steps(model, batch)[0] if step.pooled.batch is not step.before]
                layers.append([diagnose(step.before, step.pooled) for step in steps])
                kept = [step.pooled.batch for step in steps if step.pooled.perm is not None]
                if kept:
                    found = [Connectivity.of(b) for b in (batch, *kept) if isinstance(b, GraphBatch)]
                    connected = [a + b for a, b in zip(connected, found, strict=True)] if connected else found
                if steps and (nodes := steps[0].layer.kept_by(steps[0].pooled, steps[0].before, generator)) is not None:
                    sizes.append(batch.nodes_per_graph.cpu())
                    selected.append(torch.zeros(batch.num_nodes, dtype=torch.bool).index_fill_(0, nodes.cpu(), True))
        selection = Selection.of(torch.cat(sizes).numpy(), torch.cat(selected).numpy()) if selected else None
        return tuple(connected), tuple(summarize(parts) for parts in zip(*layers, strict=True)), selection

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        own = {key: getattr(self, key) for key in _OWN_STATE}
        return self.trainer.state() | own

    def restore(self, state: dict[str, Any]) -> None:
        """Continues from a checkpoint; an exception for one that is not of this trial."""
        self.trainer.restore(state)
        curves, weights, seconds, predicted = (state[k] for k in ("curves", "best_weights", "seconds", "predicted"))
        if {name: len(curve) for name, curve in curves.items()} != dict.fromkeys(self.curves, self.epoch):
            raise ValueError("its curves are not of this trial")
        if not all(isinstance(value, float) for curve in curves.values() for value in curve):
            raise ValueError("its curves are no numbers")
        if _shapes(weights) != _shapes(self.trainer.model.state_dict()):
            raise ValueError("its best weights are not of this network")
        wanted = {part: len(graphs) for part, graphs in self._held_out().items()}
        if {part: len(rows) for part, rows in predicted.items()} != wanted:
            raise ValueError("its predictions are not of this trial")
        self.seconds, self.curves, self.best_weights, self.predicted = float(seconds), curves, weights, predicted


def _shapes(weights: dict[str, Tensor]) -> dict[str, tuple[torch.dtype, torch.Size]]:
    return {name: (tensor.dtype, tensor.shape) for name, tensor in weights.items()}
