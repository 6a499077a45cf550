"""Graphs in files of their own (GraphML, node-link JSON), and a folder of them with their targets in a table.

A node's category is its attribute ``label``. Where there is none, every attribute that holds text (or true and false)
at every node of every file is a category of its own, but for ``id`` and ``name``, which count only where there is no
other. Texts that are all numbers, some of them with a fraction, are numbers. A user may name the categories instead,
and with ``features="all"`` other texts count beside ``label``, too. Its numbers are the list ``attributes``, or else
every attribute that is a number at every node of every file, in the order of the names.

An edge's category is its attribute ``label``, or else every attribute that holds text, as for nodes, if every edge of
every file has it; its weight is ``weight``, and its numbers are found as those of nodes. Parallel edges are one: the
mean of their weights counts, and of all else what the first one has. Directions count where they are asked for.

What some nodes or edges lack is left aside, and a note names the first of them, as it names a text among numbers.

The order of labels.csv or targets.csv is the graphs' order. Without such a table the targets are not known (``classes``
is ``(None,)``), which is enough for prediction, and the files' names order the graphs.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tapnet.data.checks import categories_note, check_classes
from tapnet.data.convert import (
    IntArray,
    assemble,
    directions_note,
    has_one_way_edges,
    is_finite_number,
    joined_edges,
    name_unread,
    networkx_edges,
)
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.errors import DataError, did_you_mean
from tapnet.files import counted, printable, reading
from tapnet.io._plain_text import NUMBER
from tapnet.io.archive import Place, readable_files, total_size
from tapnet.io.dataset_files import is_graph_file, layout_of
from tapnet.io.graph_file import read_graph, read_plain_graph
from tapnet.io.mapped_parts import MappedParts, NotInPartsError
from tapnet.io.plain_graph import PlainGraph
from tapnet.io.tables import LABELS, TARGETS, Listing, excel_error, excel_targets, list_graphs
from tapnet.progress import counting

if TYPE_CHECKING:
    import networkx as nx

# as GraphDataset.to_networkx calls them
NEVER = (1 << 31) - 1
LARGEST = float(np.finfo(np.float32).max)
LABEL, ATTRIBUTES, WEIGHT, SELF_LOOP = "label", "attributes", "weight", "self_loop"
IDENTIFIERS = ("id", "name")  # texts that say which node or edge it is, not of which kind
LARGE_BYTES, VALUES_AT_ONCE = 1 << 28, 1 << 18  # of files that are read in parts; nodes and ends of edges of a part
ENOUGH_TEXTS = 100  # more than numbers: an attribute that is text, of which nothing more is counted
LONGEST_LIST = 400  # characters, of attributes and why they are left aside


# ---- what its attributes mean ----


class Column(NamedTuple):
    """An attribute that every node (or edge) has."""

    kind: Literal["numbers", "words", "vectors", "other"]
    values: Sequence[Any]


_NOTHING = Column("other", ())


@dataclass(frozen=True)
class FileGraph:
    """The graph of a file as arrays: nodes are numbers, and only attributes that every node or edge has are kept."""

    file: str
    size: int
    edge_index: IntArray  # [2, E]
    columns: Mapping[str, Column]
    edge_attributes: frozenset[str] = frozenset()  # the names of all that edges carry
    lacking: Mapping[str, str] = field(default_factory=dict)  # attributes of some nodes, and the first without it
    edge_columns: Mapping[str, Column] = field(default_factory=dict)
    wrong_edges: Mapping[str, str] = field(default_factory=dict)  # what some edges lack, and the first of these
    directed: bool = False
    names: Sequence[Any] = ()  # of the nodes

    @classmethod
    def read(cls, file: Place) -> FileGraph:
        """Reads a .graphml or .json file."""
        graph = read_plain_graph(file)
        if not isinstance(graph, PlainGraph):
            return cls.of(graph, str(file))
        columns, edge_columns = (
            {name: _column(values) for name, values in of.items()} for of in (graph.node_columns, graph.edge_columns)
        )
        (rows, cols), carried = graph.ends, frozenset(graph.edge_columns)
        ends = np.asarray(rows + cols, dtype=np.int64).reshape(2, -1)
        more: dict[str, Any] = {"edge_columns": edge_columns, "directed": graph.directed, "names": graph.names}
        return cls(str(file), graph.size, ends, columns, carried, **more)

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
        columns = {a: _column([row[a] for row in rows]) for a, times in count.items() if times == len(rows)}
        edges = list(graph.edges(data=True))
        count = Counter(attribute for *_, row in edges for attribute, value in row.items() if value is not None)
        lacking_edges = {
            a: next(f"from {u!r:.40} to {v!r:.40}" for u, v, row in edges if row.get(a) is None)
            for a, times in count.items()
            if times < len(edges)
        }
        edge_columns = {a: _column([row[a] for *_, row in edges]) for a, times in count.items() if times == len(edges)}
        return cls(
            file,
            len(graph),
            networkx_edges(graph),
            columns,
            edge_attributes=frozenset(map(str, set().union(*(row for *_, row in edges)))),
            lacking=lacking,
            edge_columns=edge_columns,
            wrong_edges=lacking_edges,
            directed=graph.is_directed(),
            names=list(graph),
        )

    @cached_property
    def is_one_way(self) -> bool:
        """Whether some edge has one direction only."""
        return self.directed and has_one_way_edges(self.edge_index)

    def with_both_directions(self) -> FileGraph:
        """The same, with the reverse of each edge where edges have no direction."""
        if self.directed:
            return self
        ends = np.concatenate([self.edge_index, self.edge_index[::-1]], axis=1)
        columns = {name: Column(kind, [*values, *values]) for name, (kind, values) in self.edge_columns.items()}
        return replace(self, edge_index=ends, edge_columns=columns, directed=True)

    def with_edges_as(self, edges: EdgeSchema) -> FileGraph:
        """The same, where ``label`` and ``attributes`` of its edges stand for what a model calls them."""
        columns = dict(self.edge_columns)
        if len(edges.categories) == 1 and edges.categories[0] not in columns and LABEL in columns:
            columns[edges.categories[0]] = columns.pop(LABEL)
        rows = columns[ATTRIBUTES].values if columns.get(ATTRIBUTES, _NOTHING).kind == "vectors" else ()
        if rows and columns.keys().isdisjoint(edges.numbers) and len(rows[0]) == len(edges.numbers):
            del columns[ATTRIBUTES]
            columns |= {name: Column("numbers", [row[k] for row in rows]) for k, name in enumerate(edges.numbers)}
        others = self.edge_attributes - set(map(str, self.edge_columns))
        return replace(self, edge_columns=columns, edge_attributes=others | set(map(str, columns)))

    def name_of(self, what: Literal["node", "edge"], position: int) -> str:
        """What the file calls a node; of an edge, its ends."""
        if what == "node":
            return f"{str(self.names[position])!r:.40}"
        start, end = (str(self.names[node]) for node in self.edge_index[:, position])
        return f"from {start!r:.40} to {end!r:.40}"

    def without(self, attribute: str, reason: str = "") -> str:
        """The sentence about an attribute that not every node has, and that is wanted for a reason."""
        if attribute in self.lacking:
            return f"{self.file}: node {self.lacking[attribute]} has no {attribute!r}{reason}, though others have"
        return f"{self.file}: its nodes have no {attribute!r}{reason}"

    def edge_column(self, attribute: str, reason: str = "") -> Column:
        """An attribute of the edges, in their order; a DataError where some have none."""
        if not self.edge_index.size:
            return Column("numbers", [])
        if attribute in self.edge_columns:
            return self.edge_columns[attribute]
        first = self.wrong_edges.get(attribute)
        which = f"the edge {first} has" if first else "its edges have"
        other = ", though others have" if first else did_you_mean(attribute, map(str, self.edge_columns))
        raise DataError(f"{self.file}: {which} no {attribute!r}{reason}{other}")


def _column(values: list[Any]) -> Column:
    if (types := set(map(type, values))) <= {int, float} or types == {str}:  # as most are
        return Column("words" if str in types else "numbers", values)
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    if all(_is_number(v) for v in values):
        return Column("numbers", values)
    if all(_is_number(v) or isinstance(v, str | bool) for v in values):
        return Column("words", [str(v).lower() if isinstance(v, bool) else v for v in values])
    if all(isinstance(v, list) and all(map(_is_number, v)) for v in values) and len({len(v) for v in values}) == 1:
        return Column("vectors", values)
    return Column("other", values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float:
    """A finite number, also where it is stored as text; else NaN."""
    if isinstance(value, str):
        value = float(value) if NUMBER.fullmatch(value.strip()) else math.nan
    return float(value) if is_finite_number(value) else math.nan


@dataclass
class _Remarks:
    """What a user should know of the nodes' (or edges') attributes: the first place where each has no value, or a text.

    Attributes:
        of: "node" or "edge".
        missing: Of attributes that some lack, who lacks it, in words.
        gaps: Those that some lack though others in the same file have them.
        odd: Of attributes with a text that is no number, who has it, in words.
        surplus: How many more numbers an attribute has than such texts.
    """

    of: Literal["node", "edge"]
    missing: dict[str, str] = field(default_factory=dict)
    gaps: set[str] = field(default_factory=set)
    odd: dict[str, str] = field(default_factory=dict)
    surplus: Counter[str] = field(default_factory=Counter)
    _first: str = ""  # file
    _seen: set[str] = field(default_factory=set)

    def add(self, graph: FileGraph) -> None:
        """Looks at one more graph."""
        file = PurePath(graph.file).name
        columns, lacking = (
            (graph.columns, graph.lacking) if self.of == "node" else (graph.edge_columns, graph.wrong_edges)
        )
        there = {*columns, *lacking}
        self.gaps.update(lacking)
        for name, who in lacking.items():
            self.missing.setdefault(name, f"{_THE[self.of]} {who} of {file} has none")
        for name in self._seen - there:
            self.missing.setdefault(name, f"no {self.of} of {file} has it")
        for name in there - self._seen if self._first else ():
            self.missing[name] = f"no {self.of} of {self._first} has it"
        self._seen |= there
        self._first = self._first or file
        for name, (kind, values) in columns.items():
            if name in (LABEL, *IDENTIFIERS) or self.surplus[name] < -ENOUGH_TEXTS:
                continue
            if kind == "numbers":
                self.surplus[name] += len(values)
            elif kind == "words":
                self._count_texts(graph, name, values, file)

    def _count_texts(self, graph: FileGraph, name: str, values: Sequence[Any], file: str) -> None:
        count = Counter(value for value in values if isinstance(value, str))
        texts = {text for text in count if math.isnan(_number(text))}
        self.surplus[name] += len(values) - 2 * sum(count[text] for text in texts)
        if texts and name not in self.odd:
            position, text = next((i, v) for i, v in enumerate(values) if isinstance(v, str) and v in texts)
            self.odd[name] = f"{_THE[self.of]} {graph.name_of(self.of, position)} of {file} has {text!r:.40}"

    def reasons(self) -> dict[str, str]:
        """Why attributes are left aside, by what `GraphDataset.not_read` calls them."""
        return {self.unread(name): why for name, why in self.missing.items()}

    def unread(self, name: str) -> str:
        """What `GraphDataset.not_read` calls an attribute."""
        (what,) = name_unread([name], []) if self.of == "node" else name_unread([], [name])
        return what

    def mostly_numbers(self, named: Sequence[str] | None) -> list[str]:
        """The attributes that are numbers but for fewer texts, with the first of these; not those that a user named."""
        names = (name for name in sorted(self.odd) if self.surplus[name] > 0 and name not in self.missing)
        return [f"{name} of {self.of}s ({self.odd[name]})" for name in names if name not in (named or ())]


_THE = {"node": "node", "edge": "the edge"}


def _common_kinds(columns: Sequence[Mapping[str, Column]]) -> tuple[dict[str, set[str]], tuple[str, ...]]:
    """The kinds of each attribute that all graphs have, and which of them are numbers that are stored as text."""
    common = sorted(set.intersection(*map(set, columns)) - {SELF_LOOP})
    kinds: dict[str, set[str]] = {name: {of[name].kind for of in columns} for name in common}
    texts = [name for name, kind in kinds.items() if "words" in kind and kind <= {"words", "numbers"} and name != LABEL]
    from_text = tuple(name for name in texts if _are_numbers(name, [of[name] for of in columns]))
    return kinds | {name: {"numbers"} for name in from_text}, from_text


def _are_numbers(name: str, columns: Sequence[Column]) -> bool:
    """Whether all values are numbers, at least one with a fraction: whole numbers that are stored as text are names."""
    has_fraction = name == WEIGHT
    for value in (value for column in columns for value in column.values):
        number = _number(value)
        if math.isnan(number):
            return False
        has_fraction = has_fraction or not number.is_integer()
    return has_fraction


class NodeSchema(NamedTuple):
    """Which attributes are the nodes' categories, and which are their numbers."""

    categories: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()  # what could be a category
    from_text: tuple[str, ...] = ()  # numbers that are stored as text

    @classmethod
    def of(
        cls, graphs: Sequence[FileGraph], categories: Sequence[str] | None = None, *, all_texts: bool = False
    ) -> NodeSchema:
        """The schema that all of the graphs share, by the rules in this module's docstring.

        Args:
            graphs: The graphs.
            categories: The attributes that are categories; None: they are found.
            all_texts: Whether other texts are categories beside ``label``, where they are found.

        Returns:
            The schema.

        Raises:
            DataError: Some nodes have no such category, or no ``label`` though others have.
        """
        kinds, from_text = _common_kinds([g.columns for g in graphs])
        texts = tuple(name for name, kind in kinds.items() if "words" in kind and kind <= {"words", "numbers"})
        if categories is None:
            chosen = _found_categories(texts, _all_have_labels(graphs), all_texts)
        else:
            chosen = tuple(categories)
            for name in chosen:
                if lacks := next((g for g in graphs if name not in g.columns), None):
                    near = "" if name in lacks.lacking else did_you_mean(name, map(str, lacks.columns))
                    raise DataError(lacks.without(name) + near)
        if kinds.get(ATTRIBUTES) == {"vectors"} and ATTRIBUTES not in chosen:
            return cls(chosen, (ATTRIBUTES,), texts)
        numbers = (name for name, kind in kinds.items() if kind == {"numbers"} and name not in chosen)
        return cls(chosen, tuple(numbers), texts, tuple(name for name in from_text if name not in chosen))

    @classmethod
    def named(cls, graph: FileGraph, categories: Sequence[str], numbers: Sequence[str] | None) -> NodeSchema:
        """The schema of one graph for a model that was trained on attributes with these names.

        ``label`` and ``attributes``, which mean the same everywhere, may stand for any other name, ``label`` only for
        the name of a single category.

        Args:
            graph: The graph.
            categories: The attributes that were the categories; none: not known.
            numbers: The attributes that were numbers; None: not known.

        Returns:
            The schema.

        Raises:
            DataError: The graph's nodes have no such attribute.
        """
        lacks = [name for name in categories if name not in graph.columns]
        if categories and not lacks:
            found = cls.of([graph], categories)
        else:
            found = cls.of([graph])
            stands_in = found.categories == (LABEL,) and len(categories) == 1
            if lacks and tuple(categories) != (LABEL,) and not stands_in:
                raise DataError(graph.without(lacks[0], ", which the model reads"))
            if len(found.categories) > 1:  # which of them is meant is not known
                found = found._replace(categories=())
        lacks = [name for name in numbers or () if name not in graph.columns]
        if numbers and not lacks:
            found = found._replace(numbers=tuple(numbers))
        elif lacks and ATTRIBUTES not in (lacks[0], *found.numbers):
            raise DataError(graph.without(lacks[0], ", which the model reads"))
        return found

    def __str__(self) -> str:
        return _in_words(("category", "categories", self.categories), ("numbers", "numbers", self.numbers))


