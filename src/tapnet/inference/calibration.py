"""Calibration: probabilities that are as frequent as they say, fitted to what networks said of graphs held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tapnet.data.dataset import Task
from tapnet.inference.model_file import CalibrationRecord
from tapnet.training.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]
Method = Literal["none", "temperature", "isotonic"]

BINS = 10
LARGEST_LOG_TEMPERATURE = 4.0
FEWEST_OF_CURVE = 100  # graphs, for isotonic regression: a curve of fewer is noise
PARTS = 5  # to cross-validate in, where the graphs are all of one fold
TINY = 1e-7  # single precision cannot tell 1 from more than 1 - TINY
DIGITS = 6


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How often what is said with some probability is true.

    Attributes:
        confidence: ``[B]`` the mean probability in each bin that is not empty.
        frequency: ``[B]`` the share of true ones in it.
        count: ``[B]`` how many there are.
    """

    confidence: Array
    frequency: Array
    count: Array

    @property
    def error(self) -> float:
        """The expected calibration error: the mean difference of confidence and frequency over all predictions."""
        return float((self.count * np.abs(self.confidence - self.frequency)).sum() / max(self.count.sum(), 1))

    def to_dict(self) -> dict[str, list[float]]:
        """The three columns as JSON has them."""
        return {name: values.round(DIGITS).tolist() for name, values in vars(self).items()}


