"""SoftPooling: base of the layers that assign nodes to K clusters softly; the clusters are the new nodes."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.linear import Affine
from tapnet.nn.pool.base import Pooled, Pooling, PoolSetup, construct
from tapnet.ops.dense import adjacency_product, graph_products, graph_sums
from tapnet.ops.dropout import check_dropout, dropout

Graphs = GraphBatch | DenseBatch
EPS = 1e-8  # what is divided by is at least this: graphs without edges, clusters without nodes


class ClusterPooling(Pooling):
    """Base of layers with a fixed number of clusters.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.

    Raises:
        SettingError: if there is no cluster.
    """

    def __init__(self, in_channels: int, clusters: int) -> None:
        super().__init__()
        if clusters < 1:
            raise SettingError(f"clusters is at least 1, not {clusters}")
        self.in_channels = self.out_channels = in_channels
        self.clusters = clusters

    @classmethod
    def build(cls, setup: PoolSetup) -> Pooling:
        """With as many clusters as the ratios leave of a graph of mean size."""
        if setup.mean_nodes is None:
            raise SettingError(f"{cls.__name__} has a fixed number of clusters: it needs mean_nodes, that of the data")
        nodes = setup.mean_nodes
        for ratio in setup.ratios[: setup.level + 1]:
            nodes = ratio if isinstance(ratio, int) else nodes * ratio
        clusters = max(1, math.ceil(nodes))
        return construct(cls, setup.in_channels, clusters=clusters, norm=setup.norm, dropout=setup.dropout)

    def elements(self, nodes: int) -> int:
        """The padded assignment matrix has n · K."""
        return nodes * self.clusters

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, clusters={self.clusters}"


class SoftPooling(ClusterPooling):
    r"""Base of layers that assign by one dense layer and differ in their losses.

    .. math::
        S = \mathrm{softmax}(H W + b), \qquad H' = S^T H, \qquad
        A' = D'^{-1/2} (S^T A S - \mathrm{diag}) D'^{-1/2}

    with D' the row sums of what it normalises, so that a cluster has no edge to itself. No n×n matrix is made: SᵀAS is
    Sᵀ(AS). A layer implements ``loss``.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        dropout (float): applied to the features that the dense layer sees. (default: ``0.0``)

    Attributes:
        assign: the dense layer, W [d, K] and b [K].
    """

    cost = "O(E·K + N·K·(d + K))"
    memory = "O(N·(d + K) + B·K²)"

    def __init__(self, in_channels: int, clusters: int, dropout: float = 0.0) -> None:
        super().__init__(in_channels, clusters)
        check_dropout(dropout)
        self.dropout = dropout
        self.assign = Affine(in_channels, clusters)

    def forward(self, x: Tensor, batch: Graphs, /) -> Pooled:
        """[N, d] → [B·K, d] and dense graphs of K nodes each; the loss while training."""
        s = torch.softmax(self.logits(x), dim=1)
        coarse = graph_products(s, adjacency_product(s, batch), batch)
        loss = self.loss(s, coarse, batch).mean() if self.training else None
        pooled = graph_products(s, x, batch).flatten(0, 1)
        return Pooled(self.activate(pooled), DenseBatch(normalized(coarse)), assignment=s.detach(), loss=loss)

    def logits(self, x: Tensor) -> Tensor:
        """[N, d] → [N, K], whose softmax is S."""
        logits: Tensor = self.assign(dropout(x, self.dropout, self.training))
        return logits

    def activate(self, x: Tensor) -> Tensor:
        """What becomes of SᵀH; by default nothing."""
        return x

    @abstractmethod
    def loss(self, s: Tensor, coarse: Tensor, batch: Graphs) -> Tensor:
        """The layer's losses, added up.

        Args:
            s: [N, K], S.
            coarse: [B, K, K], SᵀAS.
            batch: the graphs.

        Returns:
            [B], of each graph.
        """


# ---- what the losses are made of ----


def normalized(coarse: Tensor) -> Tensor:
    """[B, K, K] → D^-½ A D^-½ of A without its diagonal."""
    coarse = coarse * (1 - torch.eye(coarse.size(1), dtype=coarse.dtype, device=coarse.device))
    root = coarse.sum(dim=2, keepdim=True).clamp(min=EPS).sqrt()
    return coarse / root / root.transpose(1, 2)


def trace(matrices: Tensor) -> Tensor:
    """[B, K, K] → [B]"""
    return matrices.diagonal(dim1=1, dim2=2).sum(dim=1)


def row_sum(batch: Graphs, dtype: torch.dtype) -> Tensor:
    """[N, 1] dᵢ, the row sums of A."""
    degree = batch.adjacency.sum(dim=2).flatten() if isinstance(batch, DenseBatch) else batch.row_sum.to(dtype)
    return degree.unsqueeze(1)


def orthogonality(s: Tensor, batch: Graphs) -> Tensor:
    """[B] ‖SᵀS / ‖SᵀS‖ - I / √K‖: 0 where clusters are equally large and no node is in two."""
    squared = graph_products(s, s, batch)
    squared = squared / torch.linalg.matrix_norm(squared, keepdim=True).clamp(min=EPS)
    clusters = squared.size(1)
    identity = torch.eye(clusters, dtype=s.dtype, device=s.device)
    distance: Tensor = torch.linalg.matrix_norm(squared - identity / math.sqrt(clusters))
    return distance


def balance(s: Tensor, batch: Graphs) -> Tensor:
    """[B] Σₖ ‖Sₖ‖ / √(nK), of the columns of S: at most 1, and 1 where clusters are equally large and S is 0 or 1."""
    norms = (graph_sums(s.square(), batch) + EPS**2).sqrt().sum(dim=1)
    return norms / (batch.nodes_per_graph.clamp(min=1) * s.size(1)).to(s.dtype).sqrt()
