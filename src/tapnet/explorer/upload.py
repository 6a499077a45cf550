"""A visitor's graph file: parsed, checked and encoded for a model, with nothing stored."""

from __future__ import annotations

from typing import NamedTuple

from tapnet.data._molecule_arrays import MoleculeArrays, check_rdkit
from tapnet.data.checks import features_note
from tapnet.data.dataset import GraphDataset
from tapnet.data.molecules import assemble_molecules
from tapnet.errors import DataError
from tapnet.explorer.parse import MOST_NODES as MOST_NODES
from tapnet.explorer.parse import SMILES_ENDING, ParserPool
from tapnet.explorer.parse import check_size as check_size
from tapnet.inference.model import SavedModel, UnseenCategories
from tapnet.inference.training_data import reads_molecules
from tapnet.io.dataset_files import is_graph_file
from tapnet.io.graph_folder import FileGraph

LONGEST_NAME, LONGEST_NOTE = 100, 500  # characters
parsers = ParserPool()


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
        name: The file's name, which ends in ``.graphml`` or ``.json``; ``.smi`` for a model that reads molecules.
        content: The file's bytes.

    Returns:
        The graph, encoded for the model, with its node names and the warnings about it.

    Raises:
        DataError: The file is no graph, is too large to draw, takes too long to read, or does not fit the model.
        SettingError: It is a molecule, and RDKit is not installed.
    """
    if name.lower().endswith(SMILES_ENDING):
        if not reads_molecules(saved):
            raise DataError(f"{name}: the model was not trained on molecules")
        check_rdkit()
    elif not is_graph_file(name.lower()):
        raise DataError(f"{name}: a graph is a .graphml file, or a .json file with nodes and links")
    found = parsers.parse(name, content)
    if isinstance(found, MoleculeArrays):
        data = saved.to_dataset(assemble_molecules(found, None, name=name))
        nodes = list(map(str, range(data.num_nodes)))
    else:
        data = saved.join_files([FileGraph.of(found, name)], name)
        nodes = [str(node)[:LONGEST_NAME] for node in found]
    unseen = UnseenCategories(saved.features)
    encoded = saved.encode(data, [name], unseen)
    unused = features_note(data, reads_edges=saved.network.reads_edges)
    notes = [str(unseen)[:LONGEST_NOTE]] if unseen.graphs else []
    notes += [unused[:LONGEST_NOTE]] if unused else []
    return Upload(data, encoded, nodes, notes)
