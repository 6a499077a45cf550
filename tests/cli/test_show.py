"""`tapnet show`: graphs and runs drawn from stored models."""

import json
import re
import shutil
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import pytest

from tapnet import load_model
from tapnet.errors import DatasetNotFoundError
from tapnet.inference.training_data import load_training_data
from tests.helpers.commands import tapnet_ends as tapnet
from tests.helpers.graphs import write_graph


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("show")
    tapnet("train", "MUTAG", "--epochs", 2, "--folds", 3, "--jobs", 1, "--out", "run", folder=folder)
    return folder


@pytest.fixture(scope="module")
def model(run):
    return sorted((run / "run/models").iterdir())[0]


def test_a_molecule_is_drawn_with_its_elements(model, tmp_path):
    done = tapnet("show", model, 0, "--out", "molecule.svg", folder=tmp_path)
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"MUTAG, graph 0: .*mutagenic \(\d+ %\); true class: mutagenic", lines[0])
    assert lines[1].startswith("attribution by ")
    fidelity = next(i for i, line in enumerate(lines) if line.startswith("fidelity"))
    assert next(i for i, line in enumerate(lines) if "14 of 17 nodes kept" in line) > fidelity
    assert lines[-1] == "Written: molecule.svg"
    drawn = ET.parse(tmp_path / "molecule.svg").iter("{http://www.w3.org/2000/svg}text")
    words = {"".join(e.itertext()) for e in drawn}
    assert {"C", "N", "O", "after pooling 1: 14 of 17 nodes"} <= words
    assert words & {"beats chance", "not better than chance"}
    assert any("log odds" in word for word in words)
    for ending in ("png", "pdf"):
        tapnet("show", model, 0, "--out", f"molecule.{ending}", folder=tmp_path)
        assert (tmp_path / f"molecule.{ending}").stat().st_size > 5000


