"""From a folder of one's own graphs to a model and its predictions: real files, real processes."""

import csv
import io
import json
import random
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace

import networkx as nx
import pytest
import torch

from tapnet import load_dataset
from tapnet.cli import main
from tapnet.data.dataset import GraphDataset
from tapnet.experiments.final import train_final
from tapnet.experiments.run_trial import describe_model
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial, TrialResult
from tapnet.inference import predict
from tapnet.inference.model import SavedModel, UnseenCategories
from tapnet.inference.model_file import FINAL_MODEL as FILE
from tapnet.models.base import DataShape
from tapnet.models.registry import MODELS
from tapnet.training.settings import TrainingSettings
from tests.helpers.commands import tapnet
from tests.helpers.graphs import write_graph
from tests.helpers.writers import write_text, write_tu

FAMILIES = {"a ring": nx.cycle_graph, "a star": nx.star_graph, "all, joined": nx.complete_graph}


def here(monkeypatch, capsys, *words):
    """The same without a process of its own: exit code, standard output, lines of standard error."""
    monkeypatch.setattr(sys, "argv", ["tapnet", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    return end.value.code, out, err.splitlines()


def family(name, seed):
    """A graph of the family, its nodes with names and one of three colours."""
    rng = random.Random(f"{name} {seed}")
    graph = nx.relabel_nodes(FAMILIES[name](rng.randint(5, 9)), lambda n: f"node {n}")
    nx.set_node_attributes(graph, {node: rng.choice(["red", "green", "blue"]) for node in graph}, "label")
    return graph


def write(graph, file):
    return write_graph(graph, file, edges="edges")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on graphs of three families: their folder, the run's folder, and what the command printed."""
    root = tmp_path_factory.mktemp("predict")
    rows = [("graph", "class")]
    for i in range(36):
        name = list(FAMILIES)[i % 3]
        write(family(name, i), root / "families" / f"{i:02d}.{'json' if i % 2 else 'graphml'}")
        rows.append((f"{i:02d}", name))
    with (root / "families" / "labels.csv").open("w", newline="") as table:
        csv.writer(table).writerows(rows)
    words = ("train", "families", "--protocol", "paper", "--folds", 2, "--epochs", 3, "--jobs", 1, "--final")
    result = tapnet(*words, "--set", "hidden_channels=8", cwd=root)
    assert result.returncode == 0, result.stderr
    (run,) = (root / "runs").iterdir()
    return root / "families", run, result.stdout


@pytest.fixture
def new(tmp_path):
    """Graphs that the model has not seen: six that are good."""
    for i in range(6):
        write(family(list(FAMILIES)[i % 3], 100 + i), tmp_path / "new" / f"new {i}.{'json' if i % 2 else 'graphml'}")
    return tmp_path / "new"


def assert_same(row, other):
    """A batch of another size rounds otherwise, and calibration may enlarge that."""
    numbers = [*FAMILIES, "distance"]
    assert row.keys() == other.keys()
    assert [float(row[name]) for name in numbers] == pytest.approx([float(other[name]) for name in numbers], abs=2e-5)
    assert {k: v for k, v in row.items() if k not in numbers} == {k: v for k, v in other.items() if k not in numbers}


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


# ---- the final model ----


def test_the_final_model_says_how_it_was_made(trained):
    _, run, printed = trained
    assert run.name.startswith("families-tapnet-paper-")
    about = SavedModel.load(run / FILE).card.to_dict()
    values = json.loads((run / "run.json").read_text())
    epochs = sorted(fold["epoch"] for fold in values["folds"])
    assert about["final"]["epochs"] == about["trial"]["training"]["epochs"] == epochs[1]  # the upper of two
    assert about["final"]["graphs"] == 36
    assert f"trained on all 36 graphs; number of epochs: {epochs[1]}, the median of the folds' epochs" in printed
    assert f"{FILE}, trained" in printed
    assert about["class_names"] == list(FAMILIES)
    assert about["category_names"] == ["blue", "green", "red"]
    tested = about["cross_validation"]
    assert (tested["mean"], tested["std"], tested["protocol"]) == (values["mean"], values["std"], "paper")
    assert tested["rules"] == "protocol paper: best test epoch of each fold; 2 folds × 3 epochs"
    assert values["final"]["file"].endswith(FILE)


def test_the_same_command_does_not_train_it_again(trained, monkeypatch, capsys):
    families, run, _ = trained
    before, written = (run / FILE).read_bytes(), (run / FILE).stat().st_mtime_ns
    monkeypatch.chdir(families.parent)
    words = ("train", "families", "--protocol", "paper", "--folds", 2, "--epochs", 3, "--jobs", 1, "--final", "--json")
    code, out, _ = here(monkeypatch, capsys, *words, "--set", "hidden_channels=8")
    assert code == 0
    assert json.loads(out)["final"]["file"] == str(run.relative_to(families.parent) / FILE)
    assert (run / FILE).stat().st_mtime_ns == written
    (run / FILE).write_bytes(before[:-1])  # cut off
    code, out, _ = here(monkeypatch, capsys, *words, "--set", "hidden_channels=8")
    assert (run / FILE).read_bytes() == before


def test_what_was_stopped_goes_on_from_its_checkpoint_to_the_same_bits(trained, tmp_path):
    families, _, _ = trained
    data = load_dataset(families)
    settings = MODELS["tapnet"].make_settings(data.name, {"hidden_channels": 8})
    trial = Trial(data.name, data.checksum, "tapnet", settings, "fair", 0, 3, TrainingSettings(epochs=5))
    curves = {"train_loss": [1] * 5, "test_accuracy": [50] * 5, "validation_loss": [5, 4, 3, 2, 1]}
    summary = Summary([TrialResult(trial, curves, 1, 1, {})])
    whole = train_final(summary, data, Store(tmp_path / "whole"))
    told = []

    def stop(epochs):
        told.append(epochs)
        if sum(told) == 3:
            raise KeyboardInterrupt

    stopped = Store(tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt):
        train_final(summary, data, stopped, checkpoint_every=2, progress=stop)
    assert not (stopped.folder / FILE).exists()
    told = []
    resumed = train_final(summary, data, stopped, progress=told.append)
    assert told == [2, 1, 1, 1]
    assert resumed.read_bytes() == whole.read_bytes()
    assert not any(stopped.folder.rglob("*.pt"))


def test_a_system_without_a_network_has_nothing_to_keep(monkeypatch, capsys):
    code, _, err = here(monkeypatch, capsys, "train", "MUTAG", "--model", "wl", "--final")
    assert (code, len(err)) == (2, 1)
    assert "wl is no network" in err[0]


def test_graphs_without_classes_cannot_be_trained_on(new, monkeypatch, capsys):
    code, out, (line,) = here(monkeypatch, capsys, "train", new)
    assert (code, out) == (1, "")
    assert "labels.csv" in line
    assert "graph,class" in line
    code, _, (line,) = here(monkeypatch, capsys, "train", new / "new 1.json")
    assert (code, line.partition(": ")[2]) == (
        1,
        f"{new / 'new 1.json'}: one graph; to train, give the folder of all graphs and their labels.csv",
    )
    (new / "labels.csv").write_text("graph,class\n" + "".join(f"new {i},a ring\n" for i in range(6)))
    code, _, (line,) = here(monkeypatch, capsys, "train", new)
    assert (code, line) == (1, "tapnet: new: every graph is of class a ring; there is nothing to tell apart")


# ---- predictions ----


def test_what_cannot_be_read_is_named_and_the_rest_is_predicted(trained, new):
    _, run, _ = trained
    (new / "broken.graphml").write_text("<graphml>\n<graph>")
    (new / "list.json").write_text("[]")
    write(nx.path_graph(3), new / "plain.json")
    (new / "labels.csv").write_text("no table")
    result = tapnet("predict", run, new)
    assert result.returncode == 1
    rows = rows_of(result.stdout)
    assert list(rows[0]) == ["graph", "class", *FAMILIES, "distance", "unlike_training"]
    assert [row["graph"] for row in rows] == sorted(file.name for file in new.glob("new *"))
    for row in rows:
        chances = {name: float(row[name]) for name in FAMILIES}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
        assert row["class"] == max(chances, key=chances.get)
    broken, listed, plain, *_ = result.stderr.splitlines()
    (last,) = (line for line in result.stderr.splitlines() if "predicted" in line)
    assert broken == f"tapnet: {new / 'broken.graphml'}:2: not XML (no element found)"
    assert listed.startswith(f"tapnet: {new / 'list.json'}: not a node-link graph")
    assert plain.startswith(f"tapnet: {new / 'plain.json'}: its nodes have no category")
    assert last.startswith("tapnet: 6 graphs predicted, 3 could not be read; the model's accuracy by cross-validation:")
    assert last.endswith("(protocol paper: best test epoch of each fold; 2 folds × 3 epochs); majority class: 33.3 %")


def test_a_graph_alone_in_a_folder_and_in_another_format_is_the_same(trained, new, tmp_path, monkeypatch, capsys):
    _, run, _ = trained
    code, out, _ = here(monkeypatch, capsys, "predict", run, new)
    assert code == 0
    together = {row.pop("graph"): row for row in rows_of(out)}
    code, out, _ = here(monkeypatch, capsys, "predict", run / FILE, *sorted(new.iterdir()))
    alone = {row.pop("graph"): row for row in rows_of(out)}
    for name, row in together.items():
        assert_same(alone[str(new / name)], row)
    for i in range(6):
        other = write(family(list(FAMILIES)[i % 3], 100 + i), tmp_path / f"new {i}.{'graphml' if i % 2 else 'json'}")
        _, out, _ = here(monkeypatch, capsys, "predict", run, other)
        (row,) = rows_of(out)
        assert row.pop("graph") == other.name
        assert_same(row, together[f"new {i}.{'json' if i % 2 else 'graphml'}"])


@pytest.mark.parametrize("model", [name for name, spec in MODELS.items() if spec.build is not None])
def test_every_network_answers_for_a_graph_alone_as_for_many(model, trained, tmp_path, monkeypatch, capsys):
    families, _, _ = trained
    data, spec = load_dataset(families), MODELS[model]
    settings = spec.make_settings(data.name, {})
    assert spec.build is not None
    torch.manual_seed(0)
    network = spec.build(DataShape.of(data), settings).eval()
    trial = Trial(data.name, data.checksum, model, settings, "fair", 0)
    SavedModel(network, describe_model(trial, data)).save(tmp_path / "model.safetensors")
    _, out, _ = here(monkeypatch, capsys, "predict", tmp_path / "model.safetensors", families)
    row = rows_of(out)[3]
    code, out, (last,) = here(monkeypatch, capsys, "predict", tmp_path / "model.safetensors", families / row["graph"])
    assert (code, last) == (0, "tapnet: 1 graph predicted")  # and no accuracy, since none was measured
    for name in FAMILIES:
        assert float(rows_of(out)[0][name]) == pytest.approx(float(row[name]), abs=2e-6)


def test_csv_and_json_lines_and_a_file_agree(trained, new, tmp_path, monkeypatch, capsys):
    _, run, _ = trained
    _, table, _ = here(monkeypatch, capsys, "predict", run, new)
    _, lines, _ = here(monkeypatch, capsys, "predict", run, new, "--format", "jsonl")
    code, out, _ = here(monkeypatch, capsys, "predict", run, new, "--out", tmp_path / "out" / "table.csv")
    assert (code, out) == (0, "")
    assert (tmp_path / "out" / "table.csv").read_text() == table
    for row, line in zip(rows_of(table), map(json.loads, lines.splitlines()), strict=True):
        assert (row["graph"], row["class"]) == (line["graph"], line["class"])
        assert {name: float(row[name]) for name in FAMILIES} == line["probabilities"]


def test_the_training_folder_as_every_kind_of_data_set(trained, tmp_path, monkeypatch, capsys):
    """By numbers in the two formats that hold numbers; the same graphs have the same answers."""
    families, run, _ = trained
    saved = SavedModel.load(run / FILE)
    data = load_dataset(families)
    expected = saved.probabilities(saved.encode(data))
    numbers = {value: i for i, value in enumerate(data.node_label_values)}
    graphs = [data.to_networkx(i) for i in range(len(data))]
    for graph in graphs:
        for _, row in graph.nodes(data=True):
            row["label"] = numbers[row["label"]]
    numbered = type(data).from_networkx(graphs, data.y, name="NUMBERS")
    write_tu(numbered, tmp_path / "NUMBERS")
    write_text(numbered, tmp_path / "one.txt")
    shutil.make_archive(str(tmp_path / "NUMBERS"), "zip", tmp_path, "NUMBERS")
    codes = {"categories": tuple(range(len(numbers))), "category_names": None}
    by_number = SavedModel(saved.network, saved.card.replace(**codes))
    by_number.save(tmp_path / "by-number.safetensors")
    inputs = [tmp_path / "NUMBERS", tmp_path / "NUMBERS.zip", tmp_path / "one.txt"]
    code, out, _ = here(monkeypatch, capsys, "predict", tmp_path / "by-number.safetensors", *inputs)
    assert code == 0
    rows = rows_of(out)
    assert [row["graph"] for row in rows] == [f"{path}/{i}" for path in inputs for i in range(36)]
    found = torch.tensor([[float(row[name]) for name in FAMILIES] for row in rows])
    torch.testing.assert_close(found, expected.repeat(3, 1), rtol=0, atol=2e-6)


def test_unknown_categories_are_one_line_for_the_whole_run(trained, new, monkeypatch, capsys):
    _, run, _ = trained
    for colour in ("pink", "violet"):
        graph = family("a ring", 7)
        graph.nodes["node 0"]["label"] = colour
        write(graph, new / f"{colour}.json")
    code, out, (warning, *_, last) = here(monkeypatch, capsys, "predict", run, new, new / "pink.json")
    assert code == 0
    named = f"{new}/pink.json: 'pink'; {new}/violet.json: 'violet'; {new}/pink.json: 'pink'"
    assert warning == (
        f"tapnet: 3 graphs have node categories that the model was not trained on ({named}): they count as none"
    )
    assert last.startswith("tapnet: 9 graphs predicted; ")
    rows = {row["graph"]: row for row in rows_of(out)}
    assert rows[f"{new}/pink.json"]["class"] in FAMILIES


def test_graphs_that_share_no_category_with_the_training_data_are_left_out(trained, new, monkeypatch, capsys):
    _, run, _ = trained
    code, out, (warning, *_, last) = here(monkeypatch, capsys, "predict", run, "MUTAG", new)
    assert code == 1
    assert warning.startswith("tapnet: 188 graphs share no node category with the model's training data (MUTAG/0: ")
    assert warning.count("MUTAG/") == 3
    assert "6 graphs predicted, 188 left out" in last
    assert "accuracy" in last
    assert [row["graph"].startswith(str(new)) for row in rows_of(out)] == [True] * 6

    code, out, (warning, last) = here(monkeypatch, capsys, "predict", run, "MUTAG")
    assert (code, out) == (1, 'graph,class,a ring,a star,"all, joined",distance,unlike_training\n')
    assert "accuracy" not in last

    code, out, (_, warning, *_, last) = here(monkeypatch, capsys, "predict", run, "MUTAG", "--allow-unknown")
    assert code == 0
    assert "188 graphs share no node category" in warning
    assert last == "tapnet: 188 graphs predicted"
    assert len(rows_of(out)) == 188


@pytest.mark.parametrize(
    "classes", [("graph", "class", "other"), ("probability of graph", "graph", "x"), ("a", "distance", "b")]
)
def test_columns_have_different_names_whatever_classes_are_called(trained, new, classes, tmp_path, monkeypatch, capsys):
    saved = SavedModel.load(trained[1] / FILE)
    SavedModel(saved.network, saved.card.replace(class_names=classes)).save(tmp_path / "named.safetensors")
    code, out, _ = here(monkeypatch, capsys, "predict", tmp_path / "named.safetensors", new)
    assert code == 0
    header, first = list(csv.reader(io.StringIO(out)))[:2]
    assert header[:5] == ["graph", "class", *(f"probability of {name}" for name in classes)]
    assert len(set(header)) == len(header)
    assert first[0] == "new 0.graphml"
    assert first[1] in classes


def test_what_is_kept_of_unknown_categories_does_not_grow(trained):
    families, run, _ = trained
    saved, data = SavedModel.load(run / FILE), load_dataset(families)
    strange = replace(data, categories=tuple(f"strange {i}" for i in range(len(data.categories))))
    unseen = UnseenCategories(saved.features)
    for _ in range(5):
        saved.encode(strange, [f"graph {i}" for i in range(len(strange))], unseen)
    assert unseen.graphs == 5 * len(data)
    assert unseen.foreign == unseen.graphs
    assert (len(unseen.first), len(unseen.first_foreign)) == (0, 3)
    assert "(graph 0: 'strange 0', " in str(unseen)


def test_new_degrees_are_noted_only_where_a_graph_has_no_other(trained):
    graphs = [nx.star_graph(n) for n in (3, 4, 3)]
    data = GraphDataset.from_networkx(graphs, [0, 1, 0], features="degrees")
    saved = SavedModel.load(trained[1] / FILE)
    saved = replace(saved, card=saved.card.replace(features="degrees", categories=data.categories, category_names=None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = saved.encode(GraphDataset.from_networkx([nx.star_graph(9)], [0], features="degrees"))
    assert read.x.sum(dim=1).tolist() == [0] + [1] * 9  # the hub's degree counts as none
    both = GraphDataset.from_networkx([graphs[0], nx.complete_graph(7)], [0, 1], features="degrees")
    with pytest.warns(UserWarning, match=r"1 graph shares no node degree .*\(graph 1: 6\)"):
        saved.encode(both)


def test_groups_do_not_change_an_answer(trained, new, monkeypatch, capsys):
    _, run, _ = trained
    _, whole, _ = here(monkeypatch, capsys, "predict", run, new)
    monkeypatch.setattr(predict, "GRAPHS_AT_ONCE", 4)
    _, by_four, _ = here(monkeypatch, capsys, "predict", run, new)
    monkeypatch.setattr(predict, "NODES_AT_ONCE", 10)
    _, by_size, _ = here(monkeypatch, capsys, "predict", run, new)
    for other in (by_four, by_size):  # sums of other batches round differently
        for row, same in zip(csv.reader(io.StringIO(whole)), csv.reader(io.StringIO(other)), strict=True):
            assert row[:2] == same[:2]
            wanted = pytest.approx([_number(cell) for cell in same], abs=2e-5, nan_ok=True)
            assert [_number(cell) for cell in row] == wanted


def _number(cell):
    try:
        return float(cell)
    except ValueError:
        return float("nan")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["no-model", "MUTAG"], 1, "no-model: no such file"),
        (["{families}/labels.csv", "MUTAG"], 1, "labels.csv: not a model of tapnet"),
        (["{families}", "MUTAG"], 1, "families: this folder has no final model"),
        (["{families}", "{run}"], 2, "is a model: one comes first, and graphs after it"),
        (["{run}", "MUTAG", "--format", "xml"], 2, "'--format': 'xml' is not one of 'csv', 'jsonl'"),
        (["{run}", "MUTAG", "--out", "{run}"], 2, "is a directory"),
        (["{run}", "MUTAG", "--out", "/proc/nowhere/x.csv"], 1, "x.csv: cannot be written"),
        (["{run}"], 2, "Missing argument"),
    ],
)
def test_a_mistake_is_one_line(trained, words, code, message, monkeypatch, capsys):
    families, run, _ = trained
    words = [word.format(families=families, run=run) for word in words]
    found, out, (line,) = here(monkeypatch, capsys, "predict", *words)
    assert (found, out) == (code, "")
    assert message in line


def test_inputs_that_are_not_there_are_named_each(trained, new, tmp_path, monkeypatch, capsys):
    _, run, _ = trained
    (tmp_path / "empty").mkdir()
    missing = [tmp_path / "nothing", tmp_path / "nothing.json", tmp_path / "empty"]
    code, out, lines = here(monkeypatch, capsys, "predict", run, *missing, new)
    assert code == 1
    assert len(rows_of(out)) == 6
    assert [str(path) in line for path, line in zip(missing, lines, strict=False)] == [True] * 3
    assert lines[-1].startswith("tapnet: 6 graphs predicted, 3 could not be read")


def test_a_reader_that_has_had_enough_ends_it_quietly(trained):
    _, run, _ = trained
    command = [sys.executable, "-m", "tapnet", "predict", str(run), "--allow-unknown", *["MUTAG"] * 20]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b'graph,class,a ring,a star,"all, joined"')
        process.stdout.close()
        assert all(line.startswith(b"tapnet: MUTAG: ") for line in process.stderr)  # what is not used of it
    assert process.returncode == 0


