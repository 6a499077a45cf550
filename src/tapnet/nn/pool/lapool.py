"""LaPool: nodes that differ most from their neighbours lead clusters, the others follow those they resemble."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from tapnet._loops.ranges import offsets
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.nn.pool.merge import sparse_and_undirected
from tapnet.ops.dense import adjacency_product, to_padded
from tapnet.ops.precision import full_precision, widened

TIE = 1e-5  # of what is summed: sums in another order round differently, and alike nodes shall be alike


class LaPool(Pooling):
    r"""The layer from *Towards Interpretable Sparse Graph Representation Learning with Laplacian Pooling*.

    (Noutahi, Beaini, Horwood, Giguère, Tossou, 2019.) With L = D - A, node i leads a cluster if

    .. math::
        \lVert (L H)_i \rVert \ge \lVert (L H)_j \rVert \text{ for all neighbours } j

    and every other node is assigned to the leaders of its graph, C, by the cosines of their features:

    .. math::
        S_i = \mathrm{sparsemax}\Bigl(\frac{h_i \cdot h_c}{\lVert h_i \rVert \lVert h_c \rVert}\Bigr)_{c \in C}, \qquad
        H' = S^T H, \qquad A' = S^T A S

    The number of leaders is the graph's own: there is no ratio, and nothing is learned. Two leaders may be neighbours
    where both differ alike. A' has no diagonal, and its weights get no gradient.

    Args:
        in_channels (int): d, the size of each node's features.
    """

    paper = (
        "Noutahi, Beaini, Horwood, Giguère, Tossou: Towards Interpretable Sparse Graph Representation Learning with "
        "Laplacian Pooling, arXiv"
    )
    year = 2019
    about = "merges nodes into the leaders they resemble: nodes that differ more from their neighbours than those do"
    cost = "O(E·d + N·C·(d + log C) + E·C), C leaders of a graph"
    memory = "O(N·(d + C) + B·C²)"

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = self.out_channels = in_channels

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [C of all graphs, d] and the graphs between them, with weights."""
        batch = sparse_and_undirected(self, x, batch)
        with full_precision(x):
            x = widened(x)
            variation = laplacian_variation(x, batch)
            leaders = find_leaders(variation, x, batch)
            s = _assign(x, leaders, batch)
            rows = (to_padded(s, batch).transpose(1, 2) @ to_padded(x, batch)).flatten(0, 1)[leaders.slots]
            coarse = _coarsen(s.detach(), leaders, batch)
        assignment = leaders.ptr[batch.graph] + s.detach().argmax(dim=1)
        return Pooled(rows, coarse, assignment=assignment, scores=variation)

    def elements(self, nodes: int) -> int:
        """The padded assignment matrix has n · C; about a third of the nodes lead."""
        return nodes * (nodes // 3 + 1)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}"


class Leaders(NamedTuple):
    """The nodes that lead a cluster."""

    nodes: Tensor  # [C of all graphs] ascending
    ptr: Tensor  # [B+1] graph g has nodes[ptr[g]:ptr[g+1]]
    most: int  # of a graph
    slots: Tensor  # [C of all graphs] their rows where every graph has as many, flat


@torch.no_grad()
def laplacian_variation(x: Tensor, batch: GraphBatch) -> Tensor:
    """[N] ‖(LH)ᵢ‖: how much a node's features differ from its neighbours'."""
    difference = batch.row_sum.to(x.dtype).unsqueeze(1) * x - adjacency_product(x, batch)
    variation: Tensor = torch.linalg.vector_norm(difference, dim=1)
    return variation


@torch.no_grad()
def find_leaders(variation: Tensor, x: Tensor, batch: GraphBatch) -> Leaders:
    """The nodes whose variation is none below that of a neighbour; each graph with a node has at least one."""
    row, col = batch.edge_index
    terms = batch.row_sum.to(x.dtype) * torch.linalg.vector_norm(x, dim=1)  # their difference may be far smaller
    highest, largest = (
        torch.zeros_like(values).scatter_reduce(0, row, values[col], "amax") for values in (variation, terms)
    )
    leads = variation >= highest - TIE * torch.maximum(terms, largest)
    nodes, ptr = leads.nonzero().squeeze(1), offsets(leads)[batch.ptr]
    most = int(ptr.diff().max())
    graph = batch.graph[nodes]
    return Leaders(nodes, ptr, most, graph * most + torch.arange(len(nodes), device=row.device) - ptr[graph])


def _assign(x: Tensor, leaders: Leaders, batch: GraphBatch) -> Tensor:
    """[N, most]: S, whose columns are the leaders of each node's own graph."""
    unit = normalize(x, dim=1)
    ahead = x.new_zeros(batch.num_graphs * leaders.most, x.size(1))
    ahead = ahead.index_copy(0, leaders.slots, unit.index_select(0, leaders.nodes))
    cosines = to_padded(unit, batch) @ ahead.view(batch.num_graphs, leaders.most, -1).transpose(1, 2)
    within = torch.arange(len(x), device=x.device) - batch.ptr[batch.graph]
    absent = torch.arange(leaders.most, device=x.device) >= leaders.ptr.diff()[batch.graph].unsqueeze(1)
    s = sparsemax(cosines[batch.graph, within].masked_fill(absent, -4.0))  # cosines are at least -1: no weight
    return s.index_copy(0, leaders.nodes, one_hot(leaders.slots % leaders.most, leaders.most).to(x.dtype))


def sparsemax(z: Tensor) -> Tensor:
    """[N, C] → [N, C]: the point of the simplex that is nearest to each row (Martins, Astudillo, ICML 2016)."""
    descending = z.sort(dim=1, descending=True).values
    excess = descending.cumsum(dim=1) - 1
    rank = torch.arange(1, z.size(1) + 1, device=z.device)
    support = (rank * descending > excess).sum(dim=1, keepdim=True)
    return (z - excess.gather(1, support - 1) / support).clamp(min=0)


def _coarsen(s: Tensor, leaders: Leaders, batch: GraphBatch) -> GraphBatch:
    """SᵀAS without its diagonal and without zeros."""
    dense = to_padded(s, batch).transpose(1, 2) @ to_padded(adjacency_product(s, batch), batch)
    dense = (dense + dense.transpose(1, 2)) / 2  # else its halves round differently
    dense.diagonal(dim1=1, dim2=2).zero_()
    graph, row, col = (dense > TIE).nonzero(as_tuple=True)
    first = leaders.ptr[graph]
    rowptr = offsets(torch.bincount(first + row, minlength=len(leaders.nodes))).int()
    weight = dense[graph, row, col]
    return GraphBatch(batch.x, batch.y, leaders.ptr, rowptr, (first + col).int(), weight=weight)
