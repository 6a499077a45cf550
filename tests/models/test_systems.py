"""What every system must do: learn, treat a graph alone as in a batch, and be built by its name."""

from __future__ import annotations

import copy

import pytest
import torch
from torch_geometric.nn import GINConv, SortAggregation

from tapnet import TAPNet, load_dataset
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.models.base import ELEMENTS_AT_ONCE, DataShape, micro_batches_within
from tapnet.models.registry import MODELS, MUTAG, describe, find_model
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import make_optimizer, train_steps

NETWORKS = [name for name, spec in MODELS.items() if spec.build is not None]
POOLS = ["topk", "sort", "diff", "sag", "eigen", "haar", "none"]
SYSTEMS = [(name, {}) for name in NETWORKS] + [("tapnet", {"pool": pool}) for pool in POOLS]
SYSTEMS += [("gunet", {"pool": "tap", "weighted_unpooling": True})]


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def few(mutag):
    """Twenty graphs, ten of a class."""
    first, second = ((mutag.y == c).nonzero()[:10, 0] for c in (0, 1))
    return mutag.subset(torch.cat([first, second]))


def built(name, changes, dataset):
    spec = find_model(name)
    settings = spec.make_settings(dataset.name, changes)
    torch.manual_seed(0)
    return spec.build(DataShape.of(dataset), settings), spec.prepare(dataset, settings)


@pytest.mark.parametrize(("name", "changes"), SYSTEMS)
def test_it_overfits_twenty_graphs(name, changes, few):
    calm = {n: 0.0 for n in ("dropout", "classifier_dropout") if n in find_model(name).settings.names()}
    model, data = built(name, {**changes, **calm}, few)
    optimizer = make_optimizer(model, TrainingSettings(lr=0.005, weight_decay=0.0))
    everything = torch.arange(len(data))
    for _ in range(400):
        train_steps(model, optimizer, data, [everything])
        model.eval()
        with torch.no_grad():
            if (model(data.batch(everything)).argmax(1) == data.y).all():
                return
    pytest.fail("it does not learn twenty graphs by heart")


@pytest.mark.parametrize(("name", "changes"), SYSTEMS)
def test_a_graph_alone_and_in_a_batch_has_the_same_logits(name, changes, few):
    model, data = built(name, changes, few)
    train_steps(model, make_optimizer(model, TrainingSettings()), data, [torch.arange(20)])  # moves the batch norms
    model.double().eval()
    with torch.no_grad():
        together = model(data.batch(range(20)))
        for i in (0, 7, 19):
            torch.testing.assert_close(model(data.batch([i]))[0], together[i], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "changes"), SYSTEMS)
def test_it_is_called_as_pygs_models_too(name, changes, few):
    model, data = built(name, changes, few)
    model.eval()
    batch = data.batch(range(20))
    with torch.no_grad():
        torch.testing.assert_close(model(batch.x, batch.edge_index, batch.graph), model(batch), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "changes"), SYSTEMS)
def test_it_takes_floats_and_graphs_of_one_node(name, changes, few):
    one = GraphDataset.from_networkx([_lonely(), *(few.to_networkx(i) for i in range(3))], [0, 1, 0, 1])
    data = one.subset(range(4))
    model, data = built(name, changes, data)
    model.eval()
    with torch.no_grad():
        assert torch.isfinite(model(data.batch(range(4)))).all()
    shape = DataShape(3, 2, False, 17.9, MUTAG.node_deciles)
    spec = find_model(name)
    model = spec.build(shape, spec.make_settings("MUTAG", changes)).eval()
    batch = few.batch(range(4))
    assert torch.isfinite(model(torch.randn(batch.num_nodes, 3), batch.edge_index, batch.graph)).all()


def _lonely():
    import networkx as nx

    graph = nx.Graph()
    graph.add_node(0, label=0)
    return graph


@pytest.mark.parametrize("name", MODELS)
def test_it_describes_itself(name):
    about = describe(MODELS[name])
    assert about["name"] == name
    assert 2009 <= about["year"] <= 2021
    assert about["paper"]
    assert about["about"]
    assert about["parameters_on_mutag"] is None or about["parameters_on_mutag"] > 1000
    with pytest.raises(SettingError, match="no setting 'depht'"):
        MODELS[name].make_settings("MUTAG", {"depht": 3})


