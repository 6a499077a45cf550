"""Explanations against known truth and PyG's explainers: `python benchmarks/explanations.py --data-dir DIR`.

ROC-AUC of attributions, the truth being the atoms and bonds of NO2 and NH2 groups (Mutagenicity), the green nodes
(COLORS-3) and planted motifs; and speed as a ratio. Trained models stay in `--work`, results in explanations.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch_geometric.explain import Explainer, GNNExplainer, ModelConfig, PGExplainer
from torch_geometric.nn import GINConv, global_add_pool

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m
from benchmarks.measure import compare
from tapnet import GraphDataset, TAPClassifier, cross_validate, load_dataset
from tapnet.inference.attribution import Attributions, Method, Probe, attribute_graphs
from tapnet.inference.attribution_fidelity import measure_fidelity
from tapnet.inference.explain import explain
from tapnet.inference.model import SavedModel
from tapnet.models.gin import GIN, MLP
from tapnet.training.protocol import splits

RESULTS = Path(__file__).with_suffix(".json")
PARTS = ("mutagenicity", "colors", "motifs", "speed")
METHODS: tuple[Method, ...] = ("surrogate", "occlusion", "masking", "shapley", "gradients")
MUTAGEN = 0
MOST = 50  # graphs of a fold are explained, the first ones
FEW = 10  # of them with Shapley values and fidelity
ONE_CYCLE = {"schedule": "one-cycle", "halve_lr_every": 0, "batch_size": 64}
LIKE_GIN = {"conv": "gin", "hidden_channels": 64, "dropout": 0.0, "classifier_dropout": 0.0}
ADAMW = {"optimizer": "adamw", "amsgrad": False, "weight_decay": 0.01, "lr": 0.002}
SYSTEMS: dict[str, dict[str, Any]] = {
    "GIN": {"model": "gin", "epochs": 25, **ONE_CYCLE},
    "TAPNet, tap": {"pool": "tap", "epochs": 15, **LIKE_GIN, **ADAMW, **ONE_CYCLE},
    "TAPNet, topk": {"pool": "topk", "epochs": 15, **LIKE_GIN, **ADAMW, **ONE_CYCLE},
    "TAPNet, none": {"pool": "none", "epochs": 15, **LIKE_GIN, **ADAMW, **ONE_CYCLE},
}
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Truth(NamedTuple):
    """Which nodes of a data set are the cause, and the directed edges, as ``first node * N + second node``."""

    nodes: Bools
    edges: NDArray[np.int64]


class Part(NamedTuple):
    """Some graphs, and the cause among their nodes and their edges, which are there once."""

    graphs: NDArray[np.int64]
    ptr: NDArray[np.int64]
    nodes: Bools
    edge_ptr: NDArray[np.int64]
    edge_index: NDArray[np.int64]  # by the numbers of the nodes within the part
    edges: Bools

    @classmethod
    def of(cls, dataset: GraphDataset, graphs: NDArray[np.int64], truth: Truth) -> Part:
        some = dataset.subset(graphs)
        ptr = some.node_ptr.numpy()
        first = dataset.node_ptr.numpy()[graphs]
        shift = np.repeat(first - ptr[:-1], np.diff(ptr))  # from numbers within the part to those of the data set
        ends = some.batch(range(len(some))).edges_once.numpy()
        u, v = ends + shift[ends]
        edge_ptr = np.searchsorted(ends[0], ptr)
        nodes = truth.nodes[np.arange(ptr[-1]) + shift]
        return cls(graphs, ptr, nodes, edge_ptr, ends, np.isin(u * dataset.num_nodes + v, truth.edges))

    def first(self, graphs: int) -> Part:
        """The same of fewer graphs."""
        n, e = self.ptr[: graphs + 1], self.edge_ptr[: graphs + 1]
        return Part(self.graphs[:graphs], n, self.nodes[: n[-1]], e, self.edge_index[:, : e[-1]], self.edges[: e[-1]])

    def scores(self, nodes: Floats | None, edges: Floats | None) -> dict[str, float]:
        """The ROC-AUC of both: the mean by graph, and that of all graphs' nodes or edges together."""
        found = {}
        for name, ptr, truth, values in (
            ("nodes", self.ptr, self.nodes, nodes),
            ("edges", self.edge_ptr, self.edges, edges),
        ):
            if values is not None and truth.any():
                parts = [slice(a, b) for a, b in pairwise(ptr) if 0 < truth[a:b].sum() < b - a]
                found[name] = float(np.mean([roc_auc_score(truth[part], values[part]) for part in parts]))
                found[f"{name}, pooled"] = float(roc_auc_score(truth, values))
        return found

    def by_edges(self, edges: Floats) -> Floats:
        """``[N]`` the mean over each node's edges."""
        ends = self.edge_index.flatten()
        count = np.bincount(ends, minlength=len(self.nodes))
        mean: Floats = np.bincount(ends, np.tile(edges, 2), minlength=len(self.nodes)) / np.maximum(count, 1)
        return mean


