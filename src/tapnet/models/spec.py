"""What the registry knows of a system; each model's file ends with its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

from tapnet.data.dataset import GraphDataset, Task
from tapnet.errors import SettingError
from tapnet.models.base import DataShape, GraphClassifier
from tapnet.models.settings import Settings


@dataclass(frozen=True)
class ModelSpec:
    """One system of the comparison."""

    name: str
    system: str
    paper: str  # authors, venue
    year: int
    about: str  # how it was built here, and where it departs from its paper
    settings: type[Settings]  # with its paper's values as defaults
    build: Callable[[DataShape, Any], GraphClassifier] | None = None  # None: not a network, see fit
    on_dataset: Callable[[str], Mapping[str, Any]] = lambda _: {}  # settings that its paper chooses by data set
    training: Mapping[str, Any] = field(default_factory=dict)  # what it trains with, where that is not TAPNet's
    molecules: Mapping[str, Any] = field(default_factory=dict)  # settings of its own and of training, for molecules
    excluded_by: Callable[[Mapping[str, Any]], tuple[str, ...]] = (
        lambda _: ()
    )  # those of them that given settings exclude
    search: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # values to choose from; {}: a general space
    reads_weights: bool = True  # those of edges
    without_weights: Callable[[Any], str] = lambda _: ""  # one sentence, where a part of it leaves them aside
    reads_edges: Callable[[Any], bool] = lambda _: False  # what else edges carry, by its settings
    keeps_directions: Callable[[Any], bool] = lambda _: False  # whether it is for directed graphs, by its settings
    prepare: Callable[[GraphDataset, Any], GraphDataset] = lambda dataset, _: dataset  # computed once, then cached
    # Training and test graphs → [n] classes, or [n, C] or [n, T] as a network answers.
    fit: Callable[[GraphDataset, Any, Tensor, Tensor], Any] | None = None
    tasks: tuple[Task, ...] = ("classification", "multilabel", "regression")  # that it can be trained for
    baseline: bool = False  # no system of the field, but what one has to beat

    def network(self, shape: DataShape, settings: Any) -> GraphClassifier:
        """A new network for data of this shape."""
        assert self.build is not None
        model = self.build(shape, settings)
        model.set_task(shape.task, shape.num_classes)
        model.set_numbers(shape.node_numbers, shape.edge_numbers)
        return model

    def check_task(self, dataset: GraphDataset) -> None:
        """Raises a SettingError for a data set with targets that the system cannot be trained for."""
        if dataset.task not in self.tasks:
            tasks = " and ".join(self.tasks)
            raise SettingError(f"{self.name} is for {tasks}, and the task of {dataset.name} is {dataset.task}")

    def weights_note(self, dataset: GraphDataset, settings: Any) -> str:
        """Says what does not use the weights of a data set's edges; "" where all does, or there are none."""
        if dataset.edge_weight is None:
            return ""
        return self.without_weights(settings) if self.reads_weights else f"{self.name} does not use the edges' weights"

    def check_directions(self, dataset: GraphDataset, settings: Any) -> None:
        """Raises a SettingError for directed graphs, where the system is defined for undirected ones."""
        if dataset.directed and not self.keeps_directions(settings):
            pool = getattr(settings, "pool", None)
            what = f"pool {pool!r}" if pool else f"the model {self.name}"
            raise SettingError(f"{what} is for undirected graphs, and those of {dataset.name} are read as directed")

    def make_settings(self, dataset: str, chosen: Mapping[str, Any]) -> Any:
        """The paper's settings on a data set, but for what was chosen.

        Args:
            dataset: the name of the data set; some papers choose settings by it.
            chosen: settings by name, as Python, JSON or a command line gives them.

        Raises:
            SettingError: for a setting that this system does not have, or a value that does not fit.
        """
        self.settings.check_names(chosen, f"the model {self.name}")
        settings = self.settings(**{**self.on_dataset(dataset), **chosen})
        if chosen and self.build is not None:
            _check_size(self.build, settings)
        return settings


# ---- how large a network is ----

MOST_TENSORS = 10_000
MOST_WEIGHTS = 1 << 28  # a GB, and five times as much while training
SMALLEST = DataShape(1, 1, edge_channels=1)


def weight_shapes(
    build: Callable[[DataShape, Any], GraphClassifier], shape: DataShape, settings: Any
) -> dict[str, tuple[int, ...]]:
    """The shapes of a network's weights, without making them: settings may ask for any size."""
    tensors = weights = 0

    def count(_module: object, _name: str, parameter: Tensor | None) -> None:
        nonlocal tensors, weights
        tensors, weights = tensors + 1, weights + (0 if parameter is None else parameter.numel())
        if tensors > MOST_TENSORS or weights > MOST_WEIGHTS:
            raise SettingError(TOO_LARGE)

    counting = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"):
            return {name: tuple(tensor.shape) for name, tensor in build(shape, settings).state_dict().items()}
    except (OverflowError, RuntimeError):  # larger than a tensor can be
        raise SettingError(TOO_LARGE) from None
    finally:
        counting.remove()


TOO_LARGE = f"these settings ask for a network of more than {MOST_TENSORS:,} tensors or {MOST_WEIGHTS:,} weights"


@cache
def _check_size(build: Callable[[DataShape, Any], GraphClassifier], settings: Any) -> None:
    """Not too large even for the smallest data."""
    weight_shapes(build, SMALLEST, settings)
