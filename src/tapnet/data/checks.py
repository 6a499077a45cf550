"""What a user should know of a data set before trusting a number: what is not used, copies, continuous targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from inspect import unwrap
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapnet._loops.isomorphism import DIFFERENT, compare_graphs
from tapnet.data.dataset import GraphDataset
from tapnet.data.features import FeatureRows, MixedFeatures
from tapnet.data.targets import DECIMAL_COMMA, MOST_CLASSES
from tapnet.errors import DataError
from tapnet.files import counted, printable

REFINEMENTS = 4  # of the Weisfeiler-Lehman test
VALUES_AT_ONCE = 1 << 21  # edges and numbers of nodes
WORTH_COMPILING = 1 << 15  # nodes and edges; fewer are compared sooner than the loop is compiled
MOST_CATEGORIES = 100  # of nodes; more than these, and than half of the nodes, are names or numbers
LONGEST_LIST = 200  # characters

Codes = NDArray[np.uint64]


def features_note(dataset: GraphDataset, only_edges: bool = False, reads_edges: bool = False) -> str:
    """Says what the node features are, and what is left out of them.

    Args:
        dataset: The data set.
        only_edges: Whether to name only what is on the edges, as the user chose among the nodes' data.
        reads_edges: Whether the model reads what edges carry.

    Returns:
        One sentence, or an empty string where everything is used. A label that is the same everywhere says nothing and
        is not named.

    Example:
        >>> from tapnet import load_dataset
        >>> features_note(load_dataset("MUTAG").with_features("degrees")).partition(",")[0]
        'the node features are 4 degrees; not used: 7 node labels'
    """
    own = dataset.features
    labels, edge_labels = (len(values or ()) for values in (dataset.node_label_values, dataset.edge_label_values))
    on_nodes = [what for what in dataset.not_read if not what.startswith("edge")]
    on_edges = [what for what in dataset.not_read if what.startswith("edge")]
    if own not in ("attributes", "all") and dataset.node_attributes is not None:
        on_nodes.insert(0, counted(dataset.node_attributes.shape[1], "node attribute"))
    if own not in ("labels", "all") and labels > 1:
        on_nodes.insert(0, f"{labels} node labels")
    if dataset.edge_attributes is not None and not reads_edges:
        on_edges.insert(0, counted(dataset.edge_attributes.shape[1], "edge attribute"))
    if edge_labels > 1 and not reads_edges:
        on_edges.insert(0, f"{edge_labels} edge labels")
    unused = on_edges if only_edges else on_nodes + on_edges
    if not unused:
        return ""
    kinds = {"labels": "node label", "attributes": "node attribute"}
    used = counted(dataset.num_features, kinds.get(own, "degree"))
    if own == "log-degrees":
        used = "the logarithms of degrees"
    if own == "all":
        numbers = dataset.num_features - len(dataset.categories or ())
        names = dataset.attribute_names or ()
        named = f" ({printable(', '.join(names)):.{LONGEST_LIST}})" if len(names) == numbers else ""
        used = f"{len(dataset.categories or ())} categories" + (
            f" and {counted(numbers, 'number')}{named}" if numbers else ""
        )
    return f"the node features are {used}; not used: {printable(', '.join(unused)):.{LONGEST_LIST}}"


def categories_note(dataset: GraphDataset) -> str:
    """Says that most nodes have a category of their own, as names or numbers that are stored as text have.

    Args:
        dataset: The data set.

    Returns:
        One sentence, or an empty string where categories recur.
    """
    columns: dict[str | None, Collection[Hashable]] = {dataset.label_attribute: dataset.node_label_values or ()}
    if dataset.node_columns is not None and dataset.node_label_values:
        columns = dict(zip(dataset.node_columns, map(set, zip(*dataset.node_label_values, strict=True)), strict=True))
    for name, values in columns.items():
        if len(values) <= MOST_CATEGORIES or 2 * len(values) <= dataset.num_nodes:
            continue
        text = [value for value in values if isinstance(value, str)]
        commas = sum(DECIMAL_COMMA.fullmatch(value.strip()) is not None for value in text)
        looks = ", and they look like numbers with decimal commas" if 2 * commas > len(values) else ""
        named = f" ({printable(name):.60})" if name else ""
        count = f"{len(values)} different node labels{named} on {dataset.num_nodes} nodes{looks}"
        return f"{printable(dataset.name)}: {count}: nothing can be learned from labels that do not recur"
    return ""


# ---- targets ----


def check_classes(
    name: str, classes: Sequence[Hashable], graphs: int, remedy: str = 'read it with task="regression"'
) -> None:
    """Checks that the classes can be told apart and are no continuous target.

    Args:
        name: What the graphs are called in the error.
        classes: The distinct classes.
        graphs: The number of graphs.
        remedy: What to do about a continuous target.

    Raises:
        DataError: There is one class, or nearly every graph has a number of its own.
    """
    if len(classes) < 2:
        raise DataError(f"{name}: every graph is of class {classes[0]}; there is nothing to tell apart")
    numbers = [_number(value) for value in classes]
    has_fractions = any(not number.is_integer() for number in numbers if math.isfinite(number))
    # somebody has called them classes: they are refused only where most graphs have a number of their own
    many = 2 * len(classes) > graphs and (len(classes) > MOST_CLASSES or has_fractions)
    if many and all(map(math.isfinite, numbers)):
        raise DataError(
            f"{name}: {len(classes)} different numbers for {graphs} graphs: this looks like a number to predict "
            f"(regression), not a class; {remedy}, or divide its range into classes"
        )


def _number(value: Hashable) -> float:
    """A class as a number, also if it is the text of one; NaN if it is none."""
    try:
        value = value.replace(",", ".") if isinstance(value, str) else value  # a decimal comma
        return math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


# ---- copies ----


def copies_note(dataset: GraphDataset, folds: Sequence[NDArray[np.int64]] | None = None) -> str:
    """Counts the graphs that have a copy: an isomorphic graph with the same node features, see `copy_groups`.

    Args:
        dataset: The data set.
        folds: The graphs of each fold: then copies in the same fold do not count. None counts all.

    Returns:
        One sentence, or an empty string where there are no copies.
    """
    fold = np.arange(len(dataset))
    for number, graphs in enumerate(folds or ()):
        fold[graphs] = number
    group = copy_groups(dataset)
    if len(dataset) > 1 and group.max() == 0:
        return f"all {len(dataset)} graphs are the same in node features and structure, so that nothing can be learned"
    copied = _spans_several(group, fold)
    if not copied.any():
        return ""
    where = "have a copy" if folds is None else "have a copy in another fold"
    y = dataset.y.numpy()
    targets = y if y.ndim == 1 else np.unique(y, axis=0, return_inverse=True)[1].reshape(-1)
    other = int((copied & _spans_several(group, targets)).sum())
    kind = "class" if dataset.task == "classification" else "target"
    classes = f", {other} of them one of another {kind}" if other else ""
    return f"{int(copied.sum())} of {len(dataset)} graphs {where} (same node features and structure){classes}"


def copy_groups(dataset: GraphDataset) -> NDArray[np.int64]:
    """[G] a number for each graph, from 0 on, the same for isomorphic graphs with the same features.

    Graphs with the same code (`graph_codes`) are compared node by node. Two that the search cannot tell apart within
    its limit of steps count as the same.
    """
    _, group, count = np.unique(graph_codes(dataset), return_inverse=True, return_counts=True)
    alike = np.argsort(group, kind="stable")
    alike, groups = alike[count[group[alike]] > 1], len(count)
    node_ptr = dataset.node_ptr.numpy()
    size = np.cumsum(np.diff(node_ptr + dataset.rowptr.numpy()[node_ptr])[alike])
    begin = 0
    while begin < len(alike):  # some groups at a time, for the memory
        end = max(begin + 1, int(np.searchsorted(size, size[begin] + VALUES_AT_ONCE)))
        while end < len(alike) and group[alike[end]] == group[alike[end - 1]]:
            end += 1
        graphs = alike[begin:end]
        shapes, compare = list(_shapes(dataset.subset(graphs))), _compare_graphs(int(size[end - 1] - size[begin]))
        different: dict[int, list[tuple[int, Shape]]] = {}  # of each code, the groups of graphs that have it
        for graph, shape in zip(graphs.tolist(), shapes, strict=True):
            known = different.setdefault(int(group[graph]), [])
            same = next((number for number, other in known if compare(*other, *shape) != DIFFERENT), None)
            if same is None:
                same, groups = (int(group[graph]), groups) if not known else (groups, groups + 1)
                known.append((same, shape))
            group[graph] = same
        begin = end
    numbers: NDArray[np.int64] = np.unique(group, return_inverse=True)[1]
    return numbers


Shape = tuple[NDArray[np.int64], NDArray[np.int64], Codes, Codes]  # rowptr and col, codes of the entries and the nodes


def _compare_graphs(size: int) -> Callable[..., int]:
    """`compare_graphs`, compiled where so many nodes and edges are worth the second that compiling takes."""
    return compare_graphs if size > WORTH_COMPILING else unwrap(compare_graphs)


def _shapes(dataset: GraphDataset) -> Iterator[Shape]:
    """Each graph as `compare_graphs` takes it, its nodes with the colours of Weisfeiler-Lehman refinement."""
    for graphs, code, carried, ptr, target in _refined(dataset):
        node_ptr = dataset.node_ptr.numpy()[graphs.start : graphs.stop + 1]
        rows = np.repeat(np.arange(len(code)), np.diff(ptr))
        if dataset.directed:  # an edge and its other direction, where there is one, are one entry in both rows
            rows, target = np.concatenate([rows, target]), np.concatenate([target, rows])
            pair, place = np.unique(rows * len(code) + target, return_inverse=True)
            both = np.zeros(len(pair), np.uint64)
            np.add.at(both, place, np.concatenate([_mixed(carried + np.uint64(1)), _mixed(carried + np.uint64(2))]))
            rows, target, carried = pair // len(code), pair % len(code), both
            ptr = np.searchsorted(rows, np.arange(len(code) + 1))
        for first, last in pairwise((node_ptr - node_ptr[0]).tolist()):
            entries = slice(ptr[first], ptr[last])
            yield ptr[first : last + 1] - ptr[first], target[entries] - first, carried[entries], code[first:last]


def _spans_several(group: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[G] whether the group that a graph is in has more than one value."""
    lowest, highest = np.full(group.max() + 1, value.max()), np.full(group.max() + 1, value.min())
    np.minimum.at(lowest, group, value)
    np.maximum.at(highest, group, value)
    return np.asarray((lowest < highest)[group])


