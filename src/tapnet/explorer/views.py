"""The page's data as plain JSON values: the model, its data set, a graph, its prediction and what that rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tapnet.data.batch import GraphBatch
from tapnet.data.checks import features_note
from tapnet.data.dataset import NODE_AND_EDGE_DATA, GraphDataset
from tapnet.data.features import MixedFeatures
from tapnet.errors import DataError, SettingError, TapnetError
from tapnet.explorer.names import Names
from tapnet.explorer.upload import LONGEST_NAME, LONGEST_NOTE, MOST_NODES, check_size, read_upload
from tapnet.files import printable
from tapnet.inference.attribution import COALITIONS, FEWEST_PAIRS, Method, Probe, predicted_targets, surrogate_copies
from tapnet.inference.attribution_fidelity import PERCENTS, REPEATS
from tapnet.inference.explain import Explanation, Layer, explain
from tapnet.inference.explain_graph import FoundGraph, answer_words, attribute_graph
from tapnet.inference.explanation import GraphExplanation
from tapnet.inference.model import SavedModel, build_network
from tapnet.inference.shown import ShownOrder
from tapnet.inference.training_data import reads_molecules
from tapnet.inference.uncertainty import Answers
from tapnet.models.registry import find_model
from tapnet.models.tapnet import TAPNetSettings
from tapnet.ops.csr import induced_subgraph
from tapnet.training.baseline import baseline_warning
from tapnet.training.metrics import METRICS
from tapnet.training.protocol import check_protocol, split
from tapnet.viz.graph_layout import graph_layout
from tapnet.viz.molecules import atom_positions, bond_orders

PREDICTED_AT_ONCE = 256
CACHED_LAYOUTS = CACHED_ATTRIBUTIONS = 64
CONFIDENCE = 0.9  # of the sets of classes
MOST_COPIED = 15_000_000  # nodes and edges of all the copies of a graph that an attribution asks the network about
MOST_GROUPS = 8

View = dict[str, Any]


class GraphNotFoundError(DataError):
    """The data set has no graph of that number."""


@dataclass(frozen=True)
class Choice:
    """The sliders' values; None leaves a value as the network was trained.

    Attributes:
        connectivity: The weight λ of the connectivity term, for every pooling layer.
        ratios: One for each pooling layer: a share of the nodes (float) or a number of nodes (int).
    """

    connectivity: float | None = None
    ratios: tuple[float | int, ...] | None = None


class Explorer:
    """A model and its data set as the page shows them. Requests change nothing in it, so visitors share no state.

    Args:
        saved: Any trained network.
        data: The graphs to choose from; None shows uploaded files only.
        missing: What the page says where there is no data set.

    Attributes:
        no_layers: Why there are no nodes that pooling kept: the network has no pooling layers, or they merge nodes.

    Example:
        >>> explorer = Explorer(SavedModel.load("final.safetensors"), load_dataset("MUTAG"))  # doctest: +SKIP
        >>> explorer.graph(0, Choice(connectivity=0.5))["predicted"]  # doctest: +SKIP
        'mutagenic'
    """

    def __init__(self, saved: SavedModel, data: GraphDataset | None = None, missing: str = "") -> None:
        self.saved, self.missing = saved, missing
        self._outputs = list(saved.class_names if saved.task == "classification" else saved.target_names)
        self._spec = find_model(saved.card.trial.model)
        self._settings = self._spec.settings(**saved.card.trial.settings)
        self.data = data if data is None or data.features == saved.features else data.with_features(saved.features)
        self.encoded = None if self.data is None else saved.encode(self.data)
        self.parts = None if self.data is None else self._parts(self.data)
        self.names = Names(self.data)
        self._cached_layout = lru_cache(CACHED_LAYOUTS)(self._layout)
        self.predictions = lru_cache(None)(self._predictions)
        self._cached_attribution = lru_cache(CACHED_ATTRIBUTIONS)(self._graph_attribution)
        self.no_layers = ""
        self._keeps_nodes = self._warm_up()

    def _warm_up(self) -> bool:
        """Explain one small graph: errors come now, and so does the compilation at first use."""
        edge_index = torch.tensor([[0, 1], [1, 0]])
        shape = self.saved.card.shape
        numbers = self.saved.categories is None or shape.node_numbers > 0
        x = torch.zeros(2, shape.in_channels) if numbers else torch.tensor([0, 0])
        batch = GraphBatch.from_edge_index(x, edge_index)
        if self.saved.network.reads_edges:
            batch = replace(batch, edge_attr=torch.zeros(2, shape.edge_channels))
        graph_layout(edge_index[:, :1].numpy(), 2)
        try:
            return len(explain(self.saved.network, batch).layers) > 0
        except SettingError as error:
            self.no_layers = str(error)
            return False

    # ---- the model and its data set ----

    def model(self) -> View:
        """The model: what it was trained on, how well it did, and what its sliders start with."""
        trial, measured = self.saved.card.trial, self.saved.card.cross_validation
        accuracy = measured if measured and measured.metric == "accuracy" else None
        sliders = self._sliders(self._settings)
        return sliders | {
            "dataset": self.saved.name,
            "pool": getattr(self._settings, "pool", trial.model),
            "fold": trial.fold,
            "folds": trial.folds,
            "task": self.saved.task,
            "accuracy": accuracy and [round(v, 1) for v in (accuracy.mean, accuracy.std) if v is not None],
            "score": measured and METRICS[measured.metric].in_words(measured.mean, measured.std),
            "accuracy_rules": measured.rules[:LONGEST_NOTE] if measured else "",
            "baseline": measured and measured.baseline,
            "notes": self._notes(),
            "largest_class": self._largest_class(),
            "classes": self._outputs,
            "features": self.saved.features,
            "named": bool(self.names.graphs),
            "molecules": reads_molecules(self.saved),
            "whole": [isinstance(ratio, int) for ratio in sliders["ratios"]],  # a number of nodes, not a share
            "graphs": 0 if self.data is None else len(self.data),
            "missing": self.missing,
            "most_nodes": MOST_NODES,
            "no_layers": self.no_layers,
            "members": self.saved.card.members,
        }

    def _notes(self) -> list[str]:
        """What to know of the accuracy and of the data set."""
        measured = self.saved.card.cross_validation
        unused = "" if self.data is None else features_note(self.data, reads_edges=self.saved.network.reads_edges)
        notes = [baseline_warning(measured.mean, measured.baseline, measured.metric) if measured else "", unused]
        if (names := self.saved.card.attribute_names) and not unused:  # which names them, too
            notes.append(f"a node's numbers are {printable(', '.join(names)):.{LONGEST_NOTE}}")
        return [note for note in notes if note]

    def _sliders(self, settings: Any) -> View:
        """The settings that can be changed; None or empty where the pooling layers have no such setting."""
        tap = settings if isinstance(settings, TAPNetSettings) and settings.pool == "tap" else None
        fixed = tap is not None and not tap.learn_connectivity and tap.connectivity_end is None
        connectivity = tap.connectivity if tap is not None and fixed else None
        ratios = getattr(settings, "ratios", ()) if self._keeps_nodes else ()
        return {"connectivity": connectivity, "ratios": list(ratios)}

    def _largest_class(self) -> tuple[str, float] | None:
        """The name of the data set's largest class and its share in percent: what an accuracy is compared with."""
        if self.data is None or self._data_classes == [None]:
            return None
        counts = self.data.y.bincount()
        name = self._data_classes[int(counts.argmax())]
        return str(name), round(100 * float(counts.max()) / len(self.data), 1)

    def graphs(self) -> View:
        """Every graph of the data set, in columns: file, class, nodes, edges, and what the model used it for."""
        data = self._data
        edges = data.rowptr[data.node_ptr].diff() // (1 if data.directed else 2)
        return {
            "name": data.name,
            "files": self.names.graphs or None,
            "classes": self._data_classes,
            "class": data.y.tolist() if self._has_classes else [0] * len(data),
            "nodes": data.nodes_per_graph.tolist(),
            "edges": edges.tolist(),
            "part": self.parts,
        }

    def _predictions(self, first: int) -> View:
        """The numbers of the predicted classes, or most probable labels, of graphs ``first`` to ``first`` + 255."""
        self._check_number(first)
        if first % PREDICTED_AT_ONCE:
            raise SettingError(f"first must be a multiple of {PREDICTED_AT_ONCE}, not {first}")
        assert self.encoded is not None
        numbers = range(first, min(first + PREDICTED_AT_ONCE, len(self.encoded)))
        found = self.saved.probabilities(self.encoded.subset(numbers))
        return {"first": first, "predicted": found.argmax(dim=1).tolist(), "graphs": len(self.encoded)}

    @property
    def _data(self) -> GraphDataset:
        if self.data is None:
            raise GraphNotFoundError(self.missing or "no data set is loaded")
        return self.data

    @property
    def _has_classes(self) -> bool:
        """Whether the graphs have classes that a prediction can be compared with."""
        return self._data.task == self.saved.task == "classification"

    @cached_property
    def _data_classes(self) -> Sequence[str | None]:
        """The data set's own class names, else those of the model's classes of the same values; None for no class."""
        if self._data.classes == (None,) or not self._has_classes:
            return [None]
        if self._data.class_names is not None:
            return list(self._data.class_names)
        known = dict(zip(map(str, self.saved.classes), self.saved.class_names, strict=True))
        return [known.get(str(value), str(value)) for value in self._data.classes]

    def _parts(self, data: GraphDataset) -> list[str] | None:
        """What the model used each graph for: "training", "validation" or "test"; None if that is not known."""
        trial = self.saved.card.trial
        if not self.saved.is_training_data(data):
            return None
        if self.saved.card.final is not None:
            return ["training"] * len(data)
        if trial.protocol is None or trial.folds is None or trial.fold is None or trial.split:
            return None
        try:
            protocol = check_protocol(trial.protocol, trial.folds, trial.fold)
            found = split(data, protocol, trial.folds, trial.fold, trial.fold_seed)
        except TapnetError:
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

    def graph(self, number: int, choice: Choice, with_layout: bool = True, without: Sequence[int] = ()) -> View:
        """A graph of the data set, its prediction, and the nodes that each pooling layer kept.

        Args:
            number: The graph's number in the data set, from 0.
            choice: The sliders' values.
            with_layout: Whether to add ``places``, the nodes' positions in the picture.
            without: Nodes that are taken away before the prediction, by the numbers that the page has for them; the
                others keep their features.

        Returns:
            Values that JSON can hold. ``sure`` says how sure the model is, as far as its file knows; it is None where
            the choice or the graph is another than the model's.

        Raises:
            GraphNotFoundError: There is no such graph.
            SettingError: The network cannot take the choice, or there are no such nodes to take away.
            DataError: The graph is too large to draw.
        """
        self._check_number(number)
        assert self.encoded is not None
        data, encoded = self._data.subset([number]), self.encoded.subset([number])
        check_size(f"graph {number}", data.num_nodes, data.num_links)
        file = self.names.graphs[number] if self.names.graphs else None
        names = self.names.nodes_of(number) or list(map(str, range(data.num_nodes)))
        view = self._view(data, encoded, choice, names, without)
        title = f"{data.name}, graph {number}" + (f", {file}" if file else "")
        view |= {"title": title, "number": number, "file": file}
        view |= {"class": self._data_classes[int(data.y[0])] if self._has_classes else None, "truth": self._truth(data)}
        view |= {"part": self.parts[number] if self.parts else None}
        return view | ({"places": self._cached_layout(number)} if with_layout else {})

    def uploaded(
        self, name: str, content: bytes, choice: Choice, with_layout: bool = True, without: Sequence[int] = ()
    ) -> View:
        """The same for a graph in a visitor's file, of which nothing is stored.

        Args:
            name: The file's name, which ends in ``.graphml`` or ``.json``; ``.smi`` for a model that reads molecules.
            content: The file's bytes.
            choice: The sliders' values.
            with_layout: Whether to add ``places``, the nodes' positions in the picture.
            without: Nodes that are taken away before the prediction.

        Returns:
            Values that JSON can hold; ``notes`` has the warnings about the file.

        Raises:
            DataError: The file is no graph, is too large to draw, or does not fit the model.
            SettingError: The network cannot take the choice, or there are no such nodes to take away.
        """
        data, encoded, names, notes = read_upload(self.saved, name, content)
        view = self._view(data, encoded, choice, names, without)
        view |= {
            "title": data.smiles[0] if data.smiles else name,
            "number": None,
            "file": name,
            "class": None,
            "truth": None,
            "part": None,
            "notes": notes,
        }
        return view | ({"places": _layout(data)} if with_layout else {})

    def _view(
        self, data: GraphDataset, encoded: GraphDataset, choice: Choice, names: Sequence[str], without: Sequence[int]
    ) -> View:
        model, settings = self._changed(choice)
        order = ShownOrder.of(data)
        there = np.sort(order.node[_remaining(encoded.num_nodes, without)])
        part = _induced(encoded, there) if without else encoded
        try:
            explanation = explain(model.network, part.batch([0]))
        except SettingError:  # as `no_layers` says
            explanation = Explanation((), np.empty(0))
        found = self._answer(model, part)
        probabilities = found.values[0].double().numpy()
        category, categories = self._categories(data)
        best = int(predicted_targets(self.saved, np.nan_to_num(probabilities)[None])[0])
        classes = self.saved.task == "classification"
        return {
            "nodes": list(names),
            "edges": _edges(data, order).T.tolist(),
            "bonds": _bonds(data, order),
            "directed": data.directed,
            "category": [category[node] for node in order.node],
            "categories": categories,
            "layers": [
                _layer_view(layer)
                for layer in order.layers([replace(layer, nodes=there[layer.nodes]) for layer in explanation.layers])
            ],
            "classes": self._outputs,
            "probabilities": _numbers(probabilities),
            "best": best,
            "predicted": self._outputs[best] if classes else answer_words(self.saved, probabilities.tolist()),
            "without": sorted(without),
            "whole": self._whole(model, encoded, there) if without else None,
            "sure": self._sure(found, best) if model is self.saved and not without else None,
            "features": "attributes" if encoded.categories is None else self.saved.features,
            "notes": [],
        } | self._sliders(settings)

    def _whole(self, model: SavedModel, encoded: GraphDataset, there: NDArray[np.int64]) -> View:
        """The prediction of the whole graph, and the log odds of its class: of the whole, and of what is left.

        Of numbers there are no log odds.
        """
        said = model.probabilities(encoded)
        found: View = {"probabilities": _numbers(said[0].double().numpy()), "log_odds": None}
        if model.task == "regression":
            return found
        try:
            probe = Probe(model.network, encoded, predicted_targets(model, said.numpy()))
        except DataError:  # not a number
            return found
        left = torch.zeros(encoded.num_nodes, dtype=torch.bool)
        left[torch.from_numpy(there)] = True
        values = [float(probe.value[0]), float(probe.values(torch.zeros(1, dtype=torch.int64), left)[0])]
        return found | {"log_odds": [_number(value) for value in values]}

    def _answer(self, model: SavedModel, encoded: GraphDataset) -> Answers:
        """What a model says of a graph, with a set of classes where its file promises one."""
        try:
            return model.answer(encoded, CONFIDENCE if model is self.saved else None)
        except TapnetError:  # no such promise, or too few graphs for it
            return model.answer(encoded)

    def _sure(self, found: Answers, best: int) -> View:
        sets = None if found.sets is None or found.sets.ndim > 2 else found.sets[0].tolist()
        ends = None if found.low is None or found.high is None else [found.low[0].tolist(), found.high[0].tolist()]
        distance, unlike = found.distance, found.unlike_training
        return {
            "calibration": self.saved.calibration,
            "std": None if found.std is None else _number(float(found.std[0, best])),
            "confidence": CONFIDENCE,
            "set": sets and [name for name, there in zip(self._outputs, sets, strict=True) if there],
            "intervals": ends and [[_number(low), _number(high)] for low, high in zip(*ends, strict=True)],
            "coverage": _number(self.saved.coverage(CONFIDENCE)) if sets or ends else None,
            "distance": None if distance is None else _number(float(distance[0])),
            "unlike_training": None if unlike is None else [word for word in str(unlike[0]).split("; ") if word],
        }

    # ---- what a prediction rests on ----

    def attribution(self, number: int, method: Method, choice: Choice) -> View:
        """What each node and edge of a graph of the data set does for the predicted class, and how far that is true.

        Args:
            number: The graph's number in the data set, from 0.
            method: As :meth:`tapnet.inference.model.SavedModel.explain` takes it.
            choice: The sliders' values.

        Returns:
            Values that JSON can hold: ``nodes`` and ``edges`` in the order of the graph's view.

        Raises:
            GraphNotFoundError: There is no such graph.
            SettingError: The network cannot take the choice, or there is no such method for it.
            DataError: The graph is too large, or the network's answer is not a number.
        """
        self._check_number(number)
        return self._cached_attribution(number, method, choice)

    def _graph_attribution(self, number: int, method: Method, choice: Choice) -> View:
        assert self.encoded is not None
        data, encoded = self._data.subset([number]), self.encoded.subset([number])
        return self._attribution(f"graph {number}", data, encoded, method, choice)

    def uploaded_attribution(self, name: str, content: bytes, method: Method, choice: Choice) -> View:
        """The same for a graph in a visitor's file, of which nothing is stored; see `uploaded`."""
        data, encoded, _, _ = read_upload(self.saved, name, content)
        return self._attribution(name, data, encoded, method, choice)

    def _attribution(
        self, name: str, data: GraphDataset, encoded: GraphDataset, method: Method, choice: Choice
    ) -> View:
        model, _ = self._changed(choice)
        _check_copies(name, method, data.num_nodes, data.num_links, self.saved.card.members)
        return _attribution_view(attribute_graph(model, FoundGraph(data, 0, name), method, encoded=encoded))

    def _truth(self, data: GraphDataset) -> str | None:
        """The labels or numbers that the data set has of a graph, where they are such as the model predicts."""
        if data.task != self.saved.task or data.task == "classification" or data.y.size(1) != len(self._outputs):
            return None
        values = data.y[0]
        if values.isnan().all():
            return None
        if data.task == "regression":
            return answer_words(self.saved, values.tolist())
        return ", ".join(self._outputs[i] for i in (values == 1).nonzero().flatten().tolist()) or "no label"

    def _layout(self, number: int) -> list[list[float]]:
        return _layout(self._data.subset([number]))

    def _categories(self, data: GraphDataset) -> tuple[list[int], list[str]]:
        """Each node's category, as an index of the names of those that occur."""
        if data.categories is None:
            return [0] * data.num_nodes, ["node"]
        x = data.x.table[data.x.combination, 0] if isinstance(data.x, MixedFeatures) else data.x
        occurring, category = np.unique(x.numpy(), return_inverse=True)
        if isinstance(data.x, MixedFeatures) and data.node_columns is not None:  # (column, value) pairs
            pairs = (data.categories[i] for i in occurring)
            return category.tolist(), [str(value)[:LONGEST_NAME] for _, value in pairs]
        return category.tolist(), [data.category_names[i][:LONGEST_NAME] for i in occurring]

    def _changed(self, choice: Choice) -> tuple[SavedModel, Any]:
        """The model and its settings, or one with the choice's settings and the same weights."""
        changes = {name: value for name, value in asdict(choice).items() if value is not None}
        if not changes:
            return self.saved, self._settings
        sliders = self._sliders(self._settings)
        layers = len(sliders["ratios"])
        if len(changes.get("ratios", ())) not in (0, layers):
            raise SettingError(f"{layers} ratios can be chosen here, not {len(changes['ratios'])}")
        if "connectivity" in changes and sliders["connectivity"] is None:
            raise SettingError("connectivity is a setting of pool 'tap'; this model's pooling layers have none")
        settings = self._settings.replace(**changes)
        if settings == self._settings:
            return self.saved, settings
        network = build_network(self.saved.card, settings).eval()
        network.load_state_dict(self.saved.network.state_dict(), assign=True)
        return replace(self.saved, network=network), settings


