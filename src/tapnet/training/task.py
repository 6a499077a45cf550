"""What is predicted: the loss of each kind of target, and what a network's outputs mean."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from tapnet._loops.csr import nodes_and_edges
from tapnet.data.dataset import GraphDataset
from tapnet.data.features import numbers_of
from tapnet.models.base import GraphClassifier


def sum_of_losses(model: GraphClassifier, outputs: Tensor, y: Tensor) -> Tensor:
    """The loss of each graph, summed: cross-entropy, or the squared error in standard deviations of the target.

    Args:
        model: the network, which knows its task and the scale of its targets.
        outputs: ``[B, C]`` or ``[B, T]``
        y: ``[B]`` classes, or ``[B, T]`` with NaN for what is missing. What is missing costs nothing; the mean over the
            targets that a graph has is its loss.
    """
    if model.task == "classification":
        return cross_entropy(outputs, y, reduction="sum")
    losses, there = _losses(model, outputs, y)
    return (losses.sum(1) / there.sum(1).clamp(min=1)).sum()


def mean_loss(
    model: GraphClassifier, outputs: Tensor, y: Tensor, class_weight: Tensor | None = None, weight: Tensor | None = None
) -> Tensor:
    """The loss of a training step: the mean over the graphs, or over all targets that are there.

    Args:
        model: the network, which knows its task and the scale of its targets.
        outputs: ``[B, C]`` or ``[B, T]``
        y: ``[B]`` classes, or ``[B, T]`` with NaN for what is missing.
        class_weight: ``[C]`` how much a graph of each class counts; of labels ``[2, T]``, how much no and yes count.
        weight: ``[B]`` how much each graph counts, 1 on average over the training graphs.
    """
    if model.task == "classification":
        if class_weight is None and weight is None:
            return cross_entropy(outputs, y)
        losses = cross_entropy(outputs, y, reduction="none")
        factor = torch.ones_like(losses) if class_weight is None else class_weight[y]
        return (losses * (factor if weight is None else factor * weight)).mean()
    losses, there = _losses(model, outputs, y)
    if class_weight is not None:
        losses = losses * torch.where(y == 1, class_weight[1], class_weight[0])  # a gap's loss is 0
    if weight is not None:
        losses = losses * weight.unsqueeze(1)
    return losses.sum() / there.sum().clamp(min=1)


def _losses(model: GraphClassifier, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """[B, T] the loss of each target, 0 where it is missing; and whether it is there."""
    there = ~y.isnan()
    if model.task == "multilabel":
        losses = binary_cross_entropy_with_logits(outputs, torch.where(there, y, 0.0), reduction="none")
    else:
        scaled = (y - model.target_mean) / model.target_scale
        losses = mse_loss(outputs, torch.where(there, scaled, 0.0).to(outputs.dtype), reduction="none")
    return losses * there, there


def answers(model: GraphClassifier, outputs: Tensor) -> Tensor:
    """What a network says: the probability of each class or label, or numbers in the units of the targets."""
    if model.task == "classification":
        return outputs.softmax(dim=1)
    return outputs.sigmoid() if model.task == "multilabel" else outputs * model.target_scale + model.target_mean


def scale_targets(model: GraphClassifier, dataset: GraphDataset, graphs: Tensor) -> None:
    """Tells a network for regression the mean and deviation of the targets of its training graphs."""
    if dataset.task != "regression":
        return
    y: NDArray[np.float64] = dataset.y[graphs].double().numpy()
    with np.errstate(all="ignore"):
        mean, deviation = np.nanmean(y, axis=0), np.nanstd(y, axis=0)
    deviation[~(deviation > 0)] = 1.0  # a constant, or a column without a value
    model.target_mean.copy_(torch.from_numpy(np.nan_to_num(mean)))
    model.target_scale.copy_(torch.from_numpy(deviation))


def scale_inputs(model: GraphClassifier, dataset: GraphDataset, graphs: Tensor) -> None:
    """Tells a network the mean and deviation of the numbers of its training graphs' nodes and edges."""
    buffers = dict(model.named_buffers(recurse=False))
    if not {"node_mean", "edge_mean"} & buffers.keys():
        return
    nodes, edges = nodes_and_edges(graphs, dataset.node_ptr, dataset.rowptr)
    for side, numbers, rows in (("node", numbers_of(dataset.x), nodes), ("edge", dataset.edge_attributes, edges)):
        if f"{side}_mean" not in buffers or numbers is None or not len(rows):
            continue
        values = numbers[rows].double()
        mean, deviation = values.mean(dim=0), values.std(dim=0, correction=0)
        deviation[~(deviation > 1e-6 * mean.abs())] = 1.0  # a constant, as far as float32 can tell
        buffers[f"{side}_mean"].copy_(mean)
        buffers[f"{side}_scale"].copy_(deviation)


def balanced_weights(y: Tensor, num_classes: int) -> Tensor:
    """[C] inversely as frequent as each class is among the graphs, as scikit-learn's ``class_weight="balanced"``."""
    count = y.bincount(minlength=num_classes)
    return (len(y) / (num_classes * count.clamp(min=1))).float()


def balanced_label_weights(y: Tensor) -> Tensor:
    """[2, T]: the same for every label by itself, of those of its values that are there; 1 where all are alike.

    Args:
        y: ``[n, T]`` labels of 0 and 1, NaN where one is missing.
    """
    count = torch.stack([(y == value).sum(0) for value in (0, 1)])
    return (count.sum(0) / ((count > 0).sum(0) * count).clamp(min=1)).float()
