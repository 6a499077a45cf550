"""A model, an archive or a cache of a stranger: no code runs, nothing outside is touched, no index leaves its array."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_planted_files_do_nothing(tmp_path: Path) -> None:
    """In an interpreter of its own, with every index of the compiled loops checked."""
    caches = {"NUMBA_CACHE_DIR": str(tmp_path / "given/numba"), "TAPNET_CACHE": str(tmp_path / "given/c")}
    own = {"NUMBA_BOUNDSCHECK": "1", "PYTHONDONTWRITEBYTECODE": "1", **caches}
    words = [sys.executable, "-m", "tests.reliability.planted", str(tmp_path)]
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        words, cwd=tmp_path, env=os.environ | own | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "nothing happened"
