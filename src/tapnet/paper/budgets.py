"""How much is run: folds, epochs and graphs."""

from __future__ import annotations

from dataclasses import dataclass

from tapnet.errors import SettingError

LARGE = ("DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI5K", "REDDIT-MULTI12K")  # minutes an epoch, not seconds, in all


@dataclass(frozen=True)
class Effort:
    """What is run on one data set."""

    epochs: int
    folds: int = 10  # that the data set is cut into
    run: int = 10  # of them, from the first
    graphs: int | None = None  # None: all


@dataclass(frozen=True)
class Budget:
    about: str
    small: Effort
    large: Effort

    def on(self, dataset: str) -> Effort:
        return self.large if dataset in LARGE else self.small


_FEW = Effort(epochs=2, folds=3, run=2, graphs=24)
BUDGETS = {
    "quick": Budget(
        "24 small graphs, 2 of 3 folds × 2 epochs: proves the path, its accuracies mean nothing", _FEW, _FEW
    ),
    "standard": Budget(
        "10 folds × 30 epochs; 2 folds × 5 epochs on DD, COLLAB and REDDIT", Effort(30), Effort(5, run=2)
    ),
    "paper": Budget("10 folds × 200 epochs", Effort(200), Effort(200)),
}


def find_budget(name: str) -> Budget:
    if name not in BUDGETS:
        raise SettingError(f"--budget is one of {', '.join(BUDGETS)}, not {name!r}")
    return BUDGETS[name]
