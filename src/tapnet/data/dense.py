"""DenseBatch: graphs of equally many nodes with weighted edges between all of them, as DiffPool makes them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch, Norm


@dataclass(frozen=True, eq=False)
class DenseBatch:
    """B graphs with K nodes each. Rows of features are flat, [B·K, d], as in a GraphBatch."""

    adjacency: Tensor  # [B, K, K], symmetric; gradients flow through it

    @property
    def num_graphs(self) -> int:
        return self.adjacency.size(0)

    @property
    def num_nodes(self) -> int:
        return self.adjacency.size(0) * self.adjacency.size(1)

    def propagate(self, h: Tensor, norm: Norm) -> Tensor:
        """As GraphBatch's, with Â = A + I and D̂ its row sums."""
        hat = self.adjacency + torch.eye(self.adjacency.size(1), dtype=h.dtype, device=h.device)
        degree = hat.sum(dim=2, keepdim=True)
        before = {"neighbour": 1 / degree, "symmetric": degree.rsqrt()}.get(norm)
        after = {"mean": 1 / degree, "symmetric": degree.rsqrt()}.get(norm)
        rows = self.padded(h)
        result = hat @ (rows if before is None else before * rows)
        return (result if after is None else after * result).flatten(0, 1)

    def readout(self, h: Tensor) -> Tensor:
        """[B·K, d] → [B, 3d]: max, mean and sum over the nodes of each graph."""
        rows = self.padded(h)
        return torch.cat([rows.amax(dim=1), rows.mean(dim=1), rows.sum(dim=1)], dim=1)

    # ---- what DiffPool asks of a batch ----

    def padded(self, h: Tensor) -> Tensor:
        """[B·K, d] → [B, K, d]"""
        return h.view(self.num_graphs, -1, h.size(1))

    def neighbor_sums(self, h: Tensor) -> Tensor:
        """AH, flat."""
        return (self.adjacency @ self.padded(h)).flatten(0, 1)

    @property
    def squared_norm(self) -> Tensor:
        """[B] the sum of the squares of A."""
        return self.adjacency.square().sum(dim=(1, 2))

    @property
    def nodes_per_graph(self) -> Tensor:
        """[B]"""
        return torch.full((self.num_graphs,), self.adjacency.size(1), device=self.adjacency.device)


@dataclass(frozen=True, eq=False)
class Ragged:
    """A GraphBatch, asked the same."""

    batch: GraphBatch

    def padded(self, h: Tensor) -> Tensor:
        """[N, d] → [B, n, d], with zeros below the rows of smaller graphs."""
        sizes = self.batch.nodes_per_graph
        longest = int(sizes.max())
        within = torch.arange(len(h), device=h.device) - self.batch.ptr.index_select(0, self.batch.graph)
        rows = h.new_zeros(len(sizes) * longest, h.size(1))
        return rows.index_copy(0, self.batch.graph * longest + within, h).view(len(sizes), longest, h.size(1))

    def neighbor_sums(self, h: Tensor) -> Tensor:
        """AH, flat."""
        return self.batch.propagate(h, "sum") - h

    @property
    def squared_norm(self) -> Tensor:
        """[B] the number of ones in A."""
        ends = self.batch.edge_ptr.index_select(0, self.batch.ptr)
        return ends.diff()

    @property
    def nodes_per_graph(self) -> Tensor:
        """[B]"""
        return self.batch.nodes_per_graph
