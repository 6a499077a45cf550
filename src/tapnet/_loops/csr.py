"""Graphs in compressed rows (CSR): made from edges, cut out of a data set, restricted to some nodes."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from tapnet._loops.jit import Array, array, compiled_by, is_compiled, kernel
from tapnet._loops.ranges import concatenated_ranges, offsets

CSR = tuple[Tensor, Tensor]  # rowptr and col
LARGEST_INT32 = 2**31 - 1
u32 = np.uint32
SORTED_EDGES = 1_000_000  # fewer edges than these are sorted by NumPy when only their symmetry is asked for


@partial(kernel, in_training="i4[::1], i4[::1], i8[::1]")
def _induced_csr_loop(rowptr: Array, col: Array, perm: Array) -> tuple[Array, Array]:
    number = np.empty(len(rowptr) - 1, np.int32)
    for i in range(len(number)):
        number[i] = -1
    room = 1
    for i in range(len(perm)):
        number[perm[i]] = i
        room += rowptr[perm[i] + 1] - rowptr[perm[i]]
    new_ptr, new_col = np.empty(len(perm) + 1, np.int32), np.empty(room, np.int32)
    new_ptr[0] = at = 0
    for i in range(len(perm)):
        for e in range(rowptr[perm[i]], rowptr[perm[i] + 1]):
            j = number[col[e]]
            new_col[at] = j  # written over by the next one, unless j is kept
            at += j >= 0
        new_ptr[i + 1] = at
    return new_ptr, new_col[:at]


@compiled_by(_induced_csr_loop)
def induced_csr(rowptr: Tensor, col: Tensor, perm: Tensor) -> CSR:
    """rowptr and col of the rows and columns ``perm`` of a matrix, renumbered."""
    number = torch.full((len(rowptr) - 1,), -1, dtype=torch.int32, device=perm.device)
    number[perm] = torch.arange(len(perm), dtype=torch.int32, device=perm.device)
    count = rowptr.diff().index_select(0, perm)
    edges = concatenated_ranges(rowptr.index_select(0, perm), count)
    target = number.index_select(0, col.index_select(0, edges))
    kept = target >= 0
    return offsets(kept)[offsets(count)].int(), target.masked_select(kept)


@kernel
def _induced_entries_loop(rowptr: Array, col: Array, perm: Array) -> Array:
    number = np.zeros(len(rowptr) - 1, np.bool_)
    room = 1
    for i in range(len(perm)):
        number[perm[i]] = True
        room += rowptr[perm[i] + 1] - rowptr[perm[i]]
    kept, at = np.empty(room, np.int64), 0
    for i in range(len(perm)):
        for e in range(rowptr[perm[i]], rowptr[perm[i] + 1]):
            kept[at] = e
            at += number[col[e]]
    return kept[:at]


@compiled_by(_induced_entries_loop)
def induced_entries(rowptr: Tensor, col: Tensor, perm: Tensor) -> Tensor:
    """[K] which entries of ``col`` are those of ``induced_csr``, in its order."""
    kept = torch.zeros(len(rowptr) - 1, dtype=torch.bool, device=perm.device).index_fill_(0, perm, True)
    edges = concatenated_ranges(rowptr.index_select(0, perm), rowptr.diff().index_select(0, perm)).long()
    return edges[kept[col.index_select(0, edges).long()]]


@kernel
def _common_neighbors_loop(rowptr: Array, col: Array, weight: Array) -> Array:
    found = np.zeros(len(col), weight.dtype)
    to_first = np.zeros(len(rowptr) - 1, weight.dtype)  # the weights of the edges of one node
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            to_first[col[e]] = weight[e]
        for e in range(rowptr[i], rowptr[i + 1]):
            total = 0.0
            for f in range(rowptr[col[e]], rowptr[col[e] + 1]):
                total += to_first[col[f]] * weight[f]
            found[e] = total * weight[e]
        for e in range(rowptr[i], rowptr[i + 1]):
            to_first[col[e]] = 0
    return found


@compiled_by(_common_neighbors_loop)
def common_neighbors(rowptr: Tensor, col: Tensor, weight: Tensor) -> Tensor:
    """[E] the entries of A² ⊙ A at those of a symmetric A: without weights, how many triangles each edge is in."""
    count = rowptr.diff()
    degree = count.index_select(0, col)  # of the end of each edge
    beyond = concatenated_ranges(rowptr.index_select(0, col), degree).long()  # the edges that go on from there
    edge = torch.repeat_interleave(degree.long())
    nodes = len(rowptr) - 1
    first = torch.repeat_interleave(count.long())
    keys = first * nodes + col  # ascending, if the columns of each row are
    keys, order = keys.sort()
    wanted = first[edge] * nodes + col[beyond]
    at = torch.searchsorted(keys, wanted).clamp(max=max(len(keys) - 1, 0))
    closes = keys[at] == wanted
    terms = torch.where(closes, weight[order[at]] * weight[beyond], 0)
    return torch.zeros_like(weight).index_add_(0, edge, terms) * weight


def to_csr(edge_index: Tensor, num_nodes: int) -> tuple[CSR, CSR | None]:
    """A in compressed rows, without self-loops and with every column of edge_index once; Aᵀ too, unless it is A."""
    if max(edge_index.size(1), num_nodes) > LARGEST_INT32:
        raise ValueError(f"{num_nodes:,} nodes and {edge_index.size(1):,} edges; at most {LARGEST_INT32:,} of each fit")
    return (to_csr_loops if edge_index.is_cpu else to_csr_torch)(edge_index, num_nodes)


def to_csr_torch(edge_index: Tensor, num_nodes: int) -> tuple[CSR, CSR]:
    """The same on any device, always with Aᵀ."""
    check_edges(edge_index, num_nodes)
    rows, columns = edge_index[:, edge_index[0] != edge_index[1]]

    def ordered(key: Tensor) -> CSR:
        key = torch.unique(key)
        counts = torch.bincount(key // max(num_nodes, 1), minlength=num_nodes)
        return offsets(counts).int(), (key % max(num_nodes, 1)).int()

    return ordered(rows * num_nodes + columns), ordered(columns * num_nodes + rows)


def to_csr_loops(edge_index: Tensor, num_nodes: int) -> tuple[CSR, CSR | None]:
    """The same, compiled: counting instead of sorting is linear in the edges, and less where they are in order."""
    edges = array(edge_index)
    rowptr, col, ascending = _compress_ascending(edges, num_nodes)
    if not ascending:
        check_edges(edge_index, num_nodes)
        # Transposing puts the columns of each row in order.
        edges = _transpose(*_count_rows(array(edge_index.flip(0)), num_nodes))
        rowptr, col, _ = _compress_ascending(edges, num_nodes)
    matrix = torch.from_numpy(rowptr), torch.from_numpy(col)
    whole = len(col) == edges.shape[1]  # nothing was left out
    if _are_symmetric(*edges) if whole else is_symmetric_loop(rowptr, col):
        return matrix, None
    rowptr, col, _ = _compress_ascending(_transpose(rowptr, col), num_nodes)
    return matrix, (torch.from_numpy(rowptr), torch.from_numpy(col))


@kernel
def _count_rows(edges: Array, num_nodes: int) -> tuple[Array, Array]:
    """Edges in any order → compressed rows, their columns in the order of the edges."""
    rows, columns = edges[0], edges[1]
    rowptr = np.zeros(num_nodes + 1, np.int32)
    for e in range(len(rows)):
        rowptr[rows[e] + 1] += 1
    for i in range(num_nodes):
        rowptr[i + 1] += rowptr[i]
    col, at = np.empty(len(rows), np.int32), rowptr[:-1].copy()
    for e in range(len(rows)):
        col[at[rows[e]]] = columns[e]
        at[rows[e]] += 1
    return rowptr, col


@kernel
def _compress_ascending(edges: Array, num_nodes: int) -> tuple[Array, Array, bool]:
    """Edges that ascend by (row, column) → compressed rows, each column once and no self-loop.

    Last, whether the edges do ascend, between nodes that are there; what is returned before is of no use if not.
    """
    rows, columns = edges[0], edges[1]  # unpacking edges would hide that they are contiguous
    rowptr, col, at = np.zeros(num_nodes + 1, np.int32), np.empty(len(rows) + 1, np.int32), 0
    i, j = rows.dtype.type(0), rows.dtype.type(-1)
    seen = len(rows) > 0 and (rows[0] < 0 or rows[-1] >= num_nodes)  # a loop, an edge again, or edges out of order
    last = len(rows) - 1
    for e in range(last):
        seen |= (columns[e] < 0) | (columns[e] >= num_nodes) | (rows[e] == columns[e])
        seen |= (rows[e + 1] < rows[e]) | ((rows[e + 1] == rows[e]) & (columns[e + 1] <= columns[e]))
        col[e] = columns[e]
    if last >= 0:
        seen |= (columns[last] < 0) | (columns[last] >= num_nodes) | (rows[last] == columns[last])
        col[last] = columns[last]
    if not seen:  # as most edges come: loops without a branch do several at a time
        at, end = len(rows), rowptr[1:]
        for e in range(at):
            end[np.uint64(rows[e])] = e + 1
    else:
        for e in range(len(rows)):
            before_i, before_j = i, j
            i, j = rows[e], columns[e]
            if i < before_i or (i == before_i and j < before_j) or i >= num_nodes or j < 0 or j >= num_nodes:
                return rowptr, col[:at], False
            col[at] = j
            at += (i != j) & ((i != before_i) | (j != before_j))
            rowptr[i + 1] = at
    for i in range(num_nodes):
        rowptr[i + 1] = max(rowptr[i], rowptr[i + 1])
    return rowptr, col[:at], True


@kernel
def _transpose(rowptr: Array, col: Array) -> Array:
    """[2, E]: the edges of a square matrix in compressed rows, reversed and ascending."""
    n = len(rowptr) - 1
    at = np.zeros(n + 1, np.int32)
    for e in range(len(col)):
        at[col[e] + 1] += 1
    for i in range(n):
        at[i + 1] += at[i]
    edges = np.empty((2, len(col)), np.int32)
    for i in range(n):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            edges[0, at[j]], edges[1, at[j]] = j, i
            at[j] += 1
    return edges


def is_symmetric(rowptr: Array, col: Array) -> bool:
    """Of a square matrix in compressed rows, each row ascending: whether (i, j) and (j, i) are the same set.

    Small matrices are sorted: loading Numba, which takes a second, for a million edges does not pay.
    """
    if len(col) >= SORTED_EDGES:
        return bool(is_symmetric_loop(rowptr, col))
    n = len(rowptr) - 1
    row, column = np.repeat(np.arange(n), np.diff(rowptr)), col.astype(np.int64)
    return np.array_equal(np.sort(column * n + row), row * n + column)


def is_symmetric_loop(rowptr: Array, col: Array) -> bool:
    """The same, compiled."""
    return bool(_are_symmetric(np.repeat(np.arange(len(rowptr) - 1, dtype=np.int32), np.diff(rowptr)), col))


@kernel
def _are_symmetric(rows: Array, columns: Array) -> bool:
    """Whether each entry (i, j) of a matrix, named once, stands beside an entry (j, i).

    Compares sums of hashes of the entries above and below the diagonal, in the order of the memory: looking each
    (j, i) up would wait for memory twice an edge. The two hashes of 32 bits, which processors compute eight at a time,
    are of two numbers that together tell every (i, j); that two different sets have the same two sums has a chance of
    2⁻⁶⁴.
    """
    first, second = u32(0), u32(0)
    for e in range(len(columns)):
        i, j = u32(rows[e]), u32(columns[e])
        low, high = min(i, j), max(i, j)
        a, b = u32(u32(low * u32(0x9E3779B1)) + high), u32(u32(high * u32(0x85EBCA77)) + low)
        a, b = u32(u32(a ^ (a >> u32(16))) * u32(0x7FEB352D)), u32(u32(b ^ (b >> u32(16))) * u32(0x21F0AAAD))
        a, b = u32(u32(a ^ (a >> u32(15))) * u32(0x846CA68B)), u32(u32(b ^ (b >> u32(15))) * u32(0xD35A2D97))
        sign = u32(1) if i < j else u32(0xFFFFFFFF)  # + above the diagonal, - below it
        first = u32(first + u32(u32(a ^ (a >> u32(16))) * sign))
        second = u32(second + u32(u32(b ^ (b >> u32(15))) * sign))
    return bool((first == u32(0)) & (second == u32(0)))


def check_edges(edge_index: Tensor, num_nodes: int) -> None:
    """[2, E] numbers of nodes that are there."""
    check_edge_index_shape(edge_index)
    if edge_index.numel():
        _check_numbers(*edge_index.aminmax(), num_nodes)


def check_edge_index_shape(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index is [2, E], not {list(edge_index.shape)}")


def _check_numbers(low: Tensor | int, high: Tensor | int, num_nodes: int) -> None:
    if low < 0 or high >= num_nodes:
        wrong = int(high if high >= num_nodes else low)
        raise IndexError(f"edge_index names node {wrong}; x has the nodes 0 to {num_nodes - 1}")


def induced_edges(
    perm: Tensor, edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """The columns of edge_index with both ends in perm, renumbered, with their attributes, in their order."""
    if edge_attr is not None and len(edge_attr) != edge_index.size(1):
        raise ValueError(f"edge_index has {edge_index.size(1)} columns, and edge_attr {len(edge_attr)} rows")
    ends, kept = induced_columns(perm, edge_index, num_nodes)
    return ends, None if edge_attr is None else edge_attr.index_select(0, kept)


@kernel
def _induced_columns_loop(perm: Array, edges: Array, num_nodes: int) -> tuple[Array, Array]:
    rows, columns = edges[0], edges[1]
    number = np.full(num_nodes, -1, np.int32)
    for i in range(len(perm)):
        number[perm[i]] = i
    kept, at = np.empty(len(rows) + 1, np.int64), 0
    for e in range(len(rows)):  # an unsigned index is not looked at for being negative
        kept[at] = e
        at += (number[np.uint64(rows[e])] | number[np.uint64(columns[e])]) >= 0
    ends = np.empty((2, at), np.int64)
    first, second = ends[0], ends[1]
    for i in range(at):
        edge = np.uint64(kept[i])
        first[i], second[i] = number[np.uint64(rows[edge])], number[np.uint64(columns[edge])]
    return ends, kept[:at]


@compiled_by(_induced_columns_loop)
def induced_columns(perm: Tensor, edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """[2, K] the edges with both ends in perm, renumbered, and [K] their numbers, in their order."""
    number = edge_index.new_full((num_nodes,), -1)
    number[perm] = torch.arange(len(perm), device=perm.device)
    rows, columns = number.index_select(0, edge_index[0]), number.index_select(0, edge_index[1])
    kept = ((rows >= 0) & (columns >= 0)).nonzero()[:, 0]
    return torch.stack([rows.index_select(0, kept), columns.index_select(0, kept)]), kept


def inverse_degree(rowptr: Tensor, dtype: torch.dtype) -> Tensor:
    """[N, 1]: 1 / (degree + 1), the diagonal of D̂⁻¹."""
    inverse = torch.empty(len(rowptr) - 1, 1, dtype=dtype, device=rowptr.device)
    if not is_compiled(rowptr, inverse):
        return (rowptr.diff() + 1).to(dtype).reciprocal_().unsqueeze(1)
    _inverse_degree_loop(array(rowptr), array(inverse)[:, 0])
    return inverse


@partial(kernel, in_training="i4[::1], f4[::1]")
def _inverse_degree_loop(rowptr: Array, out: Array) -> None:
    for i in range(len(out)):
        out[i] = 1 / out.dtype.type(rowptr[i + 1] - rowptr[i] + 1)


def nodes_and_edges(graphs: Tensor, node_ptr: Tensor, rowptr: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of all nodes and of all edges of some graphs, one graph after another."""
    nodes = concatenated_ranges(node_ptr[graphs], node_ptr[graphs + 1] - node_ptr[graphs])
    return nodes, concatenated_ranges(rowptr[nodes], rowptr[nodes + 1] - rowptr[nodes])