def test_an_interrupt_leaves_no_half_file(trained, new, tmp_path, monkeypatch, capsys):
    _, run, _ = trained

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(SavedModel, "answer", interrupted)
    code, _, err = here(monkeypatch, capsys, "predict", run, new, "--out", tmp_path / "out" / "table.csv")
    assert (code, err) == (130, ["tapnet: stopped"])
    assert list((tmp_path / "out").iterdir()) == []


# ---- what a node's attributes mean to a model ----


def folder_of_rings_and_stars(folder, attributes, classes=("ring", "star")):
    """Six graphs, their nodes with the attributes that ``attributes(i)`` names for graph i, and their labels.csv."""
    folder.mkdir(parents=True)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["graph", "class"])
        for i in range(6):
            graph = (nx.cycle_graph if i % 2 == 0 else nx.star_graph)(5 + i)
            for node in graph:
                graph.nodes[node].update({k: v[node % len(v)] for k, v in attributes(i).items()})
            write(graph, folder / f"g{i}.json")
            table.writerow([f"g{i}.json", classes[i % 2]])
    return folder


SMALL = ("--folds", 3, "--epochs", 1, "--jobs", 1, "--set", "hidden_channels=4", "--final")


@pytest.mark.parametrize(
    ("features", "attributes"),
    [
        ("attributes", lambda i: {"charge": [0.5, 1.5], "mass": [7.0]} | ({"weight": [1.0]} if i else {})),
        ("labels", lambda i: {"kind": ["a", "b"]} | ({"name": ["x", "y"]} if i else {})),
    ],
)
def test_a_model_reads_the_attributes_that_it_was_trained_on(features, attributes, tmp_path, monkeypatch, capsys):
    """Whatever else a file has; and where one of them is not there, nothing else takes its place."""
    folder, run = folder_of_rings_and_stars(tmp_path / "own", attributes), tmp_path / "run"
    assert here(monkeypatch, capsys, "train", folder, "--features", features, *SMALL, "--out", run)[0] == 0
    code, out, err = here(monkeypatch, capsys, "predict", run, folder)
    assert (code, len(rows_of(out))) == (0, 6), err
    known = "charge" if features == "attributes" else "kind"
    text = (folder / "g1.json").read_text()
    (folder / "g1.json").write_text(text.replace(f'"{known}"', '"zeta"'))
    code, out, err = here(monkeypatch, capsys, "predict", run, folder)
    assert (code, len(rows_of(out))) == (1, 5)
    assert f"g1.json: its nodes have no '{known}', which the model reads" in err[0]
    code, _, err = here(monkeypatch, capsys, "show", run, folder / "g1.json", "--out", tmp_path / "g1.png")
    assert code == 1
    assert "which the model reads" in err[0]
    assert here(monkeypatch, capsys, "show", run, folder / "g2.json", "--out", tmp_path / "g2.png")[0] == 0


