"""The pictures of the paper, and one for each of its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapnet.models.registry import find_model
from tapnet.paper.report import DIFFERS, beside, coarsened, most_common_behind
from tapnet.paper.reproduce import Cell
from tapnet.paper.targets import LAMBDAS, Target
from tapnet.training.protocol import PROTOCOLS
from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.pictures import COLOURS, GREY, INK, new_figure, save

LOOK = {  # of each protocol, and of what the paper prints
    "paper": {"marker": "o", "color": COLOURS[0]},
    "fair": {"marker": "s", "color": COLOURS[1]},
    "printed": {"marker": "D", "color": INK, "markerfacecolor": "white"},
}


def draw_target(target: Target, cells: Sequence[Cell], folder: Path) -> list[str]:
    """The picture of a table, as PNG and SVG; nothing where nothing is stored yet."""
    names = [name for name in target.datasets if any(c.results for c in cells if c.dataset == name)]
    shown = [cell for cell in cells if cell.dataset in names]
    if target.name == "connectivity":
        names = [name for name in names if any(coarsened(cell) for cell in shown if cell.dataset == name)]
    if not names:
        return []
    draw = {"lambda": _lambda, "connectivity": _connectivity}.get(target.name, _accuracies)
    return save(draw(target, names, shown), folder / target.name)


def _accuracies(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Any:
    """A panel a data set: every system's accuracy by each protocol, beside what the paper prints."""
    rows = [row.label for row in target.rows]
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    figure, axes = new_figure(2.2 + 3.1 * columns, 0.9 + lines * (0.7 + 0.34 * len(rows)), lines, columns, sharey=True)
    for ax, name in zip(axes.flat, names, strict=False):
        for place, row in enumerate(target.rows):
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
                    ax.annotate(beside(cell, cells), at, (1, 0), textcoords="offset points", fontsize=6, va="center")
        ax.set_title(_title(name, cells), fontsize=9)
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(labelsize=8)
        ax.grid(axis="x", color="#eeeeee")
        ax.set_axisbelow(True)
        ax.set_ylim(len(rows) - 0.5, -0.6)
        ax.set_xlabel("accuracy in percent", fontsize=8)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    _legend(figure, axes)
    return figure


def _title(name: str, cells: Sequence[Cell]) -> str:
    """The data set, and how many folds × epochs stand behind its points; one with others says so itself."""
    behind = most_common_behind(name, cells)
    return f"{name}\n{behind} epochs" if behind else name


def _dot(ax: Any, mean: float, std: float, place: float, look: str, label: str) -> None:
    ax.errorbar(mean, place, xerr=std, linestyle="", markersize=4.5, elinewidth=1, label=label, **LOOK[look])


def _legend(figure: Any, axes: Any) -> None:
    from matplotlib.lines import Line2D

    found = dict[str, Any]()
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if any(DIFFERS in text.get_text() for ax in axes.flat for text in ax.texts):
        found["differs from TAPNet at 5 %"] = Line2D([], [], linestyle="", marker=f"${DIFFERS}$", color=INK)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=len(found), fontsize=8, frameon=False)


