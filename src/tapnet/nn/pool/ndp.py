"""NDPPool: node decimation by the largest eigenvector of the Laplacian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Kind, Pooled
from tapnet.nn.pool.chain import ChainPooling


class NDPPool(ChainPooling):
    r"""The layer from *Hierarchical Representation Learning … with Node Decimation Pooling* (Bianchi et al., 2020).

    The nodes where the eigenvector of the largest eigenvalue of the normalised Laplacian is not negative stay: one side
    of a cut that is about as large as can be, so about half of the nodes. They are linked by Kron reduction,

    .. math::
        L' = L_{++} - L_{+-} L_{--}^{-1} L_{-+}

    of which weights below 0.01, the paper's δ, are left out. There is no ratio, and nothing is learned. Each component
    of a graph is cut on its own.

    Args:
        in_channels (int): d, the size of each node's features.
        ratios (sequence of float or int): as many as there are steps; their values do not count.
        level (int): which step this layer is. (default: ``0``)
    """

    kind: ClassVar[Kind] = "select"
    paper = (
        "Bianchi, Grattarola, Livi, Alippi: Hierarchical Representation Learning in Graph Neural Networks with Node "
        "Decimation Pooling, TNNLS"
    )
    year = 2020
    about = "keeps the nodes on one side of a large cut, linked by Kron reduction; no ratio, nothing is learned"
    cost = "O(n³) of each graph at most, once; then O(N·d)"
    memory = "O(N·d + E)"
    chain_kind = "ndp"

    def __init__(self, in_channels: int, ratios: Sequence[float | int] = (0.5,), level: int = 0) -> None:
        super().__init__(in_channels, ratios, level)

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] and the coarser graphs, whose edges have weights."""
        pooled = super().forward(x, batch)
        assert isinstance(pooled.batch, GraphBatch)
        levels = pooled.batch.prepared["ndp"].levels
        return pooled._replace(perm=levels[self.level].pooling.column.long())
