"""`tapnet reproduce`: from trials to tables, with real processes and the copy of MUTAG that GraKeL installs."""

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from commands import tapnet as run
from commands import tapnet_ends as tapnet
from tapnet import load_dataset
from tapnet.cli.terminal import print_sections
from tapnet.errors import DataError, SettingError
from tapnet.experiments.backends.pool import DataReference
from tapnet.experiments.statistics import compare
from tapnet.experiments.store import Store
from tapnet.experiments.trial import TrialResult
from tapnet.models.registry import MODELS, find_model
from tapnet.paper.budgets import BUDGETS, Effort, find_budget
from tapnet.paper.figures import _accuracies, _connectivity, _lambda
from tapnet.paper.numbers import TABLE1, TABLE2, TABLE3, TABLE4
from tapnet.paper.report import BEGIN, END, Section, csv_text, lines_of, markdown, overview, sections_of, with_tables
from tapnet.paper.reproduce import Stored, cells_of, trials_of
from tapnet.paper.targets import FIGURES, TAPNET, TARGETS, find_targets

# ---- the test of differences ----

accuracies = st.lists(st.floats(40, 100), min_size=10, max_size=10)


@given(accuracies, accuracies)
def test_without_correction_it_is_the_paired_t_test(ours, theirs):
    if np.ptp(np.subtract(ours, theirs)) < 1e-6:
        return
    found, theirs = compare(dict(enumerate(ours)), dict(enumerate(theirs)), 0.0), stats.ttest_rel(ours, theirs)
    assert found.p_value == pytest.approx(theirs.pvalue, abs=1e-9)
    low, high = theirs.confidence_interval(0.95)
    assert found.difference - found.half_width == pytest.approx(low, abs=1e-6)
    assert found.difference + found.half_width == pytest.approx(high, abs=1e-6)


