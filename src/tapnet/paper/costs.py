"""What pooling layers cost in TAPNet's architecture, as `benchmarks/pools.py` has measured it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tapnet.errors import DataError

COSTS = "costs.json"  # in the folder of results


@dataclass(frozen=True)
class PoolCost:
    """The cost of a training step of 64 graphs with a pooling layer.

    Attributes:
        pool: the layer's name.
        data: the name of the data set.
        ratios: what each layer keeps; None for the paper's.
        time: of a step, as a multiple of that of a step without pooling; the median of the rounds.
        fastest: of the rounds.
        slowest: of the rounds.
        memory: of the step at its peak, in bytes.
    """

    pool: str
    data: str
    ratios: tuple[float, ...] | None
    time: float
    fastest: float
    slowest: float
    memory: int

    @property
    def key(self) -> tuple[str, str, tuple[float, ...] | None]:
        """What it is of."""
        return self.pool, self.data, self.ratios


def load_costs(folder: Path) -> list[PoolCost]:
    """The costs that are stored in a folder of results; none where there is no such file.

    Args:
        folder: Of results.

    Raises:
        DataError: If the file cannot be read.
    """
    file = folder / COSTS
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["costs"] if file.exists() else []
        return [PoolCost(**{**row, "ratios": row["ratios"] and tuple(row["ratios"])}) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: cannot be read as costs of pooling layers ({error})") from None


def cost_columns(costs: Sequence[PoolCost], pools: Sequence[str | None]) -> tuple[list[str], list[list[str]]]:
    """Two columns for each data set: the time of a step and its memory.

    Args:
        costs: Of steps with the same ratios.
        pools: The layer of each row; None for what has none.

    Returns:
        The heads of the columns, and the cells of each row.
    """
    sets = list(dict.fromkeys(one.data for one in costs))
    known = {(one.pool, one.data): one for one in costs}
    heads = [f"{data}, {what}" for data in sets for what in ("time", "MB")]
    return heads, [[cell for data in sets for cell in _cells(known.get((pool or "", data)))] for pool in pools]


def cost_rows(costs: Sequence[PoolCost]) -> list[dict[str, Any]]:
    """The same for places in a text: `{step; tap; DD; half; time}`, or "usual" with the paper's ratios."""
    return [
        {"target": "step", "system": one.pool, "dataset": one.data, "protocol": "half" if one.ratios else "usual"}
        | {"time": one.time, "MB": one.memory / 1e6}
        for one in costs
    ]


def _cells(cost: PoolCost | None) -> tuple[str, str]:
    return ("–", "–") if cost is None else (f"{cost.time:.1f}", f"{cost.memory / 1e6:.0f}")
