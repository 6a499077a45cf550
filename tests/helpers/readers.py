"""Every reader of files as a function of bytes: a result that can be used or one of tapnet's own errors, never another.

The fuzzers (`tests/hostile/test_fuzz.py`, `tests/reliability/fuzz_readers.py`) call these.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse

from tapnet import GraphDataset, compare_runs, cross_validate, load_comparison, load_dataset
from tapnet.data.checks import copies_note, features_note
from tapnet.errors import TapnetError
from tapnet.experiments.calibration import calibration
from tapnet.experiments.load_run import load_run
from tapnet.experiments.run_trial import Interrupted, describe_model, run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial, digest
from tapnet.experiments.tune import load_settings
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.model import SavedModel
from tapnet.io.read import read
from tapnet.io.sealed_arrays import read_arrays, write_arrays
from tapnet.io.splits import read_splits
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings
from tests.helpers.corpus import (
    description,
    graph_folder,
    graphml,
    node_link,
    packed,
    text_file,
    tu_files,
    unsealed,
    with_header,
)

SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None  # memory: a fuzzer writes a file for each input
BETWEEN = b"\xfe\xfd"  # two parts of one input


def survives(read: Callable[[], Any]) -> Any:
    """The result, or None for an error that is said to the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read()
        except TapnetError as error:
            str(error).encode(errors="surrogateescape")
            return None


# ---- data sets ----


def read_files(files: Mapping[str, bytes], name: str) -> None:
    """Reads what is called ``name`` among these files, and uses it as the commands do."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        for file, content in files.items():
            (Path(folder) / file).parent.mkdir(exist_ok=True)
            (Path(folder) / file).write_bytes(content)
        dataset = survives(lambda: read(Path(folder) / name))
        if dataset is not None:
            use(dataset)


def use(dataset: GraphDataset) -> None:
    """What commands do with every data set."""
    assert len(dataset.batch(range(len(dataset))).x) == dataset.num_nodes
    assert repr(dataset)
    features_note(dataset)
    copies_note(dataset)


TU = tu_files()
FOLDER = {name: content for name, content in graph_folder().items() if name[4:5] in ("3", "4") or name == "labels.csv"}
LABELS = b"class,graph\nring,ring3.json\nring,ring4.graphml\nstar,star3.json\nstar,star4.graphml\n"
MOLECULES = (
    b"smiles,target\nCCO,1\nc1ccccc1,0\nCC(=O)[O-],1\nN#N,0\n",
    b"CCO ethanol\nc1ccccc1 benzene\n[Na+].[Cl-] salt\n",
    b"water\n  made by hand\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n"
    b"    0.0000    0.0000    0.0000 O   0  0\nM  END\n> <target>\n1\n\n$$$$\n",
)
TABLES = ("csv", "smi", "sdf")  # of molecules; the input's first byte says which
TARGETS = (
    b"file,target\nring3,0.5\nring4.graphml,-1\nstar3,2e3\nstar4,\n",
    b"file;a;b\nring3;0;1\nring4;1;\nstar3;;1\nstar4;1;0\n",
)
MATRIX_FILES = ("a.npy", "b.npz", "c.csv", "d.npz", "nodes.csv", "a.nodes.csv", "labels.csv")


@cache
def matrix_folder() -> dict[str, bytes]:
    """The matrix of a path of three nodes in every format, their nodes and their classes."""
    matrix = np.array([[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]])
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/a.npy", matrix)
        np.savez(f"{folder}/b.npz", adjacency=matrix, names=np.arange(3))
        sparse.save_npz(f"{folder}/d.npz", sparse.csr_array(matrix))
        files = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
    return files | {
        "c.csv": b",x,y,z\nx,0,1,0\ny,1,0,0.5\nz,0,0.5,0\n",
        "nodes.csv": b"name,kind,size\nx,left,0.5\ny,right,1\nz,left,-2e3\n",
        "a.nodes.csv": b"name,size,kind\nx,0.5,left\ny,1,right\nz,7,left\n",
        "labels.csv": b"graph,class\na,0\nb,1\nc,0\nd,1\n",
    }


def _tu(content: bytes) -> None:
    """The files one after another, in the order of their names; one that is missing is not there."""
    parts = content.split(BETWEEN)
    read_files({f"SMALL/{name}": part for name, part in zip(sorted(TU), parts, strict=False)}, "SMALL")


def _matrices(content: bytes) -> None:
    """One file of a folder of matrices; the input's first byte says which."""
    name = MATRIX_FILES[content[0] % len(MATRIX_FILES)] if content else MATRIX_FILES[0]
    read_files({f"M/{n}": f for n, f in (matrix_folder() | {name: content[1:]}).items()}, "M")


