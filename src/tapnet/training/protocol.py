"""Which graphs train, which choose, which test; and which epoch's accuracy counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from torch import Tensor

from tapnet.data.splits import Split, split_by_folds, stratified_folds, stratified_split
from tapnet.errors import SettingError

Protocol = Literal["paper", "fair"]
PROTOCOLS: dict[Protocol, str] = {
    "paper": "best test epoch of each fold",
    "fair": "epoch with the lowest validation loss",
}


def split(y: Tensor, protocol: Protocol, folds: int, fold: int) -> Split:
    """Splits the graphs for one fold: ``fair`` keeps the next fold for validation, ``paper`` trains on all others.

    Args:
        y: ``[G]`` the class of each graph.
        protocol: The protocol.
        folds: The number of stratified folds.
        fold: The fold that tests, counted from 0.

    Returns:
        The numbers of the graphs that train, validate and test.

    Raises:
        SettingError: The protocol is not known, or so many folds cannot be made.
    """
    check_protocol(protocol, folds, fold)
    return stratified_split(y, folds, fold, validation=protocol == "fair")


def splits(y: Tensor, protocol: Protocol, folds: int, numbers: Iterable[int]) -> Iterator[Split]:
    """`split` for several of the folds, which are made once."""
    parts = stratified_folds(y, folds)
    return (split_by_folds(parts, number, validation=protocol == "fair") for number in numbers)


MOST_FOLDS = 10_000


def check_protocol(protocol: str, folds: int, fold: int = 0) -> Protocol:
    """The protocol by its name, if it can be run on that many folds; else a ``SettingError``."""
    if protocol not in PROTOCOLS:
        raise SettingError(f"protocol is one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    fewest = 3 if protocol == "fair" else 2
    if folds < fewest:
        raise SettingError(f"the protocol {protocol} needs at least {fewest} folds, not {folds}")
    if folds > MOST_FOLDS:
        raise SettingError(f"there are at most {MOST_FOLDS} folds, not {folds}")
    if not 0 <= fold < folds:
        raise SettingError(f"the folds are 0 to {folds - 1}; there is no fold {fold}")
    return protocol


class Reading(NamedTuple):
    """One way to read an accuracy off the curves of a trial."""

    epoch: int  # counted from 1
    accuracy: float  # percent, on the test fold


def reported_reading(protocol: Protocol, curves: Mapping[str, Sequence[float]]) -> Reading:
    """The accuracy that the protocol reports of a trial; a system without epochs has only one."""
    found = readings(curves)
    if len(curves) == 1:
        return found["last_epoch"]
    return found["best_test_epoch" if protocol == "paper" else "lowest_validation_loss"]


def readings(curves: Mapping[str, Sequence[float]]) -> dict[str, Reading]:
    """All readings of the curves by name; the first of equal epochs counts."""
    accuracy = curves["test_accuracy"]
    epochs = {"best_test_epoch": int(np.argmax(accuracy)), "last_epoch": len(accuracy) - 1}
    if curves.get("validation_loss"):
        loss = np.nan_to_num(np.asarray(curves["validation_loss"], dtype=float), nan=np.inf)
        epochs["lowest_validation_loss"] = int(np.argmin(loss))
    return {name: Reading(epoch + 1, accuracy[epoch]) for name, epoch in epochs.items()}
