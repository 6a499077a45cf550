"""The trivial predictor that every accuracy is measured against: always the majority class of the training graphs."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

ROUNDING = 1e-3  # of accuracies in percent; those of stored trials have six digits


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


def baseline_warning(accuracy: float, baseline: Mapping[str, float] | None) -> str:
    """One sentence where an accuracy (in percent) is not above the baseline's; else an empty string."""
    if baseline is None or "accuracy" not in baseline or accuracy > baseline["accuracy"] + ROUNDING:
        return ""
    return (
        f"an accuracy of {accuracy:.1f} % is not above {baseline['accuracy']:.1f} %, that of the majority class: "
        "the model has learned nothing that the majority class does not give"
    )
