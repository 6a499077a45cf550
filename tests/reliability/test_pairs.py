"""Every pair of commands on one store, on a slow disk, one of them killed: the other ends well, nothing is lost."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sys
import time
import urllib.request
from contextlib import ExitStack
from itertools import combinations_with_replacement
from pathlib import Path
from subprocess import Popen

import pytest

from tests.helpers.faults import PATIENCE, command, content, finishes, running, summary

COMMANDS = ("train", "show", "reproduce", "predict", "explore")
STAGES = ("half written", "not flushed", "not renamed", "just renamed")
SHORT = (("train", "predict"),)
PAIRS = [
    pytest.param(*pair, id="-".join(pair), marks=[] if pair in SHORT else [pytest.mark.slow])
    for pair in combinations_with_replacement(COMMANDS, 2)
]


def words_of(name: str, rings: Path, store: Path, out: Path) -> list[str]:
    tapnet = [sys.executable, "-m", "tapnet"]
    return {
        "train": command(rings, store, "--jobs", 1, "--final", every=6),
        "show": [*tapnet, "show", str(store), "--out", f"{out}.svg"],
        "reproduce": [*tapnet, "reproduce", "lambda", "--stored", "--datasets", "MUTAG", "--out", str(store)],
        "predict": [*tapnet, "predict", str(store), str(rings), "--out", f"{out}.csv"],
        "explore": [*tapnet, "explore", str(store), "--port", "0", "--no-browser"],
    }[name]


def visit(process: Popen[str]) -> None:
    """A visitor of the page, and Ctrl-C."""
    assert process.stdout is not None
    line = next(found for line in process.stdout if (found := re.search(r"http://\S+", line)))
    with urllib.request.urlopen(f"{line.group()}/api/model", timeout=PATIENCE) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_of_two_commands_on_one_store_one_is_killed_and_the_other_ends_well(
    one: str, other: str, victim: int, rings: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    draw, store = random.Random(f"{one} {other} {victim}"), tmp_path / "run"
    shutil.copytree(undisturbed, store)
    last = summary(undisturbed)["trials"][-1]
    for file in store.rglob(f"{last}.*"):  # `train` has a fold to do
        file.unlink()
    pair, ended = (one, other), []
    at_a_write = pair[victim] != "explore" and draw.random() < 0.5
    with ExitStack() as stack:
        for number, name in enumerate(pair):
            hooks: dict[str, object] = {"delay": draw.uniform(0.01, 0.1)}
            if number == victim and at_a_write:
                hooks |= {"write": draw.randint(1, 3), "stage": draw.choice(STAGES), "whom": "group"}
            words = words_of(name, rings, store, tmp_path / f"out-{number}")
            ended.append(stack.enter_context(running(words, **hooks)))
        if not at_a_write:
            time.sleep(draw.uniform(1, 5))
            if ended[victim].poll() is None:
                os.killpg(ended[victim].pid, signal.SIGKILL)
        survivor = ended[1 - victim]
        if pair[1 - victim] == "explore":
            visit(survivor)
        _, err = survivor.communicate(timeout=PATIENCE)
        assert survivor.returncode == 0, err
        _, said = ended[victim].communicate(timeout=PATIENCE) if pair[victim] != "explore" else ("", "")
        assert "Traceback" not in err + said, err + said
        assert ended[victim].poll() in (0, None, -signal.SIGKILL), said
    finishes(command(rings, store, "--jobs", 1, "--final", every=6))
    found, wanted = content(store), content(undisturbed)
    assert {name: found.get(name) for name in wanted} == wanted
    assert not [name for name in found if ".damaged" in name or ".partial-" in name]
    assert summary(store) == summary(undisturbed)
