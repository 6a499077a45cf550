"""Pictures: the same ones every time, with what they are to show."""

import networkx as nx
import numpy as np
import pytest

import tapnet
from tapnet.errors import DataError
from tapnet.experiments.load_run import confusion_matrix, load_run
from tapnet.inference.explain import Explanation, Layer
from tapnet.inference.explain_graph import ExplainedGraph
from tapnet.viz import draw_explanation, draw_graph, draw_run, new_figure, plot_folds, plot_graph, plot_run, save
from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.style import COLOURS


def test_distances_on_paper_follow_those_in_the_graph():
    for graph in (nx.path_graph(8), nx.cycle_graph(9), nx.grid_2d_graph(4, 5)):
        graph = nx.convert_node_labels_to_integers(graph)
        at = graph_layout(np.array(graph.edges).T, len(graph))
        assert at.min() >= 0
        assert at.max() <= 1
        on_paper = np.linalg.norm(at[:, None] - at, axis=-1)
        in_graph = nx.floyd_warshall_numpy(graph)
        assert np.corrcoef(on_paper.ravel(), in_graph.ravel())[0, 1] > 0.9


def test_components_and_single_nodes_are_drawn_apart():
    at = graph_layout(np.array([[0, 2], [1, 3]]), 5)
    distance = np.linalg.norm(at[:, None] - at, axis=-1) + np.eye(5)
    assert distance.min() > 0.05
    assert graph_layout(np.zeros((2, 0), dtype=np.int64), 1).shape == (1, 2)


def picture():
    figure, axes = new_figure(3, 3)
    edges = np.array([[0, 1], [1, 2]])
    labels, faint = ["a", "b", "c"], np.array([[0], [2]])
    draw_graph(axes[0, 0], graph_layout(edges, 3), edges, fill=COLOURS[:3], size=50, labels=labels, faint=faint)
    return figure


def test_the_same_picture_gives_the_same_bytes(tmp_path):
    assert save(picture(), tmp_path / "one") == ["one.png", "one.svg"]
    save(picture(), tmp_path / "two")
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()
    assert save(picture(), tmp_path / "three", ["pdf"]) == ["three.pdf"]
    pdf = (tmp_path / "three.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf or b"TrueType" in pdf
    assert b"/Type3" not in pdf  # which journals refuse


def test_a_graph_has_its_nodes_edges_and_labels():
    (ax,) = picture().axes
    faint, edges, nodes = ax.collections
    assert len(faint.get_segments()) == 1
    assert len(edges.get_segments()) == 2
    assert len(nodes.get_offsets()) == 3
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]


@pytest.mark.parametrize(("score", "sized"), [([1.0, np.nan, 3.0], True), ([np.nan] * 3, False)])
def test_nodes_without_a_score_are_drawn_at_middle_size(score, sized):
    layer = Layer(np.arange(3), np.array([True, False, True]), np.array(score))
    explanation = Explanation((layer,), np.array([0.5, 0.5]))
    edges, category = np.array([[0, 1], [1, 2]]), np.zeros(3, np.int64)
    graph = ExplainedGraph("a graph", "graph", None, None, "yes", explanation, edges, category, ("a",))
    figure = draw_explanation(graph)
    before = figure.axes[0].collections[1].get_sizes()
    assert list(np.argsort(before)) == [0, 1, 2] if sized else len(set(before)) == 1
    words = [text.get_text() for text in figure.legends[0].texts]
    assert any("score" in word for word in words) == sized


def explained(graph, names=("a",), category=None, features="labels", scores=None, **known):
    """An explanation in which one layer keeps the first half of a NetworkX graph's nodes."""
    n = len(graph)
    layer = Layer(np.arange(n), np.arange(n) < n // 2, np.linspace(1, 2, n) if scores is None else scores)
    explanation = Explanation((layer,), np.array([0.25, 0.75]))
    category = np.zeros(n, np.int64) if category is None else np.asarray(category)
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2).T
    values = {"name": "a graph", "stem": "graph", "file": None, "true_class": None, "predicted": "yes"} | known
    shown = {"edges": edges, "category": category, "category_names": names, "features": features}
    return ExplainedGraph(explanation=explanation, **values, **shown)


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].texts]


def test_a_picture_names_file_and_true_class_and_gives_sizes_a_scale():
    figure = explained(nx.path_graph(6), file="water.graphml", true_class="wet").plot()
    assert all(word in figure.get_suptitle() for word in ("a graph", "water.graphml", "yes (75 %)", "true class: wet"))
    assert {"lowest score", "highest score of the layer", "dropped"} <= set(legend_of(figure))
    assert "1 to 2" in figure.axes[0].get_title()
    equal = explained(nx.path_graph(6), scores=np.ones(6)).plot()
    assert not any("score" in word for word in legend_of(equal))


