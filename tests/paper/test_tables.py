"""Tables and their pictures."""

from dataclasses import replace
from pathlib import Path

import pytest

from tapnet.experiments.store import Store
from tapnet.paper.plots import draw_accuracies, draw_connectivity, draw_lambda
from tapnet.paper.tables import Section, csv_rows, csv_text, make_sections, markdown, overview
from tapnet.paper.targets import TAPNET, TARGETS

RESULTS = Path(__file__).parents[2] / "results"
EASY, HARD = [90.0 + i % 3 for i in range(10)], [70.0 + i % 4 for i in range(10)]
TOPK = next(row for row in TARGETS["table3"].rows if row.label == "Net_top-k")


def test_one_fold_has_no_deviation(mutag, store_results, tmp_path, cells_of):
    store, target = Store(tmp_path), replace(TARGETS["table3"], rows=(TOPK,))
    store_results(store, mutag, TOPK, 20, EASY[:1], folds_to_run=1)
    cells = cells_of(target, ["MUTAG"], ["paper"], store.results())
    (section,) = make_sections(target, cells, {}, {})
    assert section.rows == (("Net_top-k", "", "90.0", "90.0", "90.0", "1 of 10 × 20"),)


def test_each_point_of_the_picture_of_lambda_is_at_its_own(mutag, store_results, tmp_path, cells_of):
    """Also where only some of the rows are asked for."""
    store, target = Store(tmp_path), TARGETS["lambda"]
    target = replace(target, datasets=("MUTAG",), rows=target.rows[-2:])
    for row in target.rows:
        store_results(store, mutag, row, 2, EASY)
    cells = cells_of(target, ["MUTAG"], ["paper"], store.results())
    (ax,) = draw_lambda(target, ["MUTAG"], cells).axes
    assert ax.lines[0].get_xdata() == pytest.approx([8.0, 80.0])


def test_at_a_glance_is_the_papers_own_table_with_ours_beside(mutag, store_results, tmp_path, cells_of):
    """The statistics and every printed number; a cell that has other folds or epochs than most says so."""
    store, target = Store(tmp_path), replace(TARGETS["table3"], datasets=("MUTAG", "PTC"))
    store_results(store, mutag, TAPNET, 20, EASY)
    store_results(store, mutag, TOPK, 20, HARD)
    store_results(store, mutag, target.rows[0], 10, EASY)
    for row, scores in ((TAPNET, EASY), (TOPK, HARD)):
        store_results(store, replace(mutag, name="PTC"), row, 20, scores)
    cells = cells_of(target, target.datasets, ["paper", "fair"], store.results())
    (section,) = overview(target, cells, {"MUTAG": 24})
    rows = {name: tuple(values) for name, *values in section.rows}
    assert section.header == ("", "MUTAG", "PTC")
    assert "Net_sort (all data sets)" in section.notes[1]
    assert "Net_diff (PTC)" in section.notes[1]
    assert [*rows][:5] == ["graphs", "nodes", "classes", "majority class", "folds × epochs"]
    assert rows["graphs"] == ("24 of 188", "344")
    assert rows["nodes"] == ("17.9", "25.5")
    assert rows["classes"] == ("2", "2")
    assert rows["majority class"] == ("–", "55.8")  # of the whole set
    assert rows["folds × epochs"] == ("10 × 20", "10 × 20")
    assert rows["TAPNet"] == ("93.8/90.9/–", "73.4/90.9/–")
    assert rows["Net_top-k"] == ("–/71.3 †/–", "71.5/71.3 †/–")
    assert rows["Net_diff"] == ("–/90.9 (10 × 10)/–", "70.9/–/–")
    assert "Net_sort" not in rows
    alone = [cell for cell in cells if cell.dataset == "PTC"]
    assert overview(target, alone, {}) == []


def test_a_picture_marks_what_differs_and_what_has_other_epochs(mutag, store_results, tmp_path, cells_of):
    store, target = Store(tmp_path), replace(TARGETS["table3"], datasets=("MUTAG",))
    store_results(store, mutag, TAPNET, 20, EASY)
    store_results(store, mutag, TOPK, 20, HARD)
    store_results(store, mutag, target.rows[0], 10, EASY)
    figure = draw_accuracies(target, ["MUTAG"], cells_of(target, ["MUTAG"], ["paper"], store.results()))
    assert [text.get_text().strip() for text in figure.axes[0].texts] == ["(10 × 10)", "†", ""]
    assert figure.axes[0].get_title() == "MUTAG\n10 × 20 epochs"
    assert figure.legends[0].texts[-1].get_text() == "differs from TAPNet at 5 %"


