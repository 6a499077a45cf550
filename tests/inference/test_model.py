"""A loaded model: graphs of every kind, what its card says, and files that are refused."""

import json
import shutil

import networkx as nx
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import save_file

import tapnet
from tapnet.errors import DataError, TapnetError
from tapnet.inference.model_file import ModelCard, read_model
from tapnet.inference.predict import predict_inputs
from tests.helpers.graphs import write_graph


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


@pytest.fixture(scope="module")
def folder(mutag, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    tapnet.cross_validate(mutag, epochs=1, folds=3, only_folds=[0], jobs=1, hidden_channels=8, out=out, final=True)
    return out


@pytest.fixture(scope="module")
def model(folder):
    return tapnet.load_model(folder)


def test_graphs_of_every_kind_get_the_same_answers(model, mutag):
    few = mutag[:5]
    expected = model.predict(few)
    assert expected.probabilities.shape == (5, 2)
    assert expected.graphs == tuple(f"graph {i}" for i in range(5))
    assert expected.classes == tuple(model.classes[i] for i in expected.probabilities.argmax(axis=1))
    for others in ([few.to_networkx(i) for i in range(5)], [few[i] for i in range(5)]):
        np.testing.assert_allclose(model.predict(others).probabilities, expected.probabilities, rtol=1e-5)
    by_name = model.predict("MUTAG")
    np.testing.assert_allclose(by_name.probabilities[:5], expected.probabilities, rtol=1e-5)
    assert by_name.graphs[:2] == ("0", "1")
    assert len(by_name) == 188


def test_a_file_that_cannot_be_read_ends_a_prediction_but_not_a_stream(model, mutag, tmp_path):
    for i in range(3):
        write_graph(mutag.to_networkx(i), tmp_path / f"{i}.json")
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(DataError, match=r"bad\.json"):
        model.predict(tmp_path)
    errors = []
    groups = list(predict_inputs(model, [str(tmp_path)], on_error=errors.append))
    assert [name for group in groups for name in group.graphs] == ["0.json", "1.json", "2.json"]
    assert ["bad.json" in str(error) for error in errors] == [True]
    with pytest.warns(UserWarning, match=r"bad\.json"):
        list(predict_inputs(model, [str(tmp_path)]))


def test_unseen_categories_are_a_warning_and_foreign_graphs_an_error(model, tmp_path):
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, "unobtainium", "label")
    write_graph(graph, tmp_path / "alien.json")
    for given in ([graph], tmp_path / "alien.json"):
        with pytest.raises(DataError, match=r"1 graph shares no node category.*unobtainium.*allow_unknown"):
            model.predict(given)
        with pytest.warns(UserWarning, match="no node category"):
            found = model.predict(given, allow_unknown=True)
        assert found.classes[0] in model.classes
    with pytest.warns(UserWarning, match="no node category"):
        assert [names for names, _ in predict_inputs(model, [str(tmp_path)])] == [[]]
    graph.nodes[0]["label"] = model.category_names[0]
    with pytest.warns(UserWarning, match=r"1 graph has node categories .*unobtainium"):
        assert model.predict([graph]).classes[0] in model.classes


@pytest.mark.parametrize("graphs", [[], nx.path_graph(3), [nx.Graph()], [5]])
def test_what_is_no_list_of_graphs_is_refused(model, graphs):
    with pytest.raises(TapnetError):
        model.predict(graphs)


def test_the_card_says_the_same_after_a_file(model, mutag, tmp_path):
    model.save(tmp_path / "copy.safetensors")
    card = tapnet.load_model(tmp_path / "copy.safetensors").card
    assert card == model.card
    assert (card.trial.dataset, card.trial.data, card.trial.fold) == ("MUTAG", mutag.checksum, None)
    assert card.shape.in_channels == len(card.categories) == 7
    assert ModelCard.from_dict({**card.to_dict(), "of_a_newer_version": 1}).classes == card.classes


def described(folder, tmp_path, change):
    with safe_open(folder / "final.safetensors", framework="pt") as stored:
        weights = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        said = json.loads(stored.metadata()["tapnet"])
    del said["checksum"]
    change(said)
    save_file(weights, tmp_path / "changed.safetensors", {"tapnet": json.dumps(said)})
    return tmp_path / "changed.safetensors"


def test_what_is_only_of_interest_does_not_make_a_model_useless(folder, tmp_path):
    file = described(folder, tmp_path, lambda said: said.update(cross_validation=[1], final={"graphs": "many"}))
    card = tapnet.load_model(file).card
    assert (card.cross_validation, card.final) == (None, None)


def test_a_pooling_layer_that_is_not_known_is_refused_and_not_imported(folder, tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    file = described(folder, tmp_path, lambda said: said["trial"]["settings"].update(pool="stranger:Pool"))
    with pytest.raises(DataError, match="stranger:Pool"):
        tapnet.load_model(file)


def test_a_folder_without_a_final_model_names_what_there_is(folder, tmp_path):
    shutil.copytree(folder / "models", tmp_path / "run" / "models")
    with pytest.raises(DataError, match="models"):
        tapnet.load_model(tmp_path / "run")
    with pytest.raises(DataError, match="no such file"):
        read_model(tmp_path / "nothing.safetensors")


def test_an_answer_that_is_no_number_is_refused(folder, mutag):
    broken = tapnet.load_model(folder)
    broken.network.classifier.out.bias.data.fill_(float("nan"))
    with pytest.raises(DataError, match="graph 0: .* not a number"):
        broken.predict(mutag[:3])


def test_a_model_that_reads_edges_knows_those_of_networkx_by_the_names_of_its_files(tmp_path):
    folder = tmp_path / "threads"
    folder.mkdir()
    for i in range(6):
        graph = nx.cycle_graph(4 + i) if i % 2 else nx.star_graph(3 + i)
        nx.set_node_attributes(graph, {n: "ab"[n % 2] for n in graph}, "role")
        nx.set_edge_attributes(graph, {e: ["reply", "quote"][e[0] % 2] for e in graph.edges}, "kind")
        nx.set_edge_attributes(graph, {e: 0.5 * e[1] for e in graph.edges}, "delay")
        write_graph(graph, folder / f"g{i}.json")
    (folder / "labels.csv").write_text("graph,class\n" + "".join(f"g{i},{'sc'[i % 2]}\n" for i in range(6)))
    data = tapnet.load_dataset(folder)
    result = tapnet.cross_validate(data, epochs=1, folds=3, jobs=1, conv="gine", out=tmp_path / "run", final=True)
    model = tapnet.load_model(result.folder)
    assert (data.edge_label_attribute, data.edge_attribute_names) == ("kind", ("delay",))
    expected = model.predict(data).probabilities
    graphs = [data.to_networkx(i) for i in range(6)]  # where they are called label and attributes
    for others in (graphs, tapnet.GraphDataset.from_networkx(graphs)):
        np.testing.assert_allclose(model.predict(others).probabilities, expected, rtol=1e-5)
