"""Stored comparisons as tables, with the entries that others have printed.

They are made by ``tapnet compare … --out results/comparisons/NAME/DATASET`` or `tapnet.compare_runs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tapnet.data.catalog import find_entry
from tapnet.experiments.comparison import COMPARISON, ComparedSystem, Comparison, load_comparison
from tapnet.paper.costs import PoolCost, cost_columns
from tapnet.paper.numbers import COMMON_TABLE
from tapnet.paper.tables import DIFFERS, Section, markdown

FOLDER = "comparisons"  # in the folder of results
POOLING = "pooling"  # the comparisons of pooling layers
COST = "cost"  # those on large graphs
LABELS = {  # of systems, as the other tables write them
    "tapnet": "TAPNet",
    "tapnet:topk": "Net_top-k",
    "tapnet:none": "w/o TAP",
    "gin": "GIN",
    "wl": "WL",
    "majority": "majority class",
    "size": "size: numbers of nodes and edges",
    "bag": "bag: no edges",
}
TITLES = {
    "nested": "The common table of the field: nested selection of settings on the published splits (MUTAG, PTC: ours)",
    POOLING: "Where pooling matters: pooling layers in TAPNet's architecture",
    COST: "Accuracy against cost on large graphs: each pooling layer keeps half of the nodes",
    "large": "Graphs of 10⁴ nodes: a first pooling layer that keeps one node in ten, then half, and half again",
    "weights": "The connectivity term where structure matters: TAP with other weights λ",
    "options": "TAP with options that are not in the paper",
    "edges": "TAPNet's convolution: the paper's GCN, GIN, and GINE, which reads edges",
}
LINKED = ("options",)  # the page of results refers to these tables, and has not the room for them


def load_comparisons(folder: Path, name: str) -> dict[str, Comparison]:
    """The stored comparisons of a name, by data set.

    Args:
        folder: Of results.
        name: One of `TITLES`.

    Raises:
        DataError: If one cannot be read.
    """
    found = [load_comparison(file) for file in sorted((folder / FOLDER / name).glob(f"*/{COMPARISON}"))]
    return {_dataset(table): table for table in found}


def _dataset(table: Comparison) -> str:
    entry = find_entry(table.dataset)
    return entry.name if entry else table.dataset


def comparison_section(
    name: str, tables: Mapping[str, Comparison], brief: bool = False, costs: Sequence[PoolCost] = ()
) -> Section | None:
    """One table of all data sets: systems in rows, and what others printed above them; None where nothing is stored.

    Args:
        name: One of `TITLES`.
        tables: By data set.
        brief: Whether verdicts are left out, the deviations of the poolings, which are many, and costs on other data.
        costs: Of pooling layers; those of the comparison's ratios get columns.
    """
    if not tables:
        return None
    systems = list(dict.fromkeys(system.name for table in tables.values() for system in table.systems))
    baselines = {s.name for table in tables.values() for s in table.systems if s.baseline}
    rows = []
    if name == "nested":
        for label, entries in COMMON_TABLE.items():
            if any(entries.get(data) for data in tables):
                rows.append((f"printed: {label}", *(str(entries.get(data) or "–") for data in tables)))
    ordered = sorted(systems, key=lambda s: s in baselines)
    own_costs = [one for one in costs if name in (POOLING, COST) and (one.ratios is None) == (name == POOLING)]
    own_costs = [one for one in own_costs if not brief or one.data in tables]
    heads, cost_cells = cost_columns(own_costs, [_pool(system) for system in ordered])
    for system, more in zip(ordered, cost_cells, strict=True):
        cells = [_cell(table, system, brief and name == POOLING) for table in tables.values()]
        rows.append((_label(system), *cells, *more))
    common, own = _without_common([table.rules.split("; ") for table in tables.values()])
    shared, own = _without_common([rule.split(" × ") for rule in map("; ".join, own)]) if brief else ([], own)
    joined = [(" × " if brief else "; ").join(rule) for rule in own]
    common += shared
    notes = [f"All data sets: {'; '.join(common)}."] if common else []
    if any(system.averaged for table in tables.values() for system in table.systems):
        notes.insert(0, AVERAGED_EXPLAINED)
    if brief:
        visible = (_number(table.smallest_visible_difference, 1) or "–" for table in tables.values())
        rows.append(("smallest visible difference", *visible, *("" for _ in heads)))
        named = (f"{data}: {rule}" if rule else data for data, rule in zip(tables, joined, strict=True))
        notes.append(f"{'; '.join(named)}.")
    else:
        for (data, table), rule in zip(tables.items(), joined, strict=True):
            notes.append(f"{data}{f' ({rule})' if rule else ''}: *{table.verdict}.*")
            notes += (f"{data}, {note}." for note in table.notes)
    references = " or ".join(dict.fromkeys(LABELS.get(t.reference, t.reference) for t in tables.values()))
    test = "" if brief else " (Nadeau and Bengio's test)"  # the page of all tables names it
    what = f"{DIFFERS} differs from {references} at 5 % after Holm's adjustment{test}"
    if heads:
        notes.append(COSTS_EXPLAINED)
    header = ("", *(f"{data}" for data in tables), *heads)
    return Section(TITLES[name], header, tuple(rows), (f"{what}.", *notes))


def _without_common(rules: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """What several have all in common, and what is left of each."""
    common = [part for part in rules[0] if len(rules) > 1 and all(part in other for other in rules)]
    return common, [[part for part in rule if part not in common] for rule in rules]


AVERAGED_EXPLAINED = "In brackets: the mean prediction of each fold's runs, an ensemble, where it is known."
COSTS_EXPLAINED = (
    "Time: of a training step of 64 graphs, as a multiple of one without pooling (±0.2); MB: its memory at the peak."
)


def _pool(system: str) -> str | None:
    """The pooling layer of a system; None for one that is not TAPNet."""
    model, _, pool = system.partition(":")
    return (pool or "tap") if model == "tapnet" else None


def diagnostics_sections(tables: Mapping[str, Comparison]) -> list[Section]:
    """For each data set what the first pooling layer of each system does to test graphs, where that is stored.

    Args:
        tables: Comparisons of pooling layers by data set.
    """
    found = (_diagnostics(data, table) for data, table in tables.items())
    return [section for section in found if section is not None]


def _diagnostics(data: str, table: Comparison) -> Section | None:
    shown = [s for s in table.systems if s.diagnostics and LABELS.get(s.name) != LABELS["tapnet:none"]]
    if not shown:
        return None
    has_stability = any(system.diagnostics[0].stability is not None for system in shown)
    rows = []
    for system in shown:
        first = system.diagnostics[0]
        cells = (_share(first.nodes), _share(first.edges), _share(first.isolated), _number(first.components, 1))
        more = (_number(first.entropy, 2), _share(first.empty), _number(first.degree_correlation, 2))
        stability = (_number(first.stability, 2),) if has_stability else ()
        rows.append((_label(system.name), *cells, *more, *stability))
    header = ["", "nodes", "edges", "isolated", "components", "entropy", "empty", "degrees"]
    header += ["stability"] if has_stability else []
    return Section(f"What the first pooling layer does to the graphs of {data}", tuple(header), tuple(rows))


DIAGNOSTICS_EXPLAINED = (
    "Nodes and edges that are left, and isolated ones among the nodes left, in percent; components of a graph; of "
    "soft clusters the entropy of a node's assignment (1: it is in all alike) and how many are empty, in percent; "
    "of nodes that are chosen, the rank correlation of their scores with their degrees. Means over the test graphs. "
    "Stability: how far networks of other seeds keep the same nodes of the same test graphs (1: all of them, 0: as "
    "many as by chance)."
)


def comparison_page(name: str, tables: Mapping[str, Comparison], costs: Sequence[PoolCost] = ()) -> str:
    """Everything that is shown of comparisons, as Markdown: verdicts, and what pooling layers do to the graphs.

    Args:
        name: One of `TITLES`.
        tables: By data set, at least one.
        costs: Of pooling layers.
    """
    layers = diagnostics_sections(tables)
    explained = [DIAGNOSTICS_EXPLAINED] if layers else []
    parts = [
        markdown([comparison_section(name, tables, costs=costs) or Section("")], level=1),
        *explained,
        markdown(layers),
    ]
    return "\n\n".join(part.strip() for part in parts).strip() + "\n"


def _share(value: float | None) -> str:
    return _number(None if value is None else 100 * value, 0)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _label(system: str) -> str:
    return LABELS.get(system, system.removeprefix("tapnet:"))


def comparison_rows(name: str, tables: Mapping[str, Comparison]) -> list[dict[str, Any]]:
    """The same as rows of numbers."""
    rows = []
    for data, table in tables.items():
        for system in table.systems:
            d = system.difference
            width = None if d is None or d.low is None or d.high is None else (d.high - d.low) / 2
            rows.append(
                {
                    "target": name,
                    "dataset": data,
                    "system": _label(system.name),
                    "protocol": table.protocol,
                    "mean": system.mean,
                    "std": system.std,
                    "averaged": system.averaged_mean,
                    "folds": table.num_folds,
                    "reference": table.reference,
                    "difference": None if d is None else d.mean,
                    "half_width_95": width,
                    "p_adjusted": None if d is None else d.p_adjusted,
                    "parameters": system.parameters,
                    "seconds": system.seconds,
                    "stability": system.diagnostics[0].stability if system.diagnostics else None,
                }
            )
    return rows


def _cell(table: Comparison, name: str, brief: bool) -> str:
    found: ComparedSystem | None = next((s for s in table.systems if s.name == name), None)
    if found is None or found.mean is None or found.std is None:
        return "–"
    averaged = "" if found.averaged_mean is None else f" ({found.averaged_mean:.1f})"
    mark = f" {DIFFERS}" if found.difference is not None and found.difference.differs else ""
    return (f"{found.mean:.1f}" if brief else f"{found.mean:.1f} ± {found.std:.1f}") + averaged + mark
