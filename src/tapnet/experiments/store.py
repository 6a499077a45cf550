"""Results on disk: a JSON file for each trial, named by its key, or many packed as lines; checkpoints and models.

Writes are atomic.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from tapnet.data.dataset import Task
from tapnet.errors import DamagedFileWarning, DataError, SettingError, TapnetError
from tapnet.experiments.trial import Predicted, Trial, TrialResult, digest
from tapnet.files import IrregularFileError, check_name, read_regular, remove_partial_files, write_atomically
from tapnet.inference.model_file import MAX_RUN_BYTES, RUN, ModelCard, read_model, write_model
from tapnet.models.registry import find_model

MAX_TEXT_BYTES = 1 << 28  # of a result; ten curves of the longest kind
MAX_PACKED_BYTES = 1 << 32
MAX_CHECKPOINT_BYTES = 1 << 36
PACKED = ".jsonl"  # a file of many results, which `tapnet.experiments.merge` writes
_KEY = re.compile(r"[0-9a-f]{16}")  # `Trial.key`
_LINE_KEY = re.compile(rb'\{"key":"([0-9a-f]{16})"')


class TrialStore:
    """Where a trial's checkpoints, model and result go. This one keeps nothing; subclasses keep what they can."""

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        """The last state that was stored; None if there is none."""
        return None

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None:
        """Stores the state of a trial under way."""

    def drop_checkpoint(self, trial: Trial) -> None:
        """Removes a trial's checkpoint."""

    def reject_checkpoint(self, trial: Trial, reason: str) -> None:
        """Sets aside a checkpoint that does not fit its trial, and says so."""

    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], card: ModelCard) -> None:
        """Stores the model of a trial."""

    def save(self, result: TrialResult) -> None:
        """Stores a result."""


