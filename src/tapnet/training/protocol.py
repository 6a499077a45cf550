"""Which graphs train, which choose, which test; and which epoch's accuracy counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import torch

from tapnet.data.dataset import GraphDataset
from tapnet.data.splits import Split, Splits, grouped_folds, hold_out, split_by_folds, stratified_folds
from tapnet.errors import SettingError
from tapnet.training.metrics import METRICS

Protocol = Literal["paper", "fair", "nested"]
PROTOCOLS: dict[Protocol, str] = {
    "paper": "best test epoch of each fold",
    "fair": "epoch with the lowest validation loss",
    "nested": "epoch with the lowest validation loss",
}


def split(dataset: GraphDataset, protocol: Protocol, folds: int, fold: int, fold_seed: int = 0) -> Split:
    """Splits the graphs for one fold: ``paper`` trains on all other folds, ``fair`` keeps the next one for validation.

    ``nested`` keeps a tenth of the other folds for validation. Splits of the user's own may name the graphs that
    validate; else the next fold validates in ``fair`` if none of its graphs are tested, and a tenth of the training
    graphs if some are.

    Args:
        dataset: The graphs, with the user's own splits if there are any.
        protocol: The protocol.
        folds: The number of folds.
        fold: The fold that tests, counted from 0.
        fold_seed: Of the order in which graphs are dealt to folds.

    Returns:
        The numbers of the graphs that train, validate and test.

    Raises:
        SettingError: The protocol is not known, or so many folds cannot be made.
    """
    check_protocol(protocol, folds, fold, dataset.splits is not None)
    return next(splits(dataset, protocol, folds, [fold], fold_seed))


def splits(
    dataset: GraphDataset, protocol: Protocol, folds: int, numbers: Iterable[int], fold_seed: int = 0
) -> Iterator[Split]:
    """`split` for several of the folds, which are made once."""
    own = dataset.splits
    if own is None:
        parts = stratified_folds(dataset.y, folds, fold_seed)
        found = (split_by_folds(parts, number, validation=protocol == "fair") for number in numbers)
        return (_with_hold_out(dataset, part, fold_seed) for part in found) if protocol == "nested" else found
    if fold_seed and own.groups is not None:
        drawn = grouped_folds(own.groups, folds, fold_seed, dataset.y)
        own = replace(own, parts=tuple(split_by_folds(drawn, i, validation=False) for i in range(folds)))
    if protocol == "paper":
        return (without_validation(own.parts[number]) for number in numbers)
    if protocol == "fair" and _validate_each_other(own.parts):
        return (_validated_by_next(own.parts, number) for number in numbers)
    return (_with_hold_out(dataset, own.parts[number], fold_seed) for number in numbers)


def validation_note(own: Splits | None, protocol: Protocol) -> str:
    """Says where validation graphs come from if the user's own splits, given graph by graph, name none; else ""."""
    if own is None or own.groups is not None or protocol == "paper":
        return ""
    missing = sum(part.validation is None for part in own.parts)
    if not missing:
        return ""
    if protocol == "fair" and _validate_each_other(own.parts):
        return "the splits have no validation part: the test graphs of the next fold validate"
    of = f"{missing} of {len(own.parts)} splits have" if missing < len(own.parts) else "the splits have"
    if len(own.parts) == 1:
        of = "the split has"
    return f"{of} no validation part: a tenth of the training graphs validates"


def _with_hold_out(dataset: GraphDataset, part: Split, seed: int) -> Split:
    """The split with a tenth of its training graphs kept for validation, unless it has some."""
    if part.validation is not None:
        return part
    groups = None if dataset.splits is None else dataset.splits.groups
    return Split(*hold_out(dataset.y, part.train, seed, groups), part.test)


def validation_splits(dataset: GraphDataset, folds: int) -> Splits:
    """Splits that serve to choose settings: the folds validate, nothing is tested.

    Where the user's own splits are given graph by graph, their validation graphs (or a tenth of their training graphs)
    validate, and their test graphs are left out.

    Args:
        dataset: The graphs, with the user's own splits if there are any.
        folds: The number of folds, where they are drawn.

    Returns:
        The splits, without test graphs.
    """
    own = dataset.splits
    check_protocol("paper", folds, own_splits=own is not None)
    if own is not None and own.groups is None:
        parts = [_with_hold_out(dataset, part, 0) for part in own.parts]
        return Splits(own.name, tuple(part._replace(test=part.test[:0]) for part in parts))
    whole = splits(dataset, "paper", folds, range(folds))
    name = f"{folds} folds" if own is None else own.name
    return Splits(f"{name}, for validation", tuple(Split(p.train, p.test, p.test[:0]) for p in whole))


def without_validation(part: Split) -> Split:
    """The split with its validation graphs, if it has some, among those that train.

    So systems without epochs, which have none to choose, use a split.
    """
    if part.validation is None:
        return part
    return Split(torch.cat([part.train, part.validation]).sort().values, None, part.test)


