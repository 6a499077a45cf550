"""Every comparison at full size, as a table of ratios: `python benchmarks/run.py --data-dir DIR`.

Nothing else should run on the machine meanwhile. `--tiny` only proves that every benchmark runs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when called as a file, not with -m
from benchmarks import cases, tasks
from benchmarks.data import bench_dataset

HERE = Path(__file__).parent
# What the project set out to reach on two cores (peer's cost ÷ ours).
GOALS: dict[tuple[str, str, str], float | str] = {
    ("training epoch", "REDDIT-BINARY", "PyG"): 5.0,
    ("training epoch", "COLLAB", "PyG"): 5.0,
    ("training epoch", "DD", "PyG"): 2.5,
    ("training epoch", "PROTEINS", "PyG"): 2.0,
    ("training epoch", "IMDB-MULTI", "PyG"): 2.0,
    ("training epoch", "MUTAG", "PyG"): 2.0,
    ("10-fold cross-validation", "MUTAG", "PyG"): 3.5,
    ("10-fold cross-validation", "PROTEINS", "PyG"): 3.5,
    ("pooling layer, forward and backward", "REDDIT-BINARY", "SAGPooling"): 2.0,
    ("pooling layer, forward and backward", "COLLAB", "SAGPooling"): 3.0,
    ("pooling layer, forward and backward", "REDDIT-BINARY", "TopKPooling"): 1.2,
    ("pooling layer, forward and backward", "COLLAB", "TopKPooling"): 1.2,
    ("reading the archive", "COLLAB", "PyG's read_tu_data"): 4.0,
    ("reading the parsed copy", "COLLAB", "PyG's processed file"): 2.0,
    ("reading JSON files and predicting", "PROTEINS", "NetworkX and PyG"): 5.0,
    ("peak memory of training", "REDDIT-BINARY", "PyG"): 3.0,
    ("inference", "MUTAG", "PyG"): 3.0,
    ("inference", "REDDIT-BINARY", "PyG"): 3.0,
    ("explanation by occlusion", "Mutagenicity", "GNNExplainer"): 10.0,
    ("first result, nothing compiled yet", "MUTAG", "the second run"): "under 3 s",
}
GOALS |= {("WL kernel", name, "GraKeL"): 10.0 for name in ("PTC", "PROTEINS", "IMDB-MULTI", "COLLAB")}
GOALS |= {
    (f"reading {form} files and predicting", "MUTAG, 20,000 graphs", "NetworkX and PyG"): 5.0
    for form in ("JSON", "GraphML")
}
GOALS |= {("compare, 6 systems and 3 baselines", name, "PyG and GraKeL"): 4.0 for name in ("MUTAG", "PROTEINS")}
for _name in ("ESOL", "BBBP"):
    GOALS["training from a CSV of SMILES", _name, "chemprop"] = 5.0
    GOALS["predicting a CSV of SMILES", _name, "chemprop"] = 5.0
CLUSTERS = ("diff", "mincut", "dmon")
for _pool in CLUSTERS:
    for _name in ("PROTEINS", "REDDIT-BINARY"):
        GOALS[f"soft clustering by {_pool}, forward and backward", _name, "PyG's dense layer"] = 3.0
        GOALS[f"memory of soft clustering by {_pool}", _name, "PyG's dense layer"] = 5.0
PARTS = (
    *("training", "inference", "layer", "reading", "files", "memory", "cross-validation"),
    *("wl", "clusters", "molecules", "compare", "explanations", "first"),
)


def run(
    parts: tuple[str, ...], data_dir: Path | None, tiny: bool, chemprop: Path | None = None
) -> Iterator[cases.Case]:
    """Yields each comparison as soon as it is measured."""
    limit = 8 if tiny else None
    rounds = 1 if tiny else 5
    if "training" in parts:
        for name in ("MUTAG", "IMDB-MULTI", "PROTEINS", "DD", "REDDIT-BINARY", "COLLAB"):
            few = rounds if name in ("MUTAG", "IMDB-MULTI", "PROTEINS") else min(rounds, 3)
            yield cases.training(bench_dataset(name, data_dir, limit), few)
    if "inference" in parts:
        for name in ("MUTAG", "REDDIT-BINARY"):
            yield cases.inference(bench_dataset(name, data_dir, limit), rounds)
    if "layer" in parts:
        for name in ("REDDIT-BINARY", "COLLAB"):
            yield from cases.layer(bench_dataset(name, data_dir, limit or cases.BATCH), rounds)
    if "reading" in parts and data_dir is not None:
        for name in ("MUTAG",) if tiny else ("MUTAG", "PROTEINS", "REDDIT-BINARY", "COLLAB"):
            if (data_dir / f"{name}.zip").exists():
                yield from cases.reading(data_dir / f"{name}.zip", 1 if name == "COLLAB" else 3)
    if "files" in parts:
        for name in ("MUTAG", "PROTEINS"):
            yield cases.files(bench_dataset(name, data_dir, limit), rounds)
        for form in ("JSON", "GraphML"):
            yield cases.files(bench_dataset("MUTAG", data_dir), 1, form, 20 if tiny else 20_000)
    if "memory" in parts:
        yield cases.memory("REDDIT-BINARY", data_dir, limit)
    if "cross-validation" in parts:
        for name, epochs in (("MUTAG", 1),) if tiny else (("MUTAG", 200), ("PROTEINS", 200)):
            yield cases.cross_validation(name, data_dir, epochs)
    yield from run_tasks(parts, data_dir, tiny, chemprop)


def run_tasks(parts: tuple[str, ...], data_dir: Path | None, tiny: bool, chemprop: Path | None) -> Iterator[cases.Case]:
    """Those of whole tasks."""
    limit, few = (8, 1) if tiny else (None, 3)
    if "wl" in parts and not tasks.has_grakel():
        print("wl: left out, GraKeL is not installed", flush=True)
    elif "wl" in parts:
        for name in ("PTC", "PROTEINS", "IMDB-MULTI", "COLLAB"):
            yield tasks.wl(bench_dataset(name, data_dir, limit), 1 if name == "COLLAB" else few)
    if "clusters" in parts:
        for name, graphs in (("PROTEINS", 64), ("REDDIT-BINARY", 16)):  # 16: dense matrices of 0.6 GB each
            for pool in CLUSTERS:
                yield tasks.clusters(bench_dataset(name, data_dir, 4 if tiny else graphs), pool, few)
            for pool in CLUSTERS if not tiny else CLUSTERS[:1] if graphs == 16 else ():
                yield tasks.cluster_memory(pool, name, data_dir, 4 if tiny else graphs)
    if "molecules" in parts:
        tables = () if data_dir is None else tuple(data_dir / "molecules" / f"{name}.csv" for name in ("ESOL", "BBBP"))
        if chemprop is None or not tables or not tables[0].exists():
            print("molecules: left out; they need --chemprop, and ESOL.csv and BBBP.csv in molecules/ of the data")
        else:
            others = tables[0].with_name("tox21.csv")
            for table in tables[:1] if tiny else tables:
                yield from tasks.molecules(table, chemprop, others if others.exists() else None, tiny)
    if "compare" in parts:
        for name, epochs in (("MUTAG", 1),) if tiny else (("MUTAG", 30), ("PROTEINS", 8)):
            some = ("tapnet:topk", "wl") if tiny else tasks.SYSTEMS
            yield tasks.comparison(name, data_dir, epochs, 3 if tiny else 10, some)
    if "explanations" in parts:
        yield tasks.explanation(data_dir, tiny)
    if "first" in parts:
        yield tasks.first_result(few)


def table(rows: list[dict[str, object]]) -> str:
    """The measured cases as a Markdown table, beside the goals."""
    lines = ["| what | data | against | ratio | goal |", "|---|---|---|---|---|"]
    for row in rows:
        key = (str(row["what"]), str(row["data"]), str(row["peer"]))
        rounds = row["rounds"]
        assert isinstance(rounds, list)
        spread = f" ({min(rounds):.1f} to {max(rounds):.1f})" if len(rounds) > 1 else ""
        goal = GOALS.get(key)
        measured = f"**{row['ratio']:.1f}**{spread}"
        if isinstance(goal, str):  # of a difference, which the note says
            measured = str(row["note"])
        aim = "" if goal is None else goal if isinstance(goal, str) else f"{goal:g}"
        lines.append(f"| {' | '.join(key)} | {measured} | {aim} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("TAPNET_DATA"))
    parser.add_argument("--only", help=f"some of {','.join(PARTS)}", default=",".join(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chemprop", type=Path, help="chemprop's executable, for molecules")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has compiled modules
    torch.set_num_threads(options.threads)
    parts = tuple(options.only.split(","))
    stored = json.loads(options.out.read_text())["cases"] if options.out.exists() else []
    for case in run(parts, options.data_dir and Path(options.data_dir), options.tiny, options.chemprop):
        row = case.to_dict()
        print(f"{case.what}, {case.data}, against {case.peer}: {case.ratio} {case.note}", flush=True)
        stored = [r for r in stored if any(r[k] != row[k] for k in ("what", "data", "peer"))] + [row]
        about = {
            "date": datetime.date.today().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {options.threads} threads",
            "torch": str(torch.__version__),
        }
        options.out.write_text(json.dumps({**about, "cases": stored}, indent=1) + "\n")
    print("\n" + table(stored))


if __name__ == "__main__":
    main()
