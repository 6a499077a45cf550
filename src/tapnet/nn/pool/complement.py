"""ComplementPool: clusters of nodes that are not linked, a control."""

from __future__ import annotations

import torch

from tapnet._loops.clusters import complement_matching
from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.merge import Clusters, MergePooling


class ComplementPool(MergePooling):
    """Graclus on the complement of the graph, a control from *Rethinking Pooling in Graph Neural Networks*.

    Mesquita, Souza and Kaski (NeurIPS 2020) replaced clusters of neighbours by clusters of nodes that are not linked,
    and networks did as well. As ``GraclusPool`` on the complement, which is never made: nodes are taken from the
    highest degree on, each with the free node of the highest degree that is not its neighbour. Equal degrees go by the
    nodes' numbers.

    Args:
        in_channels (int): d, the size of each node's features.
    """

    paper = "Mesquita, Souza, Kaski: Rethinking Pooling in Graph Neural Networks, NeurIPS"
    year = 2020
    about = "a control: merges pairs of nodes that are not linked, their maximum; no ratio, nothing is learned"
    cost = "O(N·(d + log N) + E)"
    memory = "O(N·d + E)"

    def clusters(self, batch: GraphBatch) -> Clusters:
        """The pairs, and the nodes that are left over."""
        order = torch.argsort(batch.degree, descending=True, stable=True)
        order = order[torch.argsort(batch.graph[order], stable=True)]
        return Clusters.of(complement_matching(batch.ptr, batch.rowptr, batch.col, order), batch)
