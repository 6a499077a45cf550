"""What is built for release: its contents and metadata, and a wheel in an empty environment, outside the repository."""

import json
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

import tapnet

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_has_the_package_and_its_data_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = (wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA"))
    assert {name.partition("/")[0] for name in names} == {"tapnet"}
    source = ROOT / "src"
    files = (file.relative_to(source) for file in source.rglob("*") if file.is_file())
    there = {file.as_posix() for file in files if "__pycache__" not in file.parts}
    assert {name for name in names if not name.startswith("tapnet/_benchmarks/")} == there
    assert {"tapnet/py.typed", "tapnet/io/datasets/MUTAG.zip", "tapnet/explorer/page/app.js"} <= names
    assert f"\nVersion: {tapnet.__version__}\n" in metadata
    assert "\nRequires-Python: >=3.10\n" in metadata
    needed = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", metadata, re.MULTILINE)
    assert "torch" in needed
    assert not {"GraKeL", "grakel", "ray", "fastapi", "pytest"} & set(needed)


def test_the_sdist_has_sources_tests_and_docs_but_no_trials(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "src/tapnet/nn/tap.py",
        "tests/conftest.py",
        "mkdocs.yml",
    } <= names
    assert not [name for name in names if name.startswith(("results/", "runs/", ".venv/", "node_modules/"))]
    assert built[1].stat().st_size < 5e6


def test_the_metadata_are_what_a_package_index_takes(built):
    pytest.importorskip("twine")
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_that_of_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changelog, re.MULTILINE)[1] == tapnet.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {tapnet.__version__}\n" in citation


def test_the_workflows_are_sound():
    zizmor = shutil.which("zizmor", path=Path(sys.executable).parent) or shutil.which("zizmor")
    if zizmor is None:
        pytest.skip("zizmor is not installed")
    done = subprocess.run([zizmor, "--offline", "--quiet", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(built, tmp_path):
    """Needs a package index; torch is the pinned one."""
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    bin_folder = environment / ("Scripts" if sys.platform == "win32" else "bin")

    def run(program, *words):
        done = subprocess.run([bin_folder / program, *map(str, words)], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", f"{built[0]}[explore]")
    assert run("tapnet", "--version").split() == ["tapnet", tapnet.__version__]
    run("tapnet", "train", "MUTAG", "--epochs", 2, "--folds", 3, "--final", "--out", "run")
    assert len(run("tapnet", "predict", "run", "MUTAG").splitlines()) == 189
    run("tapnet", "show", "run", 0, "--out", "shown.png")
    assert (tmp_path / "shown.png").stat().st_size > 1000
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [bin_folder / "tapnet", "explore", "run", "--port", str(port), "--no-browser"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            assert b"<title>" in answer(f"http://127.0.0.1:{port}/")
            assert json.loads(answer(f"http://127.0.0.1:{port}/api/model"))
        finally:
            server.terminate()


def answer(url, patience=60):
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(url) as response:
                return response.read()
        except OSError:
            assert time.monotonic() < end, f"{url} does not answer"
            time.sleep(0.2)
