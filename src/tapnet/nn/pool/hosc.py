"""HOSCPool: soft clusters with few edges and few triangles between them."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from tapnet._loops.csr import common_neighbors
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.merge import undirected
from tapnet.nn.pool.soft import EPS, Graphs, SoftPooling, balance, row_sum
from tapnet.ops.dense import adjacency_product, graph_sums


class HOSCPool(SoftPooling):
    r"""The layer from *Higher-order Clustering and Pooling for Graph Neural Networks* (Duval, Malliaros, CIKM 2022).

    .. math::
        S = \mathrm{softmax}(H W + b), \qquad H' = S^T H, \qquad
        A' = D'^{-1/2} (S^T A S - \mathrm{diag}) D'^{-1/2}

        L = - \frac{1}{K} \sum_k \Bigl( (1 - \alpha) \frac{(S^T A S)_{kk}}{(S^T D S)_{kk}}
        + \alpha \frac{(S^T A_M S)_{kk}}{(S^T D_M S)_{kk}} \Bigr)
        + \frac{\mu}{\sqrt{K} - 1} \Bigl( \sqrt{K} - \frac{1}{\sqrt{n}} \sum_k \lVert S_{\cdot k} \rVert \Bigr)

    A_M = A² ⊙ A has the number of triangles that each edge is in, and D_M its row sums: it has no entries but A's, so
    no n×n matrix is made. α = 0.5 and μ = 0.1 are the defaults of the authors' program.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        dropout (float): applied to the features that the dense layer sees. (default: ``0.0``)
        alpha (float): the weight of the triangles; the edges have 1 - α. (default: ``0.5``)
        mu (float): the weight of the orthogonality. (default: ``0.1``)

    Raises:
        SettingError: if alpha is not from 0 to 1.
    """

    paper = "Duval, Malliaros: Higher-order Clustering and Pooling for Graph Neural Networks, CIKM"
    year = 2022
    about = "merges all nodes, softly, into K clusters with few edges and few triangles between them"
    losses = ("cut of edges and triangles", "orthogonality")
    cost = "O(E·K + N·K·(d + K) + Σ degree²)"

    def __init__(
        self, in_channels: int, clusters: int, dropout: float = 0.0, alpha: float = 0.5, mu: float = 0.1
    ) -> None:
        super().__init__(in_channels, clusters, dropout)
        if not 0 <= alpha <= 1:
            raise SettingError(f"alpha is from 0 to 1, not {alpha}")
        self.alpha, self.mu = alpha, mu

    def loss(self, s: Tensor, coarse: Tensor, batch: Graphs) -> Tensor:
        """The cut of the edges, that of the triangles, and the orthogonality."""
        edges = _cut(s, coarse.diagonal(dim1=1, dim2=2), batch)
        motifs = triangles(batch)
        within = graph_sums(s * adjacency_product(s, motifs), motifs)
        cut = (1 - self.alpha) * edges + self.alpha * _cut(s, within, motifs)
        if self.clusters == 1:
            return cut
        root = math.sqrt(self.clusters)
        return cut + self.mu * root * (1 - balance(s, batch)) / (root - 1)

    def elements(self, nodes: int) -> int:
        """The cut of the triangles takes as much again as the others' n · K."""
        return 2 * nodes * self.clusters


def _cut(s: Tensor, within: Tensor, batch: Graphs) -> Tensor:
    """[B] minus the mean over the clusters of (SᵀAS)ₖₖ, given as [B, K], over (SᵀDS)ₖₖ."""
    volume = graph_sums(row_sum(batch, s.dtype) * s.square(), batch)
    return -(within / volume.clamp(min=EPS)).mean(dim=1)


def triangles(batch: Graphs) -> Graphs:
    """The graphs with the weights A² ⊙ A, the triangles that each edge is in; directed edges count both ways."""
    if isinstance(batch, DenseBatch):
        return DenseBatch(batch.adjacency @ batch.adjacency * batch.adjacency)
    batch = undirected(batch)
    weight = torch.ones(len(batch.col), device=batch.col.device) if batch.weight is None else batch.weight
    return replace(batch, weight=common_neighbors(batch.rowptr, batch.col, weight))
