"""A small data set, and a run of it that nothing disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.faults import command, finishes, write_rings


@pytest.fixture(scope="session")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rings(tmp_path_factory.mktemp("data") / "RINGS.txt")


@pytest.fixture(scope="session")
def undisturbed(rings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with one process, from its beginning to its end."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    finishes(command(rings, folder, "--jobs", 1, "--final"))
    return folder
