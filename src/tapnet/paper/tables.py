"""Cells as tables: as text for a terminal and Markdown, as numbers for CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tapnet.data.catalog import CATALOG
from tapnet.experiments.statistics import LEVEL
from tapnet.experiments.summary import COMMON_EPOCH, machines_note
from tapnet.ops.connectivity import Connectivity
from tapnet.paper.cells import Cell
from tapnet.paper.numbers import ABLATIONS, TABLE5
from tapnet.paper.targets import Row, Target
from tapnet.training.protocol import Protocol

DIFFERS = "†"
GLANCE = "At a glance"  # the table of all data sets
OF_THE_DATA = ("graphs", "nodes", "classes", "majority class")  # its rows that are of the data sets
OF_CONNECTIVITY = (  # its columns
    *("system", "protocol", "graphs", "nodes", "edges", "isolated nodes", "components a graph", "folds × epochs"),
)


@dataclass(frozen=True)
class Section:
    """A table under a heading."""

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def markdown(sections: Iterable[Section], level: int = 2) -> str:
    """The sections as Markdown, with headings of a level."""
    parts = []
    for section in sections:
        lines = [f"{'#' * level} {section.title}", ""] if section.title else []
        if section.header:
            lines += [_line(section.header), "|" + "---|" * len(section.header), *map(_line, section.rows), ""]
        lines += [line for note in section.notes for line in (note, "")]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV, with a header."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def csv_rows(target: Target, cells: Sequence[Cell], digits: int = 2) -> list[dict[str, Any]]:
    """The rows of the CSV file: one per cell; for `connectivity`, one per pooling layer of it (0: the input)."""
    lines = [(cell, cell.to_dict(target.name, digits)) for cell in cells]
    if target.name == "connectivity":
        empty = dict.fromkeys(field.name for field in fields(Connectivity))
        return [
            line | {"after_layer": i if level else None} | (asdict(level) if level else empty)
            for cell, line in lines
            for i, level in enumerate(connectivity_by_layer(cell) or [None])
        ]
    if target.name == "table5":
        return [line | _counted(cell) for cell, line in lines]
    return [line for _, line in lines]


def make_sections(
    target: Target, cells: Sequence[Cell], notes: Mapping[str, str], graphs: Mapping[str, int]
) -> list[Section]:
    """Makes one table per data set.

    Args:
        target: What the cells belong to.
        cells: From :func:`~tapnet.paper.cells.make_cells`.
        notes: For some data sets, what a reader must know, such as that it is not here.
        graphs: For some data sets, how many of its graphs were used.

    Returns:
        The tables, in the order of the data sets.
    """
    tables = _connectivity if target.name == "connectivity" else _accuracies
    found = []
    for name in dict.fromkeys(cell.dataset for cell in cells):
        of_set = [cell for cell in cells if cell.dataset == name]
        noted = (notes.get(name), machines_note(result for cell in of_set for result in cell.results))
        words = tuple(f"*{note}*" for note in noted if note)
        found.append(replace(tables(target, name, of_set), title=name + _size(name, graphs.get(name)), notes=words))
    if target.note and found:
        found[-1] = replace(found[-1], notes=(*found[-1].notes, target.note))
    return found


# ---- accuracies ----


def overview(target: Target, cells: Sequence[Cell], graphs: Mapping[str, int]) -> list[Section]:
    """Makes one table of all data sets with results, as the paper's; none for a single data set.

    Below it stands what was not run, which has no row, or a dash in it.
    """
    names = [name for name in dict.fromkeys(cell.dataset for cell in cells) if is_run(name, None, cells)]
    if len(names) < 2:
        return []
    left = not_run(target, cells)
    notes = (left,) if left else ()
    if target.name == "connectivity":
        return [replace(_connectivity_overview(target, names, cells), notes=(CONNECTIVITY_NOTE, *notes))]
    protocols = list(dict.fromkeys(cell.protocol for cell in cells))

    def mean(cell: Cell) -> str:
        return f"{cell.summary.mean:.1f}{remark(cell, cells)}" if cell.summary else "–"

    def means(name: str, row: Row) -> str:
        of_row = [cell for cell in cells if cell.dataset == name and cell.row is row]
        printed = of_row[0].printed
        return "/".join([f"{printed.mean:.1f}" if printed else "–", *map(mean, of_row)])

    of_the_data = (
        [_graphs(name, graphs.get(name)) for name in names],
        [f"{CATALOG[name].mean_nodes}" for name in names],
        [f"{CATALOG[name].classes}" for name in names],
        [_majority(name, graphs.get(name)) or "–" for name in names],
    )
    rows = [
        *((label, *cells) for label, cells in zip(OF_THE_DATA, of_the_data, strict=True)),
        ("folds × epochs", *(usual_folds_and_epochs(name, cells) for name in names)),
        *((row.label, *(means(name, row) for name in names)) for row in target.rows if is_run(None, row, cells)),
    ]
    note = f"{'/'.join(['printed', *protocols])}; folds × epochs stand in a cell where they are others."
    return [Section(GLANCE, ("", *names), tuple(rows), (note, *notes))]


def without_known_data(section: Section, known: set[str]) -> Section:
    """A table of all data sets without the rows that describe them, where tables before it have described each.

    Args:
        section: From `overview`.
        known: The data sets that were described; those of this table are added.
    """
    names = set(section.header[1:])
    described, rows = names <= known, [row for row in section.rows if row[0] not in OF_THE_DATA]
    known |= names
    return replace(section, rows=tuple(rows)) if described else section


def is_run(name: str | None, row: Row | None, cells: Sequence[Cell]) -> bool:
    """Whether there are results of a data set, or of a row, or of a row on a data set."""
    return any(c.results for c in cells if (name is None or c.dataset == name) and (row is None or c.row is row))


def not_run(target: Target, cells: Sequence[Cell]) -> str:
    """What there are no results of: each system once, with its data sets; an empty string if there is nothing."""
    names = list(dict.fromkeys(cell.dataset for cell in cells))
    missing = dict[str, list[str]]()
    for row in target.rows:
        if left := [name for name in names if not is_run(name, row, cells)]:
            where = "all data sets" if len(left) == len(names) > 1 else ", ".join(left)
            missing.setdefault(where, []).append(row.label)
    words = "; ".join(f"{', '.join(labels)} ({where})" for where, labels in missing.items())
    return f"Not run: {words}." if words else ""


def usual_folds_and_epochs(name: str, cells: Sequence[Cell]) -> str:
    """How many folds × epochs most cells of a data set have."""
    every = Counter(cell.folds_and_epochs for cell in cells if cell.dataset == name and cell.has_epochs)
    return every.most_common(1)[0][0] if every else ""


def remark(cell: Cell, cells: Sequence[Cell]) -> str:
    """What follows a number: a mark if it differs from TAPNet's, and its folds × epochs where most have others."""
    other = cell.has_epochs and cell.folds_and_epochs != usual_folds_and_epochs(cell.dataset, cells)
    return _mark(cell) + (f" ({cell.folds_and_epochs})" if other else "")


