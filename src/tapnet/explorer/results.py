"""A stored comparison or run as the page shows it: table, verdict, settings, and pictures with their code."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tapnet.errors import DataError, TapnetError
from tapnet.experiments.comparison import COMPARISON, Comparison, load_comparison
from tapnet.experiments.cross_validate import CrossValidation
from tapnet.experiments.load_run import load_run
from tapnet.experiments.nested import NestedValidation
from tapnet.experiments.store import Store
from tapnet.inference.model_file import RUN
from tapnet.training.metrics import METRICS
from tapnet.viz import plot_comparison, plot_folds, plot_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

View = dict[str, Any]
MOST_ROWS = 500  # of a table
HEAD_OF_SETTINGS = ("system", "fold", "settings", "epochs", "validation", "use")


class PictureNotFoundError(DataError):
    """There is no picture of that name."""


class Picture(NamedTuple):
    """A picture, and the call that draws it."""

    title: str
    function: Callable[[str | Path], Figure]
    source: str

    @property
    def code(self) -> str:
        """The same call for a notebook."""
        name = self.function.__name__
        return f'from tapnet.viz import {name}\n\nfigure = {name}({self.source!r})\nfigure.savefig("{name[5:]}.svg")'


def has_results(path: str | Path) -> bool:
    """Whether there is a stored comparison or run, by its folder or the comparison's file."""
    path = Path(path)
    return (path.name == COMPARISON and path.is_file()) or any((path / name).is_file() for name in (COMPARISON, RUN))


