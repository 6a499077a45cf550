"""`tapnet reproduce`: from trials to tables, with real processes and the copy of MUTAG that GraKeL installs."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from commands import tapnet_ends as tapnet
from tapnet.errors import DataError, SettingError
from tapnet.models.registry import MODELS, find_model
from tapnet.paper.budgets import BUDGETS, find_budget
from tapnet.paper.compare import corrected_p_value
from tapnet.paper.figures import _connectivity
from tapnet.paper.numbers import TABLE1, TABLE2, TABLE3, TABLE4
from tapnet.paper.report import BEGIN, END, Section, markdown, with_tables
from tapnet.paper.reproduce import Stored, cells_of
from tapnet.paper.targets import FIGURES, TARGETS, find_targets
from tapnet.training.executors import DataReference
from tapnet.training.store import Store

# ---- the test of differences ----

accuracies = st.lists(st.floats(40, 100), min_size=10, max_size=10)


@given(accuracies, accuracies)
def test_without_correction_it_is_the_paired_t_test(ours, theirs):
    if np.ptp(np.subtract(ours, theirs)) < 1e-6:
        return
    p = corrected_p_value(dict(enumerate(ours)), dict(enumerate(theirs)), test_to_train=0.0)
    assert p == pytest.approx(stats.ttest_rel(ours, theirs).pvalue, abs=1e-9)


def test_the_correction_is_that_of_nadeau_and_bengio():
    """Ten folds: the variance of the mean is (1/10 + 1/9) s² instead of s²/10."""
    ours = dict(enumerate([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    theirs = dict.fromkeys(range(10), 4.0)
    d = np.arange(1, 11) - 4.0
    t = d.mean() / np.sqrt((1 / 10 + 1 / 9) * d.var(ddof=1))
    assert corrected_p_value(ours, theirs, 1 / 9) == pytest.approx(2 * stats.t.sf(t, 9))
    assert corrected_p_value(ours, theirs, 1 / 9) > corrected_p_value(ours, theirs, 0)


def test_folds_that_only_one_of_them_has_do_not_count():
    ours, theirs = {0: 1.0, 1: 2.0, 2: 4.0, 7: 100.0}, {0: 3.0, 1: 3.0, 2: 3.0, 8: 0.0}
    same = corrected_p_value({0: 1.0, 1: 2.0, 2: 4.0}, {0: 3.0, 1: 3.0, 2: 3.0}, 0.5)
    assert corrected_p_value(ours, theirs, 0.5) == same
    assert corrected_p_value({0: 1.0}, {0: 2.0}, 0.5) is None
    assert corrected_p_value(ours, ours, 0.5) is None


# ---- targets ----


def test_every_number_of_the_paper_has_its_cell():
    cells = {
        (name, row.model, tuple(row.changed.items()), dataset): target.printed(row, dataset)
        for name, target in TARGETS.items()
        for row in target.rows
        for dataset in target.datasets
    }
    shown = [cell.mean for (name, *_), cell in cells.items() if cell and name in ("table1", "table2")]
    printed = [cell.mean for table in (TABLE1, TABLE2) for row in table.values() for cell in row.values()]
    assert sorted(shown) == sorted(printed)
    for name, table in (("table3", TABLE3), ("table4", TABLE4)):
        shown = [cell.mean for (target, *_), cell in cells.items() if cell and target == name]
        assert sorted(shown) == sorted(cell.mean for row in table.values() for cell in row.values())


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_every_row_can_be_run(target):
    for row in target.rows:
        assert row.model in MODELS
        for dataset in target.datasets:
            find_model(row.model).make_settings(dataset, row.changed)


def test_words_that_are_no_target_or_budget_are_refused():
    assert set(find_targets("all")) == {*TARGETS, *FIGURES}
    with pytest.raises(SettingError, match="table1"):
        find_targets("table9")
    with pytest.raises(SettingError, match="quick, standard, paper"):
        find_budget("huge")
    assert BUDGETS["paper"].on("COLLAB").epochs == 200


def test_a_few_graphs_are_small_ones_from_all_over_the_set():
    whole, few = DataReference("MUTAG", None).load(), DataReference("MUTAG", None, graphs=24).load()
    assert len(few) == 24
    assert few.nodes_per_graph.max() <= whole.nodes_per_graph.median()
    assert set(few.y.tolist()) == set(whole.y.tolist())
    assert len(DataReference("MUTAG", None, graphs=150).load()) == 150
    assert len(DataReference("MUTAG", None, graphs=1000).load()) == len(whole)


# ---- pages ----


def test_a_system_has_one_colour_also_where_another_was_not_measured():
    target, names = TARGETS["connectivity"], ("PTC", "IMDB-MULTI")
    stored = Stored(Store(Path(__file__).parents[2] / "results"))
    cells = [
        cell
        for cell in cells_of(target, names, ["paper"], stored, {})
        if (cell.dataset, cell.row.label) != ("IMDB-MULTI", "w/o GCT")
    ]
    lines = [line for ax in _connectivity(target, names, cells).axes for line in ax.lines]
    assert len(lines) == 14
    looks = {(line.get_label(), line.get_color(), line.get_marker()) for line in lines}
    assert len(looks) == len({label for label, *_ in looks}) == 4


def test_markdown_keeps_bars_inside_their_cells():
    text = markdown([Section("T", ("a", "b"), (("x|y", "1"),), ("a note",))])
    assert text == "## T\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\na note\n"


def test_tables_go_between_the_marks_and_the_rest_of_the_page_stays(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    text = with_tables(page, ["how"], ["## new\n"])
    assert text.startswith("# Mine\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "## new" in text
    page.write_text("no marks")
    with pytest.raises(DataError, match="tables: begin"):
        with_tables(page, [], [])


# ---- the command ----

QUICK = ("reproduce", "table2", "--systems", "TAPNet,WL,GIN", "--budget", "quick")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run without any data folder: of Table 2 only MUTAG is at hand."""
    folder = tmp_path_factory.mktemp("quick")
    return folder, tapnet(*QUICK, folder=folder)


