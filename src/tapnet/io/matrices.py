"""A folder of adjacency matrices (.npy, .npz, .csv), one per graph, with tables of their nodes and targets.

A matrix is square; entry (i, j) is the weight of the edge from node i to node j, and zeros (or what is not above a
threshold) are no edges. The diagonal is left out. An edge in one direction counts for both, and where the two weights
differ their mean counts.

A .csv may name the nodes in its first line, its first column, or both. With both, the rows are brought into the order
of the first line by their names.

``nodes.csv`` describes the nodes of every graph, ``NAME.nodes.csv`` those of the matrix NAME: a header, then one row
per node, the first column a name. Where a matrix names its nodes, rows belong to the nodes of these names; where it
names none, or not one as the table does, they are in the order of the matrix. Columns of numbers are the nodes'
attributes, others their categories. The targets are in labels.csv or targets.csv, as for a folder of graphs.
"""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray

from tapnet.data.checks import categories_note
from tapnet.data.convert import IntArray, assemble, joined_edges
from tapnet.data.dataset import Features, GraphDataset, Task
from tapnet.data.targets import DECIMAL_COMMA, plain_minus
from tapnet.errors import DataError, SettingError, did_you_mean
from tapnet.files import counted, printable, reading
from tapnet.io.archive import Place, read_content, readable_files, total_size
from tapnet.io.dataset_files import NODES, is_matrix_file
from tapnet.io.mapped_parts import MappedParts, NotInPartsError
from tapnet.io.tables import Listing, Table, decode_table, list_graphs, read_table, separator, without_separator
from tapnet.progress import counting

MAX_FILE_BYTES = 1 << 27  # a dense matrix of 4,096 nodes
MAX_NODES = 1 << 20
LARGE_BYTES, VALUES_AT_ONCE = 1 << 28, 1 << 18  # of files that are read in parts; entries and nodes of a part
DENSE = 0.5  # from this share of all pairs on, edges hardly tell anything
MATRIX_NAMES = ("adjacency", "matrix", "arr_0")  # in a .npz of several arrays of numbers
SPARSE_NAMES = ("data", "indices", "indptr", "row", "col", "shape", "format")  # of scipy.sparse.save_npz
STRENGTH = "strength"
EDGE_LIST = "; a list of edges is not read: NetworkX's read_edgelist and write_graphml make a graph file of it"

FloatArray = NDArray[np.float64]


class _NoNumbersError(DataError):
    """An array of something else."""


class Matrix(NamedTuple):
    """The edges of a matrix.

    Attributes:
        size: The number of nodes.
        edge_index: ``[2, E]``
        weight: ``[E]``
        names: ``[size]`` of the nodes, where the file has them.
    """

    size: int
    edge_index: IntArray
    weight: FloatArray
    names: tuple[str, ...] | None = None


