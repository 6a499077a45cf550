"""GraphBatch: some graphs as one disjoint union, the structure that flows through every layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tapnet.data import kernels
from tapnet.data.flat import concatenated_ranges, offsets, repeated
from tapnet.data.kernels import array
from tapnet.data.segments import segment_readout
from tapnet.data.step import step

T = TypeVar("T")
Norm = Literal["neighbour", "symmetric", "mean", "sum"]


def ordinary_tensors() -> AbstractContextManager[object]:
    """Inference mode off within it; costs nothing where it is off already."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()


class kept(cached_property[T]):
    """A cached_property whose tensors are ordinary ones: graphs that were looked at may be trained on later."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        @wraps(function)
        def computed(batch: Any) -> T:
            with ordinary_tensors():
                return function(batch)

        super().__init__(computed)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """B graphs with N nodes and E edges, as one graph whose parts are not connected.

    The adjacency matrix A is 0/1, without self-loops, in compressed rows: row i has its ones at
    ``neighbor[edge_ptr[i]:edge_ptr[i+1]]``. Â = A + I, and D̂ holds the row sums of Â.
    """

    x: Tensor  # [N] integer categories or [N, F] floats
    y: Tensor  # [B] class of each graph
    ptr: Tensor  # [B+1] int64: graph g holds the nodes ptr[g] to ptr[g+1]
    edge_ptr: Tensor  # [N+1] int32
    neighbor: Tensor  # [E] int32: numbers within the batch
    transposed: tuple[Tensor, Tensor] | None = None  # edge_ptr and neighbor of Aᵀ; None: A is symmetric
    weight: Tensor | None = None  # [E] floats in the place of A's ones, symmetric; None: ones
    prepared: Mapping[str, Any] = field(default_factory=dict)  # what was computed once for the data set, by name

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_nodes(self) -> int:
        return len(self.edge_ptr) - 1

    @kept
    def degree(self) -> Tensor:
        """[N] int32 row sums of A."""
        return self.edge_ptr.diff()

    @kept
    def weighted_degree(self) -> Tensor:
        """[N] row sums of A where its edges have weights."""
        assert self.weight is not None
        rows = torch.zeros(self.num_nodes, dtype=self.weight.dtype, device=self.weight.device)
        return rows.index_add_(0, self.edge_index[0], self.weight)

    @kept
    def nodes_per_graph(self) -> Tensor:
        """[B]"""
        return self.ptr.diff()

    @kept
    def graph(self) -> Tensor:
        """[N] the graph that each node belongs to (PyG's ``batch``)."""
        return repeated(torch.arange(self.num_graphs, device=self.ptr.device), self.nodes_per_graph)

    @kept
    def edge_index(self) -> Tensor:
        """[2, E] int64, as PyG has it."""
        nodes = torch.arange(self.num_nodes, device=self.ptr.device)
        return torch.stack([repeated(nodes, self.degree), self.neighbor.long()])

    @property
    def edges_once(self) -> Tensor:
        """[2, E/2] of undirected graphs, the smaller end first: what is drawn."""
        ends = self.edge_index
        return ends[:, ends[0] < ends[1]]

    def to(self, device: torch.device | str) -> GraphBatch:
        tensors = {key: getattr(self, key).to(device) for key in ("x", "y", "ptr", "edge_ptr", "neighbor")}
        transposed = self.transposed and (self.transposed[0].to(device), self.transposed[1].to(device))
        weight = None if self.weight is None else self.weight.to(device)
        prepared = {name: value.to(device) for name, value in self.prepared.items()}
        return replace(self, **tensors, transposed=transposed, weight=weight, prepared=prepared)

    # ---- products with the normalised adjacency matrix ----

    def propagate(self, h: Tensor, norm: Norm) -> Tensor:
        """[N, d] → [N, d]: ÂD̂⁻¹H ("neighbour"), D̂⁻½ÂD̂⁻½H ("symmetric"), D̂⁻¹ÂH ("mean") or ÂH ("sum")."""
        return self.scaled_product(h, *self.scales(norm, h.dtype))

    def scaled_product(self, h: Tensor, before: Tensor | None, after: Tensor | None) -> Tensor:
        """after · Â · before · H, where before and after are scales of rows [N, 1], which get no gradient."""
        result: Tensor = step(_ScaledProduct, h, before, after, self)
        return result

    def scales(self, norm: Norm, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
        """What multiplies the rows before and after the product with Â, each [N, 1] or None."""
        if norm == "sum":
            return None, None
        inverse = self.inverse_degree(dtype)
        if norm == "symmetric":
            root = inverse.sqrt()
            return root, root
        return (inverse, None) if norm == "neighbour" else (None, inverse)

    def inverse_degree(self, dtype: torch.dtype) -> Tensor:
        """[N, 1]: the diagonal of D̂⁻¹."""
        if dtype not in self._inverse_degree:
            with ordinary_tensors():
                self._inverse_degree[dtype] = self._inverted(dtype)
        return self._inverse_degree[dtype]

    def _inverted(self, dtype: torch.dtype) -> Tensor:
        if self.weight is None and self.ptr.device.type == "cpu" and dtype in kernels.FLOATS:
            inverse = torch.empty(self.num_nodes, 1, dtype=dtype)
            kernels.inverse_degrees(array(self.edge_ptr), array(inverse)[:, 0])
            return inverse
        degree = self.degree if self.weight is None else self.weighted_degree
        return (degree + 1).to(dtype).reciprocal_().unsqueeze(1)

    @kept
    def _inverse_degree(self) -> dict[torch.dtype, Tensor]:
        return {}

    @kept
    def size(self) -> Tensor:
        """[N] n, the number of nodes of the graph that each node belongs to."""
        return repeated(self.nodes_per_graph, self.nodes_per_graph)

    def sum_neighbors(self, h: Tensor, *, transpose: bool = False) -> Tensor:
        """AH (or AᵀH), without a gradient. One bag of rows a node: many times as fast as gather and scatter."""
        if h.size(0) == 0 or h.size(1) == 0:
            return torch.zeros_like(h)
        edge_ptr, neighbor = self.transposed if transpose and self.transposed else (self.edge_ptr, self.neighbor)
        weight = None if self.weight is None else self.weight.to(h.dtype)
        return torch.embedding_bag(h, neighbor, edge_ptr[:-1], mode=0, per_sample_weights=weight)[0]

    # ---- parts of it ----

    def induced(self, perm: Tensor, ptr: Tensor) -> GraphBatch:
        """The subgraph of these nodes (ascending; graph g has perm[ptr[g]:ptr[g+1]]): A′ = A[perm, perm]."""
        edge_ptr, neighbor = restricted(self.edge_ptr, self.neighbor, perm)
        return GraphBatch(
            x=self.x,
            y=self.y,
            ptr=ptr,
            edge_ptr=edge_ptr,
            neighbor=neighbor,
            transposed=None if self.transposed is None else restricted(*self.transposed, perm),
        )

    def readout(self, h: Tensor) -> Tensor:
        """[N, d] → [B, 3d]: max, mean and sum over the nodes of each graph."""
        self.check_rows(h)
        return segment_readout(h, self.ptr)

    def check_rows(self, h: Tensor) -> None:
        """The compiled loops do not look whether a row is there."""
        if h.dim() != 2 or len(h) != self.num_nodes:
            raise ValueError(
                f"the graphs have {self.num_nodes} nodes, so features are [{self.num_nodes}, d]: not {list(h.shape)}"
            )

    # ---- PyG's door ----

    @classmethod
    def from_edge_index(cls, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> GraphBatch:
        """From PyG's tensors; self-loops and repeated columns of edge_index do not count.

        Where ``batch`` does not ascend, the nodes are sorted by it.
        """
        device, num_nodes = x.device, x.size(0)
        if batch is not None and batch.shape != (num_nodes,):
            raise ValueError(f"x has {num_nodes} rows, so batch is [{num_nodes}]: not {list(batch.shape)}")
        _check_shape(edge_index)
        edge_index = edge_index.long()
        if batch is not None and (order := sorting(batch)) is not None:
            check_edges(edge_index, num_nodes)
            return cls.from_edge_index(x[order], torch.argsort(order)[edge_index], batch[order])
        ptr = torch.tensor([0, num_nodes], device=device) if batch is None else offsets(torch.bincount(batch))
        (edge_ptr, neighbor), transposed = compressed(edge_index, num_nodes)
        return cls(
            x=x,
            y=torch.zeros(len(ptr) - 1, dtype=torch.int64, device=device),
            ptr=ptr,
            edge_ptr=edge_ptr,
            neighbor=neighbor,
            transposed=transposed,
        )


def sorting(batch: Tensor) -> Tensor | None:
    """The order that brings the nodes of each graph together; None if they are together already."""
    return None if bool((batch[1:] >= batch[:-1]).all()) else torch.argsort(batch, stable=True)


Compressed = tuple[Tensor, Tensor]  # edge_ptr and neighbor


def restricted(edge_ptr: Tensor, neighbor: Tensor, perm: Tensor) -> Compressed:
    """edge_ptr and neighbor of the rows and columns ``perm`` of a matrix, renumbered."""
    if perm.device.type == "cpu":
        return _tensors(kernels.restrict(array(edge_ptr), array(neighbor), array(perm)))
    return restricted_by_torch(edge_ptr, neighbor, perm)


def restricted_by_torch(edge_ptr: Tensor, neighbor: Tensor, perm: Tensor) -> Compressed:
    """The same on any device."""
    number = torch.full((len(edge_ptr) - 1,), -1, dtype=torch.int32, device=perm.device)
    number[perm] = torch.arange(len(perm), dtype=torch.int32, device=perm.device)
    count = edge_ptr.diff().index_select(0, perm)
    edges = concatenated_ranges(edge_ptr.index_select(0, perm), count)
    target = number.index_select(0, neighbor.index_select(0, edges))
    kept = target >= 0
    return offsets(kept)[offsets(count)].int(), target.masked_select(kept)


def compressed(edge_index: Tensor, num_nodes: int) -> tuple[Compressed, Compressed | None]:
    """A in compressed rows, without self-loops and with every column of edge_index once; Aᵀ too, unless it is A."""
    return (_compressed_on_cpu if edge_index.device.type == "cpu" else compressed_by_torch)(edge_index, num_nodes)


def compressed_by_torch(edge_index: Tensor, num_nodes: int) -> tuple[Compressed, Compressed]:
    """The same on any device, always with Aᵀ."""
    check_edges(edge_index, num_nodes)
    rows, columns = edge_index[:, edge_index[0] != edge_index[1]]

    def ordered(key: Tensor) -> Compressed:
        key = torch.unique(key)
        counts = torch.bincount(key // max(num_nodes, 1), minlength=num_nodes)
        return offsets(counts).int(), (key % max(num_nodes, 1)).int()

    return ordered(rows * num_nodes + columns), ordered(columns * num_nodes + rows)


def _compressed_on_cpu(edge_index: Tensor, num_nodes: int) -> tuple[Compressed, Compressed | None]:
    """The same by counting instead of sorting: linear in the edges, and less where they are in order already."""
    edges = array(edge_index)
    low, high, ascending = kernels.look_at_edges(edges)
    _check_numbers(low, high, num_nodes)
    if not ascending:  # transposing puts the columns of each row in order
        edges = kernels.transpose(*kernels.compress(array(edge_index.flip(0)), num_nodes))
    matrix = kernels.compress_ascending(edges, num_nodes)
    if kernels.is_symmetric(*matrix):
        return _tensors(matrix), None
    return _tensors(matrix), _tensors(kernels.compress_ascending(kernels.transpose(*matrix), num_nodes))


def _tensors(matrix: tuple[kernels.Array, kernels.Array]) -> Compressed:
    return torch.from_numpy(matrix[0]), torch.from_numpy(matrix[1])


def check_edges(edge_index: Tensor, num_nodes: int) -> None:
    """[2, E] numbers of nodes that are there."""
    _check_shape(edge_index)
    if edge_index.numel():
        _check_numbers(*edge_index.aminmax(), num_nodes)


def _check_shape(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index is [2, E], not {list(edge_index.shape)}")


def _check_numbers(low: Tensor | int, high: Tensor | int, num_nodes: int) -> None:
    if low < 0 or high >= num_nodes:
        wrong = int(high if high >= num_nodes else low)
        raise IndexError(f"edge_index names node {wrong}; x has the nodes 0 to {num_nodes - 1}")


class _ScaledProduct(Function):
    """after · Â · before · H. Going back it is the same with before and after exchanged and Â transposed."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, before: Tensor | None, after: Tensor | None, batch: GraphBatch) -> Tensor:
        ctx.scales, ctx.batch = (before, after), batch
        return scaled_product(h, before, after, batch, transpose=False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        before, after = ctx.scales
        return scaled_product(grad, after, before, ctx.batch, transpose=True), None, None, None


def scaled_product(
    h: Tensor, before: Tensor | None, after: Tensor | None, batch: GraphBatch, transpose: bool = False
) -> Tensor:
    """after · Â · before · H, without a gradient."""
    rows = h.contiguous() if before is None else h * before
    result = batch.sum_neighbors(rows, transpose=transpose).add_(rows)
    return result if after is None else result.mul_(after)
