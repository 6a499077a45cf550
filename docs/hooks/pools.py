"""The cheat sheet of the pooling layers: what `tapnet.list_pools` says of them, and what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "results"


def on_page_markdown(markdown: str, **_: Any) -> str:
    for mark, table in {"<!-- every pooling -->": pools_table, "<!-- their cost -->": costs_table}.items():
        markdown = markdown.replace(mark, table()) if mark in markdown else markdown
    return markdown


def costs_table() -> str:
    """One row for each layer that `benchmarks/pools.py` has measured."""
    from tapnet.paper.costs import cost_columns, load_costs

    costs = [one for one in load_costs(RESULTS) if one.ratios is None]
    pools = list(dict.fromkeys(one.pool for one in costs))
    heads, cells = cost_columns(costs, pools)
    rows = [f"| name | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    rows += [f"| `{pool}` | {' | '.join(of)} |" for pool, of in zip(pools, cells, strict=True)]
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
