"""Directed graphs in files: directions are kept where that is asked for, and else a line says that they are not."""

import json
import warnings

import networkx as nx
import numpy as np
import pytest
import torch

from tapnet import GraphDataset, TAPClassifier, cross_validate, load_dataset, load_model
from tapnet.data.checks import graph_codes
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.inference import predict
from tapnet.io.tu import write_tu

GRAPHS = [
    nx.DiGraph([(0, 1), (1, 2), (2, 1), (3, 1)]),
    nx.DiGraph([(1, 0), (0, 2), (2, 3), (3, 2)]),
    nx.DiGraph([(0, 1), (1, 0), (2, 1)]),
    nx.DiGraph([(2, 0), (0, 2), (1, 2)]),
]


def edges_of(dataset):
    return [sorted(map(tuple, dataset[i].edge_index.T.tolist())) for i in range(len(dataset))]


EDGES = [sorted((sorted(g).index(u), sorted(g).index(v)) for u, v in g.edges) for g in GRAPHS]


def write(kind, folder):
    """The graphs in files of some kind."""
    folder.mkdir()
    ordered = [nx.DiGraph() for _ in GRAPHS]
    for graph, source in zip(ordered, GRAPHS, strict=True):
        graph.add_nodes_from(sorted(source))
        graph.add_edges_from(source.edges)
    for i, graph in enumerate(ordered):
        if kind == "graphml":
            nx.write_graphml(graph, folder / f"{i}.graphml")
        elif kind == "json":
            (folder / f"{i}.json").write_text(json.dumps(nx.node_link_data(graph, edges="links")))
        elif kind == "matrices":
            np.save(folder / f"{i}.npy", nx.to_numpy_array(graph))
    names = [f"{i}.{'npy' if kind == 'matrices' else kind}" for i in range(len(ordered))]
    if kind == "tu":
        folder.rmdir()
        write_tu(GraphDataset.from_networkx(ordered, [0, 1, 0, 1], directed=True), folder)
    elif kind == "text":
        lines = [str(len(ordered))]
        for i, graph in enumerate(ordered):
            lines.append(f"{len(graph)} {i % 2}")
            lines += [" ".join(map(str, [0, graph.out_degree(n), *graph.successors(n)])) for n in graph]
        (folder / f"{folder.name}.txt").write_text("\n".join(lines))
    else:
        rows = [f"{name},{i % 2}" for i, name in enumerate(names)]
        (folder / "labels.csv").write_text("\n".join(["graph,class", *rows]))
    return folder


