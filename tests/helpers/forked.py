"""A process that has imported everything and is forked into commands: each is spared two seconds of imports.

Reads JSON from standard input, a line for each command (the arguments of `become`, and seconds), and writes a line with
what came of it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

import tapnet
from tests.helpers.warm import exit_code

LATER = (
    *("numba", "scipy.stats", "sklearn.metrics", "sklearn.svm", "torch_geometric.nn", "networkx", "pandas", "optuna"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "rdkit.Chem.Draw"),
)


def import_all() -> None:
    """Every module of the package, and what its functions import at their first call."""
    for name in [module.name for module in pkgutil.walk_packages(tapnet.__path__, "tapnet.")] + list(LATER):
        if not name.endswith("__main__"):
            with suppress(ImportError):  # of an extra
                import_module(name)
    gc.freeze()  # so that the commands share it


def become(words: list[str], folder: str, console: bool, environment: dict[str, str], out: int, err: int) -> None:
    """This process is the command from here on."""
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(descriptor, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # it may have read the next command
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = words
    sys.path[:1] = [] if console else [folder]  # as `python -m`


def run_and_exit() -> None:
    """As at the end of every process, without taking the modules apart, which lasts longer than most commands."""
    code: Any = 0
    try:
        runpy.run_module("tapnet", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def result_of(child: int, out: IO[bytes], err: IO[bytes], seconds: float) -> dict[str, Any]:
    code = exit_code(child, seconds)
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read().decode(errors="surrogateescape"))
    return {"code": code, "out": texts[0], "err": texts[1]}


def serve() -> bool:
    """Whether this process is a command now; not if there are no more."""
    for line in sys.stdin:
        job = json.loads(line)
        seconds = job.pop("seconds")
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                become(**job, out=out.fileno(), err=err.fileno())
                return True
            print(json.dumps(result_of(child, out, err, seconds)), flush=True)
    return False


if __name__ == "__main__":
    import_all()
    if serve():
        run_and_exit()
