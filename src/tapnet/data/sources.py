"""Where a data set's files are: a path, the user's folder, GraKeL's files, the cache, or a download into it."""

from __future__ import annotations

import http.client
import os
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tapnet import __version__
from tapnet.data import formats
from tapnet.data.catalog import CATALOG, CatalogEntry, find_entry
from tapnet.errors import DataError, DatasetNotFoundError, DownloadError
from tapnet.progress import copy_with_progress

# Both can be pointed at a mirror through the environment.
TU_COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"  # TAPNET_TU_URL
PTC_TEXT = "https://raw.githubusercontent.com/muhanzhang/pytorch_DGCNN/master/data/PTC/PTC.txt"  # TAPNET_PTC_URL
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Source:
    """Files that were found, and in which kind of place."""

    path: Path
    place: str


def cache_dir() -> Path:
    """Downloads and parsed copies: TAPNET_CACHE, or the user's cache folder."""
    chosen = os.environ.get("TAPNET_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tapnet"


def find(name_or_path: str | Path, data_dir: str | Path | None = None, *, download: bool = True) -> Source:
    """The first place that has it: path, data folder, GraKeL, cache, download."""
    text = str(name_or_path)
    path = Path(text).expanduser()
    entry = find_entry(text)
    if path.exists() and (entry is None or formats.find_layout(path)):
        return Source(path, "path")
    if isinstance(name_or_path, Path) or os.sep in text or path.suffix in (".zip", ".txt"):
        raise DatasetNotFoundError(f"{text}: no such file or folder")

    names = entry.names if entry else (text,)
    looked: list[str] = []
    for folder, place in _folders(data_dir):
        looked.append(f"{folder} ({place})")
        for name in names:
            for candidate in (
                folder / name,
                folder / name / "raw",
                folder / f"{name}.zip",
                folder / f"{name}.txt",
            ):
                if candidate.exists() and formats.find_layout(candidate):
                    return Source(candidate, place)
    if not download:
        raise DatasetNotFoundError(_not_found(text, looked))
    return _download(entry, text, looked)


def _folders(data_dir: str | Path | None) -> list[tuple[Path, str]]:
    folders = []
    if data_dir is not None:
        folders.append((Path(data_dir).expanduser(), "data-dir"))
    elif os.environ.get("TAPNET_DATA"):
        folders.append((Path(os.environ["TAPNET_DATA"]).expanduser(), "TAPNET_DATA"))
    grakel = find_spec("grakel")  # looked up, not imported
    if grakel is not None and grakel.origin is not None:
        folders.append((Path(grakel.origin).parent / "tests" / "data", "GraKeL"))
    return [*folders, (cache_dir() / "downloads", "cache")]


def _not_found(name: str, looked: list[str]) -> str:
    known = "" if find_entry(name) else f" The paper's sets are {', '.join(CATALOG)}."
    return (
        f"{name} is not in {', '.join(looked)}. Put its folder or {name}.zip into a folder and name that folder with "
        f"--data-dir or TAPNET_DATA.{known}"
    )


def _download(entry: CatalogEntry | None, name: str, looked: list[str]) -> Source:
    if entry is not None and entry.tu_name is None:
        url, suffix = os.environ.get("TAPNET_PTC_URL", PTC_TEXT), ".txt"
    else:
        tu_name = name if entry is None else entry.tu_name
        url, suffix = f"{os.environ.get('TAPNET_TU_URL', TU_COLLECTION).rstrip('/')}/{tu_name}.zip", ".zip"
    target = cache_dir() / "downloads" / f"{entry.name if entry else name}{suffix}"
    try:
        fetch(url, target)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise DatasetNotFoundError(f"{_not_found(name, looked)} Nor is it at {url}.") from None
        raise DownloadError(f"{_not_found(name, looked)} Downloading {url} failed: {error}.") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(f"{_not_found(name, looked)} Downloading {url} failed: {reason}.") from None
    return Source(target, "download")


def fetch(url: str, target: Path) -> None:
    """A download that is either there, whole and readable, or not there: temporary name, check, rename."""
    target.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": f"tapnet/{__version__}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".partial-", suffix=target.suffix)
        partial = Path(temporary)
        try:
            with os.fdopen(handle, "wb") as out:
                size = response.headers.get("Content-Length")
                total = int(size) if size else None
                copied = copy_with_progress(response, out, total, f"downloading {target.name}")
            if total is not None and copied != total:
                raise OSError(f"cut off after {copied} of {total} bytes")
            try:
                formats.read(partial)
            except DataError as error:
                reason = str(error).replace(str(partial), target.name)
                raise OSError(f"what arrived is not the data set ({reason})") from None
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
