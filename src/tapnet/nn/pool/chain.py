"""Chains of coarser graphs of a batch or a data set, and the base of the layers that pool along them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from tapnet._loops.jit import Array, array
from tapnet._loops.ranges import offsets, repeated
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Prepared
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.io.computed_cache import PerItem, computed_now, computed_once
from tapnet.nn.pool.base import Pooled, Pooling, PoolSetup
from tapnet.nn.pool.select import check_ratio, kept_nodes
from tapnet.ops.precision import full_precision, widened
from tapnet.ops.spectral import VERSION, Chain, ChainKind, chain_arrays, dense


class ChainPooling(Pooling):
    """Base of layers that pool step ``level`` of a chain of coarser graphs: X′ = SX, with S from the graph alone.

    S is sparse and nothing is learned. The first step computes the chain where the batch does not bring it (slow); the
    later ones take it from the batch that the one before returned.

    Args:
        in_channels (int): d, the size of each node's features.
        ratios (sequence of float or int): the share or number of nodes that each step of the chain leaves.
        level (int): which step this layer is. (default: ``0``)
        vectors (int): the rows of S per cluster, so many times as wide are the features that come out.
            (default: ``1``)

    Raises:
        SettingError: if there are no ratios, or the level or the number of vectors cannot be.
    """

    chain_kind: ClassVar[ChainKind]
    default_vectors: ClassVar[int] = 1

    def __init__(
        self, in_channels: int, ratios: Sequence[float | int], level: int = 0, vectors: int | None = None
    ) -> None:
        super().__init__()
        self.chain = make_chain(self.chain_kind, ratios, self.default_vectors if vectors is None else vectors)
        if not 0 <= level < len(self.chain.ratios):
            raise SettingError(f"level is from 0 to {len(self.chain.ratios) - 1}, not {level}")
        self.in_channels, self.out_channels = in_channels, in_channels * self.chain.vectors
        self.level = level

    @classmethod
    def build(cls, setup: PoolSetup) -> ChainPooling:
        """The step of the network's chain at this level."""
        return cls(setup.in_channels, setup.ratios, setup.level)

    @classmethod
    def prepare(cls, dataset: GraphDataset, ratios: Sequence[float | int], vectors: int | None = None) -> GraphDataset:
        """The data set with the chains of its graphs, computed once and cached."""
        chain = make_chain(cls.chain_kind, ratios, cls.default_vectors if vectors is None else vectors)
        chains = chains_of_dataset(dataset, chain)
        return replace(dataset, prepared={**dataset.prepared, cls.chain_kind: chains})

    def structure(self, dataset: GraphDataset) -> Mapping[str, Prepared]:
        """The chains of the graphs, as `prepare` has them, but not cached; the first step has them for all."""
        if self.level > 0:
            return {}
        arrays = computed_now(len(dataset), _compute(dataset, self.chain))
        sizes = chain_sizes(self.chain, dataset.nodes_per_graph, arrays)
        return {self.chain_kind: Chains(self.chain, sizes, arrays)}

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """[N, in] → [K, out] and the coarser graphs, whose edges have weights."""
        if not isinstance(batch, GraphBatch):
            raise ValueError(f"{type(self).__name__} pools sparse graphs, not a DenseBatch")
        batch.check_rows(x)
        levels = self._levels(batch)
        level = levels.levels[self.level]
        with full_precision(x):
            rows = level.pooled(widened(x))
        rowptr, col, weight = level.adjacency
        prepared = {**batch.prepared, self.chain.kind: levels}
        return Pooled(rows, GraphBatch(batch.x, batch.y, level.ptr, rowptr, col, weight=weight, prepared=prepared))

    def _levels(self, batch: GraphBatch) -> Levels:
        levels = batch.prepared.get(self.chain.kind)
        if isinstance(levels, Levels) and levels.chain == self.chain:
            return levels
        if self.level > 0:
            raise ValueError(f"step {self.level} of a chain pools the graphs that step {self.level - 1} returned")
        return chains_of_batch(batch, self.chain)

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer."""
        return f"{self.in_channels}, ratios={self.chain.ratios}, level={self.level}, vectors={self.chain.vectors}"


def make_chain(kind: ChainKind, ratios: Sequence[float | int], vectors: int = 1) -> Chain:
    """A chain with these ratios, if they can be.

    Raises:
        SettingError: if there are none, or a ratio or the number of vectors is out of range.
    """
    if not ratios:
        raise SettingError("a chain of coarser graphs has at least one step")
    if kind == "haar" and vectors != 1:
        raise SettingError(f"HaarPooling takes one vector of a cluster, not {vectors}")
    if vectors < 1:
        raise SettingError(f"EigenPooling takes at least one vector of a cluster, not {vectors}")
    return Chain(kind, tuple(check_ratio(ratio) for ratio in ratios), vectors)


def chain_sizes(chain: Chain, sizes: Tensor, arrays: Mapping[str, PerItem] | None = None) -> Tensor:
    """[G] nodes → [steps + 1, G]: theirs, and those of the coarser graphs.

    How many "ndp" leaves the arrays of the chains say; where they are not there yet, all nodes at most.
    """
    steps = [sizes]
    if chain.kind == "ndp":
        found = (
            sizes if arrays is None else arrays[f"adjacency {i} count"].ptr.diff() for i in range(len(chain.ratios))
        )
        return torch.stack([sizes, *found])
    for ratio in chain.ratios:
        steps.append(kept_nodes(ratio, steps[-1]))
    return torch.stack(steps)


# ---- the chains of many graphs: kept flat, cut into batches ----


class Rows(NamedTuple):
    """A block-diagonal matrix in compressed rows: a block a graph."""

    ptr: Tensor  # [rows + 1] int32
    column: Tensor  # [entries] int32: numbers within the batch
    value: Tensor  # [entries] float32

    def times(self, h: Tensor) -> Tensor:
        """[N, d] → [rows, d], with a gradient."""
        value = self.value.to(h.dtype)
        return embedding_bag(self.column, h, self.ptr, mode="sum", per_sample_weights=value, include_last_offset=True)


@dataclass(frozen=True, eq=False)
class Level:
    """One step of the chains of a batch: N nodes become K."""

    ptr: Tensor  # [B+1] int64: graph g has the coarse nodes ptr[g] to ptr[g+1]
    pooling: Rows  # [K·H, N]
    adjacency: Rows  # [K, K], weighted

    def pooled(self, h: Tensor) -> Tensor:
        """[N, d] → [K, H·d]"""
        rows = self.pooling.times(h)
        nodes = len(self.adjacency.ptr) - 1
        return rows.reshape(nodes, len(rows) // max(nodes, 1) * h.size(1))

    def to(self, device: torch.device | str) -> Level:
        """The same on a device."""
        pooling, adjacency = (Rows(*(t.to(device) for t in rows)) for rows in (self.pooling, self.adjacency))
        return Level(self.ptr.to(device), pooling, adjacency)


@dataclass(frozen=True, eq=False)
class Levels:
    """All steps of the chains of a batch."""

    chain: Chain
    levels: tuple[Level, ...]

    def to(self, device: torch.device | str) -> Levels:
        """The same on a device."""
        return Levels(self.chain, tuple(level.to(device) for level in self.levels))


@dataclass(frozen=True, eq=False)
class Chains:
    """The chains of many graphs (a ``Prepared`` of a data set)."""

    chain: Chain
    sizes: Tensor  # [steps + 1, G] the nodes of each graph and of its coarser ones
    arrays: Mapping[str, PerItem]

    def cut(self, graphs: Tensor) -> Levels:
        """The steps of the chains of these graphs, as a batch has them."""
        ptrs = [offsets(sizes.index_select(0, graphs)) for sizes in self.sizes]
        levels = (
            Level(ptr, self._rows(f"pooling {i}", graphs, finer), self._rows(f"adjacency {i}", graphs, ptr))
            for i, (finer, ptr) in enumerate(pairwise(ptrs))
        )
        return Levels(self.chain, tuple(levels))

    def _rows(self, name: str, graphs: Tensor, ptr: Tensor) -> Rows:
        """The blocks of these graphs; the columns of graph g begin at ptr[g]."""
        count, _ = self.arrays[f"{name} count"].of(graphs)
        column, begin = self.arrays[f"{name} column"].of(graphs)
        value, _ = self.arrays[f"{name} value"].of(graphs)
        return Rows(offsets(count).int(), (column + repeated(ptr[:-1], begin.diff())).int(), value)


def chains_of_dataset(dataset: GraphDataset, chain: Chain) -> Chains:
    """Computed once, then read from the cache."""
    compute = _compute(dataset, chain)
    settings = {"ratios": chain.ratios, "vectors": chain.vectors, "version": VERSION}
    title = f"{dataset.name}: coarser graphs"

    def fits(arrays: Mapping[str, PerItem]) -> bool:
        steps, sizes = range(len(chain.ratios)), chain_sizes(chain, dataset.nodes_per_graph, arrays)
        if chain.kind == "ndp" and not all((arrays[f"pooling {i} count"].values == 1).all() for i in steps):
            return False
        pooling = (_fits(arrays, f"pooling {i}", sizes[i + 1] * chain.vectors, sizes[i]) for i in steps)
        adjacency = (_fits(arrays, f"adjacency {i}", sizes[i + 1], sizes[i + 1]) for i in steps)
        return all(pooling) and all(adjacency)

    arrays = computed_once(chain.kind, dataset.checksum, settings, len(dataset), compute, title, fits=fits)
    return Chains(chain, chain_sizes(chain, dataset.nodes_per_graph, arrays), arrays)


def graph_arrays(
    rowptr: Array, col: Array, chain: Chain, clusters: Sequence[int], first: int = 0, weight: Array | None = None
) -> Mapping[str, Array]:
    """All that is kept of one graph, given its part of compressed rows; edges count in both directions."""
    if chain.kind == "ndp":
        from tapnet.ops.decimation import decimation_arrays  # imports SciPy, which few networks need

        return decimation_arrays(rowptr, col, len(chain.ratios), first, weight)
    matrix = dense(rowptr, col, first, weight)
    return chain_arrays(np.maximum(matrix, matrix.T), chain, clusters)


def _compute(dataset: GraphDataset, chain: Chain) -> Callable[[int], Mapping[str, Array]]:
    """What computes the arrays of one graph."""
    node_ptr, rowptr, col = map(array, (dataset.node_ptr, dataset.rowptr, dataset.col))
    expected = chain_sizes(chain, dataset.nodes_per_graph)

    def compute(graph: int) -> Mapping[str, Array]:
        rows = rowptr[node_ptr[graph] : node_ptr[graph + 1] + 1]
        return graph_arrays(rows, col, chain, expected[1:, graph].tolist())

    return compute


def _fits(arrays: Mapping[str, PerItem], name: str, rows: Tensor, columns: Tensor) -> bool:
    """Whether these can be matrices of so many rows and columns, one of each graph."""
    count, column, value = (arrays[f"{name} {part}"] for part in ("count", "column", "value"))
    if (count.values.dtype, column.values.dtype, value.values.dtype) != (torch.int32, torch.int32, torch.float32):
        return False
    if not (torch.equal(count.ptr.diff(), rows) and torch.equal(column.ptr, value.ptr) and (count.values >= 0).all()):
        return False
    entries = torch.cat([count.values.new_zeros(1), count.values]).cumsum(0)[count.ptr].diff()  # of each graph
    widest = repeated(columns, entries) if torch.equal(entries, column.ptr.diff()) else None
    return widest is not None and bool(((column.values >= 0) & (column.values < widest)).all())


def chains_of_batch(batch: GraphBatch, chain: Chain) -> Levels:
    """The same for graphs of which nothing is known yet."""
    ptr, rowptr, col = (array(t.cpu()) for t in (batch.ptr, batch.rowptr, batch.col))
    weight = None if batch.weight is None else array(batch.weight.cpu())
    nodes = batch.nodes_per_graph.cpu()
    expected = chain_sizes(chain, nodes)

    def compute(graph: int) -> Mapping[str, Array]:
        first, last = ptr[graph], ptr[graph + 1]
        return graph_arrays(rowptr[first : last + 1], col, chain, expected[1:, graph].tolist(), first, weight)

    arrays = computed_now(batch.num_graphs, compute)
    chains = Chains(chain, chain_sizes(chain, nodes, arrays), arrays)
    return chains.cut(torch.arange(batch.num_graphs)).to(batch.ptr.device)
