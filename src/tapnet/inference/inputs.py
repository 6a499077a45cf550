"""Graphs as users hold them (NetworkX, PyG, GraphDataset), checked and made into one GraphDataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.data.convert import check_node_attribute, unread_of_pyg
from tapnet.data.dataset import Features, GraphDataset, GraphReference
from tapnet.errors import DataError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

    Graph: TypeAlias = nx.Graph | Data
    Graphs: TypeAlias = GraphDataset | Sequence[nx.Graph] | Sequence[Data] | NDArray[np.object_]


def check_graphs(graphs: Any) -> Any:
    """A GraphDataset as it is, else a list of graphs of one kind.

    An object array may have one column (``[G, 1]``), as scikit-learn's ``BaggingClassifier`` asks for.

    Raises:
        DataError: saying what is wrong, and with which graph.
    """
    import networkx as nx

    if isinstance(graphs, GraphDataset):
        if len(graphs) == 0:
            raise DataError(f"{graphs.name} has no graphs")
        return graphs
    if isinstance(graphs, nx.Graph) or (hasattr(graphs, "edge_index") and kind_of([graphs])):
        raise DataError("one graph is not a list of graphs: put it in one")
    if getattr(graphs, "shape", ())[1:] == (1,) and len(graphs):  # also a data frame
        graphs = np.asarray(graphs, dtype=object)[:, 0]
    if isinstance(graphs, str | bytes | dict) or not hasattr(graphs, "__len__") or getattr(graphs, "ndim", 1) != 1:
        shape = f" of shape {graphs.shape}" if hasattr(graphs, "shape") else ""
        raise DataError(f"graphs come as a list of NetworkX graphs or PyG Data, not as {type(graphs).__name__}{shape}")
    found = list(graphs)
    if not found:
        raise DataError("there are no graphs: the list is empty")
    if isinstance(found[0], GraphReference):
        dataset, numbers = (
            found[0].dataset,
            [g.number for g in found if getattr(g, "dataset", None) is found[0].dataset],
        )
        if len(numbers) < len(found):
            raise DataError("graphs of several data sets in one array: each numbers its categories in its own way")
        return dataset.subset(numbers)
    kinds = [kind_of([g]) for g in found]
    for i, kind in enumerate(kinds):
        if not kind:
            raise DataError(f"graph {i} is neither a NetworkX graph nor a PyG Data but {type(found[i]).__name__}")
        if kind != kinds[0]:
            raise DataError(f"graphs are all of one kind: graph 0 is of {kinds[0]}, graph {i} of {kind}")
        if (len(found[i]) if kind == "NetworkX" else found[i].num_nodes) == 0:
            raise DataError(f"graph {i} has no nodes")
    return found


def kind_of(graphs: Any) -> str:
    """What graphs are: "GraphDataset", "NetworkX", "PyG", or "" for something else; the first one is looked at."""
    import networkx as nx

    if isinstance(graphs, GraphDataset):
        return "GraphDataset"
    if isinstance(graphs[0], nx.Graph):
        return "NetworkX"
    from torch_geometric.data import Data

    return "PyG" if isinstance(graphs[0], Data) else ""


def from_networkx(
    graphs: Sequence[nx.Graph],
    y: NDArray[np.int64],
    features: Features | None,
    node_label: str,
    node_attributes: str,
    edge_label: str = "label",
    edge_weight: str = "weight",
    *,
    directed: bool = False,
) -> GraphDataset:
    """NetworkX graphs by the names of their attributes; where there are no labels, attributes are the features."""
    labelled = False
    if features in (None, "labels"):
        labelled = check_node_attribute(graphs, node_label, features is not None or node_label != "label")
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
    directed: bool = False,
) -> GraphDataset:
    """PyG's graphs by their ``x``.

    With ``categories``, graphs that were cut out of a GraphDataset (they have ``node_labels``) are numbered as these.
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
        rows |= {} if features == "degrees" else {key: g.get(numbers)}
        plain.append(Data(edge_index=g.edge_index.cpu(), num_nodes=g.num_nodes, y=torch.tensor([code]), **rows))
    dataset = GraphDataset.from_pyg(plain, features=features, categories=categories if cut else None, directed=directed)
    return replace(dataset, not_read=unread_of_pyg(graphs, {"x", "edge_weight", "edge_attr"}))
