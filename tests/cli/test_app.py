"""What all commands share: help, version, mistakes in one line."""

import os
import subprocess
import sys

import pytest
import typer.main

from tapnet.cli import app
from tapnet.cli.train import EPOCHS
from tapnet.models.registry import find_model
from tests.helpers.commands import tapnet


def test_help_and_version_do_not_import_torch():
    code = "import sys\nfrom tapnet.cli import app\ntry:\n app(['--help'])\nexcept SystemExit: pass\n"
    code += "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
    assert tapnet("--version").stdout.startswith("tapnet ")


@pytest.mark.parametrize("command", ["", *typer.main.get_command(app).commands])
def test_help_has_room_for_its_sentences_on_a_terminal_of_80_columns(command):
    words = [command] if command else []
    lines = tapnet(*words, "--help", env={**os.environ, "COLUMNS": "80"}).stdout.splitlines()
    assert max(map(len, lines)) == 80
    for row in (line.strip("│") for line in lines if line.startswith("│")):
        assert len(row) - len(row.lstrip()) <= 45  # where the sentences go on
    assert "<bool>" not in "".join(lines)  # a flag takes no value
    assert "…" not in "".join(lines).replace("MODEL-…", "").replace("compare-…", "")  # nothing is cut off


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)],
)
def test_threads_that_wait_sleep_soon_unless_the_user_has_said_otherwise(given, expected):
    code = "import atexit, os; atexit.register(lambda: print(os.environ.get('GOMP_SPINCOUNT')))\n"
    code += "import sys, tapnet.cli; sys.argv = ['tapnet', '--version']; tapnet.cli.main()"
    others = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**others, **given})
    assert done.stdout.splitlines()[-1] == str(expected)


def test_networkx_is_not_imported_to_see_that_molecules_are_none_of_its_graphs():
    code = "import sys\nfrom tapnet.data.convert import kind_of\nassert kind_of(['CCO']) == 'SMILES'\n"
    code += "sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_package_does_not_import_torch():
    code = "import sys, tapnet; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_listed_and_resolve():
    import tapnet as package

    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["datasets", "NOWHERE"], 1, "NOWHERE is not in"),
        (["datasets", "no/such/folder"], 1, "no/such/folder: no such file or folder"),
        (["datasets", "MUTGA"], 1, "did you mean MUTAG?"),
        (["nonsense"], 2, "No such command"),
        (["datasets", "--nonsense"], 2, "No such option"),
    ],
)
def test_a_mistake_is_a_message_and_not_a_traceback(words, code, message):
    result = tapnet(*words)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_the_epochs_that_help_names_are_those_of_molecules():
    assert f"200; molecules: {find_model('tapnet').molecules['epochs']}" == EPOCHS
