"""TAPClassifier: scikit-learn's conventions, graphs of every kind, and nothing left changed behind it."""

import contextlib
import json
import math
import os
import pickle
import sys
import warnings

import joblib
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing, estimator_checks
from torch_geometric.data import Data

import tapnet
from tapnet import GraphDataset, TAPClassifier, TAPRegressor, load_model
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.models.tapnet import TAPNet, TAPNetSettings
from tests.helpers.graphs import datasets, write_graph

FAMILIES = {
    "ring": nx.cycle_graph,
    "star": lambda n: nx.star_graph(n - 1),
    "clique": nx.complete_graph,
}


def named(graph, rng, labels=("x", "y", "z")):
    """The graph with text for node names, in no special order, and a random label at each node."""
    names = [f"node {i}" for i in rng.permutation(len(graph))]
    graph = nx.relabel_nodes(graph, dict(zip(graph, names, strict=True)))
    nx.set_node_attributes(graph, {node: labels[rng.integers(len(labels))] for node in graph}, "label")
    return graph


@pytest.fixture(scope="module")
def families():
    """Graphs of three families, and the names of these."""
    rng = np.random.default_rng(0)
    y = list(FAMILIES) * 10
    return [named(FAMILIES[family](int(rng.integers(5, 10))), rng) for family in y], y


def small(**params):
    """A network that trains in no time."""
    few = {"epochs": 3, "hidden_channels": 8, "classifier_channels": 16, "lr": 0.01, "random_state": 0}
    return TAPClassifier(**few | params)


@pytest.fixture(scope="module")
def fitted(families):
    return small(epochs=40, dropout=0.0).fit(*families)


# ---- conventions ----


@pytest.mark.parametrize(
    "check",
    [
        "check_parameters_default_constructible",
        "check_no_attributes_set_in_init",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_valid_tag_types",
        "check_estimator_tags_renamed",
        "check_mixin_order",
        "check_estimators_unfitted",
        "check_get_feature_names_out_error",
    ],
)
def test_scikit_learn_s_own_check(check):
    getattr(estimator_checks, check)("TAPClassifier", TAPClassifier())


def test_every_setting_of_the_network_is_a_parameter_with_the_same_default():
    params, wanted = TAPClassifier().get_params(), vars(TAPNetSettings())
    assert {name: params[name] for name in wanted} == wanted


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_before_fitting_there_is_nothing_to_ask(families, method):
    with pytest.raises(NotFittedError):
        getattr(TAPClassifier(), method)(families[0])
    with pytest.raises(NotFittedError):
        TAPClassifier().explain(families[0][0])
    with pytest.raises(NotFittedError):
        TAPClassifier().save("model.safetensors")


def test_a_clone_is_not_fitted_and_trains_to_the_same(families, fitted):
    again = clone(fitted)
    assert not hasattr(again, "model_")
    assert np.array_equal(again.fit(*families).predict_proba(families[0]), fitted.predict_proba(families[0]))


