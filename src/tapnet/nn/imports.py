"""Layers of the user's own: importing them by name, and telling edited ones apart."""

from __future__ import annotations

import inspect
from hashlib import blake2b
from importlib import import_module
from types import CodeType

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


def class_digest(cls: type[nn.Module]) -> str:
    """16 hexadecimal digits that change with the source of a class, so that results of edited layers are told apart."""
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):  # of a notebook's cell or of the interpreter: then what its methods were compiled to
        codes = [(key, code) for key, value in sorted(vars(cls).items()) if (code := getattr(value, "__code__", None))]
        source = repr([(key, _compiled(code)) for key, code in codes])
    return blake2b(source.encode(), digest_size=8).hexdigest()


def _compiled(code: object) -> object:
    """What a function was compiled to, the functions within it too, without addresses and orders that change."""
    if isinstance(code, CodeType):
        return code.co_code, code.co_names, [_compiled(value) for value in code.co_consts]
    return sorted(map(repr, code)) if isinstance(code, frozenset) else repr(code)
