"""The command as a user types it: real processes, real output."""

import json
import subprocess
import sys

import pytest


def tapnet(*words, **options):
    command = [sys.executable, "-m", "tapnet", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def test_help_and_version_do_not_import_torch():
    code = "import sys\nfrom tapnet.cli import app\ntry:\n app(['--help'])\nexcept SystemExit: pass\n"
    code += "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
    assert tapnet("--version").stdout.startswith("tapnet ")


def test_importing_the_package_does_not_import_torch():
    code = "import sys, tapnet; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_listed_and_resolve():
    import tapnet as package

    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_datasets_lists_the_papers_ten():
    result = tapnet("datasets", "--json")
    assert result.returncode == 0, result.stderr
    rows = {row["name"]: row for row in json.loads(result.stdout)["datasets"]}
    assert len(rows) == 10
    assert rows["MUTAG"]["place"] == "GraKeL"
    assert rows["MUTAG"]["differs_from_paper"] == []
    assert rows["MUTAG"]["category_values"]["5"] == "Cl"
    table = tapnet("datasets")
    assert "MUTAG" in table.stdout
    assert "not here" in table.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["datasets", "NOWHERE"], 1, "NOWHERE is not in"),
        (["datasets", "no/such/folder"], 1, "no/such/folder: no such file or folder"),
        (["nonsense"], 2, "No such command"),
        (["datasets", "--nonsense"], 2, "No such option"),
    ],
)
def test_a_mistake_is_a_message_and_not_a_traceback(words, code, message):
    result = tapnet(*words)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_broken_data_set_is_one_line(tmp_path):
    (tmp_path / "X_A.txt").write_text("1, 2\n2, x\n")
    (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n")
    (tmp_path / "X_graph_labels.txt").write_text("1\n")
    result = tapnet("datasets", tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"tapnet: {tmp_path / 'X_A.txt'}:2: 'x' where a whole number belongs"]
