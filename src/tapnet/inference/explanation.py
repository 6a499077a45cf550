"""GraphExplanation: what a prediction rests on, with the measure of its truth, and what pooling kept."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapnet.inference.attribution import DEFAULT_METHOD, Method
from tapnet.inference.attribution_fidelity import Fidelity
from tapnet.inference.attribution_stability import Stability
from tapnet.inference.explain import Layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tapnet.inference.explain_graph import ExplainedGraph

ROWS_PRINTED = 10  # nodes of a table
GROUPS_PRINTED = 5
BAR = 20  # characters


# ---- attribution ----


@dataclass(frozen=True)
class NodeAttribution:
    """What a node does for the prediction.

    Attributes:
        node: Its name in the graph.
        attribution: Above 0 where it speaks for the target (or raises the number), below 0 against it.
        kept: How many pooling layers kept it; None where none keeps nodes.
        error: The standard error of a Shapley value that is sampled, else None.
    """

    node: Hashable
    attribution: float
    kept: int | None = None
    error: float | None = None


@dataclass(frozen=True)
class EdgeAttribution:
    """What the value loses without an edge; by the surrogate, what the edge and its ends do."""

    source: Hashable
    target: Hashable
    attribution: float


@dataclass(frozen=True)
class GroupAttribution:
    """What the value loses without several nodes at once.

    Attributes:
        kind: ``"component"``, ``"piece"`` (connected top nodes), ``"ring"`` or ``"functional group"``.
        name: Such as ``"nitro"``.
        nodes: Their names.
        attribution: What the value loses without them.
    """

    kind: str
    name: str
    nodes: tuple[Hashable, ...]
    attribution: float


# ---- what pooling kept ----


@dataclass(frozen=True)
class NodeVotes:
    """A node that came into a pooling layer: whether it was kept, its score and the parts of it."""

    node: Hashable  # its name in the graph
    kept: bool
    score: float
    local: float | None = None  # the parts of the score, where TAP gave it
    global_: float | None = None
    connectivity: float | None = None


@dataclass(frozen=True)
class LayerExplanation:
    """What one pooling layer kept of the nodes that came in, highest score first."""

    nodes: tuple[NodeVotes, ...]

    @property
    def kept(self) -> tuple[NodeVotes, ...]:
        """The nodes that went on."""
        return tuple(n for n in self.nodes if n.kept)

    def headline(self, number: int) -> str:
        """How many nodes the layer of this number kept."""
        return f"pooling layer {number}: {len(self.kept)} of {len(self.nodes)} nodes kept"

    @classmethod
    def of(cls, layer: Layer, names: Sequence[Hashable]) -> LayerExplanation:
        """A layer by the names of the nodes."""
        parts = [layer.score, layer.local, layer.global_, layer.connectivity]
        columns = [part.tolist() if part is not None else [None] * len(layer.nodes) for part in parts]
        rows = zip(layer.nodes.tolist(), layer.kept.tolist(), *columns, strict=True)
        nodes = [NodeVotes(names[number], *values) for number, *values in rows]
        return cls(tuple(sorted(nodes, key=lambda n: (not n.kept, -n.score))))


# ---- both ----


@dataclass(frozen=True, repr=False)
class GraphExplanation:
    """A prediction, what each node and edge does for it, how far that is true, and what pooling kept.

    Printed as a table; ``pandas.DataFrame(explanation.nodes)`` has all nodes. A layer's score says which nodes it
    kept. It does not measure a node's effect on the prediction: the attribution does.

    Attributes:
        prediction: The predicted class, the labels above 50 %, or the number (by name, where there are several).
        probabilities: Of the classes or labels; empty for numbers.
        layers: What each pooling layer kept; none where layers merge nodes or there are none.
        graph: The graph that ``plot`` draws.
        nodes: The attribution of every node, in the order of the graph.
        edges: The attribution of every edge.
        groups: That of groups of nodes which are removed together, the largest first.
        fidelity: How far the prediction changes without the top nodes and with them alone, against chance.
        method: Of the nodes' attribution.
        target: The class, label or number that is spoken of.
        unit: What an attribution is measured in, such as ``"log odds of mutagenic"``.
        value: What the network says of the graph, in that unit.
        baseline: The same without any node; for gradients, with all features zero.
        stability: How far the networks of an ensemble agree on the attribution; None for a single network.
    """

    prediction: Any
    probabilities: dict[Any, float]
    layers: tuple[LayerExplanation, ...] = ()
    graph: ExplainedGraph | None = field(default=None, compare=False)
    nodes: tuple[NodeAttribution, ...] = ()
    edges: tuple[EdgeAttribution, ...] = ()
    groups: tuple[GroupAttribution, ...] = ()
    fidelity: Fidelity | None = None
    method: Method = DEFAULT_METHOD
    target: Any = None
    unit: str = ""
    value: float = 0.0
    baseline: float = 0.0
    stability: Stability | None = None

    def plot(self, *, kept: bool = False) -> Figure:
        """Draws the graph with the attribution of its nodes and edges; a notebook displays the figure.

        Args:
            kept: Whether a second row shows what each pooling layer kept.

        Returns:
            The figure of :func:`tapnet.viz.draw_attributions`.
        """
        if self.graph is None:
            raise ValueError("there is no graph to plot: take the explanation from the method explain of a model")
        # By name, as pandas loads its plotting: drawing comes after inference, which needs none of it.
        figure: Figure = import_module("tapnet.viz").draw_attributions([self], kept=kept)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Everything but the scores of the pooling layers, as values that JSON can hold."""
        nodes, edges, groups = ([asdict(row) for row in rows] for rows in (self.nodes, self.edges, self.groups))
        for row in nodes:
            row["node"] = _plain(row["node"])
        for row in edges:
            row |= {end: _plain(row[end]) for end in ("source", "target")}
        for row in groups:
            row["nodes"] = [_plain(node) for node in row["nodes"]]
        prediction = self.prediction
        if isinstance(prediction, Mapping):
            prediction = {str(name): value for name, value in prediction.items()}
        elif isinstance(prediction, tuple):
            prediction = [_plain(label) for label in prediction]
        return {
            "graph": None if self.graph is None else self.graph.name,
            "prediction": _plain(prediction) if not isinstance(prediction, list | dict) else prediction,
            "probabilities": {str(name): value for name, value in self.probabilities.items()},
            "method": self.method,
            "target": _plain(self.target),
            "unit": self.unit,
            "value": self.value,
            "baseline": self.baseline,
            "nodes": nodes,
            "edges": edges,
            "groups": groups,
            "fidelity": None if self.fidelity is None else asdict(self.fidelity),
            "stability": None if self.stability is None else asdict(self.stability),
        }

    # ---- as text ----

    def report(self) -> str:
        """The prediction, the nodes with the largest attributions, groups, fidelity, and how many nodes were kept."""
        lines = [self._headline() if self.graph is None else str(self.graph), *self._attribution_lines()]
        return "\n".join([*lines, *(layer.headline(number) for number, layer in enumerate(self.layers, 1))])

    def __repr__(self) -> str:
        lines = [self._headline(), *self._attribution_lines()]
        for number, layer in enumerate(self.layers, 1):
            lines.append(layer.headline(number))
            lines += _votes(layer.kept[:ROWS_PRINTED], 3 + len(str(len(layer.nodes))))  # votes are about 1/n
            if len(layer.kept) > ROWS_PRINTED:
                lines.append(f"  … and {len(layer.kept) - ROWS_PRINTED} more")
        return "\n".join(lines)

    def _headline(self) -> str:
        said = self.prediction
        if isinstance(said, Mapping):
            said = ", ".join(f"{name} {value:.4g}" for name, value in said.items())
        elif isinstance(said, tuple):
            said = ", ".join(map(str, said)) or "no label"
        elif isinstance(said, float) and not self.probabilities:
            said = f"{said:.4g}"
        chances = ", ".join(f"{name} {p:.3f}" for name, p in self.probabilities.items())
        return f"prediction: {said}" + (f" ({chances})" if chances else "")

    def _attribution_lines(self) -> Iterator[str]:
        if not self.nodes:
            return
        yield f"attribution by {self.method} ({self.unit})"
        ordered = sorted(self.nodes, key=lambda n: -abs(n.attribution))[:ROWS_PRINTED]
        largest = abs(ordered[0].attribution) or 1.0
        heads = ["node", "attribution", *(["error"] if ordered[0].error is not None else [])]
        heads += ["kept"] if ordered[0].kept is not None else []
        rows = [heads]
        for n in ordered:
            cells = [str(n.node), f"{n.attribution:+.3g}", *([f"{n.error:.2g}"] if n.error is not None else [])]
            rows.append(cells + ([str(n.kept)] if n.kept is not None else []))
        bars = ["", *("#" * round(BAR * abs(n.attribution) / largest) for n in ordered)]
        yield from (f"{row}  {bar}".rstrip() for row, bar in zip(_columns(rows), bars, strict=True))
        if len(self.nodes) > ROWS_PRINTED:
            yield f"  … and {len(self.nodes) - ROWS_PRINTED} more nodes"
        if self.groups:
            yield "groups removed at once"
            rows = [[group.name, f"{group.attribution:+.3g}", _some(group.nodes)] for group in self.groups]
            yield from (row.rstrip() for row in _columns(rows[:GROUPS_PRINTED], left=(0, 2)))
        if self.fidelity is not None:
            what = "the probability falls" if self.probabilities else "the number changes"
            yield from _fidelity_lines(self.fidelity, what)
        if self.stability is not None:
            yield self.stability.sentence


