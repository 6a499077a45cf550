"""What every model of the comparison is: a GraphBatch in, logits (and perhaps an auxiliary loss) out."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from tapnet._loops.jit import FLOATS
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Prepared, Task
from tapnet.errors import SettingError
from tapnet.nn.pool.base import Pooling
from tapnet.ops.compiler import compiler_disabled


class Outputs(NamedTuple):
    """What a model returns for a batch."""

    logits: Tensor  # [B, C]
    auxiliary: Tensor | None = None  # a loss to be added to the cross-entropy while training


@dataclass(frozen=True, config=ConfigDict(strict=True))
class DataShape:
    """What a model has to know of its data before it is built."""

    in_channels: int  # categories, float features, or both
    num_classes: int  # or the number of targets
    categorical: bool = True
    mean_nodes: float = 1.0
    node_deciles: tuple[int, ...] = (1,) * 11  # the size of the smallest graph, …, the median, …, the largest
    edge_channels: int = 0  # categories and numbers that edges carry
    task: Task = "classification"

    @classmethod
    def of(cls, dataset: GraphDataset) -> DataShape:
        """That of a data set."""
        sizes = dataset.nodes_per_graph.double()
        deciles = sizes.quantile(torch.linspace(0, 1, 11, dtype=torch.float64), interpolation="lower")
        mean = round(float(sizes.mean()), 6)
        categorical = dataset.categories is not None
        sizes_in_deciles = tuple(map(int, deciles))
        edges = dataset.num_edge_features
        return cls(dataset.num_features, dataset.num_outputs, categorical, mean, sizes_in_deciles, edges, dataset.task)


class GraphClassifier(nn.Module, ABC):
    """Classifies graphs. Called with a GraphBatch, or as PyG's models with ``x, edge_index, batch``.

    Attributes:
        task: what its outputs are: logits of classes, logits of labels, or numbers in standard deviations of the
            targets, whose mean and scale are then ``target_mean`` and ``target_scale``.
    """

    task: Task = "classification"
    reads_edges = False  # whether it reads what edges carry, besides their weights
    target_mean: Tensor
    target_scale: Tensor

    def set_task(self, task: Task, targets: int) -> None:
        """Says what the outputs are; numbers get buffers for the mean and the scale of the targets, [T] each."""
        self.task = task
        if task == "regression":
            self.register_buffer("target_mean", torch.zeros(targets))
            self.register_buffer("target_scale", torch.ones(targets))

    @abstractmethod
    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits, and while training the auxiliary loss, if there is one: add it to the cross-entropy."""

    def forward(self, x: Tensor | GraphBatch, edge_index: Tensor | None = None, batch: Tensor | None = None) -> Tensor:
        """x: [N] integer categories or [N, F] floats → [B, C] logits, without the auxiliary loss of ``outputs``"""
        logits: Tensor = self._logits(x, edge_index, batch)
        return logits

    @compiler_disabled
    def _logits(self, x: Tensor | GraphBatch, edge_index: Tensor | None, batch: Tensor | None) -> Tensor:
        weight = next(self.parameters(), None)
        if weight is not None and weight.dtype not in FLOATS:
            raise TypeError(
                f"the weights are {weight.dtype}; networks compute with float32 or float64 weights "
                "(for half precision, keep these and call the network under torch.autocast)"
            )
        if isinstance(x, GraphBatch):
            return self.outputs(x).logits
        if edge_index is None:
            raise TypeError("call the model with a GraphBatch, or with x, edge_index and batch")
        if x.dim() != (2 if x.is_floating_point() else 1):
            raise TypeError(f"x is [N] integer categories or [N, F] floats, not {list(x.shape)} {x.dtype}")
        return self.outputs(GraphBatch.from_edge_index(x, edge_index, batch)).logits

    def embed(self, batch: GraphBatch) -> Tensor:
        """[B, width]: what the classifier at the end of the network, its last layer, gets of each graph.

        Raises:
            SettingError: if the model does not offer one.
        """
        return self.logits_and_embedding(batch)[1]

    def logits_and_embedding(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """[B, C] the logits and [B, width] the embeddings, from one pass.

        Raises:
            SettingError: if the model does not offer embeddings.
        """
        last = getattr(self, "classifier", getattr(self, "out", None))
        if not isinstance(last, nn.Module):
            raise SettingError(f"{type(self).__name__} offers no embedding of a graph; TAPNet does")
        given, thread = list[Tensor](), threading.get_ident()

        def record(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if threading.get_ident() == thread:  # other threads may use the same network
                given.append(inputs[0])

        hook = last.register_forward_pre_hook(record)
        try:
            logits = self.outputs(batch).logits
        finally:
            hook.remove()
        return logits, given[-1]

    def coarsened(self, batch: GraphBatch) -> list[GraphBatch]:
        """The graphs after each pooling layer that keeps some of their nodes; none where no layer does."""
        return []

    def structure(self, dataset: GraphDataset) -> Mapping[str, Prepared]:
        """What the network computes of the graphs before any weight has a say, for ``dataset.prepared``.

        With it, batches may have rows of floats in the place of categories, and graphs whose features are changed are
        not looked at anew.
        """
        layers = [module for module in self.modules() if isinstance(module, Pooling)]
        return {name: values for layer in layers for name, values in layer.structure(dataset).items()}

    def micro_batches(self, graphs: Tensor, sizes: Tensor) -> Sequence[Tensor]:
        """The graphs of one step, of so many nodes each, in groups small enough for memory.

        Gradients are summed over the groups, so the step is the same, but for what is taken over a group: batch norms,
        and auxiliary losses that are means over nodes.
        """
        return (graphs,)

    @property
    def num_parameters(self) -> int:
        """The number of weights that are learned."""
        return sum(p.numel() for p in self.parameters())


ELEMENTS_AT_ONCE = 1 << 26  # 256 MB of floats in the largest tensor of a group


def micro_batches_within(graphs: Tensor, sizes: Tensor, elements: Callable[[int], int]) -> list[Tensor]:
    """The graphs in groups of alike sizes, for models that pad: no group of more elements than fit comfortably.

    ``elements`` says how many a graph takes that is padded to n nodes. A group has at least one graph.
    """
    order = torch.argsort(sizes, stable=True)
    groups: list[list[int]] = [[]]
    for place, n in zip(order.tolist(), sizes[order].tolist(), strict=True):
        if groups[-1] and (len(groups[-1]) + 1) * elements(n) > ELEMENTS_AT_ONCE:
            groups.append([])
        groups[-1].append(place)
    return [graphs] if len(groups) == 1 else [graphs[torch.tensor(group)] for group in groups]
