"""Pictures of graphs: one graph, and what each pooling layer keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.molecules import draw_explained_molecule
from tapnet.viz.style import COLOURS, INK, PALE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tapnet.inference.explain_graph import ExplainedGraph
    from tapnet.inference.inputs import Graph
    from tapnet.inference.model import SavedModel

PANEL_POINTS = 145  # the side of the unit square in a panel
LARGEST_NODE = 230.0
LEAST_LETTERED_NODE = 70.0  # smaller nodes have no room for letters


def draw_graph(
    ax: Axes,
    at: NDArray[np.float64],
    edges: NDArray[np.int64],
    *,
    fill: Sequence[str],
    size: Sequence[float] | float,
    labels: Sequence[str] | None = None,
    edge_colour: str = INK,
    faint: NDArray[np.int64] | None = None,
) -> None:
    """Draws one graph: its nodes over its edges.

    Args:
        ax: The axes to draw on.
        at: Where each node is drawn, ``[N, 2]``, as :func:`~tapnet.viz.graph_layout.graph_layout` returns it.
        edges: Both ends of each edge, once, ``[2, E]``.
        fill: The colour of each node.
        size: The area of each node's circle, or of all, in square points.
        labels: What is written into each node.
        edge_colour: Of all edges.
        faint: More edges, drawn pale below the others, ``[2, F]``.
    """
    from matplotlib.collections import LineCollection

    if faint is not None and faint.size:
        ax.add_collection(LineCollection(list(at[faint.T]), colors=PALE, linewidths=1.2, zorder=1))
    if edges.size:
        ax.add_collection(LineCollection(list(at[edges.T]), colors=edge_colour, linewidths=1.6, zorder=2))
    ax.scatter(at[:, 0], at[:, 1], s=size, c=list(fill), edgecolors="white", linewidths=0.8, zorder=3)
    for (x, y), label in zip(at, labels or (), strict=False):
        ax.text(x, y, label, ha="center", va="center", fontsize=7, color="white", zorder=4)
    middle, half = (at.max(axis=0) + at.min(axis=0)) / 2, np.ptp(at, axis=0) / 2 * 1.24
    half = np.maximum(half, 0.6 * half.max(initial=0.1))  # a path is flat, its picture is not
    ax.set_xlim(middle[0] - half[0], middle[0] + half[0])
    ax.set_ylim(middle[1] - half[1], middle[1] + half[1])
    ax.set_aspect("equal")
    ax.axis("off")


def plot_graph(
    model: SavedModel,
    graph: int | str | Path | Graph,
    *,
    dataset: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Figure:
    """Draws a graph and what each pooling layer of a trained model keeps of it.

    Args:
        model: From :func:`tapnet.load_model`; a TAPNet whose pooling layers keep some of the nodes.
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
    grey. Molecules are drawn as chemists draw them.

    Args:
        graph: From :func:`tapnet.inference.explain_graph.explain_graph`.

    Returns:
        The figure; :func:`~tapnet.viz.style.save` writes it.
    """
    if graph.smiles is not None:
        return draw_explained_molecule(graph)
    edges, category, names = graph.edges, graph.category, graph.category_names
    at = graph_layout(edges, len(category))
    shown = [int(c) for c in np.unique(category)]
    colour = {c: COLOURS[i % len(COLOURS)] for i, c in enumerate(shown)}
    mark = dict(zip(shown, _marks([names[c] for c in shown]), strict=True))
    layers = graph.explanation.layers
    figure, axes = new_figure(0.4 + 3.1 * (len(layers) + 1), 4.0, 1, len(layers) + 1)
    usual = _node_size(at)
    lettered = usual >= LEAST_LETTERED_NODE
    for i, ax in enumerate(axes.flat):
        score = np.zeros(len(at))
        kept = np.ones(len(at), dtype=bool)
        if layers:
            layer = layers[max(i - 1, 0)]
            score[layer.nodes] = _from_zero_to_one(layer.score)
            if i > 0:
                kept[:] = False
                kept[layer.nodes[layer.kept]] = True
        inside = edges[:, kept[edges].all(axis=0)]
        draw_graph(
            ax,
            at,
            inside,
            fill=[colour[int(c)] if k else PALE for c, k in zip(category, kept, strict=True)],
            size=[usual * (0.55 + 0.9 * s) if k else usual * 0.3 for s, k in zip(score, kept, strict=True)],
            labels=[mark[int(c)] if k else "" for c, k in zip(category, kept, strict=True)] if lettered else None,
            faint=edges if i > 0 else None,
        )
        nodes, count = int(kept.sum()), inside.shape[1]
        name = "input" if i == 0 else f"after pooling {i}"
        ax.set_title(f"{name}\n{nodes} nodes, {count} edges", fontsize=9)
    figure.suptitle(f"{graph.name}: {graph.answer}", fontsize=10)
    if len(shown) <= 12:
        words = {c: names[c] if names[c] == mark[c] or not lettered else f"{mark[c]}: {names[c]}" for c in shown}
        handles = [axes[0, 0].scatter([], [], s=45, c=colour[c], label=words[c]) for c in shown]
        handles.append(axes[0, 0].scatter([], [], s=20, c=PALE, label="dropped"))
        if any(np.isfinite(layer.score).any() for layer in layers):
            handles.append(axes[0, 0].scatter([], [], s=0, label="(larger: a higher score)"))
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(len(handles), 9), fontsize=8, frameon=False
        )
    return figure


def _node_size(at: NDArray[np.float64]) -> float:
    """The area of a node's circle, so that neighbours on paper do not cover each other."""
    from scipy.spatial import KDTree

    if len(at) < 2:
        return LARGEST_NODE
    nearest = KDTree(at).query(at, k=2)[0][:, 1]
    diameter = 0.8 * PANEL_POINTS * float(np.quantile(nearest, 0.1))
    return float(np.clip(diameter**2, 6, LARGEST_NODE))


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
