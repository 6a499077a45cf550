"""How much is run for a table: folds, epochs and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tapnet.errors import SettingError, did_you_mean

BudgetName = Literal["quick", "standard", "paper"]
LARGE = ("DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI5K", "REDDIT-MULTI12K")  # an epoch takes minutes in all


@dataclass(frozen=True)
class Effort:
    """How much is run on one data set."""

    epochs: int
    folds: int = 10  # that the data set is split into
    folds_to_run: int = 10  # from the first
    graphs: int | None = None  # None: all


@dataclass(frozen=True)
class Budget:
    """How much is run on small and on large data sets."""

    description: str
    small: Effort
    large: Effort

    def effort(self, dataset: str) -> Effort:
        """How much is run on a data set, by its name."""
        return self.large if dataset in LARGE else self.small


_FEW = Effort(epochs=2, folds=3, folds_to_run=2, graphs=24)
BUDGETS: dict[BudgetName, Budget] = {
    "quick": Budget(
        "24 small graphs, 2 of 3 folds × 2 epochs: proves the path, its accuracies mean nothing", _FEW, _FEW
    ),
    "standard": Budget(
        "10 folds × 30 epochs; 2 folds × 5 epochs on DD, COLLAB and REDDIT", Effort(30), Effort(5, folds_to_run=2)
    ),
    "paper": Budget("10 folds × 200 epochs", Effort(200), Effort(200)),
}


def find_budget(name: BudgetName) -> Budget:
    """Finds a budget by its name.

    Raises:
        SettingError: If there is none of that name.
    """
    if name not in BUDGETS:
        raise SettingError(f"budget is one of {', '.join(BUDGETS)}, not {name!r}{did_you_mean(name, BUDGETS)}")
    return BUDGETS[name]
