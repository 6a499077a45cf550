"""What is compared of whole tasks that people wait for: kernels, soft clustering, molecules, `compare`, first use."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import DenseGCNConv, DMoNPooling, dense_diff_pool, dense_mincut_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch

from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.data.dense import DenseBatch
from tapnet.data.splits import Split
from tapnet.io.load import load_dataset
from tapnet.models.base import DataShape
from tapnet.models.gin import GIN
from tapnet.models.preprocess.wl_labels import label_counts
from tapnet.models.registry import find_model
from tapnet.models.size import sizes
from tapnet.models.wl import WLSettings, kernel
from tapnet.nn.pool.base import Pooling
from tapnet.nn.pool.diff import DiffPool
from tapnet.nn.pool.dmon import DMoNPool
from tapnet.nn.pool.mincut import MinCutPool
from tapnet.training.protocol import splits

from . import explanations
from .cases import Case, run_child
from .data import bench_dataset
from .measure import Ratio, check, compare, forget_peak, peak_memory, seconds
from .peer import PyGBag, PyGNet, pyg_graphs

CHANNELS = 48
HEIGHT = max(WLSettings().heights)
SYSTEMS = ("tapnet", "tapnet:topk", "tapnet:sag", "tapnet:none", "gin", "wl")  # of `compare`


def has_grakel() -> bool:
    """Whether GraKeL is installed; it has no wheels beyond Python 3.12."""
    return importlib.util.find_spec("grakel") is not None


# ---- Weisfeiler-Lehman kernel ----


def grakel_graphs(dataset: GraphDataset) -> list[Any]:
    """The graphs as GraKeL takes them: edges as pairs, and a label for each node."""
    return [(list(map(tuple, data.edge_index.t().tolist())), dict(enumerate(data.x.tolist()))) for data in dataset]


def grakel_kernel(graphs: list[Any], height: int) -> NDArray[np.float64]:
    """``[G, G]`` GraKeL's normalised kernel of so many refinements; height 0 is the histogram of the node labels."""
    import grakel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of how GraKeL calls it
        histogram = grakel.VertexHistogram
        if height == 0:
            found = histogram(normalize=True).fit_transform(graphs)
        else:
            machine = grakel.WeisfeilerLehman(n_iter=height, base_graph_kernel=histogram, normalize=True)
            found = machine.fit_transform(graphs)
    values: NDArray[np.float64] = np.asarray(found)
    return values


def wl(dataset: GraphDataset, rounds: int) -> Case:
    """The kernel matrix of all graphs, from graphs in memory, of the largest height that `wl` chooses from."""
    graphs, found = grakel_graphs(dataset), {}

    def ours() -> None:
        found["ours"] = kernel(label_counts(dataset, HEIGHT), HEIGHT)

    def peer() -> None:
        found["peer"] = grakel_kernel(graphs, HEIGHT)

    kernel(label_counts(dataset.subset(range(2)), HEIGHT), HEIGHT)  # compiled on first use
    ratio = compare(ours, peer, rounds, warm_up=0)
    check(np.allclose(found["ours"], found["peer"], rtol=1e-6, atol=1e-9), "the kernels' values are not GraKeL's")
    return Case("WL kernel", dataset.name, "GraKeL", ratio, f"h = {HEIGHT}, {len(dataset)} graphs")


# ---- soft clusters ----


