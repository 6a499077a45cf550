"""What a pooling layer did to graphs: how much is left, how it is connected, whether clusters collapsed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from tapnet._loops.jit import Array
from tapnet.data.batch import GraphBatch
from tapnet.nn.pool.base import Pooled
from tapnet.ops.connectivity import component_labels


@dataclass(frozen=True)
class PoolDiagnostics:
    """Means over graphs of what one pooling layer did; None where it does not apply.

    Attributes:
        nodes: the nodes that are left, as a share of those that came in.
        edges: the edges that are left, likewise; None of soft clusters, which are all linked.
        isolated: the share of the nodes left that have no neighbour.
        components: the number of connected components that are left.
        entropy: of a node's assignment to K clusters, as a share of log K: 1 where it is in all of them alike.
        empty: the share of the clusters that no node is most in.
        degree_correlation: Spearman's rank correlation of the nodes' scores with their degrees.
    """

    nodes: float | None = None
    edges: float | None = None
    isolated: float | None = None
    components: float | None = None
    entropy: float | None = None
    empty: float | None = None
    degree_correlation: float | None = None

    @classmethod
    def mean(cls, several: Iterable[PoolDiagnostics]) -> PoolDiagnostics:
        """The means of those that are not None."""
        several = list(several)
        columns = {f.name: [v for d in several if (v := getattr(d, f.name)) is not None] for f in fields(cls)}
        return cls(**{name: _rounded(np.mean(values)) for name, values in columns.items() if values})


Columns = dict[str, Array]  # [B] each, by the names of PoolDiagnostics; NaN where it does not apply


def diagnose_levels(levels: Sequence[Pooled]) -> list[Columns]:
    """Of each pooling layer, given the levels of a network: the graphs that came in, then what each layer made."""
    return [diagnose(before.batch, after) for before, after in pairwise(levels)]


def summarize(parts: Sequence[Columns]) -> PoolDiagnostics:
    """The means over the graphs of several batches."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    known = {name: values[np.isfinite(values)] for name, values in columns.items()}
    return PoolDiagnostics(**{name: _rounded(values.mean()) for name, values in known.items() if len(values)})


def diagnose(batch: GraphBatch | object, pooled: Pooled) -> Columns:
    """What a layer made of each graph of a batch.

    Args:
        batch: the graphs that came in.
        pooled: what it returned.
    """
    count = pooled.batch.num_graphs
    found = {f.name: np.full(count, np.nan) for f in fields(PoolDiagnostics)}
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(batch, GraphBatch):
            sizes = _array(batch.nodes_per_graph)
            found["nodes"] = _array(pooled.batch.nodes_per_graph) / sizes
            if isinstance(pooled.batch, GraphBatch):
                found |= _structure(batch, pooled.batch)
            graph = _array(batch.graph)
            if pooled.scores is not None:
                scores, degree = _array(pooled.scores), _array(batch.row_sum)
                found["degree_correlation"] = rank_correlation(scores, degree, graph, count)
        else:  # soft clusters of soft clusters
            sizes = _array(pooled.batch.nodes_per_graph) * 0 + len(_array(pooled.x)) // max(count, 1)
            graph = np.repeat(np.arange(count), sizes)
        if pooled.assignment is not None and pooled.assignment.dim() == 2:
            found |= _clusters(_array(pooled.assignment), graph, count)
    return found
