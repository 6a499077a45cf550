"""What a cross-validation says of graphs that its networks were not trained on, and how far that can be relied on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.data.dataset import Task
from tapnet.errors import SettingError
from tapnet.experiments.trial import TrialResult
from tapnet.inference.calibration import Calibration, fit_calibration

if TYPE_CHECKING:
    from tapnet.experiments.cross_validate import CrossValidation

Array = NDArray[Any]


class OutOfFold(NamedTuple):
    """Each graph's target, and what the network says that was not trained on it.

    Attributes:
        task: What is predicted.
        y: ``[n]`` classes, or ``[n, T]`` with NaN for what is missing.
        values: ``[n, C]`` probabilities, ``[n, T]`` of labels, or numbers.
        folds: ``[n]`` the number of the fold that each graph was tested in.
    """

    task: Task
    y: Array
    values: Array
    folds: Array


def of_first_seed(results: Sequence[TrialResult]) -> list[TrialResult]:
    """One result for each fold, where a run has several seeds."""
    return [r for r in results if r.trial.seed == results[0].trial.seed]


def out_of_fold(results: Sequence[TrialResult]) -> OutOfFold | None:
    """The out-of-fold predictions of a run, by the number of the graph.

    Args:
        results: Of the folds. A graph that is tested in several folds counts once.

    Returns:
        None where results were stored without predictions, or a prediction is not a number.
    """
    chosen = of_first_seed(results)
    found = [p for r in chosen if (p := r.predicted.get("test")) is not None]
    if len(found) < len(chosen):
        return None
    folds = np.concatenate([np.full(len(p.graphs), r.trial.fold) for p, r in zip(found, chosen, strict=True)])
    _, once = np.unique(np.concatenate([p.graphs for p in found]), return_index=True)
    y, values = (np.concatenate([getattr(p, name) for p in found])[once] for name in ("y", "values"))
    if not np.isfinite(values).all():
        return None
    return OutOfFold(chosen[0].trial.task, y, values, folds[once])


def calibration(result: CrossValidation | str | Path) -> Calibration:
    """How well the probabilities of a cross-validation hold, and the calibration that makes them hold better.

    Args:
        result: Of :func:`tapnet.cross_validate`, or the folder of a run.

    Returns:
        The scores before and after, each on graphs held out; printed in a line, ``plot()`` draws the reliability
        diagram.

    Raises:
        SettingError: If the run predicts numbers, or its system gives no probabilities, or it was stored without
            predictions.
        DataError: If the folder has no run.

    Example:
        >>> import tapnet
        >>> found = tapnet.calibration(tapnet.cross_validate("MUTAG", epochs=2, folds=3))
        >>> found.after["log_loss"] <= found.before["log_loss"] + 0.1
        True
    """
    if isinstance(result, str | Path):
        from tapnet.experiments.load_run import load_run

        result = load_run(result)
    trial = result.results[0].trial
    if trial.task == "regression":
        raise SettingError("numbers are predicted, and only probabilities are calibrated")
    if not result.has_epochs:
        raise SettingError(f"{trial.model} gives classes without probabilities, so there is nothing to calibrate")
    found = out_of_fold(result.results)
    if found is None:
        raise SettingError(
            "the run was stored without predictions, or they are no numbers: there is nothing to measure"
        )
    note = "the test folds chose the epoch, so all of this looks better than it is" if trial.protocol == "paper" else ""
    return fit_calibration(*found, note=note)