KINDS = {"element": ["C", "N", "O"], "charged": [True, False], "period": [1, 2], "mass": [0.5, 1.5, 2.5, 3.5]}


@pytest.mark.parametrize(
    ("options", "nodes", "edges", "count"),
    [
        ([], ["charged", "element"], ["order", "ring"], "5 categories and 2 numbers (mass, period)"),
        (["--node-label", "period,element", "--edge-label", "ring"], ["period", "element"], ["ring"], "5 categories"),
        (["--node-label", "element", "--features", "labels"], ["element"], ["order", "ring"], "3 node labels"),
    ],
)
def test_a_model_of_several_categories_reads_new_files_as_its_own(
    options, nodes, edges, count, tmp_path, monkeypatch, capsys
):
    folder, run = (
        folder_of_rings_and_stars(tmp_path / "own", lambda i: KINDS | {"name": ["x", "y", "z"]}),
        tmp_path / "run",
    )
    for file in folder.glob("*.json"):
        graph = json.loads(file.read_text())
        for i, edge in enumerate(graph["edges"]):
            edge |= {"order": ["single", "double"][i % 2], "ring": i % 3 == 0}
        file.write_text(json.dumps(graph))
    words = ("train", folder, *SMALL, *options, "--conv", "gine", "--out", run)
    code, _, err = here(monkeypatch, capsys, *words)
    assert code == 0, err
    listed = "category " + nodes[0] if len(nodes) == 1 else "categories " + ", ".join(nodes)
    assert any(f"read of the nodes: {listed};" in line and "left aside: node attribute" in line for line in err)
    card = SavedModel.load(run / FILE).card
    assert (card.node_categories, card.edge_category_names) == (tuple(nodes), tuple(edges))
    code, out, err = here(monkeypatch, capsys, "predict", run, folder)
    assert (code, len(rows_of(out))) == (0, 6), err
    assert any(f"the node features are {count}" in line for line in err)
    assert not any("not trained on" in line for line in err)  # every category is known
    first = {row["graph"]: row for row in rows_of(out)}
    write_graph(
        nx.node_link_graph(json.loads((folder / "g3.json").read_text()), edges="edges"), tmp_path / "g3.graphml"
    )
    _, out, _ = here(monkeypatch, capsys, "predict", run, tmp_path / "g3.graphml")  # another format, another reader
    assert float(rows_of(out)[0]["ring"]) == pytest.approx(float(first["g3.json"]["ring"]), abs=2e-5)
    code, out, err = here(monkeypatch, capsys, "explain", run, 3, "--json")  # from the folder, as it was read
    assert code == 0
    assert not any("is not the own that the model was trained on" in line for line in err)
    by_number = json.loads(out)
    code, out, _ = here(monkeypatch, capsys, "explain", run, folder / "g3.json", "--json")
    assert (code, by_number["probabilities"]) == (0, pytest.approx(json.loads(out)["probabilities"], abs=1e-5))
    for name in (*nodes, *edges):
        text = (folder / "g1.json").read_text()
        (folder / "g1.json").write_text(text.replace(f'"{name}"', '"zeta"'))
        code, _, err = here(monkeypatch, capsys, "predict", run, folder / "g1.json")
        (folder / "g1.json").write_text(text)
        assert code == 1
        assert f"have no '{name}'" in err[0]


