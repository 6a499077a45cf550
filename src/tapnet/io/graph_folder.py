"""Graphs in files of their own (GraphML, node-link JSON), and a folder of them with their classes in labels.csv.

A node's category is its attribute ``label``. Where there is none, it is the only attribute that holds text (or true
and false) at every node of every file; where there are several of these, none. Its numbers, for
``features="attributes"``, are the list ``attributes``, or else every attribute that is a number at every node of every
file, in the order of the names. Directions, parallel edges and what edges carry are left out.

The order of labels.csv is the graphs' order. Without it the classes are not known (``classes`` is ``(None,)``), which
is enough for prediction, and the files' names order the graphs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.data.checks import check_classes
from tapnet.data.convert import IntArray, assemble, joined_edges, name_unread, networkx_edges
from tapnet.data.dataset import Features, GraphDataset
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.archive import Place, readable_files
from tapnet.io.dataset_files import is_graph_file, layout_of
from tapnet.io.graph_file import read_graph
from tapnet.io.tables import LABELS, read_classes
from tapnet.progress import counting

if TYPE_CHECKING:
    import networkx as nx

LABEL, ATTRIBUTES, SELF_LOOP = "label", "attributes", "self_loop"  # as GraphDataset.to_networkx calls them


# ---- what its attributes mean ----


class Column(NamedTuple):
    """An attribute that every node has."""

    kind: Literal["numbers", "words", "vectors", "other"]
    values: Sequence[Any]


@dataclass(frozen=True)
class FileGraph:
    """The graph of a file as arrays: nodes are numbers, and only attributes that every node has are kept."""

    file: str
    size: int
    edge_index: IntArray  # [2, E]
    columns: Mapping[str, Column]
    edge_attributes: frozenset[str] = frozenset()  # the names of what edges carry, which is not read
    lacking: Mapping[str, str] = field(default_factory=dict)  # attributes of some nodes, and the first without it

    @classmethod
    def read(cls, file: Place) -> FileGraph:
        """Reads a .graphml or .json file."""
        return cls.of(read_graph(file), str(file))

    @classmethod
    def of(cls, graph: nx.Graph, file: str) -> FileGraph:
        """From a NetworkX graph; ``file`` stands in errors."""
        rows = [row for _, row in graph.nodes(data=True)]
        count = Counter(attribute for row in rows for attribute, value in row.items() if value is not None)
        lacking = {
            a: next(f"{node!r:.40}" for node, row in graph.nodes(data=True) if row.get(a) is None)
            for a, times in count.items()
            if times < len(rows)
        }
        if LABEL in lacking:
            raise DataError(f"{file}: node {lacking[LABEL]} has no {LABEL!r}, though others have")
        columns = {a: _column([row[a] for row in rows]) for a, times in count.items() if times == len(rows)}
        on_edges = frozenset(map(str, set().union(*(data for *_, data in graph.edges(data=True)))))
        return cls(file, len(graph), networkx_edges(graph), columns, on_edges, lacking)

    def without(self, attribute: str) -> str:
        """The sentence about an attribute that not every node has."""
        if attribute in self.lacking:
            return f"{self.file}: node {self.lacking[attribute]} has no {attribute!r}, though others have"
        return f"{self.file}: its nodes have no {attribute!r}"


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
        """The schema that all of the graphs share, by the rules in this module's docstring."""
        common = set.intersection(*(set(g.columns) for g in graphs)) - {SELF_LOOP}
        kinds = {name: {g.columns[name].kind for g in graphs} for name in sorted(common)}
        lacks = next((g for g in graphs if LABEL not in g.columns), None)
        has = next((g for g in graphs if LABEL in g.columns), None)
        if lacks is not None and has is not None:
            raise DataError(f"{lacks.without(LABEL)}, though those of {has.file} have")
        texts = tuple(name for name, kind in kinds.items() if "words" in kind and kind <= {"words", "numbers"})
        category = LABEL if lacks is None else texts[0] if len(texts) == 1 else None
        if kinds.get(ATTRIBUTES) == {"vectors"}:
            return cls(category, (ATTRIBUTES,), texts)
        numbers = (name for name, kind in kinds.items() if kind == {"numbers"} and name != category)
        return cls(category, tuple(numbers), texts)

    @classmethod
    def named(cls, graph: FileGraph, category: str | None, numbers: Sequence[str] | None) -> NodeSchema:
        """The schema of one graph for a model that was trained on attributes with these names.

        ``label`` and ``attributes``, which mean the same everywhere, may stand for any other name.

        Args:
            graph: The graph.
            category: The attribute that was the category; None: not known.
            numbers: The attributes that were numbers; None: not known.

        Returns:
            The schema.

        Raises:
            DataError: The graph's nodes have no such attribute.
        """
        found = cls.of([graph])
        if category in graph.columns:
            found = found._replace(category=category)
        elif category not in (None, LABEL) and found.category != LABEL:
            raise DataError(f"{graph.without(str(category))}; the model reads it")
        lacks = [name for name in numbers or () if name not in graph.columns]
        if numbers and not lacks:
            found = found._replace(numbers=tuple(numbers))
        elif lacks and ATTRIBUTES not in (lacks[0], *found.numbers):
            raise DataError(f"{graph.without(lacks[0])}; the model reads it")
        return found


