"""The file of one graph, GraphML or node-link JSON, as a NetworkX graph. Free of torch, so that it is imported fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tapnet.errors import DataError
from tapnet.io.archive import Place, read_content
from tapnet.io.graphml import parse_graphml, parse_plain_graphml
from tapnet.io.node_link import parse_node_link, parse_plain_node_link
from tapnet.io.plain_graph import PlainGraph

if TYPE_CHECKING:
    import networkx as nx

MAX_FILE_BYTES = 1 << 27  # about half a million nodes; larger graphs belong into a TU folder


def read_graph(file: Place) -> nx.Graph:
    """The graph of a .graphml or .json file, with its own node names and attributes; a DataError if it is wrong."""
    return parse_graph(read_content(file, MAX_FILE_BYTES + 1), str(file))


def read_plain_graph(file: Place) -> nx.Graph | PlainGraph:
    """The same, as columns where it is plain."""
    content = read_content(file, MAX_FILE_BYTES + 1)
    parse = parse_plain_graphml if file.name.lower().endswith(".graphml") else parse_plain_node_link
    return (parse(content) if len(content) <= MAX_FILE_BYTES else None) or parse_graph(content, str(file))


def parse_graph(content: bytes, name: str, check_size: Callable[[int, int], None] | None = None) -> nx.Graph:
    """``read_graph`` from the content of a file.

    Args:
        content: The file's bytes.
        name: The file's name, which ends in .graphml or .json and stands in errors.
        check_size: Gets the number of nodes and of edges before the graph is built, and may raise an error.

    Returns:
        The graph.

    Raises:
        DataError: It is wrong.
    """
    if len(content) > MAX_FILE_BYTES:
        raise DataError(f"{name}: larger than {MAX_FILE_BYTES >> 20} MB, which is too much for a file of one graph")
    parse = parse_graphml if name.lower().endswith(".graphml") else parse_node_link
    try:
        graph = parse(content, name, check_size)
    except RecursionError:
        raise DataError(f"{name}: nested too deeply for a graph") from None
    except MemoryError:
        raise DataError(f"{name}: needs more memory than there is") from None
    if len(graph) == 0:
        raise DataError(f"{name}: the graph has no nodes")
    return graph
