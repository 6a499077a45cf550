"""Explanations: what each pooling layer kept of a graph."""

from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

from tapnet import GraphDataset, TAPNet, load_dataset, load_model
from tapnet.errors import DataError, DatasetNotFoundError, SettingError
from tapnet.explorer.load import load_explorer
from tapnet.explorer.views import Choice
from tapnet.inference.attribution_summary import summarize_attributions
from tapnet.inference.explain import explain
from tapnet.inference.explain_graph import explain_graph
from tapnet.inference.training_data import load_graphs
from tapnet.nn.pool.select import SelectPooling, kept_nodes
from tests.helpers.graphs import datasets
from tests.helpers.pages import make_model


@given(datasets(labels=True))
def test_each_layer_keeps_the_best_of_what_the_layer_before_it_kept(dataset):
    torch.manual_seed(0)
    network = TAPNet(dataset.num_features, 2).eval()
    explanation = explain(network, dataset.batch([0]))
    came = np.arange(int(dataset.nodes_per_graph[0]))
    for layer, ratio in zip(explanation.layers, (0.8, 0.6, 0.4), strict=True):
        assert layer.nodes.tolist() == came.tolist()
        assert layer.kept.sum() == int(kept_nodes(ratio, torch.tensor([len(came)])))
        if not layer.kept.all():
            assert layer.score[layer.kept].min() >= layer.score[~layer.kept].max()
        np.testing.assert_allclose(layer.local + layer.global_ + layer.connectivity, layer.score, rtol=1e-5, atol=1e-6)
        came = came[layer.kept]
    expected = network(dataset.batch([0]))[0].softmax(0)
    np.testing.assert_allclose(explanation.probabilities, expected.detach().numpy(), rtol=1e-5)


def test_a_layer_that_merges_nodes_has_none_to_show():
    mutag = load_dataset("MUTAG")
    with pytest.raises(SettingError, match="merges nodes"):
        explain(TAPNet(7, 2, pool="diff", mean_nodes=18.0).eval(), mutag.batch([0]))


# ---- one graph by a stored model ----


def test_a_graph_is_found_by_number_or_given_as_an_object(run):
    model = load_model(run.folder)
    by_number = explain_graph(model, 3)
    assert (by_number.name, by_number.stem, by_number.file) == ("MUTAG, graph 3", "MUTAG-3", None)
    assert by_number.true_class in model.class_names
    assert by_number.predicted in str(by_number)
    assert str(explain_graph(model, "3")) == str(by_number)
    assert by_number.edges.shape[0] == 2
    assert by_number.category.max() < len(by_number.category_names)
    given = explain_graph(model, load_dataset("MUTAG")[3])
    np.testing.assert_array_equal(given.category, by_number.category)
    np.testing.assert_allclose(given.explanation.probabilities, by_number.explanation.probabilities)
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, "C", "label")
    assert explain_graph(model, graph).true_class is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_data_set_by_path_is_read_as_the_training_data_were(tmp_path):
    folder = tmp_path / "M"
    folder.mkdir()
    for number in range(8):
        np.save(folder / f"m{number}.npy", np.corrcoef(np.random.default_rng(number).normal(size=(6, 9))))
    lines = [f"m{number},{number % 2},{number / 3}" for number in range(8)]
    (folder / "targets.csv").write_text("\n".join(["file,ill,age", *lines]))
    dataset = load_dataset(folder, target="ill", threshold=0.3)
    model = make_model(dataset)
    assert load_graphs(model, folder).checksum == dataset.checksum
    assert load_explorer(model, str(folder)).data.checksum == dataset.checksum
    edges = dataset.batch([3]).edges_once.numpy()
    by_number, by_file = explain_graph(model, 3, folder), explain_graph(model, folder / "m3.npy")
    np.testing.assert_array_equal(by_number.edges, edges)
    np.testing.assert_array_equal(by_file.edges, edges)
    assert by_number.true_class == "1"
    (folder / "targets.csv").write_text("\n".join(["file,site,age", *lines]))  # graphs with other targets, or none
    assert explain_graph(model, 3, folder).true_class is None
    assert summarize_attributions(model, folder).rows
    (folder / "m3.npy").write_bytes(b"no matrix")
    with pytest.raises(DataError, match=r"m3\.npy"):
        load_graphs(model, folder)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("named_by", ["matrix", "table", "both", "nothing"])
