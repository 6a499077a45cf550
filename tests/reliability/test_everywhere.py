"""The same seed gives the same numbers however the trials are run."""

from __future__ import annotations

import os
import signal

import pytest

from tests.helpers.faults import PATIENCE, command, content, finishes, placed, running, summary, wait_for

WAYS = {
    "again": ["--jobs", 1],
    "two processes": ["--jobs", 2],
    "three processes": ["--jobs", 3],
    "a Ray cluster": ["--ray", "local"],
}
SLOW = {"again", "three processes", "a Ray cluster"}


@pytest.mark.parametrize("way", [pytest.param(w, marks=[pytest.mark.slow] if w in SLOW else []) for w in WAYS])
def test_the_same_numbers_however_the_trials_are_run(way, rings, undisturbed, tmp_path):
    finishes(command(rings, tmp_path / "run", *WAYS[way], "--final"))
    assert content(tmp_path / "run") == content(undisturbed)
    assert summary(tmp_path / "run") == summary(undisturbed)


def test_the_same_numbers_without_what_only_unix_has(rings, undisturbed, tmp_path):
    finishes(command(rings, tmp_path / "run", "--jobs", 2, "--final"), windows=True)
    assert content(tmp_path / "run") == content(undisturbed)


@pytest.mark.slow
def test_ctrl_c_without_what_only_unix_has(rings, tmp_path):
    """It reaches every process of the terminal; the command alone answers."""
    log, words = tmp_path / "log", command(rings, tmp_path / "run", "--jobs", 2, epochs=2000)
    with running(words, log=str(log), windows=True) as process:
        wait_for(lambda: len(placed(log)) > 5)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err


def test_the_same_numbers_after_a_stop_and_a_resume(rings, undisturbed, tmp_path):
    log, words = tmp_path / "log", command(rings, tmp_path / "run", "--jobs", 1, "--final")
    with running(words, log=str(log)) as process:
        wait_for(lambda: len(placed(log)) > 5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    finishes(words)
    assert content(tmp_path / "run") == content(undisturbed)
    assert summary(tmp_path / "run") == summary(undisturbed)