def test_what_was_learned(families, fitted):
    graphs, y = families
    assert is_classifier(fitted)
    assert fitted.classes_.tolist() == ["clique", "ring", "star"]
    assert fitted.n_features_in_ == 3
    assert fitted.n_iter_ == len(fitted.loss_curve_) == fitted.best_epoch_ == 40
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]
    assert fitted.score(graphs, y) > 0.8  # a third by chance
    probabilities = fitted.predict_proba(graphs)
    assert probabilities.shape == (30, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert fitted.predict(graphs).tolist() == fitted.classes_[probabilities.argmax(axis=1)].tolist()


def test_a_pickled_one_predicts_the_same(families, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(families[0]), fitted.predict_proba(families[0]))
    assert again.loss_curve_ == fitted.loss_curve_


def test_fitting_again_forgets_what_was_before(families, fitted):
    graphs, y = families
    twice = small(early_stopping=True, validation_fraction=0.2).fit(graphs, ["b", "a"] * 15)
    twice.set_params(**fitted.get_params()).fit(graphs, y)
    assert np.array_equal(twice.predict_proba(graphs), fitted.predict_proba(graphs))
    assert twice.validation_loss_curve_ is None


# ---- random state ----


@pytest.mark.parametrize("make", [lambda: 7, lambda: np.random.RandomState(7)])
def test_the_same_random_state_gives_the_same_numbers(families, make):
    graphs, y = families
    first, second = (small(random_state=make(), early_stopping=True).fit(graphs, y) for _ in range(2))
    assert first.loss_curve_ == second.loss_curve_
    assert np.array_equal(first.predict_proba(graphs), second.predict_proba(graphs))


def test_another_random_state_gives_others(families):
    assert small(random_state=1).fit(*families).loss_curve_ != small(random_state=2).fit(*families).loss_curve_


def test_without_one_numpy_s_is_drawn_from(families):
    curves = []
    for _ in range(2):
        np.random.seed(3)  # noqa: NPY002 - what random_state None stands for
        curves.append(small(random_state=None).fit(*families).loss_curve_)
    assert curves[0] == curves[1] != small(random_state=None).fit(*families).loss_curve_


def test_torch_is_left_as_it_was(families):
    graphs, y = families
    torch.manual_seed(5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    model = small(threads=threads + 1).fit(graphs, y)
    model.predict(graphs)
    model.transform(graphs)
    model.explain(graphs[0])
    with pytest.raises(ValueError, match="diverged"):
        small(lr=1e30).fit(graphs, y)
    assert torch.equal(state, torch.get_rng_state())
    assert threads == torch.get_num_threads()


def test_what_torch_drew_before_does_not_matter(families):
    torch.manual_seed(11)
    first = small().fit(*families)
    torch.randn(100)
    assert small().fit(*families).loss_curve_ == first.loss_curve_


# ---- in scikit-learn's hands ----


def test_cross_validation_gives_the_same_with_processes_and_threads(families):
    graphs, y = families
    alone = cross_val_score(small(), graphs, y, cv=3, error_score="raise")
    assert alone.shape == (3,)
    assert np.array_equal(alone, cross_val_score(small(), graphs, y, cv=3, n_jobs=2, error_score="raise"))
    with joblib.parallel_backend("threading", n_jobs=3):
        assert np.array_equal(alone, cross_val_score(small(), graphs, y, cv=3, error_score="raise"))


def test_lists_tuples_arrays_and_data_sets_are_cut_alike(families):
    graphs, y = families
    array = np.empty(len(graphs), dtype=object)
    array[:] = graphs
    dataset = GraphDataset.from_networkx(graphs, y)
    kinds = [(graphs, y), (tuple(graphs), tuple(y)), (array, np.asarray(y)), (dataset, dataset.y), (dataset, y)]
    found = [cross_val_predict(small(epochs=2), X, y, cv=3, method="predict_proba") for X, y in kinds]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_a_piece_of_a_data_set_keeps_its_meaning(families):
    graphs, y = families
    dataset = GraphDataset.from_networkx(graphs, y)
    piece = _safe_indexing(dataset, np.array([4, 2]))
    assert isinstance(piece, GraphDataset)
    assert [piece.classes[i] for i in piece.y] == [y[4], y[2]]
    train, test = train_test_split(dataset, random_state=0)
    model = small(epochs=20, dropout=0.0).fit(train)
    assert model.classes_.tolist() == ["clique", "ring", "star"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything = model.predict_proba(dataset)
    rest = train_test_split(np.arange(30), random_state=0)[1]
    np.testing.assert_allclose(model.predict_proba(test), everything[rest], rtol=1e-5)
    assert model.score(dataset) == model.score(graphs, y)


def test_grid_search_over_settings_as_arrays_give_them(families):
    graphs, y = families
    grid = [
        {"pool": ["tap"], "connectivity": np.array([0.0, 0.1]), "hidden_channels": np.array([4])},
        {"pool": np.array(["topk"]), "ratios": [(0.5,), [0.9, 0.5]]},
    ]
    search = GridSearchCV(small(), grid, cv=2, error_score="raise", scoring="roc_auc_ovr").fit(graphs, y)
    assert len(search.cv_results_["params"]) == 4
    assert set(search.predict(graphs)) <= set(y)
    assert search.best_estimator_.get_params() | search.best_params_ == search.best_estimator_.get_params()


def test_a_setting_that_fails_is_a_failed_fit(families):
    search = GridSearchCV(small(), {"lr": [0.01, -1.0]}, cv=2)
    with pytest.warns(FitFailedWarning, match="lr is above 0, not -1.0"), pytest.warns(UserWarning, match="non-finite"):
        search.fit(*families)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]


def test_in_a_pipeline_at_the_end_and_in_the_middle(families):
    graphs, y = families
    without_leaves = FunctionTransformer(lambda many: [g.subgraph(n for n, d in g.degree if d > 1) for g in many])
    rings = [(g, label) for g, label in zip(graphs, y, strict=True) if label != "star"]
    last = Pipeline([("cut", without_leaves), ("net", small())])
    assert cross_val_score(last, *map(list, zip(*rings, strict=True)), cv=2, error_score="raise").shape == (2,)
    middle = Pipeline([("net", small(epochs=10)), ("pca", PCA(5)), ("svm", SVC())])
    search = GridSearchCV(middle, {"net__connectivity": [0.1, 1.0]}, cv=2, error_score="raise").fit(graphs, y)
    assert search.score(graphs, y) > 0.5


META_ESTIMATORS = {
    "bagging": lambda: BaggingClassifier(small(), n_estimators=2, random_state=0),
    "calibrated": lambda: CalibratedClassifierCV(small(), cv=2),
    "code": lambda: OutputCodeClassifier(small(), random_state=0),
    "one-vs-one": lambda: OneVsOneClassifier(small()),
    "one-vs-rest": lambda: OneVsRestClassifier(small()),
    "stacking": lambda: StackingClassifier([("a", small())], LogisticRegression(), cv=2),
    "voting": lambda: VotingClassifier([("a", small()), ("b", small(pool="topk"))], voting="soft"),
}
MAKE_A_TABLE = {"bagging", "code", "one-vs-one"}  # of a list, which NumPy cannot do with graphs


def object_array(graphs, *more):
    array = np.empty((len(graphs), *more), dtype=object)
    for i, graph in enumerate(graphs):
        array[(i, *[0] * len(more))] = graph
    return array


@pytest.mark.parametrize("name", META_ESTIMATORS)
def test_meta_estimators_take_graphs(families, name):
    graphs, y = families
    dataset = GraphDataset.from_networkx(graphs, y)
    kinds = [dataset] if name == "one-vs-one" else [dataset, object_array(graphs, 1)]
    kinds += [] if name in MAKE_A_TABLE else [graphs, object_array(list(dataset))]
    found = [clone(META_ESTIMATORS[name]()).fit(X, y).predict(X).tolist() for X in kinds]
    assert set(found[0]) <= set(y)
    assert all(other == found[0] for other in found)


def test_a_data_set_as_a_table_keeps_its_categories(families):
    graphs, y = families
    dataset = GraphDataset.from_networkx(graphs, y)
    table = np.asarray(dataset)
    assert table.shape == dataset.shape == (30, 1)
    model = small().fit(table[::2], y[::2])
    assert model.model_.categories == dataset.categories
    assert np.array_equal(model.predict_proba(table[5:8]), model.predict_proba(dataset[5:8]))
    other = GraphDataset.from_networkx(graphs[:2], y[:2])
    with pytest.raises(DataError, match="several data sets"):
        model.predict(np.concatenate([table, np.asarray(other)]))


# ---- early stopping ----


def test_early_stopping_stops_and_takes_the_best_epoch(families):
    graphs, y = families
    params = {"lr": 0.05, "early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 3}
    model = small(epochs=200, **params).fit(graphs, y)
    curve = model.validation_loss_curve_
    assert model.n_iter_ == len(curve) == len(model.loss_curve_) < 200
    assert model.best_epoch_ == 1 + int(np.argmin(curve)) == model.n_iter_ - 3
    until_best = small(epochs=model.best_epoch_, **params).fit(graphs, y)
    assert until_best.validation_loss_curve_ == curve[: model.best_epoch_]
    assert np.array_equal(until_best.predict_proba(graphs), model.predict_proba(graphs))


def test_early_epochs_may_be_kept_from_being_chosen(families, tmp_path):
    params = {"lr": 0.05, "early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 3}
    assert small(epochs=200, **params).fit(*families).n_iter_ < 100
    model = small(epochs=200, select_from=0.5, **params).fit(*families)
    curve = model.validation_loss_curve_
    assert model.best_epoch_ == 101 + int(np.argmin(curve[100:]))
    assert model.n_iter_ == len(curve) == min(200, model.best_epoch_ + 3)
    model.save(tmp_path / "model")
    assert TAPClassifier.load(tmp_path / "model").select_from == 0.5


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"select_from": 1.0}, "select_from is at least 0 and below 1"),
        ({"validation_fraction": 0.0}, "validation_fraction is above 0 and below 1"),
        ({"validation_fraction": 0.01}, "0.01 of 30 graphs cannot be held out"),
        ({"n_iter_no_change": 0}, "n_iter_no_change is at least 1"),
    ],
)
def test_a_part_that_cannot_be_held_out(families, params, reason):
    with pytest.raises(ValueError, match=reason):
        small(early_stopping=True, **params).fit(*families)


