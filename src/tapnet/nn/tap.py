"""TAPooling: the topology-aware pooling layer of the paper (Eq. 1 to 4)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet._loops.csr import check_edges, induced_edges
from tapnet._loops.rows import gate_backward
from tapnet.data.batch import GraphBatch, sorting
from tapnet.errors import SettingError
from tapnet.nn.init import glorot_
from tapnet.nn.link import LinkReading, link_loss
from tapnet.nn.pool.select import Pooled, best_nodes, check_ratio
from tapnet.nn.similarity import Similarity, check_similarity, weight_shape
from tapnet.nn.votes import Votes, votes_of
from tapnet.ops.autograd import apply_function
from tapnet.ops.compiler import compiler_disabled
from tapnet.ops.csr import induced_subgraph
from tapnet.ops.dropout import Mask, check_dropout
from tapnet.ops.precision import full_precision, widened

Gate = Literal["straight-through", "none", "sigmoid", "tanh"]
_induced_edges = compiler_disabled(induced_edges)
GATES: tuple[Gate, ...] = ("straight-through", "none", "sigmoid", "tanh")


class TAPooling(nn.Module):
    r"""The topology-aware pooling layer from *Topology-Aware Graph Pooling Networks* (Gao, Liu, Ji).

    With Â = A + I and D̂ its row sums, node i of a graph with n nodes gets the score

    .. math::
        \mathbf{y}^L &= \mathrm{softmax}\bigl(\tfrac{1}{n} \sum_j (\hat D^{-1} \hat A)_{ij}\, r(h_i, h_j)\bigr)

        \mathbf{y}^G &= \mathrm{softmax}\bigl(\hat D^{-1} \hat A H \mathbf{p}\bigr)

        s_i &= y^L_i + y^G_i + \lambda \tfrac{d_i}{n}

    and the k nodes of each graph with the highest scores stay, with the edges between them.

    Row 0 of ``edge_index`` is i, the node that votes over its neighbours j in row 1. Self-loops count as none and
    a repeated column counts once. The forward value is the paper's: H′ = H[idx]. Selecting rows passes no gradient
    to W_r and p, so by default the kept rows are multiplied by s / stop_gradient(s), which is 1. Gradients can be
    taken once, not twice.

    Args:
        in_channels: d, the size of each node's features.
        ratio: a float keeps k = ⌈ratio · n⌉ nodes of each graph, at least 1; an int keeps k = ratio, at most n.
        connectivity: λ, the weight of the degree in the score.
        similarity: r, one of ``"bilinear"`` (hᵢ W_r hⱼᵀ), ``"dot"``, ``"gaussian"`` (exp of the dot product) and
            ``"concat"`` (ReLU of a learned vector on the pair).
        local_voting: whether yᴸ is part of the score.
        global_voting: whether yᴳ is part of the score.
        gate: how the score reaches the gradient: ``"straight-through"``, ``"none"``, or ``"sigmoid"`` and
            ``"tanh"``, which multiply the kept rows by that function of the score.
        dropout: applied to the features that the votes see, not to the rows that are passed on.
    """

    def __init__(
        self,
        in_channels: int,
        ratio: float | int = 0.5,
        connectivity: float = 0.1,
        similarity: Similarity = "bilinear",
        local_voting: bool = True,
        global_voting: bool = True,
        gate: Gate = "straight-through",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        ratio = check_ratio(ratio)
        check_dropout(dropout)
        check_similarity(similarity)
        if gate not in GATES:
            raise SettingError(f"gate is one of {', '.join(GATES)}, not {gate!r}")
        self.in_channels, self.ratio, self.connectivity = in_channels, ratio, connectivity
        self.similarity, self.gate = similarity, gate
        self.local_voting, self.global_voting = local_voting, global_voting
        self.dropout = dropout
        shape = weight_shape(similarity, in_channels) if local_voting else None
        self.weight = None if shape is None else nn.Parameter(torch.empty(shape))  # W_r
        self.projection = nn.Parameter(torch.empty(in_channels)) if global_voting else None  # p
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for parameter in (self.weight, self.projection):
            if parameter is not None:
                glorot_(parameter)

    # ---- PyG's door ----

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, batch: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        """As PyG's poolings: x, edge_index, edge_attr, batch, perm, score of the coarsened graphs."""
        x = x.view(-1, 1) if x.dim() == 1 else x
        edge_index = edge_index.long()
        if batch is None:
            batch = edge_index.new_zeros(x.size(0))
        perm, score = self._select(x, edge_index, batch)
        edge_index, edge_attr = _induced_edges(perm, edge_index, edge_attr, x.size(0))
        return self._kept_rows(x, perm, score), edge_index, edge_attr, batch[perm], perm, score[perm]

    @compiler_disabled
    def votes(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Votes:
        """Each part of every node's score, for a picture or an explanation."""
        x = x.view(-1, 1) if x.dim() == 1 else x
        order = None if batch is None else sorting(batch)
        if batch is None or order is None:
            return self.votes_of(x, GraphBatch.from_edge_index(x, edge_index, batch))
        check_edges(edge_index, x.size(0))
        place = torch.argsort(order)
        votes = self.votes(x[order], place[edge_index], batch[order])
        return Votes(*(part[place] for part in votes))

    @compiler_disabled
    def _select(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        """The kept nodes, and the scores of all."""
        order = sorting(batch)
        if order is not None:
            check_edges(edge_index, x.size(0))
            place = torch.argsort(order)
            perm, score = self._select(x[order], place[edge_index], batch[order])
            return order[perm].sort().values, score[place]
        structure = GraphBatch.from_edge_index(x, edge_index, batch)
        score = self.votes_of(x, structure).score
        return best_nodes(score, self.ratio, structure)[0], score

    # ---- the fast path: a GraphBatch in, a GraphBatch out ----

    def coarsen(self, x: Tensor, batch: GraphBatch, mask: Mask | None = None) -> Pooled:
        """The same on a GraphBatch. Without a mask, one is drawn if there is dropout."""
        score = self.votes_of(x, batch, mask).score
        perm, ptr = best_nodes(score, self.ratio, batch)
        kept_score = score.detach().index_select(0, perm)
        return Pooled(self._kept_rows(x, perm, score), induced_subgraph(batch, perm, ptr), perm, kept_score)

    def mask(self) -> Mask | None:
        """The dropout through which the votes (and the auxiliary objective) see the features."""
        return Mask.draw(self.dropout) if self.training and self.dropout > 0 else None

    def votes_of(self, x: Tensor, batch: GraphBatch, mask: Mask | None = None) -> Votes:
        """Eq. 1, 2 and 4 on a GraphBatch. Scores are never computed in half precision."""
        h = widened(x)
        with full_precision(h):
            return votes_of(
                h,
                batch,
                *(None if p is None else p.to(h.dtype) for p in (self.weight, self.projection)),
                similarity=self.similarity,
                local_voting=self.local_voting,
                connectivity=self.connectivity,
                mask=mask or self.mask(),
            )

    def _kept_rows(self, x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
        """H′: the kept rows, gated by their scores out of the scores [N] of all."""
        if self.gate == "straight-through":
            rows: Tensor = apply_function(_StraightThrough, x, perm, score)
            return rows
        rows = x.index_select(0, perm)
        if self.gate == "none":
            return rows
        score = score.index_select(0, perm)
        factor = torch.sigmoid(score) if self.gate == "sigmoid" else torch.tanh(score)
        return rows * factor.to(rows.dtype).unsqueeze(1)

    # ---- the auxiliary objective ----

    def link_loss(
        self, x: Tensor, batch: GraphBatch, reading: LinkReading = "sigmoid", mask: Mask | None = None
    ) -> Tensor:
        """Section 3.4: how well r, the layer's similarity, tells which nodes are linked."""
        if not self.local_voting:
            raise SettingError("the auxiliary objective uses the similarities of local voting, which is off")
        h = widened(x) if mask is None else mask.applied(widened(x))
        return link_loss(h, batch, weight=self.weight, similarity=self.similarity, reading=reading)

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, ratio={self.ratio}, connectivity={self.connectivity}, "
            f"similarity={self.similarity!r}, local_voting={self.local_voting}, global_voting={self.global_voting}, "
            f"gate={self.gate!r}, dropout={self.dropout}"
        )


class _StraightThrough(Function):
    """H[perm] · s / stop_gradient(s): forward H[perm] to the bit, backward as if the rows were multiplied by s."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
        rows = x.index_select(0, perm)
        ctx.save_for_backward(rows, perm, score)
        return rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        rows, perm, score = ctx.saved_tensors
        grad_x, grad_score = gate_backward(perm, grad, rows, score)
        return grad_x, None, grad_score


def unpool(x: Tensor, perm: Tensor, num_nodes: int) -> Tensor:
    """[K, …] → [num_nodes, …]: rows back where they came from, zeros elsewhere."""
    return x.new_zeros(num_nodes, *x.shape[1:]).index_copy(0, perm, x)
