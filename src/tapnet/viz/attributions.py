"""Pictures of attributions: graphs and molecules whose nodes and edges show what they do for a prediction."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tapnet.files import printable
from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.graphs import DROPPED, draw_edges, draw_graph, edge_width, node_marks, node_size
from tapnet.viz.molecules import atom_positions, diverging_colours, diverging_scale, draw_molecule
from tapnet.viz.style import GREY, INK, PALE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tapnet.inference.explanation import GraphExplanation

PANEL_INCHES = 3.4
MOST_COLUMNS = 4
MOST_NAMED = 40  # nodes; in larger graphs the first ten are named
TOP = 10
SMALLEST = 0.45  # of a node's area
WRAP = 46  # characters of a title
KEPT = "#8fcfb4"  # not of the scale
AGAINST = "#1b3a57"  # the outline of what speaks against the target: seen in grey print, too


def draw_attributions(explanations: Sequence[GraphExplanation], *, kept: bool = False) -> Figure:
    """Draws graphs with the attribution of their nodes and edges, on one scale.

    Orange speaks for the target and blue against it; the larger a circle and the wider an edge, the more it does. What
    speaks against has a dark outline, so that grey print tells both apart. Molecules are drawn as chemists draw them.

    Args:
        explanations: From ``explain`` of a model or an estimator.
        kept: Whether a row below each graph shows what every pooling layer kept of it.

    Returns:
        The figure; :func:`~tapnet.viz.style.save` writes it.
    """
    values = [np.asarray([row.attribution for rows in (e.nodes, e.edges) for row in rows]) for e in explanations]
    largest = max((float(np.abs(v).max(initial=0)) for v in values), default=0) or 1.0
    layers = max(len(e.graph.explanation.layers) if e.graph else 0 for e in explanations) if kept else 0
    columns = layers or min(MOST_COLUMNS, len(explanations))
    rows = 2 * len(explanations) if layers else -(-len(explanations) // columns)
    places = [_positions(e) for e in explanations]
    panel = PANEL_INCHES * max(map(_height_to_width, places))
    figure, axes = new_figure(0.3 + PANEL_INCHES * columns, 0.9 + (panel + 0.7) * rows, rows, columns)
    drawn = set[tuple[int, int]]()
    for i, explanation in enumerate(explanations):
        place = (2 * i, 0) if layers else divmod(i, columns)
        drawn.add(place)
        _draw(axes[place], explanation, places[i], largest)
        for j, layer in enumerate(explanation.graph.explanation.layers if layers and explanation.graph else ()):
            drawn.add((2 * i + 1, j))
            nodes = np.zeros(len(explanation.nodes), dtype=bool)
            nodes[layer.nodes[layer.kept]] = True
            _draw_kept(axes[2 * i + 1, j], explanation, places[i], nodes)
            title = f"after pooling {j + 1}: {int(nodes.sum())} of {len(layer.nodes)} nodes"
            axes[2 * i + 1, j].set_title(title, fontsize=8)
    for row, column in np.ndindex(rows, columns):
        if (row, column) not in drawn:
            axes[row, column].axis("off")
    _draw_scale(figure, axes, explanations, largest)
    return figure


def _positions(explanation: GraphExplanation) -> NDArray[np.float64]:
    graph = explanation.graph
    assert graph is not None
    return graph_layout(graph.edges, len(explanation.nodes)) if graph.smiles is None else atom_positions(graph.smiles)


def _height_to_width(at: NDArray[np.float64]) -> float:
    """Of the panel of a graph that lies there: flat ones leave no empty space above and below."""
    width, height = np.ptp(at, axis=0) if len(at) else (1.0, 1.0)
    return float(np.clip((height + 0.1 * width) / max(width, 1e-9), 0.35, 1.0))


def _draw(ax: Axes, explanation: GraphExplanation, at: NDArray[np.float64], largest: float) -> None:
    graph = explanation.graph
    assert graph is not None
    nodes = np.asarray([node.attribution for node in explanation.nodes])
    edges = np.asarray([edge.attribution for edge in explanation.edges])
    names = [printable(node.node) for node in explanation.nodes]
    named = range(len(nodes)) if len(nodes) <= MOST_NAMED else np.argsort(-np.abs(nodes), kind="stable")[:TOP].tolist()
    colours = [colour or "#ffffff" for colour in diverging_colours(nodes, largest)]
    bands = [colour or "#ffffff" for colour in diverging_colours(edges, largest)]
    strength = np.sqrt(np.abs(nodes) / largest)
    if graph.smiles is not None:
        widths = 11 * np.sqrt(np.abs(edges) / largest)
        draw_molecule(
            ax,
            graph.smiles,
            colours=[c if s > 0.05 else None for c, s in zip(colours, strength, strict=True)],
            sizes=(0.4 + 0.9 * strength).tolist(),
            outlines=[AGAINST if value < 0 else None for value in nodes],
            bonds=[
                (*ends, band, float(w)) for ends, band, w in zip(graph.edges.T.tolist(), bands, widths, strict=True)
            ],
        )
        reach = 15.0
        named = np.argsort(-np.abs(nodes), kind="stable")[:TOP].tolist()
    else:
        reach = 10.0
        usual = node_size(at, PANEL_INCHES)
        thickness = edge_width(usual, len(at), graph.edges.shape[1])
        areas = usual * (SMALLEST + (1 - SMALLEST) * strength)
        marks = node_marks(graph, usual)
        draw_graph(ax, at, graph.edges[:, :0], fill=colours, size=areas.tolist(), labels=marks)
        widths = thickness * (1 + 2 * np.sqrt(np.abs(edges) / largest))
        draw_edges(ax, at, graph.edges, graph.directed, INK, widths + 1, zorder=1.9)
        draw_edges(ax, at, graph.edges, graph.directed, bands, widths, INK, zorder=2)
        _outline(ax, at, areas, nodes)
    _write_names(ax, at, names, named, graph.edges, reach)
    lines = textwrap.wrap(str(graph), WRAP)[:3]
    if explanation.fidelity is not None:
        level, numbers = explanation.fidelity.levels[1], graph.task == "regression"
        changes = (c if numbers else -c for c in (level.necessity, level.random.necessity))
        without, random = (f"{c:.2g}" if numbers else f"{c:+.2g}" for c in changes)
        verdict = "beats chance" if explanation.fidelity.beats_chance else "not better than chance"
        lines += [f"without the top {level.percent} %: {without}; random {random}", verdict]
    ax.set_title("\n".join(lines), fontsize=8, parse_math=False)


def _outline(ax: Axes, at: NDArray[np.float64], areas: NDArray[np.float64], nodes: NDArray[np.float64]) -> None:
    """A line around every node: dark where it speaks against."""
    around: dict[str, Any] = {"facecolors": "none", "zorder": 3.5}
    ax.scatter(at[:, 0], at[:, 1], s=areas, edgecolors=GREY, linewidths=0.5, **around)
    against = nodes < 0
    ax.scatter(at[against, 0], at[against, 1], s=areas[against], edgecolors=AGAINST, linewidths=1.4, **around)


def _draw_kept(ax: Axes, explanation: GraphExplanation, at: NDArray[np.float64], kept: NDArray[np.bool_]) -> None:
    graph = explanation.graph
    assert graph is not None
    if graph.smiles is not None:
        draw_molecule(ax, graph.smiles, colours=[KEPT if k else None for k in kept], faint=~kept)
        return
    usual = node_size(at, PANEL_INCHES)
    inside = graph.edges[:, kept[graph.edges].all(axis=0)]
    fill = [KEPT if k else PALE for k in kept]
    marks = [mark if k else "" for mark, k in zip(node_marks(graph, usual), kept, strict=True)]
    sizes = usual * np.where(kept, 1.0, DROPPED)
    width = edge_width(usual, len(at), graph.edges.shape[1])
    look: dict[str, Any] = {"edge_width": width, "faint": graph.edges, "directed": graph.directed}
    draw_graph(ax, at, inside, fill=fill, size=sizes.tolist(), labels=marks, **look)


def _write_names(
    ax: Axes,
    at: NDArray[np.float64],
    names: Sequence[str],
    which: Sequence[int] | range,
    edges: NDArray[np.int64],
    reach: float,
) -> None:
    """The names of nodes, so many points from their middles, each on the side that its neighbours leave free."""
    away = np.zeros_like(at)
    for one, other in (edges, edges[::-1]):
        np.add.at(away, one, at[one] - at[other])
    length = np.linalg.norm(away, axis=1, keepdims=True)
    away = np.where(length > 1e-6, away / np.maximum(length, 1e-9), (0.0, 1.0))
    look: dict[str, Any] = {"fontsize": 5.5, "color": INK, "ha": "center", "va": "center", "parse_math": False}
    look["bbox"] = {"boxstyle": "round,pad=0.1", "facecolor": "white", "alpha": 0.7, "linewidth": 0}
    for i in which:
        ax.annotate(names[i][:16], tuple(at[i]), tuple(reach * away[i]), textcoords="offset points", zorder=5, **look)


def _draw_scale(figure: Figure, axes: Any, explanations: Sequence[GraphExplanation], largest: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    units = sorted({e.unit for e in explanations})
    graphs = [e.graph for e in explanations if e.graph is not None]
    numbers = all(graph.task == "regression" for graph in graphs)
    unit = units[0] if len(units) == 1 else "attribution" if numbers else "log odds"
    low, high = ("lowers", "raises") if numbers else ("against", "for")
    words = f"{low}  \u2190  {unit}  \u2192  {high}"
    if any(graph.smiles is None for graph in graphs):
        inside = {"degrees": "its degree", "attributes": ""}.get(graphs[0].features, "its category")
        words += f"\nin a node: {inside}; outside: its name" if inside else ""
    scale = ScalarMappable(Normalize(-largest, largest), diverging_scale())
    bar = figure.colorbar(scale, ax=axes, location="bottom", shrink=min(1.0, 1.4 / axes.shape[1] + 0.2), aspect=45)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(words, fontsize=8, parse_math=False)
