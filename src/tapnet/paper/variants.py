"""What else is stored of TAPNet on a data set: other settings, other training, other seeds, over the same folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tapnet.experiments.statistics import corrected_t_test
from tapnet.experiments.summary import Summary, changed_settings
from tapnet.experiments.trial import ARITHMETIC, Trial, TrialResult, digest
from tapnet.paper.page import signed
from tapnet.paper.plan import training_settings
from tapnet.paper.tables import DIFFERS, Section, markdown
from tapnet.paper.targets import TAPNET

VARIED = ("MUTAG", "PROTEINS")  # the data sets on which other settings were tried
TITLE = "Variants of TAPNet"


def variants_page(results: Sequence[TrialResult], checksums: Mapping[str, str]) -> str | None:
    """The tables of all data sets on which variants were tried, as Markdown; None where nothing is stored.

    Args:
        results: Of any trials.
        checksums: By the name of a data set, that of the copy whose results count; others count whatever their copy.
    """
    found = [variants_section(results, name, checksums.get(name)) for name in VARIED]
    tables = [section for section in found if section is not None]
    return f"# {TITLE}\n\n{markdown(tables)}" if tables else None


def variants_section(results: Iterable[TrialResult], dataset: str, data: str | None = None) -> Section | None:
    """A row for each variant of TAPNet whose folds are all stored, by the paper's protocol.

    Args:
        results: Of any trials.
        dataset: The name of the data set.
        data: The checksum of the copy whose results count, if given.

    Returns:
        The table, TAPNet as it is first; None where that is not stored.
    """
    named = _variants(results, dataset, data)
    usual = named.pop("", None)
    if usual is None:
        return None
    rows = [_row("as it is", usual, usual)]
    rows += [_row(words, group, usual) for words, group in sorted(named.items(), key=lambda pair: _order(*pair))]
    note = f"Mean ± deviation over ten folds, best test epoch of each; {DIFFERS} differs from the first row at 5 %."
    header = ("changed", "accuracy", "difference", "last training loss")
    return Section(f"{TITLE} on {dataset}", header, tuple(rows), (note,))


def variant_rows(results: Iterable[TrialResult], dataset: str, data: str | None = None) -> list[dict[str, Any]]:
    """The same for places in a text: `{variants; lr 0.01; MUTAG; paper; mean}`."""
    return [
        {"target": "variants", "system": words, "dataset": dataset, "protocol": "paper"}
        | {"mean": Summary(group).mean, "std": Summary(group).std}
        for words, group in _variants(results, dataset, data).items()
    ]


def _variants(results: Iterable[TrialResult], dataset: str, data: str | None) -> dict[str, list[TrialResult]]:
    """The folds of each, by what was changed."""
    groups: dict[tuple[Any, ...], list[TrialResult]] = defaultdict(list)
    for result in results:
        t = result.trial
        asked = (t.dataset, t.model, t.protocol, t.split) == (dataset, "tapnet", "paper", "")
        if asked and data in (None, t.data) and t.arithmetic == ARITHMETIC and not t.reproducible and t.fold_seed == 0:
            key = (digest(t.settings.to_dict()), digest(t.training.to_dict()), t.seed, t.folds, t.threads, t.device)
            groups[key].append(result)
    whole = [sorted(g, key=lambda r: r.trial.fold) for g in groups.values() if len(g) == g[0].trial.folds == 10]
    return {variant_in_words(group[0].trial): group for group in whole}


def variant_in_words(trial: Trial) -> str:
    """What is not as usual, such as "lr 0.01, seed 1"; empty if nothing is."""
    usual = training_settings(TAPNET, 200)
    changed = dict(changed_settings(trial))
    changed |= {name: v for name, v in trial.training.to_dict().items() if v != getattr(usual, name)}
    changed |= {"seed": trial.seed} if trial.seed else {}
    return ", ".join(f"{name} {value}" for name, value in changed.items())


def _order(words: str, group: Sequence[TrialResult]) -> tuple[bool, float]:
    return group[0].trial.seed == 0, -Summary(group).mean


def _row(words: str, group: Sequence[TrialResult], usual: Sequence[TrialResult]) -> tuple[str, ...]:
    summary, loss = Summary(group), np.mean([r.curves["train_loss"][-1] for r in group])
    scores = [{r.trial.fold: r.reading.accuracy for r in of} for of in (group, usual)]
    d = None if group is usual else corrected_t_test(scores[0], scores[1], 1 / (group[0].trial.folds - 1))
    differs = f" {DIFFERS}" if d is not None and d.differs else ""
    difference = "" if d is None else f"{signed(d.difference)} ± {d.half_width:.1f}"
    return words, f"{summary.mean:.1f} ± {summary.std:.1f}{differs}", difference, f"{loss:.2f}"
