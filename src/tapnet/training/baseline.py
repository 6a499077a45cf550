"""The trivial predictor that every number is measured against: the majority class or the mean in training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.data.splits import Split
from tapnet.training.metrics import METRICS, Metric, trivial_predictions


def majority_accuracy(y: Tensor, train: Tensor, test: Tensor) -> float:
    """The accuracy of always predicting the most frequent class of the training graphs.

    Args:
        y: ``[G]`` the class of each graph.
        train: The numbers of the training graphs.
        test: The numbers of the test graphs.

    Returns:
        The accuracy on the test graphs, in percent.

    Example:
        >>> import torch
        >>> majority_accuracy(torch.tensor([0, 0, 1, 0, 1]), torch.tensor([0, 1, 2]), torch.tensor([3, 4]))
        50.0
    """
    return 100 * float((y[test] == y[train].bincount().argmax()).double().mean())


def trivial_scores(dataset: GraphDataset, parts: Iterable[Split], metrics: Sequence[Metric]) -> dict[str, float]:
    """By metric, what predicting the same for every test graph gives, on the mean over the folds.

    Args:
        dataset: The data.
        parts: The split of each fold.
        metrics: What is measured.
    """
    y, rows = dataset.y.numpy(), []
    for train, _, test in parts:
        said = trivial_predictions(dataset.task, y, train.numpy(), test.numpy(), dataset.num_classes)
        rows.append([metric(y[test.numpy()], said) for metric in metrics])
    return dict(zip((metric.name for metric in metrics), np.mean(rows, axis=0).tolist(), strict=True))


def baseline_in_words(baseline: Mapping[str, float] | None, metric: str = "accuracy") -> str:
    """What the trivial predictor gives, as it is printed; an empty string where that is not known."""
    if baseline is None or metric not in baseline:
        return ""
    who = "majority class" if metric == "accuracy" else "the same for every graph"
    return f"{who}: {METRICS[metric].in_words(baseline[metric])}"


def baseline_warning(value: float, baseline: Mapping[str, float] | None, metric: str = "accuracy") -> str:
    """One sentence where a value (an accuracy in percent) is not better than the baseline's; else an empty string."""
    if baseline is None or metric not in baseline or METRICS[metric].is_better(value, baseline[metric]):
        return ""
    said, trivial = METRICS[metric].in_words(value), METRICS[metric].in_words(baseline[metric])
    if metric == "accuracy":
        return (
            f"an accuracy of {said} is not above {trivial}, that of the majority class: "
            "the model has learned nothing that the majority class does not give"
        )
    return f"{said} is not better than {trivial}, which predicting the same for every graph gives"
