"""Fidelity: how far a prediction changes without the nodes that an attribution ranks first, and with them alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.inference.attribution import FloatArray, Probe
from tapnet.training.task import answers

PERCENTS = (10, 20, 30)
REPEATS = 100  # random rankings
LEVEL = 0.05  # an explanation beats chance where at most so many random rankings do as well
SMALLEST_FALL = 0.001  # of a probability: where it is 0.9999 with and without them, nothing was shown


@dataclass(frozen=True)
class Change:
    """How far the answer changes: in probability, or in the units of the number.

    Attributes:
        necessity: Without the nodes: the larger, the more the prediction rests on them.
        sufficiency: With these nodes alone: near 0 where they are all that it takes.
    """

    necessity: float
    sufficiency: float


@dataclass(frozen=True)
class RandomChange(Change):
    """The mean over random choices, and the values between which 95 % of them lie."""

    necessity_interval: tuple[float, float]
    sufficiency_interval: tuple[float, float]


@dataclass(frozen=True)
class FidelityLevel(Change):
    """The change for those nodes that have the highest attributions.

    Attributes:
        percent: So many of the graph's nodes.
        nodes: The number of nodes that is, rounded up.
        random: The change for as many random nodes.
        degree: The change for as many nodes with the highest degrees.
    """

    percent: int
    nodes: int
    random: RandomChange
    degree: Change


@dataclass(frozen=True)
class Fidelity:
    """Whether an explanation tells the nodes that a prediction rests on.

    Attributes:
        levels: For the top 10, 20 and 30 % of the nodes.
        p_value: The share of random rankings whose necessity, on the mean over the levels, is at least as large.
        beats_chance: Whether that is at most 5 %, and the probability of the target falls by more than 0.001 (a number
            changes at all) without the top nodes.
        sentence: The same in words.
    """

    levels: tuple[FidelityLevel, ...]
    p_value: float
    beats_chance: bool
    sentence: str


def measure_fidelity(probe: Probe, attribution: FloatArray, what: str) -> Fidelity:
    """Measures the fidelity of an attribution of one graph, all changes in a few forward passes.

    Args:
        probe: Of one graph.
        attribution: ``[n]`` of its nodes.
        what: What changes, such as ``"the probability of mutagenic"``.

    Returns:
        The changes for the top nodes, for random ones and for those of the highest degree.
    """
    size, rng = len(attribution), np.random.default_rng(len(attribution))
    signed = probe.signed
    top = np.argsort(-(attribution if signed else np.abs(attribution)), kind="stable")
    degree = np.argsort(-probe.encoded.degree.numpy(), kind="stable")
    shuffled = rng.permuted(np.tile(np.arange(size), (REPEATS, 1)), axis=1)
    place = np.argsort(np.vstack([top, degree, shuffled]), axis=1)  # [2 + repeats, n]
    counts = [-(-size * percent // 100) for percent in PERCENTS]
    chosen = place[:, None, :] < np.asarray(counts)[:, None]
    there = np.stack([~chosen, chosen], axis=2)  # [2 + repeats, levels, without and alone, n]
    change = _changes(probe, there.reshape(-1, size)).reshape(there.shape[:3])
    statistic = change[:, :, 0].mean(axis=1)
    p_value = float((1 + (statistic[2:] >= statistic[0]).sum()) / (1 + REPEATS))
    levels = []
    for i, (percent, count) in enumerate(zip(PERCENTS, counts, strict=True)):
        mean, (low, high) = change[2:, i].mean(axis=0), np.quantile(change[2:, i], (0.025, 0.975), axis=0)
        intervals = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        random = RandomChange(*mean.tolist(), *intervals)
        (without, alone), by_degree = change[0, i].tolist(), Change(*change[1, i].tolist())
        levels.append(FidelityLevel(without, alone, percent, count, random, by_degree))
    beats = bool(p_value <= LEVEL and statistic[0] > (SMALLEST_FALL if signed else 0))
    return Fidelity(tuple(levels), p_value, beats, _sentence(levels[1], what, beats, signed))


def _changes(probe: Probe, there: NDArray[np.bool_]) -> FloatArray:
    """``[M, n]`` which nodes are there → ``[M]`` how far the answer for the target is from that for the whole graph."""
    outputs = probe.part_outputs(torch.zeros(len(there), dtype=torch.int64), torch.from_numpy(there).flatten())
    with torch.inference_mode():
        both = answers(probe.network, torch.cat([probe.outputs, outputs])).double().numpy()
    said = both[:, int(probe.target[0])]
    change: FloatArray = said[0] - said[1:]
    return np.abs(change) if probe.network.task == "regression" else change


def _sentence(level: FidelityLevel, what: str, beats: bool, signed: bool) -> str:
    def change(fall: float) -> str:
        return f"{round(-fall, 3) + 0.0:+.3f}" if signed else f"{fall:.3g}"  # of a probability, or in a number's units

    low, high = sorted(level.random.necessity_interval, reverse=signed)
    nodes, random = ("node", "a random one") if level.nodes == 1 else (f"{level.nodes} nodes", "as many random ones")
    return (
        f"Without the top {nodes} ({level.percent} %) {what} changes by {change(level.necessity)}, without {random} by "
        f"{change(level.random.necessity)} (95 % between {change(low)} and {change(high)}): the explanation "
        f"{'beats' if beats else 'does not beat'} chance on this graph."
    )
