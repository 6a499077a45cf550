"""`tapnet reproduce`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tapnet.cli.app import (
    INTERRUPTED,
    MACHINE,
    AsJson,
    CpusPerTrial,
    DataDir,
    GpusPerTrial,
    RayAddress,
    check_counts,
    find_cluster,
    find_device,
    interrupts,
    stop,
)
from tapnet.errors import DatasetNotFoundError, SettingError, did_you_mean

if TYPE_CHECKING:
    from tapnet.data.dataset import GraphDataset
    from tapnet.experiments.backends.ray import Cluster
    from tapnet.experiments.store import Store
    from tapnet.experiments.trial import Trial
    from tapnet.paper.budgets import Effort
    from tapnet.paper.reproduce import Stored, Work
    from tapnet.paper.targets import Target
    from tapnet.training.protocol import Protocol

NO_PTC = "PTC is not here: name a folder that has it with --data-dir or TAPNET_DATA."


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="table1 to table5, lambda, norm, pools, connectivity, coarsening, voting, architecture, or all."
        ),
    ],
    datasets: Annotated[str | None, typer.Option(help="Some of the target's data sets, such as PTC,MUTAG.")] = None,
    systems: Annotated[str | None, typer.Option(help="Some of the target's rows, such as TAPNet,GIN.")] = None,
    protocol: Annotated[str, typer.Option(help="paper, fair or both.")] = "both",
    budget: Annotated[
        str | None,
        typer.Option(
            help="quick: a minute, proves the path; standard: an evening on two cores; paper: 10 folds × 200 epochs.",
            show_default="quick; paper with --stored",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Run only so many of the folds.", show_default="the budget's")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs a fold.", show_default="the budget's")] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Train nothing: tables of what is stored.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Train nothing: list what is not stored yet.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Trials at a time.", show_default="the cores", rich_help_panel=MACHINE)
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=MACHINE)] = "auto",
    ray: RayAddress = None,
    cpus_per_trial: CpusPerTrial = None,
    gpus_per_trial: GpusPerTrial = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of trials, tables and pictures.", show_default="results; results/quick for quick"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also put the tables into this Markdown file, between its two marks.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce a table or figure of the paper: its number, ours by its protocol, ours by a fair one.

    Trials are stored: nothing is computed twice, the same command goes on where it stopped, and files of another
    machine's trials/ can be copied into this one's.
    """
    check_counts(jobs=jobs, folds=folds, epochs=epochs)
    from tapnet.experiments.backends.processes import available_cores, get_ready
    from tapnet.paper.budgets import find_budget
    from tapnet.paper.targets import FIGURES, TARGETS, find_targets

    budget = budget or ("paper" if stored else "quick")
    names, chosen = find_targets(target), find_budget(budget)
    protocols = _protocols(protocol)
    several = len(names) > 1
    wanted = _data_sets(datasets)
    if systems is not None and target in FIGURES:
        raise SettingError(f"--systems: {target} has no systems to choose from")
    narrowed = [_narrowed(TARGETS[name], wanted, systems, several) for name in names if name in TARGETS]
    targets = [target for target in narrowed if target.datasets and target.rows]
    if report is not None:
        from tapnet.paper.report import around_tables

        if not targets:
            raise SettingError(f"--report: {target} has no table to put into {report}")
        around_tables(report)  # a page that cannot take the tables is refused before anything is trained
    cluster, found_device = find_cluster(ray, cpus_per_trial, gpus_per_trial, jobs, 1, device)
    jobs = jobs or available_cores()
    if jobs > 1 and targets and cluster is None and not (stored or missing):
        get_ready()
    from tapnet.experiments.store import Store
    from tapnet.paper.reproduce import Stored, plan_of

    folder = out or Path("results/quick" if budget == "quick" else "results")
    efforts = {name: _effort(chosen.on(name), folds, epochs) for target in targets for name in target.datasets}
    plan = plan_of(targets, efforts, protocols, data_dir, found_device)
    store = Store(folder, every_model=False)
    on_ptc = _effort(chosen.on("PTC"), folds, epochs)
    if missing:
        networks: list[Trial] = []
        note = ""
        if "coarsening" in names:
            ptc, _, networks = _coarsening_networks(store, data_dir, on_ptc, device)
            note = NO_PTC if ptc is None else ""
        _list_missing(plan, networks, store, as_json)
        if note and not as_json:
            print(note)
        return
    if not stored:
        _train(plan, store, jobs, cluster)
    found = Stored(store, epochs, folds)
    lines, files, notes = _tables(targets, protocols, plan, found, store.folder, report, as_json)
    for name in (name for name in names if name in FIGURES):
        drawn, words = _figure(name, store, data_dir, on_ptc, device, stored)
        files += drawn
        notes |= {name: words} if words else {}
        if words and not as_json:
            typer.echo(f"\n{FIGURES[name]}\n{words}")
    if stored and not as_json and lines and not any(line["mean"] for line in lines):
        typer.echo(f"\nNothing is stored in {store.folder} for this; --out names another folder.")
    if as_json:
        print(json.dumps({"cells": lines, "files": [str(store.folder / name) for name in files], "notes": notes}))
    else:
        typer.echo("")
        if (plan or "coarsening" in names) and not (stored or folds or epochs):
            typer.echo(f"Budget {budget}: {chosen.about}.")
        typer.echo(f"Written to {store.folder}: {', '.join(files) or 'nothing'}")


