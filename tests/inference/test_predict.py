"""Predictions of tables: every row comes back, also those that could not be predicted."""

import csv
import io
import json
import sys
import tracemalloc

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
