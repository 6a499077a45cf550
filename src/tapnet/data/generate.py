"""Data sets with a known truth, made by a seed: what a pooling has to find is said of every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.convert import assemble
from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError, did_you_mean

Ints = NDArray[np.int64]
Random = np.random.Generator

MOST_COUNTED = 10  # as in COLORS-3 and TRIANGLES
MAX_NODES = 1 << 31  # of all graphs
SMALLEST = {"colors": 20, "triangles": 40, "needle": 8, "path": 8, "wl": 12}  # nodes, so that each class can be


class Generated(NamedTuple):
    """A data set, and the nodes that its classes depend on."""

    dataset: GraphDataset
    truth: Tensor  # [N] bool


def generate(kind: str, graphs: int = 1000, nodes: int = 50, seed: int = 0) -> Generated:
    """Makes a data set of which it is known what the classes depend on.

    Graphs have from half of ``nodes`` to ``nodes``, evenly spread (those of triangles at least 40). The classes are
    equally large, up to rounding.

    Args:
        kind: ``"colors"``: count the green nodes among red and blue ones, 0 to 10, as in COLORS-3 (Knyazev, Taylor,
            Amer, 2019). ``"triangles"``: count the triangles, 0 to 10, of ten cycles of which the others are squares:
            no degree and no number of edges tells them. ``"needle"``: three nodes, or one of a hundred, carry a mark in
            their first number and the class in the second; the numbers of all others are noise. ``"path"``: two
            coloured nodes in the same tree of two, or not. ``"wl"``: pairs of graphs that the Weisfeiler-Leman test,
            and so a network of convolutions, cannot tell apart: twice a graph, or a connected graph that covers it
            twice (as a hexagon covers a triangle).
        graphs: their number.
        nodes: of the largest graph.
        seed: the same seed makes the same data.

    Returns:
        The data set, and of every node whether the class depends on it: the green nodes, those of triangles, the marked
        ones, those of the path between the two coloured ones (these two, if there is none). In ``"wl"`` there are none.

    Raises:
        SettingError: if there is no such kind, or too few or too many graphs or nodes are asked for.

    Example:
        >>> dataset, truth = generate("colors", graphs=100, nodes=30)
        >>> dataset.num_graphs, dataset.num_classes, int(truth.sum()) == int(dataset.y.sum())
        (100, 11, True)
    """
    if kind not in KINDS:
        raise SettingError(f"kind is one of {', '.join(KINDS)}, not {kind!r}{did_you_mean(kind, KINDS)}")
    if nodes < SMALLEST[kind]:
        raise SettingError(f"graphs of {kind} have at least {SMALLEST[kind]} nodes, not {nodes}")
    classes = 2 if kind in ("needle", "path", "wl") else MOST_COUNTED + 1
    if graphs < classes:
        raise SettingError(f"{kind} has {classes} classes, so at least {classes} graphs: not {graphs}")
    if graphs * nodes > MAX_NODES:
        raise SettingError(f"at most {MAX_NODES:,} nodes in all are made, not {graphs:,} graphs of up to {nodes:,}")
    if seed < 0:
        raise SettingError(f"seed is a whole number, at least 0, not {seed}")
    rng = np.random.default_rng([seed, sorted(KINDS).index(kind)])
    least = max(-(-nodes // 2), 4 * MOST_COUNTED if kind == "triangles" else 0)
    sizes = rng.integers(least, nodes, graphs, endpoint=True)
    y = np.arange(graphs) % classes
    if kind != "wl":  # whose pairs stand together
        rng.shuffle(y)
    made = KINDS[kind](sizes, y, rng)
    return _shuffled(f"{kind}-{nodes}", y, made, rng)


class _Made(NamedTuple):
    """What is made of a kind, before its nodes are shuffled."""

    sizes: Ints  # [G]
    edges: Ints  # [2, E]
    truth: NDArray[np.bool_]  # [N]
    labels: Ints | None = None
    attributes: NDArray[np.float32] | None = None


def _shuffled(name: str, y: Ints, made: _Made, rng: Random) -> Generated:
    """A data set with the nodes of each graph in a random order, so that their numbers tell nothing."""
    graph = np.repeat(np.arange(len(made.sizes)), made.sizes)
    order = np.lexsort((rng.random(len(graph)), graph))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    dataset = assemble(
        name=name,
        nodes_per_graph=made.sizes,
        edge_index=place[made.edges],
        y=y,
        node_labels=None if made.labels is None else made.labels[order],
        node_attributes=None if made.attributes is None else made.attributes[order],
        features="degrees" if made.labels is None and made.attributes is None else None,
    )
    if made.attributes is not None:
        dataset = dataset.with_features("attributes")
    return Generated(dataset, torch.from_numpy(made.truth[order]))


# ---- random graphs ----


def _first_nodes(sizes: Ints) -> Ints:
    return np.asarray(np.cumsum(sizes) - sizes)


def _within(sizes: Ints) -> tuple[Ints, Ints]:
    """Of each node its number within its graph, and that of the graph's first node."""
    first = np.repeat(_first_nodes(sizes), sizes)
    return np.arange(sizes.sum()) - first, first


