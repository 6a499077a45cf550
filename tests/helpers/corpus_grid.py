"""Bad inputs by the grid: each odd value in each place of a good file, one at a time. `corpus` holds the others."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

from tests.helpers.corpus import (
    NUMBERS,
    QUICK,
    UPLOAD,
    Case,
    Content,
    Trained,
    changed,
    graph_folder,
    graphml,
    node_link,
    packed,
    text_file,
    tu_files,
    under,
    unsealed,
    with_header,
)

MODULUS = 2**61 - 1  # of Python's hash: its multiples all have one


def grid_cases(trained: Trained) -> Iterator[Case]:
    yield from tu_grid()
    yield from text_grid()
    yield from json_grid()
    yield from graphml_grid()
    yield from table_grid()
    yield from archive_grid()
    yield from weight_grid(trained)
    yield from setting_grid()
    yield from upload_grid()


# ---- numbers in text ----

WHOLE = {"negative", "zero", "2 to the 31", "ten to the 12"}  # are good labels and classes
FLOATS = WHOLE | {"2 to the 63", "2 to the 64"}  # are good attributes


def tu_grid() -> Iterator[Case]:
    files = tu_files()
    fine = {"node_labels": WHOLE, "edge_labels": WHOLE, "graph_labels": WHOLE}
    fine |= {"node_attributes": FLOATS, "edge_attributes": FLOATS}
    for part in ("A", "graph_indicator", *fine):
        lines = files[f"SMALL_{part}.txt"].splitlines()
        for place, line in (("in the middle", len(lines) // 2), ("at the end", len(lines) - 1)):
            for name, number in NUMBERS.items():
                row = b", ".join([number.encode(), *lines[line].split(b", ")[1:]])
                content = b"\n".join([*lines[:line], row, *lines[line + 1 :]]) + b"\n"
                yield Case(
                    "TU folder",
                    "numbers out of range",
                    f"{part} {name} {place}",
                    ("datasets", "./SMALL"),
                    under("SMALL", changed(files, f"SMALL_{part}.txt", content)),
                    accepted=name in fine.get(part, ()),
                )


def text_grid() -> Iterator[Case]:
    good = text_file().splitlines()
    header = next(i for i in range(len(good) - 1, 0, -1) if len(good[i].split()) == 2 and good[i].startswith(b"8 "))
    fine = WHOLE - {"2 to the 64"}
    for place, line, word in (("class", header, 1), ("tag", len(good) - 1, 0), ("last neighbour", len(good) - 1, -1)):
        for name, number in NUMBERS.items():
            words = good[line].split()
            words[word] = number.encode()
            content = b"\n".join([*good[:line], b" ".join(words), *good[line + 1 :]]) + b"\n"
            accepted = name in fine if place != "last neighbour" else name == "zero"
            yield Case(
                "one-file text",
                "numbers out of range",
                f"the last {place} {name}",
                ("datasets", "./T.txt"),
                {"T.txt": content},
                accepted=accepted,
            )


# ---- JSON ----

VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "a list": [],
    "an object": {},
    "empty text": "",
    "text": "x",
    "text of a line": "\x1b[31m\ntapnet: fine",
    "-1": -1,
    "1.5": 1.5,
    "2 to the 64": 2**64,
    "ten to the 400": 10**400,
    "nan": math.nan,
    "infinite": math.inf,
    "one hash": MODULUS,
    "100,000 letters": "x" * 100_000,
}
NAMES = {"text", "empty text", "text of a line", "100,000 letters"}  # are good labels
JSON_PLACES = {  # where, and the values that are good there
    ("nodes",): set(),
    ("links",): {"a list"},
    ("nodes", 0): set(),
    ("links", 0): set(),
    ("nodes", 1, "id"): set(),  # edges name 1
    ("nodes", 1, "label"): {*NAMES, "true", "-1", "1.5", "2 to the 64", "ten to the 400", "one hash"},
    ("nodes", 1, "weight"): set(VALUES) - {"ten to the 400", "nan", "infinite"},
    ("links", 0, "source"): set(),
    ("links", 1, "target"): set(),
    ("links", 1, "weight"): set(VALUES),
    ("directed",): set(VALUES),
    ("multigraph",): set(VALUES),
}


def json_grid() -> Iterator[Case]:
    def case(kind: str, name: str, content: bytes, **more: Any) -> Case:
        return Case("node-link JSON", kind, name, ("datasets", "./G.json"), {"G.json": content}, **more)

    for path, fine in JSON_PLACES.items():
        for name, value in VALUES.items():
            values: Any = node_link()
            at = values
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            where = " ".join(map(str, path))
            yield case("wrong types", f"{where} is {name}", json.dumps(values).encode(), accepted=name in fine)
    good = json.dumps(node_link()).encode()
    for key in ("nodes", "links", "id", "label", "source"):
        again = good.replace(b'"%b": ' % key.encode(), b'"%b": 0, "%b": ' % (key.encode(), key.encode()), 1)
        yield case("missing or doubled parts", f"{key} twice in an object", again)
    edges = json.dumps(node_link()["links"]).encode()
    yield case("missing or doubled parts", "empty links and edges", good[:-1] + b', "edges": []}')
    yield case("missing or doubled parts", "links and no edges", good.replace(b'"links"', b'"links": [], "edges"', 1))
    yield case("missing or doubled parts", "other edges", good[:-1] + b', "edges": ' + edges[:-1] + b", {}]}")
    yield case("missing or doubled parts", "links and a number", good[:-1] + b', "edges": 5}', accepted=True)
    yield case("missing or doubled parts", "1 and 1 as text", good.replace(b'"id": 0', b'"id": "1"', 1))
    many = [i * MODULUS for i in range(30_000)]
    for name, nodes in {
        "names": [{"id": i, "label": "C"} for i in many],
        "labels": [{"label": i} for i in many],
        "names that are lists": [{"id": [i], "label": "C"} for i in many],
        "numbers": [{"label": "C", "x": i} for i in many],
    }.items():
        content = json.dumps({"nodes": nodes, "links": []}).encode()
        yield case("huge counts", f"30,000 {name} with one hash", content, accepted=True)


# ---- GraphML ----

WORDS = {
    "empty": "",
    "a blank": " ",
    "another": "what",
    "with a line break": "n0&#10;tapnet: fine",
    "100,000 letters": "x" * 100_000,
    "a letter": "é",
    "a node": "n1",
}


def graphml_grid() -> Iterator[Case]:
    def case(kind: str, name: str, content: bytes, **more: Any) -> Case:
        return Case("GraphML", kind, name, ("datasets", "./G.graphml"), {"G.graphml": content}, **more)

    good, every = graphml(), set(WORDS)
    for place, attribute, fine in (
        ("a node's name", b'id="n0"', set()),  # an edge names it
        ("an edge's source", b'source="n0"', {"a node"}),
        ("an edge's target", b'target="n0"', {"a node"}),
        ("a key's name", b'id="k"', set()),  # nodes name it
        ("a key's use", b'for="node"', every),
        ("an attribute's name", b'attr.name="label"', every),
        ("an attribute's type", b'attr.type="string"', set()),
        ("a value's key", b'key="k"', set()),
        ("the kind of edges", b'edgedefault="undirected"', every),
        ("the name space", b'xmlns="http://graphml.graphdrawing.org/xmlns"', set()),
    ):
        name = attribute.partition(b"=")[0]
        for what, value in WORDS.items():
            content = good.replace(attribute, b'%b="%b"' % (name, value.encode()), 1)
            yield case("wrong types", f"{place} {what}", content, accepted=what in fine)
        optional = place in ("a key's use", "an attribute's type", "the kind of edges", "the name space")
        yield case("missing or doubled parts", f"{place} missing", good.replace(attribute, b"", 1), accepted=optional)
        yield case("missing or doubled parts", f"{place} twice", good.replace(attribute, attribute + b" " + attribute))
    hidden = '<node id="n1"/><edge source="n0" target="typo"/>'
    yield case("missing or doubled parts", "a node twice that hides a typo", graphml(node=hidden))
    for kind in ("string", "int", "double", "boolean"):
        keys = "".join(
            f'<key id="d{i}" for="node" attr.name="{i}" attr.type="{kind}"><default>1</default></key>'
            for i in range(5000)
        )
        nodes = "".join(f'<node id="m{i}"><data key="k">C</data></node>' for i in range(5000))
        yield case("bombs", f"5,000 defaults of {kind} for 5,000 nodes", graphml(head=keys, node=nodes))


# ---- tables and archives ----


def table_grid() -> Iterator[Case]:
    files = graph_folder()
    rows = files["labels.csv"].splitlines(True)
    fine = {"blank", "of one comma", "of a thousand columns", "of a comment"}  # which is a class like any other
    for place in (1, len(rows) - 1):
        for name, row in {
            "blank": b" \n",
            "without a comma": b"ring\n",
            "of one comma": b",\n",
            "of a thousand columns": rows[place].strip() + b"," * 1000 + b"\n",
            "of nul": rows[place].replace(b",", b",\0"),
            "of a comment": b"# " + rows[place],
            "with another file": rows[place].replace(b".", b".."),
            "with a class of a megabyte": b"x" * (1 << 20) + b"," + rows[place].partition(b",")[2],
        }.items():
            table = b"".join([*rows[:place], row, *rows[place + 1 :]])
            yield Case(
                "folder of graphs",
                "wrong types",
                f"line {place + 1} {name}",
                ("train", "./graphs", *QUICK),
                under("graphs", {**files, "labels.csv": table}),
                accepted=name in fine,
            )


def archive_grid() -> Iterator[Case]:
    files = {f"SMALL/{name}": content for name, content in tu_files().items()}

    def case(kind: str, name: str, content: bytes, **more: Any) -> Case:
        return Case("archive", kind, name, ("datasets", "./SMALL.zip"), {"SMALL.zip": content}, **more)

    for name, entries in {
        "3,000 folders": [f"f{i}/{end}" for i in range(3_000) for end in ("", "x.txt")],
        "3,000 hidden folders": [f".f{i}/x.txt" for i in range(3_000)],
        "3,000 folders of sets": [f"f{i}/X_graph_indicator.txt" for i in range(3_000)],
        "folders 32,000 deep": [f"{letter}/" + "a/" * 32_000 + "x" for letter in "abcd"],
        "folders 11 deep": ["a/" * 11 + "x"],
        "backslashes 11 deep": ["a\\" * 11 + "x"],
        "a name of 1,001 letters": ["a" * 1001],
        "a name of 60,000 letters": ["SMALL/" + "a" * 60_000],
        "a name of 60,000 slashes": ["/" * 60_000],
        "a name of 60,000 points": ["./" * 30_000 + "x"],
        "100,001 entries": [str(i) for i in range(100_001)],
    }.items():
        yield case("bombs", name, packed(dict.fromkeys(entries, b""), zipfile.ZIP_STORED))
    yield case("bombs", "folders 10 deep", packed({**files, "a/" * 10 + "x": b""}), accepted=True)
    good = packed(files, zipfile.ZIP_STORED)
    first, end = good.index(b"PK\x01\x02"), good.rindex(b"PK\x05\x06")
    fine = {"made by", "time", "date", "packed size", "internal", "attributes outside", "disk"}
    for at, size, field in (
        (4, 2, "made by"),
        (6, 2, "needs"),
        (8, 2, "flags"),
        (10, 2, "method"),
        (12, 2, "time"),
        (14, 2, "date"),
        (16, 4, "checksum"),
        (20, 4, "packed size"),
        (24, 4, "size"),
        (28, 2, "length of the name"),
        (30, 2, "length of the extras"),
        (32, 2, "length of the comment"),
        (34, 2, "disk"),
        (36, 2, "internal"),
        (38, 4, "attributes outside"),
        (42, 4, "offset"),
    ):
        for name, byte in (("none", 0x00), ("all", 0xFF), ("some", 0x55)):
            content = bytearray(good)
            if content[first + at : first + at + size] != bytes([byte] * size):
                content[first + at : first + at + size] = bytes([byte] * size)
                unharmed = field in fine or (field, name) == ("needs", "none")
                unharmed &= (field, name) != ("packed size", "none")
                yield case("bits flipped", f"{field} of an entry: {name}", bytes(content), accepted=unharmed)
    for at, size, field in ((4, 2, "disk"), (10, 2, "entries"), (12, 4, "list's size"), (16, 4, "list's offset")):
        for name, byte in (("none", 0x00), ("all", 0xFF), ("some", 0x55)):
            content = bytearray(good)
            content[end + at : end + at + size] = bytes([byte] * size)
            unharmed = field in ("disk", "entries")
            yield case("bits flipped", f"{field} at the end: {name}", bytes(content), accepted=unharmed)
    for claim in (2**32, 2**40, 2**63):
        large = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, claim, claim, claim, 0)
        locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
        yield case("huge counts", f"a list of {claim} entries", good[:end] + large + locator + good[end:])


# ---- models, settings, uploads ----

DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2}
DTYPES |= {"I32": 4, "U32": 4, "I64": 8, "U64": 8, "F64": 8}


def retyped(model: bytes, chosen: set[str], dtype: str) -> bytes:
    """A model's file with zeros of another type in the place of some of its weights."""
    (length,) = struct.unpack("<Q", model[:8])
    numbers, out = model[8 + length :], io.BytesIO()

    def change(header: dict[str, Any]) -> None:
        for name, tensor in header.items():
            if name == "__metadata__":
                continue
            begin, end = tensor["data_offsets"]
            content = numbers[begin:end]
            if name in chosen:
                content = bytes(math.prod(tensor["shape"]) * DTYPES[dtype])
                tensor["dtype"] = dtype
            tensor["data_offsets"] = [out.tell(), out.tell() + len(content)]
            out.write(content)

    text = with_header(model, change, weights=b"")
    return text + out.getvalue()