def join(
    graphs: Sequence[FileGraph],
    schemas: Sequence[NodeSchema],
    *,
    name: str,
    y: Sequence[Hashable] | None = None,
    features: Features | None = None,
    source: str = "",
) -> GraphDataset:
    """Makes a data set of graphs from files.

    Args:
        graphs: The graphs.
        schemas: The schema of each graph.
        name: The name of the data set.
        y: The class of each graph; None: not known.
        features: What ``x`` holds; nothing else is read then. None: everything is read.
        source: The files that they were read from.

    Returns:
        The data set.

    Raises:
        DataError: The nodes have no such features, or a value is of the wrong kind; the message names the file.
    """
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
        partial = "" if texts else _partial_attribute(graphs)
        others += f" at every node ({partial})" if partial else ""
        raise DataError(f"{name}: its nodes have no category: no attribute is called {LABEL!r}, and {others}")
    if features == "attributes" and attributes is None:
        partial = _partial_attribute(graphs)
        raise DataError(f"{name}: its nodes have no numbers" + (f" at every node ({partial})" if partial else ""))
    sizes = np.asarray([g.size for g in graphs], dtype=np.int64)
    dataset = assemble(
        name=name,
        nodes_per_graph=sizes,
        edge_index=joined_edges([g.edge_index for g in graphs], sizes),
        y=[None] * len(graphs) if y is None else y,
        node_labels=labels,
        node_attributes=attributes,
        self_loop=np.concatenate([_self_loops(g) for g in graphs]),
        features=features,
        source=source,
    )
    read = {SELF_LOOP, *(m.category for m in schemas if labels is not None)}
    read |= {name for m in schemas for name in m.numbers if attributes is not None}
    on_nodes = set.intersection(*(set(g.columns) for g in graphs)) - read
    return replace(
        dataset,
        label_attribute=schemas[0].category,
        attribute_names=schemas[0].numbers or None,
        not_read=name_unread(on_nodes, frozenset().union(*(g.edge_attributes for g in graphs))),
    )


def _partial_attribute(graphs: Sequence[FileGraph]) -> str:
    """The first attribute that some nodes have and others lack, in a sentence that names one of these; or nothing."""
    common = set.intersection(*(set(g.columns) for g in graphs))
    for name in sorted({a for g in graphs for a in (*g.columns, *g.lacking)} - common - {SELF_LOOP}):
        graph = next(g for g in graphs if name not in g.columns)
        return printable(graph.without(name)) + ("" if name in graph.lacking else ", though those of others have")
    return ""


