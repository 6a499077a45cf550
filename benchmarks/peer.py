"""The yardstick: TAPNet's architecture and settings built from PyG as its users would."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGPooling, TopKPooling, global_add_pool, global_max_pool, global_mean_pool

from tapnet.data.dataset import GraphDataset


class PyGNet(nn.Module):
    """An embedding GCN, three blocks of GCN and pooling, readouts of each, a classifier of 512 units.

    The pooling is ``"topk"``, ``"sag"`` or ``"none"``.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        channels: int = 48,
        ratios: tuple[float, ...] = (0.8, 0.6, 0.4),
        pool: str = "topk",
    ) -> None:
        super().__init__()
        self.embedding = GCNConv(in_channels, channels)
        self.convs = nn.ModuleList(GCNConv(channels, channels) for _ in ratios)
        make = {"topk": TopKPooling, "sag": SAGPooling, "none": lambda *_: nn.Identity()}[pool]
        self.pools = nn.ModuleList(make(channels, ratio) for ratio in ratios)
        self.dropout = nn.Dropout(0.3)
        self.activation = nn.LeakyReLU(0.01)
        self.classifier = nn.Sequential(
            nn.Dropout(0.2),
            nn.Linear(3 * channels * (1 + len(ratios)), 512),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(512, num_classes),
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.activation(self.embedding(self.dropout(x), edge_index))
        readouts = [self._readout(x, batch)]
        for conv, pool in zip(self.convs, self.pools, strict=True):
            x = self.activation(conv(self.dropout(x), edge_index))
            if not isinstance(pool, nn.Identity):
                x, edge_index, _, batch, _, _ = pool(x, edge_index, None, batch, attn=self.dropout(x))
            readouts.append(self._readout(x, batch))
        logits: Tensor = self.classifier(torch.cat(readouts, dim=1))
        return logits

    @staticmethod
    def _readout(x: Tensor, batch: Tensor) -> Tensor:
        parts = [global_max_pool(x, batch), global_mean_pool(x, batch), global_add_pool(x, batch)]
        return torch.cat(parts, dim=1)


class PyGBag(nn.Module):
    """The baseline without structure: the sum of the nodes, one hidden layer with a batch norm."""

    def __init__(self, in_channels: int, num_classes: int, channels: int = 128) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(in_channels, channels), nn.BatchNorm1d(channels), nn.ReLU(), nn.Linear(channels, num_classes)
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        logits: Tensor = self.mlp(global_add_pool(x, batch))
        return logits


def pyg_graphs(dataset: GraphDataset) -> list[Data]:
    """The graphs as PyG's own loaders give them: one-hot floats."""
    graphs = []
    for data in dataset:
        one_hot = nn.functional.one_hot(data.x, dataset.num_features).float()
        graphs.append(Data(x=one_hot, edge_index=data.edge_index, y=data.y))
    return graphs