# ---- what is asked for ----


def _protocols(word: str) -> list[Protocol]:
    from tapnet.training.protocol import PROTOCOLS

    for name in PROTOCOLS:
        if word == name:
            return [name]
    if word != "both":
        has = [*PROTOCOLS, "both"]
        raise SettingError(f"--protocol is one of {', '.join(has)}, not {word!r}{did_you_mean(word, has)}")
    return list(PROTOCOLS)


def _data_sets(words: str | None) -> list[str] | None:
    """The paper's names of the data sets that are asked for; None: all."""
    from tapnet.data.catalog import CATALOG, find_entry

    if words is None:
        return None
    wanted = []
    for word in words.split(","):
        entry = find_entry(word.strip())
        if entry is None:
            has, near = ", ".join(CATALOG), did_you_mean(word.strip(), CATALOG)
            raise SettingError(f"--datasets: the paper has no data set {word.strip()!r}; it has {has}{near}")
        wanted.append(entry.name)
    return wanted


def _narrowed(target: Target, wanted: list[str] | None, systems: str | None, several: bool) -> Target:
    """The target on some of its data sets and with some of its rows."""
    from tapnet.paper.targets import TARGETS

    if wanted is not None:
        # The paper may show other sets there, but nothing keeps one from asking.
        chosen = [name for name in target.datasets if name in wanted] if several else dict.fromkeys(wanted)
        target = replace(target, datasets=tuple(chosen))
    if systems is not None:
        words = {word.strip().lower() for word in systems.split(",")}
        labels = {name.lower() for row in target.rows for name in row.names}
        every = [row for other in TARGETS.values() for row in other.rows] if several else target.rows
        known = [name for row in every for name in (row.model, *row.names)]
        for word in sorted(words - {name.lower() for name in known}):
            has, near = ", ".join(dict.fromkeys(row.label for row in every)), did_you_mean(word, known)
            raise SettingError(f"--systems: {'all' if several else target.name} has no {word!r}; it has {has}{near}")
        rows = tuple(r for r in target.rows if words & {name.lower() for name in r.names} or r.model in words - labels)
        target = replace(target, rows=rows)
    return target


def _effort(effort: Effort, folds: int | None, epochs: int | None) -> Effort:
    if folds is not None and folds > effort.folds:
        raise SettingError(f"--folds is at most {effort.folds}, not {folds}")
    return replace(effort, run=folds or effort.run, epochs=epochs or effort.epochs)


# ---- trials ----


def _train(plan: list[Work], store: Store, jobs: int, cluster: Cluster | None) -> None:
    from tapnet.cli.terminal import training_progress
    from tapnet.experiments.backends.pool import run_trials
    from tapnet.models.registry import find_model

    for work in plan:
        todo = [trial for trial in work.trials if store.load(trial) is None]
        if interrupts:
            raise KeyboardInterrupt
        if not todo:
            continue
        assert work.dataset is not None
        assert work.reference is not None
        for trial in {trial.model + repr(trial.settings): trial for trial in todo}.values():
            find_model(trial.model).prepare(work.dataset, trial.settings)  # the trials find it in the cache
        with training_progress(todo, 0) as on_event:
            complete = run_trials(todo, work.reference, store, jobs=jobs, cluster=cluster, on_event=on_event)
        if not complete:
            left = sum(store.load(trial) is None for work in plan for trial in work.trials)
            stop(f"stopped with {left} trials to do; the same command goes on from there", INTERRUPTED)


def _list_missing(plan: list[Work], networks: list[Trial], store: Store, as_json: bool) -> None:
    from tapnet.experiments.summary import in_words, system_in_words
    from tapnet.models.registry import find_model

    left = [trial for work in plan for trial in work.trials if store.load(trial) is None]
    not_here = {work.name: work.note for work in plan if work.dataset is None}
    if as_json:
        rows = [
            {"dataset": trial.dataset, "trial": in_words(trial), "epochs": trial.training.epochs, "key": trial.key}
            for trial in left
        ]
        keys = [trial.key for trial in networks]
        print(json.dumps({"missing": rows, "networks": keys, "data_sets_not_here": list(not_here)}))
        return
    folds: dict[str, list[str]] = {}
    for trial in left:
        epochs = f", {trial.training.epochs} epochs" if find_model(trial.model).fit is None else ""
        system = f"{trial.dataset}: {system_in_words(trial)}{epochs}"
        folds.setdefault(system, []).append(str(trial.fold))
    for system, missing in folds.items():
        print(f"{system}, fold{'s' if len(missing) > 1 else ''} {' '.join(missing)}")
    for trial in networks:
        print(f"{trial.dataset}: {in_words(trial)}: its network, for coarsening")
    total = sum(len(work.trials) for work in plan)
    if total or not networks:
        print(f"{len(left)} of {total} trials are missing in {store.folder}")
    for note in not_here.values():
        print(note)


