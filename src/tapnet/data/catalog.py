"""The paper's ten data sets: their names, which features they use, and what the paper says of their size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tapnet.files import counted

if TYPE_CHECKING:
    from torch import Tensor

    from tapnet.data.dataset import Features, GraphDataset


@dataclass(frozen=True)
class CatalogEntry:
    """One data set as the paper uses it (Tables 1 and 2)."""

    name: str
    kind: Literal["social", "biological"]
    features: Features
    graphs: int
    mean_nodes: float  # as printed: one decimal
    classes: int
    largest_class: float | None  # percent of the graphs, as counted here; None: not at hand
    tu_name: str | None  # in the TU Dortmund collection; None: not there
    aliases: tuple[str, ...] = ()
    # Copies of a set number labels and classes differently. How often each occurs tells which is which in any copy.
    label_counts: Mapping[str, int] = field(default_factory=dict)
    class_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that its files may have."""
        return tuple(dict.fromkeys(n for n in (self.name, self.tu_name, *self.aliases) if n))


_MUTAG_ATOMS = {"C": 2395, "N": 345, "O": 593, "F": 12, "I": 1, "Cl": 23, "Br": 2}
_MUTAG_CLASSES = {"not mutagenic": 63, "mutagenic": 125}

CATALOG: dict[str, CatalogEntry] = {
    entry.name: entry
    for entry in (
        CatalogEntry("COLLAB", "social", "degrees", 5000, 74.5, 3, 52.0, "COLLAB"),
        CatalogEntry("IMDB-BINARY", "social", "degrees", 1000, 19.8, 2, 50.0, "IMDB-BINARY", ("IMDB-B", "IMDBBINARY")),
        CatalogEntry("IMDB-MULTI", "social", "degrees", 1500, 13.0, 3, 33.3, "IMDB-MULTI", ("IMDB-M", "IMDBMULTI")),
        CatalogEntry(
            "REDDIT-BINARY", "social", "degrees", 2000, 429.6, 2, 50.0, "REDDIT-BINARY", ("RDT-B", "REDDITBINARY")
        ),
        CatalogEntry(
            "REDDIT-MULTI5K", "social", "degrees", 4999, 508.5, 5, 20.0, "REDDIT-MULTI-5K", ("RDT-M5K", "REDDITMULTI5K")
        ),
        CatalogEntry(
            "REDDIT-MULTI12K",
            "social",
            "degrees",
            11929,
            391.4,
            11,
            None,
            "REDDIT-MULTI-12K",
            ("RDT-M12K", "REDDITMULTI12K"),
        ),
        CatalogEntry("DD", "biological", "labels", 1178, 284.3, 2, 58.7, "DD", ("D&D",)),
        # The set with explicit hydrogens. The TU collection's PTC_MR has the same molecules without them.
        CatalogEntry("PTC", "biological", "labels", 344, 25.5, 2, 55.8, None),
        CatalogEntry("MUTAG", "biological", "labels", 188, 17.9, 2, 66.5, "MUTAG", (), _MUTAG_ATOMS, _MUTAG_CLASSES),
        CatalogEntry("PROTEINS", "biological", "labels", 1113, 39.1, 2, 59.6, "PROTEINS"),
    )
}


def find_entry(name: str) -> CatalogEntry | None:
    """The entry with this name or alias, in capitals or not; None: the catalogue has no such data set."""
    wanted = name.upper()
    return next((e for e in CATALOG.values() if wanted in e.names), None)


def names_by_count(numbers: Tensor | None, named: Mapping[str, int]) -> tuple[str, ...] | None:
    """The names of the classes or labels 0, 1, … by how often each one occurs; None where they are not known."""
    counts = [] if numbers is None else numbers.bincount().tolist()
    by_count = {count: name for name, count in named.items()}
    return tuple(by_count[c] for c in counts) if counts and sorted(counts) == sorted(by_count) else None


