"""Graphs in files of their own: GraphML, node-link JSON, and a folder of them with their classes in labels.csv.

A node's category is its attribute ``label``. Where there is none, it is the only attribute that holds text (or true
and false) at every node of every file; where there are several of these, none. Its numbers, for
``features="attributes"``, are the list ``attributes``, or else every attribute that is a number at every node of every
file, in the order of the names. Directions, parallel edges and what edges carry are left out.

``labels.csv`` has a header and a line a graph: the file's name, with its ending or without, and its class, any text.
The columns may be named ``graph`` or ``file``, and ``class`` or ``label``; else they are the first and the second.
Its order is the graphs' order. Without it the classes are not known (``classes`` is ``(None,)``), which is enough for
prediction, and the files' names order the graphs.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from tapnet.data.convert import IntArray, assemble
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.io.layout import LABELS, UNREADABLE, Place, is_graph_file, layout_of, printable, readable_files
from tapnet.progress import counting

if TYPE_CHECKING:
    import networkx as nx

MAX_FILE_BYTES = 1 << 27  # about half a million nodes; larger graphs belong into a TU folder
LABEL, ATTRIBUTES, SELF_LOOP = "label", "attributes", "self_loop"  # as GraphDataset.to_networkx calls them


# ---- one graph ----


def read_graph(file: Place) -> nx.Graph:
    """The graph of a .graphml or .json file, with its own node names and attributes."""
    return parse_graph(_content(file), str(file))


def parse_graph(content: bytes, name: str) -> nx.Graph:
    """The same from a file's content; ``name`` ends in .graphml or .json, and stands in errors."""
    if len(content) > MAX_FILE_BYTES:
        raise DataError(f"{name}: larger than {MAX_FILE_BYTES >> 20} MB, which is too much for a file of one graph")
    parse = _parse_graphml if name.lower().endswith(".graphml") else _parse_node_link
    try:
        graph = parse(content, name)
    except RecursionError:
        raise DataError(f"{name}: nested too deeply for a graph") from None
    except MemoryError:
        raise DataError(f"{name}: needs more memory than there is") from None
    if len(graph) == 0:
        raise DataError(f"{name}: the graph has no nodes")
    return graph


def _content(file: Place) -> bytes:
    try:
        with file.open("rb") as stream:
            content: bytes = stream.read(MAX_FILE_BYTES + 1)
            return content
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _parse_graphml(content: bytes, name: str) -> nx.Graph:
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


def _parse_node_link(content: bytes, name: str) -> nx.Graph:
    """The format of ``networkx.node_link_data``, its edges under "links" or "edges"."""
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
    name_of_node: Hashable = value
    return name_of_node


# ---- what its attributes mean ----


class Column(NamedTuple):
    """An attribute that every node has."""

    kind: Literal["numbers", "words", "vectors", "other"]
    values: Sequence[Any]


@dataclass(frozen=True)
class FileGraph:
    """A graph of a file, made small: nodes are numbers."""

    file: str
    size: int
    edge_index: IntArray  # [2, E]
    columns: Mapping[str, Column]

    @classmethod
    def read(cls, file: Place) -> FileGraph:
        return cls.of(read_graph(file), str(file))

    @classmethod
    def of(cls, graph: nx.Graph, file: str) -> FileGraph:
        number = {node: i for i, node in enumerate(graph)}
        ends = [(number[u], number[v]) for u, v in graph.edges()]
        rows = [row for _, row in graph.nodes(data=True)]
        count = Counter(attribute for row in rows for attribute, value in row.items() if value is not None)
        if 0 < count[LABEL] < len(rows):
            lacks = next(node for node, row in graph.nodes(data=True) if row.get(LABEL) is None)
            raise DataError(f"{file}: node {lacks!r} has no {LABEL!r}, though others have")
        columns = {a: _column([row[a] for row in rows]) for a, times in count.items() if times == len(rows)}
        return cls(file, len(graph), np.asarray(ends, dtype=np.int64).reshape(-1, 2).T, columns)


