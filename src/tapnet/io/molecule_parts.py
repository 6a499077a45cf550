"""Files of molecules of any size: read in parts, in memory for some thousand rows at a time.

Nothing here imports torch before the first part is made: a command reads the file while it imports torch.
"""

from __future__ import annotations

import gzip
import io
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.data._molecule_arrays import (
    LEAST_FOR_A_PROCESS,
    MoleculeArrays,
    Readers,
    available_cores,
    canonical_smiles,
    check_rdkit,
    has_isotopic_hydrogen,
    is_valid,
    molecule_arrays,
    read_arrays,
)
from tapnet.errors import DataError, TapnetError
from tapnet.files import reading
from tapnet.io._plain_text import BOM
from tapnet.io.archive import UNREADABLE, read_content
from tapnet.io.dataset_files import molecules_name
from tapnet.io.molecule_files import (
    DAMAGED_GZ,
    MAX_BYTES,
    NO_MOLECULES,
    SMI_HEADER,
    Columns,
    LeftOut,
    MoleculeCells,
    file_kind,
    molecule_text,
    sdf_header,
    sdf_records,
    smi_rows,
)
from tapnet.io.tables import NO_ROWS, decode_blocks, has_decimal_commas, separator, table_rows

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset

ROWS_AT_ONCE = 1 << 10
MOST_BYTES_AHEAD = 1 << 26  # of a table that is read before anything else is known
READ_AHEAD = 3  # times as many rows, by each process,
LEAST_AHEAD = 8  # and in all: one process reads these in the time that importing torch takes
MOST_WAITING = 4  # times as many rows wait until a part is full
BLOCK_BYTES = 1 << 20

Row = tuple[int, list[str]]  # the line in which it begins, and its cells
Chunk = tuple[list[Row], list[str], Callable[[], MoleculeArrays]]  # rows, their molecules, what returns the arrays


class MoleculePart(NamedTuple):
    """Some rows of a file of molecules.

    Attributes:
        rows: ``[R]`` the cells of each row.
        dataset: The molecules of these rows; None where none is valid.
        kept: ``[G]`` the row, of these, of each molecule.
        places: ``[R]`` the file and the line in which each row begins, for messages.
        blank: ``[R]`` how many blank rows of a table stand before each row.
    """

    rows: list[list[str]]
    dataset: GraphDataset | None
    kept: list[int]
    places: list[str]
    blank: list[int]


@contextmanager
def reading_ahead(path: str | Path, smiles: str | None = None) -> Iterator[MoleculeParts | None]:
    """Has other processes read the molecules of a table within this, before they are asked for.

    Args:
        path: The table.
        smiles: The column of SMILES; by default the one that is called so.

    Yields:
        The table; None of one that is large, where it would gain nothing, or that cannot be read: whoever reads it next
        says why.
    """
    try:
        small = Path(path).is_file() and Path(path).stat().st_size < MOST_BYTES_AHEAD
        parts = MoleculeParts(path, smiles) if small else None
    except (TapnetError, OSError):
        parts = None
    with nullcontext(None) if parts is None else parts.read_ahead():
        yield parts


class _Ahead:
    """The rows of a file, whose molecules other processes read before they are asked for."""

    def __init__(self, chunks: Iterator[tuple[list[Row], list[str]]], processes: int) -> None:
        self._chunks, self._readers = chunks, Readers(processes)
        self._ready: deque[Chunk] = deque()
        self._submit(max(READ_AHEAD * processes, LEAST_AHEAD if processes else 0))

    def _submit(self, count: int) -> None:
        for rows, texts in islice(self._chunks, count):
            self._ready.append((rows, texts, self._readers.submit(read_arrays, texts)))

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        self._submit(1)
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def close(self) -> None:
        """Ends the processes."""
        self._readers.close()


