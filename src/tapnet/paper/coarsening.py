"""The figure of coarsened graphs: which six nodes TAP keeps of a graph, with and without its connectivity term."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Device, Trial
from tapnet.inference.explain import pooling_layers, pooling_steps
from tapnet.inference.model import SavedModel
from tapnet.models.base import GraphClassifier
from tapnet.ops.connectivity import Connectivity
from tapnet.paper.budgets import Effort
from tapnet.paper.numbers import ABLATIONS
from tapnet.paper.plan import make_trials
from tapnet.paper.targets import TAPNET, Row
from tapnet.training.protocol import split
from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.graphs import draw_graph
from tapnet.viz.style import COLOURS, INK, new_figure, save

KEPT = 6
ROWS = (Row("w/o GCT", changed=ABLATIONS["w/o GCT"]), TAPNET)
SIZES = range(14, 21)  # nodes of the graph that is shown: small enough to be read


def coarsening_trials(dataset: GraphDataset, effort: Effort, device: Device, reproducible: bool = False) -> list[Trial]:
    """Makes one trial with and one without the connectivity term: fold 0, its epoch chosen by validation loss."""
    return [make_trials(row, dataset, "fair", effort, device, reproducible)[0] for row in ROWS]


def keep_nodes(model: GraphClassifier, batch: GraphBatch, nodes: int) -> tuple[Tensor, GraphBatch]:
    """The nodes that the first pooling layer of a network keeps if it is to keep so many, and the coarsened graphs."""
    model = deepcopy(model)
    pool: Any = next(pooling_layers(model))
    pool.ratio = nodes
    pooled: Any = pooling_steps(model, batch)[0][0].pooled
    return pooled.perm, pooled.batch


def draw_coarsening(store: Store, dataset: GraphDataset, trials: list[Trial]) -> tuple[list[str], list[str]]:
    """Draws what each of two networks keeps of one graph.

    Args:
        store: With the networks of the trials; the picture is written into its folder.
        dataset: That the trials are of.
        trials: From :func:`coarsening_trials`.

    Returns:
        The names of the files, and for each network a sentence on all test graphs.
    """
    models = [SavedModel.load(store.model_file(trial)).network for trial in trials]
    test = split(dataset, trials[0].protocol, trials[0].folds, 0).test
    large = test[dataset.nodes_per_graph[test] > KEPT]
    shown = _graph_to_show(dataset, large)
    batch = dataset.batch([shown])
    edges = batch.edges_once.numpy()
    at = graph_layout(edges, batch.num_nodes)
    figure, axes = new_figure(10.5, 3.9, 1, 3)
    draw_graph(axes[0, 0], at, edges, fill=[COLOURS[0]] * len(at), size=170)
    epochs = f"{trials[0].training.epochs} epochs"
    axes[0, 0].set_title(f"(a) graph {shown} of {dataset.name}: {len(at)} nodes, {edges.shape[1]} edges", fontsize=9)
    figure.supxlabel(f"fold 0, {epochs}, the one with the lowest validation loss", fontsize=8)
    words = []
    for ax, letter, row, model in zip(axes[0, 1:], "bc", ROWS, models, strict=True):
        perm, coarse = keep_nodes(model, batch, KEPT)
        chosen = set(perm.tolist())
        inside = np.array([edge for edge in edges.T.tolist() if set(edge) <= chosen], dtype=np.int64).reshape(-1, 2).T
        fill = [COLOURS[0] if i in chosen else INK for i in range(len(at))]
        size = [170.0 if i in chosen else 45.0 for i in range(len(at))]
        draw_graph(ax, at, inside, fill=fill, size=size, edge_colour=COLOURS[0], faint=edges)
        name = "TAP" if row is TAPNET else f"TAP {row.label}"
        found = Connectivity.of(coarse)
        ax.set_title(f"({letter}) {name} keeps {KEPT}: {found.edges} edges, {found.components} components", fontsize=9)
        every = Connectivity.of(keep_nodes(model, dataset.batch(large), KEPT)[1])
        words.append(
            f"{name} ({epochs}), {KEPT} nodes kept of each of {every.graphs} test graphs: "
            f"{every.edges / every.graphs:.2f} edges, {every.components / every.graphs:.2f} components, "
            f"{100 * every.isolated / every.nodes:.0f} % isolated"
        )
    return save(figure, Path(store.folder) / "coarsening"), words


def _graph_to_show(dataset: GraphDataset, graphs: Tensor) -> int:
    """The first connected test graph of a size that can be read; not chosen by what it shows."""
    for graph in graphs.tolist():
        batch = dataset.batch([graph])
        if batch.num_nodes in SIZES and Connectivity.of(batch).components == 1:
            return int(graph)
    return int(graphs[0])
