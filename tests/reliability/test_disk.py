"""A full disk: one sentence, nothing half-written; with room again, the same command goes on to the same end."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import tapnet
from tests.helpers.faults import command, content, finishes, summary

KINDS = ("run", "checkpoints", "models", "trials", "final")


def only_complaint(err: str) -> str:
    """The one line on standard error that is not a fold's."""
    lines = [line for line in err.splitlines() if not line.startswith("RINGS fold")]
    assert len(lines) == 1, err
    return lines[0]


def half_written(folder: Path) -> list[Path]:
    return [file for pattern in (".partial-*", "*.damaged", "*.lock") for file in folder.rglob(pattern)]


@pytest.mark.parametrize(
    ("kinds", "jobs"),
    [
        pytest.param(["trials"], 1, id="one"),
        *(pytest.param(KINDS, jobs, id=f"all-{jobs}", marks=pytest.mark.slow) for jobs in (1, 2)),
    ],
)
def test_whatever_cannot_be_written_is_said_and_written_once_there_is_room(kinds, jobs, rings, undisturbed, tmp_path):
    folder = tmp_path / "store"
    for kind in kinds:
        _, err = finishes(command(rings, folder, "--jobs", jobs, "--final"), code=1, full=kind)
        place = f"{folder}/{kind}" + ("." if kind in ("run", "final") else "/")
        assert only_complaint(err).startswith(f"tapnet: {place}"), err
        assert only_complaint(err).endswith(": cannot be written (File too large)"), err
        assert half_written(folder) == []
    finishes(command(rings, folder, "--jobs", 1, "--final"))
    assert content(folder) == content(undisturbed)
    assert summary(folder) == summary(undisturbed)


def test_a_cache_that_cannot_be_written_keeps_no_one_from_training(rings, undisturbed, tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))
    finishes(command(rings, tmp_path / "store", "--jobs", 1, "--final"), full="parsed")
    assert content(tmp_path / "store") == content(undisturbed)
    assert [file for file in (tmp_path / "cache").rglob("*") if file.is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize("limit", [50, 5_000])
def test_a_file_size_limit_on_the_whole_process(rings, undisturbed, tmp_path, limit):
    """5,000 bytes are enough for the run's page, and too few for a checkpoint."""
    words = command(rings, tmp_path / "store", "--jobs", 2, "--final")
    done = subprocess.run(words, **limited(limit))
    assert done.returncode == 1, done.stderr
    assert only_complaint(done.stderr).endswith(": cannot be written (File too large)")
    assert half_written(tmp_path) == []
    finishes(words)
    assert content(tmp_path / "store") == content(undisturbed)


@pytest.mark.parametrize("ending", ["csv", "png", *(pytest.param(e, marks=pytest.mark.slow) for e in ("svg", "pdf"))])
def test_predictions_and_pictures_that_do_not_fit_are_not_there(rings, undisturbed, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    model = undisturbed / "final.safetensors"
    words = ["predict", model, rings] if ending == "csv" else ["show", model, "0", "--dataset", rings]
    done = tapnet(*words, "--out", out, **limited(20))
    assert done.returncode == 1, done.stderr
    assert only_complaint(done.stderr) == f"tapnet: {out}: cannot be written (File too large)"
    assert list(tmp_path.iterdir()) == []


def limited(size: int) -> dict[str, Any]:
    """Options of a process none of whose files can be longer."""
    return {
        "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        "capture_output": True,
        "text": True,
        "timeout": 300,
        "check": False,
    }


@pytest.mark.parametrize("kilobytes", [4, 40, 100])
@pytest.mark.slow
def test_a_small_disk(rings, undisturbed, tmp_path, kilobytes):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        words = command(rings, disk / "store", "--jobs", 2, "--final")
        _, err = finishes(words, code=1)
        assert only_complaint(err).endswith(": cannot be written (No space left on device)")
        assert half_written(disk) == []
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        finishes(words)
        assert content(disk / "store") == content(undisturbed)
    finally:
        subprocess.run(["umount", disk], check=True)
