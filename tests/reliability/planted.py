"""Reads files that a stranger planted, in a process whose compiled loops check every index (NUMBA_BOUNDSCHECK=1).

``python -m tests.reliability.planted FOLDER``: with an audit hook that notes what is opened, listed, changed, run, or
reached over the network outside of FOLDER/given. Of other files only those of Python and of the system are opened.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapnet
from tapnet.errors import DatasetNotFoundError

RUNS = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "socket.connect")
CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree")
LOOKS = ("open", "os.listdir", "os.scandir")
PLANTED = 200  # parsed copies
SECRET = "what nobody may see"
NAMES = ("result", "model", "checkpoint", "lock", "run", "copy")  # of files that links lead to
OWN = [sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), "/dev/null", "/dev/urandom", "/proc", "/sys"]


def plant(arrays: dict[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """One array with other values, another length or another type."""
    name = str(draw.choice([key for key in sorted(arrays) if key != "words"]))
    array = np.array(arrays[name])
    how = draw.integers(4)
    if how == 0:
        array.reshape(-1)[draw.integers(array.size)] = draw.choice([-1, 100, 2**31 - 1, -(2**31)])
    elif how == 1:
        array = array[: draw.integers(len(array))]
    elif how == 2:
        array = np.concatenate([array, array])
    else:
        array = draw.permutation(array)
    return arrays | {name: array}


def plant_names(folder: Path, elsewhere: Path, seen: list[str]) -> None:
    """Files that name others: the names of graphs in tables, of data in a run's page, of runs in a comparison."""
    from tapnet.explorer.results import Results
    from tapnet.inference.model import SavedModel
    from tapnet.inference.training_data import load_training_data
    from tests.helpers import readers

    near, far = "../elsewhere/g.json", str(elsewhere / "g.json")
    for name in (near, far, f"G/../{near}", "..\\elsewhere\\g.json", f"file://{far}", "~/.profile", "/etc/passwd"):
        row = f"{name},ring\n".encode()
        for table, head in (("labels", b"graph,class\n"), ("targets", b"file,y\n"), ("matrices", b"\6graph,class\n")):
            readers.READERS[table].read(head + row)
        for table in (b"SMILES,y\n", b"name,kind\n"):
            readers.READERS["molecules"].read(b"\0" + table + row)
            readers.READERS["matrices"].read(b"\4" + table + row)
        entry = f'<!DOCTYPE g [<!ENTITY a SYSTEM "{name}">]>'
        readers.READERS["graphml"].read(readers.graphml(before=entry, node="<node id='q'>&a;</node>"))
        readers.READERS["splits"].read(json.dumps([{"train": [name], "test": name}]).encode())
        readers.READERS["settings"].read(json.dumps({"settings": {"pool": name, "conv": name}, "model": name}).encode())
        readers.read_files({"SMALL.zip": linked_archive(name)}, "SMALL.zip")
        run = json.loads(readers.run_files()["run.json"])
        run["data"] = {"source": name, "relative": name, "checksum": ""}
        readers.READERS["run"].read(b"c" + json.dumps(run).encode())
        table = json.loads(readers.comparison_content())
        for system in table["systems"]:
            system["folder"] = str(Path(name).parent)
        (folder / "comparison.json").write_bytes(readers.sealed_result(table))
        page = readers.survives(lambda: Results(folder).view())
        assert page is not None
        assert [picture["name"] for picture in page["pictures"]] == ["comparison"]
    assert not seen, "\n".join(seen[:20])
    run["data"] = {"source": far, "relative": near, "checksum": ""}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "m.safetensors").write_bytes(readers.model_content())
    model = SavedModel.load(folder / "m.safetensors")
    assert not seen, "\n".join(seen[:20])
    with warnings.catch_warnings(record=True) as notes:  # it is looked for there, and nothing is said of what is there
        warnings.simplefilter("always")
        with pytest.raises(DatasetNotFoundError) as error:
            load_training_data(model)
    assert not any(word in f"{error.value} {notes}" for word in ("elsewhere", "nobody"))
    assert seen == [word for word in seen if "elsewhere" in word]
    seen.clear()


def linked_archive(target: str) -> bytes:
    """An archive in which a file is a link."""
    from tests.helpers import readers

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in readers.TU.items():
            entry = zipfile.ZipInfo(f"SMALL/{name}")
            if name == "SMALL_node_labels.txt":
                entry.external_attr, content = (stat.S_IFLNK | 0o777) << 16, target.encode()
            archive.writestr(entry, content)
    return out.getvalue()


