"""`tapnet pools`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tapnet.cli.app import own_layer


def pools(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names, or MODULE:CLASS of your own; without any, all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list on standard output.")] = False,
) -> None:
    """List the pooling layers: what each keeps or merges, its paper, parameters, losses, cost and memory."""
    from tapnet.cli.terminal import print_pools
    from tapnet.nn.pool.registry import find_name, list_pools

    for name in names or ():
        own_layer(name)
    wanted = [find_name(name, allow_import=True) for name in names or ()]
    rows = [pool._asdict() for pool in list_pools()]
    if wanted:
        rows = [next(row for row in rows if row["name"] == name) for name in wanted]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_pools(rows, in_full=bool(names))
