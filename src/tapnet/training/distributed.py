"""Who trains one model: a process alone, or a team that shares every step and counts together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from tapnet.experiments.trial import Trial, TrialResult
from tapnet.models.base import GraphClassifier

T = TypeVar("T")


class Shard(NamedTuple):
    """A member's graphs of a step, and how much of its loss counts."""

    graphs: Tensor
    weight: float = 1.0


class ProcessGroup:
    """One process alone; `parallel.FabricTeam` is several. Members run the same lines and differ in `share` only."""

    rank = 0
    size = 1

    def join(self, model: GraphClassifier) -> GraphClassifier:
        """The model as it is trained: its gradients are the team's."""
        return model

    def shard(self, graphs: Tensor) -> Shard:
        return Shard(graphs)

    def backward(self, model: GraphClassifier, loss: Tensor, last: bool) -> None:
        """``last``: of the parts of a step; then gradients are exchanged."""
        loss.backward()

    def total(self, values: Tensor) -> Tensor:
        """The members' values summed."""
        return values

    def broadcast(self, value: T) -> T:
        """What the first member says, to all."""
        return value

    def dropout_seed(self, seed: int, epoch: int) -> int | None:
        """Of this member's dropout in an epoch; None: it goes on where it was."""
        return None


SINGLE_PROCESS = ProcessGroup()


class NullStore:
    """The store of every member but the first: the first one keeps everything."""

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        return None

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None: ...
    def drop_checkpoint(self, trial: Trial) -> None: ...
    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None: ...
    def save(self, result: TrialResult) -> None: ...
