"""Attribution: what nodes and edges do for a prediction, against formulas, loops and planted causes."""

import itertools
import json
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch import nn

import tapnet.inference.attribution as attribution
from tapnet import GraphBatch, GraphDataset, TAPClassifier, TAPRegressor, load_dataset, load_model
from tapnet.errors import DataError, SettingError
from tapnet.inference.attribution import Probe, attribute_graphs
from tapnet.inference.attribution_fidelity import measure_fidelity
from tapnet.inference.attribution_summary import summarize_attributions
from tapnet.inference.model_file import CalibrationRecord
from tapnet.models.base import Outputs
from tapnet.models.registry import MODELS
from tapnet.nn.pool.registry import list_pools
from tests.helpers.graphs import datasets, write_graph
from tests.helpers.pages import make_model

METHODS = ("surrogate", "occlusion", "masking", "shapley", "gradients")
SYSTEMS = ["tapnet", "gin", "dgcnn", "diffpool", "gunet", "sagpool", "eigenpool", "haarpool", "pscn"]
POOLS = ["topk", "sort", "diff", "sag", "eigen", "haar", "none"]
CASES = [*((name, {}) for name in SYSTEMS), *(("tapnet", {"pool": pool}) for pool in POOLS)]
REGISTERED = [(name, {}) for name, spec in MODELS.items() if spec.build is not None]
REGISTERED += [("tapnet", {"pool": pool.name}) for pool in list_pools()]
EVERY_NETWORK = pytest.mark.parametrize(("model", "chosen"), CASES, ids=lambda value: str(value))


def probe_of(dataset, numbers, model="tapnet", **chosen):
    saved = make_model(dataset, model, **chosen)
    return Probe(saved.network, saved.encode(dataset.subset(numbers)))


def log_odds(network, x, edge_index, target):
    """Of one graph, by the formula, with PyG's arguments."""
    with torch.inference_mode():
        logits = network(GraphBatch.from_edge_index(x, edge_index))[0].double()
    others = [logits[c] for c in range(len(logits)) if c != target]
    return float(logits[target] - torch.stack(others).logsumexp(0))


def without(batch, nodes):
    """x and edge_index of one graph without some nodes, node by node."""
    left = [i for i in range(batch.num_nodes) if i not in nodes]
    number = {node: i for i, node in enumerate(left)}
    ends = [(number[u], number[v]) for u, v in batch.edge_index.T.tolist() if u in number and v in number]
    return batch.x[left], torch.tensor(ends, dtype=torch.int64).view(-1, 2).T


# ---- occlusion ----


@EVERY_NETWORK
def test_occlusion_is_the_loop_of_single_removals(model, chosen):
    mutag = load_dataset("MUTAG")
    smallest = int(mutag.nodes_per_graph.argmin())
    probe = probe_of(mutag, [smallest], model, **chosen)
    batch, target = probe.encoded.batch([0]), int(probe.target[0])
    value = log_odds(probe.network, batch.x, batch.edge_index, target)
    expected = [value - log_odds(probe.network, *without(batch, {i}), target) for i in range(batch.num_nodes)]
    found = probe.attributions("occlusion")
    np.testing.assert_allclose(found.nodes, expected, atol=1e-5)
    expected = []
    for u, v in found.edge_index.T.tolist():
        kept = [e for e in batch.edge_index.T.tolist() if e not in ([u, v], [v, u])]
        expected.append(value - log_odds(probe.network, batch.x, torch.tensor(kept).T, target))
    np.testing.assert_allclose(found.edges, expected, atol=1e-5)
    assert found.edge_index.T.tolist() == batch.edges_once.T.tolist()


def test_the_class_is_the_predicted_one_also_where_calibration_turns_it():
    mutag, model = load_dataset("MUTAG"), make_model(load_dataset("MUTAG"))
    curve = {"x": [0.0, 1.0], "y": [0.1, 0.2]}  # whatever the network says, the second class has at most 20 %
    turned = replace(model, card=model.card.replace(calibration=CalibrationRecord(method="isotonic", isotonic=[curve])))
    explained = [turned.explain(i) for i in range(4)]
    assert {one.prediction for one in explained} == {one.target for one in explained} == {"not mutagenic"}
    assert (attribute_graphs(turned, mutag, range(4)).target == 0).all()
    assert {row.target for row in summarize_attributions(turned, mutag.subset(range(8))).rows} == {"not mutagenic"}
    predicted = model.probabilities(model.encode(mutag))[:4].argmax(dim=1).numpy()
    assert (attribute_graphs(model, mutag, range(4)).target == predicted).all()


