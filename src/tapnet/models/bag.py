"""The structure-free baseline (Errica, Podda, Bacciu, Micheli: A Fair Comparison of Graph Neural Networks, ICLR 2020).

A graph is the bag of its nodes: how many there are of each category, or the mean of their attributes, and an MLP.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from tapnet.data.batch import GraphBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Settings
from tapnet.models.spec import ModelSpec
from tapnet.nn.linear import Affine
from tapnet.nn.norm import BatchNorm
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout


class BagSettings(Settings):
    """One hidden layer, as the authors' MolecularFingerprint.

    Args:
        hidden_channels: units of the hidden layer; the authors' are 32, 128 or 256.
        readout: of the nodes; auto: the sum of categories, the mean of numbers.
        dropout: on the hidden layer.
    """

    hidden_channels: Count = 128
    readout: Literal["auto", "sum", "mean"] = "auto"
    dropout: Dropout = 0.0


class Bag(GraphClassifier):
    """MLP(Σᵢ xᵢ) or MLP((1/n) Σᵢ xᵢ): edges are not looked at."""

    def __init__(self, shape: DataShape, settings: BagSettings) -> None:
        super().__init__()
        self.settings, self.in_channels = settings, shape.in_channels
        self.sums = settings.readout == "sum" or (settings.readout == "auto" and shape.categorical)
        self.hidden = Affine(shape.in_channels, settings.hidden_channels)
        self.norm = BatchNorm(settings.hidden_channels)
        self.classifier = nn.Linear(settings.hidden_channels, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits. Each node's product is summed, which is the product of the sum: one-hot rows are never built."""
        rows = readout(self.hidden.product(self.scaled(batch).x), batch)
        d = self.settings.hidden_channels
        h = torch.relu(self.norm(self.hidden.shifted(rows[:, 2 * d :] if self.sums else rows[:, d : 2 * d])))
        return Outputs(self.classifier(dropout(h, self.settings.dropout, self.training)))


# The grids of its authors, but for a learning rate of 1e-6, which takes their 5,000 epochs.
SEARCH = {
    "hidden_channels": (32, 128, 256),
    "readout": ("sum", "mean"),
    "lr": (0.001, 0.01, 0.1),
    "weight_decay": (0.0001, 0.001, 0.01),
    "batch_size": (32, 128),
}


SPEC = ModelSpec(
    name="bag",
    system="bag of nodes",
    paper="Errica, Podda, Bacciu, Micheli: A Fair Comparison of Graph Neural Networks for Graph Classification, ICLR",
    year=2020,
    about="a baseline without structure: the counts of node categories, or the mean attributes, and one hidden layer, "
    "with batch norm, which its authors do not have",
    settings=BagSettings,
    build=Bag,
    training={"lr": 0.01, "weight_decay": 0.0001, "amsgrad": False, "batch_size": 32},
    search=SEARCH,
    reads_weights=False,
    baseline=True,
    keeps_directions=lambda _: True,
)
