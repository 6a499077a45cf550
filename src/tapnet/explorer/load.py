"""The page's model with its data set."""

from __future__ import annotations

from pathlib import Path

from tapnet.errors import DatasetNotFoundError
from tapnet.explorer.views import Explorer
from tapnet.inference.model import SavedModel
from tapnet.inference.training_data import load_training_data
from tapnet.io.load import load_dataset


def load_explorer(model: SavedModel, dataset: str | None = None, data_dir: str | Path | None = None) -> Explorer:
    """Loads the data set whose graphs the page offers.

    Args:
        model: From :func:`tapnet.load_model`.
        dataset: The data set, by name or path; None for the one that the model was trained on. Where that is not here,
            the page shows uploaded files only, and `Explorer.missing` says so.
        data_dir: The folder with data sets by name.

    Raises:
        DatasetNotFoundError: If the data set that was named is not here.
        SettingError: If the model keeps no nodes to show.
        DataError: If the data set cannot be used.
    """
    if dataset is not None:
        return Explorer(model, load_dataset(dataset, data_dir, features=model.features, download=False))
    try:
        return Explorer(model, load_training_data(model, data_dir))
    except DatasetNotFoundError:
        return Explorer(model, missing=f"{model.name}, the data set of this model, is not here")
