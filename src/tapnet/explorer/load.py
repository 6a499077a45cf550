"""What the page shows: a model with its data set, and stored results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tapnet.errors import DataError, DatasetNotFoundError
from tapnet.explorer.results import Results, has_results
from tapnet.explorer.views import Explorer
from tapnet.inference.model import SavedModel, load_model
from tapnet.inference.model_file import FINAL_MODEL
from tapnet.inference.training_data import load_graphs


def load_explorer(model: SavedModel, dataset: str | None = None, data_dir: str | Path | None = None) -> Explorer:
    """Loads the data set whose graphs the page offers.

    Args:
        model: From :func:`tapnet.load_model`.
        dataset: The data set, by name or path; None for the one that the model was trained on. Where that is not here,
            the page shows uploaded files only, and `Explorer.missing` says so.
        data_dir: The folder with data sets by name.

    Raises:
        DatasetNotFoundError: If the data set that was named is not here.
        DataError: If the data set cannot be used.
    """
    try:
        return Explorer(model, load_graphs(model, dataset, data_dir))
    except DatasetNotFoundError:
        if dataset is not None:
            raise
        return Explorer(model, missing=f"{model.name}, the data set of this model, is not here")


def load_pages(
    path: str | Path,
    dataset: str | None = None,
    data_dir: str | Path | None = None,
    pools: Iterable[type | str] = (),
    convs: Iterable[type | str] = (),
) -> tuple[Explorer | None, Results | None]:
    """Loads all that a path has for the page.

    Args:
        path: A model file; the folder of a run, with or without a final model; or that of a comparison.
        dataset: The data set whose graphs can be chosen, as in `load_explorer`.
        data_dir: The folder with data sets by name.
        pools: The user's own pooling layers that models may use: classes, or their names ``"package.module:Class"``,
            which are imported.
        convs: Convolutions likewise.

    Returns:
        The model with its graphs, and the results; None for what is not there, but never for both.

    Raises:
        DataError: If there is neither, or the data set cannot be used.
    """
    pools, convs = list(pools), list(convs)
    if not has_results(path):
        return load_explorer(load_model(path, pools, convs), dataset, data_dir), None
    if not (Path(path) / FINAL_MODEL).is_file():
        return None, Results(path, pools, convs)
    explorer = load_explorer(load_model(path, pools, convs), dataset, data_dir)
    try:
        return explorer, Results(path, pools, convs)
    except DataError:  # the model does not need the folds
        return explorer, None
