"""`tapnet tune`, and `tapnet train` with what it found."""

import json

import pytest

from tests.helpers.commands import tapnet_ends as tapnet

QUICK = ("--model", "gin", "--set", "hidden_channels=8", "--configs", "3", "--epochs", "2", "--jobs", "1")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    done = tapnet("tune", "MUTAG", *QUICK, "--out", "tuned", folder=folder)
    return folder, done


def test_the_table_has_every_configuration(tuned):
    folder, done = tuned
    assert "3 configurations" in done.stdout
    assert "settings.json" in done.stdout
    assert len([line for line in done.stderr.splitlines() if "validation of fold 0" in line]) >= 3
    found = json.loads((folder / "tuned/settings.json").read_text())
    assert found["model"] == "gin"
    again = json.loads(tapnet("tune", "MUTAG", *QUICK, "--out", "tuned", "--json", folder=folder).stdout)
    assert again == found
    assert found["settings"]["hidden_channels"] == 8


def test_train_takes_the_settings_and_options_override_them(tuned):
    folder, _ = tuned
    found = json.loads((folder / "tuned/settings.json").read_text())
    words = ("MUTAG", "--settings", "tuned/settings.json", "--folds", "3", "--only-folds", "0", "--jobs", "1", "--json")
    trained = json.loads(tapnet("train", *words, folder=folder).stdout)
    assert (trained["model"], trained["epochs"]) == ("gin", 2)
    assert {**trained["settings"], **trained["training"]}.items() >= found["settings"].items()
    other = json.loads(tapnet("train", *words, "--set", "hidden_channels=4", "--epochs", "1", folder=folder).stdout)
    assert (other["settings"]["hidden_channels"], other["epochs"]) == (4, 1)


def test_the_command_that_is_proposed_names_the_data_as_the_user_did(tmp_path):
    (tmp_path / "my set.csv").write_text("\n".join(["smiles,y", *(f"{'C' * (i % 7 + 1)},{i % 2}" for i in range(20))]))
    quick = ("--model", "size", "--configs", "1", "--jobs", "1", "--out", "out")
    done = tapnet("tune", "my set.csv", *quick, folder=tmp_path)
    assert "tapnet train 'my set.csv' --settings FILE" in done.stdout
    assert "the best of 1 configuration on" in done.stdout
    found = json.loads(tapnet("tune", "my set.csv", *quick, "--json", folder=tmp_path).stdout)
    assert found["dataset"] == "my set"


@pytest.mark.parametrize(
    ("content", "words", "fact", "code"),
    [
        ({"model": "gin", "settings": {}}, ["--model", "wl"], "settings of gin, not of wl", 2),
        ({"settings": {"pool": "os:system"}}, [], "--pool", 2),
        ({"settings": {"out": "elsewhere"}}, [], "out is not a setting", 2),
        ({"settings": {"colour": 1}}, [], "no setting 'colour'", 2),
        ([], [], "settings", 1),
    ],
)
def test_a_file_that_does_not_fit_is_one_line(tmp_path, content, words, fact, code):
    (tmp_path / "s.json").write_text(json.dumps(content))
    done = tapnet("train", "MUTAG", "--settings", "s.json", *words, folder=tmp_path, code=code)
    assert fact in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_nested_prints_what_was_chosen_and_writes_the_splits(tmp_path):
    words = ("--protocol", "nested", "--folds", "3", "--only-folds", "0,2", "--save-splits", "splits.json")
    done = tapnet("train", "MUTAG", *QUICK, *words, "--out", "run", folder=tmp_path)
    assert "protocol nested" in done.stdout
    assert "batch_size" in done.stdout
    assert [one.keys() for one in json.loads((tmp_path / "splits.json").read_text())] == [
        {"test", "model_selection"}
    ] * 2
    with_json = tapnet("train", "MUTAG", *QUICK, *words, "--out", "run", "--json", folder=tmp_path)
    assert len(json.loads(with_json.stdout)["folds"]) == 2
    assert "nested" in tapnet("show", "run", folder=tmp_path).stdout
