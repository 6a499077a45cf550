"""GraphBatch: some graphs as one disjoint union, the structure that flows through every layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """B graphs with N nodes and E directed edges, as one graph whose parts are not connected.

    The adjacency matrix A is 0/1, symmetric, without self-loops, in compressed rows: node i's neighbours are
    ``neighbor[edge_ptr[i]:edge_ptr[i+1]]``.
    """

    x: Tensor  # [N] integer categories or [N, F] floats
    y: Tensor  # [B] class of each graph
    ptr: Tensor  # [B+1] int64: graph g holds the nodes ptr[g] to ptr[g+1]
    edge_ptr: Tensor  # [N+1] int32
    neighbor: Tensor  # [E] int32: numbers within the batch
    degree: Tensor  # [N] int64

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_nodes(self) -> int:
        return len(self.degree)

    @property
    def graph(self) -> Tensor:
        """[N] the graph that each node belongs to (PyG's ``batch``)."""
        return torch.repeat_interleave(torch.arange(self.num_graphs), self.ptr.diff())

    @property
    def edge_index(self) -> Tensor:
        """[2, E] int64, as PyG has it."""
        row = torch.repeat_interleave(torch.arange(self.num_nodes), self.degree)
        return torch.stack([row, self.neighbor.long()])
