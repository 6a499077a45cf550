"""Graphs to measure on: the real data set where it is there, else generated ones of the same statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tapnet.data.convert import assemble
from tapnet.data.dataset import GraphDataset
from tapnet.errors import DatasetNotFoundError
from tapnet.io.load import load_dataset

# graphs, mean nodes, mean undirected edges, classes, node labels (0: degrees)
STATISTICS = {
    "MUTAG": (188, 17.93, 19.79, 2, 7),
    "PTC": (344, 25.56, 25.96, 2, 19),
    "PROTEINS": (1113, 39.06, 72.82, 2, 3),
    "DD": (1178, 284.32, 715.66, 2, 82),
    "IMDB-BINARY": (1000, 19.77, 96.53, 2, 0),
    "IMDB-MULTI": (1500, 13.00, 65.94, 3, 0),
    "REDDIT-BINARY": (2000, 429.63, 497.75, 2, 0),
    "COLLAB": (5000, 74.49, 2457.22, 3, 0),
}


def bench_dataset(name: str, data_dir: Path | None = None, graphs: int | None = None) -> GraphDataset:
    """The data set, or one like it; at most ``graphs`` of its graphs, drawn at random."""
    try:
        dataset = load_dataset(name, data_dir, download=False)
    except DatasetNotFoundError:
        dataset = generated(name, graphs)
    if graphs is not None and graphs < len(dataset):
        dataset = dataset.subset(np.random.default_rng(0).choice(len(dataset), graphs, replace=False))
    return dataset


def generated(name: str, graphs: int | None = None) -> GraphDataset:
    """Random graphs with the statistics of a data set; the class is whether a graph is large."""
    count, mean_nodes, mean_edges, classes, labels = STATISTICS[name]
    count = min(count, graphs or count)
    rng = np.random.default_rng(0)
    sizes = 2 + rng.poisson(rng.gamma(2, (mean_nodes - 2) / 2, count))
    edges_of = rng.poisson(sizes * mean_edges / mean_nodes * 1.1)
    graph = np.repeat(np.arange(count), edges_of)
    ends = rng.random((2, len(graph))) ** 2 * sizes[graph]  # a few nodes have many neighbours
    start = np.cumsum(sizes) - sizes
    return assemble(
        name=f"{name} (generated)",
        nodes_per_graph=sizes,
        edge_index=ends.astype(np.int64) + start[graph],
        y=np.digitize(sizes, np.quantile(sizes, np.arange(1, classes) / classes)),
        node_labels=rng.integers(0, labels, int(sizes.sum())) if labels else None,
    )
