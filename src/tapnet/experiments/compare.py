"""Comparing systems on the same folds: differences with their intervals, adjusted p-values, and a verdict."""

from __future__ import annotations

import inspect
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError, SettingError, TapnetError, did_you_mean
from tapnet.experiments.backends.pool import keeping_processes
from tapnet.experiments.comparison import COMPARISON, ComparedSystem, Comparison, FromReference, load_comparison
from tapnet.experiments.cross_validate import CrossValidation, cross_validate
from tapnet.experiments.load_run import load_run
from tapnet.experiments.nested import NestedValidation
from tapnet.experiments.run_trial import Interrupted
from tapnet.experiments.statistics import (
    FEWEST_FOLDS,
    LEVEL,
    corrected_t_test,
    holm,
    smallest_visible_difference,
)
from tapnet.experiments.summary import deviation, machines_note, system_name
from tapnet.experiments.trial import digest, or_null
from tapnet.files import printable
from tapnet.io.load import AnyDataset, check_features, load_dataset
from tapnet.models.registry import BASELINES, find_model
from tapnet.nn.pool.registry import find_name
from tapnet.training.metrics import METRICS, find_metrics

Fold = tuple[int, int]  # the seed that drew the folds, and the number of the fold
NOT_SHARED = {"model", "pool", "conv", "devices", "final", "out", "settings"}  # of what `cross_validate` takes


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """What is said of the data is said once, and not for every system that reads them."""
    shown, show = set[tuple[str, type[Warning]]](), warnings.showwarning

    def show_new(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if (str(message), category) not in shown:
            show(message, category, *where, **more)
        shown.add((str(message), category))

    with warnings.catch_warnings():
        warnings.showwarning = show_new
        yield


@_each_warning_once()
def compare(
    dataset: AnyDataset,
    systems: Sequence[str | type],
    *,
    reference: str | None = None,
    protocol: str = "fair",
    metric: str | None = None,
    seeds: int = 1,
    new_folds: bool = False,
    folds: int = 10,
    epochs: int | None = None,
    split: str | Path | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> Comparison:
    """Trains systems on the same folds of a data set and says which of them differ by more than chance.

    The baselines ``majority``, ``size`` and ``bag`` are always trained as well. With the same ``out`` the same call
    does only what is missing, and one with other systems adds them.

    Args:
        dataset: a name (``"MUTAG"``), a path, or a data set in memory (ours, PyG's, OGB's, a list of graphs, a
            DataFrame with SMILES or graphs), as `load_dataset` takes it.
        systems: names of systems; ``"tapnet:topk"`` is TAPNet with another pooling layer, and
            ``"tapnet:package.module:Class"``, or the class itself, with one of the user's own or of PyG.
        reference: the system that the others are compared with; None means the first.
        protocol: which epoch's test accuracy counts, as `cross_validate` has it.
        metric: None means accuracy, the ROC-AUC of several labels, or the RMSE of numbers.
        seeds: every fold is trained with so many; the test takes the mean of a fold over its seeds.
        new_folds: whether each seed draws folds of its own (repeated cross-validation); all of them count in the test.
        folds: the number of folds.
        epochs: of training on a fold; None means 200, or what a system has for molecules.
        split: how the graphs are split, as `cross_validate` takes it.
        jobs: folds at a time; None takes as many as there are cores for their threads.
        out: the folder for the comparison, with the run of each system in a folder of its own; None keeps nothing.
            ``{run}`` in it stands for a name that is made of the options.
        **options: what else `cross_validate` takes but for the settings of a system: ``configs``, ``features``,
            ``data_dir``, ``reading``, ``device``, ``cluster`` and others.

    Returns:
        The table, with a verdict in one sentence.

    Raises:
        SettingError: for a system or an option that does not exist or does not fit.
        DataError: for data that cannot be read or learned from.
        Interrupted: a ``KeyboardInterrupt``, after Ctrl-C, when checkpoints are stored.

    Example:
        >>> import tapnet
        >>> table = tapnet.compare("MUTAG", ["tapnet", "tapnet:none"], folds=3, epochs=1)  # doctest: +SKIP
        >>> table["tapnet:none"].difference.p_adjusted  # doctest: +SKIP
        1.0
    """
    known = inspect.signature(cross_validate).parameters.keys() - NOT_SHARED
    for name in options:
        if name not in known:
            raise SettingError(f"a comparison has no option {name!r}{did_you_mean(name, known)}")
    chosen = _parse_systems(systems)
    reference = _find_reference(reference, list(chosen))
    features, reading = check_features(options.get("features")), options.get("reading") or {}
    if isinstance(dataset, GraphDataset):
        data = dataset
    else:
        data = load_dataset(dataset, options.get("data_dir"), features=features, **reading)
    data = data if features in (None, data.features) else data.with_features(features)
    (measure,) = find_metrics(metric, data.task)[:1]
    for model, given in chosen.values():  # whatever does not fit is said before anything is trained
        spec = find_model(model)
        spec.check_task(data)
        own = spec.make_settings(data.name, given)
        spec.check_directions(data, own)
        spec.prepare(data, own)
    shared: dict[str, Any] = {
        "protocol": protocol,
        "seeds": seeds,
        "new_folds": new_folds,
        "folds": folds,
        "epochs": epochs,
    }
    shared |= {"metric": measure.name, "split": split, "jobs": jobs, **options}
    given_data = dataset if isinstance(dataset, str | os.PathLike) else data  # what is in memory is converted once
    folder = None if out is None else Path(str(out).replace("{run}", _comparison_name(data, protocol, shared)))
    stored = None if folder is None else _stored(folder)
    if stored is not None:
        known_now = {"dataset": printable(data.name), "checksum": data.checksum, "protocol": protocol, "seeds": seeds}
        known_now |= {"num_folds": folds} if split is None else {}
        _check_stored(stored, {**known_now, "new_folds": new_folds if seeds > 1 else stored.new_folds})
    runs = {}
    with keeping_processes():
        for name, (model, given) in chosen.items():
            own = None if folder is None else folder / folder_name(name)
            try:
                runs[name] = cross_validate(given_data, model, out=own, **given, **shared)
            except Interrupted as stopped:
                raise Interrupted(f"{name}: {stopped}; {len(runs)} of {len(chosen)} systems are done") from None
    table = compare_runs(runs, reference=reference, metric=measure.name)
    if folder is None:
        return table
    table = replace(table, systems=tuple(replace(row, folder=folder_name(row.name)) for row in table.systems))
    return (table if stored is None else _with_stored(table, stored)).save(folder)


def _stored(folder: Path) -> Comparison | None:
    """The comparison in a folder, if there is one."""
    try:
        return load_comparison(folder)
    except DataError:
        return None


def _check_stored(stored: Comparison, wanted: Mapping[str, Any]) -> None:
    """Refuses to replace a stored comparison by one of other conditions."""
    for what, value in wanted.items():
        theirs = getattr(stored, what)
        if theirs is not None and theirs != value:
            values = "" if what == "checksum" else f": {_in_words(theirs)} and {_in_words(value)}"
            raise SettingError(
                f"{stored.folder} holds a comparison that differs in the {CONDITIONS[what]}{values}; "
                "choose another folder for this one"
            )


def _with_stored(table: Comparison, stored: Comparison) -> Comparison:
    """The same with the other systems of the comparison that its folder has."""
    known = {row.name for row in table.systems}
    others = tuple(row for row in stored.systems if row.name not in known)
    if not others:
        return table
    if stored.metric != table.metric:  # their runs are read anew
        added = _by_metric(stored, others, table.metric)
    else:
        added = replace(stored, systems=others)
    if _difference_of_conditions(table, added) is not None:
        _check_stored(stored, {what: getattr(table, what) for what in CONDITIONS if what != "metric"})
        return table
    return _with_statistics(_side_by_side(table, added), table.reference)


def _by_metric(stored: Comparison, rows: Sequence[ComparedSystem], metric: str) -> Comparison:
    """These rows of a stored comparison by another metric, from their runs in its folder."""
    runs, lost = dict[str, CrossValidation](), list[str]()
    for row in rows:
        try:
            runs[row.name] = load_run((stored.folder or Path()) / (row.folder or folder_name(row.name)))
        except TapnetError:
            lost.append(row.name)
    if lost:
        raise SettingError(
            f"{stored.folder} holds a comparison by {stored.metric}, and not the runs of {_listed(lost)}, which "
            f"{metric} would need; choose another folder for this one"
        )
    table = _table_of(runs, metric)
    return replace(table, systems=tuple(replace(row, folder=folder_name(row.name)) for row in table.systems))


def compare_runs(
    runs: Sequence[str | Path | CrossValidation | Comparison] | Mapping[str, CrossValidation],
    *,
    reference: str | None = None,
    metric: str | None = None,
) -> Comparison:
    """Compares cross-validations that are done: results of `cross_validate`, or the folders that they are stored in.

    A comparison among them, or its folder, adds its systems: it has the score of every fold, so that its own runs need
    not be there any more. Of a system that several of them have, the last counts.

    Args:
        runs: two or more, or a comparison; a mapping names them. Others are named by their system, or by their folder
            where two runs are of the same system.
        reference: the name of the one that the others are compared with; None means the first, or that of the
            comparison.
        metric: None means that of the runs.

    Returns:
        The table, with a verdict in one sentence.

    Raises:
        SettingError: for runs of different data, protocols, folds, splits, seeds or metrics.
        DataError: for a folder without a run.

    Example:
        >>> from tapnet import cross_validate
        >>> runs = [cross_validate("MUTAG", name, folds=3, out=f"runs/{name}").folder for name in ("majority", "size")]
        >>> compare_runs(runs).reference
        'majority'
    """
    if isinstance(runs, Mapping):
        tables, named = [], dict(runs)
    else:
        found = [load_stored(run) if isinstance(run, str | Path) else run for run in runs]
        tables = [one for one in found if isinstance(one, Comparison)]
        named = _names_of([one for one in found if isinstance(one, CrossValidation)])
    if len(named) + sum(len(table.systems) for table in tables) < 2:
        raise SettingError("a comparison needs two runs or more")
    for one in tables if metric is not None else ():
        if metric != one.metric:
            where = "" if one.folder is None else f" in {one.folder}"
            raise SettingError(f"the stored comparison{where} is by {one.metric}; by {metric} its runs can be compared")
    if named:
        _check_conditions(named, metric)
        tables.append(_table_of(named, metric or (tables[0].metric if tables else None)))
    table = tables[0]
    for other in tables[1:]:
        table = _side_by_side(table, other)
    reference = _find_reference(reference, [row.name for row in table.systems], table.reference)
    return _with_statistics(table, reference)


def load_stored(
    folder: str | Path, pool: Iterable[type | str] = (), conv: Iterable[type | str] = ()
) -> CrossValidation | Comparison:
    """What a folder has: a comparison, or else a run.

    Args:
        folder: of `compare`, or of `cross_validate`.
        pool: as `load_run` takes it.
        conv: likewise.

    Raises:
        DataError: for a folder with neither.
    """
    return load_comparison(folder) if (Path(folder) / COMPARISON).is_file() else load_run(folder, pool, conv)


def _table_of(runs: Mapping[str, CrossValidation], metric: str | None) -> Comparison:
    """The scores of runs of the same conditions; differences and the verdict are still to come."""
    first = next(iter(runs.values()))
    trial = first.results[0].trial
    measure = find_metrics(metric or first.metric, trial.task)[0].name
    rows = []
    for name, run in runs.items():
        scores = _in_order(run, run.scores_by(measure))
        rows.append(
            ComparedSystem(
                name=name,
                scores=tuple(map(or_null, scores)),
                mean=or_null(np.mean(scores)),
                std=or_null(deviation(scores)),
                difference=None,
                rank=None,
                seconds=round(sum(r.seconds for r in run.results), 3),
                parameters=round(np.mean([r.parameters for r in run.results])) if run.has_epochs else None,
                baseline=find_model(run.results[0].trial.model).baseline,
                changed=run.changed,
                folder=None if run.folder is None else str(run.folder),
                diagnostics=tuple(run.diagnostics),
                averaged=_averaged(run, measure),
            )
        )
    rules, notes = _shared_rules(runs)
    notes += [f"{name}: {remark}." for name, run in runs.items() for remark in run.remarks]
    note = machines_note([r for run in runs.values() for r in run.results])
    return Comparison(
        systems=tuple(rows),
        reference=rows[0].name,
        dataset=printable(trial.dataset),
        metric=measure,
        protocol=trial.protocol,
        rules=rules,
        num_folds=trial.folds,
        seeds=len(first.seeds),
        new_folds=first.new_folds,
        split=trial.split or None,
        test_to_train=size_ratio(list(runs.values())),
        smallest_visible_difference=None,
        reason=None,
        verdict="",
        notes=(*notes, note) if note else tuple(notes),
        checksum=(first.data or {}).get("checksum", trial.data),
        seed_numbers=tuple(first.seeds),
        fold_numbers=tuple(sorted({r.trial.fold for r in first.results})),
    )


def _averaged(run: CrossValidation, metric: str) -> tuple[float | None, ...]:
    scores = run.averaged_by(metric) if isinstance(run, NestedValidation) else []
    return tuple(map(or_null, _in_order(run, scores) if scores else ()))


def _side_by_side(table: Comparison, other: Comparison) -> Comparison:
    """The systems of both; rules that the other does not share are noted with its systems.

    Raises:
        SettingError: for comparisons of different conditions.
    """
    if difference := _difference_of_conditions(table, other):
        raise SettingError(f"the comparisons differ in the {difference}")
    added = [row.name for row in other.systems if row.parameters is not None and not row.baseline]
    rules = (f"{_listed(added)}: {other.rules}",) if added and other.rules != table.rules else ()
    rows = {row.name: row for row in (*table.systems, *other.systems)}
    systems = sorted(rows.values(), key=lambda row: row.baseline)
    notes = dict.fromkeys((*table.notes, *other.notes, *rules))
    return replace(table, systems=tuple(systems), notes=tuple(notes), folder=None)


CONDITIONS = {  # that comparisons must have in common to stand side by side, in words
    "dataset": "data set",
    "checksum": "graphs of the data set",
    "protocol": "protocol",
    "num_folds": "number of folds",
    "fold_numbers": "folds that were run",
    "split": "split",
    "seeds": "number of seeds",
    "seed_numbers": "seeds",
    "new_folds": "new folds of each seed",
    "metric": "metric",
}


def _difference_of_conditions(table: Comparison, other: Comparison) -> str | None:
    """The first thing that must be the same and is not, in words; None where the two can stand side by side."""
    for what, words in CONDITIONS.items():
        ours, theirs = getattr(table, what), getattr(other, what)
        if ours != theirs and not (what in ADDED_LATER and None in (ours, theirs)):
            return words if what == "checksum" else f"{words}: {_in_words(ours)} and {_in_words(theirs)}"
    lengths = {len(row.scores) for row in (*table.systems, *other.systems)}
    return "folds that were run" if len(lengths) > 1 else None


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else printable(value)


ADDED_LATER = ("checksum", "fold_numbers", "seed_numbers")  # not known of comparisons of earlier versions


def _with_statistics(table: Comparison, reference: str) -> Comparison:
    """The same with the differences from a reference, ranks, and the verdict, all of them from the scores.

    Args:
        table: the systems with their scores.
        reference: the name of one of them.
    """
    folds = table.fold_numbers or range(table.num_folds)
    by_fold = {row.name: _by_fold(row, table, folds) for row in table.systems}
    found = {
        name: _difference(scores, by_fold[reference], table.test_to_train)
        for name, scores in by_fold.items()
        if name != reference
    }
    found = _adjusted(found, by_fold, reference, table.test_to_train)
    means = {row.name: math.nan if row.mean is None else row.mean for row in table.systems}
    better = METRICS[table.metric].higher_is_better
    rows = [replace(row, difference=found.get(row.name), rank=_rank(means, row.name, better)) for row in table.systems]
    visible = _visible(rows)
    reasons = [row.difference.reason for row in rows if row.difference and row.difference.reason]
    table = replace(
        table,
        systems=tuple(rows),
        reference=reference,
        smallest_visible_difference=visible,
        reason=reasons[0] if visible is None and reasons else None,
    )
    return replace(table, verdict=_verdict(table, by_fold))


# ---- which systems, and whether they may stand side by side ----


def _parse_systems(systems: Sequence[str | type]) -> dict[str, tuple[str, dict[str, Any]]]:
    """By name, the model and its settings; the baselines are added where they are not named."""
    if isinstance(systems, str):
        systems = systems.split(",")
    chosen: dict[str, tuple[str, dict[str, Any]]] = {}
    for system in (f"tapnet:{find_name(one)}" if isinstance(one, type) else one.strip() for one in systems):
        model, _, pool = system.partition(":")
        spec = find_model(model)
        given = {"pool": find_name(pool, allow_import=True)} if pool else {}
        spec.make_settings("", given)
        if system in chosen:
            raise SettingError(f"the system {system} is named twice")
        chosen[system] = model, given
    if not chosen:
        raise SettingError("a comparison needs a system, such as tapnet or tapnet:topk")
    return chosen | {name: (name, {}) for name in BASELINES if name not in chosen}


def _find_reference(reference: str | None, names: Sequence[str], otherwise: str | None = None) -> str:
    if reference is not None and reference not in names:
        raise SettingError(
            f"the reference is one of {', '.join(names)}, not {reference!r}{did_you_mean(reference, names)}"
        )
    return reference or otherwise or names[0]


def folder_name(system: str) -> str:
    """The folder of a system's run within that of its comparison."""
    return re.sub(r"[^\w.-]+", "-", system)


def _comparison_name(data: GraphDataset, protocol: str, shared: Mapping[str, Any]) -> str:
    """One name for comparisons whose trials are of the same conditions, whatever their systems and metric."""
    machinery = {"metric", "jobs", "progress", "cluster", "checkpoint_every", "data_dir"}
    same = {name: str(value) for name, value in shared.items() if name not in machinery and value is not None}
    return f"{data.name}-compare-{protocol}-{digest({**same, 'data': data.checksum})[:8]}"


def _names_of(runs: Sequence[CrossValidation]) -> dict[str, CrossValidation]:
    """Each by its system; by its folder too, where that is the name of several."""
    names = [system_name(run.results[0].trial) for run in runs]
    several = {name for name in names if names.count(name) > 1}
    labels = [
        f"{name} in {run.folder or i}" if name in several else name
        for i, (name, run) in enumerate(zip(names, runs, strict=True))
    ]
    if len(set(labels)) < len(labels):
        raise SettingError("a run is named twice")
    return dict(zip(labels, runs, strict=True))


def _check_conditions(runs: Mapping[str, CrossValidation], metric: str | None) -> None:
    """Refuses numbers that must not stand side by side: the first two that differ, and in what."""
    (name, first), *others = runs.items()
    ours = _conditions(first, metric)
    for other_name, other in others:
        theirs = _conditions(other, metric)
        refusal = f"{name} and {other_name} cannot be compared: they differ in the"
        for what, value in ours.items():
            if value != theirs[what]:
                values = "" if "graphs" in what else f": {printable(value)} and {printable(theirs[what])}"
                raise SettingError(f"{refusal} {what}{values}")
        tested, tested_there = _tested_graphs(first), _tested_graphs(other)
        if any(tested[fold] != tested_there[fold] for fold in tested.keys() & tested_there.keys()):
            raise SettingError(f"{refusal} graphs of the test folds")


def _conditions(run: CrossValidation, metric: str | None) -> dict[str, Any]:
    """What has to be the same, by its name."""
    trial = run.results[0].trial
    folds = sorted({(r.trial.fold_seed, r.trial.fold) for r in run.results})
    return {
        "data set": trial.dataset,
        "graphs of the data set": (run.data or {}).get("checksum", trial.data),
        "task": trial.task,
        "protocol": trial.protocol,
        "number of folds": trial.folds,
        "split": trial.split.partition("#")[0] or "stratified folds",
        "seeds": ", ".join(map(str, run.seeds)),
        "folds of the seeds": "new ones for each" if run.new_folds else "the same",
        "folds that were run": ", ".join(str(fold) for _, fold in folds),
        "metric": metric or run.metric,
        "graphs of the split": trial.split,
    }


def _tested_graphs(run: CrossValidation) -> dict[Fold, list[int]]:
    """The test graphs of each fold whose predictions are stored: packed trials have none."""
    return {
        (r.trial.fold_seed, r.trial.fold): r.predicted["test"].graphs.tolist()
        for r in run.results
        if "test" in r.predicted
    }


def _shared_rules(runs: Mapping[str, CrossValidation]) -> tuple[str, list[str]]:
    """The rules that the systems trained in epochs share, and a note for each whose rules say more."""
    trained = {name: run.rules for name, run in runs.items() if run.has_epochs}
    rules = list(dict.fromkeys((trained or {name: run.rules for name, run in runs.items()}).values()))
    if len(rules) == 1:
        return rules[0], []
    parts = [rule.partition(": ")[2].split("; ") for rule in rules]
    common = [part for part in parts[0] if all(part in other for other in parts)]
    protocol = next(iter(runs.values())).results[0].trial.protocol
    named: dict[str, list[str]] = {}
    for name, rule in trained.items():
        named.setdefault(rule, []).append(name)
    notes = [f"{_listed(names)}: {rule}." for rule, names in named.items()]
    return f"protocol {protocol}{': ' if common else ''}{'; '.join(common)}", notes


# ---- statistics ----


def _in_order(run: CrossValidation, scores: Sequence[float]) -> list[float]:
    """The scores by seed and fold, whatever order the folds were run in."""
    results = [fold.results[0] for fold in run.outer] if isinstance(run, NestedValidation) else run.results
    seeds = [fold.seed for fold in run.outer] if isinstance(run, NestedValidation) else [r.trial.seed for r in results]
    places = [(seed, r.trial.fold) for seed, r in zip(seeds, results, strict=True)]
    return [score for _, score in sorted(zip(places, scores, strict=True), key=lambda pair: pair[0])]


def _by_fold(row: ComparedSystem, table: Comparison, folds: Sequence[int]) -> dict[Fold, float]:
    """The score of each fold: the mean over the seeds that were trained on it; each seed's own where it drew folds."""
    scores = np.array([math.nan if score is None else score for score in row.scores]).reshape(table.seeds, -1)
    drawn = scores if table.new_folds else scores.mean(axis=0, keepdims=True)
    return {(draw, folds[place]): float(score) for (draw, place), score in np.ndenumerate(drawn)}


def size_ratio(runs: Sequence[CrossValidation]) -> float:
    """n_test/n_train on the mean over the folds; graphs that validate do not count as training graphs.

    Of runs that were stored without the sizes of their parts, graphs that are in no test fold are taken for not there,
    which makes the test stricter.
    """
    sizes = next((run.sizes for run in runs if run.sizes and run.has_epochs), None)
    sizes = sizes or next((run.sizes for run in runs if run.sizes), None)
    if sizes is not None:
        return sizes["test"] / max(1.0, sizes["train"])
    trial = runs[0].results[0].trial
    tested = _mean_size(runs, "test") or 1.0
    everything = tested * trial.folds
    if trial.split:
        graphs = [r.predicted["test"].graphs for r in runs[0].results if "test" in r.predicted]
        everything = float(np.unique(np.concatenate(graphs)).size) if graphs else everything
    validated = _mean_size(runs, "validation")
    if not validated:  # of systems that are fitted to training and validation graphs
        validated = {"fair": tested, "nested": 0.1 * (everything - tested)}.get(trial.protocol, 0.0)
    return tested / max(1.0, everything - tested - validated)


def _mean_size(runs: Sequence[CrossValidation], part: str) -> float:
    """The mean number of graphs in that part of a fold; 0 where no run says what they are."""
    sizes = [len(r.predicted[part].graphs) for run in runs for r in run.results if part in r.predicted]
    return float(np.mean(sizes)) if sizes else 0.0


def _difference(ours: Mapping[Fold, float], theirs: Mapping[Fold, float], ratio: float) -> FromReference:
    """Before p is adjusted."""
    d = np.array([ours[fold] - theirs[fold] for fold in theirs])
    mean = or_null(d.mean())
    if mean is None:
        (_, fold) = next(fold for fold, value in zip(theirs, d, strict=True) if not np.isfinite(value))
        return FromReference(None, reason=f"the metric is not defined on fold {fold}")
    if len(d) < FEWEST_FOLDS:
        few = "1 fold is" if len(d) == 1 else f"{len(d)} folds are"
        return FromReference(mean, reason=f"{few} too few to tell a difference from chance")
    found = corrected_t_test(ours, theirs, ratio)
    if found is None:
        return FromReference(mean, reason="the scores are the same on every fold")
    if np.ptp(d) < 1e-9 * np.abs(d).max():
        return FromReference(mean, reason="the difference is the same on every fold, which says nothing of its scatter")
    low, high = found.difference - found.half_width, found.difference + found.half_width
    return FromReference(mean, low, high, found.p_value)


def _adjusted(
    found: Mapping[str, FromReference], by_fold: Mapping[str, Mapping[Fold, float]], reference: str, ratio: float
) -> dict[str, FromReference]:
    """The same with p adjusted for all comparisons that could be made, and what each of them could have shown."""
    tested = {name: d.p for name, d in found.items() if d.p is not None}
    result = dict(found)
    for name, p_adjusted in zip(tested, holm(list(tested.values())).tolist(), strict=True):
        d = [score - by_fold[reference][fold] for fold, score in by_fold[name].items()]
        visible = smallest_visible_difference(d, ratio, len(tested))
        result[name] = replace(found[name], p_adjusted=p_adjusted, smallest_visible=visible)
    return result


def _rank(means: Mapping[str, float], name: str, higher_is_better: bool) -> int | None:
    """1 + the number of systems that are better; None where a mean is not defined."""
    if not np.isfinite(means[name]):
        return None
    return 1 + sum(mean > means[name] if higher_is_better else mean < means[name] for mean in means.values())


def _visible(rows: Sequence[ComparedSystem]) -> float | None:
    """The largest of the systems that are no baselines, or of all where there is no other."""
    asked = [row for row in rows if not row.baseline] if sum(not row.baseline for row in rows) > 1 else rows
    found = [row.difference.smallest_visible for row in asked if row.difference]
    return max((value for value in found if value is not None), default=None)


# ---- the verdict ----


def _verdict(table: Comparison, by_fold: Mapping[str, Mapping[Fold, float]]) -> str:
    """What follows for the systems, and for the baselines, in one sentence."""
    only_baselines = all(row.baseline for row in table.systems)
    others = [row for row in table.systems if row.difference and (only_baselines or not row.baseline)]
    return "; ".join([*_about_systems(table, others), *_about_baselines(table, by_fold)])


def _about_systems(table: Comparison, others: Sequence[ComparedSystem]) -> list[str]:
    metric, unit = METRICS[table.metric], " points" if METRICS[table.metric].percent else ""
    if not others:
        return []
    tested = [(row, row.difference) for row in others if row.difference and row.difference.p_adjusted is not None]
    if not tested:
        return [f"whether a system differs from {table.reference} by more than chance is open: {table.reason}"]
    said = []
    for row, d in tested:
        if d.differs and d.mean is not None:
            better = "better" if (d.mean > 0) == metric.higher_is_better else "worse"
            interval = f"{table.digits(d.low, '+')} to {table.digits(d.high, '+')}"
            said.append(
                f"{row.name} is {better} than {table.reference} by {table.digits(abs(d.mean))}{unit} "
                f"(95 % interval {interval}, adjusted p {d.p_adjusted:.2g})"
            )
    if len(said) < len(tested):
        who = "no other system that was asked for differs" if said else "no system differs"
        who = f"{tested[0][0].name} does not differ" if len(others) == 1 else who
        assert table.smallest_visible_difference is not None
        visible = f"{table.digits(table.smallest_visible_difference)}{unit}"
        seen = f"differences above {visible} would have shown"
        if table.smallest_visible_difference > metric.range:
            seen = "no difference would have shown with so few folds, however large"
        elif said:  # so that a smaller one has been found
            seen = f"a true difference of {visible} is found four times in five"
        said += [f"{who} from {table.reference} by more than chance", seen]
    return said


def _about_baselines(table: Comparison, by_fold: Mapping[str, Mapping[Fold, float]]) -> list[str]:
    """Which systems are not better than the best baseline by more than chance, by the same test, adjusted as well."""
    metric = METRICS[table.metric]
    ranked = [row for row in table.systems if row.mean is not None]
    baselines = [row for row in ranked if row.baseline]
    systems = [row for row in ranked if not row.baseline]
    if not baselines or not systems:
        return []
    best = min(baselines, key=lambda row: row.rank or 0)
    p = [_p_of_better(by_fold[row.name], by_fold[best.name], table) for row in systems]
    beaten = [value < LEVEL for value in holm(p)]
    unbeaten = [row.name for row, is_beaten in zip(systems, beaten, strict=True) if not is_beaten]
    score = metric.in_words(best.mean or 0.0)
    if not unbeaten:
        who = systems[0].name if len(systems) == 1 else "every system"
        return [f"{who} is better than the best baseline, {best.name} ({score}), by more than chance"]
    who = (
        "no system is"
        if len(unbeaten) == len(systems) > 1
        else f"{_listed(unbeaten)} {'is' if len(unbeaten) == 1 else 'are'} not"
    )
    return [f"{who} better than the baseline {best.name} ({score}) by more than chance"]


def _p_of_better(ours: Mapping[Fold, float], theirs: Mapping[Fold, float], table: Comparison) -> float:
    """The p-value of a difference that is an improvement; 1 for one that is not, or that cannot be tested."""
    found = _difference(ours, theirs, table.test_to_train)
    improves = found.mean is not None and (found.mean > 0) == METRICS[table.metric].higher_is_better
    return found.p if improves and found.p is not None else 1.0


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
