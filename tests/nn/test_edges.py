"""What edges carry: weights in every formula, categories and numbers in the convolutions that read them."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tapnet import GraphBatch, TAPNet, TAPooling, load_dataset
from tapnet.data.convert import assemble
from tapnet.data.features import MixedFeatures
from tapnet.errors import SettingError
from tapnet.nn.conv.gcn import GraphConv
from tapnet.nn.conv.gin import GINConv
from tapnet.nn.conv.pyg import PyGConv
from tapnet.nn.conv.registry import CONVS, find_conv
from tapnet.nn.pool.topk import TopKPool
from tapnet.ops.csr import propagate
from tapnet.ops.edges import sum_of_messages
from tapnet.ops.features import product
from tests.helpers import dense


def weighted(n=9, d=4, seed=0, channels=0):
    """One graph with symmetric weights, and its dense matrix."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.rand(n, n, generator=generator, dtype=torch.float64) * (torch.rand(n, n, generator=generator) < 0.4)
    a = torch.triu(a, 1)
    a = a + a.T
    edge_index = a.nonzero().T
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    batch = GraphBatch.from_edge_index(x, edge_index)
    kinds = torch.randint(0, 3, (edge_index.size(1),), generator=generator)
    return x, replace(batch, weight=a[edge_index[0], edge_index[1]], edge_attr=kinds), a


@pytest.mark.parametrize("norm", ["neighbour", "symmetric", "mean", "sum"])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_the_entries_of_the_adjacency_matrix(norm, seed):
    x, batch, a = weighted(seed=seed)
    torch.testing.assert_close(propagate(x, batch, norm), dense.propagate(x, a, norm))
    conv = GraphConv(4, 6, norm).double()
    expected = torch.nn.functional.leaky_relu(dense.propagate(x, a, norm) @ conv.weight + conv.bias)
    torch.testing.assert_close(conv(x, batch), expected)


@pytest.mark.parametrize("similarity", ["bilinear", "dot", "gaussian", "concat"])
def test_the_votes_of_tap_are_the_dense_formulas_with_weights(similarity):
    for seed in range(4):
        x, batch, a = weighted(seed=seed)
        pool = TAPooling(4, similarity=similarity).double()
        for found, expected in zip(pool.votes(x, batch), dense.votes(pool, x, a), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("pool", [TAPooling(4, 0.5), TopKPool(4, 0.5)])
def test_pooling_keeps_what_the_edges_carry(pool):
    x, batch, a = weighted()
    _, coarse, perm, *_ = pool.double()(x, batch)
    smaller = a[perm][:, perm]
    row, col = coarse.edge_index
    torch.testing.assert_close(coarse.weight, smaller[row, col])
    kinds = torch.zeros_like(a, dtype=torch.int64)
    kinds[batch.edge_index[0], batch.edge_index[1]] = batch.edge_attr
    assert torch.equal(coarse.edge_attr, kinds[perm][:, perm][row, col])


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 3))
def test_mixed_features_are_one_hot_rows_and_numbers(seed, columns, numbers):
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 4, (columns,), generator=generator).tolist()
    table = torch.stack([torch.randint(-1, s, (5,), generator=generator) for s in sizes], dim=1)
    first = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    table = torch.where(table < 0, table, table + first)
    row = torch.randint(0, 5, (11,), generator=generator)
    floats = torch.randn(11, numbers, generator=generator) if numbers else None
    weight = torch.randn(sum(sizes) + numbers, 6, generator=generator)
    one_hot = torch.zeros(11, sum(sizes))
    for node in range(11):
        for category in table[row[node]].tolist():
            if category >= 0:
                one_hot[node, category] += 1
    wide = one_hot if floats is None else torch.cat([one_hot, floats], dim=1)
    torch.testing.assert_close(product(MixedFeatures(row, table, floats), weight), wide @ weight)


def messages(h, weight, bias, batch):
    """Σⱼ Aᵢⱼ ReLU(hⱼ + eᵢⱼ), edge by edge."""
    out = torch.zeros_like(h)
    for e, (i, j) in enumerate(batch.edge_index.T.tolist()):
        out[i] += batch.weight[e] * torch.relu(h[j] + weight[batch.edge_attr[e]] + bias)
    return out


def test_the_compiled_messages_and_their_gradients_are_the_formula():
    x, batch, _ = weighted(seed=3)
    weight, bias = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.randn(4, dtype=torch.float64)
    x.requires_grad_()
    found, expected = sum_of_messages(x, weight, bias, batch), messages(x, weight, bias, batch)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    of_found = torch.autograd.grad(found, (x, weight), upstream)
    torch.testing.assert_close(of_found, torch.autograd.grad(expected, (x, weight), upstream))