def _molecules(content: bytes) -> None:
    ending = TABLES[content[0] % len(TABLES)] if content else "csv"
    read_files({f"M.{ending}": content[1:]}, f"M.{ending}")


# ---- models ----


@cache
def small_set() -> GraphDataset:
    graphs = [nx.cycle_graph(n) for n in range(3, 7)] + [nx.star_graph(n) for n in range(3, 7)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "label")
    return GraphDataset.from_networkx(graphs, ["ring"] * 4 + ["star"] * 4, name="SMALL")


def small_trial(epochs: int = 1) -> Trial:
    settings = find_model("tapnet").make_settings("SMALL", {"hidden_channels": 4, "classifier_channels": 4})
    training = TrainingSettings(epochs=epochs)
    return Trial("SMALL", small_set().checksum, "tapnet", settings, "paper", 0, 2, training)


@cache
def small_model() -> SavedModel:
    build = find_model("tapnet").build
    assert build is not None
    trial = small_trial()
    return SavedModel(build(DataShape.of(small_set()), trial.settings).eval(), describe_model(trial, small_set()))


@cache
def model_content() -> bytes:
    """The file of a model, without its checksum."""
    with tempfile.TemporaryDirectory() as folder:
        small_model().save(Path(folder) / "m.safetensors")
        return unsealed((Path(folder) / "m.safetensors").read_bytes())


def read_model_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        file = Path(folder) / "m.safetensors"
        file.write_bytes(content)
        found = survives(lambda: SavedModel.load(file))
        if found is not None:
            assert len(found.class_names) == len(found.classes)
            assert found.name
            survives(lambda: found.probabilities(found.encode(small_set())))
            page = survives(lambda: Explorer(found, small_set()))
            if page is not None:
                json.dumps([page.model(), page.graphs(), page.graph(0, Choice())], allow_nan=False)


# ---- what runs store ----


@cache
def result_content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        run_trial(small_trial(), small_set(), Store(Path(folder)))
        return Store(Path(folder)).result_file(small_trial()).read_bytes()


def read_result(content: bytes) -> None:
    trial = small_trial()
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        store = Store(Path(folder))
        store.result_file(trial).parent.mkdir(parents=True)
        store.result_file(trial).write_bytes(content)
        for found in survives(lambda: list(store.results())) or ():
            assert found.reading.epoch >= 1
            json.dumps(found.to_dict())
        assert not list(Path(folder).rglob(".partial-*"))


def sealed_result(values: Any) -> bytes:
    """A result as JSON under a checksum that fits."""
    if isinstance(values, dict):
        values = {key: value for key, value in values.items() if key != "digest"}
        values["digest"] = digest(values)
    return json.dumps(values).encode()


def _result(content: bytes) -> None:
    read_result(content)
    try:
        sealed = sealed_result(json.loads(content))
    except (ValueError, RecursionError):
        return
    read_result(sealed)


@cache
def checkpoint_content() -> bytes:
    """A trial's state after its first epoch of two, without its seal."""
    trial = small_trial(epochs=2)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_trial(trial, small_set(), Store(Path(folder)), should_stop=lambda: True)
        except Interrupted:
            return Store(Path(folder)).checkpoint_file(trial).read_bytes()[32:]
        raise AssertionError("it did not stop")


def checkpoint_store(folder: str | Path, content: bytes) -> Store:
    """A store with this checkpoint of a trial of two epochs, under a seal that fits."""
    trial, store = small_trial(epochs=2), Store(Path(folder))
    seal = hashlib.blake2b(content, digest_size=32, key=trial.key.encode()).digest()
    store.checkpoint_file(trial).parent.mkdir(parents=True, exist_ok=True)
    store.checkpoint_file(trial).write_bytes(seal + content)
    return store


def _checkpoint(content: bytes) -> None:
    trial = small_trial(epochs=2)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        store = checkpoint_store(folder, content)
        result = survives(lambda: run_trial(trial, small_set(), store))
        assert result is None or len(result.curves["test_accuracy"]) == 2


# ---- runs, settings and comparisons ----


@cache
def run_files() -> dict[str, bytes]:
    """A cross-validation with an ensemble of its networks, which is calibrated and knows its training data."""
    return _stored_run(final="ensemble")


@cache
def nested_files() -> dict[str, bytes]:
    """A nested cross-validation."""
    return _stored_run(protocol="nested", configs=2)