def measure(model: SavedModel, dataset: GraphDataset, part: Part, target: object = None) -> dict[str, dict[str, float]]:
    """The scores of all methods, of what pooling kept, of the degree and of random numbers."""
    rows: dict[str, dict[str, float]] = {}
    few = part.first(FEW)
    for method in METHODS:
        some = few if method == "shapley" else part
        edges = method in ("surrogate", "occlusion")
        found = attribute_graphs(model, dataset, some.graphs, method, target, edges=edges)
        rows[method] = some.scores(found.nodes, found.edges if edges else None)
        if edges:
            rows[method]["beats chance"] = beats_chance(model, dataset, few, found)
    encoded = model.encode(dataset.subset(part.graphs))
    kept = [_times_kept(model, encoded, g) for g in range(len(encoded))]
    if all(times is not None for times in kept):
        rows["what pooling kept"] = part.scores(np.concatenate([t for t in kept if t is not None]), None)
    rows["degree"] = part.scores(encoded.degree.double().numpy(), None)
    rng = np.random.default_rng(0)
    rows["random"] = part.scores(rng.random(len(part.nodes)), rng.random(len(part.edges)))
    return rows


def _times_kept(model: SavedModel, encoded: GraphDataset, graph: int) -> Floats | None:
    batch = encoded.batch([graph])
    try:
        layers = explain(model.network, batch).layers
    except ValueError:  # there is no pooling
        return None
    if not layers:
        return None
    kept = np.concatenate([layer.nodes[layer.kept] for layer in layers])
    return np.bincount(kept, minlength=batch.num_nodes).astype(np.float64)


def beats_chance(model: SavedModel, dataset: GraphDataset, part: Part, found: Attributions) -> float:
    """The share of the graphs whose explanation says so of itself."""
    won = []
    for i, graph in enumerate(part.graphs):
        probe = Probe(model.network, model.encode(dataset.subset([graph])), int(found.target[i]))
        won.append(measure_fidelity(probe, found.nodes[found.ptr[i] : found.ptr[i + 1]], "").beats_chance)
    return float(np.mean(won))


# ---- PyG's explainers ----


class PyGGIN(nn.Module):
    """The same network of PyG's layers, with the weights of a trained `GIN` that adds up nodes."""

    def __init__(self, network: GIN) -> None:
        super().__init__()
        mlps = [mlp for mlp in network.mlps if isinstance(mlp, MLP)]
        self.convs = nn.ModuleList(GINConv(nn.Identity()) for _ in mlps)
        for conv, mlp in zip(self.convs, mlps, strict=True):  # GINConv resets what it is given
            conv.nn = nn.Sequential(_pyg_linear(mlp.first), _pyg_norm(mlp.norm), nn.ReLU(), mlp.second)
        self.norms = nn.ModuleList(map(_pyg_norm, network.norms))
        self.scores = nn.ModuleList(map(_pyg_linear, network.scores))
        self.dropout = network.settings.dropout

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        total: Tensor = self._dropped(self.scores[0](global_add_pool(x, batch)))
        for conv, norm, score in zip(self.convs, self.norms, list(self.scores)[1:], strict=True):
            x = norm(conv(x, edge_index)).relu()
            total = total + self._dropped(score(global_add_pool(x, batch)))
        return total

    def _dropped(self, scores: Tensor) -> Tensor:
        return nn.functional.dropout(scores, self.dropout, self.training)


def _pyg_linear(layer: Any) -> nn.Linear:
    linear = nn.Linear(*layer.weight.shape)
    linear.load_state_dict({"weight": layer.weight.T, "bias": layer.bias})
    return linear


