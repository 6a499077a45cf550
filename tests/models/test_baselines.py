"""The baselines `majority`, `size` and `bag`: what they see, and that they work for every kind of target."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import tapnet
from tapnet.errors import SettingError
from tapnet.models import majority, size
from tapnet.models.base import DataShape
from tapnet.models.registry import BASELINES, describe, find_model
from tapnet.paper.targets import TARGETS
from tapnet.training.metrics import METRICS

FEW = {"epochs": 2, "folds": 3, "jobs": 1, "progress": lambda _: None}


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


@pytest.fixture(scope="module")
def numbers(mutag):
    """MUTAG with a number that the size decides, but for one that is missing."""
    y = mutag.nodes_per_graph.float().unsqueeze(1) * 100
    y[3] = math.nan
    return replace(mutag, y=y, classes=(), class_names=None, task="regression", target_names=("size",))


@pytest.fixture(scope="module")
def labels(mutag):
    """MUTAG with two yes/no labels, one with gaps, and one that is always yes."""
    y = torch.stack([mutag.y.float(), (mutag.nodes_per_graph > 17).float(), torch.ones(len(mutag))], dim=1)
    y[::5, 0] = math.nan
    return replace(mutag, y=y, classes=(), class_names=None, task="multilabel", target_names=("a", "b", "c"))


HALVES = torch.arange(0, 188, 2), torch.arange(1, 188, 2)


def test_majority_is_scikit_learns_dummy(mutag):
    train, test = HALVES
    found = majority.fit(mutag, majority.MajoritySettings(), train, test)
    dummy = DummyClassifier(strategy="prior").fit(np.zeros((len(train), 1)), mutag.y[train])
    np.testing.assert_allclose(found, dummy.predict_proba(np.zeros((len(test), 1))))


def test_size_sees_nodes_and_undirected_edges_alone(mutag):
    graphs = [mutag.to_networkx(i) for i in (0, 17, 187)]
    expected = [[graph.number_of_nodes(), graph.number_of_edges()] for graph in graphs]
    assert size.sizes(mutag)[[0, 17, 187]].tolist() == expected
    train, test = HALVES
    scaler = StandardScaler().fit(size.sizes(mutag)[train])
    theirs = LogisticRegression().fit(scaler.transform(size.sizes(mutag)[train]), mutag.y[train])
    found = size.fit(mutag, size.SizeSettings(), train, test)
    np.testing.assert_allclose(found, theirs.predict_proba(scaler.transform(size.sizes(mutag)[test])))
    assert METRICS["accuracy"](mutag.y[test].numpy(), found) > 80


def test_size_knows_what_there_is_nothing_to_fit_for(mutag, labels):
    train, test = HALVES
    one_class = train[mutag.y[train] == 1]
    assert size.fit(mutag, size.SizeSettings(), one_class, test)[:, 1].tolist() == [1.0] * len(test)
    found = size.fit(labels, size.SizeSettings(), train, test)
    assert found[:, 2].tolist() == [1.0] * len(test)  # always yes
    assert np.isfinite(found).all()


def test_size_finds_a_number_that_the_size_decides(numbers):
    train, test = HALVES
    found = size.fit(numbers, size.SizeSettings(), train, test)
    assert METRICS["r2"](numbers.y[test].numpy(), found) > 0.99


def test_bag_counts_categories_and_does_not_see_edges(mutag):
    spec = find_model("bag")
    model = spec.build(DataShape.of(mutag), spec.make_settings("MUTAG", {})).double().eval()
    batch = mutag.batch(range(10))
    counts = torch.nn.functional.one_hot(batch.x, 7).double()
    counts = torch.zeros(10, 7, dtype=torch.double).index_add_(0, batch.graph, counts)
    hidden = torch.relu(model.norm(counts @ model.hidden.weight + model.hidden.bias))
    torch.testing.assert_close(model(batch), model.classifier(hidden))
    empty = torch.zeros(2, 0, dtype=torch.long)
    torch.testing.assert_close(model(batch.x, empty, batch.graph), model(batch))


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_bag_with_a_layer_for_each_node_is_deep_sets(mutag, of):
    spec = find_model("bag")
    model = spec.build(DataShape.of(mutag), spec.settings(node_layer=True, readout=of, hidden_channels=5)).eval()
    batch = mutag.batch([0, 17, 187])
    one_hot = torch.nn.functional.one_hot(batch.x, 7).float()
    h = torch.relu(one_hot @ model.nodes.weight + model.nodes.bias).split(mutag.nodes_per_graph[[0, 17, 187]].tolist())
    h = torch.stack([getattr(nodes, of)(0) for nodes in h]) @ model.hidden.weight + model.hidden.bias
    torch.testing.assert_close(model(batch), model.classifier(torch.relu(model.norm(h))))
    assert "node_layer" not in spec.settings().to_dict()  # stored trials keep their keys


def test_bag_takes_the_mean_of_numbers():
    spec = find_model("bag")
    model = spec.build(DataShape(3, 2, categorical=False), spec.make_settings("", {})).eval()
    x, none = torch.rand(6, 3), torch.zeros(2, 0, dtype=torch.long)
    twice = model(torch.cat([x, x]), none, torch.zeros(12, dtype=torch.long))
    torch.testing.assert_close(twice, model(x, none, torch.zeros(6, dtype=torch.long)))


@pytest.mark.parametrize("name", BASELINES)
def test_they_are_trained_for_every_kind_of_target(name, mutag, numbers, labels, recwarn):
    for data, metric in ((mutag, "roc_auc,log_loss,accuracy"), (numbers, "rmse,r2"), (labels, "roc_auc,brier")):
        found = tapnet.cross_validate(data, name, metric=metric, **FEW)
        assert len(found.scores) == 3
        assert np.isfinite([found.scores_by(one) for one in metric.split(",")]).all()
        assert found.has_epochs == (name == "bag")
        if name == "majority" and data is mutag:
            assert found.scores == [0.5] * 3
    if name == "majority":  # of itself it goes without saying
        assert not [w for w in recwarn if "majority class" in str(w.message)]


def test_wl_still_wants_classes(numbers):
    with pytest.raises(SettingError, match="wl is for classification"):
        tapnet.cross_validate(numbers, "wl", **FEW)


def test_they_are_listed_as_baselines_and_are_in_no_table_of_the_paper():
    assert set(BASELINES) == {"majority", "size", "bag"}
    assert {describe(find_model(name))["kind"] for name in BASELINES} == {"baseline"}
    assert describe(find_model("tapnet"))["kind"] == "system"
    assert not {row.model for target in TARGETS.values() for row in target.rows} & set(BASELINES)
