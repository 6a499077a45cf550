"""What is asked for: which tables and figures, on which data sets, with which systems, and how much is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tapnet.data.catalog import CATALOG, find_entry
from tapnet.errors import SettingError, did_you_mean
from tapnet.paper.budgets import Budget, BudgetName, Effort, find_budget
from tapnet.paper.targets import FIGURES, TARGETS, Target

if TYPE_CHECKING:
    from tapnet.training.protocol import Protocol

Protocols = Literal["paper", "fair", "both"]
_PROTOCOLS: dict[Protocols, tuple[Protocol, ...]] = {"paper": ("paper",), "fair": ("fair",), "both": ("paper", "fair")}


@dataclass(frozen=True)
class Selection:
    """Targets narrowed to some data sets and systems, the protocols, and the budget."""

    tables: tuple[Target, ...]
    figures: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    budget: Budget
    folds: int | None
    epochs: int | None

    def effort(self, dataset: str) -> Effort:
        """How much is run on a data set."""
        effort = self.budget.effort(dataset)
        if self.folds is not None and self.folds > effort.folds:
            raise SettingError(f"folds is at most {effort.folds}, not {self.folds}")
        return replace(effort, folds_to_run=self.folds or effort.folds_to_run, epochs=self.epochs or effort.epochs)


def select(
    target: str,
    datasets: str | Sequence[str] | None = None,
    systems: str | Sequence[str] | None = None,
    protocol: Protocols = "both",
    budget: BudgetName = "quick",
    folds: int | None = None,
    epochs: int | None = None,
) -> Selection:
    """Checks and narrows what is asked for; the arguments are those of :func:`tapnet.paper.reproduce`."""
    for name, count in (("folds", folds), ("epochs", epochs)):
        if count is not None and count < 1:
            raise SettingError(f"{name} is at least 1, not {count}")
    names, chosen = find_targets(target), find_budget(budget)
    if protocol not in _PROTOCOLS:
        near = did_you_mean(protocol, _PROTOCOLS)
        raise SettingError(f"protocol is one of {', '.join(_PROTOCOLS)}, not {protocol!r}{near}")
    wanted, words = _find_datasets(datasets), _words(systems)
    if words is not None and target in FIGURES:
        raise SettingError(f"{target} has no systems to choose from")
    several = len(names) > 1
    narrowed = [_narrow(TARGETS[name], wanted, words, several) for name in names if name in TARGETS]
    tables = tuple(target for target in narrowed if target.datasets and target.rows)
    figures = tuple(name for name in names if name in FIGURES)
    return Selection(tables, figures, _PROTOCOLS[protocol], chosen, folds, epochs)


def find_targets(name: str) -> list[str]:
    """Finds the names of the tables and figures that a word stands for: one of them, or "all"."""
    known = [*TARGETS, *FIGURES]
    if name == "all":
        return known
    if name not in known:
        raise SettingError(f"a target is one of {', '.join(known)} or all, not {name!r}{did_you_mean(name, known)}")
    return [name]


def _words(names: str | Sequence[str] | None) -> list[str] | None:
    """Either "PTC, MUTAG" or ["PTC", "MUTAG"]; None: all."""
    return None if names is None else [n.strip() for n in (names.split(",") if isinstance(names, str) else names)]


def _find_datasets(names: str | Sequence[str] | None) -> list[str] | None:
    """The paper's names of the data sets; None: all."""
    words = _words(names)
    entries = {word: find_entry(word) for word in words or ()}
    for word, entry in entries.items():
        if entry is None:
            has, near = ", ".join(CATALOG), did_you_mean(word, CATALOG)
            raise SettingError(f"the paper has no data set {word!r}; it has {has}{near}")
    return None if words is None else [entry.name for entry in entries.values() if entry]


def _narrow(target: Target, datasets: list[str] | None, systems: list[str] | None, several: bool) -> Target:
    """The target on some data sets and with some of its rows."""
    if datasets is not None:
        # A single target may be asked for on any data set, also where the paper shows none.
        chosen = [name for name in target.datasets if name in datasets] if several else dict.fromkeys(datasets)
        target = replace(target, datasets=tuple(chosen))
    if systems is not None:
        words = {word.lower() for word in systems}
        labels = {name.lower() for row in target.rows for name in row.names}
        every = [row for other in TARGETS.values() for row in other.rows] if several else target.rows
        known = [name for row in every for name in (row.model, *row.names)]
        for word in sorted(words - {name.lower() for name in known}):
            has, near = ", ".join(dict.fromkeys(row.label for row in every)), did_you_mean(word, known)
            raise SettingError(f"{'all' if several else target.name} has no {word!r}; it has {has}{near}")
        rows = tuple(r for r in target.rows if words & {name.lower() for name in r.names} or r.model in words - labels)
        target = replace(target, rows=rows)
    return target
