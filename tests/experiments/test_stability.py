"""How much of a selection is the same with other seeds, in cross-validations and comparisons."""

import csv
import io
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import tapnet
from tapnet.experiments.comparison import load_comparison
from tapnet.experiments.load_run import load_run
from tapnet.inference.stability import corrected_overlap
from tapnet.paper.comparisons import comparison_rows, diagnostics_sections

QUICK = {"epochs": 1, "folds": 3, "hidden_channels": 8, "jobs": 1}

pytestmark = pytest.mark.filterwarnings("ignore")  # about copies, and means below the majority class


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    def run(pool):
        return tapnet.cross_validate("MUTAG", pool=pool, seeds=3, out=tmp_path_factory.mktemp(pool), **QUICK)

    return {pool: run(pool) for pool in ("topk", "random", "random-fixed", "degree", "ndp", "mincut")}


def test_a_selection_without_learning_is_stable_and_one_by_chance_is_not(runs):
    found = {pool: run.diagnostics[0].stability for pool, run in runs.items()}
    assert (found["degree"], found["random-fixed"], found["ndp"]) == (1, 1, 1)
    assert found["random"] == pytest.approx(0, abs=0.06)  # 564 values, each with a deviation of 1/√(n - 1)
    assert abs(found["topk"]) < 1
    assert found["mincut"] is None
    assert all(layer.stability is None for run in runs.values() for layer in run.diagnostics[1:])


def test_it_is_the_mean_over_pairs_of_seeds_graphs_and_folds(runs):
    run = runs["topk"]
    assert list(run.stability) == [(0, 0), (0, 1), (0, 2)]
    for (_, fold), value in run.stability.items():
        chosen = [r.selection for r in run.results if r.trial.fold == fold]
        assert len(chosen) == 3
        values = [corrected_overlap(a.kept, b.kept, a.sizes) for a, b in combinations(chosen, 2)]
        assert value == pytest.approx(np.nanmean(values))
    assert run.diagnostics[0].stability == pytest.approx(np.mean(list(run.stability.values())), abs=1e-6)


def test_one_seed_new_folds_and_results_of_before_have_none(runs):
    run = runs["degree"]
    single = replace(run, results=[r for r in run.results if r.trial.seed == 1])
    of_before = replace(run, results=[replace(r, selection=None) for r in run.results])
    new_folds = tapnet.cross_validate("MUTAG", pool="degree", seeds=2, new_folds=True, **QUICK)
    for other in (single, of_before, new_folds):
        assert other.stability == {}
        assert other.diagnostics[0].stability is None
        assert other.to_dict()["diagnostics"][0]["stability"] is None


def test_it_is_stored_and_shown(runs, tmp_path):
    stored = {pool: load_run(run.folder) for pool, run in runs.items()}
    table = load_comparison(tapnet.compare_runs(stored).save(tmp_path).folder)
    rows = {row["system"]: row for row in csv.DictReader(io.StringIO(table.to_csv()))}
    (section,) = diagnostics_sections({"MUTAG": table})
    for pool, run in runs.items():
        first = run.diagnostics[0]
        assert table[pool].diagnostics[0] == first == stored[pool].diagnostics[0]
        assert rows[pool]["pool_stability"] == ("" if first.stability is None else str(first.stability))
        assert float(rows[pool]["pool_nodes"]) == first.nodes
        assert ("stability" in str(first)) == (first.stability is not None)
    assert table.to_pandas().loc["degree", "pool_stability"] == 1
    assert section.header[-1] == "stability"
    assert {row[0]: row[-1] for row in section.rows}["degree"] == "1.00"
    assert {row["system"]: row["stability"] for row in comparison_rows("pooling", {"MUTAG": table})}["degree"] == 1
    single = {pool: replace(run, results=run.results[:3]) for pool, run in runs.items()}
    assert "stability" not in diagnostics_sections({"MUTAG": tapnet.compare_runs(single)})[0].header
