"""Differentiable pooling (Ying and others 2018): nodes are assigned to clusters, softly; clusters are the new nodes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.nn.conv import GraphConv
from tapnet.nn.pool.select import Pooled
from tapnet.ops.csr import Norm
from tapnet.ops.dense import adjacency_product, squared_norm, to_padded


class Clusters(NamedTuple):
    """What a soft assignment makes of a batch."""

    x: Tensor  # [B·K, d]: SᵀH
    batch: DenseBatch  # SᵀAS
    link: Tensor  # ‖A - SSᵀ‖ / n², the mean over the graphs
    entropy: Tensor  # of the rows of S, the mean over the nodes


def diff_pool(s: Tensor, h: Tensor, batch: GraphBatch | DenseBatch) -> Clusters:
    """Equations 3, 4 and the two losses of the paper for S = softmax of the logits s [N, K], without an n×n matrix:

    ‖A - SSᵀ‖² = ‖A‖² - 2 tr(SᵀAS) + ‖SᵀS‖², and of these only K×K is ever made.
    """
    s = torch.softmax(s, dim=1)
    rows = to_padded(s, batch)
    transposed = rows.transpose(1, 2)
    adjacency = transposed @ to_padded(adjacency_product(s, batch), batch)
    squared = squared_norm(batch) - 2 * adjacency.diagonal(dim1=1, dim2=2).sum(1)
    squared = squared + (transposed @ rows).square().sum(dim=(1, 2))
    link = (squared.clamp(min=1e-12).sqrt() / batch.nodes_per_graph.clamp(min=1).square()).mean()
    entropy = -(s * (s + 1e-15).log()).sum() / max(len(s), 1)
    return Clusters((transposed @ to_padded(h, batch)).flatten(0, 1), DenseBatch(adjacency), link, entropy)


class DiffPool(nn.Module):
    """A layer with one graph convolution as its assignment network.

    Of the two losses it adds the link prediction, as its authors' program does. The entropy of the assignments, which
    their paper adds too, drowns the classification here: RESULTS.md.
    """

    def __init__(self, in_channels: int, clusters: int, norm: Norm, dropout: float = 0.0) -> None:
        super().__init__()
        self.in_channels, self.clusters = in_channels, clusters
        self.assign = GraphConv(in_channels, clusters, norm, dropout, negative_slope=1.0)  # slope 1: no activation

    def coarsen(self, h: Tensor, batch: GraphBatch | DenseBatch) -> Pooled:
        x, coarse, link, _ = diff_pool(self.assign(h, batch), h, batch)
        return Pooled(x, coarse, loss=link)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, clusters={self.clusters}"