def reliability_curve(y: Array, probabilities: Array, bins: int = BINS) -> ReliabilityCurve:
    """Compares probabilities with frequencies in bins of equal width.

    Args:
        y: ``[n]`` classes, or ``[n, T]`` yes/no labels with NaN for what is missing.
        probabilities: ``[n, C]`` of the classes, of which the most probable one is looked at; or ``[n, T]`` of a yes.
        bins: How many.

    Example:
        >>> curve = reliability_curve(np.array([1, 1, 0]), np.array([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9]]))
        >>> round(curve.error, 3)
        0.233
    """
    if y.ndim == 1:
        said, true = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    else:
        there = ~np.isnan(y)
        said, true = probabilities[there], y[there] == 1
    said = said.astype(np.float64)
    place = np.minimum((said * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = count > 0
    means = [np.bincount(place, weights=column, minlength=bins)[filled] / count[filled] for column in (said, true)]
    return ReliabilityCurve(means[0], means[1], count[filled])


@dataclass(frozen=True)
class Calibration:
    """How well the probabilities of a cross-validation hold, before and after calibration.

    All of it is measured on graphs that were held out, from the network and from the calibration: each fold's
    probabilities are calibrated by what the other folds say.

    Attributes:
        record: The calibration that is fitted to all folds, with the scores before and after.
        curves: ``"before"`` and ``"after"``.
        note: What else there is to know; empty for most.
    """

    record: CalibrationRecord
    curves: Mapping[str, ReliabilityCurve]
    note: str = ""

    @property
    def method(self) -> Method:
        """``"temperature"``, ``"isotonic"``, or ``"none"`` where neither lowers the log loss."""
        return self.record.method

    @property
    def before(self) -> dict[str, float]:
        """``log_loss``, ``brier``, ``accuracy``, and ``ece``, the expected calibration error, as the networks say."""
        return self.record.before

    @property
    def after(self) -> dict[str, float]:
        """The same after calibration."""
        return self.record.after

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        scores = {"method": self.method, "graphs": self.record.graphs, "before": self.before, "after": self.after}
        curves = {when: curve.to_dict() for when, curve in self.curves.items()}
        return scores | {"reliability": curves, "note": self.note or None}

    def __str__(self) -> str:
        names = {"ece": "expected calibration error", "brier": "Brier score", "log_loss": "log loss"}
        before, after = ({**dict.fromkeys(names, np.nan), **scores} for scores in (self.before, self.after))
        note = f"; {self.note}" if self.note else ""
        if self.method == "none":
            scores = ", ".join(f"{words} {before[name]:.3f}" for name, words in names.items())
            how = f"{scores}; neither a temperature nor isotonic regression lowers the log loss"
            return f"Calibration on {self.record.graphs} held-out graphs: {how}{note}"
        pairs = ", ".join(f"{words} {before[name]:.3f} → {after[name]:.3f}" for name, words in names.items())
        if before.get("accuracy") != after.get("accuracy"):  # another class is the most probable one
            pairs += f", accuracy {before['accuracy']:.1f} → {after['accuracy']:.1f} %"
        return f"Calibration on {self.record.graphs} held-out graphs ({in_words(self.record)}): {pairs}{note}"

    def plot(self) -> Figure:
        """Draws the reliability diagram; a notebook displays the figure."""
        # By name, as pandas loads its plotting: drawing comes after inference, which needs none of it.
        figure: Figure = import_module("tapnet.viz").draw_calibration(self)
        return figure


def fit_calibration(task: Task, y: Array, probabilities: Array, folds: Array, note: str = "") -> Calibration:
    """Fits a calibration to out-of-fold probabilities, and measures it on folds that it was not fitted to.

    A temperature T makes softmax(log p / T) of the probabilities; isotonic regression makes any rising curve of each
    class's probability. Whichever has the lower log loss on held-out folds is taken, if it is lower than without.

    Args:
        task: "classification" or "multilabel".
        y: ``[n]`` classes, or ``[n, T]`` yes/no labels with NaN for what is missing.
        probabilities: ``[n, C]`` or ``[n, T]``, each by a network that was not trained on the graph.
        folds: ``[n]`` the number of the fold that each graph was tested in.
        note: What else there is to know.

    References:
        Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks, ICML 2017. Zadrozny, Elkan:
        Transforming Classifier Scores into Accurate Multiclass Probability Estimates, KDD 2002.
    """
    p = probabilities.astype(np.float64)
    method, after = _choose(task, y, p, folds)
    record = _fit(task, method, y, p)
    record = record.replace(graphs=len(y), before=_scores(y, p), after=_scores(y, after))
    return Calibration(record, {"before": reliability_curve(y, p), "after": reliability_curve(y, after)}, note)


def calibrate(task: Task, record: CalibrationRecord | None, probabilities: Array) -> Array:
    """Calibrated probabilities.

    Args:
        task: What is predicted; numbers stay as they are.
        record: The calibration; None and the method "none" leave everything as it is.
        probabilities: ``[n, C]`` of the classes, or ``[n, T]`` of the labels.
    """
    if record is None or record.method == "none" or task == "regression":
        return probabilities
    p = np.clip(probabilities.astype(np.float64), TINY, 1 - TINY)
    if record.method == "temperature":
        scaled = _log_odds(task, p) / np.array(record.temperature)
        return _softmax(scaled) if task == "classification" else _sigmoid(scaled)
    curves = [(np.array(curve["x"]), np.array(curve["y"])) for curve in record.isotonic]
    if task == "classification" and p.shape[1] == 2:
        second = np.interp(p[:, 1], *curves[0])
        return np.stack([1 - second, second], axis=1)
    found = np.stack([np.interp(column, *curve) for column, curve in zip(p.T, curves, strict=True)], axis=1)
    return found / found.sum(axis=1, keepdims=True) if task == "classification" else found


def in_words(record: CalibrationRecord) -> str:
    """The method, with its temperature where it is one."""
    one = record.method == "temperature" and len(record.temperature) == 1
    return f"temperature {record.temperature[0]:.2f}" if one else record.method


# ---- fitting ----


def _parts(folds: Array) -> list[Array]:
    """Masks of the graphs to be held out together: the folds, or fifths where there is one."""
    groups = folds if len(np.unique(folds)) > 1 else np.arange(len(folds)) % PARTS
    return [groups == number for number in np.unique(groups)] if len(folds) > 1 else []


def _choose(task: Task, y: Array, p: Array, folds: Array) -> tuple[Method, Array]:
    """The method with the lowest log loss on held-out folds (of equals the simpler), and their probabilities by it."""
    best: tuple[Method, Array] = ("none", p)
    methods: Sequence[Method] = ("temperature", "isotonic")
    for method in methods[: 2 if len(y) >= FEWEST_OF_CURVE else 1]:
        found = p.copy()
        for held_out in _parts(folds):
            record = _fit(task, method, y[~held_out], p[~held_out])
            found[held_out] = calibrate(task, record, p[held_out])
        if _log_loss(task, y, found) < _log_loss(task, y, best[1]) - TINY * len(y):
            best = method, found
    return best


def _fit(task: Task, method: Method, y: Array, p: Array) -> CalibrationRecord:
    if method == "temperature":
        columns = [(y, p)] if task == "classification" else list(zip(y.T, p.T, strict=True))
        return CalibrationRecord(method=method, temperature=[_temperature(task, *column) for column in columns])
    if method == "isotonic":
        names = [1] if p.shape[1] == 2 else range(p.shape[1])
        targets = [(y == c).astype(float) for c in names] if task == "classification" else list(y.T)
        said = [p[:, c] for c in names] if task == "classification" else list(p.T)
        return CalibrationRecord(method=method, isotonic=[_curve(*pair) for pair in zip(targets, said, strict=True)])
    return CalibrationRecord(method="none")


def _temperature(task: Task, y: Array, p: Array) -> float:
    """The temperature with the lowest log loss: a search over its logarithm, along which the loss has one minimum.

    A share of 1 / (n + 2) of each target is given to the other classes (Platt's rule): n graphs that are all right do
    not make the next one certain.
    """
    from scipy.optimize import minimize_scalar

    there = ~np.isnan(y.astype(float))
    if not there.any():
        return 1.0
    y, logits = y[there], _log_odds(task, np.clip(p[there], TINY, 1 - TINY))
    share = 1 / (len(y) + 2)
    if task == "classification":
        targets = np.full(logits.shape, share / max(logits.shape[1] - 1, 1))
        targets[np.arange(len(y)), y] = 1 - share
    else:
        logits, yes = np.stack([np.zeros_like(logits), logits], axis=1), np.where(y == 1, 1 - share, share)
        targets = np.stack([1 - yes, yes], axis=1)
    logits = logits - logits.max(axis=1, keepdims=True)

    def loss(log_temperature: float) -> float:
        scaled = logits / np.exp(log_temperature)
        return float(np.log(np.exp(scaled).sum(axis=1)).sum() - (targets * scaled).sum())

    bounds = (-LARGEST_LOG_TEMPERATURE, LARGEST_LOG_TEMPERATURE)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return round(float(np.exp(found.x)), DIGITS)


def _curve(y: Array, p: Array) -> dict[Literal["x", "y"], list[float]]:
    """The corners of a rising curve; it stays off 0 and 1, of which n graphs cannot speak.

    Isotonic regression is a staircase; the middles of its steps are joined, so that graphs keep their order (Oron,
    Flournoy: Centered Isotonic Regression, 2017).
    """
    from sklearn.isotonic import IsotonicRegression

    there = ~np.isnan(y)
    if not there.any():
        return {"x": [0.0, 1.0], "y": [TINY, 1.0]}
    margin = 1 / (int(there.sum()) + 2)
    steps = IsotonicRegression(y_min=margin, y_max=1 - margin).fit_transform(p[there], y[there])
    heights, step = np.unique(steps, return_inverse=True)
    middles = np.bincount(step, weights=p[there]) / np.bincount(step)
    return {"x": [round(float(v), 8) for v in middles], "y": [round(float(v), 8) for v in heights]}


def _log_loss(task: Task, y: Array, p: Array) -> float:
    """Summed over the graphs, or over the labels that are there."""
    p = np.clip(p, TINY, 1 - TINY)
    if task == "classification":
        return float(-np.log(p[np.arange(len(y)), y]).sum())
    return float(-np.nansum(np.where(np.isnan(y), np.nan, np.log(np.where(y == 1, p, 1 - p)))))


def _scores(y: Array, p: Array) -> dict[str, float]:
    found = {name: METRICS[name](y, p) for name in ("log_loss", "brier", "accuracy")}
    found["ece"] = reliability_curve(y, p).error
    return {name: round(value, DIGITS) for name, value in found.items() if np.isfinite(value)}


def _log_odds(task: Task, p: Array) -> Array:
    odds: Array = np.log(p) if task == "classification" else np.log(p) - np.log1p(-p)
    return odds


def _softmax(logits: Array) -> Array:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _sigmoid(logits: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -logits)))
