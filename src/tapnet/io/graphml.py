"""GraphML: the graph of a file, read by NetworkX after a check that the XML is harmless."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from typing import TYPE_CHECKING
from xml.parsers import expat

from tapnet.errors import DataError
from tapnet.files import printable

if TYPE_CHECKING:
    import networkx as nx


def parse_graphml(content: bytes, name: str) -> nx.Graph:
    """The graph in the content of a file, whose name stands in errors."""
    import networkx as nx

    elements = _elements(content, name)
    if elements["graph"] != 1:
        raise DataError(f"{name}: {elements['graph'] or 'no'} <graph> elements where one belongs")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ports and keys without a type, which do no harm
            graph = nx.read_graphml(io.BytesIO(content))
    except (nx.NetworkXException, SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{name}: not a GraphML graph ({printable(error):.200})") from None
    if len(graph) != elements["node"]:
        raise DataError(f"{name}: an edge names a node that is not there, or a node is listed twice")
    for attribute, value in graph.graph["node_default"].items():
        for _, given in graph.nodes(data=True):
            given.setdefault(attribute, value)
    return graph


def _elements(content: bytes, name: str) -> Counter[str]:
    """How often each element occurs in well-formed XML. A DOCTYPE, the place of entity bombs, is refused unread."""
    count: Counter[str] = Counter()

    def refuse(*_: object) -> None:
        raise DataError(f"{name}: has a DOCTYPE, which no graph needs and which is not read for safety")

    def start(tag: str, _: object) -> None:
        count[tag.rpartition(" ")[2]] += 1

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
    return count
