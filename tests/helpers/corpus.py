"""Bad inputs of every kind, made from small good ones: data sets, models, settings, stored results, uploads.

``python tests/helpers/corpus.py FOLDER`` writes them, each into a folder of its own with the command that reads it, and
prints how many there are of which kind. Nothing in them is real data.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import random
import shlex
import struct
import sys
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUICK = ("--protocol", "paper", "--folds", "2", "--epochs", "1", "--jobs", "1", "--set", "hidden_channels=4")
UPLOAD = "upload"  # in the place of a command: the files are sent to the page


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Fifo:
    """A pipe with a name, which nobody writes into: who opens it waits for ever."""


Content = bytes | Link | Fifo
Files = Mapping[str, Content]


@dataclass(frozen=True)
class Case:
    """A command and the files that it finds in the folder where it runs."""

    of: str  # what is bad: "TU folder", "model", …
    kind: str  # how: "truncated", "huge counts", …
    name: str
    words: tuple[str, ...]
    files: Files = field(default_factory=dict, repr=False)
    accepted: bool = False  # odd, but legitimate: the command ends well
    notes: int = 0  # lines before the error that say what else is odd

    @property
    def key(self) -> str:
        return "-".join(f"{self.of} {self.kind} {self.name}".lower().replace("/", " ").split())

    def write(self, folder: Path) -> Path:
        """Its files, below the folder."""
        here = folder / self.key
        here.mkdir(parents=True)
        for name, content in self.files.items():
            file = here / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Link):
                file.symlink_to(content.target)
            elif isinstance(content, Fifo):
                os.mkfifo(file)
            else:
                file.write_bytes(content)
        return here


# ---- good inputs ----

GRAPHS = [("ring", n) for n in range(3, 9)] + [("star", n) for n in range(3, 9)]


def edges_of(shape: str, n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)] if shape == "ring" else [(0, i) for i in range(1, n)]


def tu_files(name: str = "SMALL") -> dict[str, bytes]:
    """A TU folder with everything that the layout knows."""
    tables: dict[str, list[str]] = {part: [] for part in ("A", "graph_indicator", "graph_labels", "node_labels")}
    tables |= {part: [] for part in ("node_attributes", "edge_labels", "edge_attributes")}
    first = 1
    for g, (shape, n) in enumerate(GRAPHS, start=1):
        tables["graph_labels"].append(str(1 if shape == "ring" else -1))
        for i in range(n):
            tables["graph_indicator"].append(str(g))
            tables["node_labels"].append(str(i % 3))
            tables["node_attributes"].append(f"{0.5 * i}, {n}")
        for u, v in edges_of(shape, n):
            for ends in ((u, v), (v, u)):
                tables["A"].append(f"{first + ends[0]}, {first + ends[1]}")
                tables["edge_labels"].append(str((u + v) % 2))
                tables["edge_attributes"].append(f"{u + v}.25")
        first += n
    return {f"{name}_{part}.txt": ("\n".join(lines) + "\n").encode() for part, lines in tables.items()}


def text_file() -> bytes:
    """The same graphs in one text."""
    lines = [str(len(GRAPHS))]
    for shape, n in GRAPHS:
        edges = edges_of(shape, n)
        lines.append(f"{n} {int(shape == 'ring')}")
        for i in range(n):
            near = sorted({v for u, v in edges if u == i} | {u for u, v in edges if v == i})
            lines.append(" ".join(map(str, (i % 3, len(near), *near))))
    return ("\n".join(lines) + "\n").encode()


def node_link(shape: str = "ring", n: int = 5) -> dict[str, Any]:
    return {
        "nodes": [{"id": i, "label": "CNO"[i % 3], "weight": i / 2} for i in range(n)],
        "links": [{"source": u, "target": v} for u, v in edges_of(shape, n)],
    }


def graphml(shape: str = "ring", n: int = 5, *, head: str = "", node: str = "", before: str = "") -> bytes:
    """A GraphML file; ``head`` goes before its graph, ``node`` and ``before`` into it."""
    nodes = "".join(f'<node id="n{i}"><data key="k">{"CNO"[i % 3]}</data></node>\n' for i in range(n))
    edges = "".join(f'<edge source="n{u}" target="n{v}"/>\n' for u, v in edges_of(shape, n))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{before}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f'<key id="k" for="node" attr.name="label" attr.type="string"/>{head}\n'
        f'<graph edgedefault="undirected">\n{nodes}{node}{edges}</graph>\n</graphml>\n'
    ).encode()


def graph_folder() -> dict[str, bytes]:
    """A folder of graphs in both formats with their classes, the class before the file's name."""
    files = {}
    for shape, n in GRAPHS:
        ending, content = (
            ("json", json.dumps(node_link(shape, n)).encode()) if n % 2 else ("graphml", graphml(shape, n))
        )
        files[f"{shape}{n}.{ending}"] = content
    rows = "".join(f"{file[:4]},{file}\n" for file in files)
    return files | {"labels.csv": f"class,graph\n{rows}".encode()}


