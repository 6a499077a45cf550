"""Readers against arbitrary and mutated content: a result or one of tapnet's own errors, never another exception.

Each runs within a GB of memory above what it starts with.
"""

from __future__ import annotations

import json
import resource
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tapnet import GraphDataset
from tapnet.errors import TapnetError
from tapnet.experiments.run_trial import describe_model, run_trial
from tapnet.experiments.store import Store
from tapnet.experiments.trial import Trial, digest
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.model import SavedModel
from tapnet.io.read import read
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings
from tests.helpers.corpus import (
    graph_folder,
    graphml,
    node_link,
    packed,
    text_file,
    tu_files,
    unsealed,
    with_description,
    with_header,
)

MEMORY = 1 << 30


@pytest.fixture(scope="module", autouse=True)
def _little_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ---- content ----

TOKENS = (
    b"",
    b"-1",
    b"0",
    b"1",
    b"2",
    b"7",
    str(2**31).encode(),
    str(2**63).encode(),
    str(10**400).encode(),
    b"9" * 5000,
    b"1e400",
    b"nan",
    b"NaN",
    b"-inf",
    b"0.5",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r",
    b"\r\n",
    b",",
    b";",
    b" ",
    b"\t",
    b'"',
    b"'",
    b"\\",
    b"\\ud800",
    b"[",
    b"]",
    b"{",
    b"}",
    b"[" * 2000,
    b"null",
    b"true",
    b'"id"',
    b'"label"',
    b'{"a": 1}',
    b"<",
    b">",
    b"&",
    b"&#x0;",
    b"<node/>",
    b'<node id="n0"/>',
    b"<graph>",
    b"</graph>",
    b"<!DOCTYPE a>",
    b"<port/>",
    b"<hyperedge/>",
    b'<edge source="n0" target="n1" id="e"/>',
    b'<edge source="n0" target="n1" directed="true"/>',
    b'<data key="k"/>',
    b'<data key="q">1</data>',
    b'<key id="k" for="node"/>',
    b'<key id="k" for="node" attr.name="label" attr.type="int"/>',
    b'<key id="k" for="all" attr.name="label" attr.type="boolean"/>',
    b"<default>x</default>",
    b"\x1b[31m",
    b"#",
)


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """A good file with some places cut out, doubled or replaced by what is likely to hurt; or anything at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.sampled_from([0, 1, 2, 5, 20, 100, 10_000])))
        kind = draw(st.sampled_from(["token", "token", "double", "flip"]))
        if kind == "token":
            middle = draw(st.sampled_from(TOKENS))
        elif kind == "double":
            middle = content[start:stop] * 2
        else:
            middle = bytes(byte ^ (1 << draw(st.integers(0, 7))) for byte in content[start : min(stop, start + 3)])
        content = content[:start] + middle + content[stop:]
    return content


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["C", "label", "links", "tapnet", "\ud800", "\x1b[31m\n", "../x", "labels", "degrees", "attributes"]
    )
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "label", "source", "target", "attributes"]) | st.text(max_size=4), inner, max_size=4
        )
    ),
    max_leaves=8,
)
nodes = st.lists(
    values | st.fixed_dictionaries({"id": scalars}, optional={"label": values, "attributes": values}), max_size=5
)
links = st.lists(values | st.fixed_dictionaries({"source": scalars, "target": scalars}), max_size=5)
node_links = st.fixed_dictionaries({"nodes": nodes, "links": links}).map(lambda v: json.dumps(v).encode())


def survives(read: Callable[[], Any]) -> Any:
    """The result, or None for an error that is said to the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read()
        except TapnetError:
            return None


