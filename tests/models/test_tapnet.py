"""TAPNet: the paper's architecture, its parameter count, and what must be true of any classifier of graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.loader import DataLoader

from tapnet import TAPNet, load_dataset
from tapnet.data.batch import GraphBatch
from tapnet.data.catalog import CATALOG
from tapnet.errors import SettingError
from tapnet.inference.explain import pooling_layers
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.models.tapnet import Classifier, TAPNetSettings, activation_on, ensemble_loss
from tapnet.ops.readout import readout
from tapnet.training.task import mean_loss
from tests.helpers.graphs import with_attributes


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def test_embedding_and_classifier_have_the_papers_parameters():
    """Table 5, REDDIT-BINARY: 566 distinct degrees, two classes."""
    model = TAPNet(566, 2)
    count = sum(p.numel() for part in (model.embedding, model.classifier) for p in part.parameters())
    assert count == 323_666
    assert model.num_parameters == 323_666 + 3 * (48 * 48 + 48) + 3 * (48 * 48 + 48)
    assert TAPNet(566, 2, pool="none").num_parameters == 323_666 + 3 * (48 * 48 + 48)
    assert TAPNet(566, 2, local_voting=False, global_voting=False).num_parameters == 323_666 + 7_056


def test_the_defaults_are_the_papers():
    s = TAPNetSettings()
    assert (s.hidden_channels, s.ratios, s.connectivity, s.dropout) == (48, (0.8, 0.6, 0.4), 0.1, 0.3)
    assert (s.classifier_channels, s.classifier_dropout, s.aux, s.gate) == (512, 0.2, 0.0, "straight-through")
    assert s.norm == "neighbour"
    relu = {name for name in CATALOG if activation_on(name)["activation"] == "relu"}
    assert relu == {"DD", "PTC", "MUTAG", "COLLAB", "REDDIT-MULTI5K", "REDDIT-MULTI12K"}
    assert hash(s) == hash(TAPNetSettings())
    with pytest.raises(ValueError, match="frozen"):
        s.pool = "none"


def test_rates_apply_to_the_current_graph(mutag):
    model = TAPNet(7, 2).eval()
    batch = mutag.batch(range(20))
    n = batch.nodes_per_graph
    h = model.embedding(batch.x, batch)
    for pool, rate in zip(model.pools, (8, 6, 4), strict=True):
        h, batch, *_ = pool(h, batch)
        n = (n * rate + 9) // 10
        assert torch.equal(batch.nodes_per_graph, n)


@pytest.mark.parametrize("pool", ["tap", "none"])
def test_a_graph_alone_and_in_a_batch_gives_the_same_logits(mutag, pool):
    torch.manual_seed(0)
    model = TAPNet(7, 2, pool=pool).double().eval()
    together = model(mutag.batch(range(30)))
    alone = torch.cat([model(mutag.batch([i])) for i in range(30)])
    torch.testing.assert_close(together, alone)


def test_called_as_pyg_calls_models(mutag):
    torch.manual_seed(0)
    model = TAPNet(7, 2).eval()
    data = next(iter(DataLoader([mutag[i] for i in range(16)], batch_size=16)))
    fast = model(mutag.batch(range(16)))
    torch.testing.assert_close(model(data.x, data.edge_index, data.batch), fast)
    one_hot = torch.nn.functional.one_hot(data.x, 7).float()
    torch.testing.assert_close(model(one_hot, data.edge_index, data.batch), fast)
    with pytest.raises(TypeError, match="x, edge_index and batch"):
        model(data.x)


def test_autocast_and_compile(mutag):
    torch.manual_seed(0)
    model, data = TAPNet(7, 2), mutag[0]
    for x in (data.x, torch.randn(len(data.x), 7)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model.train()(x, data.edge_index)
        logits.float().sum().backward()
        expected = model.eval()(x, data.edge_index)
        torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x, data.edge_index), expected)
    with pytest.raises(TypeError, match="integer categories or"):
        model(data.x.view(-1, 1), data.edge_index)


def test_graphs_in_any_order(mutag):
    torch.manual_seed(0)
    model, batch = TAPNet(7, 2).double().eval(), mutag.batch(range(4))
    order = torch.randperm(batch.num_nodes)
    mixed = model(batch.x[order], torch.argsort(order)[batch.edge_index], batch.graph[order])
    torch.testing.assert_close(mixed, model(batch))


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"pool": "none"},
        {"aux": 1.0},
        {"similarity": "gaussian"},
        {"similarity": "concat", "aux": 0.1},
        {"gate": "sigmoid", "norm": "symmetric"},
        {"local_voting": False, "global_voting": False},
        {"similarity": "dot", "norm": "mean", "link_reading": "softmax", "aux": 0.1, "ratios": (7, 0.5)},
    ],
)
def test_it_learns_twenty_graphs_by_heart(mutag, chosen):
    torch.manual_seed(0)
    few = mutag.subset(range(0, 180, 9))
    model = TAPNet(7, 2, dropout=0.0, classifier_dropout=0.0, **chosen)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    batch = few.batch(range(len(few)))
    for _ in range(400):
        logits, auxiliary = model.outputs(batch)
        assert (auxiliary is not None) == (chosen.get("aux", 0) > 0)
        loss = torch.nn.functional.cross_entropy(logits, batch.y) + (0 if auxiliary is None else auxiliary)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (model.eval()(batch).argmax(1) == batch.y).all():
            break
        model.train()
    assert (model.eval()(batch).argmax(1) == batch.y).all()
    assert all(p.grad is not None for p in model.parameters())


def test_the_auxiliary_objective_costs_nothing_while_evaluating(mutag, monkeypatch):
    model = TAPNet(7, 2, aux=1.0).eval()
    monkeypatch.setattr("tapnet.nn.tap.link_loss", lambda *_, **__: pytest.fail("computed for nobody"))
    assert model.outputs(mutag.batch([0, 1])).auxiliary is None


def test_attributes_as_input():
    dataset = with_attributes()
    model = TAPNet(dataset.num_features, dataset.num_classes).eval()
    assert model(dataset.batch(range(9))).shape == (9, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_refused_with_what_to_do_instead(mutag, dtype):
    with pytest.raises(TypeError, match=f"weights are {dtype}.*autocast"):
        TAPNet(7, 2).to(dtype)(mutag.batch([0]))


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"pool": "max"}, "pool is one of tap, topk, sort"),
        ({"norm": "left"}, "norm is one of neighbour, symmetric, mean, sum"),
        ({"ratios": (0.5, 1.5)}, "ratio is"),
        ({"ratios": (2**63,)}, "below 2\\*\\*63"),
        ({"dropout": 1.0}, "dropout is at least 0 and below 1"),
        ({"aux": -1.0}, "aux is at least 0"),
        ({"aux": float("inf")}, "aux is a finite number"),
        ({"connectivity": float("nan")}, "connectivity is a finite number"),
        ({"aux": 1.0, "pool": "none"}, "needs pool 'tap' with local voting"),
        ({"aux": 1.0, "local_voting": False}, "needs pool 'tap' with local voting"),
        ({"hidden_channels": 0}, "hidden_channels is at least 1"),
    ],
)
def test_wrong_settings_are_refused(chosen, reason):
    with pytest.raises(SettingError, match=reason):
        TAPNetSettings(**chosen)


def test_unknown_names_are_refused():
    with pytest.raises(SettingError, match="model is one of wl, pscn, dgcnn"):
        find_model("resnet")
    with pytest.raises(SettingError, match="has no setting 'depth'"):
        find_model("tapnet").make_settings("PTC", {"depth": 3})


def test_the_last_level_alone_can_be_read(mutag):
    batch = mutag.batch(range(6))
    model = TAPNet(7, 2, readout="last").eval()
    assert model.classifier.hidden.in_features == 3 * 48
    assert TAPNet(7, 2, pool="eigen", readout="last").classifier.hidden.in_features == 3 * 3 * 48
    *_, last = model.levels(batch)
    assert torch.equal(model.embed(batch), readout(last.x, last.batch))
    assert torch.equal(model(batch), model.classifier(model.embed(batch)))
    assert model.settings.to_dict()["readout"] == "last"
    assert "readout" not in TAPNetSettings().to_dict()  # keys of stored trials
    with pytest.raises(SettingError, match="readout"):
        TAPNet(7, 2, readout="first")


@pytest.mark.parametrize(
    "chosen", [{"heads": 3}, {"vote_scale": "channels"}, {"learn_connectivity": True}, {"edge_votes": True}]
)
def test_what_is_not_in_the_paper_can_be_asked_for_and_is_learned(chosen):
    spec = find_model("tapnet")
    settings = spec.settings(**chosen)
    mutag = spec.prepare(load_dataset("MUTAG"), settings)
    torch.manual_seed(0)
    network = spec.build(DataShape.of(mutag), settings)
    batch = mutag.batch(range(20))
    torch.nn.functional.cross_entropy(network(batch), batch.y).backward()
    (name, learned), *_ = network.pools[0].named_parameters()
    own = {"edge_votes": "edge_weight", "learn_connectivity": "learned_connectivity"}.get(next(iter(chosen)), name)
    assert dict(network.pools[0].named_parameters())[own].grad.abs().sum() > 0
    assert learned.grad is not None
    assert settings.to_dict().items() >= chosen.items()
    assert not set(chosen) & set(spec.settings().to_dict())  # names of trials stay as they were


def test_settings_of_tap_are_refused_with_other_poolings():
    for chosen in (
        *({"heads": 2}, {"vote_scale": "channels"}, {"learn_connectivity": True}, {"edge_votes": True}),
        {"connectivity_end": 0.5},
    ):
        with pytest.raises(SettingError, match="'tap'"):
            find_model("tapnet").settings(pool="topk", **chosen)


def test_a_connectivity_that_is_learned_follows_no_schedule():
    with pytest.raises(SettingError, match="schedule"):
        find_model("tapnet").settings(learn_connectivity=True, connectivity_end=0.5)
    assert "connectivity_end" not in find_model("tapnet").settings().to_dict()  # names of trials stay as they were


def test_votes_that_read_edges_need_edges_that_carry_something():
    with pytest.raises(SettingError, match="carry nothing"):
        TAPNet(3, 2, edge_votes=True)


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@given(seed=st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_networks_of_an_ensemble_learn_from_their_own_errors(task, seed):
    torch.manual_seed(seed)
    logits = torch.randn(3, 5, 4, dtype=torch.float64)
    y = torch.randint(4, (5,)) if task == "classification" else torch.randint(2, (5, 4)).double()
    if task != "classification":
        y[torch.rand(5, 4) < 0.3] = torch.nan
    model = TAPNet(7, 4).double()
    model.set_task(task, 4)
    alone = torch.stack([mean_loss(model, rows, y) for rows in logits]).mean()
    together = mean_loss(model, logits.mean(dim=0), y) + ensemble_loss(logits, y, task)
    torch.testing.assert_close(together, alone)


def test_ensemble_is_the_mean_of_its_networks():
    batch = GraphBatch.from_edge_index(torch.tensor([0, 3, 0]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    torch.manual_seed(0)
    model = TAPNet(7, 2, ensemble_size=3, dropout=0.0, classifier_dropout=0.0).eval()
    torch.manual_seed(0)
    alone = TAPNet(7, 2, dropout=0.0, classifier_dropout=0.0).eval()  # the first has the weights that it would have
    rest = [member(batch) for member in model.others]
    torch.testing.assert_close(model(batch), torch.stack([alone(batch), *rest]).mean(dim=0))
    assert torch.equal(model.embed(batch), alone.embed(batch))
    assert len(list(pooling_layers(model))) == 3
    assert model.num_parameters == 3 * alone.num_parameters
    assert model.outputs(batch).auxiliary is None
    auxiliary = model.train().outputs(batch).auxiliary
    assert auxiliary is not None
    assert auxiliary > 0
    assert "ensemble_size" not in TAPNetSettings().to_dict()  # keys of stored trials
    with pytest.raises(SettingError, match="ensemble_size"):
        TAPNet(7, 2, ensemble_size=0)


@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_heads_of_the_classifier_are_classifiers_whose_logits_are_averaged(activation):
    torch.manual_seed(0)
    several, x = Classifier(6, 5, 3, activation, dropout=0.0, heads=4), torch.randn(7, 6)
    torch.nn.init.normal_(several.hidden.bias)
    torch.nn.init.normal_(several.out.bias)
    parts = [parameter.chunk(4) for parameter in several.parameters()]
    each = several.by_head(x)
    assert each.shape == (4, 7, 3)
    for head, weights in enumerate(zip(*parts, strict=True)):
        alone = Classifier(6, 5, 3, activation, dropout=0.0)
        alone.load_state_dict(dict(zip(alone.state_dict(), weights, strict=True)))
        torch.testing.assert_close(each[head], alone(x))
    torch.testing.assert_close(several(x), each.mean(dim=0))
    bounds = (6 / (6 + 5)) ** 0.5, (6 / (5 + 3)) ** 0.5  # Xavier's, of one head
    assert all(
        parameter.abs().max() <= bound
        for parameter, bound in zip((several.hidden.weight, several.out.weight), bounds, strict=True)
    )


@pytest.mark.parametrize("ensemble_size", [1, 2])
def test_each_head_of_the_classifier_learns_from_its_own_error(mutag, ensemble_size):
    torch.manual_seed(0)
    model = TAPNet(7, 2, classifier_heads=3, ensemble_size=ensemble_size, dropout=0.0, classifier_dropout=0.0)
    batch = mutag.batch(range(20))
    assert model.eval().outputs(batch).auxiliary is None
    logits, auxiliary = model.train().outputs(batch)
    heads = torch.cat([member.classifier.by_head(member.embed(batch)) for member in (model, *model.others)])
    torch.testing.assert_close(logits, heads.mean(dim=0))
    alone = torch.stack([mean_loss(model, rows, batch.y) for rows in heads]).mean()
    torch.testing.assert_close(mean_loss(model, logits, batch.y) + auxiliary, alone)
    assert "classifier_heads" not in TAPNetSettings().to_dict()  # keys of stored trials


@pytest.mark.parametrize("heads", [1, 2])
def test_scaled_readouts_are_the_batch_norm_of_their_asinh(mutag, heads):
    torch.manual_seed(0)
    model = TAPNet(7, 2, classifier_heads=heads, readout_norm=True, dropout=0.0, classifier_dropout=0.0)
    batch = mutag.batch(range(20))
    read = model.embed(batch).detach()
    scaled = read.double().asinh()
    scaled = (scaled - scaled.mean(0)) / (scaled.var(0, unbiased=False) + model.classifier.norm.eps).sqrt()
    inputs = []
    model.classifier.hidden.register_forward_pre_hook(lambda _, given: inputs.append(given[0].double()))
    model.train().outputs(batch).logits.sum().backward()
    torch.testing.assert_close(inputs[0], scaled, atol=1e-4, rtol=1e-4)
    assert model.classifier.norm.weight.grad is not None
    one_by_one = torch.cat([model.eval()(mutag.batch([i])) for i in range(20)])
    torch.testing.assert_close(one_by_one, model(batch), atol=1e-4, rtol=1e-4)  # a prediction is of a graph alone
    assert "readout_norm" not in TAPNetSettings().to_dict()  # keys of stored trials
