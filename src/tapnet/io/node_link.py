"""Node-link JSON, the format of ``networkx.node_link_data``."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast

from tapnet.errors import DataError

if TYPE_CHECKING:
    import networkx as nx


def parse_node_link(content: bytes, name: str) -> nx.Graph:
    """The graph in the content of a file, whose name stands in errors; its edges are under "links" or "edges"."""
    import networkx as nx

    try:
        values = json.loads(content)
    except ValueError as error:
        raise DataError(f"{name}: not JSON ({error})") from None
    nodes = values.get("nodes") if isinstance(values, dict) else None
    edges = values.get("links", values.get("edges")) if isinstance(values, dict) else None
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise DataError(f'{name}: not a node-link graph, which has the lists "nodes" and "links" (or "edges")')
    graph = nx.Graph()
    for i, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise DataError(f'{name}: node {i} is not an object such as {{"id": "a", "label": "C"}}')
        key = _hashable(node.get("id", i), name)
        if key in graph:
            raise DataError(f"{name}: node {key!r} is listed twice")
        graph.add_node(key)
        graph.nodes[key].update((k, v) for k, v in node.items() if k != "id")
    for i, edge in enumerate(edges):
        if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
            raise DataError(f'{name}: edge {i} is not an object such as {{"source": "a", "target": "b"}}')
        ends = [_hashable(edge[end], name) for end in ("source", "target")]
        for end in ends:
            if end not in graph:
                raise DataError(f"{name}: edge {i} names the node {end!r}, which is not there")
        graph.add_edge(*ends)
    return graph


def _hashable(value: Any, name: str) -> Hashable:
    """A node's name; a tuple is a list in JSON."""
    if isinstance(value, list):
        return tuple(_hashable(v, name) for v in value)
    if value is None or isinstance(value, dict):
        raise DataError(f"{name}: the name of a node is text or a number, not {value!r:.40}")
    return cast(Hashable, value)