def explanation(protocols: Sequence[Protocol]) -> list[str]:
    """What the columns of all tables mean, as paragraphs of Markdown."""
    words = {
        "paper": "**paper**: trained on all folds but one, tested on that one after every epoch; the best test epoch "
        "of each fold counts. *One epoch* reads the same curves at the epoch that is best on the mean of all "
        "folds, *last* at the last.",
        "fair": "**fair**: one more fold is kept for validation, the epoch with its lowest loss counts. WL has no "
        "epochs: it chooses its settings within the folds that the networks train and validate on.",
    }
    return [
        "Accuracy in percent, mean ± standard deviation over the folds, seed 0; **behind it**: folds × epochs. "
        "**printed**: the paper's own number, by a protocol that it does not name. "
        + " ".join(words[protocol] for protocol in protocols),
        f"{DIFFERS} differs from TAPNet after as many epochs at {100 * LEVEL:g} % by a paired t-test corrected for "
        "overlapping training sets (Nadeau and Bengio, 2003), for each system and protocol by itself. An empty cell: "
        "not measured.",
    ]


def _accuracies(target: Target, name: str, cells: Sequence[Cell]) -> Section:
    header: list[str] = ["system", "printed"]
    protocols = list(dict.fromkeys(cell.protocol for cell in cells))
    for protocol in protocols:
        header += [protocol, "one epoch", "last"] if protocol == "paper" else [protocol]
    header.append("behind it")
    counts = target.name == "table5" and name == "REDDIT-BINARY"
    if counts:
        header += ["parameters", "ratio", "embedding + classifier", "printed parameters", "printed ratio"]
    rows = []
    for row in dict.fromkeys(id(cell.row) for cell in cells):
        of_row = [cell for cell in cells if id(cell.row) == row]
        first = of_row[0]
        if not counts and not any(cell.results for cell in of_row):
            continue
        words = [first.row.label, str(first.printed or "")]
        for cell in of_row:
            words += _readings(cell)
        words.append(", ".join(dict.fromkeys(cell.folds_and_epochs for cell in of_row if cell.results)))
        if counts:
            words += _counted_in_words(first)
        rows.append(tuple(words))
    return Section(name, tuple(header) if rows else (), tuple(rows))


def _readings(cell: Cell) -> list[str]:
    s = cell.summary
    width = 3 if cell.protocol == "paper" else 1
    if s is None:
        return [""] * width
    readings = [(s.mean, s.std)]
    if width == 3 and s.has_epochs:
        readings += [s.other_readings[key] for key in (COMMON_EPOCH, "last epoch")]
    several = len(cell.results) > 1  # one fold has no deviation
    words = [f"{mean:.1f} ± {std:.1f}" if several else f"{mean:.1f}" for mean, std in readings]
    words[0] += _mark(cell)
    return words + [""] * (width - len(words))


