"""Keeping some nodes of each graph: how many, which, and the coarsened graphs. Base of the layers that do so."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from tapnet._loops.csr import induced_edges
from tapnet._loops.ranges import offsets
from tapnet._loops.segments import kept_ptr
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.base import Kind, Pooled, Pooling
from tapnet.ops.compiler import compiler_disabled
from tapnet.ops.csr import induced_subgraph
from tapnet.ops.dropout import Mask, check_dropout
from tapnet.ops.segments import top_k

Graphs = GraphBatch | DenseBatch
PyGPooled = tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]
_induced_edges = compiler_disabled(induced_edges)


class Scores(NamedTuple):
    """The scores of all nodes of a batch, and what they are made of."""

    score: Tensor  # [N]
    parts: Mapping[str, Tensor] | None = None  # [N] each


class SelectPooling(Pooling):
    """Base of layers that keep the nodes of each graph with the highest scores, and the edges between them.

    A layer implements ``score``, and ``scale`` where the kept rows are not to be multiplied by tanh of their scores.

    Called with a :class:`~tapnet.data.batch.GraphBatch`, ``pool(x, batch)``, it returns
    :class:`~tapnet.nn.pool.base.Pooled`; called as PyG's layers, ``pool(x, edge_index, edge_attr, batch)``, it returns
    ``(x, edge_index, edge_attr, batch, perm, score)`` of the coarsened graphs.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): a float keeps k = ⌈ratio · n⌉ nodes of each graph; an int keeps k = ratio, at most n.
            (default: ``0.5``)
        dropout (float): applied to the features that the scores are computed from, not to the rows that are passed
            on. (default: ``0.0``)

    Raises:
        SettingError: if the ratio or the dropout is out of range.

    Example:
        >>> class DegreePool(SelectPooling):
        ...     def score(self, h, batch):
        ...         return batch.degree.to(h.dtype)
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> DegreePool(8, ratio=1)(torch.randn(3, 8), edge_index)[4]
        tensor([1])
    """

    kind: ClassVar[Kind] = "select"
    directed: ClassVar[bool] = True
    edge_channels: int = 0  # the size of what edges carry, for a layer whose scores read it

    def __init__(self, in_channels: int, ratio: float | int = 0.5, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.in_channels = self.out_channels = in_channels
        self.ratio, self.dropout = check_ratio(ratio), dropout

    # ---- what a layer says ----

    @abstractmethod
    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """[N, d] features, after dropout → [N] or [N, 1] scores; the highest of each graph stay."""

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        """The kept rows [K, d] and their scores [K] → the rows that go on; selecting alone passes no gradient."""
        return rows * torch.tanh(score).unsqueeze(1)

    # ---- what the base does ----

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        edge_index: Tensor | Graphs,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Pooled | PyGPooled:
        """Pools a batch.

        Args:
            x: [N, d] node features.
            edge_index: the graphs as a ``GraphBatch``, or [2, E] as PyG has them.
            edge_attr: [E, …] attributes of the edges, with PyG's convention.
            batch: [N] the graph of each node, with PyG's convention; None means one graph.
            edge_weight: [E] the weight of each column of ``edge_index``, with PyG's convention; None means ones. A
                ``GraphBatch`` has its own. To get those of the edges that stay, pass them as ``edge_attr``, too.

        Returns:
            ``Pooled``, or with PyG's convention ``(x, edge_index, edge_attr, batch, perm, score)``.
        """
        if not isinstance(edge_index, Tensor):
            check_no_weights(edge_weight)
            return self._pool(x, edge_index)
        x = x.view(-1, 1) if x.dim() == 1 else x
        edge_index = edge_index.long()
        if batch is None:
            batch = edge_index.new_zeros(x.size(0))
        carried = edge_attr if self.edge_channels else None
        rows, perm, score = self._select_sorted(x, edge_index, batch, carried, edge_weight)
        edge_index, edge_attr = _induced_edges(perm, edge_index, edge_attr, x.size(0))
        return rows, edge_index, edge_attr, batch[perm], perm, score[perm]

    def _pool(self, x: Tensor, batch: Graphs) -> Pooled:
        if not isinstance(batch, GraphBatch):
            raise ValueError(f"{type(self).__name__} keeps nodes of sparse graphs, not of a DenseBatch")
        batch.check_rows(x)
        mask = self._mask()
        loss = self._loss(x, batch, mask) if self.training else None
        ptr = kept_offsets(self.ratio, batch)
        rows, perm, (score, parts) = self._select(x, batch, ptr, mask)
        coarse = induced_subgraph(batch, perm, ptr)
        return Pooled(rows, coarse, perm, None, score.detach(), parts, loss, scores_with_gradient=score)

    @compiler_disabled
    def _select_sorted(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The kept rows and nodes, and the scores of all, of graphs whose nodes may be in any order."""
        graphs, order = GraphBatch.sorted_from_edge_index(x, edge_index, batch, edge_attr, edge_weight)
        x = x if order is None else x[order]
        rows, perm, (score, _) = self._select(x, graphs, kept_offsets(self.ratio, graphs), self._mask())
        if order is None:
            return rows, perm, score
        perm, ascending = order[perm].sort()
        return rows[ascending], perm, score[torch.argsort(order)]

    def _select(self, x: Tensor, batch: GraphBatch, ptr: Tensor, mask: Mask | None) -> tuple[Tensor, Tensor, Scores]:
        """The kept rows and nodes (graph g has ptr[g] to ptr[g+1] of them), and the scores of all."""
        scores = self._scores(x, batch, mask)
        perm = top_k(scores.score.detach(), ptr, batch.ptr)
        return self._keep(x, perm, scores.score), perm, scores

    def _mask(self) -> Mask | None:
        """The dropout through which the scores (and the loss) see the features."""
        return Mask.draw(self.dropout) if self.training and self.dropout > 0 else None

    def _scores(self, x: Tensor, batch: GraphBatch, mask: Mask | None) -> Scores:
        score = self.score(x if mask is None else mask.applied(x), batch)
        if isinstance(score, Tensor) and score.shape == (len(x), 1):  # as a Linear gives it
            score = score.squeeze(1)
        if not isinstance(score, Tensor) or score.shape != (len(x),):
            found = list(score.shape) if isinstance(score, Tensor) else type(score).__name__
            raise ValueError(f"{type(self).__name__}.score gives each of the {len(x)} nodes a number: [N], not {found}")
        return Scores(score if score.is_floating_point() else score.to(x.dtype))

    def _loss(self, x: Tensor, batch: GraphBatch, mask: Mask | None) -> Tensor | None:
        """To be added while training."""
        return None

    def _keep(self, x: Tensor, perm: Tensor, score: Tensor) -> Tensor:
        """The kept rows [K, d], given the scores [N] of all nodes."""
        kept = score.index_select(0, perm)
        return self.scale(x.index_select(0, perm), kept)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, ratio={self.ratio}, dropout={self.dropout}"


