"""Predictions of tables: every row comes back, also those that could not be predicted."""

import csv
import dataclasses
import gzip
import io
import json
import shutil
import sys
import tracemalloc
import warnings

import networkx as nx
import numpy as np
import pytest
import torch

import tapnet
from tapnet import GraphDataset
from tapnet.cli import main
from tapnet.errors import DataError
from tapnet.inference import predict
from tapnet.inference.predict import predict_inputs, predict_table, raise_error
from tapnet.io import molecule_parts
from tests.helpers.pages import make_model

pytest.importorskip("rdkit")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("molecules")
    rows = [f"m{i},{'C' * (i + 1)}{'O' if i % 2 else 'N'},{0.5 * i}" for i in range(12)]
    (folder / "train.csv").write_text("\n".join(["name,smiles,logS", *rows]))
    tapnet.cross_validate(folder / "train.csv", epochs=1, folds=3, jobs=1, out=folder / "run", final=True)
    return folder / "run"


TABLE = 'id,smiles,remark\n1,CCO,"a, b"\n2,C1CC,ring\n3,CN,\n'


def test_a_table_keeps_its_rows_and_columns(run, tmp_path):
    (tmp_path / "new.csv").write_text(TABLE)
    model = tapnet.load_model(run)
    table = predict_table(model, tmp_path / "new.csv")
    assert table.header == ["id", "smiles", "remark", "predicted logS", "distance", "unlike_training"]
    assert [row[:2] for row in table.rows] == [["1", "CCO"], ["2", "C1CC"], ["3", "CN"]]
    assert [row[3] == "" for row in table.rows] == [False, True, False]
    assert table.predicted == 2
    (group,) = predict_inputs(model, [str(tmp_path / "new.csv")])
    assert group.graphs == ["1", "3"]
    assert group.probabilities.flatten().tolist() == pytest.approx([float(table.rows[i][3]) for i in (0, 2)], rel=1e-5)


def test_an_sdf_comes_back_as_a_table_with_smiles(run, tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "new.sdf")) as writer:
        for name, smiles in (("ethanol", "CCO"), ("amine", "CN")):
            mol = Chem.MolFromSmiles(smiles)
            mol.SetProp("_Name", name)
            writer.write(mol)
    text = (tmp_path / "new.sdf").read_text()
    (tmp_path / "new.sdf").write_text(text.replace("$$$$\n", "$$$$\nbroken\n\n\nnothing\nM  END\n$$$$\n", 1))
    table = predict_table(tapnet.load_model(run), tmp_path / "new.sdf")
    assert table.header[:3] == ["molecule", "name", "predicted logS"]
    assert [row[:2] for row in table.rows] == [["CCO", "ethanol"], ["", "broken"], ["CN", "amine"]]
    assert [row[2] == "" for row in table.rows] == [False, True, False]


