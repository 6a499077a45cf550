"""TAPNet (sections 3.3 and 4.1): an embedding GCN, blocks of GCN and pooling, readouts of each, a classifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, zip_longest
from typing import Any, Literal

import torch
from pydantic import model_validator
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.models.base import DataShape, GraphClassifier, Outputs, micro_batches_within
from tapnet.models.settings import Count, Dropout, Ratios, Settings, Weight
from tapnet.models.spec import ModelSpec
from tapnet.nn.conv import GraphConv
from tapnet.nn.init import glorot_
from tapnet.nn.link import LinkReading
from tapnet.nn.pool.chain import ChainPool, EigenPool, HaarPool, prepare_chain
from tapnet.nn.pool.diff import DiffPool
from tapnet.nn.pool.select import Pooled
from tapnet.nn.pool.selecting import SAGPool, SelectingPool, SortPool, TopKPool
from tapnet.nn.similarity import Similarity
from tapnet.nn.tap import Gate, TAPooling
from tapnet.ops.csr import Norm
from tapnet.ops.dropout import dropout
from tapnet.ops.readout import readout

Pool = Literal["tap", "topk", "sort", "diff", "sag", "eigen", "haar", "none"]
Activation = Literal["relu", "elu"]

OF_TAP = ("connectivity", "similarity", "local_voting", "global_voting", "gate")  # settings of that layer alone
EIGEN_VECTORS = 3  # of each cluster, with pool "eigen": so many times as wide are the rows that come out of it
# Section 4.1: ReLU in the classifier on these sets, ELU on the others.
RELU_SETS = ("DD", "PTC", "MUTAG", "COLLAB", "REDDIT-MULTI5K", "REDDIT-MULTI12K")


class TAPNetSettings(Settings):
    """Everything that shapes a TAPNet; the defaults are the paper's."""

    hidden_channels: Count = 48
    ratios: Ratios = (0.8, 0.6, 0.4)  # of the graph as it comes into each pooling layer
    pool: Pool = "tap"
    connectivity: float = 0.1
    similarity: Similarity = "bilinear"
    local_voting: bool = True
    global_voting: bool = True
    gate: Gate = "straight-through"
    norm: Norm = "neighbour"  # not said in the paper; see nn/conv.py
    activation: Activation = "relu"  # of the classifier
    dropout: Dropout = 0.3  # on the inputs of the GCN layers and of the votes
    classifier_channels: Count = 512
    classifier_dropout: Dropout = 0.2
    aux: Weight = 0.0  # the weight of the link prediction objective
    link_reading: LinkReading = "sigmoid"

    @model_validator(mode="after")
    def _check_pool(self) -> TAPNetSettings:
        for name in OF_TAP:
            if self.pool != "tap" and getattr(self, name) != type(self).model_fields[name].default:
                raise SettingError(f"{name} is a setting of pool 'tap'; pool {self.pool!r} has none")
        if self.aux > 0 and (self.pool != "tap" or not self.local_voting):
            raise SettingError("aux uses the similarities of local voting: it needs pool 'tap' with local voting on")
        return self


def activation_on(dataset_name: str) -> Activation:
    return "relu" if dataset_name in RELU_SETS else "elu"