def _fidelity_lines(fidelity: Fidelity, what: str) -> Iterator[str]:
    yield f"fidelity: how far {what} without the top nodes, and with them alone"
    rows = [["top", "nodes", "without", "random (95 %)", "degree", "alone", "random (95 %)", "degree"]]
    for level in fidelity.levels:
        row = [f"{level.percent} %", str(level.nodes)]
        for what in ("necessity", "sufficiency"):
            values = [getattr(change, what) for change in (level, level.random, level.degree)]
            top, mean, degree = (f"{round(value, 3) + 0.0:.3f}" for value in values)  # no -0.000
            low, high = (f"{round(value, 3) + 0.0:.3f}" for value in getattr(level.random, f"{what}_interval"))
            row += [top, f"{mean} ({low} to {high})", degree]
        rows.append(row)
    yield from _columns(rows)
    yield fidelity.sentence


def _votes(nodes: Sequence[NodeVotes], decimals: int) -> list[str]:
    """One line for each node under a line of headings; parts of the score that there are not have no column."""
    names = [name for name in ("score", "local", "global_", "connectivity") if getattr(nodes[0], name) is not None]
    rows = [["node", *(name.rstrip("_") for name in names)]]
    rows += [[str(n.node), *(f"{getattr(n, name):.{decimals}f}" for name in names)] for n in nodes]
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Lines of equal length; some columns stand on the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = (
        [cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    return ["  " + "  ".join(cells) for cells in aligned]


def _some(nodes: Sequence[Hashable]) -> str:
    return ", ".join(map(str, nodes[:8])) + (", …" if len(nodes) > 8 else "")


def _plain(value: Any) -> Any:
    """A value that JSON can hold: itself, or its text."""
    value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
