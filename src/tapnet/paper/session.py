"""One call of ``reproduce`` or ``missing``: trains what is not stored yet, then makes tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DatasetNotFoundError
from tapnet.experiments.backends.pool import OnEvent, reporter, run_trials
from tapnet.experiments.backends.ray import Cluster
from tapnet.experiments.progress import progress_bars
from tapnet.experiments.run_trial import run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.summary import machines_of
from tapnet.experiments.trial import Device, Trial, TrialResult
from tapnet.files import write_atomically
from tapnet.machine import require_reproducible
from tapnet.models.registry import find_model
from tapnet.paper.cells import Cell, StoredResults, make_cells
from tapnet.paper.coarsening import coarsening_trials, draw_coarsening
from tapnet.paper.comparisons import (
    FOLDER,
    LINKED,
    TITLES,
    comparison_page,
    comparison_rows,
    comparison_section,
    load_comparisons,
)
from tapnet.paper.costs import cost_rows, load_costs
from tapnet.paper.illustrations import draw_architecture, draw_voting
from tapnet.paper.overview import draw_overview, effects
from tapnet.paper.page import TEXT, fill_values, insert_tables
from tapnet.paper.plan import DatasetPlan, make_plan, reference_to
from tapnet.paper.plots import draw_target
from tapnet.paper.run import NO_PTC, Progress, ReproducedFigure, ReproducedTable
from tapnet.paper.selection import Selection
from tapnet.paper.tables import (
    GLANCE,
    csv_rows,
    csv_text,
    explanation,
    make_sections,
    markdown,
    overview,
    without_known_data,
)
from tapnet.paper.targets import FIGURES, Target
from tapnet.paper.variants import TITLE, VARIED, variant_rows, variants_page
from tapnet.training.device import find_device

EXACT = 12  # digits


class Session:
    """One call: its data are loaded once, its trials made once, and stored results read once."""

    def __init__(
        self, asked: Selection, folder: Path, data_dir: str | Path | None, device: str, reproducible: bool
    ) -> None:
        self.asked, self.data_dir = asked, None if data_dir is None else Path(data_dir)
        self.reproducible = reproducible
        self.device: Device = find_device("cpu" if reproducible and device == "auto" else device)
        self.store: Store = Store(folder, every_model=False)
        efforts = {name: asked.effort(name) for target in asked.tables for name in target.datasets}
        self.effort_on_ptc = asked.effort("PTC")
        self.plan: list[DatasetPlan] = make_plan(
            asked.tables, efforts, asked.protocols, self.data_dir, self.device, reproducible
        )
        self._cells: dict[str, list[Cell]] = {}  # of each table that was made
        self.notes: dict[str, str] = {work.name: work.note for work in self.plan if work.note}

    @cached_property
    def results(self) -> dict[str, TrialResult]:
        """Everything that is stored, by the keys of the trials; read when it is first asked for."""
        return {result.trial.key: result for result in self.store.results()}

    def train(self, jobs: int, cluster: Cluster | None, progress: Progress | None) -> None:
        """Trains what is not stored yet."""
        if self.reproducible:
            require_reproducible()
        for work in self.plan:
            todo = [trial for trial in work.trials if trial.key not in self.results]
            if not todo:
                continue
            assert work.dataset is not None
            assert work.reference is not None
            for trial in {trial.model + repr(trial.settings): trial for trial in todo}.values():
                find_model(trial.model).prepare(work.dataset, trial.settings)  # the trials find it in the cache
            with _listening(progress, todo) as on_event:
                complete = run_trials(todo, work.reference, self.store, jobs=jobs, cluster=cluster, on_event=on_event)
            done = {trial.key: result for trial in todo if (result := self.store.load(trial)) is not None}
            self.results.update(done)
            if not complete:
                left = sum(trial.key not in self.results for work in self.plan for trial in work.trials)
                raise KeyboardInterrupt(f"stopped with {left} trials to do")

    @cached_property
    def _stored(self) -> tuple[StoredResults, dict[str, str], dict[str, int]]:
        """The results that count; by data set the checksum of the copy that is here, and how many graphs it has."""
        results = [self.results[key] for key in sorted(self.results)]
        stored = StoredResults(results, self.asked.epochs, self.asked.folds, self.reproducible)
        checksums, graphs = dict[str, str](), dict[str, int]()
        for work in self.plan:
            if work.dataset is None:
                continue
            copies = stored.checksums(work.name)
            if work.dataset.checksum in copies or not copies:
                checksums[work.name], graphs[work.name] = work.dataset.checksum, len(work.dataset)
            else:
                note = f"These trials are of another copy of {work.name}, or a part of it, than is here."
                self.notes[work.name] = note
        return stored, checksums, graphs

    def tables(self) -> tuple[ReproducedTable, ...]:
        """Makes and writes the tables and their pictures."""
        return tuple(self._table(target, *self._stored) for target in self.asked.tables) if self.asked.tables else ()

    def write_report(self, report: Path, tables: Sequence[ReproducedTable]) -> None:
        """Puts the tables in short into a page, with stored comparisons.

        Where the folder of results has a text for it (`page.TEXT`), that becomes the page, with numbers in place.
        """
        _, checksums, _ = self._stored
        pages, rows, known = list[str](), list[dict[str, Any]](), set[str]()
        for target, table in zip(self.asked.tables, tables, strict=True):
            glance = [without_known_data(one, known) for one in table.sections if one.title == GLANCE]
            glance = [replace(one, title="") for one in glance]
            detail = f"[Each data set, with deviations]({self.store.folder.name}/{table.name}.md).\n"
            shown = markdown(glance or table.sections, level=3) + "\n" if target.on_page else ""
            pages.append(f"## {table.title}\n\n{shown}{detail}")
            rows += csv_rows(target, self._cells[target.name], EXACT)
        everything = list(self.results.values())
        if variants := variants_page(everything, checksums):
            pages.append(f"## {TITLE}\n\n{self._written('variants.md', variants)}")
        rows += [row for name in VARIED for row in variant_rows(everything, name, checksums.get(name))]
        costs = load_costs(self.store.folder)
        for name in TITLES:
            found = load_comparisons(self.store.folder, name)
            if section := comparison_section(name, found, brief=True, costs=costs):
                whole = self._written(f"{FOLDER}/{name}.md", comparison_page(name, found, costs))
                shown = markdown([section]) if name not in LINKED else f"## {section.title}\n"
                pages.append(f"{shown}\n{whole}")
            rows += comparison_rows(name, found)
        rows += cost_rows(costs)
        text = self.store.folder / TEXT
        page = insert_tables(text if text.exists() else report, explanation(self.asked.protocols), pages)
        write_atomically(report, (fill_values(page, rows) if text.exists() else page).encode())

    def _written(self, file: str, text: str) -> str:
        """Writes a page into the folder of results; returns a line that refers to it."""
        write_atomically(self.store.folder / file, text.encode())
        return f"[In full]({self.store.folder.name}/{file}).\n"

    def _table(
        self, target: Target, stored: StoredResults, checksums: dict[str, str], graphs: dict[str, int]
    ) -> ReproducedTable:
        self._cells[target.name] = cells = make_cells(target, self.asked.protocols, stored, checksums)
        table = ReproducedTable(
            name=target.name,
            title=target.title,
            sections=(*overview(target, cells, graphs), *make_sections(target, cells, self.notes, graphs)),
            explanation=() if target.name == "connectivity" else tuple(explanation(self.asked.protocols)),
            rows=tuple(csv_rows(target, cells)),
            machines=tuple(machines_of(result for cell in cells for result in cell.results)),
            files=(f"{target.name}.md", f"{target.name}.csv", *draw_target(target, cells, self.store.folder)),
        )
        write_atomically(self.store.folder / table.files[0], str(table).encode())
        write_atomically(self.store.folder / table.files[1], csv_text(table.rows).encode())
        return table

    def figure(self, name: str, stored: bool, progress: Progress | None) -> ReproducedFigure:
        """Draws an illustration."""
        if name == "coarsening":
            files, text = self._coarsening(stored, progress)
        elif name == "overview":
            results, checksums, _ = self._stored
            nested = load_comparisons(self.store.folder, "nested")
            files, text = draw_overview(effects(results, checksums, nested), self.store.folder), ""
        else:
            draw = {"voting": draw_voting, "architecture": draw_architecture}[name]
            files, text = draw(self.store.folder), ""
        return ReproducedFigure(name, FIGURES[name], text, tuple(files))

    def _coarsening(self, stored: bool, progress: Progress | None) -> tuple[list[str], str]:
        """Trains the two networks that it shows, if need be; the files, and a text."""
        dataset, trials, todo = self.coarsening_networks()
        if dataset is None:
            return [], NO_PTC
        if todo and stored:
            without = f"Its two networks of {self.effort_on_ptc.epochs} epochs are not stored"
            return [], f"{without}; reproducing coarsening with the budget paper trains them."
        with _listening(progress, todo) as on_event:
            for trial in todo:
                with self.store.claim(trial, wait=True):
                    if not self.store.model_file(trial).exists():  # another program may have trained it meanwhile
                        run_trial(trial, dataset, self.store, progress=reporter(trial, on_event))
        files, sentences = draw_coarsening(self.store, dataset, trials)
        return files, "\n".join(sentences)

    def coarsening_networks(self) -> tuple[GraphDataset | None, list[Trial], list[Trial]]:
        """PTC, if it is here, the trials whose networks the figure of coarsened graphs shows, and those not stored."""
        reference = reference_to("PTC", self.data_dir)
        loaded = [work.dataset for work in self.plan if work.reference == reference]
        try:
            dataset = loaded[0] if loaded and loaded[0] is not None else reference.load()
        except DatasetNotFoundError:
            return None, [], []
        trials = coarsening_trials(dataset, self.effort_on_ptc, self.device, self.reproducible)
        return dataset, trials, [trial for trial in trials if not self.store.model_file(trial).exists()]


def _listening(progress: Progress | None, trials: Sequence[Trial]) -> AbstractContextManager[OnEvent]:
    return (progress or progress_bars)(trials)
