"""What every model of the comparison is: a GraphBatch in, logits (and perhaps an auxiliary loss) out."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from tapnet._loops.jit import FLOATS
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Prepared, Task
from tapnet.data.features import FeatureRows, MixedFeatures, numbers_of
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
    node_numbers: int = 0  # that are standardised inside the network: the last of in_channels
    edge_numbers: int = 0  # likewise, of edge_channels

    @classmethod
    def of(cls, dataset: GraphDataset) -> DataShape:
        """That of a data set."""
        sizes = dataset.nodes_per_graph.double()
        deciles = sizes.quantile(torch.linspace(0, 1, 11, dtype=torch.float64), interpolation="lower")
        mean = round(float(sizes.mean()), 6)
        categorical = dataset.categories is not None
        sizes_in_deciles = tuple(map(int, deciles))
        node_numbers, edge_numbers = numbers_of(dataset.x), dataset.edge_attributes
        return cls(
            dataset.num_features,
            dataset.num_outputs,
            categorical,
            mean,
            sizes_in_deciles,
            dataset.num_edge_features,
            dataset.task,
            0 if node_numbers is None else node_numbers.size(1),
            0 if edge_numbers is None else edge_numbers.size(1),
        )


class GraphClassifier(nn.Module, ABC):
    """Classifies graphs. Called with a GraphBatch, or as PyG's models with ``x, edge_index, batch``.

    Attributes:
        task: what its outputs are: logits of classes, logits of labels, or numbers in standard deviations of the
            targets, whose mean and scale are then ``target_mean`` and ``target_scale``.

    A network for data with numbers on nodes or edges standardises them by the buffers ``node_mean``, ``node_scale``,
    ``edge_mean`` and ``edge_scale``, which the trainer sets to those of the training graphs.
    """

    task: Task = "classification"
    reads_edges = False  # whether it reads what edges carry, besides their weights
    edge_channels = 0  # how many categories and numbers of edges it was built for
    target_mean: Tensor
    target_scale: Tensor

    def set_task(self, task: Task, targets: int) -> None:
        """Says what the outputs are; numbers get buffers for the mean and the scale of the targets, [T] each."""
        self.task = task
        if task == "regression":
            self.register_buffer("target_mean", torch.zeros(targets))
            self.register_buffer("target_scale", torch.ones(targets))

    def set_numbers(self, node_numbers: int, edge_numbers: int) -> None:
        """Says how many numbers nodes and edges carry, after their categories; they get buffers, [F] each."""
        for side, count in (("node", node_numbers), ("edge", edge_numbers)):
            if count:
                self.register_buffer(f"{side}_mean", torch.zeros(count))
                self.register_buffer(f"{side}_scale", torch.ones(count))

    def scaled(self, batch: GraphBatch) -> GraphBatch:
        """The graphs with the numbers of their nodes and edges standardised; what the first layers get."""
        mean, scale = getattr(self, "node_mean", None), getattr(self, "node_scale", None)
        if mean is not None and scale is not None:
            batch = replace(batch, x=_standardised(batch.x, mean, scale))
        mean, scale = getattr(self, "edge_mean", None), getattr(self, "edge_scale", None)
        if mean is not None and scale is not None and self.reads_edges and batch.edge_attr is not None:
            batch = replace(batch, edge_attr=_standardised(batch.edge_attr, mean, scale))
        return batch

    @abstractmethod
    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits, and while training the auxiliary loss, if there is one: add it to the cross-entropy."""

    def forward(
        self,
        x: Tensor | GraphBatch,
        edge_index: Tensor | None = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """Classifies graphs, without the auxiliary loss of ``outputs``.

        Args:
            x: [N] integer categories or [N, F] floats; or the graphs as a ``GraphBatch``, and nothing else.
            edge_index: [2, E]
            batch: [N] the graph of each node; None means one graph.
            edge_weight: [E] the weight of each column of ``edge_index``; None means ones.
            edge_attr: [E] integer categories or [E, F] floats, for a network that reads them (built with
                ``edge_channels``); others leave them aside.

        Returns:
            [B, C] logits
        """
        logits: Tensor = self._logits(x, edge_index, batch, edge_weight, edge_attr)
        return logits

    @compiler_disabled
    def _logits(
        self,
        x: Tensor | GraphBatch,
        edge_index: Tensor | None,
        batch: Tensor | None,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
    ) -> Tensor:
        weight = next(self.parameters(), None)
        if weight is not None and weight.dtype not in FLOATS:
            raise TypeError(
                f"the weights are {weight.dtype}; networks compute with float32 or float64 weights "
                "(for half precision, keep these and call the network under torch.autocast)"
            )
        if isinstance(x, GraphBatch):
            if edge_weight is not None or edge_attr is not None:
                raise TypeError("edge_weight and edge_attr go with edge_index: a GraphBatch has its own")
            return self.outputs(x).logits
        if edge_index is None:
            raise TypeError("call the model with a GraphBatch, or with x, edge_index and batch")
        if x.dim() != (2 if x.is_floating_point() else 1):
            raise TypeError(f"x is [N] integer categories or [N, F] floats, not {list(x.shape)} {x.dtype}")
        edge_attr = self._checked_edges(edge_attr) if self.reads_edges and edge_attr is not None else None
        return self.outputs(GraphBatch.from_edge_index(x, edge_index, batch, edge_weight, edge_attr)).logits

    def _checked_edges(self, edge_attr: Tensor) -> Tensor:
        """What edges carry, as the network was built for it; the compiled loops do not look."""
        if edge_attr.is_floating_point():
            fits = edge_attr.dim() == 2 and edge_attr.size(1) == self.edge_channels
        else:
            low, high = edge_attr.aminmax() if edge_attr.numel() else (0, 0)
            fits = edge_attr.dim() == 1 and bool(low >= 0) and bool(high < self.edge_channels)
        if not fits:
            kinds = f"[E] integer categories below {self.edge_channels} or [E, {self.edge_channels}] floats"
            raise ValueError(
                f"the network was built for edge_attr {kinds}: not {list(edge_attr.shape)} {edge_attr.dtype}"
            )
        return edge_attr

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

    def set_progress(self, progress: float) -> None:
        """Tells the pooling layers how far training is: 0 in the first epoch, 1 in the last."""
        for module in self.modules():
            if isinstance(module, Pooling):
                module.set_progress(progress)

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


def _standardised(x: FeatureRows, mean: Tensor, scale: Tensor) -> FeatureRows:
    """With the numbers, which are the last columns of rows of floats, in deviations from their mean."""
    if isinstance(x, MixedFeatures):
        return x if x.numbers is None else replace(x, numbers=(x.numbers - mean) / scale)
    before = x.size(1) - len(mean)  # columns of categories, where those are rows of floats, too
    return torch.cat([x[:, :before], (x[:, before:] - mean) / scale], dim=1)


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