# ---- graphs ----


def as_pyg(graph, code=None):
    number = {node: i for i, node in enumerate(graph)}
    edges = torch.tensor([(number[u], number[v]) for u, v in graph.edges]).t()
    x = torch.tensor(["xyz".index(label) for _, label in graph.nodes(data="label")])
    return Data(x=x, edge_index=edges, num_nodes=len(graph), y=code)


def test_every_kind_of_input_gives_the_same_predictions(families):
    graphs, y = families
    data = [as_pyg(g) for g in graphs]
    one_hot = [Data(x=torch.nn.functional.one_hot(g.x, 3).float(), edge_index=g.edge_index) for g in data]
    models = [small().fit(X, y) for X in (graphs, data, one_hot, GraphDataset.from_networkx(graphs, y))]
    expected = models[0].predict_proba(graphs)
    for model, X in zip(models, (graphs, data, one_hot, GraphDataset.from_networkx(graphs, y)), strict=True):
        assert np.array_equal(model.predict_proba(X), expected)
    assert all("y" not in g for g in data if g.y is None)  # the user's own are as they were


def test_one_graph_out_of_a_data_set_is_known_by_its_numbers(families):
    graphs, y = families
    dataset = GraphDataset.from_networkx(graphs, y)
    model = small().fit(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.predict_proba([*dataset]), model.predict_proba(dataset), rtol=1e-6)
        assert model.explain(dataset[3]) == model.explain(dataset[[3]])


def test_classes_may_be_carried_by_the_graphs(families):
    graphs, y = families
    codes = [sorted(FAMILIES).index(family) for family in y]
    data = [as_pyg(g, code) for g, code in zip(graphs, codes, strict=True)]
    expected = small().fit(graphs, codes)
    assert small().fit(data).score(data) == expected.score(graphs, codes)
    carrying = [g.copy() for g in graphs]
    for g, family in zip(carrying, y, strict=True):
        g.graph["y"] = family
    model = small().fit(carrying)
    assert model.classes_.tolist() == sorted(FAMILIES)
    assert model.score(carrying) == expected.score(graphs, codes)


@pytest.mark.parametrize("y", [[True, False], [3, -1], [2.0, 1.0], ["b", "a"]])
def test_classes_of_every_kind(families, y):
    graphs = families[0][:4]
    model = small(epochs=1).fit(graphs, y * 2)
    assert model.classes_.tolist() == sorted(y)
    assert model.predict(graphs).dtype == np.asarray(y).dtype


@pytest.mark.parametrize(("classes", "given"), [(["0", "1", "2"], [0, 1, 2]), ([0, 1, 2], ["0", "1", "2"])])
def test_classes_of_another_type_are_not_scored(families, classes, given):
    graphs, _ = families
    model = small().fit(graphs, classes * 10)
    assert model.score(graphs, classes * 10) > 0
    with pytest.raises(DataError, match=r"classes are '?0'?, .* y has (numbers|text): '?0'?, '?1"):
        model.score(graphs, given * 10)


def test_whole_numbers_in_labels_csv_stay_numbers(families, tmp_path):
    graphs, y = families
    folder = tmp_path / "graphs"
    for i, graph in enumerate(graphs):
        write_graph(graph, folder / f"{i}.json")
    numbers = [{"ring": 10, "star": 9, "clique": -1}[name] for name in y]
    rows = "".join(f"{i},{number}\n" for i, number in enumerate(numbers))
    (folder / "labels.csv").write_text(f"graph,class\n{rows}")
    assert tapnet.load_dataset(folder).classes == (-1, 9, 10)
    tapnet.cross_validate(folder, epochs=1, folds=2, jobs=1, out=tmp_path / "run", final=True, protocol="paper")
    model = TAPClassifier.load(tmp_path / "run")
    assert model.classes_.tolist() == [-1, 9, 10]
    assert model.score(graphs, numbers) == model.score(tapnet.load_dataset(folder)) > 0
    (folder / "labels.csv").write_text(f"graph,class\n{rows}".replace(",9", ",09"))
    assert tapnet.load_dataset(folder).classes == ("-1", "09", "10")


def test_features_are_what_is_there_or_what_was_asked_for(families):
    graphs, y = families
    bare = [nx.Graph(g.edges) for g in graphs]
    measured = [g.copy() for g in bare]
    for g in measured:
        nx.set_node_attributes(g, {node: [d, 1.0, 0.5] for node, d in g.degree}, "size")
    assert small(epochs=1).fit(graphs, y).model_.features == "labels"
    assert small(epochs=1).fit(bare, y).model_.features == "degrees"
    assert small(epochs=1, features="degrees").fit(graphs, y).model_.features == "degrees"
    model = small(epochs=1, node_attributes="size").fit(measured, y)
    assert (model.model_.features, model.n_features_in_) == ("attributes", 3)
    dataset = GraphDataset.from_networkx(graphs, y)
    assert small(epochs=1).fit(dataset.with_features("degrees")).model_.features == "degrees"
    assert small(epochs=1, features="degrees").fit(dataset).model_.features == "degrees"


