"""GraphML: the graph of a file, read by NetworkX after a check that the XML is harmless and names each node once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat

from tapnet.errors import DataError
from tapnet.files import printable

if TYPE_CHECKING:
    import networkx as nx

NAMED = b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'  # for a file that does not name it
MAX_DEFAULTS = 1_000_000  # values that nodes and edges do not state: a small file cannot ask for a lot of memory


def parse_graphml(content: bytes, name: str, check_size: Callable[[int, int], None] | None = None) -> nx.Graph:
    """The graph in the content of a file.

    Args:
        content: The file's bytes.
        name: The file's name, for errors.
        check_size: Gets the number of nodes and of edges before the graph is built, and may raise an error.

    Returns:
        The graph, in which every node and edge has the defaults of the attributes that it does not state.

    Raises:
        DataError: It is no such graph.
    """
    import networkx as nx

    found = _scan(content, name)
    if found.graphs != 1:
        raise DataError(f"{name}: {found.graphs or 'no'} <graph> elements where one belongs")
    if check_size is not None:
        check_size(len(found.nodes), len(found.edges))
    if found.defaults * (len(found.nodes) + len(found.edges)) > MAX_DEFAULTS:
        raise DataError(
            f"{name}: {found.defaults:,} attributes with a default for {len(found.nodes):,} nodes and "
            f"{len(found.edges):,} edges, which is too much; state the values at the nodes or edges that have them"
        )
    for line, *ends in found.edges:
        for end in ends:
            if end not in found.nodes:
                raise DataError(f"{name}:{line}: an edge names the node {end!r:.100}, which is not there")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ports and keys without a type, which do no harm
            graph = _read_graphml(content)
    except (nx.NetworkXException, SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{name}: not a GraphML graph ({printable(error):.200})") from None
    if set(graph) != found.nodes:
        raise DataError(f"{name}: a <node> that is not directly in the <graph>")
    for of, rows in (("node_default", graph.nodes(data=True)), ("edge_default", graph.edges(data=True))):
        for attribute, value in graph.graph[of].items():
            for *_, given in rows:
                given.setdefault(attribute, value)
    return graph


class _Booleans(dict[str, bool]):
    """Words for true and false, also with white space around them, as igraph writes them."""

    def __missing__(self, word: str) -> bool:
        if word == word.strip():
            raise KeyError(f"{word!r:.40} where true or false belongs")
        return self[word.strip()]


def _read_graphml(content: bytes) -> nx.Graph:
    """``nx.read_graphml``, which takes booleans only without white space."""
    import networkx as nx
    from networkx.readwrite.graphml import GraphMLReader

    reader = GraphMLReader()
    reader.convert_bool = _Booleans(reader.convert_bool)
    graphs = list(reader(string=content)) or list(reader(string=content.replace(b"<graphml>", NAMED)))
    if not graphs:
        raise nx.NetworkXError("no <graph> in the name space of GraphML")
    graph: nx.Graph = graphs[0]
    return graph


@dataclass
class _Found:
    """What a file holds, as far as it can be told from its elements alone."""

    graphs: int = 0
    defaults: int = 0
    nodes: set[str] = field(default_factory=set)
    edges: list[tuple[int, str | None, str | None]] = field(default_factory=list)  # line, source, target


def _scan(content: bytes, name: str) -> _Found:
    """The elements of well-formed XML. A DOCTYPE, the place of entity bombs, is refused unread."""
    found = _Found()

    def refuse(*_: object) -> None:
        raise DataError(f"{name}: has a DOCTYPE, which no graph needs and which is not read for safety")

    def start(tag: str, values: dict[str, str]) -> None:
        kind = tag.rpartition(" ")[2]
        if kind == "node":
            node = values.get("id")
            if node is None or node in found.nodes:
                what = "a <node> without an id" if node is None else f"the node {node!r:.100} is listed twice"
                raise DataError(f"{name}:{parser.CurrentLineNumber}: {what}")
            found.nodes.add(node)
        elif kind == "edge":
            found.edges.append((parser.CurrentLineNumber, values.get("source"), values.get("target")))
        found.graphs += kind == "graph"
        found.defaults += kind == "default"

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"{name}:{error.lineno}: not XML ({expat.ErrorString(error.code)})") from None
    except DataError:
        raise
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        raise DataError(f"{name}: not XML ({error})") from None
    return found