class MoleculeParts:
    """What ``read_molecule_table`` reads without a target, part by part.

    The file is first gone through for errors, then read once by each iteration, and once more where molecules may be
    copies of each other. In memory are one part, some thousand rows that other processes read ahead, and 8 bytes for
    each row. Files of any size are read, but for .gz files that unpack to more than 1 GB.

    Args:
        path: A .csv or .tsv with a header, a .smi or an .sdf, each also compressed as .gz.
        smiles: The column of SMILES; by default the one that is called so.
        name: The name of the data sets; by default that of the file.
        multiple: A part has so many molecules, or a multiple; fewer at the end, or where hardly any row is valid.

    Attributes:
        header: The names of the columns.
        mark: What separates the cells of the table; a comma for files that are none.
        decimal_commas: Whether a column of the table has them.
        has_bom: Whether the file begins with a byte order mark, as Excel writes it.
        is_sdf: Whether the first column holds MOL blocks.
        num_rows: The number of rows.
        description: Which column is what, in one line.
        notes: After an iteration: what was left out, and how many molecules are mixtures or copies.

    Raises:
        DataError: The file is not such a table; the message names the line or the columns.
        SettingError: RDKit is not installed.
    """

    header: tuple[str, ...]

    def __init__(
        self, path: str | Path, smiles: str | None = None, *, name: str | None = None, multiple: int = 1
    ) -> None:
        check_rdkit()
        self.path, self.multiple, self.notes = Path(path), multiple, tuple[str, ...]()
        self.name = name or molecules_name(self.path)
        self._kind, self._packed = file_kind(self.path), self.path.suffix.lower() == ".gz"
        self.is_sdf = self._kind == "sdf"
        self._content = None if self.path.is_file() else read_content(self.path, MAX_BYTES + 1)  # a pipe is read once
        self._signed = self._signature()
        self.mark = self._check_text()
        self._scan(smiles)
        self.decimal_commas = has_decimal_commas((row for _, row in self._rows()), self.mark)
        self._ahead: _Ahead | None = None

    # ---- the file ----

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            with self.path.open("rb") if self._content is None else io.BytesIO(self._content) as stream:
                if not self._packed:
                    yield stream
                    return
                try:
                    with gzip.open(stream) as unpacked:
                        yield unpacked  # type: ignore[misc]
                except DAMAGED_GZ as error:
                    raise DataError(f"{self.path}: cannot be unpacked ({error})") from None
        except UNREADABLE as error:
            raise DataError(f"{self.path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None

    def _signature(self) -> tuple[int, ...]:
        if self._content is not None:
            return ()
        with reading(self.path):
            found = self.path.stat()
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino

    def _check_unchanged(self) -> None:
        if self._signature() != self._signed:
            raise DataError(f"{self.path}: was changed while it was read; read it again")

    def _check_text(self) -> str:
        """Whether all of it is text; gives the mark that separates its cells."""
        with self._open() as stream:
            blocks = self._blocks(stream)
            first = next(blocks, b"")
            self.has_bom = first.startswith(BOM)
            texts = decode_blocks(chain([first], blocks), self.path)
            mark = separator(next(texts, ""))
            for _ in texts:
                pass
        return {"csv": mark, "tsv": "\t"}.get(self._kind, ",")

    def _blocks(self, stream: IO[bytes]) -> Iterator[bytes]:
        size = 0
        while block := stream.read(BLOCK_BYTES):
            size += len(block)
            if size > MAX_BYTES and (self._packed or self._content is not None):
                raise DataError(f"{self.path}: larger than {MAX_BYTES >> 30} GB")
            yield block

    # ---- its rows ----

    def _rows(self, on_blank: Callable[[], None] | None = None) -> Iterator[Row]:
        ends = "\n" if self._kind == "sdf" else ""
        with self._open() as stream, io.TextIOWrapper(stream, "utf-8-sig", newline=ends) as lines:
            if self._kind == "sdf":
                for line, record in sdf_records(lines):
                    yield line, [record.get(key, "") for key in self.header]
            elif self._kind == "smi":
                yield from smi_rows(lines, on_blank)
            else:
                yield from islice(table_rows(lines, self.path, self.mark, on_blank), 1, None)

    def _read_header(self) -> tuple[str, ...]:
        if self._kind == "smi":
            return SMI_HEADER
        ends = "\n" if self._kind == "sdf" else ""
        with self._open() as stream, io.TextIOWrapper(stream, "utf-8-sig", newline=ends) as lines:
            if self._kind == "sdf":
                return sdf_header(record for _, record in sdf_records(lines))
            return tuple(next(table_rows(lines, self.path, self.mark), (0, ()))[1])

    def _scan(self, smiles: str | None) -> None:
        """Goes through all rows for errors, and for what has to be known of all of them."""
        self.header = self._read_header()
        self._blank = dict[int, int]()  # how many blank rows there are before the row that begins in a line
        blank = 0

        def add_blank() -> None:
            nonlocal blank
            blank += 1

        rows = self._rows(add_blank)
        first = next(rows, None)
        if first is None:
            raise DataError(f"{self.path}: {NO_MOLECULES if self._kind in ('smi', 'sdf') else NO_ROWS}")
        self._columns = Columns.choose(MoleculeCells(self.path, self.header, [], []), smiles, [])
        self.description = f"{self.path}: {self._columns.describe(None, self.header)}"
        self._molecules = self.header.index(self._columns.smiles)
        names = None if self._columns.names is None else self.header.index(self._columns.names)
        self.num_rows, self._names, some = 0, None, False
        for line, row in chain([first], rows):
            if blank:
                self._blank[line], blank = blank, 0
            self.num_rows += 1
            text = molecule_text(row[self._molecules])
            some = some or bool(text)
            if names is not None and self._names is None and row[names].strip() and text and is_valid(text):
                self._names = names  # of a valid molecule: else they are called by their SMILES
        if not some:
            raise self._columns.no_molecule(self.path)

    def _chunks(self) -> Iterator[list[Row]]:
        rows = self._rows()
        while some := list(islice(rows, ROWS_AT_ONCE)):
            yield some

    @contextmanager
    def read_ahead(self) -> Iterator[MoleculeParts]:
        """Other processes read the first molecules from now on, for an iteration within this."""
        with closing(self._start()) as self._ahead:
            yield self

    def _start(self) -> _Ahead:
        cores = available_cores()
        texts = ((rows, [molecule_text(row[self._molecules]) for _, row in rows]) for rows in self._chunks())
        return _Ahead(texts, min(cores - 1, self.num_rows // LEAST_FOR_A_PROCESS))  # this process has work of its own

    # ---- its molecules ----

    def __iter__(self) -> Iterator[MoleculePart]:
        ahead, self._ahead = self._ahead or self._start(), None
        with closing(ahead):
            yield from self._parts(ahead)

    def _parts(self, chunks: Iterator[Chunk]) -> Iterator[MoleculePart]:
        from tapnet.data.molecules import is_mixture, molecule_codes, molecule_notes

        waiting: list[Row] = []
        valid: list[int] = []  # the rows, of those that wait, with a valid molecule
        read = molecule_arrays([])
        empty, invalid = LeftOut("without a molecule"), LeftOut("not valid")
        codes = [np.zeros(0, np.uint64)]
        mixtures = isotopic = molecules = 0

        def part(count: int, rows: int) -> MoleculePart:
            """The part with so many molecules and rows, which need to wait no more."""
            nonlocal waiting, valid, read
            own, read = read.split(count)
            lines, cells = [line for line, _ in waiting[:rows]], [row for _, row in waiting[:rows]]
            places, blank = [f"{self.path}:{line}" for line in lines], [self._blank.get(line, 0) for line in lines]
            found = MoleculePart(cells, self._dataset(own, cells, valid[:count]), valid[:count], places, blank)
            codes.append(np.zeros(rows, np.uint64))
            if found.dataset is not None:
                codes[-1][found.kept] = molecule_codes(found.dataset, own) | np.uint64(1)  # 0: no molecule
            waiting, valid = waiting[rows:], [i - rows for i in valid[count:]]
            return found

        for chunk, texts, arrays in chunks:
            found = arrays()
            good = set(np.flatnonzero(found.num_atoms).tolist())
            for i, ((line, _), text) in enumerate(zip(chunk, texts, strict=True)):
                if i not in good:
                    (invalid if text else empty).add(f"line {line}", text)
            valid += [len(waiting) + i for i in sorted(good)]
            waiting += chunk
            new = found.valid()
            read = MoleculeArrays.join([read, new])
            molecules += len(good)
            mixtures += sum(map(is_mixture, new.smiles))
            isotopic += sum(map(has_isotopic_hydrogen, new.smiles))
            if full := len(valid) // self.multiple * self.multiple:
                yield part(full, valid[full - 1] + 1)
            if waiting and (not valid or len(waiting) > MOST_WAITING * max(len(chunk), self.multiple)):
                yield part(len(valid), len(waiting))
        if waiting:
            yield part(len(valid), len(waiting))
        self._check_unchanged()
        if not molecules:
            raise invalid.nothing_left(self.path)
        left_out = [why.note(self.num_rows) for why in (empty, invalid) if why.count]
        notes = molecule_notes(molecules, mixtures, isotopic, self._copies(np.concatenate(codes)))
        self.notes = tuple(f"{self.path}: {note}" for note in (*left_out, *notes))

    def _dataset(self, read: MoleculeArrays, rows: Sequence[Sequence[str]], kept: Sequence[int]) -> GraphDataset | None:
        if not kept:
            return None
        from tapnet.data.molecules import assemble_molecules

        names = None if self._names is None else [rows[i][self._names] for i in kept]
        return assemble_molecules(read, None, name=self.name, names=names, source=str(self.path))

    def _copies(self, codes: NDArray[np.uint64]) -> int:
        """How many molecules have a copy; their rows have these codes, or 0."""
        from tapnet.data.molecules import canonical_digests, have_copies

        alike = have_copies(codes) & (codes > 0)
        if not alike.any():
            return 0
        digests, start = [], 0
        for chunk in self._chunks():
            texts = [molecule_text(chunk[i][1][self._molecules]) for i in np.flatnonzero(alike[start:][: len(chunk)])]
            digests.append(canonical_digests(canonical_smiles(texts) if any("\n" in text for text in texts) else texts))
            start += len(chunk)
        self._check_unchanged()
        return int(have_copies(np.concatenate(digests)).sum())