def _validate_each_other(parts: Sequence[Split]) -> bool:
    """Whether no fold has validation graphs, and the test graphs of the next one are some of those that train."""
    if any(part.validation is not None for part in parts):
        return False
    pairs = ((part.train, parts[(i + 1) % len(parts)].test) for i, part in enumerate(parts))
    return all(len(test) < len(train) and bool(torch.isin(test, train).all()) for train, test in pairs)


def _validated_by_next(parts: Sequence[Split], fold: int) -> Split:
    """The split with the test graphs of the next fold for validation."""
    train, _, test = parts[fold]
    validation = parts[(fold + 1) % len(parts)].test
    return Split(train[~torch.isin(train, validation)], validation, test)


MOST_FOLDS = 10_000


def check_protocol(protocol: str, folds: int, fold: int = 0, own_splits: bool = False) -> Protocol:
    """The protocol by its name, if it can be run on that many folds; else a ``SettingError``.

    One split of the user's own is enough.
    """
    if protocol not in PROTOCOLS:
        raise SettingError(f"protocol is one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    fewest = 1 if own_splits else 3 if protocol == "fair" else 2
    if folds < fewest:
        raise SettingError(f"the protocol {protocol} needs at least {fewest} folds, not {folds}")
    if folds > MOST_FOLDS:
        raise SettingError(f"there are at most {MOST_FOLDS} folds, not {folds}")
    if not 0 <= fold < folds:
        raise SettingError(f"the folds are 0 to {folds - 1}; there is no fold {fold}")
    return protocol


class Reading(NamedTuple):
    """One way to read a score off the curves of a trial."""

    epoch: int  # counted from 1
    score: float  # on the test fold: the accuracy in percent, or the metric that the test curve has

    @property
    def accuracy(self) -> float:
        """The score, of a trial that classifies."""
        return self.score


def test_metric(curves: Mapping[str, Sequence[float]]) -> str:
    """The name of the metric that the test curve has; of a trial that is not tested, that of its validation."""
    return _scored(curves)[1]


def _scored(curves: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """The part of the graphs that scores are read off, and the metric that they are of."""
    found = [name.removeprefix("test_") for name in curves if name.startswith("test_")]
    if len(found) == 1 and found[0] in METRICS:
        return "test", found[0]
    validated = [name.removeprefix("validation_") for name in curves if name.startswith("validation_")]
    metrics = [name for name in validated if name in METRICS]
    if found or not metrics:
        raise ValueError("curves without one of a test metric")
    return "validation", metrics[0]


def reported_reading(
    protocol: Protocol, curves: Mapping[str, Sequence[float]], select_by: str = "", first: int = 0
) -> Reading:
    """The score that the protocol reports of a trial; a system without epochs has only one.

    Args:
        protocol: which epoch counts.
        curves: of the trial.
        select_by: the metric on the validation graphs that chooses the epoch of ``fair`` and ``nested``; empty for
            their loss, which also chooses where the metric is not defined on these graphs.
        first: the first epoch, from 0, that may be chosen so; until it is trained, the last one counts.
    """
    found = readings(curves)
    if len(curves) == 1:
        return found["last_epoch"]
    if protocol == "paper":
        return found["best_test_epoch"]
    part, metric = _scored(curves)
    chooser = select_by or "loss"
    if all(math.isnan(value) for value in curves[f"validation_{chooser}"]):
        chooser = "loss"
    values = curves[f"validation_{chooser}"]
    first = min(first, len(values) - 1)
    epoch = first + best_epoch(chooser, values[first:])
    return Reading(epoch + 1, curves[f"{part}_{metric}"][epoch])


def readings(curves: Mapping[str, Sequence[float]]) -> dict[str, Reading]:
    """All readings of the curves by name; the first of equal epochs counts."""
    part, metric = _scored(curves)
    scores = curves[f"{part}_{metric}"]
    epochs = {"last_epoch": len(scores) - 1}
    if part == "test":
        epochs = {"best_test_epoch": best_epoch(metric, scores), **epochs}
    if curves.get("validation_loss"):
        epochs["lowest_validation_loss"] = best_epoch("loss", curves["validation_loss"])
    for name, values in curves.items():
        chosen = name.removeprefix("validation_")
        if name.startswith("validation_") and chosen not in ("loss", metric) and values:
            epochs[f"best_validation_{chosen}"] = best_epoch(chosen, values)
    return {name: Reading(epoch + 1, scores[epoch]) for name, epoch in epochs.items()}


def best_epoch(metric: str, values: Sequence[float]) -> int:
    """The first of the best values of a curve, from 0; a metric that is not known, such as a loss, is to be low."""
    higher_is_better = metric in METRICS and METRICS[metric].higher_is_better
    worst = -np.inf if higher_is_better else np.inf
    known = np.where(np.isnan(np.asarray(values, dtype=float)), worst, np.asarray(values, dtype=float))
    return int(np.argmax(known) if higher_is_better else np.argmin(known))