def test_categories_under_another_name_are_not_passed_over_in_silence():
    graphs = [nx.path_graph(n) for n in range(3, 9)]
    for g in graphs:
        nx.set_node_attributes(g, "C", "element")
    with pytest.warns(UserWarning, match="no node has the attribute 'label'.*'element': node_label='element'"):
        small(epochs=1).fit(graphs, [0, 1] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(epochs=1, node_label="element").fit(graphs, [0, 1] * 3)
        small(epochs=1, features="degrees").fit(graphs, [0, 1] * 3)
    del graphs[0].nodes[0]["element"]
    with pytest.warns(UserWarning, match="some nodes have 'element'"):
        small(epochs=1).fit(graphs, [0, 1] * 3)


def test_what_is_not_used_and_graphs_that_are_all_the_same_are_noted():
    graphs = [nx.complete_graph(4) for _ in range(6)]
    for g in graphs:
        nx.set_edge_attributes(g, "red", "colour")
    with pytest.warns(DataNote) as notes:
        small(epochs=1).fit(graphs, [0, 1] * 3)
    colour, same = (str(note.message) for note in notes)
    assert "edge attribute colour" in colour
    assert "all 6 graphs are the same" in same
    for i, g in enumerate(graphs):
        nx.set_edge_attributes(g, float(i), "weight")
    with pytest.warns(DataNote) as notes:
        small(epochs=1).fit(graphs, [0, 1] * 3)
    assert not any("the same" in str(note.message) for note in notes)  # their weights tell them apart


def test_a_verbose_fit_prints_the_majority_class_and_warns_where_nothing_is_learned(capfd):
    graphs = [nx.path_graph(n) for n in range(3, 43)]
    y = ["active"] * 4 + ["inactive"] * 36
    with pytest.warns(UserWarning, match="not above 90.0 %"):
        TAPClassifier(
            verbose=True, epochs=1, lr=1e-9, random_state=1, early_stopping=True, validation_fraction=0.25
        ).fit(graphs, y)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("TAPClassifier")]
    assert [line.partition(": ")[0] for line in lines] == ["TAPClassifier"] * 2
    assert all("majority class: 90.0 %" in line for line in lines)


def test_numbers_of_their_own_are_no_classes():
    graphs = [nx.path_graph(n) for n in range(3, 23)]
    with pytest.raises(ValueError, match="continuous"):
        small().fit(graphs, np.linspace(0, 1, 20))
    with pytest.raises(ValueError, match="regression"):
        small().fit(graphs, np.arange(20))


def test_numbers_that_look_one_hot_in_one_graph_stay_numbers():
    rng = np.random.default_rng(0)
    data = [Data(x=torch.from_numpy(rng.integers(0, 2, (4, 2))).float(), edge_index=torch.tensor([[0, 1], [2, 3]]))
            for _ in range(8)]  # fmt: skip
    model = small().fit(data, [0, 1] * 4)
    assert model.model_.features == "attributes"
    odd = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
    assert model.predict_proba([odd]).shape == (1, 2)


def test_categories_of_any_kind_are_told_apart(families):
    rng = np.random.default_rng(1)
    kinds = (1, "1", ("a", 1), frozenset({"a", "b"}), 2.5)
    graphs = [named(nx.path_graph(6), rng, kinds) for _ in range(8)]
    model = small(epochs=1).fit(graphs, [0, 1] * 4)
    assert model.n_features_in_ == len(kinds)
    again = pickle.loads(pickle.dumps(graphs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.predict_proba(again), model.predict_proba(graphs))
    ones = [nx.path_graph(2), nx.path_graph(2)]
    nx.set_node_attributes(ones[0], 1, "label")
    nx.set_node_attributes(ones[1], "1", "label")
    assert not np.array_equal(*model.transform(ones))


def test_unknown_categories_warn_and_count_as_none(families, fitted):
    graph = families[0][0].copy()
    nx.set_node_attributes(graph, "new", "label")
    with pytest.warns(UserWarning, match=r"1 graph shares no node category .* \(graph 0: .new.\)"):
        first = fitted.predict_proba([graph])
    nx.set_node_attributes(graph, 17, "label")
    with pytest.warns(UserWarning, match="17"):
        assert np.array_equal(first, fitted.predict_proba([graph]))
    graph.nodes[next(iter(graph))]["label"] = "x"
    with pytest.warns(UserWarning, match=r"1 graph has node categories .* \(graph 0: 17\): they count as none"):
        fitted.predict([graph])


def test_new_degrees_in_a_fold_are_no_reason_to_warn():
    graphs = [nx.star_graph(n) for n in range(4, 13)] + [nx.cycle_graph(n) for n in range(4, 13)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = cross_val_score(TAPClassifier(epochs=1, random_state=0), graphs, [0] * 9 + [1] * 9, cv=3)
    assert len(scores) == 3


def without_label(graph):
    graph = graph.copy()
    graph.nodes[max(graph, key=str)]["label"] = None
    return graph


def test_a_graph_to_predict_has_no_label_that_is_none(families, fitted):
    with pytest.raises(DataError, match="graph 1: the 'label' of the node .* is None, where a category belongs"):
        fitted.predict([families[0][0], without_label(families[0][1])])


def test_the_score_names_a_class_that_is_none(families, fitted):
    graphs, y = families
    with pytest.raises(DataError, match=r"y\[2\] is None, where a class belongs"):
        fitted.score(graphs[:3], [*y[:2], None])


@pytest.mark.parametrize("y", [np.ones(30), np.full((30, 2), 4.5)])
def test_a_constant_target_is_fitted_with_a_warning(families, y):
    with pytest.warns(UserWarning, match="graphs: every graph has the same targets; there is nothing to learn"):
        model = TAPRegressor(epochs=1, hidden_channels=4, random_state=0).fit(families[0], y)
    assert model.predict(families[0][:2]).shape == y[:2].shape


def test_parallel_edges_are_said(families):
    graphs = [nx.MultiGraph(graph) for graph in families[0]]
    for graph in graphs:
        nx.set_edge_attributes(graph, "a", "label")
    graphs[3].add_edge(*next(iter(graphs[3].edges()))[:2], label="b")
    with pytest.warns(DataNote, match="1 edge is given several times with different labels: the first counts"):
        small(epochs=1).fit(graphs, families[1])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda g, y: ([], []), "the list is empty"),
        (lambda g, y: (g[0], y), "put it in one"),
        (lambda g, y: (as_pyg(g[0]), y), "put it in one"),
        (lambda g, y: ("graphs.zip", y), "not as str"),
        (lambda g, y: (iter(g), y), "not as list_iterator"),
        (lambda g, y: (np.zeros((30, 4)), y), "not as ndarray of shape"),
        (lambda g, y: (g, y[:-1]), "29 classes for 30 graphs"),
        (lambda g, y: ([*g[:-1], as_pyg(g[-1])], y), "graph 0 is of NetworkX, graph 29 of PyG"),
        (lambda g, y: ([*g[:-1], "graph"], y), "graph 0 is of NetworkX, graph 29 of SMILES"),
        (
            lambda g, y: ([*g[:-1], None], y),
            "graph 29 is neither a NetworkX graph nor a PyG Data nor a SMILES but None",
        ),
        (lambda g, y: ([*g[:-1], nx.Graph()], y), "graph 29 has no nodes"),
        (lambda g, y: ([Data(x=torch.zeros(0, 3), edge_index=torch.zeros(2, 0).long())], [1]), "graph 0 has no nodes"),
        (lambda g, y: ([Data(x=torch.zeros(2, 3))] * 2, [1, 2]), "graph 0 has no edge_index"),
        (lambda g, y: (GraphDataset.from_networkx(g, y)[[]], None), "graphs has no graphs"),
        (lambda g, y: (g, ["ring"] * 30), "every graph is of class ring"),
        (lambda g, y: (g, np.linspace(0, 1, 30)), "continuous"),
        (lambda g, y: (g, np.zeros((30, 2))), "every graph has the same targets"),
        (lambda g, y: (g, np.full((30, 2), 3)), "graph 0: target 1: 3 where 0, 1 or an empty cell belongs"),
        (lambda g, y: (g, np.eye(29)), "29 rows of labels for 30 graphs"),
        (
            lambda g, y: (GraphDataset.from_networkx(g, np.linspace(0, 1, 30)), None),
            "are numbers: give y, or take",
        ),
        (lambda g, y: (g, None), 'graph 0 has no class: give y, or set graph.graph\\["y"\\]'),
        (lambda g, y: ([as_pyg(one) for one in g], None), "graph 0 has no class: give y, or set data.y"),
        (lambda g, y: ([*g[:-1], nx.path_graph(3)], y), "graph 29: the node 0 has no attribute 'label'; others have"),
        (lambda g, y: (g, [*y[:-1], None]), r"y\[29\] is None, where a class belongs"),
        (lambda g, y: (g, np.array([*y[:-1], np.nan], object)), r"y\[29\] is nan, where a class belongs"),
        (lambda g, y: ([*g[:-1], without_label(g[-1])], y), "graph 29: the 'label' of the node .* is None"),
    ],
)
def test_wrong_input_is_a_value_error_in_one_sentence(families, make, reason):
    with pytest.raises(ValueError, match=reason):
        small().fit(*make(*families))


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"epochs": 0}, "epochs is at least 1"),
        ({"epochs": "many"}, "epochs is a whole number"),
        ({"pool": "best"}, "pool is one of tap"),
        ({"pool": "topk", "connectivity": 1.0}, "connectivity is a setting of pool 'tap'"),
        ({"ratios": 0.5}, "ratios is a list"),
        ({"features": "colours"}, "features is one of labels, degrees, log-degrees, attributes, all, not 'colours'"),
        ({"features": "attributes"}, "has no attribute 'attributes'; no node has"),
        ({"node_label": "lable"}, "the node 'node .' has no attribute 'lable'; no node has"),
        ({"node_label": None}, "node_label is a word or a list of words, not None"),
        ({"threads": 0}, "threads is at least 1"),
    ],
)
def test_wrong_settings_are_told_by_fit(families, params, reason):
    model = small(**params)
    with pytest.raises(ValueError, match=reason):
        model.fit(*families)


