"""The graph convolution, its products, readouts and dropout against dense formulas."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet import TAPooling
from tapnet.data.batch import GraphBatch
from tapnet.nn.conv import GraphConv
from tapnet.ops.csr import propagate
from tapnet.ops.dropout import Mask, dropout
from tapnet.ops.readout import readout
from tests.helpers import dense
from tests.helpers.batches import batches, graphs_of

NORMS = ("neighbour", "symmetric", "mean", "sum")


@given(batches, st.sampled_from(NORMS))
def test_products_and_their_gradients_equal_the_dense_ones(graphs, norm):
    x, edge_index, batch = graphs
    x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours = GraphBatch.from_edge_index(x, edge_index, batch)
    ours = propagate(x1, ours, norm)
    theirs = torch.zeros_like(x)
    for nodes, h, a in graphs_of(x2, edge_index, batch):
        theirs = theirs.index_put((nodes,), dense.propagate(h, a, norm))
    weights = torch.rand(ours.shape, dtype=torch.float64)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(x1.grad, x2.grad)


@given(batches)
@settings(max_examples=30)
def test_readouts_and_their_gradients_equal_the_plain_ones(graphs):
    x, edge_index, batch = graphs
    x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours = readout(x1, GraphBatch.from_edge_index(x, edge_index, batch))
    theirs = torch.stack([torch.cat([h.amax(0), h.mean(0), h.sum(0)]) for _, h, _ in graphs_of(x2, edge_index, batch)])
    weights = torch.rand(ours.shape, dtype=torch.float64)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(x1.grad, x2.grad)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("out_channels", [3, 8])
def test_categories_are_their_one_hot_encoding(norm, out_channels):
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    categories = torch.tensor([4, 0, 4, 2])
    conv = GraphConv(5, out_channels, norm).double()
    torch.nn.init.normal_(conv.bias)
    batch = GraphBatch.from_edge_index(categories, edge_index)
    one_hot = torch.nn.functional.one_hot(categories, 5).double()
    torch.testing.assert_close(conv(categories, batch), conv(one_hot, batch))
    a = dense.adjacency(4, edge_index)
    expected = torch.nn.functional.leaky_relu(dense.propagate(one_hot, a, norm) @ conv.weight + conv.bias, 0.01)
    torch.testing.assert_close(conv(categories, batch), expected)


@given(batches, st.sampled_from(NORMS), st.sampled_from([2, 5, 9]))
@settings(max_examples=30)
def test_the_convolutions_gradients_equal_those_of_the_dense_formula(graphs, norm, out_channels):
    x, edge_index, batch = graphs
    torch.manual_seed(0)
    conv = GraphConv(5, out_channels, norm).double()
    torch.nn.init.normal_(conv.bias)
    oracle = copy.deepcopy(conv)
    x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours = conv(x1, GraphBatch.from_edge_index(x, edge_index, batch))
    theirs = torch.zeros_like(ours)
    for nodes, h, a in graphs_of(x2, edge_index, batch):
        rows = torch.nn.functional.leaky_relu(dense.propagate(h, a, norm) @ oracle.weight + oracle.bias, 0.01)
        theirs = theirs.index_put((nodes,), rows)
    weights = torch.rand(ours.shape, dtype=torch.float64)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(x1.grad, x2.grad)
    torch.testing.assert_close(conv.weight.grad, oracle.weight.grad)
    torch.testing.assert_close(conv.bias.grad, oracle.bias.grad)


def test_dropout_on_categories_drops_whole_rows():
    torch.manual_seed(0)
    conv = GraphConv(3, 4, "sum", dropout=0.5)
    categories = torch.randint(3, (2000,))
    rows = conv(categories, GraphBatch.from_edge_index(categories, torch.zeros(2, 0, dtype=torch.long)))
    dropped = (rows == 0).all(1)
    assert 0.45 < dropped.float().mean() < 0.55
    doubled = torch.nn.functional.leaky_relu(2 * conv.weight[categories], 0.01)
    torch.testing.assert_close(rows[~dropped], doubled[~dropped])


@pytest.mark.parametrize("p", [0.2, 0.3, 0.5])
def test_dropout_keeps_the_right_share_and_the_mean(p):
    torch.manual_seed(0)
    mask = Mask.draw(p).on(torch.ones(1000, 501))
    assert abs((mask == 0).float().mean() - p) < 0.003
    assert abs(mask.mean() - 1) < 0.005
    assert len(mask.unique()) == 2
    x = torch.randn(50, 7, dtype=torch.float64, requires_grad=True)
    out = dropout(x, p, training=True)
    out.sum().backward()
    torch.testing.assert_close(out, x * x.grad)
    assert dropout(x, p, training=False) is x


@pytest.mark.parametrize("width", [1, 5, 48, 367])
def test_dropout_bits_are_independent_of_their_neighbours_and_of_other_masks(width):
    torch.manual_seed(0)
    kept = [(Mask.draw(0.5).on(torch.ones(2000, width)) > 0).float() for _ in range(2)]
    pairs = [(kept[0][1:], kept[0][:-1]), (kept[0], kept[1])]
    if width > 1:
        pairs.append((kept[0][:, 1:], kept[0][:, :-1]))
    for a, b in pairs:
        assert abs(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]) < 4.5 / a.numel() ** 0.5
    columns, rows = kept[0].mean(0), kept[0].mean(1)
    assert (columns - 0.5).abs().max() < 5 * 0.5 / 2000**0.5
    assert (rows - 0.5).abs().max() < 5.5 * 0.5 / width**0.5


def test_a_mask_draws_the_same_again_on_any_path(monkeypatch):
    mask, h = Mask.draw(0.3), torch.randn(40, 7)
    assert torch.equal(mask.on(h), mask.on(h))
    assert torch.equal(mask.on(h.T.contiguous().T), mask.on(h))
    monkeypatch.setattr("tapnet._loops.jit.is_compiled", lambda *_: False)
    assert torch.equal(mask.on(h), mask.on(h))
    assert torch.equal(mask.on(h.T.contiguous().T), mask.on(h))
    assert 0.5 < (mask.on(torch.ones(9, 99)) > 0).float().mean() < 0.9


def test_dropout_follows_torchs_seed():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(Mask.draw(0.5).on(torch.ones(9, 5)))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("norm", NORMS)
def test_going_back_inside_autocast_meets_the_same_dropout(norm):
    x, edge_index = torch.randn(40, 8), torch.randint(0, 40, (2, 80))
    graphs, weights = GraphBatch.from_edge_index(x, edge_index), torch.randn(40, 8)
    conv, pool = GraphConv(8, 8, norm, dropout=0.5), TAPooling(8, dropout=0.5)
    grads = []
    for inside in (False, True):
        torch.manual_seed(0)
        h = x.clone().requires_grad_()
        conv.zero_grad()
        pool.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = (conv(h, graphs) * weights).sum() + pool(h, graphs).x.sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        grads.append([h.grad, *(p.grad.clone() for p in (*conv.parameters(), *pool.parameters()))])
    for outside, inside in zip(*grads, strict=True):
        torch.testing.assert_close(inside, outside)
