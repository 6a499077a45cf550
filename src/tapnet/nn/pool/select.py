"""Keeping some nodes of each graph: how many, which, and the coarsened graphs. Every selecting pooling ends here."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import NamedTuple

from torch import Tensor

from tapnet._loops.ranges import offsets
from tapnet._loops.segments import kept_ptr
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.ops.segments import top_k


class Pooled(NamedTuple):
    """A coarsened batch."""

    x: Tensor  # [K, d]
    batch: GraphBatch | DenseBatch
    perm: Tensor | None = None  # [K] the kept nodes, ascending; None where nodes are merged, not kept
    score: Tensor | None = None  # [K] their scores
    loss: Tensor | None = None  # to be added while training


def best_nodes(score: Tensor, ratio: float | int, batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """The nodes of each graph with the highest scores, ascending, and where each graph's begin."""
    if isinstance(ratio, float):
        ptr = kept_ptr(batch.ptr, *_exact(ratio).as_integer_ratio())
    else:
        ptr = offsets(kept_nodes(ratio, batch.nodes_per_graph))
    return top_k(score.detach(), ptr, batch.ptr), ptr


def kept_nodes(ratio: float | int, sizes: Tensor) -> Tensor:
    """[B] n → [B] k, exactly: ⌈ratio · n⌉ in whole numbers, since floats get 0.6 · 25 wrong."""
    if isinstance(ratio, int):
        return sizes.clamp(max=ratio)
    exact = _exact(ratio)
    return -(-sizes * exact.numerator // exact.denominator)


@cache
def _exact(ratio: float) -> Fraction:
    """The fraction that was meant: 0.8 is 4/5, also where it comes out of single precision as 0.800000012."""
    return max(Fraction(str(ratio)).limit_denominator(10**6), Fraction(1, 10**9))


def check_ratio(ratio: float | int) -> float | int:
    """The ratio as Python's own float or int, if it can be one."""
    whole = isinstance(ratio, Integral)
    if isinstance(ratio, bool) or not isinstance(ratio, Real) or not (ratio >= 1 if whole else 0 < ratio <= 1):
        raise SettingError(f"ratio is a float above 0 and at most 1, or a whole number of nodes, not {ratio!r}")
    return int(ratio) if whole else float(ratio)
