"""Bad inputs of comparisons, files of settings, ensembles, generated data and `explain`: a part of the corpus."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from tests.helpers.corpus import (
    Case,
    Content,
    Fifo,
    Link,
    Trained,
    cut,
    filled,
    flipped,
    graphml,
    node_link,
    signed_anew,
    tu_files,
    under,
    unsealed,
    with_description,
    with_header,
)

ODD = {
    "null": None,
    "a list": [],
    "an object": {},
    "a word": "x\x1b[31m\n",
    "minus one": -1,
    "ten to the 400": 10**400,
    "1e308": 1e308,
    "infinite": float("inf"),
    "half a letter": "\ud800",
    "200,000 letters": "x" * 200_000,
}
FINE = {  # what a place of a comparison can hold
    "reference": (),
    "metric": (),
    "dataset": ("a word", "half a letter", "200,000 letters"),
    "verdict": ("a word", "half a letter", "200,000 letters"),
    "notes": ("a list",),
    "systems": (),
    "folder": ("null", "a word", "half a letter", "200,000 letters"),
    "num_folds": ("minus one", "ten to the 400"),
    "systems 1 name": ("a word", "half a letter", "200,000 letters"),
    "systems 1 scores": ("a list",),
    "systems 1 mean": ("null", "minus one", "1e308"),
    "systems 1 difference": ("null",),
    "systems 1 seconds": ("minus one", "1e308"),
    "systems 1 difference low": ("null", "minus one", "1e308"),
    "systems 1 changed": ("an object",),
}


def _put(values: Any, path: str, value: Any) -> Any:
    """A copy with one value replaced; numbers in the path are places in a list."""
    values = deepcopy(values)
    *folders, last = [int(word) if word.isdigit() else word for word in path.split()]
    at = values
    for key in folders:
        at = at[key]
    at[last] = value
    return values


def _sealed(values: Mapping[str, Any]) -> bytes:
    from tapnet.experiments.trial import digest

    plain = {key: value for key, value in values.items() if key != "digest"}
    return json.dumps(plain | {"digest": digest(plain)}).encode()


# ---- comparisons ----


def comparison_cases(trained: Trained) -> Iterator[Case]:
    good = json.loads(trained.comparison)
    words = ("show", "c", "--out", "picture.svg")

    def case(kind: str, name: str, content: Content, **more: Any) -> Case:
        return Case("comparison", kind, name, words, {"c/comparison.json": content}, **more)

    for name, content in cut(trained.comparison):
        yield case("truncated", name, content)
    for name, content in flipped(trained.comparison):
        yield case("bits flipped", name, content)
    for path, fine in FINE.items():
        for name, value in ODD.items():
            yield case("wrong types", f"{path} {name}", _sealed(_put(good, path, value)), accepted=name in fine)
    first, *others = good["systems"]
    several = [first | {"name": f"s{i}"} for i in range(2000)]
    yield case("huge counts", "2,000 systems", _sealed(good | {"systems": [first, *several]}))
    long = first | {"scores": [1.5] * 1_000_001}
    yield case("huge counts", "a million scores", _sealed(good | {"systems": [long, *others]}))
    yield case("empty parts", "an object", b"{}")
    yield case("nested deeply", "lists", b"[" * 100_000)
    yield case("nested deeply", "settings", _sealed(_put(good, "systems 1 changed", _nested(400))))
    yield case("encodings", "utf-16", trained.comparison.decode().encode("utf-16"), accepted=True)
    yield case("paths and links", "a pipe", Fifo())
    yield case("paths and links", "a device", Link("/dev/zero"))
    yield Case("comparison", "paths and links", "a folder", ("show", "c"), {"c/comparison.json/x": b""})
    elsewhere = _put(good, "systems 1 folder", "../../elsewhere")
    yield case("paths and links", "runs elsewhere", _sealed(elsewhere), accepted=True)


def _nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"x": found}
    return found


# ---- files of settings ----


def settings_file_cases() -> Iterator[Case]:
    small = under("SMALL", tu_files())
    quick = ("--protocol", "paper", "--folds", "2", "--jobs", "1", "--json")
    words = ("train", "./SMALL", *quick, "--settings", "s.json")

    def case(kind: str, name: str, content: Content, **more: Any) -> Case:
        return Case("settings file", kind, name, words, {**small, "s.json": content}, **more)

    def said(**values: Any) -> bytes:
        return json.dumps({"model": "tapnet", "epochs": 1, "settings": {}} | values).encode()

    yield case("encodings", "a good one", said(settings={"hidden_channels": 4}), accepted=True)
    for name, content in list(cut(said(settings={"hidden_channels": 4})))[:9]:
        yield case("truncated", name, content)
    for name, value in ODD.items():
        yield case("wrong types", f"all of it {name}", json.dumps(value).encode())
        yield case("wrong types", f"settings {name}", said(settings=value), accepted=name == "an object")
        yield case("wrong types", f"model {name}", said(model=value), accepted=name == "null")
        for setting in ("hidden_channels", "ratios", "pool", "conv", "lr", "x"):
            content, fine = said(settings={setting: value}), (setting, name) in (("ratios", "a list"), ("lr", "1e308"))
            if name != "null":
                yield case("wrong types", f"{setting} {name}", content, accepted=fine)
        if name not in ("null", "ten to the 400"):
            yield case("wrong types", f"epochs {name}", said(epochs=value))
    for name, value in {"true": True, "zero": 0, "1.5": 1.5, "2 to the 64": 2**64}.items():
        yield case("numbers out of range", f"epochs {name}", said(epochs=value))
    for word in ("out", "jobs", "split", "data_dir", "progress", "final", "epochs", "__class__", "\x1b[31m"):
        yield case("names", word, said(settings={word: "x"}))
    for word in ("os:system", "tests.helpers.corpus:Malicious", "../x:y"):
        for layer in ("pool", "conv"):
            yield case("code in a model", f"{layer} {word}", said(settings={layer: word}))
    yield case("wrong types", "the pooling is an object", said(settings={"pool": {"a:b": 1}}))
    yield case("code in a model", "the model is a module", said(model="os.system"))
    yield case("huge counts", "channels", said(settings={"hidden_channels": 10**9}))
    yield case("huge counts", "a hundred thousand settings", said(settings={f"s{i}": i for i in range(100_000)}))
    yield case("huge counts", "20 MB", b" " * (20 << 20) + said(), accepted=True)
    yield case("nested deeply", "lists", b"[" * 100_000)
    yield case("paths and links", "a pipe", Fifo())
    yield case("paths and links", "a device", Link("/dev/zero"))
    yield case("paths and links", "a link to nothing", Link("nowhere"))
    yield Case("settings file", "paths and links", "a folder", words, {**small, "s.json/x": b""})
    yield Case("settings file", "paths and links", "not there", words, small)


# ---- ensembles ----


def ensemble_cases(trained: Trained) -> Iterator[Case]:
    model = unsealed(trained.ensemble)
    graph = graphml().replace(b">C<", b">0<").replace(b">N<", b">1<").replace(b">O<", b">2<")
    readers = {
        "predict": ("predict", "--allow-unknown", "m.safetensors", "g.graphml", "--confidence", "0.9"),
        "explain": ("explain", "m.safetensors", "g.graphml", "--json"),
    }

    def case(kind: str, name: str, content: Content, reader: str = "predict", **more: Any) -> Case:
        return Case("ensemble", kind, name, readers[reader], {"m.safetensors": content, "g.graphml": graph}, **more)

    def described(kind: str, name: str, *path: Any, value: Any, **more: Any) -> Case:
        return case(kind, name, with_description(model, *path, value=value), **more)

    yield case("encodings", "a good one", model, accepted=True)
    for value in (float("nan"), float("inf"), -float("inf")):
        for reader in readers:
            yield case("numbers out of range", f"weights of {value} {reader}", filled(model, value), reader)
    for count in (0, 1, 3, 100, 100_000):
        folds = list(range(count))
        yield described("huge counts", f"{count} members", "ensemble", value={"folds": folds, "keys": []})
    yield described("missing or doubled parts", "no ensemble", "ensemble", value=None)
    yield described("missing or doubled parts", "no scores", "conformal", value=None)
    yield case("missing or doubled parts", "one member lost", _without(model, "members.1."))
    yield case("missing or doubled parts", "one weight lost", _without(model, "members.1.", 1))
    yield case("wrong types", "a member of another shape", _reshaped(model))
    for name, value in ODD.items():
        for part in ("ensemble", "calibration", "conformal", "reference"):
            if name != "null":
                yield described("wrong types", f"{part} {name}", part, value=value)
        yield described("wrong types", f"folds {name}", "ensemble", "folds", value=value)
        yield described("wrong types", f"method {name}", "calibration", "method", value=value)
        yield described("wrong types", f"scores {name}", "conformal", "scores", value=value)
        yield described("wrong types", f"mean {name}", "reference", "mean", value=value)
    for values in ([0], [-1.0], [1e400], ["a"], [1.0] * 5, [1e-320], [True]):
        yield described(
            "numbers out of range",
            f"temperature {values}",
            "calibration",
            value={"method": "temperature", "temperature": values},
        )
    for name, curve in {
        "falls": {"x": [0.1, 0.9], "y": [0.9, 0.1]},
        "above one": {"x": [0.1, 2.0], "y": [0.1, 0.9]},
        "of two lengths": {"x": [0.1], "y": [0.1, 0.9]},
        "of nothing": {"x": [], "y": []},
        "without y": {"x": [0.5]},
    }.items():
        record = {"method": "isotonic", "isotonic": [curve]}
        yield described("wrong types", f"a curve {name}", "calibration", value=record)
    for width in (1, 100_000):
        yield described("wrong types", f"a reference of width {width}", "reference", value=other_reference(width))
    million = [[[0.5] * 500_000] * 2]
    yield described("huge counts", "a million scores", "conformal", "scores", value=million, accepted=True)
    yield described("huge counts", "a curve of a million", "calibration", value=_long_curve(), accepted=True)


def other_reference(width: int) -> dict[str, Any]:
    """A record of embeddings that have this width."""
    return {"mean": [0.0] * width, "scale": [1.0] * width, "directions": [], "residual": 1.0, "quantiles": [0.0, 1.0]}


def _long_curve() -> dict[str, Any]:
    steps = [(i + 1) / 1_000_001 for i in range(200_000)]
    return {"method": "isotonic", "isotonic": [{"x": steps, "y": steps}]}


def _without(model: bytes, begin: str, most: int = 10**9) -> bytes:
    """The file without some weights of one member."""

    def change(header: dict[str, Any]) -> None:
        for name in [name for name in header if name.startswith(begin)][:most]:
            del header[name]

    changed = with_header(model, change)
    (length,) = struct.unpack("<Q", changed[:8])
    header = json.loads(changed[8 : 8 + length])
    content, at = changed[8 + length :], 0
    kept = b""
    for name, entry in sorted((n, e) for n, e in header.items() if n != "__metadata__"):
        start, stop = entry["data_offsets"]
        kept += content[start:stop]
        header[name]["data_offsets"] = [at, at + stop - start]
        at += stop - start
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + kept


def _reshaped(model: bytes) -> bytes:
    def change(header: dict[str, Any]) -> None:
        entries = [entry for name, entry in header.items() if name.startswith("members.1.")]
        entry = next(entry for entry in entries if len(entry["shape"]) == 2)
        entry["shape"] = entry["shape"][::-1] if entry["shape"][0] != entry["shape"][1] else [sum(entry["shape"]), 0]

    return with_header(model, change)


# ---- stored predictions ----


def prediction_cases(trained: Trained) -> Iterator[Case]:
    """Results with predictions that no network makes, under a checksum that fits."""
    from tapnet.experiments.trial import pack_array, unpack_array

    results = {name: content for name, content in trained.run.items() if name.startswith("trials/")}
    good = json.loads(next(iter(results.values())))["predicted"]["test"]
    graphs, y, values = (unpack_array(good[name]) for name in ("graphs", "y", "values"))
    bomb = {"type": "<i8", "shape": [1 << 40], "data": good["graphs"]["data"]}
    for name, part, value in (
        ("class 99", "y", y * 0 + 99),
        ("class -1", "y", y * 0 - 1),
        ("classes between numbers", "y", y + 0.5),
        ("targets of another shape", "y", values.astype(float)),
        ("graph -1", "graphs", graphs * 0 - 1),
        ("graphs between numbers", "graphs", graphs + 0.5),
        ("fewer graphs", "graphs", graphs[1:]),
        ("negative probabilities", "values", values - 5),
        ("probabilities of 1e38", "values", values * 1e38),
        ("no probabilities", "values", values[:, :0]),
        ("one class", "values", values[:, :1]),
        ("probabilities in a row", "values", values.reshape(-1)),
        ("eight terabytes", "graphs", bomb),
    ):
        packed = value if isinstance(value, dict) else pack_array(value)
        files = {**trained.run, **signed_anew(results, "predicted", "test", part, value=packed)}
        words = ("show", "run", "--out", "curves.svg")
        small = under("SMALL", tu_files())
        yield Case("stored results", "wrong types", f"predictions, {name}", words, small | under("run", files))


# ---- generated data ----


def generate_cases() -> Iterator[Case]:
    def case(kind: str, name: str, *words: str, files: Mapping[str, Content] | None = None, **more: Any) -> Case:
        return Case("generated data", kind, name, ("datasets", *words), files or {}, **more)

    for kind in ("colors", "triangles", "needle", "path", "wl"):
        for option, values in {
            "--graphs": ("-1", "0", "1", str(10**9), str(2**63), "9" * 30),
            "--nodes": ("-1", "0", "1", str(10**9), str(2**63), "9" * 30),
            "--seed": ("-1", "x"),
        }.items():
            for value in values:
                words = ("--make", kind, "--out", "G", option, value)
                wrong = "huge counts" if len(value) > 2 else "numbers out of range"
                yield case(wrong, f"{kind} {option} {value}", *words)
    both = ("--graphs", "100000", "--nodes", "100000")
    yield case("huge counts", "graphs and nodes", "--make", "colors", "--out", "G", *both)
    yield case("names", "no such kind", "--make", "\x1b[31mx", "--out", "G")
    yield case("missing or doubled parts", "without a folder", "--make", "colors")
    yield case("paths and links", "the folder is a file", "--make", "colors", "--out", "f", files={"f": b""})
    yield case("paths and links", "a device", "--make", "colors", "--out", "/dev/null/x")
    yield case("names", "the folder speaks to the terminal", "--make", "colors", "--out", "\x1b[31m\n")
    yield case("names", "the folder has a long name", "--make", "colors", "--out", "x" * 300)


# ---- explain ----


def explain_cases(trained: Trained) -> Iterator[Case]:
    small = {**under("SMALL", tu_files()), "m.safetensors": trained.model}
    begin = ("explain", "m.safetensors")

    def case(kind: str, name: str, *words: str, files: Mapping[str, Content] | None = None, **more: Any) -> Case:
        return Case("explain", kind, name, (*begin, *words), {**small, **(files or {})}, **more)

    own = ("--dataset", "./SMALL")
    numbers = ("-5", "12", str(2**64), "9" * 5000, "1e400", "nan")
    for word in (*numbers, "\x1b[31m\n", "../../../etc/passwd", "/etc/passwd"):
        name = f"graph {word[:30]}".replace("/", "_")
        yield case("numbers out of range", name, *(("--", word) if word[0] == "-" else (word,)), *own)
    for word in ("no class", "\x1b[31m", "1e400", "9" * 5000):
        yield case("names", f"target {word[:20]}", "0", "--target", word, *own)
    for method in ("magic", "\x1b[31m"):
        yield case("names", f"method {method}", "0", "--method", method, *own)
    hostile = node_link()
    hostile["nodes"] = [{"id": f"\x1b[31m\n{i}", "label": i % 3} for i in range(5)]
    hostile["links"] = [{"source": f"\x1b[31m\n{i}", "target": f"\x1b[31m\n{(i + 1) % 5}"} for i in range(5)]
    for words in ((), ("--json",), ("--out", "picture.svg")):
        files = {"g.json": json.dumps(hostile).encode()}
        yield case("names", f"nodes that speak to the terminal {words}", "g.json", *words, files=files, accepted=True)
    math = json.loads(json.dumps(hostile).replace("\\u001b[31m\\n", "$\\\\frac{</svg>&"))
    files = {"g.json": json.dumps(math).encode()}
    yield case("names", "nodes that are formulas", "g.json", "--out", "picture.svg", files=files, accepted=True)
    yield case("paths and links", "a pipe", "g.json", files={"g.json": Fifo()})
    yield case("paths and links", "a device", "/dev/zero")
    yield case("paths and links", "the data are a device", "0", "--dataset", "/dev/zero")
    for place in ("/etc/passwd", "/dev/zero", "../../..", "/proc/self/mem", "/proc/kcore", "\x00", "/"):
        page = {"data": {"source": place, "relative": None}}
        files = {"run/run.json": json.dumps(page).encode(), "run/final.safetensors": trained.model}
        name = f"the run says that its data are {place}".replace("/", "_")
        yield Case("explain", "paths and links", ascii(name), ("explain", "run", "0"), files)
    for name, value in ODD.items():
        files = {"run/final.safetensors": trained.model}
        for what, page in (("data", {"data": value}), ("source", {"data": {"source": value, "relative": value}})):
            files["run/run.json"] = json.dumps(page).encode()
            yield Case("explain", "wrong types", f"the run's {what} {name}", ("explain", "run", "0"), dict(files))


def later_cases(trained: Trained) -> Iterator[Case]:
    yield from comparison_cases(trained)
    yield from settings_file_cases()
    yield from ensemble_cases(trained)
    yield from prediction_cases(trained)
    yield from generate_cases()
    yield from explain_cases(trained)