@dataclass(frozen=True)
class Statistics:
    """The size of a data set as the paper's tables give it."""

    graphs: int
    mean_nodes: float
    mean_edges: float
    classes: int

    @classmethod
    def of(cls, dataset: GraphDataset) -> Statistics:
        """Counts a data set."""
        graphs, loops = len(dataset), 0 if dataset.self_loop is None else int(dataset.self_loop.sum())
        edges = (dataset.num_edges + loops) / (1 if dataset.directed else 2)  # every listed pair is half an edge
        return cls(graphs, dataset.num_nodes / graphs, edges / graphs, dataset.num_classes)

    def differences(self, entry: CatalogEntry) -> list[str]:
        """Where it differs from the paper, in words; a mean may be rounded or cut to the paper's one decimal."""
        paper = {"graphs": entry.graphs, "nodes": entry.mean_nodes, "classes": entry.classes}
        means = (round(self.mean_nodes, 1), math.floor(self.mean_nodes * 10) / 10)
        ours = {"graphs": (self.graphs,), "nodes": means, "classes": (self.classes,)}
        return [f"{value} {what} in the paper" for what, value in paper.items() if value not in ours[what]]


def describe(dataset: GraphDataset) -> dict[str, Any]:
    """Where a data set was found, its size, what its labels mean, and where it differs from the paper's, as JSON."""
    from tapnet.data.checks import copies_note, features_note

    statistics, entry = Statistics.of(dataset), find_entry(dataset.name)
    classes = list(map(str, dataset.classes))
    molecules = dataset.smiles is not None  # their bonds are read by default, their copies are counted by the reader
    notes = [features_note(dataset, reads_edges=molecules), "" if molecules else copies_note(dataset)]
    return {
        "name": dataset.name,
        "found": dataset.source,
        "place": dataset.place,
        "graphs": statistics.graphs,
        "mean_nodes": round(statistics.mean_nodes, 2),
        "mean_edges": round(statistics.mean_edges, 2),
        "classes": statistics.classes,
        "task": None if dataset.classes == (None,) else dataset.task,
        "features": dataset.features,
        "num_features": dataset.num_features,
        "class_values": dict(zip(classes, dataset.class_names or classes, strict=True)),
        "category_values": dict(zip(map(str, dataset.categories or ()), dataset.category_names, strict=True)),
        "differs_from_paper": None if entry is None else statistics.differences(entry),
        "checksum": dataset.checksum,
        "largest_class": _largest_class(dataset),
        "class_counts": _class_counts(dataset),
        "degrees": [int(dataset.degree.min()), int(dataset.degree.max())],
        "nodes_carry": _carried_by_nodes(dataset),
        "edges_carry": _carried_by_edges(dataset),
        "notes": [*dataset.notes, *filter(None, notes)],
    }


def _largest_class(dataset: GraphDataset) -> float | None:
    """In percent of the graphs; None where the targets are no classes, or not known."""
    if dataset.task != "classification" or dataset.classes == (None,):
        return None
    return round(100 * int(dataset.y.bincount().max()) / len(dataset), 1)


def _class_counts(dataset: GraphDataset) -> dict[str, int] | None:
    """By class, how many graphs there are; None where the targets are no classes, or not known."""
    if dataset.task != "classification" or dataset.classes == (None,):
        return None
    counts = dataset.y.bincount(minlength=dataset.num_classes).tolist()
    return dict(zip(map(str, dataset.class_names or dataset.classes), counts, strict=True))


def _carried_by_nodes(dataset: GraphDataset) -> list[str]:
    """What there is on nodes, whether a model reads it or not."""
    if dataset.node_columns is not None:
        return [*dataset.node_columns, *(dataset.attribute_names or ())]
    return _counts(dataset.node_label_values, dataset.node_attributes)


def _carried_by_edges(dataset: GraphDataset) -> list[str]:
    """What there is on edges, whether a model reads it or not."""
    weights = [] if dataset.edge_weight is None else ["weights"]
    if dataset.edge_columns is not None:
        return [*dataset.edge_columns, *(dataset.edge_attribute_names or ()), *weights]
    return _counts(dataset.edge_label_values, dataset.edge_attributes) + weights


def _counts(labels: Sequence[object] | None, attributes: Tensor | None) -> list[str]:
    columns = 0 if attributes is None else attributes.shape[1]
    return [counted(count, what) for count, what in ((len(labels or ()), "label"), (columns, "attribute")) if count]
