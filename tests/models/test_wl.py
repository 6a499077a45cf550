"""The WL subtree kernel against labels refined by hand and by NetworkX; what may choose its height and C; its cache."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from tapnet import GraphDataset, load_dataset
from tapnet.errors import SettingError
from tapnet.models import wl
from tapnet.models.wl import SPEC, Kernels, WLSettings
from tests.helpers.graphs import datasets, with_attributes

FEW = WLSettings(heights=(0, 1, 2))


def accuracy_of(dataset, settings, train, test):
    """In percent."""
    return 100 * float((wl.fit(dataset, settings, train, test) == dataset.y[test].numpy()).mean())


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path))
    return tmp_path


def path(labels: str) -> nx.Graph:
    graph = nx.path_graph(len(labels))
    nx.set_node_attributes(graph, dict(enumerate(labels)), "label")
    return graph


def kernels_of(dataset: GraphDataset, chosen: WLSettings = FEW) -> Kernels:
    return wl.prepare(dataset, chosen).prepared["wl"]


def normalised_products(nodes_labels) -> np.ndarray:
    """From the labels of each graph's nodes, those of all refinements together."""
    counts = [Counter(labels) for labels in nodes_labels]
    k = np.array([[sum(a[label] * b[label] for label in a) for b in counts] for a in counts], dtype=float)
    return k / np.sqrt(np.outer(k.diagonal(), k.diagonal()))


# ---- the kernel ----


def test_kernels_of_labels_refined_by_hand():
    """Paths; a letter is a node. c = a next to b, d = b between two a, e = a next to a, f = a between a and b,
    g = b next to a, w = b alone; then p = c next to d, q = d between two c, r = e next to f, s = f between e and g,
    t = g next to f, u = d between c and f, v = f between d and e, x = w alone."""
    refined = [
        ["aba", "aab", "abaa", "b"],
        ["cdc", "efg", "cdfe", "w"],
        ["pqp", "rst", "puvr", "x"],
    ]
    dataset = GraphDataset.from_networkx([path(labels) for labels in refined[0]], y=[0, 1, 0, 1])
    kernels = kernels_of(dataset)
    for height in (0, 1, 2):
        labels = map("".join, zip(*refined[: height + 1], strict=True))
        np.testing.assert_allclose(kernels.of(height), normalised_products(labels), rtol=1e-6)
    # aba and aab: 2·2 + 1·1 in common at height 0, nothing after it
    assert kernels.of(0)[0, 1] == 1
    assert kernels.of(1)[0, 1] == pytest.approx(5 / 80**0.5)
    assert kernels.of(2)[0, 1] == pytest.approx(5 / 165**0.5)


@given(datasets(labels=True))
@settings(max_examples=20)
def test_kernels_of_labels_refined_by_networkx(dataset):
    graphs = []
    for data in dataset:
        graph = nx.Graph(data.edge_index.t().tolist())
        graph.add_nodes_from(range(data.num_nodes))
        nx.set_node_attributes(graph, {i: f"{label:03d}" for i, label in enumerate(data.x.tolist())}, "label")
        graphs.append(graph)
    for height in FEW.heights:
        labels = []
        for graph in graphs:
            found = [("", label) for _, label in graph.nodes(data="label")]
            if height:
                refined = nx.weisfeiler_lehman_subgraph_hashes(graph, node_attr="label", iterations=height)
                found += [(step, label) for steps in refined.values() for step, label in enumerate(steps[-height:])]
            labels.append(found)
        np.testing.assert_allclose(kernels_of(dataset).of(height), normalised_products(labels), rtol=1e-6, atol=1e-7)


def test_kernels_are_those_of_grakel(mutag):
    grakel = pytest.importorskip("grakel")  # has wheels up to Python 3.12
    graphs = [(data.edge_index.t().tolist(), dict(enumerate(data.x.tolist()))) for data in mutag]
    graphs = [([tuple(edge) for edge in edges], labels) for edges, labels in graphs]
    for height in (1, 2):
        expected = grakel.WeisfeilerLehman(n_iter=height, normalize=True).fit_transform(graphs)
        np.testing.assert_allclose(kernels_of(mutag).of(height), expected, rtol=1e-6)


def test_heights_are_nested(mutag):
    """Graphs told apart by a height are told apart by every greater one, and each height tells more apart."""
    kernels = kernels_of(mutag, WLSettings(heights=(0, 1, 2, 3)))
    apart = [kernels.of(height) < 1 - 1e-6 for height in range(4)]
    for lower, higher in pairwise(apart):
        assert (lower <= higher).all()
        assert lower.sum() < higher.sum()


