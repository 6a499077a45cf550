"""ClusterPool: what edges of positive score hold together becomes one node."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from tapnet._loops.ranges import repeated
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.nn.pool.merge import Clusters, cluster_sum, merged, sparse_and_undirected
from tapnet.ops.connectivity import components
from tapnet.ops.dropout import check_dropout, dropout
from tapnet.ops.precision import full_precision, widened


class ClusterPool(Pooling):
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

    def __init__(self, in_channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels = self.out_channels = in_channels
        self.dropout = dropout
        self.lin = nn.Linear(2 * in_channels, 1)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] and the graphs between components, without weights."""
        batch = sparse_and_undirected(self, x, batch)
        x = widened(x)
        with full_precision(x):
            source, target = batch.col, repeated(torch.arange(batch.num_nodes, device=x.device), batch.degree)
            of_source, of_target = (x @ self.lin.weight.to(x.dtype).view(2, -1).T).unbind(1)
            raw = of_source.index_select(0, source) + of_target.index_select(0, target) + self.lin.bias.to(x.dtype)
            score = torch.tanh(dropout(raw.unsqueeze(1), self.dropout, self.training).squeeze(1))
            contracted = score.detach() > 0
            ends = torch.stack([source.long(), target])[:, contracted]
            clusters = Clusters.of(components(ends, batch.num_nodes), batch)
            single = torch.ones(batch.num_nodes, 1, dtype=x.dtype, device=x.device).index_fill_(0, ends.flatten(), 0)
            rows = single * x
            if len(source):
                rows = rows + embedding_bag(source, x, batch.rowptr[:-1], mode="sum", per_sample_weights=score)
            rows = cluster_sum(rows, clusters)
        return Pooled(rows, merged(batch, clusters, weighted=False), assignment=clusters.assignment)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, dropout={self.dropout}"
