"""Functions that torch.compile leaves alone: they call compiled loops that it cannot look into."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def compiler_disabled(function: Callable[P, R]) -> Callable[P, R]:
    """As torch.compiler.disable, which imports the compiler at once: more than a second for those who never use it."""
    disabled: list[Callable[P, R]] = []

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "torch._dynamo" not in sys.modules:
            return function(*args, **kwargs)
        if not disabled:
            disabled.append(torch.compiler.disable(function))
        return disabled[0](*args, **kwargs)

    return call
