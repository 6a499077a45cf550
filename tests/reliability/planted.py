"""Reads files that a stranger planted, in a process whose compiled loops check every index (NUMBA_BOUNDSCHECK=1).

``python -m tests.reliability.planted FOLDER``: with an audit hook that notes what is opened for writing, run, or
reached over the network outside of FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

FORBIDDEN = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "socket.connect")
FORBIDDEN += ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree")
PLANTED = 200  # parsed copies
WRITING = ("w", "a", "x", "+")


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


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    from numba import config

    from tapnet.io.sealed_arrays import write_arrays
    from tests.helpers import readers
    from tests.helpers.corpus import torch_file, with_description

    assert config.BOUNDSCHECK
    readers.SCRATCH = str(folder)
    for name in ("tu", "archive", "model", "parsed-copy"):  # with everything imported and compiled
        readers.READERS[name].read(readers.READERS[name].seeds()[0])

    seen: list[str] = []

    def outside(path: Any) -> bool:
        return isinstance(path, str | bytes | Path) and not Path(str(path)).resolve().is_relative_to(folder)

    def watch(event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(values[1], str) and set(values[1]) & set(WRITING) and outside(values[0]):
            seen.append(f"opened for writing: {values[0]}")
        elif event in FORBIDDEN and (event.startswith(("subprocess", "socket", "os.system")) or outside(values[0])):
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
    assert not seen, "\n".join(seen[:20])
    assert not Path("code-was-run").exists()
    print("nothing happened")


if __name__ == "__main__":
    main()
