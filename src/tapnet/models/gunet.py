"""g-U-Net as a classifier (Gao, Ji: Graph U-Nets, ICML 2019)."""

from __future__ import annotations

import torch
from torch import nn

from tapnet.data.batch import GraphBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Ratios, Settings
from tapnet.models.spec import ModelSpec
from tapnet.models.tapnet import Activation, Classifier, activation_on
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.select import unpool
from tapnet.nn.pool.topk import TopKPool
from tapnet.ops.readout import readout


class GUNetSettings(Settings):
    """Section 4.2 of the paper and its authors' program for graph classification.

    Args:
        hidden_channels: the size of each node's features inside.
        ratios: the share of nodes that each pooling keeps, or their number.
        dropout: on the inputs of the GCN layers and of the projections.
        classifier_channels: units of the hidden layer of the classifier.
        classifier_dropout: in the classifier.
        activation: of the classifier.
    """

    hidden_channels: Count = 48
    ratios: Ratios = (0.9, 0.7, 0.6, 0.5)
    dropout: Dropout = 0.3
    classifier_channels: Count = 512
    classifier_dropout: Dropout = 0.2
    activation: Activation = "elu"


class GUNet(GraphClassifier):
    """Down by GCN and top-k pooling, up by unpooling and GCN with skip connections, readouts of each level going up."""

    def __init__(self, shape: DataShape, settings: GUNetSettings) -> None:
        super().__init__()
        s, d = settings, settings.hidden_channels
        self.settings = s

        def conv(width: int) -> GraphConv:
            return GraphConv(width, d, "neighbour", s.dropout)

        self.embedding, self.bottom = conv(shape.in_channels), conv(d)
        self.down = nn.ModuleList(conv(d) for _ in s.ratios)
        self.pools = nn.ModuleList(TopKPool(d, ratio, s.dropout) for ratio in s.ratios)
        self.up = nn.ModuleList(conv(d) for _ in s.ratios)
        self.classifier = Classifier(
            3 * d * (1 + len(s.ratios)), s.classifier_channels, shape.num_classes, s.activation, s.classifier_dropout
        )

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        origin = h = self.embedding(self.scaled(batch).x, batch)
        passed = []
        for conv, pool in zip(self.down, self.pools, strict=True):
            h = conv(h, batch)
            x, coarse, perm, *_ = pool(h, batch)
            passed.append((h, batch, perm))
            h, batch = x, coarse
        h = self.bottom(h, batch)
        readouts = []
        for conv, (skipped, batch, perm) in zip(self.up, reversed(passed), strict=True):
            h = conv(unpool(h, perm, batch.num_nodes), batch) + skipped
            readouts.append(readout(h, batch))
        readouts.append(readout(h + origin, batch))
        return Outputs(self.classifier(torch.cat(readouts, dim=1)))


SPEC = ModelSpec(
    name="gunet",
    system="g-U-Net",
    paper="Gao, Ji: Graph U-Nets, ICML",
    year=2019,
    about="top-k down, unpooling up with added skips, max, mean and sum of each level going up; edges are not "
    "augmented by the graph's second power, and a node counts once, not twice, among its neighbours",
    settings=GUNetSettings,
    keeps_directions=lambda _: True,
    build=GUNet,
    on_dataset=activation_on,
)
