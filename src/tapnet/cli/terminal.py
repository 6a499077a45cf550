"""What commands show on a terminal: tables on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tapnet.experiments.backends.pool import Event, OnEvent
from tapnet.experiments.progress import is_one_system, is_watched, label_of, progress_bars
from tapnet.experiments.summary import Summary
from tapnet.experiments.trial import Trial

if TYPE_CHECKING:
    from tapnet.paper.tables import Section


@contextmanager
def training_progress(trials: Sequence[Trial], done: int) -> Iterator[OnEvent]:
    """Bars where somebody watches; elsewhere one line per fold."""
    if trials and is_watched():
        with progress_bars(trials, done) as show:
            yield show
    else:
        yield fold_lines(is_one_system(trials))


def fold_lines(one_system: bool = True) -> OnEvent:
    """Prints one line per fold on standard error."""

    def show(event: Event) -> None:
        about = f"{event.trial.dataset} {label_of(event, one_system)}"
        if event.epoch == 0:
            print(f"{about}: waiting for it", file=sys.stderr, flush=True)
        if event.epoch == event.trial.training.epochs:
            print(f"{about}: {event.accuracy:.1f} %", file=sys.stderr, flush=True)

    return show


def print_summary(summary: Summary, changed: Mapping[str, Any], paper: str | None, folder: str) -> None:
    """A row a fold, then one line with everything that an accuracy must be read with."""
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())  # in a pipe, a sentence is a line
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("fold", "accuracy", *(("epoch", "last epoch") if summary.has_epochs else ()), "seconds"):
        table.add_column(title, justify="right")
    for r in summary.results:
        by_epoch = (str(r.reading.epoch), f"{r.curves['test_accuracy'][-1]:.1f}")
        table.add_row(
            str(r.trial.fold),
            f"{r.reading.accuracy:.1f}",
            *(by_epoch if summary.has_epochs else ()),
            f"{r.seconds:.1f}",
            *(["[red]diverged[/]"] if r.diverged else []),
        )
    console.print(table)
    trial = summary.results[0].trial
    settings = ", ".join(f"{key} {value}" for key, value in changed.items())
    name = f"{trial.model} with {settings}" if settings else trial.model
    console.print(
        f"\n[bold]{escape(trial.dataset)}, {name}: {summary.mean:.1f} ± {summary.std:.1f} %[/] "
        f"({summary.rules})"
        + (f"; the paper prints {paper}, over 10 folds, by a protocol it does not name" if paper else "")
    )
    for words, (mean, std) in summary.other_readings.items():
        note = ", which no one can know beforehand" if words.startswith("best test") else ""
        console.print(f"[dim]Beside it, from the same runs: {mean:.1f} ± {std:.1f} % ({words}{note})[/]")
    what = "Settings, results and models" if summary.has_epochs else "Settings and results"
    console.print(f"[dim]{what}: {escape(folder)}[/]")


def print_datasets(rows: list[dict[str, Any]]) -> None:
    """One row a data set."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("data set", no_wrap=True)
    table.add_column("found", overflow="fold")
    for title in ("graphs", "nodes", "edges"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("cls", justify="right", no_wrap=True)
    table.add_column("features", no_wrap=True)
    table.add_column("as paper")
    for row in rows:
        if row["found"] is None:
            problem = f"[red]{escape(row['problem'])}[/]" if row.get("problem") else "[dim]not here[/]"
            table.add_row(row["name"], problem, *["[dim]–[/]"] * 6)
            continue
        differs = row["differs_from_paper"]
        verdict = "[dim]not in it[/]" if differs is None else ("[yellow]" + "; ".join(differs) if differs else "yes")
        table.add_row(
            escape(row["name"]),
            escape(row["place"]),
            str(row["graphs"]),
            f"{row['mean_nodes']:.2f}",
            f"{row['mean_edges']:.2f}",
            str(row["classes"]),
            f"{row['num_features']} {row['features']}",
            verdict,
        )
    console = Console()
    console.print(table)
    if any(row["found"] is None and not row.get("problem") for row in rows):
        console.print(
            "[dim]Not here: name a folder that has it with --data-dir or TAPNET_DATA, or download it with "
            "--download.[/]"
        )


def print_models(rows: Sequence[Mapping[str, Any]], in_full: bool) -> None:
    """A table of all, or everything about some."""
    console = Console(highlight=False)
    if not in_full:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("name", no_wrap=True)
        table.add_column("system", no_wrap=True)
        table.add_column("year")
        table.add_column("parameters", justify="right", no_wrap=True)
        table.add_column("how it was built, and where it departs from its paper")
        for row in rows:
            count = row["parameters_on_mutag"]
            table.add_row(
                f"[bold]{row['name']}[/]",
                row["system"],
                str(row["year"]),
                "" if count is None else f"{count:,}",
                escape(row["about"]),
            )
        console.print(table)
        console.print("[dim]Parameters on MUTAG. `tapnet models NAME` prints its paper and its settings.[/]")
        return
    for row in rows:
        count = row["parameters_on_mutag"]
        console.print(
            f"[bold]{row['name']}[/]  {row['system']}" + (f", {count:,} parameters on MUTAG" if count else "")
        )
        console.print(f"{escape(row['paper'])}, {row['year']}", soft_wrap=True)
        console.print(escape(row["about"]))
        for title, values in (("settings, on MUTAG", row["settings"]), ("training", row["training"])):
            console.print(f"[dim]{title}[/]" if values else "")
            for name, value in values.items():
                shown = list(value) if isinstance(value, tuple) else value
                console.print(f"  {name} = {escape(str(shown))}", soft_wrap=True)


def print_sections(title: str, sections: Sequence[Section], explanation: Sequence[str]) -> None:
    """The tables of a target, then how to read them; a table is as wide as its numbers, never cut."""
    console, wide = Console(highlight=False), Console(highlight=False, width=1000)
    console.print(f"\n[bold]{escape(title)}[/]")
    for section in sections:
        console.print(f"\n{escape(section.title)}")
        if section.header:
            table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
            for i, name in enumerate(section.header):
                table.add_column(escape(name), justify="left" if i == 0 else "right", no_wrap=True)
            for row in section.rows:
                table.add_row(*map(escape, row))
            wide.print(table)
        for note in section.notes:
            console.print(f"[dim]{escape(note.strip('*'))}[/]")
    for text in explanation:
        console.print(f"\n[dim]{escape(text.replace('*', ''))}[/]")


def print_bench(cases: Sequence[Any], threads: int) -> None:
    """Ratios with their spread; never a bare time."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("what", "data", "against"):
        table.add_column(title)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("")
    for case in cases:
        table.add_row(case.what, escape(case.data), case.peer, str(case.ratio), f"[dim]{case.note}[/]")
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"[dim]The peer's time ÷ ours on {threads} threads: above 1 tapnet is faster. Median of the rounds (range).[/]"
    )
