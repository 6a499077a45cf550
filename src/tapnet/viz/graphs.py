"""Pictures of graphs: one graph, and what each pooling layer keeps of it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.molecules import draw_explained_molecule
from tapnet.viz.style import COLOURS, GREY, INK, PALE, SCALE, ink_on, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tapnet.inference.explain_graph import ExplainedGraph
    from tapnet.inference.inputs import Graph
    from tapnet.inference.model import SavedModel

PANEL_INCHES, LARGE_PANEL_INCHES = 3.1, 4.6
MANY_NODES = 50  # more of them get larger panels, two in a row
POINTS_PER_INCH = 47  # of a panel: the side of the unit square
LARGEST_NODE, SMALLEST_NODE = 230.0, 9.0
LEAST_LETTERED_NODE = 70.0  # smaller nodes have no room for letters
LOWEST, HIGHEST, DROPPED = 0.55, 1.45, 0.3  # the area of a node by its score, as a share of the usual one
FLATTEST = 0.4  # height of a panel by its width
ARROWHEAD, APART = 0.035, 0.012  # of directed edges, in sides of the unit square: length, and room between two
OTHER = COLOURS[-1]  # the colour of rare categories


def draw_graph(
    ax: Axes,
    at: NDArray[np.float64],
    edges: NDArray[np.int64],
    *,
    fill: Sequence[str],
    size: Sequence[float] | float,
    labels: Sequence[str] | None = None,
    edge_colour: str = INK,
    edge_width: float = 1.6,
    faint: NDArray[np.int64] | None = None,
    directed: bool = False,
) -> None:
    """Draws one graph: its nodes over its edges.

    Args:
        ax: The axes to draw on.
        at: Where each node is drawn, ``[N, 2]``, as :func:`~tapnet.viz.graph_layout.graph_layout` returns it.
        edges: Both ends of each edge, once, ``[2, E]``; of a directed graph, first where it begins.
        fill: The colour of each node.
        size: The area of each node's circle, or of all, in square points.
        labels: What is written into each node.
        edge_colour: Of all edges.
        edge_width: Of all edges, in points; where there are many, they are translucent.
        faint: More edges, drawn pale below the others, ``[2, F]``.
        directed: Whether edges have arrows.
    """
    if faint is not None:
        draw_edges(ax, at, faint, directed, PALE, 0.75 * edge_width, zorder=1)
    alpha = float(np.clip(20 / np.sqrt(max(edges.shape[1], 1)), 0.3, 1.0))
    draw_edges(ax, at, edges, directed, edge_colour, edge_width, zorder=2, alpha=alpha)
    areas, dropped = np.broadcast_to(size, len(at)), np.asarray([colour == PALE for colour in fill])
    for some, order in ((dropped, 1.5), (~dropped, 3)):  # dropped nodes lie below the edges
        if some.any():
            colours = [colour for colour, here in zip(fill, some, strict=True) if here]
            outline: dict[str, Any] = {"edgecolors": "white", "linewidths": edge_width / 2}
            ax.scatter(at[some, 0], at[some, 1], s=areas[some], c=colours, zorder=order, **outline)
    for (x, y), label, area, under in zip(at, labels or (), areas, fill, strict=False):
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": ink_on(under), "parse_math": False}
        ax.text(x, y, label, fontsize=min(7.0, 1.1 * np.sqrt(area) / max(len(label), 1)), zorder=4, **look)
    middle, half = (at.max(axis=0) + at.min(axis=0)) / 2, np.ptp(at, axis=0) / 2 * 1.16
    half = np.maximum(half, FLATTEST * half.max(initial=0.1))  # a path is flat, its picture is not
    ax.set_xlim(middle[0] - half[0], middle[0] + half[0])
    ax.set_ylim(middle[1] - half[1], middle[1] + half[1])
    ax.set_aspect("equal")
    ax.axis("off")


def draw_edges(
    ax: Axes,
    at: NDArray[np.float64],
    edges: NDArray[np.int64],
    directed: bool,
    colours: str | Sequence[str],
    widths: float | NDArray[np.float64],
    outline: str | None = None,
    **look: Any,
) -> None:
    """Draws edges as lines, those of a directed graph with an arrowhead on their way; two between the same nodes apart.

    Args:
        ax: The axes to draw on.
        at: Where each node is drawn, ``[N, 2]``.
        edges: Both ends of each edge, ``[2, E]``.
        directed: Whether edges have arrows, from the first end to the second.
        colours: Of each edge, or of all.
        widths: Of each edge, or of all, in points.
        outline: The colour around arrowheads; None for that of the edge.
        **look: Of Matplotlib's collections: ``zorder``, ``alpha``.
    """
    from matplotlib.collections import LineCollection, PolyCollection

    if not edges.size:
        return
    lines = at[edges.T]
    if not directed:
        ax.add_collection(LineCollection(list(lines), colors=colours, linewidths=widths, **look))
        return
    along = lines[:, 1] - lines[:, 0]
    length = np.linalg.norm(along, axis=1, keepdims=True).clip(1e-9)
    along, aside = along / length, along[:, ::-1] / length * (1, -1)
    both_ways = np.isin(edges[0] * len(at) + edges[1], edges[1] * len(at) + edges[0])
    lines = lines + (APART * both_ways[:, None] * aside)[:, None]
    head = np.minimum(ARROWHEAD, 0.4 * length)
    tip = lines[:, 0] + (0.6 * length + 0.5 * head) * along
    wings = [tip - head * along + side * head * aside for side in (0.45, -0.45)]
    around: dict[str, Any] = {"edgecolors": outline or colours, "linewidths": 0.7 if outline else 0.3}
    ax.add_collection(LineCollection(list(lines), colors=colours, linewidths=widths, **look))
    ax.add_collection(PolyCollection(list(np.stack([tip, *wings], axis=1)), facecolors=colours, **around, **look))


def plot_graph(
    model: SavedModel,
    graph: int | str | Path | Graph,
    *,
    dataset: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Figure:
    """Draws a graph and what each pooling layer of a trained model keeps of it.

    Args:
        model: From :func:`tapnet.load_model`; its pooling layers keep some of the nodes.
        graph: A NetworkX graph or PyG ``Data``; a file with one graph; or a graph of the data set, by its number or by
            the name of its file.
        dataset: The data set that a number belongs to; None for the one that the model was trained on.
        data_dir: The folder with data sets by name.

    Returns:
        The figure, with the predicted class above it; :func:`~tapnet.viz.style.save` writes it.

    Raises:
        TapnetError: If the graph is not found or does not fit the model, or if the model keeps no nodes.

    Example:
        >>> from tapnet import load_model
        >>> figure = plot_graph(load_model("runs/MUTAG"), 0)  # doctest: +SKIP
    """
    from tapnet.inference.explain_graph import explain_graph

    return draw_explanation(explain_graph(model, graph, dataset, data_dir))


def draw_explanation(graph: ExplainedGraph) -> Figure:
    """Draws an explained graph: the input, then what each pooling layer keeps, every node at the same place.

    A node's size is the score by which the layer chose, its colour and letters are its category; dropped nodes are
    grey. A score does not measure a node's effect on the prediction. Molecules are drawn as chemists draw them.

    Args:
        graph: From :func:`tapnet.inference.explain_graph.explain_graph`.

    Returns:
        The figure; :func:`~tapnet.viz.style.save` writes it.
    """
    if graph.smiles is not None:
        return draw_explained_molecule(graph)
    edges, layers = graph.edges, graph.explanation.layers
    at = graph_layout(edges, len(graph.category))
    large, panels = len(at) > MANY_NODES, len(layers) + 1
    columns = -(-panels // 2) if large and panels > 2 else panels
    rows, width = -(-panels // columns), LARGE_PANEL_INCHES if large else PANEL_INCHES
    usual = node_size(at, width)
    thickness = edge_width(usual, len(at), edges.shape[1])
    look = _look(graph, lettered=usual >= LEAST_LETTERED_NODE)
    height = rows * (0.75 + width * float(np.clip(np.ptp(at[:, 1]) / (np.ptp(at[:, 0]) or 1), FLATTEST, 1)))
    figure, axes = new_figure(0.4 + width * columns, 0.9 + height, rows, columns)
    sized = False
    for i, ax in enumerate(axes.flat[:panels]):
        area, kept, words = np.full(len(at), usual), np.ones(len(at), dtype=bool), ""
        if layers:
            layer = layers[max(i - 1, 0)]
            if i > 0:
                kept[:] = False
                kept[layer.nodes[layer.kept]] = True
            area[layer.nodes] = usual * (LOWEST + (HIGHEST - LOWEST) * _from_zero_to_one(layer.score))
            if np.isfinite(layer.score).any():
                low, high = f"{np.nanmin(layer.score):.3g}", f"{np.nanmax(layer.score):.3g}"
                words = f"\nscores of pooling {max(i, 1)}: " + (low if low == high else f"{low} to {high}")
                sized |= low != high
        area[~kept] = usual * DROPPED
        inside = edges[:, kept[edges].all(axis=0)]
        draw_graph(
            ax,
            at,
            inside,
            fill=[look.fill[int(c)] if k else PALE for c, k in zip(graph.category, kept, strict=True)],
            size=area.tolist(),
            labels=[look.mark[int(c)] if k else "" for c, k in zip(graph.category, kept, strict=True)],
            edge_width=thickness,
            faint=edges if i > 0 else None,
            directed=graph.directed,
        )
        name = "input" if i == 0 else f"after pooling {i}"
        ax.set_title(f"{name}\n{int(kept.sum())} nodes, {inside.shape[1]} edges{words}", fontsize=9)
    for ax in axes.flat[panels:]:
        ax.remove()
    figure.suptitle(textwrap.fill(str(graph), int(20 * width * columns)), fontsize=10, parse_math=False)
    entries = [(label, fill, 45.0) for label, fill in look.legend]
    if layers:
        entries.append(("dropped", PALE, 20.0))
    if sized:
        entries += [("lowest score", GREY, LOWEST * usual), ("highest score of the layer", GREY, HIGHEST * usual)]
    handles = [axes[0, 0].scatter([], [], s=area, c=fill, label=label) for label, fill, area in entries]
    if handles:
        across = {"ncols": min(len(handles), int(2 * width * columns / 3)), "fontsize": 8, "frameon": False}
        legend = figure.legend(handles=handles, loc="outside lower center", **across)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def node_marks(graph: ExplainedGraph, area: float) -> list[str]:
    """What is written into each node of a graph whose circles have this area: letters for its category."""
    look = _look(graph, lettered=area >= LEAST_LETTERED_NODE)
    return [look.mark[int(c)] for c in graph.category]


class _Look(NamedTuple):
    """How the categories of a graph's nodes are drawn."""

    fill: Mapping[int, str]  # the colour of each
    mark: Mapping[int, str]  # the letters in its nodes
    legend: Sequence[tuple[str, str]]  # names and colours


