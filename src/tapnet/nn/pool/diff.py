"""DiffPool: nodes are assigned to clusters, softly; the clusters are the new nodes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.base import Pooled
from tapnet.nn.pool.soft import ClusterPooling
from tapnet.ops.csr import Norm
from tapnet.ops.dense import adjacency_product, squared_norm, to_padded


class Clusters(NamedTuple):
    """What a soft assignment makes of a batch."""

    x: Tensor  # [B·K, d]: SᵀH
    batch: DenseBatch  # SᵀAS
    link: Tensor  # ‖A - SSᵀ‖ / n², the mean over the graphs
    entropy: Tensor  # of the rows of S, the mean over the nodes
    assignment: Tensor  # [N, K]: S


def diff_pool(s: Tensor, h: Tensor, batch: GraphBatch | DenseBatch) -> Clusters:
    """Equations 3, 4 and the two losses of the DiffPool paper, without an n×n matrix.

    ‖A - SSᵀ‖² = ‖A‖² - 2 tr(SᵀAS) + ‖SᵀS‖², and of these only K×K is ever made.

    Args:
        s: [N, K] logits of the assignment; S is their softmax.
        h: [N, d] node features.
        batch: the graphs.
    """
    s = torch.softmax(s, dim=1)
    rows = to_padded(s, batch)
    transposed = rows.transpose(1, 2)
    adjacency = transposed @ to_padded(adjacency_product(s, batch), batch)
    squared = squared_norm(batch) - 2 * adjacency.diagonal(dim1=1, dim2=2).sum(1)
    squared = squared + (transposed @ rows).square().sum(dim=(1, 2))
    link = (squared.clamp(min=1e-12).sqrt() / batch.nodes_per_graph.clamp(min=1).square()).mean()
    entropy = -(s * (s + 1e-15).log()).sum() / max(len(s), 1)
    return Clusters((transposed @ to_padded(h, batch)).flatten(0, 1), DenseBatch(adjacency), link, entropy, s)


class DiffPool(ClusterPooling):
    r"""The layer from *Hierarchical Graph Representation Learning with Differentiable Pooling* (Ying et al., 2018).

    .. math::
        S = \mathrm{softmax}(\mathrm{GNN}(A, H)), \qquad H' = S^T H, \qquad A' = S^T A S

    with one graph convolution as the network that assigns. Of the paper's two losses it adds the link prediction
    ‖A - SSᵀ‖, as its authors' program does. The entropy of the assignments, which the paper adds too, drowns the
    classification here: RESULTS.md.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        norm (str): the normalisation of the graph convolution, as in ``GraphConv``. (default: ``"neighbour"``)
        dropout (float): applied to the features that the convolution sees. (default: ``0.0``)
    """

    paper = (
        "Ying, You, Morris, Ren, Hamilton, Leskovec: Hierarchical Graph Representation Learning with Differentiable "
        "Pooling, NeurIPS"
    )
    year = 2018
    about = "merges all nodes, softly, into K clusters that a graph convolution assigns"
    losses = ("link prediction",)
    cost = "O(E·K + N·K·(d + K))"
    memory = "O(N·(d + K) + B·K²)"

    def __init__(self, in_channels: int, clusters: int, norm: Norm = "neighbour", dropout: float = 0.0) -> None:
        super().__init__(in_channels, clusters)
        self.assign = GraphConv(in_channels, clusters, norm, dropout, negative_slope=1.0)  # slope 1: no activation

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [B·K, d] and dense graphs of K nodes each."""
        rows, coarse, link, _, assignment = diff_pool(self.assign(x, batch), x, batch)
        return Pooled(rows, coarse, assignment=assignment.detach(), loss=link)
