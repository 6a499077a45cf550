"""Commands as a user types them: processes of their own, on Linux forked from one that has imported everything."""

import json
import os
import subprocess
import sys
from functools import cache

MODULE = (sys.executable, "-m", "tapnet")


def tapnet(*words, program=MODULE, cwd=".", env=None, timeout=300, **options):
    """What `subprocess.run` returns. Options of it, another program, or variables of Python itself make a new process."""
    environment = dict(os.environ if env is None else env)
    if sys.platform == "linux" and program == MODULE and not options and _at_start(environment) == _at_start(os.environ):
        return _forked([*map(str, words)], os.path.abspath(cwd), environment, timeout)
    command = [*program, *map(str, words)]
    options = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run(command, cwd=cwd, env=environment, timeout=timeout, **options)


def tapnet_ends(*words, folder, code=0):
    """The same in a folder: it ends with this code, and never with a traceback."""
    done = tapnet(*words, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def _at_start(environment):
    """The variables that Python and its libraries read when they start."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "NUMBA", "OMP", "LD_"))}


def _forked(words, folder, environment, seconds):
    server = _server(tuple(sorted(_at_start(environment).items())))
    job = {"words": words, "folder": folder, "environment": environment, "seconds": seconds}
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    done = json.loads(server.stdout.readline())
    if done["code"] is None:
        raise subprocess.TimeoutExpired(words, seconds, done["out"], done["err"])
    return subprocess.CompletedProcess(words, done["code"], done["out"], done["err"])


@cache
def _server(variables):
    """It ends with this process, which closes its standard input."""
    command = [sys.executable, "-m", "tests.helpers.forked"]
    root = os.path.abspath(os.path.join(__file__, "../../.."))
    return subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