def _matrix(graphs: Sequence[FileGraph], schemas: Sequence[NodeSchema]) -> NDArray[np.float32]:
    """[N, F], the numbers of all nodes; every graph must have as many."""
    parts: list[NDArray[np.float32]] = []
    for graph, schema in zip(graphs, schemas, strict=True):
        columns = [_floats(graph, name) for name in schema.numbers]
        part = np.concatenate([c[:, None] if c.ndim == 1 else c for c in columns], axis=1)
        if parts and part.shape[1] != parts[0].shape[1]:
            raise DataError(
                f"{graph.file}: {part.shape[1]} numbers per node where {graphs[0].file} has {parts[0].shape[1]}"
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
    """[n] the nodes with a self-loop, as ``GraphDataset.to_networkx`` marks them."""
    column = graph.columns.get(SELF_LOOP)
    marks = column.values if column is not None and column.kind == "words" else ["false"] * graph.size
    return np.asarray([mark == "true" for mark in marks], dtype=np.bool_)


# ---- a folder of graphs ----


def read_graphs(place: Place, *, name: str, features: Features | None = None) -> GraphDataset:
    """Reads a folder of graphs, or the file of one graph.

    Args:
        place: The folder or file.
        name: The name of the data set.
        features: What ``x`` holds; by default labels where they tell nodes apart, else degrees.

    Returns:
        The data set.

    Raises:
        DataError: There are no graphs, or a file is wrong; the message names the file.
    """
    names, y, notes = _listed(place)
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
    elif schema.category is None and not schema.numbers and (partial := _partial_attribute(graphs)):
        notes += (f"{partial}: it is left aside, and a node is its degree",)
    dataset = replace(join(graphs, [schema] * len(graphs), name=name, y=y, source=str(place)), notes=notes)
    return dataset if features is None else dataset.with_features(features)


def graph_names(path: str | Path) -> list[str]:
    """The names of the files of a folder of graphs (or of one file), in the order of the data set's graphs."""
    layout = layout_of(Path(path))
    if layout.kind != "graphs":
        raise DataError(f"{path}: not a folder of graphs; its graphs have numbers, not names")
    return _listed(layout.place)[0]


def class_of(file: Path) -> str | int | None:
    """The class that the labels.csv in the folder of a graph's file gives it; None: there is none."""
    table = file.parent / LABELS
    try:
        return read_classes(table, file_names(file.parent)).get(file.name) if table.is_file() else None
    except (DataError, OSError):
        return None


def file_names(folder: Place) -> list[str]:
    """The names of the graph files of a folder, sorted."""
    return sorted(readable_files(folder, is_graph_file))


def require_targets(dataset: GraphDataset) -> None:
    """Raises a DataError unless the targets of the graphs are known and not all the same."""
    if dataset.task != "classification":
        if not bool((dataset.y.nan_to_num() != dataset.y[:1].nan_to_num()).any()):
            raise DataError(f"{dataset.name}: every graph has the same targets; there is nothing to learn")
        return
    if dataset.classes == (None,):
        if len(dataset) == 1:
            raise DataError(f"{dataset.source}: one graph; to train, give the folder of all graphs and their {LABELS}")
        raise DataError(
            f"{dataset.source}: the graphs' classes are not known. Write them into {LABELS} beside the graphs: "
            "a header (graph,class), then one line per graph (first.graphml,ring)"
        )
    check_classes(dataset.name, dataset.classes, len(dataset))


def _listed(folder: Place) -> tuple[list[str], list[str | int] | None, tuple[str, ...]]:
    """The files of a data set in its order, their classes, if there is a labels.csv, and notes for the user."""
    if folder.is_file():
        return [folder.name], None, ()
    there = file_names(folder)
    if not (folder / LABELS).is_file():
        return there, None, ()
    classes = read_classes(folder / LABELS, there)
    notes: tuple[str, ...] = ()
    if left_out := [file for file in there if file not in classes]:
        more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
        notes = (f"{folder / LABELS} does not list {', '.join(left_out[:3])}{more}: left out",)
    return list(classes), list(classes.values()), notes