def test_graphs_that_refinement_cannot_tell_apart():
    hexagon, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    graphs = [hexagon, triangles, nx.path_graph(6)]
    for graph in graphs:
        nx.set_node_attributes(graph, "a", "label")
    kernels = kernels_of(GraphDataset.from_networkx(graphs, y=[0, 1, 1], features="labels"), WLSettings())
    for height in range(6):
        assert kernels.of(height)[0, 1] == 1
        assert (kernels.of(height)[0, 2] == 1) == (height == 0)


def test_kernels_of_some_graphs_are_those_among_all(mutag):
    """So that a test graph changes nothing between two training graphs."""
    some = torch.tensor([7, 3, 150, 21, 88, 3])
    alone, among_all = kernels_of(mutag.subset(some)), kernels_of(mutag).cut(some).to("cpu")
    assert among_all.heights == alone.heights
    torch.testing.assert_close(among_all.matrices, alone.matrices)
    prepared = wl.prepare(mutag, FEW)
    torch.testing.assert_close(prepared.batch(some).prepared["wl"].matrices, alone.matrices)
    for a, b in combinations(range(len(some)), 2):
        assert among_all.of(2)[a, b] == kernels_of(mutag).of(2)[some[a], some[b]]


def test_numbers_are_not_categories():
    with pytest.raises(SettingError, match="features of NUMBERS are numbers"):
        wl.prepare(with_attributes(), FEW)


# ---- choosing and classifying ----


