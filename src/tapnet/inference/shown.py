"""How nodes are numbered where a graph is shown: atoms as their SMILES names them, all others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tapnet.data.dataset import GraphDataset
from tapnet.inference.explain import Layer


@dataclass(frozen=True)
class ShownOrder:
    """The numbers that the nodes of one graph are shown with.

    Attributes:
        number: ``[n]`` of each node.
        node: ``[n]`` the node that each number stands for.
    """

    number: NDArray[np.int64]
    node: NDArray[np.int64]

    @classmethod
    def of(cls, data: GraphDataset, graph: int = 0) -> ShownOrder:
        """The order of a graph of a data set."""
        size = int(data.nodes_per_graph[graph])
        atoms = data.atom_order(graph) if data.smiles is not None else []
        number = np.asarray(atoms if len(atoms) == size else range(size), dtype=np.int64)
        return cls(number, np.argsort(number))

    def edges(self, edges: NDArray[np.int64], *, directed: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Edges ``[2, E]`` by these numbers, sorted, and ``[E]`` which of the given ones each of them is."""
        if (np.diff(self.number) > 0).all():  # as they are
            return edges, np.arange(edges.shape[1])
        shown = self.number[edges]
        shown = shown if directed else np.sort(shown, axis=0)
        order = np.lexsort(shown[::-1])
        return shown[:, order], order

    def layers(self, layers: Sequence[Layer]) -> tuple[Layer, ...]:
        """What pooling layers kept, by these numbers, ascending."""
        return tuple(map(self._layer, layers))

    def _layer(self, layer: Layer) -> Layer:
        shown = self.number[layer.nodes]
        order = np.argsort(shown)
        parts = {name: values[order] for name, values in layer.parts.items()}
        return replace(layer, nodes=shown[order], kept=layer.kept[order], score=layer.score[order], parts=parts)