class DensePeer(nn.Module):
    """PyG's dense layer with the weights of one of ours, from sparse graphs on."""

    def __init__(self, pool: Pooling) -> None:
        super().__init__()
        self.name = type(pool).__name__
        assert isinstance(pool, DiffPool | MinCutPool | DMoNPool)
        assert pool.assign.bias is not None
        weight, bias = pool.assign.weight.detach().T.clone(), pool.assign.bias.detach().clone()
        self.layer: Any
        if isinstance(pool, DiffPool):
            self.layer = DenseGCNConv(pool.in_channels, pool.clusters)
            self.layer.load_state_dict({"lin.weight": weight, "bias": bias})
        elif isinstance(pool, MinCutPool):
            self.layer = nn.Linear(pool.in_channels, pool.clusters)
            self.layer.load_state_dict({"weight": weight, "bias": bias})
        else:
            self.layer = DMoNPooling(pool.in_channels, pool.clusters)
            self.layer.load_state_dict({"mlp.lins.0.weight": weight, "mlp.lins.0.bias": bias})

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The features of the clusters, the graphs between them, and the loss."""
        dense, mask = to_dense_batch(x, batch)
        adjacency = to_dense_adj(edge_index, batch)
        if self.name == "DiffPool":
            pooled, coarse, link, _ = dense_diff_pool(dense, adjacency, self.layer(dense, adjacency, mask), mask)
            return pooled, coarse, link
        if self.name == "MinCutPool":
            pooled, coarse, cut, orthogonality = dense_mincut_pool(dense, adjacency, self.layer(dense), mask)
            return pooled, coarse, cut + orthogonality
        _, pooled, coarse, modularity, _, collapse = self.layer(dense, adjacency, mask)
        return pooled, coarse, modularity + collapse


class Step(NamedTuple):
    """What one forward and backward pass gives."""

    x: Tensor
    adjacency: Tensor
    loss: Tensor
    grad: Tensor  # of the input


def cluster_steps(dataset: GraphDataset, name: str) -> dict[str, Callable[..., Step]]:
    """A forward and backward pass of a pooling by each side, on all graphs of the data set as one batch."""
    torch.manual_seed(0)
    clusters = -(-dataset.num_nodes // (2 * len(dataset)))  # half the mean number of nodes
    if name == "diff":
        pool: Pooling = DiffPool(CHANNELS, clusters, norm="symmetric")  # what PyG's dense convolution has
    else:
        pool = {"mincut": MinCutPool, "dmon": DMoNPool}[name](CHANNELS, clusters)
    graphs = Batch.from_data_list(pyg_graphs(dataset))
    edge_index, batch = graphs.edge_index, graphs.batch
    x, peer = torch.randn(len(batch), CHANNELS), DensePeer(pool)

    def ours(with_loss: bool = True) -> Step:
        h = x.clone().requires_grad_()
        pooled = pool(h, GraphBatch.from_edge_index(h, edge_index, batch))
        assert pooled.loss is not None
        assert isinstance(pooled.batch, DenseBatch)
        rows = pooled.x.view(len(dataset), clusters, -1)
        return backward(h, rows, pooled.batch.adjacency, pooled.loss, with_loss)

    def theirs(with_loss: bool = True) -> Step:
        h = x.clone().requires_grad_()
        pooled, coarse, loss = peer(h, edge_index, batch)
        return backward(h, pooled, coarse, loss, with_loss)

    def backward(h: Tensor, pooled: Tensor, coarse: Tensor, loss: Tensor, with_loss: bool) -> Step:
        (pooled.square().mean() + coarse.square().mean() + (loss if with_loss else 0)).backward()
        assert h.grad is not None
        return Step(pooled.detach(), coarse.detach(), loss.detach(), h.grad)

    return {"ours": ours, "peer": theirs}


def clusters(dataset: GraphDataset, name: str, rounds: int) -> Case:
    """The time of soft clustering, forward and backward, against PyG's dense layer with the same weights."""
    steps = cluster_steps(dataset, name)
    # PyG divides the link loss of diff by the padding too, and the collapse of dmon by the sizes of all graphs in turn
    same_loss = name == "mincut"
    ours, peer = steps["ours"](same_loss), steps["peer"](same_loss)
    for field in Step._fields if same_loss else ("x", "adjacency", "grad"):
        a, b = getattr(ours, field), getattr(peer, field)
        off = float((a - b).abs().max() / b.abs().max())
        check(off < 1e-3, f"{name}: {field} differs from PyG's by {off:.1e} of its largest value")
    nodes = dataset.nodes_per_graph
    note = f"{len(dataset)} graphs of up to {int(nodes.max())} nodes, {ours.x.size(1)} clusters"
    ratio = compare(steps["ours"], steps["peer"], rounds, warm_up=0)
    what = f"soft clustering by {name}, forward and backward"
    return Case(what, _set_name(dataset), "PyG's dense layer", ratio, note)


