"""How near the machine's memory bandwidth the product and a whole epoch come: `python benchmarks/limits.py`.

The bytes are counted on paper (docs/scale.md), the bandwidth and the times are measured here, in one run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m
from benchmarks.cases import our_epoch
from benchmarks.data import bench_dataset
from benchmarks.measure import seconds
from tapnet.data.batch import GraphBatch
from tapnet.data.dataset import GraphDataset
from tapnet.ops.csr import propagate

CHANNELS, FLOAT, INDEX = 48, 4, 4
ROW = CHANNELS * FLOAT  # bytes of one node's features

# Rows of features read or written a node, forward and backward, for each layer of a block (docs/scale.md).
CONVOLUTION, VOTES, SELECTION, READOUT = 28, 28, 9, 6
PRODUCTS = 4  # of Â with features, a block: two forward, two backward


def bandwidth() -> float:
    """Bytes a second of a copy that fits no cache (read and written bytes both count)."""
    source = torch.ones(1 << 27)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * source.numel() * FLOAT / min(seconds(lambda: target.copy_(source)) for _ in range(5))


def product_bytes(nodes: int, edges: int) -> int:
    """ÂH: a row and an index an edge, an index and a written row a node, and the node's own row added to it."""
    return edges * (ROW + INDEX) + nodes * (INDEX + ROW) + nodes * 3 * ROW


def epoch_bytes(dataset: GraphDataset) -> float:
    """All blocks of TAPNet, forward and backward, on graphs that shrink to 0.8, 0.48 and 0.192 of their nodes.

    Edges are taken to shrink with the square of the nodes kept; the classifier and the optimiser are left out.
    """
    nodes, edges, total = float(dataset.num_nodes), float(dataset.num_edges), 0.0
    total += nodes * (CONVOLUTION + READOUT) * ROW + 2 * edges * (ROW + INDEX)  # the embedding
    for rate in (0.8, 0.6, 0.4):
        total += nodes * (CONVOLUTION + VOTES + SELECTION) * ROW + PRODUCTS * edges * (ROW + INDEX)
        nodes, edges = nodes * rate, edges * rate**2
        total += nodes * READOUT * ROW
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TAPNET_DATA"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tiny", action="store_true", help="small graphs: proves that it runs")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limit = bandwidth()
    print(f"memory bandwidth, {options.threads} threads: {limit / 1e9:.1f} GB/s")
    nodes = 1_000 if options.tiny else 1_000_000
    edge_index = torch.randint(nodes, (2, 10 * nodes))
    graph = GraphBatch.from_edge_index(torch.empty(nodes, 0), edge_index)
    h = torch.randn(nodes, CHANNELS)
    time = min(seconds(lambda: propagate(h, graph, "sum")) for _ in range(3))
    moved = product_bytes(nodes, len(graph.col))
    print(f"product, {nodes} nodes in random order: {moved / time / 1e9:.1f} GB/s, {moved / time / limit:.0%} of it")
    for name in ("MUTAG",) if options.tiny else ("REDDIT-BINARY", "COLLAB", "PROTEINS"):
        dataset = bench_dataset(name, options.data_dir and Path(options.data_dir))
        epoch = our_epoch(dataset)
        epoch()
        time, moved_in_epoch = min(seconds(epoch) for _ in range(2)), epoch_bytes(dataset)
        print(
            f"epoch of {dataset.name}: {moved_in_epoch / 1e9:.1f} GB counted, {moved_in_epoch / time / 1e9:.1f} GB/s, "
            f"{moved_in_epoch / time / limit:.0%} of it; {time / len(dataset) * 1e6:.0f} µs a graph"
        )


if __name__ == "__main__":
    main()
