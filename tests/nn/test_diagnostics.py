"""What is said of a pooling layer's work, against SciPy, NetworkX and the definitions."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tapnet.data.batch import GraphBatch
from tapnet.inference.explain import pooling_steps
from tapnet.models.tapnet import TAPNet
from tapnet.nn.pool.base import Pooled
from tapnet.nn.pool.diagnostics import PoolDiagnostics, diagnose, rank_correlation, summarize
from tapnet.nn.pool.mincut import MinCutPool
from tapnet.nn.pool.select import SelectPooling


class ByFeature(SelectPooling):
    def score(self, h, batch):
        return h[:, 0]


def batch_of(*graphs):
    whole = nx.disjoint_union_all(graphs)
    ends = torch.tensor([(u, v) for a, b in whole.edges for u, v in ((a, b), (b, a))]).T.reshape(2, -1)
    graph = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor([len(g) for g in graphs]))
    return GraphBatch.from_edge_index(torch.zeros(len(whole), 1), ends, graph)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 8), min_size=1, max_size=4), st.integers(0, 10**6), st.integers(1, 9))
def test_rank_correlation_is_scipys_in_each_graph(sizes, seed, values):
    random = np.random.default_rng(seed)
    graph = np.repeat(np.arange(len(sizes)), sizes)
    a, b = random.integers(0, values, (2, len(graph))).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = rank_correlation(a, b, graph, len(sizes))
    for g, value in enumerate(found):
        ours, theirs = (x[graph == g] for x in (a, b))
        if np.ptp(ours) == 0 or np.ptp(theirs) == 0:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(spearmanr(ours, theirs).statistic)


def test_what_is_left_of_graphs_that_lose_nodes():
    path, star = nx.path_graph(5), nx.star_graph(3)
    batch = batch_of(path, star)
    scores = torch.tensor([5.0, 1, 4, 0, 3, 0, 3, 2, 1])  # keeps the path's nodes 0, 2, 4 and the star's 1, 2
    found = diagnose(batch, ByFeature(1, 0.5)(scores[:, None], batch))
    assert found["nodes"].tolist() == [3 / 5, 2 / 4]
    assert found["edges"].tolist() == [0, 0]
    assert found["isolated"].tolist() == [1, 1]
    assert found["components"].tolist() == [3, 2]
    assert found["degree_correlation"][1] == pytest.approx(spearmanr([0, 3, 2, 1], [3, 1, 1, 1]).statistic)
    assert np.isnan(found["entropy"]).all()
    everything = diagnose(batch, ByFeature(1, 1.0)(scores[:, None], batch))
    assert everything["edges"].tolist() == everything["components"].tolist() == [1, 1]


def test_collapse_of_clusters():
    batch = batch_of(nx.path_graph(4), nx.path_graph(2))
    pooled = MinCutPool(1, 2).eval()(torch.ones(6, 1), batch)
    hard = torch.tensor([[1.0, 0], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]])
    found = diagnose(batch, pooled._replace(assignment=hard))
    assert found["entropy"].tolist() == pytest.approx([0, 0])
    assert found["empty"].tolist() == [0, 0.5]
    undecided = diagnose(batch, pooled._replace(assignment=torch.full((6, 2), 0.5)))
    assert undecided["entropy"].tolist() == pytest.approx([1, 1])
    assert undecided["empty"].tolist() == [0.5, 0.5]


def test_means_leave_out_what_does_not_apply():
    batch = batch_of(nx.path_graph(4), nx.empty_graph(3))
    whole = summarize([diagnose(batch, Pooled(batch.x, batch))])
    assert (whole.nodes, whole.edges, whole.isolated, whole.entropy) == (1, 1, 0.5, None)  # no edges: no share of them
    mean = PoolDiagnostics.mean([whole, PoolDiagnostics(nodes=0.5, entropy=0.2)])
    assert (mean.nodes, mean.edges, mean.entropy, mean.empty) == (0.75, 1, 0.2, None)
    assert "75 % of the nodes" in str(mean)
    assert "clusters" not in str(mean)
    with pytest.raises(TypeError, match="numbers"):
        PoolDiagnostics(nodes="1")


@pytest.mark.parametrize("pool", ["tap", "mincut", "mem"])
def test_every_layer_of_a_network_is_diagnosed(pool):
    batch = batch_of(nx.path_graph(6), nx.cycle_graph(5), nx.empty_graph(1))
    model = TAPNet(1, 2, 8, ratios=(0.8, 0.5), pool=pool, mean_nodes=4.0).eval()
    layers = [summarize([diagnose(step.before, step.pooled)]) for step in pooling_steps(model, batch)[0]]
    assert len(layers) == 2
    assert all(layer.nodes is not None for layer in layers)
    assert (layers[0].entropy is not None) == (pool in ("mincut", "mem"))
    assert (layers[0].degree_correlation is not None) == (pool == "tap")
