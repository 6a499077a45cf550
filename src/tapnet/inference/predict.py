"""Prediction over files: a group of graphs at a time, so that a folder of any size takes constant memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tapnet.data._molecule_arrays import why_not_valid
from tapnet.data.checks import features_note
from tapnet.data.convert import directions_note
from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError, DataNote, DatasetNotFoundError, TapnetError
from tapnet.files import path_exists, printable, reading
from tapnet.inference.model import SavedModel, UnseenCategories, foreign_graphs
from tapnet.inference.training_data import find_graphs, load_matrices, read_smiles, reads_molecules
from tapnet.inference.uncertainty import Answers, check_confidence
from tapnet.io.archive import Place
from tapnet.io.dataset_files import Layout
from tapnet.io.graph_folder import FileGraph, file_names
from tapnet.io.load import load_dataset
from tapnet.io.molecule_parts import MoleculePart, MoleculeParts
from tapnet.io.read import check_directions
from tapnet.io.tables import left_aside_note
from tapnet.progress import counting

GRAPHS_AT_ONCE, NODES_AT_ONCE = 256, 1 << 20  # what is in memory of a folder of graphs
ROWS_AT_ONCE = 1 << 14  # where many rows of a table are blank

OnError = Callable[[TapnetError], None]


@dataclass(frozen=True, eq=False)
class PredictedGroup:
    """Some graphs of an input. It unpacks into the names of the graphs and their probabilities.

    Attributes:
        graphs: Their names.
        answers: What the model says of them, and how sure it is.
    """

    graphs: list[str]
    answers: Answers

    @property
    def probabilities(self) -> Tensor:
        """[G, C] of classes, [G, T] of labels, or numbers."""
        return self.answers.values

    def __iter__(self) -> Iterator[Any]:
        return iter((self.graphs, self.probabilities))


def predict_inputs(
    model: SavedModel,
    inputs: Sequence[str],
    *,
    data_dir: str | Path | None = None,
    unseen: UnseenCategories | None = None,
    allow_unknown: bool = False,
    on_error: OnError | None = None,
    show_progress: bool = False,
    confidence: float | None = None,
    on_left_out: Callable[[int], None] | None = None,
) -> Iterator[PredictedGroup]:
    """Predicts the graphs of files and data sets, group by group.

    Args:
        model: a loaded model.
        inputs: data sets by name or path, files of one graph or matrix, and folders of them; a SMILES, where the model
            reads molecules. With several inputs, the name of each stands before those of its graphs.
        data_dir: the folder with data sets by name.
        unseen: counts graphs with node categories that no training graph had; without it warnings name them.
        allow_unknown: whether to predict graphs that share no node category (or degree) with the training data, too;
            else they are counted and left out.
        on_error: called for what cannot be read, file by file, and the next one follows; by default a warning.
        show_progress: whether to show a bar for each input on a terminal.
        confidence: such as 0.9, for sets of classes or intervals of numbers.
        on_left_out: called with the number of graphs that are left out without an error of their own: rows without a
            valid molecule, part by part (warnings name the first), and the others of a data set that does not fit.

    Yields:
        The names of some graphs, the probabilities of their classes, and how sure the model is.

    Raises:
        DataError: if the model promises no confidence.
        SettingError: if there were too few graphs for this one.

    Example:
        >>> from tapnet import load_model
        >>> for group in predict_inputs(load_model("run"), ["graphs/"]):  # doctest: +SKIP
        ...     print(group.graphs, group.probabilities.argmax(dim=1))
    """
    counted = UnseenCategories(model.features) if unseen is None else unseen
    on_error = on_error or (lambda error: warnings.warn(str(error), stacklevel=3))
    if confidence is not None:
        check_confidence(model.card.conformal, confidence)
    run = _Run(model, counted, allow_unknown, on_error, show_progress, confidence, on_left_out or (lambda _: None))
    for name in inputs:
        prefix = f"{name.rstrip(os.sep)}/" if len(inputs) > 1 else ""
        try:
            if not path_exists(Path(name)) and (molecule := read_smiles(model, name)) is not None:
                yield from run.of_dataset(molecule, "")
                continue
            layout = _find_graphs(model, name, data_dir)
            folder = name.removesuffix(layout.place.name) if prefix else ""  # of one graph's file
            if layout.kind == "molecules":
                check_directions(layout, model.card.directed)
                with reading(name):
                    parts = MoleculeParts(layout.root, name=layout.prefix, multiple=GRAPHS_AT_ONCE)
                    with run.reporting(parts.num_rows) as done:
                        for part, groups in run.of_molecules(parts, prefix):
                            done(len(part.rows))
                            yield from groups
            elif layout.kind == "matrices":
                one_file = layout.root.is_file() and layout.place is layout.root
                matrices = load_matrices(model, layout, target=[], on_error=run.on_error)
                yield from run.of_dataset(matrices, folder if one_file else prefix)
            elif layout.kind != "graphs":  # degrees, which every data set has, until its graphs are counted
                data = load_dataset(name, data_dir, features="degrees", directed=model.card.directed)
                yield from run.of_dataset(data, prefix)
            elif layout.place.is_file():
                yield from run.of_files(layout.root.parent, [layout.place.name], folder)
            else:
                for note in left_aside_note(layout.place):
                    warnings.warn(note, DataNote, stacklevel=2)
                yield from run.of_files(layout.place, file_names(layout.place), prefix)
        except TapnetError as error:
            run.on_error(error)
    if run.directed.one_way:
        warnings.warn(run.directed.note, DataNote, stacklevel=2)
    for note in counted.notes if unseen is None else ():
        warnings.warn(note, stacklevel=2)


def _find_graphs(model: SavedModel, name: str, data_dir: str | Path | None) -> Layout:
    """Finds the files of an input. A model of molecules downloads nothing: a SMILES must not leave the machine."""
    if not reads_molecules(model):
        return find_graphs(model, name, data_dir)
    try:
        return find_graphs(model, name, data_dir, download=False)
    except DatasetNotFoundError:
        raise DataError(f"{printable(name)}: no such file, and no valid SMILES ({why_not_valid(name)})") from None


class PredictedTable(NamedTuple):
    """A table of molecules with what a model predicts of each row."""

    header: list[str]
    rows: list[list[str]]  # as many as the table had; the new cells are empty where a row has no valid molecule
    predicted: int  # rows
    mark: str = ","  # between the cells of the file
    has_bom: bool = False  # whether the file begins with a byte order mark


def predict_table(
    model: SavedModel,
    path: str | Path,
    smiles: str | None = None,
    *,
    unseen: UnseenCategories | None = None,
    allow_unknown: bool = False,
    on_error: OnError | None = None,
    show_progress: bool = False,
    confidence: float | None = None,
) -> PredictedTable:
    """Predicts the molecules of a table and gives the table back with columns added.

    Args:
        model: a loaded model.
        path: a .csv, .tsv, .smi or .sdf.
        smiles: the column of SMILES; by default the one that is called so.
        unseen: counts molecules with atoms that no training molecule had; without it warnings name them.
        allow_unknown: whether to predict molecules that share no atom with the training data, too.
        on_error: called for what cannot be predicted; by default a warning.
        show_progress: whether to show a bar on a terminal.
        confidence: such as 0.9, for sets of classes or intervals of numbers.

    Returns:
        The table with all its rows but blank ones at its end; of an .sdf with SMILES in the place of its MOL blocks. Of
        classes the columns ``prediction`` and ``p(CLASS)`` are new, of others ``predicted NAME``; then those of
        `uncertainty_columns`. A name that the table has already gets a number, ``prediction (2)``. Their numbers have
        decimal commas where those of the table have.

    Raises:
        DataError: if the file is no table of molecules, or the model promises no confidence.
        SettingError: if there were too few graphs for this confidence.
    """
    options: dict[str, Any] = {"unseen": unseen, "allow_unknown": allow_unknown, "on_error": on_error}
    options |= {"show_progress": show_progress, "confidence": confidence}
    parts = list(predict_table_parts(model, path, smiles, **options))
    rows = [row for part in parts for row in part.rows]
    return parts[0]._replace(rows=rows, predicted=sum(part.predicted for part in parts))


def predict_table_parts(
    model: SavedModel,
    path: str | Path | MoleculeParts,
    smiles: str | None = None,
    *,
    unseen: UnseenCategories | None = None,
    allow_unknown: bool = False,
    on_error: OnError | None = None,
    show_progress: bool = False,
    confidence: float | None = None,
    on_left_out: Callable[[int], None] | None = None,
) -> Iterator[PredictedTable]:
    """``predict_table`` in parts, for tables that do not fit into memory.

    The whole table is checked before the first part; how many rows were left out is warned of after the last.

    Args:
        model: as of ``predict_table``, like all others.
        path: the table, or one that is being read already.
        smiles: the column of SMILES.
        unseen: counts molecules with atoms that no training molecule had.
        allow_unknown: whether to predict molecules that share no atom with the training data, too.
        on_error: called for what cannot be predicted.
        show_progress: whether to show a bar on a terminal.
        confidence: such as 0.9, for sets of classes or intervals of numbers.
        on_left_out: called with the number of rows without a valid molecule, part by part; warnings name the first.

    Yields:
        Some rows, in the order of the table, each time with the header.

    Raises:
        DataError: if the file is no table of molecules, or the model promises no confidence.
        SettingError: if there were too few graphs for this confidence.

    Example:
        >>> from tapnet import load_model
        >>> for part in predict_table_parts(load_model("run"), "new.csv"):  # doctest: +SKIP
        ...     print(part.rows)
    """
    table = path if isinstance(path, MoleculeParts) else MoleculeParts(path, smiles)
    table.multiple = GRAPHS_AT_ONCE
    counted = UnseenCategories(model.features) if unseen is None else unseen
    on_error = on_error or (lambda error: warnings.warn(str(error), stacklevel=3))
    if confidence is not None:
        check_confidence(model.card.conformal, confidence)
    run = _Run(model, counted, allow_unknown, on_error, show_progress, confidence, on_left_out or (lambda _: None))
    point = "," if table.decimal_commas else "."
    classes = model.task == "classification"
    names = tuple(map(str, (model.card.class_names or model.classes) if classes else model.card.target_names or ()))
    added = ["prediction", *(f"p({name})" for name in names)] if classes else [f"predicted {name}" for name in names]
    added = _free_names([*added, *uncertainty_columns(model, names, confidence)], table.header)
    for part, groups in run.of_molecules(table, None):
        cells: dict[int, list[str]] = {}
        number_of = {place: number for number, place in enumerate(part.places)}
        for group in groups:
            sure = uncertainty_values(model, names, group.answers)
            for name, row, more in zip(group.graphs, group.probabilities.tolist(), sure, strict=True):
                best = [names[row.index(max(row))]] if classes else []
                said = (f"{value:.6g}".replace(".", point) for value in row)
                cells[number_of[name]] = [*best, *said, *as_cells(more, point)]
        own_rows = part.rows
        if table.is_sdf:  # a MOL block has some thirty lines
            own_smiles = {} if part.dataset is None else dict(zip(part.kept, part.dataset.smiles or (), strict=True))
            own_rows = [[own_smiles.get(i, ""), *row[1:]] for i, row in enumerate(own_rows)]
        header, rows = [*table.header, *added], list[list[str]]()
        for i, row in enumerate(own_rows):
            for _ in range(part.blank[i]):  # which stay, so that rows of both tables stand side by side
                rows.append([""] * len(header))
                if len(rows) >= ROWS_AT_ONCE:
                    yield PredictedTable(header, rows, 0, table.mark, table.has_bom)
                    rows = []
            rows.append([*row, *cells.get(i, [""] * len(added))])
        yield PredictedTable(header, rows, len(cells), table.mark, table.has_bom)
    for note in counted.notes if unseen is None else ():
        warnings.warn(note, stacklevel=2)


def _free_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names of new columns; one that a table has already gets a number: ``prediction (2)``."""
    found: list[str] = []
    for name in names:
        numbered = (name if i == 1 else f"{name} ({i})" for i in count(1))
        found.append(next(own for own in numbered if own not in (*taken, *found)))
    return found