def _parents(sizes: Ints, rng: Random) -> Ints:
    """[N] of random recursive trees: each node's parent is any before it; that of a first node itself."""
    within, first = _within(sizes)
    return np.asarray(first + (rng.random(len(within)) * within).astype(np.int64))


def _tree_edges(parents: Ints) -> Ints:
    node = np.arange(len(parents))
    return np.stack([node, parents])[:, parents != node]


def _random_graphs(sizes: Ints, rng: Random) -> Ints:
    """[2, E] connected graphs with about two edges for a node."""
    _, first = _within(sizes)
    ends = first + (rng.random((2, len(first))) * np.repeat(sizes, sizes)).astype(np.int64)
    return np.concatenate([_tree_edges(_parents(sizes, rng)), ends[:, ends[0] != ends[1]]], axis=1)


def _chosen(sizes: Ints, counts: Ints, rng: Random) -> NDArray[np.bool_]:
    """[N] so many nodes of each graph, by chance."""
    graph = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((rng.random(len(graph)), graph))
    chosen = np.zeros(len(graph), bool)
    chosen[order] = _within(sizes)[0] < np.repeat(counts, sizes)
    return chosen


# ---- the kinds ----


def _colors(sizes: Ints, y: Ints, rng: Random) -> _Made:
    green = _chosen(sizes, y, rng)
    labels = np.where(green, 1, 2 * rng.integers(0, 2, len(green)))  # 0 red, 1 green, 2 blue
    return _Made(sizes, _random_graphs(sizes, rng), green, labels)


def _triangles(sizes: Ints, y: Ints, rng: Random) -> _Made:
    """Ten cycles and single nodes, joined by a random tree: an edge more, and there might be other triangles."""
    corners = np.where(np.arange(MOST_COUNTED) < y[:, None], 3, 4)  # [G, 10]
    single = sizes - corners.sum(1)
    units = single + MOST_COUNTED  # cycles, then single nodes
    length = np.ones(units.sum(), np.int64)
    begin = _first_nodes(units)
    length[(begin[:, None] + np.arange(MOST_COUNTED)).ravel()] = corners.ravel()
    begin = np.cumsum(length) - length  # the first node of each unit; units follow each other as nodes do
    # a random order of the units of each graph, and each joined to one before it
    graph = np.repeat(np.arange(len(units)), units)
    order = np.lexsort((rng.random(len(graph)), graph))
    parents = order[_parents(units, rng)]
    node, parent = (begin[u] + (rng.random(len(u)) * length[u]).astype(np.int64) for u in (order, parents))
    tree = np.stack([node, parent])[:, order != parents]
    within, first = _within(length)
    long = np.repeat(length, length) > 1
    cycles = np.stack([first + within, first + (within + 1) % np.repeat(length, length)])[:, long]
    return _Made(sizes, np.concatenate([tree, cycles], axis=1), np.repeat(length, length) == 3)


