"""Real runs of `tapnet train` on a small data set, faults that strike them, and what their folders hold in the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import psutil

from tests.helpers.commands import MODULE, tapnet

HOOKS = Path(__file__).with_name("hooks")  # what every process runs first
PATIENCE = 300  # seconds, for what must happen
NUMBERS = ("trial", "accuracy", "epoch", "readings", "parameters", "coarsened", "curves")
SMALL = ("--set", "hidden_channels=8", "--set", "classifier_channels=16")


def write_rings(file: Path, graphs: int = 48) -> Path:
    """Rings and stars with a few more edges, in the one-file format."""
    draw, lines = random.Random(0), [str(graphs)]
    for number in range(graphs):
        n, ring = draw.randint(8, 14), number % 2
        pairs = {(i, (i + 1) % n) for i in range(n)} if ring else {(0, i) for i in range(1, n)}
        pairs |= {(min(p), max(p)) for p in (draw.sample(range(n), 2) for _ in range(3))}
        near = [sorted({b for a, b in pairs if a == i} | {a for a, b in pairs if b == i}) for i in range(n)]
        lines += [f"{n} {ring}", *(" ".join(map(str, [draw.randrange(3), len(js), *js])) for js in near)]
    file.write_text("\n".join(lines) + "\n")
    return file


def command(data: Path, out: Path, *words: Any, folds: int = 4, epochs: int = 12, every: int = 1) -> list[str]:
    options = ["--folds", folds, "--epochs", epochs, "--checkpoint-every", every, "--out", out, *SMALL, *words]
    return [*MODULE, "train", str(data), *map(str, options)]


@contextmanager
def running(words: list[str], **hooks: Any) -> Iterator[subprocess.Popen[str]]:
    """The command in a process group of its own, under these hooks; it does not outlive the block."""
    path = os.pathsep.join(filter(None, [str(HOOKS), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "TAPNET_TEST_HOOKS": json.dumps(hooks)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=environment, start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            kill_group(process)


def finishes(words: list[str], code: int = 0, **hooks: Any) -> tuple[str, str]:
    """It ends by itself, with this code and without a traceback; what it printed, and on standard error."""
    if hooks:
        with running(words, **hooks) as process:
            out, err = process.communicate(timeout=PATIENCE)
        done = CompletedProcess(words, process.returncode, out, err)
    else:
        done = tapnet(*words[len(MODULE) :])
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):  # all of it has ended
        os.killpg(process.pid, signal.SIGKILL)


def wait_for(what: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
    return found


def group_is_gone(group: int) -> bool:
    """Whether no process of the group lives; one that nobody has buried yet does not."""
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return False
        except (ProcessLookupError, psutil.NoSuchProcess):
            pass
    return True


def placed(log: Path) -> list[tuple[int, str]]:
    """(process, file) for each file that was put in its place, in order: ``trials/KEY.json`` and so on."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(number), name) for number, name in (line.split(maxsplit=1) for line in lines)]


def content(folder: Path) -> dict[str, Any]:
    """Every file of a run's folder but the run's own page: the numbers of results, the bytes of everything else."""
    found: dict[str, Any] = {}
    for file in folder.rglob("*"):
        name = str(file.relative_to(folder))
        if file.is_dir() or name == "run.json" or name.startswith(".partial-run-"):
            continue
        if file.suffix == ".json":
            values = json.loads(file.read_bytes())
            found[name] = {key: values[key] for key in NUMBERS}
        else:
            found[name] = file.read_bytes()
    return found


def summary(folder: Path) -> dict[str, Any]:
    """What the run's page says, but for times and places."""
    values = json.loads((folder / "run.json").read_bytes())
    return {key: values[key] for key in ("state", "mean", "std", "folds", "trials")}
