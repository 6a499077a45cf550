"""Each table and figure of the paper that is made of trials: which systems, on which data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tapnet.paper.numbers import ABLATIONS, BIOLOGICAL, SOCIAL, TABLE5, THREE, Printed, printed

SMALL = ("MUTAG", "PTC", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS")
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)
AUX = 1.0  # the weight of the auxiliary loss, which the paper does not say


@dataclass(frozen=True)
class Row:
    """One system: a model with some of its settings changed."""

    label: str  # as the paper writes it
    model: str = "tapnet"
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, str]:
        """What it may be called: its label, or the part of it before a colon."""
        return self.label, self.label.partition(":")[0]

    def settings(self, dataset: str) -> Any:
        """The settings of its model on a data set."""
        return _settings(self.model, dataset, tuple(self.changed.items()))


@cache
def _settings(model: str, dataset: str, changed: tuple[tuple[str, Any], ...]) -> Any:
    from tapnet.models.registry import find_model

    return find_model(model).make_settings(dataset, dict(changed))


TAPNET = Row("TAPNet")  # what the others are compared with


@dataclass(frozen=True)
class Target:
    """A table, or a figure made of numbers: its rows are systems, its columns data sets."""

    name: str
    title: str
    datasets: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    note: str = ""
    on_page: bool = True  # whether a report shows it, or only names its file

    def printed(self, row: Row, dataset: str) -> Printed | None:
        """The paper's accuracy of a row on a data set; None where it prints none."""
        if self.name == "table5":
            return TABLE5[row.label][0] if dataset == "REDDIT-BINARY" else None
        return printed(row.model, dataset, row.changed)


_LABELS = ("WL", "PSCN", "DGCNN", "SAGPool", "DIFFPOOL", "g-U-Net", "GIN", "EigenPool", "HaarPool")
_SYSTEMS = (*(Row(label, label.lower().replace("-", "")) for label in _LABELS), TAPNET)


def _net(pool: str) -> Row:
    return Row(f"Net_{pool}", changed={"pool": pool.replace("-", "")})


def _without(label: str) -> Row:
    return Row(label, changed=ABLATIONS[label])


def _with_norm(label: str) -> Row:
    return Row(label, changed={"norm": label.split(":")[0]})


_POOLS = tuple(map(_net, ("diff", "sort", "top-k")))

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("table1", "Table 1: all systems on the social networks", SOCIAL, _SYSTEMS),
        Target("table2", "Table 2: all systems on the bioinformatics data sets", BIOLOGICAL, _SYSTEMS),
        Target("table3", "Table 3: other pooling layers in TAPNet's architecture", THREE, (*_POOLS, TAPNET)),
        Target(
            "table4",
            "Table 4: TAPNet without its parts, and with the auxiliary objective",
            THREE,
            (*map(_without, ("w/o TAP", "w/o LV", "w/o GV", "w/o GCT")), TAPNET, Row("w AUX", changed={"aux": AUX})),
            f"The paper does not say how much the auxiliary objective weighs; here it weighs {AUX:g}.",
        ),
        Target(
            "table5",
            "Table 5: what the parameters of TAP bring",
            ("REDDIT-BINARY",),
            (*map(_without, ("w/o TAP", "w/o LV&GV")), TAPNET),
            "The paper's 323,666 parameters are those of the embedding and the classifier; it leaves out the GCN "
            "layers of the blocks. For its 331,090 no reading was found: 7,424 more cannot be three equal layers.",
        ),
        Target(
            "lambda",
            "Figure: the weight λ of the connectivity term",
            ("PTC", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY"),
            tuple(Row(f"λ = {value:g}", changed={} if value == 0.1 else {"connectivity": value}) for value in LAMBDAS),
            "λ = 0.1 is TAPNet. The figure's caption in the paper says IMDB-BINARY, its text IMDB-MULTI.",
        ),
        Target(
            "norm",
            "The normalisation of the GCN layers in TAPNet",
            SMALL,
            (Row("neighbour: A D⁻¹"), *map(_with_norm, ("symmetric: D^-½ A D^-½", "mean: D⁻¹ A", "sum: A"))),
            "`neighbour` is TAPNet's default: the paper cites the symmetric one, its authors' earlier program this.",
            on_page=False,
        ),
        Target(
            "pools",
            "All pooling layers in TAPNet's architecture",
            (*SMALL, "DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI5K"),
            (*_POOLS, *map(_net, ("sag", "eigen", "haar")), _without("w/o TAP"), TAPNET),
            on_page=False,
        ),
        Target(
            "connectivity",
            "How the coarsened graphs hang together after training",
            THREE,
            (TAPNET, _without("w/o GCT"), *map(_net, ("top-k", "sort", "sag"))),
            "Counted over all test graphs of the folds with the weights of the last epoch; `input` is the graphs as "
            "they are. Layers that merge nodes (DiffPool, EigenPool, HaarPool) isolate none and are left out.",
        ),
    )
}
FIGURES = {
    "overview": "Figure: how far each system is from TAPNet, by each protocol",
    "coarsening": "Figure: what TAP keeps with and without its connectivity term",
    "voting": "Figure: local voting on four nodes",
    "architecture": "Figure: the network, drawn from the model",
}