def _needle(sizes: Ints, y: Ints, rng: Random) -> _Made:
    marked = _chosen(sizes, np.maximum(3, sizes // 100), rng)
    attributes = rng.normal(size=(len(marked), 8)).astype(np.float32)
    attributes[marked, 0] += 5
    attributes[marked, 1] += np.repeat(4 * y - 2, sizes)[marked]
    return _Made(sizes, _random_graphs(sizes, rng), marked, attributes=attributes)


def _path(sizes: Ints, y: Ints, rng: Random) -> _Made:
    """Two trees of about half of the nodes each."""
    halves = np.stack([sizes // 2, sizes - sizes // 2], axis=1)
    trees = halves.ravel()
    parents, first = _parents(trees, rng), _first_nodes(trees).reshape(-1, 2)
    in_tree = rng.integers(0, 2, len(sizes))
    rows = np.arange(len(sizes))

    def drawn(tree: Ints) -> Ints:
        return np.asarray(first[rows, tree] + (rng.random(len(rows)) * halves[rows, tree]).astype(np.int64))

    one, other = drawn(in_tree), drawn(np.where(y == 1, in_tree, 1 - in_tree))
    again = one == other  # the same node twice: take the next of its tree
    other = np.where(again, first[rows, in_tree] + (other - first[rows, in_tree] + 1) % halves[rows, in_tree], other)
    labels = np.zeros(len(parents), np.int64)
    labels[one] = labels[other] = 1
    truth = labels == 1
    joined = y == 1
    low, high = np.minimum(one, other)[joined], np.maximum(one, other)[joined]
    while (apart := low != high).any():  # parents come before children: the later node goes up
        high = np.where(apart, parents[high], high)
        low, high = np.minimum(low, high), np.maximum(low, high)
        truth[low] = truth[high] = True
    return _Made(sizes, _tree_edges(parents), truth, labels)


def _wl(sizes: Ints, y: Ints, rng: Random) -> _Made:
    """Two covers of a base graph of half of the nodes: two copies of it, or one whose copies are joined crosswise."""
    base = sizes[::2] // 2
    parents = _parents(base, rng)
    tree = _tree_edges(parents)
    within, first = _within(base)
    # every fifth node, and the last at least, closes a cycle with a node that is not its neighbour
    closing = (within >= 2) & ((rng.random(len(within)) < 0.2) | (within == np.repeat(base, base) - 1))
    ends = np.flatnonzero(closing)
    other = first[ends] + (rng.random(len(ends)) * within[ends]).astype(np.int64)
    other = np.where(other == parents[ends], first[ends] + (other - first[ends] + 1) % within[ends], other)
    closed = np.stack([ends, other])
    crossed = (rng.random(len(ends)) < 0.5) | (within[ends] == np.repeat(base, base)[ends] - 1)
    # The pair of graphs of base b: the copies of its nodes are numbered from 4 first + …
    size = np.repeat(base, base)
    copies: list[Any] = []
    for cover in (0, 1):  # two copies, then the connected cover
        start = 4 * first + 2 * size * cover
        for ends_of, cross in ((tree, np.zeros(tree.shape[1], bool)), (closed, crossed & (cover == 1))):
            for sheet in (0, 1):
                source = start[ends_of[0]] + sheet * size[ends_of[0]] + within[ends_of[0]]
                target = start[ends_of[1]] + np.where(cross, 1 - sheet, sheet) * size[ends_of[1]] + within[ends_of[1]]
                copies.append(np.stack([source, target]))
    sizes = np.repeat(2 * base, 2)
    edges = np.concatenate(copies, axis=1)
    if len(y) % 2:  # the last base has one cover only
        sizes = sizes[:-1]
        edges = edges[:, (edges < sizes.sum()).all(0)]
    return _Made(sizes, edges, np.zeros(sizes.sum(), bool))


KINDS: dict[str, Callable[[Ints, Ints, Random], _Made]] = {
    "colors": _colors,
    "triangles": _triangles,
    "needle": _needle,
    "path": _path,
    "wl": _wl,
}
