"""Results on disk: one JSON file a trial, named by its hash; checkpoints and models beside. Every write is atomic."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from tapnet.errors import DataError, SettingError, TapnetError
from tapnet.files import replacing
from tapnet.training.trial import Trial, TrialResult, digest


@dataclass(frozen=True)
class Store:
    """A folder: ``trials/KEY.json``, ``models/KEY.safetensors``, ``checkpoints/KEY.pt``, ``run.json``."""

    folder: Path
    every_model: bool = True  # False: of the first fold alone, where there are hundreds of trials

    def result_file(self, trial: Trial) -> Path:
        return self.folder / "trials" / f"{trial.key}.json"

    def model_file(self, trial: Trial) -> Path:
        return self.folder / "models" / f"{trial.key}.safetensors"

    def checkpoint_file(self, trial: Trial) -> Path:
        return self.folder / "checkpoints" / f"{trial.key}.pt"

    # ---- results ----

    def save(self, result: TrialResult) -> None:
        values = result.to_dict()
        values["digest"] = digest(values)
        line = json.dumps(values, separators=(",", ":")) + "\n"
        write_atomically(self.result_file(result.trial), lambda out: out.write(line.encode()))

    def load(self, trial: Trial) -> TrialResult | None:
        """The stored result; None if there is none. A damaged file is set aside, not believed."""
        return self._read(self.result_file(trial), trial.key)

    def _read(self, file: Path, key: str) -> TrialResult | None:
        try:
            values = json.loads(file.read_bytes())
            if values.pop("digest") != digest(values) or values["key"] != key:
                raise ValueError("the content is not what was written")
            return TrialResult.from_dict(values)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TapnetError(f"{file}: cannot be read ({error.strerror or error})") from None
        except SettingError:
            return None  # of a build that knows other settings; not damaged, only of no use here
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
            file.replace(file.with_suffix(".damaged"))
            return None

    def results(self) -> Iterator[TrialResult]:
        """Every result that is there and whole, whatever its trial; files may have come from another machine."""
        for file in sorted((self.folder / "trials").glob("*.json")):
            result = self._read(file, file.stem)
            if result is not None:
                yield result

    def save_run(self, values: Mapping[str, Any]) -> None:
        """What the folder's last run was: its settings, its trials and their summary."""
        write_atomically(self.folder / "run.json", lambda out: out.write(json.dumps(values, indent=1).encode()))

    # ---- models and checkpoints ----

    def save_model(self, trial: Trial, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
        """Weights and settings alone; reading the file runs no code."""
        if not self.every_model and trial.fold > 0:
            return
        save_model_file(self.model_file(trial), weights, description)

    def save_checkpoint(self, trial: Trial, state: Mapping[str, Any]) -> None:
        write_atomically(self.checkpoint_file(trial), lambda out: torch.save(state, out))

    def load_checkpoint(self, trial: Trial) -> dict[str, Any] | None:
        file = self.checkpoint_file(trial)
        try:
            state: dict[str, Any] = torch.load(file, weights_only=True)
            return state
        except FileNotFoundError:
            return None
        except (OSError, MemoryError) as error:
            raise TapnetError(f"{file}: cannot be read ({error})") from None
        except Exception:  # whatever a damaged file makes torch raise
            file.replace(file.with_suffix(".damaged"))
            return None

    def drop_checkpoint(self, trial: Trial) -> None:
        self.checkpoint_file(trial).unlink(missing_ok=True)


def save_model_file(file: Path, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    """Weights and settings alone; reading the file runs no code."""
    from safetensors.torch import save

    packed = save(dict(weights), metadata={"tapnet": json.dumps(description)})
    write_atomically(file, lambda out: out.write(packed))


def load_model_file(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and description of a stored model."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata() or {}
            weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        return weights, json.loads(metadata["tapnet"])
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    except (SafetensorError, KeyError, ValueError):
        raise DataError(f"{file}: not a model of tapnet, which `tapnet train` writes as .safetensors") from None
    except OSError as error:
        raise DataError(f"{file}: not a model of tapnet ({error.strerror or error})") from None


def write_atomically(file: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """The file is whole or it is not there; what prevents it is said in one sentence."""
    try:
        with replacing(file) as out:
            write(out)
    except OSError as error:
        raise TapnetError(f"{file}: cannot be written ({error.strerror or error})") from None