def cluster_memory(name: str, set_name: str, data_dir: Path | None, graphs: int) -> Case:
    """What a process takes for it at its peak, above what it had before."""
    peaks = {s: run_child(f"clusters {name}", s, set_name, data_dir, graphs)["peak"] for s in ("ours", "peer")}
    note = ", ".join(f"{side} {peak / 1e6:.0f} MB" for side, peak in peaks.items())
    ratio = Ratio((peaks["peer"] / peaks["ours"],))
    return Case(f"memory of soft clustering by {name}", set_name, "PyG's dense layer", ratio, note)


def peak_of_clusters(name: str, side: str, set_name: str, data_dir: Path | None, graphs: int) -> float:
    """Bytes; called in a process of its own."""
    cluster_steps(bench_dataset(set_name, data_dir, 2), name)[side]()  # loads and compiles what first use does
    step = cluster_steps(bench_dataset(set_name, data_dir, graphs), name)[side]
    forget_peak()
    before = peak_memory()
    step()
    return max(peak_memory() - before, 1)


def _set_name(dataset: GraphDataset) -> str:
    return dataset.name.removesuffix(" (generated)")


# ---- molecules ----

TARGETS = {"ESOL": "measured log solubility in mols per litre", "BBBP": "p_np"}  # the columns of MoleculeNet's tables
PART_NAMES = ("train", "val", "test")
TAPNET = (sys.executable, "-m", "tapnet")
Parts = dict[str, NDArray[np.int64]]  # the numbers of molecules of each part


def molecules(table: Path, chemprop: Path, others: Path | None, tiny: bool) -> list[Case]:
    """Training and prediction from a CSV of SMILES as whole commands, each side with its defaults, one thread.

    Args:
        table: ESOL.csv or BBBP.csv of MoleculeNet.
        chemprop: chemprop's executable.
        others: a CSV whose molecules are predicted after those of the test part.
        tiny: whether only to prove that it runs.
    """
    name, classifies = table.stem, table.stem == "BBBP"
    smiles, y = zip(*readable(table, TARGETS[name]), strict=True)
    if tiny:
        smiles, y = smiles[:60], y[:60]
    parts = random_parts(len(y), seed=0)
    test, target = parts["test"], np.asarray(y, dtype=np.float64)
    asked = [smiles[i] for i in test] + ([] if others is None or tiny else [s for s, _ in readable(others)])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_molecules(work, zip(smiles, y, strict=True), [parts])
        _write_csv(work / "asked.csv", ("smiles",), ((s,) for s in asked))

        def run(*words: str) -> float:
            return seconds(lambda: run_alone(words, work))

        short = ("--epochs", "3") if tiny else ()
        ours_train = run(*our_training("ours"), *short)
        peer_train = run(*peer_training(chemprop, "peer", classifies), *short)
        model = next((work / "ours" / "models").iterdir())

        def predict_ours() -> float:
            return run(*TAPNET, "predict", str(model), "asked.csv", "--out", "ours.csv")

        def predict_peer() -> float:
            return run(
                str(chemprop), "predict", "--test-path", "asked.csv", "--smiles-columns", "smiles",
                "--model-paths", "peer/model_0/best.pt", "--preds-path", "peer.csv", "--accelerator", "cpu",
            )  # fmt: skip

        values = []
        for i in range(1 if tiny else 3):
            first, second = (predict_ours, predict_peer) if i % 2 == 0 else (predict_peer, predict_ours)
            a, b = first(), second()
            values.append(b / a if i % 2 == 0 else a / b)
        said = {side: last_column(work / f"{side}.csv") for side in ("ours", "peer")}

    for side, column_said in said.items():
        check(len(column_said) == len(asked), f"{side}: {len(column_said)} of {len(asked)} molecules predicted")
    scores = {
        side: molecule_score(target[test], column_said[: len(test)], classifies) for side, column_said in said.items()
    }
    mean = molecule_score(target[test], np.full(len(test), target[parts["train"]].mean()), classifies)
    for side, score in scores.items():
        better = score > mean if classifies else score < mean
        check(tiny or better, f"{side} is no better than the mean: {score:.3f} against {mean:.3f}")
    measured = ", ".join(f"{side} {score:.3f}" for side, score in scores.items())
    note = f"{'ROC-AUC' if classifies else 'RMSE'} of the test part: {measured}, the mean {mean:.3f}"
    return [
        Case("training from a CSV of SMILES", name, "chemprop", Ratio((peer_train / ours_train,)), note),
        Case("predicting a CSV of SMILES", name, "chemprop", Ratio(tuple(values)), f"{len(asked)} molecules"),
    ]


