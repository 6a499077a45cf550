"""What networks of several seeds keep in common."""

from __future__ import annotations

from copy import deepcopy
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tapnet.data.generate import generate
from tapnet.errors import SettingError
from tapnet.inference.explain import explain
from tapnet.inference.stability import corrected_overlap, selection_recall, selection_stability
from tapnet.io.load import load_dataset
from tapnet.models.tapnet import TAPNet


@pytest.fixture(scope="module")
def few():
    return load_dataset("MUTAG").subset(torch.arange(12))


def test_what_two_networks_keep_in_common_is_counted_by_the_nodes_that_came_in(few):
    models = [TAPNet(7, 2, 16, ratios=(0.7, 0.5), pool="topk").eval() for _ in range(3)]
    found = selection_stability(models, few, batch_size=5)
    expected = []
    for g in range(len(few)):
        kept = []
        for model in models:
            layers = explain(model, few.batch([g])).layers
            kept.append([set(layer.nodes[layer.kept].tolist()) for layer in layers])
        for a, b in ((0, 1), (0, 2), (1, 2)):
            expected.append([len(x & y) / len(x) for x, y in zip(kept[a], kept[b], strict=True)])
    assert found == pytest.approx(torch.tensor(expected).mean(0).tolist())


def test_a_network_agrees_with_itself(few):
    model = TAPNet(7, 2, 16, ratios=(0.7, 0.5))
    assert selection_stability([model, deepcopy(model)], few) == [1, 1]


def test_what_cannot_be_compared(few):
    with pytest.raises(SettingError, match="two"):
        selection_stability([TAPNet(7, 2)], few)
    with pytest.raises(SettingError, match="MinCutPool merges"):
        selection_stability([TAPNet(7, 2, pool="mincut", mean_nodes=18.0)] * 2, few)
    with pytest.raises(SettingError, match="numbers of pooling layers"):
        selection_stability([TAPNet(7, 2, ratios=(0.5,)), TAPNet(7, 2)], few)


# ---- the nodes that carry the signal ----


def test_the_share_of_the_truth_that_is_kept_is_counted_by_graph():
    dataset, truth = generate("colors", graphs=22, nodes=20, seed=1)  # some graphs have no green node
    model = TAPNet(dataset.num_features, 11, 16, ratios=(0.7, 0.5), pool="topk").eval()
    expected, start = [], 0
    for g in range(len(dataset)):
        batch = dataset.batch([g])
        relevant = set(truth[start : start + batch.num_nodes].nonzero()[:, 0].tolist())
        start += batch.num_nodes
        if relevant:
            kept = [set(layer.nodes[layer.kept].tolist()) for layer in explain(model, batch).layers]
            expected.append([(len(k & relevant) / len(relevant), len(k) / batch.num_nodes) for k in kept])
    assert 0 < len(expected) < 22
    found = selection_recall(model, dataset, truth, batch_size=5)
    assert np.array(found) == pytest.approx(np.mean(expected, axis=0))


def test_a_truth_that_does_not_fit(few):
    model = TAPNet(7, 2, 16)
    assert selection_recall(TAPNet(7, 2, 16, pool="none"), few, torch.ones(few.num_nodes)) == []
    with pytest.raises(SettingError, match="a value for each"):
        selection_recall(model, few, torch.ones(3))
    with pytest.raises(SettingError, match="no graph"):
        selection_recall(model, few, torch.zeros(few.num_nodes))


# ---- corrected for chance ----


def selected(nodes, size):
    return np.isin(np.arange(size), list(nodes))


@given(st.integers(2, 12), st.data())
def test_selections_of_one_size_agree_as_they_correlate(size, data):
    count = data.draw(st.integers(1, size - 1))
    nodes = st.sets(st.integers(0, size - 1), min_size=count, max_size=count)
    one, other = (selected(data.draw(nodes), size) for _ in range(2))
    (found,) = corrected_overlap(one, other, np.array([size]))
    assert found == pytest.approx(np.corrcoef(one, other)[0, 1])
    assert corrected_overlap(one, one, np.array([size])).tolist() == [1]


@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 3), (4, 2), (1, 5)])
def test_selections_by_chance_agree_by_nothing_on_average(a, b):
    size, kept = 6, selected(range(a), 6)
    every = [corrected_overlap(kept, selected(nodes, size), np.array([size])) for nodes in combinations(range(size), b)]
    assert np.mean(every) == pytest.approx(0, abs=1e-12)
    assert np.max(every) == 1  # as much in common as there can be


def test_each_graph_counts_by_itself_and_one_without_a_choice_not_at_all():
    one = np.array([True, False, True, True, False, True, False])
    other = np.array([True, False, True, True, False, False, True])
    found = corrected_overlap(one, other, np.array([2, 2, 1, 2]))
    np.testing.assert_array_equal(found, [1, np.nan, np.nan, -1])
