"""Topology-aware graph pooling: the TAP layer, TAPNet, and an honest comparison of graph pooling methods."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from tapnet import paper as paper
    from tapnet.data.batch import GraphBatch as GraphBatch
    from tapnet.data.dataset import GraphDataset as GraphDataset
    from tapnet.errors import TapnetError as TapnetError
    from tapnet.experiments.calibration import calibration as calibration
    from tapnet.experiments.compare import compare as compare
    from tapnet.experiments.compare import compare_runs as compare_runs
    from tapnet.experiments.comparison import load_comparison as load_comparison
    from tapnet.experiments.cross_validate import cross_validate as cross_validate
    from tapnet.experiments.tune import tune as tune
    from tapnet.inference.model import load_model as load_model
    from tapnet.io.load import load_dataset as load_dataset
    from tapnet.models.tapnet import TAPNet as TAPNet
    from tapnet.nn.link import link_prediction_loss as link_prediction_loss
    from tapnet.nn.pool.registry import list_pools as list_pools
    from tapnet.nn.tap import TAPooling as TAPooling
    from tapnet.nn.tap import unpool as unpool
    from tapnet.sklearn import TAPClassifier as TAPClassifier
    from tapnet.sklearn import TAPRegressor as TAPRegressor

# Public name → the module it lives in. Resolved on first use, so that `import tapnet` does not import torch.
_HOMES = {
    "GraphBatch": "tapnet.data.batch",
    "GraphDataset": "tapnet.data.dataset",
    "TAPClassifier": "tapnet.sklearn",
    "TAPNet": "tapnet.models.tapnet",
    "TAPRegressor": "tapnet.sklearn",
    "TAPooling": "tapnet.nn.tap",
    "TapnetError": "tapnet.errors",
    "calibration": "tapnet.experiments.calibration",
    "compare": "tapnet.experiments.compare",
    "compare_runs": "tapnet.experiments.compare",
    "cross_validate": "tapnet.experiments.cross_validate",
    "link_prediction_loss": "tapnet.nn.link",
    "list_pools": "tapnet.nn.pool.registry",
    "load_comparison": "tapnet.experiments.comparison",
    "load_dataset": "tapnet.io.load",
    "load_model": "tapnet.inference.model",
    "tune": "tapnet.experiments.tune",
    "unpool": "tapnet.nn.tap",
}

__all__ = [*_HOMES, "__version__", "paper"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "paper":  # tapnet.paper.reproduce
        return import_module("tapnet.paper")
    raise AttributeError(f"module 'tapnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