def _pyg_norm(layer: nn.Module) -> nn.BatchNorm1d:
    state = layer.state_dict()
    norm = nn.BatchNorm1d(len(state["weight"]))
    norm.load_state_dict(state, strict=False)
    return norm


class Graph(NamedTuple):
    """What PyG's explainers take."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor


def pyg_graph(encoded: GraphDataset, graphs: Sequence[int]) -> Graph:
    """Graphs as PyG has them: one-hot floats."""
    batch = encoded.batch(graphs)
    assert isinstance(batch.x, Tensor)
    x = nn.functional.one_hot(batch.x, encoded.num_features).float() if batch.x.dim() == 1 else batch.x
    return Graph(x, batch.edge_index, batch.graph)


def make_explainer(model: nn.Module, algorithm: Any, kind: str, node_mask: str | None) -> Explainer:
    """An explainer of class probabilities, its settings PyG's defaults."""
    config = ModelConfig(mode="multiclass_classification", task_level="graph", return_type="raw")
    return Explainer(
        model, algorithm, explanation_type=kind, node_mask_type=node_mask, edge_mask_type="object", model_config=config
    )


def undirected(mask: Tensor, edge_index: Tensor) -> Floats:
    """``[e]`` the mean of both directions of each edge, as ``edges_once`` has them."""
    (u, v), values = edge_index.numpy(), mask.detach().double().numpy()
    size = int(edge_index.max()) + 1 if edge_index.numel() else 1
    back = np.lexsort((u, v))  # the place of each edge's reverse
    assert (u[back] * size + v[back] == v * size + u).all()
    mean: Floats = ((values + values[back]) / 2)[u < v]
    return mean


def measure_pyg(model: SavedModel, dataset: GraphDataset, part: Part, train: NDArray[np.int64]) -> dict[str, Any]:
    """The scores of GNNExplainer and PGExplainer for the same network, both with PyG's settings."""
    assert isinstance(model.network, GIN)
    encoded, network = model.encode(dataset.subset(part.graphs)), PyGGIN(model.network).eval()
    graphs = [pyg_graph(encoded, [g]) for g in range(len(encoded))]
    check_same_network(model, encoded, network)
    torch.manual_seed(0)
    gnn = make_explainer(network, GNNExplainer(epochs=100), "model", "object")
    found = [gnn(g.x, g.edge_index, batch=g.batch) for g in graphs]
    edges = np.concatenate([undirected(f.edge_mask, g.edge_index) for f, g in zip(found, graphs, strict=True)])
    nodes = np.concatenate([f.node_mask.flatten().double().numpy() for f in found])
    rows = {"GNNExplainer": part.scores(nodes, edges)}
    epochs = 30
    pg = make_explainer(network, PGExplainer(epochs=epochs, lr=0.003), "phenomenon", None)
    target, learned = torch.tensor([MUTAGEN]), model.encode(dataset.subset(train))
    examples = [pyg_graph(learned, [g]) for g in range(len(learned))]
    for epoch in range(epochs):
        for g in examples:
            pg.algorithm.train(epoch, network, g.x, g.edge_index, target=target, batch=g.batch)
    found = [pg(g.x, g.edge_index, batch=g.batch, target=target) for g in graphs]
    edges = np.concatenate([undirected(f.edge_mask, g.edge_index) for f, g in zip(found, graphs, strict=True)])
    rows["PGExplainer"] = part.scores(part.by_edges(edges), edges)
    return rows


# ---- Mutagenicity ----


