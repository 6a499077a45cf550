"""Results on disk: a JSON file for each trial, named by its key; checkpoints and models beside. Writes are atomic."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from tapnet.errors import SettingError, TapnetError
from tapnet.experiments.trial import Trial, TrialResult, digest
from tapnet.files import is_special_file, remove_partial_files, write_atomically
from tapnet.inference.model_file import RUN, ModelCard, write_model


class TrialStore:
    """Where a trial's checkpoints, model and result go. This one keeps nothing; subclasses keep what they can."""

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        """The last state that was stored; None if there is none."""
        return None

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None:
        """Stores the state of a trial under way."""

    def drop_checkpoint(self, trial: Trial) -> None:
        """Removes a trial's checkpoint."""

    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], card: ModelCard) -> None:
        """Stores the model of a trial."""

    def save(self, result: TrialResult) -> None:
        """Stores a result."""


@dataclass(frozen=True)
class Store(TrialStore):
    """A folder of results: ``trials/KEY.json``, ``models/KEY.safetensors``, ``checkpoints/KEY.pt``, ``run.json``.

    Several programs may share one: a trial is trained by the program that has claimed it.

    Args:
        folder: where it is; made when something is stored.
        every_model: False keeps the models of the first fold alone, where there are hundreds of trials.
        keeps_predictions: whether results are stored with what the network says of each graph.

    Raises:
        TapnetError: if the folder is a file.

    Example:
        >>> from pathlib import Path
        >>> accuracies = [result.reading.accuracy for result in Store(Path("results")).results()]
    """

    folder: Path
    every_model: bool = True
    keeps_predictions: bool = False

    def __post_init__(self) -> None:
        if self.folder.is_file():
            raise TapnetError(f"{self.folder}: is a file; results go into a folder")

    def result_file(self, trial: Trial) -> Path:
        """The file of a trial's result."""
        return self.folder / "trials" / f"{trial.key}.json"

    def model_file(self, trial: Trial) -> Path:
        """The file of a trial's model."""
        return self.folder / "models" / f"{trial.key}.safetensors"

    def checkpoint_file(self, trial: Trial) -> Path:
        """The file of a trial's last checkpoint."""
        return self.folder / "checkpoints" / f"{trial.key}.pt"

    def lock_file(self, trial: Trial) -> Path:
        """The file that is locked while a trial is trained."""
        return self.checkpoint_file(trial).with_suffix(".lock")

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
        lock = FileLock(self.lock_file(trial), fallback_to_soft=False)
        try:
            lock.acquire(blocking=wait)
        except Timeout:
            yield False
            return
        except OSError:
            pass  # no locks here
        try:
            if lock.is_locked:
                for file in (self.result_file(trial), self.model_file(trial), self.checkpoint_file(trial)):
                    remove_partial_files(file)
            yield True
        finally:
            if lock.is_locked:
                with suppress(OSError):
                    self.lock_file(trial).unlink()  # while it is ours: who opened it meanwhile notices, and tries again
                lock.release()

    def tidy(self, trial: Trial) -> None:
        """Removes what a program left of a trial that was killed after storing its result, before clearing up."""
        if self.checkpoint_file(trial).exists() or self.lock_file(trial).exists():
            with self.claim(trial) as ours:
                if ours:
                    self.drop_checkpoint(trial)

    # ---- results ----

    def save(self, result: TrialResult) -> None:
        """Stores a result with its checksum."""
        values = (result if self.keeps_predictions else replace(result, predicted={})).to_dict()
        values["digest"] = digest(values)
        line = json.dumps(values, separators=(",", ":")) + "\n"
        write_atomically(self.result_file(result.trial), line.encode())

    def load(self, trial: Trial) -> TrialResult | None:
        """The stored result; None if there is none. A damaged file is renamed."""
        return self._read(self.result_file(trial), trial.key)

    def _read(self, file: Path, key: str) -> TrialResult | None:
        try:
            if is_special_file(file):
                raise ValueError("not a file")
            values = json.loads(file.read_bytes())
            if values.pop("digest") != digest(values) or values["key"] != key:
                raise ValueError("the content is not what was written")
            result = TrialResult.from_dict(values)
            if not _is_sound(result):
                raise ValueError("no trial gives this")
            return result if result.trial.key == key else None  # else a setting was added since, with a default
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TapnetError(f"{file}: cannot be read ({error.strerror or error})") from None
        except SettingError:
            return None  # of a version that knows other settings; not damaged
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, zlib.error):
            _set_aside(file)
            return None

    def results(self) -> Iterator[TrialResult]:
        """Every result that is there and whole, whatever its trial; files may have come from another machine."""
        for file in sorted((self.folder / "trials").glob("*.json")):
            if (result := self._read(file, file.stem)) is not None:
                yield result

    def save_run(self, values: Mapping[str, Any]) -> None:
        """Stores what the folder's last run was: its settings, its trials and their summary."""
        write_atomically(self.folder / RUN, json.dumps(values, indent=1).encode())

    # ---- models and checkpoints ----

    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], card: ModelCard) -> None:
        """Stores the model of a trial."""
        if self.every_model or trial.fold == 0:
            write_model(self.model_file(trial), weights, card)

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None:
        """Stores the state of a trial under way."""
        write_atomically(self.checkpoint_file(trial), pack_checkpoint(trial, state))

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        """The last state that was stored; None if there is none. A damaged file is renamed."""
        file = self.checkpoint_file(trial)
        try:
            return unpack_checkpoint(trial, file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, MemoryError) as error:
            raise TapnetError(f"{file}: cannot be read ({error})") from None
        except Exception:  # whatever a damaged file makes torch raise
            _set_aside(file)
            return None

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
    return hashlib.blake2b(content, digest_size=SEAL_BYTES, key=trial.key.encode()).digest()


def _is_sound(result: TrialResult) -> bool:
    """Whether its numbers are numbers, and its curves have a value for each epoch."""
    return (
        isinstance(result.seconds, float | int)
        and math.isfinite(result.seconds)
        and isinstance(result.parameters, int)
        and isinstance(result.versions, dict)
        and all(len(curve) == result.trial.training.epochs for curve in result.curves.values())
        and math.isfinite(result.reading.score)
    )


def _set_aside(file: Path) -> None:
    try:
        file.replace(file.with_suffix(".damaged"))
    except FileNotFoundError:
        pass  # another program has just done it
    except OSError as error:
        raise TapnetError(f"{file}: is damaged, and cannot be renamed ({error.strerror or error})") from None
