"""Which graphs train, which choose, which test; and which epoch's accuracy counts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tapnet.errors import SettingError

Protocol = Literal["paper", "fair"]
PROTOCOLS: dict[Protocol, str] = {
    "paper": "best test epoch of each fold",
    "fair": "epoch with the lowest validation loss",
}


@dataclass(frozen=True)
class Split:
    """The numbers of the graphs that a fold trains on, chooses its epoch by, and is tested on."""

    train: Tensor
    validation: Tensor | None
    test: Tensor


def split(y: Tensor, protocol: Protocol, folds: int, fold: int) -> Split:
    """Which graphs a fold trains on, validates on and is tested on.

    The test graphs are fold ``fold`` of scikit-learn's ``StratifiedKFold(folds, shuffle=True, random_state=0)``.
    ``paper`` trains on all others; ``fair`` keeps the next fold for validation and trains on the rest.

    Args:
        y: [G] the class of each graph.
        protocol: "paper" or "fair".
        folds: how many there are.
        fold: which of them is tested, from 0.

    Raises:
        SettingError: if there is no such protocol or fold, or the graphs cannot be divided into so many folds.
    """
    check_protocol(protocol, folds, fold)
    parts = _parts(y, folds)
    test, validation = parts[fold], parts[(fold + 1) % folds] if protocol == "fair" else None
    held_out = test if validation is None else np.concatenate([test, validation])
    train = np.setdiff1d(np.arange(len(y)), held_out)
    return Split(
        torch.from_numpy(train),
        None if validation is None else torch.from_numpy(validation),
        torch.from_numpy(test),
    )


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


def _parts(y: Tensor, folds: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    from sklearn.model_selection import StratifiedKFold

    if folds > len(y):
        raise SettingError(f"{folds} folds of {len(y)} graphs: there cannot be more folds than graphs")
    largest = int(y.bincount().max())
    if folds > largest:
        raise SettingError(f"{folds} folds cannot be made: even the largest class has only {largest} graphs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer graphs than folds: some folds lack it
        splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
        return [test for _, test in splitter.split(np.zeros(len(y)), y.numpy())]


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
