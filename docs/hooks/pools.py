"""The cheat sheet of the pooling layers, written from what `tapnet.list_pools` says of them."""

from __future__ import annotations

from typing import Any

MARK = "<!-- every pooling -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, pools_table()) if MARK in markdown else markdown


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
