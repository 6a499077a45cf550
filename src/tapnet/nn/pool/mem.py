"""MemPool: nodes are read by learned keys, and the keys are the new nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.linear import Affine
from tapnet.nn.pool.base import Pooled
from tapnet.nn.pool.soft import EPS, ClusterPooling, Graphs
from tapnet.ops.dense import to_padded
from tapnet.ops.dropout import check_dropout, dropout


class MemPool(ClusterPooling):
    r"""The layer from *Memory-Based Graph Networks* (Khasahmadi, Hassani, Moradi, Lee, Morris, ICLR 2020).

    .. math::
        S^{(h)}_{ik} \propto (1 + \lVert h_i - q^{(h)}_k \rVert^2 / \tau)^{-(1 + \tau) / 2}, \qquad
        S = \mathrm{softmax}\Bigl(\sum_h c_h S^{(h)}\Bigr), \qquad H' = S^T H W

        P_{ik} \propto \frac{S_{ik}^2}{\sum_j S_{jk}}, \qquad L = \frac{1}{n} \mathrm{KL}(P \,\Vert\, S)

    The layer sees no edges and makes none: a convolution after it acts on each new node alone. Five heads and τ = 1 are
    those of PyG's example; the divergence is a mean over the nodes here, where PyG's sums it.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        dropout (float): applied to the features that are compared with the keys. (default: ``0.0``)
        heads (int): the number of keys of each new node. (default: ``5``)
        tau (float): τ, the temperature. (default: ``1.0``)

    Attributes:
        keys: q, [heads, K, d].

    Raises:
        SettingError: if there is no head, or tau is not above 0.
    """

    paper = "Khasahmadi, Hassani, Moradi, Lee, Morris: Memory-Based Graph Networks, ICLR"
    year = 2020
    about = "merges all nodes, softly, into K clusters by their distance to learned keys; edges are not kept"
    losses = ("divergence",)
    cost = "O(N·K·d·heads)"
    memory = "O(N·(d + K·heads))"

    def __init__(self, in_channels: int, clusters: int, dropout: float = 0.0, heads: int = 5, tau: float = 1.0) -> None:
        super().__init__(in_channels, clusters)
        check_dropout(dropout)
        if heads < 1 or tau <= 0:
            raise SettingError(f"heads is at least 1 and tau above 0, not {heads} and {tau}")
        self.dropout, self.tau = dropout, tau
        self.keys = nn.Parameter(torch.empty(heads, clusters, in_channels).uniform_(-1, 1))
        self.mix = nn.Parameter(torch.empty(heads).uniform_(-(heads**-0.5), heads**-0.5))  # c
        self.linear = Affine(in_channels, in_channels, bias=False)

    def forward(self, x: Tensor, batch: Graphs, /) -> Pooled:
        """[N, d] → [B·K, d] and graphs of K nodes without edges; the loss while training."""
        s = torch.softmax(self._mixed(dropout(x, self.dropout, self.training)), dim=1)
        rows = to_padded(s, batch)
        pooled = self.linear((rows.transpose(1, 2) @ to_padded(x, batch)).flatten(0, 1))
        loss = _divergence(rows, batch) if self.training else None
        edges = pooled.new_zeros(batch.num_graphs, self.clusters, self.clusters)
        return Pooled(pooled, DenseBatch(edges), assignment=s.detach(), loss=loss)

    def _mixed(self, h: Tensor) -> Tensor:
        """[N, K]: Student's t around the keys of each head, normalised, and their weighted sum."""
        keys = self.keys.flatten(0, 1)
        squares = h.square().sum(dim=1, keepdim=True) - 2 * h @ keys.t() + keys.square().sum(dim=1)
        near = (1 + squares.clamp(min=0) / self.tau).pow(-(1 + self.tau) / 2).view(len(h), *self.keys.shape[:2])
        return torch.einsum("nhk,h->nk", near / near.sum(dim=2, keepdim=True), self.mix)

    def elements(self, nodes: int) -> int:
        """The distances to the keys have n · K · heads."""
        return nodes * self.clusters * len(self.mix)


def _divergence(rows: Tensor, batch: Graphs) -> Tensor:
    """KL(P ‖ S): the mean over the nodes of a graph, and over the graphs."""
    target = rows.square() / rows.sum(dim=1, keepdim=True).clamp(min=EPS)
    target = target / target.sum(dim=2, keepdim=True).clamp(min=EPS**2)
    terms = target * (target.clamp(min=EPS**2).log() - rows.clamp(min=EPS**2).log())
    return (terms.sum(dim=(1, 2)) / batch.nodes_per_graph.clamp(min=1)).mean()
