"""Pooling layers by name."""

from __future__ import annotations

from typing import Any


def find_name(pool: Any, *, allow_import: bool = False) -> str:
    """Stands for the registry of pooling layers until that is merged."""
    return str(pool)


def resolve(pool: Any, *, allow_import: bool = False) -> Any:
    return pool


def source_digest(name: str) -> str:
    return ""
