"""A picture of each table: accuracies, the effect of λ, connectivity after each pooling layer."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapnet.paper.cells import Cell
from tapnet.paper.tables import DIFFERS, connectivity_by_layer, is_run, not_run, remark, usual_folds_and_epochs
from tapnet.paper.targets import LAMBDAS, Target
from tapnet.training.protocol import PROTOCOLS
from tapnet.viz.style import COLOURS, INK, new_figure, save

LOOK = {  # of each protocol, and of what the paper prints
    "paper": {"marker": "o", "color": COLOURS[0]},
    "fair": {"marker": "s", "color": COLOURS[1]},
    "nested": {"marker": "D", "color": COLOURS[2]},
    "printed": {"marker": "D", "color": INK, "markerfacecolor": "white"},
}


def draw_target(target: Target, cells: Sequence[Cell], folder: Path) -> list[str]:
    """Draws a table as PNG and SVG.

    Returns:
        The names of the files in the folder; none where nothing is stored yet.
    """
    names = [name for name in target.datasets if any(c.results for c in cells if c.dataset == name)]
    shown = [cell for cell in cells if cell.dataset in names]
    if target.name == "connectivity":
        names = [name for name in names if any(connectivity_by_layer(cell) for cell in shown if cell.dataset == name)]
    if target.name == "lambda":  # one λ shows no effect; where there is nothing else, it is shown all the same
        names = [n for n in names if sum(is_run(n, row, cells) for row in target.rows) > 1] or names
    if not names:
        return []
    draw = {"lambda": draw_lambda, "connectivity": draw_connectivity}.get(target.name, draw_accuracies)
    return save(draw(target, names, shown), folder / target.name)


def draw_accuracies(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Any:
    """Draws one panel per data set: each system's accuracy by each protocol, beside the paper's.

    A panel has the systems that were run on its data set; below the picture stands what was not.
    """
    run = {name: [row for row in target.rows if is_run(name, row, cells)] for name in names}
    columns = len(names) if len(names) < 4 else min((3, 2, 4), key=lambda count: -len(names) % count)
    lines = -(-len(names) // columns)
    most = [max(len(run[name]) for name in names[i * columns : (i + 1) * columns]) for i in range(lines)]
    heights = [0.7 + 0.34 * count for count in most]
    figure, axes = new_figure(
        1.2 + 4.1 * columns, 1.1 + sum(heights), lines, columns, gridspec_kw={"height_ratios": heights}
    )
    for ax, name in zip(axes.flat, names, strict=False):
        for place, row in enumerate(run[name]):
            of_row = [c for c in cells if c.dataset == name and c.row is row]
            printed = of_row[0].printed
            if printed is not None:
                _dot(ax, printed.mean, printed.std or 0, place - 0.25, "printed", "the paper prints")
            for cell in of_row:
                if cell.summary:
                    shift = 0.0 if cell.protocol == "paper" else 0.25
                    label = f"{cell.protocol}: {PROTOCOLS[cell.protocol]}"
                    _dot(ax, cell.summary.mean, cell.summary.std, place + shift, cell.protocol, label)
                    at = (cell.summary.mean + cell.summary.std, place + shift)
                    ax.annotate(remark(cell, cells), at, (1, 0), textcoords="offset points", fontsize=6, va="center")
        ax.set_title(_title(name, cells), fontsize=9)
        ax.set_yticks(range(len(run[name])), [row.label for row in run[name]])
        _grid(ax, "x")
        ax.set_axisbelow(True)
        ax.set_ylim(len(run[name]) - 0.5, -0.6)
        ax.set_xlabel("accuracy in percent", fontsize=8)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    _legend(figure, axes, _not_run(figure, target, cells))
    return figure


def _not_run(figure: Any, target: Target, cells: Sequence[Cell]) -> str:
    """What is not in a picture because it was not run, in lines as wide as the picture."""
    return textwrap.fill(not_run(target, cells), int(figure.get_size_inches()[0] * 19))


def _title(name: str, cells: Sequence[Cell]) -> str:
    """The data set, and how many folds × epochs most of its points have; the others are labelled."""
    usual = usual_folds_and_epochs(name, cells)
    return f"{name}\n{usual} epochs" if usual else name


def _grid(ax: Any, axis: str = "both") -> None:
    ax.tick_params(labelsize=8)
    ax.grid(axis=axis, color="#eeeeee")


def _dot(ax: Any, mean: float, std: float, place: float, look: str, label: str) -> None:
    ax.errorbar(mean, place, xerr=std, linestyle="", markersize=4.5, elinewidth=1, label=label, **LOOK[look])


def _legend(figure: Any, axes: Any, words: str = "") -> None:
    from matplotlib.lines import Line2D

    found = dict[str, Any]()
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if any(DIFFERS in text.get_text() for ax in axes.flat for text in ax.texts):
        found["differs from TAPNet at 5 %"] = Line2D([], [], linestyle="", marker=f"${DIFFERS}$", color=INK)
    look = {"ncols": len(found), "fontsize": 8, "frameon": False, "title": words or None, "title_fontsize": 7}
    figure.legend(found.values(), found.keys(), loc="outside lower center", **look)


def draw_lambda(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Any:
    """Draws accuracy over λ, one panel per data set."""
    figure, axes = new_figure(1 + 2.9 * len(names), 3.1, 1, len(names))
    for ax, name in zip(axes.flat, names, strict=True):
        for protocol in dict.fromkeys(cell.protocol for cell in cells):
            shown = [cell for cell in cells if cell.dataset == name and cell.protocol == protocol]
            points = [(_connectivity_weight(c), c.summary.mean, c.summary.std) for c in shown if c.summary]
            if points:
                x, y, spread = zip(*points, strict=True)
                shift = 0.8 if protocol == "paper" else 1.25  # so that one bar does not hide the other
                label = f"{protocol}: {PROTOCOLS[protocol]}"
                ax.errorbar(np.array(x) * shift, y, spread, label=label, capsize=2, elinewidth=1, **LOOK[protocol])
        for cell in cells:
            if cell.dataset == name and cell.printed:
                look = {"label": "the paper prints", "linestyle": "", "elinewidth": 1, **LOOK["printed"]}
                ax.errorbar(_connectivity_weight(cell), cell.printed.mean, cell.printed.std, **look)
        ax.set_xscale("log")
        ax.set_xlim(LAMBDAS[0] / 2, LAMBDAS[-1] * 2)
        ax.set_title(_title(name, cells), fontsize=9)
        ax.set_xlabel("λ, the weight of the connectivity term", fontsize=8)
        _grid(ax)
    axes.flat[0].set_ylabel("accuracy in percent", fontsize=8)
    _legend(figure, axes, _not_run(figure, target, cells))
    return figure


def _connectivity_weight(cell: Cell) -> float:
    return float(cell.row.settings(cell.dataset).connectivity)


def draw_connectivity(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Any:
    """Draws the share of isolated nodes and the number of components after each layer, by one protocol per data set."""
    figure, axes = new_figure(1 + 3.2 * len(names), 5.6, 2, len(names))
    labels = [row.label for row in target.rows]
    for column, name in enumerate(names):
        measured = [cell for cell in cells if cell.dataset == name and connectivity_by_layer(cell)]
        protocol = Counter(cell.protocol for cell in measured).most_common(1)[0][0]
        shown = [cell for cell in measured if cell.protocol == protocol]
        for cell in shown:
            levels = connectivity_by_layer(cell)
            place = labels.index(cell.row.label)
            look = {"marker": "osD^v"[place % 5], "color": COLOURS[place % len(COLOURS)], "markersize": 5}
            isolated = [100 * level.isolated / level.nodes for level in levels]
            components = [level.components / level.graphs for level in levels]
            for ax, line in zip(axes[:, column], (isolated, components), strict=True):
                ax.plot(range(len(levels)), line, label=cell.row.label, **look)
                ax.set_xticks(range(len(levels)), ["input", *map(str, range(1, len(levels)))])
                _grid(ax)
        for ax, at_least in zip(axes[:, column], (5.0, 2.0), strict=True):
            top = max(ax.get_ylim()[1], at_least)
            ax.set_ylim(-0.03 * top, top)  # so that a line along 0 is seen
        axes[0, column].set_title(f"{_title(name, shown)}, protocol {protocol}", fontsize=9)
        axes[1, column].set_xlabel("after pooling layer", fontsize=8)
    axes[0, 0].set_ylabel("isolated nodes, percent", fontsize=8)
    axes[1, 0].set_ylabel("components of a graph", fontsize=8)
    _legend(figure, axes)
    return figure