def test_a_label_is_hashable(families):
    graphs = [nx.path_graph(3) for _ in range(2)]
    for g in graphs:
        nx.set_node_attributes(g, [1], "label")
    with pytest.raises(ValueError, match="'label' is no category: unhashable type"):
        small().fit(graphs, [0, 1])


def test_graphs_without_what_the_model_reads(families, fitted):
    with pytest.raises(ValueError, match="the node 0 has no attribute 'label'"):
        fitted.predict([nx.path_graph(3)])


# ---- embeddings ----


@pytest.mark.parametrize("pool", ["tap", "sag", "none", "diff", "eigen", "haar"])
def test_embeddings_are_what_the_classifier_gets(families, pool):
    graphs, y = families
    model = small(epochs=1, pool=pool).fit(graphs, y)
    embedded = model.transform(graphs)
    network = model.model_.network
    assert embedded.shape == (30, network.classifier.hidden.in_features)
    assert len(model.get_feature_names_out()) == embedded.shape[1]
    with torch.inference_mode():
        probabilities = network.classifier(torch.from_numpy(embedded)).softmax(dim=1).double().numpy()
    np.testing.assert_allclose(probabilities, model.predict_proba(graphs), rtol=1e-5, atol=1e-6)


# ---- explanations ----


def test_an_explanation_speaks_of_the_user_s_nodes(families, fitted):
    graphs, _ = families
    for graph in graphs[:6]:
        found = fitted.explain(graph)
        assert found.prediction == fitted.predict([graph])[0]
        np.testing.assert_allclose([found.probabilities[c] for c in fitted.classes_], fitted.predict_proba([graph])[0])
        came_in = set(graph)
        for layer, ratio in zip(found.layers, (0.8, 0.6, 0.4), strict=True):
            assert {n.node for n in layer.nodes} == came_in
            assert len(layer.kept) == math.ceil(round(ratio * len(came_in), 9))
            assert min(n.score for n in layer.kept) >= max((n.score for n in layer.nodes if not n.kept), default=0)
            assert [n.score for n in layer.kept] == sorted((n.score for n in layer.kept), reverse=True)
            for n in layer.nodes:
                assert n.score == pytest.approx(n.local + n.global_ + n.connectivity, rel=1e-5)
            came_in = {n.node for n in layer.kept}
        first = {n.node: n.connectivity for n in found.layers[0].nodes}
        assert first == pytest.approx({node: 0.1 * d / len(graph) for node, d in graph.degree})


