"""EdgePool: edges are scored, and a matching of the best ones is contracted."""

from __future__ import annotations

import torch
from torch import Tensor

from tapnet._loops.clusters import edge_matching
from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.edge_score import EdgeScorePooling
from tapnet.nn.pool.merge import Clusters, cluster_sum
from tapnet.ops.segments import segment_softmax

ADDED = 0.5  # to each score, so that features keep their size; the paper's


class EdgePool(EdgeScorePooling):
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

    bias = False

    def merge(self, x: Tensor, score: Tensor, target: Tensor, batch: GraphBatch) -> tuple[Tensor, Clusters]:
        """The ends of each edge of the matching, their sum times its score, and the single nodes."""
        score = segment_softmax(score, batch.rowptr.long()) + ADDED
        order = torch.argsort(score.detach(), descending=True, stable=True)
        first, edge = edge_matching(batch.col, target, order, batch.num_nodes)
        clusters = Clusters.of(first, batch)
        edge = edge[first == torch.arange(len(first), device=x.device)]  # of each cluster; -1: a single node
        factor = torch.cat([score, score.new_ones(1)])[edge]
        return cluster_sum(x, clusters) * factor.unsqueeze(1), clusters
