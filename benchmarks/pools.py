"""What each pooling layer costs in TAPNet's architecture: `python benchmarks/pools.py --data-dir DIR`.

A training step with the layer beside one without pooling, in alternation, and the peak of its memory: every layer with
the paper's ratios, and the layers of the comparison of large graphs that keep half of the nodes. Each goes to
results/costs.json as soon as it is measured; `--only tap,topk` measures some layers again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m
from benchmarks.cases import BATCH, run_child
from benchmarks.data import bench_dataset
from benchmarks.measure import compare, forget_peak, peak_memory
from tapnet.data.dataset import GraphDataset
from tapnet.files import write_atomically
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.nn.pool.registry import POOLS
from tapnet.paper.costs import COSTS, PoolCost, load_costs
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import make_optimizer, train_steps

RESULTS = Path(__file__).parents[1] / "results"
TOO_LARGE = {("REDDIT-BINARY", pool) for pool in ("asap", "eigen", "haar", "ndp")}  # minutes for a step, or O(n³) once
HALF = (0.5, 0.5, 0.5)
OF_LARGE = ("tap", "topk", "sag", "random", "kmis")
Ratios = tuple[float, ...]


def training_step(dataset: GraphDataset, pool: str, ratios: Ratios | None) -> Callable[[], float]:
    """One step on all graphs of the data set; what a layer computes once for the data is computed before."""
    torch.manual_seed(0)
    spec = find_model("tapnet")
    settings = spec.make_settings(dataset.name, {"pool": pool, **({"ratios": ratios} if ratios else {})})
    prepared = spec.prepare(dataset, settings)
    model = spec.network(DataShape.of(prepared), settings)
    optimizer = make_optimizer(model, TrainingSettings())
    return lambda: train_steps(model, optimizer, prepared, [torch.arange(len(prepared))])


def cost(pool: str, ratios: Ratios | None, name: str, data_dir: Path | None, graphs: int) -> dict[str, Any]:
    """The ratios of time, and the bytes that the first step takes at its peak; called in a process of its own."""
    training_step(bench_dataset(name, data_dir, 2), pool, ratios)()  # loads and compiles what first use does
    dataset = bench_dataset(name, data_dir, graphs)
    step = training_step(dataset, pool, ratios)
    forget_peak()
    before = peak_memory()
    step()
    peak = max(peak_memory() - before, 1)
    return {"peak": peak, "rounds": compare(training_step(dataset, "none", ratios), step, 5).values}


def measured(wanted: list[str], data_dir: Path | None, graphs: int = BATCH) -> Iterator[PoolCost]:
    """Each cost as soon as it is known."""
    usual = [(name, pool, None) for name, pool in product(("PROTEINS", "REDDIT-BINARY"), POOLS)]
    halves = [(name, pool, HALF) for name, pool in product(("DD", "REDDIT-BINARY"), (*OF_LARGE, "none"))]
    for name, pool, ratios in [*usual, *halves]:
        if pool in wanted and (name, pool) not in TOO_LARGE:
            words = " ".join(map(str, ratios or ()))
            found = run_child(f"pool {pool} {words}", "ours", name, data_dir, graphs)
            times = [round(value, 3) for value in found["rounds"]]
            yield PoolCost(pool, name, ratios, statistics.median(times), min(times), max(times), found["peak"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TAPNET_DATA"))
    parser.add_argument("--only", default=",".join(POOLS), help="some pooling layers, separated by commas")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    parser.add_argument("--graphs", type=int, default=BATCH, help="in a step")
    options = parser.parse_args()
    about = {"date": datetime.date.today().isoformat(), "machine": f"{os.cpu_count()} cores, {platform.machine()}"}
    stored = {one.key: one for one in load_costs(options.out)}
    for one in measured(options.only.split(","), options.data_dir and Path(options.data_dir), options.graphs):
        print(json.dumps(asdict(one)), flush=True)
        stored[one.key] = one
        rows = ",\n".join(json.dumps(asdict(cost)) for cost in stored.values())
        head = json.dumps(about)[:-1]
        write_atomically(options.out / COSTS, f'{head}, "costs": [\n{rows}\n]}}\n'.encode())


if __name__ == "__main__":
    main()
