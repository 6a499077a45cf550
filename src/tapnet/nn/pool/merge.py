"""Merging clusters of nodes: their numbers, their features, the graph between them. Base of layers that learn none."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from tapnet._loops.clusters import merged_csr
from tapnet._loops.csr import to_csr
from tapnet._loops.ranges import offsets
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.ops.precision import widened
from tapnet.ops.segments import segment_readout


class Clusters(NamedTuple):
    """Every node of a batch in one cluster, those of a graph numbered one after another."""

    assignment: Tensor  # [N] the cluster of each node
    ptr: Tensor  # [B+1] graph g has the clusters ptr[g] to ptr[g+1]

    @property
    def number(self) -> int:
        """K, of all graphs together."""
        return int(self.ptr[-1])

    @classmethod
    def of(cls, representative: Tensor, batch: GraphBatch) -> Clusters:
        """Numbers the clusters by [N] the node that stands for each node's cluster."""
        is_first = representative == torch.arange(len(representative), device=representative.device)
        before = offsets(is_first)
        return cls(before[representative], before[batch.ptr])


class MergePooling(Pooling):
    """Base of layers that put each node into one cluster by the graph alone: the maximum over a cluster goes on.

    Nothing is learned. Two clusters are linked by the sum of the weights between them; edges count in both directions.

    Args:
        in_channels (int): d, the size of each node's features.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = self.out_channels = in_channels

    @abstractmethod
    def clusters(self, batch: GraphBatch) -> Clusters:
        """The cluster of each node; the graphs are undirected."""

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d]: the largest values of each cluster."""
        batch = sparse_and_undirected(self, x, batch)
        clusters = self.clusters(batch)
        return Pooled(cluster_max(x, clusters), merged(batch, clusters), assignment=clusters.assignment)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}"


def sparse_and_undirected(layer: Pooling, x: Tensor, batch: GraphBatch | DenseBatch) -> GraphBatch:
    """The batch, if it is sparse and has these rows, with edges in both directions and without what they carry.

    Raises:
        ValueError: if it is dense, or has another number of nodes.
    """
    if not isinstance(batch, GraphBatch):
        raise ValueError(f"{type(layer).__name__} pools sparse graphs, not a DenseBatch")
    batch.check_rows(x)
    return undirected(batch)


def undirected(batch: GraphBatch) -> GraphBatch:
    """The same graphs with edges in both directions; without what they carry, unless they have both already."""
    if batch.transposed is None:
        return batch
    ends = batch.edge_index
    (rowptr, col), _ = to_csr(torch.cat([ends, ends.flip(0)], dim=1), batch.num_nodes)
    batch = replace(batch, weight=None, transposed_weight=None, edge_attr=None)
    return replace(batch, rowptr=rowptr, col=col, transposed=None)


def merged(batch: GraphBatch, clusters: Clusters, *, weighted: bool = True) -> GraphBatch:
    """The graphs whose nodes are clusters.

    Args:
        batch: undirected graphs.
        clusters: of their nodes.
        weighted: whether an edge has the sum of the weights between two clusters (of ones, where there are none), or
            none.
    """
    weight = torch.ones(len(batch.col), device=batch.col.device) if batch.weight is None else batch.weight
    rowptr, col, total = merged_csr(batch.rowptr, batch.col, weight, clusters.assignment, clusters.number)
    return GraphBatch(batch.x, batch.y, clusters.ptr, rowptr, col, weight=total if weighted else None)


def cluster_sum(x: Tensor, clusters: Clusters) -> Tensor:
    """[N, d] → [K, d]: the sum of each cluster's rows."""
    return x.new_zeros(clusters.number, x.size(1)).index_add(0, clusters.assignment, x)


def cluster_max(x: Tensor, clusters: Clusters) -> Tensor:
    """[N, d] → [K, d]: the largest of each cluster, channel by channel."""
    order = torch.argsort(clusters.assignment, stable=True)
    ptr = offsets(torch.bincount(clusters.assignment, minlength=clusters.number))
    return segment_readout(widened(x).index_select(0, order), ptr)[:, : x.size(1)]