def test_a_picture_has_no_row_and_no_panel_of_what_was_not_run(mutag, store_results, tmp_path, cells_of):
    store, target = Store(tmp_path), TARGETS["table3"]
    names = ["MUTAG", "PTC", "DD", "COLLAB"]
    for name in names:
        store_results(store, replace(mutag, name=name), TAPNET, 2, EASY)
        store_results(store, replace(mutag, name=name), TOPK, 2, HARD)
    target = replace(target, datasets=(*names, "PROTEINS"))
    figure = draw_accuracies(target, names, cells_of(target, target.datasets, ["paper"], store.results()))
    assert len(figure.axes) == 4
    for ax in figure.axes:
        assert [label.get_text() for label in ax.get_yticklabels()] == ["Net_top-k", "TAPNet"]
    not_run = " ".join(figure.legends[0].get_title().get_text().split())
    assert "Net_diff, Net_sort" in not_run
    assert "Net_top-k, TAPNet (PROTEINS)" in not_run


def test_parameters_are_those_of_reddit_binary_and_of_no_other_set(tmp_path, cells_of):
    target = TARGETS["table5"]
    cells = cells_of(target, ["PTC", "REDDIT-BINARY"], ["paper"], [])
    ptc, reddit = make_sections(target, cells, {}, {})
    assert "parameters" not in ptc.header
    assert reddit.rows[-1][-5:] == ("337,778", "2.13 %", "323,666", "331,090", "2.29 %")
    lines = csv_rows(target, cells)
    assert {line["paper_parameters"] for line in lines[:3]} == {None}
    assert [line["embedding_and_classifier"] for line in lines[3:]] == [323_666] * 3
    assert [line["parameters"] for line in lines[3:]] == [330_722, 330_722, 337_778]
    csv_text(lines)


def test_the_table_of_connectivity_has_a_line_for_each_layer(cells_of):
    target = TARGETS["connectivity"]
    stored = Store(RESULTS).results()
    cells = cells_of(target, ["PTC"], ["paper", "fair"], stored)
    lines = [line for line in csv_rows(target, cells) if (line["system"], line["protocol"]) == ("TAPNet", "paper")]
    assert [line["after_layer"] for line in lines] == [0, 1, 2, 3]
    assert [line["graphs"] for line in lines] == [344] * 4
    assert lines[0]["nodes"] > lines[1]["nodes"] > lines[2]["nodes"] > lines[3]["nodes"]
    (section,) = make_sections(target, cells, {}, {})
    shown = [row[5] for row in section.rows if row[:2] == ("TAPNet", "paper")]
    assert shown == [f"{100 * line['isolated'] / line['nodes']:.1f} %" for line in lines[1:]]


def test_connectivity_at_a_glance_has_the_numbers_of_the_layers(cells_of):
    target = TARGETS["connectivity"]
    cells = cells_of(target, ["PTC", "IMDB-MULTI", "REDDIT-MULTI12K"], ["paper"], Store(RESULTS).results())
    (glance,) = overview(target, cells, {})
    assert glance.header == ("", "PTC", "IMDB-MULTI")
    rows = {name: values for name, *values in glance.rows}
    lines = [line for line in csv_rows(target, cells) if (line["system"], line["dataset"]) == ("TAPNet", "PTC")][1:]
    shares = [f"{100 * line['isolated'] / line['nodes']:.1f}" for line in lines]
    assert [cell.split()[0] for cell in rows["TAPNet"][0].split("/")] == shares
    assert rows["input"][0].endswith("(1.0)")


def test_a_picture_of_connectivity_shows_one_protocol_and_names_it(cells_of):
    target = TARGETS["connectivity"]
    stored = Store(RESULTS).results()
    cells = [
        cell
        for cell in cells_of(target, ["PTC"], ["paper", "fair"], stored)
        if (cell.row.label, cell.protocol) != ("Net_top-k", "paper")
    ]
    figure = draw_connectivity(target, ["PTC"], cells)
    assert figure.axes[0].get_title() == "PTC\n10 × 200 epochs, protocol fair"
    assert "Net_top-k" in [line.get_label() for line in figure.axes[0].lines]


def test_a_system_has_one_colour_also_where_another_was_not_measured(cells_of):
    target, names = TARGETS["connectivity"], ("PTC", "IMDB-MULTI")
    stored = Store(RESULTS).results()
    cells = [
        cell
        for cell in cells_of(target, names, ["paper"], stored)
        if (cell.dataset, cell.row.label) != ("IMDB-MULTI", "w/o GCT")
    ]
    lines = [line for ax in draw_connectivity(target, names, cells).axes for line in ax.lines]
    assert len(lines) == 14
    looks = {(line.get_label(), line.get_color(), line.get_marker()) for line in lines}
    assert len(looks) == len({label for label, *_ in looks}) == 4


def test_markdown_keeps_bars_inside_their_cells():
    text = markdown([Section("T", ("a", "b"), (("x|y", "1"),), ("a note",))])
    assert text == "## T\n\n| a | b |\n|---|---|\n| x\\|y | 1 |\n\na note\n"
