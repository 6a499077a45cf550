"""Bars that follow the trials of a run, on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TimeRemainingColumn

from tapnet.experiments.backends.pool import Event, OnEvent
from tapnet.experiments.summary import system_in_words, system_name
from tapnet.experiments.trial import Trial
from tapnet.progress import is_watched as is_watched
from tapnet.progress import progress_display
from tapnet.training.metrics import METRICS


def label_of(event: Event, one_system: bool, several_seeds: bool = False) -> str:
    """What an event is about, in a few words; the system and the seed only where there are others."""
    trial = event.trial
    label = f"seed {trial.seed}, fold {trial.fold}" if several_seeds else f"fold {trial.fold}"
    if not trial.tested:
        label = f"validation of fold {trial.fold}"
    elif not one_system:
        label = f"{system_in_words(trial)}, {label}"
    if event.epoch == 0:
        return f"{label}, in another program"
    return f"{label} on {event.where}" if event.where else label


def score_of(event: Event) -> str:
    """What the protocol would report now, and by which metric: at the end of a trial the first that was asked for."""
    metric, score = (event.metric, event.score) if event.metric else (event.trial.test_metric, event.accuracy)
    words = METRICS[metric].in_words(score)
    return f"accuracy {words}" if metric == "accuracy" else words


def have_several_seeds(trials: Sequence[Trial]) -> bool:
    """Whether trials differ in their seed."""
    return len({t.seed for t in trials}) > 1


def is_one_system(trials: Sequence[Trial]) -> bool:
    """Whether trials differ only in their data set or fold."""
    return len({t.model + repr(t.settings) + t.protocol for t in trials}) == 1


@contextmanager
def progress_bars(trials: Sequence[Trial], done: int = 0, title: str = "") -> Iterator[OnEvent]:
    """Bars for the whole run and for each trial under way, if somebody is there to see them.

    Args:
        trials: all trials of the run.
        done: how many of them are stored already.
        title: what they are, in a few words.

    Yields:
        What is to be called with every `Event`.
    """
    if not trials or not is_watched():
        yield lambda _: None
        return
    one_system = is_one_system(trials) and trials[0].tested
    several_seeds = have_several_seeds(trials)
    total = sum(t.training.epochs for t in trials)
    note = "{task.fields[note]}"
    columns = ("{task.description}", BarColumn(bar_width=None), MofNCompleteColumn(), note, TimeRemainingColumn())
    with progress_display(*columns, expand=True) as progress:
        words = [
            trials[0].dataset,
            *([system_name(trials[0])] if one_system or title else []),
            title or "epochs in all",
        ]
        whole = progress.add_task(escape(", ".join(words)), total=total, note="", completed=0)
        bars: dict[str, TaskID] = {}
        epochs_done = {t.key: 0 for t in trials}
        finished = done

        def show(event: Event) -> None:
            nonlocal finished
            key, epochs = event.trial.key, event.trial.training.epochs
            if key not in bars:
                bars[key] = progress.add_task("", total=epochs, note="")
            epochs_done[key] = event.epoch
            label, note = escape(label_of(event, one_system, several_seeds)), score_of(event) if event.epoch else ""
            progress.update(bars[key], description=label, completed=event.epoch, note=note)
            if event.epoch == epochs:
                finished += 1
                progress.remove_task(bars[key])
            note = f"{finished} of {len(trials)} {'folds' if one_system else 'trials'}"
            progress.update(whole, completed=done * epochs + sum(epochs_done.values()), note=note)

        yield show