@dataclass(frozen=True)
class Store(TrialStore):
    """A folder of results: ``trials/KEY.json``, ``models/KEY.safetensors``, ``checkpoints/KEY.pt``, ``run.json``.

    Results that `tapnet.experiments.merge.merge_trials` packed into ``trials/*.jsonl`` count as well.

    Several programs may share one: a trial is trained by the program that has claimed it.

    Args:
        folder: where it is; made when something is stored.
        every_model: False keeps the models of the first fold alone, where there are hundreds of trials.
        keeps_predictions: whether results are stored with what the network says of each graph.

    Raises:
        TapnetError: if the folder is a file, or its name cannot be one.

    Example:
        >>> from pathlib import Path
        >>> accuracies = [result.reading.accuracy for result in Store(Path("results")).results()]
    """

    folder: Path
    every_model: bool = True
    keeps_predictions: bool = False

    def __post_init__(self) -> None:
        check_name(self.folder)  # every file in it has to be read again
        try:
            is_file = self.folder.is_file()
        except OSError as error:
            raise TapnetError(f"{self.folder}: cannot be a folder ({error.strerror or error})") from None
        if is_file:
            raise TapnetError(f"{self.folder}: is a file; results go into a folder")

    def result_file(self, trial: Trial) -> Path:
        """The file of a trial's result."""
        return self._result_file(trial.key)

    def _result_file(self, key: str) -> Path:
        return self.folder / "trials" / f"{key}.json"

    def model_file(self, trial: Trial) -> Path:
        """The file of a trial's model."""
        return self.folder / "models" / f"{trial.key}.safetensors"

    def checkpoint_file(self, trial: Trial) -> Path:
        """The file of a trial's last checkpoint."""
        return self.folder / "checkpoints" / f"{trial.checkpoint_key}.pt"

    def lock_file(self, trial: Trial) -> Path:
        """The file that is locked while a trial is trained."""
        return self.folder / "checkpoints" / f"{trial.key}.lock"

    # ---- several programs ----

    @contextmanager
    def claim(self, trial: Trial, *, wait: bool = False) -> Iterator[bool]:
        """Claims a trial until the block ends.

        The claim is a lock of the operating system on a file, which a kill releases too. Where files cannot be locked,
        every claim succeeds.

        Args:
            trial: what to claim.
            wait: whether to wait for another program that has claimed it.

        Yields:
            Whether the trial is this program's to train.
        """
        with self._locked(trial.key, wait) as claimed:
            if claimed:
                files = (self.result_file(trial), self.model_file(trial), self.checkpoint_file(trial))
                for file in files:
                    remove_partial_files(file)
                self._set_aside_damaged(trial)
            yield claimed

    @contextmanager
    def _locked(self, key: str, wait: bool = False) -> Iterator[bool]:
        file = self.folder / "checkpoints" / f"{key}.lock"
        lock = FileLock(file, fallback_to_soft=False)
        try:
            lock.acquire(blocking=wait)
        except Timeout:
            yield False
            return
        except OSError:
            pass  # no locks here
        try:
            yield True
        finally:
            if lock.is_locked:
                with suppress(OSError):
                    file.unlink()  # while it is ours: who opened it meanwhile notices, and tries again
                lock.release()

    def tidy(self, trial: Trial) -> None:
        """Removes what a program left of a trial that was killed after storing its result, before clearing up."""
        if self.checkpoint_file(trial).exists() or self.lock_file(trial).exists():
            with self.claim(trial) as ours:
                if ours and trial.tested:  # else another trial may go on from its checkpoint
                    self.drop_checkpoint(trial)

    # ---- results ----

    def save(self, result: TrialResult) -> None:
        """Stores a result with its checksum."""
        values = (result if self.keeps_predictions else replace(result, predicted={})).to_dict()
        values["digest"] = digest(values)
        line = json.dumps(values, separators=(",", ":")) + "\n"
        write_atomically(self.result_file(result.trial), line.encode())

    def load(self, trial: Trial) -> TrialResult | None:
        """The stored result; None if there is none. A damaged file is renamed unless another program has claimed it."""
        return self._load(trial.key)

    def load_complete(self, trial: Trial) -> TrialResult | None:
        """The stored result, if the model that was stored with it is there and whole as well."""
        result = self.load(trial)
        return result if result is None or self._model_problem(trial) is None else None

    def results(self) -> Iterator[TrialResult]:
        """Every result that is there and whole, whatever its trial; files may have come from another machine."""
        trials = self.folder / "trials"
        for key in sorted({*(file.stem for file in result_files(trials)), *_packed(trials)}):
            if (result := self._load(key)) is not None:
                yield result

    def _load(self, key: str) -> TrialResult | None:
        try:
            return self._read(key)
        except _DamagedError:
            with self._locked(key) as claimed:
                if claimed:
                    self._set_aside_result(key)
            return None

    def _read(self, key: str) -> TrialResult | None:
        try:
            content = _content(self._result_file(key), MAX_TEXT_BYTES)
        except FileNotFoundError:
            packed = _packed(self.folder / "trials").get(key)
            return None if packed is None else _parse(key, packed)
        except ValueError:
            raise _DamagedError(NOT_AS_WRITTEN) from None
        return _parse(key, content)

    def save_run(self, values: Mapping[str, Any]) -> None:
        """Stores what the folder's last run was, with its checksum: its settings, its trials and their summary."""
        stored = json.loads(json.dumps(values))
        stored["digest"] = digest(stored)
        write_atomically(self.folder / RUN, json.dumps(stored, indent=1).encode())

    def load_run(self) -> dict[str, Any]:
        """What `save_run` stored; of earlier versions, without a checksum.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is not what was written, or cannot be read.
        """
        values = json.loads(_content(self.folder / RUN, MAX_RUN_BYTES))
        if not isinstance(values, dict) or ("digest" in values and values.pop("digest") != digest(values)):
            raise ValueError(NOT_AS_WRITTEN)
        return values

    # ---- what is damaged: set aside by the program that has claimed the trial ----

    def _set_aside_damaged(self, trial: Trial) -> None:
        self._set_aside_result(trial.key)
        if (problem := self._model_problem(trial)) and self.result_file(trial).exists():
            _set_aside(self.model_file(trial), f"{problem}; fold {trial.fold} is trained again")

    def _set_aside_result(self, key: str) -> None:
        try:
            self._read(key)  # once more: it may have been replaced before it was claimed
        except _DamagedError as error:
            file, what = self._result_file(key), f"{error}; its trial counts as not done"
            if os.path.lexists(file):
                _set_aside(file, what)
            else:
                warnings.warn(f"{file.parent}: the packed result {key} is {what}", DamagedFileWarning, stacklevel=2)

    def _model_problem(self, trial: Trial) -> str | None:
        """What is wrong with the model of a trial whose result is stored."""
        if find_model(trial.model).fit is not None or not trial.tested:
            return None
        file = self.model_file(trial)
        if not os.path.lexists(file):
            return "is not there" if self.every_model else None  # results may be kept without their models
        try:
            card = read_model(file)[1]
        except DataError as error:
            return str(error).removeprefix(f"{file}: ")
        return None if digest(card.to_dict()["trial"]) == trial.key else "is the model of another trial"

    # ---- models and checkpoints ----

    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], card: ModelCard) -> None:
        """Stores the model of a trial."""
        if self.every_model or trial.fold == 0:
            write_model(self.model_file(trial), weights, card)

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None:
        """Stores the state of a trial under way."""
        write_atomically(self.checkpoint_file(trial), pack_checkpoint(trial, state))

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        """The last state that was stored; None if there is none. A damaged file is renamed: claim the trial first."""
        file = self.checkpoint_file(trial)
        try:
            return unpack_checkpoint(trial, _content(file, MAX_CHECKPOINT_BYTES))
        except FileNotFoundError:
            return None
        except TapnetError:
            raise
        except MemoryError:
            raise TapnetError(f"{file}: cannot be read (it needs more memory than there is)") from None
        except Exception:  # whatever a damaged file makes torch raise
            self.reject_checkpoint(trial, NOT_AS_WRITTEN)
            return None

    def reject_checkpoint(self, trial: Trial, reason: str) -> None:
        """Sets aside a checkpoint that does not fit its trial, and says so."""
        _set_aside(self.checkpoint_file(trial), f"{reason}; the trial begins again")

    def drop_checkpoint(self, trial: Trial) -> None:
        """Removes a trial's checkpoint."""
        self.checkpoint_file(trial).unlink(missing_ok=True)


