"""g-U-Net with other pooling layers and weighted unpooling, against its dense formula."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet import TAPooling, load_dataset, unpool
from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.experiments.cross_validate import run_name
from tapnet.experiments.trial import Trial
from tapnet.models.base import DataShape
from tapnet.models.gunet import GUNet, GUNetSettings
from tapnet.models.registry import find_model
from tapnet.nn.pool.select import score_weights
from tapnet.nn.pool.topk import TopKPool
from tests.helpers import dense
from tests.helpers.batches import batches, graphs_of

SMALL = {"hidden_channels": 6, "ratios": (0.7, 0.5), "classifier_channels": 5}


def dense_weights(score, kept):
    return score[kept] / score[kept].abs().mean()


def dense_logits(model, h, a):
    """One graph: Sᵀ, [n, k], puts rows back; with weights it has sᵢ / mean |s| where else it has ones."""

    def conv(layer, h, a):
        rows = dense.propagate(h @ layer.weight, a, "neighbour") + layer.bias
        return torch.nn.functional.leaky_relu(rows, layer.negative_slope)

    def read(h):
        return torch.cat([h.amax(0), h.mean(0), h.sum(0)])

    origin = h = conv(model.embedding, h, a)
    passed = []
    for layer, pool in zip(model.down, model.pools, strict=True):
        h = conv(layer, h, a)
        score = dense.votes(pool, h, a)[3]
        kept = dense.top(score, -(-len(h) * round(10 * pool.ratio) // 10))
        back = torch.eye(len(h), dtype=h.dtype)[:, kept]
        if model.settings.weighted_unpooling:
            back = back * dense_weights(score, kept)
        passed.append((h, a, back))
        h, a = h[kept], a[kept][:, kept]
    h, readouts = conv(model.bottom, h, a), []
    for layer, (skipped, a, back) in zip(model.up, reversed(passed), strict=True):
        h = conv(layer, back @ h, a) + skipped
        readouts.append(read(h))
    return model.classifier(torch.cat([*readouts, read(h + origin)])[None])[0]


@given(batches, st.booleans(), st.integers(0, 100))
@settings(max_examples=30)
def test_with_tap_it_equals_the_dense_formula(graphs, weighted, seed):
    x, edge_index, batch = graphs
    torch.manual_seed(seed)
    chosen = GUNetSettings(pool="tap", weighted_unpooling=weighted, **SMALL)
    model = GUNet(DataShape(x.size(1), 3), chosen).double().eval()
    assert all(isinstance(pool, TAPooling) for pool in model.pools)
    found = model(x, edge_index, batch)
    for nodes, h, a in graphs_of(x, edge_index, batch):
        torch.testing.assert_close(found[batch[nodes[0]]], dense_logits(model, h, a))


@pytest.mark.parametrize("pool", ["topk", "tap", "sag", "random-fixed"])
def test_weights_pass_a_gradient_to_the_scores(pool):
    mutag = load_dataset("MUTAG")
    chosen = GUNetSettings(pool=pool, weighted_unpooling=True, **SMALL)
    model, batch = GUNet(DataShape.of(mutag), chosen), mutag.batch(range(20))
    torch.nn.functional.cross_entropy(model(batch), batch.y).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.pools.parameters())


def test_what_was_not_asked_for_changes_nothing():
    mutag, spec = load_dataset("MUTAG"), find_model("gunet")
    model = spec.network(DataShape.of(mutag), spec.settings())
    assert all(isinstance(pool, TopKPool) for pool in model.pools)
    assert not {"pool", "weighted_unpooling"} & spec.settings().to_dict().keys()  # names of trials stay as they were
    names = [
        run_name(Trial("MUTAG", "", "gunet", spec.settings(**chosen), "fair", 0)) for chosen in ({}, {"pool": "tap"})
    ]
    assert [name.rpartition("-")[0] for name in names] == ["MUTAG-gunet-fair", "MUTAG-gunet-tap-fair"]


def test_a_layer_that_keeps_no_nodes_has_none_to_put_back():
    for pool in ("mincut", "graclus", "none", "ndp"):
        with pytest.raises(SettingError, match=pool):
            GUNetSettings(pool=pool)


# ---- the weights ----


@given(batches, st.integers(0, 100))
@settings(max_examples=30)
def test_rows_are_put_back_times_their_score_over_the_mean(graphs, seed):
    x, edge_index, batch = graphs
    torch.manual_seed(seed)
    x = x + 0.1
    graphs = GraphBatch.from_edge_index(x, edge_index, batch)
    pooled = TAPooling(x.size(1), 0.5).double()(x, graphs)
    weight = score_weights(pooled.scores_with_gradient[pooled.perm], pooled.batch.graph)
    back = unpool(pooled.x, pooled.perm, len(x), weight)
    for nodes, _, _ in graphs_of(x, edge_index, batch):
        kept = [i for i in nodes.tolist() if i in pooled.perm.tolist()]
        expected = torch.zeros_like(x)
        expected[kept] = dense_weights(pooled.scores, kept)[:, None] * x[kept]
        torch.testing.assert_close(back[nodes], expected[nodes])
    assert torch.equal(pooled.scores, pooled.scores_with_gradient)


def test_scores_of_zero_weigh_nothing():
    assert score_weights(torch.zeros(3)).tolist() == [0, 0, 0]
    assert score_weights(torch.tensor([3.0, -1.0])).tolist() == [1.5, -0.5]
    assert len(score_weights(torch.zeros(0))) == 0


def test_weights_of_what_the_layer_returns_as_pygs_do():
    x, edge_index = torch.randn(5, 4), torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    rows, *_, batch, perm, score = TAPooling(4, 0.5)(x, edge_index, None, torch.tensor([0, 0, 0, 1, 1]))
    weight = score_weights(score, batch)
    assert [float(weight[batch == g].mean().detach()) for g in (0, 1)] == pytest.approx([1, 1])
    assert torch.equal(unpool(rows, perm, 5, weight)[perm], weight[:, None] * rows)
