"""DMoNPool: soft clusters of high modularity."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tapnet.nn.pool.soft import EPS, Graphs, SoftPooling, row_sum, trace
from tapnet.ops.dense import graph_sums
from tapnet.ops.dropout import dropout


class DMoNPool(SoftPooling):
    r"""The layer from *Graph Clustering with Graph Neural Networks* (Tsitsulin, Palowitch, Perozzi, Müller, JMLR 2023).

    .. math::
        S = \mathrm{softmax}(H W + b), \qquad H' = \mathrm{SELU}(S^T H), \qquad
        A' = D'^{-1/2} (S^T A S - \mathrm{diag}) D'^{-1/2}

        L = - \frac{1}{2m} \mathrm{tr}\Bigl(S^T \bigl(A - \frac{\mathbf{d} \mathbf{d}^T}{2m}\bigr) S\Bigr)
        + \frac{\sqrt{K}}{n} \Bigl\lVert \sum_i S_i \Bigr\rVert - 1

    with m edges. Both losses, the modularity and the collapse, count once, as in the paper; the orthogonality that
    PyG's ``DMoNPooling`` returns besides is mincut's, not the paper's.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        dropout (float): applied to the logits of the assignment, as in the paper. (default: ``0.0``)
    """

    paper = "Tsitsulin, Palowitch, Perozzi, Müller: Graph Clustering with Graph Neural Networks, JMLR"
    year = 2023
    about = "merges all nodes, softly, into K clusters of high modularity"
    losses = ("modularity", "collapse")

    def logits(self, x: Tensor) -> Tensor:
        """[N, d] → [N, K], with dropout."""
        return dropout(self.assign(x), self.dropout, self.training)

    def activate(self, x: Tensor) -> Tensor:
        """SELU"""
        return torch.selu(x)

    def loss(self, s: Tensor, coarse: Tensor, batch: Graphs) -> Tensor:
        """The modularity, of which dᵀS is all that the product ddᵀ is needed for, and the collapse."""
        degree = row_sum(batch, s.dtype)
        double = graph_sums(degree, batch).squeeze(1).clamp(min=EPS)  # 2m
        expected = graph_sums(degree * s, batch).square().sum(dim=1) / double
        sizes: Tensor = torch.linalg.vector_norm(graph_sums(s, batch), dim=1)
        collapse = math.sqrt(self.clusters) * sizes / batch.nodes_per_graph.clamp(min=1) - 1
        return collapse - (trace(coarse) - expected) / double