def read_matrices(
    place: Place,
    *,
    name: str,
    features: Features | None = None,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    threshold: float | None = None,
    directed: bool = False,
    strength: bool = False,
    on_error: Callable[[DataError], None] | None = None,
) -> GraphDataset:
    """Reads a folder of matrices, or the file of one.

    Args:
        place: The folder or file.
        name: The name of the data set.
        features: What ``x`` holds; by default what the tables of nodes say. Without such tables it is the sum of a
            node's weights, or its degree where the edges have no weights.
        target: The target column of targets.csv (or labels.csv), or several; see
            :func:`tapnet.io.tables.list_graphs`.
        task: What the target columns hold, where it is not what would be found.
        threshold: Entries whose absolute value is not larger are no edges; by default zeros are none.
        directed: Whether an entry in row i and column j is an edge from i to j only.
        strength: Whether to keep the sums of weights also where the edges have no weights, for a model that reads them.
        on_error: Called for each file that is wrong, which is then left out; for prediction, where no targets are read
            (``target=[]``). If no file is left, the last error is raised. By default the first one is.

    Returns:
        The data set.

    Raises:
        DataError: There are no matrices, or a file is wrong; the message names the file and the place in it.
        SettingError: The threshold is below 0.

    Example:
        >>> from tapnet import load_dataset
        >>> load_dataset("connectomes/", threshold=0.3)  # doctest: +SKIP
        GraphDataset('connectomes', graphs=120, nodes=10800, edges=51210, classes=2, attributes=1)
    """
    if threshold is not None and not (math.isfinite(threshold) and threshold >= 0):
        raise SettingError(f"threshold is a number from 0 on, not {threshold}")
    one_file = isinstance(place, Path) and place.is_file()
    folder = place.parent if isinstance(place, Path) and one_file else place
    listing = Listing([place.name]) if one_file else list_graphs(place, matrix_names(place), target, task)
    if not listing.files:
        raise DataError(f"{place}: no matrices (.npy, .npz, .csv) in this folder")
    files = _Files(place, folder, name, threshold, directed)
    try:
        found = _read_large(files, listing.files) or _read_all(files, listing.files)
    except DataError:
        wrong = {} if on_error is None or listing.targets is not None else _errors_of(files, listing.files)
        if on_error is None or not wrong:
            raise
        *others, last = wrong.values()
        for error in others:
            on_error(error)
        if len(wrong) == len(listing.files):
            raise last from None
        on_error(last)
        listing = listing._replace(files=[name for name in listing.files if name not in wrong])
        found = _read_all(files, listing.files)
    dataset, nodes = found.dataset, found.nodes
    notes = [*nodes.notes]
    if found.asymmetric:
        notes.append(
            f"{place}: {found.asymmetric} of {len(listing.files)} matrices are not symmetric: an edge in one direction "
            "counts for both, and where the two weights differ their mean counts"
        )
    if nodes.by_position:
        which = f"{nodes.by_position[0]}{', …' * (len(nodes.by_position) > 1)}"
        notes.append(f"{place}: the table of nodes has no name of {which}: its rows are in the order of the matrix")
    pairs = int((dataset.nodes_per_graph * (dataset.nodes_per_graph - 1)).sum())
    if threshold is None and pairs and dataset.num_edges > DENSE * pairs:
        notes.append(
            f"{place}: {dataset.num_edges / pairs:.0%} of all pairs of nodes are edges; a threshold leaves out the weak"
        )
    dataset = replace(dataset, threshold=threshold)
    if nodes.is_empty and (strength or dataset.edge_weight is not None):
        dataset = dataset.with_features("attributes")
        notes.append(f"{place}: a node is the sum of its weights, as no table of nodes says what it is")
    elif nodes.is_empty:  # sums that are degrees
        dataset = replace(dataset, node_attributes=None, attribute_names=None)
    elif nodes.label_names or nodes.number_names:
        kinds: Features = "labels" if not nodes.number_names and nodes.columns is None else "all"
        dataset = dataset.with_features(kinds if nodes.label_names else "attributes")
    notes += filter(None, [categories_note(dataset)])
    dataset = listing.apply(replace(dataset, notes=tuple(notes)))
    return dataset if features is None else dataset.with_features(features)


class _Files(NamedTuple):
    """Which files are read, and how."""

    place: Place
    folder: Place
    name: str
    threshold: float | None
    directed: bool


class _Read(NamedTuple):
    dataset: GraphDataset  # with degrees as features
    asymmetric: int  # matrices
    nodes: _NodeData


def _read_all(files: _Files, names: Sequence[str]) -> _Read:
    with counting(len(names), f"reading {files.name}") as advance:
        return _assemble(files, names, [_matrix(files, name, advance) for name in names])


def _errors_of(files: _Files, names: Sequence[str]) -> dict[str, DataError]:
    """What is wrong with each matrix or its table of nodes; only those with which something is."""
    found = dict[str, DataError]()
    for name in names:
        try:
            with reading(files.folder / name):
                _assemble(files, [name], [read_matrix(files.folder / name, files.threshold or 0.0)])
        except DataError as error:
            found[name] = error
    return found


