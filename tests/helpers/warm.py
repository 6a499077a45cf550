"""Commands in processes that need not start from nothing: forked from one that has everything imported.

Reads JSON from standard input, a line for some commands that share a process (words and folder of each, limits), and
writes a line with what came of each.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import typer.main


def run(jobs: list[tuple[list[str], str]], memory: int, seconds: float) -> list[dict[str, Any]]:
    """What each command ended with and wrote. Where one took the process with it, the others are run without it."""
    with tempfile.TemporaryFile() as report:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            for words, folder in jobs:
                os.write(report.fileno(), json.dumps(_one(words, folder)).encode() + b"\n")
            os._exit(0)
        code = exit_code(child, seconds)
        report.seek(0)
        done = [json.loads(line) for line in report]
    if len(done) == len(jobs):
        return done
    if len(jobs) == 1:
        return [{"code": code, "out": "", "err": ""}]
    return [*done, *(found for job in jobs[len(done) :] for found in run([job], memory, seconds))]


def exit_code(child: int, seconds: float) -> int | None:
    """What a process ended with; None for one that was killed because it had not ended in so many seconds."""
    ends = os.pidfd_open(child)
    in_time, _, _ = select.select([ends], [], [], seconds)
    os.close(ends)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if in_time else None


def _one(words: list[str], folder: str) -> dict[str, Any]:
    from tapnet.cli import main

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.chdir(folder)
        sys.argv = ["tapnet", *words]
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="surrogateescape"))
    return {"code": code, "out": texts[0], "err": texts[1]}


def warm_up(folder: str) -> None:
    """Everything that the commands import and compile, once: with good inputs, in this very process."""
    from tapnet.cli import main
    from tapnet.explorer import server  # noqa: F401

    typer.main.get_command = cache(typer.main.get_command)  # type: ignore[assignment]  # takes longer than most inputs
    before = Path.cwd()
    os.chdir(folder)
    kept = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for words in json.loads(Path("good.json").read_text()):
        sys.argv = ["tapnet", *words]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise
    sys.stdout.flush()
    os.dup2(kept, 1)
    os.chdir(before)
    gc.freeze()  # so that children share it


if __name__ == "__main__":
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warm_up(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
