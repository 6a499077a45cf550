"""Finding a data set's files: a TU folder, a one-file text or graphs in files, on disk or in a trusted archive."""

from __future__ import annotations

import glob
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from tapnet.errors import DataError

Place = Path | zipfile.Path  # a folder or file, on disk or in an archive
Kind = Literal["tu", "text", "graphs"]

LABELS = "labels.csv"  # the classes of a folder of graphs
GRAPH_ENDINGS = (".graphml", ".json")

# The largest data set of the field unpacks to a few GB; an archive that claims more, or that shrank its text more
# than text shrinks, is not a data set.
MAX_UNPACKED_BYTES = 64 << 30
MAX_COMPRESSION, ALWAYS_BEARABLE_BYTES = 200, 1 << 24


# What a damaged file or archive makes the standard library raise.
UNREADABLE = (
    UnicodeDecodeError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    EOFError,
    OSError,
)


# ---- names that are shown, and files that can be opened ----

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def printable(text: object) -> str:
    """In one line, and with whatever could speak to a terminal or is no letter at all as an escape, such as \\x1b."""
    words = str(text)
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def check_name(name: object) -> None:
    """A file's name stands in messages, so it must not speak to the terminal that shows them."""
    if _CONTROL.search(str(name)):
        raise DataError(f"{printable(name)}: a name with control characters in it, which is not read for safety")


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for a file, for one
        return False


def is_special(path: Path) -> bool:
    """A pipe, a device or a socket: who opens it may wait for ever."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # not there
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


# ---- finding ----


class Layout(NamedTuple):
    """A data set's files, found but not yet read."""

    kind: Kind
    place: Place  # the folder of TU files or of graphs, the text, or the file of one graph
    prefix: str  # NAME
    root: Path  # the same on disk: a folder, an archive or a file

    def files(self) -> list[Path]:
        """The files on disk that it is read from."""
        if self.root.is_file():
            return [self.root]
        if self.kind == "graphs":
            found = [file for file in self.root.iterdir() if file.name == LABELS or is_graph_file(file.name)]
        else:
            found = list(self.root.glob(f"{glob.escape(self.prefix)}_*.txt"))
        return sorted(file for file in found if file.is_file())


def layout_of(path: Path) -> Layout:
    """What ``find_layout`` finds, or an error that says what belongs there."""
    layout = find_layout(path)
    if layout is None:
        if path.is_dir() and not any(path.iterdir()):
            raise DataError(f"{path}: the folder is empty")
        raise DataError(
            f"{path}: neither a TU data set (NAME_A.txt, NAME_graph_indicator.txt, …) nor a text file "
            "nor a folder of graphs (.graphml, .json)"
        )
    return layout


def find_layout(path: Path) -> Layout | None:
    """TU files, a text or graphs in ``path``, or in a folder (such as ``raw``) inside it; None if there are none."""
    if path.is_file():
        if path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
            found = _find_in_folder(open_archive(path), path.stem)
            return found and Layout(*found, root=path)
        return Layout("graphs" if is_graph_file(path.name) else "text", path, path.stem, root=path)
    if not path.is_dir():
        return None
    found = _find_in_folder(path, path.name if path.name not in ("", "..") else path.resolve().name)
    if found is None:
        return None
    kind, place, prefix = found
    assert isinstance(place, Path)
    return Layout(kind, place, prefix, root=place)


def is_graph_file(name: str) -> bool:
    return name.lower().endswith(GRAPH_ENDINGS) and not name.startswith(".")


def _find_in_folder(folder: Place, name: str) -> tuple[Kind, Place, str] | None:
    inner = [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(("_", "."))]
    places = (folder, *sorted(inner, key=lambda child: child.name))
    files = [(place, file) for place in places for file in _files(place, ".txt")]
    end = "_graph_indicator.txt"
    sets = [(place, file.removesuffix(end)) for place, file in files if file.endswith(end)]
    if sets:
        return "tu", *_the_one(sets, name, folder)
    for place, file in files:
        if file.endswith("_A.txt"):
            raise DataError(f"{place / file}: {file.removesuffix('_A.txt')}{end} is missing beside it")
    graphs = _folder_with(places, LABELS, ".graphml")
    texts = [(place, file.removesuffix(".txt")) for place, file in files if _may_hold_graphs(file)]
    if texts and graphs is None:
        place, prefix = _the_one(texts, name, folder)
        return "text", place / f"{prefix}.txt", prefix
    graphs = graphs or _folder_with(places, ".json")  # beside a text it may say anything
    return None if graphs is None else ("graphs", graphs, name)


def _folder_with(places: Sequence[Place], *endings: str) -> Place | None:
    """The first of the folders if it has such files, else the only other one that has."""
    found = [
        place
        for place in places
        if readable_files(place, lambda name: name.lower().endswith(endings) and not name.startswith("."))
    ]
    if len(found) > 1 and found[0] is not places[0]:
        names = ", ".join(place.name for place in found)
        raise DataError(f"{places[0]}: graphs in several folders ({names}); name one of them")
    return found[0] if found else None


def _files(place: Place, ending: str) -> list[str]:
    return readable_files(place, lambda name: name.endswith(ending) and not name.startswith("."))


def readable_files(folder: Place, wanted: Callable[[str], bool]) -> list[str]:
    """The names of those files that are wanted by their names."""
    found = [child for child in folder.iterdir() if wanted(child.name)]
    for child in found:
        check_name(child)
    return [child.name for child in found if child.is_file()]


def _may_hold_graphs(file: str) -> bool:
    return not any(word in file.lower() for word in ("readme", "license", "licence", "requirements"))


def _the_one(found: list[tuple[Place, str]], name: str, folder: Place) -> tuple[Place, str]:
    """The only data set, or the one that is named as its folder is."""
    if len(found) > 1:
        found = [(place, prefix) for place, prefix in found if prefix == name] or found
    if len(found) > 1:
        names = ", ".join(sorted({prefix for _, prefix in found}))
        raise DataError(f"{folder}: several data sets ({names}); name the folder or file of one of them")
    return found[0]


def open_archive(path: Path) -> zipfile.Path:
    """An archive that can be trusted to stay in its folder and to unpack to a bearable size."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise DataError(f"{path}: not a readable .zip archive, or cut off ({error})") from None
    unpacked = 0
    for entry in archive.infolist():
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if ".." in parts or entry.filename.startswith(("/", "\\")) or (parts and parts[0].endswith(":")):
            raise DataError(f"{path}: the entry {entry.filename!r} leaves the folder; the archive is not opened")
        check_name(f"{path}/{entry.filename}")
        if entry.flag_bits & 1:
            raise DataError(f"{path}: the entry {entry.filename!r} is encrypted")
        unpacked += entry.file_size
    bearable = max(ALWAYS_BEARABLE_BYTES, MAX_COMPRESSION * path.stat().st_size)
    if unpacked > min(MAX_UNPACKED_BYTES, bearable):
        raise DataError(f"{path}: unpacks to {unpacked / 1e9:.1f} GB from {path.stat().st_size / 1e6:.1f} MB: refused")
    return zipfile.Path(archive)
