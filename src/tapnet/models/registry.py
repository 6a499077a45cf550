"""Every system of the comparison by name: its paper, its settings, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch import Tensor

from tapnet.data.dataset import GraphDataset
from tapnet.errors import SettingError
from tapnet.models.base import DataShape, GraphClassifier
from tapnet.models.dgcnn import DGCNN, DGCNNSettings
from tapnet.models.diffpool import DiffPoolNet, DiffPoolSettings
from tapnet.models.gin import GIN, GINSettings, gin_on
from tapnet.models.gunet import GUNet, GUNetSettings, gunet_on
from tapnet.models.sagpool import SAGPoolNet, SAGPoolSettings
from tapnet.models.tapnet import TAPNet, TAPNetSettings, activation_on


@dataclass(frozen=True)
class ModelSpec:
    """One system of the comparison."""

    name: str
    system: str
    paper: str  # authors, venue
    year: int
    about: str  # how it was built here, and where it departs from its paper
    settings: type[Any]  # a frozen dataclass with its paper's values as defaults
    build: Callable[[DataShape, Any], GraphClassifier] | None = None  # None: not a network, see fit
    on_dataset: Callable[[str], Mapping[str, Any]] = lambda _: {}  # settings that its paper chooses by data set
    training: Mapping[str, Any] = field(default_factory=dict)  # what it trains with, where that is not TAPNet's
    prepare: Callable[[GraphDataset, Any], GraphDataset] = lambda dataset, _: dataset  # computed once, then cached
    fit: Callable[[GraphDataset, Any, Tensor, Tensor], float] | None = None  # training and test graphs → accuracy

    def make_settings(self, dataset: str, chosen: Mapping[str, Any]) -> Any:
        """The paper's settings on a data set, but for what was chosen."""
        known = {f.name for f in fields(self.settings)}
        for name in chosen:
            if name not in known:
                has = ", ".join(sorted(known))
                raise SettingError(f"the model {self.name} has no setting {name!r}; it has {has}")
        return self.settings(**{**self.on_dataset(dataset), **chosen})


def _tapnet(shape: DataShape, settings: TAPNetSettings) -> TAPNet:
    return TAPNet(shape.in_channels, shape.num_classes, mean_nodes=shape.mean_nodes, **asdict(settings))


MODELS: dict[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        ModelSpec(
            "tapnet",
            "TAPNet",
            "Gao, Liu, Ji: Topology-Aware Graph Pooling Networks, TPAMI",
            2021,
            "this package's own; --pool puts another pooling layer in its place",
            TAPNetSettings,
            _tapnet,
            on_dataset=lambda name: {"activation": activation_on(name)},
        ),
        ModelSpec(
            "gin",
            "GIN-0",
            "Xu, Hu, Leskovec, Jegelka: How Powerful are Graph Neural Networks?, ICLR",
            2019,
            "sum aggregation, 2-layer MLPs with batch norm, every layer read out (by the mean on social sets); its authors "
            "choose width, dropout and batch size by data set, here they are one setting",
            GINSettings,
            GIN,
            on_dataset=gin_on,
            training={"lr": 0.01, "weight_decay": 0.0, "amsgrad": False, "batch_size": 32, "halve_lr_every": 50},
        ),
        ModelSpec(
            "dgcnn",
            "DGCNN",
            "Zhang, Cui, Neumann, Chen: An End-to-End Deep Learning Architecture for Graph Classification, AAAI",
            2018,
            "PyG's SortAggregation after four tanh convolutions; k from all graphs' sizes; steps of 50 graphs, where its "
            "authors take one rate a data set",
            DGCNNSettings,
            DGCNN,
            training={"lr": 0.0001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 50},
        ),
        ModelSpec(
            "diffpool",
            "DiffPool",
            "Ying, You, Morris, Ren, Hamilton, Leskovec: Hierarchical Graph Representation Learning with Differentiable "
            "Pooling, NeurIPS",
            2018,
            "the losses without an n×n matrix, ‖A - SSᵀ‖ divided by n²; large graphs in smaller steps with gradients summed; "
            "a node's mean includes itself",
            DiffPoolSettings,
            DiffPoolNet,
            training={"lr": 0.001, "weight_decay": 0.0, "amsgrad": False, "batch_size": 20},
        ),
        ModelSpec(
            "gunet",
            "g-U-Net",
            "Gao, Ji: Graph U-Nets, ICML",
            2019,
            "top-k down, unpooling up with added skips, max, mean and sum of each level going up; the graph is not "
            "augmented by its second power",
            GUNetSettings,
            GUNet,
            on_dataset=gunet_on,
        ),
        ModelSpec(
            "sagpool",
            "SAGPool",
            "Lee, Lee, Kang: Self-Attention Graph Pooling, ICML",
            2019,
            "the hierarchical network with its defaults; its authors stop early by validation loss, here the epochs are "
            "the same for all",
            SAGPoolSettings,
            SAGPoolNet,
            training={"lr": 0.0005, "weight_decay": 0.0001, "amsgrad": False, "batch_size": 128},
        ),
    )
}


def find_model(name: str) -> ModelSpec:
    if name not in MODELS:
        raise SettingError(f"model is one of {', '.join(MODELS)}, not {name!r}")
    return MODELS[name]


MUTAG = DataShape(7, 2, True, 17.930851, (10, 12, 13, 15, 16, 17, 19, 21, 22, 23, 28))


def describe(spec: ModelSpec) -> dict[str, Any]:
    """What `tapnet models` prints of one."""
    settings = spec.make_settings("MUTAG", {})
    return {
        "name": spec.name,
        "system": spec.system,
        "paper": spec.paper,
        "year": spec.year,
        "parameters_on_mutag": None if spec.build is None else spec.build(MUTAG, settings).num_parameters,
        "about": spec.about,
        "settings": asdict(settings),
        "training": dict(spec.training),
    }
