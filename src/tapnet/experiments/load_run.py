"""A stored run: its results, and the confusion matrix of its models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.errors import DamagedFileWarning, DataError, TapnetError
from tapnet.experiments.cross_validate import CrossValidation
from tapnet.experiments.nested import NestedValidation, load_outer_folds
from tapnet.experiments.store import Store
from tapnet.experiments.trial import digest
from tapnet.files import path_exists, printable
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import RUN
from tapnet.inference.training_data import load_training_data
from tapnet.nn.conv.registry import find_conv
from tapnet.nn.pool.registry import find_name, resolve
from tapnet.training.metrics import METRICS


def load_run(folder: str | Path, pools: Iterable[type | str] = (), convs: Iterable[type | str] = ()) -> CrossValidation:
    """Reads the results that `cross_validate` or ``tapnet train`` stored in a folder.

    Args:
        folder: Of the run; the folds that are finished are read.
        pools: The user's own pooling layers that the run may use: classes, or their names ``"package.module:Class"``,
            which are imported.
        convs: The convolutions of PyG, or of the user's own, that it may use, likewise.

    Raises:
        SettingError: If the run uses a pooling layer that is not known here.
        DataError: If the folder has no run, or no fold of it is finished.

    Example:
        >>> load_run("runs/MUTAG").mean  # doctest: +SKIP
        86.7
    """
    for pool in pools:
        resolve(pool, allow_import=True)
    for conv in convs:
        find_conv(conv, allow_import=True)
    folder = Path(folder)
    try:
        run = Store(folder).load_run()
        wanted = set(map(str, run["trials"]))
    except (FileNotFoundError, NotADirectoryError):
        if not path_exists(folder):
            raise DataError(f"{folder}: no such folder") from None
        raise DataError(f"{folder}: not the folder of a cross-validation (it has no {RUN})") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{folder / RUN}: cannot be read ({error})") from None
    stored = (r for r in Store(folder).results() if r.trial.key in wanted)
    results = sorted(stored, key=lambda r: (r.trial.seed, r.trial.fold))
    if not results:
        settings = run.get("settings")
        for key, find in (("pool", find_name), ("conv", find_conv)):
            if isinstance(settings, dict) and key in settings:
                find(settings[key])  # else its results cannot be read
        raise DataError(f"{folder}: no fold of the run is finished yet")
    if run.get("state") == "complete" and len(results) < len(wanted):
        lost = f"{len(wanted) - len(results)} of the run's {len(wanted)} results are not there any more"
        warnings.warn(f"{folder}: {lost}; running it again computes them again", DamagedFileWarning, stacklevel=2)
    data, baseline = (value if isinstance(value := run.get(key), dict) else None for key in ("data", "baseline"))
    if baseline is not None and not all(value is None or isinstance(value, int | float) for value in baseline.values()):
        baseline = None
    sizes = run.get("sizes")
    if not isinstance(sizes, dict) or not all(isinstance(value, int | float) for value in sizes.values()):
        sizes = None
    named = run.get("metrics")
    every = [run.get("metric"), *(named if isinstance(named, dict) else ())]
    metrics = [name for name in dict.fromkeys(every) if isinstance(name, str) and name in METRICS]
    notes = tuple(map(printable, run["notes"])) if isinstance(run.get("notes"), list) else ()
    targets = tuple(map(printable, run["targets"])) if isinstance(run.get("targets"), list) else ()
    about: dict[str, Any] = {"folder": folder, "data": data, "baseline": baseline, "notes": notes, "targets": targets}
    about["sizes"] = sizes
    if run.get("protocol") == "nested" and "configs" in run:
        try:
            outer = load_outer_folds(run["folds"], results)
            given, search = dict(run["changed"]), str(run["search"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{folder / RUN}: cannot be read ({error})") from None
        if not outer:
            raise DataError(f"{folder}: no fold of the run is finished yet")
        results = [result for fold in outer for result in fold.results]
        return NestedValidation(results, metrics, outer=outer, given=given, search=search, **about)
    return CrossValidation(results, metrics, **about)


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
    if run.results[0].trial.task != "classification":
        return None
    if run.folder is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the data when they were trained on; about categories that a fold lacks
        try:
            models = [SavedModel.load(Store(run.folder).model_file(r.trial)) for r in run.results]
            data = load_training_data(models[0], data_dir)
        except TapnetError:
            return None
        if any(digest(m.card.to_dict()["trial"]) != r.trial.key for m, r in zip(models, run.results, strict=True)):
            return None  # models of other trials
        if not models[0].is_training_data(data):
            return None
        counts = np.zeros((data.num_classes, data.num_classes), dtype=np.int64)
        for result, model in zip(run.results, models, strict=True):
            if (predicted_of := result.predicted.get("test")) is not None:
                test = torch.from_numpy(predicted_of.graphs.astype(np.int64))
            elif result.trial.split:
                return None  # the user's own splits are not stored
            else:
                test = result.trial.split_of(data).test
            predicted = model.probabilities(model.encode(data.subset(test))).argmax(dim=1)
            np.add.at(counts, (data.y[test].numpy(), predicted.numpy()), 1)
    return counts, tuple(map(printable, data.class_names or data.classes))
