"""ASAPool: each node's neighbourhood is a cluster; the fittest clusters stay."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from tapnet._loops.ranges import repeated
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, Pooling
from tapnet.nn.pool.merge import sparse_and_undirected
from tapnet.nn.pool.select import best_nodes, check_ratio
from tapnet.ops.csr import propagate
from tapnet.ops.dropout import check_dropout, dropout
from tapnet.ops.precision import full_precision, widened
from tapnet.ops.segments import segment_softmax

NEGATIVE_SLOPE = 0.2  # of the attention; PyG's and the authors'


class ASAPool(Pooling):
    r"""The layer from *ASAP: Adaptive Structure Aware Pooling* (Ranjan, Sanyal, Talukdar, AAAI 2020).

    Every node i is the centre of a cluster, itself and its neighbours, with the features

    .. math::
        m_i &= \max_{j \in N(i) \cup i} h_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j \, \mathrm{LeakyReLU}(\mathbf{w}^T [W m_i \,\Vert\, h_j])

        h^c_i &= \sum_j \alpha_{ij} h_j

    A local extremum convolution scores the clusters,
    :math:`\phi_i = \sigma(\sum_{j \in N(i) \cup i} (\theta_1 h^c_j - \theta_2 h^c_i) + \theta_3 h^c_i)`. The fittest
    k stay, multiplied by φ, and are linked by SᵀÂS with S the attention, whose values have no gradient here. As PyG's
    ``ASAPooling`` with its defaults, without storing features per edge; equal scores go to the lower node. Around a hub
    all clusters overlap, and the coarsened graph is nearly complete: on REDDIT-BINARY a step takes minutes.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's clusters that is kept, or their number. (default: ``0.5``)
        dropout (float): applied to the attention. (default: ``0.0``)
    """

    paper = (
        "Ranjan, Sanyal, Talukdar: ASAP: Adaptive Structure Aware Pooling for Learning Hierarchical Graph "
        "Representations, AAAI"
    )
    year = 2020
    about = "merges each node's neighbourhood by attention and keeps the fittest of these clusters"
    cost = "O(N·d² + E·d), with hubs up to O(n³) of a graph"
    memory = "O(N·d + E), with hubs up to O(n²) of a graph"

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels = self.out_channels = in_channels
        self.ratio, self.dropout = check_ratio(ratio), dropout
        self.lin = nn.Linear(in_channels, in_channels)  # W
        self.att = nn.Linear(2 * in_channels, 1)  # w
        self.neighbor, self.centre, self.own = (nn.Linear(in_channels, 1, bias) for bias in (True, False, True))  # θ

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, d] → [K, d] and the graphs between the kept clusters, with weights."""
        batch = sparse_and_undirected(self, x, batch)
        x = widened(x)
        with full_precision(x):
            rowptr, col = _with_self_loops(batch)
            attention = self._attention(x, rowptr, col)
            mean = embedding_bag(col, x, rowptr[:-1], mode="sum", per_sample_weights=attention)
            fitness = self._fitness(mean, batch)
            perm, ptr = best_nodes(fitness, self.ratio, batch)
            rows = mean.index_select(0, perm) * fitness.index_select(0, perm).unsqueeze(1)
        coarse = _coarsened(batch, rowptr, col, attention.detach(), perm, ptr)
        return Pooled(rows, coarse, perm, scores=fitness.detach())

    def _attention(self, x: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
        """α, an entry for each of the rows with self-loops."""
        highest = embedding_bag(col, x, rowptr[:-1], mode="max")
        row = repeated(torch.arange(len(x), device=x.device), rowptr.diff())
        of_centre, of_member = self.att.weight.to(x.dtype).view(2, -1)
        centre = _linear(self.lin, highest) @ of_centre + self.att.bias.to(x.dtype)
        logits = centre.index_select(0, row) + (x @ of_member).index_select(0, col)
        attention = segment_softmax(nn.functional.leaky_relu(logits, NEGATIVE_SLOPE), rowptr)
        return dropout(attention.unsqueeze(1), self.dropout, self.training).squeeze(1)

    def _fitness(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """φ, the local extremum convolution."""
        total = propagate(_linear(self.neighbor, h), replace(batch, weight=None), "sum")
        total = total - (batch.degree + 1).unsqueeze(1) * _linear(self.centre, h) + _linear(self.own, h)
        return torch.sigmoid(total).squeeze(1)

    def elements(self, nodes: int) -> int:
        """The coarsened edges, of which a graph with a hub has nearly all that there can be."""
        kept = min(self.ratio, nodes) if isinstance(self.ratio, int) else math.ceil(self.ratio * nodes)
        return kept * kept

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, ratio={self.ratio}, dropout={self.dropout}"


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Of the type of x: weights are float32 where x is float64."""
    return nn.functional.linear(x, layer.weight.to(x.dtype), None if layer.bias is None else layer.bias.to(x.dtype))


def _with_self_loops(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """rowptr and col of Â, each row beginning with the node itself."""
    nodes = torch.arange(batch.num_nodes + 1, device=batch.col.device)
    rowptr = batch.rowptr + nodes
    loops = torch.zeros(batch.num_nodes + len(batch.col), dtype=torch.bool, device=nodes.device)
    loops[rowptr[:-1]] = True
    col = torch.empty(len(loops), dtype=torch.int64, device=nodes.device)
    col[loops], col[~loops] = nodes[:-1], batch.col.long()
    return rowptr, col


def _coarsened(
    batch: GraphBatch, rowptr: Tensor, col: Tensor, attention: Tensor, perm: Tensor, ptr: Tensor
) -> GraphBatch:
    """SᵀÂS of the kept clusters, where row i of ``attention`` is column i of S; without its diagonal."""
    from scipy.sparse import csr_array

    n, device = batch.num_nodes, batch.col.device
    weight = torch.ones(len(batch.col)) if batch.weight is None else batch.weight.cpu()
    adjacency = csr_array((weight.double().numpy(), batch.col.cpu().numpy(), batch.rowptr.cpu().numpy()), shape=(n, n))
    assigned = csr_array((attention.double().cpu().numpy(), col.cpu().numpy(), rowptr.cpu().numpy()), shape=(n, n))
    kept = assigned[perm.cpu().numpy()]
    matrix = kept @ (adjacency @ kept.T) + kept @ kept.T
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    arrays = (torch.from_numpy(a).to(device) for a in (matrix.indptr, matrix.indices, matrix.data))
    new_ptr, new_col, new_weight = arrays
    return GraphBatch(batch.x, batch.y, ptr, new_ptr.int(), new_col.int(), weight=new_weight.float())
