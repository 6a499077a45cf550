"""The one batched forward pass: what a model says of many graphs, in batches that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.models.base import GraphClassifier, Outputs

T = TypeVar("T")


def predict_batches(
    model: GraphClassifier,
    dataset: GraphDataset,
    graphs: Tensor,
    batch_size: int,
    device: torch.device | str = "cpu",
) -> Iterator[tuple[Tensor, Outputs]]:
    """Runs a model over some graphs of a data set, without gradients.

    Args:
        model: the network, on ``device``; evaluation mode is the caller's to set.
        dataset: the data, with what the model has to have prepared.
        graphs: [G] numbers of graphs in the data set.
        batch_size: so many graphs at once, or fewer where the model asks for smaller batches.
        device: where the batches go.

    Yields:
        The numbers of the graphs of each batch, [b], and the model's outputs for them.
    """
    for positions, outputs in _over_batches(model.outputs, model, dataset, graphs, batch_size, device):
        yield graphs[positions], outputs


def predict_logits(
    model: GraphClassifier,
    dataset: GraphDataset,
    graphs: Tensor | None = None,
    batch_size: int = 256,
    device: torch.device | str = "cpu",
) -> Tensor:
    """The logits of each graph, on the CPU.

    Args:
        model: the network, on ``device``; evaluation mode is the caller's to set.
        dataset: the data, with what the model has to have prepared.
        graphs: [G] numbers of graphs in the data set; None means all of them.
        batch_size: so many graphs at once, or fewer where the model asks for smaller batches.
        device: where the batches go.

    Returns:
        [G, C], in the order of ``graphs``.
    """
    return _gather(lambda batch: model.outputs(batch).logits, model, dataset, graphs, batch_size, device)


def embed_graphs(
    model: GraphClassifier,
    dataset: GraphDataset,
    graphs: Tensor | None = None,
    batch_size: int = 256,
    device: torch.device | str = "cpu",
) -> Tensor:
    """[G, width]: ``model.embed`` of each graph, on the CPU; the arguments are those of ``predict_logits``."""
    return _gather(model.embed, model, dataset, graphs, batch_size, device)


def _gather(
    function: Callable[[GraphBatch], Tensor],
    model: GraphClassifier,
    dataset: GraphDataset,
    graphs: Tensor | None,
    batch_size: int,
    device: torch.device | str,
) -> Tensor:
    graphs = torch.arange(len(dataset)) if graphs is None else graphs
    parts = list(_over_batches(function, model, dataset, graphs, batch_size, device))
    rows = torch.cat([rows for _, rows in parts]).cpu()
    return torch.empty_like(rows).index_copy_(0, torch.cat([positions for positions, _ in parts]), rows)


@torch.inference_mode()
def _over_batches(
    function: Callable[[GraphBatch], T],
    model: GraphClassifier,
    dataset: GraphDataset,
    graphs: Tensor,
    batch_size: int,
    device: torch.device | str,
) -> Iterator[tuple[Tensor, T]]:
    """Positions within ``graphs`` and the function of the batch of these graphs."""
    sizes = dataset.nodes_per_graph[graphs]
    for step in torch.arange(len(graphs)).split(batch_size):
        for positions in model.micro_batches(step, sizes[step]):
            yield positions, function(dataset.batch(graphs[positions]).to(device))
