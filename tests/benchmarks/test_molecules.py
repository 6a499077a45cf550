"""The splits of molecules that both programs are scored on, and what is stored of the scores."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import molecules

pytest.importorskip("rdkit")
SMILES = [f"{chain}C1{'C' * size}1" for size in range(2, 32) for chain in ("", "O")]  # 30 scaffolds


@pytest.mark.parametrize("kind", molecules.KINDS)
def test_every_molecule_is_in_one_part_of_each_of_three_splits(kind):
    splits = molecules.splits_of(SMILES, kind)
    assert len(splits) == 3
    for parts in splits:
        assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(60))
        assert len(parts["test"]) <= 6
    assert len({tuple(parts["test"].tolist()) for parts in splits}) == 3
    again = molecules.splits_of(SMILES, kind)
    assert [{k: v.tolist() for k, v in s.items()} for s in splits] == [
        {k: v.tolist() for k, v in s.items()} for s in again
    ]


def test_chemprop_is_scored_on_the_test_part(monkeypatch):
    rows = [(s, str(float(len(s)))) for s in SMILES]
    parts = molecules.splits_of(SMILES, "random")[1]

    def program(words, work):
        assert words[0] == "chemprop"
        assert words[words.index("--pytorch-seed") + 1] == words[words.index("--data-seed") + 1] == "2"
        (split,) = json.loads((work / "splits.json").read_text())
        assert split["test"] == parts["test"].tolist()
        with (work / "table.csv").open() as file:
            table = list(csv.DictReader(file))
        (work / "out" / "model_0").mkdir(parents=True)
        said = [f"{table[i]['smiles']},{float(table[i]['y']) + 0.25}" for i in split["test"]]
        (work / "out" / "model_0" / "test_predictions.csv").write_text("\n".join(["smiles,y", *said]))
        return ""

    monkeypatch.setattr(molecules, "run_alone", program)
    found = molecules.scores("chemprop", rows, parts, 2, ["chemprop"])
    y = np.asarray([float(y) for _, y in rows])
    off = y[parts["test"]] - y[parts["train"]].mean()
    assert found == {"score": 0.25, "mean": pytest.approx(np.sqrt(np.mean(off**2)), abs=1e-4)}


def test_tapnet_says_its_own_score():
    rows = [(s, str(int("O" in s))) for s in SMILES]
    parts = molecules.splits_of(SMILES, "scaffold")[0]  # in which both classes of a scaffold are in one part
    found = molecules.scores("tapnet", rows, parts, 1, ["--epochs", "1"])
    assert found["mean"] == 0.5
    assert 0 <= found["score"] <= 1


def test_only_what_is_missing_is_run_and_the_means_are_over_splits(tmp_path, monkeypatch, capsys):
    (tmp_path / "molecules").mkdir()
    column = molecules.TARGETS["ESOL"]
    lines = [f"{s},{len(s)}" for s in SMILES]
    (tmp_path / "molecules" / "ESOL.csv").write_text("\n".join([f"smiles,{column}", *lines]))
    asked = []

    def scores(side, rows, parts, seed, words):
        asked.append((side, seed, tuple(words)))
        return {"score": len(asked) / 10, "mean": 2.0}

    monkeypatch.setattr(molecules, "scores", scores)
    out = tmp_path / "found.json"
    done = [{"side": "tapnet", "data": "ESOL", "kind": k, "seed": s, "split": n, "score": 1.0, "mean": 2.0}
            for k in molecules.KINDS for s in range(3) for n in range(3)]  # fmt: skip
    out.write_text(json.dumps(done[:-2]))
    words = ["molecules.py", "--data-dir", str(tmp_path), "--only", "ESOL", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", [*words, "--", "--set", "epochs=3"])
    molecules.main()
    assert asked == [("tapnet", 2, ("--set", "epochs=3"))] * 2
    assert [row["score"] for row in json.loads(out.read_text())[-2:]] == [0.1, 0.2]
    assert "| ESOL, random | 0.811 (1.000, 0.700, 0.733; 9 runs) | 2.000 |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*words, "--chemprop", "its/program"])
    molecules.main()
    assert len(asked) == 2 + 18
    assert asked[-1] == ("chemprop", 2, (str(Path("its/program")),))
