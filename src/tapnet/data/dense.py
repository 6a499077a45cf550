"""DenseBatch: graphs of equally many nodes as dense adjacency matrices, which soft clusterings make."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class DenseBatch:
    """B graphs with K nodes each. Rows of features are flat, [B·K, d], as in a GraphBatch."""

    adjacency: Tensor  # [B, K, K], symmetric; gradients flow through it

    @property
    def num_graphs(self) -> int:
        """B"""
        return self.adjacency.size(0)

    @property
    def num_nodes(self) -> int:
        """B·K"""
        return self.adjacency.size(0) * self.adjacency.size(1)

    @property
    def nodes_per_graph(self) -> Tensor:
        """[B]"""
        return torch.full((self.num_graphs,), self.adjacency.size(1), device=self.adjacency.device)
