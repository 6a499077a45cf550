"""`tapnet compare` from the command line: trained, continued, shown again; stored runs; mistakes."""

import json
import signal
import subprocess
import sys

import pytest

from tests.helpers.commands import tapnet_ends as tapnet

QUICK = ("MUTAG", "--systems", "tapnet:none,gin", "--folds", 3, "--epochs", 1, "--jobs", 1, "--out", "out")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison of two systems of one epoch, as JSON."""
    folder = tmp_path_factory.mktemp("compare")
    done = tapnet("compare", *QUICK, "--json", folder=folder)
    return folder, json.loads(done.stdout), done.stderr


def test_json_is_one_object_with_every_system(compared):
    folder, values, _ = compared
    assert [row["name"] for row in values["systems"]] == ["tapnet:none", "gin", "majority", "size", "bag"]
    assert (values["reference"], values["metric"], values["protocol"]) == ("tapnet:none", "accuracy", "fair")
    assert all(len(row["scores"]) == 3 for row in values["systems"])
    assert values["verdict"]
    stored = json.loads((folder / "out/comparison.json").read_text())
    assert stored["systems"] == values["systems"]
    assert json.loads((folder / "out/tapnet-none/run.json").read_text())["pool"] == "none"


def test_the_same_again_trains_nothing_and_prints_the_table(compared):
    folder, _, before = compared
    files = ("--csv", "a.csv", "--latex", "a.tex", "--plot", "a.svg")
    done = tapnet("compare", *QUICK, "--reference", "gin", *files, folder=folder)
    assert "gin, fair, fold 2" in before
    assert "fold" not in done.stderr.replace("another fold", "")
    assert {"tapnet:none", "gin (reference)", "bag (baseline)"} <= {
        line.split("  ")[0] for line in done.stdout.splitlines()
    }
    assert "\nVerdict: " in done.stdout
    assert (folder / "a.csv").read_text().startswith("system,")
    assert r"\toprule" in (folder / "a.tex").read_text()
    assert "gin (reference)" in (folder / "a.svg").read_text()


def test_classes_are_weighted_and_epochs_chosen_as_in_training(tmp_path):
    words = ("--class-weight", "balanced", "--select-by", "roc_auc", "--folds", 3, "--epochs", 1, "--jobs", 1)
    done = tapnet("compare", "MUTAG", "--systems", "tapnet:none", *words, "--out", "out", "--json", folder=tmp_path)
    assert json.loads(done.stdout)["rules"].startswith("protocol fair: epoch with the best validation roc_auc")
    (trial, *_) = json.loads((tmp_path / "out/tapnet-none/run.json").read_text())["trials"]
    assert '"class_weight":"balanced"' in (tmp_path / f"out/tapnet-none/trials/{trial}.json").read_text()


@pytest.mark.parametrize("path", ["out", "out/comparison.json"])
def test_show_prints_and_draws_it(compared, path):
    folder, _, _ = compared
    done = tapnet("show", path, folder=folder)
    assert "Verdict: " in done.stdout
    assert (folder / "out/comparison.png").stat().st_size > 5000


def test_stored_runs_are_compared_if_their_conditions_are_the_same(compared):
    folder, values, _ = compared
    done = tapnet("compare", "out/tapnet-none", "out/gin", "--json", folder=folder)
    again = json.loads(done.stdout)
    assert [row["scores"] for row in again["systems"]] == [row["scores"] for row in values["systems"][:2]]
    assert again["systems"][1]["difference"]["p"] == values["systems"][1]["difference"]["p"]
    tapnet(
        "train",
        "MUTAG",
        "--model",
        "size",
        "--protocol",
        "paper",
        "--folds",
        3,
        "--jobs",
        1,
        "--out",
        "paper",
        folder=folder,
    )
    done = tapnet("compare", "out/gin", "paper", folder=folder, code=2)
    assert "gin and size cannot be compared: they differ in the protocol: fair and paper" in done.stderr
    for words in (["--protocol", "paper"], ["--seeds", 2], ["--split", "nothing.json"]):
        done = tapnet("compare", "out/gin", "out/tapnet-none", *words, folder=folder, code=2)
        assert f"{words[0]} is for training" in done.stderr
    done = tapnet("compare", "out", "out/gin", "--metric", "f1", folder=folder, code=2)
    assert "the stored comparison in out is by accuracy" in done.stderr


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["MUTAG"], "which systems?", 2),
        (["MUTAG", "PTC", "--systems", "gin"], "one data set", 2),
        (["MUTAG", "--systems", "gni"], "did you mean gin?", 2),
        (["MUTAG", "--systems", "gin", "--plot", "a.gif"], "--plot is a .png", 2),
        (["nothing", "nowhere"], "nothing: no such folder", 1),
        ([".", "."], "not the folder of a cross-validation", 1),
        (["MUTAG", "--systems", "gin", "--configs", 3], "--configs is an option of the protocol nested", 2),
    ],
)
def test_mistakes_are_one_line(tmp_path, words, message, code):
    done = tapnet("compare", *words, folder=tmp_path, code=code)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child there")
def test_ctrl_c_names_the_system_and_the_same_command_goes_on(tmp_path):
    words = ["compare", "MUTAG", "--systems", "wl,gin", "--folds", "3", "--epochs", "30", "--jobs", "1", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tapnet", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "gin, fair, fold 0" in line:
            break
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "gin: stopped with 1 of 3 folds done; 1 of 5 systems are done; the same command goes on" in said
    done = tapnet(*words, folder=tmp_path)
    assert "wl, fair" not in done.stderr
    assert "gin, fair, fold 0" not in done.stderr
    assert "gin, fair, fold 2" in done.stderr
    assert "Verdict" in done.stdout
