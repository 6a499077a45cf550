"""The benchmarks of whole tasks run, and refuse to compare different work. No test asserts a time."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import pools, run, tasks
from benchmarks.data import bench_dataset
from benchmarks.measure import DifferentWorkError
from tapnet import load_dataset
from tapnet.paper.costs import load_costs


def test_the_kernel_is_compared_with_that_of_grakel(monkeypatch):
    pytest.importorskip("grakel")  # has wheels up to Python 3.12
    some = load_dataset("MUTAG").subset(range(8))
    assert tasks.wl(some, 1).ratio.median > 0
    np.testing.assert_allclose(tasks.grakel_kernel(tasks.grakel_graphs(some), 0), tasks.kernel([counts(some)], 0))
    monkeypatch.setattr(tasks, "kernel", lambda *_: np.eye(8))
    with pytest.raises(DifferentWorkError, match="GraKeL"):
        tasks.wl(some, 1)


def counts(dataset):
    return tasks.label_counts(dataset, 0)[0]


@pytest.mark.parametrize("name", run.CLUSTERS)
def test_soft_clusters_are_those_of_pygs_dense_layers(name):
    some = bench_dataset("PROTEINS", graphs=4)
    case = tasks.clusters(some, name, 1)
    assert (case.what, case.data, case.peer) in {key for key, goal in run.GOALS.items() if goal == 3}
    assert tasks.peak_of_clusters(name, "ours", "PROTEINS", None, 4) >= 1


def test_other_weights_are_noticed(monkeypatch):
    class Other(tasks.DensePeer):
        def __init__(self, pool):
            super().__init__(pool)
            torch.nn.init.normal_(self.layer.weight)

    monkeypatch.setattr(tasks, "DensePeer", Other)
    with pytest.raises(DifferentWorkError, match="mincut"):
        tasks.clusters(bench_dataset("PROTEINS", graphs=4), "mincut", 1)


@pytest.mark.slow
def test_a_comparison_has_the_same_folds_on_both_sides():
    """Both sides run as whole programs, which takes seconds; without GraKeL the kernel is left out on both."""
    case = tasks.comparison("MUTAG", None, 1, 3, ("tapnet:none", "wl"))
    for system in ("tapnet:none", "majority", "size", "bag"):
        assert f"{system} " in case.note
    assert "1 epochs, 3 folds" in case.note


@pytest.mark.parametrize("system", ["tapnet", "tapnet:sag", "tapnet:none", "gin", "bag"])
def test_every_system_of_the_comparison_has_a_network_of_pygs_parts(system):
    data = bench_dataset("MUTAG")
    torch.manual_seed(0)
    first = next(iter(tasks.DataLoader(tasks.pyg_graphs(data.subset(range(5))), batch_size=5)))
    assert tasks.peer_network(data, system)(first.x, first.edge_index, first.batch).shape == (5, 2)


@pytest.mark.parametrize(("pool", "ratios"), [("mincut", None), ("topk", pools.HALF)])
def test_a_pooling_is_measured_beside_none(pool, ratios):
    found = pools.cost(pool, ratios, "MUTAG", None, 4)
    assert min(found["rounds"]) > 0
    assert found["peak"] >= 1


def test_costs_of_poolings_are_stored_as_they_are_measured(tmp_path, monkeypatch, capsys):
    (tmp_path / "costs.json").write_text('{"costs": []}')
    monkeypatch.setattr(pools, "run_child", lambda *_: {"rounds": [1.0, 3.0, 2.0], "peak": 5_000_000})
    monkeypatch.setattr(sys, "argv", ["pools.py", "--only", "tap,ndp", "--out", str(tmp_path)])
    pools.main()
    found = load_costs(tmp_path)
    assert [(one.pool, one.data, one.ratios) for one in found] == [
        *(("tap", "PROTEINS", None), ("ndp", "PROTEINS", None), ("tap", "REDDIT-BINARY", None)),
        *(("tap", "DD", pools.HALF), ("tap", "REDDIT-BINARY", pools.HALF)),
    ]
    assert {(one.time, one.fastest, one.slowest, one.memory) for one in found} == {(2.0, 1.0, 3.0, 5_000_000)}
    assert len(capsys.readouterr().out.splitlines()) == len(found)


def test_explanations_are_of_the_same_network():
    case = tasks.explanation(None, tiny=True)
    assert (case.data, case.peer) == ("MUTAG", "GNNExplainer")
    assert case.ratio.median > 0


def test_the_first_result_is_a_difference_in_seconds(monkeypatch):
    def train(places, out):
        Path(places["NUMBA_CACHE_DIR"]).mkdir(exist_ok=True)
        (Path(places["NUMBA_CACHE_DIR"]) / "loop.nbi").touch()

    monkeypatch.setattr(tasks, "_first_epoch", train)
    row = tasks.first_result(2).to_dict()
    assert "s more" in row["note"]
    assert f"| {row['note']} | under 3 s |" in run.table([row])
    monkeypatch.setattr(tasks, "_first_epoch", lambda *_: None)
    with pytest.raises(DifferentWorkError, match="compiled"):
        tasks.first_result(1)


# ---- molecules ----


@pytest.fixture
def esol(tmp_path):
    """A table in which the target is the number of atoms; one SMILES cannot be read."""
    pytest.importorskip("rdkit")
    file = tmp_path / "ESOL.csv"
    rows = [["measured log solubility in mols per litre", "smiles"], ["1", "not a molecule"]]
    file.write_text("".join(",".join(row) + "\n" for row in rows + [[str(n), "C" * n] for n in range(1, 41)]))
    return file


def programs(asked_for, error):
    """Stands in for both programs: predicts the number of atoms with an error, for some of the molecules."""

    def run_program(words, cwd, **_):
        words = list(words)
        if "train" in words:
            (cwd / "ours" / "models").mkdir(parents=True, exist_ok=True)
            (cwd / "ours" / "models" / "0.safetensors").touch()
            file = next(word for word in words if word in ("--split", "--splits-file"))
            (split,) = json.loads((cwd / words[words.index(file) + 1]).read_text())
            assert sorted(i for part in split.values() for i in part) == list(range(40))
        else:
            out = words[words.index("--out" if "--out" in words else "--preds-path") + 1]
            with (cwd / "asked.csv").open() as file:
                smiles = [row["smiles"] for row in csv.DictReader(file)]
            lines = [f"{s},{len(s) + error}" for s in smiles[asked_for]]
            (cwd / out).write_text("\n".join(["smiles,y", *lines]))
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    return run_program


def test_molecules_are_split_alike_and_all_predicted(esol, monkeypatch):
    monkeypatch.setattr(subprocess, "run", programs(slice(None), error=0.5))
    train, predict = tasks.molecules(esol, Path("chemprop"), esol, tiny=False)
    assert "ours 0.500, peer 0.500" in train.note
    assert predict.note == "44 molecules"
    assert len(predict.ratio.values) == 3
    for asked_for, error, words in ((slice(3), 0.5, "3 of 44"), (slice(None), 50, "mean")):
        monkeypatch.setattr(subprocess, "run", programs(asked_for, error))
        with pytest.raises(DifferentWorkError, match=words):
            tasks.molecules(esol, Path("chemprop"), esol, tiny=False)


def test_molecules_are_left_out_without_chemprop(capsys):
    assert list(run.run_tasks(("molecules",), None, True, None)) == []
    assert "--chemprop" in capsys.readouterr().out