def graph_codes(dataset: GraphDataset) -> Codes:
    """[G] a code for each graph, the same for isomorphic graphs with the same node features.

    Codes of others differ if some rounds of Weisfeiler-Lehman refinement tell them apart. Linear in nodes and edges.
    """
    codes, node_ptr = np.empty(len(dataset), np.uint64), dataset.node_ptr.numpy()
    for graphs, code, *_ in _refined(dataset):
        codes[graphs] = _sums(_mixed(code), node_ptr[graphs.start : graphs.stop + 1] - node_ptr[graphs.start])
    return codes


def _refined(dataset: GraphDataset) -> Iterator[tuple[slice, Codes, Codes, NDArray[np.int64], NDArray[np.int64]]]:
    """Some graphs at a time: their numbers, the codes of their nodes (refined) and of their edges, and the edges.

    The edges are in compressed rows, counted from the first node of these graphs.
    """
    node_ptr, rowptr, col = dataset.node_ptr.numpy(), dataset.rowptr.numpy(), dataset.col.numpy()
    edge_ptr, start = rowptr[node_ptr], 0
    value_ptr = edge_ptr + node_ptr * (1 + dataset.num_features - len(dataset.categories or ()))
    while start < len(dataset):
        stop = max(start + 1, int(np.searchsorted(value_ptr, value_ptr[start] + VALUES_AT_ONCE)) - 1)
        nodes, edges = slice(node_ptr[start], node_ptr[stop]), slice(edge_ptr[start], edge_ptr[stop])
        first_node = np.repeat(node_ptr[start:stop] - node_ptr[start], np.diff(edge_ptr[start : stop + 1]))
        ptr, target = rowptr[nodes.start : nodes.stop + 1] - rowptr[nodes.start], col[edges] + first_node
        code = _feature_codes(dataset.x[nodes])
        carried = _edge_codes(dataset, edges)
        leaving = _leaving_edges(dataset, nodes, edges) if dataset.directed else None
        for _ in range(REFINEMENTS):
            own = 3 * code + _sums(_mixed(_mixed(code)[target] + carried), ptr)
            if leaving is not None:
                ptr_out, target_out, entry = leaving
                own += _mixed(_sums(_mixed(_mixed(code)[target_out] + carried[entry]), ptr_out))
            code = _mixed(own)
        yield slice(start, stop), code, carried, ptr, target
        start = stop


