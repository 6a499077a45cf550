"""Rooms import only from rooms to their left; the README's map names the rooms that are there."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tapnet"
BASE = ("errors", "files", "machine", "progress", "_loops")  # used everywhere; they import nothing but each other
ROOMS = (
    *("data", "io", "ops", "nn", "models", "training", "inference", "experiments"),
    *("viz", "paper", "sklearn", "explorer", "cli"),
)
MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(module: str) -> str:
    """tapnet.nn.tap → nn; the package itself → an empty word."""
    return module.partition(".")[2].partition(".")[0]


def imports_of(file: Path) -> set[str]:
    """Every module of tapnet that a file imports, also inside functions and for types alone."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found |= {node.module} if room_of(node.module) else {f"{node.module}.{a.name}" for a in node.names}
    return {name for name in found if name.partition(".")[0] == "tapnet"}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_to_the_left(file):
    ours = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    if ours in ("__init__", "__main__"):
        return
    assert ours in (*BASE, *ROOMS), f"{ours} is no room of the house"
    allowed = {"__version__", *BASE} | ({ours, *ROOMS[: ROOMS.index(ours)]} if ours in ROOMS else set())
    assert {name for name in imports_of(file) if room_of(name) not in allowed} == set()


def test_the_map_of_the_rooms_names_each():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `src/tapnet/")}
    there = {f"src/tapnet/{p.name}" for p in SOURCE.iterdir() if room_of(f"tapnet.{p.stem}") in ROOMS}
    assert {name.removesuffix("/") for name in named} == there


def test_every_file_that_the_documentation_names_is_there():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")]
    named = {name for page in pages for name in re.findall(r"`([a-z_]+/[\w/]+\.py)", page.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert [name for name in named if not (SOURCE / name).is_file() and not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import tapnet", {"torch", "numpy", "matplotlib", "typer", "sklearn"}),
        ("from tapnet import TAPooling", {"matplotlib", "typer", "sklearn"}),
        ("import tapnet.cli", {"torch", "numpy", "matplotlib", "sklearn"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement, unwanted):
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert unwanted & set(done.stdout.split()) == set()


def test_public_names_are_there_in_a_fresh_process():
    code = "import tapnet; [getattr(tapnet, name) for name in tapnet.__all__]; print(tapnet.paper.reproduce)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
