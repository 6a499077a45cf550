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


Baseline = Mapping[str, float | None]  # by metric, what the trivial predictor gives; None: not defined for it


def trivial_scores(dataset: GraphDataset, parts: Iterable[Split], metrics: Sequence[Metric]) -> dict[str, float | None]:
    """By metric, what predicting the same for every test graph gives, on the mean over the folds.

    None where a metric is not defined for constant predictions, as a rank correlation.

    Args:
        dataset: The data.
        parts: The split of each fold.
        metrics: What is measured.
    """
    y, rows = dataset.y.numpy(), []
    for train, _, test in parts:
        said = trivial_predictions(dataset.task, y, train.numpy(), test.numpy(), dataset.num_classes)
        rows.append([metric(y[test.numpy()], said) for metric in metrics])
    means = (float(mean) if np.isfinite(mean) else None for mean in np.mean(rows, axis=0))
    return dict(zip((metric.name for metric in metrics), means, strict=True))


def baseline_in_words(baseline: Baseline | None, *metrics: str) -> str:
    """What the trivial predictor gives by each metric, as it is printed; an empty string where that is not known."""
    known = {name: value for name in metrics if (value := (baseline or {}).get(name)) is not None}
    if not known:
        return ""
    who = "majority class" if list(known) == ["accuracy"] else "the same prediction for every graph"
    return f"{who}: {', '.join(METRICS[name].in_words(value) for name, value in known.items())}"


def baseline_warning(value: float, baseline: Baseline | None, metric: str = "accuracy") -> str:
    """One sentence where a value (an accuracy in percent) is not better than the baseline's; else an empty string."""
    constant = (baseline or {}).get(metric)
    if constant is None or METRICS[metric].is_better(value, constant):
        return ""
    said, trivial = METRICS[metric].in_words(value), METRICS[metric].in_words(constant)
    if metric == "accuracy":
        return (
            f"an accuracy of {said} is not above {trivial}, that of the majority class: "
            "the model has learned nothing that the majority class does not give"
        )
    return f"{said} is not better than {trivial}, which the same prediction for every graph gives"