def _all_have_labels(graphs: Sequence[FileGraph]) -> bool:
    """Whether every node has a ``label``; a DataError where only some have one."""
    if partial := next((g for g in graphs if LABEL in g.lacking), None):
        raise DataError(partial.without(LABEL))
    lacks = next((g for g in graphs if LABEL not in g.columns), None)
    has = next((g for g in graphs if LABEL in g.columns), None)
    if lacks is not None and has is not None:
        raise DataError(f"{lacks.without(LABEL)}, though those of {has.file} have")
    return lacks is None


def _found_categories(texts: Sequence[str], labelled: bool, all_texts: bool = False) -> tuple[str, ...]:
    """Which attributes are categories where the user names none: ``label``, else those that hold text."""
    kinds = tuple(name for name in texts if name not in (LABEL, *IDENTIFIERS))
    if labelled:
        return (LABEL, *kinds) if all_texts else (LABEL,)
    return kinds or (tuple(texts) if len(texts) == 1 else ())


def _in_words(*parts: tuple[str, str, Sequence[str]]) -> str:
    """``category label, numbers mass, x``: what attributes are, in the singular and the plural, and their names."""
    words = (f"{many if len(names) > 1 else one} {', '.join(names)}" for one, many, names in parts if names)
    return printable("; ".join(words))[:200]