def _lambda(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Any:
    """Accuracy over λ: a panel a data set."""
    figure, axes = new_figure(1 + 2.9 * len(names), 3.1, 1, len(names))
    for ax, name in zip(axes.flat, names, strict=True):
        for protocol in dict.fromkeys(cell.protocol for cell in cells):
            points = [
                (_connectivity_weight(cell), cell.summary.mean, cell.summary.std)
                for cell in cells
                if cell.dataset == name and cell.protocol == protocol and cell.summary
            ]
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
        ax.tick_params(labelsize=8)
        ax.grid(color="#eeeeee")
    axes.flat[0].set_ylabel("accuracy in percent", fontsize=8)
    _legend(figure, axes)
    return figure


def _connectivity_weight(cell: Cell) -> float:
    settings = find_model(cell.row.model).make_settings(cell.dataset, cell.row.changed)
    return float(settings.connectivity)


def _connectivity(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Any:
    """The share of isolated nodes and the number of components after each layer, by one protocol a data set."""
    figure, axes = new_figure(1 + 3.2 * len(names), 5.6, 2, len(names))
    labels = [row.label for row in target.rows]
    for column, name in enumerate(names):
        measured = [cell for cell in cells if cell.dataset == name and coarsened(cell)]
        protocol = Counter(cell.protocol for cell in measured).most_common(1)[0][0]
        shown = [cell for cell in measured if cell.protocol == protocol]
        for cell in shown:
            levels = coarsened(cell)
            place = labels.index(cell.row.label)
            look = {"marker": "osD^v"[place % 5], "color": COLOURS[place % len(COLOURS)], "markersize": 5}
            values = (
                [100 * level.isolated / level.nodes for level in levels],
                [level.components / level.graphs for level in levels],
            )
            for ax, line in zip(axes[:, column], values, strict=True):
                ax.plot(range(len(levels)), line, label=cell.row.label, **look)
                ax.set_xticks(range(len(levels)), ["input", *map(str, range(1, len(levels)))])
                ax.tick_params(labelsize=8)
                ax.grid(color="#eeeeee")
        for ax, at_least in zip(axes[:, column], (5.0, 2.0), strict=True):
            top = max(ax.get_ylim()[1], at_least)
            ax.set_ylim(-0.03 * top, top)  # so that a line along 0 is seen
        axes[0, column].set_title(f"{_title(name, shown)}, protocol {protocol}", fontsize=9)
        axes[1, column].set_xlabel("after pooling layer", fontsize=8)
    axes[0, 0].set_ylabel("isolated nodes, percent", fontsize=8)
    axes[1, 0].set_ylabel("components a graph", fontsize=8)
    _legend(figure, axes)
    return figure


# ---- the illustrations ----


def draw_voting(folder: Path) -> list[str]:
    """Local voting on four nodes with two features: similarities on the edges, then each node's vote.

    Every number is the layer's own, with W_r the identity.
    """
    import torch

    from tapnet.nn.tap import TAPooling

    x = torch.tensor([[0.9, 0.1], [0.8, 0.6], [0.1, 0.9], [0.3, 0.2]])
    edges = np.array([[0, 1, 1, 0], [1, 2, 3, 3]])
    both = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1).copy())
    pool = TAPooling(2, similarity="dot", global_voting=False, connectivity=0.0)
    votes = pool.votes(x, both).local.detach().numpy()
    similarity = (x @ x.T).numpy()
    at = graph_layout(edges, 4)
    figure, axes = new_figure(9.5, 3.4, 1, 3)
    titles = (
        "(a) four nodes with two features each",
        "(b) similarity of the ends of each edge,\nand of each node with itself",
        "(c) mean similarity with neighbours and itself;\nbelow, the local vote: the softmax of mean ÷ 4",
    )
    for ax, title in zip(axes.flat, titles, strict=True):
        ax.plot(at[edges, 0], at[edges, 1], color=GREY, zorder=1)
        ax.set_title(title, fontsize=9)
        ax.axis("off")
        ax.set_aspect("equal")
        ax.margins(0.3)
    near = np.eye(4)
    near[edges[0], edges[1]] = near[edges[1], edges[0]] = 1
    mean = (near * similarity).sum(axis=1) / near.sum(axis=1)
    size = 900 + 40_000 * (votes - votes.min())
    for i, (left, bottom) in enumerate(at):
        words = (
            "\n".join(f"{v:.1f}" for v in x[i].tolist()),
            f"{similarity[i, i]:.2f}",
            f"{mean[i]:.2f}\n{votes[i]:.3f}",
        )
        for ax, word, area in zip(axes.flat, words, (900, 900, size[i]), strict=True):
            ax.scatter([left], [bottom], s=area, color=COLOURS[0], zorder=2)
            ax.text(left, bottom, word, ha="center", va="center", color="white", fontsize=9, zorder=3)
    for i, j in edges.T:
        middle = at[[i, j]].mean(axis=0)
        axes[0, 1].text(*middle, f"{similarity[i, j]:.2f}", ha="center", va="center", fontsize=9, color=INK,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
    return save(figure, folder / "voting")


def draw_architecture(folder: Path) -> list[str]:
    """TAPNet's layers with the shapes that a graph of 20 nodes and 7 categories takes through them."""
    import networkx as nx
    import torch

    from tapnet.data.batch import GraphBatch
    from tapnet.models.tapnet import TAPNet

    model = TAPNet(7, 2).eval()
    ring = nx.random_regular_graph(3, 20, seed=0).to_directed()
    batch = GraphBatch.from_edge_index(torch.arange(20) % 7, torch.tensor(list(ring.edges)).T)
    with torch.inference_mode():
        levels = list(model.levels(batch))
    figure, axes = new_figure(11.5, 3.3)
    ax = axes[0, 0]
    step, widths = 1.0, [len(level.x) for level in levels]
    boxes = [("input", f"{batch.num_nodes} × {model.in_channels}", "one-hot")]
    boxes.append(("GCN", f"{widths[0]} × {levels[0].x.size(1)}", "embedding"))
    for i, (n, level) in enumerate(zip(widths, levels[1:], strict=False)):
        boxes.append(("GCN", f"{n} × {model.convs[i].out_channels}", f"block {i + 1}"))
        boxes.append(("TAP", f"{len(level.x)} × {level.x.size(1)}", f"keeps {model.settings.ratios[i]:g}"))
    for i, (name, shape, note) in enumerate(boxes):
        _box(ax, i * step, 1.0, name, shape, COLOURS[{"GCN": 0, "TAP": 5}.get(name, 7)])
        ax.text(i * step, 1.47, note, ha="center", fontsize=8, color=INK)
        if i:
            _arrow(ax, ((i - 1) * step + 0.4, 1.0), (i * step - 0.4, 1.0))
    read = [1, *(3 + 2 * i for i in range(len(model.convs)))]
    for place in read:
        _box(ax, place * step, 0.0, "max mean\nsum", f"{3 * levels[0].x.size(1)}", COLOURS[2], width=0.92)
        _arrow(ax, (place * step, 0.62), (place * step, 0.34))
    end = len(boxes) * step + 0.25
    classifier = model.classifier
    _box(ax, end, 0.0, "⊕", f"{classifier.hidden.in_features}", COLOURS[7])
    _box(ax, end + step, 0.0, "dense", f"{classifier.hidden.out_features}", COLOURS[3])
    _box(ax, end + 2 * step, 0.0, "dense", f"{classifier.out.out_features}", COLOURS[3])
    ax.plot([read[0] * step, end], [-0.55, -0.55], color=GREY, linewidth=1)
    for place in read:
        ax.plot([place * step] * 2, [-0.34, -0.55], color=GREY, linewidth=1)
    _arrow(ax, (end, -0.55), (end, -0.34))
    for i in range(2):
        _arrow(ax, (end + i * step + 0.4, 0), (end + (i + 1) * step - 0.4, 0))
    ax.text(end + step, 0.5, f"{model.num_parameters:,} parameters in all", ha="center", fontsize=8, color=INK)
    ax.set_xlim(-0.6, end + 2 * step + 0.6)
    ax.set_ylim(-0.75, 1.7)
    ax.axis("off")
    return save(figure, folder / "architecture")


def _box(ax: Any, x: float, y: float, name: str, shape: str, colour: str, width: float = 0.8) -> None:
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.33), width, 0.66, boxstyle="round,pad=0,rounding_size=0.08", facecolor=colour,
            edgecolor="none",
        )
    )  # fmt: skip
    ax.text(x, y + 0.12, name, ha="center", va="center", color="white", fontsize=8.5, weight="bold", linespacing=1)
    ax.text(x, y - 0.18, shape, ha="center", va="center", color="white", fontsize=8.5)


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": GREY, "shrinkA": 0, "shrinkB": 0})
