"""Downloads of data sets: a file is there whole, checked and with its checksum noted, or it is not there."""

from __future__ import annotations

import os
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
TIMEOUT_SECONDS = 30


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
        OSError: It did not arrive, not as a whole, or it is another data set (requests' errors are OSErrors, too).
    """
    import pooch

    suffix = ".txt" if entry is not None and entry.tu_name is None else ".zip"
    target = downloads() / f"{entry.name if entry else name}{suffix}"
    with download_bar(f"downloading {target.name}") as bar, replacing(target) as out:
        options = {"timeout": TIMEOUT_SECONDS, "headers": {"User-Agent": f"tapnet/{__version__}"}}
        pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK_BYTES, **options)(url, out, None)
        out.flush()
        try:
            _check_arrived(Path(out.name), entry, name)
        except DataError as error:
            reason = str(error).replace(out.name, target.name)
            raise OSError(f"what arrived is not the data set ({reason})") from None
        with replacing(_checksum_file(target)) as note:
            note.write(pooch.file_hash(out.name).encode())
    return target


def is_intact(file: Path) -> bool:
    """Whether a download still has the checksum that it arrived with; True where none was noted."""
    import pooch

    try:
        noted = _checksum_file(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return True
    return bool(pooch.file_hash(str(file)) == noted)


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
