"""The WL subtree kernel with an SVM (Shervashidze and others: Weisfeiler-Lehman Graph Kernels, JMLR 2011)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from tapnet._loops.jit import Array
from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.io.computed_cache import PerItem, computed_once
from tapnet.models.preprocess.wl_labels import label_counts
from tapnet.models.settings import LARGEST, AsTuple, Count, Settings
from tapnet.models.spec import ModelSpec

Heights = Annotated[tuple[Annotated[int, Field(ge=0, le=LARGEST)], ...], AsTuple, Field(min_length=1)]
Penalties = Annotated[tuple[Annotated[float, Field(gt=0)], ...], AsTuple, Field(min_length=1)]


class WLSettings(Settings):
    """What is chosen from: the grid of the TUDataset benchmark, and height 0, the histogram of the node labels.

    The grid is that of Morris and others (2020: main_kernel.py and kernel_evaluation.py); the paper's h begins with 0.

    Args:
        heights: h, the numbers of refinements.
        penalties: C of the SVM.
        inner_folds: the folds that choose, within the training graphs; fewer where a class has fewer graphs.
    """

    heights: Heights = (0, 1, 2, 3, 4, 5)
    penalties: Penalties = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
    inner_folds: Annotated[Count, Field(ge=2)] = 5


@dataclass(frozen=True)
class Kernels:
    """k(G, G') = ⟨φ(G), φ(G')⟩ / √(k(G, G) k(G', G')) of all pairs of graphs.

    φ counts the labels that the nodes have before and after each of h refinements.
    """

    heights: tuple[int, ...]
    matrices: Tensor  # [heights, G, G]

    def cut(self, graphs: Tensor) -> Kernels:
        """Those of these graphs with each other."""
        return Kernels(self.heights, self.matrices[:, graphs[:, None], graphs])

    def to(self, device: str | torch.device) -> Kernels:
        """The same on a device."""
        return Kernels(self.heights, self.matrices.to(device))

    def of(self, height: int) -> Array:
        """[G, G]: that of a height."""
        matrix: Array = self.matrices[self.heights.index(height)].numpy()
        return matrix


def prepare(dataset: GraphDataset, settings: WLSettings) -> GraphDataset:
    """The data set with its kernels."""
    if dataset.categories is None:
        raise SettingError(
            f"wl compares the categories of nodes, and the features of {dataset.name} are numbers: "
            "load it with features 'labels' or 'degrees'"
        )
    known, wanted, usual = dataset.prepared.get("wl"), settings.heights, WLSettings().heights
    if isinstance(known, Kernels) and known.heights == wanted:
        return dataset
    # The heights of a search come one by one: one cached computation for all of them.
    heights = usual if len(wanted) == 1 and wanted[0] in usual else wanted
    counts = cache(lambda: label_counts(dataset, max(heights)))  # only if a kernel is not in the cache

    def compute(i: int) -> dict[str, Array]:
        return {"kernel": kernel(counts(), heights[i]).astype(np.float32)}  # G² of them: half the size

    title = f"WL kernels of {dataset.name}"

    def fits(stored: Mapping[str, PerItem]) -> bool:
        values = stored["kernel"].values
        return values.dtype == torch.float32 and len(values) == len(heights) * len(dataset) ** 2

    stored = computed_once(
        "wl", dataset.checksum, {"heights": heights}, len(heights), compute, title, at_once=1, fits=fits
    )
    matrices = stored["kernel"].values.view(len(heights), len(dataset), len(dataset))
    if heights != wanted:
        matrices = matrices[[heights.index(height) for height in wanted]]
    return replace(dataset, prepared={**dataset.prepared, "wl": Kernels(wanted, matrices)})


def kernel(counts: list[Any], height: int) -> Array:
    """[G, G]: the normalised kernel of so many refinements"""
    from scipy.sparse import hstack

    phi = hstack(counts[: height + 1], format="csr")
    products = (phi @ phi.T).toarray()
    matrix: Array = products / np.sqrt(np.outer(products.diagonal(), products.diagonal()))
    return matrix


def fit(dataset: GraphDataset, settings: WLSettings, train: Tensor, test: Tensor) -> Array:
    """[n] the classes of the test graphs; the height and C are chosen by the training graphs alone."""
    kernels, y = prepare(dataset, settings).prepared["wl"], dataset.y.numpy()
    assert isinstance(kernels, Kernels)
    train = train.sort().values  # the inner folds follow the order, which means nothing
    height, penalty = choose(kernels.cut(train), dataset.y[train].numpy(), settings)
    return _predicted(kernels.of(height), y, train.numpy(), test.numpy(), penalty)


def choose(kernels: Kernels, y: Array, settings: WLSettings) -> tuple[int, float]:
    """The height and C with the most graphs right in a cross-validation; of equal ones, the lowest and smallest."""
    if len(settings.heights) == len(settings.penalties) == 1:
        return settings.heights[0], settings.penalties[0]
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


# One height and one C each, of the grid that the system's own choice has; that choice is the usual configuration.
SEARCH = {
    "heights": tuple((height,) for height in WLSettings().heights),
    "penalties": tuple((penalty,) for penalty in WLSettings().penalties),
}


SPEC = ModelSpec(
    name="wl",
    system="WL",
    paper="Shervashidze, Schweitzer, van Leeuwen, Mehlhorn, Borgwardt: Weisfeiler-Lehman Graph Kernels, JMLR",
    year=2011,
    about="the subtree kernel, normalised, and scikit-learn's SVM; height (0 to 5) and C (0.001 to 1000) are "
    "chosen by 5-fold cross-validation within the training graphs",
    settings=WLSettings,
    reads_weights=False,
    search=SEARCH,
    prepare=prepare,
    fit=fit,
    tasks=("classification",),
)
