"""GraclusPool: heavy-edge matching."""

from __future__ import annotations

import torch

from tapnet._loops.clusters import heavy_edge_matching
from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.merge import Clusters, MergePooling


class GraclusPool(MergePooling):
    r"""One step of Graclus, *Weighted Graph Cuts without Eigenvectors* (Dhillon, Guan, Kulis, TPAMI 2007), as a layer.

    It has been a pooling since *Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering*
    (Defferrard, Bresson, Vandergheynst, NeurIPS 2016), from whose program the order of the nodes and the maximum are:
    nodes are taken from the lowest degree on, each with its free neighbour of the largest

    .. math::
        w_{ij} \Bigl(\frac{1}{d_i} + \frac{1}{d_j}\Bigr)

    and the maximum of the two goes on. At most half of the nodes go: there is no ratio, and nothing is learned.

    Args:
        in_channels (int): d, the size of each node's features.
    """

    paper = "Dhillon, Guan, Kulis: Weighted Graph Cuts without Eigenvectors: A Multilevel Approach, TPAMI"
    year = 2007
    about = "merges pairs of a heavy-edge matching, their maximum; no ratio, nothing is learned"
    cost = "O(N·(d + log N) + E)"
    memory = "O(N·d + E)"

    def clusters(self, batch: GraphBatch) -> Clusters:
        """The pairs, and the nodes that are left over."""
        degree = batch.row_sum
        order = torch.argsort(degree, stable=True)
        weight = degree.new_zeros(0, dtype=torch.float32) if batch.weight is None else batch.weight
        return Clusters.of(heavy_edge_matching(batch.rowptr, batch.col, weight, degree, order), batch)
