"""A stored run: its results, and the confusion matrix of its models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError, TapnetError
from tapnet.experiments.cross_validate import CrossValidation
from tapnet.experiments.store import Store
from tapnet.files import is_special_file, printable
from tapnet.inference.model import SavedModel
from tapnet.io.load import load_dataset
from tapnet.nn.pool.registry import find_name, resolve
from tapnet.training.protocol import split


def load_run(folder: str | Path, pools: Iterable[type | str] = ()) -> CrossValidation:
    """Reads the results that `cross_validate` or ``tapnet train`` stored in a folder.

    Args:
        folder: Of the run; the folds that are finished are read.
        pools: The user's own pooling layers that the run may use: classes, or their names ``"package.module:Class"``,
            which are imported.

    Raises:
        SettingError: If the run uses a pooling layer that is not known here.
        DataError: If the folder has no run, or no fold of it is finished.

    Example:
        >>> load_run("runs/MUTAG").mean  # doctest: +SKIP
        86.7
    """
    for pool in pools:
        resolve(pool, allow_import=True)
    folder = Path(folder)
    file = folder / "run.json"
    try:
        if is_special_file(file):
            raise OSError("not a file")
        run = json.loads(file.read_text())
        wanted = set(map(str, run["trials"]))
    except FileNotFoundError:
        raise DataError(f"{folder}: not the folder of a cross-validation (it has no run.json)") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
    results = sorted((r for r in Store(folder).results() if r.trial.key in wanted), key=lambda r: r.trial.fold)
    if not results:
        if isinstance(settings := run.get("settings"), dict) and "pool" in settings:
            find_name(settings["pool"])  # else its results cannot be read
        raise DataError(f"{folder}: no fold of the run is finished yet")
    data, baseline = (value if isinstance(value := run.get(key), dict) else None for key in ("data", "baseline"))
    if baseline is not None and not isinstance(baseline.get("accuracy"), int | float):
        baseline = None
    notes = tuple(map(printable, run["notes"])) if isinstance(run.get("notes"), list) else ()
    return CrossValidation(results, folder, data=data, baseline=baseline, notes=notes)


def confusion_matrix(
    run: CrossValidation, data_dir: str | Path | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]] | None:
    """Counts the true and predicted classes over all test folds, by each fold's stored model.

    Args:
        run: With its folder.
        data_dir: The folder with data sets by name.

    Returns:
        The graphs of each class (row) that were predicted as each class (column), and the names of the classes; None
        where the models, or the data that they were trained on, are not here.
    """
    if run.folder is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the data when they were trained on; about categories that a fold lacks
        try:
            models = [SavedModel.load(Store(run.folder).model_file(r.trial)) for r in run.results]
        except TapnetError:
            return None
        data = _training_data(run, models[0], data_dir)
        if data is None:
            return None
        counts = np.zeros((data.num_classes, data.num_classes), dtype=np.int64)
        for trial, model in zip((r.trial for r in run.results), models, strict=True):
            test = split(data.y, trial.protocol, trial.folds, trial.fold).test
            predicted = model.probabilities(model.encode(data.subset(test))).argmax(dim=1)
            np.add.at(counts, (data.y[test].numpy(), predicted.numpy()), 1)
    return counts, tuple(map(printable, data.class_names or data.classes))


def _training_data(run: CrossValidation, model: SavedModel, data_dir: str | Path | None) -> GraphDataset | None:
    """By the name of the data set, or from where the run found it; None if that is not the same any more."""
    first, source = run.results[0].trial, (run.data or {}).get("source")
    places: list[str | Path] = [first.dataset, *([Path(source)] if source and isinstance(source, str) else [])]
    for place in places:
        with suppress(TapnetError):
            data = load_dataset(place, data_dir, features=model.features, download=False)
            if data.checksum == first.data:
                return data
    return None
