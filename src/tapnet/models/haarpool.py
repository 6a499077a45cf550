"""HaarPool (Wang, Li, Ma, Montúfar, Zhuang, Fan: Haar Graph Pooling, ICML 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Ratio, Settings, TwoCounts
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.haar import HaarPool
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout


class HaarPoolSettings(Settings):
    """Its authors' program for PROTEINS (haarpool_proteins.py).

    Args:
        hidden_channels: the size of each node's features inside.
        layers: graph convolutions before each pooling.
        poolings: how many; the last one leaves one node.
        ratio: the share of nodes that the poolings before leave, or their number.
        dense_channels: units of the two dense layers.
        dropout: between the dense layers.
    """

    hidden_channels: Count = 128
    layers: Count = 2
    poolings: Count = 3
    ratio: Ratio = 0.5
    dense_channels: TwoCounts = (128, 64)
    dropout: Dropout = 0.5

    @property
    def ratios(self) -> tuple[float | int, ...]:
        """What each pooling leaves."""
        return (*(self.ratio for _ in range(self.poolings - 1)), 1)


def _settings_on(dataset_name: str) -> dict[str, Any]:
    """Its authors' program for MUTAG (haarpool_mutag.py) has one convolution and one pooling, to one node at once."""
    mutag = {"hidden_channels": 60, "layers": 1, "poolings": 1, "dense_channels": (180, 60)}
    return mutag if dataset_name == "MUTAG" else {}


class HaarPoolNet(GraphClassifier):
    """h ← ReLU(D̂⁻½ÂD̂⁻½ h W + b) some times, then HaarPooling, down to one node; its row is classified."""

    def __init__(self, shape: DataShape, settings: HaarPoolSettings) -> None:
        super().__init__()
        s, d = settings, settings.hidden_channels
        self.settings = s
        widths = [shape.in_channels, *(d for _ in range(s.poolings * s.layers - 1))]
        self.convs = nn.ModuleList(GraphConv(width, d, "symmetric", negative_slope=0.0) for width in widths)
        self.pools = nn.ModuleList(HaarPool(d, s.ratios, level) for level in range(s.poolings))
        self.first, self.second = nn.Linear(d, s.dense_channels[0]), nn.Linear(*s.dense_channels)
        self.out = nn.Linear(s.dense_channels[1], shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        graphs: GraphBatch | DenseBatch = batch
        h: Any = self.scaled(batch).x
        for i, conv in enumerate(self.convs):
            h = conv(h, graphs)
            if (i + 1) % self.settings.layers == 0:
                h, graphs, *_ = self.pools[i // self.settings.layers](h, graphs)
        g = readout(h, graphs)[:, : h.size(1)]  # the one node's row; zeros for a graph without nodes
        g = dropout(torch.relu(self.first(g)), self.settings.dropout, self.training)
        return Outputs(self.out(torch.relu(self.second(g))))


SPEC = ModelSpec(
    name="haarpool",
    system="HaarPool",
    paper="Wang, Li, Ma, Montúfar, Zhuang, Fan: Haar Graph Pooling, ICML",
    year=2020,
    about="spectral clusters by pivoted QR, edges of coarser graphs weighted, no weights shared between convolutions; "
    "its authors choose sizes and learning rate by data set and stop early, here MUTAG alone has its own sizes",
    settings=HaarPoolSettings,
    build=HaarPoolNet,
    on_dataset=_settings_on,
    training={"lr": 0.001, "weight_decay": 0.0005, "amsgrad": False, "batch_size": 50},
    prepare=lambda dataset, settings: HaarPool.prepare(dataset, settings.ratios),
)
