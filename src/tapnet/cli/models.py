"""`tapnet models`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tapnet.cli.app import AsJson


def models(
    names: Annotated[list[str] | None, typer.Argument(help="Names; without any, all.")] = None,
    trained: Annotated[
        bool, typer.Option("--trained", help="List trained models: those that a name is enough for, or files.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the systems that can be trained, with paper, parameters, and where each departs from its paper.

    With --trained: what trained models know, how good they were on graphs held out, and how that was measured. One in
    the folder TAPNET_MODELS, or one that comes with tapnet, is called by its name: tapnet predict MUTAG mine.json.
    """
    from tapnet.cli.terminal import print_models, print_trained_models

    if trained:
        from tapnet.inference.model_file import describe_models

        cards = describe_models(names)
        print(json.dumps({"models": cards}, indent=2)) if as_json else print_trained_models(cards)
        return
    from tapnet.models.registry import MODELS, describe, find_model
    from tapnet.training.settings import TrainingSettings

    rows = []
    for spec in map(find_model, names or MODELS):
        training = TrainingSettings(**spec.training).model_dump() if spec.fit is None else {}
        about = TrainingSettings.meanings() if training else {}
        rows.append({**describe(spec), "training": training, "about_training": about})
    if as_json:
        print(json.dumps({"models": rows}, indent=2))
    else:
        print_models(rows, in_full=bool(names))