@partial(kernel, in_training="i8[::1], i8[::1], i8[::1], i4[::1]")
def cut_graphs(graphs: Array, node_ptr: Array, rowptr: Array, col: Array) -> tuple[Array, ...]:
    """Some graphs out of many: ptr, the number of each node, and rowptr and col of their union.

    ``nodes_and_edges`` is the plain version: the nodes and edges that are copied here, as numbers.
    """
    ptr = np.empty(len(graphs) + 1, np.int64)
    ptr[0] = num_edges = 0
    for g in range(len(graphs)):
        first, last = node_ptr[graphs[g]], node_ptr[graphs[g] + 1]
        ptr[g + 1] = ptr[g] + last - first
        num_edges += rowptr[last] - rowptr[first]
    if ptr[-1] > LARGEST_INT32 or num_edges > LARGEST_INT32:
        raise ValueError("more than 2,147,483,647 nodes or edges in one batch; take fewer graphs at once")
    nodes = np.empty(ptr[-1], np.int64)
    new_ptr, new_col = np.empty(ptr[-1] + 1, np.int32), np.empty(num_edges, np.int32)
    new_ptr[0] = at = 0
    for g in range(len(graphs)):
        first, last, start = node_ptr[graphs[g]], node_ptr[graphs[g] + 1], ptr[g]
        shift = at - rowptr[first]
        for i in range(last - first):
            nodes[start + i] = first + i
            new_ptr[start + i + 1] = rowptr[first + i + 1] + shift
        for e in range(rowptr[first], rowptr[last]):
            new_col[e + shift] = col[e] + start
        at = rowptr[last] + shift
    return ptr, nodes, new_ptr, new_col