@pytest.mark.parametrize("kind", ["graphml", "json", "matrices", "tu", "text"])
def test_every_format_keeps_directions_where_asked(tmp_path, kind):
    folder = write(kind, tmp_path / "graphs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = load_dataset(folder, directed=True)
    assert dataset.directed
    assert edges_of(dataset) == EDGES
    assert "edges=14" in repr(dataset)
    with pytest.warns(UserWarning, match=r"one direction .*counts for both"):
        undirected = load_dataset(folder)
    assert not undirected.directed
    assert all(data.is_undirected() for data in undirected)
    assert undirected.checksum != dataset.checksum


def test_edges_of_undirected_graphs_go_both_ways(tmp_path):
    (tmp_path / "set").mkdir()
    graphs = [nx.path_graph(3), nx.DiGraph([(0, 1), (1, 2)])]
    for i, graph in enumerate(graphs):
        nx.set_edge_attributes(graph, {edge: e + 1 for e, edge in enumerate(graph.edges)}, "weight")
        nx.write_graphml(graph, tmp_path / "set" / f"{i}.graphml")
    dataset = load_dataset(tmp_path / "set", directed=True)
    assert edges_of(dataset) == [[(0, 1), (1, 0), (1, 2), (2, 1)], [(0, 1), (1, 2)]]
    assert torch.equal(dataset[0].edge_weight, torch.tensor([1.0, 1.0, 2.0, 2.0]))
    assert edges_of(GraphDataset.from_networkx(graphs, [0, 1], directed=True)) == edges_of(dataset)


def test_a_file_of_undirected_graphs_says_nothing_of_directions(tmp_path):
    (tmp_path / "set").mkdir()
    nx.write_graphml(nx.path_graph(3), tmp_path / "set" / "a.graphml")
    nx.write_graphml(nx.path_graph(3).to_directed(), tmp_path / "set" / "b.graphml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_dataset(tmp_path / "set")


def test_copies_are_told_apart_by_directions():
    here, there = nx.DiGraph([(0, 1), (0, 2)]), nx.DiGraph([(0, 1), (3, 2)])
    here.add_node(3)
    other_order = nx.relabel_nodes(here, {0: 3, 3: 0})
    a, b, c = graph_codes(GraphDataset.from_networkx([here, there, other_order], [0, 1, 0], directed=True))
    assert a != b
    assert a == c


def test_systems_for_undirected_graphs_are_refused(tmp_path):
    dataset = GraphDataset.from_networkx(GRAPHS * 5, [0, 1, 0, 1] * 5, directed=True)
    for model, pool in (
        ("diffpool", None),
        ("wl", None),
        ("haarpool", None),
        ("tapnet", "graclus"),
        ("tapnet", "asap"),
    ):
        with pytest.raises(SettingError, match=r"undirected graphs"):
            cross_validate(dataset, model, pool=pool, folds=3, epochs=1, jobs=1)
    (tmp_path / "m.csv").write_text("smiles,y\nCCO,0.5\nCC,0.7\n")
    with pytest.raises(SettingError, match="molecules"):
        load_dataset(tmp_path / "m.csv", directed=True)


def test_a_model_remembers_directions(tmp_path):
    graphs, y = GRAPHS * 5, ["a", "b"] * 10
    model = TAPClassifier(epochs=1, random_state=0, directed=True).fit(graphs, y)
    file = tmp_path / "model.safetensors"
    model.save(file)
    loaded = load_model(file)
    assert loaded.card.directed
    np.testing.assert_allclose(loaded.predict(graphs).probabilities, model.predict_proba(graphs), rtol=1e-6)
    assert TAPClassifier.load(file).directed
    folder = write("graphml", tmp_path / "graphs")
    np.testing.assert_allclose(
        loaded.predict(folder).probabilities,
        model.predict_proba([nx.read_graphml(folder / f"{i}.graphml") for i in range(4)]),
        rtol=1e-6,
    )
    with pytest.raises(DataError, match="directed"):
        loaded.predict(GraphDataset.from_networkx(graphs, y))
    with pytest.warns(UserWarning, match="counts for both"):
        TAPClassifier(epochs=1).fit(graphs, y)


@pytest.mark.parametrize("directed", [False, True])
def test_a_model_of_undirected_graphs_says_once_that_directions_are_not_read(tmp_path, monkeypatch, directed):
    monkeypatch.setattr(predict, "GRAPHS_AT_ONCE", 2)
    folder = write("graphml", tmp_path / "graphs")
    nx.write_graphml(nx.path_graph(3), folder / "4.graphml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        TAPClassifier(epochs=1, random_state=0, directed=directed).fit(GRAPHS * 5, ["a", "b"] * 10).save(
            tmp_path / "model.safetensors"
        )
    model = load_model(tmp_path / "model.safetensors")
    files = [str(folder / f"{i}.graphml") for i in range(5)]
    for use, count in (
        (lambda: model.predict(folder), "4 of 5"),
        (lambda: list(predict.predict_inputs(model, files)), "4 of 5"),
        (lambda: model.predict(GRAPHS), "4 of 4"),
        (lambda: model.predict(files[4]), None),
        (lambda: model.explain(files[0]), files[0]),
        (lambda: model.explain(GRAPHS[0]), "direct"),
        (lambda: model.explain(files[4]), None),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            use()
        said = [str(note.message) for note in found if note.category is DataNote and "direct" in str(note.message)]
        assert len(said) == (count is not None and not directed)
        assert all(count in note for note in said)
        assert all(files[0] in note for note in said if count == "4 of 5")


def test_a_run_is_trained_and_predicts_with_directions(tmp_path):
    folder = write("tu", tmp_path / "graphs")
    dataset = load_dataset(folder, directed=True)
    large = GraphDataset.from_pyg([dataset[i % 4] for i in range(24)], features="degrees", directed=True)
    write_tu(large, tmp_path / "large")
    run = cross_validate(
        tmp_path / "large", folds=3, epochs=1, jobs=1, out=tmp_path / "run", reading={"directed": True}, final=True
    )
    assert len(run.scores) == 3
    model = load_model(tmp_path / "run")
    assert model.card.directed
    assert len(model.predict(tmp_path / "large").classes) == 24
    for method in ("surrogate", "occlusion", "gradients"):
        found = model.explain(0, method)
        assert {(edge.source, edge.target) for edge in found.edges} == set(edges_of(large)[0])
