"""JustBalancePool: soft clusters of equal size; the graph convolutions before it see to it that neighbours agree."""

from __future__ import annotations

from torch import Tensor

from tapnet.nn.pool.soft import Graphs, SoftPooling, balance


class JustBalancePool(SoftPooling):
    r"""The layer from *Simplifying Clustering with Graph Neural Networks* (Bianchi, NLDL 2023).

    .. math::
        S = \mathrm{softmax}(H W + b), \qquad H' = S^T H, \qquad
        A' = D'^{-1/2} (S^T A S - \mathrm{diag}) D'^{-1/2}, \qquad
        L = - \frac{1}{\sqrt{n K}} \mathrm{tr}\bigl(\sqrt{S^T S}\bigr)

    The square root is taken of each element, and the loss divided by √(nK), as in the author's program.

    Args:
        in_channels (int): d, the size of each node's features.
        clusters (int): K, the number of nodes that every graph gets.
        dropout (float): applied to the features that the dense layer sees. (default: ``0.0``)
    """

    paper = "Bianchi: Simplifying Clustering with Graph Neural Networks, NLDL"
    year = 2023
    about = "merges all nodes, softly, into K clusters of equal size"
    losses = ("balance",)

    def loss(self, s: Tensor, coarse: Tensor, batch: Graphs) -> Tensor:
        """The balance: the diagonal of SᵀS has the squared norms of the columns of S."""
        return -balance(s, batch)
