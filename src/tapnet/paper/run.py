"""Reproducing tables and figures of the paper: trains what is not stored yet, then writes tables and pictures.

Nothing heavy is imported with this file: the processes for trials get ready while torch is being imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tapnet.errors import SettingError
from tapnet.paper.budgets import BudgetName
from tapnet.paper.selection import Protocols, select

if TYPE_CHECKING:
    from tapnet.experiments.backends.pool import OnEvent
    from tapnet.experiments.backends.ray import Cluster
    from tapnet.experiments.trial import Trial
    from tapnet.paper.tables import Section

Progress: TypeAlias = "Callable[[Sequence[Trial]], AbstractContextManager[OnEvent]]"

NO_PTC = "PTC is not here: name a folder that has it, as data_dir or in TAPNET_DATA."


@dataclass(frozen=True)
class ReproducedTable:
    """One table of the paper with our numbers: for each data set a section, and the same as rows of numbers."""

    name: str
    title: str
    sections: tuple[Section, ...]
    explanation: tuple[str, ...]  # what the columns mean, in paragraphs of Markdown
    rows: tuple[dict[str, Any], ...]  # as in the CSV file
    files: tuple[str, ...]  # names in the folder
    machines: tuple[str, ...] = ()  # that computed its numbers

    def __str__(self) -> str:
        """The table as Markdown."""
        from tapnet.paper.tables import markdown

        return "\n\n".join([f"# {self.title}", *self.explanation, markdown(self.sections)])


@dataclass(frozen=True)
class ReproducedFigure:
    """One illustration of the paper, and what is to be said of it or why it was not drawn."""

    name: str
    title: str
    text: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        """Its title and text as Markdown."""
        return "\n\n".join([f"# {self.title}", *filter(None, [self.text])])


@dataclass(frozen=True)
class Reproduction:
    """What :func:`reproduce` returns; printed, and shown in a notebook, as Markdown.

    Attributes:
        folder: Where trials, tables and pictures are.
        tables: Each table that was made.
        figures: Each illustration that was drawn.
        notes: By data set or figure, what a reader must know, such as that a data set is not here.
    """

    folder: Path
    tables: tuple[ReproducedTable, ...]
    figures: tuple[ReproducedFigure, ...]
    notes: dict[str, str]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every cell of every table as numbers, such as ``pandas.DataFrame`` takes them."""
        return [row for table in self.tables for row in table.rows]

    @property
    def machines(self) -> list[str]:
        """The machines that the numbers were computed on; "not recorded" for results of earlier versions."""
        return list(dict.fromkeys(words for table in self.tables for words in table.machines))

    @property
    def files(self) -> list[Path]:
        """The files that were written."""
        parts: list[ReproducedTable | ReproducedFigure] = [*self.tables, *self.figures]
        return [self.folder / file for part in parts for file in part.files]

    def __str__(self) -> str:
        """All tables and figures as Markdown."""
        return "\n\n".join(map(str, (*self.tables, *self.figures)))

    _repr_markdown_ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The numbers, files and notes as JSON takes them."""
        files = list(map(str, self.files))
        return {"cells": self.rows, "files": files, "notes": self.notes, "machines": self.machines}


@dataclass(frozen=True)
class MissingTrials:
    """What :func:`missing` returns; printed as a list.

    Attributes:
        folder: The folder that was looked at.
        trials: Trials that are not stored there.
        total: How many trials were asked for.
        networks: Trials whose network the figure `coarsening` needs.
        datasets: Data sets that are not here, so that their trials are not counted.
        notes: On data that are not here.
    """

    folder: Path
    trials: tuple[Trial, ...]
    total: int
    networks: tuple[Trial, ...]
    datasets: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """One line per system with its missing folds, and how many trials there are in all."""
        from tapnet.experiments.summary import in_words, system_in_words
        from tapnet.models.registry import find_model

        folds: dict[str, list[str]] = {}
        for trial in self.trials:
            epochs = f", {trial.training.epochs} epochs" if find_model(trial.model).fit is None else ""
            folds.setdefault(f"{trial.dataset}: {system_in_words(trial)}{epochs}", []).append(str(trial.fold))
        lines = [f"{system}, fold{'s' if len(of) > 1 else ''} {' '.join(of)}" for system, of in folds.items()]
        lines += [f"{trial.dataset}: {in_words(trial)}: its network, for coarsening" for trial in self.networks]
        if self.total or not self.networks:
            lines.append(f"{len(self.trials)} of {self.total} trials are missing in {self.folder}")
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        from tapnet.experiments.summary import in_words

        rows = [
            {"dataset": trial.dataset, "trial": in_words(trial), "epochs": trial.training.epochs, "key": trial.key}
            for trial in self.trials
        ]
        keys = [trial.key for trial in self.networks]
        return {"missing": rows, "networks": keys, "data_sets_not_here": list(self.datasets)}


def reproduce(
    target: str,
    *,
    datasets: str | Sequence[str] | None = None,
    systems: str | Sequence[str] | None = None,
    protocol: Protocols = "both",
    budget: BudgetName | None = None,
    folds: int | None = None,
    epochs: int | None = None,
    stored: bool = False,
    out: str | Path | None = None,
    data_dir: str | Path | None = None,
    jobs: int | None = None,
    device: str = "auto",
    reproducible: bool = False,
    cluster: Cluster | None = None,
    report: str | Path | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduces a table or figure of the paper: its number, ours by its protocol, ours by a fair one.

    Trials are stored in ``out``: nothing is computed twice, and the same call continues where it was stopped.

    Args:
        target: ``"table1"`` to ``"table5"``, ``"lambda"``, ``"norm"``, ``"pools"``, ``"connectivity"``,
            ``"overview"``, ``"coarsening"``, ``"voting"``, ``"architecture"``, or ``"all"``.
        datasets: Some of the target's data sets, such as ``["PTC", "MUTAG"]``; all by default.
        systems: Some of the target's rows, such as ``["TAPNet", "GIN"]``; all by default.
        protocol: ``"paper"``, ``"fair"`` or ``"both"``.
        budget: ``"quick"`` (a minute, proves the path), ``"standard"`` (an evening on two cores) or ``"paper"``
            (10 folds × 200 epochs). By default quick, or paper with ``stored``.
        folds: Run only so many of the folds; by default the budget's.
        epochs: Epochs per fold; by default the budget's.
        stored: Train nothing, and make the tables of what is stored.
        out: Folder of trials, tables and pictures; by default ``results/quick`` for the budget quick, else
            ``results``.
        data_dir: Folder with data sets; by default the environment's ``TAPNET_DATA``.
        jobs: Trials at a time; by default as many as there are cores.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        reproducible: Only arithmetic that every processor of a kind has, and only trials that were computed so; as for
            :func:`tapnet.cross_validate`.
        cluster: A Ray cluster to run the trials on.
        report: A Markdown file into which the tables are put as well, between its two marks. A text
            ``report.md`` in ``out`` becomes that file, with numbers in their places.
        progress: Called with the trials that are about to run; a context manager that gives a function which is
            called with each :class:`~tapnet.experiments.backends.pool.Event`. None shows bars on a terminal or in a
            notebook.

    Returns:
        The tables and figures, and the files that were written.

    Raises:
        SettingError: If there is no such target, data set, system, protocol, budget or device.
        DataError: If the report cannot take the tables.
        KeyboardInterrupt: If it was stopped early; what was trained is stored.

    Example:
        >>> from tapnet import paper
        >>> print(paper.reproduce("table2", datasets=["MUTAG"], systems=["TAPNet"]))  # doctest: +SKIP
    """
    budget = budget or ("paper" if stored else "quick")
    if jobs is not None and jobs < 1:
        raise SettingError(f"jobs is at least 1, not {jobs}")
    asked = select(target, datasets, systems, protocol, budget, folds, epochs)
    if report is not None:
        from tapnet.paper.page import split_page

        if not asked.tables:
            raise SettingError(f"{target} has no table to put into {report}")
        split_page(Path(report))  # a page that cannot take the tables is refused before anything is trained
    from tapnet.experiments.backends.processes import available_cores, get_ready

    jobs = jobs or available_cores()
    if jobs > 1 and asked.tables and cluster is None and not stored:
        get_ready()
    from tapnet.paper.session import Session

    call = Session(asked, _folder(out, budget), data_dir, device, reproducible)
    if not stored:
        call.train(jobs, cluster, progress)
    tables = call.tables()
    figures = tuple(call.figure(name, stored, progress) for name in asked.figures)
    if report is not None:
        call.write_report(Path(report), tables)
    notes = call.notes | {figure.name: figure.text for figure in figures if figure.text}
    return Reproduction(call.store.folder, tables, figures, notes)


