"""What commands show on a terminal: tables on standard output, progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tapnet.cli.app import print_error
from tapnet.experiments.backends.pool import Event, OnEvent
from tapnet.experiments.progress import have_several_seeds, is_one_system, is_watched, label_of, progress_bars, score_of
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial
from tapnet.training.baseline import baseline_in_words
from tapnet.training.metrics import METRICS

if TYPE_CHECKING:
    from tapnet.experiments.cross_validate import CrossValidation
    from tapnet.experiments.tune import Tuning
    from tapnet.paper.numbers import Printed
    from tapnet.paper.tables import Section


@contextmanager
def training_progress(trials: Sequence[Trial], done: int) -> Iterator[OnEvent]:
    """Bars where somebody watches; elsewhere one line per fold."""
    if trials and is_watched():
        with progress_bars(trials, done) as show:
            yield show
    else:
        yield fold_lines(is_one_system(trials), have_several_seeds(trials))


def fold_lines(one_system: bool = True, several_seeds: bool = False) -> OnEvent:
    """Prints one line per fold on standard error; the system and the seed only where there are others."""

    def show(event: Event) -> None:
        about = f"{event.trial.dataset} {label_of(event, one_system, several_seeds)}"
        if event.epoch == 0:
            print_error(f"{about}: waiting for it")
        if event.epoch == event.trial.training.epochs:
            print_error(f"{about}: {score_of(event)}")

    return show


def _table(*columns: str, gap: int = 2) -> Table:
    """An empty table without lines; a column whose title begins with ">" is aligned right and never wrapped."""
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for title in columns:
        right = title.startswith(">")
        table.add_column(escape(title.removeprefix(">")), justify="right" if right else "left", no_wrap=right)
    return table


def print_summary(run: CrossValidation, paper: Printed | None, final: Mapping[str, Any] | None) -> None:
    """The folds, the accuracy with its protocol, the other readings, and where things are stored."""
    # In a pipe, a sentence is a line.
    console = Console(emoji=False, highlight=False, soft_wrap=not sys.stdout.isatty())
    by_epoch, nested = run.has_epochs, _outer_folds(run)
    columns = {name: run.scores_by(name) for name in run.metrics or [run.metric]}
    last = run.results[0].trial.test_metric
    last_title = ">last epoch" if last in columns else f">{last}, last epoch"
    several = len(run.seeds) > 1
    which = [">seed", ">fold"] if several else [">fold"]
    table = _table(*which, *(f">{name}" for name in columns), *((">epoch", last_title) if by_epoch else ()), ">seconds")
    for i, r in enumerate(run.results if nested is None else ()):
        scores = (METRICS[name].digits(values[i]) for name, values in columns.items())
        epochs = (str(r.reading.epoch), METRICS[last].digits(r.curves[f"test_{last}"][-1])) if by_epoch else ()
        diverged = ["[red]diverged[/]"] if r.diverged else []
        number = [str(r.trial.seed), str(r.trial.fold)] if several else [str(r.trial.fold)]
        table.add_row(*number, *scores, *epochs, f"{r.seconds:.1f}", *diverged)
    console.print(nested if nested is not None else table)
    printed = ""
    if paper and "accuracy" in columns:
        printed = f"; the paper prints {paper} %, over 10 folds, and does not name its protocol"
    console.print(f"\n[bold]{escape(repr(run))}[/]{printed}")
    if run.by_target:
        console.print(escape(f"By target: {run.by_target_in_words}"))
    if by_epoch and run.other_readings:
        metric = METRICS[run.metric]
        others = "; ".join(f"{words}: {metric.in_words(*both)}" for words, both in run.other_readings.items())
        of, known = "of the same curves", " A best test epoch is known only afterwards."
        of, known = (of, known) if nested is None else ("of the same networks", "")
        console.print(f"[dim]Other readings {of}: {others}.{known}[/]")
    if run.machines_note:
        console.print(escape(run.machines_note))
    what = "Settings, results and models" if by_epoch else "Settings and results"
    console.print(f"[dim]{what}: {escape(str(run.folder))}[/]")
    if final:
        text = "Final model: {file}, trained on all {graphs} graphs; number of epochs: {epochs}, {epochs_rule}"
        if final["members"] > 1:
            text = "Final model: {file}, the mean of the {members} folds' models"
        console.print(escape(f"{text.format_map(final)}; {final['bytes'] / 1e6:.1f} MB"))


def _outer_folds(run: CrossValidation) -> Table | None:
    """The outer folds of a nested run: what was chosen for each, and the scores of its trainings; None for others."""
    outer = getattr(run, "outer", None)
    if outer is None:
        return None
    several, metric = len(run.seeds) > 1, METRICS[run.metric]
    table = _table(*([">seed"] if several else []), ">fold", f">{run.metric}", "its runs", ">validation", "chosen")
    every = iter(Summary.scores_by(run, run.metric))
    for fold, score in zip(outer, run.scores, strict=True):
        runs = " ".join(metric.digits(next(every)) for _ in fold.results)
        by = "" if fold.validation is None else metric.digits(fold.validation)
        number = [str(fold.seed), str(fold.fold)] if several else [str(fold.fold)]
        table.add_row(*number, metric.digits(score), runs, by, _settings_in_words(fold.settings))
    return table


def _settings_in_words(settings: Mapping[str, Any]) -> str:
    return escape(", ".join(f"{k} {list(v) if isinstance(v, tuple) else v}" for k, v in settings.items()))


def print_tuning(found: Tuning) -> None:
    """The configurations that were tried, the best first, and where the settings are."""
    console = Console(emoji=False, highlight=False, soft_wrap=not sys.stdout.isatty())
    by_epoch = found.epochs is not None
    table = _table(">config", f">{found.metric}", *([">epochs"] if by_epoch else []), "settings")
    for row in found.trials:
        epochs, score = [str(row["epochs"])] if by_epoch else [], METRICS[found.metric].digits(row["score"])
        table.add_row(str(row["config"]), score, *epochs, _settings_in_words(row["settings"]))
    console.print(table)
    console.print(f"\n[bold]{escape(repr(found))}[/]")
    if found.file is not None:
        use = f"`tapnet train {found.dataset} --settings FILE` uses them"
        console.print(f"[dim]Settings: {escape(str(found.file))}; {escape(use)}[/]")


MOST_SHOWN = 12  # classes that are counted in a line


def print_datasets(rows: list[dict[str, Any]], with_notes: bool, said: Collection[str] = ()) -> None:
    """One row per data set, and perhaps what there is to know of each and was not said before."""
    table = _table("data set", "found", ">graphs", ">nodes", ">edges", ">cls", "features", "as paper")
    table.columns[0].no_wrap = table.columns[6].no_wrap = True
    table.columns[1].overflow = "fold"
    for row in rows:
        if row["found"] is None:
            problem = f"[red]{escape(row['problem'])}[/]" if row.get("problem") else "[dim]not here[/]"
            table.add_row(row["name"], problem, *["[dim]–[/]"] * 6)
            continue
        differs = row["differs_from_paper"]
        verdict = "[dim]not in it[/]" if differs is None else ("[yellow]" + "; ".join(differs) if differs else "yes")
        means = (f"{row[key]:.2f}" for key in ("mean_nodes", "mean_edges"))
        features = f"{row['num_features']} {row['features']}"
        name, place = escape(row["name"]), escape(row["place"])
        classes = str(row["classes"]) if row["task"] == "classification" else "[dim]–[/]"
        table.add_row(name, place, str(row["graphs"]), *means, classes, features, verdict)
    console = Console(emoji=False)
    console.print(table)
    for row in rows if with_notes else ():
        text = escape("; ".join([*_about_data(row), *(note for note in row["notes"] if note not in said)]))
        console.print(f"[dim]{escape(row['name'])}: {text}[/]", highlight=False, soft_wrap=not sys.stdout.isatty())
    if any(row["found"] is None and not row.get("problem") for row in rows):
        console.print(
            "[dim]Not here: name a folder that has it with --data-dir or TAPNET_DATA, or download it with "
            "--download.[/]"
        )


def _about_data(row: Mapping[str, Any]) -> list[str]:
    """The balance of the classes, the degrees, and what nodes and edges carry."""
    counts, (fewest, most) = row["class_counts"], row["degrees"]
    about = row["task"] or "no target"
    if counts:
        few = list(counts.items())[:MOST_SHOWN]
        more = ["…"] if len(counts) > len(few) else []
        shown = ", ".join([*(f"{name} ({count})" for name, count in few), *more])
        about = f"classes {shown}; the largest class has {row['largest_class']} % of the graphs"
    carried = {"nodes": row["nodes_carry"], "edges": row["edges_carry"]}
    words = [f"{what} have {', '.join(of) or 'no data'}" for what, of in carried.items()]
    return [about, f"degrees {fewest} to {most}", *words]


def print_models(rows: Sequence[Mapping[str, Any]], in_full: bool) -> None:
    """A table of all, or everything about some."""
    console = Console(emoji=False, highlight=False)
    if not in_full:
        table = _table("name", "system", "year", ">parameters", "how it was built, and where it departs from its paper")
        table.columns[0].no_wrap = table.columns[1].no_wrap = True
        for row in rows:
            count = row["parameters_on_mutag"]
            parameters = "" if count is None else f"{count:,}"
            table.add_row(f"[bold]{row['name']}[/]", row["system"], str(row["year"]), parameters, escape(row["about"]))
        console.print(table)
        console.print("[dim]Parameters on MUTAG. `tapnet models NAME` prints its paper and its settings.[/]")
        return
    for row in rows:
        count = row["parameters_on_mutag"]
        parameters = f", {count:,} parameters on MUTAG" if count else ""
        console.print(f"[bold]{row['name']}[/]  {row['system']}{parameters}")
        console.print(f"{escape(row['paper'])}, {row['year']}", soft_wrap=True)
        console.print(escape(row["about"]))
        about = {**row["about_settings"], **row["about_training"]}
        tables = {"settings, on MUTAG": row["settings"], "training": row["training"], "tried by tune": row["search"]}
        for title, values in tables.items():
            console.print(f"[dim]{title}[/]" if values else "")
            shown = {name: f"{name} = {v if isinstance(v, str) else json.dumps(v)}" for name, v in values.items()}
            width = max(map(len, shown.values()), default=0)
            for name, line in shown.items():
                said = f"  [dim]{escape(about[name])}[/]" if values is not row["search"] else ""
                console.print(f"  {escape(line.ljust(width) if said else line)}{said}", soft_wrap=True)


def print_trained_models(rows: Sequence[Mapping[str, Any]]) -> None:
    """What is known of each trained model."""
    console = Console(emoji=False, highlight=False)
    for row in rows:
        networks = f"{row['networks']} networks, " if row["networks"] > 1 else ""
        graphs = f", {row['graphs']} graphs" if row["graphs"] else ""
        data = f"trained on {escape(row['dataset'])}{graphs}"
        console.print(f"[bold]{escape(row['name'])}[/]  {networks}{row['model']}, {data}", soft_wrap=True)
        console.print(f"  predicts {escape(', '.join(row['predicts']))} from {row['features']}", soft_wrap=True)
        if row["mean"] is not None:
            metric, baseline = METRICS[row["metric"]], row["baseline"]
            against = None if baseline is None else baseline_in_words({metric.name: baseline}, metric.name)
            measured = f"  {metric.in_words(row['mean'], row['std'])} ({escape(row['rules'])})"
            console.print(f"{measured}; {against}" if against else measured, soft_wrap=True)
        error = (
            "" if row["calibration_error"] is None else f"; expected calibration error {row['calibration_error']:.3f}"
        )
        console.print(f"  calibration: {row['calibration']}{error}", soft_wrap=True)
        covered = ", ".join(f"{float(c):.0%}: {share:.1%}" for c, share in row["coverage"].items())
        if covered:
            console.print(f"  coverage of held-out graphs by promised confidence: {covered}", soft_wrap=True)
        console.print(f"  [dim]{escape(row['file'])}[/]", soft_wrap=True)


def print_pools(rows: Sequence[Mapping[str, Any]], in_full: bool) -> None:
    """A table of all, or everything about some."""
    console = Console(emoji=False, highlight=False)
    if in_full:
        for row in rows:
            console.print(f"[bold]{escape(row['name'])}[/]  {row['kind']}")
            if row["paper"]:
                console.print(f"{escape(row['paper'])}, {row['year']}", soft_wrap=True)
            console.print(escape(row["about"]), soft_wrap=True)
            for title in ("parameters", "losses", "cost", "memory"):
                value = ", ".join(row[title]) or "none" if title == "losses" else row[title]
                if value not in ("", None):  # of a layer of one's own it may not be known
                    console.print(f"  {title}: {escape(str(value))}", soft_wrap=True)
    else:
        table = _table("name", "kind", "paper", ">parameters", "what is kept or merged; losses, time and memory")
        table.columns[0].no_wrap = True
        for row in rows:
            parameters = "" if row["parameters"] is None else f"{row['parameters']:,}"
            losses = f"losses: {', '.join(row['losses'])}; " if row["losses"] else ""
            costs = f"{losses}{row['cost']} time, {row['memory']} memory" if row["cost"] else ""
            about = escape(row["about"]) + (f"\n[dim]{escape(costs)}[/]" if costs else "")
            table.add_row(f"[bold]{escape(row['name'])}[/]", row["kind"], _cited(row), parameters, about)
        console.print(table)
        console.print("[dim]`tapnet pools NAME` prints the paper.[/]")
    console.print(
        "[dim]Parameters: of one layer with 48 features and ratio 0.8, on MUTAG. Time and memory of a call: N nodes, E "
        "edges and d features in B graphs, K clusters each.[/]"
    )


def _cited(row: Mapping[str, Any]) -> str:
    """Gao et al. 2021"""
    authors = row["paper"].partition(":")[0].split(", ")
    if not authors[0]:
        return ""
    names = " and ".join(authors) if len(authors) < 3 else f"{authors[0]} et al."
    return escape(f"{names} {row['year']}")


def print_sections(title: str, sections: Sequence[Section], explanation: Sequence[str]) -> None:
    """The tables of a target, then how to read them; a table is as wide as its numbers, never cut."""
    console, wide = Console(emoji=False, highlight=False), Console(emoji=False, highlight=False, width=1000)
    console.print(f"\n[bold]{escape(title)}[/]")
    for section in sections:
        console.print(f"\n{escape(section.title)}")
        if section.header:
            table = _table(section.header[0], *(f">{name}" for name in section.header[1:]), gap=1)
            table.columns[0].no_wrap = True
            for row in section.rows:
                table.add_row(*map(escape, row))
            wide.print(table)
        for note in section.notes:
            console.print(f"[dim]{escape(note.strip('*'))}[/]")
    for text in explanation:
        console.print(f"\n[dim]{escape(text.replace('*', ''))}[/]")


def print_bench(cases: Sequence[Any], threads: int) -> None:
    """Ratios with their spread; never a bare time."""
    table = _table("what", "data", "against", ">ratio", "")
    for case in cases:
        table.add_row(case.what, escape(case.data), case.peer, str(case.ratio), f"[dim]{case.note}[/]")
    console = Console(emoji=False, highlight=False)
    console.print(table)
    console.print(
        f"[dim]The peer's time ÷ ours on {threads} threads: above 1 tapnet is faster. Median of the rounds (range).[/]"
    )


def print_growth(rows: Sequence[Any]) -> None:
    """Each size with its range and the exponents of time and memory."""
    table = _table("size", ">from", ">to", ">CPU time", ">memory", "of")
    for row in rows:
        sizes = f"{row.sizes[0]:,}", f"{row.sizes[-1]:,}"
        table.add_row(row.size, *sizes, str(row.time), str(row.memory or "–"), f"[dim]{escape(row.of)}[/]")
    console = Console(emoji=False, highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(table)
    console.print(
        "[dim]Exponents ± standard error: 1 is linear, 0 does not grow. One thread; peak of memory (–: hardly any).[/]"
    )
