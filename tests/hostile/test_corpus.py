"""Every bad input ends in time, within its memory, with one line that says what is wrong, and leaves nothing behind.

The rule, for a command whose input is refused: it ends with exit code 1 or 2; on standard error stands exactly one
line, ``tapnet: …``, and before it one for each stored file that was set aside as damaged. `tapnet predict`, which goes
on after an input that it cannot read, writes a line for each of these and then its summary. What is odd but legitimate
ends with exit code 0. Never a traceback, never a control character on the terminal, never a half-written or unexpected
file.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import CONSOLE
from tests.helpers.corpus import UPLOAD, Case, Trained, all_cases, count, train_small, tu_files, under

MEMORY = 2 << 30  # bytes of address space; importing torch alone takes a quarter of it
SECONDS = 120  # to end at all, on a busy machine too: no measure of speed
OF = (
    "TU folder",
    "one-file text",
    "GraphML",
    "node-link JSON",
    "folder of graphs",
    "archive",
    "model",
    "predict",
    "settings",
    "stored results",
    "comparison",
    "settings file",
    "ensemble",
    "generated data",
    "explain",
)

AT_ONCE = 8  # commands that share a process, where it does not start from nothing

Run = Callable[[list[tuple[Case, Path]]], list[dict[str, Any]]]


# ---- the corpus and the two ways to run a command ----


@pytest.fixture(scope="session", autouse=True)
def _no_downloads() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPNET_TU_URL", "http://127.0.0.1:9/none")
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_small(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="session")
def cases(trained: Trained) -> list[Case]:
    return all_cases(trained)


@pytest.fixture(scope="session")
def in_a_fork(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Processes with limits, each for a few commands, forked from one in which torch is imported already."""
    folder = tmp_path_factory.mktemp("warm")
    good = Case("good", "inputs", "", (), under("SMALL", tu_files()) | {"m.safetensors": trained.model})
    here = good.write(folder)
    words = [
        ["datasets", "./SMALL"],
        ["train", "./SMALL", "--protocol", "paper", "--folds", "2", "--epochs", "1", "--jobs", "1", "--json"],
        ["predict", "m.safetensors", "./SMALL", "--out", "out.csv"],
        ["show", "m.safetensors", "0", "--dataset", "./SMALL", "--out", "picture.svg"],
    ]
    (here / "good.json").write_text(json.dumps(words))
    warm = subprocess.Popen(
        [sys.executable, Path(__file__).parents[1] / "helpers" / "warm.py", here],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert warm.stdin is not None
    assert warm.stdout is not None

    def run(cases: list[tuple[Case, Path]]) -> list[dict[str, Any]]:
        jobs = {"jobs": [(case.words, str(here)) for case, here in cases], "memory": MEMORY, "seconds": SECONDS}
        print(json.dumps(jobs), file=warm.stdin, flush=True)
        done: list[dict[str, Any]] = json.loads(warm.stdout.readline())  # type: ignore[union-attr]
        return done

    yield run
    warm.stdin.close()
    warm.wait(SECONDS)
    warm.stdout.close()


def from_nothing(cases: list[tuple[Case, Path]]) -> list[dict[str, Any]]:
    """A process for each, as a user starts it."""
    return [_process(case, here) for case, here in cases]


def _process(case: Case, here: Path) -> dict[str, Any]:
    process = subprocess.Popen(
        [*CONSOLE, *case.words],
        cwd=here,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        code = None
    return {"code": code, "out": out.decode(errors="surrogateescape"), "err": err.decode(errors="surrogateescape")}


# ---- the rule ----

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
PREDICTED = re.compile(r"tapnet: \d+ graphs? predicted")
SET_ASIDE = ".damaged"  # what the store calls a file that it does not believe


def files_of(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file and folder, each file with what changes when it is written."""
    found = {}
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent) / name for name in (*folders, *names)):
            stat = path.lstat()
            found[str(path.relative_to(folder))] = (
                () if path.is_dir() else (stat.st_mode, stat.st_size, stat.st_mtime_ns)
            )
    return found


def faults(case: Case, done: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as it must be."""
    found, lines = [], done["err"].splitlines()
    if done["code"] is None:
        return [f"{case.key}: did not end within {SECONDS} seconds"]
    if done["code"] not in ((0,) if case.accepted else (1, 2)):
        found.append(f"exit code {done['code']}")
    if "Traceback" in done["err"] + done["out"]:
        found.append("a traceback")
    if CONTROL.search(done["err"] + done["out"]):
        found.append("a control character")
    if not case.accepted:
        goes_on = case.words[0] == "predict" and len(lines) > 1 and PREDICTED.match(lines[-1])
        told = [line for line in lines if not line.endswith(f"{SET_ASIDE} now")]
        if len(told) != 1 + case.notes and not goes_on:
            found.append(f"{len(told)} lines where {1 + case.notes} belong")
        if not all(line.startswith("tapnet: ") for line in lines):
            found.append("a line that does not begin with 'tapnet: '")
        left = {name for name in after if after[name] != before.get(name)}
        left = {name for name in left if not name.endswith((SET_ASIDE, "run/checkpoints"))}  # the latter has the locks
        if left:
            found.append(f"files left behind or changed: {sorted(left)}")
    if max(map(len, lines), default=0) > 1000 + len(" ".join(case.words)):  # which it may repeat
        found.append("a line of more than 1,000 letters")
    if any(".partial-" in name for name in after):
        found.append("a half-written file")
    if any("code-was-run" in name for name in after):
        found.append("code of the file was run")
    return [f"{case.key}: {', '.join(found)}: {done['err'][-300:]!r}"] if found else []


def tried(cases: list[Case], folder: Path, run: Run) -> list[str]:
    """The faults of some cases that are run together."""
    places = [case.write(folder) for case in cases]
    before = [files_of(here) for here in places]
    done = run(list(zip(cases, places, strict=True)))
    after = [files_of(here) for here in places]
    return [fault for case in zip(cases, done, before, after, strict=True) for fault in faults(*case)]


# ---- the tests ----


def faults_among(cases: list[Case], folder: Path, run: Run) -> list[str]:
    groups = [cases[i : i + AT_ONCE] for i in range(0, len(cases), AT_ONCE)]
    found = [fault for group in groups for fault in tried(group, folder, run)]
    found += [f"left in the cache: {file}" for file in Path(os.environ["TAPNET_CACHE"]).rglob(".partial-*")]
    return [f"{len(found)} faults in {len(cases)} inputs", *found] if found else []


@pytest.mark.parametrize("of", OF)
def test_every_bad_input_is_refused_in_one_line(cases: list[Case], in_a_fork: Run, tmp_path: Path, of: str) -> None:
    found = faults_among([case for case in cases if case.of == of], tmp_path, in_a_fork)
    assert not found, "\n".join(found)


SHORT = (
    "tu-folder-paths-and-links-a-pipe",
    "archive-bombs-9-mb-of-lists",
    "model-code-in-a-model-a-torch-file-with-code",
)
SOME = (
    *SHORT,
    "tu-folder-numbers-out-of-range-node-5000-digits",
    "graphml-xml-entities-billion-laughs",
    "folder-of-graphs-names-the-file-x1b[31mred.json",
    "model-huge-counts-gin-with-layers-10**9",
    "predict-truncated-one-of-three",
    "settings-huge-counts---set-hidden_channels=1000000000",
)


@pytest.mark.parametrize("key", [pytest.param(k, marks=[] if k in SHORT else [pytest.mark.slow]) for k in SOME])
def test_so_it_is_for_a_process_that_starts_from_nothing(cases: list[Case], tmp_path: Path, key: str) -> None:
    found = faults_among([case for case in cases if case.key == key], tmp_path, from_nothing)
    assert not found, "\n".join(found)
    assert key in {case.key for case in cases}


@pytest.mark.slow
@pytest.mark.parametrize("of", OF)
def test_so_it_is_for_every_third_input(cases: list[Case], tmp_path: Path, of: str) -> None:
    found = faults_among([case for case in cases if case.of == of][::3], tmp_path, from_nothing)
    assert not found, "\n".join(found)


def test_the_page_answers_every_bad_upload_with_a_sentence(cases: list[Case], trained: Trained, tmp_path: Path) -> None:
    """One server for all of them: what one visitor sends does not harm the next."""
    pytest.importorskip("uvicorn", reason="the page needs FastAPI and uvicorn: pip install 'tapnet[explore]'")
    httpx = pytest.importorskip("httpx")
    (tmp_path / "m.safetensors").write_bytes(trained.model)
    process = subprocess.Popen(
        [sys.executable, "-m", "tapnet", "explore", "m.safetensors", "--port", "0", "--no-browser"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert process.stdout is not None
    found, before = [], files_of(tmp_path)
    try:
        address = next(match for line in process.stdout if (match := re.search(r"http://\S+", line))).group()
        with httpx.Client(base_url=address, timeout=SECONDS) as visitor:
            for case in (case for case in cases if case.words[0] == UPLOAD):
                answer = visitor.post("/api/graph", params={"name": case.words[1]}, content=case.files["body"])
                text = answer.json().get("error", "")
                if case.accepted != (answer.status_code == 200) or answer.status_code >= 500:
                    found.append(f"{case.key}: status {answer.status_code} {text!r}")
                if not case.accepted and not 10 < len(text) <= 500:
                    found.append(f"{case.key}: {len(text)} letters: {text!r}")
                if "Traceback" in answer.text:
                    found.append(f"{case.key}: a traceback")
            assert visitor.get("/api/model").status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert not found, "\n".join(found)
    assert err == ""
    assert process.returncode == 0
    assert files_of(tmp_path) == before


def test_there_are_enough_of_every_kind(cases: list[Case]) -> None:
    counts = count(cases)
    print(counts)
    refused = [case for case in cases if not case.accepted]
    assert len(cases) >= 1200, counts
    assert len(refused) >= 1000, counts
    assert {case.of for case in cases} == {*OF, "upload"}
    for kind in (
        "truncated",
        "bits flipped",
        "numbers out of range",
        "huge counts",
        "bombs",
        "paths and links",
        "encodings",
        "empty parts",
        "missing or doubled parts",
        "code in a model",
        "nested deeply",
        "XML entities",
        "wrong types",
        "names",
    ):
        assert sum(case.kind == kind for case in refused) >= 5, (kind, counts)
