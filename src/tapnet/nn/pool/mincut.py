"""MinCutPool: soft clusters with few edges between them."""

from __future__ import annotations

from torch import Tensor

from tapnet.nn.pool.soft import EPS, Graphs, SoftPooling, orthogonality, row_sum, trace
from tapnet.ops.dense import graph_sums


class MinCutPool(SoftPooling):
    r"""The layer from *Spectral Clustering with Graph Neural Networks for Graph Pooling* (Bianchi et al., ICML 2020).

    .. math::
        S = \mathrm{softmax}(H W + b), \qquad H' = S^T H, \qquad
        A' = D'^{-1/2} (S^T A S - \mathrm{diag}) D'^{-1/2}

        L = - \frac{\mathrm{tr}(S^T A S)}{\mathrm{tr}(S^T D S)}
        + \Bigl\lVert \frac{S^T S}{\lVert S^T S \rVert} - \frac{I}{\sqrt{K}} \Bigr\rVert

    One dense layer assigns, and both losses count once, as in the paper and its authors' program. A is taken as it is,
    not normalised first: so does PyG's ``dense_mincut_pool``.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        dropout (float): applied to the features that the dense layer sees. (default: ``0.0``)
    """

    paper = "Bianchi, Grattarola, Alippi: Spectral Clustering with Graph Neural Networks for Graph Pooling, ICML"
    year = 2020
    about = "merges all nodes, softly, into K clusters with few edges between them"
    losses = ("cut", "orthogonality")

    def loss(self, s: Tensor, coarse: Tensor, batch: Graphs) -> Tensor:
        """The cut and the orthogonality."""
        volume = graph_sums(row_sum(batch, s.dtype) * s.square().sum(dim=1, keepdim=True), batch).squeeze(1)
        return orthogonality(s, batch) - trace(coarse) / volume.clamp(min=EPS)
