"""HaarPool: pooling by the low frequencies of a Haar basis."""

from __future__ import annotations

from tapnet.nn.pool.chain import ChainPooling


class HaarPool(ChainPooling):
    r"""The layer from *Haar Graph Pooling* (Wang, Li, Ma, Montúfar, Zhuang, Fan, ICML 2020).

    .. math::
        X' = \Phi^T X

    with Φ the low-frequency part of the Haar basis of the chain at this step; spectral clusters are the new nodes.

    Args:
        in_channels (int): d, the size of each node's features.
        ratios (sequence of float or int): the share or number of nodes that each step of the chain leaves.
        level (int): which step this layer is. (default: ``0``)
    """

    paper = "Wang, Li, Ma, Montúfar, Zhuang, Fan: Haar Graph Pooling, ICML"
    year = 2020
    about = "merges the nodes of each spectral cluster, by the low frequencies of a Haar basis"
    cost = "O(n³) of each graph, once; then O(N·d)"
    memory = "O(N·d + E)"
    chain_kind = "haar"