# ---- how sure, as columns ----


def uncertainty_columns(model: SavedModel, names: Sequence[str], confidence: float | None) -> list[str]:
    """The titles of the columns that say how sure a model is.

    Args:
        model: a loaded model.
        names: of its classes, or of its targets; columns of several targets are named by them.
        confidence: whether there are sets or intervals.

    Returns:
        ``std`` of an ensemble, ``set`` or ``low`` and ``high`` with a confidence, ``distance`` and ``unlike_training``
        where the model file says what the training graphs were like.
    """
    words = ["std"] if model.card.members > 1 else []
    if confidence is not None:
        words += ["low", "high"] if model.task == "regression" else ["set"]
    if model.task != "classification" and len(names) > 1:
        words = [f"{word} {name}" for word in words for name in names]
    return words + (["distance", "unlike_training"] if model.card.reference is not None else [])


def uncertainty_values(model: SavedModel, names: Sequence[str], answers: Answers) -> list[dict[str, Any]]:
    """How sure a model is of each graph, as JSON has it.

    Args:
        model: a loaded model.
        names: of its classes, or of its targets.
        answers: what it says of the graphs.

    Returns:
        ``std``, ``set``, ``low``, ``high``, ``distance`` and ``unlike_training``, as far as they are there; a value
        for each target where numbers or labels are predicted, and of classes the ``std`` of the predicted one.
    """
    classes = model.task == "classification"
    columns: dict[str, list[Any]] = {}
    if answers.std is not None and classes:
        best = answers.values.argmax(dim=1, keepdim=True)
        columns["std"] = [round(value, 6) for value in answers.std.gather(1, best).flatten().tolist()]
    elif answers.std is not None:
        columns["std"] = [dict(zip(names, row, strict=True)) for row in answers.std.tolist()]
    if answers.sets is not None and classes:
        columns["set"] = [[name for name, there in zip(names, row, strict=True) if there] for row in answers.sets]
    elif answers.sets is not None:
        rows = [[[v for v in (0, 1) if label[v]] for label in row] for row in answers.sets]
        columns["set"] = [dict(zip(names, row, strict=True)) for row in rows]
    for word, ends in (("low", answers.low), ("high", answers.high)):
        if ends is not None:
            columns[word] = [dict(zip(names, row, strict=True)) for row in ends.tolist()]
    if answers.distance is not None and answers.unlike_training is not None:
        columns["distance"] = [round(value, 4) for value in answers.distance.tolist()]
        columns["unlike_training"] = answers.unlike_training.tolist()
    return [{word: column[i] for word, column in columns.items()} for i in range(len(answers.values))]


