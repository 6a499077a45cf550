"""Stability: how far the networks of an ensemble agree on what a prediction rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from tapnet.inference.attribution import FloatArray, Method, Probe
from tapnet.inference.ensemble import networks_of

TOP = 0.2  # of the nodes


@dataclass(frozen=True)
class Stability:
    """How far the networks of an ensemble agree in their attributions of a graph's nodes.

    Attributes:
        members: The number of networks.
        correlation: Spearman's rank correlation, the mean over all pairs of networks; None where all nodes of a graph
            have the same attribution.
        top: The share of the top 20 % of the nodes that two networks have in common, the mean over all pairs.
        sentence: The same in words.
    """

    members: int
    correlation: float | None
    top: float
    sentence: str


def measure_stability(probe: Probe, method: Method) -> Stability | None:
    """Attributes the prediction of one graph by each network of an ensemble, and compares.

    Args:
        probe: Of one graph.
        method: Of the attribution.

    Returns:
        How far they agree; None for a single network.
    """
    networks = networks_of(probe.network)
    if len(networks) < 2:
        return None
    probes = (Probe(network, probe.encoded, probe.target) for network in networks)
    return compare_attributions([p.attributions(method, edges=False).nodes for p in probes], probe.signed)


def compare_attributions(attributions: Sequence[FloatArray], signed: bool = True) -> Stability:
    """How far several attributions of the same nodes agree.

    Args:
        attributions: At least two, ``[n]`` each.
        signed: Whether the top nodes are those with the highest attributions, or with the largest of either sign.
    """
    size = len(attributions[0])
    count = max(1, round(TOP * size))
    ranks = [rankdata(values) for values in attributions]
    strength = (values if signed else np.abs(values) for values in attributions)
    first = [set(np.argsort(-values, kind="stable")[:count].tolist()) for values in strength]
    pairs = list(combinations(range(len(attributions)), 2))
    known = [float(np.corrcoef(ranks[i], ranks[j])[0, 1]) for i, j in pairs if min(np.ptp(ranks[i]), np.ptp(ranks[j]))]
    correlation = float(np.mean(known)) if known else None
    top = float(np.mean([len(first[i] & first[j]) / count for i, j in pairs]))
    words = "" if correlation is None else f" (rank correlation of all nodes {correlation:.2f})"
    sentence = (
        f"Two of the ensemble's {len(attributions)} networks have {top:.0%} of their top {TOP:.0%} of the nodes in "
        f"common, on the mean over all pairs{words}; by chance it is {count / size:.0%}."
    )
    return Stability(len(attributions), correlation, top, sentence.replace("%", " %"))
