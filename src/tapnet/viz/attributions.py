"""Pictures of attributions: graphs and molecules whose nodes and edges show what they do for a prediction."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.graphs import DROPPED, draw_graph, edge_width, node_marks, node_size
from tapnet.viz.molecules import KEPT, atom_positions, diverging_colours, diverging_scale, draw_molecule
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
    blocks = len(explanations) if layers else -(-len(explanations) // columns)
    width = 0.9 + PANEL_INCHES * max(columns, 1)
    figure, _ = new_figure(width, 0.6 + blocks * (PANEL_INCHES + 0.6) * (2 if layers else 1))
    figure.clear()
    grid = figure.add_gridspec(blocks * (2 if layers else 1), columns)
    panels = []
    for i, explanation in enumerate(explanations):
        ax = figure.add_subplot(grid[2 * i, :] if layers else grid[divmod(i, columns)])
        panels.append(ax)
        _draw(ax, explanation, largest)
        for j, layer in enumerate(explanation.graph.explanation.layers if layers and explanation.graph else ()):
            below = figure.add_subplot(grid[2 * i + 1, j])
            nodes = np.zeros(len(explanation.nodes), dtype=bool)
            nodes[layer.nodes[layer.kept]] = True
            _draw_kept(below, explanation, nodes)
            below.set_title(f"after pooling {j + 1}: {int(nodes.sum())} of {len(layer.nodes)} nodes", fontsize=8)
    _draw_scale(figure, panels, sorted({e.unit for e in explanations}), largest)
    return figure


def _draw(ax: Axes, explanation: GraphExplanation, largest: float) -> None:
    graph = explanation.graph
    assert graph is not None
    nodes = np.asarray([node.attribution for node in explanation.nodes])
    edges = np.asarray([edge.attribution for edge in explanation.edges])
    names = [str(node.node) for node in explanation.nodes]
    named = range(len(nodes)) if len(nodes) <= MOST_NAMED else np.argsort(-np.abs(nodes), kind="stable")[:TOP].tolist()
    colours = [colour or "#ffffff" for colour in diverging_colours(nodes, largest)]
    bands = [colour or "#ffffff" for colour in diverging_colours(edges, largest)]
    strength = np.sqrt(np.abs(nodes) / largest)
    if graph.smiles is not None:
        widths = 7 * np.sqrt(np.abs(edges) / largest)
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
        at = atom_positions(graph.smiles)
        named = np.argsort(-np.abs(nodes), kind="stable")[:TOP].tolist()
        _write_names(ax, at, names, named, graph.edges)
    else:
        at = graph_layout(graph.edges, len(nodes))
        usual = node_size(at, PANEL_INCHES)
        thickness = edge_width(usual, len(at), graph.edges.shape[1])
        areas = usual * (SMALLEST + (1 - SMALLEST) * strength)
        marks = node_marks(graph, usual)
        draw_graph(ax, at, graph.edges[:, :0], fill=colours, size=areas.tolist(), labels=marks, faint=graph.edges)
        _outline(ax, at, areas, nodes, graph.edges, bands, thickness * (1 + 2 * np.sqrt(np.abs(edges) / largest)))
        _write_names(ax, at, names, named, graph.edges)
    width = 46
    lines = textwrap.wrap(str(graph), width)[:3]
    if explanation.fidelity is not None:
        level = explanation.fidelity.levels[1]
        change = f"without the top {level.percent} %: {-level.necessity:+.2g}; random {-level.random.necessity:+.2g}"
        lines.append(change + (" (beats chance)" if explanation.fidelity.beats_chance else " (no better than chance)"))
    ax.set_title("\n".join(lines), fontsize=8, parse_math=False)


def _outline(
    ax: Axes,
    at: NDArray[np.float64],
    areas: NDArray[np.float64],
    nodes: NDArray[np.float64],
    edges: NDArray[np.int64],
    bands: Sequence[str],
    widths: NDArray[np.float64],
) -> None:
    """Edges in their colours below the nodes, and a line around every node: dark where it speaks against."""
    from matplotlib.collections import LineCollection

    if edges.size:
        ax.add_collection(LineCollection(list(at[edges.T]), colors=INK, linewidths=widths + 1, zorder=1.9))
        ax.add_collection(LineCollection(list(at[edges.T]), colors=list(bands), linewidths=widths, zorder=2))
    around: dict[str, Any] = {"facecolors": "none", "zorder": 3.5}
    ax.scatter(at[:, 0], at[:, 1], s=areas, edgecolors=GREY, linewidths=0.5, **around)
    against = nodes < 0
    ax.scatter(at[against, 0], at[against, 1], s=areas[against], edgecolors=AGAINST, linewidths=1.4, **around)


def _draw_kept(ax: Axes, explanation: GraphExplanation, kept: NDArray[np.bool_]) -> None:
    graph = explanation.graph
    assert graph is not None
    if graph.smiles is not None:
        draw_molecule(ax, graph.smiles, colours=[KEPT if k else None for k in kept], faint=~kept)
        return
    at = graph_layout(graph.edges, len(kept))
    usual = node_size(at, PANEL_INCHES)
    inside = graph.edges[:, kept[graph.edges].all(axis=0)]
    fill = [KEPT if k else PALE for k in kept]
    marks = [mark if k else "" for mark, k in zip(node_marks(graph, usual), kept, strict=True)]
    sizes = usual * np.where(kept, 1.0, DROPPED)
    width = edge_width(usual, len(at), graph.edges.shape[1])
    draw_graph(ax, at, inside, fill=fill, size=sizes.tolist(), labels=marks, edge_width=width, faint=graph.edges)


def _write_names(
    ax: Axes, at: NDArray[np.float64], names: Sequence[str], which: Sequence[int] | range, edges: NDArray[np.int64]
) -> None:
    """The names of nodes, each on the side that its neighbours leave free."""
    away = np.zeros_like(at)
    for one, other in (edges, edges[::-1]):
        np.add.at(away, one, at[one] - at[other])
    length = np.linalg.norm(away, axis=1, keepdims=True)
    away = np.where(length > 0, away / np.maximum(length, 1e-9), (0.0, 1.0))
    for i in which:
        ax.annotate(
            names[i][:16],
            tuple(at[i]),
            tuple(9 * away[i]),
            textcoords="offset points",
            fontsize=5.5,
            color=INK,
            ha="center",
            va="center",
            zorder=5,
            parse_math=False,
        )


def _draw_scale(figure: Figure, panels: Sequence[Axes], units: Sequence[str], largest: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(-largest, largest), diverging_scale())
    bar = figure.colorbar(scale, ax=list(panels), shrink=0.7, aspect=30, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    unit = (
        units[0] if len(units) == 1 else "log odds" if all(u.startswith("log odds") for u in units) else "attribution"
    )
    bar.set_label(f"against    {unit}    for", fontsize=8, parse_math=False)