def _leaving_edges(dataset: GraphDataset, nodes: slice, edges: slice) -> tuple[NDArray[np.int64], ...]:
    """Of some graphs with directions: where the edges that leave each node begin, where they lead, and their entries.

    Nodes and entries are counted from those of the first graph.
    """
    rowptr, col, entry = (tensor.numpy() for tensor in dataset.transposed)
    first = np.repeat(dataset.node_ptr[:-1].numpy(), dataset.nodes_per_graph.numpy()) - nodes.start
    source = np.repeat(np.arange(nodes.start, nodes.stop), np.diff(rowptr[nodes.start : nodes.stop + 1]))
    return (
        rowptr[nodes.start : nodes.stop + 1] - rowptr[nodes.start],
        col[edges] + first[source],
        entry[edges] - edges.start,
    )


def _feature_codes(features: FeatureRows) -> Codes:
    """[N] from categories [N], floats [N, F], or both."""
    if isinstance(features, MixedFeatures):
        codes = _feature_codes(features.combination)
        return codes if features.numbers is None else _mixed(3 * codes + _feature_codes(features.numbers))
    x = features.numpy()
    if x.ndim == 1:
        return _mixed(x.astype(np.uint64) + np.uint64(1))
    bits = (x.astype(np.float32) + 0.0).view(np.uint32).astype(np.uint64)  # -0.0 is 0.0
    place = np.arange(1, x.shape[1] + 1, dtype=np.uint64) << np.uint64(32)
    return np.asarray(_mixed(bits + place).sum(axis=1, dtype=np.uint64))


def _edge_codes(dataset: GraphDataset, edges: slice) -> Codes:
    """[E] from the weights of edges and what else a model reads of them; zeros where they carry nothing."""
    codes = np.zeros(edges.stop - edges.start, np.uint64)
    if dataset.edge_weight is not None:
        codes = _feature_codes(dataset.edge_weight[edges].unsqueeze(1))
    return codes if dataset.edge_attr is None else _mixed(3 * codes + _feature_codes(dataset.edge_attr[edges]))


def _sums(values: Codes, ptr: NDArray[np.int64]) -> Codes:
    """The sum of each segment, modulo 2⁶⁴."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.asarray(total[ptr[1:]] - total[ptr[:-1]])


def _mixed(codes: Codes) -> Codes:
    """The last step of SplitMix64, which makes sums of codes as good as different for different codes."""
    codes = (codes ^ (codes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ (codes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return codes ^ (codes >> np.uint64(31))