def _column(values: list[Any]) -> Column:
    if all(_is_number(v) for v in values):
        return Column("numbers", values)
    if all(_is_number(v) or isinstance(v, str | bool) for v in values):
        return Column("words", [str(v).lower() if isinstance(v, bool) else v for v in values])
    if all(isinstance(v, list) and all(map(_is_number, v)) for v in values) and len({len(v) for v in values}) == 1:
        return Column("vectors", values)
    return Column("other", ())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class NodeSchema(NamedTuple):
    """Which attribute is the nodes' category, and which are their numbers."""

    category: str | None
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()  # what could be the category

    @classmethod
    def of(cls, graphs: Sequence[FileGraph]) -> NodeSchema:
        """The same for all of the graphs, by the rules at the top."""
        common = set.intersection(*(set(g.columns) for g in graphs)) - {SELF_LOOP}
        kinds = {name: {g.columns[name].kind for g in graphs} for name in sorted(common)}
        lacks = next((g for g in graphs if LABEL not in g.columns), None)
        has = next((g for g in graphs if LABEL in g.columns), None)
        if lacks is not None and has is not None:
            raise DataError(f"{lacks.file}: its nodes have no {LABEL!r}, though those of {has.file} have")
        texts = tuple(name for name, kind in kinds.items() if "words" in kind and kind <= {"words", "numbers"})
        category = LABEL if lacks is None else texts[0] if len(texts) == 1 else None
        if kinds.get(ATTRIBUTES) == {"vectors"}:
            return cls(category, (ATTRIBUTES,), texts)
        numbers = (name for name, kind in kinds.items() if kind == {"numbers"} and name != category)
        return cls(category, tuple(numbers), texts)

    @classmethod
    def named(cls, graph: FileGraph, category: str | None, numbers: Sequence[str] | None) -> NodeSchema:
        """Of one graph, for a model that was trained on attributes of these names; None: that is not known.

        ``label`` and ``attributes``, which mean the same everywhere, may stand for any other name.
        """
        found = cls.of([graph])
        if category in graph.columns:
            found = found._replace(category=category)
        elif category not in (None, LABEL) and found.category != LABEL:
            raise DataError(f"{graph.file}: its nodes have no {category!r}, which the model reads")
        lacks = [name for name in numbers or () if name not in graph.columns]
        if numbers and not lacks:
            found = found._replace(numbers=tuple(numbers))
        elif lacks and ATTRIBUTES not in (lacks[0], *found.numbers):
            raise DataError(f"{graph.file}: its nodes have no {lacks[0]!r}, which the model reads")
        return found


def join(
    graphs: Sequence[FileGraph],
    schemas: Sequence[NodeSchema],  # of each graph
    *,
    name: str,
    y: Sequence[Hashable] | None = None,  # None: not known
    features: Features | None = None,  # nothing but these is read; None: everything
    source: str = "",
) -> GraphDataset:
    """A data set of graphs from files."""
    labels = attributes = None
    if features in (None, "labels") and all(m.category for m in schemas):
        labels = [v for g, m in zip(graphs, schemas, strict=True) for v in _categories(g, m.category or LABEL)]
        if len({isinstance(v, str) for v in labels}) == 2:
            labels = list(map(str, labels))  # "1" in one file and 1 in another are one category
    if features in (None, "attributes") and all(m.numbers for m in schemas):
        attributes = _matrix(graphs, schemas)
    if features == "labels" and labels is None:
        texts = next(m.texts for m in schemas if not m.category)
        others = f"several others hold text ({printable(', '.join(texts)):.200})" if texts else "no other holds text"
        raise DataError(f"{name}: its nodes have no category: no attribute is called {LABEL!r}, and {others}")
    if features == "attributes" and attributes is None:
        raise DataError(f"{name}: its nodes have no numbers")
    sizes = np.asarray([g.size for g in graphs], dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    dataset = assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=np.concatenate([g.edge_index + start for g, start in zip(graphs, first, strict=True)], axis=1),
        y=[None] * len(graphs) if y is None else y,
        node_labels=labels,
        node_attributes=attributes,
        self_loop=np.concatenate([_self_loops(g) for g in graphs]),
        features=features,
        source=source,
    )
    first_meaning = schemas[0]
    return replace(dataset, label_attribute=first_meaning.category, attribute_names=first_meaning.numbers or None)