SEAL_BYTES = 32


def pack_checkpoint(trial: Trial, state: Mapping[str, Any]) -> bytes:
    """The content of a checkpoint's file."""
    content = io.BytesIO()
    torch.save(state, content)
    return _seal(trial, content.getvalue()) + content.getvalue()


def unpack_checkpoint(trial: Trial, packed: bytes) -> dict[str, Any]:
    """The state in a checkpoint's file; a ``ValueError`` for one that is damaged or of another trial."""
    content = packed[SEAL_BYTES:]
    if packed[:SEAL_BYTES] != _seal(trial, content):
        raise ValueError("the content is not what was written")
    state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return state


def _seal(trial: Trial, content: bytes) -> bytes:
    """A digest of a checkpoint's content and its trial, which stands before the content."""
    return hashlib.blake2b(content, digest_size=SEAL_BYTES, key=trial.checkpoint_key.encode()).digest()


def _is_sound(result: TrialResult) -> bool:
    """Whether its numbers are numbers, and its curves have a value for each epoch."""
    return (
        isinstance(result.seconds, float | int)
        and math.isfinite(result.seconds)
        and isinstance(result.parameters, int)
        and isinstance(result.versions, dict)
        and all(len(curve) == result.trial.training.epochs for curve in result.curves.values())
        and result.trial.tested == any(name.startswith("test_") for name in result.curves)
        and all(_are_of_task(found, result.trial.task) for found in result.predicted.values())
        and (math.isfinite(result.reading.score) or result.metric != "accuracy")  # others may not be defined
    )


