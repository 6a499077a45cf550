"""The trivial baseline: the same for every graph, how frequent each class is in training or the targets' mean."""

from __future__ import annotations

import warnings

import numpy as np
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet.data.dataset import GraphDataset, Task
from tapnet.models.settings import Settings
from tapnet.models.spec import ModelSpec


class MajoritySettings(Settings):
    """There is nothing to choose."""


def trivial_predictions(task: Task, y: Array, train: Array, test: Array, num_classes: int) -> Array:
    """What a predictor says that knows only the training targets: how frequent each class is, or their mean.

    Args:
        task: what is predicted.
        y: ``[G]`` or ``[G, T]`` of all graphs.
        train: the numbers of the training graphs.
        test: the numbers of the test graphs.
        num_classes: C.

    Returns:
        ``[n, C]`` or ``[n, T]``: the same for each test graph.
    """
    if task == "classification":
        row = np.bincount(y[train], minlength=num_classes) / len(train)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a column without a value
            row = np.nan_to_num(np.nanmean(y[train].astype(np.float64), axis=0))
    return np.tile(row, (len(test), 1))


def fit(dataset: GraphDataset, settings: MajoritySettings, train: Tensor, test: Tensor) -> Array:
    """[n, C] or [n, T]: `trivial_predictions` of the test graphs."""
    return trivial_predictions(dataset.task, dataset.y.numpy(), train.numpy(), test.numpy(), dataset.num_classes)


SPEC = ModelSpec(
    name="majority",
    system="majority class",
    paper="scikit-learn's DummyClassifier and DummyRegressor; Pedregosa and others: Scikit-learn, JMLR",
    year=2011,
    about="a baseline: the most frequent class of the training graphs, or the mean of their targets, for every graph",
    settings=MajoritySettings,
    fit=fit,
    baseline=True,
    keeps_directions=lambda _: True,
)
