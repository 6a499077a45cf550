"""DataFrames with a column of graphs."""

import networkx as nx
import pytest
import torch
from torch_geometric.utils import from_networkx

from tapnet import GraphDataset, compare, cross_validate, load_dataset, tune
from tapnet.errors import DataError, DataNote, SettingError

pandas = pytest.importorskip("pandas")

GRAPHS = [nx.path_graph(4 + i % 5) if i % 2 else nx.cycle_graph(5 + i % 3) for i in range(12)]
KINDS = ["ring", "path"] * 6


def as_pyg(graphs):
    return [from_networkx(graph) for graph in graphs]


def frame(graphs=GRAPHS, **columns):
    return pandas.DataFrame({"graph": graphs, **columns}, index=[f"r{i}" for i in range(len(graphs))])


@pytest.mark.parametrize("make", [list, as_pyg])
def test_it_is_the_data_set_of_its_graphs_and_its_target(make):
    with pytest.warns(DataNote) as shown:
        found = load_dataset(frame(make(GRAPHS), kind=KINDS, site=["a", "b", "c"] * 4), target="kind")
    wanted = GraphDataset.from_networkx(GRAPHS, KINDS)
    assert (found.checksum, found.classes, found.task) == (wanted.checksum, wanted.classes, wanted.task)
    assert dict(found.graph_columns) == {"site": ("a", "b", "c") * 4}
    assert [str(warning.message) for warning in shown] == [found.notes[0]]
    for words in ("graphs from the column graph", "classification by kind", "left aside: site"):
        assert words in found.notes[0]


def test_rows_without_a_graph_or_a_target_are_left_out_and_named():
    values = [None, 0.5, 1.5, *([2.5, 3.25] * 4), 4.5]
    found = load_dataset(frame([*GRAPHS[:11], None], y=values, name=[f"n{i}" for i in range(12)]))
    assert (found.task, len(found), found.target_names) == ("regression", 10, ("y",))
    assert found.graph_names == tuple(f"n{i}" for i in range(1, 11))
    assert found.y.flatten().tolist() == values[1:11]
    assert any("1 of 12 rows are left out, without a graph: row r11" in note for note in found.notes)
    assert any("1 of 12 rows are left out, without a target: row r0" in note for note in found.notes)


def test_without_a_target_column_the_targets_of_the_graphs_count():
    graphs = as_pyg(GRAPHS)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 3])
    found = load_dataset(frame(graphs))
    assert found.y.tolist() == [0, 1, 2] * 4
    assert "the target is y of the graphs" in found.notes[0]
    assert load_dataset(frame(graphs, kind=KINDS)).classes == ("path", "ring")  # a column counts more
    assert graphs[1].y.tolist() == [1]


def test_several_targets_features_and_directions():
    graphs = [nx.DiGraph([(0, 1), (1, 2)]) for _ in range(4)]
    for graph in graphs:
        nx.set_node_attributes(graph, {0: "a", 1: "b", 2: "a"}, "role")
    table = frame(graphs, p=[0, 1, None, 1], q=[True, False, True, None])
    found = load_dataset(table, target="p,q", node_label="role", directed=True)
    assert (found.task, found.directed, found.target_names) == ("multilabel", True, ("p", "q"))
    assert found.node_label_values == ("a", "b")
    assert load_dataset(table, target="p", features="degrees").features == "degrees"


def test_a_named_column_of_smiles_counts_more():
    pytest.importorskip("rdkit")
    table = frame(GRAPHS[:4], smiles=["C", "CC", "CCC", "CCO"], y=[0.5, 1.5, 2.5, 3.5])
    assert load_dataset(table, smiles="smiles", target="y").smiles is not None
    assert load_dataset(table, target="y").smiles is None


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"kind": KINDS, "site": ["a", "b", "c"] * 4}, {}, "which column is the target. It could be kind, site"),
        ({"kind": KINDS}, {"target": "sort"}, "no column sort; the columns are graph, kind"),
        ({"kind": KINDS}, {"target": "graph"}, "graph holds the graphs and cannot be the target"),
        ({"graph": [*GRAPHS[:11], "C"]}, {}, "row r11: 'C' where a graph"),
        (
            {"graph": [*GRAPHS[:11], *as_pyg(GRAPHS[11:])]},
            {},
            "row r11: a graph of PyG where row r0 has one of NetworkX",
        ),
        ({"graph": [None, *GRAPHS[:10], nx.Graph()]}, {}, "row r11 has no nodes"),
        ({"other": GRAPHS}, {}, "which column holds the graphs. graph, other do"),
        ({"site": KINDS}, {"target": [], "task": "regression"}, None),
        ({}, {"task": "regression"}, "which column is the target"),
    ],
)
def test_what_is_wrong_is_named(columns, options, words):
    table = frame().assign(**columns)
    if words is None:
        assert load_dataset(table, **options).classes == (None,)
        return
    with pytest.raises(DataError, match=words):
        load_dataset(table, **options)


def test_a_threshold_is_for_matrices():
    with pytest.raises(SettingError):
        load_dataset(frame(kind=KINDS), threshold=0.5)


@pytest.mark.filterwarnings("ignore::tapnet.errors.DataNote")
def test_it_is_trained_on_by_groups_compared_and_tuned(tmp_path):
    table = frame(kind=KINDS, site=["a", "b", "c"] * 4)
    reading = {"target": "kind"}
    found = cross_validate(table, "bag", folds=3, epochs=1, jobs=1, split="group:site", reading=reading)
    assert len(found.scores) == 3
    compared = compare(table, ["bag"], folds=3, epochs=1, jobs=1, split="group:site", reading=reading, out=tmp_path)
    assert compared.systems
    best = tune(table, "bag", configs=1, folds=3, epochs=1, jobs=1, split="group:site", reading=reading)
    assert best.settings is not None
    for columns in ({}, {"site": KINDS}):
        with pytest.raises(DataError, match="name the column to predict"):
            cross_validate(frame(**columns), "bag", folds=3, epochs=1, jobs=1, reading={"target": []})
