"""The cheat sheet of the pooling layers: what `tapnet.list_pools` says of them, and what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results.json"


def on_page_markdown(markdown: str, **_: Any) -> str:
    for mark, table in {"<!-- every pooling -->": pools_table, "<!-- their cost -->": costs_table}.items():
        markdown = markdown.replace(mark, table()) if mark in markdown else markdown
    return markdown


def costs_table() -> str:
    """One row for each layer that `benchmarks/run.py --only pools` has measured."""
    found: dict[str, dict[str, str]] = {}
    for case in json.loads(MEASURED.read_text(encoding="utf-8"))["cases"]:
        if match := re.fullmatch("training step with the pooling (.*)", case["what"]):
            found.setdefault(match[1], {})[case["data"]] = f"{1 / case['ratio']:.1f} | {case['note']}"
    sets = list(dict.fromkeys(name for of in found.values() for name in of))
    rows = [f"| name | {' | '.join(f'{name}, time | memory' for name in sets)} |", "|---" * (1 + 2 * len(sets)) + "|"]
    rows += [f"| `{pool}` | {' | '.join(of.get(name, ' | ') for name in sets)} |" for pool, of in found.items()]
    return "\n".join(rows)


def pools_table() -> str:
    """One row for each built-in layer; those of other packages are not in it."""
    from tapnet import list_pools
    from tapnet.nn.pool.registry import POOLS

    titles = ("name", "kind", "what is kept or merged", "parameters", "losses", "time", "memory", "paper")
    rows = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for pool in list_pools():
        if pool.name in POOLS:
            paper = f"{pool.paper}, {pool.year}" if pool.paper else ""
            count = "" if pool.parameters is None else f"{pool.parameters:,}"
            cells = (f"`{pool.name}`", pool.kind, pool.about, count, ", ".join(pool.losses), pool.cost, pool.memory)
            rows.append(f"| {' | '.join((*cells, paper))} |")
    return "\n".join(rows)
