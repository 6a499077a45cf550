"""What graphs and their nodes are called, and the search by these names."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tapnet.data.dataset import GraphDataset
from tapnet.errors import TapnetError
from tapnet.explorer.upload import LONGEST_NAME
from tapnet.io.archive import Place
from tapnet.io.dataset_files import layout_of
from tapnet.io.graph_file import read_graph
from tapnet.io.graph_folder import graph_names
from tapnet.io.matrices import matrix_node_names

SEARCHED_CHARACTERS = 50_000_000  # of node names, which stay in memory once somebody has searched
SEARCH_SECONDS = 10.0  # for reading them
CACHED_GRAPHS = 64


class Names:
    """What graphs are called, and of a folder of graph files or matrices the names of their nodes.

    Args:
        data: The data set, whose ``source`` is where its files are.

    Attributes:
        graphs: The name of each graph, ``[G]``: that of its file, or that of a molecule; empty where they have none.
    """

    def __init__(self, data: GraphDataset | None) -> None:
        self.graphs: list[str] = []
        self._paths: Sequence[str] = ()
        self._read: Callable[[Place], Iterable[object] | None] = read_graph
        self._lock, self._index = threading.Lock(), list[str]()
        self.nodes = lru_cache(CACHED_GRAPHS)(self._nodes)
        if data is None:
            return
        self._sizes = data.nodes_per_graph.tolist()
        files: Sequence[str] = ()
        try:
            layout = layout_of(Path(data.source))
            self._folder = layout.place
            if layout.kind == "matrices":
                files, self._read = data.graph_names or (), matrix_node_names
            else:
                files = graph_names(data.source)
        except (TapnetError, OSError):  # no folder of files
            pass
        self._paths = files if len(files) == len(data) else ()
        self.graphs = [name[:LONGEST_NAME] for name in self._paths or data.graph_names or ()]

    def nodes_of(self, number: int) -> Sequence[str] | None:
        """The names of a graph's nodes; None where they have none, or the file has changed since it was loaded."""
        return self.nodes(number) if self._paths else None

    def _nodes(self, number: int) -> list[str] | None:
        place = self._folder if self._folder.is_file() else self._folder / self._paths[number]
        try:
            names = self._read(place)
        except (TapnetError, OSError):
            return None
        found = [str(node)[:LONGEST_NAME] for node in names or ()]
        return found if len(found) == self._sizes[number] else None

    def search(self, text: str) -> dict[str, list[int | None] | int]:
        """Finds graphs by their name or that of a node, upper and lower case alike.

        A number is searched among the nodes as a whole name, other text as part of one.

        Args:
            text: What to search for.

        Returns:
            ``graphs``: the numbers of the graphs that were found; ``nodes``: for each, the first node of that name,
            or None where the graph has it; ``searched``: how many graphs' nodes were searched.
        """
        text = _folded(text)
        if not self.graphs or not text.strip():
            return {"graphs": [], "nodes": [], "searched": 0}
        wanted = f"\n{text}\n" if text.isdecimal() else text
        index = self._read_nodes() if self._paths else [""] * len(self.graphs)
        graphs, nodes = list[int | None](), list[int | None]()
        for number, name in enumerate(self.graphs):
            names = index[number] if number < len(index) else ""
            if text in _folded(name):
                graphs.append(number)
                nodes.append(None)
            elif (place := names.find(wanted)) >= 0:
                graphs.append(number)
                nodes.append(names.count("\n", 0, place + wanted.startswith("\n")) - 1)
        return {"graphs": graphs, "nodes": nodes, "searched": len(index)}

    def _read_nodes(self) -> list[str]:
        """The node names of the first graphs, one text for each; read once, in bounded time and memory."""
        with self._lock:
            end, size = time.monotonic() + SEARCH_SECONDS, sum(map(len, self._index))
            while len(self._index) < len(self._paths) and size < SEARCHED_CHARACTERS and time.monotonic() < end:
                names = self._nodes(len(self._index)) or ()
                named = list(names) != list(map(str, range(len(names))))  # 0, 1, 2, … are no names
                self._index.append("\n" + "".join(f"{_folded(name)}\n" for name in names) if named else "")
                size += len(self._index[-1])
            return list(self._index)


def _folded(text: str) -> str:
    return text.replace("\n", " ").casefold()
