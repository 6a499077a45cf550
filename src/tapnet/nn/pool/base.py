"""Pooling: what every pooling layer is, what it returns, and how a network builds one."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from torch import Generator, Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Prepared
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.ops.csr import Norm

Kind = Literal["select", "merge", "readout", "none"]
M = TypeVar("M", bound=nn.Module)


class Pooled(NamedTuple):
    """What a pooling layer makes of a batch."""

    x: Tensor  # [K, d']
    batch: GraphBatch | DenseBatch  # the coarsened graphs
    perm: Tensor | None = None  # [K] the kept nodes, ascending; None where nodes are merged
    assignment: Tensor | None = None  # of merged nodes: [N] cluster of each, or [N, K] weights; None if not told
    scores: Tensor | None = None  # [N] of all nodes that came in, detached; NaN where a layer does not tell
    parts: Mapping[str, Tensor] | None = None  # the parts of the scores, [N] each, by name
    loss: Tensor | None = None  # to be added to the network's loss while training
    scores_with_gradient: Tensor | None = None  # [N] the scores as they were computed, where unpooling may use them


@dataclass(frozen=True)
class PoolSetup:
    """What a network tells a pooling layer that it builds."""

    in_channels: int
    ratios: tuple[float | int, ...]  # of all pooling layers of the network, each of the graph as it comes in
    level: int = 0  # the layer's place among them
    dropout: float = 0.0
    norm: Norm = "neighbour"  # of the network's graph convolutions
    mean_nodes: float | None = None  # of a graph of the data
    tap: Mapping[str, Any] = field(default_factory=dict)  # further arguments of TAPooling, by name

    @property
    def ratio(self) -> float | int:
        """That of this layer."""
        return self.ratios[self.level]


class Pooling(nn.Module, ABC):
    """Base of all pooling layers: node features and graphs in, fewer nodes and coarsened graphs out.

    A layer that keeps some of the nodes is best derived from :class:`~tapnet.nn.pool.select.SelectPooling`, which asks
    for their scores only. A layer that merges nodes implements ``forward`` and sets ``out_channels``.

    Attributes:
        kind: ``"select"`` (keeps nodes), ``"merge"`` (makes new ones), ``"readout"`` (makes one of a graph) or
            ``"none"``.
        paper: where the layer is from: authors, title, venue.
        year: when it appeared.
        about: what is kept or merged, in one sentence; without it, the docstring's first paragraph is shown.
        losses: the names of the losses whose sum is ``Pooled.loss`` while training.
        cost: the time of a call, for N nodes, E edges and d features in B graphs, K clusters each.
        memory: the size of what a call makes.
        directed: whether it is defined for directed graphs, and keeps their directions.
        in_channels: d, the size of each node's features.
        out_channels: d', that of the features that come out.
    """

    kind: ClassVar[Kind] = "merge"
    paper: ClassVar[str] = ""
    year: ClassVar[int | None] = None
    about: ClassVar[str] = ""
    losses: ClassVar[tuple[str, ...]] = ()
    cost: ClassVar[str] = ""
    memory: ClassVar[str] = ""
    directed: ClassVar[bool] = False
    in_channels: int
    out_channels: int

    @abstractmethod
    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """Pools a batch.

        Args:
            x: [N, in_channels] features of all nodes of all graphs.
            batch: the graphs.

        Returns:
            The features and graphs that are left, and how they came about.
        """

    @classmethod
    def build(cls, setup: PoolSetup) -> Pooling:
        """One layer of a network; called as ``cls(in_channels, ratio=…, dropout=…)``, as far as it takes these."""
        return construct(cls, setup.in_channels, ratio=setup.ratio, dropout=setup.dropout)

    @classmethod
    def prepare(cls, dataset: GraphDataset, ratios: Sequence[float | int]) -> GraphDataset:
        """The data set with what layers of these ratios would else compute for each batch; by default as it is."""
        return dataset

    def structure(self, dataset: GraphDataset) -> Mapping[str, Prepared]:
        """What this layer would else compute for each batch, of the graphs alone; by default nothing."""
        return {}

    def set_progress(self, progress: float) -> None:
        """Called before each epoch of training, for what follows a schedule; by default there is none.

        Args:
            progress: from 0, in the first epoch, to 1, in the last.
        """

    def kept_by(self, pooled: Pooled, batch: GraphBatch | DenseBatch, generator: Generator) -> Tensor | None:
        """The nodes whose selection is compared between networks of different seeds; None where nodes are merged.

        By default those that were kept. A layer that draws nodes anew at each step of training draws them here too,
        also where it keeps the same ones in every evaluation.

        Args:
            pooled: what the layer returned.
            batch: the graphs that came in.
            generator: of random numbers that follow from the network's seed.
        """
        return pooled.perm

    def elements(self, nodes: int) -> int:
        """The size of the largest tensor that a graph padded to so many nodes takes; 0: the layer pads none.

        The graphs of a step are pooled in groups where they would not fit into memory together.
        """
        return 0


def construct(cls: type[M], in_channels: int, **optional: Any) -> M:
    """``cls(in_channels, …)`` with those of the optional arguments that the constructor takes.

    Raises:
        SettingError: if the constructor needs others.
    """
    parameters = list(inspect.signature(cls).parameters.values())[1:]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name: p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    if missing := [name for name, p in named.items() if p.default is p.empty and name not in optional]:
        raise SettingError(
            f"{cls.__qualname__} needs {', '.join(missing)} to be built, and a network gives in_channels and "
            f"{', '.join(optional)} only: give the other arguments defaults, or derive a class that does"
        )
    try:
        return cls(in_channels, **{name: value for name, value in optional.items() if takes_any or name in named})
    except TypeError as error:
        raise SettingError(f"{cls.__qualname__} cannot be built from in_channels and {optional}: {error}") from error
