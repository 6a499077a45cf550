"""Data in shards, each on the disk of one machine: which process trains on which, and on what if a machine is lost.

An epoch is a sequence of *turns*. In a turn every process trains on one shard that its machine holds; a shard that no
machine holds any more, or that is left over, is shared by all. The processes average the gradients of every step, so
that they have the same number of steps in a turn. A checkpoint between two turns needs the shards that are done; the
turns of the others are planned anew by however many processes there are then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.models.base import GraphClassifier
from tapnet.training.distributed import ProcessGroup
from tapnet.training.shuffle import shuffle
from tapnet.training.trainer import train_steps

Turn = tuple[int, ...]


def plan_turns(held: Sequence[Collection[int]], shards: Collection[int]) -> list[Turn]:
    """Decides who trains on which shard.

    Args:
        held: for each process the shards that its machine holds.
        shards: those to train on.

    Returns:
        Turns, each with one shard for every process; processes with the same shard share its graphs. Every shard is in
        one turn.

    Example:
        >>> plan_turns([[0, 3], [1, 4]], range(6))  # the machine that held 2 and 5 is lost
        [(0, 1), (3, 4), (2, 2), (5, 5)]
    """
    own: list[list[int]] = [[] for _ in held]
    for shard in sorted(shards):
        holders = [process for process, some in enumerate(held) if shard in some]
        if holders:
            own[min(holders, key=lambda process: len(own[process]))].append(shard)
    turns = list(zip(*own, strict=False))
    left = sorted(set(shards).difference(*turns))
    return turns + [(shard,) * len(held) for shard in left]


def graphs_of_turn(turn: Turn, process: int, num_graphs: int) -> Tensor:
    """The graphs of its shard that a process trains on: all, or its part of those that several share.

    Args:
        turn: the shard of every process.
        process: whose graphs are asked for.
        num_graphs: of the process's shard.

    Returns:
        Their numbers, in order.
    """
    sharing = [other for other, shard in enumerate(turn) if shard == turn[process]]
    return torch.arange(num_graphs).tensor_split(len(sharing))[sharing.index(process)]


def steps_of_turn(sizes: Sequence[int], batch_size: int) -> int:
    """The number of steps of a turn, the same for all processes.

    Args:
        sizes: how many graphs each process has in this turn.
        batch_size: how many graphs a process takes of a step; more where another has few in all.

    Raises:
        ValueError: if a process has no graph.
    """
    if min(sizes) == 0:
        raise ValueError(f"every process needs a graph to train on; they have {', '.join(map(str, sizes))}")
    return min(min(sizes), -(-max(sizes) // batch_size))


def train_turn(
    model: GraphClassifier,
    optimizer: torch.optim.Optimizer,
    dataset: GraphDataset,
    graphs: Tensor,
    *,
    batch_size: int,
    sizes: Sequence[int],
    group: ProcessGroup,
    generator: torch.Generator,
) -> float:
    """Trains on every graph of a turn once, in a random order.

    Args:
        model: the network, as ``group.join`` returned it.
        optimizer: of the network's parameters.
        dataset: this process's shard.
        graphs: [n] those of it to train on.
        batch_size: how many graphs a process takes of a step; more where another has few in all.
        sizes: how many graphs each process has in this turn.
        group: the processes; each has data of its own.
        generator: of the order.

    Returns:
        The mean loss of a graph, of all processes.

    Raises:
        ValueError: if a process has no graph.
    """
    steps = shuffle(graphs, dataset, generator).tensor_split(steps_of_turn(sizes, batch_size))
    return train_steps(model, optimizer, dataset, steps, group=group)
