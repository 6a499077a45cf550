"""Commands as a user types them: processes of their own, on Linux forked from one that has imported everything."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

AT_START = ("PYTHON", "LD_", "GLIBC", "NUMBA", "OMP", "ATEN", "MKL", "OPENBLAS")  # variables that are read only then
STARTED = dict(os.environ)
MODULE = (sys.executable, "-m", "tapnet")
CONSOLE = (sys.executable, "-P", "-c", "from tapnet.cli import main; main()")  # as the installed script


def tapnet(*words, program=MODULE, cwd=".", env=None, timeout=300, **options):
    """What `subprocess.run` returns; a new process if it gets options of that, or another environment for Python."""
    environment = dict(os.environ if env is None else env)
    words = [*map(str, words)]
    as_usual = program in (MODULE, CONSOLE) and not options and not _changed(environment)
    if sys.platform == "linux" and as_usual and "--reproducible" not in words:  # which must come before torch
        return _forked(words, str(Path(cwd).resolve()), program == CONSOLE, environment, timeout)
    command = [*program, *words]
    options = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run(command, cwd=cwd, env=environment, timeout=timeout, **options)


def tapnet_ends(*words, folder, code=0):
    """The same in a folder: it ends with this code, and never with a traceback."""
    done = tapnet(*words, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def _changed(environment):
    """Whether Python would start otherwise with this environment than this process did."""
    names = {name for name in {*environment, *STARTED} if name.startswith(AT_START)}
    return any(environment.get(name) != STARTED.get(name) for name in names)


def _forked(words, folder, console, environment, seconds):
    job = {"words": words, "folder": folder, "console": console, "environment": environment, "seconds": seconds}
    server = _server()
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    done = json.loads(server.stdout.readline())
    if done["code"] is None:
        raise subprocess.TimeoutExpired(words, seconds, done["out"], done["err"])
    return subprocess.CompletedProcess(words, done["code"], done["out"], done["err"])


def end_server():
    """Ends the process that commands were forked from, if there is one."""
    if _server.cache_info().currsize:
        _server().communicate()
        _server.cache_clear()


@cache
def _server():
    command = [sys.executable, "-m", "tests.helpers.forked"]
    root = Path(__file__).parents[2]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=root, env=STARTED, start_new_session=True, **pipes)
