"""Runs before anything else in every process of a test's command: notes what is written, and kills where it is told.

TAPNET_TEST_HOOKS is JSON: ``log``: a file for a line (process, name) of every file that is put in its place;
``write`` and ``stage``: at which of a process's writes, and where in it, it kills itself or (``whom``) its whole group;
``meet``: so many processes wait for one another at their first checkpoint, at the file ``meeting``; ``full``: a folder,
or the beginning of a file's name, for which the disk has no more than a few bytes; ``delay``: seconds
that every file stays empty, unflushed and not renamed; ``windows``: without what only Unix has.
"""

import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

hooks = json.loads(os.environ.get("TAPNET_TEST_HOOKS", "{}"))
fsync, replace, mkstemp = os.fsync, os.replace, tempfile.mkstemp
writes, met = 0, False


def die():
    if hooks.get("whom") == "group":
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def strikes(stage):
    return writes == hooks.get("write") and stage == hooks["stage"]


def note(file, line):
    with open(file, "a") as log:  # noqa: PTH123  # a line this short is appended whole
        log.write(f"{os.getpid()} {line}\n")


def meet(file):
    note(file, "waits")
    end = time.monotonic() + 60
    while len(Path(file).read_text().splitlines()) < hooks["meet"] and time.monotonic() < end:
        time.sleep(0.01)


def fsync_or_die(handle):
    global writes
    writes += 1
    time.sleep(hooks.get("delay", 0))
    if strikes("half written"):
        os.ftruncate(handle, os.fstat(handle).st_size // 2)
        die()
    if strikes("not flushed"):
        die()
    fsync(handle)


def replace_or_die(source, target, **options):
    global met
    if not Path(source).name.startswith(".partial-"):
        replace(source, target, **options)
        return
    folder, name = Path(target).parent.name, Path(target).name
    time.sleep(hooks.get("delay", 0))
    if "meet" in hooks and folder == "checkpoints" and not met:
        met = True
        meet(hooks["meeting"])
    if strikes("not renamed"):
        die()
    replace(source, target, **options)
    if "log" in hooks:
        note(hooks["log"], f"{folder}/{name}")
    if strikes("just renamed"):
        die()


def mkstemp_on_a_slow_disk(*words, **options):
    found = mkstemp(*words, **options)
    time.sleep(hooks["delay"])
    return found


def mkstemp_on_a_full_disk(suffix=None, prefix=None, dir=None, text=False):
    """From here to the next one, the limit on the size of files is that of the disk."""
    full = hooks["full"] in (Path(dir or "").name, (prefix or "").removeprefix(".partial-").rstrip("-"))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 if full else most, most))
    return mkstemp(suffix, prefix, dir, text)


if hooks:
    os.fsync, os.replace = fsync_or_die, replace_or_die
if "delay" in hooks:
    tempfile.mkstemp = mkstemp_on_a_slow_disk
if "full" in hooks:
    tempfile.mkstemp = mkstemp_on_a_full_disk
if "windows" in hooks:
    del signal.SIGHUP, signal.pthread_sigmask, os.sched_getaffinity
    sys.modules["resource"] = None
    multiprocessing.get_all_start_methods = lambda: ["spawn"]