def test_the_command_adds_columns(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text(TABLE)
    monkeypatch.setattr(sys, "argv", ["tapnet", "predict", str(run), "new.csv", "--out", "out.csv"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1  # a row could not be read
    with (tmp_path / "out.csv").open() as file:
        header, first, second, third = csv.reader(file)
    assert header == ["id", "smiles", "remark", "predicted logS", "distance", "unlike_training"]
    assert first[:3] == ["1", "CCO", "a, b"]
    assert second == ["2", "C1CC", "ring", "", "", ""]
    float(first[3]), float(third[3])


@pytest.mark.parametrize(
    ("words", "count"), [(["new.csv"], 2), (["new.csv", "--format", "jsonl"], 2), (["new.csv", "more.csv"], 3)]
)
def test_rows_that_cannot_be_read_are_counted_and_the_exit_code_says_so(
    run, tmp_path, monkeypatch, capsys, words, count
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text(f"{TABLE}4,,\n")
    (tmp_path / "more.csv").write_text("smiles\nCC\n")
    monkeypatch.setattr(sys, "argv", ["tapnet", "predict", str(run), *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert f"{count} graphs predicted, 2 could not be read" in said
    assert "line 3" in said


@pytest.mark.parametrize(
    ("mark", "file", "number"), [(";", "new.csv", "0,5"), ("\t", "new.tsv", "0.5"), (";", "new.csv", "0.5")]
)
def test_a_table_comes_back_with_its_own_marks(run, tmp_path, monkeypatch, mark, file, number):
    monkeypatch.chdir(tmp_path)
    lines = [["smiles", "dose", "remark"], ["CCO", number, "a, b"], ["CN", "-", " 1.5"], ["OCC", "2", "say x"]]
    (tmp_path / file).write_text("".join(mark.join(line) + "\n" for line in lines))
    monkeypatch.setattr(sys, "argv", ["tapnet", "predict", str(run), file, "--out", "out.csv"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    with (tmp_path / "out.csv").open(newline="") as found:
        header, *rows = csv.reader(found, delimiter=mark)
    assert header == [*lines[0], "predicted logS", "distance", "unlike_training"]
    assert [row[:3] for row in rows] == lines[1:]
    point, other = (",", ".") if "," in number else (".", ",")
    assert all(point in row[3] and other not in row[3] + row[4] for row in rows)
    model = tapnet.load_model(run)
    wanted = model.predict(file).values[:, 0]
    assert [float(row[3].replace(",", ".")) for row in rows] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_blank_rows_stay_where_they_are(run, tmp_path, monkeypatch, capfdbinary, at_once):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(molecule_parts, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(predict, "ROWS_AT_ONCE", at_once)
    (tmp_path / "new.csv").write_text('\nname;smiles\n\n"two\n\nlines";CCO\n;;\n \nx;CN\n\n;\n')
    (tmp_path / "new.smi").write_text("\nCCO a\n\n\nCN b\n\n")
    code, out, _ = output_of(monkeypatch, capfdbinary, run, "new.csv")
    rows = list(csv.reader(out.decode().splitlines(keepends=True), delimiter=";"))
    assert code == 0  # nothing could not be read
    assert [row[0] for row in rows] == ["name", "", "two\n\nlines", "", "", "x"]
    assert {len(row) for row in rows} == {5}
    assert [set(row) == {""} for row in rows] == [False, True, False, True, True, False]
    code, out, _ = output_of(monkeypatch, capfdbinary, run, "new.smi")
    assert (code, [line[:1] for line in out.decode().splitlines()]) == (0, ["s", "C", ",", ",", "C"])


def test_a_byte_order_mark_stays_where_one_was_and_gz_is_compressed(run, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    plain, marked = "Größe,smiles\n1,CCO\n".encode(), "\ufeffGröße,smiles\n1,CCO\n".encode()
    for name, content in (("plain.csv", plain), ("marked.csv", marked), ("marked.csv.gz", gzip.compress(marked))):
        (tmp_path / name).write_bytes(content)
        code, out, _ = output_of(monkeypatch, capfdbinary, run, name)
        assert code == 0
        assert out.startswith(b"\xef\xbb\xbf") == ("marked" in name)
        assert out.count(b"\xef\xbb\xbf") == ("marked" in name)
        assert output_of(monkeypatch, capfdbinary, run, name, "--out", "out.csv.gz")[0] == 0
        packed = (tmp_path / "out.csv.gz").read_bytes()
        assert gzip.decompress(packed) == out
        assert output_of(monkeypatch, capfdbinary, run, "out.csv.gz")[0] == 0  # which it reads itself
    output_of(monkeypatch, capfdbinary, run, "plain.csv", "--format", "jsonl", "--out", "out.jsonl.gz")
    assert json.loads(gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()))["graph"] == "CCO"


def test_a_table_without_molecules_is_refused(run, tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="which column holds the SMILES"):
        predict_table(tapnet.load_model(run), tmp_path / "new.csv")


# ---- weights of edges ----


def weighted_folder(folder, heavy=True):
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(12):
        graph = nx.gnp_random_graph(7, 0.5, seed=number)
        for edge in graph.edges if heavy else ():
            graph.edges[edge]["weight"] = float(rng.uniform(0.1, 3))
        nx.set_node_attributes(graph, {node: "xy"[node % 2] for node in graph}, "label")
        (folder / f"g{number:02}.json").write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    lines = [f"g{number:02},{number % 2}" for number in range(12)]
    (folder / "labels.csv").write_text("\n".join(["graph,class", *lines]))
    return folder


def saved_model(dataset, file):
    y = [dataset.classes[i] for i in dataset.y]
    tapnet.TAPClassifier(epochs=1, hidden_channels=4, random_state=0).fit(dataset, y).save(file)
    return tapnet.load_model(file)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_count_for_a_model_that_was_trained_with_them_and_only_then(tmp_path):
    with_weights, without = weighted_folder(tmp_path / "W"), weighted_folder(tmp_path / "U", heavy=False)
    heavy, light = tapnet.load_dataset(with_weights), tapnet.load_dataset(without)
    model = saved_model(heavy, tmp_path / "heavy.safetensors")
    from_files = model.predict(with_weights).probabilities
    assert from_files == pytest.approx(model.predict(heavy).probabilities, abs=1e-5)
    assert from_files != pytest.approx(model.predict(light).probabilities, abs=1e-5)
    with pytest.raises(DataError, match=r"g00\.json: its edges have no 'weight'"):
        model.predict(without)
    model = saved_model(light, tmp_path / "light.safetensors")
    assert np.array_equal(model.predict(with_weights).probabilities, model.predict(without).probabilities)
    assert np.array_equal(model.predict(heavy).probabilities, model.predict(light).probabilities)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_of_matrices_remembers_its_threshold_and_reads_single_ones(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "M"
    folder.mkdir()
    for number in range(8):
        np.save(folder / f"m{number}.npy", np.corrcoef(np.random.default_rng(number).normal(size=(6, 9))))
    lines = [f"m{number},{number % 2},{number // 3}" for number in range(8)]
    (folder / "targets.csv").write_text("\n".join(["file,ill,site", *lines]))
    dataset = tapnet.load_dataset(folder, target="ill", threshold=0.3)
    model = saved_model(dataset, tmp_path / "m.safetensors")
    found = model.predict(folder)
    assert found.graphs == dataset.graph_names
    assert np.array_equal(found.probabilities, model.predict(dataset).probabilities)
    np.savetxt(tmp_path / "m3.csv", np.load(folder / "m3.npy"), delimiter=",", fmt="%.17g")
    for file in (folder / "m3.npy", tmp_path / "m3.csv"):
        one = model.predict(file)
        assert one.graphs == (file.name,)
        assert one.probabilities == pytest.approx(found.probabilities[3:4], abs=1e-6)
    files = [str(tmp_path / "m3.csv"), str(folder / "m3.npy")]
    assert [name for group in predict_inputs(model, files) for name in group.graphs] == files
    assert model.explain(tmp_path / "m3.csv").prediction == str(found.classes[3])
    assert model.explain("m3", dataset=folder).graph.name == model.explain("m3.npy", dataset=folder).graph.name
    monkeypatch.setattr(sys, "argv", ["tapnet", "predict", str(tmp_path / "m.safetensors"), files[0]])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["graph"], row["class"]) == ("m3.csv", str(found.classes[3]))
    (tmp_path / "new.csv").write_text(TABLE)  # which stays a table of molecules
    with pytest.raises(DataError) as refused:
        model.predict(tmp_path / "new.csv")
    assert "matrix" not in str(refused.value)
    (tmp_path / "edges.csv").write_text("from,to\n0,1\n1,2\n2,3\n")
    with pytest.raises(DataError, match="adjacency matrix"):
        model.predict(tmp_path / "edges.csv")


# ---- what one bad file does to the others ----


@pytest.fixture(scope="module")
def strengths(tmp_path_factory):
    """A folder of weighted matrices, one of them without edges, and a model that reads the sums of their weights."""
    folder = tmp_path_factory.mktemp("strengths") / "M"
    folder.mkdir()
    for number in range(8):
        half = np.triu(np.random.default_rng(number).uniform(0.1, 2, size=(6, 6)), 1)
        np.save(folder / f"m{number}.npy", (half + half.T) * (number != 5))
    lines = [f"m{number},{number % 2}" for number in range(8)]
    (folder / "targets.csv").write_text("\n".join(["file,ill", *lines]))
    return folder, saved_model(tapnet.load_dataset(folder), folder.parent / "m.safetensors")


def predicted(model, *inputs):
    """The graphs that were predicted with their rows, the errors, and how many other graphs were left out."""
    errors, left_out = [], []
    groups = list(predict_inputs(model, list(map(str, inputs)), on_error=errors.append, on_left_out=left_out.append))
    rows = [row for group in groups for row in group.probabilities.tolist()]
    return dict(zip([g for group in groups for g in group.graphs], rows, strict=True)), errors, sum(left_out)


def test_the_sum_of_weights_is_computed_also_where_all_are_1_or_there_are_none(strengths, tmp_path):
    folder, model = strengths
    assert model.card.attribute_names == ("strength",)
    together = predicted(model, folder)[0]
    alone, errors, _ = predicted(model, folder / "m5.npy")
    assert not errors
    assert alone["m5.npy"] == pytest.approx(together["m5.npy"], abs=1e-6)
    ones = np.ones((6, 6))
    (tmp_path / "ones").mkdir()
    (tmp_path / "mixed").mkdir()
    np.save(tmp_path / "ones" / "a.npy", ones > 0)
    np.save(tmp_path / "mixed" / "a.npy", ones)
    np.save(tmp_path / "mixed" / "b.npy", 2 * ones)
    expected = predicted(model, tmp_path / "mixed")[0]["a.npy"]
    for place in (tmp_path / "ones", tmp_path / "ones" / "a.npy"):
        assert predicted(model, place)[0]["a.npy"] == pytest.approx(expected, abs=1e-6)
    assert len(model.explain("a", dataset=tmp_path / "ones").nodes) == 6


def test_one_bad_matrix_is_named_and_the_others_are_predicted(strengths, tmp_path):
    folder, model = strengths
    whole = predicted(model, folder)[0]
    copy = shutil.copytree(folder, tmp_path / "M")
    bad = np.load(copy / "m3.npy")
    bad[1, 2] = np.nan
    np.save(copy / "m3.npy", bad)
    (copy / "m6.npy").write_bytes(b"nothing")
    found, errors, _ = predicted(model, copy)
    assert found == {
        name: pytest.approx(row, abs=1e-6) for name, row in whole.items() if name not in ("m3.npy", "m6.npy")
    }
    assert [str(error).partition(": ")[0] for error in errors] == [str(copy / "m3.npy"), str(copy / "m6.npy")]
    with pytest.raises(DataError, match=r"m3\.npy: nan in row 2, column 3"):
        model.predict(copy)
    for file in copy.glob("*.npy"):
        file.write_bytes(b"nothing")
    found, errors, _ = predicted(model, copy)
    assert (found, len(errors)) == ({}, 8)


@pytest.mark.parametrize("kind", ["matrices", "graphs"])
def test_files_that_are_no_graphs_are_left_aside_and_said(strengths, tmp_path, kind):
    folder, model = strengths
    if kind == "graphs":
        folder = weighted_folder(tmp_path / "g")
        model = saved_model(tapnet.load_dataset(folder), tmp_path / "g.safetensors")
    whole = predicted(model, folder)[0]
    copy = shutil.copytree(folder, tmp_path / "M", ignore=shutil.ignore_patterns("*.csv"))
    for name in ("Notes.txt", "more notes.txt", "README.txt"):
        (copy / name).write_text("measured in May")
    with pytest.warns(tapnet.errors.DataNote, match=r"left aside: Notes\.txt, more notes\.txt, no graph files"):
        found, errors, _ = predicted(model, copy)
    assert (found, errors) == ({name: pytest.approx(row, abs=1e-6) for name, row in whole.items()}, [])


def test_a_bad_table_of_nodes_is_the_error_of_its_matrix(strengths, tmp_path):
    folder, _ = strengths
    copy = shutil.copytree(folder, tmp_path / "M")
    for number in range(8):
        rows = [f"n{node},{node / 3 + number}" for node in range(6)]
        (copy / f"m{number}.nodes.csv").write_text("\n".join(["node,age", *rows]))
    model = saved_model(tapnet.load_dataset(copy), tmp_path / "m.safetensors")
    (copy / "m2.nodes.csv").write_text("node,age\nn0,1\n")
    found, errors, _ = predicted(model, copy)
    assert len(found) == 7
    assert [str(copy / "m2.nodes.csv") in str(error) for error in errors] == [True]


def test_the_graphs_of_a_data_set_that_does_not_fit_are_counted(strengths, run, tmp_path):
    folder, model = strengths
    found, errors, others = predicted(model, "MUTAG", folder / "m0.npy")
    assert (len(found), len(errors), others) == (1, 1, 187)
    (tmp_path / "new.csv").write_text("smiles\nCCO\nCN\nCCC\n")
    found, errors, others = predicted(model, tmp_path / "new.csv")
    assert (len(found), len(errors), others) == (0, 1, 2)
    found, errors, others = predicted(tapnet.load_model(run), folder)
    assert (len(found), len(errors), others) == (0, 1, 7)


def test_what_is_not_used_is_said_once_though_a_file_is_bad(tmp_path):
    folder = weighted_folder(tmp_path / "g")
    for file in folder.glob("*.json"):
        graph = json.loads(file.read_text())
        for number, node in enumerate(graph["nodes"]):
            node["remark"] = f"{file.stem} {number}"
        file.write_text(json.dumps(graph))
    model = saved_model(tapnet.load_dataset(folder), tmp_path / "g.safetensors")
    graph = json.loads((folder / "g04.json").read_text())
    graph["nodes"][1]["label"] = None
    (folder / "g04.json").write_text(json.dumps(graph))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        found, errors, _ = predicted(model, folder)
    assert (len(found), len(errors)) == (11, 1)
    assert sum("the node features are" in str(note.message) for note in notes) == 1


def test_graphs_without_the_features_of_the_model_are_no_choice_of_the_user():
    labelled = tapnet.load_dataset("MUTAG").subset(range(20))
    model = make_model(labelled)
    bare = dataclasses.replace(labelled, node_labels=None, node_label_values=None).with_features("degrees")
    for use in (model.encode, model.predict, model.to_dataset):
        with pytest.raises(DataError, match="the model reads node labels; MUTAG has none"):
            use(bare)


@pytest.mark.parametrize("several", [False, True])
def test_what_is_not_used_is_said_once_of_a_folder_and_of_its_files(tmp_path, several):
    folder = weighted_folder(tmp_path / "g")
    for file in folder.glob("*.json"):
        graph = json.loads(file.read_text())
        for number, node in enumerate(graph["nodes"]):
            node["mass"] = float(number)
        file.write_text(json.dumps(graph))
    model = saved_model(tapnet.load_dataset(folder), tmp_path / "g.safetensors")
    inputs = sorted(map(str, folder.glob("*.json"))) if several else [str(folder)]
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert sum(len(group.graphs) for group in predict_inputs(model, inputs)) == 12
    (said,) = [str(note.message) for note in notes if "mass" in str(note.message)]
    assert said.startswith(f"{inputs[0]}: ")


# ---- tables of molecules in parts ----

MANY = ["CCO", "C1CC", "", "CN", "OCC", "CCCCO", "[Pu]", "c1ccccc1O", "x", "[Na+].[Cl-]", "CCN", "N", "O=C=O"]


def output_of(monkeypatch, capfdbinary, *words):
    """Exit code, standard output, and the lines of standard error, sorted: notes may come before or after."""
    monkeypatch.setattr(sys, "argv", ["tapnet", "predict", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capfdbinary.readouterr()
    return end.value.code, out, sorted(err.splitlines())


@pytest.mark.parametrize(
    "words",
    [("new.csv",), ("new.csv", "--format", "jsonl"), ("new.csv", "--allow-unknown"), ("new.csv", "names.smi")],
    ids=" ".join,
)
def test_small_parts_change_no_byte(run, tmp_path, monkeypatch, capfdbinary, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text(
        "\n".join(["smiles,remark", *(f'{text},"{i}, x"' for i, text in enumerate(MANY))])
    )
    (tmp_path / "names.smi").write_text("\n".join(f"{text} name {i}" for i, text in enumerate(MANY) if text))
    monkeypatch.setattr(predict, "GRAPHS_AT_ONCE", 4)
    whole = output_of(monkeypatch, capfdbinary, run, *words)
    assert whole[1].count(b"\n") > 8
    for rows in (1, 3):
        monkeypatch.setattr(molecule_parts, "ROWS_AT_ONCE", rows)
        assert output_of(monkeypatch, capfdbinary, run, *words) == whole


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_an_unknown_category_is_named_with_the_line_of_its_row(run, tmp_path, monkeypatch, capfdbinary, rows):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(molecule_parts, "ROWS_AT_ONCE", rows)
    (tmp_path / "new.csv").write_text('smiles,remark\nC1CC,\n\nx,\nCCO,"two\nlines"\nCCS,\n,\nCCBr,\n')
    code, _, said = output_of(monkeypatch, capfdbinary, run, "new.csv")
    (note,) = [line for line in said if b"not trained on" in line]
    assert (code, note.count(b"new.csv:")) == (1, 2)
    assert b"new.csv:7: element S" in note
    assert b"new.csv:9: " in note


def test_an_answer_that_is_no_number_is_named_with_the_line_of_its_row(run, tmp_path):
    model = tapnet.load_model(run)
    with torch.no_grad():
        next(model.network.parameters()).fill_(float("nan"))
    (tmp_path / "new.csv").write_text("smiles\nC1CC\nCCO\n")
    errors = []
    assert predict_table(model, tmp_path / "new.csv", on_error=errors.append).predicted == 0
    assert [str(error).startswith(f"{tmp_path / 'new.csv'}:3: ") for error in errors] == [True]


def test_nothing_is_written_of_a_table_without_a_prediction(run, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(molecule_parts, "ROWS_AT_ONCE", 1)
    (tmp_path / "new.csv").write_text("smiles\nx\n\ny\n")
    for words in (["--out", "out.csv"], []):
        code, out, (error,) = output_of(monkeypatch, capfdbinary, run, "new.csv", *words)
        assert (code, out, (tmp_path / "out.csv").exists()) == (1, b"", False)
        assert b"no row has a valid molecule: line 2" in error


def test_a_kind_of_atom_is_the_same_in_any_company(tmp_path):
    """Few kinds of atoms have an element each of their own, and are still no elements to a model of many kinds."""
    smiles = ["CC(C)C", "CCO", "CC(=O)N", "CC", "c1ccccc1", "CN"]
    training = tapnet.GraphDataset.from_smiles(smiles, [0, 1] * 3).with_features("labels")
    model = saved_model(training, tmp_path / "m.safetensors")
    alone = tapnet.GraphDataset.from_smiles(["CC"], [0]).with_features("labels")
    found, wanted = model.predict(alone), model.predict(training)
    assert found.probabilities == pytest.approx(wanted.probabilities[3:4], abs=1e-6)


def test_memory_does_not_grow_with_the_rows(run, tmp_path, monkeypatch):
    monkeypatch.setattr(molecule_parts, "ROWS_AT_ONCE", 64)
    monkeypatch.setattr(predict, "GRAPHS_AT_ONCE", 64)
    model, peaks = tapnet.load_model(run), []
    predict_table(model, run.parent / "train.csv")  # what is compiled once
    for rows in (64, 640):
        lines = [f"{'C' * (1 + i % 5)}O,{'remark ' * 4000}{i}" for i in range(rows)]  # 28 kB each
        (tmp_path / "new.csv").write_text("\n".join(["smiles,remark", *lines]))
        tracemalloc.start()
        try:
            assert sum(part.predicted for part in predict.predict_table_parts(model, tmp_path / "new.csv")) == rows
            peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 4  # MB, where the longer table has 18


@pytest.fixture
def molecules():
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    dataset = GraphDataset.from_smiles(["c1ccccc1", "CCO", "CC(=O)O"], ["ring", "chain", "chain"])
    return make_model(dataset), dataset


def test_a_smiles_is_an_input_of_a_model_of_molecules(molecules, tmp_path, monkeypatch):
    saved, dataset = molecules
    monkeypatch.chdir(tmp_path)
    (tmp_path / "C.csv").write_text("smiles\nc1ccccc1\n")
    groups = list(predict_inputs(saved, ["CCO", "C.csv", "CC(=O)O"], on_error=raise_error))
    assert [group.graphs for group in groups] == [["CCO"], ["C.csv/c1ccccc1"], ["CC(=O)O"]]
    found = torch.cat([group.probabilities for group in groups])
    torch.testing.assert_close(found, saved.probabilities(saved.encode(dataset))[[1, 0, 2]])


def test_what_was_meant_as_a_smiles_is_never_asked_for_on_the_network(molecules, monkeypatch):
    monkeypatch.setattr("tapnet.io.download.download", lambda *_: pytest.fail("a molecule became an address"))
    errors = []
    assert list(predict_inputs(molecules[0], ["CCO(", "C/C=C/(", "unknown"], on_error=errors.append)) == []
    assert [str(error).partition(":")[0] for error in errors] == ["CCO(", "C/C=C/(", "unknown"]
    assert all("no valid SMILES" in str(error) for error in errors)


def test_columns_that_a_table_has_already_keep_their_names(molecules, tmp_path):
    saved, _ = molecules
    (tmp_path / "0.csv").write_text("smiles,p(ring)\nCCO,mine\n")
    for i in range(2):
        found = predict_table(saved, tmp_path / f"{i}.csv")
        with (tmp_path / f"{i + 1}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([found.header, *found.rows])
    assert len(set(found.header)) == len(found.header)
    assert {"prediction", "prediction (2)", "p(ring)", "p(ring) (2)", "p(ring) (3)"} <= set(found.header)
    assert found.rows[0][1] == "mine"