def test_classes_are_written_as_labels_csv_has_them(tmp_path, monkeypatch, capsys):
    classes = ("non\xa0mutagenic", "multi\nline, \u200cx")
    folder, run = folder_of_rings_and_stars(tmp_path / "own", lambda i: {}, classes), tmp_path / "run"
    assert here(monkeypatch, capsys, "train", folder, *SMALL, "--out", run)[0] == 0
    for form in ("csv", "jsonl"):
        file = tmp_path / f"answers.{form}"
        assert here(monkeypatch, capsys, "predict", run, folder, "--format", form, "--out", file)[0] == 0
        with file.open(newline="", encoding="utf-8") as text:
            rows = list(csv.DictReader(text)) if form == "csv" else [json.loads(line) for line in text]
        assert {row["class"] for row in rows} <= set(classes)
        assert set(classes) <= set(rows[0] if form == "csv" else rows[0]["probabilities"])


def test_that_directions_are_not_read_is_said_once_and_changes_nothing_else(trained, new, monkeypatch, capsys):
    _, run, _ = trained
    code, before, lines = here(monkeypatch, capsys, "predict", run, new)
    for file in new.glob("*.graphml"):
        file.write_text(file.read_text().replace('edgedefault="undirected"', 'edgedefault="directed"'))
    found = here(monkeypatch, capsys, "predict", run, new)
    assert found[:2] == (code, before)
    (note,) = [line for line in found[2] if line not in lines]
    assert f"{new}/new 0.graphml" in note
    assert "3 of 6 graphs are directed" in note


