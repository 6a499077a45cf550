"""Why a network kept which nodes: each pooling layer's scores of one graph, by the numbers of the input's nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.models.tapnet import TAPNet
from tapnet.nn.pool.selecting import SelectingPool
from tapnet.nn.tap import TAPooling


@dataclass(frozen=True)
class Layer:
    """What one pooling layer saw and kept. Nodes are numbered as in the input graph, ascending."""

    nodes: NDArray[np.int64]  # [n] those that came in
    kept: NDArray[np.bool_]  # [n] whether each went on
    score: NDArray[np.float64]  # [n]
    local: NDArray[np.float64] | None = None  # [n] the parts of the score, where TAP gave it
    global_: NDArray[np.float64] | None = None
    connectivity: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Explanation:
    layers: tuple[Layer, ...]
    probabilities: NDArray[np.float64]  # [C]


@torch.inference_mode()
def explain(network: TAPNet, batch: GraphBatch) -> Explanation:
    """For a batch of one graph; the network is taken as it is, so evaluation mode is the caller's to set."""
    if batch.num_graphs != 1:
        raise ValueError(f"one graph is explained at a time, not {batch.num_graphs}")
    nodes, graphs = np.arange(batch.num_nodes), batch
    h, layers = network.embedding(batch.x, batch), []
    for conv, pool in zip(network.convs, network.pools, strict=False):
        h = conv(h, graphs)
        if isinstance(pool, TAPooling):
            votes = pool.votes_of(h, graphs)
            parts = {"score": votes.score, "local": votes.local, "global_": votes.global_}
            parts["connectivity"] = votes.connectivity
        elif isinstance(pool, SelectingPool):
            parts = {"score": pool.score(h, graphs)}
        else:
            raise SettingError(f"pool {network.settings.pool!r} merges nodes: there are no kept ones to show")
        pooled = pool.coarsen(h, graphs)
        assert pooled.perm is not None
        assert isinstance(pooled.batch, GraphBatch)
        kept = np.zeros(len(nodes), dtype=bool)
        kept[pooled.perm.numpy()] = True
        layers.append(Layer(nodes, kept, **{name: _column(value) for name, value in parts.items()}))
        nodes, h, graphs = nodes[kept], pooled.x, pooled.batch
    return Explanation(tuple(layers), _column(network.outputs(batch).logits[0].softmax(dim=0)))


def _column(values: Tensor) -> NDArray[np.float64]:
    return values.detach().cpu().double().numpy()