class EdgeSchema(NamedTuple):
    """What of the edges is read: which categories, their weight (``weight``), and which numbers."""

    categories: tuple[str, ...] = ()
    weight: bool = False
    numbers: tuple[str, ...] = ()
    from_text: tuple[str, ...] = ()  # numbers that are stored as text

    @classmethod
    def of(cls, graphs: Sequence[FileGraph], categories: Sequence[str] | None = None) -> EdgeSchema:
        """What every edge of every graph has.

        Args:
            graphs: The graphs.
            categories: The attributes that are categories; None: they are found.

        Returns:
            The schema.

        Raises:
            DataError: Some edges have no such category.
        """
        with_edges = [g for g in graphs if g.edge_index.size]
        if not with_edges:
            return cls()
        kinds, from_text = _common_kinds([g.edge_columns for g in with_edges])
        weight = WEIGHT in kinds and WEIGHT not in (categories or ())
        if categories is None:
            texts = [name for name, kind in kinds.items() if "words" in kind and kind <= {"words", "numbers"}]
            texts = [name for name in texts if name not in IDENTIFIERS]
            labelled = kinds.get(LABEL, {"other"}) <= {"words", "numbers"}
            chosen = _found_categories(texts, labelled)
        else:
            chosen = tuple(categories)
            for graph, name in product(with_edges, chosen):
                graph.edge_column(name)  # an error where some have none
        read = {LABEL, WEIGHT, *chosen} if categories is None else {WEIGHT, *chosen}
        numbers = [name for name, kind in kinds.items() if kind == {"numbers"} and name not in read]
        if kinds.get(ATTRIBUTES) == {"vectors"} and ATTRIBUTES not in chosen:
            numbers = [ATTRIBUTES]
        return cls(chosen, weight, tuple(numbers), tuple(name for name in from_text if name not in chosen))

    def __str__(self) -> str:
        weight = ("weight", "weight", (WEIGHT,) if self.weight else ())
        return _in_words(("category", "categories", self.categories), weight, ("numbers", "numbers", self.numbers))