def under(folder: str, files: Mapping[str, Content]) -> dict[str, Content]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def packed(files: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A .zip whose bytes do not depend on the day."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, how)
    return out.getvalue()


def with_header(file: bytes, change: Any, *, weights: bytes | None = None) -> bytes:
    """A .safetensors file with its header, the JSON in front of the numbers, changed by a function."""
    (length,) = struct.unpack("<Q", file[:8])
    header = json.loads(file[8 : 8 + length])
    changed = change(header)
    text = json.dumps(header if changed is None else changed).encode()
    return struct.pack("<Q", len(text)) + text + (file[8 + length :] if weights is None else weights)


def with_description(file: bytes, *path: Any, value: Any) -> bytes:
    """A model's file with one value of its description changed."""

    def change(header: dict[str, Any]) -> None:
        about = json.loads(header["__metadata__"]["tapnet"])
        at = about
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        header["__metadata__"]["tapnet"] = json.dumps(about)

    return with_header(file, change)


def unsealed(file: bytes) -> bytes:
    """A model's file without the checksum, which a stranger's file need not have."""

    def change(header: dict[str, Any]) -> None:
        about = json.loads(header["__metadata__"]["tapnet"])
        about.pop("checksum", None)
        header["__metadata__"]["tapnet"] = json.dumps(about)

    return with_header(file, change)


@dataclass(frozen=True)
class Trained:
    """What the commands write for good inputs, so that it can be made bad."""

    run: dict[str, bytes]  # of `tapnet train --final`
    checkpoint: bytes
    key: str  # of the trial that the checkpoint belongs to
    others: dict[str, bytes]  # a model file of every other network
    ensemble: bytes  # a model of two networks, calibrated
    comparison: bytes

    @property
    def model(self) -> bytes:
        return self.run["final.safetensors"]


def train_small(scratch: Path) -> Trained:
    """Trains for an epoch in a folder of its own, through the command."""
    import torch

    from tapnet import compare_runs, cross_validate, load_dataset
    from tapnet.cli import main
    from tapnet.experiments.run_trial import TrialRun, describe_model
    from tapnet.experiments.store import Store
    from tapnet.experiments.trial import Trial
    from tapnet.inference.model import SavedModel
    from tapnet.models.base import DataShape
    from tapnet.models.registry import MODELS

    for name, content in under("SMALL", tu_files()).items():
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_bytes(content)
    before = sys.argv, Path.cwd()
    os.chdir(scratch)
    try:
        for final, out in (("single", "run"), ("ensemble", "ensemble")):
            sys.argv = ["tapnet", "train", "SMALL", *QUICK, "--final", final, "--json", "--out", out]
            try:
                main()
            except SystemExit as ended:
                if ended.code:
                    raise
    finally:
        sys.argv = before[0]
        os.chdir(before[1])
    run = {str(p.relative_to(scratch / "run")): p.read_bytes() for p in (scratch / "run").rglob("*") if p.is_file()}
    dataset = load_dataset(scratch / "SMALL")
    trials = [json.loads(content)["trial"] for name, content in sorted(run.items()) if name.startswith("trials/")]
    trial = next(found for found in map(Trial.from_dict, trials) if found.fold == 0)
    store = Store(scratch / "run")
    store.save_checkpoint(trial, TrialRun(trial, dataset).state())
    others = {}
    for name, spec in MODELS.items():
        if spec.build is not None and name != "tapnet":
            torch.manual_seed(0)
            settings = spec.make_settings(dataset.name, {})
            network = spec.build(DataShape.of(dataset), settings).eval()
            about = describe_model(Trial(dataset.name, dataset.checksum, name, settings, "paper", 0, 2), dataset)
            SavedModel(network, about).save(scratch / "other.safetensors")
            others[name] = (scratch / "other.safetensors").read_bytes()
    compare_runs([cross_validate(dataset, name, folds=3, jobs=1) for name in ("majority", "size")]).save(scratch)
    ensemble, comparison = (scratch / name for name in ("ensemble/final.safetensors", "comparison.json"))
    checkpoint = store.checkpoint_file(trial).read_bytes()
    return Trained(run, checkpoint, trial.key, others, ensemble.read_bytes(), comparison.read_bytes())


# ---- ways to damage anything ----


def cut(content: bytes) -> Iterator[tuple[str, bytes]]:
    for tenth in range(10):
        yield f"after {tenth} tenths", content[: len(content) * tenth // 10]


def flipped(content: bytes, bit: int = 128, within: int | None = None) -> Iterator[tuple[str, bytes]]:
    """One bit in each of some places."""
    length = within or len(content)
    for tenth in range(1, 10, 2):
        at = length * tenth // 10
        yield f"at {tenth} tenths", content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]


def changed(files: Mapping[str, bytes], name: str, content: Content | None) -> dict[str, Content]:
    """The files with one of them replaced, or left out."""
    return {k: v for k, v in files.items() if k != name} | ({} if content is None else {name: content})


NUMBERS = {
    "negative": "-5",
    "zero": "0",
    "2 to the 31": str(2**31),
    "2 to the 63": str(2**63),
    "2 to the 64": str(2**64),
    "ten to the 12": str(10**12),
    "5000 digits": "9" * 5000,
    "1e400": "1e400",
    "nan": "nan",
    "infinite": "inf",
    "a word": "x\x1b[31m",
}
ENCODINGS = {"utf-16": "utf-16", "utf-16 without a mark": "utf-16-le", "utf-32": "utf-32"}


def encoded(content: bytes) -> Iterator[tuple[str, bytes]]:
    for name, encoding in ENCODINGS.items():
        yield name, content.decode().encode(encoding)
    yield "latin-1 letters", content + "é\n".encode("latin-1")
    yield "nul bytes", content[:20] + b"\0\0" + content[20:]


# ---- data sets ----


def tu_cases() -> Iterator[Case]:
    for name, mark in (("before", b"\x1f24, 2"), ("after", b"24\x1c, 2")):
        files = changed(tu_files(), "SMALL_A.txt", mark + b"\n" + tu_files()["SMALL_A.txt"])
        words = ("datasets", "./SMALL")
        yield Case("TU folder", "encodings", f"a separator {name} a number", words, under("SMALL", files))
    files, read = tu_files(), ("datasets", "./SMALL")

    def case(kind: str, name: str, part: str, content: Content | None, **more: Any) -> Case:
        return Case("TU folder", kind, name, read, under("SMALL", changed(files, f"SMALL_{part}.txt", content)), **more)

    a = files["SMALL_A.txt"]
    for name, content in cut(a):
        yield case("truncated", name, "A", content)
    for part in ("graph_indicator", "graph_labels", "node_labels", "node_attributes", "edge_labels"):
        content = files[f"SMALL_{part}.txt"]
        yield case("truncated", f"{part} in the middle", part, content[: len(content) // 2])
        yield case("empty parts", part, part, b"")
    for name, content in flipped(a):
        yield case("bits flipped", name, "A", content)
    for name, number in NUMBERS.items():
        line = number.encode()
        yield case("numbers out of range", f"node {name}", "A", b"1, " + line + a[a.index(b"\n") :])
        indicator = files["SMALL_graph_indicator.txt"]
        yield case("numbers out of range", f"graph {name}", "graph_indicator", line + indicator[1:])
    for name in ("1e400", "nan", "infinite", "5000 digits"):
        attributes = files["SMALL_node_attributes.txt"]
        content = NUMBERS[name].encode() + attributes[3:]
        yield case("numbers out of range", f"attribute {name}", "node_attributes", content)
    labels = files["SMALL_graph_labels.txt"].split()
    for name in ("2 to the 63", "2 to the 64", "1e400", "nan"):
        content = b"\n".join([NUMBERS[name].encode(), *labels[1:]])
        yield case("numbers out of range", f"class {name}", "graph_labels", content)
    large = b"\n".join([str(10**18).encode(), str(-(2**63)).encode(), *labels[2:]])
    yield case("huge counts", "classes to ten to the 18", "graph_labels", large, accepted=True)
    node_labels = files["SMALL_node_labels.txt"]
    yield case(
        "huge counts", "a node label of ten to the 18", "node_labels", b"1%018d" % 0 + node_labels[1:], accepted=True
    )
    for name, content in encoded(a):
        yield case("encodings", name, "A", content)
    yield case("encodings", "byte order mark", "A", b"\xef\xbb\xbf" + a, accepted=True)
    windows = {name: content.replace(b"\n", b"\r\n") for name, content in files.items()}
    yield Case("TU folder", "encodings", "crlf", read, under("SMALL", windows), accepted=True)
    yield case("encodings", "blank lines", "A", a.replace(b"\n", b"\n\n"), accepted=True)
    yield case("encodings", "a comment", "A", b"# edges\n" + a)
    for part in ("A", "graph_indicator", "graph_labels"):
        yield case("missing or doubled parts", f"without {part}", part, None)
    yield case("missing or doubled parts", "three columns", "A", a.replace(b"\n", b", 1\n"))
    yield case("missing or doubled parts", "one column", "A", b"1\n2\n")
    yield case("missing or doubled parts", "a graph without nodes", "graph_labels", files["SMALL_graph_labels.txt"] * 2)
    two = under("SMALL", files | tu_files("OTHER") | tu_files("THIRD"))
    yield Case(
        "TU folder",
        "missing or doubled parts",
        "two sets, none named so",
        ("datasets", "./D"),
        {name.replace("SMALL/", "D/"): content for name, content in two.items() if "SMALL_" not in name},
    )
    yield Case("TU folder", "empty parts", "an empty folder", read, {"SMALL/sub/x": b""})
    yield Case("TU folder", "empty parts", "every file", read, {f"SMALL/{name}": b"" for name in files})
    outside = {f"elsewhere/{name}": content for name, content in files.items()}
    linked = {f"SMALL/{name}": Link(f"../elsewhere/{name}") for name in files}
    yield Case("TU folder", "paths and links", "links to good files", read, outside | linked, accepted=True)
    yield case("paths and links", "a link to nothing", "A", Link("nowhere"))
    yield case("paths and links", "a link to itself", "A", Link("SMALL_A.txt"))
    yield case("paths and links", "a link to a device", "A", Link("/dev/zero"))
    yield case("paths and links", "a part that links to nothing", "node_labels", Link("nowhere"), accepted=True)
    yield case("paths and links", "a link to another file", "graph_labels", Link("/etc/hostname"))
    yield case("paths and links", "a pipe", "A", Fifo())
    yield case("paths and links", "a pipe for labels", "node_labels", Fifo(), accepted=True)
    circle = under("SMALL", files) | {"SMALL/again": Link(".")}
    yield Case("TU folder", "paths and links", "a folder in itself", read, circle)
    for word in ("\x1b]0;title\x07", "line\nbreak", "back\rspace\b"):
        shown = ascii(word).strip("'").replace("\\", "")
        bad = changed(tu_files(word), f"{word}_A.txt", b"x\n")
        yield Case("TU folder", "names", shown, ("datasets", "./SMALL"), under("SMALL", bad))
        yield Case("TU folder", "names", f"the folder {shown}", ("datasets", f"./{word}"), under(word, {"a": b""}))
    yield Case("TU folder", "names", "no such folder", ("datasets", "./\x1b[2Jnowhere"))
    yield Case("TU folder", "names", "too long", ("datasets", "./" + "x" * 5000))
    yield Case("TU folder", "paths and links", "a device", ("datasets", "/dev/zero"))
    yield Case("TU folder", "paths and links", "a pipe as the set", ("datasets", "./pipe.txt"), {"pipe.txt": Fifo()})


def text_cases() -> Iterator[Case]:
    good = text_file()

    def case(kind: str, name: str, content: bytes, **more: Any) -> Case:
        return Case("one-file text", kind, name, ("datasets", "./T.txt"), {"T.txt": content}, **more)

    for name, content in cut(good):
        yield case("truncated", name, content)
    for name, content in flipped(good):
        yield case("bits flipped", name, content)
    for name, number in NUMBERS.items():
        number = number.encode()
        if name != "zero":
            yield case(
                "numbers out of range", f"neighbour {name}", good.replace(b"0 2 1 2\n", b"0 2 1 %b\n" % number, 1)
            )
        yield case("huge counts", f"graphs {name}", number + good[good.index(b"\n") :])
        yield case("huge counts", f"nodes {name}", good.replace(b"\n3 1\n", b"\n%b 1\n" % number, 1))
        yield case("huge counts", f"neighbours {name}", good.replace(b"\n0 2 1 2\n", b"\n0 %b 1 2\n" % number, 1))
    yield case("numbers out of range", "class nan", good.replace(b"\n3 1\n", b"\n3 nan\n", 1))
    yield case("numbers out of range", "class 1.5", good.replace(b"\n3 1\n", b"\n3 1.5\n", 1))
    yield case("huge counts", "class ten to the 15", good.replace(b"\n3 1\n", b"\n3 1%015d\n" % 0, 1), accepted=True)
    yield case("huge counts", "class ten to the 18", good.replace(b"\n3 1\n", b"\n3 1%018d\n" % 0, 1))
    yield case("missing or doubled parts", "more lines than announced", good + b"1 0\n")
    yield case("missing or doubled parts", "twice", good * 2)
    yield case("encodings", "crlf", good.replace(b"\n", b"\r\n"), accepted=True)
    yield case("encodings", "byte order mark", b"\xef\xbb\xbf" + good, accepted=True)
    for name, content in encoded(good):
        yield case("encodings", name, content)
    yield case("empty parts", "blanks alone", b" \n\n\t\n")
    yield case("wrong kind of file", "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    yield case("wrong kind of file", "a web page", b"<html><body>sign in first</body></html>")
    yield case("wrong kind of file", "one endless line", b"1 " * 100_000)


def graph_cases() -> Iterator[Case]:
    def case(kind: str, name: str, content: Content, ending: str, **more: Any) -> Case:
        of = "GraphML" if ending == "graphml" else "node-link JSON"
        return Case(of, kind, name, ("datasets", f"./G.{ending}"), {f"G.{ending}": content}, **more)

    good = graphml()
    for name, content in cut(good):
        yield case("truncated", name, content, "graphml")
    for name, content in flipped(good):
        yield case("bits flipped", name, content, "graphml")
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    entities = {
        "billion laughs": f'<!DOCTYPE g [<!ENTITY l0 "ha">{laughs}]>',
        "quadratic": f'<!DOCTYPE g [<!ENTITY l9 "{"ha" * 20_000}">]>',
        "external file": '<!DOCTYPE g [<!ENTITY l9 SYSTEM "file:///etc/hostname">]>',
        "external dtd": '<!DOCTYPE g SYSTEM "http://127.0.0.1:9/x.dtd">',
        "parameter": '<!DOCTYPE g [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>',
    }
    for name, before in entities.items():
        content = graphml(before=before, node='<node id="l"><data key="k">&l9;</data></node>')
        yield case("XML entities", name, content, "graphml")
    yield case(
        "XML entities",
        "billion laughs in utf-16",
        graphml(before=entities["billion laughs"]).decode().replace("UTF-8", "UTF-16").encode("utf-16"),
        "graphml",
    )
    yield case("XML entities", "one that nobody declared", graphml(node="<node id='x'>&what;</node>"), "graphml")
    yield case("nested deeply", "100,000 elements", b"<a>" * 100_000, "graphml")
    yield case(
        "nested deeply", "closed again", graphml(head="<a>" * 50_000 + "</a>" * 50_000), "graphml", accepted=True
    )
    yield case(
        "nested deeply",
        "graphs in a node",
        graphml(node="<node id='x'><graph><node id='y'/></graph></node>"),
        "graphml",
    )
    for name, number in NUMBERS.items():
        kind = "int" if number.lstrip("-").isdigit() else "double"
        key = f'<key id="d" for="node" attr.name="label" attr.type="{kind}"><default>{number}</default></key>'
        content = graphml(head=key).replace(b'<data key="k">C</data>', b"")
        if "\x1b" in number or number in ("1e400", "nan", "inf") or len(number) > 4300:
            yield case("numbers out of range", f"label {name}", content, "graphml")
    for name, content in {
        "no graph": b"<graphml></graphml>",
        "no nodes": b'<graphml><graph edgedefault="undirected"/></graphml>',
        "nothing": b"",
        "blanks": b"  \n ",
    }.items():
        yield case("empty parts", name, content, "graphml")
    yield case("missing or doubled parts", "a node twice", graphml(node='<node id="n0"/>'), "graphml")
    yield case(
        "missing or doubled parts", "an edge to nowhere", graphml(node='<edge source="n0" target="n77"/>'), "graphml"
    )
    yield case("missing or doubled parts", "an edge without an end", graphml(node='<edge source="n0"/>'), "graphml")
    yield case("missing or doubled parts", "a node without a name", graphml(node="<node/>"), "graphml")
    yield case(
        "missing or doubled parts",
        "a key that is not there",
        graphml(node='<node id="x"><data key="q">1</data></node>'),
        "graphml",
    )
    yield case("missing or doubled parts", "a label that is missing", graphml(node='<node id="x"/>'), "graphml")
    yield case("encodings", "latin-1 letters", graphml(node='<node id="é"/>').decode().encode("latin-1"), "graphml")
    yield case("encodings", "an encoding nobody knows", good.replace(b"UTF-8", b"KLINGON"), "graphml")
    yield case("encodings", "nul bytes", good.replace(b"\n", b"\0\n"), "graphml")
    yield case(
        "encodings", "utf-16", good.decode().replace("UTF-8", "UTF-16").encode("utf-16"), "graphml", accepted=True
    )
    yield case("encodings", "byte order mark", b"\xef\xbb\xbf" + good, "graphml", accepted=True)
    yield case("encodings", "crlf", good.replace(b"\n", b"\r\n"), "graphml", accepted=True)
    yield case(
        "names",
        "attribute names speak to the terminal",
        b"".join(
            (
                graphml(
                    head='<key id="e" for="node" attr.name="&#x85;[31m" attr.type="string"/>'
                    '<key id="f" for="node" attr.name="&#10;tapnet: x" attr.type="string"/>'
                ).replace(b'<data key="k">C', b'<data key="e">1</data><data key="f">1</data><data key="z">'),
            )
        ),
        "graphml",
    )

    values = node_link()
    good = json.dumps(values).encode()
    for name, content in cut(good):
        yield case("truncated", name, content, "json")
    for name, content in flipped(good):
        yield case("bits flipped", name, content, "json")
    for depth in (1_000, 100_000):
        yield case("nested deeply", f"{depth} lists", b"[" * depth + b"]" * depth, "json")
        yield case("nested deeply", f"{depth} objects", b'{"nodes":' * depth, "json")
        deep = b"[" * depth + b"]" * depth
        yield case("nested deeply", f"a name of {depth} lists", good.replace(b'"id": 0', b'"id": ' + deep, 1), "json")
        yield case("nested deeply", f"a label of {depth} lists", good.replace(b'"C"', deep, 1), "json")
    label = b'"label": "C"'
    for name, value in {
        "nan": b"NaN",
        "infinite": b"Infinity",
        "1e400": b"1e400",
        "5000 digits": b"9" * 5000,
        "null": b"null",
        "a list": b'[1, "a"]',
        "an object": b'{"a": 1}',
    }.items():
        yield case("numbers out of range", f"label {name}", good.replace(label, b'"label": ' + value), "json")
    ten_to_the_400 = good.replace(label, b'"label": 1' + b"0" * 400)
    yield case("numbers out of range", "label ten to the 400", ten_to_the_400, "json", accepted=True)
    for name, value in {"true": b"true", "null": b"null", "an object": b"{}", "nan": b"NaN"}.items():
        yield case("wrong types", f"name {name}", good.replace(b'"id": 0', b'"id": ' + value), "json")
    for name, text in {
        "a number": "5",
        "a list": "[1, 2]",
        "text": '"nodes"',
        "nodes as an object": '{"nodes": {}, "links": []}',
        "nodes as numbers": '{"nodes": [1, 2], "links": []}',
        "edges as pairs": '{"nodes": [{"id": 0}], "links": [[0, 0]]}',
        "a billion nodes": '{"nodes": 1000000000, "links": []}',
        "no links": '{"nodes": [{"id": 0}]}',
        "links null": '{"nodes": [{"id": 0}], "links": null}',
    }.items():
        yield case("wrong types", name, text.encode(), "json")
    yield case("empty parts", "no nodes", b'{"nodes": [], "links": []}', "json")
    yield case("empty parts", "blanks", b" \n", "json")
    yield case("missing or doubled parts", "a node twice", good.replace(b'"id": 1', b'"id": 0'), "json")
    yield case("missing or doubled parts", "an edge to nowhere", good.replace(b'"target": 1', b'"target": 77'), "json")
    yield case("missing or doubled parts", "an edge without an end", good.replace(b'"target"', b'"tarket"'), "json")
    yield case("encodings", "latin-1 letters", good.replace(b'"C"', b'"\xe9"'), "json")
    yield case("encodings", "nul bytes", good.replace(b",", b",\0", 2), "json")
    yield case("encodings", "half a letter", good.replace(b'"C"', b'"\\ud800"'), "json", accepted=True)
    yield case("encodings", "byte order mark", b"\xef\xbb\xbf" + good, "json", accepted=True)
    yield case("encodings", "utf-16", good.decode().encode("utf-16"), "json", accepted=True)
    yield case("encodings", "crlf", json.dumps(values, indent=1).replace("\n", "\r\n").encode(), "json", accepted=True)
    spoken = good.replace(b'"target": 1', b'"target": "\\u001b[31m\\nx"', 1)
    yield case("names", "a node's name speaks to the terminal", spoken, "json")
    yield case("huge counts", "a file of lists", b'{"nodes": [' + b"[]," * (1 << 20) + b"[]]}", "json")


def folder_cases() -> Iterator[Case]:
    files = graph_folder()
    table = files["labels.csv"]

    def case(kind: str, name: str, labels: Content | None, more_files: Files | None = None, **more: Any) -> Case:
        found = under("graphs", {**changed(files, "labels.csv", labels), **(more_files or {})})
        return Case("folder of graphs", kind, name, ("train", "./graphs", *QUICK), found, **more)

    for tenth, (name, content) in enumerate(cut(table)):  # at 6 tenths a line ends, so nobody can know
        yield case("truncated", f"labels.csv {name}", content, accepted=tenth == 6, notes=int(tenth == 1))
    for name, content in flipped(table):
        yield case("bits flipped", f"labels.csv {name}", content)
    yield case("empty parts", "no labels.csv", None)
    yield case("empty parts", "a header alone", b"class,graph\n")
    yield case("empty parts", "a class that is empty", table.replace(b"\nstar,star3", b"\n,star3"))
    yield case("empty parts", "an empty graph file", table, {"ring3.json": b""})
    yield case("missing or doubled parts", "a graph that is not there", table + b"ring,nowhere.json\n")
    yield case("missing or doubled parts", "a graph twice", table + table.splitlines(True)[-1])
    yield case("missing or doubled parts", "no header", table.partition(b"\n")[2])
    yield case(
        "missing or doubled parts",
        "a name for two files",
        table.replace(b"ring3.json", b"ring3"),
        {"ring3.graphml": graphml()},
    )
    yield case("missing or doubled parts", "one class alone", table.replace(b"star,", b"ring,"))
    yield case(
        "missing or doubled parts",
        "a class for each graph",
        b"class,graph\n"
        + b"".join(b"%d,%b\n" % (i, name.encode()) for i, name in enumerate(files) if name != "labels.csv"),
    )
    yield case(
        "missing or doubled parts",
        "labels in one file alone",
        table,
        {"ring3.json": json.dumps({"nodes": [{"id": 0}], "links": []}).encode()},
    )
    yield case("wrong types", "a quote that is not closed", table + b'"ring,ring3.json\n')
    yield case("wrong types", "a field of 200,000 letters", table + b"ring," + b"x" * 200_000 + b"\n")
    yield case("wrong types", "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    yield case("encodings", "utf-16", table.decode().encode("utf-16"))
    yield case("encodings", "latin-1 letters", table.replace(b"\nstar,", b"\nst\xe9rn,"))
    yield case("encodings", "nul bytes", table.replace(b"\nstar,", b"\nst\0r,"))
    yield case(
        "encodings", "crlf and a byte order mark", b"\xef\xbb\xbf" + table.replace(b"\n", b"\r\n"), accepted=True
    )
    yield case(
        "encodings", "semicolons and quotes", table.replace(b"star,", b'"star";').replace(b",", b";"), accepted=True
    )
    for word in ("../../etc/hostname", "/etc/hostname", "..", "ring3.json/../ring3.json"):
        yield case("paths and links", f"labels.csv names {word}", table + f"ring,{word}\n".encode())
    yield case("paths and links", "a pipe among the graphs", table, {"pipe.json": Fifo()}, accepted=True)
    yield case("paths and links", "a pipe that labels.csv names", table, {"ring3.json": Fifo()})
    yield case("paths and links", "labels.csv is a pipe", Fifo())
    yield case("paths and links", "labels.csv is a folder", None, {"labels.csv/x": b""})
    yield case("paths and links", "a graph file is a folder", table, {"ring4.json/x": b""}, accepted=True)
    yield case("paths and links", "a link to nothing", table, {"gone.json": Link("nowhere.json")}, accepted=True)
    yield case("paths and links", "a link to itself", table, {"loop.json": Link("loop.json")}, accepted=True)
    yield case("paths and links", "a link to a device", table, {"zero.json": Link("/dev/zero")}, accepted=True)
    yield case("paths and links", "a link to no graph", table, {"ring3.json": Link("/etc/hostname")})
    for word in ("\x1b[31mred.json", "two\nlines.json", "bell\x07.graphml"):
        shown = ascii(word).strip("'").replace("\\", "")
        yield case("names", f"the file {shown}", None, {word: b"{}"})
        yield case("names", f"labels.csv names {shown}", table + b'ring,"' + word.encode() + b'"\n')
    yield case("names", "a class speaks to the terminal", table.replace(b"star,", b'"\x1b[31m\nstar",'), accepted=True)


def archive_cases() -> Iterator[Case]:
    files = {f"SMALL/{name}": content for name, content in tu_files().items()}
    good = packed(files)

    def case(kind: str, name: str, content: bytes, **more: Any) -> Case:
        return Case("archive", kind, name, ("datasets", "./SMALL.zip"), {"SMALL.zip": content}, **more)

    for name, content in cut(good):
        yield case("truncated", name, content)
    yield case("names", "an entry without a name", packed(files | {"": b"1"}))
    stored = packed(files, zipfile.ZIP_STORED)
    directory = stored.index(b"PK\x01\x02")
    for name, content in flipped(stored, bit=4, within=directory):
        yield case("bits flipped", f"in stored files {name}", content)
    deflated = good.index(b"PK\x01\x02")
    for name, content in flipped(good, bit=16, within=deflated):
        yield case("bits flipped", f"in packed files {name}", content)
    for tenth in range(0, 10, 2):
        at = deflated + (len(good) - deflated) * tenth // 10
        content = good[:at] + bytes([good[at] ^ 255]) + good[at + 1 :]
        yield case("bits flipped", f"in the directory at {tenth} tenths", content, accepted=tenth in FLIPS_WITHOUT_HARM)
    zeros = b"0" * (20 << 20)
    yield case("bombs", "20 MB of zeros", packed({"SMALL/SMALL_A.txt": zeros}))
    yield case("bombs", "10 files of 2 MB", packed({f"SMALL/SMALL_{i}.txt": zeros[: 2 << 20] for i in range(10)}))
    yield case("bombs", "20 MB of lists", packed({"a.json": b'{"nodes": [' + b"[]," * (7 << 20) + b"[]]}"}))
    yield case("bombs", "15 MB in one line", packed({**files, "SMALL/SMALL_A.txt": zeros[: 15 << 20]}))
    yield case("bombs", "9 MB of lists", packed({"a.json": b'{"nodes": [' + b"[]," * (3 << 20) + b"[]]}"}))
    yield case("bombs", "archives in an archive", packed({"SMALL/inner.zip": packed({"a.zip": good})}))
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for i in range(20_000):
            archive.writestr(zipfile.ZipInfo(f"f/{i}.x"), b"")
    yield case("bombs", "20,000 members", many.getvalue())
    folders = io.BytesIO()
    with zipfile.ZipFile(folders, "w") as archive:
        for i in range(300):
            archive.writestr(zipfile.ZipInfo("/".join(["d"] * 200) + f"/{i}.x"), b"")
    yield case("bombs", "folders 200 deep", folders.getvalue())
    overlapping = bytearray(packed({"SMALL/SMALL_A.txt": b"1, 2\n" * 1000, "SMALL/SMALL_B.txt": b"1, 2\n" * 1000}))
    second = overlapping.rindex(b"PK\x01\x02")
    overlapping[second + 42 : second + 46] = bytes(4)  # both entries claim the first one's bytes
    yield case("bombs", "overlapping entries", bytes(overlapping))
    claims = bytearray(stored)
    first = claims.index(b"PK\x01\x02")
    claims[first + 20 : first + 28] = struct.pack("<II", 2**31, 2**31)
    yield case("huge counts", "an entry of 2 GB", bytes(claims))
    ended = bytearray(good)
    ended[-14:-10] = struct.pack("<HH", 65535, 65535)
    yield case("huge counts", "65,535 entries", bytes(ended), accepted=True)
    for name, word in {
        "up": "../SMALL_A.txt",
        "far up": "SMALL/../../../../tmp/x.txt",
        "absolute": "/tmp/SMALL_A.txt",
        "backslashes": "..\\..\\SMALL_A.txt",
        "a drive": "C:\\SMALL_A.txt",
    }.items():
        yield case("paths and links", name, packed({**files, word: b"1, 2\n"}))
    link = zipfile.ZipInfo("SMALL/SMALL_node_labels.txt")
    link.external_attr = 0o120777 << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            if name == link.filename:
                archive.writestr(link, "/etc/hostname")
            else:
                archive.writestr(zipfile.ZipInfo(name), content)
    yield case("paths and links", "a symbolic link", out.getvalue())
    encrypted = bytearray(stored)
    encrypted[first + 8] |= 1
    yield case("wrong types", "encrypted", bytes(encrypted))
    method = bytearray(stored)
    method[first + 10 : first + 12] = struct.pack("<H", 98)
    yield case("wrong types", "packed in a way nobody knows", bytes(method))
    yield case("empty parts", "no bytes", b"")
    yield case("empty parts", "no members", packed({}))
    yield case("empty parts", "members without a set", packed({"SMALL/readme.md": b"no graphs here"}))
    yield case("empty parts", "members that are empty", packed(dict.fromkeys(files, b"")))
    yield case(
        "missing or doubled parts",
        "without graph_indicator",
        packed(changed(files, "SMALL/SMALL_graph_indicator.txt", None)),
    )  # type: ignore[arg-type]
    doubled = io.BytesIO()
    with zipfile.ZipFile(doubled, "w") as archive:
        for name, content in (*files.items(), ("SMALL/SMALL_a.txt", b"1, 999\n")):
            archive.writestr(zipfile.ZipInfo(name), content)
    twice = doubled.getvalue().replace(b"SMALL_a.txt", b"SMALL_A.txt")
    yield case("missing or doubled parts", "a part twice", twice)
    yield case("names", "members speak to the terminal", packed({"a/\x1b[31mX_graph_indicator.txt": b"", "a/b": b""}))
    yield case("names", "members with line breaks", packed({"a\nb/x\ny_A.txt": b"1, 2\n"}))
    yield case("wrong kind of file", "a web page", b"<html>sign in first</html>")
    pipes = io.BytesIO()
    with tarfile.open(fileobj=pipes, mode="w:gz") as tar:
        for name, kind, target in (
            ("SMALL/SMALL_A.txt", tarfile.SYMTYPE, "/etc/hostname"),
            ("../up", tarfile.LNKTYPE, "/etc/hostname"),
            ("dev", tarfile.CHRTYPE, ""),
            ("fifo", tarfile.FIFOTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.devmajor, info.devminor = kind, target, 1, 5
            tar.addfile(info)
    for ending in ("tar.gz", "tgz", "zip"):
        words = ("datasets", f"./SMALL.{ending}")
        yield Case(
            "archive",
            "paths and links",
            f"links and devices in a tar named .{ending}",
            words,
            {f"SMALL.{ending}": pipes.getvalue()},
        )
    train = ("train", "./SMALL.zip", *QUICK)
    yield Case("archive", "truncated", "for training", train, {"SMALL.zip": good[: len(good) // 2]})


FLIPS_WITHOUT_HARM = (6, 8)  # tenths of an archive's directory where dates and rights stand


# ---- models ----


class Malicious:
    """What a pickle may hold: loading it makes a file."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("code-was-run",)


def model_cases(trained: Trained) -> Iterator[Case]:
    model, graph = (
        unsealed(trained.model),
        graphml().replace(b">C<", b">0<").replace(b">N<", b">1<").replace(b">O<", b">2<"),
    )
    (length,) = struct.unpack("<Q", model[:8])
    readers = {
        "predict": ("predict", "--allow-unknown", "m.safetensors", "g.graphml"),
        "show": ("show", "m.safetensors", "g.graphml", "--out", "picture.svg"),
        "explore": ("explore", "m.safetensors", "--port", "0", "--no-browser"),
    }

    def case(kind: str, name: str, content: Content, reader: str = "predict", **more: Any) -> Case:
        return Case("model", kind, name, readers[reader], {"m.safetensors": content, "g.graphml": graph}, **more)

    def described(kind: str, name: str, *path: Any, value: Any, reader: str = "predict", **more: Any) -> Case:
        return case(kind, name, with_description(model, *path, value=value), reader, **more)

    for i, (name, content) in enumerate(cut(model)):
        yield case("truncated", name, content, list(readers)[i % 3])
    for name, content in flipped(model, within=8 + length):
        yield case("bits flipped", f"in the header {name}", content)
    for name, content in list(flipped(trained.model, bit=1))[1:]:
        yield case("bits flipped", f"in the weights {name}", content)
    for claim in (2**31, 2**40, 2**63, 2**64 - 1):
        yield case("huge counts", f"a header of {claim} bytes", struct.pack("<Q", claim) + model[8:])

    def reshaped(shape: list[int]) -> bytes:
        def change(header: dict[str, Any]) -> None:
            first = next(key for key in header if key != "__metadata__")
            header[first]["shape"] = shape

        return with_header(model, change)

    for shape in ([10**9, 10**9], [2**62, 4], [2**63, 2], [-1, 4], []):
        yield case("huge counts", f"a tensor of shape {shape}", reshaped(shape))
    for field_, value in {
        "hidden_channels": 10**9,
        "hidden channels": 10**18,
        "classifier_channels": 10**12,
        "ratios": [0.5] * 100_000,
    }.items():
        setting = field_.replace(" ", "_")
        yield described("huge counts", f"{field_} {value!r:.20}", "trial", "settings", setting, value=value)
    for field_, value in {"in_channels": 10**12, "num_classes": 10**12}.items():
        yield described("huge counts", f"{field_} {value}", "shape", field_, value=value)
    for other, content in ((name, unsealed(file)) for name, file in trained.others.items()):
        for name, value in description(content)["trial"]["settings"].items():
            if type(value) is int and value > 0:
                bad = with_description(content, "trial", "settings", name, value=10**9)
                yield case("huge counts", f"{other} with {name} 10**9", bad)
    for other, name, value in (
        ("pscn", "mean_nodes", 1e300),
        ("pscn", "mean_nodes", float("inf")),
        ("pscn", "mean_nodes", 10**400),
        ("dgcnn", "node_deciles", [10**18] * 11),
        ("diffpool", "node_deciles", [10**9] * 11),
    ):
        bad = with_description(unsealed(trained.others[other]), "shape", name, value=value)
        yield case("huge counts", f"{other} of data with {name} {value!r:.5}", bad)
    for field_, value in {
        "dropout": 5,
        "drop out": float("nan"),
        "connectivity": float("inf"),
        "ratios": "all",
        "pool": "drain",
        "hidden_channels": -4,
        "hidden channels": 4.5,
        "gate": None,
        "norm": ["sum"],
    }.items():
        setting = field_.replace(" ", "_")
        yield described("wrong types", f"{field_} {value}", "trial", "settings", setting, value=value)
    yield described("wrong types", "a setting nobody knows", "trial", "settings", "\x1b[31m\nx", value=1)
    yield described("wrong types", "settings as a list", "trial", "settings", value=[1, 2])
    yield described("wrong types", "the model is a number", "trial", "model", value=5)
    yield described("wrong types", "the model is a list", "trial", "model", value=[])
    yield described("wrong types", "the model is no network", "trial", "model", value="wl")
    yield described("wrong types", "the trial is text", "trial", value="tapnet")
    yield described("wrong types", "the shape is text", "shape", value="tapnet")
    yield described("wrong types", "another shape", "shape", "node_deciles", value=5)
    for name, path, value in (
        ("classes null", ("classes",), None),
        ("classes as lists", ("classes",), [[1], [2]]),
        ("classes as objects", ("classes",), [{}, {}]),
        ("too many classes", ("classes",), [1, 2, 3]),
        ("class names a number", ("class_names",), 5),
        ("class names too few", ("class_names",), ["a"]),
        ("class names of numbers", ("class_names",), [1, 2]),
        ("class names of one word", ("class_names",), "ab"),
        ("class names twice the same", ("class_names",), ["a", "a"]),
        ("features unknown", ("features",), "magic"),
        ("features a list", ("features",), []),
        ("features null", ("features",), None),
        ("categories a number", ("categories",), 7),
        ("categories of objects", ("categories",), [{}, {}, {}]),
        ("categories null", ("categories",), None),
        ("category names a number", ("category_names",), 7),
        ("category names too few", ("category_names",), ["a"]),
        ("category names of lists", ("category_names",), [[], [], []]),
    ):
        yield described("wrong types", name, *path, value=value, reader="explore" if "category" in name else "predict")
    for i, value in enumerate(("../../SMALL", "/etc", "~", "", 5, None, "\x1b[31m", "a\nb")):
        yield described("paths and links", f"of the data set {i}", "trial", "dataset", value=value, reader="explore")
    for name, value in {"a list": [], "words": {"mean": "a", "std": "b", "rules": 5}, "null": None}.items():
        yield described("wrong types", f"an accuracy that is {name}", "cross_validation", value=value, accepted=True)
    loud = {"mean": 50.0, "std": 1.0, "rules": "\x1b[31m\nroot: all is well"}
    yield described("names", "a protocol that speaks to the terminal", "cross_validation", value=loud, accepted=True)
    names = ["\x1b[31mring", "a\nb"]
    yield described(
        "names", "class names speak to the terminal", "class_names", value=names, reader="show", accepted=True
    )
    halves = ["\ud800", "\udfff"]
    yield described(
        "encodings", "class names are half letters", "class_names", value=halves, reader="show", accepted=True
    )

    def metadata(text: str | None) -> bytes:
        def change(header: dict[str, Any]) -> None:
            if text is None:
                del header["__metadata__"]
            else:
                header["__metadata__"]["tapnet"] = text

        return with_header(model, change)

    yield case("empty parts", "no description", metadata(None))
    yield case("empty parts", "an empty description", metadata(""))
    yield case("empty parts", "an empty file", b"")
    yield case("empty parts", "weights without bytes", with_header(model, lambda _: None, weights=b""))
    yield case(
        "empty parts", "no weights", with_header(model, lambda h: {"__metadata__": h["__metadata__"]}, weights=b"")
    )
    for name, text in {
        "a number": "5",
        "a list": "[]",
        "null": "null",
        "no JSON": "{'trial': 1}",
        "nan": "NaN",
    }.items():
        yield case("wrong types", f"the description is {name}", metadata(text))
    yield case("nested deeply", "the description", metadata("[" * 100_000))
    yield case("nested deeply", "the header", struct.pack("<Q", 400_000) + b"[" * 400_000)
    yield described("nested deeply", "a class", "classes", value=[json.loads("[" * 500 + "]" * 500), 1])
    yield case(
        "missing or doubled parts",
        "a tensor is missing",
        with_header(model, lambda h: {k: v for k, v in h.items() if not k.startswith("classifier.out")}),
    )
    yield case(
        "encodings",
        "the header in utf-16",
        struct.pack("<Q", 2 * length) + model[8 : 8 + length].decode().encode("utf-16-le"),
    )

    yield case("code in a model", "a pickle", pickle.dumps(Malicious()))
    yield case("code in a model", "a pickle for show", pickle.dumps(Malicious()), "show")
    yield case("code in a model", "a torch file", torch_file({"model": 1}))
    yield case("code in a model", "a torch file with code", torch_file(Malicious()))
    yield case("code in a model", "a program", b"#!/bin/sh\nmkdir code-was-run\n")
    program = {"m.safetensors": model, "g.graphml": graph, "tapnet.py": b"import os; os.mkdir('code-was-run')\n"}
    yield Case("model", "code in a model", "a program beside it", readers["predict"], program, accepted=True)
    yield case("paths and links", "a pipe", Fifo())
    yield case("paths and links", "a pipe to show", Fifo(), "show")
    yield case("paths and links", "a link to a device", Link("/dev/zero"))
    yield case("paths and links", "a link to nothing", Link("nowhere"))
    yield Case("model", "paths and links", "a folder", ("predict", ".", "g.graphml"), {"g.graphml": graph})
    yield Case(
        "model", "names", "no such file", ("predict", "\x1b[31mno\n.safetensors", "g.graphml"), {"g.graphml": graph}
    )
    yield Case(
        "model", "names", "too long", ("predict", "x" * 5000 + ".safetensors", "g.graphml"), {"g.graphml": graph}
    )
    for name, word in {
        "a number that is none": "²",
        "two signs": "--5",
        "5000 digits": "9" * 5000,
        "too long": "x" * 5000,
        "to the terminal": "\x1b[31m",
        "negative": "-1",
    }.items():
        words = ("show", "m.safetensors", "--out", "picture.svg", "--dataset", "./SMALL", "--", word)
        files = under("SMALL", tu_files()) | {"m.safetensors": model}
        yield Case("model", "names", f"a graph to show {name}", words, files)
    labels = b'graph,class\ng,"\x1b[31m\nloud"\n'
    loud = {"m.safetensors": model, "g.graphml": graph, "labels.csv": labels}
    yield Case("model", "names", "a class in labels.csv speaks to the terminal", readers["show"], loud, accepted=True)
    for name, number in {"nan": "nan", "infinite": "inf"}.items():
        bad = filled(model, float(number))
        yield case("numbers out of range", f"weights that are {name}", bad)
        yield case("numbers out of range", f"weights that are {name}, shown", bad, "show")


def description(model: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<Q", model[:8])
    about: dict[str, Any] = json.loads(json.loads(model[8 : 8 + length])["__metadata__"]["tapnet"])
    return about


def filled(model: bytes, value: float) -> bytes:
    (length,) = struct.unpack("<Q", model[:8])
    count = (len(model) - 8 - length) // 4
    return model[: 8 + length] + struct.pack("<f", value) * count


def torch_file(content: Any) -> bytes:
    import torch

    out = io.BytesIO()
    torch.save(content, out)
    return out.getvalue()


# ---- inputs of predict ----


def predict_cases(trained: Trained) -> Iterator[Case]:
    model = {"m.safetensors": trained.model}

    def case(kind: str, name: str, words: Iterable[str], files: Files, **more: Any) -> Case:
        return Case(
            "predict", kind, name, ("predict", "m.safetensors", "--allow-unknown", *words), {**model, **files}, **more
        )

    good = json.dumps(node_link()).encode()
    yield case("encodings", "a good file", ["g.json"], {"g.json": good}, accepted=True)
    yield case("encodings", "with JSON lines out", ["g.json", "--format", "jsonl"], {"g.json": good}, accepted=True)
    yield case(
        "truncated",
        "one of three",
        ["a.json", "b.json", "c.json"],
        {"a.json": good, "b.json": good[:50], "c.json": good},
    )
    yield case("truncated", "into a file", ["b.json", "--out", "b.csv"], {"b.json": good[:50]})
    yield case("missing or doubled parts", "one that is not there", ["a.json", "nowhere.json"], {"a.json": good})
    yield case("wrong kind of file", "a program", ["m.safetensors"], {})
    yield case("wrong kind of file", "a table", ["t.csv"], {"t.csv": b"graph,class\n"})
    yield case("wrong kind of file", "JSON lines", ["t.json"], {"t.json": good + b"\n" + good})
    ten_to_the_400 = good.replace(b'"label": "C"', b'"label": 1' + b"0" * 400)
    yield case(
        "numbers out of range", "a label of ten to the 400", ["g.json"], {"g.json": ten_to_the_400}, accepted=True
    )
    yield case("numbers out of range", "a label that is nan", ["g.json"], {"g.json": good.replace(b'"C"', b"NaN")})
    yield case(
        "encodings",
        "a label of half a letter",
        ["g.json"],
        {"g.json": good.replace(b'"C"', b'"\\ud800"')},
        accepted=True,
    )
    spoken = good.replace(b'"C"', b'"\\u001b[31m\\nC"')
    yield case("names", "a label speaks to the terminal", ["g.json"], {"g.json": spoken}, accepted=True)
    folder = under("in", {"a.json": good, "\x1b[31mred.json": good[:40], "two\nlines.json": good[:40]})
    yield case("names", "files speak to the terminal", ["in"], folder)
    yield case("names", "a good file speaks to the terminal", ["\x1b[31mred.json"], {"\x1b[31mred.json": good})
    yield case("paths and links", "a pipe", ["p.json"], {"p.json": Fifo()})
    yield case("paths and links", "a pipe in a folder", ["in"], {"in/a.json": good, "in/p.json": Fifo()}, accepted=True)
    yield case(
        "paths and links",
        "a link to nothing in a folder",
        ["in"],
        {"in/a.json": good, "in/p.json": Link("no")},
        accepted=True,
    )
    yield case(
        "paths and links", "an archive that leaves its folder", ["a.zip"], {"a.zip": packed({"../g.json": good})}
    )
    yield case("nested deeply", "a file in a folder", ["in"], {"in/a.json": good, "in/b.json": b"[" * 100_000})
    yield case("bombs", "an archive of zeros", ["a.zip"], {"a.zip": packed({"g.json": b" " * (1 << 25)})})
    yield case(
        "bombs",
        "laughs in a folder",
        ["in"],
        {"in/a.json": good, "in/b.graphml": graphml(before='<!DOCTYPE g [<!ENTITY a "ha">]>')},
    )
    yield case("names", "too long", ["./" + "x" * 5000], {})
    yield case("empty parts", "an empty folder", ["in"], {"in/x": b""})
    yield case("empty parts", "a folder of empty files", ["in"], {"in/a.json": b"", "in/b.graphml": b""})


# ---- settings ----


def setting_cases() -> Iterator[Case]:
    small = under("SMALL", tu_files())

    def case(kind: str, *words: str, **more: Any) -> Case:
        quick = ("--protocol", "paper", "--folds", "2", "--epochs", "1", "--jobs", "1")
        return Case("settings", kind, " ".join(words)[:60], ("train", "./SMALL", *quick, *words), small, **more)

    for option in ("--lr", "--weight-decay", "--dropout", "--connectivity"):
        for value in ("nan", "inf", "-inf", "1e400", "x"):
            yield case("numbers out of range", option, value)
    for option in ("--epochs", "--folds", "--jobs", "--threads", "--batch-size", "--checkpoint-every", "--seed"):
        yield case("numbers out of range", option, "-1")
        yield case("numbers out of range", option, "1e400")
        if option not in ("--jobs", "--checkpoint-every"):
            yield case("numbers out of range", option, str(2**64))
    for kind, name, content in (
        ("paths and links", "a pipe", Fifo()),
        ("paths and links", "a device", Link("/dev/zero")),
        ("nested deeply", "nested", b"[" * 100_000),
        ("numbers out of range", "graph -1", b'{"train": [-1, 1], "test": [2]}'),
        ("numbers out of range", "ten to the 400", b'{"train": [1' + b"0" * 400 + b'], "test": [2]}'),
        ("wrong types", "lists of several lengths", b'{"train": [[1], [2, 3]], "test": [2]}'),
        ("wrong types", "true and false", b'{"train": [true, false], "test": [2]}'),
        ("empty parts", "no split", b"[]"),
    ):
        words = ("train", "./SMALL", "--epochs", "1", "--jobs", "1", "--split", "splits.json")
        yield Case("settings", kind, f"splits {name}", words, {**small, "splits.json": content})
    yield case("numbers out of range", "--folds", "0")
    yield case("numbers out of range", "--folds", str(10**9))
    yield case("numbers out of range", "--only-folds", "0,99999999999999999999")
    yield case("numbers out of range", "--only-folds", "0,,1")
    for word in (
        "hidden_channels=NaN",
        "hidden_channels=Infinity",
        "hidden_channels=1e400",
        "hidden_channels=-1",
        "hidden_channels=true",
        "hidden_channels=4.5",
        "hidden_channels=",
        "hidden_channels",
        "=4",
        "",
        "ratios=0.5",
        "ratios=[]x",
        "ratios=[0.5, 2.5]",
        'ratios=["a"]',
        "ratios=[NaN]",
        "ratios=[1e400]",
        "dropout=1.5",
        "dropout=-0.1",
        "aux=NaN",
        "pool=drain",
        "pool=[]",
        "lr=true",
        "batch_size=0",
        "epochs=5",
        "halve_lr_every=-1",
        "\x1b[31m=1",
        "a\nb=1",
        "__class__=1",
        "hidden_channels=" + "9" * 5000,
    ):
        yield case("wrong types", "--set", word)
    for word in ("hidden_channels=1000000000", "hidden_channels=1000000000000000000", "classifier_channels=1000000000"):
        yield case("huge counts", "--set", word)
    for model, word in {
        "gin": "layers=1000000000",
        "sagpool": "layers=1000000000",
        "haarpool": "layers=1000000000",
        "diffpool": "hidden_channels=1000000000",
        "dgcnn": "k=1000000000",
        "pscn": "width=1000000000",
    }.items():
        yield case("huge counts", "--model", model, "--set", word)
    yield case("nested deeply", "--set", "ratios=" + "[" * 100_000)
    yield case("wrong types", "--model", "\x1b[31mno")
    yield case("wrong types", "--features", "magic")
    yield case("wrong types", "--device", "gpu")
    yield case("wrong types", "--data-dir", "nowhere")
    yield case("paths and links", "--out", "/dev/null/run")
    yield Case(
        "settings", "paths and links", "out is a file", ("train", "./SMALL", *QUICK, "--out", "f"), {**small, "f": b""}
    )
    yield Case("settings", "paths and links", "a model's name as the data", ("train", "../../../etc", *QUICK))


# ---- stored results ----


def signed_anew(results: Mapping[str, bytes], *path: str, value: Any) -> dict[str, bytes]:
    """Trials with one value changed, under checksums and names that fit them: nothing but the value is wrong."""
    from tapnet.experiments.trial import digest

    found = {}
    for content in results.values():
        values = json.loads(content)
        at = values
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        values.pop("digest")
        values["digest"] = digest(values)
        found[f"trials/{values['key']}.json"] = json.dumps(values).encode()
    return found


def store_cases(trained: Trained) -> Iterator[Case]:
    small, run = under("SMALL", tu_files()), trained.run
    again = ("train", "./SMALL", *QUICK, "--final", "--out", "run")
    results = sorted(name for name in run if name.startswith("trials/"))
    first = f"trials/{trained.key}.json"

    def redone(kind: str, name: str, files: Mapping[str, Content]) -> Case:
        """The command that made the run notices, and does again what was lost."""
        return Case("stored results", kind, name, again, small | under("run", files), accepted=True)

    def shown(kind: str, name: str, files: Mapping[str, Content], **more: Any) -> Case:
        words = ("show", "run", "--out", "curves.svg")
        return Case("stored results", kind, name, words, small | under("run", files), **more)

    for i, (name, content) in enumerate(cut(run[first])):
        yield (
            redone("truncated", f"a trial {name}", changed(run, first, content))
            if i % 3 == 1
            else shown("truncated", f"all trials {name}", {**run, **dict.fromkeys(results, content)})
        )
    for name, content in flipped(run[first]):
        yield shown("bits flipped", f"all trials {name}", {**run, **dict.fromkeys(results, content)})
    for name, content in list(cut(run["run.json"]))[::3]:
        yield shown("truncated", f"run.json {name}", changed(run, "run.json", content))
    for name, value in {
        "a number": b"5",
        "a list": b"[]",
        "null": b"null",
        "trials null": b'{"trials": null}',
        "trials of objects": b'{"trials": [{}]}',
        "trials of nothing": b'{"trials": []}',
        "utf-16": '{"trials": []}'.encode("utf-16"),
    }.items():
        yield shown("wrong types", f"run.json {name}", changed(run, "run.json", value))
    yield shown("nested deeply", "run.json", changed(run, "run.json", b"[" * 100_000))
    yield shown("paths and links", "run.json is a pipe", changed(run, "run.json", Fifo()))
    yield shown("paths and links", "run.json is a folder", {**changed(run, "run.json", None), "run.json/x": b""})
    yield shown("missing or doubled parts", "no run.json", changed(run, "run.json", None))
    yield shown("missing or doubled parts", "no trials", {k: v for k, v in run.items() if not k.startswith("trials/")})
    without = changed(run, first, None)
    for name, content in list(cut(trained.checkpoint))[1::4]:
        yield redone("truncated", f"a checkpoint {name}", {**without, f"checkpoints/{trained.key}.pt": content})
    yield redone(
        "code in a model",
        "a checkpoint with code",
        {**without, f"checkpoints/{trained.key}.pt": torch_file(Malicious())},
    )
    yield redone(
        "code in a model",
        "a checkpoint that is a pickle",
        {**without, f"checkpoints/{trained.key}.pt": pickle.dumps(Malicious())},
    )
    for name, path, value in (
        ("no curves", ("curves",), {}),
        ("curves as a list", ("curves",), []),
        ("a curve as a number", ("curves", "test_accuracy"), 5),
        ("an empty curve", ("curves", "test_accuracy"), []),
        ("a curve of words", ("curves", "test_accuracy"), ["a"]),
        ("a curve of lists", ("curves", "test_accuracy"), [[1]]),
        ("a curve of nothing", ("curves", "test_accuracy"), [None]),
        ("a longer curve", ("curves", "test_accuracy"), [50.0] * 500),
        ("a curve of ten to the 400", ("curves", "test_accuracy"), [10**400]),
        ("a curve of huge numbers", ("curves", "test_accuracy"), [1e308] * 2),
        (
            "a curve that unpacks to 32 MB",
            ("curves", "test_accuracy"),
            base64.b64encode(zlib.compress(b"[" + b"0," * (1 << 24) + b"0]", 9)).decode(),
        ),
        ("no curve of the test graphs", ("curves",), {"train_loss": [0.5]}),
        ("no base 64", ("curves", "test_accuracy"), "\u00e9"),
        ("nested curves", ("curves", "test_accuracy"), "W1tbW1s="),
        ("seconds as text", ("seconds",), "long"),
        ("parameters as a list", ("parameters",), []),
        ("connectivity as a number", ("coarsened",), 5),
        ("connectivity of other things", ("coarsened",), [{"a": 1}]),
        ("a selection as a list", ("selection",), []),
        ("a selection of nothing", ("selection",), {"sizes": None, "kept": None}),
        ("diagnostics of other things", ("diagnostics",), [{"nodes": "all"}]),
        ("the model is a list", ("trial", "model"), []),
        ("settings null", ("trial", "settings"), None),
        ("a billion channels", ("trial", "settings", "hidden_channels"), 10**9),
        ("fold -5", ("trial", "fold"), -5),
        ("fold as text", ("trial", "fold"), "0"),
        ("folds huge", ("trial", "folds"), 10**18),
        ("epochs as text", ("trial", "training", "epochs"), "5"),
        ("the data set speaks to the terminal", ("trial", "dataset"), "\x1b[31m\nx"),
        ("the data set is a list", ("trial", "dataset"), []),
    ):
        yield shown(
            "wrong types",
            f"trials with {name}",
            {**run, **signed_anew({n: run[n] for n in results}, *path, value=value)},
        )
    other = small | {"SMALL/SMALL_graph_labels.txt": tu_files()["SMALL_graph_labels.txt"].replace(b"-1", b"7")}
    page = {key: value for key, value in json.loads(run["run.json"]).items() if key != "digest"}  # of an older version
    without_data = json.dumps(page | {"data": None}).encode()
    words = ("show", "run", "--out", "curves.svg")
    yield Case(
        "stored results",
        "wrong types",
        "run.json without data",
        words,
        other | under("run", {**run, "run.json": without_data}),
        accepted=True,
    )
    yield redone("paths and links", "a trial is a pipe", changed(run, first, Fifo()))
    yield redone("nested deeply", "a trial", changed(run, first, b"[" * 100_000))
    model_file = "final.safetensors"
    for name, content in list(cut(trained.model))[1::4]:
        yield redone("truncated", f"the final model {name}", changed(run, model_file, content))


# ---- uploads ----


def upload_cases() -> Iterator[Case]:
    """Sent to the page; each is answered with a sentence."""
    good = json.dumps(node_link()).encode()
    names = {"x.json": good, "x.graphml": graphml()}
    for name, content in names.items():
        ending = name.partition(".")[2]
        for where, part in list(cut(content))[1::3]:
            yield Case("upload", "truncated", f"{ending} {where}", (UPLOAD, name), {"body": part})
        for where, part in list(flipped(content))[::2]:
            yield Case("upload", "bits flipped", f"{ending} {where}", (UPLOAD, name), {"body": part})
    bodies = {
        ("empty parts", "nothing"): ("x.json", b""),
        ("empty parts", "no nodes"): ("x.json", b'{"nodes": [], "links": []}'),
        ("nested deeply", "lists"): ("x.json", b"[" * 100_000),
        ("nested deeply", "elements"): ("x.graphml", b"<a>" * 100_000),
        ("nested deeply", "a node's name"): (
            "x.json",
            good.replace(b'"id": 0', b'"id": ' + b"[" * 900 + b"]" * 900, 1),
        ),
        ("XML entities", "billion laughs"): ("x.graphml", graphml(before='<!DOCTYPE g [<!ENTITY a "ha">]>')),
        ("XML entities", "a file of the server"): (
            "x.graphml",
            graphml(before='<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/hostname">]>', node="<node id='q'>&a;</node>"),
        ),
        ("encodings", "utf-16 in GraphML"): ("x.graphml", graphml().decode().encode("utf-16-le")),
        ("encodings", "latin-1"): ("x.json", good.replace(b'"C"', b'"\xe9"')),
        ("encodings", "random bytes"): ("x.json", random.Random(0).randbytes(2000)),
        ("huge counts", "too many nodes"): ("x.json", json.dumps(node_link("ring", 10_001)).encode()),
        ("huge counts", "larger than 4 MB"): ("x.json", b" " * ((4 << 20) + 1)),
        ("huge counts", "a million lists"): ("x.json", b'{"nodes": [' + b"[]," * 1_000_000 + b"[]]}"),
        ("numbers out of range", "a label that is nan"): ("x.json", good.replace(b'"C"', b"NaN")),
        ("numbers out of range", "5000 digits"): ("x.json", good.replace(b'"C"', b"9" * 5000)),
        ("paths and links", "up"): ("../../../etc/hostname", good),
        ("paths and links", "absolute"): ("/etc/hostname", good),
        ("names", "no ending"): ("x", good),
        ("names", "another ending"): ("x.json.py", good),
        ("names", "hidden"): (".json", good),
        ("names", "speaks to the terminal"): ("\x1b[31m\n.py", good),
        ("bombs", "an archive"): ("x.zip", packed({"x.json": b" " * (1 << 22)})),
        ("code in a model", "a pickle"): ("x.json", pickle.dumps(Malicious())),
        ("wrong types", "a list"): ("x.json", b"[1, 2]"),
        ("wrong types", "edges as pairs"): ("x.json", b'{"nodes": [{"id": 0, "label": "C"}], "links": [[0, 0]]}'),
    }
    for (kind, what), (name, content) in bodies.items():
        yield Case("upload", kind, what, (UPLOAD, name), {"body": content})
    ten_to_the_400 = good.replace(b'"label": "C"', b'"label": 1' + b"0" * 400)
    yield Case(
        "upload", "numbers out of range", "ten to the 400", (UPLOAD, "x.json"), {"body": ten_to_the_400}, accepted=True
    )
    yield Case(
        "upload",
        "encodings",
        "half a letter",
        (UPLOAD, "x.json"),
        {"body": good.replace(b'"C"', b'"\\ud800"')},
        accepted=True,
    )
    yield Case("upload", "names", "a path and a good file", (UPLOAD, "../x.json"), {"body": good})


# ---- all of them ----


def all_cases(trained: Trained) -> list[Case]:
    from tests.helpers.corpus_grid import grid_cases
    from tests.helpers.corpus_later import later_cases

    cases = [
        *tu_cases(),
        *text_cases(),
        *graph_cases(),
        *folder_cases(),
        *archive_cases(),
        *model_cases(trained),
        *predict_cases(trained),
        *setting_cases(),
        *store_cases(trained),
        *upload_cases(),
        *grid_cases(trained),
        *later_cases(trained),
    ]
    twice = [key for key, times in Counter(case.key for case in cases).items() if times > 1]
    assert not twice, twice
    return cases


def count(cases: Iterable[Case]) -> str:
    """How many inputs there are, by what they are and by what is wrong with them."""
    cases = list(cases)
    lines = [f"{len(cases)} inputs, of which {sum(case.accepted for case in cases)} are odd but legitimate"]
    for attribute in ("of", "kind"):
        counts = Counter(getattr(case, attribute) for case in cases)
        lines.append("; ".join(f"{name}: {times}" for name, times in counts.most_common()))
    return "\n".join(lines)


def main() -> None:
    import contextlib
    import tempfile

    if len(sys.argv) != 2:
        raise SystemExit("python tests/helpers/corpus.py FOLDER")
    sys.path.insert(0, str(Path(__file__).parents[2]))  # for the grid
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TAPNET_CACHE"] = f"{scratch}/cache"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            trained = train_small(Path(scratch))
    cases = all_cases(trained)
    for case in cases:
        here = case.write(folder)
        command = shlex.join(("tapnet", *case.words)) if case.words[0] != UPLOAD else ascii(case.words)
        (here / "command.txt").write_text(f"{ascii(command)[1:-1]}\n{'accepted' if case.accepted else 'refused'}\n")
    print(count(cases))


if __name__ == "__main__":
    main()
