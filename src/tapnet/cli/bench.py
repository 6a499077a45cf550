"""`tapnet bench`."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from tapnet.cli.app import AsJson, DataDir
from tapnet.errors import SettingError, TapnetError


def bench(
    data_dir: DataDir = None,
    threads: Annotated[int | None, typer.Option(help="Threads of both sides.", show_default="all cores", min=1)] = None,
    growth: Annotated[
        bool, typer.Option("--growth", help="Measure instead how cost grows with each size, as fitted exponents.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Time tapnet and PyG side by side on this machine; prints ratios. Takes a minute or two."""
    if growth:
        if threads is not None or data_dir is not None:
            raise SettingError("--growth measures one thread on generated graphs: leave out --threads and --data-dir")
        _growth(as_json)
        return
    import torch

    from tapnet.cli.terminal import print_bench
    from tapnet.experiments.backends.processes import available_cores
    from tapnet.progress import working

    cases = _find_benchmarks("cases")
    torch.set_num_threads(threads or available_cores())
    with working("tapnet and PyG in turn"):
        measured = cases.short(data_dir)
    if as_json:
        print(json.dumps({"threads": torch.get_num_threads(), "cases": [case.to_dict() for case in measured]}))
    else:
        print_bench(measured, torch.get_num_threads())


def _growth(as_json: bool) -> None:
    from tapnet.cli.terminal import print_growth
    from tapnet.progress import working

    measure_growth = _find_benchmarks("growth").measure_growth
    with working("one size after another"):
        rows = measure_growth()
    if as_json:
        print(json.dumps({"growth": [row.to_dict() for row in rows]}))
    else:
        print_growth(rows)


def _find_benchmarks(module: str) -> ModuleType:
    """A module of the benchmarks: of the copy in an installed package, else of the checkout that this file is in."""
    if find_spec("tapnet._benchmarks"):
        return import_module(f"tapnet._benchmarks.{module}")
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / f"{module}.py").exists():
        raise TapnetError("this installation of tapnet has no benchmarks; a checkout of its repository has them")
    sys.path.insert(0, str(checkout))
    return import_module(f"benchmarks.{module}")
