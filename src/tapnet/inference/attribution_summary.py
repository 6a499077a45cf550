"""Attributions of a whole data set: which categories, and which groups of molecules, carry the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.data.dataset import GraphDataset
from tapnet.files import printable
from tapnet.inference.attribution import (
    DEFAULT_METHOD,
    FloatArray,
    Method,
    Probe,
    check_method,
    find_target,
    predicted_targets,
)
from tapnet.inference.attribution_groups import molecule_groups
from tapnet.inference.explain_graph import displayed_categories
from tapnet.inference.shown import ShownOrder
from tapnet.inference.training_data import load_graphs

if TYPE_CHECKING:
    from tapnet.inference.model import SavedModel

ROWS_PRINTED = 10  # of each target
AT_ONCE = 256  # graphs


@dataclass(frozen=True)
class SummaryRow:
    """What nodes of one category, or one group, do for a target.

    Attributes:
        target: The class (that the model predicts of the graphs), label or number.
        kind: ``"category"``, ``"ring"`` or ``"functional group"``.
        name: Of the category or group.
        attribution: The mean over its nodes, or over the groups, which are removed at once.
        count: How many there are.
        graphs: In how many graphs.
    """

    target: Any
    kind: str
    name: str
    attribution: float
    count: int
    graphs: int


@dataclass(frozen=True, repr=False)
class AttributionSummary:
    """Which categories and groups carry the predictions over a data set; the rows of each target, largest first."""

    name: str
    method: Method
    unit: str
    rows: tuple[SummaryRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        rows = [asdict(row) | {"target": str(row.target)} for row in self.rows]
        return {"dataset": self.name, "method": self.method, "unit": self.unit, "rows": rows}

    def __repr__(self) -> str:
        lines = [f"{self.name}: mean attribution by {self.method} ({self.unit})"]
        for target in dict.fromkeys(row.target for row in self.rows):
            lines.append(f"{printable(target)}:")
            of_target = [row for row in self.rows if row.target == target]
            for kind in dict.fromkeys(row.kind for row in of_target):
                rows = [row for row in of_target if row.kind == kind]
                for row in rows[:ROWS_PRINTED]:
                    where = f"{row.count:>7} in {row.graphs} graph{'s' if row.graphs > 1 else ''}"
                    lines.append(f"  {kind:<16}  {row.name[:30]:<30}  {row.attribution:+9.3g}  {where}")
                if len(rows) > ROWS_PRINTED:
                    lines.append(f"  … and {len(rows) - ROWS_PRINTED} more")
        return "\n".join(lines)


def summarize_attributions(
    model: SavedModel,
    dataset: GraphDataset | str | Path | None = None,
    method: Method = DEFAULT_METHOD,
    target: object = None,
    *,
    data_dir: str | Path | None = None,
) -> AttributionSummary:
    """Averages the attributions of all graphs of a data set by category, and by ring and functional group.

    Args:
        model: Any trained network.
        dataset: The graphs, or a data set by name or path; None: the one that the model was trained on.
        method: Of the nodes' attribution; groups are removed at once, whatever the method.
        target: The class, label or number to speak of; None: for each graph the predicted class, the most probable
            label, or the first number.
        data_dir: The folder with data sets by name.

    Returns:
        The means, of every target the largest first.

    Raises:
        SettingError: There is no such method or target, or no gradient reaches the input of the network.
        TapnetError: The data set is not found or does not fit the model.

    Example:
        >>> from tapnet import load_model
        >>> print(summarize_attributions(load_model("runs/MUTAG")))  # doctest: +SKIP
    """
    check_method(method)
    chosen = find_target(model, target)
    if not isinstance(dataset, GraphDataset):
        dataset = load_graphs(model, dataset, data_dir)
    labels = model.class_names if model.task == "classification" else model.target_names
    found = list[_Pieces]()
    for start in range(0, len(dataset), AT_ONCE):
        part = dataset.subset(range(start, min(start + AT_ONCE, len(dataset))))
        encoded = model.encode(part)
        said = predicted_targets(model, model.probabilities(encoded).numpy()) if chosen is None else chosen
        probe = Probe(model.network, encoded, said)
        category, names = displayed_categories(encoded, model)
        owner = np.repeat(np.arange(len(part)), part.nodes_per_graph.numpy())
        kinds = [("category", name) for name in names]
        nodes = probe.attributions(method, edges=False).nodes
        found.append(_Pieces(kinds, category.numpy(), probe.target.numpy()[owner], owner + start, nodes))
        if part.smiles is not None:
            found.append(_groups(probe, part, start))
    rows = _means(found, labels)
    unit = "the number" if model.task == "regression" else "log odds"
    return AttributionSummary(dataset.name, method, unit, tuple(rows))


class _Pieces(NamedTuple):
    """Attributions of nodes or groups: of each its kind and name (a position in ``kinds``), target, graph and value."""

    kinds: Sequence[tuple[str, str]]
    kind: NDArray[np.int64]
    target: NDArray[np.int64]
    graph: NDArray[np.int64]
    value: FloatArray


def _groups(probe: Probe, part: GraphDataset, start: int) -> _Pieces:
    """What each ring and functional group of some molecules does; the first has the number ``start``."""
    groups = [(i, group) for i, text in enumerate(part.smiles or ()) for group in molecule_groups(text)]
    node_of = {i: ShownOrder.of(part, i).node for i, _ in groups}
    kinds = sorted({(group.kind, group.name) for _, group in groups})
    graph = np.asarray([i for i, _ in groups], dtype=np.int64)
    begin = np.concatenate([[0], np.cumsum(probe.encoded.nodes_per_graph.numpy()[graph])])
    there = np.ones(begin[-1], dtype=bool)
    for first, (i, group) in zip(begin, groups, strict=False):
        there[first + node_of[i][list(group.nodes)]] = False
    value = probe.value[graph] - probe.values(torch.from_numpy(graph), torch.from_numpy(there))
    kind = np.asarray([kinds.index((group.kind, group.name)) for _, group in groups], dtype=np.int64)
    return _Pieces(kinds, kind, probe.target.numpy()[graph], graph + start, value)


def _means(found: Sequence[_Pieces], labels: Sequence[str]) -> list[SummaryRow]:
    kinds = sorted({kind for pieces in found for kind in pieces.kinds})
    number = {kind: i for i, kind in enumerate(kinds)}
    kind = np.concatenate([np.asarray([number[k] for k in p.kinds], dtype=np.int64)[p.kind] for p in found])
    target, graph, value = (np.concatenate([p[i] for p in found]) for i in (2, 3, 4))
    keys, inverse, count = np.unique(np.stack([target, kind]), axis=1, return_inverse=True, return_counts=True)
    inverse = inverse.ravel()
    mean = np.bincount(inverse, value, minlength=len(count)) / count
    graphs = np.bincount(np.unique(np.stack([inverse, graph]), axis=1)[0], minlength=len(count))
    rows = [
        SummaryRow(labels[t], kinds[k][0], kinds[k][1], float(m), int(c), int(g))
        for (t, k), m, c, g in zip(keys.T, mean, count, graphs, strict=True)
    ]
    return sorted(rows, key=lambda row: (labels.index(row.target), row.kind, -abs(row.attribution)))
