"""GIN-0 (Xu, Hu, Leskovec, Jegelka: How Powerful are Graph Neural Networks?, ICLR 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.features import FeatureRows
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.settings import Count, Dropout, Settings
from tapnet.models.spec import ModelSpec
from tapnet.nn.linear import Affine
from tapnet.nn.norm import BatchNorm
from tapnet.ops.csr import propagate
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout

Readout = Literal["sum", "mean"]
SOCIAL_SETS = ("COLLAB", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "REDDIT-MULTI5K", "REDDIT-MULTI12K")


class GINSettings(Settings):
    """Section 7 of the paper and its authors' program (defaults of its main.py).

    Args:
        hidden_channels: the size of each node's features inside.
        layers: the input counts as one: 5 are four convolutions.
        readout: of the nodes at each layer.
        dropout: on the graph's scores, as in the authors' program.
    """

    hidden_channels: Count = 64
    layers: Annotated[Count, Field(ge=2)] = 5
    readout: Readout = "sum"
    dropout: Dropout = 0.5


def _settings_on(dataset_name: str) -> dict[str, str]:
    """Its authors read out by the mean on the social sets, by the sum elsewhere."""
    return {"readout": "mean" if dataset_name in SOCIAL_SETS else "sum"}


class GIN(GraphClassifier):
    """h ← MLP((A + I) h) in each layer; every layer's readout, the input's too, is classified, and the scores added."""

    def __init__(self, shape: DataShape, settings: GINSettings) -> None:
        super().__init__()
        s, d = settings, settings.hidden_channels
        self.settings, self.in_channels = s, shape.in_channels
        self.mlps = nn.ModuleList(MLP(shape.in_channels if i == 0 else d, d) for i in range(s.layers - 1))
        self.norms = nn.ModuleList(BatchNorm(d) for _ in self.mlps)
        widths = [shape.in_channels, *(d for _ in self.mlps)]
        self.scores = nn.ModuleList(Affine(width, shape.num_classes) for width in widths)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        return Outputs(self._logits_of(self._levels(batch), batch))

    def logits_and_embedding(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """[B, C], and [B, width] the readouts of all layers; that of the input is left out."""
        levels = self._levels(batch)
        readouts = [readout(h, batch) for h in levels[1:] if isinstance(h, Tensor)]
        return self._logits_of(levels, batch), torch.cat(readouts, dim=1)

    def _levels(self, batch: GraphBatch) -> list[FeatureRows]:
        """The input, then what each layer makes of the nodes, [N, d] each."""
        h: FeatureRows = self.scaled(batch).x
        levels = [h]
        for mlp, norm in zip(self.mlps, self.norms, strict=True):
            h = torch.relu(norm(mlp(h, batch)))
            levels.append(h)
        return levels

    def _logits_of(self, levels: Sequence[FeatureRows], batch: GraphBatch) -> Tensor:
        logits = [self._scored(score, level, batch) for score, level in zip(self.scores, levels, strict=True)]
        return torch.stack(logits).sum(0)

    def _scored(self, score: nn.Module, h: FeatureRows, batch: GraphBatch) -> Tensor:
        """The readout's linear scores: the readout of each node's scores without the bias, which is the same."""
        assert isinstance(score, Affine)
        rows = readout(score.product(h), batch)
        c = rows.size(1) // 3
        rows = rows[:, 2 * c :] if self.settings.readout == "sum" else rows[:, c : 2 * c]
        return dropout(score.shifted(rows), self.settings.dropout, self.training)


class MLP(nn.Module):
    """Two dense layers with a batch norm between.

    The first is applied before the neighbours are summed: a sum of products is the product of the sum, and the narrower
    of the two is cheaper.
    """

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.first, self.second = Affine(in_channels, channels), nn.Linear(channels, channels)
        self.norm = BatchNorm(channels)

    def forward(self, x: FeatureRows, batch: GraphBatch) -> Tensor:
        """[N] categories, [N, in] floats, or both → [N, channels]"""
        h = self.first.shifted(propagate(self.first.product(x), batch, "sum"))
        h = torch.relu(self.norm(h))
        out: Tensor = self.second(h)
        return out


# The grid of Errica and others (A Fair Comparison of Graph Neural Networks, ICLR 2020), without a trained epsilon.
SEARCH = {
    "hidden_channels": (32, 64),
    "layers": (2, 3, 5),
    "readout": ("sum", "mean"),
    "dropout": (0.0, 0.5),
    "lr": (0.01,),
    "batch_size": (32, 128),
}


SPEC = ModelSpec(
    name="gin",
    system="GIN-0",
    paper="Xu, Hu, Leskovec, Jegelka: How Powerful are Graph Neural Networks?, ICLR",
    year=2019,
    about="sums, 2-layer MLPs with batch norm, every layer read out (by the mean on social sets); its authors choose "
    "width, dropout and batch size by data set and draw 50 batches an epoch, here all are the same on all and an epoch "
    "is one pass; degrees on the REDDIT sets too, where they give all nodes one label",
    settings=GINSettings,
    keeps_directions=lambda _: True,
    build=GIN,
    on_dataset=_settings_on,
    training={"lr": 0.01, "weight_decay": 0.0, "amsgrad": False, "batch_size": 32, "halve_lr_every": 50},
    search=SEARCH,
)