def tensors_of(model: bytes) -> list[str]:
    (length,) = struct.unpack("<Q", model[:8])
    return [name for name in json.loads(model[8 : 8 + length]) if name != "__metadata__"]


def weight_grid(trained: Trained) -> Iterator[Case]:
    graph = graphml().replace(b">C<", b">0<").replace(b">N<", b">1<").replace(b">O<", b">2<")

    def case(name: str, content: Content) -> Case:
        words = ("predict", "m.safetensors", "g.graphml")
        return Case("model", "wrong types", name, words, {"m.safetensors": content, "g.graphml": graph})

    model = unsealed(trained.model)
    names = tensors_of(model)
    for dtype in DTYPES:
        yield case(f"all weights {dtype}", retyped(model, set(names), dtype))
        yield case(f"one weight {dtype}", retyped(model, {names[-1]}, dtype))
    for name in names:
        yield case(f"the weight {name} I64", retyped(model, {name}, "I64"))
    for other, content in trained.others.items():
        content = unsealed(content)
        yield case(f"all weights of {other} F16", retyped(content, set(tensors_of(content)), "F16"))


def setting_grid() -> Iterator[Case]:
    small = under("SMALL", tu_files())
    quick = ("--protocol", "paper", "--folds", "2", "--epochs", "1", "--jobs", "1")
    for setting in ("hidden_channels", "classifier_channels", "connectivity", "dropout", "classifier_dropout", "aux"):
        for value in ("[]", "{}", '"x"', "NaN", "-Infinity", "true", "-1e400", "[1]", '{"a": 1}'):
            words = ("train", "./SMALL", *quick, "--set", f"{setting}={value}")
            yield Case("settings", "wrong types", f"{setting}={value}", words, small)
    for setting in ("norm", "pool", "similarity", "gate", "activation", "local_voting", "global_voting"):
        for value in ("[]", "{}", '"x"', "NaN", "5", "[1]"):
            words = ("train", "./SMALL", *quick, "--set", f"{setting}={value}")
            yield Case("settings", "wrong types", f"{setting}={value}", words, small)
    for value in (2**63, 10**400, -1, 0):
        words = ("train", "./SMALL", *quick, "--set", f"ratios=[{value}, 0.5]")
        yield Case("settings", "numbers out of range", f"a ratio of {value}"[:40], words, small)