def join(
    graphs: Sequence[FileGraph],
    schemas: Sequence[NodeSchema],
    *,
    name: str,
    edges: EdgeSchema | None = None,
    features: Features | None = None,
    source: str = "",
    directed: bool = False,
) -> GraphDataset:
    """Makes a data set of graphs from files.

    Args:
        graphs: The graphs.
        schemas: The schema of each graph.
        name: The name of the data set.
        edges: What of the edges is read; by default nothing.
        features: What ``x`` holds; nothing else of the nodes is read then. None: everything is read.
        source: The files that they were read from.
        directed: Whether edges keep their directions; those of undirected graphs go both ways.

    Returns:
        The data set; its targets are not known.

    Raises:
        DataError: The nodes or edges have no such features, or a value is of the wrong kind; the message names the
            file.
    """
    labels = attributes = None
    edges = edges or EdgeSchema()
    if directed:
        graphs = [g.with_both_directions() for g in graphs]
    names = schemas[0].categories
    if features in (None, "labels", "all") and all(m.categories for m in schemas):
        columns = [
            [g.columns[m.categories[k]] for g, m in zip(graphs, schemas, strict=True)] for k in range(len(names))
        ]
        labels = _labels(graphs, names, columns, "node")
    if features in (None, "attributes", "all") and all(m.numbers for m in schemas):
        chosen = [[(n, g.columns[n]) for n in m.numbers] for g, m in zip(graphs, schemas, strict=True)]
        attributes = _matrix(graphs, chosen, "node")
    if features == "labels" and labels is None:
        texts = next(m.texts for m in schemas if not m.categories)
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
        y=[None] * len(graphs),
        node_labels=labels,
        node_attributes=attributes,
        **_edge_data(graphs, edges),
        self_loop=_self_loops(graphs),
        features=features,
        source=source,
        directed=directed,
    )
    read = {SELF_LOOP, *(name for m in schemas if labels is not None for name in m.categories)}
    read |= {name for m in schemas for name in m.numbers if attributes is not None}
    on_nodes = {name for g in graphs for name in (*g.columns, *g.lacking)} - read
    read_of_edges = {*edges.numbers, *edges.categories, *[WEIGHT] * edges.weight}
    on_edges = frozenset().union(*(g.edge_attributes for g in graphs)) - read_of_edges
    dataset = replace(
        dataset,
        label_attribute=", ".join(names) or None,
        attribute_names=schemas[0].numbers or None,
        node_columns=names if labels is not None and len(names) > 1 else None,
        edge_label_attribute=", ".join(edges.categories) or None,
        edge_columns=edges.categories if dataset.edge_labels is not None and len(edges.categories) > 1 else None,
        edge_attribute_names=edges.numbers or None,
        not_read=name_unread(on_nodes, on_edges),
    )
    if dataset.node_columns is None or features not in (None, "all"):
        return dataset
    return dataset.with_features(features or _usual_features(dataset))


