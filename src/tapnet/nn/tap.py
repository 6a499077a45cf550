"""TAPooling: the topology-aware pooling layer of the paper (Eq. 1 to 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from tapnet._loops.jit import is_compiled
from tapnet.data.batch import NO_EDGE_ATTR, GraphBatch
from tapnet.errors import SettingError
from tapnet.nn.link import LinkReading, check_link_reading, link_loss
from tapnet.nn.pool.base import PoolSetup
from tapnet.nn.pool.select import Scores, SelectPooling, check_no_weights
from tapnet.nn.pool.select import unpool as unpool
from tapnet.nn.similarity import Similarity, check_similarity, is_linear, mean_over_edges, weight_shape
from tapnet.ops.compiler import compiler_disabled
from tapnet.ops.csr import propagate
from tapnet.ops.dropout import Mask
from tapnet.ops.features import product
from tapnet.ops.gate import straight_through
from tapnet.ops.precision import full_precision, widened
from tapnet.ops.segments import segment_softmax, top_k
from tapnet.ops.votes import Select, linear_votes

Gate = Literal["straight-through", "none", "sigmoid", "tanh"]
GATES: tuple[Gate, ...] = get_args(Gate)
VoteScale = Literal["nodes", "channels"]
VOTE_SCALES: tuple[VoteScale, ...] = get_args(VoteScale)
LEARNED_AND_SCHEDULED = "a connectivity that is learned follows no schedule: connectivity_end is for one that is not"


class Votes(NamedTuple):
    """The parts of each node's score, [N] each."""

    local: Tensor  # yᴸ, Eq. 1: zeros when local voting is off
    global_: Tensor  # yᴳ, Eq. 2: zeros when global voting is off
    connectivity: Tensor  # λ dᵢ / n, Eq. 4
    score: Tensor  # their sum


# ---- the paper's equations ----


def local_voting(
    h: Tensor,
    mean: Tensor,
    batch: GraphBatch,
    weight: Tensor | None,
    similarity: Similarity = "bilinear",
    of_edges: Tensor | None = None,
    scale: VoteScale = "nodes",
) -> Tensor:
    """Eq. 1: yᴸ = softmax(1/n · Σⱼ (D̂⁻¹Â)ᵢⱼ r(hᵢ, hⱼ)), given H and Ĥ.

    Where r is linear in hⱼ, its mean over the neighbours is r(hᵢ, their mean) = (H W_r)ᵢ · Ĥᵢ: nothing is computed or
    stored per edge. ``of_edges``, [N], is added to that mean, and with the scale ``"channels"`` it is divided by √d
    instead of n.
    """
    if is_linear(similarity):
        left = h if weight is None else h @ weight
        votes = (left * mean).sum(dim=1)
    else:
        votes = mean_over_edges(similarity, weight, h, batch)
    votes = votes if of_edges is None else votes + of_edges
    return segment_softmax(votes / (batch.size if scale == "nodes" else math.sqrt(h.size(1))), batch.ptr)


def edge_votes(weight: Tensor, batch: GraphBatch) -> Tensor:
    """[N]: Σⱼ (D̂⁻¹Â)ᵢⱼ q · eᵢⱼ, what the edges of each node say on average; a node itself adds 0."""
    if batch.edge_attr is None:
        raise ValueError(f"the votes read what edges carry, {NO_EDGE_ATTR}")
    attr = batch.edge_attr
    attr = attr.to(weight.dtype) if isinstance(attr, Tensor) and attr.is_floating_point() else attr
    of_edge = product(attr, weight.unsqueeze(1)).squeeze(1)
    if batch.weight is not None:
        of_edge = of_edge * batch.weight.to(of_edge.dtype)
    return of_edge.new_zeros(batch.num_nodes).index_add(0, batch.edge_index[0], of_edge) / (batch.row_sum + 1)


