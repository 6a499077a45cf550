"""Where a data set's files are: a path, the user's folder, GraKeL's files, the cache, or a download into it."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tapnet import __version__
from tapnet.data.catalog import CATALOG, CatalogEntry, find_entry
from tapnet.errors import DataError, DatasetNotFoundError, DownloadError, SettingError, did_you_mean
from tapnet.files import replacing
from tapnet.io import formats
from tapnet.io.layout import GRAPH_ENDINGS, Layout, check_name, exists, find_layout, layout_of
from tapnet.progress import copy_with_progress

# Both can be pointed at a mirror through the environment.
TU_COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"  # TAPNET_TU_URL
PTC_TEXT = "https://raw.githubusercontent.com/muhanzhang/pytorch_DGCNN/master/data/PTC/PTC.txt"  # TAPNET_PTC_URL
TIMEOUT_SECONDS = 30


class Source(NamedTuple):
    """Files that were found, and in which kind of place."""

    layout: Layout
    place: str


def cache_dir() -> Path:
    """Downloads and parsed copies: TAPNET_CACHE, or the user's cache folder."""
    chosen = os.environ.get("TAPNET_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tapnet"


def find(name_or_path: str | Path, data_dir: str | Path | None = None, *, download: bool = True) -> Source:
    """The first place that has it: path, data folder, GraKeL, cache, download."""
    text, entry = str(name_or_path), find_entry(str(name_or_path))
    if not text:
        raise SettingError("the name of the data set is empty")
    check_name(text)
    folders = _folders(data_dir)
    path = Path(text).expanduser()
    is_path = isinstance(name_or_path, Path) or os.sep in text or path.name in ("", "..")
    if is_path or path.suffix in (".zip", ".txt") or path.suffix.lower() in GRAPH_ENDINGS:
        if not exists(path):
            raise DatasetNotFoundError(f"{text}: no such file or folder")
        return Source(layout_of(path), "path")
    for folder, place in folders:
        for name in entry.names if entry else (text,):
            for candidate in (folder / name, folder / name / "raw", folder / f"{name}.zip", folder / f"{name}.txt"):
                if exists(candidate) and (layout := find_layout(candidate)):
                    return Source(layout, place)
    if entry is None and exists(path):  # a folder here and now; the paper's sets are never meant by that
        return Source(layout_of(path), "path")
    looked = [f"{folder} ({place})" for folder, place in folders]
    if not download:
        raise DatasetNotFoundError(_not_found(text, looked))
    return _download(entry, text, looked)


def _folders(data_dir: str | Path | None) -> list[tuple[Path, str]]:
    folders = []
    given, place = (data_dir, "data-dir") if data_dir is not None else (os.environ.get("TAPNET_DATA"), "TAPNET_DATA")
    if given:
        folder = Path(given).expanduser()
        if not folder.is_dir():
            raise SettingError(f"{place}: {folder} is not a folder")
        folders.append((folder, place))
    grakel = find_spec("grakel")  # looked up, not imported
    if grakel is not None and grakel.origin is not None:
        folders.append((Path(grakel.origin).parent / "tests" / "data", "GraKeL"))
    return [*folders, (cache_dir() / "downloads", "cache")]


def _not_found(name: str, looked: list[str]) -> str:
    entry = find_entry(name)
    near = did_you_mean(name, CATALOG) or "."
    known = "" if entry else f" The paper's sets are {', '.join(CATALOG)}{near}"
    here = "" if entry else f"there is no file or folder {name}, and "
    return (
        f"{here}{name} is not in {', '.join(looked)}. Put its folder or {name}.zip into a folder and name that "
        f"folder with --data-dir or TAPNET_DATA.{known}"
    )


def _download(entry: CatalogEntry | None, name: str, looked: list[str]) -> Source:
    if entry is not None and entry.tu_name is None:
        url, suffix = os.environ.get("TAPNET_PTC_URL", PTC_TEXT), ".txt"
    else:
        tu_name = name if entry is None else entry.tu_name
        url, suffix = f"{os.environ.get('TAPNET_TU_URL', TU_COLLECTION).rstrip('/')}/{tu_name}.zip", ".zip"
    target = cache_dir() / "downloads" / f"{entry.name if entry else name}{suffix}"
    try:
        fetch(url, target, lambda file: _check_arrived(file, entry, name))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise DatasetNotFoundError(f"{_not_found(name, looked)} Nor is it at {url}.") from None
        raise DownloadError(f"{_not_found(name, looked)} Downloading {url} failed: {error}.") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(f"{_not_found(name, looked)} Downloading {url} failed: {reason}.") from None
    return Source(layout_of(target), "download")


def fetch(url: str, target: Path, check: Callable[[Path], None]) -> None:
    """A download that is either there, whole and checked, or not there."""
    request = urllib.request.Request(url, headers={"User-Agent": f"tapnet/{__version__}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response, replacing(target) as out:
        size = response.headers.get("Content-Length")
        total = int(size) if size else None
        copied = copy_with_progress(response, out, total, f"downloading {target.name}")
        if total is not None and copied != total:
            raise OSError(f"cut off after {copied} of {total} bytes")
        out.flush()
        try:
            check(Path(out.name))
        except DataError as error:
            reason = str(error).replace(out.name, target.name)
            raise OSError(f"what arrived is not the data set ({reason})") from None


def _check_arrived(file: Path, entry: CatalogEntry | None, name: str) -> None:
    layout = layout_of(file)
    dataset = formats.read_layout(layout)
    if entry is not None and (len(dataset), dataset.num_classes) != (entry.graphs, entry.classes):
        raise DataError(
            f"{layout.prefix} has {len(dataset)} graphs in {dataset.num_classes} classes; "
            f"{entry.name} has {entry.graphs} in {entry.classes}"
        )
    if entry is None and layout.prefix.upper() != name.upper():
        raise DataError(f"it holds {layout.prefix}, not {name}")