def _stored_run(**options: Any) -> dict[str, bytes]:
    small = {"hidden_channels": 4, "classifier_channels": 4}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"protocol": "fair", "folds": 3, "epochs": 1, "jobs": 1} | options
        cross_validate(larger_set(), out=folder, **options, **small)
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@cache
def larger_set() -> GraphDataset:
    graphs = [nx.cycle_graph(n) for n in range(3, 13)] + [nx.star_graph(n) for n in range(3, 13)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "label")
    return GraphDataset.from_networkx(graphs, ["ring"] * 10 + ["star"] * 10, name="LARGER")


@cache
def ensemble_content() -> bytes:
    """The file of an ensemble, without its checksum."""
    return unsealed(run_files()["final.safetensors"])


def card_content() -> bytes:
    """The card of that ensemble."""
    return json.dumps(description(ensemble_content())).encode()


def _card(content: bytes) -> None:
    """A card in the place of an ensemble's."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return
    said = {"__metadata__": {"tapnet": text}}
    read_model_file(with_header(ensemble_content(), lambda header: header | said))


def _run(content: bytes) -> None:
    """A run's page next to its results, the first byte says of which run; also under a checksum that fits."""
    try:
        sealed = sealed_result(json.loads(content[1:]))
    except (ValueError, RecursionError):
        sealed = b""
    folder = _run_folder(content[:1] == b"n")
    for page in filter(None, (content[1:], sealed)):
        (folder / "run.json").write_bytes(page)
        run = survives(lambda: load_run(folder))
        if run is not None:
            assert repr(run)
            json.dumps(run.to_dict(), allow_nan=False)
            survives(lambda run=run: calibration(run))
    survives(lambda: SavedModel.load(next((folder / "models").glob("*.safetensors"))))  # it looks for the data


@cache
def _run_folder(nested: bool) -> Path:
    """A folder that stays, with the results and a model of a run."""
    folder = tempfile.TemporaryDirectory(dir=SCRATCH)
    keep.append(folder)
    for name, content in (nested_files() if nested else run_files()).items():
        (Path(folder.name) / name).parent.mkdir(exist_ok=True)
        (Path(folder.name) / name).write_bytes(content)
    return Path(folder.name)


@cache
def settings_content() -> bytes:
    values = {"model": "tapnet", "settings": {"hidden_channels": 4, "ratios": [0.5, 0.5, 0.5], "lr": 0.01}, "epochs": 1}
    return json.dumps(values).encode()


