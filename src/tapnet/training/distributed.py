"""The processes that train one model together: one alone, or several that share every step."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from torch import Tensor

from tapnet.models.base import GraphClassifier

T = TypeVar("T")


class Shard(NamedTuple):
    """The graphs of a step that one process takes, and how much its loss counts."""

    graphs: Tensor
    weight: float = 1.0


class ProcessGroup:
    """One process alone, and the interface of a group of several: every process runs the same code on its shard."""

    rank = 0
    size = 1

    def join(self, model: GraphClassifier) -> GraphClassifier:
        """The model to call while training, whose gradients are averaged over the group."""
        return model

    def shard(self, graphs: Tensor) -> Shard:
        """This process's part of the graphs of a step."""
        return Shard(graphs)

    def count(self, graphs: Tensor) -> int:
        """The number of graphs of a step, in all processes."""
        return len(graphs)

    def backward(self, model: GraphClassifier, loss: Tensor, last: bool) -> None:
        """Adds the gradients of a micro-batch; with the ``last`` one of a step they are exchanged."""
        loss.backward()

    def total(self, values: Tensor) -> Tensor:
        """The sum over the processes."""
        return values

    def broadcast(self, value: T) -> T:
        """The first process's value, in all of them."""
        return value

    def dropout_seed(self, seed: int, epoch: int) -> int | None:
        """The seed of this process's dropout in an epoch; None continues the generator's sequence."""
        return None


SINGLE_PROCESS = ProcessGroup()