def upload_grid() -> Iterator[Case]:
    def case(kind: str, name: str, content: bytes, file: str = "x.json", **more: Any) -> Case:
        return Case("upload", kind, name, (UPLOAD, file), {"body": content}, **more)

    many = [{"id": i * MODULUS, "label": "C"} for i in range(110_000)]
    yield case("huge counts", "110,000 names with one hash", json.dumps({"nodes": many, "links": []}).encode())
    some = {"nodes": [{"id": [i["id"]], "label": i["id"]} for i in many[:9_000]], "links": []}
    yield case("huge counts", "9,000 names and labels with one hash", json.dumps(some).encode(), accepted=True)
    keys = "".join(f'<key id="d{i}" for="node" attr.name="{i}"><default>1</default></key>' for i in range(10_000))
    nodes = "".join(f'<node id="m{i}"/>' for i in range(9_000))
    yield case("bombs", "10,000 defaults for 9,000 nodes", graphml(head=keys, node=nodes), "x.graphml")
    hidden = '<node id="n1"/><edge source="n0" target="typo"/>'
    yield case("missing or doubled parts", "a node twice", graphml(node=hidden), "x.graphml")
    good = json.dumps(node_link()).encode()
    yield case("missing or doubled parts", "links twice", good[:-1] + b', "links": []}')
    yield case("missing or doubled parts", "links and edges", good[:-1] + b', "edges": []}')
    deep = b'{"nodes": [{"label": "C", "x": ' + b"[" * 800 + b"]" * 800 + b'}], "links": []}'
    yield case("nested deeply", "an attribute that the model does not read", deep)
