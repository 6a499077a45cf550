"""What is compared: an epoch of training, the layer, inference, reading, memory, a whole cross-validation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import SAGPooling, TopKPooling

from tapnet.data.dataset import GraphDataset
from tapnet.io import parsed_cache as cache
from tapnet.io.dataset_files import layout_of
from tapnet.io.read import read_layout
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.nn.tap import TAPooling
from tapnet.ops.gate import straight_through
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import make_optimizer, train_steps

from .data import bench_dataset
from .measure import Ratio, check, compare, seconds
from .peer import PyGNet, pyg_graphs

BATCH = 64


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    what: str
    data: str
    peer: str
    ratio: Ratio
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "data": self.data,
            "peer": self.peer,
            "ratio": float(f"{self.ratio.median:.3g}"),
            "rounds": [float(f"{v:.3g}") for v in self.ratio.values],
            "note": self.note,
        }


def our_model(dataset: GraphDataset) -> Any:
    """TAPNet with its defaults for a data set."""
    spec = find_model("tapnet")
    assert spec.build is not None
    return spec.build(DataShape.of(dataset), spec.make_settings(dataset.name, {}))


def our_epoch(dataset: GraphDataset) -> Callable[[], float]:
    """An epoch of TAPNet as ``tapnet train`` runs it; returns the mean loss."""
    model = our_model(dataset)
    optimizer = make_optimizer(model, TrainingSettings())
    return lambda: train_steps(model, optimizer, dataset, torch.randperm(len(dataset)).split(BATCH))


def peer_epoch(dataset: GraphDataset) -> Callable[[], float]:
    """The same epoch with PyG's loader and layers and torch's dropout and Adam."""
    model = PyGNet(dataset.num_features, dataset.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), 0.001, weight_decay=0.0008, amsgrad=True)
    loader = DataLoader(pyg_graphs(dataset), batch_size=BATCH, shuffle=True)

    def epoch() -> float:
        model.train()
        total = torch.zeros(())
        for data in loader:
            loss = cross_entropy(model(data.x, data.edge_index, data.batch), data.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * data.num_graphs
        return float(total) / len(dataset)

    return epoch


def training(dataset: GraphDataset, rounds: int) -> Case:
    """An epoch. Both sides keep training, so that their losses can be compared."""
    torch.manual_seed(0)
    ours, peer = our_epoch(dataset), peer_epoch(dataset)
    losses: dict[str, list[float]] = {"ours": [], "peer": []}
    ratio = compare(lambda: losses["ours"].append(ours()), lambda: losses["peer"].append(peer()), rounds)
    note = ", ".join(f"{side} {values[0]:.2f} → {values[-1]:.2f}" for side, values in losses.items())
    return Case("training epoch", dataset.name, "PyG", ratio, f"loss: {note}")


def inference(dataset: GraphDataset, rounds: int) -> Case:
    """All graphs, in batches; both sides from graphs in memory to classes."""
    ours, peer = our_model(dataset).eval(), PyGNet(dataset.num_features, dataset.num_classes).eval()
    loader = DataLoader(pyg_graphs(dataset), batch_size=BATCH)

    @torch.inference_mode()
    def run_ours() -> None:
        for graphs in torch.arange(len(dataset)).split(BATCH):
            ours(dataset.batch(graphs)).argmax(1)

    @torch.inference_mode()
    def run_peer() -> None:
        for data in loader:
            peer(data.x, data.edge_index, data.batch).argmax(1)

    return Case("inference", dataset.name, "PyG", compare(run_ours, run_peer, rounds))


def layer(dataset: GraphDataset, rounds: int, channels: int = 48) -> list[Case]:
    """TAPooling forward and backward on one batch, against PyG's layers and the paper's formula written out."""
    graphs = Batch.from_data_list(pyg_graphs(dataset.subset(range(min(BATCH, len(dataset))))))
    x = torch.randn(graphs.num_nodes, channels)
    edge_index, batch = graphs.edge_index, graphs.batch

    def both_ways(pool: torch.nn.Module) -> Callable[[], None]:
        def run() -> None:
            h = x.clone().requires_grad_()
            pool(h, edge_index, None, batch)[0].square().sum().backward()

        return run

    ours = both_ways(TAPooling(channels, 0.5))
    peers = {
        "SAGPooling": both_ways(SAGPooling(channels, 0.5)),
        "TopKPooling": both_ways(TopKPooling(channels, 0.5)),
        "dense formula": both_ways(DenseTAP(channels, 0.5)),
    }
    return [
        Case("pooling layer, forward and backward", dataset.name, name, compare(ours, peer, rounds))
        for name, peer in peers.items()
    ]


class DenseTAP(torch.nn.Module):
    """Eq. 1 to 4 with the n×n matrices that they are written in, graph after graph."""

    def __init__(self, channels: int, ratio: float) -> None:
        super().__init__()
        self.sparse = TAPooling(channels, ratio)  # its parameters, its gate

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, _: None, batch: torch.Tensor) -> tuple[torch.Tensor]:
        pool, rows, start = self.sparse, [], 0
        assert pool.weight is not None
        assert pool.projection is not None
        for n in batch.bincount().tolist():
            h = x[start : start + n]
            inside = (edge_index[0] >= start) & (edge_index[0] < start + n)
            a = h.new_zeros(n, n)
            a[edge_index[0, inside] - start, edge_index[1, inside] - start] = 1
            a_hat = a + torch.eye(n)
            normalised = a_hat / a_hat.sum(1, keepdim=True)
            local = torch.softmax((h @ pool.weight @ h.T * normalised).sum(1) / n, 0)
            global_ = torch.softmax(normalised @ h @ pool.projection, 0)
            score = local + global_ + pool.connectivity * a.sum(1) / n
            perm = score.topk(max(1, -(-n // 2))).indices.sort().values
            rows.append(straight_through(h, perm, score))
            start += n
        return (torch.cat(rows),)


def reading(archive: Path, rounds: int) -> list[Case]:
    """From the archive, and from each side's cache. Every round reads everything anew."""
    from torch_geometric.io import read_tu_data

    name = archive.stem
    layout = layout_of(archive)

    def peer_cold() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(folder)
            return read_tu_data(str(Path(folder) / name), name)

    cold = compare(lambda: read_layout(layout), peer_cold, rounds, warm_up=0)
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("TAPNET_CACHE")
        os.environ["TAPNET_CACHE"] = folder
        try:
            cache.save(layout, read_layout(layout), cache.signature(layout))
            stored = Path(folder) / "processed.pt"
            data, slices, _ = peer_cold()
            torch.save((data.to_dict(), slices), stored)
            del data, slices
            warm = compare(lambda: cache.load(layout), lambda: torch.load(stored), max(3, rounds))
        finally:
            os.environ.pop("TAPNET_CACHE") if before is None else os.environ.update(TAPNET_CACHE=before)
    return [
        Case("reading the archive", name, "PyG's read_tu_data", cold),
        Case("reading the parsed copy", name, "PyG's processed file", warm),
    ]