def test_the_size_of_batches_makes_no_difference(monkeypatch):
    mutag, model = load_dataset("MUTAG"), make_model(load_dataset("MUTAG"))
    together = [attribute_graphs(model, mutag, range(12), method) for method in ("occlusion", "masking")]
    monkeypatch.setattr(attribution, "NODES_AT_ONCE", 1)
    for number in (0, 7, 11):
        for method, all_of_them in zip(("occlusion", "masking"), together, strict=True):
            alone = attribute_graphs(model, mutag, [number], method)
            nodes, edges = (slice(*p[number : number + 2]) for p in (all_of_them.ptr, all_of_them.edge_ptr))
            np.testing.assert_allclose(alone.nodes, all_of_them.nodes[nodes], atol=1e-5)
            np.testing.assert_allclose(alone.edges, all_of_them.edges[edges], atol=1e-5)
            assert alone.edge_index.tolist() == all_of_them.edge_index[:, edges].tolist()


@given(datasets(edge_data=False, weights=True), st.sampled_from(METHODS))
@settings(max_examples=15, deadline=None)
def test_any_data_set_is_attributed(dataset, method):
    model = make_model(dataset, ratios=(0.5,), hidden_channels=8)
    if len(dataset.classes) < 2:
        return
    found = attribute_graphs(model, dataset, method=method)
    assert found.nodes.shape == found.errors.shape == (dataset.num_nodes,)
    assert found.edges.shape == (dataset.num_edges // 2,)
    assert np.isfinite(found.nodes).all()
    assert np.isfinite(found.edges).all()
    assert (found.edge_index[0] < found.edge_index[1]).all()


def test_models_that_read_edges_lose_what_edges_carry_with_them():
    mutag = load_dataset("MUTAG").with_edge_features()
    model = make_model(mutag, conv="gine")
    for method in METHODS:
        found = attribute_graphs(model, mutag, [0, 3], method)
        assert np.isfinite(found.nodes).all()
        assert np.abs(found.edges).max() > 0


# ---- Shapley values ----


@given(datasets(labels=True, edge_data=False), st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_exact_shapley_values_are_those_of_all_orders(dataset, seed):
    small = [g for g, n in enumerate(dataset.nodes_per_graph.tolist()) if n <= 5]
    if len(dataset.classes) < 2 or not small:
        return
    probe = probe_of(dataset, small[:1], ratios=(0.5,), hidden_channels=4)
    size, batch = probe.encoded.num_nodes, probe.encoded.batch([0])
    target = int(probe.target[0])
    empty = float(probe.empty_values(torch.tensor([0]))[0])

    def value(members):
        if not members:
            return empty
        return log_odds(probe.network, *without(batch, set(range(size)) - set(members)), target)

    values = {members: value(members) for r in range(size + 1) for members in itertools.combinations(range(size), r)}
    expected = np.zeros(size)
    for order in itertools.permutations(range(size)):
        for place, node in enumerate(order):
            before = tuple(sorted(order[:place]))
            expected[node] += values[tuple(sorted((*before, node)))] - values[before]
    found, errors = probe.shapley(0)
    np.testing.assert_allclose(found, expected / math.factorial(size), atol=1e-5)
    assert not errors.any()


@pytest.mark.parametrize(("model", "chosen"), REGISTERED, ids=str)
def test_shapley_values_sum_to_the_difference_from_the_baseline(model, chosen, monkeypatch):
    for name, value in (("COALITIONS", 1), ("FEWEST_PAIRS", 2), ("MOST_EXACT_NODES", 0)):
        monkeypatch.setattr(attribution, name, value)
    found = probe_of(load_dataset("MUTAG"), [0, 5], model, **chosen).attributions("shapley", edges=False)
    sums = np.add.reduceat(found.nodes, found.ptr[:-1])
    np.testing.assert_allclose(sums, found.value - found.baseline, atol=1e-4)
    assert (found.errors > 0).any()


def test_nodes_that_the_network_cannot_tell_apart_have_the_same_value():
    star = nx.star_graph(6)
    nx.set_node_attributes(star, {node: "ab"[node > 0] for node in star}, "label")
    rings = [nx.cycle_graph(n) for n in (3, 4, 5)]
    for ring in rings:
        nx.set_node_attributes(ring, {node: "ab"[node % 2] for node in ring}, "label")
    dataset = GraphDataset.from_networkx([star, *rings], [0, 1, 1, 1])
    for method in ("occlusion", "masking", "shapley"):  # the gradient of a maximum goes to one of equals
        leaves = probe_of(dataset, [0], pool="none").attributions(method).nodes[1:]
        np.testing.assert_allclose(leaves, leaves[0], atol=1e-5)


def test_sampled_shapley_values_are_near_the_exact_ones(monkeypatch):
    mutag = load_dataset("MUTAG")
    number = int((mutag.nodes_per_graph == 11).nonzero()[0])
    probe = probe_of(mutag, [number])
    exact, _ = probe.shapley(0)
    monkeypatch.setattr(attribution, "MOST_EXACT_NODES", 0)
    sampled, errors = probe.shapley(0)
    assert sampled.sum() == pytest.approx(exact.sum(), abs=1e-4)
    assert (np.abs(sampled - exact) < 5 * errors + 1e-5).all()
    assert np.abs(sampled - exact).max() < 0.2 * np.abs(exact).max()
    np.testing.assert_array_equal(sampled, probe.shapley(0)[0])  # the same orders every time


# ---- surrogate ----


@given(st.integers(0, 2**16), st.integers(2, 12))
@settings(max_examples=20, deadline=None)
def test_the_surrogate_finds_the_terms_of_a_value_that_is_a_sum(seed, size):
    rng = np.random.default_rng(seed)
    ends = np.asarray(nx.random_labeled_tree(size, seed=seed).edges, dtype=np.int64).T
    visible = rng.random((2000, size)) < 0.4
    node, joint = rng.normal(size=size), rng.normal(size=size - 1)
    value = 3 + visible @ node + (visible[:, ends[0]] & visible[:, ends[1]]) @ joint
    nodes, edges = attribution.fit_surrogate(visible, ends, value)
    np.testing.assert_allclose(edges, node[ends].sum(axis=0) + joint, atol=0.1)
    for i in range(size):
        mine = (ends == i).any(axis=0)
        own, around = node[i] + joint[mine].sum() / 2, (node[ends].sum(axis=0) + joint)[mine].mean()
        assert nodes[i] == pytest.approx((own + around) / 2, abs=0.1)
    few = attribution.fit_surrogate(visible[: size // 2], ends, value[: size // 2])  # fewer copies than terms
    assert all(np.isfinite(values).all() for values in few)


def test_the_surrogate_asks_for_a_bounded_number_of_copies():
    assert attribution.surrogate_copies(1, 0) == attribution.surrogate_copies(4, 3) == 64
    assert attribution.surrogate_copies(30, 32) == 6 * 62
    for terms in (10**4, 10**6):
        assert attribution.surrogate_copies(terms, terms) <= 2048


def test_the_surrogate_sees_features_of_a_node_and_edges_between_nodes():
    mutag = load_dataset("MUTAG")

    class Counting(nn.Module):
        task = "classification"

        def __init__(self, what):
            super().__init__()
            self.what = what

        def structure(self, dataset):
            return {}

        def micro_batches(self, graphs, sizes):
            return [graphs]

        def outputs(self, batch):
            if self.what == "edges":
                counted = torch.bincount(batch.graph[batch.edge_index[0]], minlength=batch.num_graphs).float() / 2
            else:
                x = batch.x if batch.x.dim() > 1 else nn.functional.one_hot(batch.x, 7).float()
                counted = torch.zeros(batch.num_graphs).index_add_(0, batch.graph, x[:, 1])
            return Outputs(torch.stack([counted, torch.zeros_like(counted)], dim=1))

    encoded = make_model(mutag).encode(mutag.subset([0]))
    nodes, edges = Probe(Counting("edges"), encoded, 0).surrogate(0)
    assert edges.min() > 0  # a visible end keeps an edge
    category, around = encoded.x.numpy(), Probe(Counting("nitrogen"), encoded, 0).surrogate(0)[0]
    assert around[category == 1].min() > around[category != 1].max()
    again = Probe(Counting("edges"), encoded, 0).surrogate(0)[0]
    np.testing.assert_array_equal(nodes, again)  # the same copies every time


# ---- gradients ----


@EVERY_NETWORK
def test_integrated_gradients_nearly_sum_to_the_difference(model, chosen):
    found = probe_of(load_dataset("MUTAG"), [0, 5], model, **chosen).attributions("gradients", edges=False)
    sums = np.add.reduceat(found.nodes, found.ptr[:-1])
    np.testing.assert_allclose(sums, found.value - found.baseline, atol=0.05 * np.abs(found.nodes).sum() + 1e-4)


def test_rows_of_floats_are_read_as_the_categories_were():
    mutag = load_dataset("MUTAG")
    for model in ("tapnet", "gin", "pscn"):
        probe = probe_of(mutag, [0, 9], model)
        zero = nn.Parameter(torch.zeros(1))  # masked by nothing: the same outputs
        data = make_model(mutag, model).encode(mutag.subset([0, 9]))
        rows = attribution.dense_rows(data.x, data.num_features) + zero
        prepared = {name: values.cut(torch.arange(2)) for name, values in probe.network.structure(data).items()}
        batch = data.batch([0, 1])
        found = probe.network.outputs(type(batch)(rows, batch.y, batch.ptr, batch.rowptr, batch.col, prepared=prepared))
        torch.testing.assert_close(found.logits, probe.outputs.clone(), rtol=1e-4, atol=1e-5)


def test_a_network_without_gradients_says_so():
    mutag = load_dataset("MUTAG")
    model = make_model(mutag)

    class Counting(type(model.network)):
        def outputs(self, batch):
            return Outputs(torch.stack([batch.nodes_per_graph, -batch.nodes_per_graph], dim=1).float())

    counting = type(model)(Counting(7, 2).eval(), model.card)
    with pytest.raises(SettingError, match="no gradient reaches the input of Counting"):
        attribute_graphs(counting, mutag, [0], "gradients")
    assert attribute_graphs(counting, mutag, [0], "occlusion").nodes == pytest.approx(2.0)


# ---- known truth ----


def planted(rng, cause):
    """A tree of a, b and c; with the cause, one with a nitro group: an N joined to two O."""
    tree = nx.random_labeled_tree(int(rng.integers(10, 18)), seed=int(rng.integers(1 << 30)))
    nx.set_node_attributes(tree, {node: "abc"[int(rng.integers(3))] for node in tree}, "label")
    tree = nx.relabel_nodes(tree, {node: f"node {node}" for node in tree})
    if cause:
        tree.add_node("N", label="N")
        tree.add_nodes_from(["O1", "O2"], label="O")
        tree.add_edges_from([("N", "O1"), ("N", "O2"), ("N", f"node {int(rng.integers(len(tree) - 3))}")])
    return tree


@pytest.fixture(scope="module")
def trained():
    """A model that knows the cause, and graphs that have it."""
    rng = np.random.default_rng(0)
    graphs = [planted(rng, i % 2) for i in range(100)]
    model = TAPClassifier(epochs=12, lr=0.005, dropout=0.0, random_state=0).fit(graphs, ["without", "with"] * 50)
    return model, [planted(rng, True) for _ in range(10)]


@pytest.mark.parametrize("method", METHODS)
def test_a_planted_cause_is_found_by_its_names(trained, method):
    model, graphs = trained
    scores, kept = [], []
    for graph in graphs[: 3 if method == "shapley" else 10]:
        found = model.explain(graph, method, target="with")
        assert [n.node for n in found.nodes] == list(graph)
        assert found.method == method
        truth = [n.node in ("N", "O1", "O2") for n in found.nodes]
        scores.append(roc_auc_score(truth, [n.attribution for n in found.nodes]))
        kept.append(roc_auc_score(truth, [n.kept for n in found.nodes]))
    assert np.mean(scores) > 0.9
    assert np.mean(scores) > np.mean(kept)


def test_fidelity_tells_a_true_explanation_from_a_false_one(trained):
    model, graphs = trained
    found = model.explain(graphs[0])
    assert found.prediction == "with"
    assert found.fidelity.beats_chance
    assert "beats chance" in found.fidelity.sentence
    assert [level.percent for level in found.fidelity.levels] == [10, 20, 30]
    for level in found.fidelity.levels:
        low, high = level.random.necessity_interval
        assert low <= level.random.necessity <= high
        assert level.nodes == math.ceil(level.percent * len(graphs[0]) / 100)
        assert level.necessity > level.random.necessity
        assert abs(level.necessity) <= 1
    probe = Probe(model.model_.network, model.model_.encode(model.model_.to_dataset([graphs[0]])))
    opposite = measure_fidelity(probe, -np.asarray([n.attribution for n in found.nodes]), "the probability")
    assert not opposite.beats_chance
    assert "does not beat chance" in opposite.sentence
    assert sum(level.necessity for level in opposite.levels) < sum(level.necessity for level in found.fidelity.levels)
    everything = measure_fidelity(probe, np.zeros(len(graphs[0])), "the probability")
    assert everything.levels[0].random == opposite.levels[0].random  # the same random nodes every time


def test_groups_of_connected_top_nodes_are_removed_at_once(trained):
    model, graphs = trained
    found = model.explain(graphs[0])
    piece = next(group for group in found.groups if "N" in group.nodes)
    assert piece.kind == "piece"
    smaller = graphs[0].copy()
    smaller.remove_nodes_from(piece.nodes)
    p, q = (model.predict_proba([g])[0] for g in (graphs[0], smaller))
    column = list(model.classes_).index("with")
    expected = np.log(p[column] / (1 - p[column])) - np.log(q[column] / (1 - q[column]))
    assert piece.attribution == pytest.approx(expected, rel=1e-3)


def test_a_summary_names_the_categories_that_carry_a_class(trained):
    model, graphs = trained
    table = summarize_attributions(model.model_, model.model_.to_dataset(graphs), target="with")
    best = max((row for row in table.rows), key=lambda row: row.attribution)
    assert best.name in ("N", "O")
    count = {row.name: (row.count, row.graphs) for row in table.rows}
    assert count["N"] == (10, 10)
    assert count["O"] == (20, 10)
    assert json.loads(json.dumps(table.to_dict()))["rows"][0].keys() == {
        *("target", "kind", "name", "attribution", "count", "graphs")
    }
    assert "with:" in str(table)


# ---- one explanation ----


def test_an_explanation_has_both_attributions_and_what_pooling_kept(run):
    model = load_model(run.folder)
    found = model.explain(3)
    assert found.graph.name == "MUTAG, graph 3"
    assert found.prediction in found.probabilities
    assert sum(found.probabilities.values()) == pytest.approx(1, rel=1e-5)
    assert [n.node for n in found.nodes] == list(range(len(found.nodes)))
    assert sum(n.kept for n in found.nodes) == sum(len(layer.kept) for layer in found.layers)
    assert found == model.explain(load_dataset("MUTAG")[3])
    text = found.report()
    assert "attribution by surrogate" in text
    assert found.fidelity.sentence in text
    names = {"prediction", "probabilities", "method", "nodes", "edges", "groups", "fidelity", "target", "unit"}
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert names <= values.keys()
    assert values["nodes"][0].keys() == {"node", "attribution", "kept", "error"}
    assert values["edges"][0].keys() == {"source", "target", "attribution"}
    assert {"levels", "beats_chance", "sentence", "p_value"} == values["fidelity"].keys()
    assert all(node["error"] is not None for node in model.explain(3, "shapley").to_dict()["nodes"])


def test_the_target_is_a_class_by_value_or_name(run):
    model = load_model(run.folder)
    first, second = (model.explain(3, target=name) for name in model.class_names)
    assert (first.target, second.target) == model.class_names
    np.testing.assert_allclose(
        [n.attribution for n in first.nodes], [-n.attribution for n in second.nodes], atol=1e-5
    )  # of two classes
    assert model.explain(3, target=model.classes[1]) == second
    assert model.explain(3).target == model.explain(3).prediction
    with pytest.raises(SettingError, match="mutagenic"):
        model.explain(3, target="mutagen")
    with pytest.raises(SettingError, match="occlusion"):
        model.explain(3, "occlude")


def test_the_names_of_a_file_are_those_of_its_nodes(run, tmp_path):
    graph = nx.relabel_nodes(nx.path_graph(4), dict(enumerate(["Ada", "Ben", "Cleo", "Dora"])))
    nx.set_node_attributes(graph, "C", "label")
    write_graph(graph, tmp_path / "people.json", edges="edges")
    model = load_model(run.folder)
    found = model.explain(tmp_path / "people.json")
    assert [n.node for n in found.nodes] == ["Ada", "Ben", "Cleo", "Dora"]
    assert [(e.source, e.target) for e in found.edges] == [("Ada", "Ben"), ("Ben", "Cleo"), ("Cleo", "Dora")]
    assert [n.attribution for n in found.nodes] == [n.attribution for n in model.explain(graph).nodes]


def test_networks_that_keep_no_nodes_are_explained_as_well():
    mutag = load_dataset("MUTAG")
    for model in ("gin", "diffpool"):
        found = make_model(mutag, model).explain(0, dataset="MUTAG")
        assert found.layers == ()
        assert {n.kept for n in found.nodes} == {None}
        assert found.to_dict()["nodes"][0]["kept"] is None


def test_an_answer_that_is_no_number_is_refused():
    mutag = load_dataset("MUTAG")
    model = make_model(mutag)
    next(model.network.parameters()).data.fill_(math.nan)
    with pytest.raises(DataError, match="not a number"):
        model.explain(0, dataset="MUTAG")


# ---- numbers and labels ----


def test_a_number_is_explained_in_its_own_units():
    graphs = [nx.path_graph(n) for n in range(4, 24)]
    model = TAPRegressor(epochs=5, lr=0.01, random_state=0).fit(graphs, [100.0 * n for n in range(4, 24)])
    found = model.explain(graphs[5])
    assert found.prediction == pytest.approx(model.predict([graphs[5]])[0], rel=1e-5)
    assert found.probabilities == {}
    assert found.unit == "target"
    assert found.value == pytest.approx(found.prediction)
    values = model.explain(graphs[5], "shapley")
    assert sum(n.attribution for n in values.nodes) == pytest.approx(values.value - values.baseline, rel=1e-4)
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert "target" in found.report()


def test_labels_are_explained_one_at_a_time():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "OCCO"] * 2
    table = {"oxygen": [float("O" in s) for s in smiles], "nitrogen": [float("N" in s) for s in smiles]}
    dataset = GraphDataset.from_smiles(smiles, table)
    assert dataset.task == "multilabel"
    model = make_model(dataset)
    model.network.set_task("multilabel", 2)
    for target in ("oxygen", "nitrogen"):
        found = model.explain("OCCN", target=target)
        assert found.target == target
        assert set(found.probabilities) == {"oxygen", "nitrogen"}
        assert isinstance(found.prediction, tuple)
        assert found.unit == f"log odds of {target}"
        assert [group.name for group in found.groups if group.kind == "functional group"] in (
            ["alcohol", "amine"],
            ["amine", "alcohol"],
        )
        assert json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(DataError, match="no valid SMILES"):
        model.explain("C(C")


@pytest.mark.parametrize("method", METHODS)
def test_every_edge_of_a_directed_graph_has_an_attribution_from_where_it_begins(method):
    graphs = [nx.DiGraph([(0, 1), (1, 0), (1, 2), (3, 2)]), nx.DiGraph([(0, 1), (2, 1)])] * 2
    dataset = GraphDataset.from_networkx(graphs, [0, 1, 0, 1], features="degrees", directed=True)
    found = attribute_graphs(make_model(dataset), dataset, method=method)
    for i, graph in enumerate(graphs):
        edges = slice(found.edge_ptr[i], found.edge_ptr[i + 1])
        assert sorted(map(tuple, found.edge_index[:, edges].T.tolist())) == sorted(graph.edges)
    assert np.isfinite(found.edges).all()
    assert len(found.edges) == sum(graph.number_of_edges() for graph in graphs)
