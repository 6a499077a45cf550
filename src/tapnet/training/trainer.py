"""The trainer: one network, one optimizer, epoch by epoch. Folds, final models and estimators are all trained by it."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.models.base import GraphClassifier
from tapnet.models.predictor import predict_batches
from tapnet.training.distributed import SINGLE_PROCESS, ProcessGroup
from tapnet.training.settings import TrainingSettings
from tapnet.training.shuffle import shuffle
from tapnet.training.task import (
    answers,
    balanced_label_weights,
    balanced_weights,
    mean_loss,
    scale_inputs,
    scale_targets,
    sum_of_losses,
)

EVALUATION_STEPS = 4  # evaluation keeps no activations, so that its batches can be larger than those of training


class Evaluation(NamedTuple):
    """What a network says of some graphs, and how well.

    Attributes:
        loss: the mean loss of a graph.
        accuracy: in percent; NaN where there are no classes.
        predicted: [n, C] probabilities of the classes, or [n, T] of the labels, or numbers in the targets' units.
    """

    loss: float
    accuracy: float
    predicted: Tensor


class Trainer:
    """Trains a network on some graphs of a data set; what happens between two epochs is the caller's.

    Initial weights and dropout draw from torch's global generator, which the caller seeds before building the network;
    the order of the graphs is drawn from a generator of its own. A trainer that is restored from ``state()`` continues
    to the same bits as one that was never stopped.

    With ``ema_decay`` or ``average_power`` a copy of the network takes the steps, and the network has the average of
    the copy's weights.

    Args:
        model: the network to train.
        dataset: the data, with what the network has to have prepared.
        graphs: [n] numbers of the graphs to train on.
        settings: batch size, learning rate and the like; the number of epochs is the caller's to count.
        seed: of the order of the graphs.
        device: where the network and its batches are.
        group: the processes that share every step.
        class_weight: ``"balanced"`` gives every class the same weight in the loss, and of each of several labels the
            graphs that have it as much as those that do not; None every graph.
        sample_weight: [n] how much each of the graphs counts in the loss; None the same.

    Attributes:
        epoch: the number of epochs that were trained.
        optimizer: Adam, as the settings say.

    Example:
        >>> import torch
        >>> from tapnet import TAPNet, load_dataset
        >>> from tapnet.training.settings import TrainingSettings
        >>> mutag = load_dataset("MUTAG")
        >>> trainer = Trainer(TAPNet(7, 2), mutag, torch.arange(150), TrainingSettings(lr=0.01), seed=0)
        >>> losses = [trainer.train_epoch() for _ in range(3)]
        >>> loss, accuracy, predicted = trainer.evaluate(torch.arange(150, 188))
    """

    def __init__(
        self,
        model: GraphClassifier,
        dataset: GraphDataset,
        graphs: Tensor,
        settings: TrainingSettings,
        *,
        seed: int,
        device: str = "cpu",
        group: ProcessGroup = SINGLE_PROCESS,
        class_weight: str | None = None,
        sample_weight: Tensor | None = None,
    ) -> None:
        scale_targets(model, dataset, graphs)
        scale_inputs(model, dataset, graphs)
        self.class_weight = None
        if class_weight == "balanced" and dataset.task == "classification":
            self.class_weight = balanced_weights(dataset.y[graphs], dataset.num_classes).to(device)
        elif class_weight == "balanced" and dataset.task == "multilabel":
            self.class_weight = balanced_label_weights(dataset.y[graphs]).to(device)
        self.sample_weight = None
        if sample_weight is not None:
            self.sample_weight = torch.zeros(len(dataset), device=device)
            self.sample_weight[graphs] = (sample_weight / sample_weight.mean()).float().to(device)
        self.model, self.dataset, self.graphs, self.settings = model.to(device), dataset, graphs, settings
        self.seed, self.device, self.group = seed, device, group
        self.order = torch.Generator().manual_seed(seed)
        self._stepped = copy.deepcopy(self.model) if settings.averages else self.model
        self._joined = group.join(self._stepped)
        self.optimizer = make_optimizer(self._stepped, settings)
        self.epoch = 0

    def fit(self) -> Iterator[float]:
        """Trains for the settings' number of epochs, from where it is.

        Yields:
            The mean loss of a graph, after each epoch; whoever iterates may evaluate, store or stop there.
        """
        while self.epoch < self.settings.epochs:
            yield self.train_epoch()

    def train_epoch(self) -> float:
        """Trains on every graph once, in a new order.

        Returns:
            The mean loss of a graph.
        """
        if every := self.settings.halve_lr_every:
            self._set_lr(0.5 ** (self.epoch // every))
        progress = min(1.0, self.epoch / max(1, self.settings.epochs - 1))
        self.model.set_progress(progress)
        self._stepped.set_progress(progress)  # another network, where weights are averaged
        groups = shuffle(self.graphs, self.dataset, self.order).split(self.settings.batch_size)
        steps: Iterable[Tensor] = groups
        if self.settings.schedule == "one-cycle":
            steps = self._with_one_cycle(groups)
        if self.settings.averages:
            steps = self._with_averages(steps, before=self.epoch * len(groups))
        if (seed := self.group.dropout_seed(self.seed, self.epoch)) is not None:
            torch.manual_seed(seed)
        weights = self.class_weight, self.sample_weight
        loss = train_steps(self._joined, self.optimizer, self.dataset, steps, self.device, self.group, *weights)
        self.epoch += 1
        return loss

    def _set_lr(self, factor: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.lr * factor

    def _with_one_cycle(self, steps: Sequence[Tensor]) -> Iterator[Tensor]:
        """The steps of an epoch, with the learning rate set before each."""
        for i, step in enumerate(steps):
            self._set_lr(one_cycle((self.epoch + i / len(steps)) / self.settings.epochs))
            yield step

    def _with_averages(self, steps: Iterable[Tensor], before: int) -> Iterator[Tensor]:
        """The steps of an epoch, with the averages brought up to date after each; ``before`` it were so many."""
        averages, values = (list(model.state_dict().values()) for model in (self.model, self._stepped))
        floats = [i for i, value in enumerate(values) if value.is_floating_point()]
        means, last = [averages[i] for i in floats], [values[i] for i in floats]
        decay, power = self.settings.ema_decay, self.settings.average_power
        for i, step in enumerate(steps, 1):
            yield step
            # With a decay: the mean of the epoch's first steps, until the decay forgets faster. With a power: the
            # polynomial-decay average of Shamir and Zhang (ICML 2013).
            share = max(1 - decay, 1 / i) if decay else (power + 1) / (before + i + power)
            torch._foreach_lerp_(means, last, share)
        for average, value in zip(averages, values, strict=True):
            if not value.is_floating_point():  # the count of a batch norm
                average.copy_(value)

    @torch.inference_mode()
    def evaluate(self, graphs: Tensor) -> Evaluation:
        """Evaluates the network as it is now.

        Args:
            graphs: [n] numbers of graphs in the data set.

        Returns:
            The mean loss of a graph, the accuracy in percent, and what the network predicts.
        """
        self.model.eval()
        loss = correct = torch.zeros((), dtype=torch.float64)
        mine, weight = self.group.shard(graphs)
        place = torch.empty(len(self.dataset), dtype=torch.int64).index_copy_(0, graphs, torch.arange(len(graphs)))
        predicted = torch.zeros(len(graphs), self.dataset.num_outputs)
        classes = self.model.task == "classification"
        batch_size = EVALUATION_STEPS * self.settings.batch_size
        for numbers, outputs in predict_batches(self.model, self.dataset, mine, batch_size, self.device):
            y = self.dataset.y[numbers].to(self.device)
            loss = loss + sum_of_losses(self.model, outputs.logits, y).double().cpu()
            if classes:
                correct = correct + (outputs.logits.argmax(1) == y).sum().cpu()
            predicted[place[numbers]] = answers(self.model, outputs.logits).float().cpu()
        loss, correct = self.group.total(weight * torch.stack([loss, correct]))
        accuracy = 100 * float(correct) / len(graphs) if classes else math.nan
        return Evaluation(float(loss) / len(graphs), accuracy, self.group.total(weight * predicted))

    def state(self) -> dict[str, Any]:
        """Everything that the next epoch depends on, as ``torch.save`` takes it."""
        stepped = {"stepped": self._stepped.state_dict()} if self.settings.averages else {}
        return stepped | {
            "epoch": self.epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.order.get_state(),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state() if self.device == "cuda" else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continues from what ``state()`` returned, torch's global generators included.

        Raises:
            ValueError: if it is not a state of this network and these settings (as torch's own exceptions also say).
        """
        if not (type(state["epoch"]) is int and 0 <= state["epoch"] <= self.settings.epochs):
            raise ValueError(f"there is no epoch {state['epoch']!r} of {self.settings.epochs}")
        self.epoch = state["epoch"]
        self.model.load_state_dict(state["model"])
        if self.settings.averages:
            self._stepped.load_state_dict(state["stepped"])
        _check_optimizer_state(self.optimizer, state["optimizer"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.set_state(state["order"])
        torch.set_rng_state(state["random"])
        if state["random_cuda"] is not None:
            torch.cuda.set_rng_state(state["random_cuda"])


def _check_optimizer_state(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Raises a ValueError for other settings, or for averages of other shapes: torch would read beyond their ends."""
    groups = optimizer.state_dict()["param_groups"]
    if [g | {"lr": 0} for g in state["param_groups"]] != [g | {"lr": 0} for g in groups]:  # lr is set every epoch
        raise ValueError("the optimizer has other settings")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if not state["state"].keys() <= set(range(len(parameters))):
        raise ValueError("the optimizer has other parameters")
    for number, averages in state["state"].items():
        for name, average in averages.items():
            if average.shape != (() if name == "step" else parameters[number].shape):
                raise ValueError(f"{name} of parameter {number} is {list(average.shape)}")


def make_optimizer(model: GraphClassifier, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Adam with the learning rate, weight decay and variant of the settings."""
    kind = _without_compiler(torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW)
    return kind(
        model.parameters(), settings.lr, weight_decay=settings.weight_decay, amsgrad=settings.amsgrad, fused=True
    )


@functools.cache
def _without_compiler(kind: type[torch.optim.Adam]) -> type[torch.optim.Adam]:
    """The same optimizer, whose methods do not import torch's compiler at their first call: that takes a second."""
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    return type(kind.__name__, (kind,), methods | {"step": torch.no_grad()(inspect.unwrap(kind.step))})


def one_cycle(done: float, warm_up: float = 0.1, start: float = 0.04, end: float = 1e-4) -> float:
    """What multiplies the learning rate when a share ``done`` of the steps is done: up along a line, down a cosine."""
    if done < warm_up:
        return start + (1 - start) * done / warm_up
    return end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, (done - warm_up) / (1 - warm_up))))