def labelled(graphs: int = 30) -> tuple[GraphDataset, torch.Tensor, torch.Tensor]:
    """Paths that have a b somewhere, and paths that have a c; the last third of them test."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ad" + "cb"[i % 2]), size=9)) + "cb"[i % 2] for i in range(graphs)]
    dataset = GraphDataset.from_networkx([path(word) for word in words], y=[i % 2 for i in range(graphs)])
    return dataset, torch.arange(graphs * 2 // 3), torch.arange(graphs * 2 // 3, graphs)


def test_classes_that_labels_tell_apart():
    dataset, train, test = labelled()
    assert accuracy_of(dataset, FEW, train, test) == 100


def test_classes_that_only_refinement_tells_apart():
    """aabb and abab have the same labels; their neighbourhoods differ."""
    words = ["aabb" * n if i % 2 else "abab" * n for n in range(2, 8) for i in range(2)] * 2
    dataset = GraphDataset.from_networkx([path(word) for word in words], y=[i % 2 for i in range(len(words))])
    train, test = torch.arange(12), torch.arange(12, 24)
    assert accuracy_of(dataset, FEW, train, test) == 100
    assert accuracy_of(dataset, WLSettings(heights=(0,)), train, test) < 60


def test_mutag_above_its_majority_and_the_same_again(mutag):
    numbers = torch.randperm(len(mutag), generator=torch.Generator().manual_seed(0))
    train, test = numbers[:150], numbers[150:]
    accuracy = accuracy_of(SPEC.prepare(mutag, FEW), FEW, train, test)
    assert accuracy == accuracy_of(mutag, FEW, train, test)
    assert accuracy > 100 * float((mutag.y[test] == 1).float().mean())
    assert accuracy * len(test) / 100 == pytest.approx(round(accuracy * len(test) / 100))


def test_choosing_does_not_look_at_test_graphs(mutag, monkeypatch):
    choices, choose = [], wl.choose

    def noted(*given):
        choices.append(choose(*given))
        return choices[-1]

    monkeypatch.setattr(wl, "choose", noted)
    prepared = wl.prepare(mutag, FEW)
    train, test = torch.arange(0, 188, 2), torch.arange(1, 188, 2)
    as_it_is = accuracy_of(prepared, FEW, train, test)

    other_y = mutag.y.clone()
    other_y[test] = 1 - other_y[test]
    assert accuracy_of(replace(prepared, y=other_y), FEW, train, test) == pytest.approx(100 - as_it_is)

    matrices = prepared.prepared["wl"].matrices.clone()  # test graphs that are like no other graph
    matrices[:, test] = matrices[:, :, test] = 0
    matrices[:, test, test] = 1
    unlike = replace(prepared, prepared={"wl": Kernels(FEW.heights, matrices)})
    assert accuracy_of(unlike, FEW, train, test) < as_it_is
    assert len(choices) == 3
    assert len(set(choices)) == 1

    other_y = mutag.y.clone()  # at training graphs it does look
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    other_y[train] = other_y[train[order]]
    accuracy_of(replace(prepared, y=other_y), FEW, train, test)
    assert choices[3] != choices[0]


def test_the_order_of_the_training_graphs_means_nothing(mutag, monkeypatch):
    seen = []
    monkeypatch.setattr(wl, "choose", lambda kernels, y, settings: seen.append((kernels.of(1), y)) or (1, 1.0))
    prepared, train, test = wl.prepare(mutag, FEW), torch.arange(0, 188, 2), torch.arange(1, 188, 2)
    assert accuracy_of(prepared, FEW, train, test) == accuracy_of(prepared, FEW, train.flip(0), test)
    for first, second in zip(*seen, strict=True):
        np.testing.assert_array_equal(first, second)


def test_of_equal_choices_the_lowest_and_smallest(monkeypatch):
    dataset, train, _ = labelled()
    kernels, y = kernels_of(dataset).cut(train), dataset.y[train].numpy()
    mixed = WLSettings(heights=(2, 0, 1), penalties=(100, 1, 10))
    kernels = Kernels(mixed.heights, kernels.matrices[[2, 0, 1]])
    monkeypatch.setattr(wl, "_predicted", lambda matrix, y, train, test, penalty: y[test])
    assert wl.choose(kernels, y, mixed) == (0, 1)


@pytest.mark.parametrize(("y", "folds"), [([0] * 9 + [1] * 9, 5), ([0] * 9 + [1] * 3, 3), ([0] * 9 + [1], 2)])
def test_as_many_inner_folds_as_the_smallest_class_allows(y, folds):
    y = np.array(y)
    parts = wl._folds(y, 5)
    assert len(parts) == folds
    assert sorted(np.concatenate([held_out for _, held_out in parts])) == list(range(len(y)))
    for train, held_out in parts:
        assert not set(train) & set(held_out)


def test_training_graphs_of_few_classes():
    dataset, _, test = labelled()
    of_one_class = torch.arange(0, 10, 2)
    assert accuracy_of(dataset, FEW, of_one_class, test) == 50
    one_of_the_other = torch.tensor([0, 2, 4, 6, 1])
    assert 0 <= accuracy_of(dataset, FEW, one_of_the_other, test) <= 100
    with pytest.raises(SettingError, match="2 training graphs are too few"):
        accuracy_of(dataset, FEW, torch.tensor([0, 1]), test)


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"heights": ()}, "heights is a list"),
        ({"heights": 3}, "heights is a list"),
        ({"heights": (0, -1)}, "heights is"),
        ({"heights": (0.5,)}, "heights is"),
        ({"penalties": (0.0,)}, "penalties is"),
        ({"penalties": (float("nan"),)}, "penalties is"),
        ({"penalties": ("1",)}, "penalties is"),
        ({"inner_folds": 1}, "inner_folds is"),
    ],
)
def test_wrong_settings_are_refused(chosen, reason):
    with pytest.raises(SettingError, match=reason):
        WLSettings(**chosen)
    assert hash(WLSettings(heights=[0, 1])) == hash(WLSettings(heights=(0, 1)))  # as JSON gives them back


# ---- the cache ----


def counted(monkeypatch) -> list[int]:
    """The heights whose kernels are computed from now on."""
    heights, kernel = [], wl.kernel

    def noted(counts, height):
        heights.append(height)
        return kernel(counts, height)

    monkeypatch.setattr(wl, "kernel", noted)
    return heights


def test_kernels_are_computed_once(own_cache, monkeypatch, mutag):
    computed = counted(monkeypatch)
    first = kernels_of(mutag)
    assert computed == [0, 1, 2]
    again = kernels_of(mutag)
    assert computed == [0, 1, 2]
    assert torch.equal(first.matrices, again.matrices)
    kernels_of(mutag.with_features("degrees"))
    assert computed == [0, 1, 2] * 2


def test_a_prepared_data_set_is_not_prepared_again(own_cache, monkeypatch, mutag):
    prepared = wl.prepare(mutag, FEW)
    assert wl.prepare(prepared, FEW) is prepared
    assert kernels_of(prepared, WLSettings(heights=(1,))).matrices.shape == (1, 188, 188)


def test_a_kill_loses_no_finished_height(own_cache, monkeypatch, mutag):
    kernel = wl.kernel

    def killed(counts, height):
        if height == 2:
            raise KeyboardInterrupt
        return kernel(counts, height)

    with monkeypatch.context() as during:
        during.setattr(wl, "kernel", killed)
        with pytest.raises(KeyboardInterrupt):
            wl.prepare(mutag, FEW)
    computed = counted(monkeypatch)
    wl.prepare(mutag, FEW)
    assert computed == [2]


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])


def overwrite(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[1000:1100] = bytes(range(100))
    file.write_bytes(content)


def store_two_heights(file: Path) -> None:
    with np.load(file) as stored:
        part = {key: np.tile(stored[key], 2) for key in stored.files}
    np.savez_compressed(file, **part)


@pytest.mark.parametrize("damage", [truncate, overwrite, store_two_heights, Path.unlink])
def test_a_damaged_height_is_computed_again(own_cache, monkeypatch, mutag, damage):
    whole = kernels_of(mutag)
    files = sorted(own_cache.rglob("prepared/wl-*/*.npz"))
    assert len(files) == 3
    damage(files[1])
    computed = counted(monkeypatch)
    assert torch.equal(kernels_of(mutag).matrices, whole.matrices)
    assert computed == [1]
    kernels_of(mutag)
    assert computed == [1]
