"""Which files make a data set: TU files, a text, a table of molecules, or files of one graph or matrix each."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, cast

from tapnet.errors import DataError
from tapnet.io._plain_text import BOM, WHOLE
from tapnet.io.archive import Place, open_archive, read_content, readable_files, subfolders
from tapnet.io.tables import LABELS, SHOWN, TARGETS, excel_error, is_excel_name, is_left_aside, may_hold_graphs

Kind = Literal["tu", "text", "graphs", "molecules", "matrices"]
GRAPH_ENDINGS = (".graphml", ".json")
ARRAY_ENDINGS = (".npy", ".npz")
NODES = "nodes.csv"  # the nodes of a folder of matrices, or with a name before it those of one matrix
FIRST_BYTES = 64  # of a text, for its first line
EXCEL_FOLDER = "xl"  # in every .xlsx, which is an archive
PICKLE_ENDINGS = (".pkl", ".pickle", ".pt", ".pth")
MOLECULE_ENDINGS = tuple(f"{end}{gz}" for end in (".csv", ".tsv", ".smi", ".sdf", ".sd") for gz in ("", ".gz"))


class Layout(NamedTuple):
    """A data set's files, found but not yet read."""

    kind: Kind
    place: Place  # the folder of TU files, of graphs or of matrices, the text, or the file of one graph
    prefix: str  # NAME
    root: Path  # the same on disk: a folder, an archive or a file

    def files(self) -> list[Path]:
        """The files on disk that it is read from."""
        if self.root.is_file():
            return [self.root]
        if self.kind == "graphs":
            tables = (LABELS, TARGETS)
            found = [file for file in self.root.iterdir() if file.name in tables or is_graph_file(file.name)]
            found += [file for file in self.root.iterdir() if is_left_aside(file.name)]  # which a note says
        elif self.kind == "matrices":
            found = [file for file in self.root.iterdir() if file.name.lower().endswith((*ARRAY_ENDINGS, ".csv"))]
            found += [file for file in self.root.iterdir() if is_left_aside(file.name)]
        else:
            found = [file for file in self.root.iterdir() if is_tu_file(file.name, self.prefix)]
        return sorted(file for file in found if file.is_file())


def layout_of(path: Path) -> Layout:
    """Finds the files of the data set at a path.

    Args:
        path: A folder, an archive or a file.

    Returns:
        The files.

    Raises:
        DataError: There is no data set, or more than one.
    """
    layout = find_layout(path)
    if layout is None:
        if path.is_dir() and not any(path.iterdir()):
            raise DataError(f"{path}: the folder is empty")
        if path.is_dir() and (pickles := _files(path, _is_pickle)):
            raise _not_read(path / min(pickles))
        if path.is_dir() and (tables := _files(path, is_excel_name)):
            raise excel_error(path / min(tables))
        raise DataError(
            f"{path}: neither a TU data set (NAME_A.txt, NAME_graph_indicator.txt, …) nor a text file "
            "nor a folder of graphs (.graphml, .json) or matrices (.npy, .npz, .csv) "
            "nor a table of molecules (.csv, .tsv, .smi, .sdf)"
        )
    return layout


def find_layout(path: Path) -> Layout | None:
    """``layout_of``, but None where there is no data set. Folders (such as ``raw``) inside it are searched, too."""
    if path.is_dir():
        found = _find_in_folder(path, path.name if path.name not in ("", "..") else path.resolve().name)
        return found and Layout(*found, root=cast(Path, found[1]))
    if not path.is_file():
        return None
    if _is_pickle(path.name):
        raise _not_read(path)
    if is_excel_name(path.name):
        raise excel_error(path)
    if path.name.lower().endswith(ARRAY_ENDINGS):
        return Layout("matrices", path, path.stem, root=path)
    if path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
        archive = open_archive(path)
        if path.suffix.lower() != ".zip" and any(place.name == EXCEL_FOLDER for place in subfolders(archive)):
            raise excel_error(path)  # under another name
        found = _find_in_folder(archive, path.stem)
        return found and Layout(*found, root=path)
    if path.name.lower().endswith(MOLECULE_ENDINGS):
        if path.name in (LABELS, TARGETS) and any(
            is_graph_file(file.name) or file.name.lower().endswith(ARRAY_ENDINGS) for file in path.parent.iterdir()
        ):
            raise DataError(f"{path}: the targets of a folder of graphs; name the folder, {path.parent}")
        return Layout("molecules", path, molecules_name(path), root=path)
    return Layout("graphs" if is_graph_file(path.name) else "text", path, path.stem, root=path)


def _is_pickle(name: str) -> bool:
    return name.lower().endswith(PICKLE_ENDINGS)