def _layer_view(layer: Layer) -> View:
    """The nodes that came in, whether each was kept, its score and, under their names, the parts of the score."""
    own = {"nodes": layer.nodes.tolist(), "kept": layer.kept.tolist(), "score": _numbers(layer.score)}
    parts = {name[:LONGEST_NAME]: _numbers(values) for name, values in layer.parts.items()}
    parts = {name: values for name, values in parts.items() if name not in (*own, "parts")}
    return own | parts | {"parts": list(parts)}


def _attribution_view(found: GraphExplanation) -> View:
    """An explanation by the numbers of nodes, not by their names."""
    fidelity = found.fidelity
    assert fidelity is not None
    errors = [node.error for node in found.nodes]
    return {
        "method": found.method,
        "target": str(found.target)[:LONGEST_NAME],
        "unit": found.unit[:LONGEST_NAME],
        "nodes": [_number(node.attribution) for node in found.nodes],
        "errors": None if errors[0] is None else [_number(error or 0.0) for error in errors],
        "kept": [node.kept for node in found.nodes],
        "edges": [_number(edge.attribution) for edge in found.edges],
        "groups": [
            {"name": group.name[:LONGEST_NAME], "nodes": list(group.nodes), "attribution": _number(group.attribution)}
            for group in found.groups[:MOST_GROUPS]
        ],
        "stability": None if found.stability is None else found.stability.sentence,
        "fidelity": {
            "sentence": fidelity.sentence,
            "beats_chance": fidelity.beats_chance,
            "p_value": _number(fidelity.p_value),
            "levels": [
                {
                    "percent": level.percent,
                    "nodes": level.nodes,
                    "necessity": _number(level.necessity),
                    "sufficiency": _number(level.sufficiency),
                    "random_necessity": _number(level.random.necessity),
                    "random_sufficiency": _number(level.random.sufficiency),
                }
                for level in fidelity.levels
            ],
        },
    }