def files(dataset: GraphDataset, rounds: int, form: Literal["JSON", "GraphML"] = "JSON", graphs: int = 0) -> Case:
    """From a folder of a file for each graph to classes; the peer reads with NetworkX. Labels are the categories.

    Args:
        dataset: its graphs are written.
        rounds: so often, after a first time that does not count; 1 for a single time that does.
        form: node-link JSON or GraphML.
        graphs: so many files, the graphs repeated; 0 for one file of each.
    """
    import networkx as nx
    from torch_geometric.utils import from_networkx

    dataset = replace(dataset, label_names=None)  # the peer's categories are numbers
    ours, peer = our_model(dataset).eval(), PyGNet(dataset.num_features, dataset.num_classes).eval()
    nodes: dict[str, int] = {}

    @torch.inference_mode()
    def run_ours() -> None:
        found = read_layout(layout_of(Path(folder)))
        nodes["ours"] = found.num_nodes
        for numbers in torch.arange(len(found)).split(BATCH):
            ours(found.batch(numbers)).argmax(1)

    def read(path: Path) -> Any:
        if form == "GraphML":
            return nx.read_graphml(path)
        return nx.node_link_graph(json.loads(path.read_text()), edges="links")

    @torch.inference_mode()
    def run_peer() -> None:
        found = [from_networkx(read(path), group_node_attrs=["label"]) for path in sorted(Path(folder).iterdir())]
        nodes["peer"] = sum(data.num_nodes for data in found)
        for data in DataLoader(found, batch_size=BATCH):
            x = torch.nn.functional.one_hot(data.x[:, 0].long(), dataset.num_features).float()
            peer(x, data.edge_index, data.batch).argmax(1)

    with tempfile.TemporaryDirectory() as folder:
        written = []
        for i in range(len(dataset)):
            graph = dataset.to_networkx(i)
            text = "".join(nx.generate_graphml(graph)) if form == "GraphML" else None
            written.append(text or json.dumps(nx.node_link_data(graph, edges="links")))
        for i in range(graphs or len(dataset)):
            (Path(folder) / f"{i:06}.{form.lower()}").write_text(written[i % len(dataset)])
        ratio = compare(run_ours, run_peer, rounds, warm_up=int(rounds > 1))
    check(nodes["ours"] == nodes["peer"], f"the two sides read different numbers of nodes: {nodes}")
    name = f"{dataset.name}, {graphs:,} graphs" if graphs else dataset.name
    return Case(f"reading {form} files and predicting", name, "NetworkX and PyG", ratio, f"nodes: {nodes}")


def memory(name: str, data_dir: Path | None, graphs: int | None) -> Case:
    """The peak of a process that trains for an epoch, interpreter and libraries included."""
    peaks = {side: run_child("memory", side, name, data_dir, graphs)["peak"] for side in ("ours", "peer")}
    return Case("peak memory of training", name, "PyG", Ratio((peaks["peer"] / peaks["ours"],)))


def cross_validation(name: str, data_dir: Path | None, epochs: int) -> Case:
    """`tapnet train` with its defaults against the PyG program, fold after fold, both from the command line."""
    with tempfile.TemporaryDirectory() as out:
        words = ["train", name, "--protocol", "paper", "--epochs", str(epochs), "--out", out]
        words += [] if data_dir is None else ["--data-dir", str(data_dir)]
        command = [sys.executable, "-m", "tapnet", *words]
        ours = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    peer = seconds(lambda: run_child("folds", "peer", name, data_dir, epochs))
    return Case("10-fold cross-validation", name, "PyG", Ratio((peer / ours,)), f"{epochs} epochs, wall clock")


def run_child(task: str, side: str, name: str, data_dir: Path | None, number: int | None) -> dict[str, Any]:
    """What a task of `child` prints, run in a process of its own."""
    words = [task, side, name, str(data_dir or ""), str(number or "")]
    command = [sys.executable, "-m", f"{__package__}.child", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # it finds this package too
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    values: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return values


def short(data_dir: Path | None) -> list[Case]:
    """The comparison that `tapnet bench` runs: a minute or two."""
    mutag = bench_dataset("MUTAG", data_dir)
    reddit = bench_dataset("REDDIT-BINARY", data_dir, graphs=2 * BATCH)
    return [
        training(mutag, 5),
        training(reddit, 3),
        inference(mutag, 5),
        inference(reddit, 3),
        *layer(reddit, 5)[:2],
    ]
