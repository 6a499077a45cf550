"""What the README shows runs as it stands there."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_python_examples_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) >= 2
    for example in examples:
        exec(compile(example, "README.md", "exec"), {})


def test_the_pyg_example_is_fifteen_lines():
    (example,) = [e for e in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "TAPooling(" in e]
    assert len([line for line in example.splitlines() if line.strip()]) <= 15


def test_it_fits_on_one_page():
    assert len(README.splitlines()) <= 130


def test_every_link_leads_somewhere():
    root = Path(__file__).parent.parent
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    for link in links:
        assert (root / link).exists(), link
