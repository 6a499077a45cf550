"""The data set that a stored model was trained on, found from any working directory."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from tapnet.data.dataset import GraphDataset
from tapnet.errors import TapnetError
from tapnet.inference.model import SavedModel
from tapnet.io.load import load_dataset


def load_training_data(model: SavedModel, data_dir: str | Path | None = None) -> GraphDataset:
    """Loads the data set of a model by its name, or else from where the run that trained the model found it.

    Args:
        model: A model with the features that are wanted.
        data_dir: The folder with data sets by name.

    Returns:
        The data set that the model was trained on; if only another one of its name is here, that one.

    Raises:
        DatasetNotFoundError: If it is in none of these places.
        TapnetError: If what is found by its name cannot be read, and the run names no other place.

    Warns:
        UserWarning: If the data set is not the one that the model was trained on, or has changed since.
    """
    other: GraphDataset | None = None
    problem: TapnetError | None = None
    places: tuple[str | Path, ...] = (model.name, *model.data_places)
    columns: list[dict[str, Any]] = [{}]  # a table's only target, or those that the model was trained on
    if model.card.target_names:
        columns.append({"target": list(model.card.target_names), "task": model.task})
    for place, targets in product(places, columns):
        try:
            threshold = model.card.threshold
            data = load_dataset(
                place, data_dir, features=model.features, download=False, threshold=threshold, **targets
            )
        except TapnetError as error:
            problem = problem or error
            continue
        if model.is_training_data(data):
            return data
        other = other or data
    if other is None:
        assert problem is not None
        raise problem
    model.warn_if_other_data(other)
    return other
