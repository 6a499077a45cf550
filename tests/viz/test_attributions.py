"""Pictures of attributions: colours on one scale, outlines, names, what pooling kept."""

import matplotlib.collections as collections
import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Circle

from tapnet import GraphDataset, load_dataset
from tapnet.viz import diverging_colours, draw_attributions, draw_molecule, new_figure, save
from tests.helpers.pages import make_model


def rings():
    graphs = [nx.cycle_graph(["Ada", "Ben", "Cleo", "Dora"]), nx.cycle_graph(5)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: "ab"[i % 2] for i, node in enumerate(graph)}, "label")
    return graphs


def test_nodes_are_coloured_on_one_scale_and_named():
    graphs = rings()
    model = make_model(GraphDataset.from_networkx(graphs, [0, 1]))
    found = [model.explain(graph) for graph in graphs]
    figure = draw_attributions(found)
    largest = max(abs(row.attribution) for e in found for rows in (e.nodes, e.edges) for row in rows)
    for ax, explanation in zip(figure.axes, found, strict=False):
        (nodes, *_) = [c for c in ax.collections if isinstance(c, collections.PathCollection)]
        expected = diverging_colours([n.attribution for n in explanation.nodes], largest)
        assert [to_hex(colour) for colour in nodes.get_facecolors()] == [c or "#ffffff" for c in expected]
    words = {text.get_text() for text in figure.axes[0].texts}
    assert {"Ada", "Ben", "Cleo", "Dora"} <= words
    scale = figure.axes[-1]
    assert scale.get_xlim() == pytest.approx((-largest, largest))
    assert "log odds" in scale.get_xlabel()


def test_what_speaks_against_is_told_without_colours():
    pytest.importorskip("rdkit")
    _, axes = new_figure(3, 3)
    draw_molecule(
        axes[0, 0], "CCO", colours=["#eeeeee"] * 3, outlines=["#000000", None, None], bonds=[(0, 1, "#123456", 5.0)]
    )
    circles = [patch for patch in axes[0, 0].patches if isinstance(patch, Circle)]
    assert [circle.get_linewidth() > 0 for circle in circles] == [True, False, False]
    (band,) = axes[0, 0].lines
    assert (band.get_color(), band.get_linewidth()) == ("#123456", 5.0)


def test_what_pooling_kept_is_a_second_row(tmp_path):
    mutag = load_dataset("MUTAG")
    explanation = make_model(mutag).explain(0, dataset="MUTAG")
    alone, with_row = explanation.plot(), explanation.plot(kept=True)
    titles = [ax.get_title() for ax in with_row.axes]
    assert [title.split(":")[0] for title in titles if title.startswith("after")] == [
        f"after pooling {i}" for i in (1, 2, 3)
    ]
    assert not any(ax.get_title().startswith("after") for ax in alone.axes)
    names = save(with_row, tmp_path / "picture", ("svg", "pdf"))
    assert b"/Type3" not in (tmp_path / names[1]).read_bytes()
    assert "<text" in (tmp_path / names[0]).read_text()


def test_a_scale_may_end_beyond_the_values():
    assert diverging_colours([1.0, -1.0], 1.0) == diverging_colours([1.0, -1.0])
    half, whole = diverging_colours([1.0], 2.0)[0], diverging_colours([1.0])[0]
    assert half != whole
    assert diverging_colours([0.0, np.nan], 2.0) == [None, None]


def test_an_edge_of_a_directed_graph_is_drawn_in_its_own_colour_with_an_arrow():
    graphs = [nx.DiGraph([("a", "b"), ("b", "a"), ("c", "b"), ("c", "d"), ("d", "a")]), nx.DiGraph([(0, 1), (1, 2)])]
    model = make_model(GraphDataset.from_networkx(graphs, [0, 1], features="degrees", directed=True))
    found = model.explain(graphs[0])
    names = [node.node for node in found.nodes]
    drawn = [(names[begin], names[end]) for begin, end in found.graph.edges.T]
    assert drawn == [(edge.source, edge.target) for edge in found.edges]
    assert sorted(drawn) == sorted(graphs[0].edges)
    figure = found.plot()
    *_, lines = [c for c in figure.axes[0].collections if isinstance(c, collections.LineCollection)]
    *_, heads = [c for c in figure.axes[0].collections if isinstance(c, collections.PolyCollection)]
    assert [to_hex(colour) for colour in heads.get_facecolors()] == [to_hex(colour) for colour in lines.get_colors()]
    for (begin, end), head in zip(lines.get_segments(), heads.get_paths(), strict=True):
        tip, *base = head.vertices[:3]
        assert np.dot(tip - np.mean(base, axis=0), end - begin) > 0  # it points where the edge leads
    there, back = (lines.get_segments()[drawn.index(pair)] for pair in (("a", "b"), ("b", "a")))
    assert not np.allclose(there, back[::-1])  # one does not cover the other
