"""Several programs on one store: nothing is trained twice, nothing is damaged, and the living finish for the dead."""

from __future__ import annotations

import os
import signal
import warnings
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import Popen

import pytest
from filelock import FileLock

from tapnet.errors import DataError
from tapnet.experiments.load_run import load_run
from tapnet.experiments.store import Store
from tests.helpers.faults import PATIENCE, command, content, placed, running, summary, wait_for

FOLDS = 4


@pytest.fixture
def two(rings, tmp_path):
    """Two programs on one folder, started at once; all their training processes hold a trial at the same time."""
    with ExitStack() as stack:

        def start(jobs: int) -> tuple[Popen[str], Popen[str], Path, Path]:
            log, folder, meeting = tmp_path / "log", tmp_path / "run", tmp_path / "meeting"
            hooks = {"log": str(log), "meet": 2 * jobs, "meeting": str(meeting)}
            words = command(rings, folder, "--jobs", jobs, "--final", folds=FOLDS)
            both = [stack.enter_context(running(words, **hooks)) for _ in range(2)]
            wait_for(lambda: meeting.exists() and len(meeting.read_text().splitlines()) == 2 * jobs)
            return (*both, folder, log)

        yield start


def times_stored(log: Path) -> Counter[str]:
    by_all = ("checkpoints/", "run/run.json", "run/predictions.csv", "parsed/")  # written by each program
    return Counter(name for _, name in placed(log) if not name.startswith(by_all))


def folds_told(err: str) -> int:
    return sum("fold" in line and line.endswith(" %") for line in err.splitlines())


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_programs_on_one_store_share_the_work_and_end_alike(two, undisturbed, jobs):
    first, second, folder, log = two(jobs)
    said = [process.communicate(timeout=PATIENCE) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], said
    assert said[0][0] == said[1][0]
    assert set(times_stored(log).values()) == {1}
    assert len(times_stored(log)) == 2 * FOLDS + 1  # of each fold the result and the model; the final model
    assert len({number for number, name in placed(log) if name.startswith("trials/")}) == 2 * jobs
    assert [folds_told(err) for _, err in said] == [FOLDS, FOLDS]
    assert content(folder) == content(undisturbed)
    assert summary(folder) == summary(undisturbed)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.slow
def test_what_a_killed_program_was_training_the_other_finishes(two, undisturbed, jobs):
    first, second, folder, log = two(jobs)
    os.killpg(first.pid, signal.SIGKILL)
    _, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, err
    assert folds_told(err) == FOLDS
    assert set(times_stored(log).values()) == {1}
    assert content(folder) == content(undisturbed)


def test_ctrl_c_ends_a_program_that_waits_for_another(rings, undisturbed, tmp_path):
    folder = tmp_path / "run"
    with (
        FileLock(folder / "checkpoints" / f"{summary(undisturbed)['trials'][0]}.lock"),
        running(command(rings, folder, "--jobs", 1, folds=FOLDS)) as process,
    ):
        said = [process.stderr.readline() for _ in range(FOLDS)]  # a line for each of the others, then for that one
        assert said[-1] == "RINGS fold 0, in another program: waiting for it\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert f"tapnet: stopped with {FOLDS - 1} of {FOLDS} folds done; the same command goes on from there" in err


@pytest.mark.slow
def test_readers_in_a_loop_do_not_disturb_a_writer_on_a_slow_disk(rings, undisturbed, tmp_path):
    """Every file of the run is half-written for a while, and read by somebody the whole time."""
    folder, seen = tmp_path / "run", set()
    words = command(rings, folder, "--jobs", 1, "--final", folds=FOLDS)
    with warnings.catch_warnings(), running(words, log=str(tmp_path / "log"), delay=0.05) as process:
        warnings.simplefilter("error")
        while process.poll() is None:
            seen.add(sum(1 for _ in Store(folder).results()))
            with suppress(DataError):  # no fold is finished yet
                load_run(folder)
    assert process.returncode == 0, process.stderr.read()
    assert seen >= {0, FOLDS}
    assert content(folder) == content(undisturbed)
