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
    disabled = functools.cache(lambda: torch.compiler.disable(function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return (disabled() if "torch._dynamo" in sys.modules else function)(*args, **kwargs)

    return call
