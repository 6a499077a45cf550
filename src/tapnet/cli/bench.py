"""`tapnet bench`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tapnet.cli.app import AsJson, DataDir, check_counts

if TYPE_CHECKING:
    pass


def bench(
    data_dir: DataDir = None,
    threads: Annotated[int | None, typer.Option(help="Threads of both sides.", show_default="all cores")] = None,
    as_json: AsJson = False,
) -> None:
    """Time tapnet and PyG side by side on this machine; prints ratios. Takes a minute or two."""
    check_counts(threads=threads)
    import torch

    from tapnet.bench import cases
    from tapnet.cli.terminal import print_bench
    from tapnet.experiments.backends.processes import available_cores
    from tapnet.progress import working

    torch.set_num_threads(threads or available_cores())
    with working("tapnet and PyG in turn"):
        measured = cases.short(data_dir)
    if as_json:
        print(json.dumps({"threads": torch.get_num_threads(), "cases": [case.to_dict() for case in measured]}))
    else:
        print_bench(measured, torch.get_num_threads())
