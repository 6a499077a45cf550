"""A process of its own for what must be measured alone: peak memory, a whole program's wall clock."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

from . import pools, tasks
from .cases import BATCH, our_epoch, peer_epoch
from .data import bench_dataset
from .measure import forget_peak, peak_memory


def main(task: str, side: str, name: str, data_dir: str, number: str) -> None:
    """Measures one task and prints the result as a line of JSON."""
    folder = Path(data_dir) if data_dir else None
    if task == "memory":
        dataset = bench_dataset(name, folder, int(number) if number else None)
        epoch = (our_epoch if side == "ours" else peer_epoch)(dataset)
        if side == "peer":
            del dataset  # it has its own copy
        gc.collect()
        forget_peak()  # of reading the files, which is the same on both sides
        epoch()
        print(json.dumps({"peak": peak_memory()}))
    elif task.startswith("clusters"):
        peak = tasks.peak_of_clusters(task.split()[1], side, name, folder, int(number))
        print(json.dumps({"peak": peak}))
    elif task.startswith("pool "):
        _, pool, *ratios = task.split()
        print(json.dumps(pools.cost(pool, tuple(map(float, ratios)) or None, name, folder, int(number))))
    elif task.startswith("compare"):
        _, folds, systems = task.split()
        print(json.dumps(tasks.peer_comparison(name, folder, int(number), int(folds), systems.split(","))))
    else:
        _peer_folds(name, folder, int(number))
        print(json.dumps({"done": 1}))


def _peer_folds(name: str, folder: Path | None, epochs: int) -> None:
    """Ten folds one after another: train, then test after every epoch."""
    import torch
    from torch_geometric.loader import DataLoader

    from tapnet.training.protocol import split

    from .peer import PyGNet, pyg_graphs

    dataset = bench_dataset(name, folder)
    graphs = pyg_graphs(dataset)
    for fold in range(10):
        parts = split(dataset, "paper", 10, fold)
        train = DataLoader([graphs[i] for i in parts.train.tolist()], batch_size=BATCH, shuffle=True)
        test = DataLoader([graphs[i] for i in parts.test.tolist()], batch_size=BATCH)
        model = PyGNet(dataset.num_features, dataset.num_classes)
        optimizer = torch.optim.Adam(model.parameters(), 0.001, weight_decay=0.0008, amsgrad=True)
        best = 0.0
        for _ in range(epochs):
            model.train()
            for data in train:
                loss = torch.nn.functional.cross_entropy(model(data.x, data.edge_index, data.batch), data.y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                correct = sum(int((model(d.x, d.edge_index, d.batch).argmax(1) == d.y).sum()) for d in test)
            best = max(best, correct / len(parts.test))


if __name__ == "__main__":
    main(*sys.argv[1:])