def _matrix(graphs: Sequence[FileGraph], schemas: Sequence[NodeSchema]) -> NDArray[np.float32]:
    """[N, F], the numbers of all nodes; every graph must have as many."""
    parts: list[NDArray[np.float32]] = []
    for graph, schema in zip(graphs, schemas, strict=True):
        columns = [_floats(graph, name) for name in schema.numbers]
        part = np.concatenate([c[:, None] if c.ndim == 1 else c for c in columns], axis=1)
        if parts and part.shape[1] != parts[0].shape[1]:
            raise DataError(
                f"{graph.file}: {part.shape[1]} numbers a node where {graphs[0].file} has {parts[0].shape[1]}"
            )
        parts.append(part)
    return np.concatenate(parts)


def _categories(graph: FileGraph, name: str) -> Sequence[Hashable]:
    kind, values = graph.columns[name]
    if kind not in ("words", "numbers") or any(isinstance(v, float) and not math.isfinite(v) for v in values):
        raise DataError(f"{graph.file}: the {name!r} of a node, its category, is text or a number")
    return values


def _floats(graph: FileGraph, name: str) -> NDArray[np.float32]:
    if graph.columns[name].kind not in ("numbers", "vectors"):
        raise DataError(f"{graph.file}: the attribute {name!r} of a node is no number")
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused
            column = np.asarray(graph.columns[name].values, dtype=np.float64).astype(np.float32)
        if np.isfinite(column).all():
            return column
    except OverflowError:
        pass
    raise DataError(f"{graph.file}: the attribute {name!r} of a node is NaN, infinite or too large")


def _self_loops(graph: FileGraph) -> NDArray[np.bool_]:
    """Marks of nodes that were joined to themselves, where ``GraphDataset.to_networkx`` left them."""
    column = graph.columns.get(SELF_LOOP)
    marks = column.values if column is not None and column.kind == "words" else ["false"] * graph.size
    return np.asarray([mark == "true" for mark in marks], dtype=np.bool_)


# ---- a folder of graphs ----


def read_graphs(place: Place, *, name: str, features: Features | None = None) -> GraphDataset:
    """The data set of a folder of graphs, or of the one graph of a file."""
    names, y, notes = _Listed([place.name]) if place.is_file() else _listed(place)
    if not names:
        raise DataError(f"{place}: no graphs (.graphml, .json) in this folder")
    graphs = []
    with counting(len(names), f"reading {name}") as advance:
        for file in names:
            graphs.append(FileGraph.read(place if place.is_file() else place / file))
            advance(1)
    schema = NodeSchema.of(graphs)
    if schema.category is None and schema.texts:
        texts = printable(", ".join(schema.texts))[:200]
        notes += (f"{place}: {texts} could each be the nodes' category, so none is; call one {LABEL!r}",)
    dataset = join(graphs, [schema] * len(graphs), name=name, y=y, source=str(place))
    dataset = replace(dataset, notes=notes)
    return dataset if features is None else dataset.with_features(features)


def graph_names(path: str | Path) -> list[str]:
    """The files' names of a folder of graphs, or of one file, in the order of the data set's graphs."""
    layout = layout_of(Path(path))
    if layout.kind != "graphs":
        raise DataError(f"{path}: not a folder of graphs; its graphs have numbers, not names")
    return [layout.place.name] if layout.place.is_file() else _listed(layout.place).files


