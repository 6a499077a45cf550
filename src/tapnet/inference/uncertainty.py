"""How sure a prediction is: sets and intervals with a promised coverage, and the distance from the training graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet.data.dataset import Task
from tapnet.errors import DataError, SettingError
from tapnet.inference.model_file import ConformalRecord, ReferenceRecord

Array = NDArray[Any]

MOST_SCORES = 10_000  # graphs whose scores a model file keeps; any sample of them promises the same
REPORTED = (0.8, 0.9, 0.95)  # confidences whose measured coverage a model file names
MOST_DIRECTIONS = 8
MOST_DECOMPOSED = 1000  # training graphs whose principal directions are taken
UNLIKE = 0.99  # a graph farther away than this share of held-out graphs is marked
ELEMENTS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of G graphs, and how sure it is.

    Attributes:
        values: ``[G, C]`` probabilities of the classes, ``[G, T]`` of the labels, or numbers.
        std: ``[G, C]`` or ``[G, T]`` the standard deviation over the networks of an ensemble; None of one network.
        sets: Whether each class is in a graph's set, ``[G, C]``, or no and yes of each label, ``[G, T, 2]``; None for
            numbers, and where no confidence was asked for.
        low: ``[G, T]`` the lower ends of the intervals of numbers; else None.
        high: ``[G, T]`` the upper ends.
        distance: ``[G]`` the share of held-out training graphs that are nearer to the training graphs; None where the
            model file does not say what these were like.
        unlike_training: ``[G]`` what is unlike the training graphs: "distance", "categories", "size", separated by
            "; "; empty for most graphs. None as above.
    """

    values: Tensor
    std: Tensor | None = None
    sets: Array | None = None
    low: Array | None = None
    high: Array | None = None
    distance: Array | None = None
    unlike_training: Array | None = None

    def __getitem__(self, rows: Any) -> Answers:
        """Those of some graphs, by a mask or by numbers."""
        given: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: value[rows] for name, value in given.items() if value is not None})

    @classmethod
    def join(cls, parts: Sequence[Answers]) -> Answers:
        """Those of several groups of graphs, by the same model."""
        parts = [part for part in parts if len(part.values)] or parts[:1]
        columns: dict[str, Any] = {f.name: [getattr(part, f.name) for part in parts] for f in fields(cls)}
        for name, found in columns.items():
            if found[0] is None:
                columns[name] = None
            else:
                columns[name] = torch.cat(found) if isinstance(found[0], Tensor) else np.concatenate(found)
        return cls(**columns)


# ---- conformal prediction ----


def conformal_scores(
    task: Task, y: Array, values: Array, folds: Array, numbers: Sequence[int] | None = None
) -> ConformalRecord | None:
    """How far off networks were for graphs that they were not trained on, as a model file keeps it.

    The score of a class is 1 - p, and 0 for the most probable class; of a number it is the distance.

    Args:
        task: What is predicted.
        y: ``[n]`` classes, or ``[n, T]`` with NaN for what is missing.
        values: ``[n, C]`` or ``[n, T]``, each by a network that was not trained on the graph.
        folds: ``[n]`` the number of the fold that each graph was tested in.
        numbers: Of the folds, in the order of an ensemble's networks; None takes those that occur.

    Returns:
        None where a target column has no value at all.
    """
    if len(y) > MOST_SCORES:
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_SCORES])
        y, values, folds = y[some], values[some], folds[some]
    if task == "classification":
        columns = [_class_scores(values)[np.arange(len(y)), y]]
    elif task == "multilabel":
        columns = [np.where(t == 1, *_label_scores(p)[::-1]) for t, p in zip(y.T, values.T, strict=True)]
        columns = [np.where(np.isnan(t), np.nan, column) for t, column in zip(y.T, columns, strict=True)]
    else:
        columns = list(np.abs(y.astype(np.float64) - values).T)
    numbers = np.unique(folds).tolist() if numbers is None else numbers
    scores = [[_listed(column[(folds == fold) & ~np.isnan(column)]) for fold in numbers] for column in columns]
    if not all(any(column) for column in scores):
        return None
    record = ConformalRecord(scores=scores, graphs=len(y))
    coverage = {str(c): measured_coverage(record, c) for c in REPORTED if c <= largest_confidence(record)}
    return record.replace(coverage={c: round(share, 6) for c, share in coverage.items()})


def largest_confidence(record: ConformalRecord) -> float:
    """The largest confidence that there are enough held-out graphs for: n / (n + 1)."""
    fewest = min(sum(map(len, column)) for column in record.scores)
    return fewest / (fewest + 1)


