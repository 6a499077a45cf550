"""EdgePool: edges are scored, and a matching of the best ones is contracted."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tapnet._loops.clusters import edge_matching
from tapnet._loops.ranges import repeated
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.nn.pool.merge import Clusters, cluster_sum, merged, sparse_and_undirected
from tapnet.ops.dropout import check_dropout, dropout
from tapnet.ops.precision import full_precision, widened
from tapnet.ops.segments import segment_softmax

ADDED = 0.5  # to each score, so that features keep their size; the paper's


class EdgePool(Pooling):
    r"""The layer from *Towards Graph Pooling by Edge Contraction* (Diehl, Brunner, Le, Knoll, 2019).

    An edge from i to j has the score

    .. math::
        s_{ij} = 0.5 + \mathrm{softmax}_i \bigl(\mathbf{w}^T [h_i \,\Vert\, h_j]\bigr)

    over the edges into j, whose softmax does not see the paper's bias. Edges are taken from the highest score on, each
    that has no end in common with one before; its two nodes become one with the features :math:`s_{ij} (h_i + h_j)`. At
    most half of the nodes go: there is no ratio. The same result as PyG's ``EdgePooling``, by a compiled loop; equal
    scores go by the edges' order.

    Args:
        in_channels (int): d, the size of each node's features.
        dropout (float): applied to the edges' scores before the softmax; the paper has 0.2. (default: ``0.0``)
    """

    paper = "Diehl, Brunner, Le, Knoll: Towards Graph Pooling by Edge Contraction, ICML Workshop"
    year = 2019
    about = "merges the two ends of each edge of a matching of high scores, their sum times the score; no ratio"
    cost = "O(N·d + E·log E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels = self.out_channels = in_channels
        self.dropout = dropout
        self.lin = nn.Linear(2 * in_channels, 1, bias=False)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] and the graphs between pairs and single nodes, without weights."""
        batch = sparse_and_undirected(self, x, batch)
        x = widened(x)
        with full_precision(x):
            source, target = batch.col, repeated(torch.arange(batch.num_nodes, device=x.device), batch.degree)
            of_source, of_target = (x @ self.lin.weight.to(x.dtype).view(2, -1).T).unbind(1)
            raw = of_source.index_select(0, source) + of_target.index_select(0, target)
            raw = dropout(raw.unsqueeze(1), self.dropout, self.training).squeeze(1)
            score = segment_softmax(raw, batch.rowptr.long()) + ADDED
            order = torch.argsort(score.detach(), descending=True, stable=True)
            first, edge = edge_matching(source, target, order, batch.num_nodes)
            clusters = Clusters.of(first, batch)
            edge = edge[first == torch.arange(len(first), device=x.device)]  # of each cluster; -1: a single node
            factor = torch.cat([score, score.new_ones(1)])[edge]
            rows = cluster_sum(x, clusters) * factor.unsqueeze(1)
        return Pooled(rows, merged(batch, clusters, weighted=False), assignment=clusters.assignment)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, dropout={self.dropout}"