def test_endings_in_capitals_are_graphs_too(trained, new, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "upper"
    folder.mkdir()
    for i, file in enumerate(sorted(new.iterdir())):
        shutil.copy(file, folder / f"{i}{file.suffix.upper()}")
    _, run, _ = trained
    code, out, _ = here(monkeypatch, capsys, "predict", run, folder)
    assert (code, len(rows_of(out))) == (0, len(list(new.iterdir())))
    code, out, _ = here(monkeypatch, capsys, "predict", run, *sorted(folder.iterdir()))
    assert (code, len(rows_of(out))) == (0, len(list(new.iterdir())))


def test_what_is_left_out_is_said_each_time(tmp_path, monkeypatch, capsys):
    folder = folder_of_rings_and_stars(tmp_path / "own", lambda i: {})
    write(nx.path_graph(3), folder / "other.json")
    for words in (("datasets", folder), ("train", folder, *SMALL, "--out", tmp_path / "run")):
        code, _, err = here(monkeypatch, capsys, *words)
        assert code == 0
        assert f"tapnet: {folder / 'labels.csv'} does not list other.json: left out" in err


def test_a_final_model_that_diverged_is_not_kept_and_folds_say_so(tmp_path, monkeypatch, capsys):
    folder, run = folder_of_rings_and_stars(tmp_path / "own", lambda i: {}), tmp_path / "run"
    words = ("train", folder, *SMALL[:3], 3, *SMALL[4:], "--lr", 1e30, "--out", run)
    code, _, err = here(monkeypatch, capsys, *words)
    assert code == 1
    assert "training the final model diverged" in err[-1]
    assert not (run / FILE).exists()
    assert all(fold["diverged"] for fold in json.loads((run / "run.json").read_text())["folds"])


def test_a_final_model_of_an_earlier_run_is_pointed_out(tmp_path, monkeypatch, capsys):
    folder, run = folder_of_rings_and_stars(tmp_path / "own", lambda i: {}), tmp_path / "run"
    assert "earlier run" not in "".join(here(monkeypatch, capsys, "train", folder, *SMALL, "--out", run)[2])
    again = ("train", folder, *SMALL[:3], 2, *SMALL[4:-1], "--out", run)
    assert "is of an earlier run with other settings" in here(monkeypatch, capsys, *again)[2][-1]


def test_data_of_the_same_name_is_not_taken_for_the_model_s_own(tmp_path, monkeypatch, capsys):
    own = folder_of_rings_and_stars(tmp_path / "one/own", lambda i: {})
    other = folder_of_rings_and_stars(tmp_path / "two/own", lambda i: {}, ("star", "ring"))
    run = tmp_path / "run"
    assert here(monkeypatch, capsys, "train", own, *SMALL, "--out", run)[0] == 0
    for folder, notes in ((own, 0), (other, 1)):
        monkeypatch.chdir(folder.parent)
        if folder == other:  # else the run finds its own
            own.parent.rename(tmp_path / "away")
        code, _, err = here(monkeypatch, capsys, "show", run, 1, "--out", tmp_path / "1.png")
        assert code == 0
        assert sum("is not the own that the model was trained on" in line for line in err) == notes


def test_the_matrix_of_a_run_is_found_from_any_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder_of_rings_and_stars(tmp_path / "data/own", lambda i: {})
    assert here(monkeypatch, capsys, "train", "data/own", *SMALL, "--out", "run")[0] == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, _, err = here(monkeypatch, capsys, "show", "../run", "--out", "curves.svg")
    assert (code, err) == (0, [])
    assert "predicted" in (tmp_path / "elsewhere/curves.svg").read_text()
    shutil.move(tmp_path / "data", tmp_path / "gone")
    assert "no confusion matrix" in here(monkeypatch, capsys, "show", "../run", "--out", "curves.svg")[2][0]


def test_a_model_that_is_no_better_than_the_constant_says_so_in_a_line_of_its_own(tmp_path):
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    rows = "".join(f"{'C' * (i % 7 + 1)}O,{(-1) ** (i // 7) * 3.5}\n" for i in range(28))
    (tmp_path / "m.csv").write_text("smiles,y\n" + rows)
    words = ("--epochs", 1, "--folds", 3, "--jobs", 1, "--out", "run", "--final", "--set", "hidden_channels=8")
    tapnet("train", "m.csv", *words, cwd=tmp_path)
    done = tapnet("predict", "run", "m.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, last = done.stderr.splitlines()
    assert last.startswith("tapnet: ")
    assert "not better" in last
    assert "\\n" not in done.stderr
