"""The auxiliary link prediction objective (section 3.4): do the similarities tell which nodes are linked?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tapnet._loops.ranges import concatenated_ranges
from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.nn.similarity import Similarity, check_similarity, pairwise
from tapnet.ops.compiler import compiler_disabled
from tapnet.ops.precision import full_precision, widened

LinkReading = Literal["sigmoid", "softmax"]
Block = tuple[Tensor, int, Tensor, Tensor]  # [b] first row, the number of rows, [b] first node, [b] number of nodes

PAIRS_AT_ONCE = 1 << 21  # bounds the part of the n×n matrices that exists at a time, forward and backward
CHEAP_PAIRS = 1 << 15  # so many are computed sooner than their graphs are sorted into blocks of like sizes


def check_link_reading(reading: str) -> None:
    """Raises SettingError for a word that is no reading of the link probability."""
    if reading not in get_args(LinkReading):
        raise SettingError(f"the reading of the link probability is 'sigmoid' or 'softmax', not {reading!r}")


@compiler_disabled
def link_prediction_loss(
    x: Tensor,
    edge_index: Tensor,
    batch: Tensor | None = None,
    *,
    weight: Tensor | None = None,
    similarity: Similarity = "bilinear",
    reading: LinkReading = "sigmoid",
) -> Tensor:
    """The mean over the graphs of (1/n²) Σᵢⱼ f(R̃ᵢⱼ, Aᵢⱼ), with R = r(hᵢ, hⱼ) and f the binary cross-entropy.

    The auxiliary objective of *Topology-Aware Graph Pooling Networks* (section 3.4, Eq. 5).

    Args:
        x: [N, d] node features.
        edge_index: [2, E]; self-loops count as no link, and so does the diagonal.
        batch: [N] the graph of each node; None means one graph.
        weight: W_r of ``TAPooling`` (None with ``"bilinear"`` is the identity).
        similarity: r, as in ``TAPooling``.
        reading: R̃ is a sigmoid of each element of R, or (``"softmax"``) a softmax over each of its rows. The
            paper's "element-wise softmax" can mean either.

    Returns:
        A scalar.

    Raises:
        SettingError: for an unknown similarity or reading, or ``"concat"`` without its weight.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> link_prediction_loss(torch.zeros(3, 8), edge_index)  # every pair is linked with probability 1/2
        tensor(0.6931)
    """
    structure = GraphBatch.from_edge_index(x, edge_index, batch)
    rows = structure.x  # sorted by graph
    assert isinstance(rows, Tensor)
    return link_loss(rows, structure, weight=weight, similarity=similarity, reading=reading)


def link_loss(
    x: Tensor,
    batch: GraphBatch,
    *,
    weight: Tensor | None = None,
    similarity: Similarity = "bilinear",
    reading: LinkReading = "sigmoid",
) -> Tensor:
    """``link_prediction_loss`` on a GraphBatch. Exact, in blocks that are recomputed in the backward pass."""
    check_link_reading(reading)
    check_similarity(similarity)
    if similarity == "bilinear" and weight is None:
        similarity = "dot"
    if similarity == "concat" and weight is None:
        raise SettingError("the similarity 'concat' needs its weight, [2d]")
    with full_precision(x):
        h = widened(x)
        return _link_loss(h, batch, None if weight is None else weight.to(h.dtype), similarity, reading)


def _link_loss(
    x: Tensor, batch: GraphBatch, weight: Tensor | None, similarity: Similarity, reading: LinkReading
) -> Tensor:
    total = x.new_zeros(())
    fits = int(batch.nodes_per_graph.square().sum()) <= PAIRS_AT_ONCE  # then nothing need be computed twice
    for block in _blocks(batch):
        arguments = (x, weight, similarity, reading, batch, block)
        total = total + (_block_loss(*arguments) if fits else checkpoint(_block_loss, *arguments, use_reentrant=False))
    return total / batch.nodes_per_graph.count_nonzero()


def _blocks(batch: GraphBatch) -> Iterator[Block]:
    """Graphs of about the same size together (padded to the largest of them), large ones some rows at a time.

    The last two of a block are each graph's first node and the number of its nodes.
    """
    sizes, by_size = batch.nodes_per_graph.sort()
    sizes_list = sizes.tolist()
    position = sizes_list.count(0)  # empty graphs come first, and have no pairs
    while position < len(sizes_list):
        smallest = sizes_list[position]
        end, limit = position, smallest + smallest // 8  # at most an eighth of padding a side
        while end < len(sizes_list):
            width = sizes_list[end]
            pairs = (end + 1 - position) * width * width
            if end > position and (pairs > PAIRS_AT_ONCE or (width > limit and pairs > CHEAP_PAIRS)):
                break
            end += 1
        width = sizes_list[end - 1]
        graphs = by_size[position:end]
        rows = width if end > position + 1 else max(1, min(width, PAIRS_AT_ONCE // max(width, 1)))
        for start in range(0, width, max(rows, 1)):
            first_node = batch.ptr[graphs]
            yield first_node + start, min(rows, width - start), first_node, sizes[position:end]
        position = end


def _block_loss(
    x: Tensor,
    weight: Tensor | None,
    similarity: Similarity,
    reading: LinkReading,
    batch: GraphBatch,
    block: Block,
) -> Tensor:
    """Σ over the block of f(R̃ᵢⱼ, Aᵢⱼ) / n²."""
    first_row, rows, first_node, nodes = block
    width = int(nodes.max())
    count, device = len(nodes), x.device
    last = batch.num_nodes - 1
    row = first_row.unsqueeze(1) + torch.arange(rows, device=device)  # [b, rows]
    col = first_node.unsqueeze(1) + torch.arange(width, device=device)  # [b, width]
    end = (first_node + nodes).unsqueeze(1)
    real_row, real_col = row < end, col < end
    r = pairwise(similarity, weight, x[row.clamp(max=last)], x[col.clamp(max=last)])  # [b, rows, width]

    # The links among them: A restricted to the block.
    row_numbers = row[real_row]
    degree = batch.degree[row_numbers]
    edges = concatenated_ranges(batch.rowptr[row_numbers], degree)
    slot = torch.arange(count * rows, device=device).view(count, rows)[real_row]
    shift = first_node.unsqueeze(1).expand(count, rows)[real_row]
    link = torch.zeros(count * rows, width, dtype=r.dtype, device=device)
    column = batch.col[edges] - torch.repeat_interleave(shift, degree)
    link[torch.repeat_interleave(slot, degree), column] = 1
    link = link.view(count, rows, width)

    if reading == "sigmoid":
        loss = torch.nn.functional.binary_cross_entropy_with_logits(r, link, reduction="none")
    else:
        log_p = r.masked_fill(~real_col.unsqueeze(1), -torch.inf).log_softmax(dim=2)
        log_p = log_p.masked_fill(~real_col.unsqueeze(1), -1)  # no value that could become NaN; weighs 0 below
        highest = -torch.finfo(log_p.dtype).eps  # 1 - p of a certain link must not be 0
        loss = -(link * log_p + (1 - link) * torch.log(-torch.expm1(log_p.clamp(max=highest))))
    weight_of = (real_row.unsqueeze(2) & real_col.unsqueeze(1)) / nodes.to(r.dtype).square().view(-1, 1, 1)
    return (loss * weight_of).sum()
