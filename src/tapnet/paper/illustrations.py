"""The paper's figures that need no trials: local voting on four nodes, and the architecture drawn from the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.style import COLOURS, GREY, INK, new_figure, save


def draw_voting(folder: Path) -> list[str]:
    """Draws local voting on four nodes with two features; every number is the layer's own, with W_r the identity.

    Returns:
        The names of the files in the folder.
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
        features = "\n".join(f"{v:.1f}" for v in x[i].tolist())
        words = (features, f"{similarity[i, i]:.2f}", f"{mean[i]:.2f}\n{votes[i]:.3f}")
        for ax, word, area in zip(axes.flat, words, (900, 900, size[i]), strict=True):
            ax.scatter([left], [bottom], s=area, color=COLOURS[0], zorder=2)
            ax.text(left, bottom, word, ha="center", va="center", color="white", fontsize=9, zorder=3)
    for i, j in edges.T:
        middle = at[[i, j]].mean(axis=0)
        axes[0, 1].text(*middle, f"{similarity[i, j]:.2f}", ha="center", va="center", fontsize=9, color=INK,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
    return save(figure, folder / "voting")


def draw_architecture(folder: Path) -> list[str]:
    """Draws TAPNet's layers with the shape of a graph of 20 nodes and 7 categories after each.

    Returns:
        The names of the files in the folder.
    """
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

    look: Any = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": colour, "edgecolor": "none"}
    ax.add_patch(FancyBboxPatch((x - width / 2, y - 0.33), width, 0.66, **look))
    ax.text(x, y + 0.12, name, ha="center", va="center", color="white", fontsize=8.5, weight="bold", linespacing=1)
    ax.text(x, y - 0.18, shape, ha="center", va="center", color="white", fontsize=8.5)


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": GREY, "shrinkA": 0, "shrinkB": 0})