def _usual_features(dataset: GraphDataset) -> Features:
    """What nodes are where nothing is chosen: several categories with the numbers, one category, else degrees."""
    differ = len(dataset.node_label_values or ()) > 1
    if dataset.node_columns is not None:
        return "all" if differ or dataset.node_attributes is not None else "degrees"
    return "labels" if differ else "degrees"


def _edge_data(graphs: Sequence[FileGraph], edges: EdgeSchema) -> dict[str, Any]:
    """What ``assemble`` takes of edges."""
    found: dict[str, Any] = {}
    graphs = [g for g in graphs if g.edge_index.size]
    if not graphs:
        return found
    if edges.categories:
        columns = [[g.edge_column(name) for g in graphs] for name in edges.categories]
        found["edge_labels"] = _labels(graphs, edges.categories, columns, "edge")
    if edges.weight:
        found["edge_weight"] = np.concatenate([_floats(g, WEIGHT, g.edge_column(WEIGHT), "edge") for g in graphs])
    if edges.numbers:
        chosen = [[(name, g.edge_column(name)) for name in edges.numbers] for g in graphs]
        found["edge_attributes"] = _matrix(graphs, chosen, "edge")
    return found


def _partial_attribute(graphs: Sequence[FileGraph]) -> str:
    """The first attribute that some nodes have and others lack, in a sentence that names one of these; or nothing."""
    common = set.intersection(*(set(g.columns) for g in graphs))
    for name in sorted({a for g in graphs for a in (*g.columns, *g.lacking)} - common - {SELF_LOOP}):
        graph = next(g for g in graphs if name not in g.columns)
        return printable(graph.without(name)) + ("" if name in graph.lacking else ", though those of others have")
    return ""