def class_of(file: Path) -> str | None:
    """What the labels.csv beside a graph's file says of it; None where there is none that does."""
    table = file.parent / LABELS
    try:
        return _read_classes(table, file_names(file.parent)).get(file.name) if table.is_file() else None
    except (DataError, OSError):
        return None


def file_names(folder: Place) -> list[str]:
    """Every graph file of a folder, by name."""
    return sorted(readable_files(folder, is_graph_file))


def require_classes(dataset: GraphDataset) -> None:
    """Graphs whose classes are not known, or all the same, cannot be learned from."""
    if dataset.classes == (None,):
        if len(dataset) == 1:
            raise DataError(f"{dataset.source}: one graph; to train, give the folder of all graphs and their {LABELS}")
        raise DataError(
            f"{dataset.source}: the graphs' classes are not known. Write them into {LABELS} beside the graphs: "
            "a header (graph,class), then a line a graph (first.graphml,ring)"
        )
    if dataset.num_classes < 2:
        raise DataError(f"{dataset.name}: every graph is of class {dataset.classes[0]}; there is nothing to tell apart")


class _Listed(NamedTuple):
    files: list[str]
    classes: list[str] | None = None
    notes: tuple[str, ...] = ()


def _listed(folder: Place) -> _Listed:
    """The files of a data set in its order, and their classes, if there is a labels.csv."""
    there = file_names(folder)
    if not (folder / LABELS).is_file():
        return _Listed(there)
    classes = _read_classes(folder / LABELS, there)
    notes: tuple[str, ...] = ()
    if left_out := [file for file in there if file not in classes]:
        more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
        notes = (f"{folder / LABELS} does not list {', '.join(left_out[:3])}{more}: left out",)
    return _Listed(list(classes), list(classes.values()), notes)


def _read_classes(table: Place, there: Sequence[str]) -> dict[str, str]:
    """File → class, in the table's order."""
    try:
        text = _content(table).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{table}: not UTF-8 text") from None
    if "\0" in text:
        raise DataError(f"{table}: not text: it has NUL bytes")
    by_name: dict[str, list[str]] = {}
    for file in there:
        by_name.setdefault(file.rpartition(".")[0], []).append(file)
    by_name |= {file: [file] for file in there}
    header = text.partition("\n")[0]
    mark = next((mark for mark in ",;\t" if mark in header), ",")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
    classes: dict[str, str] = {}
    try:
        graph, label = _columns(next(lines, []), table, by_name)
        for line in lines:
            if not any(line):
                continue
            where = f"{table}:{lines.line_num}"
            name, value = ("".join(line[i : i + 1]).strip() for i in (graph, label))
            if not name or not value:
                raise DataError(f"{where}: a file's name and its class belong here, not {','.join(line)[:40]!r}")
            files = by_name.get(name, ())
            if len(files) != 1:
                which = f"stands for {' and '.join(files)}" if files else "is no graph file beside it"
                raise DataError(f"{where}: {name!r} {which}")
            if files[0] in classes:
                raise DataError(f"{where}: {files[0]} is listed twice")
            classes[files[0]] = value
    except csv.Error as error:
        raise DataError(f"{table}:{lines.line_num}: not a table ({error})") from None
    if not classes:
        raise DataError(f"{table}: lists no graphs")
    return classes


def _columns(header: Sequence[str], table: Place, files: Mapping[str, object]) -> tuple[int, int]:
    """Which columns hold the files' names and the classes."""
    titles = [title.strip().lower() for title in header]
    if len(titles) < 2 or (header[0].strip() in files and tuple(titles) != ("graph", "class")):
        raise DataError(f"{table}:1: the first line is a header of two columns, such as graph,class")
    named = [
        next((titles.index(word) for word in words if word in titles), None)
        for words in (("graph", "file"), ("class", "label"))
    ]
    others = (i for i in range(len(titles)) if i not in named)
    graph, label = (next(others) if i is None else i for i in named)
    return graph, label
