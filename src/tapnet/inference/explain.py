"""Why a network kept which nodes: each pooling layer's scores of one graph, by the numbers of the input's nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.models.tapnet import TAPNet


@dataclass(frozen=True)
class Layer:
    """What one pooling layer saw and kept. Nodes are numbered as in the input graph, ascending."""

    nodes: NDArray[np.int64]  # [n] those that came in
    kept: NDArray[np.bool_]  # [n] whether each went on
    score: NDArray[np.float64]  # [n]; NaN where the layer does not tell
    local: NDArray[np.float64] | None = None  # [n] the parts of the score, where TAP gave it
    global_: NDArray[np.float64] | None = None
    connectivity: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Explanation:
    """What the pooling layers of a network did with one graph, and what came out."""

    layers: tuple[Layer, ...]
    probabilities: NDArray[np.float64]  # [C]


@torch.inference_mode()
def explain(network: TAPNet, batch: GraphBatch) -> Explanation:
    """Which nodes each pooling layer kept of a graph, their scores, and the class probabilities, from one pass.

    Args:
        network: taken as it is, so evaluation mode is the caller's to set.
        batch: of one graph.

    Returns:
        One ``Layer`` for each pooling layer (none where there is no pooling), and the probabilities.

    Raises:
        ValueError: if the batch has not one graph.
        SettingError: if a pooling layer merges nodes instead of keeping some.

    Example:
        >>> from tapnet import load_dataset
        >>> explanation = explain(TAPNet(7, 2).eval(), load_dataset("MUTAG").batch([0]))
        >>> [int(layer.kept.sum()) for layer in explanation.layers]
        [14, 9, 4]
    """
    if batch.num_graphs != 1:
        raise ValueError(f"one graph is explained at a time, not {batch.num_graphs}")
    nodes, layers = np.arange(batch.num_nodes), []
    before: GraphBatch | DenseBatch = batch
    levels = list(network.levels(batch))
    for level in levels:
        if level.perm is not None:
            kept = np.zeros(len(nodes), dtype=bool)
            kept[level.perm.cpu().numpy()] = True
            score = np.full(len(nodes), np.nan) if level.scores is None else _column(level.scores)
            parts = {name: _column(values) for name, values in (level.parts or {}).items()}
            layers.append(Layer(nodes, kept, score, parts.get("local"), parts.get("global"), parts.get("connectivity")))
            nodes = nodes[kept]
        elif level.batch is not before:
            raise SettingError(f"pool {network.settings.pool!r} merges nodes: there are no kept ones to show")
        before = level.batch
    logits = network.classifier(network.readouts(levels))
    return Explanation(tuple(layers), _column(logits[0].softmax(dim=0)))


def _column(values: Tensor) -> NDArray[np.float64]:
    return values.detach().cpu().double().numpy()
