"""Pictures of a cross-validation: learning curves, the confusion matrix, and how well probabilities hold."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tapnet.errors import DataError, SettingError
from tapnet.training.metrics import METRICS
from tapnet.training.protocol import test_metric
from tapnet.viz.style import COLOURS, GREY, INK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tapnet.experiments.cross_validate import CrossValidation
    from tapnet.inference.calibration import Calibration

MOST_NAMED = 30  # curves in a legend


def plot_run(run: str | Path | CrossValidation, data_dir: str | Path | None = None) -> Figure:
    """Draws a cross-validation: learning curves, confusion matrix (with models and data here), reliability diagram.

    Args:
        run: The result of :func:`tapnet.cross_validate`, or the folder of a run.
        data_dir: The folder with data sets by name.

    Returns:
        The figure, with the accuracy and its protocol above it; :func:`~tapnet.viz.style.save` writes it.

    Raises:
        DataError: If the folder has no run, or the system is not trained in epochs.

    Warns:
        UserWarning: If there is no confusion matrix.

    Example:
        >>> import tapnet
        >>> figure = plot_run(tapnet.cross_validate("MUTAG", epochs=2, folds=3, out="run"))  # doctest: +SKIP
    """
    from tapnet.experiments.calibration import calibration
    from tapnet.experiments.load_run import confusion_matrix, load_run

    result = load_run(run) if isinstance(run, str | Path) else run
    _check_epochs(run, result)
    counted, calibrated = confusion_matrix(result, data_dir), None
    with suppress(SettingError):  # numbers, or a run without predictions
        calibrated = calibration(result)
    if counted is None and result.results[0].trial.task == "classification":
        warnings.warn(
            "no confusion matrix: the run's models, or the data that it was trained on, are not here", stacklevel=2
        )
    confusion, classes = counted or (None, ())
    return draw_run([r.curves for r in result.results], confusion, classes, repr(result), calibrated)


def plot_folds(run: str | Path | CrossValidation) -> Figure:
    """Draws the learning curves of every fold of a cross-validation, with the epoch that the protocol reports.

    Args:
        run: The result of :func:`tapnet.cross_validate`, or the folder of a run.

    Returns:
        The figure: on the left the metric, on the right the loss, by validation graphs where there are any.

    Raises:
        DataError: If the folder has no run, or the system is not trained in epochs.
    """
    from tapnet.experiments.load_run import load_run

    result = load_run(run) if isinstance(run, str | Path) else run
    _check_epochs(run, result)
    metric = test_metric(result.results[0].curves)
    loss = "validation_loss" if "validation_loss" in result.results[0].curves else "train_loss"
    figure, axes = new_figure(8.4, 3.8, 1, 2)
    titles = {f"test_{metric}": f"test {metric_title(metric)}", loss: loss.replace("_", " ")}
    for i, one in enumerate(result.results):
        style = {"color": COLOURS[i % 7], "linestyle": ("-", "--", ":", "-.")[i // 7 % 4], "linewidth": 1.0}
        label = f"fold {one.trial.fold}" + (f", seed {one.trial.seed}" if len(result.seeds) > 1 else "")
        for ax, key in zip(axes.flat, titles, strict=True):
            values = one.curves.get(key, ())
            ax.plot(np.arange(1, len(values) + 1), values, label=label, **style)
            if one.reading.epoch <= len(values):
                ax.plot(one.reading.epoch, values[one.reading.epoch - 1], "o", color=style["color"], markersize=4)
    for ax, word in zip(axes.flat, titles.values(), strict=True):
        ax.set_xlabel("epoch (point: the one that counts)", fontsize=8)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylabel(word, fontsize=8)
        ax.tick_params(labelsize=8)
        ax.grid(color="#eeeeee")
    if len(result.results) <= MOST_NAMED:
        figure.legend(*axes[0, 0].get_legend_handles_labels(), fontsize=7, frameon=False, loc="outside right center")
    figure.suptitle(textwrap.fill(repr(result), 100), fontsize=9, parse_math=False)
    return figure


def _check_epochs(run: object, result: CrossValidation) -> None:
    if not result.has_epochs:
        model = result.results[0].trial.model
        raise DataError(f"{run}: {model} is not trained in epochs, so there are no curves to show")


def draw_run(
    curves: Sequence[Mapping[str, Sequence[float]]],
    confusion: NDArray[np.int64] | None,
    classes: Sequence[str],
    title: str,
    calibration: Calibration | None = None,
) -> Figure:
    """Draws the learning curves of a cross-validation, its confusion matrix and its reliability diagram.

    Args:
        curves: For each fold, the values of ``test_accuracy``, ``validation_accuracy``, ``train_loss`` and
            ``validation_loss`` by epoch, where there are any. Their mean is drawn with its standard deviation.
        confusion: How many graphs of each class (row) were predicted as each class (column), over all test folds; None
            leaves it out.
        classes: The names of the classes.
        title: Written above the picture.
        calibration: What the reliability diagram shows; None leaves it out.

    Returns:
        The figure; :func:`~tapnet.viz.style.save` writes it.
    """
    metric = test_metric(curves[0])
    names = {f"test_{metric}": "test", f"validation_{metric}": "validation"}
    losses = {"train_loss": "training", "validation_loss": "validation"}
    panels = 2 + (confusion is not None) + (calibration is not None)
    figure, axes = new_figure(3.6 * panels, 3.6, 1, panels)
    for ax, shown, word in zip(axes.flat, (names, losses), (metric_title(metric), "loss"), strict=False):
        for i, (key, label) in enumerate(shown.items()):
            folds = [np.asarray(fold[key], dtype=float) for fold in curves if key in fold]
            if not folds:
                continue
            values = np.stack([fold[: min(map(len, folds))] for fold in folds])
            epoch, mean, spread = np.arange(1, values.shape[1] + 1), values.mean(axis=0), values.std(axis=0)
            ax.plot(epoch, mean, color=COLOURS[i], linestyle="-" if i == 0 else "--", label=label)
            ax.fill_between(epoch, mean - spread, mean + spread, color=COLOURS[i], alpha=0.2, linewidth=0)
        ax.set_xlabel("epoch", fontsize=8)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylabel(word, fontsize=8)
        ax.tick_params(labelsize=8)
        ax.grid(color="#eeeeee")
        ax.legend(fontsize=8, frameon=False)
    if confusion is not None:
        _draw_confusion(axes[0, 2], confusion, classes)
    if calibration is not None:
        _draw_reliability(axes[0, -1], calibration)
    figure.suptitle(textwrap.fill(title, 45 * panels), fontsize=10, parse_math=False)
    return figure


def draw_calibration(calibration: Calibration) -> Figure:
    """Draws a reliability diagram: how often predictions of each probability are right, before and after calibration.

    Args:
        calibration: Of :func:`tapnet.calibration`.

    Returns:
        The figure; :func:`~tapnet.viz.style.save` writes it.
    """
    figure, axes = new_figure(4.2, 4.2)
    _draw_reliability(axes[0, 0], calibration)
    return figure


def metric_title(metric: str) -> str:
    """A metric as the title of an axis."""
    return f"{metric.replace('_', ' ')}{' in percent' if METRICS[metric].percent else ''}"


def _draw_reliability(ax: Axes, calibration: Calibration) -> None:
    """The area of a point is the share of predictions in its bin."""
    shown = ("before",) if calibration.method == "none" else ("before", "after")
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="perfect")
    for when, colour, line, marker in zip(shown, COLOURS, ("-", "--"), "os", strict=False):
        curve = calibration.curves[when]
        error = f"error {curve.error:.3f}"
        label = f"as predicted, {error}" if when == "before" else f"{calibration.method}, {error}"
        ax.plot(curve.confidence, curve.frequency, color=colour, linestyle=line, label=label)
        areas = 10 + 190 * curve.count / curve.count.sum()
        ax.scatter(curve.confidence, curve.frequency, areas, color=colour, marker=marker, edgecolor="white", zorder=3)
    lowest = min(float(curve.confidence.min(initial=1)) for curve in calibration.curves.values())
    ax.set_xlim(0.48 if lowest >= 0.5 else -0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("predicted probability", fontsize=8)
    ax.set_ylabel("share that is right", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.grid(color="#eeeeee")
    ax.legend(fontsize=8, frameon=False, loc="lower right")


def _draw_confusion(ax: Axes, confusion: NDArray[np.int64], classes: Sequence[str]) -> None:
    share = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(*confusion.shape):
        ink = "white" if share[i, j] > 0.55 else INK
        ax.text(j, i, f"{confusion[i, j]}\n{100 * share[i, j]:.0f} %", ha="center", va="center", fontsize=8, color=ink)
    ax.set_xticks(range(len(classes)), classes, fontsize=8, rotation=30 if max(map(len, classes)) > 6 else 0)
    ax.set_yticks(range(len(classes)), classes, fontsize=8)
    for text in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        text.set_parse_math(False)  # a class may be called "$"
    ax.set_xlabel("predicted", fontsize=8)
    ax.set_ylabel("true", fontsize=8)