def _mark(cell: Cell) -> str:
    return f" {DIFFERS}" if cell.against_tapnet and cell.against_tapnet.differs else ""


def _size(name: str, graphs: int | None) -> str:
    """The size of the whole set, and how many of its graphs are used, if not all."""
    entry = CATALOG.get(name)
    if entry is None:
        return ""
    majority = _majority(name, graphs)
    share = f", majority class {majority} %" if majority else ""
    return f": {_graphs(name, graphs)} graphs, {entry.mean_nodes} nodes, {entry.classes} classes{share}"


def _majority(name: str, graphs: int | None) -> str:
    """The accuracy of always predicting the largest class of the whole set; empty where it is not known."""
    entry = CATALOG[name]
    return f"{entry.largest_class}" if entry.largest_class and graphs in (None, entry.graphs) else ""


def _graphs(name: str, graphs: int | None) -> str:
    whole = CATALOG[name].graphs
    return f"{whole}" if graphs in (None, whole) else f"{graphs} of {whole}"


def _counted(cell: Cell) -> dict[str, Any]:
    """Parameters of the whole network, of the part that the paper counts, and as printed; for REDDIT-BINARY alone."""
    from tapnet.models.tapnet import TAPNet

    if cell.dataset != "REDDIT-BINARY":
        return {"embedding_and_classifier": None, "paper_parameters": None}
    model = TAPNet(566, 2, **cell.row.changed)  # its nodes have 566 degrees
    counted = [*model.embedding.parameters(), *model.classifier.parameters()]
    return {
        "parameters": model.num_parameters,
        "embedding_and_classifier": sum(p.numel() for p in counted),
        "paper_parameters": TABLE5[cell.row.label][1],
    }


def _counted_in_words(cell: Cell) -> list[str]:
    """Each count, and by how much it exceeds that without TAP, for the whole network and as the paper prints it."""
    whole, part, printed = _counted(cell).values()
    usual, _, printed_usual = _counted(replace(cell, row=Row("w/o TAP", changed=ABLATIONS["w/o TAP"]))).values()
    ratio, printed_ratio = (f"{100 * (a / b - 1):.2f} %" for a, b in ((whole, usual), (printed, printed_usual)))
    return [f"{whole:,}", ratio, f"{part:,}", f"{printed:,}", printed_ratio]


# ---- connectivity ----

CONNECTIVITY_NOTE = (
    "Isolated nodes in percent after each pooling layer; in brackets the components of a graph. `input`: the graphs as "
    "they are."
)


def _connectivity_overview(target: Target, names: Sequence[str], cells: Sequence[Cell]) -> Section:
    """One row for each system, by the protocol that most cells of a data set have."""
    rows = {label: [label] for label in ("input", *(row.label for row in target.rows if is_run(None, row, cells)))}
    for name in names:
        measured = [cell for cell in cells if cell.dataset == name and connectivity_by_layer(cell)]
        protocol = Counter(cell.protocol for cell in measured).most_common(1)[0][0]
        found = {cell.row.label: connectivity_by_layer(cell) for cell in measured if cell.protocol == protocol}
        levels = {"input": next(iter(found.values()))[:1]} | {label: of[1:] for label, of in found.items()}
        for label, row in rows.items():
            row.append("/".join(map(_isolated, levels.get(label, ()))) or "–")
    return Section(GLANCE, ("", *names), tuple(map(tuple, rows.values())))


def _isolated(level: Connectivity) -> str:
    return f"{100 * level.isolated / level.nodes:.1f} ({level.components / level.graphs:.1f})"


def _connectivity(target: Target, name: str, cells: Sequence[Cell]) -> Section:
    rows: list[tuple[str, ...]] = []
    for cell in cells:
        levels = connectivity_by_layer(cell)
        for i, level in enumerate(levels):
            if i == 0 and rows:
                continue  # the input is the same for all
            system = (cell.row.label, cell.protocol, f"after layer {i}") if i else ("", "", "input")
            edges = f"{level.edges / level.graphs:.1f}"
            if i:
                edges = f"{100 * level.edges / levels[0].edges:.0f} % of the input's"
            isolated, components = (
                f"{100 * level.isolated / level.nodes:.1f} %",
                f"{level.components / level.graphs:.2f}",
            )
            nodes, effort = f"{level.nodes / level.graphs:.1f}", cell.folds_and_epochs if i else ""
            rows.append((*system, nodes, edges, isolated, components, effort))
    return Section(name, OF_CONNECTIVITY if rows else (), tuple(rows))


def connectivity_by_layer(cell: Cell) -> list[Connectivity]:
    """How connected the test graphs are as they are, and after each pooling layer, summed over the folds."""
    every = [r.coarsened for r in cell.results if r.coarsened]
    return [sum(level[1:], start=level[0]) for level in zip(*every, strict=True)]