def mutagenicity(
    data_dir: Path, work: Path, folds: Sequence[int], tiny: bool, systems: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every system on each fold: its accuracy, the number of graphs explained, and the scores."""
    dataset = load_dataset("Mutagenicity", data_dir=data_dir)
    with ZipFile(data_dir / "Mutagenicity.zip") as archive:
        ends, marked = (
            np.loadtxt(archive.open(f"Mutagenicity/Mutagenicity_{name}.txt"), delimiter=",", dtype=np.int64)
            for name in ("A", "edge_gt")
        )
    inside = ends[marked == 1].T - 1
    nodes = np.zeros(dataset.num_nodes, dtype=bool)
    nodes[inside] = True
    truth = Truth(nodes, inside[0] * dataset.num_nodes + inside[1])
    owner = np.repeat(np.arange(len(dataset)), dataset.nodes_per_graph.numpy())
    marked_graphs = np.bincount(owner, nodes, minlength=len(dataset)) > 0
    y = dataset.y.numpy()
    for name in systems:
        rows: dict[str, Any] = {"folds": list(folds), "accuracy": [], "graphs": [], "methods": {}}
        models = trained(dataset, work / name, folds, SYSTEMS[name], tiny)
        for fold, split in zip(folds, splits(dataset, "fair", 10, folds), strict=True):
            said = models[fold].probabilities(models[fold].encode(dataset)).argmax(dim=1).numpy()
            test = split.test.numpy()
            found = test[(y[test] == MUTAGEN) & (said[test] == MUTAGEN) & marked_graphs[test]][: 3 if tiny else MOST]
            rows["accuracy"].append(float((said == y)[test].mean()))
            rows["graphs"].append(len(found))
            part = Part.of(dataset, found, truth)
            scores = measure(models[fold], dataset, part)
            if name == "GIN":
                train = split.train.numpy()
                train = train[(y[train] == MUTAGEN) & marked_graphs[train]][: 2 * MOST]
                scores |= measure_pyg(models[fold], dataset, part, train)
            _add(rows["methods"], scores)
            print(f"{name}, fold {fold}:", json.dumps(scores), flush=True)
        yield name, rows


def trained(
    dataset: GraphDataset, folder: Path, folds: Sequence[int], settings: dict[str, Any], tiny: bool
) -> dict[int, SavedModel]:
    """The models of some of ten folds, each of the epoch with the lowest validation loss."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cross_validate(dataset, only_folds=folds, jobs=1, out=folder, **settings | ({"epochs": 1} if tiny else {}))
    models = [SavedModel.load(file) for file in (folder / "models").iterdir()]
    return {int(model.card.trial.fold or 0): model for model in models}


def _add(rows: dict[str, dict[str, list[float]]], scores: dict[str, dict[str, float]]) -> None:
    for method, values in scores.items():
        for name, value in values.items():
            rows.setdefault(method, {}).setdefault(name, []).append(round(value, 4))


# ---- COLORS-3 ----


def colors(data_dir: Path, work: Path, tiny: bool) -> dict[str, Any]:
    """GIN and TAPNet on the graphs of at most 25 nodes, one fold: the green nodes of graphs that are counted right."""
    every = load_dataset("COLORS-3", data_dir=data_dir)
    with ZipFile(data_dir / "COLORS-3.zip") as archive:
        green = np.loadtxt(archive.open("COLORS-3/COLORS-3_node_attention.txt")) > 0
    small = np.flatnonzero(every.nodes_per_graph.numpy() <= 25)[:3000]
    own = np.concatenate([np.arange(*every.node_ptr[g : g + 2]) for g in small])
    dataset = every.subset(small)
    truth = Truth(green[own], np.zeros(0, dtype=np.int64))
    results: dict[str, Any] = {"graphs": len(dataset), "systems": {}}
    for name in ("GIN", "TAPNet, tap"):
        model = trained(dataset, work / f"COLORS-3 {name}", [0], SYSTEMS[name], tiny)[0]
        test = next(iter(splits(dataset, "fair", 10, [0]))).test.numpy()
        said = model.probabilities(model.encode(dataset)).argmax(dim=1).numpy()
        right = test[(said == dataset.y.numpy())[test]][: 3 if tiny else MOST]
        rows: dict[str, Any] = {}
        _add(rows, measure(model, dataset, Part.of(dataset, right, truth)))
        accuracy = float((said == dataset.y.numpy())[test].mean())
        results["systems"][name] = {"accuracy": [accuracy], "graphs": [len(right)], "methods": rows}
        print(f"COLORS-3, {name}:", json.dumps(results["systems"][name]), flush=True)
    return results


# ---- planted motifs ----

MOTIFS: dict[str, Callable[[], nx.Graph]] = {"house": nx.house_graph, "ring": lambda: nx.cycle_graph(6)}


def motif_graphs(motif: str, labels: bool, graphs: int, rng: np.random.Generator) -> Iterator[tuple[nx.Graph, bool]]:
    """Random trees, every other one with the motif, the others with a path of as many nodes in its place."""
    for i in range(graphs):
        tree = nx.random_labeled_tree(int(rng.integers(12, 20)), seed=int(rng.integers(1 << 30)))
        planted = MOTIFS[motif]() if i % 2 else nx.path_graph(len(MOTIFS[motif]()))
        graph = nx.disjoint_union(tree, planted)
        graph.add_edge(int(rng.integers(len(tree))), len(tree) + int(rng.integers(len(planted))))
        for node in graph:
            graph.nodes[node]["truth"] = bool(i % 2) and node >= len(tree)
            if labels:
                graph.nodes[node]["label"] = "abc"[int(rng.integers(3))]
        yield graph, bool(i % 2)


def motifs(epochs: int, graphs: int) -> dict[str, Any]:
    """TAPNet with GIN's convolutions, trained on planted motifs; 20 others are explained."""
    results: dict[str, Any] = {"epochs": epochs, "graphs": graphs, "rows": []}
    for labels in (False, True):
        for motif in MOTIFS:
            rng = np.random.default_rng(0)
            made = list(motif_graphs(motif, labels, graphs + 100, rng))
            train, test = made[:graphs], made[graphs:]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = TAPClassifier(conv="gin", epochs=epochs, lr=0.005, dropout=0.0, random_state=0)
                model.fit([g for g, _ in train], [y for _, y in train])
            said = model.predict([g for g, _ in test])
            accuracy = float(np.mean([s == y for s, (_, y) in zip(said, test, strict=True)]))
            right = [g for s, (g, y) in zip(said, test, strict=True) if y and s == y][:FEW]
            truth = np.concatenate([[g.nodes[n]["truth"] for n in g] for g in right])
            dataset = model.model_.to_dataset(right)
            part = Part.of(dataset, np.arange(len(right)), Truth(truth, np.zeros(0, dtype=np.int64)))
            rows: dict[str, Any] = {}
            _add(rows, measure(model.model_, dataset, part))
            row = {"labels": labels, "motif": motif, "accuracy": accuracy, "methods": rows}
            results["rows"].append(row)
            print(json.dumps(row), flush=True)
    return results


# ---- speed ----


def speed(
    dataset: GraphDataset, work: Path, tiny: bool, methods: Sequence[Method] = METHODS, graphs: int = 4
) -> dict[str, Any]:
    """The time of a thousand molecules and of one with 30 atoms, and ratios to GNNExplainer on the same network.

    Args:
        dataset: Mutagenicity, or another with categories.
        work: where trained models stay.
        tiny: whether only to prove that it runs.
        methods: those to measure.
        graphs: as many are explained by both sides in each round.
    """
    model = trained(dataset, work / "GIN", [0], SYSTEMS["GIN"], tiny)[0]
    assert isinstance(model.network, GIN)
    many = range(8 if tiny else min(1000, len(dataset)))
    some = np.arange(min(graphs, 2) if tiny else graphs)
    network = PyGGIN(model.network).eval()
    encoded = model.encode(dataset.subset(some))
    asked = [pyg_graph(encoded, [int(g)]) for g in some]
    check_same_network(model, encoded, network)
    gnn = make_explainer(network, GNNExplainer(epochs=100), "model", "object")

    def peer() -> None:
        for g in asked:
            gnn(g.x, g.edge_index, batch=g.batch)

    results: dict[str, Any] = {"molecules": len(many), "threads": torch.get_num_threads(), "ratio": {}}
    attribute_graphs(model, dataset, some[:4])  # loads what is loaded on first use
    for method in METHODS[:2]:
        if method in methods:
            results[method] = round(cpu_seconds(model, dataset, many, method), 1)
    if "shapley" in methods:
        atoms = int((dataset.nodes_per_graph == 30).nonzero()[0])
        results["shapley of 30 atoms"] = round(cpu_seconds(model, dataset, [atoms], "shapley"), 2)
    for method in methods:
        run = partial(attribute_graphs, model, dataset, some, method)
        ratio = compare(run, peer, 1 if tiny else 3, warm_up=1 if graphs < 10 else 0)
        results["ratio"][method] = [round(value, 1) for value in ratio.values]
    print(json.dumps(results), flush=True)
    return results


def check_same_network(model: SavedModel, encoded: GraphDataset, network: PyGGIN) -> None:
    """Both networks say the same of the first graph."""
    assert isinstance(model.network, GIN)
    with torch.no_grad():
        both = [network(*pyg_graph(encoded, [0])), model.network.outputs(encoded.batch([0])).logits]
    torch.testing.assert_close(*both, rtol=1e-3, atol=1e-3)


def cpu_seconds(model: SavedModel, dataset: GraphDataset, graphs: Sequence[int], method: Method) -> float:
    """Of the processor, which other programs do not count in."""
    start = time.process_time()
    attribute_graphs(model, dataset, graphs, method)
    return time.process_time() - start


# ---- tables ----


def tables(results: dict[str, Any]) -> Iterator[str]:
    """The lines of the tables in docs/explanations.md."""
    for what in ("nodes", "nodes, pooled", "edges", "edges, pooled"):
        systems = results["mutagenicity"]
        methods = [m for m in systems["GIN"]["methods"] if what in systems["GIN"]["methods"][m]]
        methods += ["what pooling kept"] if what.startswith("nodes") else []
        yield from _table(what, systems, methods, what)
    systems = results["mutagenicity"]
    yield from _table("beats chance", systems, ["surrogate", "occlusion"], "beats chance")
    yield from _table("COLORS-3", results["colors"]["systems"], [*METHODS, "what pooling kept", "degree"], "nodes")
    columns = [*METHODS, "what pooling kept"]
    yield "| nodes are | motif | accuracy | " + " | ".join(columns) + " |"
    yield "|---" * (3 + len(columns)) + "|"
    for row in results["motifs"]["rows"]:
        what = "a random label" if row["labels"] else "their degree"
        head = f"| {what} | {row['motif']} | {100 * row['accuracy']:.0f} % | "
        yield head + " | ".join(_cell(row["methods"], method, "nodes") for method in columns) + " |"
    yield "| against GNNExplainer | " + " | ".join(METHODS) + " |"
    yield "|---" * (1 + len(METHODS)) + "|"
    ratios = (results["speed"]["ratio"][method] for method in METHODS)
    yield "| times as fast | " + " | ".join(f"{np.median(r):.0f} ({min(r):.0f} to {max(r):.0f})" for r in ratios) + " |"


def _table(title: str, systems: dict[str, Any], methods: Sequence[str], what: str) -> Iterator[str]:
    """One line for each method; the mean over the folds of every system."""
    heads = (f"{name}, {100 * np.mean(system['accuracy']):.0f} %" for name, system in systems.items())
    yield f"| {title} | " + " | ".join(heads) + " |"
    yield "|---" * (1 + len(systems)) + "|"
    for method in dict.fromkeys(methods):
        yield f"| {method} | " + " | ".join(_cell(s["methods"], method, what) for s in systems.values()) + " |"


def _cell(methods: dict[str, Any], method: str, what: str) -> str:
    values = methods.get(method, {}).get(what)
    return f"{np.mean(values):.2f}" if values else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TAPNET_DATA"))
    parser.add_argument("--only", help=f"some of {','.join(PARTS)}", default=",".join(PARTS))
    parser.add_argument("--systems", help="of Mutagenicity", default="; ".join(SYSTEMS))
    parser.add_argument("--folds", default="3-9", help="of ten, the first and the last; 0 to 2 served to choose")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "tapnet-explanations")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="only proves that everything runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data_dir, tiny, work = Path(options.data_dir), options.tiny, options.work
    stored = json.loads(options.out.read_text()) if options.out.exists() else {}

    def store(**values: Any) -> None:
        stored.update({"date": datetime.date.today().isoformat(), "torch": str(torch.__version__)} | values)
        options.out.write_text(json.dumps(stored, indent=1) + "\n")

    parts = options.only.split(",")
    first, last = map(int, options.folds.split("-"))
    if "mutagenicity" in parts:
        found = stored.get("mutagenicity", {})
        for name, rows in mutagenicity(data_dir, work, range(first, last + 1), tiny, options.systems.split("; ")):
            found |= {name: rows}
            store(mutagenicity=found)
    if "colors" in parts:
        store(colors=colors(data_dir, work, tiny))
    if "motifs" in parts:
        store(motifs=motifs(1 if tiny else 25, 20 if tiny else 300))
    if "speed" in parts:
        store(speed=speed(load_dataset("Mutagenicity", data_dir=data_dir), work, tiny))
    if set(PARTS) <= set(stored):
        print("\n".join(tables(stored)))


if __name__ == "__main__":
    main()