def test_an_explanation_prints_as_a_table(families, fitted):
    lines = str(fitted.explain(families[0][0])).splitlines()
    assert lines[0].startswith("prediction: ")
    assert "ring 0." in lines[0]
    assert lines[1].startswith("attribution by surrogate")
    assert lines[2].split() == ["node", "attribution", "kept"]
    pooling = next(i for i, line in enumerate(lines) if line.startswith("pooling layer 1: "))
    assert lines[pooling + 1].split() == ["node", "score", "local", "global", "connectivity"]
    assert lines[pooling + 2].lstrip().startswith("node ")
    kept = int(lines[pooling].split()[3])
    assert len({len(line) for line in lines[pooling + 1 : pooling + 2 + kept]}) == 1  # in columns


def test_a_large_graph_prints_short(fitted):
    graph = named(nx.path_graph(200), np.random.default_rng(0))
    text = str(fitted.explain(graph))
    assert len(text.splitlines()) < 70
    assert "… and 150 more" in text
    assert "… and 190 more nodes" in text


def test_other_pools_are_explained_by_their_score_or_without_one(families):
    graphs, y = families
    found = small(epochs=1, pool="topk").fit(graphs, y).explain(graphs[0])
    assert all(n.local is None for n in found.layers[0].nodes)
    assert "local" not in str(found)
    assert small(epochs=1, pool="none").fit(graphs, y).explain(graphs[0]).layers == ()
    merged = small(epochs=1, pool="diff").fit(graphs, y).explain(graphs[0])
    assert merged.layers == ()
    assert [n.node for n in merged.nodes] == list(graphs[0])
    assert all(n.kept is None for n in merged.nodes)


def test_nodes_of_pyg_and_of_data_sets_are_numbers(families):
    graphs, y = families
    model = small().fit([as_pyg(g) for g in graphs], y)
    nodes = {n.node for n in model.explain(as_pyg(graphs[0])).layers[0].nodes}
    assert nodes == set(range(len(graphs[0])))
    with pytest.raises(ValueError, match="one graph is explained at a time, not 30"):
        model.explain(GraphDataset.from_networkx(graphs, y))


@given(datasets(), st.data())
@settings(max_examples=15)
def test_any_data_set_is_learned_predicted_and_explained(dataset, data):
    y = data.draw(st.permutations(["a", "b"] * 3))[: len(dataset)]
    model = small(epochs=1, ratios=(0.5,))
    if len(set(y)) < 2:
        with pytest.raises(ValueError, match="nothing to tell apart"):
            model.fit(dataset, y)
        return
    model.fit(dataset, y)
    assert set(model.predict(dataset)) <= {"a", "b"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is unknown
        np.testing.assert_allclose(model.predict_proba([*dataset]), model.predict_proba(dataset), rtol=1e-5)
    for i in range(len(dataset)):
        (layer,) = model.explain(dataset[i]).layers
        assert len(layer.kept) == math.ceil(int(dataset.nodes_per_graph[i]) / 2)


# ---- one file ----


def test_a_saved_model_loads_and_predicts_the_same(families, fitted, tmp_path):
    graphs, y = families
    file = tmp_path / "model.safetensors"
    model = small(ratios=[0.5, 0.5], node_label="kind", early_stopping=True, random_state=np.random.RandomState(1))
    renamed = [g.copy() for g in graphs]
    for g in renamed:
        nx.set_node_attributes(g, nx.get_node_attributes(g, "label"), "kind")
    model.fit(renamed, y).save(file)
    again = TAPClassifier.load(file)
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.n_features_in_ == 3
    assert np.array_equal(again.predict_proba(renamed), model.predict_proba(renamed))
    assert again.explain(renamed[0]) == model.explain(renamed[0])
    assert again.get_params() == model.get_params() | {"ratios": (0.5, 0.5), "random_state": None}
    assert clone(again).set_params(random_state=0).fit(renamed, y).n_iter_ == 3


def test_tuples_and_numpy_numbers_stay_categories_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    graphs = [named(nx.path_graph(5), rng, (("a", 1), ("b", 2), np.int64(3), "3")) for _ in range(6)]
    model = small().fit(graphs, [0, 1] * 3)
    model.save(tmp_path / "model")
    again = TAPClassifier.load(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))


def test_what_json_has_no_word_for_is_pickled_not_saved(tmp_path):
    rng = np.random.default_rng(0)
    graphs = [named(nx.path_graph(5), rng, (frozenset({"a"}), frozenset({"b"}))) for _ in range(6)]
    with pytest.raises(ValueError, match="cannot hold frozenset.*one of the categories; pickle the estimator"):
        small().fit(graphs, [0, 1] * 3).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_stranger_s_file_is_a_model_or_refused(families, fitted, tmp_path):
    fitted.save(tmp_path / "good")
    with safe_open(tmp_path / "good", framework="pt") as stored:
        weights = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        about = json.loads(stored.metadata()["tapnet"])
    about.pop("checksum", None)  # a stranger can do without
    for key, value in {
        "estimator": [1],
        "classes": [["a"], ["b"], ["c"]],
        "categories": ["x", "y", "z", "w"],
        "features": "colours",
    }.items():
        save_file(weights, tmp_path / "bad", {"tapnet": json.dumps(about | {key: value})})
        with pytest.raises(ValueError, match="not a model that this version can use|features is 'labels'"):
            TAPClassifier.load(tmp_path / "bad").predict(families[0])
    (tmp_path / "bad").write_bytes(b"no model")
    with pytest.raises(DataError, match="not a model of tapnet"):
        TAPClassifier.load(tmp_path / "bad")


# ---- the package ----


