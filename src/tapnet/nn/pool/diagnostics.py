"""What a pooling layer did to graphs: how much is left, how it is connected, whether clusters collapsed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from torch import Tensor

from tapnet._loops.jit import Array, array
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.pool.base import Pooled
from tapnet.ops.connectivity import components


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
        stability: how far networks of other seeds keep the same nodes: 1 if they all are, 0 if as many are as by
            chance. None of a single trial, and where nodes are merged.
    """

    nodes: float | None = None
    edges: float | None = None
    isolated: float | None = None
    components: float | None = None
    entropy: float | None = None
    empty: float | None = None
    degree_correlation: float | None = None
    stability: float | None = None

    def __post_init__(self) -> None:
        if any(not (value is None or isinstance(value, float)) for value in vars(self).values()):
            raise TypeError(f"diagnostics are numbers, not {self!r}")

    def __str__(self) -> str:
        """In words: "80 % of the nodes left, 71 % of the edges, …"."""
        words = {
            "nodes": "{:.0%} of the nodes left",
            "edges": "{:.0%} of the edges",
            "isolated": "{:.0%} of the nodes isolated",
            "components": "{:.1f} components",
            "entropy": "entropy of the assignment {:.2f}",
            "empty": "{:.0%} of the clusters empty",
            "degree_correlation": "rank correlation of scores and degrees {:.2f}",
            "stability": "stability over seeds {:.2f} (0: as by chance, 1: the same nodes)",
        }
        known = [text.format(value) for name, text in words.items() if (value := getattr(self, name)) is not None]
        return ", ".join(known).replace("%", " %")

    @classmethod
    def mean(cls, several: Iterable[PoolDiagnostics]) -> PoolDiagnostics:
        """The means of those that are not None."""
        several = list(several)
        columns = {f.name: [v for d in several if (v := getattr(d, f.name)) is not None] for f in fields(cls)}
        return cls(**{name: _rounded(np.mean(values)) for name, values in columns.items() if values})


Columns = dict[str, Array]  # [B] each, by the names of PoolDiagnostics; NaN where it does not apply


def summarize(parts: Sequence[Columns]) -> PoolDiagnostics:
    """The means over the graphs of several batches."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    known = {name: values[np.isfinite(values)] for name, values in columns.items()}
    return PoolDiagnostics(**{name: _rounded(values.mean()) for name, values in known.items() if len(values)})


def diagnose(batch: GraphBatch | DenseBatch, pooled: Pooled) -> Columns:
    """What a layer made of each graph of a batch.

    Args:
        batch: the graphs that came in.
        pooled: what the layer returned.
    """
    count = batch.num_graphs
    sizes = _array(batch.nodes_per_graph)
    graph = np.repeat(np.arange(count), sizes)
    found: Columns = {f.name: np.full(count, np.nan) for f in fields(PoolDiagnostics)}
    with np.errstate(divide="ignore", invalid="ignore"):
        found["nodes"] = _array(pooled.batch.nodes_per_graph) / sizes
        if isinstance(batch, GraphBatch) and isinstance(pooled.batch, GraphBatch):
            found |= _structure(batch, pooled.batch)
        if isinstance(batch, GraphBatch) and pooled.scores is not None:
            scores, degree = _array(pooled.scores), _array(batch.row_sum)
            found["degree_correlation"] = rank_correlation(scores, degree, graph, count)
        if pooled.assignment is not None and pooled.assignment.dim() == 2:
            found |= _clusters(_array(pooled.assignment), graph, sizes)
    return found


def rank_correlation(a: Array, b: Array, graph: Array, count: int) -> Array:
    """[B] Spearman's correlation of two values of each node, [N] each, within each graph; NaN where one is constant."""
    x, y = (_ranks(values, graph) for values in (a, b))
    sizes = np.bincount(graph, minlength=count)
    x, y = (ranks - (np.bincount(graph, ranks, count) / sizes)[graph] for ranks in (x, y))
    xy, xx, yy = (np.bincount(graph, product, count) for product in (x * y, x * x, y * y))
    correlation: Array = xy / np.sqrt(xx * yy)
    return correlation


def _ranks(values: Array, graph: Array) -> Array:
    """[N] ranks within each graph but for a constant; equal values have the mean of theirs. NaN stays NaN."""
    order = np.lexsort((values, graph))
    v, g = values[order], graph[order]
    starts = np.r_[True, (v[1:] != v[:-1]) | (g[1:] != g[:-1])][: len(v)]
    tie = np.cumsum(starts) - 1
    ranks = np.empty(len(v))
    ranks[order] = (np.bincount(tie, np.arange(len(v))) / np.bincount(tie))[tie]
    ranks[np.isnan(values)] = np.nan
    return ranks


def _structure(before: GraphBatch, after: GraphBatch) -> Columns:
    graph, count = _array(after.graph), after.num_graphs
    first = _array(components(after.edge_index, after.num_nodes)) == np.arange(after.num_nodes)
    return {
        "edges": _array(_edges(after)) / _array(_edges(before)),
        "isolated": np.bincount(graph, _array(after.isolated), count) / np.bincount(graph, minlength=count),
        "components": np.bincount(graph, first, count),
    }


def _edges(batch: GraphBatch) -> Tensor:
    """[B]"""
    return batch.rowptr.index_select(0, batch.ptr).diff()


def _clusters(s: Array, graph: Array, sizes: Array) -> Columns:
    clusters = s.shape[1]
    entropy = -(s * np.log(np.maximum(s, 1e-15))).sum(axis=1) / max(np.log(clusters), 1e-15)
    used = np.unique(graph * clusters + s.argmax(axis=1)) // clusters
    return {
        "entropy": np.bincount(graph, entropy, len(sizes)) / sizes,
        "empty": 1 - np.bincount(used, minlength=len(sizes)) / clusters,
    }


def _array(values: Tensor) -> Array:
    return array(values.detach().cpu())


def _rounded(value: float) -> float:
    """Six digits, as a stored trial has them."""
    return float(f"{value:.6g}")
