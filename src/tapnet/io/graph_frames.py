"""DataFrames with a column of NetworkX or PyG graphs; the other columns are read as those of any table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from tapnet.data.convert import Names, from_graphs, kind_of
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.errors import DataError
from tapnet.files import printable
from tapnet.io.molecule_files import Columns, DataFrameCells, LeftOut
from tapnet.io.molecules import frame_cells, is_frame_gap, read_targets, rows_with_targets

GRAPH_NUMBER = re.compile(r"\bgraph (\d+)\b")


def graph_column(frame: Any) -> Any:
    """The column of a DataFrame that holds graphs, by the first cell that is not empty; None where there is none.

    Raises:
        DataError: There are several.
    """
    found = [name for name in frame.columns if _kind(_first_value(frame[name])) in ("NetworkX", "PyG")]
    if len(found) > 1:
        listed = printable(", ".join(map(str, found)))
        raise DataError(f"DataFrame: which column holds the graphs? {listed} do; leave all but one out")
    return found[0] if found else None


def read_graph_frame(
    frame: Any,
    column: Any,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    *,
    features: Features | None = None,
    directed: bool = False,
    **labels: Names,
) -> GraphDataset:
    """Reads a DataFrame (of pandas or polars) with a column of graphs, whose rows are called by their index.

    Args:
        frame: The table.
        column: The column of graphs, all of NetworkX or all of PyG.
        target: The column with the target, or several: a list, or names with commas between them. By default the only
            column of numbers that is not an id, else the only one of few words, else what the graphs have as their
            ``y``. An empty list: none, which is enough for prediction.
        task: What the targets are; by default what :func:`tapnet.data.targets.detect_task` finds.
        features: What ``x`` holds, as :meth:`GraphDataset.from_pyg` and :meth:`GraphDataset.from_networkx` have it.
        directed: Whether edges keep their directions.
        labels: ``node_label`` and ``edge_label`` of :meth:`GraphDataset.from_networkx`.

    Returns:
        The data set, called ``graphs``; the columns that are no targets are its ``graph_columns``. Its notes say which
        column became what, and which rows are left out: those without a graph or without a target.

    Raises:
        DataError: A cell holds no graph, a graph is wrong, or the target is not clear; the message names the row or the
            columns.
        SettingError: Labels are named that these graphs do not have.
    """
    graphs = list(frame[column])
    table = frame_cells(frame, without=column)
    columns = Columns.choose(table, str(column), target, holds="graphs")
    empty, no_target = LeftOut("without a graph"), LeftOut("without a target")
    kept = _rows_with_graphs(graphs, table, empty)
    own = target is None and not columns.targets and _have_targets([graphs[i] for i in kept])
    if task is not None and target is None and not columns.targets and not own:
        raise DataError(f"{table.path}: which column is the target? The columns are {table.listed()}; name one")
    targets, remarks = None, tuple[str, ...]()
    if columns.targets:
        targets, kept = rows_with_targets(table, columns.targets, task, kept, no_target)
        remarks = targets.remarks
        targets = read_targets(table, columns.targets, targets.task, kept)
    try:
        y = None if own else [0] * len(kept)
        found = [graphs[i] for i in kept]
        dataset = from_graphs(found, features, task if own else "classification", directed, y=y, **labels)
    except DataError as error:  # of the graphs by their numbers among the rows that are kept
        words = GRAPH_NUMBER.sub(lambda match: table.place(kept[int(match[1])]), str(error))
        raise DataError(f"{table.path}: {words}") from None
    cells = {key: tuple(table.rows[i][c] for i in kept) for c, key in enumerate(table.header)}
    described = columns.describe(targets, table.header, table.decimal_commas_note(columns.targets))
    described = described.replace("no target", "the target is y of the graphs", 1) if own else described
    left_out = [why.note(len(graphs)) for why in (empty, no_target) if why.count]
    notes = (*(f"{table.path}: {note}" for note in (described, *remarks, *left_out)), *dataset.notes)
    others = {key: values for key, values in cells.items() if key not in (columns.smiles, *columns.targets)}
    names = cells.get(columns.names or "")
    if targets is not None:
        y_found = torch.from_numpy(targets.y)
        known = {"task": targets.task, "y": y_found, "classes": targets.classes, "target_names": targets.names}
    else:
        known = {} if own else {"classes": (None,)}
    names = names if names and any(map(str.strip, names)) else None
    return replace(dataset, notes=notes, graph_columns=others or None, graph_names=names, **known)  # type: ignore[arg-type]


def _kind(value: Any) -> str:
    return "" if value is None else kind_of([value])


def _first_value(column: Any) -> Any:
    return next((value for value in column if not is_frame_gap(value)), None)


def _rows_with_graphs(graphs: Sequence[Any], table: DataFrameCells, empty: LeftOut) -> list[int]:
    """The rows that have a graph; a DataError for a cell that holds something else, or a graph of another kind."""
    kept = [i for i, graph in enumerate(graphs) if _kind(graph) or not is_frame_gap(graph)]
    for i in sorted({*range(len(graphs))} - {*kept}):
        empty.add(table.place(i))
    kinds = [_kind(graphs[i]) for i in kept]
    first = kept[kinds.index(next(kind for kind in kinds if kind in ("NetworkX", "PyG")))]
    for i, kind in zip(kept, kinds, strict=True):
        if kind not in ("NetworkX", "PyG"):
            what = printable(repr(graphs[i]))[:40]
            raise DataError(f"{table.where(i)}: {what} where a graph of NetworkX or PyG, or an empty cell belongs")
        if kind != (wanted := _kind(graphs[first])):
            raise DataError(f"{table.where(i)}: a graph of {kind} where {table.place(first)} has one of {wanted}")
    return kept


def _have_targets(graphs: Sequence[Any]) -> bool:
    """Whether all graphs have a target of their own."""
    if _kind(graphs[0]) == "NetworkX":
        return all("y" in graph.graph for graph in graphs)
    return all(graph.y is not None for graph in graphs)
