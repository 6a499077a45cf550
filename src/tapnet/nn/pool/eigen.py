"""EigenPool: pooling by the Laplacian eigenvectors of clusters."""

from __future__ import annotations

from tapnet.nn.pool.chain import ChainPooling


class EigenPool(ChainPooling):
    r"""The layer from *Graph Convolutional Networks with EigenPooling* (Ma, Wang, Aggarwal, Tang, KDD 2019).

    .. math::
        X' = [\Theta_1^T X, \dots, \Theta_H^T X]

    with Θ_l the l-th Laplacian eigenvector of each cluster; spectral clusters are the new nodes.

    Args:
        in_channels (int): d, the size of each node's features.
        ratios (sequence of float or int): the share or number of nodes that each step of the chain leaves.
        level (int): which step this layer is. (default: ``0``)
        vectors (int): H; so many times as wide are the features that come out. (default: ``3``)
    """

    paper = "Ma, Wang, Aggarwal, Tang: Graph Convolutional Networks with EigenPooling, KDD"
    year = 2019
    about = "merges the nodes of each spectral cluster, by the first eigenvectors of its Laplacian"
    cost = "O(n³) of each graph, once; then O(N·d)"
    memory = "O(N·d + E)"
    chain_kind = "eigen"
    default_vectors = 3