def test_progress_is_shown_on_a_terminal_when_asked_for(families, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown = []
    for verbose in (False, True):
        reader, writer = os.openpty()
        with open(reader, "rb", 0) as screen, open(writer, "w") as terminal:  # noqa: PTH123 - they are no paths
            monkeypatch.setattr(sys, "stderr", terminal)
            small(verbose=verbose).fit(*families)
            print("the end", file=terminal, flush=True)
            shown.append("")
            while "the end" not in shown[-1]:
                shown[-1] += screen.read(1 << 16).decode(errors="replace")
    assert shown[0].strip() == "the end"
    assert "TAPClassifier" in shown[1]
    assert "3/3" in shown[1]
    assert capsys.readouterr().out == ""


def test_the_network_is_at_hand(fitted):
    assert isinstance(fitted.model_.network, TAPNet)
    assert not fitted.model_.network.training


def test_a_list_is_not_explained():
    graphs = [nx.cycle_graph(n) for n in range(4, 10)] + [nx.star_graph(n) for n in range(4, 10)]
    model = TAPClassifier(epochs=1, random_state=0).fit(graphs, ["ring"] * 6 + ["star"] * 6)
    with pytest.raises(DataError, match="one graph is explained at a time, not 2"):
        model.explain(graphs[:2])


def test_numbers_that_one_node_lacks_are_not_dropped_in_silence():
    graphs = [nx.cycle_graph(4 + i % 3) for i in range(16)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: [0.5 * node, 1.0] for node in graph}, "position")
    y = [i % 2 for i in range(16)]
    assert small(epochs=1, node_attributes="position").fit(graphs, y).model_.features == "attributes"
    with pytest.raises(DataError, match="has no attribute 'postion'; no node has; it has 'position'"):
        small(epochs=1, node_attributes="postion").fit(graphs, y)
    del graphs[3].nodes[1]["position"]
    with pytest.raises(DataError, match="graph 3: the node 1 has no attribute 'position'; others have"):
        small(epochs=1, node_attributes="position").fit(graphs, y)


def test_a_category_that_no_file_can_hold_is_refused_before_it_is_written(tmp_path):
    graphs = [nx.cycle_graph(4 + i % 3) for i in range(8)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: float("nan") if node else 1.0 for node in graph}, "label")
    model = small(epochs=1).fit(graphs, [i % 2 for i in range(8)])
    with pytest.raises(DataError, match="a model file cannot hold nan"):
        model.save(tmp_path / "nan.safetensors")
    assert not (tmp_path / "nan.safetensors").exists()


# ---- layers by name ----


def test_layers_of_other_packages_are_named_or_given(families, tmp_path):
    from torch_geometric.nn import SAGPooling

    named = small(pool="torch_geometric.nn:SAGPooling", conv="torch_geometric.nn:SGConv").fit(*families)
    given = small(pool=SAGPooling, conv="torch_geometric.nn:SGConv").fit(*families)
    assert clone(named).pool == "torch_geometric.nn:SAGPooling"
    np.testing.assert_array_equal(named.predict_proba(families[0]), given.predict_proba(families[0]))
    named.save(tmp_path / "model.safetensors")
    assert TAPClassifier.load(tmp_path / "model.safetensors").pool.endswith("sag_pool:SAGPooling")
    with pytest.raises(SettingError, match="no_such_package"):
        small(pool="no_such_package:Pool").fit(*families)


# ---- SMILES ----

SMILES = ["C" * n + "NO"[n % 2] for n in range(1, 25)]


@pytest.fixture
def chem():
    return pytest.importorskip("rdkit.Chem")


def test_smiles_are_molecules_however_they_come(chem):
    pandas = pytest.importorskip("pandas")
    y = [n % 2 for n in range(1, 25)]
    frame = pandas.DataFrame({"smiles": SMILES, "y": y}, index=range(5, 29))
    molecules = GraphDataset.from_smiles(SMILES)
    wanted = small().fit(molecules, y).predict_proba(molecules)
    for X in (SMILES, np.array(SMILES), np.array(SMILES, object)[:, None], frame["smiles"], frame[["smiles"]]):
        model = small().fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), wanted)
    assert cross_val_score(small(), SMILES, y, cv=3).shape == (3,)
    assert GridSearchCV(small(), {"lr": [0.01, 0.1]}, cv=2).fit(frame[["smiles"]], frame["y"]).predict(
        ["CCO"]
    ).shape == (1,)
    assert TAPRegressor(epochs=1).fit(SMILES, np.linspace(0, 1, 24)).predict(["CCO", "CCN"]).shape == (2,)
    with pytest.raises(DataError, match="DataFrame of shape .24, 2.; take its column of SMILES alone"):
        small().fit(frame, y)


def test_a_model_file_predicts_smiles(chem, tmp_path):
    model = small().fit(SMILES, [n % 2 for n in range(1, 25)])
    model.save(tmp_path / "model.safetensors")
    found = load_model(tmp_path / "model.safetensors").predict(["CCO", "CCN"])
    np.testing.assert_array_equal(found.probabilities, model.predict_proba(["CCO", "CCN"]))
    assert model.explain(["CCO"]).nodes


def test_a_smiles_that_is_not_valid_is_named(chem):
    with pytest.raises(DataError, match="1 of 3 SMILES are not valid: molecule 1 .C.:"):
        small().fit(["CCO", "C(", "CCN"], [0, 1, 0])
    with pytest.raises(DataError, match="no target is known; give y"):
        small().fit(SMILES)


def test_weights_that_do_not_fit_are_named(families):
    graphs, y = families
    with pytest.raises(SettingError, match=r"class_weight: 'foo' is no class; they are .*'ring'"):
        small(class_weight={"foo": 1}).fit(graphs, y)
    with pytest.raises(DataError, match=f"sample_weight is {len(y)} finite numbers.*, not 3$"):
        small().fit(graphs, y, sample_weight=[1.0, 1.0, 1.0])


# ---- several labels ----


@pytest.fixture(scope="module")
def labels(families):
    _, y = families
    rng = np.random.default_rng(1)
    whole = np.column_stack([np.array(y) == "ring", np.array(y) == "star", rng.integers(0, 2, len(y))]).astype(float)
    return whole, np.where(rng.random(whole.shape) < 0.2, np.nan, whole)


def test_several_labels_follow_scikit_learn_s_conventions(families, labels):
    graphs, whole = families[0], labels[0]
    model = small(epochs=40, dropout=0.0).fit(graphs, whole)
    said, chances = model.predict(graphs), model.predict_proba(graphs)
    assert (said.shape, chances.shape, model.classes_.tolist()) == (whole.shape, whole.shape, [0, 1, 2])
    np.testing.assert_array_equal(said, chances > 0.5)
    assert (said[:, :2] == whole[:, :2]).mean() > 0.8
    assert model.score(graphs, whole) == accuracy_score(whole, said)
    assert cross_val_score(small(), graphs, whole.astype(int), cv=3, scoring="roc_auc").shape == (3,)