def test_gine_is_pyg_s():
    from torch_geometric.nn import GINEConv

    x, batch, _ = weighted(seed=5)
    batch = replace(batch, weight=None)
    ours = GINConv(4, 4, edge_channels=3).double().eval()
    edges = torch.nn.functional.one_hot(batch.edge_attr, 3).double() @ ours.edge.weight + ours.edge.bias
    theirs = GINEConv(torch.nn.Identity(), edge_dim=None)(x, batch.edge_index.flip(0), edges)
    found = x + sum_of_messages(x, ours.edge.weight, ours.edge.bias, batch)
    torch.testing.assert_close(found, theirs)


def test_a_convolution_of_pyg_gets_edges_and_weights():
    from torch_geometric.nn import GATConv, GCNConv

    x, batch, _ = weighted(seed=6)
    assert PyGConv(GATConv, 4, 8, edge_channels=3).double()(x, batch).shape == (9, 8)
    conv = PyGConv(GCNConv, 4, 8).double()
    expected = conv.conv(x, batch.edge_index, batch.weight)
    torch.testing.assert_close(conv(x, batch), torch.nn.functional.leaky_relu(expected))
    assert find_conv(GCNConv) == "torch_geometric.nn.conv.gcn_conv:GCNConv"
    with pytest.raises(SettingError, match="conv is one of"):
        find_conv(["gcn"])


@pytest.mark.parametrize("conv", [*CONVS, "torch_geometric.nn:GraphConv"])
def test_a_tapnet_with_any_convolution_learns_from_categories_and_edges(conv):
    _, batch, _ = weighted()
    batch = replace(batch, x=torch.arange(9) % 3, weight=None)
    model = TAPNet(3, 2, 8, conv=conv, edge_channels=3)
    loss = model.train()(batch).sum()
    loss.backward()
    assert all(p.grad is not None for p in model.embedding.parameters())


# ---- as PyG's tensors ----


def columns(seed, *, symmetric, repeat=True):
    """Two graphs in PyG's tensors, their nodes and columns in any order, with loops and repeated columns; and A."""
    generator = torch.Generator().manual_seed(seed)
    matrices = []
    for n in (7, 5):
        a = 0.1 + torch.rand(n, n, generator=generator, dtype=torch.float64)
        a = (a * (torch.rand(n, n, generator=generator) < 0.5)).fill_diagonal_(0)
        matrices.append(torch.triu(a) + torch.triu(a).T if symmetric else a)
    a, order = torch.block_diag(*matrices), torch.randperm(12, generator=generator)
    a, batch = a[order][:, order], torch.tensor([0] * 7 + [1] * 5)[order]
    edge_index = a.nonzero().T
    edge_weight = a[edge_index[0], edge_index[1]]
    if repeat:  # the mean of w - 0.05 and w + 0.05, and a loop
        loop = torch.tensor([[3], [3]])
        edge_index = torch.cat([edge_index, edge_index[:, :4], loop], dim=1)
        edge_weight = torch.cat([edge_weight, edge_weight[:4] + 0.05, torch.tensor([9.0], dtype=torch.float64)])
        edge_weight[:4] -= 0.05
    mixed = torch.randperm(edge_index.size(1), generator=generator)
    x = torch.randn(12, 4, generator=generator, dtype=torch.float64)
    return x, edge_index[:, mixed], batch, edge_weight[mixed], a


few = pytest.mark.parametrize(("seed", "symmetric"), [(seed, seed % 2 == 0) for seed in range(6)])


@few
@pytest.mark.parametrize("similarity", ["bilinear", "dot", "gaussian", "concat"])
def test_edge_weight_is_in_the_votes_and_the_pooling_as_in_the_dense_formulas(similarity, seed, symmetric):
    x, edge_index, batch, edge_weight, a = columns(seed, symmetric=symmetric)
    x.requires_grad_()
    pool = TAPooling(4, 0.5, similarity=similarity).double()
    found = pool.votes(x, edge_index, batch, edge_weight=edge_weight)
    score = torch.zeros_like(x[:, 0])
    for graph in (0, 1):
        nodes = (batch == graph).nonzero().flatten()
        expected = dense.votes(pool, x[nodes], a[nodes][:, nodes])
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours[nodes], theirs)
        score = score.index_add(0, nodes, expected[3])
    upstream = torch.randn_like(score)
    inputs = (x, *pool.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(found.score, inputs, upstream), torch.autograd.grad(score, inputs, upstream)
    )
    _, kept, weights, _, perm, kept_score = pool(x, edge_index, edge_weight, batch, edge_weight=edge_weight)
    torch.testing.assert_close(kept_score, score[perm])
    stay = torch.isin(edge_index, perm).all(dim=0)
    assert torch.equal(weights, edge_weight[stay])
    assert torch.equal(perm[kept], edge_index[:, stay])


