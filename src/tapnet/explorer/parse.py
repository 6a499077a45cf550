"""Uploaded files are parsed in processes of their own, which are killed at their deadline. Free of torch."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, NamedTuple

from tapnet.data._molecule_arrays import MoleculeArrays, read_arrays, why_not_valid
from tapnet.errors import DataError
from tapnet.experiments.backends.processes import block_sigint, end_with_parent
from tapnet.files import printable
from tapnet.io.graph_file import parse_graph
from tapnet.io.molecule_files import NO_MOLECULES, smi_rows

if TYPE_CHECKING:
    import networkx as nx

MOST_NODES, MOST_EDGES = 10_000, 100_000  # of a graph that the page draws
MOST_ATOMS = 1000  # of a molecule, whose picture RDKit makes in some two seconds
SMILES_ENDING = ".smi"
PARSE_SECONDS = 15.0
START_SECONDS = 60.0  # for a process to be there, on a busy machine


def check_size(name: str, nodes: int, edges: int) -> None:
    """Raise a :class:`DataError` for a graph that is too large to draw."""
    if nodes > MOST_NODES or edges > MOST_EDGES:
        raise DataError(
            f"{name} has {nodes:,} nodes and {edges:,} edges; the page draws up to {MOST_NODES:,} and {MOST_EDGES:,}. "
            "Prediction without a picture has no such limit"
        )


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection


class ParserPool:
    """Processes that parse files, one file at a time each; there are as many as threads that ask at once."""

    def __init__(self) -> None:
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._workers: set[_Worker] = set()

    def parse(self, name: str, content: bytes) -> nx.Graph | MoleculeArrays:
        """Parse the content of a file.

        Args:
            name: The file's name, which ends in ``.graphml``, ``.json`` or ``.smi``.
            content: The file's bytes.

        Returns:
            The graph, or the molecule of a ``.smi``.

        Raises:
            DataError: The file is no graph, is too large to draw, or takes too long to read.
        """
        worker = self._take()
        try:
            worker.connection.send((name, content))
            if not worker.connection.poll(PARSE_SECONDS):
                raise DataError(f"{name}: reading it takes longer than {PARSE_SECONDS:.0f} seconds")
            graph, error = worker.connection.recv()
        except (EOFError, OSError):
            self._end(worker)
            raise DataError(f"{name}: cannot be read; the process that read it has ended") from None
        except BaseException:
            self._end(worker)
            raise
        self._idle.put(worker)
        if error:
            raise DataError(error)
        return graph

    def start(self) -> None:
        """Have a process ready, so that the first visitor need not wait for it."""
        with suppress(DataError):
            self._idle.put(self._take())

    def close(self) -> None:
        """End all processes; whoever waits for one gets an error."""
        workers = list(self._workers)
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join(1)

    def _take(self) -> _Worker:
        with suppress(queue.Empty):
            while True:
                worker = self._idle.get_nowait()
                if worker.process.is_alive():
                    return worker
                self._end(worker)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_parse_files, args=(theirs,), daemon=True)
        with block_sigint():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.add(worker)
        try:
            if ours.poll(START_SECONDS):
                ours.recv()
                return worker
        except (EOFError, OSError):
            pass
        self._end(worker)
        raise DataError("the process that reads files did not start")

    def _end(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        worker.process.kill()
        worker.process.join()
        worker.connection.close()


def _parse_files(connection: Connection) -> None:
    """In a process of its own: for each file that comes, the graph, or what is wrong with it."""
    import networkx  # noqa: F401  (now, not with the first file)

    threading.Thread(target=end_with_parent, daemon=True).start()
    connection.send(None)
    with suppress(EOFError, OSError):
        while True:
            name, content = connection.recv()
            answer = _answer(name, content)
            try:
                connection.send(answer)
            except RecursionError:  # an attribute of lists in lists
                connection.send((None, f"{name}: nested too deeply for a graph"))


def _answer(name: str, content: bytes) -> tuple[Any, str]:
    try:
        if name.lower().endswith(SMILES_ENDING):
            return parse_molecule(content, name), ""
        return parse_graph(content, name, partial(check_size, name)), ""
    except DataError as error:
        return None, str(error)


def parse_molecule(content: bytes, name: str) -> MoleculeArrays:
    """The molecule of a file that has a SMILES and, after a space, perhaps a name.

    Args:
        content: The file's bytes.
        name: The file's name, which stands in errors.

    Raises:
        DataError: It is not one valid molecule, or one that is too large to draw.
    """
    rows = list(smi_rows([content.decode("utf-8-sig", "replace")]))
    if len(rows) != 1:
        raise DataError(f"{name}: {f'{len(rows)} molecules; the page shows one' if rows else NO_MOLECULES}")
    ((_, (smiles, _)),) = rows
    found = read_arrays([smiles])
    if not found.num_atoms[0]:
        raise DataError(f"{printable(smiles)[:60]}: {why_not_valid(smiles)}")
    if found.num_atoms[0] > MOST_ATOMS:
        raise DataError(f"{name}: {found.num_atoms[0]:,} atoms; the page draws molecules of up to {MOST_ATOMS:,}")
    return found