def _look(graph: ExplainedGraph, lettered: bool) -> _Look:
    values, counts = np.unique(graph.category, return_counts=True)
    shown, names = values.tolist(), graph.category_names
    if graph.features == "attributes":
        return _Look(dict.fromkeys(shown, COLOURS[0]), dict.fromkeys(shown, ""), ())
    if graph.features == "degrees":
        fill, legend = _by_degree({c: int(names[c]) for c in shown if names[c].isdecimal()})
        mark = {c: names[c] if lettered and len(names[c]) <= 3 else "" for c in shown}
        unknown = [c for c in shown if c not in fill]
        return _Look(fill | dict.fromkeys(unknown, OTHER), mark, legend + [(names[c], OTHER) for c in unknown])
    most = len(COLOURS) - 1
    frequent = sorted(np.asarray(shown)[np.argsort(-counts, kind="stable")][:most].tolist())
    fill = dict.fromkeys(shown, OTHER) | dict(zip(frequent, COLOURS, strict=False))
    marks = _marks([names[c] for c in shown]) if lettered else [""] * len(shown)
    mark = dict(zip(shown, marks, strict=True))
    words = {c: f"label {names[c]}" if names[c].lstrip("-").isdecimal() else names[c] for c in frequent}
    legend = [(words[c] if mark[c] in ("", names[c]) else f"{mark[c]}: {words[c]}", fill[c]) for c in frequent]
    return _Look(fill, mark, legend + ([(f"{len(shown) - most} others", OTHER)] if len(shown) > most else []))