def missing(
    target: str,
    *,
    datasets: str | Sequence[str] | None = None,
    systems: str | Sequence[str] | None = None,
    protocol: Protocols = "both",
    budget: BudgetName = "quick",
    folds: int | None = None,
    epochs: int | None = None,
    out: str | Path | None = None,
    data_dir: str | Path | None = None,
    device: str = "auto",
    reproducible: bool = False,
) -> MissingTrials:
    """Finds the trials of a table or figure that are not stored yet; trains nothing.

    Args:
        target: As for :func:`reproduce`, like all arguments.
        datasets: Some of the target's data sets.
        systems: Some of the target's rows.
        protocol: ``"paper"``, ``"fair"`` or ``"both"``.
        budget: ``"quick"``, ``"standard"`` or ``"paper"``.
        folds: Only so many of the folds.
        epochs: Epochs per fold.
        out: Folder of the trials.
        data_dir: Folder with data sets.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        reproducible: Only trials of the arithmetic that every processor of a kind has.

    Returns:
        The trials, which print as a list.

    Raises:
        SettingError: If there is no such target, data set, system, protocol, budget or device.

    Example:
        >>> from tapnet import paper
        >>> paper.missing("table2", datasets="MUTAG", systems="WL", protocol="fair", out="empty").total
        2
    """
    from tapnet.paper.session import Session

    asked = select(target, datasets, systems, protocol, budget, folds, epochs)
    call = Session(asked, _folder(out, budget), data_dir, device, reproducible)
    trials = [trial for work in call.plan for trial in work.trials]
    networks: list[Trial] = []
    notes = [work.note for work in call.plan if work.dataset is None]
    if "coarsening" in asked.figures:
        ptc, _, networks = call.coarsening_networks()
        notes += [] if ptc else [NO_PTC]
    return MissingTrials(
        folder=call.store.folder,
        trials=tuple(trial for trial in trials if call.store.load(trial) is None),
        total=len(trials),
        networks=tuple(networks),
        datasets=tuple(work.name for work in call.plan if work.dataset is None),
        notes=tuple(notes),
    )


def _folder(out: str | Path | None, budget: BudgetName) -> Path:
    return Path(out or ("results/quick" if budget == "quick" else "results"))
