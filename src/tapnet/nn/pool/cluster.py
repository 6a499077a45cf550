"""ClusterPool: what edges of positive score hold together becomes one node."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.edge_score import EdgeScorePooling
from tapnet.nn.pool.merge import Clusters, cluster_sum
from tapnet.ops.connectivity import components


class ClusterPool(EdgeScorePooling):
    r"""The layer from *Edge-Based Graph Component Pooling* (Snelleman, Renting, Hoos, van Rijn, 2024).

    With the score :math:`s_{ij} = \tanh(\mathbf{w}^T [h_i \,\Vert\, h_j] + b)` of each edge from i to j, the clusters
    are the components of the graph of the edges with a score above 0, and

    .. math::
        h'_c = \sum_{j \in c} \sum_i s_{ij} h_i

    over all edges into the cluster; a node on its own adds itself. There is no ratio. The same as PyG's
    ``ClusterPooling``, without its dense n×n matrices.

    Args:
        in_channels (int): d, the size of each node's features.
        dropout (float): applied to the edges' scores before the tanh. (default: ``0.0``)
    """

    paper = "Snelleman, Renting, Hoos, van Rijn: Edge-Based Graph Component Pooling, arXiv"
    year = 2024
    about = "merges the nodes that edges of positive score hold together; no ratio"
    cost = "O((N + E)·d)"
    memory = "O(N·d + E)"

    bias = True

    def merge(self, x: Tensor, score: Tensor, target: Tensor, batch: GraphBatch) -> tuple[Tensor, Clusters]:
        """The components, and the sums over the edges into them."""
        source, score = batch.col, torch.tanh(score)
        contracted = score.detach() > 0
        ends = torch.stack([source.long(), target])[:, contracted]
        clusters = Clusters.of(components(ends, batch.num_nodes), batch)
        single = torch.ones(batch.num_nodes, 1, dtype=x.dtype, device=x.device).index_fill_(0, ends.flatten(), 0)
        rows = single * x
        if len(source):
            rows = rows + embedding_bag(source, x, batch.rowptr[:-1], mode="sum", per_sample_weights=score)
        return cluster_sum(rows, clusters), clusters