@few
def test_a_batch_of_pyg_s_tensors_has_the_weights_in_both_directions_of_the_product(seed, symmetric):
    x, edge_index, batch, edge_weight, a = columns(seed, symmetric=symmetric)
    order = torch.argsort(batch, stable=True)
    a, h = a[order][:, order], x[order].requires_grad_()
    graphs = GraphBatch.from_edge_index(x, edge_index, batch, edge_weight)
    found = propagate(h, graphs, "sum")
    torch.testing.assert_close(found, h + a @ h)
    upstream = torch.randn_like(found)
    (gradient,) = torch.autograd.grad(found, h, upstream)
    torch.testing.assert_close(gradient, upstream + a.T @ upstream)


def test_weights_of_one_are_no_weights_and_none_is_as_before():
    x, edge_index, batch, edge_weight, _ = columns(0, symmetric=True)
    pool, model = TAPooling(4).double(), TAPNet(4, 2, 8).double().eval()
    ones = torch.ones_like(edge_weight)
    torch.testing.assert_close(pool.votes(x, edge_index, batch, edge_weight=ones), pool.votes(x, edge_index, batch))
    torch.testing.assert_close(model(x, edge_index, batch, edge_weight=ones), model(x, edge_index, batch))
    assert GraphBatch.from_edge_index(x, edge_index, batch).weight is None


def test_a_network_takes_weights_and_attributes_of_pyg_s_tensors_as_those_of_a_data_set():
    x, edge_index, batch, edge_weight, _ = columns(2, symmetric=True, repeat=False)
    order = torch.argsort(batch, stable=True)
    place = torch.argsort(order)
    kinds = (edge_index.sum(0) + edge_index.prod(0)) % 3  # the same in both directions
    data = assemble(
        name="WEIGHTED",
        nodes_per_graph=torch.tensor([7, 5]).numpy(),
        edge_index=place[edge_index].numpy(),
        y=torch.tensor([0, 1]).numpy(),
        node_attributes=x[order].float().numpy(),
        edge_labels=kinds.numpy(),
        edge_weight=edge_weight.numpy(),
    )
    data = data.with_features("attributes").with_edge_features()
    x, edge_weight = x.float(), edge_weight.float()
    for conv in ("gcn", "gine", "gat", "torch_geometric.nn:GraphConv"):
        model = TAPNet(4, 2, 8, conv=conv, edge_channels=3).eval()
        expected = model(data.batch([0, 1]))
        torch.testing.assert_close(model(x, edge_index, batch, edge_weight, kinds), expected)
        one_hot = torch.nn.functional.one_hot(kinds, 3).float()
        torch.testing.assert_close(model(x, edge_index, batch, edge_weight=edge_weight, edge_attr=one_hot), expected)
        assert not torch.allclose(model(x, edge_index, batch, edge_attr=kinds), expected)


def test_what_does_not_fit_the_edges_is_refused():
    x, edge_index, batch, edge_weight, _ = columns(1, symmetric=True)
    graphs = GraphBatch.from_edge_index(x, edge_index, batch)
    pool, model = TAPooling(4).double(), TAPNet(4, 2, conv="gine", edge_channels=3).double()
    infinite = edge_weight.clone()
    infinite[2] = torch.inf
    for wrong in (edge_weight[1:], edge_weight.unsqueeze(1), infinite, edge_weight.clone().requires_grad_()):
        with pytest.raises(ValueError, match="edge_weight"):
            pool(x, edge_index, None, batch, edge_weight=wrong)
    with pytest.raises(TypeError, match="GraphBatch"):
        pool.votes(x, graphs, edge_weight=edge_weight)
    with pytest.raises(TypeError, match="GraphBatch"):
        pool(x, graphs, edge_weight=edge_weight)
    with pytest.raises(TypeError, match="GraphBatch"):
        model(graphs, edge_weight=edge_weight)
    kinds = torch.zeros(edge_index.size(1), dtype=torch.int64)
    for wrong in (kinds + 3, kinds - 1, kinds.unsqueeze(1), kinds.double(), kinds[1:]):
        with pytest.raises(ValueError, match="edge_attr"):
            model(x, edge_index, batch, edge_attr=wrong)


def test_a_network_that_reads_edges_says_how_to_give_them():
    data = load_dataset("MUTAG")
    model = TAPNet(7, 2, conv="gine", edge_channels=4)
    with pytest.raises(SettingError, match="with_edge_features.*edge_attr"):
        model(data.batch([0, 1]))
    assert model(data.with_edge_features().batch([0, 1])).shape == (2, 2)
    with pytest.raises(ValueError, match="with_edge_features"):
        TAPNet(7, 2, edge_votes=True, edge_channels=4)(data.batch([0, 1]))
