"""The baseline that sees only how large a graph is: the numbers of its nodes and edges, and a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet.data.dataset import GraphDataset
from tapnet.models.majority import trivial_predictions
from tapnet.models.settings import Settings
from tapnet.models.spec import ModelSpec


class SizeSettings(Settings):
    """There is nothing to choose: scikit-learn's defaults."""


def sizes(dataset: GraphDataset) -> Array:
    """[G, 2]: the numbers of nodes and of edges of each graph."""
    first_edge = dataset.rowptr[dataset.node_ptr]
    edges = first_edge.diff() / (1 if dataset.directed else 2)  # undirected ones are there in both directions
    return np.stack([dataset.nodes_per_graph.double().numpy(), edges.double().numpy()], axis=1)


def fit(dataset: GraphDataset, settings: SizeSettings, train: Tensor, test: Tensor) -> Array:
    """[n, C] probabilities, or [n, T] probabilities of the labels, or numbers, of the test graphs."""
    x, y, seen, asked = sizes(dataset), dataset.y.numpy(), train.numpy(), test.numpy()
    said = trivial_predictions(dataset.task, y, seen, asked, dataset.num_classes)  # where there is nothing to fit
    if dataset.task == "classification":
        known = np.unique(y[seen])
        if len(known) > 1:
            said[:, known] = _logistic_regression().fit(x[seen], y[seen]).predict_proba(x[asked])
        return said
    for target, column in enumerate(y.T):
        there = seen[~np.isnan(column[seen])]  # a graph may lack some of its targets
        if len(np.unique(column[there])) < 2:
            continue
        if dataset.task == "regression":
            said[:, target] = _ridge_regression().fit(x[there], column[there]).predict(x[asked])
        else:
            said[:, target] = _logistic_regression().fit(x[there], column[there]).predict_proba(x[asked])[:, 1]
    return said


def _logistic_regression() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression())


def _ridge_regression() -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), Ridge())


SPEC = ModelSpec(
    name="size",
    system="graph size",
    paper="scikit-learn's LogisticRegression and Ridge; Pedregosa and others: Scikit-learn, JMLR",
    year=2011,
    about="a baseline: logistic regression (ridge regression for numbers) of the numbers of nodes and edges, "
    "standardised",
    settings=SizeSettings,
    reads_weights=False,
    fit=fit,
    baseline=True,
    keeps_directions=lambda _: True,
)
