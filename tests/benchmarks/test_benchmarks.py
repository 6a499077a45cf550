"""The benchmarks run, and both sides of each do the same work. No test asserts a time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import cases, mapped, measure
from benchmarks.data import STATISTICS, bench_dataset, generated
from benchmarks.measure import Ratio, compare
from tapnet import load_dataset
from tapnet.nn.tap import TAPooling

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


def test_both_sides_read_the_same_files():
    mutag = bench_dataset("MUTAG").subset(range(30))
    note = cases.files(mutag, rounds=1).note
    assert note.count(str(mutag.num_nodes)) == 2


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
    words = [str(ROOT / "benchmarks" / "run.py"), "--tiny", "--threads", "1", "--out", str(tmp_path / "results.json")]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "results.json").read_text())["cases"]
    assert {"training epoch", "inference", "peak memory of training"} <= {row["what"] for row in rows}
    assert all(row["ratio"] > 0 for row in rows)


@pytest.mark.slow
def test_the_scaling_picture_is_drawn(tmp_path):
    words = [str(ROOT / "benchmarks" / "scaling.py"), "--tiny", "--out", str(tmp_path / "scaling.png")]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "scaling.png").stat().st_size > 1000


@pytest.mark.slow
def test_the_limits_are_measured():
    words = [str(ROOT / "benchmarks" / "limits.py"), "--tiny", "--threads", "1"]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "memory bandwidth" in result.stdout


def test_the_generated_copy_is_read_as_if_it_had_been_parsed(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))
    mapped.write_copy(tmp_path / "GENERATED", 30)
    dataset = load_dataset(tmp_path / "GENERATED")
    assert (len(dataset), dataset.num_nodes, dataset.num_edges) == (30, 30 * mapped.NODES, 30 * mapped.EDGES)
    assert dataset.nbytes == pytest.approx(30 * mapped.BYTES_A_GRAPH, rel=0.01)
