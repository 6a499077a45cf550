"""KMISPool: maximal k-independent sets."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tapnet._loops.clusters import independent_set
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.nn.pool.merge import Clusters, cluster_sum, merged, sparse_and_undirected
from tapnet.ops.csr import propagate
from tapnet.ops.precision import full_precision, widened


class KMISPool(Pooling):
    r"""The layer from *Generalizing Downsampling from Regular Data to Graphs* (Bacciu, Conte, Landolfi, AAAI 2023).

    With the scores and the order of the nodes

    .. math::
        \mathbf{s} = \sigma(H \mathbf{w} + b), \qquad
        \boldsymbol{\pi} = \mathbf{s} \oslash (A + I)^k \mathbf{1}

    nodes are taken from the highest π on, each that is more than k steps from all before. Every other node joins the
    first of them within k steps, and :math:`h'_c = \sum_{i \in c} s_i h_i`. As its authors' program with its defaults,
    but for the sum over the cluster, which torch-geometric-pool takes. There is no ratio: k says how many nodes are
    left.

    Args:
        in_channels (int): d, the size of each node's features.
        k (int): the nodes that stay are more than k steps from each other. (default: ``1``)

    Raises:
        SettingError: if k is below 1.
    """

    paper = "Bacciu, Conte, Landolfi: Generalizing Downsampling from Regular Data to Graphs, AAAI"
    year = 2023
    about = "merges each node into the first node of a maximal k-independent set within k steps; no ratio"
    cost = "O(N·(d + log N) + E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, k: int = 1) -> None:
        super().__init__()
        if k < 1:
            raise SettingError(f"k is a whole number, at least 1, not {k}")
        self.in_channels = self.out_channels = in_channels
        self.k = k
        self.lin = nn.Linear(in_channels, 1)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] and the graphs between clusters, their weights added."""
        batch = sparse_and_undirected(self, x, batch)
        x = widened(x)
        with full_precision(x):
            score = torch.sigmoid(x @ self.lin.weight.to(x.dtype).squeeze(0) + self.lin.bias.to(x.dtype))
            walks = x.new_ones(len(x), 1)
            for _ in range(self.k):
                walks = propagate(walks, replace(batch, weight=None), "sum")
            order = torch.argsort(score.detach() / walks.squeeze(1), descending=True, stable=True)
            clusters = Clusters.of(independent_set(batch.rowptr, batch.col, order, self.k), batch)
            rows = cluster_sum(score.unsqueeze(1) * x, clusters)
        coarse = merged(batch, clusters)
        return Pooled(rows, coarse, assignment=clusters.assignment, scores=score.detach())

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, k={self.k}"