def global_voting(mean: Tensor, projection: Tensor, batch: GraphBatch) -> Tensor:
    """Eq. 2: yᴳ = softmax(Ĥ p), given Ĥ = D̂⁻¹ÂH."""
    return segment_softmax(mean @ projection, batch.ptr)


def connectivity_term(h: Tensor, batch: GraphBatch, connectivity: float | Tensor) -> Tensor:
    """Eq. 4: λ dᵢ / n, of the type of h."""
    return batch.row_sum.to(h.dtype) * connectivity / batch.size


class TAPooling(SelectPooling):
    r"""The topology-aware pooling layer from *Topology-Aware Graph Pooling Networks* (Gao, Liu, Ji).

    With Â = A + I and D̂ its row sums, node i of a graph with n nodes gets the score

    .. math::
        \mathbf{y}^L &= \mathrm{softmax}\bigl(\tfrac{1}{n} \sum_j (\hat D^{-1} \hat A)_{ij}\, r(h_i, h_j)\bigr)

        \mathbf{y}^G &= \mathrm{softmax}\bigl(\hat D^{-1} \hat A H \mathbf{p}\bigr)

        s_i &= y^L_i + y^G_i + \lambda \tfrac{d_i}{n}

    and the k nodes of each graph with the highest scores stay, with the edges between them.

    Row 0 of ``edge_index`` is i, the node that votes over its neighbours j in row 1. Self-loops count as none and
    a repeated column counts once. With ``edge_weight``, A has these weights in the place of ones. The forward value
    is the paper's: H′ = H[idx]. Selecting rows passes no gradient to W_r and p, so by default the kept rows are
    multiplied by s / stop_gradient(s), which is 1. Gradients can be taken once, not twice.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): a float keeps k = ⌈ratio · n⌉ nodes of each graph, at least 1; an int keeps k = ratio, at
            most n. (default: ``0.5``)
        connectivity (float): λ, the weight of the degree in the score. (default: ``0.1``)
        similarity (str): r, one of ``"bilinear"`` (hᵢ W_r hⱼᵀ), ``"dot"``, ``"gaussian"`` (exp of the dot product) and
            ``"concat"`` (ReLU of a learned vector on the pair). (default: ``"bilinear"``)
        local_voting (bool): whether yᴸ is part of the score. (default: ``True``)
        global_voting (bool): whether yᴳ is part of the score. (default: ``True``)
        gate (str): how the score reaches the gradient: ``"straight-through"``, ``"none"``, or ``"sigmoid"`` and
            ``"tanh"``, which multiply the kept rows by that function of the score. (default: ``"straight-through"``)
        dropout (float): applied to the features that the votes see, not to the rows that are passed on.
            (default: ``0.0``)
        link_weight (float): the weight of the auxiliary link prediction objective (Eq. 5). Above 0, a call with a
            ``GraphBatch`` has it as ``Pooled.loss`` while training; with PyG's convention it is not computed, see
            :func:`tapnet.link_prediction_loss`. (default: ``0.0``)
        link_reading (str): how that objective reads the similarities as probabilities, ``"sigmoid"`` or
            ``"softmax"``. (default: ``"sigmoid"``)
        heads (int): how many W_r and p there are; votes are the means over them. Not in the paper, as all that
            follows. (default: ``1``)
        vote_scale (str): what local votes are divided by inside the softmax: ``"nodes"``, the paper's n, which makes
            the votes of a large graph all alike, or ``"channels"``, √d. (default: ``"nodes"``)
        learn_connectivity (bool): whether λ is learned, from ``connectivity`` on. (default: ``False``)
        edge_channels (int): the size of what edges carry. Above 0, r(hᵢ, hⱼ) + q · eᵢⱼ takes the place of r(hᵢ, hⱼ) in
            local votes. (default: ``0``)
        connectivity_end (float, optional): λ at the end of training. ``set_progress(t)``, which the trainer calls
            before each epoch, sets λ to (1 − t) · ``connectivity`` + t · ``connectivity_end``; it is stored with the
            weights. (default: ``None``, the same λ throughout)

    Attributes:
        weight: W_r, [d, d] (or [2d] with ``"concat"``), [heads, d, d] with several, or None if there is none to learn.
        projection: p, [d], [heads, d] with several, or None without global voting.
        edge_weight: q, [edge_channels], or None.
        learned_connectivity: λ, [], or None if it is not learned.
        scheduled_connectivity: λ as it is now, [], or None if it is the same throughout.

    Raises:
        SettingError: if an argument cannot have the given value.

    Example:
        >>> pool = TAPooling(16, ratio=0.5)
        >>> x, edge_index = torch.randn(4, 16), torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> x, edge_index, edge_attr, batch, perm, score = pool(x, edge_index)
        >>> x.shape
        torch.Size([2, 16])
    """

    paper = "Gao, Liu, Ji: Topology-Aware Graph Pooling Networks, TPAMI"
    year = 2021
    about = "keeps the nodes that their neighbours and the whole graph vote for, with more votes for high degrees"
    cost = "O(E·d + N·d²)"
    memory = "O(N·d + E)"
    scheduled_connectivity: Tensor | None

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
        link_weight: float = 0.0,
        link_reading: LinkReading = "sigmoid",
        heads: int = 1,
        vote_scale: VoteScale = "nodes",
        learn_connectivity: bool = False,
        edge_channels: int = 0,
        connectivity_end: float | None = None,
    ) -> None:
        super().__init__(in_channels, ratio, dropout)
        check_similarity(similarity)
        check_link_reading(link_reading)
        if gate not in GATES:
            raise SettingError(f"gate is one of {', '.join(GATES)}, not {gate!r}")
        end = connectivity if connectivity_end is None else connectivity_end
        for name, value in (("connectivity", connectivity), ("link_weight", link_weight), ("connectivity_end", end)):
            if not isinstance(value, Real) or not math.isfinite(value):
                raise SettingError(f"{name} is a finite number, not {value!r}")
        if link_weight > 0 and not local_voting:
            raise SettingError("the auxiliary objective uses the similarities of local voting, which is off")
        if vote_scale not in VOTE_SCALES:
            raise SettingError(f"vote_scale is one of {', '.join(VOTE_SCALES)}, not {vote_scale!r}")
        if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
            raise SettingError(f"heads is a whole number from 1, not {heads!r}")
        if heads > 1 and local_voting and similarity != "bilinear":
            raise SettingError(f"several heads of local votes need the similarity bilinear, not {similarity}")
        if learn_connectivity and connectivity_end is not None:
            raise SettingError(LEARNED_AND_SCHEDULED)
        if edge_channels and not local_voting:
            raise SettingError("edges are read by local votes, which are off")
        self.connectivity, self.similarity, self.gate = connectivity, similarity, gate
        self.local_voting, self.global_voting = local_voting, global_voting
        self.link_weight, self.link_reading = link_weight, link_reading
        shape = weight_shape(similarity, in_channels) if local_voting else None
        many = () if heads == 1 else (heads,)
        self.heads, self.vote_scale, self.edge_channels = heads, vote_scale, edge_channels
        self.learn_connectivity = learn_connectivity
        self.weight = None if shape is None else nn.Parameter(torch.empty(*many, *shape))  # W_r
        self.projection = nn.Parameter(torch.empty(*many, in_channels)) if global_voting else None  # p
        self.edge_weight = nn.Parameter(torch.empty(edge_channels)) if edge_channels else None  # q
        self.learned_connectivity = nn.Parameter(torch.empty(())) if learn_connectivity else None
        self.connectivity_end = connectivity_end
        now = None if connectivity_end is None else torch.tensor(float(connectivity))
        self.register_buffer("scheduled_connectivity", now)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew, by Xavier's uniform distribution; a λ that is learned begins at ``connectivity``."""
        for parameter in (*_heads(self.weight, self.heads), *_heads(self.projection, self.heads), self.edge_weight):
            if parameter is not None:  # a vector counts as a matrix with one column
                nn.init.xavier_uniform_(parameter.data if parameter.dim() == 2 else parameter.data.view(-1, 1))
        if self.learned_connectivity is not None:
            nn.init.constant_(self.learned_connectivity, self.connectivity)

    def set_progress(self, progress: float) -> None:
        """λ goes evenly from ``connectivity``, at 0, to ``connectivity_end``, at 1, if there is one."""
        if self.connectivity_end is not None and self.scheduled_connectivity is not None:
            self.scheduled_connectivity.fill_((1 - progress) * self.connectivity + progress * self.connectivity_end)

    def _connectivity(self) -> float:
        """λ as it is now, where it is not learned."""
        return self.connectivity if self.scheduled_connectivity is None else float(self.scheduled_connectivity)

    @classmethod
    def build(cls, setup: PoolSetup) -> TAPooling:
        """One layer of a network, with the network's settings of TAP."""
        return cls(setup.in_channels, setup.ratio, dropout=setup.dropout, **setup.tap)

    @compiler_disabled
    def votes(
        self,
        x: Tensor,
        edge_index: Tensor | GraphBatch,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Votes:
        """Each part of every node's score, for a picture or an explanation.

        Args:
            x: [N, d] node features.
            edge_index: [2, E], or the graphs as a ``GraphBatch``.
            batch: [N] the graph of each node; None means one graph.
            edge_attr: [E, …] what edges carry, for a layer that reads it.
            edge_weight: [E] the weight of each column of ``edge_index``; None means ones. A ``GraphBatch`` has its own.

        Returns:
            ``local``, ``global_``, ``connectivity`` and their sum ``score``, [N] each.
        """
        if isinstance(edge_index, GraphBatch):
            check_no_weights(edge_weight)
            return self._votes(x, edge_index, self._mask())
        x = x.view(-1, 1) if x.dim() == 1 else x
        carried = edge_attr if self.edge_channels else None
        graphs, order = GraphBatch.sorted_from_edge_index(x, edge_index, batch, carried, edge_weight)
        if order is None:
            return self._votes(x, graphs, self._mask())
        votes, place = self._votes(x[order], graphs, self._mask()), torch.argsort(order)
        return Votes(*(part[place] for part in votes))

    def _votes(self, x: Tensor, batch: GraphBatch, mask: Mask | None) -> Votes:
        """Eq. 1, 2 and 4, on features seen through a mask. Scores are never computed in half precision."""
        h = widened(x)
        if self._in_one_step(h):
            return Votes(*self._linear_votes(h, batch, mask))
        self._check(h, batch)
        weight, p = self._parameters_as(h.dtype)
        linear = self.local_voting and is_linear(self.similarity)
        with full_precision(h):
            h = h if mask is None else mask.applied(h)
            none = torch.zeros_like(h[:, 0])
            mean = propagate(h, batch, "mean") if linear or p is not None else h  # Ĥ = D̂⁻¹ÂH
            of_edges = None if self.edge_weight is None else edge_votes(self.edge_weight.to(h.dtype), batch)
            more = (self.similarity, of_edges, self.vote_scale)
            weights, projections = _heads(weight, self.heads), _heads(p, self.heads)
            y_local = _mean([local_voting(h, mean, batch, w, *more) for w in weights]) if self.local_voting else none
            y_global = _mean([none if q is None else global_voting(mean, q, batch) for q in projections])
            learned = self.learned_connectivity
            degrees = connectivity_term(h, batch, self._connectivity() if learned is None else learned.to(h.dtype))
            return Votes(y_local, y_global, degrees, y_local + y_global + degrees)

    def _in_one_step(self, h: Tensor) -> bool:
        """Whether the votes are one compiled step with its gradient written out."""
        votes = is_linear(self.similarity) and (self.local_voting or self.global_voting)
        return is_compiled(h) and votes and not self._beyond_the_paper().keys() - {"connectivity_end"}

    def _beyond_the_paper(self) -> dict[str, object]:
        """The options that the paper does not have, where they are in use."""
        options = {"heads": 1, "vote_scale": "nodes", "learn_connectivity": False, "edge_channels": 0}
        options["connectivity_end"] = None
        return {name: getattr(self, name) for name, default in options.items() if getattr(self, name) != default}

    def _linear_votes(
        self, h: Tensor, batch: GraphBatch, mask: Mask | None, select: Select | None = None
    ) -> tuple[Tensor, ...]:
        self._check(h, batch)
        with full_precision(h):
            weight, p = self._parameters_as(h.dtype)
            return linear_votes(h, weight, p, self.local_voting, self._connectivity(), mask, batch, select)

    def _check(self, h: Tensor, batch: GraphBatch) -> None:
        batch.check_rows(h)
        if self.projection is not None and h.size(1) != self.in_channels:  # the compiled loop does not look
            raise ValueError(f"nodes have {h.size(1)} features, and the layer is for {self.in_channels}")

    def _parameters_as(self, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
        """W_r and p."""
        weight, p = (None if w is None else w.to(dtype) for w in (self.weight, self.projection))
        return weight, p

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """s, the sum of the votes and the connectivity term."""
        return self._votes(h, batch, None).score

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        """As ``gate`` says."""
        if self.gate in ("sigmoid", "tanh"):
            factor = torch.sigmoid(score) if self.gate == "sigmoid" else torch.tanh(score)
            return rows * factor.to(rows.dtype).unsqueeze(1)
        return rows

    def _scores(self, x: Tensor, batch: GraphBatch, mask: Mask | None) -> Scores:
        return _scores_of(*self._votes(x, batch, mask))

    def _select(self, x: Tensor, batch: GraphBatch, ptr: Tensor, mask: Mask | None) -> tuple[Tensor, Tensor, Scores]:
        if self.gate != "straight-through" or not self._in_one_step(x):
            return super()._select(x, batch, ptr, mask)
        *votes, perm, rows = self._linear_votes(x, batch, mask, lambda score: top_k(score, ptr, batch.ptr))
        return rows, perm, _scores_of(*votes)

    def _keep(self, x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
        """Eq. 3: H′ = H[idx], gated."""
        if self.gate == "straight-through":
            return straight_through(x, perm, score)
        return super()._keep(x, perm, score)

    def _loss(self, x: Tensor, batch: GraphBatch, mask: Mask | None) -> Tensor | None:
        """Eq. 5: how well r, the layer's similarity, tells which nodes are linked."""
        if self.link_weight == 0:
            return None
        h = widened(x) if mask is None else mask.applied(widened(x))
        weight = self.weight.mean(0) if self.weight is not None and self.heads > 1 else self.weight  # r is linear in it
        loss = link_loss(h, batch, weight=weight, similarity=self.similarity, reading=self.link_reading)
        return self.link_weight * loss

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        shown = ("ratio", "connectivity", "similarity", "local_voting", "global_voting", "gate", "dropout")
        values = {name: getattr(self, name) for name in shown} | self._beyond_the_paper()
        return ", ".join([f"{self.in_channels}", *(f"{name}={value!r}" for name, value in values.items())])


def _scores_of(local: Tensor, global_: Tensor, degrees: Tensor, score: Tensor) -> Scores:
    return Scores(score, {"local": local.detach(), "global": global_.detach(), "connectivity": degrees.detach()})


def _heads(parameter: Tensor | None, heads: int) -> Sequence[Tensor | None]:
    """The parameter of each head."""
    return (parameter,) if parameter is None or heads == 1 else parameter.unbind()


def _mean(votes: Sequence[Tensor]) -> Tensor:
    return votes[0] if len(votes) == 1 else torch.stack(list(votes)).mean(0)
