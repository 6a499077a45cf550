"""Predictions of tables: every row comes back, also those that could not be predicted."""

import csv
import sys

import pytest

import tapnet
from tapnet.cli import main
from tapnet.errors import DataError
from tapnet.inference.predict import predict_inputs, predict_table

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
    assert table.header == ["id", "smiles", "remark", "predicted logS"]
    assert [row[:2] for row in table.rows] == [["1", "CCO"], ["2", "C1CC"], ["3", "CN"]]
    assert [row[3] == "" for row in table.rows] == [False, True, False]
    assert table.predicted == 2
    (group,) = predict_inputs(model, [str(tmp_path / "new.csv")])
    assert group.graphs == ["1", "3"]
    assert group.probabilities.flatten().tolist() == pytest.approx([float(table.rows[i][3]) for i in (0, 2)], rel=1e-5)


def test_the_command_adds_columns(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text(TABLE)
    monkeypatch.setattr(sys, "argv", ["tapnet", "predict", str(run), "new.csv", "--out", "out.csv"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    with (tmp_path / "out.csv").open() as file:
        header, first, second, third = csv.reader(file)
    assert header == ["id", "smiles", "remark", "predicted logS"]
    assert first[:3] == ["1", "CCO", "a, b"]
    assert second == ["2", "C1CC", "ring", ""]
    float(first[3]), float(third[3])


def test_a_table_without_molecules_is_refused(run, tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="which column holds the SMILES"):
        predict_table(tapnet.load_model(run), tmp_path / "new.csv")
