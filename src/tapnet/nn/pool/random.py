"""RandomPool, FixedRandomPool and RandomClustersPool: nodes and clusters by chance, three controls."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.ranges import offsets
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled, PoolSetup
from tapnet.nn.pool.merge import Clusters, MergePooling
from tapnet.nn.pool.select import SelectPooling, best_nodes, check_ratio, kept_nodes


class RandomPool(SelectPooling):
    """Keeps nodes by chance: what a layer that selects nodes has to beat.

    While training the nodes are drawn anew at each call, unless ``fixed``. In evaluation they follow from the seed and
    each node's place in its graph, so a graph has the same nodes alone and in a batch. The kept rows go on as they are.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the share of each graph's nodes that is kept, or their number. (default: ``0.5``)
        seed (int): of the nodes that are kept in evaluation. (default: ``0``)
        fixed (bool): whether the same nodes are kept while training. (default: ``False``)
    """

    about = "a control: keeps nodes by chance, drawn anew at each step of training; nothing is learned"
    cost = "O(N·d + E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, ratio: float | int = 0.5, seed: int = 0, fixed: bool = False) -> None:
        super().__init__(in_channels, ratio)
        self.seed, self.fixed = seed, fixed

    @classmethod
    def build(cls, setup: PoolSetup) -> RandomPool:
        """With the level as its seed."""
        return cls(setup.in_channels, setup.ratio, seed=setup.level)

    def score(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Random numbers."""
        return random_scores(batch, self.seed, self.training and not self.fixed)

    def scale(self, rows: Tensor, score: Tensor) -> Tensor:
        """As they are."""
        return rows

    def kept_by(self, pooled: Pooled, batch: GraphBatch | DenseBatch, generator: torch.Generator) -> Tensor | None:
        """As many nodes of each graph, drawn anew; unless ``fixed``, those that were kept."""
        if self.fixed or not isinstance(batch, GraphBatch):
            return pooled.perm
        return best_nodes(torch.rand(batch.num_nodes, generator=generator).to(batch.ptr.device), self.ratio, batch)[0]


class FixedRandomPool(RandomPool):
    """Keeps nodes by chance, the same ones of a graph in training and evaluation: `RandomPool` with ``fixed``."""

    about = "a control: keeps nodes by chance, the same ones of a graph at every step; nothing is learned"

    @classmethod
    def build(cls, setup: PoolSetup) -> FixedRandomPool:
        """With the level as its seed."""
        return cls(setup.in_channels, setup.ratio, seed=setup.level, fixed=True)


class RandomClustersPool(MergePooling):
    """Puts nodes into clusters by chance: what a layer that merges nodes has to beat.

    Each graph of n nodes has ⌈ratio · n⌉ clusters, whose sizes differ by one at most; the maximum over a cluster goes
    on. Drawn as in ``RandomPool``.

    Args:
        in_channels (int): d, the size of each node's features.
        ratio (float or int): the clusters for a node of a graph, or their number. (default: ``0.5``)
        seed (int): of the clusters in evaluation. (default: ``0``)
    """

    paper = "Mesquita, Souza, Kaski: Rethinking Pooling in Graph Neural Networks, NeurIPS"
    year = 2020
    about = "a control: merges clusters of nodes by chance, drawn anew at each step of training, their maximum"
    cost = "O(N·(d + log N) + E)"
    memory = "O(N·d + E)"

    def __init__(self, in_channels: int, ratio: float | int = 0.5, seed: int = 0) -> None:
        super().__init__(in_channels)
        self.ratio, self.seed = check_ratio(ratio), seed

    @classmethod
    def build(cls, setup: PoolSetup) -> RandomClustersPool:
        """With the level as its seed."""
        return cls(setup.in_channels, setup.ratio, seed=setup.level)

    def clusters(self, batch: GraphBatch) -> Clusters:
        """The nodes of each graph in a random order, dealt out to its clusters."""
        score = random_scores(batch, self.seed, self.training)
        order = torch.argsort(score)
        order = order[torch.argsort(batch.graph[order], stable=True)]
        count = kept_nodes(self.ratio, batch.nodes_per_graph)
        ptr = offsets(count)
        cluster = ptr[batch.graph] + node_places(batch) % count.clamp(min=1)[batch.graph]
        return Clusters(torch.empty_like(order).index_copy_(0, order, cluster), ptr)


def random_scores(batch: GraphBatch, seed: int, anew: bool) -> Tensor:
    """[N] numbers from 0 to 1: new ones, or those of the seed and each node's place in its graph."""
    if anew:
        return torch.rand(batch.num_nodes, device=batch.ptr.device)
    place = node_places(batch)
    numbers = np.random.default_rng(seed).random(int(place.max()) + 1 if len(place) else 0)
    return torch.from_numpy(numbers).to(place.device)[place]


def node_places(batch: GraphBatch) -> Tensor:
    """[N] the number of each node within its graph."""
    return torch.arange(batch.num_nodes, device=batch.ptr.device) - batch.ptr[batch.graph]
