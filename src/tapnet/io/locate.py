"""Where a data set's files are: a path, the user's folder, this package, the cache, or a download into it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from tapnet.data.catalog import CATALOG, CatalogEntry, find_entry
from tapnet.errors import DatasetNotFoundError, DownloadError, SettingError, did_you_mean
from tapnet.files import check_name, expanded, path_exists, printable
from tapnet.io import download as downloads
from tapnet.io.dataset_files import ARRAY_ENDINGS, GRAPH_ENDINGS, MOLECULE_ENDINGS, Layout, find_layout, layout_of

LONGEST_NAME, LONGEST_SHOWN = 64, 100  # characters: of a name that is looked up on the network; in a message
NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{LONGEST_NAME}}}")
PACKAGED = Path(__file__).parent / "datasets"  # MUTAG, so that one real data set is there offline


class Source(NamedTuple):
    """Files that were found, and in which kind of place."""

    layout: Layout
    place: str  # path, data-dir, TAPNET_DATA, package, cache or download


def find(name_or_path: str | Path, data_dir: str | Path | None = None, *, download: bool = True) -> Source:
    """Finds the files of a data set in the first place that has it: path, data folder, package, cache, download.

    Args:
        name_or_path: A name such as ``"MUTAG"``, or the path of a file or folder.
        data_dir: A folder with data sets; by default the folder that TAPNET_DATA names, if any.
        download: Whether to download what is nowhere else.

    Returns:
        The files and the kind of place.

    Raises:
        DatasetNotFoundError: No place has it, or it can be no name.
        DownloadError: It had to be downloaded, which failed.
        SettingError: The name is empty, or ``data_dir`` is not a folder.
    """
    text, entry = str(name_or_path), find_entry(str(name_or_path))
    if not text:
        raise SettingError("the name of the data set is empty")
    check_name(text)
    folders = _folders(data_dir)
    path = expanded(text) if text.startswith("~") else Path(text)
    is_path = (
        isinstance(name_or_path, Path)
        or any(sep in text for sep in (os.sep, os.altsep) if sep)
        or path.name in ("", "..")
    )
    endings = (*GRAPH_ENDINGS, *MOLECULE_ENDINGS, *ARRAY_ENDINGS)
    if is_path or path.suffix in (".zip", ".txt") or text.lower().endswith(endings):
        if not path_exists(path):
            raise DatasetNotFoundError(f"{text}: no such file or folder")
        return Source(layout_of(path), "path")
    for folder, place in folders:
        for name in entry.names if entry else (text,):
            for candidate in (folder / name, folder / name / "raw", folder / f"{name}.zip", folder / f"{name}.txt"):
                if path_exists(candidate) and (layout := find_layout(candidate)):
                    return Source(layout, place)
    if entry is None and path_exists(path):  # a folder here and now; the paper's sets are never meant by that
        return Source(layout_of(path), "path")
    if entry is None and not NAME.fullmatch(text):  # such as a SMILES, which is nobody else's business
        shown = printable(text)[:LONGEST_SHOWN] + "…" * (len(text) > LONGEST_SHOWN)
        letters = f"up to {LONGEST_NAME} letters, digits, _, - and ."
        raise DatasetNotFoundError(f"{shown}: no such file or folder, and no name of a data set ({letters})")
    not_found = _not_found(text, entry, [f"{folder} ({place})" for folder, place in folders])
    if not download:
        raise DatasetNotFoundError(not_found)
    return _download(entry, text, not_found)


def _folders(data_dir: str | Path | None) -> list[tuple[Path, str]]:
    folders = []
    given, kind = (os.environ.get("TAPNET_DATA"), "TAPNET_DATA") if data_dir is None else (data_dir, "data-dir")
    if given:
        folders.append((expanded(given), kind))
        if not folders[0][0].is_dir():
            raise SettingError(f"{kind.replace('-', '_')}: {folders[0][0]} is not a folder")
    return [*folders, (PACKAGED, "package"), (downloads.downloads(), "cache")]


def _not_found(name: str, entry: CatalogEntry | None, looked: list[str]) -> str:
    near = did_you_mean(name, CATALOG)
    known = "" if entry else f" The paper's sets are {', '.join(CATALOG)}."
    here = "" if entry else f"there is no file or folder {name}{f'{near} ' if near else ', and '}"
    return (
        f"{here}{name} is not in {', '.join(looked)}. Put its folder or {name}.zip into a folder and name that "
        f"folder by data_dir or TAPNET_DATA.{known}"
    )


def _download(entry: CatalogEntry | None, name: str, not_found: str) -> Source:
    url = downloads.url_of(entry, name)
    try:
        file = downloads.download(entry, name, url)
    except (OSError, ValueError) as error:
        if getattr(getattr(error, "response", None), "status_code", None) == 404:
            raise DatasetNotFoundError(f"{not_found} Nor is it at {url}.") from None
        raise DownloadError(f"{not_found} Downloading {url} failed: {_reason(error)}.") from None
    return Source(layout_of(file), "download")


def _reason(error: BaseException) -> BaseException:
    """What the layers of an HTTP library wrapped: "Connection refused" rather than a dump of the request."""
    while inner := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = inner
    return error