def test_the_correction_is_that_of_nadeau_and_bengio():
    """Ten folds: the variance of the mean is (1/10 + 1/9) s² instead of s²/10."""
    ours = dict(enumerate([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    theirs = dict.fromkeys(range(10), 4.0)
    d = np.arange(1, 11) - 4.0
    t = d.mean() / np.sqrt((1 / 10 + 1 / 9) * d.var(ddof=1))
    assert compare(ours, theirs, 1 / 9).p_value == pytest.approx(2 * stats.t.sf(t, 9))
    assert compare(ours, theirs, 1 / 9).p_value > compare(ours, theirs, 0).p_value


@given(accuracies, accuracies)
def test_what_differs_is_what_lies_outside_the_interval(ours, theirs):
    found = compare(dict(enumerate(ours)), dict(enumerate(theirs)), 1 / 9)
    if found is not None and abs(abs(found.difference) - found.half_width) > 1e-6:
        assert found.differs == (abs(found.difference) > found.half_width)


def test_folds_that_only_one_of_them_has_do_not_count():
    ours, theirs = {0: 1.0, 1: 2.0, 2: 4.0, 7: 100.0}, {0: 3.0, 1: 3.0, 2: 3.0, 8: 0.0}
    same = compare({0: 1.0, 1: 2.0, 2: 4.0}, {0: 3.0, 1: 3.0, 2: 3.0}, 0.5)
    assert compare(ours, theirs, 0.5) == same
    assert compare({0: 1.0}, {0: 2.0}, 0.5) is None
    assert compare(ours, ours, 0.5) is None


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


# ---- stored trials to cells ----


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def stored_with(store, dataset, row, epochs, accuracies, run=10, **changed):
    """Trials of a system as if they had been run: each fold ends with the accuracy that is given."""
    for trial, accuracy in zip(trials_of(row, dataset, "paper", Effort(epochs, run=run)), accuracies, strict=True):
        curves = {"train_loss": [1.0] * epochs, "test_accuracy": [50.0] * (epochs - 1) + [accuracy]}
        store.save(TrialResult(replace(trial, **changed), curves, 1.0, 1, {}))


def topk_cell(store):
    target = TARGETS["table3"]
    cells = list(cells_of(target, ["MUTAG"], ["paper"], Stored(store), {}))
    return next(cell for cell in cells if cell.row.label == "Net_top-k")


TOPK = next(row for row in TARGETS["table3"].rows if row.label == "Net_top-k")
EASY, HARD = [90.0 + i % 3 for i in range(10)], [70.0 + i % 4 for i in range(10)]


def test_a_system_is_tested_against_tapnet_after_as_many_epochs(mutag, tmp_path):
    store = Store(tmp_path)
    stored_with(store, mutag, TOPK, 20, HARD)
    stored_with(store, mutag, TAPNET, 200, EASY)
    assert topk_cell(store).against_tapnet is None  # nothing to compare with, though the means are 20 points apart
    stored_with(store, mutag, TAPNET, 20, HARD[::-1])
    expected = compare(dict(enumerate(HARD)), dict(enumerate(HARD[::-1])), 1 / 9)
    assert topk_cell(store).against_tapnet == pytest.approx(expected)


def test_folds_of_several_devices_do_not_count_twice(mutag, tmp_path):
    store = Store(tmp_path)
    stored_with(store, mutag, TOPK, 20, EASY)
    stored_with(store, mutag, TOPK, 20, HARD[:1] + EASY[1:], devices=2)
    assert topk_cell(store).behind == "10 × 20"
    assert [r.trial.fold for r in topk_cell(store).results] == list(range(10))


def test_all_folds_count_for_more_than_a_few_with_more_epochs(mutag, tmp_path):
    """Two folds of a longer run, merged while it goes on, do not take the place of ten."""
    store = Store(tmp_path)
    stored_with(store, mutag, TOPK, 20, EASY)
    stored_with(store, mutag, TOPK, 200, HARD[:2], run=2)
    assert topk_cell(store).behind == "10 × 20"
    stored_with(store, mutag, TOPK, 200, HARD)
    assert topk_cell(store).behind == "10 × 200"
    stored_with(store, mutag, TOPK, 400, EASY)
    assert topk_cell(store).behind == "10 × 200"  # the paper's own number of epochs
    asked = next(cells_of(TARGETS["table3"], ["MUTAG"], ["paper"], Stored(store, epochs=20, folds=3), {}))
    assert asked.behind == ""
    target = replace(TARGETS["table3"], rows=(TOPK,))
    (asked,) = cells_of(target, ["MUTAG"], ["paper"], Stored(store, epochs=20, folds=3), {})
    assert asked.behind == "3 of 10 × 20"


def test_one_fold_has_no_deviation(mutag, tmp_path):
    store, target = Store(tmp_path), replace(TARGETS["table3"], rows=(TOPK,))
    stored_with(store, mutag, TOPK, 20, EASY[:1], run=1)
    cells = list(cells_of(target, ["MUTAG"], ["paper"], Stored(store), {}))
    (section,) = sections_of(target, cells, {}, {})
    assert section.rows == (("Net_top-k", "", "90.0", "90.0", "90.0", "1 of 10 × 20"),)


# ---- pages ----


def test_each_point_of_the_picture_of_lambda_is_at_its_own(mutag, tmp_path):
    """Also where only some of the rows are asked for."""
    store, target = Store(tmp_path), TARGETS["lambda"]
    target = replace(target, datasets=("MUTAG",), rows=target.rows[-2:])
    for row in target.rows:
        stored_with(store, mutag, row, 2, EASY)
    cells = list(cells_of(target, ["MUTAG"], ["paper"], Stored(store), {}))
    (ax,) = _lambda(target, ["MUTAG"], cells).axes
    assert ax.lines[0].get_xdata() == pytest.approx([8.0, 80.0])


def test_at_a_glance_is_the_papers_own_table_with_ours_beside(mutag, tmp_path):
    """The statistics and every printed number; a cell that has other folds or epochs than most says so."""
    store, target = Store(tmp_path), replace(TARGETS["table3"], datasets=("MUTAG", "PTC"))
    stored_with(store, mutag, TAPNET, 20, EASY)
    stored_with(store, mutag, TOPK, 20, HARD)
    stored_with(store, mutag, target.rows[0], 10, EASY)
    cells = list(cells_of(target, target.datasets, ["paper", "fair"], Stored(store), {}))
    (section,) = overview(target, cells, {"MUTAG": 24})
    rows = {name: tuple(values) for name, *values in section.rows}
    assert section.header == ("", "MUTAG", "PTC")
    assert [*rows][:4] == ["graphs", "nodes", "classes", "folds × epochs"]
    assert rows["graphs"] == ("24 of 188", "344")
    assert rows["nodes"] == ("17.9", "25.5")
    assert rows["classes"] == ("2", "2")
    assert rows["folds × epochs"] == ("10 × 20", "")
    assert rows["TAPNet"] == ("93.8 / 90.9 / –", "73.4 / – / –")
    assert rows["Net_top-k"] == ("– / 71.3 † / –", "71.5 / – / –")
    assert rows["Net_diff"] == ("– / 90.9 (10 × 10) / –", "70.9 / – / –")
    assert rows["Net_sort"] == ("– / – / –", "70.6 / – / –")
    alone = [cell for cell in cells if cell.dataset == "PTC"]
    assert overview(target, alone, {}) == overview(TARGETS["connectivity"], cells, {}) == []


def test_a_picture_marks_what_differs_and_what_has_other_epochs(mutag, tmp_path):
    store, target = Store(tmp_path), replace(TARGETS["table3"], datasets=("MUTAG",))
    stored_with(store, mutag, TAPNET, 20, EASY)
    stored_with(store, mutag, TOPK, 20, HARD)
    stored_with(store, mutag, target.rows[0], 10, EASY)
    figure = _accuracies(target, ["MUTAG"], list(cells_of(target, ["MUTAG"], ["paper"], Stored(store), {})))
    assert [text.get_text().strip() for text in figure.axes[0].texts] == ["(10 × 10)", "†", ""]
    assert figure.axes[0].get_title() == "MUTAG\n10 × 20 epochs"
    assert figure.legends[0].texts[-1].get_text() == "differs from TAPNet at 5 %"


def test_parameters_are_those_of_reddit_binary_and_of_no_other_set(tmp_path):
    target = TARGETS["table5"]
    cells = list(cells_of(target, ["PTC", "REDDIT-BINARY"], ["paper"], Stored(Store(tmp_path)), {}))
    ptc, reddit = sections_of(target, cells, {}, {})
    assert "parameters" not in ptc.header
    assert reddit.rows[-1][-5:] == ("337,778", "2.13 %", "323,666", "331,090", "2.29 %")
    lines = lines_of(target, cells)
    assert {line["paper_parameters"] for line in lines[:3]} == {None}
    assert [line["embedding_and_classifier"] for line in lines[3:]] == [323_666] * 3
    assert [line["parameters"] for line in lines[3:]] == [330_722, 330_722, 337_778]
    csv_text(lines)


def test_the_table_of_connectivity_has_a_line_for_each_layer():
    target = TARGETS["connectivity"]
    stored = Stored(Store(Path(__file__).parents[2] / "results"))
    cells = list(cells_of(target, ["PTC"], ["paper", "fair"], stored, {}))
    lines = [line for line in lines_of(target, cells) if (line["system"], line["protocol"]) == ("TAPNet", "paper")]
    assert [line["after_layer"] for line in lines] == [0, 1, 2, 3]
    assert [line["graphs"] for line in lines] == [344] * 4
    assert lines[0]["nodes"] > lines[1]["nodes"] > lines[2]["nodes"] > lines[3]["nodes"]
    (section,) = sections_of(target, cells, {}, {})
    shown = [row[5] for row in section.rows if row[:2] == ("TAPNet", "paper")]
    assert shown == [f"{100 * line['isolated'] / line['nodes']:.1f} %" for line in lines[1:]]


def test_a_table_is_never_cut_to_the_width_of_a_pipe(capsys):
    section = Section("T", ("system", *(f"column {i}" for i in range(20))), (("x", *["72.6 ± 7.7 †"] * 20),))
    print_sections("A title", [section], [])
    assert capsys.readouterr().out.count("72.6 ± 7.7 †") == 20


def test_a_picture_of_connectivity_shows_one_protocol_and_names_it():
    target = TARGETS["connectivity"]
    stored = Stored(Store(Path(__file__).parents[2] / "results"))
    cells = [
        cell
        for cell in cells_of(target, ["PTC"], ["paper", "fair"], stored, {})
        if (cell.row.label, cell.protocol) != ("Net_top-k", "paper")
    ]
    figure = _connectivity(target, ["PTC"], cells)
    assert figure.axes[0].get_title() == "PTC\n10 × 200 epochs, protocol fair"
    assert "Net_top-k" in [line.get_label() for line in figure.axes[0].lines]


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


def test_tables_that_were_not_asked_for_stay_on_the_page(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    page.write_text(with_tables(page, ["how"], ["## A\n\n### of A\n\n1\n", "## B\n\n2\n"]))
    again = with_tables(page, ["how, again"], ["## B\n\n3\n", "## C\n\n4\n"])
    assert again == f"{BEGIN}\n\nhow, again\n\n## A\n\n### of A\n\n1\n\n## B\n\n3\n\n## C\n\n4\n\n{END}\n"
    page.write_text(again)
    assert with_tables(page, ["how, again"], []) == again


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
    assert "| graphs | 1178 | 344 | 24 of 188 | 1113 |" in text
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
    words = (*QUICK[:2], "--budget", "quick", "--systems", "TAPNet,PSCN", "--missing")
    listed = tapnet(*words, folder=folder).stdout.split("\n")
    assert listed[:2] == [f"MUTAG: pscn, {protocol}, 2 epochs, folds 0 1" for protocol in ("paper", "fair")]
    more = tapnet(*words, "--json", folder=folder)
    assert [row["trial"].split(",")[0] for row in json.loads(more.stdout)["missing"]] == ["pscn"] * 4


def test_trials_of_another_machine_are_merged_by_copying_files(quick, tmp_path):
    folder, _ = quick
    shutil.copytree(folder / "results/quick/trials", tmp_path / "store/trials")
    tapnet(*QUICK, "--stored", "--out", "store", folder=tmp_path)  # QUICK's own budget, whose data these are
    assert (tmp_path / "store/table2.csv").read_text() == (folder / "results/quick/table2.csv").read_text()
    assert len(list(Store(tmp_path / "store").results())) == 12


def test_trials_of_another_copy_are_shown_and_said_to_be(quick):
    """The budget `paper` has all of MUTAG at hand; these trials are of 24 graphs."""
    folder, _ = quick
    text = (folder / "results/quick/table2.md").read_text()
    tapnet(*QUICK[:2], "--stored", "--out", "results/quick", folder=folder)
    shown = (folder / "results/quick/table2.md").read_text()
    assert "These trials are of another copy of MUTAG, or a part of it, than is here." in shown
    assert next(line for line in text.split("\n") if "2 of 3 × 2" in line) in shown
    tapnet(*QUICK, "--stored", folder=folder)
    assert (folder / "results/quick/table2.md").read_text() == text


def test_any_data_set_may_be_asked_for_and_none_is_dropped(quick):
    folder, _ = quick
    words = ("reproduce", "table1", "--datasets", "PTC,MUTAG,IMDB-BINARY", "--systems", "WL", "--missing", "--json")
    found = json.loads(tapnet(*words, folder=folder).stdout)
    assert found["data_sets_not_here"] == ["PTC", "IMDB-BINARY"]
    assert {row["dataset"] for row in found["missing"]} <= {"MUTAG"}


def test_a_normalisation_is_called_by_its_name(tmp_path):
    words = ("reproduce", "norm", "--datasets", "MUTAG", "--systems", "Symmetric", "--missing", "--protocol", "fair")
    listed = tapnet(*words, folder=tmp_path).stdout.split("\n")
    assert listed[0] == "MUTAG: tapnet (norm=symmetric), fair, 2 epochs, folds 0 1"
    assert listed[1].startswith("2 of 2 trials are missing")


def test_a_target_without_what_is_asked_for_keeps_its_files(quick, tmp_path):
    folder, _ = quick
    shutil.copytree(folder / "results/quick/trials", tmp_path / "store/trials")
    (tmp_path / "store/table3.md").write_text("as it was")
    words = ("reproduce", "all", "--systems", "GIN", "--budget", "quick", "--stored", "--out", "store")
    tapnet(*words, folder=tmp_path)
    assert (tmp_path / "store/table3.md").read_text() == "as it was"
    assert "| GIN |" in (tmp_path / "store/table2.md").read_text()


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


def test_the_coarsening_of_ptc_again_in_a_terminal(real_data, tmp_path):
    """Its networks are listed while they are missing; once they are there, there is no progress to show."""
    words = ("reproduce", "coarsening", "--data-dir", real_data)
    assert "its network, for coarsening" in tapnet(*words, "--missing", folder=tmp_path).stdout
    tapnet(*words, folder=tmp_path)
    assert "0 of 0 trials are missing" in tapnet(*words, "--missing", folder=tmp_path).stdout
    reader, writer = os.openpty()
    try:
        done = run(*words, cwd=tmp_path, capture_output=False, stdout=writer, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 0, os.read(reader, 10_000).decode()
    os.close(reader)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), (b"\xff\xfe", "no text in UTF-8"), (b"no marks", "it has no")]
)
def test_a_page_that_cannot_take_the_tables_is_refused_before_anything_is_trained(tmp_path, content, message):
    page = tmp_path / "page.md"
    page.mkdir() if content is None else page.write_bytes(content)
    done = tapnet(*QUICK, "--report", page, folder=tmp_path, code=1)
    assert message in done.stderr
    assert not (tmp_path / "results").exists()


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
        (["table1", "--protocol", "best"], "--protocol is one of paper, fair, both, not 'best'"),
        (["voting", "--datasets", "NOPE"], "no data set 'NOPE'"),
        (["voting", "--systems", "TAPNet"], "voting has no systems"),
        (["voting", "--report", "page.md"], "--report: voting has no table"),
        (["table1", "--folds", "11", "--budget", "paper"], "--folds is at most 10"),
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path):
    done = tapnet("reproduce", *words, folder=tmp_path, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