def check_no_weights(edge_weight: Tensor | None) -> None:
    """Raises a TypeError if weights are given beside a ``GraphBatch``."""
    if edge_weight is not None:
        raise TypeError("edge_weight goes with edge_index: a GraphBatch has weights of its own")


# ---- how many, and which ----


def best_nodes(score: Tensor, ratio: float | int, batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """The nodes of each graph with the highest scores, ascending, and where each graph's begin."""
    ptr = kept_offsets(ratio, batch)
    return top_k(score.detach(), ptr, batch.ptr), ptr


def kept_offsets(ratio: float | int, batch: GraphBatch) -> Tensor:
    """[B+1] where the kept nodes of each graph begin."""
    if isinstance(ratio, float):
        return kept_ptr(batch.ptr, *_exact(ratio).as_integer_ratio())
    return offsets(kept_nodes(ratio, batch.nodes_per_graph))


def kept_nodes(ratio: float | int, sizes: Tensor) -> Tensor:
    """[B] n → [B] k, exactly: ⌈ratio · n⌉ in whole numbers, since floats get 0.6 · 25 wrong."""
    if isinstance(ratio, int):
        return sizes.clamp(max=ratio)
    exact = _exact(ratio)
    return -(-sizes * exact.numerator // exact.denominator)


@cache
def _exact(ratio: float) -> Fraction:
    """The fraction that was meant: 0.8 is 4/5, also where it comes out of single precision as 0.800000012."""
    return max(Fraction(str(ratio)).limit_denominator(10**6), Fraction(1, 10**9))


def check_ratio(ratio: float | int) -> float | int:
    """The ratio as Python's own float or int.

    Raises:
        SettingError: if it is neither a share in (0, 1] nor a whole number of nodes, below 2⁶³.
    """
    if isinstance(ratio, Tensor) and ratio.dim() == 0:
        ratio = ratio.item()
    whole = isinstance(ratio, Integral)
    if isinstance(ratio, bool) or not isinstance(ratio, Real) or not (1 <= ratio < 2**63 if whole else 0 < ratio <= 1):
        words = "a float above 0 and at most 1, or a whole number of nodes below 2**63"
        raise SettingError(f"ratio is {words}, not {ratio!r:.100}")
    return int(ratio) if whole else float(ratio)


def unpool(x: Tensor, perm: Tensor, num_nodes: int, weight: Tensor | None = None) -> Tensor:
    """Puts pooled rows back where they came from, with zeros elsewhere.

    Args:
        x: [K, …] rows of the kept nodes.
        perm: [K] the numbers of these nodes.
        num_nodes: N, the number of nodes before pooling.
        weight: [K] what each row is multiplied by; None leaves them as they are. `score_weights` makes it of scores.

    Returns:
        [N, …]

    Example:
        >>> import torch
        >>> unpool(torch.tensor([5.0, 7.0]), torch.tensor([0, 2]), num_nodes=4)
        tensor([5., 0., 7., 0.])
    """
    if weight is not None:
        x = x * weight.to(x.dtype).view(-1, *[1] * (x.dim() - 1))
    return x.new_zeros(num_nodes, *x.shape[1:]).index_copy(0, perm, x)


def score_weights(score: Tensor, batch: Tensor | None = None) -> Tensor:
    """How much the kept nodes count when they are unpooled: sᵢ divided by the mean of |s| over those of its graph.

    Scores that are softmaxes are about 1/n; these weights are 1 on average, whatever the size of a graph.

    Args:
        score: [K] of the kept nodes, as a pooling layer returns them.
        batch: [K] the graph of each of them; None means one graph.

    Returns:
        [K]; zeros in a graph whose scores all are 0.

    Example:
        >>> import torch
        >>> score_weights(torch.tensor([0.6, 0.2]))
        tensor([1.5000, 0.5000])
    """
    graph = torch.zeros(len(score), dtype=torch.int64, device=score.device) if batch is None else batch
    count = torch.bincount(graph)
    total = score.new_zeros(len(count)).index_add(0, graph, score.abs())
    return score * (count / total.clamp(min=torch.finfo(score.dtype).tiny)).index_select(0, graph)