def _are_of_task(found: Predicted, task: Task) -> bool:
    """Whether predictions are those of classes, or of several columns; and probabilities, where they have to be."""
    outside = (found.values < 0) | (found.values > 1 + 1e-5)  # not NaN, where training diverged
    return (found.y.ndim == 1) == (task == "classification") and (task == "regression" or not bool(outside.any()))


def result_files(trials: Path) -> list[Path]:
    """The files of single results, sorted by their keys."""
    return sorted(file for file in trials.glob("*.json") if _KEY.fullmatch(file.stem))


def packed_lines(file: Path) -> dict[str, bytes]:
    """The lines of a packed file by their keys, unchecked; what is no line of it is said."""
    try:
        lines = _content(file, MAX_PACKED_BYTES).splitlines(keepends=True)
    except (ValueError, TapnetError) as error:
        warnings.warn(f"{file}: {str(error).removeprefix(f'{file}: ')}", DamagedFileWarning, stacklevel=2)
        return {}
    keys = [_LINE_KEY.match(line) for line in lines]
    if strange := [str(number) for number, key in enumerate(keys, 1) if key is None]:
        some = ", ".join(strange[:5]) + (" …" if len(strange) > 5 else "")
        warnings.warn(f"{file}: no results in line {some}", DamagedFileWarning, stacklevel=2)
    return {key[1].decode(): line for key, line in zip(keys, lines, strict=True) if key is not None}


def _packed(trials: Path) -> dict[str, bytes]:
    """Every packed result by its key."""
    files = []
    for file in sorted(trials.glob(f"*{PACKED}")):
        with suppress(OSError):
            stat = file.stat()
            files.append((file, stat.st_size, stat.st_mtime_ns))
    return _lines_of(tuple(files))


@lru_cache(maxsize=4)
def _lines_of(files: tuple[tuple[Path, int, int], ...]) -> dict[str, bytes]:
    return {key: line for file, _, _ in files for key, line in packed_lines(file).items()}


def check_line(key: str, line: bytes) -> str:
    """The data set of a stored result; a ``ValueError`` for one that is not what was written."""
    _parse(key, line)
    return str(json.loads(line)["trial"].get("dataset", ""))


def _parse(key: str, line: bytes) -> TrialResult | None:
    try:
        values = json.loads(line)
        if values.pop("digest") != digest(values) or values["key"] != key:
            raise ValueError(NOT_AS_WRITTEN)
        result = TrialResult.from_dict(values)
        if not _is_sound(result):
            raise ValueError("no trial gives this")
        return result if result.trial.key == key else None  # else a setting was added since, with a default
    except SettingError:
        return None  # of a version that knows other settings; not damaged
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, zlib.error):
        raise _DamagedError(NOT_AS_WRITTEN) from None


NOT_AS_WRITTEN = "damaged: its content is not what was written"


class _DamagedError(ValueError):
    """A stored file is not what was written."""


def _content(file: Path, limit: int) -> bytes:
    """Of a regular file; a ``ValueError`` for what is none, a ``TapnetError`` for what cannot be read now."""
    try:
        return read_regular(file, limit)
    except FileNotFoundError:
        raise
    except IrregularFileError as error:
        raise ValueError(str(error)) from None
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it needs more memory than there is"
        raise TapnetError(f"{file}: cannot be read ({reason})") from None


def _set_aside(file: Path, reason: str) -> None:
    """Renames a damaged file, if it is there and may be renamed, and says why."""
    aside, moved = file.with_suffix(".damaged"), ""
    with suppress(OSError):  # a folder that is only read; whoever computes it again replaces the file
        file.replace(aside)
        moved = f"; the file is {aside.name} now"
    warnings.warn(f"{file}: {reason}{moved}", DamagedFileWarning, stacklevel=2)
