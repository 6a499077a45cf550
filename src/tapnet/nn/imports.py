"""Importing a layer that a user names."""

from __future__ import annotations

from importlib import import_module

from torch import nn

from tapnet.errors import SettingError


def import_class(target: str, what: str) -> type[nn.Module]:
    """The class behind ``package.module:Class``.

    Args:
        target: its name, given by the user of this process and never read from a file.
        what: what it is in a message, such as "the pooling layer".

    Raises:
        SettingError: if it cannot be imported or is no class.
    """
    module, _, qualified = target.partition(":")
    try:
        found: object = import_module(module)
    except Exception as error:
        raise SettingError(f"{what} {target} cannot be imported: {error}") from error
    for word in qualified.split("."):
        found = getattr(found, word, None)
    if not isinstance(found, type):
        raise SettingError(f"{module} has no class {qualified}")
    return found
