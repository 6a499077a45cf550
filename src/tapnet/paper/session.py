"""One call of ``reproduce`` or ``missing``: trains what is not stored yet, then makes tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path

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
from tapnet.paper.cells import StoredResults, make_cells
from tapnet.paper.coarsening import coarsening_trials, draw_coarsening
from tapnet.paper.illustrations import draw_architecture, draw_voting
from tapnet.paper.page import insert_tables
from tapnet.paper.plan import DatasetPlan, make_plan, reference_to
from tapnet.paper.plots import draw_target
from tapnet.paper.run import NO_PTC, Progress, ReproducedFigure, ReproducedTable
from tapnet.paper.selection import Selection
from tapnet.paper.tables import csv_rows, csv_text, explanation, make_sections, markdown, overview
from tapnet.paper.targets import FIGURES, Target
from tapnet.training.device import find_device


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

    def tables(self, report: Path | None) -> tuple[ReproducedTable, ...]:
        """Makes and writes the tables and their pictures."""
        results = [self.results[key] for key in sorted(self.results)] if self.asked.tables else []
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
        made = tuple(self._table(target, stored, checksums, graphs) for target in self.asked.tables)
        if report is not None:
            pages = [f"## {table.title}\n\n{markdown(table.sections, level=3)}" for table in made]
            write_atomically(report, insert_tables(report, explanation(self.asked.protocols), pages).encode())
        return made

    def _table(
        self, target: Target, stored: StoredResults, checksums: dict[str, str], graphs: dict[str, int]
    ) -> ReproducedTable:
        cells = make_cells(target, self.asked.protocols, stored, checksums)
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