def test_a_run_is_drawn_as_curves_and_confusion(run):
    done = tapnet("show", "run", folder=run)
    assert "protocol fair" in done.stdout
    assert "3 folds × 2 epochs" in done.stdout
    assert (run / "run/curves.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["MODEL"], "which graph?", 2),
        (["MODEL", "188"], "has graphs 0 to 187", 1),
        (["MODEL", "0", "--out", "x.gif"], "--out is a .png, .svg, .pdf file", 2),
        (["nothing", "0"], "no such file", 1),
        (["nothing"], "nothing: no such file, folder or model", 1),
        (["MUTAG"], "which graph?", 2),
        ([".", "0"], ".: this folder has no final model; train one with --final", 1),
        (["FOLDER", "0"], "this folder has no final model; give one of those in ", 1),
        (["MODEL", "nowhere.json"], "nowhere.json: no such file, and MUTAG has no graph of that name", 1),
        (["."], "not the folder of a cross-validation", 1),
    ],
)
def test_mistakes_are_one_line(model, tmp_path, words, message, code):
    done = tapnet(
        "show", *({"MODEL": model, "FOLDER": model.parent}.get(w, w) for w in words), folder=tmp_path, code=code
    )
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run with a final model on a folder of rings and stars, of which labels.csv leaves one out."""
    folder = tmp_path_factory.mktemp("own")
    rows = ["graph,class"]
    for i in range(12):
        graph = nx.cycle_graph(5 + i) if i % 2 else nx.star_graph(5 + i)
        nx.set_node_attributes(graph, {node: "ab"[node % 2] for node in graph}, "label")
        write_graph(graph, folder / "shapes" / f"shape{i}.json", edges="edges")
        rows.append(f"shape{i},{'ring' if i % 2 else 'star'}")
    (folder / "shapes/labels.csv").write_text("\n".join(rows[:-1]))
    words = ("--epochs", 1, "--folds", 3, "--jobs", 1, "--out", "run", "--final")
    tapnet("train", "shapes", *words, "--set", "hidden_channels=8", folder=folder)
    return folder


def test_a_graph_of_one_s_own_is_shown_with_its_file_and_its_class(own):
    by_number, by_name, by_ending = (
        tapnet("show", "run", g, folder=own).stdout for g in (10, "shape10", "shape10.json")
    )
    assert by_number == by_name == by_ending
    assert re.match(r"shapes, graph 10, shape10.json: (ring|star) \(\d+ %\); true class: star\n", by_number)
    assert by_number.endswith("Written: shapes-10.png\n")
    assert (own / "shapes-10.png").stat().st_size > 5000
    by_file = tapnet("show", "run", "shapes/shape1.json", folder=own).stdout
    assert re.match(r"shape1: (ring|star) \(\d+ %\); true class: ring\n", by_file)
    not_listed = tapnet("show", "run", "shapes/shape11.json", folder=own).stdout
    assert re.match(r"shape11: (ring|star) \(\d+ %\)\n", not_listed)


def test_a_folder_of_graphs_is_not_one_graph(own):
    done = tapnet("show", "run", "shapes", folder=own, code=2)
    assert "shapes has 11 graphs" in done.stderr
    assert "--dataset shapes" in done.stderr


def test_nodes_of_an_unknown_category_are_drawn_with_the_others(own):
    graph = nx.path_graph(6)
    nx.set_node_attributes(graph, {node: "abc"[node % 3] for node in graph}, "label")
    write_graph(graph, own / "strange.json", edges="edges")
    done = tapnet("show", "run", "strange.json", "--out", "strange.svg", folder=own)
    assert done.stderr == (
        "tapnet: 1 graph has node categories that the model was not trained on (strange: 'c'): they count as none\n"
    )
    drawn = ET.parse(own / "strange.svg").iter("{http://www.w3.org/2000/svg}text")
    assert {"a", "b", *map(str, graph)} <= {"".join(e.itertext()) for e in drawn}


def test_a_run_finds_its_data_from_any_folder_and_after_a_move(own, tmp_path, monkeypatch):
    done = tapnet("show", own / "run", "shape10", folder=tmp_path)
    assert done.stdout.startswith("shapes, graph 10, shape10.json: ")
    shutil.copytree(own, tmp_path / "elsewhere")
    run = tmp_path / "elsewhere/run"
    file = run / "run.json"
    values = json.loads(file.read_text())
    assert values["data"]["relative"] == str(Path("../shapes"))
    monkeypatch.chdir(tmp_path)

    def found(path=run):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels.csv leaves one out
            return Path(load_training_data(load_model(path)).source).resolve()

    file.write_text(json.dumps(values | {"data": values["data"] | {"source": str(tmp_path / "gone")}}))
    assert found() == found(next((run / "models").iterdir())) == tmp_path / "elsewhere/shapes"
    file.write_text(json.dumps(values | {"data": {"source": str(own / "shapes")}}))  # of an older version
    assert found() == own / "shapes"
    shutil.copytree(own / "shapes", tmp_path / "private")
    (tmp_path / "private/shape1.json").write_bytes((tmp_path / "private/shape3.json").read_bytes())
    for place in ("private", "private/shape1.json"):  # not the training data, nor called so
        file.write_text(json.dumps(values | {"data": {"source": str(tmp_path / place)}}))
        with pytest.raises(DatasetNotFoundError, match="shapes is not in"):
            found()
    (tmp_path / "moved").mkdir()
    (tmp_path / "private").rename(tmp_path / "moved/shapes")
    file.write_text(json.dumps(values | {"data": {"source": str(tmp_path / "moved/shapes")}}))
    with pytest.warns(UserWarning, match="has changed since"):
        assert load_training_data(load_model(run)).source == str(tmp_path / "moved/shapes")
    for damaged in ("[]", "{", json.dumps({"data": None}), json.dumps({"data": {"source": 3, "relative": []}})):
        file.write_text(damaged)
        with pytest.raises(DatasetNotFoundError):
            found()
