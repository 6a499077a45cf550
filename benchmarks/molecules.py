"""How well molecules are predicted, beside chemprop: `python benchmarks/molecules.py --data-dir DIR --chemprop PATH`.

ESOL and BBBP, three scaffold and three random splits 80:10:10 of each, three seeds on every split: the score of the
test part at the epoch with the lowest validation loss, with defaults (tapnet's: an epoch of the second half) and one
thread. Without `--chemprop`, tapnet is run. Each score goes to molecules.json as soon as it is known, and the same
command again does only what is missing. For speed there is run.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m
from benchmarks.tasks import (
    PART_NAMES,
    TARGETS,
    Parts,
    last_column,
    molecule_score,
    our_training,
    peer_training,
    random_parts,
    readable,
    run_alone,
    write_molecules,
)
from tapnet.data.scaffolds import scaffold_groups, scaffold_split
from tapnet.files import write_atomically

RESULTS = Path(__file__).with_suffix(".json")
KINDS = ("scaffold", "random")
SEEDS = SPLITS = range(3)
Row = dict[str, Any]


def splits_of(smiles: Sequence[str], kind: str) -> list[Parts]:
    """Three splits of these molecules; the scaffold splits are those of chemprop with the same seeds."""
    if kind == "random":
        return [random_parts(len(smiles), seed) for seed in SPLITS]
    groups = scaffold_groups(smiles)
    found = [scaffold_split(groups, seed=seed) for seed in SPLITS]
    return [{name: np.asarray(part) for name, part in zip(PART_NAMES, s, strict=True)} for s in found]


def scores(side: str, rows: Sequence[tuple[str, str]], parts: Parts, seed: int, words: Sequence[str]) -> Row:
    """Trains one side on one split and scores what it says of the test part, and the mean of the training part.

    Args:
        side: what it is called; "chemprop" is run by its executable, the first of the words.
        rows: SMILES and target of each molecule.
        parts: the split.
        seed: of weights and order.
        words: more words for the command.
    """
    target, test = np.asarray([y for _, y in rows], dtype=np.float64), parts["test"]
    classifies = set(target) <= {0, 1}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_molecules(work, rows, [parts])
        if side == "chemprop":
            run_alone([*peer_training(Path(words[0]), "out", classifies, seed), *words[1:]], work)
            said = last_column(work / "out" / "model_0" / "test_predictions.csv")
            score = molecule_score(target[test], said, classifies)
        else:
            metric = "roc_auc" if classifies else "rmse"
            answer = json.loads(run_alone([*our_training("out", seed), "--metric", metric, "--json", *words], work))
            score = answer["mean"]
    trivial = np.full(len(test), target[parts["train"]].mean())
    return {"score": round(score, 4), "mean": round(molecule_score(target[test], trivial, classifies), 4)}


def missing(stored: Sequence[Row], side: str, names: Sequence[str]) -> Iterator[tuple[str, int, str, int]]:
    """What is not stored yet of a side: kind of split, seed, data, number of the split."""
    done = {tuple(row[k] for k in ("kind", "seed", "data", "split")) for row in stored if row["side"] == side}
    return (what for what in product(KINDS, SEEDS, names, SPLITS) if what not in done)


def table(stored: Sequence[Row]) -> str:
    """The mean over splits and seeds, and of each split over the seeds, as a Markdown table."""
    sides = list(dict.fromkeys(row["side"] for row in stored))
    lines = [f"| data, split | {' | '.join(sides)} | always the mean |", "|---" * (len(sides) + 2) + "|"]
    for name, kind in dict.fromkeys((row["data"], row["kind"]) for row in stored):
        cells = []
        for side in sides:
            mine = [row for row in stored if (row["data"], row["kind"], row["side"]) == (name, kind, side)]
            each = [[row["score"] for row in mine if row["split"] == split] for split in SPLITS]
            told = ", ".join(f"{mean(s):.3f}" if s else "–" for s in each)
            cells.append(f"{mean(map(mean, filter(None, each))):.3f} ({told}; {len(mine)} runs)" if mine else "–")
        trivial = mean(row["mean"] for row in stored if (row["data"], row["kind"]) == (name, kind))
        lines.append(f"| {name}, {kind} | {' | '.join(cells)} | {trivial:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TAPNET_DATA"), help="has molecules/ESOL.csv")
    parser.add_argument("--only", default=",".join(TARGETS), help=f"some of {','.join(TARGETS)}")
    parser.add_argument("--chemprop", type=Path, help="its executable: chemprop is run; without it, tapnet is")
    parser.add_argument("--side", help="what the rows are called")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("words", nargs="*", help="more words for the command, after --")
    options = parser.parse_args()
    side = options.side or ("chemprop" if options.chemprop else "tapnet")
    words = [str(options.chemprop), *options.words] if options.chemprop else options.words
    for kind, seed, name, split in list(missing(_read(options.out), side, options.only.split(","))):
        rows = readable(Path(options.data_dir) / "molecules" / f"{name}.csv", TARGETS[name])
        parts = splits_of([smiles for smiles, _ in rows], kind)[split]
        row = {"side": side, "data": name, "kind": kind, "seed": seed, "split": split}
        row |= scores("chemprop" if options.chemprop else "tapnet", rows, parts, seed, words)
        print(json.dumps(row), flush=True)
        with FileLock(f"{options.out}.lock"):  # the other side may run meanwhile
            stored = [*_read(options.out), row]
            write_atomically(options.out, ("[\n" + ",\n".join(map(json.dumps, stored)) + "\n]\n").encode())
    print(table(_read(options.out)))


def _read(file: Path) -> list[Row]:
    found: list[Row] = json.loads(file.read_text()) if file.exists() else []
    return found


if __name__ == "__main__":
    main()