def _check_copies(name: str, method: Method, nodes: int, edges: int, networks: int) -> None:
    """Raise a :class:`DataError` for a graph whose attribution takes longer than a visitor waits."""
    copies = surrogate_copies(nodes, edges) if method == "surrogate" else nodes + edges
    copies += 2 * len(PERCENTS) * (2 + REPEATS)
    copies += max(COALITIONS, 2 * FEWEST_PAIRS * nodes) if method == "shapley" else 0
    if networks * copies * (nodes + edges) > MOST_COPIED:
        raise DataError(
            f"{name} has {nodes:,} nodes and {edges:,} edges: too many for an attribution by {method} on the page. "
            "The model's method explain has no such limit"
        )


def _remaining(size: int, without: Sequence[int]) -> NDArray[np.int64]:
    """The numbers of the nodes that are left of so many."""
    there = np.ones(size, dtype=bool)
    for node in without:
        if not 0 <= node < size:
            raise SettingError(f"the graph has nodes 0 to {size - 1}; there is no node {node} to take away")
        there[node] = False
    if not there.any():
        raise SettingError("one node at least has to be left")
    return np.flatnonzero(there)


def _induced(encoded: GraphDataset, nodes: NDArray[np.int64]) -> GraphDataset:
    """The subgraph of these nodes, which keep their features, of a data set of one graph."""
    kept = torch.from_numpy(nodes)
    batch = encoded.batch([0])
    part = induced_subgraph(batch, kept, torch.tensor([0, len(kept)]))
    own: dict[str, Any] = dict.fromkeys(NODE_AND_EDGE_DATA)
    own |= {"node_ptr": part.ptr, "rowptr": part.rowptr.long(), "col": part.col, "x": batch.x[kept], "prepared": {}}
    return replace(encoded, **own | {"edge_weight": part.weight, "edge_attr": part.edge_attr})