def train_steps(
    model: GraphClassifier,
    optimizer: torch.optim.Optimizer,
    dataset: GraphDataset,
    steps: Iterable[Tensor],
    device: str = "cpu",
    group: ProcessGroup = SINGLE_PROCESS,
    class_weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> float:
    """One step of the optimizer for each group of graphs.

    Args:
        model: the network, as ``group.join`` returned it.
        optimizer: of the network's parameters.
        dataset: the data, with what the network has to have prepared.
        steps: for each step the numbers of its graphs.
        device: where the network is.
        group: the processes that share every step.
        class_weight: [C] how much a graph of each class counts; of labels [2, T], how much a no and a yes count.
        sample_weight: [G] how much each graph of the data set counts.

    Returns:
        The mean loss of a graph: that of its task, and the network's auxiliary loss if it has one.
    """
    model.train()
    total, count = torch.zeros((), device=device), 0
    for graphs in steps:
        optimizer.zero_grad()
        mine, weight = group.shard(graphs)
        in_step = group.count(graphs)
        parts = model.micro_batches(mine, dataset.nodes_per_graph[mine])
        for i, part in enumerate(parts, 1):
            batch = dataset.batch(part).to(device)
            logits, auxiliary = model.outputs(batch)
            weights = None if sample_weight is None else sample_weight[part.to(device)]
            loss = mean_loss(model, logits, batch.y, class_weight, weights)
            if auxiliary is not None:
                loss = loss + auxiliary
            scale = weight * len(part) / in_step
            # gradients are averaged over the processes, each of which has a part of the sum
            last = i == len(parts)
            group.backward(model, loss if scale * group.size == 1 else loss * (scale * group.size), last=last)
            total += loss.detach() * (weight * len(part))
        optimizer.step()
        count += in_step
    return float(group.total(total)) / count
