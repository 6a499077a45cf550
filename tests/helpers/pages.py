"""Models that were never trained (what they keep follows from their seed), files, and the page as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import torch

from tapnet import GraphDataset
from tapnet.experiments.run_trial import describe_model
from tapnet.experiments.trial import Trial
from tapnet.inference.model import SavedModel
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model

EVIL = "<img src=x onerror=alert(1)>.json"  # the name of a file


def make_model(dataset: GraphDataset, model: str = "tapnet", **settings: object) -> SavedModel:
    spec = find_model(model)
    chosen = spec.settings(**settings)
    torch.manual_seed(3)
    network = spec.network(DataShape.of(dataset), chosen).eval()
    trial = Trial(dataset.name, dataset.checksum, model, chosen, "fair", 0)
    return SavedModel(network, describe_model(trial, dataset))


def node_link(labels: Sequence[object], edges: Sequence[tuple[int, int]]) -> str:
    nodes = [{"id": f"atom {i}", "label": label} for i, label in enumerate(labels)]
    links = [{"source": f"atom {u}", "target": f"atom {v}"} for u, v in edges]
    return json.dumps({"nodes": nodes, "links": links})


def write_named_graphs(folder: Path) -> None:
    """Three graphs in files, with names of nodes: of people, of numbers, and hostile ones."""
    names = {"Ring.json": ["Alice", "42", "Carol"], EVIL: ["</script>", "&amp;", "malice"], "numbers.json": [0, 1, 2]}
    for file, nodes in names.items():
        links = [{"source": u, "target": v} for u, v in pairwise(nodes)]
        graph = {"nodes": [{"id": node} for node in nodes], "links": links}
        (folder / file).write_text(json.dumps(graph), encoding="utf-8")
    (folder / "labels.csv").write_text("".join(f"{file},{i % 2}\n" for i, file in enumerate(("graph", *names))))


@contextmanager
def running(*words: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`tapnet explore` as a process of its own, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tapnet", "explore", *map(str, words), "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        address = next((found for line in process.stdout if (found := re.search(r"http://\S+", line))), None)
        assert address, process.stderr.read()
        yield address.group(), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
