"""SAGPool, the hierarchical network (Lee, Lee, Kang: Self-Attention Graph Pooling, ICML 2019)."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Ratio, Settings
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.sag import SAGPool
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout


class SAGPoolSettings(Settings):
    """Section 4.3 of the paper and its authors' program: 128 channels, half of the nodes kept three times.

    Args:
        hidden_channels: the size of each node's features inside.
        layers: graph convolutions, each with a pooling.
        ratio: the share of nodes that each pooling keeps, or their number.
        dropout: in the classifier.
    """

    hidden_channels: Annotated[Count, Field(ge=2)] = 128
    layers: Count = 3
    ratio: Ratio = 0.5
    dropout: Dropout = 0.5


class SAGPoolNet(GraphClassifier):
    """Blocks of GCN and SAGPool; the blocks' readouts max ‖ mean are added and classified."""

    def __init__(self, shape: DataShape, settings: SAGPoolSettings) -> None:
        super().__init__()
        s, d = settings, settings.hidden_channels
        self.settings = s
        widths = [shape.in_channels, *(d for _ in range(s.layers - 1))]
        self.convs = nn.ModuleList(GraphConv(width, d, "symmetric", negative_slope=0.0) for width in widths)
        self.pools = nn.ModuleList(SAGPool(d, s.ratio) for _ in widths)
        self.first, self.second = nn.Linear(2 * d, d), nn.Linear(d, d // 2)
        self.out = nn.Linear(d // 2, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        graphs: GraphBatch | DenseBatch = batch
        h, readouts = self.scaled(batch).x, []
        for conv, pool in zip(self.convs, self.pools, strict=True):
            h, graphs, *_ = pool(conv(h, graphs), graphs)
            readouts.append(readout(h, graphs)[:, : 2 * h.size(1)])
        g = torch.stack(readouts).sum(0)
        g = dropout(torch.relu(self.first(g)), self.settings.dropout, self.training)
        return Outputs(self.out(torch.relu(self.second(g))))


SPEC = ModelSpec(
    name="sagpool",
    system="SAGPool",
    paper="Lee, Lee, Kang: Self-Attention Graph Pooling, ICML",
    year=2019,
    about="the hierarchical network with its defaults; its authors stop early by validation loss, here the epochs are "
    "the same for all",
    settings=SAGPoolSettings,
    keeps_directions=lambda _: True,
    build=SAGPoolNet,
    training={"lr": 0.0005, "weight_decay": 0.0001, "amsgrad": False, "batch_size": 128},
)
