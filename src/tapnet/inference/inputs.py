"""Graphs to predict, as users hold them (NetworkX, PyG), read as a model reads them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.data.convert import Names, check_node_attribute, label_names_of, listed_names, unread_of_pyg
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

    Graph: TypeAlias = nx.Graph | Data
    Graphs: TypeAlias = GraphDataset | Sequence[nx.Graph] | Sequence[Data] | Sequence[str] | NDArray[Any]


def from_networkx(
    graphs: Sequence[nx.Graph],
    y: NDArray[np.int64],
    features: Features | None,
    node_label: Names,
    node_attributes: str,
    edge_label: Names = "label",
    edge_weight: str = "weight",
    *,
    directed: bool = False,
) -> GraphDataset:
    """NetworkX graphs by the names of their attributes; where there are no labels, attributes are the features."""
    labelled = False
    if features in (None, "labels"):
        for name in listed_names(node_label):
            labelled = check_node_attribute(graphs, name, features is not None or node_label != "label")
    if features == "attributes" or (features is None and not labelled):
        check_node_attribute(graphs, node_attributes, features is not None or node_attributes != "attributes")
    try:
        dataset = GraphDataset.from_networkx(
            graphs,
            y.tolist(),
            node_label=node_label,
            node_attributes=node_attributes,
            edge_label=edge_label,
            edge_weight=edge_weight,
            features=features,
            task="classification",
            directed=directed,
        )
    except TypeError as error:
        raise DataError(f"the node attribute {node_label!r} is no category: {error}") from None
    if features is None and dataset.features == "degrees" and dataset.node_attributes is not None:
        return dataset.with_features("attributes")
    return dataset


def from_pyg(
    graphs: Sequence[Data],
    y: NDArray[np.int64],
    features: Features | None,
    categories: Sequence[Hashable] | None = None,
    category_names: Sequence[str] | None = None,
    *,
    directed: bool = False,
) -> GraphDataset:
    """PyG's graphs by their ``x``.

    With ``categories``, graphs that were cut out of a GraphDataset (they have ``node_labels``) are numbered as these
    and have their names, unless they have names of their own.
    """
    from torch_geometric.data import Data

    cut = categories is not None and features == "labels" and all("node_labels" in g for g in graphs)
    numbers = "node_labels" if cut else "x"
    key = "node_attributes" if features == "attributes" else "x"  # floats, even if those of a few graphs look one-hot
    plain = []
    for i, (g, code) in enumerate(zip(graphs, y, strict=True)):
        if g.edge_index is None:
            raise DataError(f"graph {i} has no edge_index")
        rows = {name: g.get(name) for name in ("self_loop", "edge_weight", "edge_attr")}
        rows |= {} if features in ("degrees", "log-degrees") else {key: g.get(numbers)}
        plain.append(Data(edge_index=g.edge_index.cpu(), num_nodes=g.num_nodes, y=torch.tensor([code]), **rows))
    names = label_names_of(graphs) if cut else None
    values = (categories if names is None else range(len(names))) if cut else None
    dataset = GraphDataset.from_pyg(plain, features=features, categories=values, directed=directed)
    if cut and names is None and category_names is not None:
        names = tuple(category_names)
    return replace(dataset, label_names=names, not_read=unread_of_pyg(graphs, {"x", "edge_weight", "edge_attr"}))