def survives_files(files: Mapping[str, bytes], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            (Path(folder) / file).parent.mkdir(exist_ok=True)
            (Path(folder) / file).write_bytes(content)
        dataset = survives(lambda: read(Path(folder) / name))
        if dataset is not None:
            assert len(dataset.batch(range(len(dataset))).x) == dataset.num_nodes


# ---- data sets ----

TU = tu_files()


@given(st.sampled_from(sorted(TU)).flatmap(lambda name: st.tuples(st.just(name), mutated(TU[name]))))
@example(("SMALL_A.txt", b"1, " + b"9" * 5000 + b"\n"))
def test_tu_folders(part: tuple[str, bytes]) -> None:
    name, content = part
    survives_files({f"SMALL/{file}": good for file, good in (TU | {name: content}).items()}, "SMALL")


@given(mutated(text_file()))
@example(b"1 " * 10)
def test_one_file_texts(content: bytes) -> None:
    survives_files({"T.txt": content}, "T.txt")


@given(mutated(graphml()))
def test_graphml(content: bytes) -> None:
    survives_files({"G.graphml": content}, "G.graphml")


@given(mutated(json.dumps(node_link()).encode()) | node_links)
def test_node_link_json(content: bytes) -> None:
    survives_files({"G.json": content}, "G.json")


FOLDER = {name: content for name, content in graph_folder().items() if name[4:5] in ("3", "4") or name == "labels.csv"}
LABELS = b"class,graph\nring,ring3.json\nring,ring4.graphml\nstar,star3.json\nstar,star4.graphml\n"


@given(mutated(LABELS) | st.text(alphabet='class,graphring3.json\n"; \t\0', max_size=80).map(str.encode))
def test_tables_of_classes(content: bytes) -> None:
    survives_files({f"G/{name}": good for name, good in (FOLDER | {"labels.csv": content}).items()}, "G")


ARCHIVE = packed({f"SMALL/{name}": content for name, content in TU.items()})
STORED = packed({f"SMALL/{name}": content for name, content in TU.items()}, zipfile.ZIP_STORED)


@given(
    mutated(ARCHIVE)
    | mutated(STORED)
    | mutated(ARCHIVE[ARCHIVE.index(b"PK\x01\x02") :]).map(lambda end: ARCHIVE[: ARCHIVE.index(b"PK\x01\x02")] + end)
)
def test_archives(content: bytes) -> None:
    survives_files({"SMALL.zip": content}, "SMALL.zip")


# ---- models ----


def small_set() -> GraphDataset:
    graphs = [nx.cycle_graph(n) for n in range(3, 7)] + [nx.star_graph(n) for n in range(3, 7)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "label")
    return GraphDataset.from_networkx(graphs, ["ring"] * 4 + ["star"] * 4, name="SMALL")


@pytest.fixture(scope="module")
def small() -> GraphDataset:
    return small_set()


@pytest.fixture(scope="module")
def trial(small: GraphDataset) -> Trial:
    settings = find_model("tapnet").make_settings("SMALL", {"hidden_channels": 4, "classifier_channels": 4})
    return Trial("SMALL", small.checksum, "tapnet", settings, "paper", 0, 2, TrainingSettings(epochs=1))


@pytest.fixture(scope="module")
def saved(small: GraphDataset, trial: Trial) -> SavedModel:
    build = find_model("tapnet").build
    assert build is not None
    return SavedModel(build(DataShape.of(small), trial.settings).eval(), describe_model(trial, small))


@pytest.fixture(scope="module")
def model(saved: SavedModel, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("model") / "m.safetensors"
    saved.save(file)
    return unsealed(file.read_bytes())


PATHS = [
    ("trial",),
    ("shape",),
    ("classes",),
    ("features",),
    ("class_names",),
    ("categories",),
    ("category_names",),
    ("cross_validation",),
    *(("shape", name) for name in ("in_channels", "num_classes", "categorical", "mean_nodes", "node_deciles")),
    *(("trial", name) for name in ("dataset", "model", "settings", "fold", "folds", "protocol", "data")),
    *(
        ("trial", "settings", name)
        for name in ("hidden_channels", "ratios", "pool", "connectivity", "gate", "norm", "dropout", "aux")
    ),
]


def survives_model(content: bytes, small: GraphDataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.safetensors"
        file.write_bytes(content)
        found = survives(lambda: SavedModel.load(file))
        if found is not None:
            assert len(found.class_names) == len(found.classes)
            assert found.name
            survives(lambda: found.probabilities(found.encode(small)))
            page = survives(lambda: Explorer(found, small))
            if page is not None:
                json.dumps([page.model(), page.graphs(), page.graph(0, Choice())], allow_nan=False)


@given(st.sampled_from(PATHS), values | st.lists(values, min_size=2, max_size=3))
@example(("trial", "settings", "hidden_channels"), 10**9)
@example(("class_names",), 5)
@example(("cross_validation",), {"mean": 10**400, "std": 1, "rules": ""})
def test_descriptions_of_models(model: bytes, small: GraphDataset, path: tuple[str, ...], value: Any) -> None:
    survives_model(with_description(model, *path, value=value), small)


@given(st.data())
def test_model_files(model: bytes, small: GraphDataset, data: st.DataObject) -> None:
    survives_model(data.draw(mutated(model[:4000])) + model[4000:], small)


@given(values)
def test_headers_of_models(model: bytes, small: GraphDataset, value: Any) -> None:
    survives_model(with_header(model, lambda header: header | {"__metadata__": {"tapnet": json.dumps(value)}}), small)


# ---- stored results ----


@pytest.fixture(scope="module")
def result(trial: Trial, small: GraphDataset, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    store = Store(tmp_path_factory.mktemp("store"))
    run_trial(trial, small, store)
    return store.result_file(trial).read_bytes()


def survives_result(content: bytes, trial: Trial) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.result_file(trial).parent.mkdir(parents=True)
        store.result_file(trial).write_bytes(content)
        for found in survives(lambda: list(store.results())) or ():
            assert found.reading.epoch >= 1
        assert not list(Path(folder).rglob(".partial-*"))


@given(st.data())
def test_stored_trials(result: bytes, trial: Trial, data: st.DataObject) -> None:
    survives_result(data.draw(mutated(result)), trial)


CHANGES = [
    ("trial",),
    ("curves",),
    ("seconds",),
    ("parameters",),
    ("versions",),
    ("coarsened",),
    ("readings",),
    ("accuracy",),
    ("curves", "test_accuracy"),
    ("curves", "train_loss"),
    ("trial", "settings"),
    ("trial", "model"),
    ("trial", "fold"),
    ("trial", "folds"),
    ("trial", "training"),
    ("trial", "training", "epochs"),
    ("trial", "seed"),
    ("trial", "protocol"),
]


@given(st.sampled_from(CHANGES), values)
@example(("curves", "test_accuracy"), [10**400])
def test_stored_trials_whose_checksum_fits(result: bytes, trial: Trial, path: tuple[str, ...], value: Any) -> None:
    stored = json.loads(result)
    at = stored
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    stored.pop("digest")
    stored["digest"] = digest(stored)
    survives_result(json.dumps(stored).encode(), trial)


# ---- the page ----


@pytest.fixture(scope="module")
def page(saved: SavedModel, small: GraphDataset) -> Explorer:
    return Explorer(saved, small)


@given(
    st.sampled_from(["x.json", "x.graphml"]),
    mutated(json.dumps(node_link()).encode()) | mutated(graphml()) | node_links,
    st.floats() | st.none(),
    st.none() | st.lists(st.floats() | st.integers(-1, 10**20), min_size=3, max_size=3).map(tuple),
)
def test_uploads(page: Explorer, name: str, content: bytes, connectivity: float | None, ratios: Any) -> None:
    view = survives(lambda: page.uploaded(name, content, Choice(connectivity, ratios)))
    if view is not None:
        json.dumps(view, allow_nan=False)