class TAPNet(GraphClassifier):
    """TAPNet for graph classification.

    Args:
        in_channels: the number of categories, or of float features.
        num_classes: C.
        mean_nodes: of a graph of the data; what pool "diff" counts its clusters by.
        settings: every field of ``TAPNetSettings``, by name; the defaults are the paper's. With ``aux`` or pool "diff"
            there is a loss to be added in training, which a call does not return:
            ``model.outputs(GraphBatch.from_edge_index(x, edge_index, batch))`` has ``logits`` and ``auxiliary``.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        hidden_channels: int = 48,
        ratios: tuple[float, ...] = (0.8, 0.6, 0.4),
        pool: Pool = "tap",
        *,
        mean_nodes: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        s = TAPNetSettings(hidden_channels=hidden_channels, ratios=ratios, pool=pool, **settings)
        self.settings, self.in_channels, self.num_classes = s, in_channels, num_classes
        self.embedding = GraphConv(in_channels, hidden_channels, s.norm, s.dropout)
        self.pools = make_pools(s, mean_nodes)
        pooled = hidden_channels * (EIGEN_VECTORS if pool == "eigen" else 1)  # what comes out of a pooling layer
        widths = [hidden_channels, *(pooled for _ in s.ratios[1:])]
        self.convs = nn.ModuleList(
            GraphConv(width, hidden_channels, s.norm, s.dropout) for width in widths[: len(s.ratios)]
        )
        self.classifier = Classifier(
            3 * (hidden_channels + pooled * len(s.ratios)),
            s.classifier_channels,
            num_classes,
            s.activation,
            s.classifier_dropout,
        )

    def outputs(self, batch: GraphBatch) -> Outputs:
        levels = list(self.levels(batch))
        logits = self.classifier(self.readouts(levels))
        losses = [level.loss for level in levels if level.loss is not None] if self.training else []
        return Outputs(logits, torch.stack(losses).sum() if losses else None)

    def levels(self, batch: GraphBatch) -> Iterator[Pooled]:
        """The embedded graphs, then what each block makes of them: what the readouts are taken of."""
        level = Pooled(self.embedding(batch.x, batch), batch)
        yield level
        for conv, pool in zip_longest(self.convs, self.pools):
            graphs = level.batch
            h = conv(level.x, graphs)
            if pool is None:
                level = Pooled(h, graphs)
            elif isinstance(pool, TAPooling):
                assert isinstance(graphs, GraphBatch)
                mask = pool.mask()
                link = None
                if self.training and self.settings.aux > 0:
                    link = self.settings.aux * pool.link_loss(h, graphs, self.settings.link_reading, mask)
                level = pool.coarsen(h, graphs, mask)._replace(loss=link)
            else:
                assert isinstance(pool, SelectingPool | DiffPool | ChainPool)
                level = pool.coarsen(h, graphs)
            yield level

    def embed(self, batch: GraphBatch) -> Tensor:
        """[B, width]: the readouts of all levels."""
        return self.readouts(self.levels(batch))

    @staticmethod
    def readouts(levels: Iterable[Pooled]) -> Tensor:
        """[B, width]: max, mean and sum of every level, which is what the classifier gets of a graph."""
        return torch.cat([readout(level.x, level.batch) for level in levels], dim=1)

    def coarsened(self, batch: GraphBatch) -> list[GraphBatch]:
        poolings = list(self.levels(batch))[1:] if len(self.pools) else []
        return [level.batch for level in poolings if isinstance(level.batch, GraphBatch) and level.perm is not None]

    def micro_batches(self, graphs: Tensor, sizes: Tensor) -> Sequence[Tensor]:
        if self.settings.pool != "diff":
            return (graphs,)
        clusters = max((pool.clusters for pool in self.pools if isinstance(pool, DiffPool)), default=1)
        return micro_batches_within(graphs, sizes, lambda n: n * clusters)


def make_pools(s: TAPNetSettings, mean_nodes: float | None = None) -> nn.ModuleList:
    """One pooling layer a block; none for "none"."""
    if s.pool == "none":
        return nn.ModuleList()
    d = s.hidden_channels
    if s.pool == "diff":
        if mean_nodes is None:
            raise SettingError("pool 'diff' has a fixed number of clusters: it needs mean_nodes, that of the data")
        steps = accumulate(
            s.ratios, lambda n, ratio: ratio if isinstance(ratio, int) else n * ratio, initial=mean_nodes
        )
        clusters = [max(1, math.ceil(n)) for n in steps][1:]
        return nn.ModuleList(DiffPool(d, k, s.norm, s.dropout) for k in clusters)
    if s.pool == "tap":
        return nn.ModuleList(
            TAPooling(
                d,
                ratio,
                connectivity=s.connectivity,
                similarity=s.similarity,
                local_voting=s.local_voting,
                global_voting=s.global_voting,
                gate=s.gate,
                dropout=s.dropout,
            )
            for ratio in s.ratios
        )
    if s.pool == "eigen":
        return nn.ModuleList(EigenPool(d, s.ratios, i, EIGEN_VECTORS) for i in range(len(s.ratios)))
    if s.pool == "haar":
        return nn.ModuleList(HaarPool(d, s.ratios, i) for i in range(len(s.ratios)))
    layers: dict[str, Callable[..., SelectingPool]] = {"topk": TopKPool, "sort": SortPool, "sag": SAGPool}
    return nn.ModuleList(layers[s.pool](d, ratio, s.dropout) for ratio in s.ratios)


class Classifier(nn.Module):
    """Two dense layers with dropout on both inputs."""

    def __init__(
        self, in_channels: int, hidden_channels: int, num_classes: int, activation: Activation, dropout: float
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(in_channels, hidden_channels)
        self.out = nn.Linear(hidden_channels, num_classes)
        self.activation, self.dropout = activation, dropout
        for layer in (self.hidden, self.out):
            glorot_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, in] → [B, C]"""
        h = self.hidden(dropout(x, self.dropout, self.training))
        h = nn.functional.relu(h) if self.activation == "relu" else nn.functional.elu(h)
        logits: Tensor = self.out(dropout(h, self.dropout, self.training))
        return logits


def _build(shape: DataShape, settings: TAPNetSettings) -> TAPNet:
    return TAPNet(shape.in_channels, shape.num_classes, mean_nodes=shape.mean_nodes, **settings.to_dict())


def _prepare(dataset: GraphDataset, settings: TAPNetSettings) -> GraphDataset:
    if settings.pool == "eigen":
        return prepare_chain(dataset, settings.ratios, "eigen", EIGEN_VECTORS)
    return prepare_chain(dataset, settings.ratios, "haar") if settings.pool == "haar" else dataset


SPEC = ModelSpec(
    name="tapnet",
    system="TAPNet",
    paper="Gao, Liu, Ji: Topology-Aware Graph Pooling Networks, TPAMI",
    year=2021,
    about="this package's own; --pool puts another pooling layer in its place",
    settings=TAPNetSettings,
    build=_build,
    on_dataset=lambda name: {"activation": activation_on(name)},
    prepare=_prepare,
)
