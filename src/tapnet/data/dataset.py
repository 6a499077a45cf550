"""GraphDataset: all graphs of a data set in flat arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tapnet._loops.csr import cut_graphs, nodes_and_edges
from tapnet._loops.ranges import concatenated_ranges, offsets
from tapnet.data.batch import GraphBatch
from tapnet.data.features import MixedFeatures
from tapnet.data.splits import Splits
from tapnet.data.targets import Task as Task
from tapnet.errors import SettingError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

Features = Literal["labels", "degrees", "log-degrees", "attributes", "all"]
Indices = Sequence[int] | range | NDArray[Any] | Tensor  # numbers of graphs, or one boolean a graph
# The optional tensors of a data set, and whether their rows are nodes or edges.
NODE_AND_EDGE_DATA = {
    "node_labels": "node",
    "node_attributes": "node",
    "edge_labels": "edge",
    "edge_attributes": "edge",
    "edge_weight": "edge",
    "self_loop": "node",
}


class Prepared(Protocol):
    """What a model computes once for each graph of a data set."""

    def cut(self, graphs: Tensor) -> Any:
        """The part of these graphs, which goes with their batch and has a method ``to(device)``."""


class GraphReference(NamedTuple):
    """A graph of a data set, as an element of an object array."""

    dataset: GraphDataset
    number: int


@dataclass(frozen=True, eq=False)
class GraphDataset:
    """G graphs with N nodes in all and E directed edges (each undirected edge twice), as flat arrays.

    There are no self-loops and no duplicate edges, and the edges are sorted by (row, column). Unless the graphs are
    ``directed``, every edge's reverse is there too. What the models see is ``x``: integer categories, floats, or both.
    Labels and attributes that are not in ``x`` are kept, too.

    Data sets are made by ``load_dataset``, ``GraphDataset.from_pyg``, ``GraphDataset.from_networkx`` and
    ``GraphDataset.from_smiles``.

    Example:
        >>> from tapnet import load_dataset
        >>> dataset = load_dataset("MUTAG")
        >>> dataset.num_graphs, dataset.num_classes, type(dataset[0]).__name__
        (188, 2, 'Data')
        >>> dataset.batch([0, 1]).num_graphs
        2
    """

    name: str
    node_ptr: Tensor  # [G+1] int64: the nodes of graph g are node_ptr[g] to node_ptr[g+1]
    rowptr: Tensor  # [N+1] int64: the edges of node i, of directed graphs those that lead to it, are rowptr[i] to …
    col: Tensor  # [E]   int32: the other end of each edge, as a node's number within its graph
    y: Tensor  # [G]   int64: class 0 … C-1; or [G, T] float32: numbers or 0/1 labels, NaN where one is missing
    classes: tuple[Hashable, ...]  # [C] the class's value in the original data; none where the targets are numbers
    x: Tensor | MixedFeatures  # [N]   int64 categories 0 … K-1, [N, F] floats, or both
    categories: tuple[Hashable, ...] | None  # [K] the category's original value; None for float features
    features: Features  # what x was made of
    node_labels: Tensor | None = None  # [N] int64
    node_label_values: tuple[Hashable, ...] | None = None
    node_attributes: Tensor | None = None  # [N, F] float32
    edge_labels: Tensor | None = None  # [E] int64
    edge_label_values: tuple[Hashable, ...] | None = None
    edge_attributes: Tensor | None = None  # [E, F] float32
    edge_weight: Tensor | None = None  # [E] float32, equal in both directions unless the graphs are directed
    # [N] bool: the nodes that the files join to themselves. Such an edge is no edge here, but it counts in the
    # degree that is a node's feature, as it did for the paper and its predecessors (COLLAB has 2,837 of them).
    self_loop: Tensor | None = None
    label_names: tuple[str, ...] | None = None  # what each node label means (elements), where that is known
    class_names: tuple[str, ...] | None = None  # what each class means, where that is known
    label_attribute: str | None = None  # what the files call the labels of nodes, where they have names for things
    attribute_names: tuple[str, ...] | None = None  # and their numbers
    node_columns: tuple[str, ...] | None = None  # the values of node labels are tuples: the names of their parts
    edge_columns: tuple[str, ...] | None = None  # the same of edge labels
    edge_label_attribute: str | None = None  # what the files call the labels of edges
    edge_attribute_names: tuple[str, ...] | None = None  # what the files call the numbers of edges
    threshold: float | None = None  # of matrices: entries whose absolute value is not larger are no edges
    task: Task = "classification"  # what y is
    target_names: tuple[str, ...] | None = None  # [T] of the columns of y
    graph_names: tuple[str, ...] | None = None  # [G] of files, compounds and the like
    smiles: tuple[str, ...] | None = None  # [G] of molecules; atom_order has the atom that each node is
    graph_columns: Mapping[str, tuple[str, ...]] | None = None  # [G] each: what else a table says of the graphs
    notes: tuple[str, ...] = ()  # what there was to say when the files were read
    not_read: tuple[str, ...] = ()  # what else nodes and edges carry: "edge attribute weight"
    source: str = ""  # the files it was read from
    place: str = ""  # in what kind of place they were found
    prepared: Mapping[str, Prepared] = field(default_factory=dict)  # what some model computes once for all its graphs
    edge_attr: MixedFeatures | None = None  # what edges carry, for models that read it: see with_edge_features
    splits: Splits | None = None  # the user's own, in the place of stratified folds
    directed: bool = False  # whether edges have a direction

    # ---- sizes ----

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """``(G, 1)``, a table of one column to scikit-learn, whose splitters index it as ``dataset[indices, ...]``."""
        return (len(self), 1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        """``[G, 1]``, a column of `GraphReference`: what scikit-learn makes of a data set where it wants a table."""
        column = np.empty((len(self), 1), dtype=object)
        for number in range(len(self)):
            column[number, 0] = GraphReference(self, number)
        return column

    @property
    def num_graphs(self) -> int:
        """G"""
        return len(self)

    @property
    def num_nodes(self) -> int:
        """N"""
        return len(self.rowptr) - 1

    @property
    def num_edges(self) -> int:
        """Directed edges: twice the number of undirected ones."""
        return len(self.col)

    @property
    def num_links(self) -> int:
        """The number of edges as people count them: undirected ones once."""
        return self.num_edges if self.directed else self.num_edges // 2

    @property
    def num_classes(self) -> int:
        """C"""
        return len(self.classes)

    @property
    def num_outputs(self) -> int:
        """What a network has to say of a graph: C logits, or T numbers."""
        return self.num_classes if self.task == "classification" else self.y.size(1)

    @property
    def num_features(self) -> int:
        """The number of categories (the width of their one-hot encoding), of float features, or of both."""
        if isinstance(self.x, MixedFeatures):
            return len(self.categories or ()) + (0 if self.x.numbers is None else self.x.numbers.size(1))
        return self.x.size(1) if self.categories is None else len(self.categories)

    @property
    def num_edge_features(self) -> int:
        """The number of categories and numbers that edges carry, besides weights."""
        numbers = 0 if self.edge_attributes is None else self.edge_attributes.size(1)
        return len(self.edge_categories) + numbers

    @cached_property
    def edge_categories(self) -> tuple[Hashable, ...]:
        """What edges can be: the values of their labels, or (column, value) pairs where labels have several parts."""
        return _category_columns(self.edge_label_values or (), self.edge_columns)[0]

    @cached_property
    def nodes_per_graph(self) -> Tensor:
        """[G]"""
        return self.node_ptr.diff()

    @cached_property
    def degree(self) -> Tensor:
        """[N] the number of neighbours of each node."""
        return self.rowptr.diff()

    @property
    def nbytes(self) -> int:
        """The bytes of what batches are cut out of, in memory or mapped."""
        tensors = (self.node_ptr, self.rowptr, self.col, self.y, *_tensors(self.x))
        return sum(t.nbytes for t in (*tensors, self.edge_weight, *_tensors(self.edge_attr)) if t is not None)

    @property
    def category_names(self) -> tuple[str, ...]:
        """What each category of x means: its name where that is known, else its original value."""
        are_labels = self.features == "labels" or (self.features == "all" and self.node_columns is None)
        if are_labels and self.categories is not None and self.label_names is not None:
            return self.label_names
        return tuple(map(str, self.categories or ()))

    def __repr__(self) -> str:
        features = self.features.replace("-", "_")
        return (
            f"GraphDataset({self.name!r}, graphs={len(self)}, nodes={self.num_nodes}, "
            f"edges={self.num_links}, classes={self.num_classes}, {features}={self.num_features})"
        )

    @cached_property
    def checksum(self) -> str:
        """A digest of everything a model can see: equal for equal data, wherever and however it was stored."""
        digest = hashlib.blake2b(digest_size=16)
        seen = [self.node_ptr, self.rowptr, self.col, self.y, *_tensors(self.x)]
        for tensor in [*seen, self.edge_weight, *_tensors(self.edge_attr)]:
            if tensor is None:
                continue
            digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.contiguous().numpy().reshape(-1).view(np.uint8).data)
        if self.directed:
            digest.update(b"directed")
        return digest.hexdigest()

    # ---- graphs out of it ----

    def batch(self, indices: Indices) -> GraphBatch:
        """Cuts graphs out of the flat arrays.

        Args:
            indices: The numbers of graphs, or one boolean per graph.

        Returns:
            The disjoint union of these graphs, in this order.

        Raises:
            IndexError: There is no such graph.
        """
        graphs = self._graph_numbers(indices)
        ptr, nodes, rowptr, col = cut_graphs(graphs, self.node_ptr, self.rowptr, self.col)
        prepared = {name: values.cut(graphs) for name, values in self.prepared.items()}
        x, y = self.x.index_select(0, nodes), self.y.index_select(0, graphs)
        more: dict[str, Any] = {"prepared": prepared}
        if self.edge_weight is not None or self.edge_attr is not None:
            edges = _edges_of(nodes, self.rowptr)
            more["weight"] = None if self.edge_weight is None else self.edge_weight.index_select(0, edges)
            more["edge_attr"] = None if self.edge_attr is None else self.edge_attr.index_select(0, edges)
        if self.directed:
            leaving, targets, entry = self.transposed
            more["transposed"] = cut_graphs(graphs, self.node_ptr, leaving, targets)[2:]
            if self.edge_weight is not None:
                entries = entry.index_select(0, _edges_of(nodes, leaving))
                more["transposed_weight"] = self.edge_weight.index_select(0, entries)
        return GraphBatch(x, y, ptr, rowptr, col, **more)

    @cached_property
    def transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """``rowptr`` and ``col`` of the edges that leave each node, and [E] where each of these stands in ``col``."""
        first = torch.repeat_interleave(self.node_ptr[:-1], self.nodes_per_graph)
        row = torch.repeat_interleave(torch.arange(self.num_nodes), self.degree)
        col = self.col + first[row]
        order = torch.argsort(col, stable=True)
        count = torch.bincount(col, minlength=self.num_nodes)
        return offsets(count), (row - first[row])[order].int(), order

    def subset(self, indices: Indices) -> GraphDataset:
        """Makes the data set of some graphs; classes and categories keep their numbers.

        Args:
            indices: The numbers of graphs, or one boolean per graph.

        Returns:
            The data set of these graphs, in this order.

        Raises:
            IndexError: There is no such graph.
        """
        graphs = self._graph_numbers(indices)
        nodes, edges = nodes_and_edges(graphs, self.node_ptr, self.rowptr)
        chosen: dict[str, Any] = {"y": self.y[graphs], "x": self.x[nodes], "col": self.col[edges], "prepared": {}}
        degree = self.rowptr[nodes + 1] - self.rowptr[nodes]
        chosen |= {"node_ptr": offsets(self.nodes_per_graph[graphs]), "rowptr": offsets(degree)}
        for key, of in NODE_AND_EDGE_DATA.items():
            values = getattr(self, key)
            chosen[key] = None if values is None else values[nodes if of == "node" else edges]
        chosen["splits"] = None
        chosen["edge_attr"] = None if self.edge_attr is None else self.edge_attr[edges]
        for key in ("graph_names", "smiles"):
            words = getattr(self, key)
            chosen[key] = None if words is None else tuple(words[i] for i in graphs.tolist())
        if self.graph_columns is not None:
            columns = self.graph_columns.items()
            chosen["graph_columns"] = {key: tuple(cells[i] for i in graphs.tolist()) for key, cells in columns}
        return replace(self, **chosen)

    def _graph_numbers(self, indices: Indices) -> Tensor:
        numbers = np.asarray(indices)
        if numbers.dtype == bool and numbers.shape == (len(self),):
            numbers = np.flatnonzero(numbers)
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            raise IndexError(f"graphs are chosen by whole numbers or by {len(self)} booleans")
        graphs = torch.from_numpy(numbers.astype(np.int64).reshape(-1))
        if len(graphs) and not (-len(self) <= int(graphs.min()) and int(graphs.max()) < len(self)):
            raise IndexError(f"{self.name} has graphs 0 to {len(self) - 1}")
        return torch.where(graphs < 0, graphs + len(self), graphs)

    def with_features(self, features: Features) -> GraphDataset:
        """Makes the data set of the same graphs with another ``x``.

        Args:
            features: ``"labels"`` (node labels as categories), ``"degrees"`` (distinct degrees as categories),
                ``"log-degrees"`` (one float, log(1 + degree), which also says something of a degree that no training
                graph had), ``"attributes"`` (floats), or ``"all"``: labels and attributes together, as far as there
                are any.

        Returns:
            The data set.

        Raises:
            SettingError: The data set has no such labels or attributes.
        """
        categories: tuple[Hashable, ...] | None = None
        x: Tensor | MixedFeatures
        if features == "all":
            if self.node_labels is None:
                return self.with_features("degrees" if self.node_attributes is None else "attributes")
            categories, table = _category_columns(self.node_label_values or (), self.node_columns)
            x = MixedFeatures(self.node_labels, table, self.node_attributes)
        elif features in ("degrees", "log-degrees"):
            listed = self.degree if self.self_loop is None else self.degree + self.self_loop
            if features == "degrees":
                values, x = torch.unique(listed, return_inverse=True)
                categories = tuple(values.tolist())
            else:
                x = listed.to(torch.float32).log1p().unsqueeze(1)
        elif features == "labels":
            if self.node_labels is None:
                raise SettingError(f"{self.name} has no node labels; features='degrees' works on every data set")
            x, categories = self.node_labels, self.node_label_values
        elif features == "attributes":
            if self.node_attributes is None:
                raise SettingError(f"{self.name} has no node attributes")
            x = self.node_attributes
        else:
            raise SettingError(f"features is one of {', '.join(get_args(Features))}, not {features!r}")
        return replace(self, x=x, categories=categories, features=features, prepared={})

    def with_edge_features(self) -> GraphDataset:
        """The data set whose batches have ``edge_attr``, for models that read what edges carry.

        Raises:
            SettingError: The edges carry nothing but, perhaps, weights.
        """
        if self.edge_attr is not None:
            return self
        if self.edge_labels is None and self.edge_attributes is None:
            raise SettingError(f"the edges of {self.name} carry no labels and no attributes")
        if self.edge_labels is None:
            labels, table = torch.zeros(self.num_edges, dtype=torch.int64), torch.zeros(1, 0, dtype=torch.int64)
        else:
            labels, table = self.edge_labels, _category_columns(self.edge_label_values or (), self.edge_columns)[1]
        return replace(self, edge_attr=MixedFeatures(labels, table, self.edge_attributes))

    # ---- PyG ----

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice | Indices) -> GraphDataset: ...
    def __getitem__(self, index: int | slice | Indices) -> Data | GraphDataset:
        """Takes one graph or several out of the data set.

        Args:
            index: The number of a graph, a slice, or several numbers (or one boolean per graph).

        Returns:
            For one number that graph as a PyG ``Data``, with ``node_labels`` … ``edge_attributes`` where the data set
            has them; else the data set of those graphs.
        """
        if isinstance(index, tuple) and index[1:] == (...,):
            index = index[0]
        if isinstance(index, slice):
            return self.subset(range(*index.indices(len(self))))
        if np.ndim(index) > 0:
            return self.subset(index)  # type: ignore[arg-type]
        from tapnet.data.convert import to_pyg

        return to_pyg(self, int(self._graph_numbers(np.asarray([index]))))

    def __iter__(self) -> Iterator[Data]:
        return (self[i] for i in range(len(self)))

    @classmethod
    def from_pyg(
        cls,
        graphs: Sequence[Data],
        *,
        name: str = "graphs",
        classes: Sequence[Hashable] | None = None,
        categories: Sequence[Hashable] | None = None,
        edge_categories: Sequence[Hashable] | None = None,
        features: Features | None = None,
        task: Task | None = None,
        directed: bool = False,
    ) -> GraphDataset:
        """Makes a data set of PyG's ``Data`` objects.

        Args:
            graphs: Graphs whose ``x`` holds integer categories ``[n]`` (or several columns of them, ``[n, K]``),
                one-hot rows, or floats ``[n, F]``, and whose ``y`` is a class, a number, or several numbers or 0/1
                labels with NaN for gaps; where all have an ``edge_weight`` ``[E]``, it is read, too. PyG's and OGB's
                data sets are such sequences.
            name: The name of the data set.
            classes: The values behind the numbers in ``y``. Without it (and likewise for the next two) the numbers
                that occur stand for themselves and are counted from 0, so parts of one data set that are made by
                several calls need ``classes=range(C)`` and ``categories=range(K)``.
            categories: The values behind the numbers in ``x``.
            edge_categories: The values behind the numbers in ``edge_attr``.
            features: What ``x`` of the data set holds; with ``"degrees"`` or
                ``"log-degrees"`` the graphs' ``x`` is not looked at.
            task: ``"classification"``, ``"multilabel"`` or ``"regression"``; by default whole numbers of an integer
                type are classes, and other targets what :func:`tapnet.data.targets.detect_task` finds.
            directed: Whether edges keep their directions, from row 0 of ``edge_index`` to row 1; else it is made
                symmetric.

        Returns:
            The data set.

        Raises:
            DataError: A graph has no class, no edges, or other columns than the rest; the message names the graph.

        Example:
            >>> import torch
            >>> from torch_geometric.data import Data
            >>> from tapnet import GraphDataset
            >>> edge = torch.tensor([[0, 1], [1, 0]])
            >>> graphs = [Data(x=torch.tensor([0, 1]), edge_index=edge, y=torch.tensor([c])) for c in (0, 1)]
            >>> GraphDataset.from_pyg(graphs)
            GraphDataset('graphs', graphs=2, nodes=4, edges=2, classes=2, labels=2)
        """
        from tapnet.data.convert import from_pyg

        return from_pyg(graphs, name, classes, categories, edge_categories, features, task, directed)

    # ---- NetworkX ----

    def to_networkx(self, index: int) -> nx.Graph:
        """Gives one graph with its original values.

        Args:
            index: The number of the graph.

        Returns:
            A graph with the node and edge attributes ``label`` and ``attributes``, the edge attribute ``weight``, and
            its class (or its number, or numbers) in ``graph["y"]``: a ``DiGraph`` where the data set is directed, or
            an edge and its reverse carry different data, else a ``Graph``. The ``label`` of a node is the name of its
            category where ``label_names`` has one for each. Several categories are a tuple, and each is an attribute
            of its own, too, under the name that ``node_columns`` (``edge_columns``) has for it.
        """
        from tapnet.data.convert import to_networkx

        return to_networkx(self, index)

    @classmethod
    def from_networkx(
        cls,
        graphs: Sequence[nx.Graph],
        y: Sequence[Any] | None = None,
        *,
        name: str = "graphs",
        node_label: str | Sequence[str] | None = "label",
        node_attributes: str = "attributes",
        edge_label: str | Sequence[str] | None = "label",
        edge_attributes: str = "attributes",
        edge_weight: str = "weight",
        features: Features | None = None,
        task: Task | None = None,
        directed: bool = False,
    ) -> GraphDataset:
        """Makes a data set of NetworkX graphs.

        An attribute counts if every node (or edge) of every graph has it; else ``not_read`` names it. Labels may be of
        any hashable kind but None. Nodes are numbered in the order of the graph; self-loops are dropped, and the first
        of parallel edges counts.

        Args:
            graphs: The graphs.
            y: The class of each graph, its number, or a list of several numbers or labels; by default
                ``graph.graph["y"]``.
            name: The name of the data set.
            node_label: The node attribute that holds a category; or a list of several, which every node has to have.
                Each is a category of its own, and their embeddings are summed. None or an empty list: no attribute.
                By default ``label``, and in graphs of :meth:`to_networkx` the several that their labels are made of.
            node_attributes: The node attribute that holds numbers.
            edge_label: The edge attribute that holds a category, or a list of several, likewise.
            edge_attributes: The edge attribute that holds numbers.
            edge_weight: The edge attribute that holds a weight; where two directions or parallel edges have different
                ones, their mean counts.
            features: What ``x`` holds; by default labels where they tell nodes apart, else degrees; ``"all"`` where
                ``node_label`` is a list.
            task: ``"classification"``, ``"multilabel"`` or ``"regression"``; by default numbers and lists are what
                :func:`tapnet.data.targets.detect_task` finds, everything else is a class.
            directed: Whether the edges of a ``DiGraph`` keep their directions; those of a ``Graph`` go both ways.

        Returns:
            The data set.

        Raises:
            DataError: A class is missing, an attribute does not hold the same number of numbers everywhere, or a weight
                is not a finite number.

        Example:
            >>> import networkx as nx
            >>> from tapnet import GraphDataset
            >>> GraphDataset.from_networkx([nx.path_graph(3), nx.cycle_graph(3)], ["path", "ring"])
            GraphDataset('graphs', graphs=2, nodes=6, edges=5, classes=2, degrees=2)
        """
        from tapnet.data.convert import from_networkx

        attributes = (node_label, node_attributes, edge_label, edge_attributes, edge_weight)
        return from_networkx(graphs, y, name, attributes, features, task, directed)

    # ---- molecules ----

    @classmethod
    def from_smiles(
        cls,
        smiles: Sequence[str],
        y: Any = None,
        *,
        name: str = "molecules",
        names: Sequence[str] | None = None,
        task: Task | None = None,
    ) -> GraphDataset:
        """Makes a data set of molecules; hydrogens are counted at their atom and are no nodes.

        Atoms carry their element, degree, charge, hydrogens, aromaticity, hybridisation, whether they are in a ring,
        and chirality, and as numbers their shares of logP, refractivity, polar surface and surface; bonds their type,
        whether they are conjugated or in a ring, and stereo. RDKit is needed.

        Args:
            smiles: The SMILES of each molecule: a list, or a column of a pandas DataFrame.
            y: The targets: one value for each molecule, or several (an array ``[G, T]``, a mapping, or some columns of
                a DataFrame). What they ask for is found out as :func:`tapnet.data.targets.detect_task` says. None: they
                are not known.
            name: The name of the data set.
            names: What the molecules are called; by default, and where a name is empty, their SMILES.
            task: ``"classification"``, ``"multilabel"`` or ``"regression"``, where it is not what would be found.

        Returns:
            The data set.

        Raises:
            DataError: Some SMILES are not valid, or the targets do not fit; the message names the molecule.
            SettingError: RDKit is not installed.

        Example:
            >>> from tapnet import GraphDataset
            >>> dataset = GraphDataset.from_smiles(["CCO", "c1ccccc1"], [0.8, -2.1])
            >>> dataset.task, dataset.num_graphs, dataset.num_nodes
            ('regression', 2, 9)
        """
        from tapnet.data.molecules import from_smiles

        return from_smiles(smiles, y, name, names, task)

    def atom_order(self, index: int) -> list[int]:
        """Finds the atoms of a molecule's SMILES that the nodes of its graph are.

        Nodes are in RDKit's canonical order, so that a molecule is the same graph however it is written.

        Args:
            index: The number of the graph.

        Returns:
            ``[n]`` of each node the number of its atom, from 0 in the order in which the SMILES names them.

        Raises:
            SettingError: These are no molecules.

        Example:
            >>> from tapnet import GraphDataset
            >>> GraphDataset.from_smiles(["OCC"]).atom_order(0)
            [2, 0, 1]
        """
        from tapnet.data._molecule_arrays import atom_order

        if self.smiles is None:
            raise SettingError(f"the graphs of {self.name} are no molecules")
        order: list[int] = atom_order(self.smiles[index]).tolist()
        return order


def _edges_of(nodes: Tensor, rowptr: Tensor) -> Tensor:
    """The numbers of the edges of some nodes, one node after another."""
    first = rowptr[nodes]
    return concatenated_ranges(first, rowptr[nodes + 1] - first)


def _tensors(features: Tensor | MixedFeatures | None) -> tuple[Tensor | None, ...]:
    if isinstance(features, MixedFeatures):
        return features.combination, features.table, features.numbers
    return (features,)


def _category_columns(
    values: Sequence[Hashable], columns: tuple[str, ...] | None
) -> tuple[tuple[Hashable, ...], Tensor]:
    """The categories [C] of labels with these values, and the table [R, K] that says which each label has.

    Labels are one category each; with ``columns`` their values are tuples, and a category is a (column, value) pair.
    """
    if columns is None:
        return tuple(values), torch.arange(len(values)).unsqueeze(1)
    categories: list[Hashable] = []
    table = np.empty((len(values), len(columns)), np.int64)
    for k, column in enumerate(columns):
        cells = [value[k] for value in values]  # type: ignore[index]
        distinct = sorted(set(cells), key=lambda cell: (type(cell).__name__, cell))
        position = {cell: len(categories) + i for i, cell in enumerate(distinct)}
        categories += [(column, cell) for cell in distinct]
        table[:, k] = [position[cell] for cell in cells]
    return tuple(categories), torch.from_numpy(table)