def check_confidence(record: ConformalRecord | None, confidence: float) -> ConformalRecord:
    """The record, if it can promise this confidence.

    Raises:
        SettingError: If the confidence is not between 0 and 1, or there are too few held-out graphs for it.
        DataError: If the model file has no record.
    """
    if not 0 < confidence < 1:
        raise SettingError(f"confidence is a share between 0 and 1, such as 0.9, not {confidence:g}")
    if record is None:
        reason = (
            "the model file does not say how far off the model was for held-out graphs, so no confidence is promised"
        )
        raise DataError(f"{reason}; final models of this version do: train one")
    if confidence > largest_confidence(record) + 1e-12:
        needed = math.ceil(round(confidence / (1 - confidence), 6))
        fewest = min(sum(map(len, column)) for column in record.scores)
        raise SettingError(
            f"a confidence of {confidence:g} needs at least {needed} held-out graphs, and the model has {fewest}: "
            f"confidence is at most {math.floor(1000 * largest_confidence(record)) / 1000:g}"
        )
    return record


def measured_coverage(record: ConformalRecord, confidence: float) -> float:
    """The share of held-out graphs whose set or interval is right, where the other folds say how wide it has to be.

    Args:
        record: With scores by fold. Of one fold, each half is tested by the other.
        confidence: What is promised.

    Returns:
        The share over all graphs and target columns.
    """
    right = total = 0
    for column in record.scores:
        folds = [np.array(fold) for fold in column]
        if len(folds) == 1:
            folds = [folds[0][::2], folds[0][1::2]]
        for i, fold in enumerate(folds):
            others = np.concatenate([*folds[:i], *folds[i + 1 :]])
            rank = _rank(len(others), confidence)
            limit = np.partition(others, rank - 1)[rank - 1] if rank <= len(others) else np.inf
            right, total = right + int((fold <= limit).sum()), total + len(fold)
    return right / max(total, 1)


def prediction_sets(record: ConformalRecord, task: Task, members: Array, confidence: float) -> Array:
    """The classes that cannot be ruled out.

    Each member is compared with the scores of the fold that it was not trained on (CV+); one network with all of
    them. With scores s of n graphs, a class stays unless ceil((n + 1) · confidence) of them are smaller than its own.

    Args:
        record: The scores.
        task: "classification" or "multilabel".
        members: ``[M, G, C]`` or ``[M, G, T]`` probabilities by each network.
        confidence: The share of graphs whose set is to hold the true class.

    Returns:
        ``[G, C]``, or ``[G, T, 2]`` for the no and the yes of each label.

    References:
        Romano, Sesia, Candès: Classification with Valid and Adaptive Coverage, NeurIPS 2020. Sadinle, Lei, Wasserman:
        Least Ambiguous Set-Valued Classifiers with Bounded Error Levels, JASA 2019.
    """
    if task == "classification":
        return _not_ruled_out(record.scores[0], np.stack([_class_scores(p) for p in members]), confidence)
    columns = [np.stack([np.stack(_label_scores(p), -1) for p in label]) for label in np.moveaxis(members, 2, 0)]
    found = [_not_ruled_out(scores, own, confidence) for scores, own in zip(record.scores, columns, strict=True)]
    return np.stack(found, axis=1)


