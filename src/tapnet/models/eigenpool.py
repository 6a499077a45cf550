"""EigenGCN (Ma, Wang, Aggarwal, Tang: Graph Convolutional Networks with EigenPooling, KDD 2019)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Ratio, Settings
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.eigen import EigenPool
from tapnet.ops.readout import readout


class EigenPoolSettings(Settings):
    """The example that comes with its authors' program (run_example.sh), with H of the paper's EigenGCN-3.

    Args:
        hidden_channels: the size of each node's features inside.
        layers: graph convolutions before each pooling.
        poolings: how many; the last one leaves one node.
        ratio: clusters for each node in the poolings before; 0.1: clusters of ten nodes.
        vectors: H, the eigenvectors of each cluster.
        dense_channels: units of the dense layer.
        dropout: before the convolutions that are neither first nor last.
    """

    hidden_channels: Count = 128
    layers: Count = 5
    poolings: Count = 2
    ratio: Ratio = 0.1
    vectors: Count = 3
    dense_channels: Count = 256
    dropout: Dropout = 0.5

    @property
    def ratios(self) -> tuple[float | int, ...]:
        """What each pooling leaves."""
        return (*(self.ratio for _ in range(self.poolings - 1)), 1)


class EigenGCN(GraphClassifier):
    """Blocks of graph convolutions and EigenPooling down to one node; the maxima of all levels are classified."""

    def __init__(self, shape: DataShape, settings: EigenPoolSettings) -> None:
        super().__init__()
        s = settings
        self.settings, width = s, s.layers * s.hidden_channels
        self.pools = nn.ModuleList(EigenPool(width, s.ratios, level, s.vectors) for level in range(s.poolings))
        widths = [shape.in_channels, *(s.vectors * width for _ in range(s.poolings - 1))]
        self.blocks = nn.ModuleList(Block(w, s.hidden_channels, s.layers, s.dropout) for w in widths)
        self.hidden = nn.Linear((s.poolings + s.vectors) * width, s.dense_channels)
        self.out = nn.Linear(s.dense_channels, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        graphs: GraphBatch | DenseBatch = batch
        h: Any = self.scaled(batch).x
        readouts = []
        for block, pool in zip(self.blocks, self.pools, strict=True):
            h = block(h, graphs)
            readouts.append(_highest(h, graphs))
            h, graphs, *_ = pool(h, graphs)
        readouts.append(_highest(h, graphs))
        return Outputs(self.out(torch.relu(self.hidden(torch.cat(readouts, dim=1)))))


def _highest(h: Tensor, graphs: GraphBatch | DenseBatch) -> Tensor:
    """[N, d] → [B, d]"""
    return readout(h, graphs)[:, : h.size(1)]


class Block(nn.Module):
    """h ← ReLU(D̂⁻½ÂD̂⁻½ h W + b) some times; the layers side by side."""

    def __init__(self, in_channels: int, channels: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.convs = nn.ModuleList()
        for i in range(layers):
            width, inner = channels if i else in_channels, 0 < i < layers - 1
            self.convs.append(GraphConv(width, channels, "symmetric", dropout if inner else 0.0, negative_slope=0.0))

    def forward(self, h: Tensor, graphs: GraphBatch | DenseBatch) -> Tensor:
        """[N] categories or [N, in] floats → [N, layers · channels]"""
        levels = []
        for conv in self.convs:
            h = conv(h, graphs)
            levels.append(h)
        return torch.cat(levels, dim=1)


SPEC = ModelSpec(
    name="eigenpool",
    system="EigenPool",
    paper="Ma, Wang, Aggarwal, Tang: Graph Convolutional Networks with EigenPooling, KDD",
    year=2019,
    about="spectral clusters by pivoted QR, their number rounded up; the same sizes on all sets, which its authors "
    "choose by data set; their program also normalises rows and node positions and clips gradients, here as the paper",
    settings=EigenPoolSettings,
    build=EigenGCN,
    training={"lr": 0.001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 30},
    prepare=lambda dataset, settings: EigenPool.prepare(dataset, settings.ratios, settings.vectors),
)
