"""GraphBatch: some graphs as one disjoint union, the structure that flows through every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from tapnet._loops.csr import check_edge_index_shape, check_edges, inverse_degree, to_csr
from tapnet._loops.ranges import offsets, repeated
from tapnet._loops.segments import ascending_ptr
from tapnet.data.features import FeatureRows

T = TypeVar("T")
NO_EDGE_ATTR = (  # the end of an error
    "and this batch has no edge_attr: batches of a GraphDataset have it after dataset.with_edge_features(); "
    "with edge_index, pass edge_attr"
)


def inference_mode_disabled() -> AbstractContextManager[object]:
    """Switches inference mode off for a block; costs nothing where it is off already."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()


class cached_tensor(cached_property[T]):
    """A cached_property whose tensors are ordinary ones: graphs that were looked at may be trained on later."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        @wraps(function)
        def computed(batch: Any) -> T:
            with inference_mode_disabled():
                return function(batch)

        super().__init__(computed)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """B graphs with N nodes and E edges, as one graph whose parts are not connected.

    The adjacency matrix A is 0/1, or has the edges' weights, without self-loops, in compressed rows: row i has its
    entries at ``col[rowptr[i]:rowptr[i+1]]``. Of a directed edge from j to i it has Aᵢⱼ: messages go along the edge.
    Â = A + I, and D̂ holds the row sums of Â (of its absolute values, where weights are below 0).

    Example:
        >>> import torch
        >>> from tapnet import GraphBatch
        >>> x, batch = torch.rand(5, 3), torch.tensor([0, 0, 0, 1, 1])
        >>> graphs = GraphBatch.from_edge_index(x, torch.tensor([[0, 1, 3], [1, 2, 4]]), batch)
        >>> graphs.num_graphs, graphs.nodes_per_graph.tolist(), graphs.degree.tolist()
        (2, [3, 2], [1, 1, 0, 1, 0])
    """

    x: FeatureRows  # [N] integer categories, [N, F] floats, or both
    y: Tensor  # [B] class of each graph, or [B, T] numbers
    ptr: Tensor  # [B+1] int64: graph g holds the nodes ptr[g] to ptr[g+1]
    rowptr: Tensor  # [N+1] int32
    col: Tensor  # [E] int32: numbers within the batch
    transposed: tuple[Tensor, Tensor] | None = None  # rowptr and col of Aᵀ; None: A is symmetric
    weight: Tensor | None = None  # [E] floats in the place of A's ones; None: ones
    prepared: Mapping[str, Any] = field(default_factory=dict)  # what was computed once for the data set, by name
    edge_attr: FeatureRows | None = None  # [E] categories, [E, F] floats, or both, of each edge
    transposed_weight: Tensor | None = None  # [E] the weights in the order of Aᵀ; None: A is symmetric, or ones

    @property
    def num_graphs(self) -> int:
        """B"""
        return len(self.ptr) - 1

    @property
    def num_nodes(self) -> int:
        """N"""
        return len(self.rowptr) - 1

    @cached_tensor
    def degree(self) -> Tensor:
        """[N] int32: the number of neighbours."""
        return self.rowptr.diff()

    @cached_tensor
    def row_sum(self) -> Tensor:
        """[N] dᵢ, the row sums of A: the degree, or the sum of the weights (of their absolute values)."""
        if self.weight is None:
            return self.degree
        return self.weight.new_zeros(self.num_nodes).index_add_(0, self.edge_index[0], self.weight.abs())

    @cached_tensor
    def nodes_per_graph(self) -> Tensor:
        """[B]"""
        return self.ptr.diff()

    @cached_tensor
    def graph(self) -> Tensor:
        """[N] the graph that each node belongs to (PyG's ``batch``)."""
        return repeated(torch.arange(self.num_graphs, device=self.ptr.device), self.nodes_per_graph)

    @cached_tensor
    def edge_index(self) -> Tensor:
        """[2, E] int64: row and column of each entry of A. PyG's messages go from row 0 to 1, and here from 1 to 0."""
        nodes = torch.arange(self.num_nodes, device=self.ptr.device)
        return torch.stack([repeated(nodes, self.degree), self.col.long()])

    @property
    def edges_once(self) -> Tensor:
        """[2, E/2] each pair of nodes that are linked once, the smaller end first."""
        ends = self.edge_index
        if self.transposed is not None:
            once: Tensor = torch.stack([ends.amin(0), ends.amax(0)]).unique(dim=1)
            return once
        return ends[:, ends[0] < ends[1]]

    @property
    def edge_list(self) -> Tensor:
        """[2, E] every edge: of undirected graphs once, of directed ones from where it begins to where it leads."""
        return self.edges_once if self.transposed is None else self.edge_index.flip(0)

    @property
    def isolated(self) -> Tensor:
        """[N] bool: the nodes without an edge, in either direction."""
        alone = self.degree == 0
        return alone if self.transposed is None else alone & (self.transposed[0].diff() == 0)

    def to(self, device: torch.device | str) -> GraphBatch:
        """The same graphs on another device."""
        tensors = {key: getattr(self, key).to(device) for key in ("x", "y", "ptr", "rowptr", "col")}
        transposed = self.transposed and (self.transposed[0].to(device), self.transposed[1].to(device))
        weight = None if self.weight is None else self.weight.to(device)
        edge_attr = None if self.edge_attr is None else self.edge_attr.to(device)
        back = None if self.transposed_weight is None else self.transposed_weight.to(device)
        tensors |= {"weight": weight, "edge_attr": edge_attr, "transposed_weight": back}
        prepared = {name: value.to(device) for name, value in self.prepared.items()}
        return replace(self, **tensors, transposed=transposed, prepared=prepared)

    def inverse_degree(self, dtype: torch.dtype) -> Tensor:
        """[N, 1]: the diagonal of D̂⁻¹."""
        if dtype not in self._inverse_degree:
            with inference_mode_disabled():
                if self.weight is None:
                    inverse = inverse_degree(self.rowptr, dtype)
                else:
                    inverse = (self.row_sum + 1).to(dtype).reciprocal_().unsqueeze(1)
                self._inverse_degree[dtype] = inverse
        return self._inverse_degree[dtype]

    @cached_tensor
    def _inverse_degree(self) -> dict[torch.dtype, Tensor]:
        return {}

    @cached_tensor
    def size(self) -> Tensor:
        """[N] n, the number of nodes of the graph that each node belongs to."""
        return repeated(self.nodes_per_graph, self.nodes_per_graph)

    def check_rows(self, h: Tensor) -> None:
        """Raises a ValueError unless ``h`` has one row per node, which the compiled loops do not check."""
        if h.dim() != 2 or len(h) != self.num_nodes:
            raise ValueError(
                f"the graphs have {self.num_nodes} nodes, so features are [{self.num_nodes}, d]: not {list(h.shape)}"
            )

    # ---- from PyG's tensors ----

    @classmethod
    def from_edge_index(
        cls,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> GraphBatch:
        """Makes a batch of PyG's tensors; self-loops and repeated columns of ``edge_index`` do not count.

        Args:
            x: ``[N]`` integer categories or ``[N, F]`` floats.
            edge_index: ``[2, E]`` numbers of nodes, in any order; directed edges stay directed.
            batch: ``[N]`` the graph of each node; None: one graph. Nodes are sorted by it where it does not ascend.
            edge_weight: ``[E]`` the weight of each column of ``edge_index``; None: ones. Of repeated columns the mean
                counts. Weights get no gradient.
            edge_attr: ``[E]`` integer categories or ``[E, F]`` floats of each column of ``edge_index``; of repeated
                ones the first counts.

        Returns:
            The batch; its ``y`` holds zeros.

        Raises:
            ValueError: ``batch``, ``edge_index``, ``edge_weight`` or ``edge_attr`` has another shape, or a weight is
                not finite or is to have a gradient.
            IndexError: ``edge_index`` names a node that is not there.
        """
        if edge_attr is not None and edge_attr.dim() != (2 if edge_attr.is_floating_point() else 1):
            kind = f"{list(edge_attr.shape)} {edge_attr.dtype}"
            raise ValueError(f"edge_attr is [E] integer categories or [E, F] floats, not {kind}")
        if edge_attr is not None and not edge_attr.is_floating_point():
            edge_attr = edge_attr.long()
        return cls.sorted_from_edge_index(x, edge_index, batch, edge_attr, edge_weight)[0]

    @classmethod
    def sorted_from_edge_index(
        cls,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> tuple[GraphBatch, Tensor | None]:
        """``from_edge_index``, and [N] the nodes in the order they were brought into, or None if they are as given.

        Here ``edge_attr`` may have any shape [E, …].
        """
        num_nodes, order = x.size(0), None
        if batch is not None and batch.shape != (num_nodes,):
            raise ValueError(f"x has {num_nodes} rows, so batch is [{num_nodes}]: not {list(batch.shape)}")
        check_edge_index_shape(edge_index)
        edge_index = edge_index.long()
        ptr = torch.tensor([0, num_nodes], device=x.device) if batch is None else ascending_ptr(batch)
        if batch is not None and ptr is None:
            check_edges(edge_index, num_nodes)
            order, ptr = torch.argsort(batch, stable=True), offsets(torch.bincount(batch))
            x, edge_index = x[order], torch.argsort(order)[edge_index]
        assert ptr is not None
        (rowptr, col), transposed = to_csr(edge_index, num_nodes)
        y = torch.zeros(len(ptr) - 1, dtype=torch.int64, device=x.device)
        made = cls(x, y, ptr, rowptr, col, transposed)
        if edge_weight is not None:
            made = _with_weights(made, edge_index, _checked_weights(edge_weight, edge_index))
        if edge_attr is not None:
            if len(edge_attr) != edge_index.size(1):
                raise ValueError(f"edge_index has {edge_index.size(1)} columns, and edge_attr {len(edge_attr)} rows")
            columns, place = (edge_index[0] * num_nodes + edge_index[1]).sort(stable=True)
            ours = made.edge_index[0] * num_nodes + made.edge_index[1]
            made = replace(made, edge_attr=edge_attr[place[torch.searchsorted(columns, ours)]])
        return made, order


def _checked_weights(edge_weight: Tensor, edge_index: Tensor) -> Tensor:
    """[E] floats, one for each column of ``edge_index``."""
    if edge_weight.shape != (edge_index.size(1),):
        wanted = f"edge_index has {edge_index.size(1)} columns, so edge_weight is [{edge_index.size(1)}]"
        raise ValueError(f"{wanted}: not {list(edge_weight.shape)}")
    if edge_weight.requires_grad and torch.is_grad_enabled():
        raise ValueError("weights of edges get no gradient here: pass edge_weight.detach()")
    if not edge_weight.isfinite().all():
        raise ValueError("a weight in edge_weight is infinite or not a number")
    return edge_weight.detach() if edge_weight.is_floating_point() else edge_weight.to(torch.get_default_dtype())


def _with_weights(graphs: GraphBatch, edge_index: Tensor, edge_weight: Tensor) -> GraphBatch:
    """The graphs, made of these columns, with their weights: of repeated columns the mean."""
    nodes = graphs.num_nodes
    row, col = graphs.edge_index
    entries = row * nodes + col  # ascending
    edge = edge_index[0] != edge_index[1]
    place = torch.searchsorted(entries, (edge_index[0] * nodes + edge_index[1])[edge])
    total = edge_weight.new_zeros(len(entries)).index_add_(0, place, edge_weight[edge])
    weight = total / torch.bincount(place, minlength=len(entries))
    if graphs.transposed is not None:
        rowptr, target = graphs.transposed
        source = repeated(torch.arange(nodes, device=rowptr.device), rowptr.diff())
        back = weight[torch.searchsorted(entries, target.long() * nodes + source)]
        return replace(graphs, weight=weight, transposed_weight=back)
    back = weight[torch.searchsorted(entries, col * nodes + row)]
    if torch.equal(back, weight):
        return replace(graphs, weight=weight)
    transposed = (graphs.rowptr, graphs.col)  # edges both ways, with weights that differ
    return replace(graphs, weight=weight, transposed=transposed, transposed_weight=back)
