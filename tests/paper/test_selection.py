"""Targets and budgets: every number of the paper has its cell, every row can be run, and mistakes are refused."""

import pytest

from tapnet.errors import SettingError
from tapnet.experiments.backends.pool import DataReference
from tapnet.models.registry import MODELS, find_model
from tapnet.paper.budgets import BUDGETS, find_budget
from tapnet.paper.numbers import TABLE1, TABLE2, TABLE3, TABLE4
from tapnet.paper.selection import find_targets, select
from tapnet.paper.targets import FIGURES, TARGETS


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
            assert row.settings(dataset) == find_model(row.model).make_settings(dataset, row.changed)


def test_words_that_are_no_target_or_budget_are_refused():
    assert set(find_targets("all")) == {*TARGETS, *FIGURES}
    with pytest.raises(SettingError, match="table1"):
        find_targets("table9")
    with pytest.raises(SettingError, match="quick, standard, paper"):
        find_budget("huge")
    assert BUDGETS["paper"].effort("COLLAB").epochs == 200


def test_a_selection_has_some_data_sets_and_some_rows():
    asked = select("all", datasets=["ptc", "MUTAG"], systems="TAPNet, GIN", protocol="fair", folds=1)
    by_name = {target.name: target for target in asked.tables}
    assert by_name["table2"].datasets == ("PTC", "MUTAG")
    assert [row.label for row in by_name["table2"].rows] == ["GIN", "TAPNet"]
    assert "table1" not in by_name  # it has neither data set
    assert asked.protocols == ("fair",)
    assert asked.effort("PTC").folds_to_run == 1
    (alone,) = select("table1", datasets="PTC").tables  # the paper shows no PTC there
    assert alone.datasets == ("PTC",)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target": "tabel2"}, "did you mean table2"),
        ({"datasets": "IMDB-BINRY"}, "did you mean IMDB-BINARY"),
        ({"systems": ["NOPE"]}, "has no 'nope'"),
        ({"protocol": "fare"}, "did you mean fair"),
        ({"budget": "papr"}, "did you mean paper"),
        ({"folds": 0}, "folds is at least 1"),
        ({"epochs": 0}, "epochs is at least 1"),
    ],
)
def test_mistakes_are_refused_without_a_word_on_the_command_line(changed, message):
    with pytest.raises(SettingError, match=message) as error:
        select(**{"target": "table1", **changed})
    assert "--" not in str(error.value)


def test_a_few_graphs_are_small_ones_from_all_over_the_set():
    whole, few = DataReference("MUTAG", None).load(), DataReference("MUTAG", None, graphs=24).load()
    assert len(few) == 24
    assert few.nodes_per_graph.max() <= whole.nodes_per_graph.median()
    assert set(few.y.tolist()) == set(whole.y.tolist())
    assert len(DataReference("MUTAG", None, graphs=150).load()) == 150
    assert len(DataReference("MUTAG", None, graphs=1000).load()) == len(whole)
