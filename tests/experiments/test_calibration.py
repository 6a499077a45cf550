"""The out-of-fold predictions of a run, and what they say of its probabilities."""

from dataclasses import replace

import numpy as np
import pytest

import tapnet
from tapnet.errors import SettingError
from tapnet.experiments.calibration import out_of_fold

FEW = {"epochs": 2, "folds": 3, "jobs": 1, "progress": lambda _: None}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("calibration") / "run"
    return tapnet.cross_validate("MUTAG", hidden_channels=8, out=out, **FEW)


def test_every_graph_is_there_once_with_its_fold(result):
    found = out_of_fold(result.results)
    assert len(found.y) == len(found.values) == 188
    assert np.array_equal(found.y, tapnet.load_dataset("MUTAG").y.numpy())
    for r in result.results:
        tested = r.predicted["test"]
        assert (found.folds[tested.graphs] == r.trial.fold).all()
        assert np.array_equal(found.values[tested.graphs], tested.values)


def test_another_seed_and_another_test_of_a_graph_count_for_nothing(result):
    first = result.results[0]
    other = replace(first, trial=replace(first.trial, seed=1))
    again = replace(first, trial=replace(first.trial, fold=2))
    for more in (other, again):
        found = out_of_fold([*result.results, more])
        assert np.array_equal(found.folds, out_of_fold(result.results).folds)


def test_the_run_and_its_folder_say_the_same(result):
    found = tapnet.calibration(result)
    assert found.to_dict() == tapnet.calibration(result.folder).to_dict()
    assert found.record.graphs == 188
    assert found.after["log_loss"] <= found.before["log_loss"]
    assert found.note == ""
    best = replace(result, results=[replace(r, trial=replace(r.trial, protocol="paper")) for r in result.results])
    assert "looks better than it is" in str(tapnet.calibration(best))


def test_where_there_is_nothing_to_calibrate_it_is_said(result):
    bare = replace(result, results=[replace(r, predicted={}) for r in result.results])
    assert out_of_fold(bare.results) is None
    with pytest.raises(SettingError, match="without predictions"):
        tapnet.calibration(bare)
    with pytest.raises(SettingError, match="without probabilities"):
        tapnet.calibration(tapnet.cross_validate("MUTAG", "wl", **{k: FEW[k] for k in ("folds", "jobs", "progress")}))
    data = tapnet.load_dataset("MUTAG")
    sizes = {"y": data.nodes_per_graph.float().unsqueeze(1), "task": "regression", "target_names": ("size",)}
    numbers = replace(data, classes=(), class_names=None, **sizes)
    with pytest.raises(SettingError, match="only probabilities"):
        tapnet.calibration(tapnet.cross_validate(numbers, hidden_channels=8, **FEW))
