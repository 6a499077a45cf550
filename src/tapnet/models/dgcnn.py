"""DGCNN (Zhang, Cui, Neumann, Chen: An End-to-End Deep Learning Architecture for Graph Classification, AAAI 2018)."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Counts, Dropout, Settings
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv import GraphConv
from tapnet.ops.dropout import dropout


class DGCNNSettings(Settings):
    """Section 5 of the paper: four convolutions, two 1-D convolutions of 16 and 32 channels, 128 dense units.

    Args:
        channels: of each graph convolution; nodes are sorted by the last.
        k: nodes after sorting, enough for both 1-D convolutions; None: so that 60 % of the graphs have more.
        dense_channels: units of the dense layer.
        dropout: after the dense layer.
    """

    channels: Annotated[Counts, Field(min_length=1)] = (32, 32, 32, 1)
    k: Annotated[Count, Field(ge=10)] | None = None
    dense_channels: Count = 128
    dropout: Dropout = 0.5


class DGCNN(GraphClassifier):
    """h ← tanh(D̂⁻¹Â h W), all layers side by side; nodes sorted by the last channel; 1-D convolutions over them."""

    def __init__(self, shape: DataShape, settings: DGCNNSettings) -> None:
        super().__init__()
        from torch_geometric.nn import SortAggregation  # half a second to import

        s = settings
        self.settings, self.k = s, s.k or max(10, shape.node_deciles[4])
        widths = [shape.in_channels, *s.channels]
        self.convs = nn.ModuleList(
            GraphConv(a, b, "mean", negative_slope=1.0) for a, b in zip(widths, s.channels, strict=False)
        )
        total = sum(s.channels)
        self.sort = SortAggregation(self.k)
        self.rows = nn.Conv1d(1, 16, total, total)  # one step a node
        self.pool = nn.MaxPool1d(2, 2)
        self.pairs = nn.Conv1d(16, 32, 5)
        self.dense = nn.Linear(32 * (self.k // 2 - 4), s.dense_channels)
        self.out = nn.Linear(s.dense_channels, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        h, levels = self.scaled(batch).x, []
        for conv in self.convs:
            h = torch.tanh(conv(h, batch))
            levels.append(h)
        return Outputs(self._classified(self.sort(torch.cat(levels, dim=1), batch.graph, dim_size=batch.num_graphs)))

    def _classified(self, rows: Tensor) -> Tensor:
        """[B, k · Σ channels] → [B, C]"""
        h = self.pool(torch.relu(self.rows(rows.unsqueeze(1))))
        h = torch.relu(self.pairs(h)).flatten(1)
        logits: Tensor = self.out(dropout(torch.relu(self.dense(h)), self.settings.dropout, self.training))
        return logits


# The grid of Errica and others (A Fair Comparison of Graph Neural Networks, ICLR 2020), where k stays the default and
# a learning rate of 0.001 is added: theirs are for 1,000 epochs.
SEARCH = {
    "channels": ((32, 32, 1), (32, 32, 32, 1), (32, 32, 32, 32, 1), (64, 64, 1), (64, 64, 64, 1), (64, 64, 64, 64, 1)),
    "lr": (0.00001, 0.0001, 0.001),
}


SPEC = ModelSpec(
    name="dgcnn",
    system="DGCNN",
    paper="Zhang, Cui, Neumann, Chen: An End-to-End Deep Learning Architecture for Graph Classification, AAAI",
    year=2018,
    about="PyG's SortAggregation (ties are not broken by earlier channels) after four tanh convolutions with biases; k "
    "from the sizes of all graphs; its authors choose the learning rate by data set, here it is the same on all",
    settings=DGCNNSettings,
    keeps_directions=lambda _: True,
    build=DGCNN,
    training={"lr": 0.0001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 50},
    search=SEARCH,
)
