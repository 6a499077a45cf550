"""GMTPool: the graph multiset transformer, a readout by attention."""

from __future__ import annotations

import math

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.base import Pooling, PoolSetup
from tapnet.nn.pool.readout import ReadoutPooling

SHARE = 0.25  # of the mean number of nodes, that attention leaves at first; the paper's pooling ratio


class GMTPool(ReadoutPooling):
    r"""The readout from *Accurate Learning of Graph Representations with Graph Multiset Pooling* (Baek et al., 2021).

    Attention of k learned seeds reads the nodes into k, self-attention relates these, and attention of one seed reads
    them into one:

    .. math::
        \mathrm{GMT}(H) = \mathrm{PMA}_1(\mathrm{SAB}(\mathrm{PMA}_k(H)))

    PyG's ``GraphMultisetTransformer`` with its defaults: keys and values are linear, without the paper's convolutions.

    Args:
        in_channels (int): d, the size of each node's features.
        k (int): the nodes after the first attention; in a network a quarter of the mean number of nodes of a graph.
    """

    paper = "Baek, Kang, Hwang: Accurate Learning of Graph Representations with Graph Multiset Pooling, ICLR"
    year = 2021
    about = "reads all nodes into k and these into one, by attention; no ratio"
    cost = "O(N·d·(d + k))"
    memory = "O(B·n·(d + k))"

    def __init__(self, in_channels: int, k: int) -> None:
        from torch_geometric.nn.aggr import GraphMultisetTransformer

        super().__init__()
        self.in_channels = self.out_channels = in_channels
        self.k = k
        self.aggr = GraphMultisetTransformer(in_channels, k)

    @classmethod
    def build_readout(cls, setup: PoolSetup) -> Pooling:
        """With a quarter of the mean number of nodes as k."""
        if setup.mean_nodes is None:
            raise SettingError("pool 'gmt' has a fixed number of seeds: it needs mean_nodes, that of the data")
        return cls(setup.in_channels, max(1, math.ceil(SHARE * setup.mean_nodes)))

    def read(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """[N, d] → [B, d]"""
        rows: Tensor = self.aggr(x, batch.graph, dim_size=batch.num_graphs)
        return rows

    def elements(self, nodes: int) -> int:
        """The padded rows, and the attention to them."""
        return nodes * max(self.in_channels, self.k)