def _read_large(files: _Files, names: Sequence[str]) -> _Read | None:
    """The same, in memory for some matrices at a time; None where they are few, or do not go together."""
    with reading(files.place):
        if total_size(files.folder, names) < LARGE_BYTES:
            return None
    parts, found, some, by_position = MappedParts(), list[_Read](), list[Matrix](), list[str]()
    asymmetric = values = 0
    try:
        with counting(len(names), f"reading {files.name}") as advance:
            for number, name in enumerate(names, 1):
                some.append(_matrix(files, name, advance))
                values += some[-1].size + some[-1].weight.size
                if number == len(names) or values > VALUES_AT_ONCE:
                    found = [*found[:1], _assemble(files, names[number - len(some) : number], some)]
                    if found[-1].nodes.kinds != found[0].nodes.kinds:
                        return None
                    parts.add(found[-1].dataset)
                    asymmetric, values, some = asymmetric + found[-1].asymmetric, 0, []
                    by_position += found[-1].nodes.by_position
        nodes = found[0].nodes._replace(by_position=tuple(by_position))
        return _Read(parts.dataset(), asymmetric, nodes)
    except (NotInPartsError, DataError, OSError):
        return None  # as a whole they are read, or it is said what is wrong


def _matrix(files: _Files, name: str, advance: Callable[[int], None]) -> Matrix:
    matrix = read_matrix(files.folder / name, files.threshold or 0.0)
    advance(1)
    return matrix


def _assemble(files: _Files, names: Sequence[str], matrices: Sequence[Matrix]) -> _Read:
    nodes = _node_data(files.folder, names, matrices)
    sizes = np.asarray([m.size for m in matrices], dtype=np.int64)
    dataset = assemble(
        name=files.name,
        nodes_per_graph=sizes,
        edge_index=joined_edges([m.edge_index for m in matrices], sizes),
        y=[None] * len(matrices),
        node_labels=nodes.labels,
        node_attributes=nodes.numbers,
        edge_weight=np.concatenate([m.weight for m in matrices]),
        features="degrees",
        source=str(files.place),
        directed=files.directed,
    )
    dataset = replace(dataset, notes=(), attribute_names=nodes.number_names or None, node_columns=nodes.columns)
    if nodes.labels is not None and nodes.columns is None:
        dataset = replace(dataset, label_attribute=nodes.label_names[0])
    if nodes.is_empty:
        dataset = _with_strength(dataset)
    asymmetric = 0 if files.directed else sum(map(_is_asymmetric, matrices))
    return _Read(dataset, asymmetric, nodes._replace(labels=None, numbers=None))


def matrix_names(folder: Place) -> list[str]:
    """The names of the matrices of a folder, sorted."""
    return sorted(readable_files(folder, is_matrix_file))


def _is_asymmetric(matrix: Matrix) -> bool:
    """Whether an edge has no reverse, or one of another weight (beyond rounding)."""
    row, col = matrix.edge_index
    order, back = np.lexsort((col, row)), np.lexsort((row, col))
    if not (np.array_equal(row[order], col[back]) and np.array_equal(col[order], row[back])):
        return True
    return not np.allclose(matrix.weight[order], matrix.weight[back], rtol=1e-5, atol=0)


def _with_strength(dataset: GraphDataset) -> GraphDataset:
    """With the sum of each node's weights as its attribute."""
    weight = torch.ones(dataset.num_edges) if dataset.edge_weight is None else dataset.edge_weight
    row = torch.repeat_interleave(torch.arange(dataset.num_nodes), dataset.degree)
    strength = torch.zeros(dataset.num_nodes, dtype=torch.float64).index_add_(0, row, weight.double())
    return replace(dataset, node_attributes=strength.float().unsqueeze(1), attribute_names=(STRENGTH,))


# ---- one matrix ----


