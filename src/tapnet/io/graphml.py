"""GraphML: plain graphs as columns, all others by NetworkX after a check that the XML names each node once.

Neither reads a DOCTYPE, the place of entity bombs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.parsers import expat

from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.plain_graph import PlainGraph, columns_of

if TYPE_CHECKING:
    import networkx as nx

NAME_SPACE = "http://graphml.graphdrawing.org/xmlns"
NAMED = f'<graphml xmlns="{NAME_SPACE}"'.encode()
NAMELESS = re.compile(rb"<graphml(?=[\s>])(?![^>]*\sxmlns\s*=)")
TYPES: dict[str, type] = {"string": str, "int": int, "long": int, "float": float, "double": float}
OTHER_ENCODING = re.compile(rb"""[^>]*encoding\s*=\s*['"](?!utf-8['"]|us-ascii['"])""", re.IGNORECASE)
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


def parse_plain_graphml(content: bytes) -> PlainGraph | None:
    """The graph in the content of a file, without building a NetworkX graph.

    Returns:
        The graph; None for one that is wrong, or not as plain as most are: ``parse_graphml`` is for these.
    """
    if b"<!DOCTYPE" in content or b"\0" in content or OTHER_ENCODING.match(content):  # which may hide one
        return None
    try:
        root = ElementTree.fromstring(content)
        space = root.tag.removesuffix("graphml")
        *heads, graph = root
        in_name_space = space == f"{{{NAME_SPACE}}}" or (not space and NAMELESS.search(content))
        if not in_name_space or graph.tag != f"{space}graph":
            return None
        if any(head.tag != f"{space}key" or len(head) for head in heads):  # such as one with a default
            return None
        keys = {head.attrib["id"]: (head.attrib["attr.name"], TYPES[head.attrib["attr.type"]]) for head in heads}
        elements: dict[str, list[ElementTree.Element]] = {f"{space}{kind}": [] for kind in ("node", "edge", "data")}
        for element in graph:
            elements[element.tag].append(element)
        nodes, edges, of_graph = elements.values()
        _attributes(of_graph, keys, f"{space}data")  # not used, but checked
        if any(len(edge.attrib) > 2 for edge in edges):  # an id, a direction of its own
            return None
        ends = [[edge.attrib[end] for edge in edges] for end in ("source", "target")]
        of_nodes, of_edges = ([_attributes(one, keys, f"{space}data") for one in some] for some in (nodes, edges))
        columns = columns_of(of_nodes), columns_of(of_edges)
        directed = graph.get("edgedefault") == "directed"
        return PlainGraph.of([node.attrib["id"] for node in nodes], ends, *columns, directed)
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError, MemoryError):
        return None


def _attributes(
    elements: Sequence[ElementTree.Element] | ElementTree.Element, keys: dict[str, tuple[str, type]], tag: str
) -> dict[str, Any]:
    """What a node or an edge carries; an error where it is not plain."""
    found = {}
    for data in elements:
        name, kind = keys[data.attrib["key"]]
        if data.tag != tag or len(data) or data.text is None:
            raise ValueError
        found[name] = kind(data.text)
    if len(found) < len(elements):
        raise ValueError
    return found


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
    graphs = list(reader(string=content)) or list(reader(string=NAMELESS.sub(NAMED, content, count=1)))
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
