"""Readers against arbitrary and mutated content: a result or one of tapnet's own errors, never another exception.

Each runs within a GB of memory above what it starts with.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tapnet.explorer.views import Choice, Explorer
from tests.helpers.corpus import graphml, node_link, text_file, with_description, with_header
from tests.helpers.readers import (
    FOLDER,
    LABELS,
    READERS,
    TU,
    model_content,
    read_files,
    read_model_file,
    read_result,
    result_content,
    sealed_result,
    small_model,
    small_set,
    survives,
)
from tests.helpers.tokens import TOKENS

MEMORY = 1 << 30


@pytest.fixture(scope="module", autouse=True)
def _little_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ---- content ----


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


# ---- data sets ----


@given(st.sampled_from(sorted(TU)).flatmap(lambda name: st.tuples(st.just(name), mutated(TU[name]))))
@example(("SMALL_A.txt", b"1, " + b"9" * 5000 + b"\n"))
def test_tu_folders(part: tuple[str, bytes]) -> None:
    name, content = part
    read_files({f"SMALL/{file}": good for file, good in (TU | {name: content}).items()}, "SMALL")


@given(mutated(text_file()))
@example(b"1 " * 10)
def test_one_file_texts(content: bytes) -> None:
    read_files({"T.txt": content}, "T.txt")


@given(mutated(graphml()))
def test_graphml(content: bytes) -> None:
    read_files({"G.graphml": content}, "G.graphml")


@given(mutated(json.dumps(node_link()).encode()) | node_links)
def test_node_link_json(content: bytes) -> None:
    read_files({"G.json": content}, "G.json")


@given(mutated(LABELS) | st.text(alphabet='class,graphring3.json\n"; \t\0', max_size=80).map(str.encode))
def test_tables_of_classes(content: bytes) -> None:
    read_files({f"G/{name}": good for name, good in (FOLDER | {"labels.csv": content}).items()}, "G")


@pytest.mark.parametrize("name", ["targets", "matrices", "settings", "comparison"])
@given(data=st.data())
def test_readers_of_one_file(name: str, data: st.DataObject) -> None:
    reader = READERS[name]
    reader.read(data.draw(mutated(data.draw(st.sampled_from(reader.seeds())))))


ARCHIVE, STORED = READERS["archive"].seeds()


@given(
    mutated(ARCHIVE)
    | mutated(STORED)
    | mutated(ARCHIVE[ARCHIVE.index(b"PK\x01\x02") :]).map(lambda end: ARCHIVE[: ARCHIVE.index(b"PK\x01\x02")] + end)
)
def test_archives(content: bytes) -> None:
    read_files({"SMALL.zip": content}, "SMALL.zip")


# ---- models ----


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


@given(st.sampled_from(PATHS), values | st.lists(values, min_size=2, max_size=3))
@example(("trial", "settings", "hidden_channels"), 10**9)
@example(("class_names",), 5)
@example(("cross_validation",), {"mean": 10**400, "std": 1, "rules": ""})
def test_descriptions_of_models(path: tuple[str, ...], value: Any) -> None:
    read_model_file(with_description(model_content(), *path, value=value))


@given(st.data())
def test_model_files(data: st.DataObject) -> None:
    model = model_content()
    read_model_file(data.draw(mutated(model[:4000])) + model[4000:])


@given(values)
def test_headers_of_models(value: Any) -> None:
    said = {"__metadata__": {"tapnet": json.dumps(value)}}
    read_model_file(with_header(model_content(), lambda header: header | said))


# ---- stored results ----


@given(st.data())
def test_stored_trials(data: st.DataObject) -> None:
    read_result(data.draw(mutated(result_content())))


CHANGES = [
    ("trial",),
    ("curves",),
    ("seconds",),
    ("parameters",),
    ("versions",),
    ("coarsened",),
    ("diagnostics",),
    ("selection",),
    ("selection", "sizes"),
    ("selection", "kept"),
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
def test_stored_trials_whose_checksum_fits(path: tuple[str, ...], value: Any) -> None:
    stored = json.loads(result_content())
    at = stored
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    read_result(sealed_result(stored))


# ---- the page ----


@pytest.fixture(scope="module")
def page() -> Explorer:
    return Explorer(small_model(), small_set())


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
