"""Random batches of small graphs in PyG's tensors."""

import torch
from hypothesis import strategies as st
from torch_geometric.utils import to_undirected

from tests.helpers import dense

CHANNELS = 5


def random_batch(sizes, density, seed, directed=True):
    """x, edge_index (with self-loops and repeated columns, in any order), batch, in float64."""
    generator = torch.Generator().manual_seed(seed)
    columns, batch, start = [], [], 0
    for g, n in enumerate(sizes):
        count = int(density * n) if n else 0
        columns.append(torch.randint(0, n, (2, count), generator=generator) + start)
        batch += [g] * n
        start += n
    edge_index = torch.cat(columns, dim=1) if columns else torch.zeros(2, 0, dtype=torch.long)
    if not directed:
        edge_index = to_undirected(edge_index, num_nodes=start)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=generator)]
    x = torch.randn(start, CHANNELS, generator=generator, dtype=torch.float64)
    return x, edge_index, torch.tensor(batch)


batches = st.builds(
    random_batch,
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.floats(0, 4),
    st.integers(0, 10**6),
    st.booleans(),
)


def graphs_of(x, edge_index, batch):
    """Each graph alone: its node numbers, features, and adjacency matrix."""
    for g in range(int(batch.max()) + 1):
        nodes = (batch == g).nonzero()[:, 0]
        number = torch.full((len(batch),), -1)
        number[nodes] = torch.arange(len(nodes))
        inside = batch[edge_index[0]] == g
        yield nodes, x[nodes], dense.adjacency(len(nodes), number[edge_index[:, inside]])