def _not_read(pickle: Path) -> DataError:
    return DataError(
        f"{pickle}: a pickle is not read, as it can run any program; load it yourself (torch.load, pickle.load) and "
        "make a data set of its graphs by GraphDataset.from_pyg or GraphDataset.from_networkx"
    )


def is_graph_file(name: str) -> bool:
    """Whether a file of this name holds one graph (and is not hidden)."""
    return name.lower().endswith(GRAPH_ENDINGS) and not name.startswith(".")


def is_matrix_file(name: str) -> bool:
    """Whether a file of this name holds the matrix of one graph (and is not hidden, and no table)."""
    lower = name.lower()
    if name.startswith(".") or lower in (LABELS, TARGETS, NODES) or lower.endswith(f".{NODES}"):
        return False
    return lower.endswith((*ARRAY_ENDINGS, ".csv"))


def molecules_name(path: Path) -> str:
    """The name of a file of molecules without its ending, and without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).stem


def is_tu_file(name: str, prefix: str) -> bool:
    """Whether a file belongs to the TU data set of this name; upper and lower case are the same."""
    return name.lower().startswith(f"{prefix}_".lower()) and name.lower().endswith(".txt")


def _find_in_folder(folder: Place, name: str) -> tuple[Kind, Place, str] | None:
    inner = [child for child in subfolders(folder) if not child.name.startswith(("_", "."))]
    places = (folder, *sorted(inner, key=lambda child: child.name))
    files = [(place, file) for place in places for file in _files(place, lambda file: file.lower().endswith(".txt"))]
    end = "_graph_indicator.txt"
    sets = [(place, file[: -len(end)]) for place, file in files if file.lower().endswith(end)]
    if sets:
        return "tu", *_the_one(sets, name, folder)
    for place, file in files:
        if file.lower().endswith("_a.txt"):
            raise DataError(f"{place / file}: {file[: -len('_A.txt')]}{end} is missing beside it")
    graphs = _folder_with(places, lambda place: bool(_files(place, _is_graphml)) or _has_table(place, matrices=False))
    matrices = _folder_with(places, lambda place: _has_table(place, matrices=True))
    if matrices is not None and (graphs is None or matrices is folder):
        return "matrices", matrices, name
    texts = [(place, file) for place, file in files if may_hold_graphs(file)]
    if any(_files(place, lambda file: is_graph_file(file) or is_matrix_file(file)) for place in places):
        texts = [(place, file) for place, file in texts if _begins_with_count(place / file)]
    if texts and graphs is None:
        place, file = _the_one(texts, f"{name}.txt", folder, is_text=True)
        return "text", place / file, file[: -len(".txt")]
    graphs = graphs or _folder_with(places, lambda place: bool(_files(place, is_graph_file)))
    if graphs is not None:
        return "graphs", graphs, name
    matrices = _folder_with(places, lambda place: bool(_files(place, is_matrix_file)))
    return None if matrices is None else ("matrices", matrices, name)


def _has_table(place: Place, *, matrices: bool) -> bool:
    """Whether a folder has a table of targets for matrices, or else for graphs."""
    only_matrices = bool(_files(place, is_matrix_file)) and not _files(place, is_graph_file)
    return only_matrices == matrices and bool(_files(place, (LABELS, TARGETS).__contains__))


def _is_graphml(name: str) -> bool:
    return name.lower().endswith(".graphml")


def _folder_with(places: Sequence[Place], has: Callable[[Place], bool]) -> Place | None:
    """The first of the folders if it has such files, else the only other one that has."""
    found = [place for place in places if has(place)]
    if len(found) > 1 and found[0] is not places[0]:
        names = ", ".join(place.name for place in found)
        raise DataError(f"{places[0]}: graphs in several folders ({names}); name one of them")
    return found[0] if found else None


def _files(place: Place, wanted: Callable[[str], bool]) -> list[str]:
    return readable_files(place, lambda name: wanted(name) and not name.startswith("."))


def _begins_with_count(file: Place) -> bool:
    """Whether a .txt file may be a data set: it begins with the number of graphs. A user's notes do not."""
    first = read_content(file, FIRST_BYTES).removeprefix(BOM).lstrip().partition(b"\n")[0]
    return WHOLE.fullmatch(first.strip().decode("latin-1")) is not None


def _the_one(found: list[tuple[Place, str]], name: str, folder: Place, *, is_text: bool = False) -> tuple[Place, str]:
    """The only data set, or the one that is named as its folder is."""
    if len(found) > 1:
        found = [(place, prefix) for place, prefix in found if prefix == name] or found
    if len(found) > 1:
        names = sorted({prefix for _, prefix in found})
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        why = "; each .txt file is read as a data set, and matrices are .csv, .npy or .npz" if is_text else ""
        raise DataError(f"{folder}: several data sets ({shown}); name the folder or file of one of them{why}")
    return found[0]
