"""One picture of every comparison: how far each system is from TAPNet, on each data set, by each protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tapnet.experiments.comparison import Comparison
from tapnet.paper.cells import Cell, StoredResults, make_cells
from tapnet.paper.comparisons import LABELS
from tapnet.paper.plots import LOOK
from tapnet.paper.targets import TARGETS, Row, Target
from tapnet.training.protocol import PROTOCOLS, Protocol
from tapnet.viz.style import INK, new_figure, save

SYSTEMS = ("Net_top-k", "w/o TAP", "GIN", "g-U-Net", "WL")


class Effect(NamedTuple):
    """The difference of a system from TAPNet, in points of accuracy, with its 95 % interval."""

    dataset: str
    system: str
    protocol: Protocol
    difference: float
    low: float
    high: float


def effects(stored: StoredResults, checksums: Mapping[str, str], nested: Mapping[str, Comparison]) -> list[Effect]:
    """Every difference from TAPNet that the stored results have an interval of.

    Args:
        stored: The results of the paper's and the fair protocol.
        checksums: For some data sets, the copy whose results count.
        nested: Comparisons by data set, with TAPNet as their reference.
    """
    known: dict[str, Row] = {row.label: row for target in TARGETS.values() for row in target.rows}
    names = tuple(dict.fromkeys(name for target in ("table2", "table1") for name in TARGETS[target].datasets))
    target = Target("overview", "", names, tuple(known[label] for label in SYSTEMS))
    protocols: tuple[Protocol, ...] = ("paper", "fair")
    found = [e for cell in make_cells(target, protocols, stored, checksums) for e in _effect(cell)]
    for name, table in nested.items():
        for system in table.systems:
            d, label = system.difference, LABELS.get(system.name)
            if label not in SYSTEMS or table.reference != "tapnet" or d is None:
                continue
            if d.mean is not None and d.low is not None and d.high is not None:
                found.append(Effect(name, str(label), "nested", d.mean, d.low, d.high))
    return found


def _effect(cell: Cell) -> list[Effect]:
    d = cell.against_tapnet
    if d is None:
        return []
    low, high = d.difference - d.half_width, d.difference + d.half_width
    return [Effect(cell.dataset, cell.row.label, cell.protocol, d.difference, low, high)]


def draw_overview(found: Sequence[Effect], folder: Path) -> list[str]:
    """Draws one panel for each system with the data sets as its rows.

    Returns:
        The names of the files in the folder; none where nothing is stored yet.
    """
    if not found:
        return []
    names = list(dict.fromkeys(effect.dataset for effect in found))
    systems = [label for label in SYSTEMS if any(effect.system == label for effect in found)]
    figure, axes = new_figure(1.6 + 2.1 * len(systems), 1.5 + 0.5 * len(names), 1, len(systems), sharey=True)
    handles = dict[str, Any]()
    for ax, label in zip(axes[0], systems, strict=True):
        for effect in found:
            if effect.system == label:
                look = LOOK[effect.protocol]
                place = names.index(effect.dataset) + 0.24 * (list(PROTOCOLS).index(effect.protocol) - 1)
                ax.plot([effect.low, effect.high], [place, place], "-", color=look["color"], linewidth=1.2)
                fill = "white" if effect.low <= 0 <= effect.high else look["color"]
                (dot,) = ax.plot(effect.difference, place, linestyle="", markerfacecolor=fill, markersize=4.5, **look)
                handles.setdefault(effect.protocol, dot)
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.set_title(label, fontsize=9)
        ax.tick_params(labelsize=8)
        ax.grid(axis="x", color="#eeeeee")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("points from TAPNet", fontsize=8)
    axes[0, 0].set_yticks(range(len(names)), names, fontsize=8)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    shown = [protocol for protocol in PROTOCOLS if protocol in handles]
    title = "95 % intervals; filled where 0 is not in them"
    options = {"ncols": len(shown), "fontsize": 8, "frameon": False, "title": title, "title_fontsize": 8}
    chosen = {"nested": "settings chosen on validation graphs"}
    labels = [f"{protocol}: {chosen.get(protocol, PROTOCOLS[protocol])}" for protocol in shown]
    figure.legend([handles[protocol] for protocol in shown], labels, loc="outside lower center", **options)
    return save(figure, folder / "overview")
