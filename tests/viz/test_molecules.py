"""Pictures of molecules: bonds and symbols of RDKit, circles and grey where asked for."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Circle

from tapnet.errors import DataError
from tapnet.inference.explain import Explanation, Layer
from tapnet.inference.explain_graph import ExplainedGraph
from tapnet.viz import diverging_colours, draw_explanation, draw_molecule, new_figure
from tapnet.viz.style import PALE

pytest.importorskip("rdkit")


def patches(smiles, **given):
    figure, axes = new_figure(3, 3)
    draw_molecule(axes[0, 0], smiles, **given)
    figure.draw_without_rendering()
    circles = [patch for patch in axes[0, 0].patches if isinstance(patch, Circle)]
    return circles, [patch for patch in axes[0, 0].patches if patch not in circles]


def test_bonds_have_their_orders_and_atoms_their_symbols():
    lines = [len(patches(smiles)[1]) for smiles in ("CC", "C=C", "C#C")]
    assert lines == [1, 2, 3]
    colours = {to_hex(patch.get_facecolor()) for patch in patches("CCO")[1] if patch.get_fill()}
    assert "#ff0000" in colours  # the O of OH


def test_circles_and_faint_atoms():
    circles, _ = patches("CCO", colours=["#112233", None, "#445566"], sizes=[1, 1, 2])
    assert [to_hex(circle.get_facecolor()) for circle in circles] == ["#112233", "#445566"]
    assert circles[1].radius == 2 * circles[0].radius
    _, strokes = patches("CCC", faint=[True, False, False])
    assert sorted(to_hex(stroke.get_edgecolor()) == PALE for stroke in strokes) == [False, True]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(DataError, match="not a SMILES"):
        patches("x")
    with pytest.raises(DataError, match="3 atoms, but 2 colours"):
        patches("CCO", colours=["red", "red"])


def test_diverging_colours_are_symmetric_around_0():
    low, none, high, unknown = diverging_colours([-2, 0, 2, np.nan])
    assert (none, unknown) == (None, None)
    assert low != high
    assert diverging_colours([-1, 2])[1] == high
    assert diverging_colours([0, 0]) == [None, None]


def test_an_explained_molecule_is_drawn_as_one():
    layer = Layer(np.arange(3), np.array([True, False, True]), np.array([0.9, 0.1, 0.5]))
    explanation = Explanation((layer,), np.array([0.2, 0.8]))
    edges = np.array([[0, 1], [1, 2]])
    given = ("a", "a-0", None, None, "active", explanation, edges, np.zeros(3, np.int64), ("C",))
    figure = draw_explanation(ExplainedGraph(*given, smiles="CCO"))
    before, after = figure.axes
    assert "3 atoms, 2 bonds" in before.get_title()
    assert "2 atoms, 0 bonds" in after.get_title()
    assert [sum(isinstance(patch, Circle) for patch in ax.patches) for ax in figure.axes] == [3, 2]
    assert "active (80 %)" in figure.get_suptitle()
