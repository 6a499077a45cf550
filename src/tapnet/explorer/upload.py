"""A visitor's graph file: parsed, checked and encoded for a model, with nothing stored."""

from __future__ import annotations

import threading
import warnings
from typing import NamedTuple

from tapnet.data.checks import features_note
from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError
from tapnet.inference.model import SavedModel
from tapnet.io.dataset_files import is_graph_file
from tapnet.io.graph_folder import FileGraph, parse_graph

MOST_NODES, MOST_EDGES = 10_000, 100_000  # of a graph that the page draws
LONGEST_NAME, LONGEST_NOTE = 100, 500  # characters
_warnings_lock = threading.Lock()  # Python collects the warnings of all threads together


class Upload(NamedTuple):
    """A graph from a file, as a data set of one."""

    data: GraphDataset
    encoded: GraphDataset  # as the model's network takes it
    names: list[str]  # of the nodes
    notes: list[str]  # warnings, such as categories that the model does not know


def read_upload(saved: SavedModel, name: str, content: bytes) -> Upload:
    """Read a graph from the content of a file.

    Args:
        saved: The model that the graph is for.
        name: The file's name, which ends in ``.graphml`` or ``.json``.
        content: The file's bytes.

    Returns:
        The graph, encoded for the model, with its node names and the warnings about it.

    Raises:
        DataError: The file is no graph, is too large to draw, or does not fit the model.
    """
    if not is_graph_file(name.lower()):
        raise DataError(f"{name}: a graph is a .graphml file, or a .json file with nodes and links")
    with _warnings_lock, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = parse_graph(content, name)
        check_size(name, graph.number_of_nodes(), graph.number_of_edges())
        data = saved.join_files([FileGraph.of(graph, name)], name)
        encoded = saved.encode(data)
    unused = features_note(data)
    notes = [str(warning.message)[:LONGEST_NOTE] for warning in caught if warning.category is UserWarning]
    notes += [unused[:LONGEST_NOTE]] if unused else []
    return Upload(data, encoded, [str(node)[:LONGEST_NAME] for node in graph], notes)


def check_size(name: str, nodes: int, edges: int) -> None:
    """Raise a :class:`DataError` for a graph that is too large to draw."""
    if nodes > MOST_NODES or edges > MOST_EDGES:
        raise DataError(
            f"{name} has {nodes:,} nodes and {edges:,} edges; the page draws up to {MOST_NODES:,} and {MOST_EDGES:,}. "
            "Prediction without a picture has no such limit"
        )
