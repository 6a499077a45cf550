"""Topology-aware graph pooling: the TAP layer, TAPNet, and an honest comparison of graph pooling methods."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tapnet.data.batch import GraphBatch as GraphBatch
    from tapnet.data.dataset import GraphDataset as GraphDataset
    from tapnet.data.load import load_dataset as load_dataset
    from tapnet.errors import TapnetError as TapnetError

# Public name → the module it lives in. Resolved on first use, so that `import tapnet` does not import torch.
_HOMES = {
    "GraphBatch": "tapnet.data.batch",
    "GraphDataset": "tapnet.data.dataset",
    "TapnetError": "tapnet.errors",
    "load_dataset": "tapnet.data.load",
}

__all__ = ["GraphBatch", "GraphDataset", "TapnetError", "__version__", "load_dataset"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tapnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
