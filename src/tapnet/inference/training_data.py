"""Data sets as a stored model reads them: the one it was trained on, found from any working directory, or another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from tapnet.data._molecule_arrays import ATOM_COLUMNS, check_rdkit, is_valid
from tapnet.data.dataset import GraphDataset, Task
from tapnet.errors import DataError, DataNote, SettingError, TapnetError
from tapnet.files import reading
from tapnet.inference.model import SavedModel
from tapnet.io.dataset_files import Layout, is_matrix_file
from tapnet.io.load import load_dataset
from tapnet.io.locate import find
from tapnet.io.matrices import read_matrices
from tapnet.io.molecule_files import has_smiles_column


def find_graphs(
    model: SavedModel, name: str | Path, data_dir: str | Path | None = None, *, download: bool = True
) -> Layout:
    """Finds the files of a data set for a model, which says whether a .csv is a table of molecules or a matrix.

    Args:
        model: What is to read them.
        name: A data set by name or path.
        data_dir: The folder with data sets by name.
        download: Whether to download what is nowhere else.

    Raises:
        TapnetError: If there is no such data set.
    """
    with reading(name):
        layout = find(name, data_dir, download=download).layout
        is_matrix = layout.kind == "molecules" and is_single_matrix(model, layout.root)
    return layout._replace(kind="matrices") if is_matrix else layout


def is_single_matrix(model: SavedModel, file: Path) -> bool:
    """Whether a .csv is a matrix to this model: one that reads no molecules, and it has no column of SMILES."""
    is_csv = file.suffix.lower() == ".csv" and is_matrix_file(file.name) and file.is_file()
    return is_csv and not reads_molecules(model) and not has_smiles_column(file)


def reads_molecules(model: SavedModel) -> bool:
    """Whether the node categories of a model are those of atoms, as they are made from SMILES."""
    columns = {value[0] for value in model.categories or () if isinstance(value, tuple) and len(value) == 2}
    return bool(columns) and columns <= set(ATOM_COLUMNS)


def read_smiles(model: SavedModel, text: str) -> GraphDataset | None:
    """A molecule as a data set of one; None where the model reads no molecules, or the text is no valid SMILES.

    Raises:
        SettingError: If the model reads molecules, and RDKit is not installed.
    """
    if not reads_molecules(model):
        return None
    check_rdkit()
    return model.to_dataset(GraphDataset.from_smiles([text])) if is_valid(text) else None


def load_matrix(model: SavedModel, file: Path) -> GraphDataset:
    """Reads a file of one matrix as those of the training data were read.

    Raises:
        DataError: If it is none; the message names the place.
    """
    data = load_matrices(model, Layout("matrices", file, file.stem, file))
    return data.with_features(model.features)


def load_matrices(
    model: SavedModel,
    layout: Layout,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    on_error: Callable[[DataError], None] | None = None,
) -> GraphDataset:
    """Reads a folder of matrices, or the file of one, as those of the training data were read.

    Where the model reads the sums of weights, they are there also if all weights are 1 or there is no edge.

    Args:
        model: What is to read them.
        layout: Where they are.
        target: The target column of their table, or several; an empty list: none.
        task: What the target columns hold.
        on_error: Called for each file that is wrong, as :func:`tapnet.io.matrices.read_matrices` has it.

    Returns:
        The data set with the features that it has by itself.

    Raises:
        DataError: If a file is wrong (with ``on_error`` only if all are); the message names the place.
    """
    options: dict[str, Any] = {"target": target, "task": task, "on_error": on_error}
    options |= {"threshold": model.card.threshold, "directed": model.card.directed}
    with reading(layout.root):
        strength = model.features == "attributes"
        data = read_matrices(layout.place, name=layout.prefix, strength=strength, **options)
    for note in data.notes:
        warnings.warn(note, DataNote, stacklevel=2)
    return replace(data, source=str(layout.root), place="path")


def load_graphs(
    model: SavedModel, dataset: str | Path | None = None, data_dir: str | Path | None = None
) -> GraphDataset:
    """Loads a data set as the training data of a model were loaded: its features, targets, threshold and directions.

    Args:
        model: A model with the features that are wanted.
        dataset: A data set by name or path; None: the one that the model was trained on, as `load_training_data`
            finds it.
        data_dir: The folder with data sets by name.

    Returns:
        The data set with the target columns of the model, where a table has them; else with those that it has, or none.

    Raises:
        DatasetNotFoundError: If it is not here.
        TapnetError: If it cannot be read.
    """
    if dataset is None:
        return load_training_data(model, data_dir)
    layout = find_graphs(model, dataset, data_dir, download=False)
    kind, place, *_ = layout
    if kind == "matrices" and isinstance(place, Path) and place.is_file():
        return load_matrix(model, place)

    options: dict[str, Any] = {"features": model.features, "download": False}
    options |= {"threshold": model.card.threshold} if kind == "matrices" else {}
    options |= {"directed": model.card.directed} if kind != "molecules" else {}

    def load(**chosen: Any) -> GraphDataset:
        try:
            return load_dataset(dataset, data_dir, **options, **chosen)
        except SettingError:
            if kind != "matrices":
                raise
            return load_matrices(model, layout, **chosen).with_features(model.features)

    found: GraphDataset | None = None
    for chosen in _reading_options(model, kind):
        with suppress(DataError, SettingError):  # such as two columns that could be the target
            data = load(**chosen)
            if model.card.target_names in (None, data.target_names):
                return data
            found = found or data
    if found is None:
        found = load(**({"target": []} if kind in ("molecules", "matrices", "graphs") else {}))
    return found


def load_training_data(model: SavedModel, data_dir: str | Path | None = None) -> GraphDataset:
    """Loads the data set of a model by its name, or else from where the run that trained the model found it.

    Args:
        model: A model with the features that are wanted.
        data_dir: The folder with data sets by name.

    Returns:
        The data set that the model was trained on; if only another one of its name is here, that one. A stranger's
        run can name any file: nothing is said of what is no such data set.

    Raises:
        DatasetNotFoundError: If it is in none of these places.
        TapnetError: If what is found by its name cannot be read, and the run names no other place.

    Warns:
        UserWarning: If the data set is not the one that the model was trained on, or has changed since.
    """
    other: GraphDataset | None = None
    problem: TapnetError | None = None
    places: tuple[str | Path, ...] = (model.name, *model.data_places)
    for place, chosen in chain.from_iterable(product([place], _options_of(model, place, data_dir)) for place in places):
        options: dict[str, Any] = {"features": model.features, "download": False, **chosen}
        options |= {"threshold": model.card.threshold, "directed": model.card.directed}
        try:
            with warnings.catch_warnings(record=True) as notes:  # of data that may be none of the model's
                warnings.simplefilter("always")
                data = load_dataset(place, data_dir, **options)
        except TapnetError as error:
            problem = problem or error  # the first: of the name
            continue
        is_it = model.is_training_data(data)
        if is_it or place == model.name or data.name == model.name:
            for note in notes:
                warnings.warn(note.message, stacklevel=2)
            if is_it:
                return data
            other = other or data
    if other is None:
        assert problem is not None
        raise problem
    model.warn_if_other_data(other)
    return other


def _options_of(model: SavedModel, place: str | Path, data_dir: str | Path | None) -> list[dict[str, Any]]:
    """`_reading_options` for what is at a place; where nothing is, `load_dataset` says so."""
    try:
        kind: str = find_graphs(model, place, data_dir, download=False).kind
    except TapnetError:
        kind = ""
    return _reading_options(model, kind)


def _reading_options(model: SavedModel, kind: str) -> list[dict[str, Any]]:
    """Arguments of `load_dataset`: for what the model was trained on, then for what else such files may hold."""
    names: dict[str, Any] = {}
    if kind == "graphs" and model.features in ("labels", "all") and model.card.node_categories:
        names["node_label"] = model.card.node_categories
    if kind == "graphs" and model.network.reads_edges:
        names["edge_label"] = model.card.edge_category_names
    usual = {"node_label": ("label",), "edge_label": ("label",)}.items() >= names.items() and model.features != "all"
    ways = [names, {}] if names and not usual else [{}]
    return [chosen | targets for chosen, targets in product(ways, _target_options(model))]


def _target_options(model: SavedModel) -> list[dict[str, Any]]:
    """Arguments of `load_dataset`: for the targets that the model was trained on, then for the only one of a table."""
    if not model.card.target_names:
        return [{}]
    return [{"target": list(model.card.target_names), "task": model.task}, {}]
