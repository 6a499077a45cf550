"""The WL subtree kernel with an SVM (Shervashidze and others: Weisfeiler-Lehman Graph Kernels, JMLR 2011)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.io.computed_cache import computed_once
from tapnet.models.settings import LARGEST, AsTuple, Count, Settings
from tapnet.models.spec import ModelSpec

Graph = tuple[dict[int, dict[int, float]], dict[int, int]]  # as GraKeL takes it: neighbours and labels of nodes


class WLSettings(Settings):
    """What is chosen from: the grid of the TUDataset benchmark (Morris and others, 2020: its main_kernel.py and
    kernel_evaluation.py), and height 0, the histogram of the node labels, with which the paper's h begins."""

    heights: Annotated[tuple[Annotated[int, Field(ge=0, le=LARGEST)], ...], AsTuple, Field(min_length=1)] = (
        0,
        1,
        2,
        3,
        4,
        5,
    )  # h, the number of refinements
    penalties: Annotated[tuple[Annotated[float, Field(gt=0)], ...], AsTuple, Field(min_length=1)] = (
        1e-3,
        1e-2,
        1e-1,
        1.0,
        1e1,
        1e2,
        1e3,
    )  # C of the SVM
    inner_folds: Annotated[Count, Field(ge=2)] = (
        5  # that choose, within the training graphs; fewer where a class has fewer graphs
    )


@dataclass(frozen=True)
class Kernels:
    """k(G, G') = ⟨φ(G), φ(G')⟩ / √(k(G, G) k(G', G')) of all pairs of graphs; φ counts the labels that the nodes have
    before and after each of h refinements."""

    heights: tuple[int, ...]
    matrices: Tensor  # [heights, G, G]

    def cut(self, graphs: Tensor) -> Kernels:
        """Those of these graphs with each other."""
        return Kernels(self.heights, self.matrices[:, graphs[:, None], graphs])

    def to(self, device: str | torch.device) -> Kernels:
        return Kernels(self.heights, self.matrices.to(device))

    def of(self, height: int) -> Array:  # [G, G]
        matrix: Array = self.matrices[self.heights.index(height)].numpy()
        return matrix


def prepare(dataset: GraphDataset, settings: WLSettings) -> GraphDataset:
    """The data set with its kernels."""
    if dataset.categories is None:
        raise SettingError(
            f"wl compares the categories of nodes, and the features of {dataset.name} are numbers: "
            "choose --features labels or --features degrees"
        )
    known = dataset.prepared.get("wl")
    if isinstance(known, Kernels) and known.heights == settings.heights:
        return dataset
    counts = cache(lambda: label_counts(dataset, max(settings.heights)))  # only if a kernel is not in the cache
    stored = computed_once(
        "wl",
        dataset.checksum,
        {"heights": settings.heights},
        len(settings.heights),
        lambda i: {"kernel": kernel(counts(), settings.heights[i]).astype(np.float32)},  # G² of them: half the size
        f"WL kernels of {dataset.name}",
        at_once=1,
    )["kernel"]
    matrices = stored.values.view(len(settings.heights), len(dataset), len(dataset))
    return replace(dataset, prepared={**dataset.prepared, "wl": Kernels(settings.heights, matrices)})


def label_counts(dataset: GraphDataset, height: int) -> list[Any]:
    """How often each graph has each label, before and after each refinement: sparse, [G, labels]"""
    from grakel import VertexHistogram, WeisfeilerLehman

    histograms = (VertexHistogram, {"sparse": True})
    refined = WeisfeilerLehman(n_iter=max(1, height), base_graph_kernel=histograms).fit(_as_grakel_takes_them(dataset))
    return [refined.X[refinements].X for refinements in range(height + 1)]


def kernel(counts: list[Any], height: int) -> Array:
    """[G, G]: the normalised kernel of so many refinements"""
    from scipy.sparse import hstack

    phi = hstack(counts[: height + 1], format="csr")
    products = (phi @ phi.T).toarray()
    matrix: Array = products / np.sqrt(np.outer(products.diagonal(), products.diagonal()))
    return matrix


def _as_grakel_takes_them(dataset: GraphDataset) -> list[Graph]:
    """Every node is among the keys: an isolated one with no neighbours."""
    labels, neighbors = dataset.x.tolist(), dataset.col.tolist()
    first_node, first_edge = dataset.node_ptr.tolist(), dataset.rowptr.tolist()
    graphs = []
    for first, last in pairwise(first_node):
        nodes = range(last - first)
        edges = {i: dict.fromkeys(neighbors[first_edge[first + i] : first_edge[first + i + 1]], 1.0) for i in nodes}
        graphs.append((edges, dict(enumerate(labels[first:last]))))
    return graphs


def fit(dataset: GraphDataset, settings: WLSettings, train: Tensor, test: Tensor) -> float:
    """Accuracy on the test graphs, in percent; the height and C are chosen by the training graphs alone."""
    kernels, y = prepare(dataset, settings).prepared["wl"], dataset.y.numpy()
    assert isinstance(kernels, Kernels)
    train = train.sort().values  # the inner folds follow the order, which means nothing
    height, penalty = choose(kernels.cut(train), dataset.y[train].numpy(), settings)
    predicted = _predicted(kernels.of(height), y, train.numpy(), test.numpy(), penalty)
    return 100 * float((predicted == y[test.numpy()]).mean())


def choose(kernels: Kernels, y: Array, settings: WLSettings) -> tuple[int, float]:
    """The height and C with the most graphs right in a cross-validation; of equal ones, the lowest and smallest."""
    folds = _folds(y, settings.inner_folds)

    def graphs_right(height: int, penalty: float) -> int:
        matrix = kernels.of(height)
        held_out_right = (_predicted(matrix, y, train, held_out, penalty) == y[held_out] for train, held_out in folds)
        return sum(int(right.sum()) for right in held_out_right)

    grid = product(sorted(settings.heights), sorted(settings.penalties))
    return max(grid, key=lambda height_and_penalty: graphs_right(*height_and_penalty))


def _folds(y: Array, wanted: int) -> list[tuple[Array, Array]]:
    """Training and held-out graphs of each fold: as many as wanted, or as the smallest class has graphs."""
    from sklearn.model_selection import StratifiedKFold

    smallest = int(np.unique(y, return_counts=True)[1].min())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class of one graph: one of two folds lacks it
            return list(StratifiedKFold(max(2, min(wanted, smallest)), shuffle=True, random_state=0).split(y, y))
    except ValueError:
        raise SettingError(f"{len(y)} training graphs are too few for wl to choose its height and C by") from None


def _predicted(matrix: Array, y: Array, train: Array, test: Array, penalty: float) -> Array:
    """The class of each test graph by an SVM of the training graphs."""
    from sklearn.svm import SVC

    if (y[train] == y[train[0]]).all():  # an SVM needs two classes
        return np.full(len(test), y[train[0]])
    machine = SVC(C=penalty, kernel="precomputed").fit(matrix[np.ix_(train, train)], y[train])
    predicted: Array = machine.predict(matrix[np.ix_(test, train)])
    return predicted


SPEC = ModelSpec(
    name="wl",
    system="WL",
    paper="Shervashidze, Schweitzer, van Leeuwen, Mehlhorn, Borgwardt: Weisfeiler-Lehman Graph Kernels, JMLR",
    year=2011,
    about="GraKeL's subtree kernel, normalised, and scikit-learn's SVM; height (0 to 5) and C (0.001 to 1000) are "
    "chosen by 5-fold cross-validation within the training graphs",
    settings=WLSettings,
    prepare=prepare,
    fit=fit,
)
