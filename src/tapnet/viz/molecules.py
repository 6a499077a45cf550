"""Molecules as chemists draw them: RDKit's picture, in axes of matplotlib, with circles around atoms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.data._molecule_arrays import check_rdkit, parse, why_not_valid
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.viz.style import PALE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.path import Path

    from tapnet.inference.explain_graph import ExplainedGraph

KEPT = "#9ecae1"  # pale enough for letters over it
LEAST_SIDE = 130.0  # of a picture, in RDKit's pixels: the bonds of a small molecule are not drawn larger than this
_ELEMENT = re.compile(r"<path class='([^']*)' d='([^']*)' (?:style='([^']*)'|fill='([^']*)')")
_STEP = re.compile(r"([MLQCZ])([^MLQCZ]*)")


class _Stroke(NamedTuple):
    """A line or letter of a picture, and the atoms that it belongs to."""

    path: Path
    atoms: list[int]
    fill: str
    line: str
    width: float


def draw_molecule(
    ax: Axes,
    smiles: str,
    *,
    colours: Sequence[str | None] | None = None,
    sizes: Sequence[float] | None = None,
    faint: Sequence[bool] | NDArray[np.bool_] | None = None,
    outlines: Sequence[str | None] | None = None,
    bonds: Sequence[tuple[int, int, str, float]] = (),
) -> None:
    """Draws a molecule: RDKit's coordinates, bond orders, wedges, and symbols of atoms that are not carbon.

    Args:
        ax: The axes to draw on.
        smiles: The molecule.
        colours: A circle of this colour is drawn behind each atom; None: no circle.
        sizes: The diameter of each circle, 1 being the usual one.
        faint: Which atoms are drawn pale, with their bonds.
        outlines: The colour of a line around each circle; None: no line.
        bonds: Bands behind bonds: both atoms, the colour, and the width in points.

    Raises:
        DataError: The SMILES is not valid, or has another number of atoms than the other arguments say.
        SettingError: RDKit is not installed.

    Example:
        >>> from tapnet.viz import draw_molecule, new_figure
        >>> figure, axes = new_figure(3, 3)
        >>> draw_molecule(axes[0, 0], "CC(=O)Oc1ccccc1C(=O)O")
    """
    from matplotlib.patches import Circle, PathPatch

    at, strokes = _picture(smiles)
    for what, given in (("colours", colours), ("sizes", sizes), ("atoms to be faint", faint), ("outlines", outlines)):
        if given is not None and len(given) != len(at):
            raise DataError(f"{printable(smiles)[:60]}: {len(at)} atoms, but {len(given)} {what}")
    corners = np.concatenate([at, *(stroke.path.vertices for stroke in strokes)])
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle, half = (low + high) / 2, max(float(np.max(high - low)) / 2 + 12, LEAST_SIDE / 2)
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)
    ax.set_aspect("equal")
    ax.axis("off")
    box = ax.get_window_extent()
    points = min(box.width, box.height) / (2 * half) * 72 / ax.figure.dpi  # of a pixel of RDKit
    for first, second, band, width in bonds:
        ax.plot(*at[[first, second]].T, color=band, linewidth=width, solid_capstyle="round", zorder=0.6)
    for i, colour in enumerate(colours or ()):
        if colour is not None:
            line = None if outlines is None else outlines[i]
            look: dict[str, Any] = {"facecolor": colour, "edgecolor": line or "none", "linewidth": 1.2 if line else 0}
            ax.add_patch(Circle(tuple(at[i]), 9 * (1 if sizes is None else sizes[i]), **look))
    for stroke in strokes:
        is_faint = faint is not None and any(faint[atom] for atom in stroke.atoms)
        fill, line = ((PALE if c != "none" else c) if is_faint else c for c in (stroke.fill, stroke.line))
        look = {"facecolor": fill, "edgecolor": line, "zorder": 0.5 if is_faint else 2, "capstyle": "round"}
        ax.add_patch(PathPatch(stroke.path, linewidth=max(0.5, stroke.width * points) if stroke.width else 0, **look))


def atom_positions(smiles: str) -> NDArray[np.float64]:
    """``[n, 2]`` where `draw_molecule` draws each atom."""
    return _picture(smiles)[0]


def bond_orders(smiles: str) -> dict[tuple[int, int], int]:
    """How many lines a chemist draws between two atoms: 1, 2 or 3, by both atoms, the lower number first.

    Aromatic rings have single and double bonds in turn (Kekulé's form), where RDKit finds such a form.
    """
    from rdkit import Chem

    mol = parse(smiles)
    with suppress(Chem.KekulizeException):
        Chem.Kekulize(mol, clearAromaticFlags=True)
    found = {}
    for bond in mol.GetBonds():
        ends = sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        found[ends[0], ends[1]] = min(3, max(1, int(bond.GetBondTypeAsDouble())))
    return found


def diverging_scale() -> LinearSegmentedColormap:
    """Blue for what is lowest, white in the middle, orange for what is highest: pale enough for letters over it."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("diverging", ["#5aa2d6", "#ffffff", "#f0a43c"])


def diverging_colours(values: Sequence[float] | NDArray[np.float64], largest: float | None = None) -> list[str | None]:
    """Colours for `draw_molecule`: blue for the lowest negative value, white for 0, orange for the highest.

    Args:
        values: A number for each atom; the scale is the same on both sides of 0.
        largest: Where the scale ends; None: at the largest of the values.

    Returns:
        A colour for each atom; None where the value is 0 or not known.
    """
    from matplotlib.colors import to_hex

    numbers = np.nan_to_num(np.asarray(values, dtype=np.float64))
    end = np.abs(numbers).max(initial=0) if largest is None else largest
    scale = diverging_scale()
    return [to_hex(scale(0.5 + 0.5 * number / end)) if number else None for number in numbers]


def draw_explained_molecule(graph: ExplainedGraph) -> Figure:
    """Draws an explained molecule: as it is, then what each pooling layer keeps of it.

    Args:
        graph: From :func:`tapnet.inference.explain_graph.explain_graph`, with its SMILES.

    Returns:
        The figure. A circle's size is the score by which the layer chose; dropped atoms are grey.
    """
    layers = graph.explanation.layers
    figure, axes = new_figure(0.4 + 3.1 * (len(layers) + 1), 4.4, 1, len(layers) + 1)
    size, has_scores = len(graph.category), False
    for i, ax in enumerate(axes.flat):
        kept, sizes = np.ones(size, dtype=bool), np.ones(size)
        if layers:
            layer = layers[max(i - 1, 0)]
            score = layer.score - np.fmin.reduce(layer.score, initial=np.inf)
            if np.isfinite(score).any() and np.nanmax(score) > 0:
                sizes[layer.nodes], has_scores = 0.5 + 0.8 * np.nan_to_num(score / np.nanmax(score), nan=0.5), True
            if i > 0:
                kept[:] = False
                kept[layer.nodes[layer.kept]] = True
        colours = [KEPT if k and layers else None for k in kept]
        draw_molecule(ax, graph.smiles or "", colours=colours, sizes=sizes.tolist(), faint=~kept)
        inside = int(kept[graph.edges].all(axis=0).sum())
        name = "input" if i == 0 else f"after pooling {i}"
        ax.set_title(f"{name}\n{int(kept.sum())} atoms, {inside} bonds", fontsize=9)
    figure.suptitle(f"{graph.name}: {graph.answer}", fontsize=10)
    if layers:
        handles = [axes[0, 0].scatter([], [], s=45, c=KEPT, label="kept" + ", larger: a higher score" * has_scores)]
        handles.append(axes[0, 0].scatter([], [], s=20, c=PALE, label="dropped"))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def _picture(smiles: str) -> tuple[NDArray[np.float64], list[_Stroke]]:
    """Where RDKit draws each atom, and all lines and letters."""
    check_rdkit()
    from rdkit import rdBase
    from rdkit.Chem.Draw import rdMolDraw2D

    with rdBase.BlockLogs():
        mol = parse(smiles)
    if mol is None:
        raise DataError(f"{printable(smiles)[:60]}: {why_not_valid(smiles)}")
    drawer = rdMolDraw2D.MolDraw2DSVG(-1, -1)  # as large as the molecule
    options: Any = drawer.drawOptions()
    options.prepareMolsBeforeDrawing = options.clearBackground = False
    drawer.DrawMolecule(rdMolDraw2D.PrepareMolForDrawing(mol, addChiralHs=False))
    drawer.FinishDrawing()
    points = [drawer.GetDrawCoords(i) for i in range(mol.GetNumAtoms())]
    at = np.asarray([(point.x, -point.y) for point in points])
    strokes = []
    for words, steps, style, fill in _ELEMENT.findall(drawer.GetDrawingText()):
        look = dict(part.split(":", 1) for part in style.split(";") if ":" in part)
        atoms = [int(word.removeprefix("atom-")) for word in words.split() if word.startswith("atom-")]
        line, width = look.get("stroke", "none"), float(look.get("stroke-width", "0").removesuffix("px"))
        strokes.append(_Stroke(_path(steps), atoms, fill or look.get("fill", "none"), line, width))
    return at, strokes


def _path(steps: str) -> Path:
    """The path that SVG's steps (M, L, Q, C, Z) describe, with y upwards."""
    from matplotlib.path import Path

    codes = {"M": Path.MOVETO, "L": Path.LINETO, "Q": Path.CURVE3, "C": Path.CURVE4, "Z": Path.CLOSEPOLY}
    corners, kinds = [], []
    for letter, numbers in _STEP.findall(steps):
        values = np.asarray(re.findall(r"-?[\d.]+", numbers) or ["0", "0"], dtype=np.float64).reshape(-1, 2)
        corners.append(values * (1, -1))
        kinds += [codes[letter]] * len(values)
    return Path(np.concatenate(corners), kinds)
