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

import torch

from tapnet import GraphDataset
from tapnet.experiments.run_trial import describe_model
from tapnet.experiments.trial import Trial
from tapnet.inference.model import SavedModel
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model


def make_model(dataset: GraphDataset, model: str = "tapnet", **settings: object) -> SavedModel:
    spec = find_model(model)
    chosen = spec.settings(**settings)
    assert spec.build is not None
    torch.manual_seed(3)
    network = spec.build(DataShape.of(dataset), chosen).eval()
    trial = Trial(dataset.name, dataset.checksum, model, chosen, "fair", 0)
    return SavedModel(network, describe_model(trial, dataset))


def node_link(labels: Sequence[object], edges: Sequence[tuple[int, int]]) -> str:
    nodes = [{"id": f"atom {i}", "label": label} for i, label in enumerate(labels)]
    links = [{"source": f"atom {u}", "target": f"atom {v}"} for u, v in edges]
    return json.dumps({"nodes": nodes, "links": links})


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
