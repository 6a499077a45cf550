"""GraphML: plain graphs as columns, all others by NetworkX after a check that the XML names each node once.

Neither reads a DOCTYPE, the place of entity bombs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.plain_graph import PlainGraph

if TYPE_CHECKING:
    import networkx as nx

NAME_SPACE = "http://graphml.graphdrawing.org/xmlns"
NAMED = f'<graphml xmlns="{NAME_SPACE}"'.encode()
NAMELESS = re.compile(rb"<graphml(?=[\s>])(?![^>]*\sxmlns\s*=)")
TYPES: dict[str, type] = {"string": str, "int": int, "long": int, "float": float, "double": float}
OTHER_ENCODING = re.compile(rb"""[^>]*encoding\s*=\s*['"](?!utf-8['"])""", re.IGNORECASE)
# For plain files; values with &, or with characters that XML changes or refuses, are not for these.
S, SEAM = r"[ \t\r\n]", "\0"  # a seam is where something was cut out: no file has it, so nothing is found across it
MAX_HEAD, MAX_DATA = 1 << 16, 100  # bytes before the first node; attributes of a node or an edge
NAME, TEXT = r'"([^"<>&\x00-\x1f\ufffe\uffff]*)"', r"([^<>&\x00-\x08\x0b-\x1f\ufffe\uffff]+)"
DATA, KEY = re.compile(rf"<data key={NAME}{S}*>{TEXT}</data>"), re.compile(rf"<data key={NAME}")
FIRST = {tag: re.compile(rf"<{tag}[^<]*((?:<data[^<]*</data>{S}*){{0,{MAX_DATA + 1}}})") for tag in ("node", "edge")}
GRAPH, END = re.compile(rb"<graph(?:\s[^>]*)?>"), re.compile(f"</graph>{S}*</graphml>{S}*".encode())
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
        _name_line(content, name)
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

    What stands before the first node is parsed as XML. Nodes and edges, which plain files write in one way, are found
    by regular expressions, and nothing but white space may be left.

    Returns:
        The graph; None for one that is wrong, or not as plain as most are: ``parse_graphml`` is for these.
    """
    start, end = GRAPH.search(content, 0, MAX_HEAD), content.rfind(b"</graph>")
    if start is None or not END.fullmatch(content, max(end, 0)) or b"\0" in content:
        return None
    try:
        keys, directed = _keys(content[: start.end()])
        text = content[start.end() : end].decode()
        (names,), columns, text = _cut_out("node", ("id",), text, keys)
        ends, edge_columns, text = _cut_out("edge", ("source", "target"), text, keys)
        parts = DATA.split(text)
        for key, value in zip(parts[1::3], parts[2::3], strict=True):  # of the graph; not used, but checked
            keys[key][1](value)
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError, MemoryError):
        return None
    if SEAM.join(parts[::3]).strip(f" \t\r\n{SEAM}"):
        return None
    return PlainGraph.of(names, ends, columns, edge_columns, directed)


@lru_cache(maxsize=16)  # the files of a folder mostly begin alike
def _keys(head: bytes) -> tuple[dict[str, tuple[str, type]], bool]:
    """The name and type of each attribute, and whether edges have directions, from all up to ``<graph …>``."""
    if b"<!DOCTYPE" in head or OTHER_ENCODING.match(head):  # which may hide one
        raise ValueError
    root = ElementTree.fromstring(head + b"</graph></graphml>")
    space = root.tag.removesuffix("graphml")
    *heads, graph = root
    in_name_space = space == f"{{{NAME_SPACE}}}" or (not space and NAMELESS.search(head))
    if not in_name_space or graph.tag != f"{space}graph":
        raise ValueError
    if any(head.tag != f"{space}key" or len(head) for head in heads):  # such as one with a default
        raise ValueError
    types = {key.attrib["id"]: (key.attrib["attr.name"], TYPES[key.attrib["attr.type"]]) for key in heads}
    return types, graph.get("edgedefault") == "directed"


def _cut_out(
    tag: str, attributes: tuple[str, ...], text: str, keys: dict[str, tuple[str, type]]
) -> tuple[list[list[str]], dict[str, list[Any]], str]:
    """The attributes of all nodes (or edges) that are written as the first one is, their data, and the other text."""
    first = FIRST[tag].search(text)
    carried = tuple(KEY.findall(first[1])) if first else ()
    if len(carried) > MAX_DATA:
        raise ValueError
    pattern = _element(tag, attributes, carried)
    parts, step = pattern.split(text), 1 + pattern.groups
    given = [parts[i::step] for i in range(1, step)]
    columns: dict[str, list[Any]] = {}
    for (name, kind), values in zip((keys[key] for key in carried), given[len(attributes) :], strict=True):
        columns[name] = values if kind is str else list(map(kind, values))
    if len(columns) < len(carried):
        raise ValueError
    return given[: len(attributes)], columns, SEAM.join(parts[::step])


@lru_cache(maxsize=64)
def _element(tag: str, attributes: tuple[str, ...], keys: tuple[str, ...]) -> re.Pattern[str]:
    """Matches one node or edge with nothing but these attributes and the data of these keys."""
    given = "".join(rf"{S}+{name}={NAME}" for name in attributes)
    data = "".join(rf'{S}*<data key="{re.escape(key)}"{S}*>{TEXT}</data>' for key in keys)
    return re.compile(rf"<{tag}{given}{S}*(?:>{data}{S}*</{tag}>" + (")" if keys else "|/>)"))


def _boolean(text: str) -> bool:
    """True or false, also with white space around it, as igraph writes it."""
    return {"true": True, "false": False, "1": True, "0": False}[text.strip().lower()]


class _Booleans(dict[str, bool]):
    """What ``_boolean`` makes of each text."""

    def __missing__(self, text: str) -> bool:
        return _boolean(text)


def _read_graphml(content: bytes) -> nx.Graph:
    """``nx.read_graphml``, but with white space around booleans, and the ids of edges also where some are parallel."""
    import networkx as nx
    from networkx.readwrite.graphml import GraphMLReader

    reader = GraphMLReader()
    reader.convert_bool = _Booleans()
    graphs = list(reader(string=content)) or list(reader(string=NAMELESS.sub(NAMED, content, count=1)))
    if not graphs:
        raise nx.NetworkXError("no <graph> in the name space of GraphML")
    graph: nx.Graph = graphs[0]
    if graph.is_multigraph():
        for *ends, key, given in graph.edges(keys=True, data=True):
            if not reader.edge_ids.keys().isdisjoint([tuple(ends), tuple(ends[::-1])]):
                given.setdefault("id", str(key))
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


WANTED: dict[Any, str] = {int: "a whole number", float: "a number", _boolean: "true or false"}
ALL_TYPES = TYPES | {"boolean": _boolean, "integer": int, "yfiles": str}  # that NetworkX reads


def _name_line(content: bytes, name: str) -> None:
    """Raises a DataError that names the line of what NetworkX refused in well-formed XML, where it is found."""
    keys: dict[str | None, tuple[str | None, Any]] = {}  # the name and type of each
    key: str | None = None
    text: list[str] | None = None  # of the value that is being read
    directed, line = "false", 0

    def wrong(reason: str) -> NoReturn:
        raise DataError(f"{name}:{line}: {reason}") from None

    def start(tag: str, values: dict[str, str]) -> None:
        nonlocal directed, key, line, text
        kind, line = tag.rpartition(" ")[2], parser.CurrentLineNumber
        if kind == "key":
            key, word = values.get("id"), "yfiles" if "yfiles.type" in values else values.get("attr.type", "string")
            if word not in ALL_TYPES:
                wrong(f"the key {key!r:.40} has the type {word!r:.40}, which is none of {', '.join(TYPES)} and boolean")
            keys[key] = values.get("attr.name", key), ALL_TYPES[word]
        elif kind == "data":
            key = values.get("key")
            if key not in keys:
                wrong(f"there is no key {key!r:.40}")
        elif kind == "graph":
            directed = str(values.get("edgedefault") == "directed").lower()
        elif kind == "edge" and {directed, values.get("directed", directed)} == {"true", "false"}:
            wrong("the graph has directed and undirected edges, where all belong to one kind")
        text = [] if kind in ("data", "default") else None

    def end(tag: str) -> None:
        nonlocal text
        if text or (text is not None and tag.endswith("default")):
            (attribute, read), value = keys.get(key, (key, str)), "".join(text)
            try:
                read(value)
            except (ValueError, KeyError):
                wrong(f"{attribute!r:.40} is {value!r:.40}, where {WANTED[read]} belongs")
        text = None

    def characters(part: str) -> None:
        if text is not None:
            text.append(part)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    parser.Parse(content, True)
