"""Metrics by name, as scikit-learn computes them; accuracies are in percent."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapnet.data.dataset import Task
from tapnet.errors import SettingError, did_you_mean
from tapnet.models.majority import trivial_predictions as trivial_predictions

Array = NDArray[Any]
ROUNDING = 1e-3  # of percents; those of stored trials have six digits


@dataclass(frozen=True)
class Metric:
    """One way to measure predictions.

    Attributes:
        name: as users and results name it.
        function: targets and predictions of one target → a number.
        tasks: the kinds of targets that it is for.
        higher_is_better: whether it is to be large.
        of: what it takes of a prediction: "classes", "probabilities" or "numbers".
        percent: whether it is reported in percent.
        range: between the lowest and the highest value that it can have, as it is reported.
        of_last_class: whether, of two classes, it is that of the last one, which counts as the positive one.
    """

    name: str
    function: Callable[[Array, Array], float]
    tasks: tuple[Task, ...]
    higher_is_better: bool = True
    of: str = "classes"
    percent: bool = False
    range: float = math.inf
    of_last_class: bool = False

    def in_words(self, value: float, deviation: float | None = None) -> str:
        """A value as it is printed: accuracies in percent, others with three digits and their name.

        A deviation that is None or NaN, as that of one fold, is left out.
        """
        name = "" if self.name == "accuracy" else f"{self.name} "
        if math.isnan(value):
            return f"{name}undefined"
        spread = "" if deviation is None or math.isnan(deviation) else f" ± {self.digits(deviation)}"
        return f"{name}{self.digits(value)}{spread}{' %' if self.percent else ''}"

    def in_table(self, value: float | None, deviation: float | None) -> str:
        """A value and its deviation in a table; of one fold there is no deviation."""
        if value is None:
            return "undefined"
        return self.digits(value) + ("" if deviation is None else f" ± {self.digits(deviation)}")

    def digits(self, value: float, sign: str = "") -> str:
        """A value in a table: percents with one digit after the point, others with three; sign ``"+"`` always signs."""
        return f"{value:{sign}.{1 if self.percent else 3}f}"

    def is_better(self, value: float, than: float) -> bool:
        """Whether a value is better than another, by more than rounding."""
        margin = ROUNDING if self.percent else ROUNDING / 100
        return value > than + margin if self.higher_is_better else value < than - margin

    def __call__(self, y: Array, predicted: Array) -> float:
        """The metric; the mean over the targets that it can be computed for, where there are several.

        Args:
            y: ``[n]`` classes, or ``[n, T]`` labels or numbers with NaN for what is missing.
            predicted: ``[n, C]`` probabilities of the classes, or ``[n, T]`` probabilities of the labels, or numbers.

        Returns:
            NaN where it is not defined, such as the ROC-AUC of graphs of one class.
        """
        if y.ndim == 1:
            return self._of_one(y, predicted)
        defined = [value for value in self.by_target(y, predicted) if np.isfinite(value)]
        return float(np.mean(defined)) if defined else float("nan")

    def by_target(self, y: Array, predicted: Array) -> list[float]:
        """The metric of each of several targets, NaN where it is not defined.

        Args:
            y: ``[n, T]`` labels or numbers with NaN for what is missing.
            predicted: ``[n, T]`` probabilities of the labels, or numbers.
        """
        found = []
        for target, column in zip(y.T, predicted.T, strict=True):
            there = ~np.isnan(target)
            one, value = target[there], column[there]
            if self.of != "numbers":
                one, value = one.astype(np.int64), np.stack([1 - value, value], 1)
            found.append(self._of_one(one, value) if there.any() else float("nan"))
        return found

    def _of_one(self, y: Array, predicted: Array) -> float:
        given = predicted.argmax(1) if self.of == "classes" else predicted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is not defined is NaN
            try:
                return (100.0 if self.percent else 1.0) * float(self.function(y, given))
            except ValueError:  # one class only, or NaN among the predictions
                return float("nan")


def _roc_auc(y: Array, p: Array) -> float:
    from sklearn.metrics import roc_auc_score

    if p.shape[1] == 2:
        return float(roc_auc_score(y, p[:, 1]))
    return float(roc_auc_score(y, p, multi_class="ovr", labels=np.arange(p.shape[1])))


def _average_precision(y: Array, p: Array) -> float:
    from sklearn.metrics import average_precision_score

    if p.shape[1] == 2:
        return float(average_precision_score(y, p[:, 1]))
    return float(average_precision_score(np.eye(p.shape[1])[y], p))


def _log_loss(y: Array, p: Array) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, p.astype(np.float64), labels=np.arange(p.shape[1])))


def _brier(y: Array, p: Array) -> float:
    """Of two classes as scikit-learn has it, and the sum over the classes where there are more."""
    if p.shape[1] == 2:
        return float(np.mean((p[:, 1] - y) ** 2))
    return float(np.mean(((p - np.eye(p.shape[1])[y]) ** 2).sum(1)))


def _f1(y: Array, p: Array) -> float:
    """Of two classes that of the last one; of more the mean over those that occur."""
    from sklearn.metrics import f1_score

    return float(f1_score(y, p.argmax(1), average="binary" if p.shape[1] == 2 else "macro", zero_division=0))


def _of_sklearn(name: str) -> Callable[[Array, Array], float]:
    def function(y: Array, predicted: Array) -> float:
        from sklearn import metrics

        return float(getattr(metrics, name)(y, predicted))

    return function


def _mae(y: Array, predicted: Array) -> float:
    return float(np.mean(np.abs(y - predicted)))


def _rmse(y: Array, predicted: Array) -> float:
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def _r2(y: Array, predicted: Array) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(y, predicted)) if len(y) > 1 else float("nan")


def _spearman(y: Array, predicted: Array) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(y, predicted).statistic) if len(y) > 1 else float("nan")


_CLASSES: tuple[Task, ...] = ("classification", "multilabel")
_NUMBERS: tuple[Task, ...] = ("regression",)
METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", lambda y, p: float(np.mean(y == p)), _CLASSES, percent=True, range=100),
        Metric("balanced_accuracy", _of_sklearn("balanced_accuracy_score"), _CLASSES, percent=True, range=100),
        Metric("roc_auc", _roc_auc, _CLASSES, of="probabilities", range=1),
        Metric("average_precision", _average_precision, _CLASSES, of="probabilities", range=1, of_last_class=True),
        Metric("f1", _f1, _CLASSES, of="probabilities", range=1, of_last_class=True),
        Metric("mcc", _of_sklearn("matthews_corrcoef"), _CLASSES, range=2),
        Metric("log_loss", _log_loss, _CLASSES, higher_is_better=False, of="probabilities"),
        Metric("brier", _brier, _CLASSES, higher_is_better=False, of="probabilities"),
        Metric("mae", _mae, _NUMBERS, higher_is_better=False, of="numbers"),
        Metric("rmse", _rmse, _NUMBERS, higher_is_better=False, of="numbers"),
        Metric("r2", _r2, _NUMBERS, of="numbers"),
        Metric("spearman", _spearman, _NUMBERS, of="numbers", range=2),
    )
}
DEFAULT_METRIC: dict[Task, str] = {"classification": "accuracy", "multilabel": "roc_auc", "regression": "rmse"}


def find_metrics(names: str | Iterable[str] | None, task: Task) -> list[Metric]:
    """Metrics by name.

    Args:
        names: one name, several separated by commas or in a list; None means the task's usual one.
        task: what they are to measure.

    Raises:
        SettingError: for a name that there is not, or a metric of another kind of target.

    Example:
        >>> [metric.name for metric in find_metrics("roc_auc,f1", "classification")]
        ['roc_auc', 'f1']
    """
    words = names.split(",") if isinstance(names, str) else list(names or [DEFAULT_METRIC[task]])
    found = []
    for word in dict.fromkeys(word.strip().lower().replace("-", "_") for word in words):
        if word not in METRICS:
            raise SettingError(
                f"there is no metric {word!r}; known are {', '.join(METRICS)}{did_you_mean(word, METRICS)}"
            )
        if task not in METRICS[word].tasks:
            fitting = ", ".join(name for name, metric in METRICS.items() if task in metric.tasks)
            raise SettingError(f"the metric {word} is not for {task}; known for it are {fitting}")
        found.append(METRICS[word])
    return found