def test_labels_may_have_gaps(families, labels, tmp_path):
    graphs, (whole, gaps) = families[0], labels
    model = small(early_stopping=True, validation_fraction=0.3).fit(graphs, gaps, sample_weight=np.ones(len(graphs)))
    right = (model.predict(graphs) == whole) | np.isnan(gaps)
    assert model.score(graphs, gaps) == right.all(axis=1).mean()
    assert np.isfinite(cross_val_score(small(), graphs, gaps, cv=KFold(3))).all()
    model.save(tmp_path / "model.safetensors")
    loaded = TAPClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(graphs), model.predict(graphs))
    assert loaded.classes_.tolist() == [0, 1, 2]
    assert model.explain(graphs[:1]).nodes


def test_labels_may_be_carried_by_a_data_set_or_named_by_a_table(families, labels):
    pandas = pytest.importorskip("pandas")
    graphs, gaps = families[0], labels[1]
    dataset = GraphDataset.from_networkx(graphs, gaps.tolist())
    assert small().fit(dataset).score(dataset) == small().fit(dataset, gaps).score(dataset, gaps)
    model = small().fit(graphs, pandas.DataFrame(gaps, columns=["ring", "star", "coin"]))
    assert model.model_.target_names == ("ring", "star", "coin")


def test_yes_and_no_of_a_label_count_the_same_as_with_weights_of_each_graph(families, labels):
    """One label that is not balanced: the weights of its two values are those of its graphs."""
    graphs, whole = families[0], labels[0]
    rare = whole[:, :1].astype(float)
    rare[1:4] = np.nan
    both = np.hstack([rare, rare])
    share = np.nanmean(rare)
    assert share != 0.5
    weight = np.nan_to_num(np.where(rare == 1, 0.5 / share, 0.5 / (1 - share))).ravel()
    weight[np.isnan(rare).ravel()] = 1.0  # so that their mean is 1; what is missing has no loss
    balanced = small(class_weight="balanced").fit(graphs, both).predict_proba(graphs)
    weighted = small().fit(graphs, both, sample_weight=weight).predict_proba(graphs)
    np.testing.assert_allclose(balanced, weighted, rtol=1e-4, atol=1e-6)
    assert not np.allclose(balanced, small().fit(graphs, both).predict_proba(graphs), atol=1e-4)


def test_what_several_labels_do_not_have(families, labels):
    graphs, whole = families[0], labels[0]
    with pytest.raises(SettingError, match="class_weight of several labels"):
        small(class_weight={0: 1.0, 1: 2.0}).fit(graphs, whole)
    with pytest.raises(DataError, match="the model has 3 labels"):
        small().fit(graphs, whole).score(graphs, whole[:, :2])


# ---- several categories ----


def of_many_kinds():
    graphs = [(nx.cycle_graph if i % 2 else nx.path_graph)(5 + i % 3) for i in range(12)]
    for i, graph in enumerate(graphs):
        nx.set_node_attributes(graph, {n: {"kind": "ab"[n % 2], "level": (n + i) % 3} for n in graph})
        nx.set_edge_attributes(graph, {e: {"order": e[0] % 2, "sort": "xy"[e[1] % 2]} for e in graph.edges})
    return graphs


def test_several_categories_of_nodes_and_edges(tmp_path):
    graphs, y = of_many_kinds(), [0, 1] * 6
    names = {"node_label": ["kind", "level"], "edge_label": ("order", "sort")}
    model = clone(small(epochs=2, conv="gine", random_state=0, **names)).fit(graphs, y)
    dataset = GraphDataset.from_networkx(graphs, y, **names)
    assert (model.n_features_in_, model.model_.card.edge_categories) == (5, dataset.edge_categories)
    again = small(epochs=2, conv="gine", random_state=0).fit(dataset, y)
    np.testing.assert_allclose(model.predict_proba(graphs), again.predict_proba(dataset), rtol=1e-6)
    model.save(tmp_path / "m.safetensors")
    loaded = TAPClassifier.load(tmp_path / "m.safetensors")
    assert (loaded.node_label, loaded.edge_label) == (("kind", "level"), ("order", "sort"))
    np.testing.assert_allclose(loaded.predict_proba(graphs), model.predict_proba(graphs), rtol=1e-6)


@pytest.mark.parametrize("names", [{"edge_label": "sotr"}, {"edge_label": ["order", "sotr"]}, {"edge_weight": "sotr"}])
def test_an_edge_attribute_that_is_named_and_not_there(names):
    with pytest.raises(
        DataError, match="graph 0: the edge from 0 to 1 has no attribute 'sotr'; it has 'order', 'sort'"
    ):
        small(epochs=1, node_label="kind", **names).fit(of_many_kinds(), [0, 1] * 6)


@pytest.mark.parametrize("features", ["all", "labels", "attributes", "degrees", "log-degrees", None])
@pytest.mark.parametrize("kind", ["NetworkX", "PyG", "GraphDataset"])
def test_features_that_graphs_lack_are_an_error_and_never_taken_from_elsewhere(features, kind):
    """Every pair of what was trained on and what is there: an answer, or one sentence."""

    def made(number, label, attributes):
        graph = nx.cycle_graph(4 + number % 3)
        for node in graph:
            graph.nodes[node].update({"label": (number + node) % 3} if label else {})
            graph.nodes[node].update({"attributes": [node / 2, 1.0 + number]} if attributes else {})
        return graph

    def given(graphs):
        if kind == "NetworkX":
            return graphs
        dataset = GraphDataset.from_networkx(graphs, [i % 2 for i in range(len(graphs))])
        return dataset if kind == "GraphDataset" else list(dataset)

    for trained in ((True, True), (True, False), (False, True)):
        if features in ("labels", "attributes") and not trained[features == "attributes"]:
            continue
        graphs = given([made(i, *trained) for i in range(6)])
        if kind == "PyG" and features == "attributes" and trained[0]:
            continue  # its x is what the data set has chosen
        model = TAPClassifier(epochs=1, features=features, random_state=0).fit(graphs, [0, 1] * 3)
        read = model.model_.features
        for there in ((True, True), (True, False), (False, True), (False, False)):
            others = given([made(i, *there) for i in range(2)])
            wanted = {"labels": there[0], "attributes": there[1], "all": all(there) or there == trained}
            predicted = False
            with contextlib.suppress(DataError):
                predicted = model.predict_proba(others).shape == (2, 2)
            assert predicted == wanted.get(read, True) or kind == "PyG", (read, trained, there)
