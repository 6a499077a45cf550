"""Pooling layers by name."""

from __future__ import annotations

from typing import Any


def resolve(pool: str | type, allow_import: bool = False) -> Any:
    """Stands for the registry of pooling layers until that is merged."""
    return pool


def source_digest(name: str) -> str:
    return ""
