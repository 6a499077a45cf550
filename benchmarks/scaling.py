"""How cost grows: `python benchmarks/scaling.py` measures every size of `growth.py` over its full range.

It prints the exponents, writes the costs to scaling.json and draws scaling.png; `tapnet bench --growth` is shorter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # also when called as a file, not with -m

from benchmarks.growth import Growth, measure_growth
from tapnet.viz.style import COLOURS, GREY, new_figure


def draw(rows: Sequence[Growth], file: Path) -> None:
    """Time and memory over the size, both as multiples of those of the smallest size."""
    figure, axes = new_figure(10, 5.4, columns=2)
    for axis, kind, title in ((axes[0, 0], "time", "CPU time"), (axes[0, 1], "memory", "peak memory above the start")):
        most = max(row.sizes[-1] / row.sizes[0] for row in rows)
        for slope in (1, 2):
            axis.plot([1, most], [1, most**slope], color=GREY, linewidth=0.8, linestyle="--", zorder=0)
        highest = 1.0
        for i, row in enumerate(rows):
            costs, exponent = (row.seconds, row.time) if kind == "time" else (row.bytes, row.memory)
            if exponent is None:
                continue
            values = [cost / costs[0] for cost in costs]
            highest = max(highest, *values)
            label = f"{row.size}{note(row)}: {exponent}"
            style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linestyle": "-" if i < len(COLOURS) else ":"}
            style |= {"marker": "os^Dv"[i % 5], "markersize": 4, "linewidth": 1.4}
            axis.plot([size / row.sizes[0] for size in row.sizes], values, label=label, **style)
        axis.set(xscale="log", yscale="log", xlabel="size ÷ smallest size", ylabel="cost ÷ cost of the smallest size")
        axis.set_ylim(0.5, 1.5 * highest)
        axis.set_title(f"{title} (dashed: exponents 1 and 2)", fontsize=10)
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    figure.savefig(file, dpi=150)


def note(row: Growth) -> str:
    """What tells rows apart that vary the same size."""
    return next((f", {kind}" for kind in ("near", "anywhere", "n×n") if kind in row.of), "")


def load(file: Path) -> list[Growth]:
    """The rows of a file that `main` wrote."""
    rows = []
    for row in json.loads(file.read_text()):
        names = (field.name for field in fields(Growth))
        values: dict[str, Any] = {name: tuple(v) if isinstance(v := row[name], list) else v for name in names}
        rows.append(Growth(**values))
    return rows


def table(rows: Sequence[Growth]) -> list[str]:
    """The exponents as docs/scale.md has them."""
    lines = ["| size | of | range | CPU time | memory |", "|---|---|---|---|---|"]
    for row in rows:
        spread = f"{row.sizes[0]:,} to {row.sizes[-1]:,}"
        lines.append(f"| {row.size} | {row.of} | {spread} | {row.time} | {row.memory or '–'} |")
    return lines


def main() -> None:
    """Measures, prints, stores and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small sizes: proves that it runs")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--out", type=Path, default=HERE / "scaling.png")
    options = parser.parse_args()

    def show(row: Growth) -> None:
        print(f"{row.size} ({row.of}): time {row.time}, memory {row.memory}", file=sys.stderr, flush=True)

    rows = measure_growth("tiny" if options.tiny else "full", show)
    found = json.dumps([row.to_dict() for row in rows], indent=1)
    options.out.with_suffix(".json").write_text(found + "\n")
    draw(rows, options.out)
    print(found if options.json else "\n".join(table(rows)))


if __name__ == "__main__":
    main()
