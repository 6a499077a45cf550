"""DiffPool (Ying and others: Hierarchical Graph Representation Learning with Differentiable Pooling, NeurIPS 2018)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs, micro_batches_within
from tapnet.models.settings import Count, Settings, Weight
from tapnet.models.spec import ModelSpec
from tapnet.nn.linear import Affine
from tapnet.nn.norm import BatchNorm
from tapnet.nn.pool.diff import diff_pool
from tapnet.ops.csr import propagate
from tapnet.ops.readout import readout


class DiffPoolSettings(Settings):
    """Section 4.2 of the paper: GraphSAGE by means, three layers before, between and after two poolings to 25 %.

    Args:
        hidden_channels: the size of each node's features inside.
        layers: of each GraphSAGE network.
        poolings: how many.
        ratio: clusters for the nodes of the largest graph, and again.
        link_weight: of the link prediction loss.
        entropy_weight: of the entropy of nodes' clusters.
    """

    hidden_channels: Count = 64
    layers: Count = 3
    poolings: Count = 2
    ratio: Annotated[float, Field(gt=0, le=1)] = 0.25
    link_weight: Weight = 1.0
    entropy_weight: Weight = 1.0


class DiffPoolNet(GraphClassifier):
    """At each level one GraphSAGE network embeds the nodes, another assigns them; max readouts of all levels."""

    def __init__(self, shape: DataShape, settings: DiffPoolSettings) -> None:
        super().__init__()
        s, d = settings, settings.hidden_channels
        self.settings = s
        largest = shape.node_deciles[-1]
        self.clusters = [max(1, math.ceil(largest * s.ratio ** (i + 1))) for i in range(s.poolings)]
        widths = [shape.in_channels, *(s.layers * d for _ in self.clusters)]
        self.embeds = nn.ModuleList(GraphSAGE(width, d, s.layers) for width in widths)
        self.assigns = nn.ModuleList(GraphSAGE(width, d, s.layers) for width in widths[:-1])
        self.to_clusters = nn.ModuleList(nn.Linear(s.layers * d, k) for k in self.clusters)
        readout = s.layers * d * len(widths)
        self.hidden, self.out = nn.Linear(readout, 50), nn.Linear(50, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits, and while training the losses of the poolings."""
        graphs: GraphBatch | DenseBatch = batch
        x, readouts, losses = self.scaled(batch).x, [], []
        for i, embed in enumerate(self.embeds):
            h = embed(x, graphs)
            readouts.append(readout(h, graphs)[:, : h.size(1)])
            if i < len(self.assigns):
                s = self.to_clusters[i](self.assigns[i](x, graphs))
                x, graphs, link, entropy, _ = diff_pool(s, h, graphs)
                losses.append(self.settings.link_weight * link + self.settings.entropy_weight * entropy)
        logits = self.out(torch.relu(self.hidden(torch.cat(readouts, dim=1))))
        return Outputs(logits, torch.stack(losses).sum() if self.training else None)

    def micro_batches(self, graphs: Tensor, sizes: Tensor) -> Sequence[Tensor]:
        """So small that the padded assignments fit into memory."""
        return micro_batches_within(graphs, sizes, lambda n: max(n, self.clusters[0]) * self.clusters[0])


class GraphSAGE(nn.Module):
    """h ← norm(ReLU(g / ‖g‖)) with g = h W₁ + mean of the neighbours' h W₂ + b; all layers' outputs side by side."""

    def __init__(self, in_channels: int, channels: int, layers: int) -> None:
        super().__init__()
        widths = [in_channels, *(channels for _ in range(layers - 1))]
        self.own = nn.ModuleList(Affine(width, channels) for width in widths)
        self.others = nn.ModuleList(Affine(width, channels, bias=False) for width in widths)
        self.norms = nn.ModuleList(BatchNorm(channels) for _ in widths)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch) -> Tensor:
        """[N] categories or [N, in] floats → [N, layers · channels]"""
        levels = []
        for own, others, norm in zip(self.own, self.others, self.norms, strict=True):
            h = own(x) + propagate(others(x), batch, "mean")
            x = norm(torch.relu(nn.functional.normalize(h, dim=1)))
            levels.append(x)
        return torch.cat(levels, dim=1)


# The learning rates of Errica and others (A Fair Comparison of Graph Neural Networks, ICLR 2020), whose grid has
# nothing else left; layers and width as in the part of it that they left out.
SEARCH = {
    "hidden_channels": (32, 64),
    "layers": (2, 3),
    "lr": (0.0001, 0.001, 0.003),
    "batch_size": (8, 20),
}


SPEC = ModelSpec(
    name="diffpool",
    system="DiffPool",
    paper="Ying, You, Morris, Ren, Hamilton, Leskovec: Hierarchical Graph Representation Learning with "
    "Differentiable Pooling, NeurIPS",
    year=2018,
    about="its losses without an n×n matrix, ‖A - SSᵀ‖ divided by n²; a node's mean includes itself; three layers "
    "before each pooling, all with batch norm, and no clipped gradients; large graphs go in smaller steps whose "
    "gradients are summed",
    settings=DiffPoolSettings,
    build=DiffPoolNet,
    training={"lr": 0.001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 20},
    search=SEARCH,
)