def test_the_shape_that_parameters_are_counted_on_is_mutags(mutag):
    assert DataShape.of(mutag) == MUTAG


def test_large_graphs_go_in_groups_and_none_is_lost():
    sizes = torch.tensor([10, 4000, 3000, 20, 3900, 30])
    graphs = torch.arange(100, 106)
    groups = micro_batches_within(graphs, sizes, lambda n: n * n)
    assert sorted(torch.cat(groups).tolist()) == graphs.tolist()
    assert len(groups) > 1
    for group in groups:
        n = int(sizes[group - 100].max())
        assert len(group) == 1 or len(group) * n * n <= ELEMENTS_AT_ONCE
    assert micro_batches_within(graphs, sizes, lambda n: n) == [graphs]


def test_a_step_in_groups_has_the_gradient_of_the_whole(few, monkeypatch):
    model, data = built("tapnet", {"pool": "diff", "dropout": 0.0, "classifier_dropout": 0.0}, few)
    model.double()
    gradients = []
    for limit in (ELEMENTS_AT_ONCE, 1):
        monkeypatch.setattr("tapnet.models.base.ELEMENTS_AT_ONCE", limit)
        copied = copy.deepcopy(model)
        assert (len(copied.micro_batches(torch.arange(20), data.nodes_per_graph)) == 1) == (limit > 1)
        # the auxiliary losses are means over graphs and nodes of a group: left out
        copied.outputs = lambda batch, copied=copied: TAPNet.outputs(copied, batch)._replace(auxiliary=None)
        train_steps(copied, torch.optim.SGD(copied.parameters(), lr=0.0), data, [torch.arange(20)])
        gradients.append([p.grad for p in copied.parameters()])
    for whole, grouped in zip(*gradients, strict=True):
        assert (whole is None) == (grouped is None)
        if whole is not None:
            torch.testing.assert_close(whole, grouped)


# ---- GIN ----


def _gin(**changes):
    spec = find_model("gin")
    torch.manual_seed(0)
    return spec.build(DataShape(1, 2), spec.make_settings("MUTAG", changes)).double().eval()


def _graph(edges):
    undirected = torch.tensor([(a, b) for a, b in edges] + [(b, a) for a, b in edges]).T
    n = int(undirected.max()) + 1
    return torch.zeros(n, dtype=torch.long), undirected


def test_gins_layer_is_pygs(few):
    model, data = built("gin", {}, few)
    model.eval()
    batch, mlp = data.batch(range(20)), model.mlps[0]
    dense = torch.nn.functional.one_hot(batch.x, 7).float()
    theirs = GINConv(torch.nn.Identity())(dense, batch.edge_index)
    expected = mlp.second(torch.relu(mlp.norm(theirs @ mlp.first.weight + mlp.first.bias)))
    torch.testing.assert_close(mlp(batch.x, batch), expected)


def test_gin_tells_apart_what_wl_can_and_nothing_else():
    hexagon = _graph([(i, (i + 1) % 6) for i in range(6)])
    triangles = _graph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    path = _graph([(i, i + 1) for i in range(5)])
    decalin = _graph([(i, (i + 1) % 10) for i in range(10)] + [(0, 5)])
    bicyclopentyl = _graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (5, 6), (6, 7), (7, 8), (8, 9), (9, 5), (0, 5)])
    for readout in ("sum", "mean"):
        model = _gin(readout=readout)
        logits = [model(*graph) for graph in (hexagon, triangles, path, decalin, bicyclopentyl)]
        torch.testing.assert_close(logits[0], logits[1])
        torch.testing.assert_close(logits[3], logits[4])
        assert (logits[0] - logits[2]).abs().max() > 1e-4
    star, triangle_and_path = _graph([(0, 1), (0, 2), (0, 3)]), _graph([(0, 1), (1, 2), (2, 3)])
    assert (_gin()(*star) - _gin()(*triangle_and_path)).abs().max() > 1e-4


# ---- DGCNN ----


