"""Commands as a user types them: real processes."""

import subprocess
import sys


def tapnet(*words, program=(sys.executable, "-m", "tapnet"), **options):
    command = [*program, *map(str, words)]
    return subprocess.run(command, **{"capture_output": True, "text": True, "timeout": 300, "check": False, **options})


def tapnet_ends(*words, folder, code=0):
    """The same in a folder: it ends with this code, and never with a traceback."""
    done = tapnet(*words, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done
