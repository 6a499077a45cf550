"""Pictures with one look: graphs and molecules, what a prediction rests on, what pooling keeps, curves, comparisons."""

from tapnet.viz.attributions import draw_attributions
from tapnet.viz.comparison import plot_comparison
from tapnet.viz.curves import draw_calibration, draw_run, plot_folds, plot_run
from tapnet.viz.graphs import draw_explanation, draw_graph, plot_graph
from tapnet.viz.molecules import diverging_colours, draw_molecule
from tapnet.viz.style import new_figure, save

__all__ = [
    "diverging_colours",
    "draw_attributions",
    "draw_calibration",
    "draw_explanation",
    "draw_graph",
    "draw_molecule",
    "draw_run",
    "new_figure",
    "plot_comparison",
    "plot_folds",
    "plot_graph",
    "plot_run",
    "save",
]