def _by_degree(degrees: Mapping[int, int]) -> tuple[dict[int, str], list[tuple[str, str]]]:
    """Dark for few neighbours, bright for many, in steps of the logarithm where the degrees are many."""
    top, few = np.log(max(2, *degrees.values(), 2)), sorted(set(degrees.values()))
    by_value = len(few) <= len(SCALE)
    step = {d: few.index(d) if by_value else int(np.log(max(d, 1)) / top * len(SCALE)) for d in few}
    colour = {d: SCALE[min(place, len(SCALE) - 1)] for d, place in step.items()}
    legend = list[tuple[str, str]]()
    for fill in dict.fromkeys(colour[d] for d in few):
        inside = [d for d in few if colour[d] == fill]
        legend.append((f"degree {inside[0]}" + (f" to {inside[-1]}" if len(inside) > 1 else ""), fill))
    return {c: colour[d] for c, d in degrees.items()}, legend


def node_size(at: NDArray[np.float64], panel: float) -> float:
    """The area of a node's circle, so that neighbours on paper do not cover each other."""
    from scipy.spatial import KDTree

    if len(at) < 2:
        return LARGEST_NODE
    nearest = KDTree(at).query(at, k=2)[0][:, 1]
    diameter = 0.8 * POINTS_PER_INCH * panel * float(np.quantile(nearest, 0.1))
    return float(np.clip(diameter**2, SMALLEST_NODE, LARGEST_NODE))


def edge_width(usual: float, nodes: int, edges: int) -> float:
    """In points: thinner between small nodes, and where a graph is dense."""
    return float(np.clip(np.sqrt(usual) / 9 * min(1.0, np.sqrt(4 * nodes / max(edges, 1))), 0.25, 1.6))


def _marks(names: Sequence[str]) -> list[str]:
    """What fits into a node: the name itself, its first two letters where they differ, else a number."""
    if len(names) == 1:
        return [names[0] if len(names[0]) <= 2 else ""]
    for length in (1, 2):
        marks = [name[:length] for name in names]
        if len(set(marks)) == len(marks) and (length == 2 or all(len(name) == 1 for name in names)):
            return marks
    return [str(i + 1) for i in range(len(names))]


def _from_zero_to_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unknown values (NaN) come out in the middle."""
    low, high = np.fmin.reduce(values, initial=np.inf), np.fmax.reduce(values, initial=-np.inf)
    return np.nan_to_num((values - low) / (high - low), nan=0.5) if high > low else np.full(len(values), 0.5)