def test_a_large_graph_has_thin_edges_and_nodes_that_do_not_cover_each_other():
    small, large = (explained(nx.random_geometric_graph(n, 1.6 / n**0.5, seed=1)).plot() for n in (20, 300))
    widths = [figure.axes[0].collections[0].get_linewidths()[0] for figure in (small, large)]
    assert widths[1] < 0.6 < widths[0]
    assert large.get_size_inches()[0] / 2 > small.get_size_inches()[0] / 2  # larger panels
    area = large.axes[0].collections[1].get_sizes()
    assert 2 < area.min() < area.max() < 100


def test_only_what_has_a_name_is_in_the_legend():
    graph = nx.path_graph(30)
    attributes = explained(graph, ("node",), features="attributes").plot()
    assert not any("node" in word or word.startswith(":") for word in legend_of(attributes))
    many = explained(graph, tuple(f"kind {i}" for i in range(12)), np.arange(30) % 12).plot()
    assert "5 others" in legend_of(many)
    degrees = explained(graph, ("1", "2"), [0] + [1] * 28 + [0], features="degrees").plot()
    assert {"degree 1", "degree 2"} <= set(legend_of(degrees))
    wide = explained(graph, (*map(str, range(1, 30)), "unknown"), np.arange(30), features="degrees").plot()
    assert any(word.startswith("degree ") and " to " in word for word in legend_of(wide))
    assert "unknown" in legend_of(wide)


def test_names_that_look_like_formulas_are_drawn_as_they_are(tmp_path):
    figure = explained(nx.path_graph(4), (r"$\nothing$", "$b"), [0, 1, 0, 1], file=r"$\x{$.json").plot()
    save(figure, tmp_path / "odd")
    save(draw_run([{"test_accuracy": [1.0]}], np.eye(2, dtype=int), [r"$\a$", "b"], r"$\b{$"), tmp_path / "run")


def test_curves_are_the_mean_over_the_folds():
    curves = [{"test_accuracy": [50.0, 60.0], "train_loss": [1.0, 0.5]}, {"test_accuracy": [70.0, 80.0, 90.0]}]
    accuracy, loss, matrix = draw_run(curves, np.array([[3, 1], [0, 4]]), ["no", "yes"], "a title").axes
    np.testing.assert_allclose(accuracy.lines[0].get_ydata(), [60.0, 70.0])  # as far as every fold goes
    np.testing.assert_allclose(loss.lines[0].get_ydata(), [1.0, 0.5])
    assert [text.get_text() for text in matrix.texts] == ["3\n75 %", "1\n25 %", "0\n0 %", "4\n100 %"]
    assert len(draw_run(curves, None, [], "a title").axes) == 2


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("viz") / "run"
    return tapnet.cross_validate("MUTAG", epochs=2, folds=3, jobs=1, out=folder, final=True)


def test_a_run_is_drawn_from_its_result_or_its_folder(run):
    stored = load_run(run.folder)
    assert stored.scores == run.scores
    counts, classes = confusion_matrix(stored)
    assert counts.sum() == 188
    assert set(classes) == {"mutagenic", "not mutagenic"}
    for one in (run, run.folder, str(run.folder)):
        figure = plot_run(one)
        assert [ax.get_xlabel() for ax in figure.axes] == ["epoch", "epoch", "predicted", "predicted probability"]
        assert " ".join(figure.get_suptitle().split()) == repr(run)


def test_every_fold_has_a_curve_with_the_epoch_that_counts(run):
    figure = plot_folds(run.folder)
    for ax, key in zip(figure.axes, ("test_accuracy", "validation_loss"), strict=True):
        for i, result in enumerate(run.results):
            curve, point = ax.lines[2 * i : 2 * i + 2]
            assert curve.get_label() == f"fold {result.trial.fold}"
            np.testing.assert_allclose(curve.get_ydata(), result.curves[key], rtol=1e-5)
            assert point.get_xdata() == [result.reading.epoch]


def test_without_the_models_there_is_no_confusion_matrix(run):
    kept_nothing = tapnet.cross_validate("MUTAG", epochs=1, folds=3, only_folds=[0], jobs=1)
    with pytest.warns(UserWarning, match="no confusion matrix"):
        assert "predicted" not in [ax.get_xlabel() for ax in plot_run(kept_nothing).axes]


def test_a_folder_without_a_run_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match="run.json"):
        plot_run(tmp_path)
    (tmp_path / "run.json").write_text('{"trials": [], "settings": {"pool": "mine:Pool"}}')
    with pytest.raises(ValueError, match="mine:Pool"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"trials": 3}')
    with pytest.raises(DataError, match="cannot be read"):
        load_run(tmp_path)


def test_a_graph_is_drawn_with_what_each_layer_kept(run):
    figure = plot_graph(tapnet.load_model(run.folder), 0)
    assert [ax.get_title().split("\n")[1].split(",")[0] for ax in figure.axes] == [
        f"{nodes} nodes" for nodes in (17, 14, 9, 4)
    ]
    assert figure.get_suptitle().startswith("MUTAG, graph 0: ")
