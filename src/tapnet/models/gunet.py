"""g-U-Net as a classifier (Gao, Ji: Graph U-Nets, ICML 2019)."""

from __future__ import annotations

import torch
from pydantic import model_validator
from torch import nn

from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Ratios, Settings
from tapnet.models.spec import ModelSpec
from tapnet.models.tapnet import Activation, Classifier, Pool, activation_on
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.base import PoolSetup
from tapnet.nn.pool.registry import resolve
from tapnet.nn.pool.select import SelectPooling, score_weights, unpool
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
        pool: the pooling layer, one that keeps the nodes of the highest scores: topk, the paper's, tap, sag, ….
        weighted_unpooling: whether rows that go back up are multiplied by their scores, divided by the graph's mean.
    """

    hidden_channels: Count = 48
    ratios: Ratios = (0.9, 0.7, 0.6, 0.5)
    dropout: Dropout = 0.3
    classifier_channels: Count = 512
    classifier_dropout: Dropout = 0.2
    activation: Activation = "elu"
    pool: Pool = "topk"
    weighted_unpooling: bool = False

    ADDED_LATER = ("pool", "weighted_unpooling")

    @model_validator(mode="after")
    def _check_pool(self) -> GUNetSettings:
        if not issubclass(resolve(self.pool), SelectPooling):
            raise SettingError(
                f"gunet puts kept nodes back, and pool {self.pool!r} is none that keeps the highest scores"
            )
        return self


class GUNet(GraphClassifier):
    """Down by GCN and pooling, up by unpooling and GCN with skip connections, readouts of each level going up."""

    def __init__(self, shape: DataShape, settings: GUNetSettings) -> None:
        super().__init__()
        s, d = settings, settings.hidden_channels
        self.settings = s

        def conv(width: int) -> GraphConv:
            return GraphConv(width, d, "neighbour", s.dropout)

        self.embedding, self.bottom = conv(shape.in_channels), conv(d)
        self.down = nn.ModuleList(conv(d) for _ in s.ratios)
        setups = (PoolSetup(d, s.ratios, level, s.dropout) for level in range(len(s.ratios)))
        self.pools = nn.ModuleList(resolve(s.pool).build(setup) for setup in setups)
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
            x, coarse, perm, *_, score = pool(h, batch)
            weight = score_weights(score[perm], coarse.graph) if self.settings.weighted_unpooling else None
            passed.append((h, batch, perm, weight))
            h, batch = x, coarse
        h = self.bottom(h, batch)
        readouts = []
        for conv, (skipped, batch, perm, weight) in zip(self.up, reversed(passed), strict=True):
            h = conv(unpool(h, perm, batch.num_nodes, weight), batch) + skipped
            readouts.append(readout(h, batch))
        readouts.append(readout(h + origin, batch))
        return Outputs(self.classifier(torch.cat(readouts, dim=1)))


SPEC = ModelSpec(
    name="gunet",
    system="g-U-Net",
    paper="Gao, Ji: Graph U-Nets, ICML",
    year=2019,
    about="top-k, or what its setting pool says, down, unpooling up with added skips, max, mean and sum of each level "
    "going up; edges are not augmented by the graph's second power, and a node counts once, not twice, among its "
    "neighbours",
    settings=GUNetSettings,
    keeps_directions=lambda settings: resolve(settings.pool).directed,
    build=GUNet,
    on_dataset=activation_on,
)
