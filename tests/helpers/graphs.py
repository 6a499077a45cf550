"""Random data sets and small helpers that several tests use."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from hypothesis import strategies as st

from tapnet import GraphDataset
from tapnet.data.convert import assemble
from tapnet.data.features import FeatureRows, MixedFeatures


@st.composite
def datasets(
    draw: st.DrawFn,
    *,
    labels: bool | None = None,
    edge_data: bool | None = None,
    loops: bool = True,
    weights: bool = False,
) -> GraphDataset:
    """Data sets of a few small graphs, with labels, attributes and edge data or without; perhaps with weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = np.asarray(draw(st.lists(st.integers(1, 9), min_size=1, max_size=6)))
    first = np.cumsum(sizes) - sizes
    pairs = [
        rng.integers(0, n, size=(2, draw(st.integers(0, 2 * n)))) + start for n, start in zip(sizes, first, strict=True)
    ]
    edge_index = np.concatenate(pairs, axis=1)
    if not loops:
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    num_nodes, num_edges = int(sizes.sum()), edge_index.shape[1]
    has_labels = draw(st.booleans()) if labels is None else labels
    has_edge_data = draw(st.booleans()) if edge_data is None else edge_data
    return assemble(
        name="RANDOM",
        nodes_per_graph=sizes,
        edge_index=edge_index,
        y=rng.integers(-3, 9, size=len(sizes)),
        node_labels=rng.integers(-5, 30, size=num_nodes) if has_labels else None,
        node_attributes=rng.normal(size=(num_nodes, 2)).astype(np.float32) if draw(st.booleans()) else None,
        edge_labels=rng.integers(0, 4, size=num_edges) if has_edge_data else None,
        edge_attributes=rng.normal(size=(num_edges, 3)).astype(np.float32) if has_edge_data else None,
        edge_weight=rng.normal(size=num_edges) if weights and draw(st.booleans()) else None,
    )


def with_attributes(graphs: int = 9, columns: int = 3) -> GraphDataset:
    """Rings whose nodes have numbers and no labels, in three classes."""
    rng, sizes = np.random.default_rng(0), np.arange(graphs) + 4
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    node = np.arange(sizes.sum())
    return assemble(
        name="NUMBERS",
        nodes_per_graph=sizes,
        edge_index=np.stack([node, first + (node - first + 1) % np.repeat(sizes, sizes)]),
        y=np.arange(graphs) % 3,
        node_attributes=rng.normal(size=(len(node), columns)).astype(np.float32),
        features="attributes",
    )


def assert_same(a: GraphDataset, b: GraphDataset, *, edge_data: bool = True) -> None:
    """Equal in everything that a data set holds, but for its name and where it came from."""
    for key in ("node_ptr", "rowptr", "col", "y", "x", "node_labels", "node_attributes", "self_loop"):
        assert_equal(getattr(a, key), getattr(b, key), key)
    assert (a.classes, a.categories, a.features) == (b.classes, b.categories, b.features)
    assert a.node_label_values == b.node_label_values
    if edge_data:
        assert_equal(a.edge_labels, b.edge_labels, "edge_labels")
        assert_equal(a.edge_attributes, b.edge_attributes, "edge_attributes")
        assert_equal(a.edge_weight, b.edge_weight, "edge_weight")
        assert (a.edge_label_values or ()) == (b.edge_label_values or ())


def assert_equal(a: FeatureRows | None, b: FeatureRows | None, what: str) -> None:
    if isinstance(a, MixedFeatures) and isinstance(b, MixedFeatures):
        for key in ("combination", "table", "numbers"):
            assert_equal(getattr(a, key), getattr(b, key), f"{what}.{key}")
    elif a is None or b is None:
        present = b if a is None else a
        assert present is None or len(present) == 0, what
    else:
        torch.testing.assert_close(a, b, rtol=0, atol=0, msg=lambda m: f"{what}: {m}")


def write_graph(graph: nx.Graph, file: Path, edges: str = "links") -> Path:
    """As GraphML or as node-link JSON, whose edges stand under either name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".graphml":
        nx.write_graphml(graph, file)
    else:
        file.write_text(json.dumps(nx.node_link_data(graph, edges=edges)))
    return file