def read_matrix(file: Place, threshold: float = 0.0) -> Matrix:
    """Reads one matrix.

    Args:
        file: A .npy, .npz or .csv file. A .npz holds one array of numbers, one that is called adjacency, matrix or
            arr_0, or what ``scipy.sparse.save_npz`` writes. A .csv may have the names of the nodes in its first line
            and column; where they are in another order in the column, it is that of the line which counts.
        threshold: Entries whose absolute value is not larger are no edges.

    Returns:
        Its edges.

    Raises:
        DataError: It is no square matrix of finite numbers; the message names the file and the place in it.
    """
    content = read_content(file, MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise DataError(f"{file}: larger than {MAX_FILE_BYTES >> 20} MB, which is too much for a matrix")
    ending, names = file.name.lower().rpartition(".")[2], None
    if ending == "csv":
        found, names = _parse_csv(decode_table(content, file), file)
    elif ending == "npz":
        arrays = _parse_npz(content, file)
        if {"data", "shape"} <= arrays.keys():
            return _edges(file, *_sparse_entries(arrays, file), threshold)
        chosen = [arrays[key] for key in MATRIX_NAMES if key in arrays] or list(arrays.values())
        if len(arrays) > 1 and not any(key in arrays for key in MATRIX_NAMES):
            has = printable(", ".join(arrays))[:200]
            raise DataError(f"{file}: which array is the matrix? It has {has}; call one {MATRIX_NAMES[0]!r}")
        found = chosen[0]
    else:
        found = _parse_npy(content, str(file))
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        shape = " × ".join(map(str, found.shape)) or "a single number"
        edges = EDGE_LIST if found.ndim == 2 and found.shape[1] in (2, 3) else ""
        raise DataError(f"{file}: an adjacency matrix is square, and this is {shape}{edges}")
    row, col = np.nonzero(found)  # NaN is not zero
    return _edges(file, len(found), row, col, found[row, col], threshold)._replace(names=names)


def _edges(file: Place, size: int, row: IntArray, col: IntArray, weight: NDArray[Any], threshold: float) -> Matrix:
    """The entries outside the diagonal that are above the threshold; a DataError for one that is not finite."""
    if not 1 <= size <= MAX_NODES:
        raise DataError(f"{file}: a matrix of {size:,} nodes; from 1 to {MAX_NODES:,} can be read")
    beside = row != col
    row, col, weight = row[beside].astype(np.int64), col[beside].astype(np.int64), weight[beside].astype(np.float64)
    wrong = ~(np.abs(weight) <= np.finfo(np.float32).max)
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(
            f"{file}: {weight[first]:g} in row {row[first] + 1}, column {col[first] + 1} of the matrix, where a finite "
            "number belongs"
        )
    kept = np.abs(weight) > threshold
    return Matrix(size, np.stack([row[kept], col[kept]]), weight[kept])


def _parse_npy(content: bytes, where: str, kinds: str = "biuf") -> NDArray[Any]:
    """An array of numbers; its header is checked against the size of the file before anything is made of it."""
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
    except Exception as error:  # whatever a stranger's header makes NumPy raise
        raise DataError(f"{where}: not an array of NumPy ({printable(error):.100})") from None
    if dtype.kind not in kinds or dtype.hasobject:
        raise _NoNumbersError(f"{where}: an array of {printable(dtype):.40}, where numbers belong")
    shape = tuple(map(int, shape))  # of True and False, too
    right = all(0 <= size <= MAX_FILE_BYTES for size in shape)
    if not right or len(content) - stream.tell() != math.prod(shape) * dtype.itemsize:
        raise DataError(f"{where}: cut off, or longer than its header says")
    flat = np.frombuffer(content, dtype, offset=stream.tell()) if math.prod(shape) else np.zeros(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _parse_npz(content: bytes, file: Place) -> dict[str, NDArray[Any]]:
    """Its arrays of numbers; others, such as the names of nodes, are left out."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > MAX_FILE_BYTES:
                raise DataError(
                    f"{file}: unpacks to more than {MAX_FILE_BYTES >> 20} MB, which is too much for a matrix"
                )
            arrays: dict[str, NDArray[Any]] = {}
            others = list[DataError]()
            for entry in entries:
                key = entry.filename.removesuffix(".npy")
                kinds = "biufSU" if key == "format" else "biuf"
                try:
                    arrays[key] = _parse_npy(archive.read(entry), f"{file}: {printable(key):.60}", kinds)
                except _NoNumbersError as error:
                    if key in (*MATRIX_NAMES, *SPARSE_NAMES):
                        raise
                    others.append(error)
            if others and not arrays:
                raise others[0]
    except (DataError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes zipfile raise
        raise DataError(f"{file}: not a readable .npz file ({printable(error):.100})") from None
    if not arrays:
        raise DataError(f"{file}: holds no array")
    return arrays


def _sparse_entries(arrays: Mapping[str, NDArray[Any]], file: Place) -> tuple[int, IntArray, IntArray, NDArray[Any]]:
    """Size, rows, columns and values of what ``scipy.sparse.save_npz`` writes."""
    from scipy import sparse

    data, shape = arrays["data"], arrays["shape"].reshape(-1)
    if len(shape) != 2 or shape[0] != shape[1] or not 1 <= shape[0] <= MAX_NODES:
        this = " × ".join(map(str, shape.tolist()))[:60]
        raise DataError(f"{file}: an adjacency matrix is square, of up to {MAX_NODES:,} nodes, and this is {this}")
    size = int(shape[0])
    try:
        kind = arrays.get("format", np.asarray("csr")).reshape(-1)[:1].astype(str).tolist()
    except ValueError:  # no letters
        kind = []
    compressed = {"indices", "indptr"} <= arrays.keys() and kind in (["csr"], ["csc"])
    if data.ndim != 1 or (not compressed and not {"row", "col"} <= arrays.keys()):
        this = f", and this is {printable(kind[0]):.10}" if kind else ""
        raise DataError(f"{file}: a sparse matrix is read in the formats csr, csc and coo{this}")
    try:
        if compressed:
            made = sparse.csr_array if kind == ["csr"] else sparse.csc_array
            matrix = made((data, arrays["indices"], arrays["indptr"]), shape=(size, size))
            matrix.check_format(full_check=True)
            matrix = matrix.tocoo()
        else:
            matrix = sparse.coo_array((data, (arrays["row"], arrays["col"])), shape=(size, size))
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{file}: a damaged sparse matrix ({printable(error):.100})") from None
    matrix.sum_duplicates()
    row, col = matrix.row, matrix.col
    return size, row, col, matrix.data


def _parse_csv(text: str, file: Place) -> tuple[FloatArray, tuple[str, ...] | None]:
    """The numbers of a table, and the names of the nodes where its first line or column has them.

    Where both have, the rows are in the order of the line.
    """
    mark, content = separator(text), without_separator(io.StringIO(text, newline=""))
    reader = csv.reader(content, delimiter=mark, skipinitialspace=True)
    lines = []
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                lines.append((reader.line_num, list(map(plain_minus, cells))))
    except csv.Error as error:
        raise DataError(f"{file}:{reader.line_num}: not a table ({error})") from None
    if not lines:
        raise DataError(f"{file}: holds no matrix")
    rows = [cells for _, cells in lines]
    top, left = _named_sides(rows)
    columns = tuple(map(str.strip, rows[0][-(len(rows) - 1) :])) if top else None
    lines = lines[top:]
    row_names = tuple(cells[0].strip() for _, cells in lines) if left else None
    places = [f"{file}:{number}" for number, _ in lines]
    order = None
    if columns is not None and row_names is not None and len(columns) == len(row_names):
        order = _order_of_rows(columns, row_names, places, file)
    width = len(lines[0][1]) - left
    found = np.empty((len(lines), width))
    for row, (number, cells) in enumerate(lines):
        if len(cells) - left != width:
            raise DataError(f"{file}:{number}: {counted(len(cells) - left, 'number')} where the first row has {width}")
        if mark != ",":
            cells = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in cells]
        try:
            found[row] = cells[left:]
        except ValueError:
            column = next(i for i, cell in enumerate(cells[left:]) if not _is_number(cell))
            odd = printable(cells[left + column].strip())[:40]
            raise DataError(
                f"{file}:{number}: {odd!r} in column {column + 1}, where a number of an adjacency matrix belongs"
                f"{EDGE_LIST if width in (2, 3) else ''}"
            ) from None
    counts = columns is not None and row_names is not None and _count_up(columns) and not _count_up(row_names)
    return found if order is None else found[order], row_names if counts or columns is None else columns


def _order_of_rows(
    columns: tuple[str, ...], rows: tuple[str, ...], places: Sequence[str], file: Place
) -> list[int] | None:
    """The rows in the order of the columns, by their names; None where they are in it already.

    Numbers that count up are no names, but places.
    """
    if rows == columns or _count_up(rows) or _count_up(columns):
        return None
    position: dict[str, int] = {}
    there = set(columns)
    for row, name in enumerate(rows):
        if name not in there:
            near = did_you_mean(name, columns)
            raise DataError(f"{places[row]}: the row {printable(name)[:60]!r} is none of the columns{near}")
        if position.setdefault(name, row) != row:
            raise DataError(f"{places[row]}: a second row is called {printable(name)[:60]!r}; which is which?")
    if lacking := [name for name in columns if name not in position]:
        raise DataError(f"{file}: the column {printable(lacking[0])[:60]!r} is none of the rows")
    return [position[name] for name in columns]


def _count_up(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2 and so on, or begin with 1."""
    return any(list(names) == list(map(str, range(first, first + len(names)))) for first in (0, 1))


def _named_sides(rows: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Whether the first row and the first column of a matrix are names: text, or the numbers of the nodes."""
    size, width = len(rows), len(rows[-1])
    top, left = list(map(str.strip, rows[0])), [row[0].strip() for row in rows]
    if size == width and len(top) == width - 1:
        return True, True  # as R writes it, without a corner
    if size == width > 1 and not _is_value(top[0]):
        named = not any(map(_is_value, top[1:])) or not any(map(_is_value, left[1:]))
        named = named or sorted(top[1:]) == sorted(left[1:])
        return named, named
    return len(top) == width == size - 1 and _are_names(top), len(top) == width == size + 1 and _are_names(left)


def _are_names(cells: Sequence[str]) -> bool:
    """Whether cells are no entries of a matrix: some is text, or they count from 0 or 1 (two could be an edge)."""
    return (len(cells) > 2 and _count_up(cells)) or not all(map(_is_value, cells))


def _is_value(cell: str) -> bool:
    return _is_number(cell) or bool(DECIMAL_COMMA.fullmatch(cell))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# ---- tables of nodes ----


class _NodeData(NamedTuple):
    """What tables say of all nodes."""

    labels: list[Any] | None = None  # [N] texts, or tuples of them where there are several columns
    numbers: NDArray[np.float32] | None = None  # [N, F]
    label_names: tuple[str, ...] = ()
    number_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    by_position: tuple[str, ...] = ()  # matrices with other names than their table

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.label_names if len(self.label_names) > 1 else None

    @property
    def kinds(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.label_names, self.number_names

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a label nor a number."""
        return not (self.label_names or self.number_names)


def _node_data(folder: Place, files: Sequence[str], matrices: Sequence[Matrix]) -> _NodeData:
    shared = _sorted_columns(read_table(folder / NODES)) if (folder / NODES).is_file() else None
    tables, by_position = list[Table | None](), list[str]()
    for file, matrix in zip(files, matrices, strict=True):
        own = folder / f"{file.rpartition('.')[0]}.{NODES}"
        table = _sorted_columns(read_table(own)) if own.is_file() else shared
        order = None if table is None else _order_of_nodes(table, matrix, file)
        if table is not None and order is not None:
            table = table._replace(rows=[table.rows[i] for i in order], lines=[table.lines[i] for i in order])
        elif table is not None and _are_other_names(table, matrix):
            by_position.append(file)
        tables.append(table)
    having = [table for table in tables if table is not None]
    if not having:
        return _NodeData()
    if len(having) < len(tables):
        lacks = files[tables.index(None)]
        raise DataError(f"{folder / lacks}: has no table of nodes, {lacks.rpartition('.')[0]}.{NODES}; others have")
    header = having[0].header[1:]
    for table in having:
        if table.header[1:] != header:
            raise DataError(
                f"{table.path}: its columns are {table.listed(table.header[1:])}, those of {having[0].path} are "
                f"{having[0].listed(header)}"
            )
    cells = {name: [cell.strip() for table in having for cell in table.column(name)] for name in header}
    lines = [(table, line) for table in having for line in table.lines]
    for name, column in cells.items():
        if "" in column:
            table, line = lines[column.index("")]
            raise DataError(f"{table.path}:{line}: {printable(name)} is empty")
    numeric = tuple(name for name in header if all(map(_is_number, cells[name])))
    texts = tuple(name for name in header if name not in numeric)
    numbers = np.column_stack([np.asarray(cells[name], np.float64) for name in numeric]) if numeric else None
    if numbers is not None and not (wrong := np.abs(numbers) <= np.finfo(np.float32).max).all():
        node, column_number = np.argwhere(~wrong)[0]
        table, line = lines[node]
        name = printable(numeric[column_number])
        raise DataError(f"{table.path}:{line}: {name} is {numbers[node, column_number]:g}, no finite number")
    labels: list[Any] | None = None
    if texts:
        labels = cells[texts[0]] if len(texts) == 1 else list(zip(*(cells[name] for name in texts), strict=True))
    kinds = (("categories", texts), ("numbers", numeric))
    parts = [f"{kind}: {printable(', '.join(names))[:200]}" for kind, names in kinds if names]
    parts += filter(None, [having[0].decimal_commas_note(header)])
    note = f"{having[0].path}: read of the nodes: {'; '.join(parts) or 'nothing, as there are names only'}"
    rows = None if numbers is None else numbers.astype(np.float32)
    return _NodeData(labels, rows, texts, numeric, (note,), tuple(by_position))


def _sorted_columns(table: Table) -> Table:
    """The table with its columns in the order of their names, but for the first; so two orders are the same."""
    order = [0, *sorted(range(1, len(table.header)), key=table.header.__getitem__)]
    rows = [[row[i] for i in order] for row in table.rows]
    return table._replace(header=tuple(table.header[i] for i in order), rows=rows)


def _order_of_nodes(table: Table, matrix: Matrix, file: str) -> list[int] | None:
    """The row of each node by its name; None where the rows are in the order of the matrix.

    A DataError names what the matrix calls a node and the table does not, where they have other names in common.
    """
    if len(table.rows) != matrix.size:
        raise DataError(f"{table.path}: {counted(len(table.rows), 'node')} where the matrix {file} has {matrix.size}")
    given = _names_of_rows(table)
    if matrix.names is None or given == list(matrix.names):
        return None
    row_of = dict(zip(given, range(len(given)), strict=True))
    there = set(matrix.names)
    if there.isdisjoint(given) or (_count_up(matrix.names) and _count_up(given)):
        return None
    for row, name in enumerate(given):
        if name not in there:
            near = did_you_mean(name, matrix.names)
            raise DataError(f"{table.where(row)}: the matrix {file} has no node {printable(name)[:60]!r}{near}")
        if row_of[name] != row:
            raise DataError(f"{table.where(row)}: a second node is called {printable(name)[:60]!r}; which is which?")
    if lacking := [name for name in matrix.names if name not in row_of]:
        raise DataError(f"{table.path}: no {printable(lacking[0])[:60]!r}, though the matrix {file} has such a node")
    return [row_of[name] for name in matrix.names]


def _are_other_names(table: Table, matrix: Matrix) -> bool:
    """Whether a matrix has names of nodes, and none of them is in its table; numbers that count up are none."""
    names = matrix.names
    return names is not None and not _count_up(names) and set(names).isdisjoint(_names_of_rows(table))


def _names_of_rows(table: Table) -> list[str]:
    return [row[0].strip() for row in table.rows]


def matrix_node_names(file: Place) -> list[str] | None:
    """What the nodes of a matrix are called: in its file or, where that has numbers at most, in their table.

    Args:
        file: The matrix.

    Returns:
        ``[n]``, or None where they have no names.

    Raises:
        DataError: The matrix or the table is wrong.
    """
    matrix, folder = read_matrix(file), cast(Place, file.parent)
    own = folder / f"{file.name.rpartition('.')[0]}.{NODES}"
    path = own if own.is_file() else folder / NODES
    names = None if matrix.names is None else list(matrix.names)
    if not path.is_file() or (names is not None and not _count_up(names)):
        return names
    table = read_table(path)
    order = _order_of_nodes(table, matrix, file.name) or range(matrix.size)
    given = _names_of_rows(table)
    return [given[row] for row in order]
