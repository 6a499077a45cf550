"""DGCNN (Zhang, Cui, Neumann, Chen: An End-to-End Deep Learning Architecture for Graph Classification, AAAI 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv import GraphConv
from tapnet.ops.dropout import check_dropout, dropout


@dataclass(frozen=True)
class DGCNNSettings:
    """Section 5 of the paper: four convolutions, two 1-D convolutions of 16 and 32 channels, 128 dense units."""

    channels: tuple[int, ...] = (32, 32, 32, 1)
    k: int | None = None  # nodes after sorting; None: so that 60 % of the graphs have more
    dense_channels: int = 128
    dropout: float = 0.5  # after the dense layer

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", tuple(self.channels))
        check_dropout(self.dropout)
        if not self.channels or min(*self.channels, self.dense_channels) < 1:
            raise SettingError("a layer has at least one channel")
        if self.k is not None and self.k < 10:
            raise SettingError(f"k is at least 10, so that both 1-D convolutions have something to see, not {self.k}")


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
        h, levels = batch.x, []
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


SPEC = ModelSpec(
    name="dgcnn",
    system="DGCNN",
    paper="Zhang, Cui, Neumann, Chen: An End-to-End Deep Learning Architecture for Graph Classification, AAAI",
    year=2018,
    about="PyG's SortAggregation (ties are not broken by earlier channels) after four tanh convolutions with biases; k "
    "from the sizes of all graphs; its authors choose the learning rate by data set, here it is the same on all",
    settings=DGCNNSettings,
    build=DGCNN,
    training={"lr": 0.0001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 50},
)