def test_quick_writes_tables_and_a_picture_and_says_what_is_not_here(quick):
    folder, done = quick
    text = (folder / "results/quick/table2.md").read_text()
    assert "| TAPNet | 93.8 ± 6.0 |" in text
    assert "2 of 3 × 2" in text
    assert "MUTAG: 24 of 188 graphs, 17.9 nodes" in text
    assert "MUTAG: 24 of 188 graphs" in done.stdout
    assert "PTC: 344 graphs" in text
    assert "PTC is not here" in text
    assert "PTC is not here" in done.stdout
    assert (folder / "results/quick/table2.png").stat().st_size > 5000
    assert (folder / "results/quick/table2.svg").read_text().startswith("<?xml")
    with (folder / "results/quick/table2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(r["dataset"], r["system"], r["protocol"]) for r in rows} >= {
        ("MUTAG", "GIN", "fair"),
        ("DD", "WL", "paper"),
    }
    for row in rows:  # a cell without trials is empty
        assert bool(row["mean"]) == (row["dataset"] == "MUTAG")


def test_nothing_is_computed_twice_and_missing_says_what_is_left(quick):
    folder, _ = quick
    trials = sorted((folder / "results/quick/trials").iterdir())
    assert len(trials) == 3 * 2 * 2
    before = [file.stat().st_mtime_ns for file in trials]
    done = tapnet(*QUICK, folder=folder)
    assert [file.stat().st_mtime_ns for file in trials] == before
    assert "fold" not in done.stderr
    assert "0 of 12 trials are missing" in tapnet(*QUICK, "--missing", folder=folder).stdout
    more = tapnet(*QUICK[:2], "--budget", "quick", "--systems", "TAPNet,PSCN", "--missing", "--json", folder=folder)
    assert [row["trial"].split(",")[0] for row in json.loads(more.stdout)["missing"]] == ["pscn"] * 4


def test_trials_of_another_machine_are_merged_by_copying_files(quick, tmp_path):
    folder, _ = quick
    shutil.copytree(folder / "results/quick/trials", tmp_path / "store/trials")
    tapnet(*QUICK, "--stored", "--out", "store", folder=tmp_path)  # QUICK's own budget, whose data these are
    assert (tmp_path / "store/table2.csv").read_text() == (folder / "results/quick/table2.csv").read_text()
    assert len(list(Store(tmp_path / "store").results())) == 12


def test_a_stored_trial_is_one_short_line(quick):
    folder, _ = quick
    for file in (folder / "results/quick/trials").iterdir():
        text = file.read_text()
        assert text.count("\n") == 1
        assert json.loads(text)["versions"]["torch"]


def test_the_report_is_filled_in(quick, tmp_path):
    folder, _ = quick
    tapnet(*QUICK, "--stored", "--report", tmp_path / "RESULTS.md", folder=folder)
    assert "## Table 2" in (tmp_path / "RESULTS.md").read_text()


def test_illustrations_need_no_data(tmp_path):
    for name in ("voting", "architecture"):
        tapnet("reproduce", name, folder=tmp_path)
        assert (tmp_path / f"results/quick/{name}.png").stat().st_size > 5000
    assert "PTC is not here" in tapnet("reproduce", "coarsening", folder=tmp_path).stdout


def test_the_coarsening_of_ptc(real_data, tmp_path):
    done = tapnet("reproduce", "coarsening", "--data-dir", real_data, folder=tmp_path)
    assert "6 nodes kept of each of" in done.stdout
    assert (tmp_path / "results/quick/coarsening.svg").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table7"], "a target is one of table1"),
        (["tabel2"], "did you mean table2?"),
        (["table1", "--datasets", "IMDB-BINRY"], "did you mean IMDB-BINARY?"),
        (["table1", "--systems", "TAPNet,EigenPol"], "table1 has no 'eigenpol'; it has WL, PSCN"),
        (["table2", "--systems", "SAGPol"], "did you mean SAGPool?"),
        (["all", "--systems", "Net_topk"], "did you mean Net_top-k?"),
        (["table1", "--budget", "huge"], "--budget is one of quick"),
        (["table1", "--datasets", "NOPE"], "no data set 'NOPE'"),
        (["table1", "--systems", "NOPE"], "table1 has no 'nope'; it has WL, PSCN"),
        (["table1", "--protocol", "best"], "protocol is one of paper, fair"),
        (["table1", "--folds", "11", "--budget", "paper"], "--folds is at most 10"),
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path):
    done = tapnet("reproduce", *words, folder=tmp_path, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