# ---- tables and pictures ----


def _tables(
    targets: list[Target],
    protocols: list[Protocol],
    plan: list[Work],
    stored: Stored,
    folder: Path,
    report: Path | None,
    as_json: bool,
) -> tuple[list[dict[str, Any]], list[str], dict[str, str]]:
    """Writes each target's tables and picture; returns every cell, the files' names, and why something is not there."""
    from tapnet.cli.terminal import print_sections
    from tapnet.paper.figures import draw_target
    from tapnet.paper.report import csv_text, explanation, lines_of, markdown, overview, sections_of, with_tables
    from tapnet.paper.reproduce import cells_of

    checksums, graphs = dict[str, str](), dict[str, int]()
    notes = {work.name: work.note for work in plan if work.note}
    for work in plan:
        if work.dataset is None:
            continue
        copies = stored.copies(work.name)
        if work.dataset.checksum in copies or not copies:
            checksums[work.name], graphs[work.name] = work.dataset.checksum, len(work.dataset)
        else:
            notes[work.name] = f"These trials are of another copy of {work.name}, or a part of it, than is here."
    page, files, lines = [], [], []
    for target in targets:
        cells = list(cells_of(target, target.datasets, protocols, stored, checksums))
        sections = [*overview(target, cells, graphs), *sections_of(target, cells, notes, graphs)]
        rows = lines_of(target, cells)
        explained = [] if target.name == "connectivity" else explanation(protocols)
        text = "\n\n".join([f"# {target.title}", *explained, markdown(sections)])
        _write(folder / f"{target.name}.md", text)
        _write(folder / f"{target.name}.csv", csv_text(rows))
        files += [f"{target.name}.md", f"{target.name}.csv", *draw_target(target, cells, folder)]
        page.append(f"## {target.title}\n\n" + markdown(sections, level=3))
        lines += rows
        if not as_json:
            print_sections(target.title, sections, explained)
    if report is not None:
        _write(report, with_tables(report, explanation(protocols), page))
    return lines, files, notes


def _figure(
    name: str, store: Store, data_dir: Path | None, effort: Effort, device: str, stored: bool
) -> tuple[list[str], str]:
    """Draws an illustration; the files' names, and what is to be said of it."""
    from tapnet.paper import figures

    if name == "voting":
        return figures.draw_voting(store.folder), ""
    if name == "architecture":
        return figures.draw_architecture(store.folder), ""
    from tapnet.cli.terminal import training_progress
    from tapnet.experiments.backends.pool import reporter
    from tapnet.experiments.run_trial import run_trial
    from tapnet.paper.coarsening import draw_coarsening

    dataset, trials, todo = _coarsening_networks(store, data_dir, effort, device)
    if dataset is None:
        return [], NO_PTC
    if todo and stored:
        missing = f"Its two networks of {effort.epochs} epochs are not stored"
        return [], f"{missing}; `tapnet reproduce coarsening --budget paper` trains them."
    with training_progress(todo, 0) as on_event:
        for trial in todo:
            with store.claim(trial, wait=True):
                if not store.model_file(trial).exists():  # another program may have trained it meanwhile
                    run_trial(trial, dataset, store, progress=reporter(trial, on_event))
    files, words = draw_coarsening(store, dataset, trials)
    return files, "\n".join(words)


def _coarsening_networks(
    store: Store, data_dir: Path | None, effort: Effort, device: str
) -> tuple[GraphDataset | None, list[Trial], list[Trial]]:
    """PTC, if it is here, the trials whose networks the figure of coarsened graphs shows, and those not stored yet."""
    from tapnet.experiments.backends.pool import DataReference
    from tapnet.paper.coarsening import coarsening_trials

    try:
        dataset = DataReference("PTC", None if data_dir is None else str(data_dir), download=False).load()
    except DatasetNotFoundError:
        return None, [], []
    trials = coarsening_trials(dataset, effort, find_device(device))
    return dataset, trials, [trial for trial in trials if not store.model_file(trial).exists()]


def _write(file: Path, text: str) -> None:
    from tapnet.files import write_atomically

    write_atomically(file, text.encode())