def plant_links(folder: Path, elsewhere: Path, seen: list[str]) -> None:
    """Links in the place of what is written: what they lead to may be read, and stays as it is."""
    from tapnet import load_dataset
    from tapnet.experiments.run_trial import run_trial
    from tapnet.experiments.store import Store
    from tests.helpers import readers

    trial, store = readers.small_trial(), Store(folder / "links")
    files = [store.result_file(trial), store.model_file(trial), store.checkpoint_file(trial), store.lock_file(trial)]
    place, data, copy, _ = readers.parsed_copy()
    copy.unlink()
    for name, file in zip(NAMES, (*files, store.folder / "run.json", copy), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(elsewhere / name)
    seen.clear()
    with warnings.catch_warnings(), readers.own_cache(place):
        warnings.simplefilter("ignore")
        load_dataset(data)
        list(store.results())
        with store.claim(trial):
            run_trial(trial, readers.small_set(), store)
        store.save_run({"trials": [trial.key]})
        assert store.load(trial) is not None
    writes = [word for word in seen if not word.startswith("open: ") or "'w" in word]
    assert not writes, writes
    seen.clear()


def main() -> None:
    folder, elsewhere = (Path(sys.argv[1]).resolve() / name for name in ("given", "elsewhere"))
    for place in (folder, elsewhere):
        place.mkdir(exist_ok=True)
    for name in ("g.json", *NAMES):
        (elsewhere / name).write_text(SECRET)
    os.chdir(folder)
    from numba import config

    from tapnet.io.sealed_arrays import write_arrays
    from tests.helpers import readers
    from tests.helpers.corpus import torch_file, with_description

    assert config.BOUNDSCHECK
    readers.SCRATCH = str(folder)
    for reader in readers.READERS.values():  # with everything imported and compiled
        reader.read(reader.seeds()[0])

    seen: list[str] = []
    own = [folder, *(Path(place).resolve() for place in OWN), Path(tapnet.__file__).parent.resolve()]

    def outside(path: Any, follow: bool = True) -> bool:
        if not isinstance(path, str | bytes | Path):
            return False
        place = Path(os.fsdecode(path))
        place = place.resolve() if follow else place.parent.resolve() / place.name
        return not any(place.is_relative_to(root) for root in own)

    def watch(event: str, values: tuple[Any, ...]) -> None:
        if event in RUNS or (event in LOOKS and outside(values[0])) or (event in CHANGES and outside(values[0], False)):
            seen.append(f"{event}: {values}")

    sys.addaudithook(watch)
    draw = np.random.default_rng(0)
    place, file, copy, arrays = readers.parsed_copy()
    with readers.own_cache(place):
        for _ in range(PLANTED):
            write_arrays(copy, plant(arrays, draw))
            found = readers.survives(lambda: readers.load_dataset(file))
            readers.use(found)
            readers.small_model().probabilities(readers.small_model().encode(found))
    evil = b"cos\nsystem\n(S'touch code-was-run'\ntR."
    for content in (evil, torch_file({"a": 1}), b"PK\x03\x04" + evil):
        readers.read_model_file(content)
        store = readers.checkpoint_store(folder / "store", content)
        readers.survives(lambda store=store: store.load_checkpoint(readers.small_trial(epochs=2)))
    model = readers.model_content()
    for path, value in (
        (("trial", "settings", "pool"), "os:system"),
        (("trial", "settings", "conv"), "os:system"),
        (("trial", "model"), "os.system"),
        (("trial", "dataset"), "../../etc/passwd"),
        (("shape", "in_channels"), 10**9),
        (("categories",), [1]),
    ):
        readers.read_model_file(with_description(model, *path, value=value))
    for name in ("SMALL/../../evil.txt", "/tmp/evil.txt", "SMALL/evil\\..\\..\\evil"):
        files = {f"SMALL/{part}": text for part, text in readers.TU.items()} | {name: b"1"}
        readers.read_files({"SMALL.zip": readers.packed(files)}, "SMALL.zip")
    plant_names(folder, elsewhere, seen)
    plant_links(folder, elsewhere, seen)
    assert not seen, "\n".join(seen[:20])
    assert not Path("code-was-run").exists()
    assert {file.read_text() for file in elsewhere.iterdir()} == {SECRET}
    print("nothing happened")


if __name__ == "__main__":
    main()