def prediction_intervals(record: ConformalRecord, members: Array, confidence: float) -> tuple[Array, Array]:
    """The intervals of numbers, in their units.

    Args:
        record: The distances of held-out graphs.
        members: ``[M, G, T]`` numbers by each network.
        confidence: The share of graphs whose interval is to hold the true number.

    Returns:
        The lower and the upper ends, ``[G, T]`` each: the quantiles of all sums of a network's number and a distance
        in its fold (CV+), which of one network are its number plus and minus a quantile of the distances.

    References:
        Barber, Candès, Ramdas, Tibshirani: Predictive Inference with the Jackknife+, Annals of Statistics 2021.
    """
    ends: list[list[Array]] = [[], []]
    for scores, numbers in zip(record.scores, np.moveaxis(members.astype(np.float64), 2, 0), strict=True):
        folds = _by_member(scores, len(numbers))
        rank = _rank(sum(map(len, folds)), confidence)
        rows = max(1, ELEMENTS_AT_ONCE // sum(map(len, folds)))
        for end, sign in zip(ends, (-1, 1), strict=True):
            parts = []
            for start in range(0, numbers.shape[1], rows):
                some = sign * numbers[:, start : start + rows]
                sums = np.concatenate([own[:, None] + fold for own, fold in zip(some, folds, strict=True)], axis=1)
                parts.append(sign * np.partition(sums, rank - 1, axis=1)[:, rank - 1])
            end.append(np.concatenate(parts) if parts else np.empty(0))
    return np.stack(ends[0], axis=1), np.stack(ends[1], axis=1)


def _not_ruled_out(scores: Sequence[Sequence[float]], own: Array, confidence: float) -> Array:
    """[M, …] the scores of the classes by each network → […] whether fewer held-out scores than allowed are smaller."""
    folds = _by_member(scores, len(own))
    smaller = np.sum([np.searchsorted(np.sort(fold), mine) for fold, mine in zip(folds, own, strict=True)], axis=0)
    return np.asarray(smaller < _rank(sum(map(len, folds)), confidence))


def _by_member(scores: Sequence[Sequence[float]], members: int) -> list[Array]:
    return [np.array(fold) for fold in scores] if members > 1 else [np.concatenate([np.array(f) for f in scores])]


def _rank(n: int, confidence: float) -> int:
    """ceil((n + 1) · confidence), where the product is not above a whole number by rounding alone."""
    return math.ceil(round((n + 1) * confidence, 9))


def _class_scores(p: Array) -> Array:
    """[n, C] 1 - p, and 0 for the most probable class: no set is empty."""
    p = _as_stored(p)
    scores = 1 - p
    scores[np.arange(len(p)), p.argmax(axis=1)] = 0
    return scores


def _label_scores(p: Array) -> tuple[Array, Array]:
    """[n] the scores of no and of yes, where p is the probability of a yes."""
    p = _as_stored(p)
    return np.where(p < 0.5, 0, p), np.where(p < 0.5, 1 - p, 0)


def _as_stored(p: Array) -> Array:
    """In single precision, as results have them, so that a probability is the same number now and then."""
    return p.astype(np.float32).astype(np.float64)


def _listed(values: Array) -> list[float]:
    return [float(f"{value:.8g}") for value in values.tolist()]


# ---- unlike the training data ----


def fit_reference(embeddings: Array) -> ReferenceRecord:
    """What the embeddings of the training graphs are like: their mean, scale and principal directions.

    Args:
        embeddings: ``[G, W]``

    Returns:
        A record whose quantiles are those of the training graphs; see `with_quantiles`.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    usual = scale[scale > 0].mean() if (scale > 0).any() else 1.0
    scale = np.where(scale > 1e-6 * usual, scale, usual)  # what never varies: any change is one of the usual size
    some = (rows[:: math.ceil(len(rows) / MOST_DECOMPOSED)] - mean) / scale
    _, singular, axes = np.linalg.svd(some, full_matrices=False)
    kept = min(MOST_DIRECTIONS, max(1, len(some) // 10), int((singular > 1e-6 * max(singular[0], 1e-6)).sum()))
    largest = axes[np.arange(kept), np.abs(axes[:kept]).argmax(axis=1)]
    axes = axes[:kept] * np.sign(largest)[:, None]  # of either sign by chance
    directions = axes / (singular[:kept] / math.sqrt(len(some)))[:, None]
    residual = math.sqrt(float((singular[kept:] ** 2).sum()) / len(some))
    record = ReferenceRecord(
        mean=_short(mean),
        scale=_short(scale),
        directions=[_short(row) for row in directions],
        residual=residual if residual > 1e-6 * math.sqrt(len(mean)) else 1e-3 * math.sqrt(len(mean)),
        quantiles=[0.0, 0.0],
    )
    return with_quantiles(record, distances(record, rows))


def with_quantiles(record: ReferenceRecord, held_out: Array) -> ReferenceRecord:
    """The same with the quantiles of the distances of graphs held out, ``[n]``."""
    found = np.quantile(held_out, np.linspace(0, 1, 201))
    return record.replace(quantiles=[float(f"{value:.6g}") for value in np.maximum.accumulate(found)])


def distances(record: ReferenceRecord, embeddings: Array) -> Array:
    """How far embeddings are from those of the training graphs.

    Args:
        record: What these are like.
        embeddings: ``[G, W]``

    Returns:
        ``[G]`` the root mean square of the deviations along the principal directions and of what is in none of them,
        in units of their usual size.
    """
    scaled = (np.asarray(embeddings, dtype=np.float64) - record.mean) / record.scale
    directions = np.array(record.directions).reshape(-1, len(record.mean))
    along = scaled @ directions.T
    lengths = np.maximum((directions**2).sum(axis=1), 1e-300)
    rest = scaled - (along / lengths) @ directions
    apart = (rest**2).sum(axis=1) / record.residual**2
    return np.asarray(np.sqrt(((along**2).sum(axis=1) + apart) / (len(directions) + 1)))


def shares_nearer(record: ReferenceRecord, embeddings: Array) -> Array:
    """[G] the share of held-out training graphs that are nearer to the training graphs, by 1 % at least.

    Where graphs are alike, networks of different folds put them at distances that differ by less.
    """
    quantiles = np.array(record.quantiles)
    found = np.searchsorted(1.01 * quantiles, distances(record, embeddings)) / len(quantiles)
    return np.minimum(found, 1.0)


def _short(values: Array) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]
