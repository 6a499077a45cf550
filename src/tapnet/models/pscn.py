"""PATCHY-SAN (Niepert, Ahmed, Kutzkov: Learning Convolutional Neural Networks for Graphs, ICML 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from tapnet._loops.jit import Array, array
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Prepared
from tapnet.data.features import FeatureRows, MixedFeatures
from tapnet.io.computed_cache import PerItem, computed_once
from tapnet.models.base import DataShape, GraphClassifier, Outputs
from tapnet.models.preprocess.receptive_fields import colours, fields_of_graph
from tapnet.models.settings import Count, Dropout, Settings, TwoCounts
from tapnet.models.spec import ModelSpec
from tapnet.ops.dropout import dropout
from tapnet.ops.features import product

SECOND_FIELD = 10  # nodes of the sequence that the second convolution sees at once
RANKING = "degree, category, refined"  # in the name of what is cached; to be changed with receptive_fields.py


class PSCNSettings(Settings):
    """Section 5.3 of the paper: fields of 10 nodes, convolutions of 16 and 8 channels, 128 dense units.

    Args:
        width: nodes of the sequence, w; None: the mean of the graphs' sizes.
        field: nodes of a receptive field, k.
        channels: of the two convolutions.
        dense_channels: units of the dense layer.
        dropout: after the dense layer.
    """

    width: Annotated[Count, Field(ge=SECOND_FIELD)] | None = None
    field: Count = 10
    channels: TwoCounts = (16, 8)
    dense_channels: Count = 128
    dropout: Dropout = 0.5

    def width_on(self, shape: DataShape) -> int:
        """w on data of this shape."""
        return self.width or max(SECOND_FIELD, round(shape.mean_nodes))


class PSCN(GraphClassifier):
    """A convolution over each receptive field, one along the sequence of fields, a dense layer."""

    def __init__(self, shape: DataShape, settings: PSCNSettings) -> None:
        super().__init__()
        s = settings
        self.settings, self.width = s, s.width_on(shape)
        first, second = s.channels
        self.over_fields = FieldConv(shape.in_channels, s.field, first)
        self.along_sequence = nn.Conv1d(first, second, SECOND_FIELD)
        self.dense = nn.Linear(second * (self.width - SECOND_FIELD + 1), s.dense_channels)
        self.out = nn.Linear(s.dense_channels, shape.num_classes)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits."""
        fields = batch.prepared.get("pscn")
        if fields is None:
            fields = fields_of_batch(batch, self.width, self.settings.field)
        rows = torch.where(fields < 0, -1, fields + batch.ptr[:-1].view(-1, 1, 1))
        h = torch.relu(self.over_fields(self.scaled(batch).x, rows.flatten(0, 1)))
        h = h.view(batch.num_graphs, self.width, -1)
        h = torch.relu(self.along_sequence(h.transpose(1, 2))).flatten(1)
        return Outputs(self.out(dropout(torch.relu(self.dense(h)), self.settings.dropout, self.training)))

    def structure(self, dataset: GraphDataset) -> Mapping[str, Prepared]:
        """The receptive fields, in which the categories have a say."""
        batch = dataset.batch(range(len(dataset)))
        return {"pscn": Fields(fields_of_batch(batch, self.width, self.settings.field))}


class FieldConv(nn.Module):
    """b + Σⱼ xⱼWⱼ over the k nodes of a field, a node that is missing being a row of zeros."""

    def __init__(self, in_channels: int, field: int, channels: int) -> None:
        super().__init__()
        self.field = field
        self.weight = nn.Parameter(torch.empty(in_channels * field, channels))  # row i · k + j is row i of Wⱼ
        self.bias = nn.Parameter(torch.zeros(channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: FeatureRows, fields: Tensor) -> Tensor:
        """[N] categories, [N, in] floats, or both, [M, k] rows of x or -1 → [M, channels]"""
        k, c = self.field, len(self.bias)
        if isinstance(x, MixedFeatures) or x.is_floating_point():
            table, row = product(x, self.weight.view(-1, k * c)).view(-1, c), fields
        else:  # a one-hot row times W is a row of W
            table, row = self.weight, x[fields].long()
        entry = torch.where(fields < 0, len(table), row * k + torch.arange(k, device=x.device))
        with_zeros = nn.functional.pad(table, (0, 0, 0, 1))
        return nn.functional.embedding_bag(entry, with_zeros, mode="sum") + self.bias


# ---- receptive fields ----


@dataclass(frozen=True)
class Fields:
    """The receptive fields of every graph of a data set."""

    numbers: Tensor  # [G, w, k] int32: numbers of nodes within the graph, -1 for none

    def cut(self, graphs: Tensor) -> Tensor:
        """Those of these graphs."""
        return self.numbers.index_select(0, graphs)


def prepare(dataset: GraphDataset, settings: PSCNSettings) -> GraphDataset:
    """The data set with its receptive fields, computed once."""
    width, field = settings.width_on(DataShape.of(dataset)), settings.field
    arrays = [*map(array, (dataset.node_ptr, dataset.rowptr, dataset.col)), colours(dataset.x)]

    def compute(graph: int) -> dict[str, Array]:
        return {"fields": fields_of_graph(graph, width, field, *arrays)}

    chosen, title = {"width": width, "field": field, "ranking": RANKING}, f"{dataset.name}: receptive fields"

    def fits(stored: Mapping[str, PerItem]) -> bool:
        fields = stored["fields"].values.view(len(dataset), width * field)
        nodes = dataset.nodes_per_graph.view(-1, 1)
        return fields.dtype == torch.int32 and bool(((fields >= -1) & (fields < nodes)).all())

    stored = computed_once("pscn", dataset.checksum, chosen, len(dataset), compute, title, fits=fits)
    fields = Fields(stored["fields"].values.view(len(dataset), width, field))
    return replace(dataset, prepared={**dataset.prepared, "pscn": fields})


def fields_of_batch(batch: GraphBatch, width: int, field: int) -> Tensor:
    """[B, w, k]: the same of graphs for which nothing was prepared."""
    first = batch.ptr.index_select(0, batch.graph.index_select(0, batch.edge_index[0]))
    structure = (batch.ptr, batch.rowptr, batch.col - first)
    arrays = [*(array(t.cpu()) for t in structure), colours(batch.x)]
    graphs = [fields_of_graph(g, width, field, *arrays) for g in range(batch.num_graphs)]
    return torch.from_numpy(np.stack(graphs)).to(batch.ptr.device)


SPEC = ModelSpec(
    name="pscn",
    system="PSCN",
    paper="Niepert, Ahmed, Kutzkov: Learning Convolutional Neural Networks for Graphs, ICML",
    year=2016,
    about="nodes only, k = 10; one ranking for a graph's sequence and all its fields (degree, category, 1-WL, equals "
    "told apart one by one and not by NAUTY), where its authors rank each field anew; categories one-hot, even where "
    "they use the degree as a number; Adam with Keras's rate for RMSProp; its authors choose epochs and batch size by "
    "data set, here they are the same on all",
    settings=PSCNSettings,
    reads_weights=False,
    build=PSCN,
    training={"lr": 0.001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 32},
    prepare=prepare,
)
