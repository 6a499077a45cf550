"""The structure-free baseline (Errica, Podda, Bacciu, Micheli: A Fair Comparison of Graph Neural Networks, ICLR 2020).

A graph is the bag of its nodes: how many there are of each category, or the mean of their attributes, and an MLP; or,
as on their ENZYMES and social networks, the sum of what a dense layer makes of each node.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Settings
from tapnet.models.spec import ModelSpec
from tapnet.nn.linear import Affine
from tapnet.nn.norm import BatchNorm
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout


class BagSettings(Settings):
    """One hidden layer, as the authors' MolecularFingerprint; with ``node_layer``, as their DeepMultisets.

    Args:
        hidden_channels: units of the hidden layer; the authors' are 32, 128 or 256.
        readout: of the nodes; auto: the sum of categories, the mean of numbers.
        dropout: on the hidden layer.
        node_layer: whether a dense layer with ReLU changes each node before the sum or mean.
    """

    hidden_channels: Count = 128
    readout: Literal["auto", "sum", "mean"] = "auto"
    dropout: Dropout = 0.0
    node_layer: bool = False

    ADDED_LATER = ("node_layer",)


class Bag(GraphClassifier):
    """MLP(Σᵢ xᵢ) or MLP((1/n) Σᵢ xᵢ), with ``node_layer`` of ReLU(xᵢW + b) instead of xᵢ: edges are not looked at."""

    def __init__(self, shape: DataShape, settings: BagSettings) -> None:
        super().__init__()
        self.settings, self.in_channels = settings, shape.in_channels
        self.sums = settings.readout == "sum" or (settings.readout == "auto" and shape.categorical)
        d = settings.hidden_channels
        self.nodes = Affine(shape.in_channels, d) if settings.node_layer else None
        self.hidden = Affine(d if settings.node_layer else shape.in_channels, d)
        self.norm = BatchNorm(d)
        self.classifier = nn.Linear(d, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits. Each node's product is summed, which is the product of the sum: one-hot rows are never built."""
        x = self.scaled(batch).x
        if self.nodes is None:
            h = self.hidden.shifted(self._read(self.hidden.product(x), batch))
        else:
            h = self.hidden(self._read(torch.relu(self.nodes(x)), batch))
        return Outputs(self.classifier(dropout(torch.relu(self.norm(h)), self.settings.dropout, self.training)))

    def _read(self, rows: Tensor, batch: GraphBatch) -> Tensor:
        """[N, d] → [G, d] the sum or mean over each graph's nodes"""
        _, means, sums = readout(rows, batch).chunk(3, dim=1)
        return sums if self.sums else means


# The grids of its authors, but for a learning rate of 1e-6, which takes their 5,000 epochs. They have a layer for each
# node on ENZYMES and social networks, none on other sets; here that is searched for, too.
SEARCH = {
    "node_layer": (False, True),
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
