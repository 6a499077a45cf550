"""MaxCutPool: keeps nodes on one side of a cut through as many edges as can be, so that they are far apart."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.linear import Affine
from tapnet.nn.pool.base import Kind, Pooled, Pooling
from tapnet.nn.pool.merge import Clusters, merged, sparse_and_undirected
from tapnet.nn.pool.select import best_nodes, check_ratio
from tapnet.nn.pool.soft import EPS
from tapnet.ops.dense import adjacency_product
from tapnet.ops.dropout import check_dropout, dropout

CONVOLUTIONS = (32, 32, 32, 32)
DENSE = (16, 16)


class MaxCutPool(Pooling):
    r"""The layer from *MaxCutPool: Differentiable Feature-Aware Maxcut for Pooling in Graph Neural Networks*.

    (Abate, Bianchi, ICLR 2025.) Convolutions that sharpen what differs between neighbours score the nodes:

    .. math::
        P = I - \delta (I - D^{-1/2} A D^{-1/2}), \qquad H_{l+1} = \tanh(P H_l W_l + b_l), \qquad
        \mathbf{s} = \tanh(\mathrm{MLP}(H_4)), \qquad L = \frac{\mathbf{s}^T A \mathbf{s}}{\sum_{ij} A_{ij}}

    The nodes with the highest scores stay, multiplied by them. Every other node belongs to the kept node that the
    fewest edges lead to (where none does, to its graph's first), and two kept nodes are linked by the weights between
    what belongs to them. Four convolutions of 32 channels, dense layers of 16 and 16 and δ = 2 are the defaults of the
    authors' torch-geometric-pool.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
        dropout (float): applied to the features that are scored. (default: ``0.0``)
        delta (float): δ; above 1, what differs between neighbours grows. (default: ``2.0``)

    Raises:
        SettingError: if the ratio or the dropout is out of range.
    """

    kind: ClassVar[Kind] = "select"
    paper = "Abate, Bianchi: MaxCutPool: Differentiable Feature-Aware Maxcut for Pooling in Graph Neural Networks, ICLR"
    year = 2025
    about = "keeps nodes on one side of a cut through many edges; nodes that are not kept link the nearest kept ones"
    losses = ("cut",)
    cost = "O(E·d + N·d²)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0, delta: float = 2.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels = self.out_channels = in_channels
        self.ratio, self.dropout, self.delta = check_ratio(ratio), dropout, delta
        self.embed = Affine(in_channels, in_channels)
        self.convs = nn.ModuleList(Affine(*widths) for widths in pairwise((in_channels, *CONVOLUTIONS)))
        self.dense = nn.ModuleList(Affine(*widths) for widths in pairwise((CONVOLUTIONS[-1], *DENSE, 1)))

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] of the kept nodes, and the graphs between them, with weights; the loss while training."""
        batch = sparse_and_undirected(self, x, batch)
        score = self.score(dropout(x, self.dropout, self.training), batch)
        perm, ptr = best_nodes(score, self.ratio, batch)
        clusters = Clusters(torch.searchsorted(perm, nearest(perm, ptr, batch)), ptr)
        rows = x.index_select(0, perm) * score.index_select(0, perm).unsqueeze(1)
        loss = cut_loss(score, batch) if self.training else None
        coarse = merged(batch, clusters)
        return Pooled(rows, coarse, perm, clusters.assignment, score.detach(), loss=loss)

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """[N, d] → [N], from -1 to 1."""
        root = batch.row_sum.to(h.dtype).clamp(min=EPS).rsqrt().unsqueeze(1)
        h = self.embed(h)
        for conv in self.convs:
            rows = conv.product(h)  # type: ignore[operator]
            rows = (1 - self.delta) * rows + self.delta * root * adjacency_product(root * rows, batch)
            h = torch.tanh(conv.shifted(rows))  # type: ignore[operator]
        for layer in self.dense[:-1]:
            h = torch.relu(layer(h))
        return torch.tanh(self.dense[-1](h)).squeeze(1)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, ratio={self.ratio}, dropout={self.dropout}"


def cut_loss(score: Tensor, batch: GraphBatch) -> Tensor:
    """sᵀAs / ΣA, the mean over the graphs: -1 where every edge joins a 1 and a -1."""
    along = score * adjacency_product(score.unsqueeze(1), batch).squeeze(1)
    weight = batch.row_sum.to(score.dtype)
    cut, total = (score.new_zeros(batch.num_graphs).index_add(0, batch.graph, v) for v in (along, weight))
    return (cut / total.clamp(min=EPS)).mean()


def nearest(perm: Tensor, ptr: Tensor, batch: GraphBatch) -> Tensor:
    """[N] the kept node that the fewest edges lead to; the last of several, the first of the graph where none does."""
    row, col = batch.edge_index
    found = torch.full((batch.num_nodes,), -1, dtype=torch.int64, device=perm.device)
    found[perm] = perm
    while True:
        reached = (found[row] < 0) & (found[col] >= 0)
        if not reached.any():
            break
        found = found.scatter_reduce(0, row[reached], found[col[reached]], "amax")
    first = perm[ptr[:-1].clamp(max=max(len(perm) - 1, 0))]
    return torch.where(found < 0, first[batch.graph], found)
