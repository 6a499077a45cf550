"""Resolves the project with every extra to wheels for each Python and platform, and writes docs/reference/wheels.md.

Only metadata is fetched (uv). Fails where a dependency would have to be built from source.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "wheels.md"
PYTHONS = {"3.10": "3.10.13", "3.11": "3.11.7", "3.12": "3.12.1", "3.13": "3.13.0", "3.14": "3.14.0"}
PLATFORMS = {
    "Linux (x86-64)": "x86_64-manylinux_2_28",
    "Linux (ARM)": "aarch64-manylinux_2_28",
    "macOS 14 (ARM)": "aarch64-apple-darwin",
    "Windows (x86-64)": "x86_64-pc-windows-msvc",
}
WAYS = {"pinned": ["--constraint", "constraints.txt"], "newest": [], "lowest": ["--resolution", "lowest-direct"]}


def resolve(python: str, platform: str, options: list[str]) -> dict[str, str]:
    """Package → version of everything that an installation with all extras has."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        sys.exit("uv is not installed: pip install uv")
    words = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:", "--all-extras"]
    words += ["--python-version", PYTHONS[python], "--python-platform", PLATFORMS[platform], *options, "pyproject.toml"]
    macos = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=os.environ | macos)
    if done.returncode:
        sys.exit(f"Python {python} on {platform}, {' '.join(options) or 'newest'}:\n{done.stderr}")
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", done.stdout, re.MULTILINE))


def direct() -> list[str]:
    """The packages that pyproject.toml names outside the extras for documentation and development."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lists = text.partition("\ndependencies = [")[2].partition("\ndocs = [")[0]
    return [name.lower().replace("_", "-") for name in re.findall(r'"([A-Za-z][\w-]*)[>=<]', lists)]


def main() -> None:
    with ThreadPoolExecutor(8) as pool:  # each waits for the registry
        waiting = {
            way: {key: pool.submit(resolve, *key, options) for key in product(PYTHONS, PLATFORMS)}
            for way, options in WAYS.items()
        }
        found = {way: {key: cell.result() for key, cell in cells.items()} for way, cells in waiting.items()}
    head = ["| |" + "".join(f" {python} |" for python in PYTHONS), "|---|" + "---|" * len(PYTHONS)]
    lines = ["# Wheels for each Python and platform", ""]
    lines += ["Written by `make wheels`: with every extra, each of these resolves to wheels, and nothing is built from"]
    lines += ["source. What was run, and not only resolved, is in [Versions](../versions.md).", ""]
    for way, cells in found.items():
        command = " ".join(WAYS[way]) or "no constraint"
        lines += [
            f"## The {way} versions ({command})",
            "",
            "How many packages, all extras and tools included:",
            "",
            *head,
        ]
        for system in PLATFORMS:
            lines.append(f"| {system} |" + "".join(f" {len(cells[python, system])} |" for python in PYTHONS))
        lines += ["", "What `tapnet` and its extras name:", "", *head]
        for name in direct():
            row = []
            for python in PYTHONS:
                versions = {system: cells[python, system].get(name) for system in PLATFORMS}
                common = set(versions.values())
                row.append(
                    ", ".join(f"{v or 'none'} on {s}" for s, v in versions.items())
                    if common - {versions["Linux (x86-64)"]}
                    else str(common.pop())
                )
            lines.append(f"| {name} | " + " | ".join(row) + " |")
        lines.append("")
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print(f"{sum(map(len, found.values()))} environments resolve to wheels: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