def as_cells(values: Mapping[str, Any], point: str = ".") -> list[str]:
    """What `uncertainty_values` says of a graph as cells: numbers with six digits, what is in a set with | between.

    Args:
        values: from there.
        point: the decimal point, or comma.
    """
    cells = []
    for value in values.values():
        for one in value.values() if isinstance(value, dict) else (value,):
            words = "|".join(map(str, one)) if isinstance(one, list) else one
            cells.append(words if isinstance(words, str) else f"{words:.6g}".replace(".", point))
    return cells


def raise_error(error: TapnetError) -> None:
    """What to do with an error, where the first one is to end a prediction."""
    raise error


def _note_unused(dataset: GraphDataset, model: SavedModel, what: str = "") -> bool:
    """Whether there was something to say, of the data set or what it is called."""
    note = features_note(dataset, reads_edges=model.network.reads_edges)
    if note:
        warnings.warn(f"{printable(what or dataset.name)}: {note}", DataNote, stacklevel=2)
    return bool(note)


_COUNTED = ("categories", "node_label_values", "edge_label_values")  # what the note counts of a data set


@dataclass
class _Directed:
    """Counts files of graphs, and those whose edges have directions that the model does not read."""

    graphs: int = 0
    one_way: int = 0
    first: str = ""

    def add(self, files: Sequence[FileGraph]) -> None:
        found = [file.file for file in files if file.is_one_way]
        self.graphs, self.one_way = self.graphs + len(files), self.one_way + len(found)
        self.first = self.first or next(iter(found), "")

    @property
    def note(self) -> str:
        return directions_note(self.first + ", …" * (self.one_way > 1), self.one_way, self.graphs)


