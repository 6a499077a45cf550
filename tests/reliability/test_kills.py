"""SIGKILL at any moment, and in the middle of a write: the same command goes on, and ends with the same bits."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.faults import PATIENCE, command, content, finishes, group_is_gone, placed, running, summary, wait_for

STAGES = ("half written", "not flushed", "not renamed", "just renamed")
WHOM = ("group", "parent", "itself")


@dataclass(frozen=True)
class Kill:
    """``when``: while it starts, while it trains, or a stage of a write; ``whom``: all processes, or one of them."""

    when: str
    jobs: int
    whom: str = "group"


SHORT = [Kill("half written", 1), Kill("trains", 2, "parent")]
LONG = [
    *(Kill("starts", jobs) for jobs in (1, 1, 2, 2)),
    *(Kill("trains", jobs, whom) for jobs, whom in [(1, "group")] * 3 + [(2, "group")] * 2 + [(2, "parent")] * 2),
    *(Kill(stage, jobs) for stage in STAGES for jobs in (1, 2)),
    *(Kill(stage, 2, "itself") for stage in STAGES),
]


@pytest.mark.parametrize("kills", [pytest.param(SHORT, id="2"), pytest.param(LONG, id="23", marks=pytest.mark.slow)])
def test_killed_again_and_again_a_run_ends_with_the_bits_of_an_undisturbed_one(kills, rings, undisturbed, tmp_path):
    draw = random.Random(8)
    kills = draw.sample(kills, len(kills)) if kills is LONG else kills
    folders = (tmp_path / f"run-{number}" for number in range(100))
    folder = next(folders)
    for kill in kills:
        while not strike(kill, rings, folder, tmp_path / "log", draw):  # it was done before the blow: a new one
            assert content(folder) == content(undisturbed)
            folder = next(folders)
    finishes(command(rings, folder, "--jobs", 2, "--final"))
    assert content(folder) == content(undisturbed)
    assert summary(folder) == summary(undisturbed)


def strike(kill: Kill, rings: Path, folder: Path, log: Path, draw: random.Random) -> bool:
    """Runs the command and kills it; False if it had ended well before. No process of it is left."""
    hooks = {"log": str(log)}
    if kill.when in STAGES:
        hooks |= {"write": draw.randint(1, 12), "stage": kill.when, "whom": kill.whom}
    log.unlink(missing_ok=True)
    with running(command(rings, folder, "--jobs", kill.jobs, "--final"), **hooks) as process:
        if kill.when == "starts":
            time.sleep(draw.uniform(0, 4))
        if kill.when == "trains":
            wait_for(lambda: process.poll() is not None or any("checkpoints" in name for _, name in placed(log)))
            time.sleep(draw.uniform(0, 0.5))
        if kill.when not in STAGES and process.poll() is None:
            (os.killpg if kill.whom == "group" else os.kill)(process.pid, signal.SIGKILL)
        _, said = process.communicate(timeout=PATIENCE)
        if process.returncode == 0:
            return False
        if kill.whom == "itself" and process.returncode == 1:
            assert said.splitlines()[-1].startswith("tapnet: a process of the run died"), said
        else:
            assert process.returncode == -signal.SIGKILL, said
        wait_for(lambda: group_is_gone(process.pid))
    return True
