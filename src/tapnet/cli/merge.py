"""`tapnet merge`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tapnet.cli.app import AsJson


def merge(
    folder: Annotated[Path, typer.Argument(help="The folder of results, such as results.")],
    others: Annotated[
        list[Path] | None, typer.Argument(help="Folders of results of other machines, which stay as they are.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check stored results and pack them into one file for each data set, with those of other machines.

    Every checksum is verified; results that are there twice are kept once. What is packed is read as before.
    """
    from tapnet.experiments.merge import merge_trials

    found = merge_trials(folder, others or ())
    print(json.dumps(found.to_dict()) if as_json else found)
    if found.damaged:
        raise typer.Exit(1)
