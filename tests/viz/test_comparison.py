"""The picture of a comparison: every system by its name, what differs filled, what is not defined left out."""

import pytest

from tapnet.experiments.comparison import ComparedSystem, Comparison, FromReference
from tapnet.viz import plot_comparison


def system(name, mean, difference=None, baseline=False):
    scores = (mean - 1.0, mean, mean + 1.0)
    return ComparedSystem(name, scores, mean, 0.8, difference, 1, 1.0, 10, baseline)


@pytest.fixture
def table():
    rows = (
        system("tapnet:none", 80.0),
        system("$gin$", 85.0, FromReference(5.0, 3.0, 7.0, 0.001, 0.002, 4.0)),
        system("wl", 80.5, FromReference(0.5, -3.0, 4.0, 0.7, 0.7, 5.0)),
        system("bag", 80.0, FromReference(0.0, reason="the scores are the same on every fold"), baseline=True),
    )
    about = {
        "dataset": "D",
        "metric": "accuracy",
        "protocol": "fair",
        "rules": "protocol fair",
        "num_folds": 3,
        "seeds": 1,
    }
    more = {"new_folds": False, "split": None, "test_to_train": 0.5, "smallest_visible_difference": 5.0, "reason": None}
    return Comparison(rows, "tapnet:none", **about, **more, verdict="$gin$ is better")


def test_systems_are_named_and_what_differs_is_filled(table):
    left, right = plot_comparison(table).axes
    assert [text.get_text() for text in left.get_yticklabels()] == [
        "tapnet:none (reference)",
        "$gin$",
        "wl",
        "bag (baseline)",
    ]
    means = {line.get_ydata()[0]: line for line in right.lines if line.get_marker() == "o"}
    assert {row: line.get_xdata()[0] for row, line in means.items()} == {1: 5.0, 2: 0.5, 3: 0.0}
    assert means[1].get_markerfacecolor() == means[1].get_color()
    assert means[2].get_markerfacecolor() == "white"
    intervals = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in right.lines if len(line.get_xdata()) == 2}
    assert intervals[1] == (3.0, 7.0)
    assert 3 not in intervals
    assert [bar.get_width() for bar in right.patches] == [8.0, 10.0]


def test_a_stored_one_is_drawn_from_its_folder(table, tmp_path):
    table.save(tmp_path)
    assert len(plot_comparison(tmp_path).axes) == 2
