"""The documentation says what is true: its programs run, its excerpts are the source, its references are complete."""

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer.main
from packaging.utils import canonicalize_name

import tapnet
from tapnet.cli import app
from tapnet.nn.pool.registry import POOLS
from tests.helpers.commands import tapnet as run_tapnet

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# ---- what runs ----


@pytest.mark.parametrize("page", ["index.md", "tutorial.md", "how-to/own-data.md", "molecules.md"])
def test_what_a_page_shows_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed = None
    for language, _, block in BLOCK.findall((DOCS / page).read_text()):
        if language == "text":
            if printed is not None:
                _assert_printed(block, printed)
            printed = None  # the next text without a program before it only illustrates
        elif "tapnet explore" in block:
            _assert_page_opens(block, tmp_path)
        elif language == "python":
            exec(compile(block, page, "exec"), {"__name__": "__main__"})
            printed = "".join(capsys.readouterr())
        else:
            program, *words = shlex.split(block)
            if program == "tapnet" and block.count("\n") == 1:
                jobs = ["--jobs", 1] if words[0] == "train" else []  # the same numbers, in less
                done = run_tapnet(*words, *jobs)
            else:
                done = _run(["bash", "-e", "-o", "pipefail", "-c", block], tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{block}\n{done.stderr}"
            printed = done.stdout + done.stderr
    assert not list(tmp_path.glob("**/*.damaged"))


def _run(words, folder, run=subprocess.run, **options):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return run(words, cwd=folder, env={**os.environ, "PATH": path}, **options)


def _assert_printed(expected, printed):
    """Every line, in its order; numbers and the order of the people may be other ones on another machine."""
    lines = iter(map(_masked, printed.splitlines()))
    for line in map(_masked, expected.splitlines()):
        assert line in lines, f"{line!r} is not printed there:\n{printed}"


def _masked(line):
    people = re.search(r'NAMES = "(.*?)"', (DOCS / "tutorial.md").read_text())[1].replace(" ", "|")
    line = re.sub(r"#+", "#", re.sub(r"\d+(\.\d+)?", "0", line))  # bars are as long as their numbers say
    return " ".join(re.sub(rf"\b({people})\b", "NAME", line).split())


def _assert_page_opens(block, folder):
    with _run(
        ["bash", "-c", f"exec {block.strip()} --no-browser --port 0"],
        folder,
        subprocess.Popen,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            said = next(line for line in server.stdout if "read of the" not in line)  # which is about the data
            if importlib.util.find_spec("fastapi") is None:
                assert "pip install" in said
                return
            address = re.search(r"http://\S+", said)
            assert address, said + server.stdout.read()
            with urllib.request.urlopen(address[0], timeout=30) as page:
                assert b"tapnet" in page.read()
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0


# ---- what is quoted ----


def test_excerpts_are_lines_of_the_files_that_they_name():
    excerpts = 0
    for page in DOCS.glob("**/*.md"):
        for _, info, block in BLOCK.findall(page.read_text()):
            if title := re.search(r'title="([^"]+\.py)"', info):
                source = iter([line.strip() for line in (ROOT / title[1]).read_text().splitlines()])
                for line in filter(str.strip, block.splitlines()):
                    assert line.strip() in source, f"{page.name}: {title[1]} has no such line, or earlier: {line}"
                excerpts += 1
    assert excerpts >= 5


# ---- the references ----


def test_every_command_argument_and_option_is_in_the_reference():
    spec = importlib.util.spec_from_file_location("commands_hook", DOCS / "hooks/commands.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    assert hook.MARK in (DOCS / "reference/commands.md").read_text()
    sections = dict(re.findall(r"^## tapnet (\S+)\n(.*?)(?=^## |\Z)", hook.commands_page(), re.MULTILINE | re.DOTALL))
    commands = typer.main.get_command(app).commands
    assert list(sections) == list(commands)
    for name, command in commands.items():
        command.name_pools()
        assert command.help in sections[name]
        shown = {word for cell in re.findall(r"^\| `([^`]+)` ", sections[name], re.MULTILINE) for word in cell.split()}
        options = {word for words in shown for word in words.split("/") if word.startswith("-")}
        assert options == {word for p in command.params for word in (*p.opts, *p.secondary_opts) if word[0] == "-"}
        for param in command.params:
            assert param.opts[0][0] == "-" or shown & {param.metavar, param.name.upper(), f"{param.name.upper()}..."}
            assert (param.help or "") in sections[name]


def test_every_pooling_layer_is_in_the_cheat_sheet():
    spec = importlib.util.spec_from_file_location("pools_hook", DOCS / "hooks/pools.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = hook.on_page_markdown((DOCS / "reference/pools.md").read_text())
    sheet, costs = (
        re.findall(r"^\| `(.*?)` \| (.*) \|$", part, re.MULTILINE) for part in page.split("## What they cost")
    )
    assert [name for name, _ in costs] == list(POOLS)
    assert {len(cells.split(" | ")) for _, cells in costs} == {4}
    assert [name for name, _ in sheet] == list(POOLS)
    for name, cells in sheet:
        assert POOLS[name].about in cells
        assert POOLS[name].paper in cells
        assert len(cells.split(" | ")) == 7


def test_every_public_name_is_in_the_reference():
    named = re.findall(r"^::: (\S+)$", (DOCS / "reference/api.md").read_text(), re.MULTILINE)
    for name in tapnet.__all__:
        assert f"tapnet.{name}" in named or name in ("__version__", "paper")
    assert "tapnet.models.tapnet.TAPNetSettings" in named
    assert "tapnet.training.settings.TrainingSettings" in named


# ---- the site ----


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("mkdocs", "material", "mkdocstrings_handlers.python", "latex2mathml"):
        try:
            missing = importlib.util.find_spec(name) is None
        except ModuleNotFoundError:
            missing = True
        if missing:
            pytest.skip(f"the site is not built: {name.partition('.')[0]} is not installed (pip install '.[docs]')")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = _run(words, ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class _Loaded(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "link" and given.get("rel") in ("prev", "next", "canonical"):
            return  # for readers and robots
        if tag != "a":
            self.addresses += [given[key] for key in ("src", "href", "srcset", "data", "poster") if given.get(key)]


def test_pages_load_nothing_from_another_host(site):
    pages = list(site.glob("**/*.html"))
    assert len(pages) >= 11
    for page in pages:
        parser = _Loaded()
        parser.feed(page.read_text())
        assert parser.addresses
        for address in parser.addresses:
            assert not re.match(r"(?i)\s*(\w+:)?//", address), f"{page.name} loads {address}"
            if page.name != "404.html" and not address.startswith("#"):
                assert (page.parent / address.partition("?")[0].partition("#")[0]).exists(), f"{page.name}: {address}"
    for style in site.glob("**/*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", style.read_text()), style.name


def test_formulas_are_mathml(site):
    written = (DOCS / "layer.md").read_text()
    page = (site / "layer.html").read_text()
    formulas = re.findall(r"<math .*?</math>", page, re.DOTALL)
    assert len([f for f in formulas if 'display="block"' in f]) == written.count("\n$$\n") // 2
    assert "arithmatex" not in page
    assert "<math" in (site / "reference/api.html").read_text()
    for formula in formulas:
        assert "\\" not in formula, f"not understood: {formula}"
        assert "&amp;" not in formula, f"not understood: {formula}"


def test_the_source_stands_under_the_formulas(site):
    page = re.sub(r"<[^>]+>", "", (site / "layer.html").read_text())
    for line in (
        "def local_voting(",
        "def global_voting(",
        "def mean_over_edges(",
        "def best_nodes(",
        "def link_loss(",
    ):
        assert line in page


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("licences_hook", DOCS / "hooks/licences.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


def test_every_dependency_is_pinned(hook):
    lines = (DOCS.parent / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    assert set(map(canonicalize_name, hook.licences())) <= pinned


def test_every_dependency_has_a_licence_that_a_user_can_live_with(hook):
    assert hook.MARK in (DOCS / "reference/licences.md").read_text()
    found = hook.licences()
    assert {"torch", "torch-geometric", "ray", "numpy"} <= {name.lower().replace("_", "-") for name in found}
    assert [name for name, families in found.items() if not families] == []
