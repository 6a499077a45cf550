"""`tapnet explain`, and `tapnet show` of models that predict numbers or labels."""

import json
import xml.etree.ElementTree as ET

import pytest

from tests.helpers.commands import tapnet_ends as tapnet


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    words = ("--epochs", 2, "--folds", 3, "--jobs", 1, "--out", "run", "--final")
    tapnet("train", "MUTAG", *words, folder=folder)
    return folder


def texts(file):
    return {"".join(e.itertext()) for e in ET.parse(file).iter("{http://www.w3.org/2000/svg}text")}


def test_json_has_the_fields_of_an_explanation(run):
    values = json.loads(tapnet("explain", "run", 0, "--json", folder=run).stdout)
    fields = {"prediction", "probabilities", "method", "nodes", "edges", "fidelity", "groups"}
    assert fields <= values.keys()
    assert values["method"] == "surrogate"
    assert values["prediction"] in values["probabilities"]
    assert [node["node"] for node in values["nodes"]] == list(range(17))
    assert {"attribution", "kept"} <= values["nodes"][0].keys()
    assert {"source", "target", "attribution"} == values["edges"][0].keys()
    assert len(values["edges"]) == 19
    assert isinstance(values["fidelity"]["beats_chance"], bool)
    several = json.loads(tapnet("explain", "run", 0, 1, "--json", "--method", "gradients", folder=run).stdout)
    assert [graph["graph"] for graph in several["graphs"]] == ["MUTAG, graph 0", "MUTAG, graph 1"]
    assert {graph["method"] for graph in several["graphs"]} == {"gradients"}


def test_text_and_a_sheet_of_pictures(run):
    done = tapnet("explain", "run", 0, 1, "--out", "sheet.svg", folder=run)
    assert "MUTAG, graph 1: " in done.stdout
    assert done.stdout.count("fidelity") == 2
    assert "chance on this graph." in done.stdout
    assert done.stdout.endswith("Written: sheet.svg\n")
    words = texts(run / "sheet.svg")
    assert {"C", "N", "O"} <= words
    assert any("log odds" in word for word in words)
    tapnet("explain", "run", 0, "--out", "kept.svg", "--kept", folder=run)
    assert any(word.startswith("after pooling 3: ") for word in texts(run / "kept.svg"))
    for ending in ("png", "pdf"):
        tapnet("explain", "run", 0, "--out", f"one.{ending}", folder=run)
        assert (run / f"one.{ending}").stat().st_size > 5000


def test_the_categories_that_carry_the_classes(run):
    done = tapnet("explain", "run", "--summary", folder=run)
    assert "mutagenic:" in done.stdout
    rows = json.loads(tapnet("explain", "run", "--summary", "--dataset", "MUTAG", "--json", folder=run).stdout)["rows"]
    assert {"C", "N", "O"} <= {row["name"] for row in rows}
    assert sum(row["count"] for row in rows) == 3371  # nodes


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ([], "which graph?", 2),
        (["188"], "has graphs 0 to 187", 1),
        (["0", "--out", "x.gif"], "--out is a .png, .svg, .pdf file", 2),
        (["0", "--target", "nothing"], "not 'nothing'", 2),
        (["0", "--method", "lime"], "'lime' is not one of", 2),
        (["0", "--kept"], "--out", 2),
        (["0", "--summary"], "whole data set", 2),
        (["nowhere.json"], "nowhere.json: no such file", 1),
    ],
)
def test_mistakes_are_one_line(run, words, message, code):
    done = tapnet("explain", "run", *words, folder=run, code=code)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("molecules")
    smiles = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "OCCO", "CCC", "O=[N+]([O-])c1ccccc1"] * 3
    number = [f"{s},{s.count('O') + 0.5}" for s in smiles]
    (folder / "solubility.csv").write_text("smiles,logS\n" + "\n".join(number))
    labels = [f"{s},{int('O' in s)},{int('N' in s)}" for s in smiles]
    (folder / "kinds.csv").write_text("smiles,oxygen,nitrogen\n" + "\n".join(labels))
    for name in ("solubility", "kinds"):
        words = ("--epochs", 1, "--folds", 3, "--jobs", 1, "--out", name, "--final")
        target = ("--target", "oxygen,nitrogen") if name == "kinds" else ()
        tapnet("train", f"{name}.csv", *words, *target, "--set", "hidden_channels=8", folder=folder)
    return folder


def test_a_number_is_explained_and_shown(molecules):
    done = tapnet("explain", "solubility", "CCO", "c1ccccc1O", "--out", "two.svg", folder=molecules)
    assert "CCO: logS " in done.stdout
    assert "phenol" in done.stdout
    values = json.loads(tapnet("explain", "solubility", 3, "--json", folder=molecules).stdout)
    assert isinstance(values["prediction"], float)
    assert values["probabilities"] == {}
    shown = tapnet("show", "solubility", 3, "--out", "shown.png", folder=molecules).stdout
    assert shown.startswith("solubility, graph 3: logS ")
    assert "true value: logS 2.5" in shown
    done = tapnet("explain", "solubility", "C(C", folder=molecules, code=1)
    assert "no valid SMILES" in done.stderr


def test_labels_are_explained_and_shown(molecules):
    values = json.loads(tapnet("explain", "kinds", "OCCN", "--target", "nitrogen", "--json", folder=molecules).stdout)
    assert values["target"] == "nitrogen"
    assert set(values["probabilities"]) == {"oxygen", "nitrogen"}
    assert {"alcohol", "amine"} <= {group["name"] for group in values["groups"]}
    shown = tapnet("show", "kinds", 1, "--out", "shown.png", folder=molecules).stdout
    assert "true labels: nitrogen" in shown
    rows = json.loads(tapnet("explain", "kinds", "--summary", "--json", folder=molecules).stdout)["rows"]
    assert {"category", "functional group", "ring"} == {row["kind"] for row in rows}
