"""EigenPooling and HaarPooling on a GraphBatch: clusters of nodes are the new nodes, and nothing is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.select import Pooled, check_ratio, kept_nodes
from tapnet.ops.precision import full_precision, widened
from tapnet.ops.spectral import Chain, Kind, Levels, chains_of_batch, chains_of_dataset


def prepare_chain(dataset: GraphDataset, ratios: Sequence[float | int], kind: Kind, vectors: int = 1) -> GraphDataset:
    """The data set with what its graphs' pooling layers of this kind need, computed once and cached."""
    chain = make_chain(kind, ratios, vectors)
    chains = chains_of_dataset(dataset, chain, chain_sizes(chain, dataset.nodes_per_graph))
    return replace(dataset, prepared={**dataset.prepared, kind: chains})


def make_chain(kind: Kind, ratios: Sequence[float | int], vectors: int = 1) -> Chain:
    if not ratios:
        raise SettingError("a chain of coarser graphs has at least one step")
    if vectors < 1:
        raise SettingError(f"EigenPooling takes at least one vector of a cluster, not {vectors}")
    return Chain(kind, tuple(check_ratio(ratio) for ratio in ratios), vectors)


def chain_sizes(chain: Chain, sizes: Tensor) -> Tensor:
    """[G] nodes → [steps + 1, G]: theirs, and those of the coarser graphs."""
    steps = [sizes]
    for ratio in chain.ratios:
        steps.append(kept_nodes(ratio, steps[-1]))
    return torch.stack(steps)


class ChainPool(nn.Module):
    """Step ``level`` of a chain of coarser graphs: X′ = SX with a sparse S that follows from the graph alone.

    The first step computes the chain where the batch does not bring it (slow); the later ones take it from the batch
    that the one before returned.
    """

    def __init__(self, in_channels: int, chain: Chain, level: int) -> None:
        super().__init__()
        if not 0 <= level < len(chain.ratios):
            raise SettingError(f"level is from 0 to {len(chain.ratios) - 1}, not {level}")
        self.in_channels, self.out_channels = in_channels, in_channels * chain.vectors
        self.chain, self.level = chain, level

    def coarsen(self, h: Tensor, batch: GraphBatch | DenseBatch) -> Pooled:
        """[N, in] → [K, out] and the coarser graphs, whose edges have weights."""
        assert isinstance(batch, GraphBatch)
        batch.check_rows(h)
        levels = self._levels(batch)
        level = levels.levels[self.level]
        with full_precision(h):
            rows = level.pooled(widened(h))
        coarse = GraphBatch(
            x=batch.x,
            y=batch.y,
            ptr=level.ptr,
            rowptr=level.adjacency.ptr,
            col=level.adjacency.column,
            weight=level.adjacency.value,
            prepared={**batch.prepared, self.chain.kind: levels},
        )
        return Pooled(rows, coarse)

    def _levels(self, batch: GraphBatch) -> Levels:
        levels = batch.prepared.get(self.chain.kind)
        if isinstance(levels, Levels) and levels.chain == self.chain:
            return levels
        if self.level > 0:
            raise ValueError(f"step {self.level} of a chain pools the graphs that step {self.level - 1} returned")
        return chains_of_batch(batch, self.chain, chain_sizes(self.chain, batch.nodes_per_graph))

    def extra_repr(self) -> str:
        return f"{self.in_channels}, ratios={self.chain.ratios}, level={self.level}, vectors={self.chain.vectors}"


class EigenPool(ChainPool):
    """EigenPooling (Ma and others 2019): X′ = [Θ₁ᵀX, …, Θ_HᵀX], Θ_l the l-th Laplacian eigenvector of each cluster."""

    def __init__(self, in_channels: int, ratios: Sequence[float | int], level: int = 0, vectors: int = 3) -> None:
        super().__init__(in_channels, make_chain("eigen", ratios, vectors), level)


class HaarPool(ChainPool):
    """HaarPooling (Wang and others 2020): X′ = ΦᵀX, Φ the low-frequency part of the chain's Haar basis at that step."""

    def __init__(self, in_channels: int, ratios: Sequence[float | int], level: int = 0) -> None:
        super().__init__(in_channels, make_chain("haar", ratios), level)