def _edges(data: GraphDataset, order: ShownOrder) -> NDArray[np.int64]:
    """[2, E], each edge once, for a data set of one graph; of a directed one, first where it begins."""
    return order.edges(np.asarray(data.batch([0]).edge_list), directed=data.directed)[0]


def _bonds(data: GraphDataset, order: ShownOrder) -> list[int] | None:
    """How many lines each edge of a molecule is drawn with; None for other graphs."""
    if not data.smiles:
        return None
    orders = bond_orders(data.smiles[0])
    return [orders.get((min(u, v), max(u, v)), 1) for u, v in _edges(data, order).T.tolist()]


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Rounded to six digits, more than the page shows; None for NaN, which JSON does not have."""
    return [_number(v) for v in values.tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _layout(data: GraphDataset) -> list[list[float]]:
    """The nodes' positions in the picture, for a data set of one graph; atoms are where chemists draw them."""
    if data.smiles and data.num_nodes > 1:
        at = atom_positions(data.smiles[0])
        at = (at - at.min(axis=0)) / np.ptp(at, axis=0).max()
        at[:, 0] += (1 - at[:, 0].max()) / 2
    else:
        at = graph_layout(_edges(data, ShownOrder.of(data)), data.num_nodes)
    return [[round(x, 4), round(y, 4)] for x, y in at.tolist()]