def _matrix(
    graphs: Sequence[FileGraph], chosen: Sequence[Sequence[tuple[str, Column]]], of: Literal["node", "edge"]
) -> NDArray[np.float32]:
    """[N, F], the numbers of all nodes (or edges) from some columns of each graph, which must be as many in each."""
    parts: list[NDArray[np.float32]] = []
    for graph, named in zip(graphs, chosen, strict=True):
        columns = [_floats(graph, name, column, of) for name, column in named]
        part = np.concatenate([c[:, None] if c.ndim == 1 else c for c in columns], axis=1)
        if parts and part.shape[1] != parts[0].shape[1]:
            raise DataError(
                f"{graph.file}: {counted(part.shape[1], 'number')} per {of} where {graphs[0].file} has "
                f"{parts[0].shape[1]}"
            )
        parts.append(part)
    return np.concatenate(parts)


def _labels(
    graphs: Sequence[FileGraph], names: Sequence[str], columns: Sequence[Sequence[Column]], of: Literal["node", "edge"]
) -> list[Hashable]:
    """The category of all nodes (or edges); of several, tuples of text, whichever way a file wrote numbers."""
    found = [_categories(graphs, name, column, of) for name, column in zip(names, columns, strict=True)]
    return found[0] if len(found) == 1 else list(zip(*(map(plain_text, values) for values in found), strict=True))


def plain_text(value: Hashable) -> str:
    """1, 1.0 and "1" are one category, whichever way a file wrote it, and so are True and "true"."""
    if isinstance(value, bool):
        return str(value).lower()
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if whole else str(value)  # type: ignore[call-overload]


def _categories(
    graphs: Sequence[FileGraph], name: str, columns: Sequence[Column], of: Literal["node", "edge"]
) -> list[Hashable]:
    """The categories of all graphs; "1" in one file and 1 in another are one."""
    found: list[Hashable] = [value for column in columns for value in column.values]
    types = set(map(type, found))
    if types - {str, int}:
        for graph, column in zip(graphs, columns, strict=True):
            for position, value in enumerate(column.values):
                if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
                    what = f"the {name!r} of the {of} {graph.name_of(of, position)} is {value!r:.40}"
                    raise DataError(f"{graph.file}: {what}, where text or a number belongs")
    return list(map(str, found)) if len({issubclass(t, str) for t in types}) == 2 else found


def _floats(graph: FileGraph, name: str, column: Column, of: Literal["node", "edge"]) -> NDArray[np.float32]:
    """Numbers of nodes or edges, also those that are stored as text; a DataError names the first that is none."""
    numbers = list(map(_number, column.values)) if column.kind == "words" else column.values
    if column.kind != "other":
        with suppress(OverflowError), np.errstate(over="ignore"):  # becomes infinite, which is refused
            values = np.asarray(numbers, dtype=np.float64).astype(np.float32)
            if np.isfinite(values).all():
                return values
    for position, value in enumerate(column.values):
        if not all(abs(_number(one)) <= LARGEST for one in (value if isinstance(value, list) else [value])):
            who = f"the {of} {graph.name_of(of, position)}"
            raise DataError(f"{graph.file}: the {name!r} of {who} is {value!r:.40}, where a finite number belongs")
    raise DataError(f"{graph.file}: {name!r} is not as many numbers at every {of}")


def _self_loops(graphs: Sequence[FileGraph]) -> list[bool] | None:
    """[N] the nodes with a self-loop, as ``GraphDataset.to_networkx`` marks them."""
    if not any(SELF_LOOP in g.columns for g in graphs):
        return None
    columns = [g.columns.get(SELF_LOOP, Column("other", ())) for g in graphs]
    marks = [c.values if c.kind == "words" else ["false"] * g.size for g, c in zip(graphs, columns, strict=True)]
    return [mark == "true" for some in marks for mark in some]


# ---- a folder of graphs ----