def test_nodes_of_matrices_have_the_names_of_their_files(tmp_path, named_by):
    folder, regions = tmp_path / "brains", ["insula", "cuneus", "uncus", "fornix", "pons", "vermis"]
    folder.mkdir()
    for number in range(4):
        order = np.random.default_rng(number).permutation(6)
        names = [regions[i] for i in order]
        matrix = np.corrcoef(np.random.default_rng(number).normal(size=(6, 9)))
        if named_by in ("matrix", "both"):
            rows = [[name, *map(str, row)] for name, row in zip(names, matrix, strict=True)]
            lines = [",".join(row) for row in (["", *names], *rows)]
            (folder / f"s{number}.csv").write_text("\n".join(lines))
        else:
            np.save(folder / f"s{number}.npy", matrix)
    if named_by in ("table", "both"):
        (folder / "nodes.csv").write_text("region,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate(regions)))
    (folder / "labels.csv").write_text("graph,class\n" + "".join(f"s{i},{i % 2}\n" for i in range(4)))
    dataset = load_dataset(folder)
    model = make_model(dataset)
    expected = regions if named_by == "table" else list(range(6))
    if named_by in ("matrix", "both"):
        expected = [regions[i] for i in np.random.default_rng(2).permutation(6)]
    file = next(folder.glob("s2.*"))
    for found in (model.explain(2, dataset=folder), model.explain(file)):
        assert [node.node for node in found.nodes] == expected
        assert {edge.source for edge in found.edges} <= set(expected)
        assert {vote.node for vote in found.layers[0].nodes} == set(expected)
        assert [row["node"] for row in found.to_dict()["nodes"]] == expected
    explorer = load_explorer(model, str(folder))
    assert explorer.graph(2, Choice())["nodes"] == list(map(str, expected))
    assert explorer.names.search("vermis")["graphs"] == ([] if named_by == "nothing" else [0, 1, 2, 3])


def test_a_molecule_is_found_by_its_name(tmp_path):
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    table = tmp_path / "drugs.csv"
    rows = [("ethanol", "CCO"), ("benzene", "c1ccccc1"), ("amine", "CCN"), ("amine", "CCCN")]
    table.write_text("name,smiles,y\n" + "".join(f"{name},{smiles},{i % 2}\n" for i, (name, smiles) in enumerate(rows)))
    model = make_model(load_dataset(table))
    found = explain_graph(model, "benzene", table)
    assert found.smiles == "c1ccccc1"
    assert "graph 1 (benzene)" in str(found)
    with pytest.raises(DataError, match="2, 3"):
        explain_graph(model, "amine", table)


@pytest.mark.parametrize("method", ["surrogate", "shapley", "gradients"])
def test_a_molecule_is_explained_alike_however_it_is_written_and_by_its_own_numbers(method):
    chem = pytest.importorskip("rdkit.Chem", reason="molecules need RDKit: pip install rdkit")
    model = make_model(GraphDataset.from_smiles(["CCO", "c1ccccc1N", "CC(=O)[O-]", "CCl"], [0, 1, 0, 1]))
    usual = chem.MolFromSmiles("CC(C)(O)c1ccc(N)cc1Cl")
    expected = model.explain(chem.MolToSmiles(usual), method)
    for seed in range(4):
        text = chem.MolToRandomSmilesVect(usual, 1, randomSeed=seed)[0]
        found, written = model.explain(text, method), chem.MolFromSmiles(text)
        assert [node.node for node in found.nodes] == list(range(12))
        elements = [found.graph.category_names[i] for i in found.graph.category]
        assert elements == [atom.GetSymbol() for atom in written.GetAtoms()]
        match = written.GetSubstructMatch(chem.MolFromSmiles(chem.MolToSmiles(usual)))
        symmetric = chem.CanonicalRankAtoms(written, breakTies=False)
        for atom, number in enumerate(match):
            assert found.nodes[number].attribution == pytest.approx(expected.nodes[atom].attribution, abs=1e-5) or (
                list(symmetric).count(symmetric[number]) > 1  # which of two like atoms a layer keeps
            )
        for edge, ends in zip(found.edges, found.graph.edges.T.tolist(), strict=True):
            assert [edge.source, edge.target] == ends
            assert written.GetBondBetweenAtoms(*ends) is not None
        rings = [group.nodes for group in found.groups if group.kind == "ring"]
        assert [set(ring) for ring in rings] == [set(ring) for ring in written.GetRingInfo().AtomRings()]
        same = pytest.approx([group.attribution for group in expected.groups], abs=1e-5)
        assert [group.attribution for group in found.groups] == same
        ways = (GraphDataset.from_smiles([way]) for way in (text, chem.MolToSmiles(usual)))
        ours, theirs = ({row.name: row.attribution for row in summarize_attributions(model, d).rows} for d in ways)
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_what_cannot_be_found_is_said_without_a_flag(run):
    model = load_model(run.folder)
    with pytest.raises(DataError, match="graphs 0 to 187"):
        explain_graph(model, 188)
    with pytest.raises(DataError, match="no graph of that name"):
        explain_graph(model, "nothing.json")
    elsewhere = model.card.trial.replace(dataset="ELSEWHERE")
    moved = type(model)(model.network, model.card.replace(trial=elsewhere))
    with pytest.raises(DatasetNotFoundError, match="dataset=NAME") as error:
        explain_graph(moved, 0)
    assert "--" not in str(error.value)


def test_a_system_that_keeps_no_nodes_has_nothing_to_explain(run):
    model = load_model(run.folder)
    network = torch.nn.Identity()
    network.reads_edges = False
    with pytest.raises(SettingError, match="keeps no nodes"):
        explain_graph(type(model)(network, model.card), 0)


# ---- every pooling layer and every network ----


class ByParity(SelectPooling):
    """A layer whose score has parts of its own."""

    def score(self, h, batch):
        return torch.arange(len(h), device=h.device).to(h.dtype) % 2

    def forward(self, x, batch, /):
        pooled = super().forward(x, batch)
        return pooled._replace(parts={"parity": pooled.scores, "nodes": torch.zeros_like(pooled.scores)})


def test_the_parts_of_a_users_own_layer_are_there_by_name():
    layers = explain(TAPNet(7, 2, pool=ByParity).eval(), load_dataset("MUTAG").batch([0])).layers
    assert len(layers) == 3
    for layer in layers:
        assert set(layer.parts) == {"parity", "nodes"}
        np.testing.assert_array_equal(layer.parts["parity"], layer.score)
        assert layer.local is layer.global_ is layer.connectivity is None


@pytest.mark.parametrize("model", ["gunet", "sagpool"])
def test_other_networks_whose_layers_keep_nodes_are_explained(model):
    mutag = load_dataset("MUTAG")
    network = make_model(mutag, model).network
    batch = mutag.batch([5])
    explanation = explain(network, batch)
    assert len(explanation.layers) == len(network.pools)
    came = np.arange(batch.num_nodes)
    for layer in explanation.layers:
        np.testing.assert_array_equal(layer.nodes, came)
        came = came[layer.kept]
    np.testing.assert_allclose(explanation.probabilities, network(batch)[0].softmax(0).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize(("model", "words"), [("gin", "keeps no nodes"), ("haarpool", "HaarPool merges nodes")])
def test_networks_without_kept_nodes_say_why(model, words):
    mutag = load_dataset("MUTAG")
    with pytest.raises(SettingError, match=words):
        explain(make_model(mutag, model).network, mutag.batch([0]))


def test_threads_that_share_a_network_do_not_see_each_others_layers():
    mutag = load_dataset("MUTAG")
    network = TAPNet(7, 2).eval()
    alone = [explain(network, mutag.batch([i])).layers for i in range(20)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda i: explain(network, mutag.batch([i])).layers, range(20)))
    for expected, found in zip(alone, together, strict=True):
        assert [layer.nodes.tolist() for layer in found] == [layer.nodes.tolist() for layer in expected]
