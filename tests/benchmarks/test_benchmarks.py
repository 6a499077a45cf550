"""The benchmarks run, and both sides of each do the same work. No test asserts a time."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from benchmarks import cases, explanations, growth, mapped, measure, scaling
from benchmarks.data import STATISTICS, bench_dataset, generated
from benchmarks.measure import Ratio, compare
from tapnet import load_dataset
from tapnet.cli.bench import bench
from tapnet.errors import SettingError
from tapnet.nn.tap import TAPooling
from tests.helpers.pages import make_model

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", STATISTICS)
def test_generated_graphs_have_the_statistics_of_the_real_ones(name):
    dataset = generated(name, 150)
    _, nodes, _, classes, labels = STATISTICS[name]
    assert len(dataset) == 150
    assert abs(dataset.num_nodes / 150 / nodes - 1) < 0.25
    assert dataset.num_classes == classes
    assert dataset.features == ("labels" if labels else "degrees")


def test_both_sides_learn(monkeypatch):
    torch.manual_seed(0)
    dataset = bench_dataset("MUTAG")
    for side in (cases.our_epoch, cases.peer_epoch):
        epoch = side(dataset)
        losses = [epoch() for _ in range(12)]
        assert losses[-1] < 0.85 * losses[0]


def test_the_dense_peer_is_the_same_layer():
    torch.manual_seed(0)
    dense, batch = cases.DenseTAP(8, 0.5), bench_dataset("MUTAG").batch(range(5))
    x = torch.randn(batch.num_nodes, 8)
    ours = dense.sparse(x, batch.edge_index, None, batch.graph)[0]
    torch.testing.assert_close(dense(x, batch.edge_index, None, batch.graph)[0], ours)
    assert isinstance(dense.sparse, TAPooling)


@pytest.mark.parametrize("form", ["JSON", "GraphML"])
def test_both_sides_read_the_same_files(form):
    mutag = bench_dataset("MUTAG").subset(range(20))
    case = cases.files(mutag, rounds=1, form=form, graphs=40)
    assert case.note.count(str(2 * mutag.num_nodes)) == 2
    assert form in case.what
    assert "40 graphs" in case.data


def test_a_ratio_is_the_peers_time_over_ours_in_every_round():
    clock = iter([0.0, 1.0, 1.0, 4.0, 4.0, 10.0, 10.0, 12.0])  # ours 1, peer 3; then peer 6, ours 2

    class Time:
        perf_counter = staticmethod(lambda: next(clock))

    before, measure.time = measure.time, Time
    try:
        ratio = compare(lambda: None, lambda: None, rounds=2, warm_up=0)
    finally:
        measure.time = before
    assert ratio == Ratio((3.0, 3.0))


@pytest.mark.slow
def test_every_benchmark_runs_at_a_tiny_size(tmp_path):
    parts = "training,inference,layer,reading,files,memory,cross-validation,wl,clusters"  # the others: test_tasks.py
    words = [str(ROOT / "benchmarks" / "run.py"), "--tiny", "--threads", "1", "--out", str(tmp_path / "results.json")]
    words += ["--only", parts]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "results.json").read_text())["cases"]
    assert {"training epoch", "inference", "peak memory of training"} <= {row["what"] for row in rows}
    assert all(row["ratio"] > 0 for row in rows)


@pytest.mark.slow
def test_the_limits_are_measured():
    words = [str(ROOT / "benchmarks" / "limits.py"), "--tiny", "--threads", "1"]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "memory bandwidth" in result.stdout


# ---- growth ----

SIZES = st.lists(st.integers(1, 10**6), min_size=3, max_size=8, unique=True)


@given(SIZES, st.floats(-1, 3), st.floats(1e-6, 1e6))
def test_the_exponent_of_a_power_is_found(sizes, exponent, constant):
    value, error = growth.fit_exponent(sizes, [constant * size**exponent for size in sizes])
    assert value == pytest.approx(exponent, abs=1e-6)
    assert error < 1e-6


@given(SIZES, st.integers(0, 2**32))
def test_the_exponent_and_its_error_are_those_of_least_squares(sizes, seed):
    costs = np.exp(np.random.default_rng(seed).standard_normal(len(sizes)))
    line = linregress(np.log(sizes), np.log(costs))
    assert growth.fit_exponent(sizes, costs) == pytest.approx((line.slope, line.stderr))


ROW = growth.Growth("nodes", "the layer", (10, 20, 40, 80), (1.0, 2.0, 4.0, 8.0), (10**7, 4 * 10**7, 16 * 10**7, 10**9))


def test_a_row_has_both_exponents_and_none_of_a_few_bytes():
    assert ROW.to_dict()["time_exponent"]["value"] == pytest.approx(1)
    assert ROW.memory.value > 2
    little = replace(ROW, bytes=(1, 2, 3, 4))
    assert little.memory is little.to_dict()["memory_exponent"] is None


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_prints_the_exponents(as_json, monkeypatch, capsys):
    monkeypatch.setattr(growth, "measure_growth", lambda: [ROW])
    bench(growth=True, as_json=as_json)
    shown = capsys.readouterr().out
    if as_json:
        assert json.loads(shown)["growth"][0]["sizes"] == [10, 20, 40, 80]
    else:
        assert "nodes" in shown
        assert "1.00 ± 0.00" in shown
    with pytest.raises(SettingError, match="--threads"):
        bench(growth=True, threads=2)


def test_more_is_measured_where_more_is_done(monkeypatch):
    monkeypatch.setattr(growth, "REPEAT_SECONDS", 0)
    (knob,) = (knob for knob in growth.KNOBS if knob.size == "graphs")
    few, many = growth.costs(knob, (4, 400))
    assert 0 < few.seconds < many.seconds


@pytest.mark.slow
def test_every_size_is_measured_and_drawn(tmp_path):
    words = [str(ROOT / "benchmarks" / "scaling.py"), "--tiny", "--json", "--out", str(tmp_path / "scaling.png")]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=900)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {"nodes", "edges", "graphs", "channels", "classes", "folds", "processes"} <= {row["size"] for row in rows}
    assert all(len(row["sizes"]) >= 4 and min(row["seconds"]) > 0 for row in rows)
    assert json.loads((tmp_path / "scaling.json").read_text()) == rows
    assert (tmp_path / "scaling.png").stat().st_size > 1000


def test_the_page_has_the_stored_exponents():
    page = (ROOT / "docs/scale.md").read_text()
    for line in scaling.table(scaling.load(ROOT / "benchmarks/scaling.json")):
        assert line in page


# ---- a Ray cluster that loses a node ----


@pytest.mark.slow
def test_training_on_shards_goes_on_when_a_node_is_killed():
    for module in ("ray", "pyarrow", "lightning_fabric"):
        pytest.importorskip(module, reason="needs Ray Train and the extra cluster")
    words = ["--json", "--shards", "6", "--graphs", "400", "--epochs", "10", "--kill-in-epoch", "1"]
    command = [sys.executable, str(ROOT / "benchmarks" / "ray_shards.py"), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["shards read, before"] == {"0": [0, 3], "1": [1, 4], "2": [2, 5]}
    assert found["shards read, after"] == {"0": [0, 2, 3, 5], "1": [1, 2, 4, 5]}  # the third node is gone
    assert found["each graph seen in an epoch, times"] == [1, 1]
    assert len(found["losses of the epochs"]) == 10
    assert found["losses of the epochs"][-1] < 0.8 * found["losses of the epochs"][0]
    assert found["seconds lost"] > 0


# ---- explanations ----


def test_the_page_of_explanations_has_the_stored_numbers():
    page = (ROOT / "docs/explanations.md").read_text()
    for line in explanations.tables(json.loads(explanations.RESULTS.read_text())):
        assert line in page


def test_the_network_that_pyg_explains_is_the_same():
    mutag = load_dataset("MUTAG")
    model = make_model(mutag, "gin")
    encoded = model.encode(mutag.subset(range(5)))
    with torch.no_grad():
        same = explanations.PyGGIN(model.network).eval()(*explanations.pyg_graph(encoded, range(5)))
        torch.testing.assert_close(same, model.network.outputs(encoded.batch(range(5))).logits, rtol=1e-4, atol=1e-4)


def test_scores_are_of_the_nodes_and_edges_that_are_the_cause():
    mutag = load_dataset("MUTAG")
    ends = mutag.batch(range(len(mutag))).edges_once.numpy()
    truth = explanations.Truth(mutag.x.numpy() == 1, ends[0, ::3] * mutag.num_nodes + ends[1, ::3])
    part = explanations.Part.of(mutag, np.asarray([7, 2, 50]), truth)
    assert part.ptr.tolist() == mutag.subset([7, 2, 50]).node_ptr.tolist()
    scores = part.scores(part.nodes.astype(float), -part.edges.astype(float))
    assert scores == {"nodes": 1, "nodes, pooled": 1, "edges": 0, "edges, pooled": 0}
    first = part.first(1)
    assert first.nodes.tolist() == (mutag.subset([7]).x == 1).tolist()
    assert len(first.edges) == first.edge_index.shape[1] == mutag.subset([7]).num_edges // 2
    one = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert explanations.undirected(torch.tensor([0.0, 1.0, 0.2, 0.4]), one).tolist() == pytest.approx([0.5, 0.3])


# ---- data larger than memory ----


def test_the_generated_copy_is_read_as_if_it_had_been_parsed(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))
    mapped.write_copy(tmp_path / "GENERATED", 30)
    dataset = load_dataset(tmp_path / "GENERATED")
    assert (len(dataset), dataset.num_nodes, dataset.num_edges) == (30, 30 * mapped.NODES, 30 * mapped.EDGES)
    assert dataset.nbytes == pytest.approx(30 * mapped.BYTES_A_GRAPH, rel=0.01)
