"""Node-link JSON, the format of ``networkx.node_link_data``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tapnet.errors import DataError
from tapnet.io.plain_graph import PlainGraph

if TYPE_CHECKING:
    import networkx as nx


def parse_node_link(content: bytes, name: str, check_size: Callable[[int, int], None] | None = None) -> nx.Graph:
    """The graph in the content of a file.

    Args:
        content: The file's bytes; the edges are under "links" or "edges".
        name: The file's name, for errors.
        check_size: Gets the number of nodes and of edges before the graph is built, and may raise an error.

    Returns:
        The graph with what its nodes and edges carry, directed if the file says so; the names of its nodes are text,
        also where they are numbers or lists in the file.

    Raises:
        DataError: It is no such graph.
    """
    import networkx as nx

    try:
        values = _load(content)
    except ValueError as error:
        raise DataError(f"{name}: not JSON ({error})") from None
    except _TwiceError as twice:
        raise DataError(f"{name}: {twice} is there twice in one object") from None
    values = values if isinstance(values, dict) else {}
    nodes, lists = values.get("nodes"), [values[key] for key in ("links", "edges") if isinstance(values.get(key), list)]
    if not isinstance(nodes, list) or not lists:
        raise DataError(f'{name}: not a node-link graph, which has the lists "nodes" and "links" (or "edges")')
    edges = lists[0]
    if lists[-1] != edges:
        raise DataError(f'{name}: has both "links" and "edges", and they differ; one of them belongs here')
    if check_size is not None:
        check_size(len(nodes), len(edges))
    ends = [_ends(edge, i, name) for i, edge in enumerate(edges)]
    directed, parallel = values.get("directed") is True, len({frozenset(pair) for pair in ends}) < len(ends)
    graph: nx.Graph = {  # parallel ones are kept, as each may carry something else
        (False, False): nx.Graph,
        (False, True): nx.MultiGraph,
        (True, False): nx.DiGraph,
        (True, True): nx.MultiDiGraph,
    }[directed, parallel]()
    for i, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise DataError(f'{name}: node {i} is not an object such as {{"id": "a", "label": "C"}}')
        key = _node_name(node.get("id", i), name)
        if key in graph:
            raise DataError(f"{name}: node {key:.100} is listed twice")
        graph.add_node(key)
        graph.nodes[key].update((k, v) for k, v in node.items() if k != "id")
    own_keys = {"source", "target", *(["key"] if values.get("multigraph") is True else [])}
    for i, (edge, pair) in enumerate(zip(edges, ends, strict=True)):
        for end in pair:
            if end not in graph:
                raise DataError(f"{name}: edge {i} names the node {end:.100}, which is not there")
        key = graph.add_edge(*pair)
        carried = graph.edges[(*pair, key) if parallel else pair]
        carried.update((k, v) for k, v in edge.items() if k not in own_keys)
    return graph


def parse_plain_node_link(content: bytes) -> PlainGraph | None:
    """The graph in the content of a file, without building a NetworkX graph.

    Returns:
        The graph; None for one that is wrong, or not as plain as most are: ``parse_node_link`` is for these.
    """
    try:
        values = _load(content)
        nodes, (edges,) = values["nodes"], [values[key] for key in ("links", "edges") if type(values.get(key)) is list]
        columns, edge_columns = _columns(nodes, "id"), _columns(edges, "source", "target")
        names, ends = columns.pop("id"), (edge_columns.pop("source"), edge_columns.pop("target"))
        if values.get("multigraph") is True:
            edge_columns.pop("key", None)
        return PlainGraph.of(names, ends, columns, edge_columns, values.get("directed") is True)
    except (ValueError, TypeError, LookupError, AttributeError, _TwiceError, RecursionError, MemoryError):
        return None


def _columns(rows: list[dict[str, Any]], *own_keys: str) -> dict[str, list[Any]]:
    """The values of objects by their keys; an error where some object has other keys than the first."""
    keys = tuple(rows[0]) if rows else own_keys
    if set(map(len, rows)) > {len(keys)}:
        raise ValueError
    return {key: list(map(itemgetter(key), rows)) for key in keys}


def _ends(edge: Any, number: int, name: str) -> tuple[str, str]:
    if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
        raise DataError(f'{name}: edge {number} is not an object such as {{"source": "a", "target": "b"}}')
    return _node_name(edge["source"], name), _node_name(edge["target"], name)


class _TwiceError(Exception):
    """A key that an object has twice."""


def _load(content: bytes) -> Any:
    """What JSON says; an error where an object has a key twice, of which Python's reader drops the first."""
    values = json.loads(content)
    if type(values) is dict and _num_keys(values) == content.count(b":"):  # as many as can be
        return values
    return json.loads(content, object_pairs_hook=_object)


def _num_keys(graph: dict[str, Any]) -> int:
    """The keys of an object, of those directly in it, and of those in its lists; most graphs have no others."""
    found = [graph, *graph.values()]
    lists = (value for value in found if type(value) is list and set(map(type, value)) == {dict})
    return sum(len(value) for value in found if type(value) is dict) + sum(sum(map(len, rows)) for rows in lists)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise _TwiceError(f"{key!r:.100}")
    return values


def _node_name(value: Any, name: str) -> str:
    """Its name as text: numbers and tuples can be chosen to have one hash, and looking those up takes for ever."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict):
        raise DataError(f"{name}: the name of a node is text or a number, not {value!r:.40}")
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