def _settings(content: bytes) -> None:
    """Read, and used as far as a trial that is described."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        file = Path(folder) / "settings.json"
        file.write_bytes(content)
        found = survives(lambda: load_settings(file))
        if found is not None:
            own = {"model": found[0] or "tapnet", "folds": 3, "jobs": 1, "only_folds": ()}
            survives(lambda: cross_validate(small_set(), **own | found[1]))


@cache
def comparison_content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        runs = [cross_validate(larger_set(), name, folds=3, jobs=1) for name in ("majority", "size", "bag")]
        compare_runs(runs).save(folder)
        return (Path(folder) / "comparison.json").read_bytes()


def _comparison(content: bytes) -> None:
    """Also under a checksum that fits."""
    try:
        sealed = sealed_result(json.loads(content))
    except (ValueError, RecursionError):
        sealed = b""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        for text in filter(None, (content, sealed)):
            (Path(folder) / "comparison.json").write_bytes(text)
            found = survives(lambda: load_comparison(folder))
            if found is not None:
                assert all((repr(found), found.to_csv(), found.to_latex()))
                json.dumps(found.to_dict(), allow_nan=False)


# ---- caches: an input is some arrays, each as name, type and content ----

TYPES = ("int64", "int32", "float32", "float64", "uint8", "bool", "int8", "uint64")


@contextmanager
def own_cache(folder: str) -> Iterator[None]:
    before = os.environ.get("TAPNET_CACHE")
    os.environ["TAPNET_CACHE"] = f"{folder}/cache"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TAPNET_CACHE"]
        else:
            os.environ["TAPNET_CACHE"] = before


@cache
def parsed_copy() -> tuple[str, Path, Path, dict[str, Any]]:
    """A folder that stays, with a data set, its parsed copy and the arrays in it."""
    folder = tempfile.TemporaryDirectory(dir=SCRATCH)
    keep.append(folder)
    file = Path(folder.name) / "T.txt"
    file.write_bytes(text_file())
    with own_cache(folder.name):
        load_dataset(file)
    (copy,) = Path(folder.name).rglob("*.npz")
    arrays = read_arrays(copy)
    assert arrays is not None
    return folder.name, file, copy, arrays


keep: list[Any] = []


def arrays_content(arrays: Mapping[str, Any]) -> bytes:
    names = sorted(parsed_copy()[3])
    parts = [
        bytes([names.index(name), TYPES.index(str(array.dtype)), array.ndim]) + array.tobytes()
        for name, array in arrays.items()
    ]
    return BETWEEN.join(parts)


def _parsed_copy(content: bytes) -> None:
    """A parsed copy of which some arrays were planted, under a checksum that fits."""
    folder, file, copy, arrays = parsed_copy()
    names, planted = sorted(arrays), dict(arrays)
    for part in content.split(BETWEEN):
        if len(part) >= 3:
            kind = np.dtype(TYPES[part[1] % len(TYPES)])
            values = np.frombuffer(part[3 : 3 + (len(part) - 3) // kind.itemsize * kind.itemsize], kind)
            shape = {2: (-1, 2) if len(values) % 2 == 0 else (-1, 1), 0: () if len(values) == 1 else (-1,)}
            planted[names[part[0] % len(names)]] = values.reshape(shape.get(part[2] % 3, (-1,)))
    with own_cache(folder):
        write_arrays(copy, planted)
        found = survives(lambda: load_dataset(file))
        assert found is not None, "the source is good"
        use(found)
        survives(lambda: small_model().probabilities(small_model().encode(found)))


def _splits(content: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        file = Path(folder) / "splits.json"
        file.write_bytes(content)
        found = survives(lambda: read_splits(file, 8))
        for split in found.parts if found is not None else ():
            for part in (split.train, split.validation, split.test):
                assert part is None or (int(part.min()) >= 0 and int(part.max()) < 8)


# ---- all of them ----


@dataclass(frozen=True)
class Reader:
    """``read`` ends well or raises what is a fault; ``seeds`` are good inputs."""

    read: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


SPLITS = [{"train": [0, 1, 2], "validation": [3], "test": [4, 5]}]
ERRICA = [{"test": [0], "model_selection": [{"train": [1, 2], "validation": [3]}]}]

READERS = {
    "tu": Reader(_tu, lambda: [BETWEEN.join(TU[name] for name in sorted(TU))]),
    "text": Reader(lambda content: read_files({"T.txt": content}, "T.txt"), lambda: [text_file()]),
    "graphml": Reader(lambda content: read_files({"G.graphml": content}, "G.graphml"), lambda: [graphml()]),
    "json": Reader(
        lambda content: read_files({"G.json": content}, "G.json"), lambda: [json.dumps(node_link()).encode()]
    ),
    "labels": Reader(
        lambda content: read_files({f"G/{n}": f for n, f in (FOLDER | {"labels.csv": content}).items()}, "G"),
        lambda: [LABELS, FOLDER["labels.csv"]],
    ),
    "targets": Reader(
        lambda content: read_files(
            {f"G/{n}": f for n, f in (FOLDER | {"targets.csv": content}).items() if n != "labels.csv"}, "G"
        ),
        lambda: list(TARGETS),
    ),
    "matrices": Reader(_matrices, lambda: [bytes([i]) + matrix_folder()[name] for i, name in enumerate(MATRIX_FILES)]),
    "archive": Reader(
        lambda content: read_files({"SMALL.zip": content}, "SMALL.zip"),
        lambda: [
            packed({f"SMALL/{name}": content for name, content in TU.items()}, how)
            for how in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)
        ],
    ),
    "model": Reader(read_model_file, lambda: [model_content()]),
    "card": Reader(_card, lambda: [card_content()]),
    "run": Reader(_run, lambda: [b"c" + run_files()["run.json"], b"n" + nested_files()["run.json"]]),
    "settings": Reader(_settings, lambda: [settings_content()]),
    "comparison": Reader(_comparison, lambda: [comparison_content()]),
    "result": Reader(_result, lambda: [result_content()]),
    "checkpoint": Reader(_checkpoint, lambda: [checkpoint_content()]),
    "parsed-copy": Reader(
        _parsed_copy, lambda: [arrays_content({name: array}) for name, array in parsed_copy()[3].items()]
    ),
    "splits": Reader(_splits, lambda: [json.dumps(SPLITS).encode(), json.dumps(ERRICA).encode()]),
    "molecules": Reader(_molecules, lambda: [bytes([number]) + content for number, content in enumerate(MOLECULES)]),
}