def test_sortpool_orders_by_the_last_channel_and_then_cuts_or_pads():
    x = torch.tensor([[1.0, 0.3], [2.0, 0.9], [3.0, 0.5], [4.0, 0.1]])
    rows = SortAggregation(3)(x, torch.tensor([0, 0, 0, 1]), dim_size=2).view(2, 3, 2)
    assert rows[0].tolist() == [[2.0, x[1, 1]], [3.0, 0.5], [1.0, x[0, 1]]]
    assert rows[1, 0].tolist() == [4.0, x[3, 1]]
    assert (rows[1, 1:] == 0).all()


def test_dgcnn_sorts_by_its_last_convolution_and_takes_k_from_the_sizes(mutag):
    model, data = built("dgcnn", {}, mutag)
    assert model.k == max(10, int(mutag.nodes_per_graph.double().quantile(0.4, interpolation="lower")))
    assert (mutag.nodes_per_graph > model.k).double().mean() < 0.66
    assert (mutag.nodes_per_graph >= model.k).double().mean() >= 0.6
    model.eval()
    seen = []
    model.sort.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    model(data.batch([0]))
    levels, rows = seen[0]
    last = rows.view(model.k, -1)[:, -1][: mutag.nodes_per_graph[0]]
    torch.testing.assert_close(last, levels[:, -1].sort(descending=True).values[: model.k][: len(last)])


def test_a_node_of_a_batch_without_edges_is_no_trouble():
    x = torch.tensor([0, 1, 2])
    for name in NETWORKS:
        spec = find_model(name)
        model = spec.build(MUTAG, spec.make_settings("MUTAG", {})).eval()
        batch = GraphBatch.from_edge_index(x, torch.zeros(2, 0, dtype=torch.long), torch.tensor([0, 0, 1]))
        assert torch.isfinite(model(batch)).all()


def test_what_was_prepared_belongs_to_those_graphs_alone(few):
    _, data = built("pscn", {}, few)
    assert data.prepared
    assert not data.subset([3]).prepared
    assert not data.with_features("degrees").prepared


# ---- steps and batches at the edge ----


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_of_one_small_graph_is_no_trouble(name):
    spec = find_model(name)
    shape = DataShape(7, 2, True, 1.0, (1,) * 11)
    changes = {"k": 10} if name == "dgcnn" else {}
    model = spec.build(shape, spec.make_settings("MUTAG", changes)).train()
    logits, auxiliary = model.outputs(
        GraphBatch.from_edge_index(torch.tensor([3]), torch.zeros(2, 0, dtype=torch.long))
    )
    loss = logits.sum() if auxiliary is None else logits.sum() + auxiliary
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize("pool", ["tap", "topk", "sort", "diff", "sag", "none"])
def test_a_batch_with_a_graph_of_no_nodes_has_finite_losses(pool):
    spec = find_model("tapnet")
    model = spec.build(MUTAG, spec.make_settings("MUTAG", {"pool": pool})).train()
    batch = GraphBatch.from_edge_index(
        torch.tensor([0, 1, 2]), torch.zeros(2, 0, dtype=torch.long), torch.tensor([0, 0, 2])
    )
    logits, auxiliary = model.outputs(batch)
    assert logits.shape == (3, 2)
    assert torch.isfinite(logits).all()
    assert auxiliary is None or torch.isfinite(auxiliary)


@pytest.mark.parametrize("ratios", [[], [0.8, 2], [3]])
def test_diff_takes_whatever_ratios_there_can_be(ratios, few):
    model, data = built("tapnet", {"pool": "diff", "ratios": ratios}, few)
    assert len(model.micro_batches(torch.arange(20), data.nodes_per_graph)) == 1
    assert torch.isfinite(model.eval()(data.batch(range(20)))).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_is_used(name, few):
    model, data = built(name, {}, few)
    train_steps(model, torch.optim.SGD(model.parameters(), lr=0.0), data, [torch.arange(20)])
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []


def test_whole_numbers_and_floats_are_one_setting_and_words_are_checked():
    gin = find_model("gin")
    assert repr(gin.make_settings("MUTAG", {"dropout": 0})) == repr(gin.make_settings("MUTAG", {"dropout": 0.0}))
    with pytest.raises(SettingError, match="activation is one of relu, elu, not 'tanh'"):
        find_model("gunet").make_settings("MUTAG", {"activation": "tanh"})
    with pytest.raises(SettingError, match="link_weight is a finite number"):
        find_model("diffpool").make_settings("MUTAG", {"link_weight": float("nan")})
