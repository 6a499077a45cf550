"""Attribution: how much each node and edge of a graph does for a prediction, by taking it away or by gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet._loops.ranges import concatenated_ranges, offsets, repeated
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset, Indices
from tapnet.data.features import FeatureRows, MixedFeatures
from tapnet.errors import DataError, SettingError, did_you_mean
from tapnet.models.base import GraphClassifier
from tapnet.models.predictor import predict_logits
from tapnet.ops.csr import induced_subgraph
from tapnet.training.task import answers

if TYPE_CHECKING:
    from tapnet.inference.model import SavedModel

Method = Literal["surrogate", "occlusion", "masking", "shapley", "gradients"]
DEFAULT_METHOD: Final = "surrogate"  # docs/explanations.md has the numbers that it was chosen by
FloatArray = NDArray[np.float64]

NODES_AT_ONCE = 1 << 16  # of perturbed copies, in one forward pass
MOST_EXACT_NODES = 12  # 4,096 coalitions; larger graphs are sampled
COALITIONS = 8192  # of a sampled graph, as far as that gives from 16 to 256 pairs of orders
FEWEST_PAIRS, MOST_PAIRS = 16, 256
BOOLEANS_AT_ONCE = 1 << 26
STEPS = 64  # of integrated gradients
MOST_HIDDEN = 0.9  # of the nodes in a copy for the surrogate: from none to so many
COPIES_PER_TERM = 6  # of its nodes and edges, as far as these bounds allow
FEWEST_COPIES, MOST_COPIES = 64, 8192
SURROGATE_FLOATS = 1 << 23  # of its terms in all copies
RIDGE = 1.0
FLOATS_AT_ONCE = 1 << 24  # of their one-hot rows


@dataclass(frozen=True)
class Attributions:
    """The attributions of G graphs with N nodes and E edges in all, as flat arrays.

    Attributes:
        method: How the nodes' numbers were found.
        target: ``[G]`` the class, label or number (its column) that they speak of.
        value: ``[G]`` what the network says of each graph: the log odds of the class or label, or the number.
        baseline: ``[G]`` the same without any node; for ``"gradients"`` with all features zero.
        answers: ``[G, C]`` probabilities of the classes or labels, or numbers.
        ptr: ``[G + 1]`` graph g has the nodes ``ptr[g]`` to ``ptr[g + 1]``.
        nodes: ``[N]`` the attribution of each node.
        errors: ``[N]`` its standard error: 0 but for Shapley values that are sampled.
        edge_ptr: ``[G + 1]`` the same for edges; all 0 where edges were not asked for.
        edge_index: ``[2, E]`` both ends, as numbers within the graph: the smaller one first, or where the edge
            begins.
        edges: ``[E]`` what the value loses without the edge; for ``"surrogate"``, what the edge and its ends do.
    """

    method: Method
    target: NDArray[np.int64]
    value: FloatArray
    baseline: FloatArray
    answers: FloatArray
    ptr: NDArray[np.int64]
    nodes: FloatArray
    errors: FloatArray
    edge_ptr: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    edges: FloatArray


def attribute_graphs(
    model: SavedModel,
    dataset: GraphDataset,
    graphs: Indices | None = None,
    method: Method = DEFAULT_METHOD,
    target: object = None,
    *,
    edges: bool = True,
) -> Attributions:
    """Attributes the predictions of many graphs to their nodes and edges, without a loop over nodes.

    Args:
        model: Any trained network.
        dataset: The graphs, as they are loaded; they are encoded here.
        graphs: The numbers of some graphs; None: all.
        method: ``"surrogate"`` (a linear model of nodes and edges, fitted to what the network says of copies with
            random nodes hidden), ``"occlusion"`` (what the value loses without the node), ``"masking"`` (what it loses
            if the node stays, but has the mean features of the graph's nodes), ``"shapley"`` (the node's share of the
            value over all orders in which nodes can be added; exact up to 12 nodes, else sampled) or ``"gradients"``
            (integrated gradients from features that are all zero).
        target: The class, label or number to speak of, by its name; None: the predicted class, the most probable
            label, or the first number.
        edges: Whether to attribute to edges, too.

    Returns:
        The attributions: differences of log odds for classes and labels, of the number itself for a regression.

    Raises:
        SettingError: There is no such method or target, or no gradient reaches the input of the network.
        DataError: A graph does not fit the model, or its answer is not a number.

    Example:
        >>> from tapnet import load_dataset, load_model
        >>> mutag = load_dataset("MUTAG")
        >>> found = attribute_graphs(load_model("runs/MUTAG"), mutag, range(10))  # doctest: +SKIP
        >>> found.nodes[found.ptr[3] : found.ptr[4]]  # of graph 3  # doctest: +SKIP
    """
    check_method(method)
    chosen = find_target(model, target)
    encoded = model.encode(dataset if graphs is None else dataset.subset(graphs))
    predicted = predicted_targets(model, model.probabilities(encoded).numpy()) if chosen is None else chosen
    return Probe(model.network, encoded, predicted).attributions(method, edges)


def check_method(method: str) -> None:
    """Raises a SettingError unless there is a method of that name."""
    if method not in get_args(Method):
        near = did_you_mean(str(method), get_args(Method))
        raise SettingError(f"method is one of {', '.join(get_args(Method))}, not {method!r}{near}")


def find_target(model: SavedModel, target: object) -> int | None:
    """The number of a class by its value or name, or of a label or number by its column; None for None.

    Raises:
        SettingError: The model predicts no such thing.
    """
    if target is None:
        return None
    classes = model.task == "classification"
    values = model.classes if classes else model.card.target_names or ()
    names = model.class_names if classes else model.target_names
    ways: list[tuple[list[object], object]] = [(list(values), target)]
    ways += [(list(map(str, values)), str(target)), (list(names), str(target))]
    for known, wanted in ways:
        if known.count(wanted) == 1:
            return known.index(wanted)
    listed = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
    raise SettingError(f"the model predicts {listed}, not {str(target)[:60]!r}{did_you_mean(str(target), names)}")


def predicted_targets(model: SavedModel, said: NDArray[np.floating]) -> Tensor:
    """``[G]`` the predicted class or the most probable label, which calibration may have turned; the first number.

    Args:
        model: Whose answers they are.
        said: ``[G, C]`` what `SavedModel.probabilities` says of the graphs.
    """
    best = said.argmax(axis=1) if model.task != "regression" else np.zeros(len(said), dtype=np.int64)
    return torch.from_numpy(best)


class Probe:
    """A network and graphs as it reads them, which can be asked what it says without some nodes or edges.

    Args:
        network: In evaluation mode.
        encoded: The graphs, from ``SavedModel.encode``.
        target: The output to speak of, or ``[G]`` one for each graph; None: the highest, or the first number.

    Raises:
        DataError: The network's answer is not a number.
    """

    def __init__(self, network: GraphClassifier, encoded: GraphDataset, target: int | Tensor | None = None) -> None:
        self.network = network
        # what was prepared for the graphs does not hold for their parts; networks make it where it is not there
        self.encoded = replace(encoded, prepared={})
        self.outputs = predict_logits(network, self.encoded)
        finite = self.outputs.isfinite().all(dim=1)
        if not bool(finite.all()):
            name = encoded.name if len(encoded) == 1 else f"{encoded.name}, graph {int(finite.int().argmin())}"
            raise DataError(f"{name}: the model's answer is not a number")
        best = self.outputs.argmax(dim=1) if network.task != "regression" else torch.zeros(len(encoded)).long()
        self.target = best if target is None else torch.as_tensor(target).expand(len(encoded))
        self.value = self._values(self.outputs, torch.arange(len(encoded)))

    @property
    def signed(self) -> bool:
        """Whether the top nodes are those that speak for the target; of a number, they move it either way."""
        return self.network.task != "regression"

    def answers(self) -> FloatArray:
        """``[G, C]`` the probabilities of classes or labels, or numbers."""
        with torch.inference_mode():
            return answers(self.network, self.outputs).double().numpy()

    def attributions(self, method: Method, edges: bool = True) -> Attributions:
        """``attribute_graphs``"""
        data = self.encoded
        errors: FloatArray = np.zeros(data.num_nodes)
        baseline = self.empty_values(torch.arange(len(data)))
        fitted: list[FloatArray] | None = None
        if method == "surrogate":
            found = [self.surrogate(g) for g in range(len(data))]
            nodes, fitted = np.concatenate([rows for rows, _ in found]), [rows for _, rows in found]
        elif method == "occlusion":
            nodes = self.without_nodes()
        elif method == "masking":
            nodes = self.masked_nodes()
        elif method == "shapley":
            parts = [self.shapley(g) for g in range(len(data))]
            nodes, errors = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        else:
            pairs = [self.integrated_gradients(g) for g in range(len(data))]
            nodes = np.concatenate([rows for rows, _ in pairs])
            baseline = np.asarray([start for _, start in pairs])
        ends, lost = torch.zeros(3, 0, dtype=torch.int64), errors[:0]
        if edges and fitted is None:
            ends, lost = self.without_edges()
        elif edges and fitted is not None:
            ends, lost = self._edges_once()[0], np.concatenate(fitted)
        return Attributions(
            method,
            self.target.numpy(),
            self.value,
            baseline,
            self.answers(),
            data.node_ptr.numpy(),
            nodes,
            errors,
            offsets(torch.bincount(ends[0], minlength=len(data))).numpy(),
            ends[1:].numpy(),
            lost,
        )

    # ---- what the network says of parts of the graphs ----

    def values(self, graph: Tensor, nodes: Tensor) -> FloatArray:
        """The value of parts of the graphs.

        Args:
            graph: ``[M]`` the graph that each part is of.
            nodes: Booleans, one for each node of each part's graph, one part after another: which are there.

        Returns:
            ``[M]`` the log odds of the target, or the number.
        """
        return self._values(self.part_outputs(graph, nodes), graph)

    def part_outputs(self, graph: Tensor, nodes: Tensor) -> Tensor:
        """``[M, C]`` what the network puts out for the parts that ``values`` takes."""
        begin = offsets(self.encoded.nodes_per_graph[graph])

        def some_nodes(parts: Tensor, batch: GraphBatch) -> GraphBatch:
            return _with_nodes(batch, nodes[concatenated_ranges(begin[parts], batch.nodes_per_graph)])

        return self._run(graph, some_nodes)

    def without_nodes(self) -> FloatArray:
        """``[N]`` what the value of each node's graph loses without it."""
        sizes = self.encoded.nodes_per_graph
        graph = repeated(torch.arange(len(sizes)), sizes)
        node = torch.arange(len(graph)) - self.encoded.node_ptr[graph]  # its number within its graph

        def all_but_one(parts: Tensor, batch: GraphBatch) -> GraphBatch:
            there = torch.ones(batch.num_nodes, dtype=torch.bool)
            there[batch.ptr[:-1] + node[parts]] = False
            return _with_nodes(batch, there)

        lost: FloatArray = self.value[graph] - self._values(self._run(graph, all_but_one), graph)
        return lost

    def masked_nodes(self) -> FloatArray:
        """``[N]`` what the value of each node's graph loses if the node has the mean features of the graph's nodes."""
        (data, rows), mean = self._data_with_rows, self._mean_rows
        owner = repeated(torch.arange(len(data)), data.nodes_per_graph)
        node = torch.arange(len(owner)) - data.node_ptr[owner]

        def one_of_the_mean(parts: Tensor, batch: GraphBatch) -> GraphBatch:
            x = rows[concatenated_ranges(data.node_ptr[owner[parts]], batch.nodes_per_graph)]
            x[batch.ptr[:-1] + node[parts]] = mean[owner[parts]]
            return replace(batch, x=x)

        lost: FloatArray = self.value[owner] - self._values(self._run(owner, one_of_the_mean, data), owner)
        return lost

    @cached_property
    def _data_with_rows(self) -> tuple[GraphDataset, Tensor]:
        """The graphs with rows of floats in the place of categories, and these rows ``[N, F]``."""
        weight = next(self.network.parameters(), torch.zeros(0))
        rows = dense_rows(self.encoded.x, self.encoded.num_features).to(weight.dtype)
        return replace(self.encoded, x=rows, prepared=self.network.structure(self.encoded)), rows

    @cached_property
    def _mean_rows(self) -> Tensor:
        """``[G, F]`` the mean features of each graph's nodes."""
        data, rows = self._data_with_rows
        owner = repeated(torch.arange(len(data)), data.nodes_per_graph)
        total = torch.zeros(len(data), rows.size(1), dtype=torch.float64).index_add_(0, owner, rows.double())
        return (total / data.nodes_per_graph.clamp(min=1).unsqueeze(1)).to(rows.dtype)

    def _edges_once(self) -> tuple[Tensor, Tensor]:
        """``[3, E]`` the graph and both ends of each edge, and ``[2, E]`` its places within the edges of the graph.

        Of directed graphs, every edge, where it begins first, and ``[1, E]``.
        """
        data = self.encoded
        owner = repeated(torch.arange(len(data)), data.nodes_per_graph)
        source = repeated(torch.arange(data.num_nodes), data.degree)  # of all nodes
        target = data.col + data.node_ptr[owner[source]]
        there = torch.from_numpy(np.lexsort((source.numpy(), target.numpy())))  # the place of each edge's reverse
        once = torch.arange(len(target)) if data.directed else (source < target).nonzero().flatten()
        graph = owner[source[once]]
        first = data.rowptr[data.node_ptr[graph]]
        row, col = source[once] - data.node_ptr[graph], data.col[once].long()
        ends = torch.stack([graph, col, row] if data.directed else [graph, row, col])
        # within the edges of the graph
        return ends, (once - first).unsqueeze(0) if data.directed else torch.stack([once - first, there[once] - first])

    def without_edges(self) -> tuple[Tensor, FloatArray]:
        """``[3, E]`` the graph and both ends of each edge, and ``[E]`` what the value of the graph loses without it."""
        ends, entries = self._edges_once()
        graph = ends[0]

        def all_but_one(parts: Tensor, batch: GraphBatch) -> GraphBatch:
            kept = torch.ones(len(batch.col), dtype=torch.bool)
            kept[(batch.rowptr[batch.ptr[:-1]] + entries[:, parts]).flatten()] = False
            return _with_edges(batch, kept)

        return ends, self.value[graph] - self._values(self._run(graph, all_but_one), graph)

    def empty_values(self, graph: Tensor) -> FloatArray:
        """``[M]`` the value of no nodes at all, for the targets of these graphs."""
        return self._values(self._empty_outputs().expand(len(graph), -1), graph)

    def _empty_outputs(self) -> Tensor:
        """``[1, C]`` what the network says of a graph without nodes; a graph with nodes goes with it."""
        two = self.encoded.batch([0, 0])
        there = torch.arange(two.num_nodes) < two.ptr[1]
        with torch.inference_mode():
            return self.network.outputs(_with_nodes(two, there)).logits[1:]

    @torch.inference_mode()
    def _run(
        self,
        graph: Tensor,
        perturb: Callable[[Tensor, GraphBatch], GraphBatch],
        data: GraphDataset | None = None,
    ) -> Tensor:
        """``[M, C]`` the outputs for perturbed copies of these graphs, in batches that fit into memory."""
        data = self.encoded if data is None else data
        sizes, found = data.nodes_per_graph[graph], self.outputs.new_zeros(len(graph), self.outputs.size(1))
        floats = 1 if isinstance(data.x, MixedFeatures) or data.x.dim() == 1 else data.x.size(1)
        for chunk in _chunks(sizes, min(NODES_AT_ONCE, max(1, FLOATS_AT_ONCE // max(floats, 1)))):
            for parts in self.network.micro_batches(chunk, sizes[chunk]):
                batch = perturb(parts, data.batch(graph[parts]))
                found[parts] = self.network.outputs(batch).logits if batch.num_nodes else self._empty_outputs()
        return found

    def _values(self, outputs: Tensor, graph: Tensor) -> FloatArray:
        """``[M]`` the log odds of the target of each graph, or the number."""
        found = target_values(self.network, outputs, self.target[graph])
        return found.detach().double().numpy()

    # ---- surrogate ----

    def surrogate(self, graph: int) -> tuple[FloatArray, FloatArray]:
        """``[n]`` and ``[e]`` what the nodes and edges of a graph do in a linear model of the network's values.

        The network is asked for copies of the graph in which some nodes are hidden: they have the mean features of the
        graph's nodes, and there is no edge between two of them. So the copies are as large as the graph, other than
        those that lack nodes.
        """
        data, one = self._data_with_rows[0], self.encoded.batch([graph])
        ends, nodes = one.edge_list.numpy(), one.num_nodes
        copies = surrogate_copies(nodes, ends.shape[1])
        draw = np.random.default_rng([nodes, copies])
        hidden = draw.uniform(0, MOST_HIDDEN, (copies, 1))  # few show what takes many nodes at once, many what few do
        visible = draw.random((copies, nodes)) >= hidden
        shown, mean = torch.from_numpy(visible), self._mean_rows[graph]

        def some_hidden(parts: Tensor, batch: GraphBatch) -> GraphBatch:
            assert isinstance(batch.x, Tensor)
            seen = shown[parts].flatten()
            kept = seen[batch.edge_index].any(dim=0)
            return _with_edges(replace(batch, x=torch.where(seen.unsqueeze(1), batch.x, mean)), kept)

        which = torch.full((copies,), graph)
        return fit_surrogate(visible, ends, self._values(self._run(which, some_hidden, data), which))

    # ---- Shapley values ----

    def shapley(self, graph: int) -> tuple[FloatArray, FloatArray]:
        """``[n]`` the Shapley values of the nodes of a graph, and ``[n]`` their standard errors."""
        size = int(self.encoded.nodes_per_graph[graph])
        return self._exact_shapley(graph, size) if size <= MOST_EXACT_NODES else self._sampled_shapley(graph, size)

    def _coalition_values(self, graph: int, there: NDArray[np.bool_]) -> FloatArray:
        """``[M, n]`` which nodes are there → ``[M]`` the values."""
        return self.values(torch.full((len(there),), graph), torch.from_numpy(there).flatten())

    def _exact_shapley(self, graph: int, size: int) -> tuple[FloatArray, FloatArray]:
        """φᵢ = Σ_S |S|! (n - |S| - 1)! / n! · (v(S ∪ i) - v(S)) over all coalitions S without i."""
        there = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(bool)
        weight = np.asarray([1 / (size * math.comb(size - 1, s)) for s in range(size)])
        others = there.sum(axis=1, keepdims=True) - there  # members besides i
        coefficients = np.where(there, 1, -1) * weight[others]
        return self._coalition_values(graph, there) @ coefficients, np.zeros(size)

    def _sampled_shapley(self, graph: int, size: int) -> tuple[FloatArray, FloatArray]:
        """The mean over random orders, each with its reverse: what a node adds to those before it."""
        pairs = int(np.clip(COALITIONS // (2 * size), FEWEST_PAIRS, MOST_PAIRS))
        draw = np.random.default_rng([size, pairs])
        orders = draw.permuted(np.tile(np.arange(size), (pairs, 1)), axis=1)
        place = np.argsort(np.concatenate([orders, orders[:, ::-1]]), axis=1)  # of each node, [2 · pairs, n]
        # The coalitions after 1, 2, … n - 1 nodes, of some orders at a time: all take 2 · pairs · n² booleans.
        parts = [
            self._coalition_values(graph, (some[:, None, :] < np.arange(1, size)[:, None]).reshape(-1, size))
            for some in np.array_split(place, min(2 * pairs, -(-2 * pairs * size * size // BOOLEANS_AT_ONCE)))
        ]
        inner = np.concatenate(parts).reshape(2 * pairs, size - 1)
        ends = np.broadcast_to([self.empty_values(torch.tensor([graph]))[0], self.value[graph]], (2 * pairs, 2))
        gains = np.diff(np.concatenate([ends[:, :1], inner, ends[:, 1:]], axis=1), axis=1)
        samples = np.take_along_axis(gains, place, axis=1).reshape(2, pairs, size).mean(axis=0)
        return samples.mean(axis=0), samples.std(axis=0, ddof=1) / math.sqrt(pairs)

    # ---- integrated gradients ----

    def integrated_gradients(self, graph: int) -> tuple[FloatArray, float]:
        """``[n]`` the integrated gradients of a graph's nodes from features that are all zero, and the value there.

        Categories are one-hot rows. The path crosses the places where a pooling layer changes its choice, so the sum
        need not be the difference of the values.

        Raises:
            SettingError: No gradient reaches the input.
        """
        data = self._data_with_rows[0]
        one = data.batch([graph])
        assert isinstance(one.x, Tensor)
        rows, total = one.x, torch.zeros_like(one.x)
        for shares in ((torch.arange(STEPS) + 0.5) / STEPS).split(max(1, FLOATS_AT_ONCE // max(rows.numel(), 1))):
            copies = [graph] * len(shares)
            x = (shares.to(rows.dtype).view(-1, 1, 1) * rows).flatten(0, 1).requires_grad_()
            with torch.enable_grad():
                outputs = self.network.outputs(replace(data.batch(copies), x=x)).logits
                value = target_values(self.network, outputs, self.target[copies]).sum()
                gradient = torch.autograd.grad(value, x, allow_unused=True)[0] if value.requires_grad else None
            if gradient is None:
                name = type(self.network).__name__
                raise SettingError(f"no gradient reaches the input of {name}; the other methods need none")
            total += gradient.view(len(shares), *rows.shape).sum(dim=0)
        with torch.inference_mode():
            start = self.network.outputs(replace(one, x=torch.zeros_like(rows))).logits
        return (total * rows).sum(dim=1).double().numpy() / STEPS, float(self._values(start, torch.tensor([graph]))[0])


def surrogate_copies(nodes: int, edges: int) -> int:
    """How many copies of a graph the surrogate is fitted to."""
    most = min(MOST_COPIES, SURROGATE_FLOATS // max(nodes + edges, 1))
    return max(FEWEST_COPIES, min(most, COPIES_PER_TERM * (nodes + edges)))


def fit_surrogate(
    visible: NDArray[np.bool_], ends: NDArray[np.int64], value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ridge regression of values on the nodes that are visible, and on the edges with both ends visible.

    Args:
        visible: ``[M, n]`` the visible nodes of each copy of a graph.
        ends: ``[2, e]`` of its edges, each once.
        value: ``[M]`` of each copy.

    Returns:
        ``[n]``: of each node the mean of what it does itself (its coefficient and half of those of its edges) and of
        what its edges do on average. ``[e]``: of each edge its coefficient and those of its ends.
    """
    nodes, (u, v) = visible.shape[1], ends
    terms = np.concatenate([visible, visible[:, u] & visible[:, v]], axis=1, dtype=np.float64)
    terms -= terms.mean(axis=0)
    if len(terms) < terms.shape[1]:
        weights = terms.T @ np.linalg.solve(terms @ terms.T + RIDGE * np.eye(len(terms)), value - value.mean())
    else:
        square = terms.T @ terms + RIDGE * np.eye(terms.shape[1])
        weights = np.linalg.solve(square, terms.T @ (value - value.mean()))
    node, joint = weights[:nodes], weights[nodes:]
    edge = node[u] + node[v] + joint

    def summed(values: FloatArray) -> FloatArray:
        return np.bincount(ends.flatten(), np.tile(values, 2), minlength=nodes).astype(np.float64)

    degree = summed(np.ones(len(edge)))
    around = np.where(degree > 0, summed(edge) / np.maximum(degree, 1), node)
    return (node + summed(joint) / 2 + around) / 2, edge


def target_values(network: GraphClassifier, outputs: Tensor, target: Tensor) -> Tensor:
    """``[M, C]`` outputs, ``[M]`` targets → ``[M]`` log odds of the class or label, or the number in its own units."""
    if network.task == "classification":
        others = outputs.scatter(1, target.unsqueeze(1), -math.inf).logsumexp(dim=1)
        return outputs.gather(1, target.unsqueeze(1)).squeeze(1) - others
    found = outputs if network.task == "multilabel" else answers(network, outputs)
    return found.gather(1, target.unsqueeze(1)).squeeze(1)


def dense_rows(x: FeatureRows, channels: int) -> Tensor:
    """``[N, channels]``: one-hot rows of categories, then numbers; floats as they are."""
    if not isinstance(x, MixedFeatures):
        return x if x.is_floating_point() else torch.nn.functional.one_hot(x, channels).float()
    numbers = 0 if x.numbers is None else x.numbers.size(1)
    categories = torch.zeros(len(x.table), channels - numbers + 1)  # the last one for what is not known
    categories.scatter_(1, torch.where(x.table < 0, channels - numbers, x.table), 1.0)
    rows = categories[:, :-1][x.combination]
    return rows if x.numbers is None else torch.cat([rows, x.numbers.float()], dim=1)


def _with_nodes(batch: GraphBatch, there: Tensor) -> GraphBatch:
    """The graphs without some of their nodes and the edges of these."""
    perm = there.nonzero().flatten()
    return replace(induced_subgraph(batch, perm, offsets(there)[batch.ptr]), x=batch.x[perm])


def _with_edges(batch: GraphBatch, kept: Tensor) -> GraphBatch:
    """The graphs without some of their edges."""
    weight = None if batch.weight is None else batch.weight[kept]
    edge_attr = None if batch.edge_attr is None else batch.edge_attr[kept]
    rowptr = offsets(kept)[batch.rowptr].int()
    return GraphBatch(batch.x, batch.y, batch.ptr, rowptr, batch.col[kept], weight=weight, edge_attr=edge_attr)


def _chunks(sizes: Tensor, nodes: int) -> Iterator[Tensor]:
    """Positions in runs of about so many nodes."""
    runs = torch.div(sizes.cumsum(0) - sizes, nodes, rounding_mode="floor")
    yield from torch.arange(len(sizes)).split(torch.unique_consecutive(runs, return_counts=True)[1].tolist())
