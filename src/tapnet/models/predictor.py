"""The one batched forward pass: what a model says of many graphs, in batches that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.models.base import GraphClassifier, Outputs


@torch.inference_mode()
def predict_batches(
    model: GraphClassifier, dataset: GraphDataset, graphs: Tensor, batch_size: int, device: torch.device | str = "cpu"
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
    for positions, batch in _batches(model, dataset, graphs, batch_size):
        yield graphs[positions], model.outputs(batch.to(device))


def predict_logits(
    model: GraphClassifier, dataset: GraphDataset, graphs: Tensor | None = None, batch_size: int = 256
) -> Tensor:
    """The logits of each graph.

    Args:
        model: the network; evaluation mode is the caller's to set.
        dataset: the data, with what the model has to have prepared.
        graphs: [G] numbers of graphs in the data set; None means all of them.
        batch_size: so many graphs at once, or fewer where the model asks for smaller batches.

    Returns:
        [G, C], in the order of ``graphs``.
    """
    return _gather(lambda batch: model.outputs(batch).logits, model, dataset, graphs, batch_size)


def predict_and_embed(model: GraphClassifier, dataset: GraphDataset, outputs: int) -> tuple[Tensor, Tensor]:
    """The logits and the embedding of each graph, from one pass.

    Args:
        model: the network; evaluation mode is the caller's to set.
        dataset: the data, with what the model has to have prepared.
        outputs: the number of logits.

    Returns:
        [G, outputs] and [G, width].
    """
    rows = _gather(lambda batch: torch.cat(model.logits_and_embedding(batch), dim=1), model, dataset, None, 256)
    return rows[:, :outputs], rows[:, outputs:]


def embed_graphs(model: GraphClassifier, dataset: GraphDataset) -> Tensor:
    """[G, width]: ``model.embed`` of each graph of a data set."""
    return _gather(model.embed, model, dataset, None, 256)


@torch.inference_mode()
def _gather(
    function: Callable[[GraphBatch], Tensor],
    model: GraphClassifier,
    dataset: GraphDataset,
    graphs: Tensor | None,
    batch_size: int,
) -> Tensor:
    graphs = torch.arange(len(dataset)) if graphs is None else graphs
    parts = [(positions, function(batch)) for positions, batch in _batches(model, dataset, graphs, batch_size)]
    rows = torch.cat([rows for _, rows in parts])
    return torch.empty_like(rows).index_copy_(0, torch.cat([positions for positions, _ in parts]), rows)


def _batches(
    model: GraphClassifier, dataset: GraphDataset, graphs: Tensor, batch_size: int
) -> Iterator[tuple[Tensor, GraphBatch]]:
    """Positions within ``graphs``, and the batch of these graphs."""
    sizes = dataset.nodes_per_graph[graphs]
    for step in torch.arange(len(graphs)).split(batch_size):
        for positions in model.micro_batches(step, sizes[step]):
            yield positions, dataset.batch(graphs[positions])