@dataclass
class _Run:
    model: SavedModel
    unseen: UnseenCategories
    allow_unknown: bool
    on_error: OnError
    show_progress: bool
    confidence: float | None
    on_left_out: Callable[[int], None]
    directed: _Directed = field(default_factory=_Directed)
    noted: bool = False  # what is not used of files

    @contextmanager
    def reporting(self, graphs: int) -> Iterator[Callable[[int], None]]:
        """Reports an error as that of all graphs that are left; called with the number of those that are done."""
        left = graphs

        def done(number: int) -> None:
            nonlocal left
            left -= number

        try:
            yield done
        except TapnetError as error:
            self.on_error(error)
            self.on_left_out(left - 1)

    def of_dataset(self, dataset: GraphDataset, prefix: str) -> Iterator[PredictedGroup]:
        names = dataset.graph_names or range(len(dataset))
        with self._counting(len(dataset), dataset.name) as advance, self.reporting(len(dataset)) as done:
            dataset = self.model.to_dataset(dataset)
            for number, group in enumerate(self._groups(dataset, lambda i: f"{prefix}{names[i]}", advance)):
                done(min(GRAPHS_AT_ONCE, len(dataset) - number * GRAPHS_AT_ONCE))
                if group.graphs:
                    _note_unused(dataset, self.model)
                yield group

    def of_molecules(
        self, parts: MoleculeParts, prefix: str | None
    ) -> Iterator[tuple[MoleculePart, list[PredictedGroup]]]:
        """Without a prefix molecules are called by the places of their rows."""
        described, last = False, None
        values: dict[str, set[Hashable]] = {key: set() for key in _COUNTED}
        with self._counting(parts.num_rows, parts.name) as advance:
            for part in parts:
                groups: list[PredictedGroup] = []
                if part.dataset is not None:
                    if not described:
                        warnings.warn(parts.description, stacklevel=2)
                    described = True
                    dataset = self.model.to_dataset(part.dataset)
                    names = [f"{prefix}{name}" for name in dataset.graph_names or ()]
                    if prefix is None:
                        names = [part.places[i] for i in part.kept]
                    groups = list(self._groups(dataset, names.__getitem__, advance))
                    if any(group.graphs for group in groups):
                        last = dataset
                    for key, found in values.items():
                        found.update(getattr(dataset, key) or ())
                left_out = len(part.rows) - len(part.kept)
                advance(left_out)
                self.on_left_out(left_out)
                yield part, groups
        for note in parts.notes:
            warnings.warn(note, stacklevel=2)
        if last is not None:
            counted: dict[str, Any] = {key: tuple(found) for key, found in values.items() if found}
            _note_unused(replace(last, **counted), self.model)

    def _groups(
        self, dataset: GraphDataset, name_of: Callable[[int], str], advance: Callable[[int], None]
    ) -> Iterator[PredictedGroup]:
        for start in range(0, len(dataset), GRAPHS_AT_ONCE):
            numbers = range(start, min(start + GRAPHS_AT_ONCE, len(dataset)))
            yield self._predicted(dataset.subset(numbers), [name_of(i) for i in numbers])
            advance(len(numbers))

    def of_files(self, folder: Place, names: Sequence[str], prefix: str) -> Iterator[PredictedGroup]:
        group: list[tuple[str, FileGraph]] = []
        nodes, what = 0, str(folder / names[0] if len(names) == 1 else folder)
        with self._counting(len(names), folder.name) as advance:
            for number, name in enumerate(names, 1):
                try:
                    group.append((prefix + name, FileGraph.read(folder / name)))
                    nodes += group[-1][1].size
                except DataError as error:
                    self.on_error(error)
                full = len(group) == GRAPHS_AT_ONCE or nodes > NODES_AT_ONCE
                if group and (full or number == len(names)):
                    for predicted, dataset in self._of_group(group):
                        self.noted = self.noted or (bool(predicted.graphs) and _note_unused(dataset, self.model, what))
                        yield predicted
                    group, nodes = [], 0
                advance(1)

    def _of_group(self, group: Sequence[tuple[str, FileGraph]]) -> list[tuple[PredictedGroup, GraphDataset]]:
        """Each file is read as if it were alone; where they do not go together, one by one."""
        names, graphs = [name for name, _ in group], [graph for _, graph in group]
        try:
            dataset = self.model.join_files(graphs, graphs[0].file if len(group) == 1 else "graphs")
            found = [(self._predicted(dataset, names), dataset)]
        except TapnetError as error:
            if len(group) == 1:
                self.on_error(error)
            return [one for pair in group for one in self._of_group([pair])] if len(group) > 1 else []
        if not self.model.card.directed:
            self.directed.add(graphs)
        return found

    def _predicted(self, dataset: GraphDataset, names: list[str]) -> PredictedGroup:
        encoded = self.model.encode(dataset, names, self.unseen)
        if not self.allow_unknown and bool((foreign := foreign_graphs(encoded)).any()):
            known = (~foreign).nonzero().flatten().tolist()
            if not known:
                return PredictedGroup([], Answers(torch.empty(0, self.model.card.shape.num_classes)))
            encoded, names = encoded.subset(known), [names[i] for i in known]
        found = self.model.answer(encoded, self.confidence)
        finite = found.values.isfinite().all(dim=1)
        for i in (~finite).nonzero().flatten().tolist():
            self.on_error(DataError(f"{names[i]}: the model's answer is not a number"))
        return PredictedGroup(
            [name for name, good in zip(names, finite.tolist(), strict=True) if good], found[finite.numpy()]
        )

    def _counting(self, total: int, title: str) -> AbstractContextManager[Callable[[int], None]]:
        return counting(total, title) if self.show_progress else nullcontext(lambda _: None)
