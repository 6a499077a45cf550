"""What networks of several seeds keep in common."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from tapnet.errors import SettingError
from tapnet.inference.explain import explain
from tapnet.inference.stability import selection_stability
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
