"""The order of an epoch: a permutation, and for large data one that reads the file in stretches."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet import load_dataset
from tapnet.training import shuffle as module
from tapnet.training.shuffle import shuffle


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_small_data_are_shuffled_as_a_whole():
    mutag, graphs = load_dataset("MUTAG"), torch.arange(3, 150)
    assert torch.equal(shuffle(graphs, mutag, seeded(1)), graphs[torch.randperm(147, generator=seeded(1))])


@given(st.integers(0, 188), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=40)
def test_windows_of_blocks_are_a_permutation(n, block, window, seed):
    mutag, graphs = load_dataset("MUTAG"), torch.arange(n)
    with_sizes = {"WHOLE_BYTES": 0, "BLOCK_BYTES": -(-block * mutag.nbytes // len(mutag)), "WINDOW_BLOCKS": window}
    before = {name: getattr(module, name) for name in with_sizes}
    try:
        for name, value in with_sizes.items():
            setattr(module, name, value)
        order = shuffle(graphs, mutag, seeded(seed))
        assert order.sort().values.tolist() == graphs.tolist()
        assert torch.equal(order, shuffle(graphs, mutag, seeded(seed)))
        for some in order.split(block * window):  # blocks can be torn by the ends of the graphs and of a window
            stretches = (some.sort().values.diff() > 1).sum() + 1 if len(some) else 0
            assert stretches <= window + 3
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def test_graphs_of_every_part_meet_in_a_window(monkeypatch):
    mutag, graphs = load_dataset("MUTAG"), torch.arange(188)
    monkeypatch.setattr(module, "WHOLE_BYTES", 0)
    monkeypatch.setattr(module, "BLOCK_BYTES", 2 * mutag.nbytes // 188)
    monkeypatch.setattr(module, "WINDOW_BLOCKS", 30)
    orders = torch.stack([shuffle(graphs, mutag, seeded(seed)) for seed in range(400)])
    place = orders.argsort(dim=1).double().mean(dim=0)  # of each graph, on average
    assert (place - 93.5).abs().max() < 5 * (188**2 / 12 / 400) ** 0.5
