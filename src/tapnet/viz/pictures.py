"""Drawing: one look for every picture, and graphs with fixed places for their nodes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tapnet.files import write_atomically
from tapnet.viz.graph_layout import graph_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tapnet.inference.explain import Explanation

INK, GREY, PALE = "#222222", "#9a9a9a", "#d9d9d9"
# Okabe and Ito's colours: told apart by the colour-blind, and in this order by their grey as well.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#777777")


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure that needs no screen, and its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, stem: Path, endings: Sequence[str] = ("png", "svg")) -> list[str]:
    """Writes the picture in each format and returns the names of the files; the same picture gives the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "tapnet", "svg.fonttype": "none"}):
        for ending in endings:
            dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
            drawn = io.BytesIO()
            figure.savefig(drawn, format=ending, dpi=150, metadata=dated)
            write_atomically(Path(f"{stem}.{ending}"), drawn.getvalue())
    return [f"{stem.name}.{ending}" for ending in endings]


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
    ink: Sequence[str] | str = "white",
) -> None:
    """Nodes at their places over their edges; ``faint`` edges are drawn pale below."""
    from matplotlib.collections import LineCollection

    if faint is not None and faint.size:
        ax.add_collection(LineCollection(list(at[faint.T]), colors=PALE, linewidths=1.2, zorder=1))
    if edges.size:
        ax.add_collection(LineCollection(list(at[edges.T]), colors=edge_colour, linewidths=1.6, zorder=2))
    ax.scatter(at[:, 0], at[:, 1], s=size, c=list(fill), edgecolors="white", linewidths=0.8, zorder=3)
    inks = [ink] * len(at) if isinstance(ink, str) else ink
    for (x, y), label, colour in zip(at, labels or (), inks, strict=False):
        ax.text(x, y, label, ha="center", va="center", fontsize=7, color=colour, zorder=4)
    middle, half = (at.max(axis=0) + at.min(axis=0)) / 2, np.ptp(at, axis=0) / 2 * 1.24
    half = np.maximum(half, 0.6 * half.max(initial=0.1))  # a path is flat, its picture is not
    ax.set_xlim(middle[0] - half[0], middle[0] + half[0])
    ax.set_ylim(middle[1] - half[1], middle[1] + half[1])
    ax.set_aspect("equal")
    ax.axis("off")


# ---- a graph and what a network keeps of it ----

PANEL_POINTS = 145  # the side of the unit square in a panel
LARGEST_NODE = 230.0
ROOM_FOR_LETTERS = 70.0


def draw_explanation(
    edges: NDArray[np.int64],
    explanation: Explanation,
    category: NDArray[np.int64],
    names: Sequence[str],
    title: str,
) -> Figure:
    """The graph, and its coarsened graphs after each pooling layer, with every node at the same place.

    Size: the score by which the layer chose. Colour and letters: the category. Grey: dropped.
    """
    at = graph_layout(edges, len(category))
    shown = [int(c) for c in np.unique(category)]
    colour = {c: COLOURS[i % len(COLOURS)] for i, c in enumerate(shown)}
    marks = _marks([names[c] for c in shown])
    mark = dict(zip(shown, marks, strict=True))
    layers = explanation.layers
    figure, axes = new_figure(0.4 + 3.1 * (len(layers) + 1), 4.0, 1, len(layers) + 1)
    usual = _node_size(at)
    lettered = usual >= ROOM_FOR_LETTERS
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
    figure.suptitle(title, fontsize=10)
    if len(shown) <= 12:
        words = {c: names[c] if names[c] == mark[c] or not lettered else f"{mark[c]}: {names[c]}" for c in shown}
        handles = [axes[0, 0].scatter([], [], s=45, c=colour[c], label=words[c]) for c in shown]
        handles.append(axes[0, 0].scatter([], [], s=20, c=PALE, label="dropped"))
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
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


# ---- a run ----


def draw_run(
    curves: Sequence[Mapping[str, Sequence[float]]],
    confusion: NDArray[np.int64] | None,
    classes: Sequence[str],
    title: str,
) -> Figure:
    """Learning curves as the folds' mean with their spread, and the confusion matrix over all test folds."""
    names = {"test_accuracy": "test", "validation_accuracy": "validation"}
    losses = {"train_loss": "training", "validation_loss": "validation"}
    panels = 2 + (confusion is not None)
    figure, axes = new_figure(3.6 * panels, 3.6, 1, panels)
    for ax, shown, word in zip(axes.flat, (names, losses), ("accuracy in percent", "loss"), strict=False):
        for i, (key, label) in enumerate(shown.items()):
            folds = [np.asarray(fold[key], dtype=float) for fold in curves if key in fold]
            if not folds:
                continue
            values = np.stack([fold[: min(map(len, folds))] for fold in folds])
            epoch, mean, spread = np.arange(1, values.shape[1] + 1), values.mean(axis=0), values.std(axis=0)
            ax.plot(epoch, mean, color=COLOURS[i], linestyle="-" if i == 0 else "--", label=label)
            ax.fill_between(epoch, mean - spread, mean + spread, color=COLOURS[i], alpha=0.2, linewidth=0)
        ax.set_xlabel("epoch", fontsize=8)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylabel(word, fontsize=8)
        ax.tick_params(labelsize=8)
        ax.grid(color="#eeeeee")
        ax.legend(fontsize=8, frameon=False)
    if confusion is not None:
        _draw_confusion(axes[0, 2], confusion, classes)
    figure.suptitle(textwrap.fill(title, 45 * panels), fontsize=10)
    return figure


def _draw_confusion(ax: Axes, confusion: NDArray[np.int64], classes: Sequence[str]) -> None:
    share = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(*confusion.shape):
        ink = "white" if share[i, j] > 0.55 else INK
        ax.text(j, i, f"{confusion[i, j]}\n{100 * share[i, j]:.0f} %", ha="center", va="center", fontsize=8, color=ink)
    ax.set_xticks(range(len(classes)), classes, fontsize=8, rotation=30 if max(map(len, classes)) > 6 else 0)
    ax.set_yticks(range(len(classes)), classes, fontsize=8)
    ax.set_xlabel("predicted", fontsize=8)
    ax.set_ylabel("true", fontsize=8)
