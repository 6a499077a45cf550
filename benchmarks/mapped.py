"""Data larger than the memory: `python benchmarks/mapped.py --gigabytes 3.4 --limit 1` trains and predicts on them.

A parsed copy of generated graphs (40 nodes with 128 numbers each, 146 directed edges) is used twice: mapped by a
process that may take ``--limit`` GB above the interpreter, and loaded by one that may take what it wants, where that
is too much a smaller copy (``--loaded``). Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

NODES, NUMBERS, EDGES, KINDS = 40, 128, 146, 64
BYTES_A_GRAPH = NODES * (4 * NUMBERS + 8) + 4 * EDGES + 16


def write_copy(folder: Path, graphs: int, seed: int = 0) -> None:
    """Writes a parsed copy of so many graphs, as if they had been read from the few in a folder."""
    from tapnet.data.dataset import GraphDataset
    from tapnet.io import parsed_cache
    from tapnet.io.dataset_files import layout_of
    from tapnet.io.read import read

    folder.mkdir()
    for part, text in {"A": "1, 2\n3, 4\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "0\n1\n"}.items():
        (folder / f"{folder.name}_{part}.txt").write_text(text)
    (folder / f"{folder.name}_node_attributes.txt").write_text("0.5\n1\n2\n1\n")
    random = np.random.default_rng(seed)
    ring = np.arange(NODES)
    structures = []
    for _ in range(KINDS):
        edges = {tuple(sorted(pair)) for pair in zip(ring.tolist(), np.roll(ring, 1).tolist(), strict=True)}
        while 2 * len(edges) < EDGES:
            edges.add(tuple(sorted(random.choice(NODES, 2, replace=False).tolist())))
        structures.append(sorted([*edges, *(pair[::-1] for pair in edges)]))
    ends = np.asarray(structures)  # [KINDS, EDGES, 2]
    degree = np.stack([np.bincount(some[:, 0], minlength=NODES) for some in ends])
    kind, y = random.integers(0, KINDS, graphs), random.integers(0, 2, graphs)
    with tempfile.TemporaryFile(dir=folder) as file:
        x = np.memmap(file, np.float32, "w+", shape=(graphs * NODES, NUMBERS))
        for start in range(0, graphs, 2000):
            some = random.standard_normal((len(y[start : start + 2000]), NODES, NUMBERS), dtype=np.float32)
            some[..., 0] += 0.3 * y[start : start + 2000, None]  # what there is to learn
            x[start * NODES : (start + len(some)) * NODES] = some.reshape(-1, NUMBERS)
        dataset = replace(
            read(folder),
            node_ptr=torch.arange(graphs + 1) * NODES,
            rowptr=torch.from_numpy(np.concatenate([[0], np.cumsum(degree[kind].reshape(-1))])),
            col=torch.from_numpy(ends[kind, :, 1].reshape(-1).astype(np.int32)),
            y=torch.from_numpy(y),
            x=torch.from_numpy(x),
            node_attributes=None,
        )
        assert isinstance(dataset, GraphDataset)
        layout = layout_of(folder)
        parsed_cache.save(layout, dataset, parsed_cache.signature(layout))


def anonymous_memory(field: str) -> int:
    """Bytes of this process that are no pages of files."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{field}:")[1].split()[0])


def measure(folder: Path, steps: int, limit: float | None) -> dict[str, float]:
    """Loads the copy, trains for some steps and predicts; with a limit in GB, mapped, else loaded."""
    import sklearn.model_selection  # noqa: F401 - a part of the interpreter's memory

    from tapnet import TAPNet, load_dataset
    from tapnet.io import sealed_arrays
    from tapnet.models.predictor import predict_logits
    from tapnet.training.settings import TrainingSettings
    from tapnet.training.shuffle import shuffle
    from tapnet.training.trainer import Trainer, train_steps

    torch.set_num_threads(1)
    before = anonymous_memory("RssAnon")
    if limit is None:
        sealed_arrays.MAPPED_BYTES = 1 << 62
    else:
        most = anonymous_memory("VmData") + int(limit * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    start = time.perf_counter()
    dataset = load_dataset(folder)
    found = {"load seconds": time.perf_counter() - start, "gigabytes": dataset.nbytes / 1e9}
    torch.manual_seed(0)
    every = torch.arange(len(dataset))
    trainer = Trainer(TAPNet(NUMBERS, 2), dataset, every, TrainingSettings(batch_size=64), seed=0)
    batches = shuffle(every, dataset, trainer.order).split(64)[: steps + 10]
    train_steps(trainer.model, trainer.optimizer, dataset, batches[:10])
    trained, predicted = sum(map(len, batches[10:])), every[: 64 * steps]
    start, cpu = time.perf_counter(), time.process_time()
    found["loss"] = train_steps(trainer.model, trainer.optimizer, dataset, batches[10:])
    found["train, µs a graph"] = (time.process_time() - cpu) / trained * 1e6
    found["train, µs a graph by the clock"] = (time.perf_counter() - start) / trained * 1e6
    start, cpu = time.perf_counter(), time.process_time()
    predict_logits(trainer.model.eval(), dataset, predicted)
    found["predict, µs a graph"] = (time.process_time() - cpu) / len(predicted) * 1e6
    found["predict, µs a graph by the clock"] = (time.perf_counter() - start) / len(predicted) * 1e6
    return found | {"memory, GB": (anonymous_memory("RssAnon") - before) / 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=3.4)
    parser.add_argument("--limit", type=float, default=1.0, help="GB above the interpreter for the mapped copy")
    parser.add_argument("--loaded", type=float, help="GB of the copy that is loaded (default: the same one)")
    parser.add_argument("--steps", type=int, default=150, help="of 64 graphs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        limit = options.limit if options.limit >= 0 else None
        print(json.dumps(measure(options.child, options.steps, limit)))
        return
    with tempfile.TemporaryDirectory() as place:
        os.environ["TAPNET_CACHE"] = f"{place}/cache"
        folders = [Path(place) / "GENERATED"]
        write_copy(folders[0], int(options.gigabytes * 1e9 / BYTES_A_GRAPH))
        if options.loaded:
            folders.append(Path(place) / "SMALLER")
            write_copy(folders[1], int(options.loaded * 1e9 / BYTES_A_GRAPH))
        command = [sys.executable, __file__, "--steps", str(options.steps)]
        ratios: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            mapped, loaded = (
                json.loads(subprocess.check_output([*command, "--child", str(folder), "--limit", str(limit)]))
                for folder, limit in ((folders[0], options.limit), (folders[-1], -1))
            )
            assert options.loaded or mapped["loss"] == loaded["loss"]
            for name, found in (("mapped", mapped), ("loaded", loaded)):
                print(name, {key: round(value, 3) for key, value in found.items()}, flush=True)
            for key in (key for key in mapped if "µs" in key):
                ratios.setdefault(key, []).append(loaded[key] / mapped[key])
        for key, values in ratios.items():
            print(f"{key}: loaded ÷ mapped {np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
