"""The order of the graphs of an epoch: any order, and for data larger than memory one that reads files in stretches."""

from __future__ import annotations

import torch
from torch import Tensor

from tapnet.data.dataset import GraphDataset

WHOLE_BYTES = 1 << 31  # data sets of at most so many bytes are shuffled as a whole
BLOCK_BYTES, WINDOW_BLOCKS = 1 << 22, 64  # what is read in one stretch, and how many stretches are mixed


def shuffle(graphs: Tensor, dataset: GraphDataset, generator: torch.Generator) -> Tensor:
    """A random order of some graphs of a data set.

    Up to ``WHOLE_BYTES`` every order is as likely as any other. The graphs of a larger data set, which is mapped and
    may not fit into memory, are drawn in blocks of neighbours, whose bounds are others in each call; the graphs of
    ``WINDOW_BLOCKS`` random blocks are then mixed. So each graph comes once, graphs of all parts of the file meet in a
    window, and the file is read in stretches of about ``BLOCK_BYTES``.

    Args:
        graphs: ``[n]`` numbers of graphs.
        dataset: the data set they are in.
        generator: of the random numbers.

    Returns:
        ``[n]`` the same numbers in another order.
    """
    n = len(graphs)
    if dataset.nbytes <= WHOLE_BYTES or n == 0:
        return graphs[torch.randperm(n, generator=generator)]
    block = max(1, BLOCK_BYTES * len(dataset) // dataset.nbytes)
    shift = torch.randint(n, (), generator=generator)
    blocks = torch.randperm(-(-n // block), generator=generator)
    order = (blocks.unsqueeze(1) * block + torch.arange(block)).flatten()
    order = (order[order < n] + shift) % n
    windows = order.split(WINDOW_BLOCKS * block)
    mixed = [window[torch.randperm(len(window), generator=generator)] for window in windows]
    return graphs[torch.cat(mixed)]