def readable(table: Path, column: str | None = None) -> list[tuple[str, str]]:
    """The SMILES and a column of a CSV, of the molecules that RDKit reads; both sides number these alike."""
    from rdkit import Chem, rdBase

    with table.open(newline="") as file:
        rows = [(row["smiles"].strip(), row[column] if column else "") for row in csv.DictReader(file)]
    with rdBase.BlockLogs():
        return [row for row in rows if (found := Chem.MolFromSmiles(row[0])) is not None and found.GetNumAtoms()]


def random_parts(molecules: int, seed: int) -> Parts:
    """Numbers of molecules, 80:10:10 at random."""
    order = np.random.default_rng(seed).permutation(molecules)
    return dict(zip(PART_NAMES, np.split(order, [molecules * 8 // 10, molecules * 9 // 10]), strict=True))


def write_molecules(work: Path, rows: Iterable[tuple[str, str]], splits: Sequence[Parts]) -> None:
    """Writes what both programs read: table.csv with the columns smiles and y, and splits.json."""
    _write_csv(work / "table.csv", ("smiles", "y"), rows)
    (work / "splits.json").write_text(json.dumps([{part: list(map(int, n)) for part, n in s.items()} for s in splits]))


def our_training(out: str, seed: int = 0) -> list[str]:
    """tapnet's words for training on these, with its defaults."""
    words = [*TAPNET, "train", "table.csv", "--smiles", "smiles", "--target", "y", "--split", "splits.json"]
    return [*words, "--seed", str(seed), "--jobs", "1", "--threads", "1", "--out", out]


def peer_training(chemprop: Path, out: str, classifies: bool, seed: int = 0) -> list[str]:
    """chemprop's words for the same; one of its seeds is of the weights, the other of the order of molecules."""
    words = [str(chemprop), "train", "--data-path", "table.csv", "--smiles-columns", "smiles", "--target-columns", "y"]
    words += ["--task-type", "classification" if classifies else "regression", "--splits-file", "splits.json"]
    words += ["--pytorch-seed", str(seed), "--data-seed", str(seed)]
    return [*words, "--accelerator", "cpu", "--output-dir", out]


def run_alone(words: Sequence[str], work: Path) -> str:
    """What a program prints that runs in this folder, with one thread and nothing cached."""
    threads = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")}
    threads["TAPNET_CACHE"] = str(work / "cache")
    done = subprocess.run(words, cwd=work, env=threads, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return str(done.stdout)


def _write_csv(file: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


def last_column(file: Path) -> NDArray[np.float64]:
    """The numbers predicted; of classes the probability of the last."""
    with file.open(newline="") as stream:
        return np.asarray([float(row[-1]) for row in list(csv.reader(stream))[1:]])


def molecule_score(y: NDArray[np.float64], said: NDArray[np.float64], classifies: bool) -> float:
    """The ROC-AUC of classes, the RMSE of numbers."""
    if classifies:
        return float(roc_auc_score(y, said)) if len(set(y)) > 1 else 0.5
    return float(np.sqrt(np.mean((y - said) ** 2)))


# ---- a whole comparison ----


def comparison(name: str, data_dir: Path | None, epochs: int, folds: int = 10, wanted: Sequence[str] = SYSTEMS) -> Case:
    """`tapnet compare` of six systems and its baselines against the same from PyG, GraKeL and scikit-learn in turn."""
    systems = [system for system in wanted if system != "wl" or has_grakel()]
    with tempfile.TemporaryDirectory() as folder:
        words = ["compare", name, "--systems", ",".join(systems), "--epochs", str(epochs), "--folds", str(folds)]
        words += ["--out", str(Path(folder) / "run"), "--json"]
        words += [] if data_dir is None else ["--data-dir", str(data_dir)]
        environment = {**os.environ, "TAPNET_CACHE": folder}  # kernels are computed anew
        done: list[Any] = []
        command = [sys.executable, "-m", "tapnet", *words]
        ours = seconds(
            lambda: done.append(subprocess.run(command, check=True, capture_output=True, text=True, env=environment))
        )
    answer: dict[str, Any] = {}
    peer = seconds(
        lambda: answer.update(run_child(f"compare {folds} {','.join(systems)}", "peer", name, data_dir, epochs))
    )
    found = scores_of(json.loads(done[0].stdout))
    check(found.keys() == answer.keys(), f"the systems differ: {sorted(found)} and {sorted(answer)}")
    for system, scores in found.items():
        check(len(scores) == len(answer[system]) == folds, f"{system}: {len(scores)} and {len(answer[system])} folds")
    means = {system: (np.mean(scores), np.mean(answer[system])) for system, scores in found.items()}
    for system in {"wl", "majority", "size"} & means.keys():  # nothing in them is drawn at random
        a, b = means[system]
        check(abs(a - b) < 1, f"{system}: an accuracy of {a:.1f} % here, of {b:.1f} % there")
    note = ", ".join(f"{system} {a:.0f} % and {b:.0f} %" for system, (a, b) in means.items())
    what = f"compare, {len(systems)} systems and 3 baselines"
    return Case(what, name, "PyG and GraKeL", Ratio((peer / ours,)), f"{epochs} epochs, {folds} folds; {note}")


def scores_of(output: dict[str, Any]) -> dict[str, list[float]]:
    """The test accuracy of each fold in percent, by system, out of what `tapnet compare --json` prints."""
    return {row["name"]: row["scores"] for row in output["systems"]}


def peer_comparison(
    name: str, data_dir: Path | None, epochs: int, folds: int, systems: Sequence[str]
) -> dict[str, list[float]]:
    """The accuracies of the same systems, one fold after another; called in a process of its own."""
    dataset = bench_dataset(name, data_dir)
    parts = list(splits(dataset, "fair", folds, range(folds)))
    found = {s: peer_network_scores(dataset, s, parts, epochs) for s in systems if s != "wl"}
    if "wl" in systems:
        found["wl"] = peer_wl_scores(dataset, parts)
    x, y = sizes(dataset), dataset.y.numpy()
    baselines = {
        "majority": DummyClassifier(),
        "size": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    for system, machine in baselines.items():
        found[system] = []
        for part in parts:
            train, test = _learned(part), part.test.numpy()
            found[system].append(100 * machine.fit(x[train], y[train]).score(x[test], y[test]))
    found["bag"] = peer_network_scores(dataset, "bag", parts, epochs)
    return found


def peer_network_scores(dataset: GraphDataset, system: str, parts: Sequence[Split], epochs: int) -> list[float]:
    """Trains a network of PyG's parts on each fold; the test accuracy of the epoch of the lowest validation loss."""
    graphs, scores = pyg_graphs(dataset), []
    options = find_model(system.partition(":")[0]).training
    for part in parts:
        train, validation, test = (
            DataLoader([graphs[i] for i in numbers.tolist()], batch_size=options.get("batch_size", 64), shuffle=i == 0)
            for i, numbers in enumerate(part)
            if numbers is not None
        )
        model = peer_network(dataset, system)
        optimizer = torch.optim.Adam(
            model.parameters(),
            options.get("lr", 0.001),
            weight_decay=options.get("weight_decay", 0.0008),
            amsgrad=options.get("amsgrad", True),
        )
        curves = []
        for _ in range(epochs):
            model.train()
            for data in train:
                loss = nn.functional.cross_entropy(model(data.x, data.edge_index, data.batch), data.y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            curves.append((_evaluated(model, validation)[0], _evaluated(model, test)[1]))
        scores.append(min(curves)[1])
    return scores


@torch.no_grad()
def _evaluated(model: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """The mean loss and the accuracy in percent."""
    loss, right, count = 0.0, 0, 0
    for data in loader:
        logits = model(data.x, data.edge_index, data.batch)
        loss += float(nn.functional.cross_entropy(logits, data.y, reduction="sum"))
        right += int((logits.argmax(1) == data.y).sum())
        count += len(data.y)
    return loss / count, 100 * right / count


def _learned(part: Split) -> NDArray[np.int64]:
    """The graphs that systems without epochs learn from: with those for validation, which would choose an epoch."""
    assert part.validation is not None
    return np.sort(np.concatenate([part.train.numpy(), part.validation.numpy()]))


def peer_wl_scores(dataset: GraphDataset, parts: Sequence[Split]) -> list[float]:
    """GraKeL's kernels and scikit-learn's SVM: height and C are chosen by a cross-validation of the training graphs."""
    grid, graphs, y = WLSettings(), grakel_graphs(dataset), dataset.y.numpy()
    kernels = [grakel_kernel(graphs, height) for height in grid.heights]
    inner = StratifiedKFold(grid.inner_folds, shuffle=True, random_state=0)
    scores = []
    for part in parts:
        train, test = _learned(part), part.test.numpy()

        def right(choice: tuple[NDArray[np.float64], float], train: NDArray[np.int64] = train) -> int:
            matrix, penalty = choice
            machine = SVC(C=penalty, kernel="precomputed")
            return int((cross_val_predict(machine, matrix[np.ix_(train, train)], y[train], cv=inner) == y[train]).sum())

        matrix, penalty = max(product(kernels, grid.penalties), key=right)
        machine = SVC(C=penalty, kernel="precomputed").fit(matrix[np.ix_(train, train)], y[train])
        scores.append(100 * float(machine.score(matrix[np.ix_(test, train)], y[test])))
    return scores


def peer_network(dataset: GraphDataset, system: str) -> nn.Module:
    """The network of a system of `compare` from PyG's parts; TAP has none there and is top-k pooling."""
    if system == "gin":
        build, settings = find_model("gin").build, find_model("gin").make_settings(dataset.name, {})
        assert build is not None
        network = build(DataShape.of(dataset), settings)
        assert isinstance(network, GIN)
        return explanations.PyGGIN(network)
    if system == "bag":
        return PyGBag(dataset.num_features, dataset.num_classes)
    return PyGNet(dataset.num_features, dataset.num_classes, pool=system.partition(":")[2] or "topk")


# ---- explanations ----


def explanation(data_dir: Path | None, tiny: bool) -> Case:
    """Occlusion against GNNExplainer on the same network, per graph; 100 molecules of Mutagenicity in each round."""
    name = "Mutagenicity" if data_dir is not None and (data_dir / "Mutagenicity.zip").exists() else "MUTAG"
    dataset = load_dataset(name, data_dir=data_dir)
    with tempfile.TemporaryDirectory() as work:
        found = explanations.speed(dataset, Path(work), tiny, ("occlusion",), 2 if tiny else 100)
    ratio, many = Ratio(tuple(found["ratio"]["occlusion"])), found["molecules"]
    note = f"occlusion of {many} graphs: {found['occlusion']} s of the processor"
    return Case("explanation by occlusion", name, "GNNExplainer", ratio, note)


# ---- first use ----


def first_result(rounds: int) -> Case:
    """`tapnet train` with nothing compiled and nothing parsed before, against the same again."""
    more, values = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            places = {"NUMBA_CACHE_DIR": str(work / "numba"), "TAPNET_CACHE": str(work / "parsed")}
            took = [seconds(partial(_first_epoch, places, work / run)) for run in ("first", "second")]
            check(any((work / "numba").rglob("*.nbi")), "nothing was compiled")
        more.append(took[0] - took[1])
        values.append(took[1] / took[0])
    spread = f" ({min(more):.1f} to {max(more):.1f})" if rounds > 1 else ""
    note = f"{np.median(more):.1f} s more{spread}"
    return Case("first result, nothing compiled yet", "MUTAG", "the second run", Ratio(tuple(values)), note)


def _first_epoch(places: dict[str, str], out: Path) -> None:
    command = [sys.executable, "-m", "tapnet", "train", "MUTAG", "--epochs", "1", "--folds", "3", "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **places})
