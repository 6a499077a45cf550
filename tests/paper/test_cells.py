"""From stored trials to cells: which folds count, and what a system is compared with."""

from dataclasses import replace

import pytest

from tapnet.experiments.statistics import corrected_t_test
from tapnet.experiments.store import Store
from tapnet.paper.targets import TAPNET, TARGETS

EASY, HARD = [90.0 + i % 3 for i in range(10)], [70.0 + i % 4 for i in range(10)]
TOPK = next(row for row in TARGETS["table3"].rows if row.label == "Net_top-k")


def topk_cell(cells_of, store):
    cells = cells_of(TARGETS["table3"], ["MUTAG"], ["paper"], store.results())
    return next(cell for cell in cells if cell.row.label == "Net_top-k")


def test_a_system_is_tested_against_tapnet_after_as_many_epochs(mutag, store_results, tmp_path, cells_of):
    store = Store(tmp_path)
    store_results(store, mutag, TOPK, 20, HARD)
    store_results(store, mutag, TAPNET, 200, EASY)
    assert topk_cell(cells_of, store).against_tapnet is None  # none of 20 epochs, though the means are far apart
    store_results(store, mutag, TAPNET, 20, HARD[::-1])
    expected = corrected_t_test(dict(enumerate(HARD)), dict(enumerate(HARD[::-1])), 1 / 9)
    assert topk_cell(cells_of, store).against_tapnet == pytest.approx(expected)


def test_folds_of_several_devices_do_not_count_twice(mutag, store_results, tmp_path, cells_of):
    store = Store(tmp_path)
    store_results(store, mutag, TOPK, 20, EASY)
    store_results(store, mutag, TOPK, 20, HARD[:1] + EASY[1:], devices=2)
    assert topk_cell(cells_of, store).folds_and_epochs == "10 × 20"
    assert [r.trial.fold for r in topk_cell(cells_of, store).results] == list(range(10))


def test_all_folds_count_for_more_than_a_few_with_more_epochs(mutag, store_results, tmp_path, cells_of):
    """Two folds of a longer run, merged while it goes on, do not take the place of ten."""
    store = Store(tmp_path)
    store_results(store, mutag, TOPK, 20, EASY)
    store_results(store, mutag, TOPK, 200, HARD[:2], folds_to_run=2)
    assert topk_cell(cells_of, store).folds_and_epochs == "10 × 20"
    store_results(store, mutag, TOPK, 200, HARD)
    assert topk_cell(cells_of, store).folds_and_epochs == "10 × 200"
    store_results(store, mutag, TOPK, 400, EASY)
    assert topk_cell(cells_of, store).folds_and_epochs == "10 × 200"  # the paper's own number of epochs
    asked = cells_of(TARGETS["table3"], ["MUTAG"], ["paper"], store.results(), epochs=20, folds=3)[0]
    assert asked.folds_and_epochs == ""
    target = replace(TARGETS["table3"], rows=(TOPK,))
    (asked,) = cells_of(target, ["MUTAG"], ["paper"], store.results(), epochs=20, folds=3)
    assert asked.folds_and_epochs == "3 of 10 × 20"
