"""`tapnet models`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tapnet.cli.app import AsJson


def models(
    names: Annotated[list[str] | None, typer.Argument(help="Names; without any, all.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the systems that can be trained, with paper, parameters, and where each departs from its paper."""
    from tapnet.cli.terminal import print_models
    from tapnet.models.registry import MODELS, describe, find_model
    from tapnet.training.settings import TrainingSettings

    rows = []
    for spec in map(find_model, names or MODELS):
        training = TrainingSettings(**spec.training).to_dict() if spec.fit is None else {}
        rows.append({**describe(spec), "training": training})
    if as_json:
        print(json.dumps({"models": rows}, indent=2))
    else:
        print_models(rows, in_full=bool(names))
