"""The picture of a comparison: the scores of every fold, and each system's difference from the reference."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from tapnet.experiments.comparison import Comparison, load_comparison
from tapnet.training.metrics import METRICS
from tapnet.viz.curves import metric_title
from tapnet.viz.style import COLOURS, GREY, INK, PALE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_NAME, LONGEST_TITLE = 80, 2000  # characters


def plot_comparison(comparison: str | Path | Comparison) -> Figure:
    """Draws a comparison: on the left the scores of the folds and their mean, on the right the differences.

    A difference is drawn with its 95 % interval: filled where it is significant after the adjustment, open where it is
    not, on a bar as wide as the smallest visible difference. Baselines are grey. What is not defined is left out.

    Args:
        comparison: The result of :func:`tapnet.compare`, or the folder or file where it is stored.

    Returns:
        The figure, with the verdict above it; :func:`~tapnet.viz.style.save` writes it.

    Example:
        >>> figure = plot_comparison("runs/MUTAG-compare")  # doctest: +SKIP
    """
    table = comparison if isinstance(comparison, Comparison) else load_comparison(comparison)
    systems = table.systems
    figure, axes = new_figure(9.0, 1.5 + 0.38 * len(systems), 1, 2, sharey=True)
    left, right = axes[0]
    right.use_sticky_edges = False  # bars end within the picture
    for row, system in enumerate(systems):
        colour = GREY if system.baseline else COLOURS[0]
        scores = [score for score in system.scores if score is not None]
        left.plot(scores, [row] * len(scores), "|", color=colour, alpha=0.45, markersize=9)
        if system.mean is not None:
            left.plot(system.mean, row, "o", color=colour, markersize=6)
        d = system.difference
        if d is None or d.mean is None:
            continue
        if d.smallest_visible is not None:
            right.barh(row, 2 * d.smallest_visible, 0.5, -d.smallest_visible, color=PALE, alpha=0.5, zorder=0)
        if d.low is not None:
            right.plot([d.low, d.high], [row, row], "-", color=colour, linewidth=1.6)
        right.plot(d.mean, row, "o", color=colour, markerfacecolor=colour if d.differs else "white", markersize=6)
    right.axvline(0, color=INK, linewidth=0.8)
    left.set_yticks(range(len(systems)), [f"{table.label(system):.{LONGEST_NAME}}" for system in systems], fontsize=8)
    for text in left.get_yticklabels():
        text.set_parse_math(False)
    left.set_ylim(len(systems) - 0.5, -0.5)  # the first on top
    towards = "higher is better" if METRICS[table.metric].higher_is_better else "lower is better"
    left.set_xlabel(f"{metric_title(table.metric)} of each fold, and the mean\n({towards})", fontsize=8)
    words = f"difference from {table.reference:.{LONGEST_NAME}}, 95 % interval"
    words += "\n(filled: significant; shaded: seen less than four times in five)"
    right.set_xlabel(words, fontsize=8, parse_math=False)
    for ax in (left, right):
        ax.tick_params(labelsize=8)
        ax.grid(color="#eeeeee", axis="x")
        ax.spines[["top", "right"]].set_visible(False)
    title = [f"{table.dataset}, {table.rules}", f"Verdict: {table.verdict}."]
    figure.suptitle("\n".join(textwrap.fill(line[:LONGEST_TITLE], 115) for line in title), fontsize=9, parse_math=False)
    return figure
