"""What each pooling layer costs in TAPNet's architecture: a training step beside that without pooling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tapnet.data.dataset import GraphDataset
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import make_optimizer, train_steps

from .cases import Case, run_child
from .data import bench_dataset
from .measure import Ratio, compare, forget_peak, peak_memory

WHAT = "training step with the pooling"
PEER = "no pooling"


def training_step(dataset: GraphDataset, pool: str) -> Callable[[], float]:
    """One step on all graphs of the data set; what a layer computes once for the data is computed before."""
    torch.manual_seed(0)
    spec = find_model("tapnet")
    settings = spec.make_settings(dataset.name, {"pool": pool})
    prepared = spec.prepare(dataset, settings)
    model = spec.network(DataShape.of(prepared), settings)
    optimizer = make_optimizer(model, TrainingSettings())
    return lambda: train_steps(model, optimizer, prepared, [torch.arange(len(prepared))])


def cost(pool: str, name: str, data_dir: Path | None, graphs: int) -> dict[str, Any]:
    """The ratios of time, and the bytes that the first step takes at its peak; called in a process of its own."""
    training_step(bench_dataset(name, data_dir, 2), pool)()  # loads and compiles what first use does
    dataset = bench_dataset(name, data_dir, graphs)
    step = training_step(dataset, pool)
    forget_peak()
    before = peak_memory()
    step()
    peak = max(peak_memory() - before, 1)
    return {"peak": peak, "rounds": compare(step, training_step(dataset, "none"), 5).values}


def pool_cost(pool: str, name: str, data_dir: Path | None, graphs: int) -> Case:
    """Time and memory of a training step, the time beside one without pooling."""
    found = run_child(f"pool {pool}", "ours", name, data_dir, graphs)
    return Case(f"{WHAT} {pool}", name, PEER, Ratio(tuple(found["rounds"])), f"{found['peak'] / 1e6:.0f} MB")
