"""Results of several machines in one folder: checked, and packed into one file of JSON lines for each data set."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tapnet.errors import DamagedFileWarning, DataError
from tapnet.experiments.store import (
    MAX_PACKED_BYTES,
    MAX_TEXT_BYTES,
    PACKED,
    Store,
    check_line,
    packed_lines,
    result_files,
)
from tapnet.files import IrregularFileError, counted, printable, read_regular, reading, write_atomically


@dataclass(frozen=True)
class Merged:
    """What `merge_trials` found.

    Attributes:
        folder: Where the results are.
        files: How many packed files there are now, by name how many trials each has.
        new: How many trials came from other folders.
        twice: How many of theirs were there already.
        different: The keys of trials that two folders have with different numbers; the first folder's are kept.
        damaged: What could not be taken, with the reason.
    """

    folder: Path
    files: dict[str, int]
    new: int
    twice: int
    different: tuple[str, ...]
    damaged: tuple[str, ...]

    def __str__(self) -> str:
        trials = sum(self.files.values())
        place = f"{counted(len(self.files), 'file')} of {self.folder / 'trials'}"
        words = [f"{counted(trials, 'trial')} in {place}, {self.new} of them new"]
        if self.different:
            some = ", ".join(self.different[:5]) + (" …" if len(self.different) > 5 else "")
            words.append(f"{len(self.different)} are there with other numbers, which stay: {some}")
        words += [f"{len(self.damaged)} cannot be used:", *map(printable, self.damaged[:20])] if self.damaged else []
        return "\n".join(words)

    def to_dict(self) -> dict[str, object]:
        """The same as JSON takes it."""
        counts = {"files": self.files, "new": self.new, "twice": self.twice}
        return {"folder": str(self.folder), **counts, "different": self.different, "damaged": self.damaged}


def merge_trials(folder: str | Path, others: Iterable[str | Path] = ()) -> Merged:
    """Packs the results in a folder into ``trials/DATASET.jsonl``, with those of other folders.

    Every result is checked first: its checksum, its key and its numbers. A key names everything that a result depends
    on, so results of the same key are the same trial; where their numbers differ (another processor), the first stay.
    Results that are packed are read as before. The files of single results are removed when they are packed; nothing
    of the other folders is changed. A packed file with damaged lines is kept as ``.damaged``.

    Args:
        folder: With ``trials/``; it is made if it is not there.
        others: Such folders, or folders of results themselves.

    Returns:
        What was found and done.

    Raises:
        DataError: If another folder has no results, or the only folder has none, or has some outside of ``trials/``.
        TapnetError: If something cannot be written.

    Example:
        >>> print(merge_trials("results"))  # doctest: +SKIP
    """
    folder, trials, sources = Path(folder), Path(folder) / "trials", list(map(Path, others))
    Store(folder)  # refuses a file, or a name that cannot be one
    if stray := sum(1 for _ in _lines(folder, [])):
        what = "1 result is" if stray == 1 else f"{stray} results are"
        raise DataError(
            f"{folder}: {what} not in a folder trials; move them into one, or merge this into another folder"
        )
    if not sources and not result_files(trials) and not any(trials.glob(f"*{PACKED}")):
        raise DataError(f"{folder}: no results are there")
    kept = dict[str, tuple[str, bytes]]()
    damaged, different = list[str](), list[str]()
    for key, data, line in _checked(folder / "trials", damaged):
        kept.setdefault(key, (data, line))  # a file of its own is newer than a packed line
    before, twice = len(kept), 0
    for other in sources:
        there = other / "trials" if (other / "trials").is_dir() else other
        if not there.is_dir() or not any(True for _ in _lines(there, [])):
            raise DataError(f"{other}: no results are there")
        for key, data, line in _checked(there, damaged):
            twice += key in kept
            if key in kept and not _same_numbers(kept[key][1], line):
                different.append(key)
            kept.setdefault(key, (data, line))
    packed = dict[str, list[bytes]]()
    for _, (data, line) in sorted(kept.items()):
        packed.setdefault(_file_name(data), []).append(line)
    for file in sorted((folder / "trials").glob(f"*{PACKED}")):
        if any(place.startswith(str(file)) for place in damaged):
            with reading(file), suppress(IrregularFileError):  # a pipe holds nothing to keep
                write_atomically(file.with_suffix(".damaged"), read_regular(file, MAX_PACKED_BYTES))
    for name, lines in packed.items():
        write_atomically(folder / "trials" / name, b"".join(lines))
    for file in result_files(folder / "trials"):
        if file.stem in kept:
            with suppress(OSError):  # another program has put it aside meanwhile
                file.unlink()
    counts = {name: len(lines) for name, lines in sorted(packed.items())}
    return Merged(folder, counts, len(kept) - before, twice, tuple(different), tuple(damaged))


def _checked(trials: Path, damaged: list[str]) -> Iterator[tuple[str, str, bytes]]:
    """The key, data set and line of each result that is whole; of the others a sentence goes to ``damaged``."""
    for place, key, line in _lines(trials, damaged):
        try:
            yield key, check_line(key, line), line
        except ValueError as error:
            damaged.append(f"{place}: {error}")


def _lines(trials: Path, damaged: list[str]) -> Iterator[tuple[str, str, bytes]]:
    for file in result_files(trials):
        try:
            yield str(file), file.stem, read_regular(file, MAX_TEXT_BYTES)
        except OSError as error:
            damaged.append(f"{file}: cannot be read ({error.strerror or error})")
    for file in sorted(trials.glob(f"*{PACKED}")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DamagedFileWarning)
            lines = packed_lines(file)
        damaged.extend(str(one.message) for one in said)
        for key, line in lines.items():
            yield f"{file}, {key}", key, line


def _same_numbers(line: bytes, other: bytes) -> bool:
    """Whether two results have the same curves and readings; the seconds that they took differ anyway."""
    first, second = json.loads(line), json.loads(other)
    return all(first.get(name) == second.get(name) for name in ("accuracy", "readings", "curves"))


def _file_name(dataset: str) -> str:
    return (re.sub(r"[^\w.-]", "_", dataset).strip(".")[:80] or "data") + PACKED
