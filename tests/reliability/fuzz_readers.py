"""Coverage-guided fuzzing of every reader of files with Atheris (``pip install atheris``).

``python -m tests.reliability.fuzz_readers FOLDER [--minutes 10] [--only tu,text]`` writes what it finds to FOLDER:
``corpus/READER/`` with an input for everything new that the reader did, ``found/READER-…`` with an input for each
fault, and ``figures.json``. ``--keep`` packs the corpora into ``fuzz_corpus.zip`` next to this file, all of which
`test_fuzz_corpus.py` reads again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
import traceback
import zipfile
from importlib.util import find_spec
from pathlib import Path

CORPUS = Path(__file__).with_name("fuzz_corpus.zip")
COMPILED = (
    "tapnet._loops",
    "tapnet.models.preprocess.receptive_fields",
    "tapnet.viz.graph_layout",
)  # by Numba: not watched
SLOW = 2.0  # seconds
LARGEST, MOST_KEPT = 60_000, 150  # bytes of an input that is kept; inputs of a reader


def fuzz(name: str, folder: Path, minutes: float) -> None:
    """One reader, in this process, which ends when the time is up."""
    import atheris

    loops = [f"{COMPILED[0]}.{file.stem}" for file in Path(find_spec(COMPILED[0]).origin).parent.glob("*.py")]
    with atheris.instrument_imports(include=["tapnet"], exclude=[*COMPILED, *loops], enable_loader_override=False):
        from tests.helpers.readers import READERS
    from tests.helpers.tokens import TOKENS

    reader, corpus, found = READERS[name], folder / "corpus" / name, folder / "found"
    for path in (corpus, found):
        path.mkdir(parents=True, exist_ok=True)
    for seed in reader.seeds():
        reader.read(seed)
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    words = folder / f"{name}.dict"
    words.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word[:60]) + '"\n' for word in TOKENS if word))
    faults: dict[str, int] = {}

    def one(content: bytes) -> None:
        begin = time.process_time()  # the machine may be busy
        fault = ""
        try:
            reader.read(content)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            where = next((frame for frame in reversed(frames) if "tapnet" in frame.filename), frames[-1])
            fault = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
            text = traceback.format_exc()
        if not fault and (seconds := time.process_time() - begin) > SLOW:
            fault = text = f"slow, more than 2 to the {int(seconds).bit_length() - 1} seconds"
        if fault:
            faults[fault] = faults.get(fault, 0) + 1
            if faults[fault] == 1:
                file = found / f"{name}-{hashlib.sha1(fault.encode()).hexdigest()[:8]}"
                file.write_bytes(content)
                file.with_suffix(".txt").write_text(f"{fault}\n{text}")

    limits = ["-rss_limit_mb=4000", "-timeout=120", "-max_len=60000", f"-dict={words}"]
    options = [f"-max_total_time={int(60 * minutes)}", f"-artifact_prefix={found}/{name}-", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *options, str(corpus)], one)
    atheris.Fuzz()


def keep(folder: Path) -> None:
    """The smallest inputs of each corpus, in one archive whose bytes do not depend on the day."""
    with zipfile.ZipFile(CORPUS, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for corpus in sorted((folder / "corpus").iterdir()):
            every = [file for file in sorted(corpus.iterdir()) if file.stat().st_size <= LARGEST]
            files = {file.name[:12]: file for file in every}  # a digest of the content; some are of the archive before
            for name, file in sorted(sorted(files.items(), key=lambda one: one[1].stat().st_size)[:MOST_KEPT]):
                entry = zipfile.ZipInfo(f"{corpus.name}/{name}", (2020, 1, 1, 0, 0, 0))
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def cpu_seconds() -> float:
    """Of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--here", action="store_true", help="in this process: one reader alone")
    chosen = parser.parse_args()
    if chosen.keep:
        keep(chosen.folder)
        return
    if chosen.here:
        fuzz(chosen.only, chosen.folder, chosen.minutes)
        return
    from tests.helpers.readers import READERS

    figures, chosen.folder = {}, chosen.folder.resolve()
    for name in chosen.only.split(",") if chosen.only else READERS:
        before = cpu_seconds()
        words = [sys.executable, "-m", "tests.reliability.fuzz_readers", str(chosen.folder), "--only", name, "--here"]
        done = subprocess.run(
            [*words, "--minutes", str(chosen.minutes)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=os.environ | {"TAPNET_CACHE": str(chosen.folder / "cache")},
        )
        lines = [line for line in done.stderr.splitlines() if line.startswith(("stat::", "#"))]
        runs = next((int(line.split()[-1]) for line in lines if "number_of_executed_units" in line), None)
        faults = sorted(file.name for file in (chosen.folder / "found").glob(f"{name}-*.txt"))
        figures[name] = {
            "runs": runs,
            "minutes": chosen.minutes,
            "cpu_minutes": round((cpu_seconds() - before) / 60, 1),
            "code": done.returncode,
            "faults": faults,
        }
        print(json.dumps({name: figures[name]}), flush=True)
        if runs is None:
            print(done.stderr[-3000:], flush=True)
    (chosen.folder / "figures.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
