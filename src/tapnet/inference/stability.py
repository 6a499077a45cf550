"""Which nodes pooling keeps: the same ones with other seeds? Those that carry the signal, where they are known?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.inference.explain import pooling_steps
from tapnet.models.base import GraphClassifier


def selection_stability(models: Sequence[GraphClassifier], dataset: GraphDataset, batch_size: int = 256) -> list[float]:
    """The share of the nodes kept by one network that another one keeps too.

    Two networks that keep half of the nodes by chance have half of theirs in common.

    Args:
        models: At least two networks of the same architecture, such as those of a trial with several seeds; they are
            put into evaluation mode.
        dataset: Graphs to pool, prepared for the networks.
        batch_size: So many graphs at once.

    Returns:
        Of each pooling layer, by the nodes of the graphs as they came into the network: the mean over the graphs and
        the pairs of networks.

    Raises:
        SettingError: If there are fewer than two networks, or a layer merges nodes instead of keeping some.

    Example:
        >>> from tapnet import TAPNet, load_dataset
        >>> models = [TAPNet(7, 2, ratios=(0.8,)) for _ in range(2)]
        >>> 0 < min(selection_stability(models, load_dataset("MUTAG"))) <= 1
        True
    """
    if len(models) < 2:
        raise SettingError(f"what is the same is a question to at least two networks, not {len(models)}")
    shares: list[list[Tensor]] = []
    for graphs in torch.arange(len(dataset)).split(batch_size):
        batch = dataset.batch(graphs)
        kept = [_kept_nodes(model.eval(), batch) for model in models]
        if len({len(layers) for layers in kept}) > 1:
            raise SettingError("networks with other numbers of pooling layers keep nothing that can be compared")
        shares.append([_common(layers, batch) for layers in zip(*kept, strict=True)])
    return [float(torch.cat(parts).mean()) for parts in zip(*shares, strict=True)]


def selection_recall(
    model: GraphClassifier, dataset: GraphDataset, truth: Tensor, batch_size: int = 256
) -> list[tuple[float, float]]:
    """Whether pooling keeps the nodes that carry the signal, where these are known.

    Args:
        model: A network whose pooling layers keep nodes; it is put into evaluation mode.
        dataset: Graphs to pool, prepared for the network.
        truth: ``[N]`` of each node of all graphs, whether the class depends on it, as `tapnet.data.generate.generate`
            returns it and `tapnet.io.tu.read_node_truth` reads it.
        batch_size: So many graphs at once.

    Returns:
        Of each pooling layer, by the nodes of the graphs as they came into the network: the share of the nodes of the
        truth that are left, and that of all nodes, which is what chance would leave. Means over the graphs that have
        nodes of the truth. Empty for a network without pooling.

    Raises:
        SettingError: If the truth is of another number of nodes or has none, or a layer merges nodes.

    Example:
        >>> from tapnet import TAPNet
        >>> from tapnet.data.generate import generate
        >>> dataset, truth = generate("needle", graphs=20, nodes=30)
        >>> (recall, nodes), *_ = selection_recall(TAPNet(8, 2, ratios=(0.8, 0.5)), dataset, truth)
        >>> round(nodes, 1)
        0.8
    """
    if truth.shape != (dataset.num_nodes,):
        raise SettingError(f"truth has a value for each of {dataset.num_nodes:,} nodes, not the shape {[*truth.shape]}")
    shares: list[Tensor] = []  # [layers, 2, graphs with nodes of the truth]
    start = 0
    for graphs in torch.arange(len(dataset)).split(batch_size):
        batch = dataset.batch(graphs)
        relevant = truth[start : start + batch.num_nodes].float()
        start += batch.num_nodes
        if not (layers := _kept_nodes(model.eval(), batch)):
            return []
        kept = torch.stack(layers)
        counts = [_count(nodes, batch) for nodes in (kept * relevant, relevant, kept, torch.ones_like(relevant))]
        has_truth = counts[1] > 0
        found, wanted, left, nodes = (count[..., has_truth] for count in counts)
        shares.append(torch.stack([found / wanted, left / nodes], dim=1))
    means = torch.cat(shares, dim=2).mean(2)
    if not means.isfinite().all():
        raise SettingError("no graph has a node of the truth")
    return [(float(recall), float(nodes)) for recall, nodes in means]


def corrected_overlap(kept: Array, others: Array, sizes: Array) -> Array:
    """How far two selections of nodes are the same, corrected for chance.

    Of n nodes, let one selection have a, the other b, and both have s in common. Chosen by chance they would have
    ab/n in common, and they can have min(a, b): the value is (s − ab/n) / (min(a, b) − ab/n). For a = b it is the
    correlation of the two selections, and Cohen's κ.

    Args:
        kept: ``[N]`` whether each node of all graphs is in the one selection.
        others: ``[N]`` likewise, of the other.
        sizes: ``[B]`` the nodes of each graph, n.

    Returns:
        ``[B]`` of each graph: 1 for the same nodes, 0 on average by chance; NaN where all or none of the nodes are
        kept, so that there is no choice.

    Example:
        >>> first, second = np.array([1, 1, 0, 0, 1, 0]), np.array([1, 1, 0, 0, 0, 1])
        >>> corrected_overlap(first, second, sizes=np.array([4, 2])).tolist()
        [1.0, -1.0]
    """
    graph = np.repeat(np.arange(len(sizes)), sizes)
    a, b, both = (np.bincount(graph, nodes, len(sizes)) for nodes in (kept, others, kept & others))
    with np.errstate(divide="ignore", invalid="ignore"):
        by_chance, most = a * b / sizes, np.minimum(a, b)
        return np.where(most > by_chance, (both - by_chance) / (most - by_chance), np.nan)


def _kept_nodes(model: GraphClassifier, batch: GraphBatch) -> list[Tensor]:
    """[N] of each pooling layer: whether a node of the graphs as they came in is kept."""
    nodes, layers = torch.arange(batch.num_nodes), []
    for layer, before, pooled in pooling_steps(model, batch)[0]:
        if pooled.perm is not None:
            nodes = nodes[pooled.perm]
            layers.append(torch.zeros(batch.num_nodes).index_fill_(0, nodes, 1))
        elif pooled.batch is not before:
            raise SettingError(f"{type(layer).__name__} merges nodes: there are no kept ones to compare")
    return layers


def _common(kept: Sequence[Tensor], batch: GraphBatch) -> Tensor:
    """[pairs · B] the nodes that two networks keep, as a share of those that the one keeps that keeps more."""
    counts = [(_count(a * b, batch), _count(a, batch), _count(b, batch)) for a, b in combinations(kept, 2)]
    return torch.cat([both / torch.maximum(first, second).clamp(min=1) for both, first, second in counts])


def _count(nodes: Tensor, batch: GraphBatch) -> Tensor:
    """[…, N] zeros and ones → […, B] the ones of each graph."""
    return nodes.new_zeros(*nodes.shape[:-1], batch.num_graphs).index_add_(-1, batch.graph, nodes)
