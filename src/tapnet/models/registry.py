"""Every system of the comparison by name. Each has a file of its own here; to add one, add it to the list."""

from __future__ import annotations

from typing import Any

from tapnet.errors import SettingError, did_you_mean
from tapnet.models import (
    bag,
    dgcnn,
    diffpool,
    eigenpool,
    gin,
    gunet,
    haarpool,
    majority,
    pscn,
    sagpool,
    size,
    tapnet,
    wl,
)
from tapnet.models.base import DataShape
from tapnet.models.spec import ModelSpec

MODELS: dict[str, ModelSpec] = {
    module.SPEC.name: module.SPEC
    for module in (wl, pscn, dgcnn, diffpool, gunet, sagpool, gin, eigenpool, haarpool, tapnet, majority, size, bag)
}
BASELINES = tuple(name for name, spec in MODELS.items() if spec.baseline)
MUTAG = DataShape(7, 2, True, 17.930851, (10, 12, 13, 15, 16, 17, 19, 21, 22, 23, 28), edge_channels=4)


def find_model(name: str) -> ModelSpec:
    """Finds a system by its name.

    Raises:
        SettingError: if there is none of that name.
    """
    if name not in MODELS:
        raise SettingError(f"model is one of {', '.join(MODELS)}, not {name!r:.100}{did_you_mean(name, MODELS)}")
    return MODELS[name]


def describe(spec: ModelSpec) -> dict[str, Any]:
    """What `tapnet models` prints of one."""
    settings = spec.make_settings("MUTAG", {})
    return {
        "name": spec.name,
        "system": spec.system,
        "kind": "baseline" if spec.baseline else "system",
        "paper": spec.paper,
        "year": spec.year,
        "parameters_on_mutag": None if spec.build is None else spec.build(MUTAG, settings).num_parameters,
        "about": spec.about,
        "settings": settings.model_dump(),
        "about_settings": spec.settings.meanings(),
        "search": dict(spec.search),
    }
