"""What the page shows, as plain values: the model, its data set, and one graph with what is kept of it."""

from __future__ import annotations

import copy
import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError, SettingError, TapnetError
from tapnet.inference.explain import Layer, explain
from tapnet.inference.saved import SavedModel
from tapnet.io.graph_files import FileGraph, parse_graph
from tapnet.io.layout import is_graph_file
from tapnet.models.tapnet import TAPNet
from tapnet.nn.pool.select import SelectPooling, check_ratio
from tapnet.nn.tap import TAPooling
from tapnet.training.protocol import split
from tapnet.viz.graph_layout import graph_layout

MOST_NODES, MOST_EDGES = 10_000, 100_000  # of a graph that is drawn
PREDICTED_AT_ONCE = 256
LONGEST_NAME = 100  # letters, of a node or category
REMEMBERED = 64  # graphs whose places are not computed again
ONE_READS = threading.Lock()  # at a time: Python collects the warnings of all threads together

View = dict[str, Any]


class GraphNotFoundError(DataError):
    """A number that no graph of the data set has."""


@dataclass(frozen=True)
class Choice:
    """What the sliders say; None: as the network was trained."""

    connectivity: float | None = None
    ratios: tuple[float | int, ...] | None = None


class Explorer:
    """A model and its data set, if that is here. Nothing in it changes with a visit, so visitors share no state."""

    def __init__(self, saved: SavedModel, data: GraphDataset | None = None, missing: str = "") -> None:
        if not isinstance(saved.network, TAPNet):
            raise SettingError(f"the model is {saved.about['trial']['model']}, which keeps no nodes to show")
        self.saved, self.network, self.missing = saved, saved.network, missing
        self.data = data if data is None or data.features == saved.features else data.with_features(saved.features)
        self.read = None if self.data is None else saved.encode(self.data)
        self.parts = None if self.data is None else self._parts(self.data)
        self.places = lru_cache(REMEMBERED)(self._places)
        self.predictions = lru_cache(None)(self._predictions)
        self._try_out()

    def _try_out(self) -> None:
        """One small graph: what cannot be explained is said now, and what is compiled at first use is compiled."""
        edge_index = torch.tensor([[0, 1], [1, 0]])
        x = torch.zeros(2, self.network.in_channels) if self.saved.categories is None else torch.tensor([0, 0])
        explain(self.network, GraphBatch.from_edge_index(x, edge_index))
        graph_layout(edge_index[:, :1].numpy(), 2)

    # ---- the model and its data set ----

    def model(self) -> View:
        settings, trial = self.network.settings, self.saved.about["trial"]
        return {
            "dataset": self.saved.name,
            "pool": settings.pool,
            "fold": trial.get("fold"),
            "folds": trial.get("folds"),
            "accuracy": self._accuracy(),
            "accuracy_rules": self._accuracy_rules(),
            "classes": list(self.saved.class_names),
            "features": self.saved.features,
            "connectivity": _connectivity(self.network),
            "ratios": [pool.ratio for pool in _pools(self.network)],
            "whole": [isinstance(pool.ratio, int) for pool in _pools(self.network)],  # a number of nodes, not a share
            "graphs": 0 if self.data is None else len(self.data),
            "missing": self.missing,
            "most_nodes": MOST_NODES,
        }

    def _accuracy(self) -> list[float] | None:
        """Mean and deviation over the folds of the cross-validation before a final model."""
        try:
            found = self.saved.about["cross_validation"]
            return [round(float(found[part]), 1) for part in ("mean", "std")]
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def _accuracy_rules(self) -> str:
        """The protocol, folds and epochs behind it."""
        try:
            return str(self.saved.about["cross_validation"]["rules"])[: 5 * LONGEST_NAME]
        except (KeyError, TypeError):
            return ""

    def graphs(self) -> View:
        """Every graph of the data set in columns: class, nodes, edges, and whether the model was trained on it."""
        data = self._data
        edges = data.rowptr[data.node_ptr].diff() // 2
        return {
            "name": data.name,
            "classes": self._data_classes,
            "class": data.y.tolist(),
            "nodes": data.nodes_per_graph.tolist(),
            "edges": edges.tolist(),
            "part": self.parts,
        }

    def _predictions(self, first: int) -> View:
        """The predicted class of the graphs ``first`` to ``first`` + 255, each as its number among the model's."""
        self._check_number(first)
        if first % PREDICTED_AT_ONCE:
            raise SettingError(f"first is a multiple of {PREDICTED_AT_ONCE}, not {first}")
        assert self.read is not None
        numbers = range(first, min(first + PREDICTED_AT_ONCE, len(self.read)))
        found = self.saved.probabilities(self.read.subset(numbers))
        return {"first": first, "predicted": found.argmax(dim=1).tolist(), "graphs": len(self.read)}

    @property
    def _data(self) -> GraphDataset:
        if self.data is None:
            raise GraphNotFoundError(self.missing or "there is no data set here")
        return self.data

    @cached_property
    def _data_classes(self) -> Sequence[str | None]:
        """The names of the data set's classes: its own, else that of the model's class of the same value."""
        if self._data.classes == (None,):
            return [None]
        if self._data.class_names is not None:
            return list(self._data.class_names)
        known = dict(zip(map(str, self.saved.classes), self.saved.class_names, strict=True))
        return [known.get(str(value), str(value)) for value in self._data.classes]

    def _parts(self, data: GraphDataset) -> list[str] | None:
        """What each graph was to the model: "training", "validation" or "test"; None where that is not known."""
        trial = self.saved.about["trial"]
        try:
            if data.checksum != trial["data"]:
                return None
            if "final" in self.saved.about:
                return ["training"] * len(data)
            found = split(data.y, trial["protocol"], trial["folds"], trial["fold"])
        except (TapnetError, KeyError, TypeError, ValueError):
            return None
        parts = ["training"] * len(data)
        for name, numbers in (("validation", found.validation), ("test", found.test)):
            for number in () if numbers is None else numbers.tolist():
                parts[number] = name
        return parts

    def _check_number(self, number: int) -> None:
        data = self._data
        if not 0 <= number < len(data):
            raise GraphNotFoundError(f"{data.name} has graphs 0 to {len(data) - 1}; there is no graph {number}")

    # ---- one graph ----

    def graph(self, number: int, choice: Choice, with_places: bool = True) -> View:
        """A graph of the data set and what the network keeps of it."""
        self._check_number(number)
        assert self.read is not None
        data, read = self._data.subset([number]), self.read.subset([number])
        _check_size(f"graph {number}", data.num_nodes, data.num_edges // 2)
        view = self._view(data, read, choice, list(map(str, range(data.num_nodes))))
        view |= {"title": f"{data.name}, graph {number}", "number": number}
        view["class"] = self._data_classes[int(data.y[0])]
        view["part"] = self.parts[number] if self.parts else None
        if with_places:
            view["places"] = self.places(number)
        return view

    def uploaded(self, name: str, content: bytes, choice: Choice, with_places: bool = True) -> View:
        """A graph of a visitor's file; nothing of it is kept here."""
        with ONE_READS, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data, names = self._read_file(name, content)
            read = self.saved.encode(data)
        view = self._view(data, read, choice, names)
        view |= {"title": name, "number": None, "class": None, "part": None}
        view["notes"] = [str(w.message)[: 5 * LONGEST_NAME] for w in caught if w.category is UserWarning]
        if with_places:
            view["places"] = _pairs(graph_layout(_edges(data), data.num_nodes))
        return view

    def _read_file(self, name: str, content: bytes) -> tuple[GraphDataset, list[str]]:
        """A file's graph, and the names of its nodes."""
        if not is_graph_file(name.lower()):
            raise DataError(f"{name}: a graph is a .graphml file, or a .json file with nodes and links")
        graph = parse_graph(content, name)
        _check_size(name, graph.number_of_nodes(), graph.number_of_edges())
        file = FileGraph.of(graph, name)
        data = self.saved.joined([file], name)
        return data, [str(node)[:LONGEST_NAME] for node in graph]

    def _view(self, data: GraphDataset, read: GraphDataset, choice: Choice, names: Sequence[str]) -> View:
        network = self._changed(choice)
        explanation = explain(network, read.batch([0]))
        category, categories = self._categories(data)
        best = int(np.nan_to_num(explanation.probabilities).argmax())
        return {
            "nodes": list(names),
            "edges": _edges(data).T.tolist(),
            "category": category,
            "categories": categories,
            "layers": [_layer_view(layer) for layer in explanation.layers],
            "classes": list(self.saved.class_names),
            "probabilities": _numbers(explanation.probabilities),
            "best": best,
            "predicted": self.saved.class_names[best],
            "connectivity": _connectivity(network),
            "ratios": [pool.ratio for pool in _pools(network)],
            "features": self.saved.features,
            "notes": [],
        }

    def _places(self, number: int) -> list[list[float]]:
        data = self._data.subset([number])
        return _pairs(graph_layout(_edges(data), data.num_nodes))

    def _categories(self, data: GraphDataset) -> tuple[list[int], list[str]]:
        """Each node's category, and the names of those that occur, in their order."""
        if data.categories is None:
            return [0] * data.num_nodes, ["node"]
        known = dict(zip(map(str, self.saved.categories or ()), self.saved.category_names, strict=True))
        occurring, category = np.unique(data.x.numpy(), return_inverse=True)
        if data.label_names is not None:
            return category.tolist(), [data.category_names[i] for i in occurring]
        values = [str(data.categories[i])[:LONGEST_NAME] for i in occurring]
        return category.tolist(), [known.get(value, value) for value in values]

    def _changed(self, choice: Choice) -> TAPNet:
        """The network with the choice's settings: a copy that shares the weights alone."""
        network = copy.deepcopy(self.network, {id(p): p for p in self.network.parameters()})
        pools, connectivity, ratios = _pools(network), choice.connectivity, choice.ratios
        if ratios is not None and len(ratios) != len(pools):
            raise SettingError(f"there are {len(pools)} pooling layers, so {len(pools)} ratios, not {len(ratios)}")
        for pool, ratio in zip(pools, ratios or (), strict=False):
            pool.ratio = check_ratio(ratio)
        if connectivity is not None:
            if not math.isfinite(connectivity):
                raise SettingError(f"connectivity is a finite number, not {connectivity}")
            for pool in pools:
                if not isinstance(pool, TAPooling):
                    raise SettingError(f"connectivity is a setting of pool 'tap', not of {network.settings.pool!r}")
                pool.connectivity = connectivity
        return network


def _check_size(name: str, nodes: int, edges: int) -> None:
    if nodes > MOST_NODES or edges > MOST_EDGES:
        raise DataError(
            f"{name} has {nodes:,} nodes and {edges:,} edges; the page draws up to {MOST_NODES:,} and {MOST_EDGES:,}. "
            "`tapnet predict` has no such limit"
        )


def _layer_view(layer: Layer) -> View:
    parts = {"score": layer.score, "local": layer.local, "global": layer.global_, "connectivity": layer.connectivity}
    columns = {name: _numbers(values) for name, values in parts.items() if values is not None}
    return {"nodes": layer.nodes.tolist(), "kept": layer.kept.tolist(), **columns}


def _pools(network: TAPNet) -> list[SelectPooling]:
    return [pool for pool in network.pools if isinstance(pool, SelectPooling)]


def _connectivity(network: TAPNet) -> float | None:
    return next((pool.connectivity for pool in _pools(network) if isinstance(pool, TAPooling)), None)


def _edges(data: GraphDataset) -> NDArray[np.int64]:
    """[2, E] of a data set of one graph, each edge once."""
    edges: NDArray[np.int64] = data.batch([0]).edges_once.numpy()
    return edges


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Six digits are more than a page shows; JSON has no NaN."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]


def _pairs(at: NDArray[np.float64]) -> list[list[float]]:
    return [[round(x, 4), round(y, 4)] for x, y in at.tolist()]
