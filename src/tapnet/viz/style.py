"""The look of every picture: colours, figures that need no screen, and files with the same bytes every time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tapnet.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, GREY, PALE = "#222222", "#9a9a9a", "#d9d9d9"
# Okabe and Ito's colours: told apart by the colour-blind, and in this order by their grey as well.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#777777")
SCALE = (
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#5ec962",
    "#fde725",
)  # for ordered values: dark is low, bright high
# The same bytes every time, text that stays text, and TrueType fonts, which journals ask for.
FILES = {"svg.hashsalt": "tapnet", "svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Makes a figure that needs no screen; a notebook displays it inline.

    Args:
        width: Of the figure, in inches.
        height: Of the figure, in inches.
        rows: Of axes.
        columns: Of axes.
        **options: Passed on to ``Figure.subplots``.

    Returns:
        The figure and its axes, an array of shape ``[rows, columns]``.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class InlineFigure(Figure):
        def savefig(self, *args: Any, **options: Any) -> None:
            with matplotlib.rc_context(FILES), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing")  # of a name in any language: it is seen
                super().savefig(*args, **options)

        def _repr_png_(self) -> bytes:  # what IPython asks for
            drawn = io.BytesIO()
            self.savefig(drawn, format="png", dpi=100)
            return drawn.getvalue()

    figure = InlineFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, stem: Path, endings: Sequence[str] = ("png", "svg")) -> list[str]:
    """Writes a picture in each format; the same picture gives the same bytes.

    Args:
        figure: The picture.
        stem: The file without its ending.
        endings: The formats: ``"png"``, ``"svg"``, ``"pdf"``.

    Returns:
        The names of the files, without their folder.

    Raises:
        TapnetError: If a file cannot be written.
    """
    for ending in endings:
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=ending, dpi=150, metadata=dated)
        write_atomically(Path(f"{stem}.{ending}"), drawn.getvalue())
    return [f"{stem.name}.{ending}" for ending in endings]


def ink_on(fill: str) -> str:
    """Dark or white, whichever stands out more on a colour."""
    red, green, blue = ((int(fill[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.25 else "white"
