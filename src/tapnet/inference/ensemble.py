"""Several networks of one kind as one, whose answer is the mean of theirs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from tapnet.data.batch import GraphBatch
from tapnet.models.base import GraphClassifier, Outputs
from tapnet.training.task import answers


class Ensemble(GraphClassifier):
    """Networks whose probabilities, or numbers, are averaged.

    Its logits are those of the mean probabilities: their softmax, or sigmoid, is the mean. Pooling layers and
    embeddings are those of the first network.

    Args:
        members: Networks with the same settings for the same data.
    """

    def __init__(self, members: Sequence[GraphClassifier]) -> None:
        super().__init__()
        first = members[0]
        self.members = nn.ModuleList(members)
        self.task, self.reads_edges = first.task, first.reads_edges
        if self.task == "regression":  # its outputs are in the units of the targets already
            self.register_buffer("target_mean", torch.zeros_like(first.target_mean), persistent=False)
            self.register_buffer("target_scale", torch.ones_like(first.target_scale), persistent=False)

    def outputs(self, batch: GraphBatch) -> Outputs:
        """The logits of the mean probabilities, or the mean numbers."""
        logits = [member.outputs(batch).logits for member in networks_of(self)]
        if self.task == "classification":
            return Outputs(torch.stack([rows.log_softmax(dim=1) for rows in logits]).logsumexp(dim=0))
        if self.task == "multilabel":
            yes, no = (torch.stack([logsigmoid(sign * rows) for rows in logits]).logsumexp(dim=0) for sign in (1, -1))
            return Outputs(yes - no)
        found = [answers(member, rows) for member, rows in zip(networks_of(self), logits, strict=True)]
        return Outputs(torch.stack(found).mean(dim=0))

    def embed(self, batch: GraphBatch) -> Tensor:
        """[B, width]: the embedding by the first network."""
        return networks_of(self)[0].embed(batch)

    def coarsened(self, batch: GraphBatch) -> list[GraphBatch]:
        """The graphs after each pooling layer of the first network."""
        return networks_of(self)[0].coarsened(batch)

    def micro_batches(self, graphs: Tensor, sizes: Tensor) -> Sequence[Tensor]:
        """As the first network asks for."""
        return networks_of(self)[0].micro_batches(graphs, sizes)


def networks_of(network: GraphClassifier) -> list[GraphClassifier]:
    """The networks of an ensemble; any other network alone."""
    if not isinstance(network, Ensemble):
        return [network]
    return [member for member in network.members if isinstance(member, GraphClassifier)]
