"""Downloads of data sets: a file is there whole, checked and with its checksum noted, or it is not there."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tapnet import __version__
from tapnet.data.catalog import CatalogEntry
from tapnet.errors import DataError
from tapnet.files import cache_dir, replacing
from tapnet.io.dataset_files import layout_of
from tapnet.io.read import read_layout
from tapnet.progress import CHUNK_BYTES, download_bar

# Both can be pointed at a mirror through the environment.
TU_COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"  # TAPNET_TU_URL
PTC_TEXT = "https://raw.githubusercontent.com/muhanzhang/pytorch_DGCNN/master/data/PTC/PTC.txt"  # TAPNET_PTC_URL
SILENT_SECONDS = 30  # after which a server that sends nothing is given up
WHOLE_SECONDS = 3600  # for all of it
SLOW_SECONDS, SLOWEST_BYTES = 60, 5_000  # after so long, it has to have brought so much a second
MAX_BYTES, MAX_UNANNOUNCED_BYTES = 1 << 30, 1 << 28  # the largest sets of the collection have some 100 MB


def downloads() -> Path:
    """The folder of downloaded files."""
    return cache_dir() / "downloads"


def url_of(entry: CatalogEntry | None, name: str) -> str:
    """Where a data set of the catalogue, or any other of the TU collection, is downloaded from."""
    if entry is not None and entry.tu_name is None:
        return os.environ.get("TAPNET_PTC_URL", PTC_TEXT)
    tu_name = name if entry is None else entry.tu_name
    return f"{os.environ.get('TAPNET_TU_URL', TU_COLLECTION).rstrip('/')}/{tu_name}.zip"


def download(entry: CatalogEntry | None, name: str, url: str) -> Path:
    """Downloads a data set into the cache.

    Args:
        entry: What the catalogue says of the data set; None: it is not in the catalogue.
        name: The name by which it was asked for.
        url: Where it is, from ``url_of``.

    Returns:
        The file.

    Raises:
        OSError: It did not arrive, not as a whole, not in time, or it is too large or another data set (requests'
            errors are OSErrors, too).
    """
    suffix = ".txt" if entry is not None and entry.tu_name is None else ".zip"
    target = downloads() / f"{entry.name if entry else name}{suffix}"
    with replacing(target) as out:
        for chunk in _receive(url, f"downloading {target.name}", b"PK" if suffix == ".zip" else b""):
            out.write(chunk)
        out.flush()
        try:
            _check_arrived(Path(out.name), entry, name)
        except DataError as error:
            reason = str(error).replace(out.name, target.name)
            raise OSError(f"what arrived is not the data set ({reason})") from None
        with replacing(_checksum_file(target)) as note:
            note.write(_checksum(Path(out.name)).encode())
    return target


def _receive(url: str, title: str, begin: bytes) -> Iterator[bytes]:
    """What arrives, as it arrives: a server may send a byte a second, or never end.

    Args:
        url: The address.
        title: What the bar shows.
        begin: The bytes that the content begins with.
    """
    import requests
    from urllib3.exceptions import HTTPError

    headers = {"User-Agent": f"tapnet/{__version__}", "Accept-Encoding": "identity"}
    started, size = time.monotonic(), 0
    with requests.get(url, stream=True, timeout=SILENT_SECONDS, headers=headers) as response:
        response.raise_for_status()
        announced = response.headers.get("content-length", "")
        total = int(announced) if announced.isdecimal() else None
        limit = MAX_UNANNOUNCED_BYTES if total is None else MAX_BYTES
        with download_bar(total, title) as advance:
            while True:
                try:
                    chunk = response.raw.read1(CHUNK_BYTES)
                except HTTPError as error:  # which is no OSError
                    raise OSError(str(error)) from None
                size, seconds = size + len(chunk), time.monotonic() - started
                if (total or size) > limit:
                    raise OSError(f"it is larger than {limit >> 20} MB, which no data set is")
                if seconds > WHOLE_SECONDS or (seconds > SLOW_SECONDS and size < SLOWEST_BYTES * seconds):
                    raise OSError(f"{size:,} bytes had arrived after {seconds:.0f} seconds, which is too slow")
                if chunk and size == len(chunk) and not chunk.startswith(begin[: len(chunk)]):
                    raise OSError(f"what arrived is not the data set ({url.rpartition('/')[2]} is no .zip archive)")
                if not chunk:
                    break
                advance(len(chunk))
                yield chunk
    if total is not None and size < total:
        raise OSError(f"it was cut off after {size:,} of {total:,} bytes")


def is_intact(file: Path) -> bool:
    """Whether a download still has the checksum that it arrived with; True where none was noted."""
    note = _checksum_file(file)
    if not note.is_file():  # a pipe would keep us waiting
        return True
    try:
        with note.open("rb") as stream:
            noted = stream.read(1000).decode("ascii").strip()
    except (OSError, ValueError):
        return True
    return _checksum(file) == noted


def _checksum(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _checksum_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")


def _check_arrived(file: Path, entry: CatalogEntry | None, name: str) -> None:
    layout = layout_of(file)
    dataset = read_layout(layout)
    if entry is not None and (len(dataset), dataset.num_classes) != (entry.graphs, entry.classes):
        raise DataError(
            f"{layout.prefix} has {len(dataset)} graphs in {dataset.num_classes} classes; "
            f"{entry.name} has {entry.graphs} in {entry.classes}"
        )
    if entry is None and layout.prefix.upper() != name.upper():
        raise DataError(f"it holds {layout.prefix}, not {name}")
