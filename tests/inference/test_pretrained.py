"""Models that a name is enough for: the one that comes with tapnet, and those of a folder."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tapnet import load_dataset, load_model
from tapnet.errors import DataError
from tapnet.inference.model_file import find_model_file, named_models, read_model
from tests.helpers.commands import tapnet_ends

ROOT = Path(__file__).parents[2]


@pytest.mark.filterwarnings("ignore")
def test_mutag_comes_with_tapnet_and_knows_its_graphs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, mutag = load_model("MUTAG"), load_dataset("MUTAG")
    assert model.is_training_data(mutag)
    predicted = model.predict(mutag)
    right = sum(a == mutag.classes[b] for a, b in zip(predicted.classes, mutag.y.tolist(), strict=True))
    assert 100 * right / len(mutag) > model.card.cross_validation.mean
    assert model.explain(3).prediction in model.class_names


def test_a_folder_has_more_and_a_path_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(named_models()["MUTAG"], tmp_path / "Mine.safetensors")
    with pytest.raises(DataError, match="no such file"):
        load_model("Mine")
    monkeypatch.setenv("TAPNET_MODELS", str(tmp_path))
    assert load_model("Mine").name == "MUTAG"
    (tmp_path / "MUTAG").mkdir()
    with pytest.raises(DataError, match="no final model"):
        find_model_file("MUTAG")


@pytest.mark.parametrize("file", [*named_models().values(), *sorted((ROOT / "models").glob("*.safetensors"))], ids=str)
def test_the_page_says_what_the_card_says(file):
    facts, page = read_model(file)[1].facts(), (ROOT / "docs/how-to/pretrained.md").read_text()
    assert file.stat().st_size < 2_000_000
    shown = [f"{facts['mean']:.1f} ± {facts['std']:.1f} %", f"{facts['baseline']:.1f} %"]
    shown += [f"{facts['calibration_error']:.3f}", f"{100 * facts['coverage']['0.9']:.1f} %"]
    (row,) = re.findall(rf"^\| {file.stem} \|.*$", page, re.MULTILINE) or [page.partition("## More models")[0]]
    assert all(words in row for words in shown)
    assert "10 folds × 200 epochs" in facts["rules"]


def test_the_command_lists_them(tmp_path):
    (row,) = json.loads(tapnet_ends("models", "--trained", "--json", folder=tmp_path).stdout)["models"]
    assert (row["name"], row["graphs"], row["predicts"]) == ("MUTAG", 188, ["not mutagenic", "mutagenic"])
    printed = tapnet_ends("models", "MUTAG", "--trained", folder=tmp_path).stdout
    assert f"{row['mean']:.1f}" in printed
    assert "majority class" in printed
