"""How the layer's cost grows with one graph: `python benchmarks/scaling.py` measures and draws scaling.png.

Forward and backward, 48 channels, 10 edges a node; each size in a process of its own, memory above the inputs. Two
kinds of graph: neighbours anywhere (random), where each is a cache miss, and neighbours with near numbers, as in
meshes, molecules and graphs put in order. torch is told to ask for huge pages (THP_MEM_ALLOC_ENABLE=1).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m
CHANNELS, EDGES_A_NODE = 48, 10
NEAR = 100  # how far a neighbour's number is at most in a graph with locality
LIMIT_BYTES = 12 << 30


def measure(kind: str, nodes: int, repeats: int) -> dict[str, float]:
    """Seconds (the fastest of some) and peak bytes above the inputs, in this process."""
    import torch

    from benchmarks.cases import DenseTAP
    from benchmarks.measure import forget_peak, peak_memory
    from tapnet import TAPooling

    torch.manual_seed(0)
    half = torch.randint(nodes, (2, nodes * EDGES_A_NODE // 2))
    if kind == "near":
        half[1] = (half[0] + torch.randint(1, NEAR, half[0].shape)) % nodes
    edge_index = torch.cat([half, half.flip(0)], dim=1)
    edge_index = edge_index[:, torch.argsort(edge_index[0] * nodes + edge_index[1])]
    x = torch.randn(nodes, CHANNELS)
    batch = torch.zeros(nodes, dtype=torch.long)
    pool = DenseTAP(CHANNELS, 0.5) if kind == "dense" else TAPooling(CHANNELS, 0.5)

    def once() -> float:
        h = x.detach().requires_grad_()
        start = time.perf_counter()
        pool(h, edge_index, None, batch)[0].square().sum().backward()
        return time.perf_counter() - start

    TAPooling(CHANNELS)(x[:64], edge_index[:, :0])[0].sum().backward()  # loads what is loaded on first use
    forget_peak()  # of building the inputs
    before = peak_memory()
    times = [once() for _ in range(repeats)]
    return {"seconds": min(times), "bytes": peak_memory() - before}


def in_child(kind: str, nodes: int) -> dict[str, float]:
    """The same in a process of its own."""
    repeats = 5 if nodes < 500_000 else 3
    command = [sys.executable, __file__, "--child", kind, str(nodes), str(repeats)]
    environment = {**os.environ, "THP_MEM_ALLOC_ENABLE": "1"}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    values: dict[str, float] = json.loads(answer)
    return values


def draw(rows: list[dict[str, float | str]], file: Path) -> None:
    """Time and memory over the number of nodes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    styles = {
        "near": ("TAPooling, near neighbours", "o-", "#1f5fa8"),
        "random": ("TAPooling, random graph", "^:", "#3f8f5b"),
        "dense": ("the formula as written, n×n", "s--", "#b5541c"),
    }
    for axis, key, title, unit in (
        (axes[0], "seconds", "seconds", 1.0),
        (axes[1], "bytes", "peak memory above the inputs, GB", 1e9),
    ):
        for kind, (label, style, colour) in styles.items():
            some = [r for r in rows if r["kind"] == kind]
            values = [max(float(r[key]), 1e5 if key == "bytes" else 0.0) / unit for r in some]
            axis.loglog([r["nodes"] for r in some], values, style, color=colour, label=label)
        axis.set_xlabel("nodes of one graph, 10 edges a node")
        axis.set_ylabel(title)
        axis.grid(True, which="major", alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small graphs: proves that it runs")
    parser.add_argument("--out", type=Path, default=HERE / "scaling.png")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, nodes, repeats = options.child
        print(json.dumps(measure(kind, int(nodes), int(repeats))))
        return
    sizes = {"near": [300, 1000], "random": [300], "dense": [100]} if options.tiny else {
        "near": [10_000, 100_000, 1_000_000],
        "random": [10_000, 100_000, 1_000_000],
        "dense": [1_000, 3_000, 10_000, 20_000],
    }  # fmt: skip
    rows: list[dict[str, float | str]] = []
    for kind, numbers in sizes.items():
        last = 0.0
        for nodes in numbers:
            if kind == "dense" and 8 * 4 * nodes**2 > LIMIT_BYTES:
                print(f"dense, {nodes} nodes: does not fit in {LIMIT_BYTES >> 30} GB")
                break
            cost = in_child(kind, nodes)
            growth = f", {cost['seconds'] / last:.1f} times the last" if last else ""
            print(f"{kind}, {nodes} nodes: {cost['seconds']:.4f} s, {cost['bytes'] / 1e9:.2f} GB{growth}", flush=True)
            rows.append({"kind": kind, "nodes": nodes, **cost})
            last = cost["seconds"]
    options.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    draw(rows, options.out)


if __name__ == "__main__":
    main()
