"""A small data set in TU files and as text, to be written as it is or with mistakes."""

import contextlib
import os
import zipfile
from pathlib import Path

GOOD = {
    "A": "1, 2\n2, 1\n4, 5\n5, 4\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "0\n3\n3\n0\n1\n0\n",
    "node_attributes": "0.5, 1\n-1e3, 2\n0, 0\n1, 1\n2, 2\n3, 3.25\n",
    "edge_labels": "0\n0\n1\n1\n2\n2\n",
    "edge_attributes": "1\n1\n2\n2\n3\n3\n",
}


GOOD_TEXT = "2\n3 -1\n0 1 1\n3 1 0\n3 0\n3 1\n0 1 1\n1 2 0 2\n0 1 1\n"


def write(folder: Path, **changed: str | None) -> Path:
    folder = folder / "SMALL"
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in {**GOOD, **changed}.items():
        if text is not None:
            (folder / f"SMALL_{part}.txt").write_text(text)
    return folder


def archive(folder: Path, file: Path) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(folder.iterdir()):
            out.write(path, f"{folder.name}/{path.name}")
    return file


def run_on_terminal(code: str, *words: str) -> tuple[int, bytes]:
    """The exit code of a Python program, and what it writes to standard error under a pseudo-terminal."""
    import pty
    import subprocess
    import sys

    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code, *words], stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other side has closed
            while chunk := os.read(ours, 4096):
                shown += chunk
    return process.returncode, shown