def read_graphs(
    place: Place,
    *,
    name: str,
    features: Features | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    directed: bool = False,
    node_label: Sequence[str] | None = None,
    edge_label: Sequence[str] | None = None,
) -> GraphDataset:
    """Reads a folder of graphs, or the file of one graph.

    Args:
        place: The folder or file.
        name: The name of the data set.
        features: What ``x`` holds; by default labels where they tell nodes apart, with the numbers where there are
            several categories, else degrees. With ``"all"``, texts are read as categories beside ``label``, too.
        target: The target column of targets.csv (or labels.csv), or several; see
            :func:`tapnet.io.tables.list_graphs`.
        task: What the target columns hold, where it is not what would be found.
        directed: Whether edges keep their directions.
        node_label: The node attributes that are categories, each of its own; by default they are found, as this
            module's docstring says.
        edge_label: The edge attributes that are categories, likewise.

    Returns:
        The data set.

    Raises:
        DataError: There are no graphs, or a file is wrong; the message names the file.
    """
    listing = _listing(place, target, task)
    if not listing.files:
        raise DataError(f"{place}: no graphs (.graphml, .json) in this folder")
    folder = cast(Place, place.parent) if place.is_file() else place
    chosen = _Chosen(node_label, edge_label, features == "all")
    files = _Files(folder, listing.files, name, str(place), directed, chosen)
    with _no_full_collections():
        found = _read_large(files) or _read_all(files)
    schema, edges, notes = found.schema, found.edges, []
    if found.partial:
        notes.append(f"{found.partial}: it is left aside, and a node is its degree")
    if from_text := (*schema.from_text, *(f"{name} of edges" for name in edges.from_text)):
        notes.append(f"{place}: numbers, though they are stored as text: {printable(', '.join(from_text))[:200]}")
    notes += filter(None, [_reading_note(place, found, chosen)])
    if not directed and found.directed:
        notes.append(directions_note(place, found.directed, len(listing.files)))
    notes += filter(None, [categories_note(found.dataset)])
    dataset = listing.apply(replace(found.dataset, notes=(*notes, *found.dataset.notes)))
    return dataset if features is None else dataset.with_features(features)


def _reading_note(place: Place, found: _Read, chosen: _Chosen) -> str:
    """What became of each attribute, why it is left aside where some lack it, and texts among numbers.

    Nothing where no category was found but ``label``, edges carry nothing, no attribute has gaps, and there are no such
    texts. What is not used is said by `features_note`, too, when something is done with the data.
    """
    of_nodes, of_edges = found.remarks
    reasons = of_nodes.reasons() | of_edges.reasons()
    left = [f"{what} ({reasons[what]})" if what in reasons else what for what in found.dataset.not_read]
    mostly = [*of_nodes.mostly_numbers(chosen.node_label), *of_edges.mostly_numbers(chosen.edge_label)]
    gaps = {some.unread(name) for some in found.remarks for name in some.gaps}.intersection(found.dataset.not_read)
    is_surprise = not found.partial and (mostly or gaps)
    if found.schema.categories in ((), (LABEL,)) and not any(found.edges) and not is_surprise:
        return ""
    read = {"of the nodes": str(found.schema), "of the edges": str(found.edges)}
    read["numbers but for some texts"] = printable(", ".join(mostly))[:LONGEST_LIST]
    read["left aside"] = printable(", ".join(left))[:LONGEST_LIST]
    return f"{place}: read " + "; ".join(f"{what}: {words}" for what, words in read.items() if words)


class _Read(NamedTuple):
    dataset: GraphDataset
    schema: NodeSchema
    edges: EdgeSchema
    directed: int  # graphs with an edge in one direction
    partial: str  # the attribute that would describe nodes if all had it
    remarks: tuple[_Remarks, _Remarks]  # on nodes and edges