class Results:
    """A comparison that :func:`tapnet.compare` stored, or a run of :func:`tapnet.cross_validate`.

    Args:
        path: The folder; or the file ``comparison.json``.
        pools: The user's own pooling layers that the runs may use, as :func:`load_run` takes them.
        convs: Convolutions likewise.

    Raises:
        DataError: There is no such thing in the folder, or it cannot be read.
    """

    def __init__(self, path: str | Path, pools: Iterable[type | str] = (), convs: Iterable[type | str] = ()) -> None:
        self.path, self._layers, self._lock = Path(path), (tuple(pools), tuple(convs)), threading.Lock()
        is_comparison = self.path.name == COMPARISON or (self.path / COMPARISON).is_file()
        self.shown: Comparison | CrossValidation = load_comparison(path) if is_comparison else self._load(self.path)
        self.view = lru_cache(None)(self._view)
        self.picture = lru_cache(None)(self._picture)

    def _load(self, folder: Path) -> CrossValidation:
        return load_run(folder, *self._layers)

    @cached_property
    def _runs(self) -> list[tuple[str, Path, CrossValidation]]:
        """Each system's name, folder and run, as far as they are there; a comparison shows no other folder's runs."""
        if isinstance(self.shown, CrossValidation):
            return [(self.shown.results[0].trial.model, self.path, self.shown)]
        folder, found = self.shown.folder or Path(), []
        for system in self.shown.systems:
            run = folder / (system.folder or "")
            if system.folder is not None and run.resolve().is_relative_to(folder.resolve()):
                try:
                    found.append((system.name, run, self._load(run)))
                except TapnetError:
                    continue  # the comparison itself is whole
        return found

    @cached_property
    def _pictures(self) -> dict[str, Picture]:
        found: dict[str, Picture] = {}
        if isinstance(self.shown, Comparison):
            found["comparison"] = Picture("Scores and differences", plot_comparison, str(self.path))
        for number, (name, folder, run) in enumerate(self._runs):
            if run.has_epochs and isinstance(self.shown, CrossValidation):
                found["run"] = Picture("Mean of the folds", plot_run, str(folder))
            if run.has_epochs:
                found[f"folds-{number}"] = Picture(f"{name}: every fold", plot_folds, str(folder))
        return found

    def _view(self) -> View:
        """Everything but the pictures, as values that JSON can hold."""
        shown = self.shown
        with self._lock:
            rows, settings = self._table(), list(self._settings())
            pictures = [{"name": k, "title": p.title, "code": p.code} for k, p in self._pictures.items()]
        notes = list(shown.notes)
        if isinstance(shown, Comparison):
            title, verdict = f"{shown.dataset}: {len(shown.systems)} systems", f"Verdict: {shown.verdict}."
        else:
            trial = shown.results[0].trial
            title, verdict = f"{trial.dataset}, {trial.model}: {shown.in_words}", shown.baseline_warning
            verdict = verdict or shown.baseline_in_words
            notes += [shown.machines_note] if shown.machines_note else []
        if len(settings) > MOST_ROWS:
            notes.append(f"The table of settings has the first {MOST_ROWS} of {len(settings)} rows.")
        return {
            "kind": "comparison" if isinstance(shown, Comparison) else "run",
            "title": title,
            "rules": shown.rules,
            "verdict": verdict,
            "notes": notes,
            "table": rows,
            "settings": [list(HEAD_OF_SETTINGS), *settings[:MOST_ROWS]],
            "pictures": pictures,
        }

    def _table(self) -> list[list[str]]:
        """The head, then a row for each system of a comparison, or for each fold of a run."""
        if isinstance(self.shown, Comparison):
            return [list(row) for row in self.shown.rows()]
        values = self.shown.to_dict()
        metrics = list(values["metrics"])
        head = ["fold", "seed", *metrics, *(["epoch"] if self.shown.has_epochs else [])]
        rows = [[_score(fold.get(key), key) for key in head] for fold in values["folds"]]
        means = [METRICS[name].in_table(found["mean"], found["std"]) for name, found in values["metrics"].items()]
        return [head, *rows, ["mean", "", *means, *([""] if self.shown.has_epochs else [])]]

    def _settings(self) -> Iterator[list[str]]:
        """What was tried for each fold with its validation score; or the settings that all folds share."""
        for name, folder, run in self._runs:
            if not isinstance(run, NestedValidation):
                given = _words(run.changed) or "as in its paper"
                epochs = str(run.results[0].trial.training.epochs) if run.has_epochs else ""
                yield [name, "all", given, epochs, "", "given"]
                continue
            chosen = {(fold.fold, fold.seed): fold for fold in run.outer}
            names = {key for fold in run.outer for key in fold.settings}
            tried = [one for one in Store(folder).results() if not one.trial.tested]
            for one in sorted(tried, key=lambda r: (r.trial.seed, r.trial.fold, -r.trial.training.epochs)):
                trial = one.trial
                every = {**trial.training.to_dict(), **trial.settings.to_dict()}
                settings = {key: every[key] for key in sorted(names & every.keys())}
                best = chosen.get((trial.fold, trial.seed))
                is_best = best is not None and all(
                    _cell(best.settings[key]) == _cell(settings[key]) for key in settings
                )
                score = f"{one.metric} {_score(one.reading.score, one.metric)}"
                epochs = str(trial.training.epochs) if run.has_epochs else ""
                yield [name, str(trial.fold), _words(settings), epochs, score, "chosen" if is_best else ""]

    def _picture(self, name: str) -> bytes:
        """A picture as SVG.

        Raises:
            PictureNotFoundError: There is none of that name.
        """
        with self._lock:  # matplotlib's settings belong to the process
            if name not in self._pictures:
                raise PictureNotFoundError(f"there is no picture {name[:60]!r} of these results")
            picture = self._pictures[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a picture lacks is seen
                figure, drawn = picture.function(picture.source), io.BytesIO()
            figure.savefig(drawn, format="svg")
        return drawn.getvalue()


def _words(settings: Any) -> str:
    return ", ".join(f"{key} {_cell(value)}" for key, value in settings.items())


def _score(value: Any, key: str) -> str:
    """A score with as many digits as its metric has elsewhere; other values as they are."""
    metric = METRICS.get(key)
    return _cell(value) if metric is None or value is None else f"{value:.{1 if metric.percent else 3}f}"


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_cell, value))
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
