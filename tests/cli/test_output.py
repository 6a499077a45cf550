"""What a terminal, a disk or a name can do to a command: one line, the documented exit code, nothing lost."""

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tapnet import cross_validate, load_model
from tapnet.errors import SettingError
from tests.helpers.commands import tapnet, tapnet_ends
from tests.helpers.faults import SMALL, write_rings

QUICK = ("--epochs", 1, "--folds", 3, "--jobs", 1, *SMALL)
FULL = "tapnet: standard output: cannot be written (No space left on device)\n"


@pytest.fixture
def folder(tmp_path):
    write_rings(tmp_path / "R.txt", graphs=12)
    return tmp_path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["datasets", "./R.txt"]])
def test_a_full_disk_for_standard_output_is_one_line(folder, words, buffered):
    with Path("/dev/full").open("w") as full:
        done = tapnet(
            *words,
            cwd=folder,
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": buffered},
        )
    assert (done.returncode, done.stderr) == (1, FULL)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_training_is_not_lost_where_nothing_can_be_printed(folder):
    words = ["train", "./R.txt", *QUICK, "--out", "run"]
    with Path("/dev/full").open("w") as full:
        done = tapnet(*words, cwd=folder, capture_output=False, stdout=full, stderr=full)
    assert done.returncode == 1
    run = json.loads((folder / "run" / "run.json").read_text())
    assert run["state"] == "complete"
    assert len(list((folder / "run" / "trials").glob("*.json"))) == 3


def test_an_encoding_without_our_letters_loses_none_of_them(folder):
    done = tapnet("train", "./R.txt", *QUICK, cwd=folder, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "\\xb1" in done.stdout


def test_too_little_memory_is_one_line(folder):
    os.truncate(folder / "R.txt", 20 << 30)
    limit = 3 << 30
    done = tapnet(
        "datasets", "./R.txt", cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    )
    assert (done.returncode, done.stderr) == (1, "tapnet: ./R.txt: needs more memory than there is\n")


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["train", "./R.txt", *QUICK, "--out", "a\nb"], 1, "control characters"),
        (["train", "./R.txt", *QUICK, "--out", "a" * 300], 1, "File name too long"),
        (["datasets", "~nobody-of-this-name/data"], 2, "no home folder"),
        (["datasets", "R", "--data-dir", "~nobody-of-this-name"], 2, "no home folder"),
        (["datasets", "./" + "a/" * 3000], 1, "no such file or folder"),
        (["show", "a" * 300], 1, "File name too long"),
    ],
    ids=lambda words: str(words)[:40],
)
def test_names_that_cannot_be_used_are_refused_at_once(folder, words, code, named):
    done = tapnet_ends(*words, folder=folder, code=code)
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
    assert [file.name for file in folder.iterdir()] == ["R.txt"]


def test_hidden_folders_and_names_of_any_bytes_are_data_sets_and_the_rest_is_refused_before_training(folder):
    def trained(name):
        where = folder / name
        (folder / "R.txt").rename(where)
        out = folder / "run" / str(len(name))
        try:
            return cross_validate(where, epochs=1, folds=3, jobs=1, out=out, final=True, hidden_channels=8)
        finally:
            where.rename(folder / "R.txt")

    for name in (".g.txt", os.fsdecode(b"rings\xff.txt")):
        assert load_model(trained(name).final).name == name.removesuffix(".txt")
    with pytest.raises(SettingError, match="~g"):
        trained("~g.txt")
