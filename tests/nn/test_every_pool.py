"""What every built-in pooling layer does: the same alone and in a batch, small graphs, gradients, and it can learn."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.io.load import load_dataset
from tapnet.models.tapnet import TAPNet
from tapnet.nn.pool.base import PoolSetup
from tapnet.nn.pool.registry import POOLS

D = 8
SETUP = PoolSetup(D, (0.6, 0.5), mean_nodes=6.0)
every_pool = pytest.mark.parametrize("name", POOLS)


def graphs(sizes, seed, density=0.4):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), D, dtype=torch.float64, generator=generator)
    parts = [(torch.rand(n, n, generator=generator) < density).triu(1) for n in sizes]
    edges = torch.block_diag(*(upper | upper.T for upper in parts)).nonzero().T
    return GraphBatch.from_edge_index(x, edges, torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)))


def rows_of_graphs(pooled):
    """The rows that each graph has after pooling."""
    if isinstance(pooled.batch, DenseBatch):
        return list(pooled.x.view(pooled.batch.num_graphs, -1, pooled.x.size(1)))
    return list(pooled.x.split(pooled.batch.nodes_per_graph.tolist()))


def one_graph(batch, g):
    first, last = batch.ptr[g], batch.ptr[g + 1]
    ends = batch.edge_index[:, batch.graph[batch.edge_index[0]] == g] - first
    return GraphBatch.from_edge_index(batch.x[first:last], ends)


@every_pool
@settings(max_examples=8, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), seed=st.integers(0, 10**6))
def test_a_graph_pools_alone_as_in_a_batch(name, sizes, seed):
    batch = graphs(sizes, seed)
    pool = POOLS[name].build(SETUP).double().eval()
    together = rows_of_graphs(pool(batch.x, batch))
    assert len(together) == len(sizes)
    for g, rows in enumerate(together):
        alone = one_graph(batch, g)
        torch.testing.assert_close(rows, pool(alone.x, alone).x)
        assert len(rows) > 0


@every_pool
def test_a_network_answers_alone_as_in_a_batch_of_molecules(name):
    """In single precision and with symmetric graphs, whose nodes are alike but for rounding."""
    mutag = load_dataset("MUTAG")
    torch.manual_seed(2)
    model = TAPNet(7, 2, pool=name, mean_nodes=18.0).eval()
    with torch.no_grad():
        together = model(mutag.batch(torch.arange(len(mutag))))
        for g in (0, 46, 49, 70, 106, 108):
            torch.testing.assert_close(model(mutag.batch(torch.tensor([g])))[0], together[g], rtol=1e-3, atol=1e-4)


@every_pool
def test_graphs_without_edges_and_of_one_node(name):
    batch = graphs((1, 4, 1), seed=0, density=0.0)
    x = batch.x.clone().requires_grad_()
    levels = [POOLS[name].build(SETUP).double()]
    levels.append(POOLS[name].build(PoolSetup(levels[0].out_channels, (0.6, 0.5), 1, mean_nodes=6.0)).double())
    pooled, total = levels[0](x, batch), 0
    for level in (pooled, levels[1](pooled.x, pooled.batch)):
        assert level.x.isfinite().all()
        assert level.batch.num_graphs == 3
        total = total + level.x.square().sum() + (0 if level.loss is None else level.loss)
    total.backward()
    assert x.grad.isfinite().all()


@every_pool
def test_gradients_reach_every_parameter(name):
    batch = graphs((6, 9, 7), seed=1)
    pool = POOLS[name].build(SETUP).double()
    x = batch.x.clone().requires_grad_()
    pooled = pool(x, batch)
    weights = torch.linspace(-1, 1, pooled.x.size(1), dtype=torch.float64)
    ((pooled.x * weights).square().sum() + (0 if pooled.loss is None else pooled.loss)).backward()
    assert x.grad.abs().max() > 0
    for key, parameter in pool.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.abs().max() > 0, key


@every_pool
def test_twenty_graphs_are_learned_by_heart(name):
    torch.manual_seed(0)
    mutag = load_dataset("MUTAG")
    chosen = torch.cat([(mutag.y == c).nonzero()[10:20, 0] for c in (0, 1)])  # of the first ten two are alike
    batch = mutag.batch(chosen)
    mean_nodes = batch.num_nodes / batch.num_graphs
    model = TAPNet(7, 2, 32, ratios=(0.7, 0.6), pool=name, mean_nodes=mean_nodes, dropout=0.0, classifier_dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(300):
        outputs = model.outputs(batch)
        if (outputs.logits.argmax(1) == batch.y).all():
            return
        loss = torch.nn.functional.cross_entropy(outputs.logits, batch.y)
        optimizer.zero_grad()
        (loss if outputs.auxiliary is None else loss + outputs.auxiliary).backward()
        optimizer.step()
    pytest.fail(f"{loss.item():.3f} after 300 steps")
