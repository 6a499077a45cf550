"""What pooling kept, and by which scores: every pooling layer's outcome for one graph, by the input's node numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.inference.ensemble import Ensemble
from tapnet.models.base import GraphClassifier
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.training.task import answers


@dataclass(frozen=True)
class Layer:
    """What one pooling layer kept of the nodes that came in.

    Attributes:
        nodes: The nodes that came in, numbered as in the input graph, ascending, ``[n]``.
        kept: Whether each was kept, ``[n]``.
        score: The score by which the layer chose, ``[n]``; NaN where the layer does not return it.
        parts: The parts of the score by name, ``[n]`` each, as in ``Pooled.parts``; TAP has ``local``, ``global`` and
            ``connectivity``, most layers have none.
    """

    nodes: NDArray[np.int64]
    kept: NDArray[np.bool_]
    score: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def local(self) -> NDArray[np.float64] | None:
        """TAP's local vote; None for other layers."""
        return self.parts.get("local")

    @property
    def global_(self) -> NDArray[np.float64] | None:
        """TAP's global vote; None for other layers."""
        return self.parts.get("global")

    @property
    def connectivity(self) -> NDArray[np.float64] | None:
        """TAP's connectivity term; None for other layers."""
        return self.parts.get("connectivity")


@dataclass(frozen=True)
class Explanation:
    """What the pooling layers of a network kept of one graph, and the prediction.

    A layer's scores say which nodes it kept. They do not measure the effect of a node on the prediction.

    Attributes:
        layers: One for each pooling layer; none where there is no pooling.
        probabilities: Of the classes or labels, or the numbers that are predicted, ``[C]``.
    """

    layers: tuple[Layer, ...]
    probabilities: NDArray[np.float64]


class PoolingStep(NamedTuple):
    """One call of a pooling layer in a network's forward pass."""

    layer: Pooling
    before: GraphBatch | DenseBatch  # the graphs that came in
    pooled: Pooled


def pooling_layers(network: nn.Module) -> Iterator[Pooling]:
    """The pooling layers of a network (of an ensemble's first one); those inside another layer are part of it."""
    network = network.members[0] if isinstance(network, Ensemble) else network
    for module in network.children():
        if isinstance(module, Pooling):
            yield module
        elif not isinstance(module, GraphClassifier):  # a network inside another is one of its ensemble
            yield from pooling_layers(module)


@torch.inference_mode()
def pooling_steps(network: nn.Module, batch: GraphBatch) -> tuple[list[PoolingStep], Tensor]:
    """Runs a network and records what its pooling layers return.

    Args:
        network: Any network of :mod:`tapnet.models`; its training or evaluation mode is left as it is.
        batch: The graphs.

    Returns:
        The calls of pooling layers in their order, and the logits ``[B, C]``.
    """
    steps, thread = list[PoolingStep](), threading.get_ident()

    def record(layer: Any, given: tuple[Any, ...], pooled: Any) -> None:
        if threading.get_ident() == thread:  # other threads may use the same network
            steps.append(PoolingStep(layer, given[1], pooled))

    with ExitStack() as hooks:
        for layer in pooling_layers(network):
            hooks.callback(layer.register_forward_hook(record).remove)
        logits = network(batch)
    return steps, logits


def explain(network: nn.Module, batch: GraphBatch) -> Explanation:
    """Which nodes each pooling layer kept of a graph, their scores, and the class probabilities, from one pass.

    Args:
        network: Any network of :mod:`tapnet.models` whose pooling layers keep nodes; taken as it is, so evaluation
            mode is the caller's to set.
        batch: Of one graph.

    Returns:
        One ``Layer`` for each pooling layer (none for the layer that keeps all nodes, pool ``"none"``), and the
        probabilities.

    Raises:
        ValueError: If the batch has not one graph.
        SettingError: If the network has no pooling layers, or one merges nodes instead of keeping some.

    Example:
        >>> from tapnet import TAPNet, load_dataset
        >>> explanation = explain(TAPNet(7, 2).eval(), load_dataset("MUTAG").batch([0]))
        >>> [int(layer.kept.sum()) for layer in explanation.layers]
        [14, 9, 4]
    """
    if batch.num_graphs != 1:
        raise ValueError(f"one graph is explained at a time, not {batch.num_graphs}")
    if next(pooling_layers(network), None) is None:
        raise SettingError(f"{type(network).__name__} has no pooling layers, so it keeps no nodes to show")
    steps, logits = pooling_steps(network, batch)
    nodes, layers = np.arange(batch.num_nodes), []
    for layer, before, pooled in steps:
        if pooled.perm is not None:
            kept = np.zeros(len(nodes), dtype=bool)
            kept[pooled.perm.cpu().numpy()] = True
            score = np.full(len(nodes), np.nan) if pooled.scores is None else _column(pooled.scores)
            parts = {name: _column(values) for name, values in (pooled.parts or {}).items()}
            layers.append(Layer(nodes, kept, score, parts))
            nodes = nodes[kept]
        elif pooled.batch is not before:
            raise SettingError(f"{_name(layer)} merges nodes: there are no kept ones to show")
    said = answers(network, logits)[0] if isinstance(network, GraphClassifier) else logits[0].softmax(dim=0)
    return Explanation(tuple(layers), _column(said))


def _name(layer: Pooling) -> str:
    """The class of a pooling layer, of the user's own one where it has PyG's calling convention."""
    return type(getattr(layer, "layer", layer)).__name__


def _column(values: Tensor) -> NDArray[np.float64]:
    return values.detach().cpu().double().numpy()