@contextmanager
def _no_full_collections() -> Iterator[None]:
    """Has the garbage collector look at new objects only.

    Else it goes through those of all imported modules again and again as graphs grow many: a fifth of the time of
    20,000 files. Nothing is frozen: the objects may be those of somebody's notebook.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Chosen(NamedTuple):
    """What the user says of attributes."""

    node_label: Sequence[str] | None = None
    edge_label: Sequence[str] | None = None
    all_texts: bool = False  # beside label


class _Files(NamedTuple):
    folder: Place
    names: Sequence[str]
    of: str  # the data set
    source: str
    directed: bool
    chosen: _Chosen

    def graphs(self) -> Iterator[FileGraph]:
        with counting(len(self.names), f"reading {self.of}") as advance:
            for name in self.names:
                yield FileGraph.read(self.folder / name)
                advance(1)

    def join(self, graphs: Sequence[FileGraph], before: _Read | None = None) -> _Read:
        """The data set of some graphs; where these have no edges, what those of the graphs before carry is taken."""
        edges = before and before.edges
        remarks = before.remarks if before else (_Remarks("node"), _Remarks("edge"))
        schema = NodeSchema.of(graphs, self.chosen.node_label, all_texts=self.chosen.all_texts)
        if edges is None or any(g.edge_index.size for g in graphs):
            edges = EdgeSchema.of(graphs, self.chosen.edge_label)
        one_way = sum(g.is_one_way for g in graphs)
        options: dict[str, Any] = {"name": self.of, "source": self.source, "directed": self.directed}
        dataset = join(graphs, [schema] * len(graphs), edges=edges, **options)
        for graph in graphs:
            remarks[0].add(graph)
            if graph.edge_index.size:
                remarks[1].add(graph)
        partial = _partial_attribute(graphs) if _may_be_partial(schema) else ""
        return _Read(dataset, schema, edges, one_way, partial, remarks)


def _read_all(files: _Files) -> _Read:
    return files.join(list(files.graphs()))


def _read_large(files: _Files) -> _Read | None:
    """The same, in memory for some graphs at a time; None where they are few, or do not go together."""
    with reading(files.source):
        if total_size(files.folder, files.names) < LARGE_BYTES:
            return None
    parts, graphs = MappedParts(), list[FileGraph]()
    first: _Read | None = None
    one_way = nodes = ends = 0
    attributes, common, unread = set[str](), list[set[str]](), set[str]()
    try:
        for number, graph in enumerate(files.graphs(), 1):
            graphs.append(graph)
            nodes, ends = nodes + graph.size, ends + graph.edge_index.size
            if number < len(files.names) and (not ends or nodes + ends <= VALUES_AT_ONCE):
                continue
            part = files.join(graphs, first)
            first = first or part
            if (part.schema, part.edges) != (first.schema, first.edges):
                return None
            parts.add(part.dataset)
            attributes.update(*(map(str, (*g.columns, *g.lacking)) for g in graphs))
            common = [set.intersection(*common, *(set(g.columns) for g in graphs))]
            unread.update(part.dataset.not_read)
            one_way, nodes, ends, graphs = one_way + part.directed, 0, 0, []
        if first is None or (_may_be_partial(first.schema) and attributes - common[0] - {SELF_LOOP}):
            return None
        in_order = sorted(unread, key=lambda what: (not what.startswith("node"), what))
        dataset = replace(parts.dataset(), not_read=tuple(in_order))
    except (NotInPartsError, DataError, OSError):
        return None  # as a whole they are read, or it is said what is wrong
    return first._replace(dataset=dataset.with_features(_usual_features(dataset)), directed=one_way)


def _may_be_partial(schema: NodeSchema) -> bool:
    """Whether nothing describes the nodes, perhaps because not all have it."""
    return not schema.categories and not schema.texts and not schema.numbers


def graph_names(path: str | Path) -> list[str]:
    """The names of the files of a folder of graphs (or of one file), in the order of the data set's graphs."""
    layout = layout_of(Path(path))
    if layout.kind != "graphs":
        raise DataError(f"{path}: not a folder of graphs; its graphs have numbers, not names")
    return _listing(layout.place).files


def node_names(path: str | Path, number: int) -> list[Hashable] | None:
    """What the file of a graph of such a folder calls its nodes; None where it cannot be read any more."""
    place = layout_of(Path(path)).place
    try:
        return list(read_graph(place if place.is_file() else place / graph_names(path)[number]))
    except (DataError, OSError, IndexError):
        return None


def class_of(file: Path) -> Hashable | None:
    """The class that the table in the folder of a graph's file gives it; None: there is none."""
    try:
        listing = _listing(file.parent)
        targets = listing.targets
        if targets is None or targets.task != "classification" or file.name not in listing.files:
            return None
        return targets.classes[int(targets.y[listing.files.index(file.name)])]
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
        what = dataset.source or dataset.name
        if dataset.smiles is not None and not dataset.source and not dataset.graph_columns:
            raise DataError(f"{what}: no target is known; give y, as in GraphDataset.from_smiles(smiles, y)")
        if dataset.smiles is not None or not dataset.source:
            columns = ", ".join(filter(None, dataset.graph_columns or ()))
            columns = f": {printable(columns)[:200]}" if columns else " (it has none so far)"
            raise DataError(f"{what}: no target is known; name the column to predict{columns}")
        if len(dataset) == 1:
            raise DataError(f"{what}: one graph; to train, give the folder of all graphs and their {LABELS}")
        if Path(what).is_dir() and (excel := excel_targets(Path(what))) is not None:
            raise excel_error(excel)
        raise DataError(
            f"{what}: the graphs' classes are not known. Write them into {LABELS} beside the graphs: "
            f"a header (graph,class), then one line per graph (first.graphml,ring); or their targets into {TARGETS}"
        )
    check_classes(dataset.name, dataset.classes, len(dataset))


def _listing(place: Place, target: str | Sequence[str] | None = None, task: Task | None = None) -> Listing:
    if place.is_file():
        return Listing([place.name])
    return list_graphs(place, file_names(place), target, task)
