"""Graphs in files of their own: what is written comes back, and what is wrong is named by file and reason."""

import gc
import json
import shutil
import time
import tracemalloc
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet import GraphDataset, load_dataset
from tapnet.errors import DataError, SettingError
from tapnet.io import graph_folder
from tapnet.io.dataset_files import layout_of
from tapnet.io.graph_file import parse_graph, read_graph
from tapnet.io.graph_folder import EdgeSchema, FileGraph, NodeSchema, graph_names, join, require_targets
from tapnet.io.graphml import parse_plain_graphml
from tapnet.io.read import read, read_layout
from tests.helpers.graphs import assert_same, datasets
from tests.helpers.graphs import write_graph as write


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))


def path_of(*labels, attribute="label"):
    """A path whose nodes are a, b, c, … with these labels."""
    graph = nx.Graph()
    graph.add_nodes_from((chr(ord("a") + i), {attribute: label}) for i, label in enumerate(labels))
    nx.add_path(graph, list(graph))
    return graph


def folder_of(tmp_path, labels_csv=None, **graphs):
    """MINE/NAME.json of each graph, and labels.csv."""
    folder = tmp_path / "MINE"
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in graphs.items():
        write(graph, folder / f"{name}.json")
    if labels_csv is not None:
        (folder / "labels.csv").write_text(labels_csv)
    return folder


words = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=8)


@st.composite
def node_link_documents(draw):
    """Node-link JSON as anyone may write it: names and values of several kinds, some of them missing or wrong."""
    kind = draw(st.sampled_from(["numbers", "text", "any"]))
    names = {"numbers": st.none(), "text": words, "any": st.sampled_from([0, 1, 2, "0", "a", True, 1.0, None])}[kind]
    values = draw(st.sampled_from([st.integers(0, 3), words, st.sampled_from([1, 0.5, "x", True, None, [1, 2], [1]])]))
    weights = draw(st.sampled_from([st.floats(0, 2), st.sampled_from([1, 2.5, "x", None, True, 1e400])]))
    sure = draw(st.booleans())  # whether every node and edge has everything
    label = draw(st.sampled_from(["label", "sort"]))
    nodes = []
    for i in range(draw(st.integers(0, 5))):
        node = {"id": i if kind == "numbers" else draw(names)}
        node |= {key: draw(values) for key in (label, "mass", "tone")}
        nodes.append(node if sure else {k: v for k, v in node.items() if draw(st.integers(0, 9))})
    ends = st.sampled_from([node.get("id") for node in nodes] + ([] if sure and nodes else [7]))
    edges = []
    for _ in range(draw(st.integers(0, 6))):
        edge = {"source": draw(ends), "target": draw(ends), "weight": draw(weights), "key": 0}
        edge |= {"sort": draw(values), "tone": draw(values)}
        edges.append(edge if sure else {k: v for k, v in edge.items() if draw(st.integers(0, 9))})
    flags = {name: draw(st.booleans()) for name in ("directed", "multigraph")}
    return flags | {"nodes": nodes, draw(st.sampled_from(["links", "edges"])): edges}


@st.composite
def graphml_documents(draw):
    """GraphML as anyone may write it, mostly plain; rarely with what is wrong, or what only NetworkX reads."""

    def rarely(usual, *others):
        return draw(st.sampled_from([usual] * 19 + [*others]))

    sure = draw(st.booleans())
    value = {
        "string": st.sampled_from(["C", " N ", "&amp;", "1.5", "<![CDATA[<x>]]>"]),
        "int": st.integers(-3, 3).map(str) | st.just(" 2 "),
        "double": st.sampled_from(["1.5", "-2e3", "NaN", "inf", "0"]),
        "boolean": st.sampled_from(["true", "False", " true "]),
    }
    keys = [
        (
            f"d{i}",
            of,
            draw(st.sampled_from(["label", "weight", "mass"])),
            rarely(draw(st.sampled_from([*value])), "hue"),
        )
        for i, of in enumerate(draw(st.lists(st.sampled_from(["node", "edge"]), max_size=4)))
    ]

    def data(of):
        some = [key for key in keys if key[1] == of and (sure or rarely(True, False))]
        text = [
            f'<data key="{i}">{rarely(draw(value.get(kind, words)), "", "<b/>", "x")}</data>' for i, *_, kind in some
        ]
        return "".join(text) + rarely("", "<port name='p'/>", "<desc>a</desc>", '<data key="none">1</data>')

    names = [rarely(f"n{i}", "n0") for i in range(draw(st.integers(0 if not sure else 1, 4)))]
    nodes = [f'<node id="{name}">{data("node")}</node>' for name in names]
    ends = st.sampled_from(names + ([] if sure and names else ["n9"]))
    edges = []
    for _ in range(draw(st.integers(0, 4))):
        more = rarely("", 'id="e"', 'directed="true"')
        space = rarely(" ", "\n", "\x0b", "")
        edges.append(f'<edge source="{draw(ends)}"{space}target="{draw(ends)}" {more}>{data("edge")}</edge>')
    default = rarely("", "<default>1</default>")
    heads = [
        f'<key id="{i}" for="{of}" attr.name="{name}" attr.type="{kind}">{default}</key>' for i, of, name, kind in keys
    ]
    space = rarely('xmlns="http://graphml.graphdrawing.org/xmlns"', "", "a='1'", 'xmlns="other"', 'xmlns=""')
    direction = draw(st.sampled_from(["directed", "undirected"]))
    of_graph = draw(st.sampled_from(["", '<data key="d0">1</data>']))
    inner = rarely("", "\n", "x", "]]>", "\x0b", "\ufffe", "\xa0", "&amp;", "<!-- a -->").join(
        draw(st.permutations([*nodes, *edges]))
    )
    graph = f'<graph edgedefault="{direction}">{inner}{of_graph}</graph>'
    encoding = rarely("utf-8", "us-ascii", "utf-16", "latin-1")
    text = f'<?xml version="1.0" encoding="{encoding}"?>{rarely("", "<!-- a -->", "<!DOCTYPE graphml>")}'
    body = "".join([*heads, rarely(graph, graph + graph, ""), rarely("", "<data/>")])
    return (text + f"<graphml {space}>{body}</graphml>").encode(encoding, "xmlcharrefreplace")


@given(st.one_of(node_link_documents(), graphml_documents()))
@settings(max_examples=500, deadline=None)
def test_a_file_is_read_as_its_networkx_graph_is(tmp_path_factory, document):
    is_json = isinstance(document, dict)
    file = tmp_path_factory.getbasetemp() / f"document.{'json' if is_json else 'graphml'}"
    file.write_bytes(json.dumps(document).encode() if is_json else document)
    found = []
    for read_file in (FileGraph.read, lambda file: FileGraph.of(read_graph(file), str(file))):
        try:
            graph = read_file(file)
        except DataError as error:
            found.append(str(error))
            continue
        ends = [tuple(sorted(pair)) for pair in graph.edge_index.T.tolist()]
        of_edges = [{k: c.values[i] for k, c in graph.edge_columns.items() if c.values} for i in range(len(ends))]
        edges = sorted(zip(ends, of_edges, strict=True), key=str)
        kinds = {k: c.kind for k, c in graph.edge_columns.items()}
        names = graph.columns, sorted(graph.edge_attributes), graph.lacking, graph.wrong_edges
        found.append(repr((graph.size, edges, kinds, *names, graph.directed)))  # NaN is not NaN
    assert found[0] == found[1]


PLAIN = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="k" attr.name="label" attr.type="string"/><graph>'
    '<node id="a"><data key="k">C</data></node><node id="b"><data key="k">O</data></node>'
    '<edge source="a" target="b"/></graph></graphml>'
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("C", "&lt;"),
        ("C", "\x01"),
        ("C", "\r\n"),
        ("C", "\ufffe"),
        ("C", ""),
        ('"a">', '"a\n">'),
        ('"a">', '"a" id="b">'),
        ("<node id", "<node\x0bid"),
        ("<node id", "<node\xa0id"),
        ("</node><node", "</node>]]><node"),
        ("</node><node", "</node>\0<node"),
        ("</node><node", "</node><!-- --><node"),
        ("</node><node", "</node><node/><node"),
        ("</node><node", "</node><desc></node><node"),
        ("<edge ", '<edge <node id="c"><data key="k">N</data></node>'),
        ("</graph></graphml>", "</graph><graph/></graphml>"),
        ("</graphml>", "</graphml><a/>"),
        ("<graph>", '<graph xmlns="other">'),
        ("<graph>", "<!-- <graph> --><graph>"),
    ],
)
def test_graphml_with_anything_unusual_is_for_networkx(old, new):
    assert parse_plain_graphml(PLAIN.encode()) is not None
    assert parse_plain_graphml(PLAIN.replace(old, new, 1).encode()) is None


# ---- one graph ----


@st.composite
def own_graphs(draw):
    """Graphs as people have them: names and labels are text, numbers stand beside."""
    names = draw(st.lists(words, min_size=1, max_size=8, unique=True))
    graph = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    for name in names:
        number = draw(st.floats(-1e6, 1e6, width=32))
        graph.add_node(name, label=draw(words), size=number, rank=draw(st.integers(-9, 9)))
    graph.add_edges_from(draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=12)))
    return graph


@given(own_graphs())
@settings(max_examples=40)
def test_both_formats_give_back_the_graph(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("graph")
    expected = GraphDataset.from_networkx([graph], ["?"])
    for file in (folder / "g.graphml", folder / "g.json"):
        back = read_graph(write(graph, file))
        assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
        assert {frozenset(e) for e in back.edges()} == {frozenset(e) for e in graph.edges()}
        dataset = read(file, features="labels")
        assert dataset.checksum == expected.with_features("labels").checksum
        assert dataset.categories == expected.node_label_values
        numbers = [[row["rank"], row["size"]] for _, row in graph.nodes(data=True)]
        assert dataset.with_features("attributes").x.tolist() == numbers


@given(datasets(weights=True))
@settings(max_examples=30)
def test_a_data_set_comes_back_from_its_graphs_in_json(tmp_path_factory, dataset):
    folder = tmp_path_factory.mktemp("graphs")
    for i in range(len(dataset)):
        write(dataset.to_networkx(i), folder / f"{i}.json")
    lines = [f"{i},{dataset.classes[y]}" for i, y in enumerate(dataset.y.tolist())]
    (folder / "labels.csv").write_text("\n".join(["graph,class", *lines]))
    back = read(folder, features=dataset.features)
    assert [str(back.classes[y]) for y in back.y] == [str(dataset.classes[y]) for y in dataset.y]
    numbered = {"y": dataset.y, "classes": dataset.classes}
    assert_same(dataset, GraphDataset(**{**vars_of(back), **numbered}))


def vars_of(dataset):
    return {name: getattr(dataset, name) for name in GraphDataset.__dataclass_fields__}


def test_edges_may_be_called_edges_and_names_may_be_left_out():
    nodes = [{"label": "x"}, {"label": "y"}]
    content = json.dumps({"nodes": nodes, "edges": [{"source": 0, "target": 1}]}).encode()
    assert list(parse_graph(content, "g.json").edges()) == [("0", "1")]


def test_names_may_be_tuples_and_numbers_and_are_text():
    graph = nx.grid_2d_graph(2, 3)
    content = json.dumps(nx.node_link_data(graph, edges="links")).encode()
    back = parse_graph(content, "g.json")
    assert nx.is_isomorphic(back, graph)
    assert "[1, 2]" in back
    content = b'{"nodes": [{"id": 1}, {"id": 2.5}], "links": [{"source": 1.0, "target": 2.5}]}'
    assert list(parse_graph(content, "g.json").edges()) == [("1", "2.5")]


def test_the_same_edges_may_be_there_under_both_names():
    edges = '[{"source": 0, "target": 1}]'
    content = f'{{"nodes": [{{}}, {{}}], "links": {edges}, "edges": {edges}}}'.encode()
    assert parse_graph(content, "g.json").number_of_edges() == 1


@pytest.mark.parametrize("of", ["id", "label"])
def test_numbers_with_one_hash_are_read_as_fast_as_others(tmp_path, of):
    """Multiples of 2⁶¹ - 1, which is Python's modulus; the 12,000 of them took 3 seconds, and ten times as many 300."""
    nodes = [{"id": i, "label": "C"} | {of: i * (2**61 - 1)} for i in range(12_000)]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "links": []}))
    begin = time.process_time()
    assert len(read(tmp_path / "g.json").x) == 12_000
    assert time.process_time() - begin < 1.5


def test_the_default_of_a_graphml_key_is_the_value_of_nodes_without_one():
    content = b"""<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <key id="k" for="node" attr.name="label" attr.type="string"><default>C</default></key>
      <graph edgedefault="undirected"><node id="a"/><node id="b"><data key="k">O</data></node></graph></graphml>"""
    assert dict(parse_graph(content, "g.graphml").nodes(data="label")) == {"a": "C", "b": "O"}


def test_white_space_around_the_values_of_graphml_does_not_count():
    content = b"""<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <key id="b" for="node" attr.name="acid" attr.type="boolean"><default> FALSE </default></key>
      <key id="d" for="node" attr.name="charge" attr.type="double"/>
      <graph edgedefault="undirected"><node id="a"><data key="b">
        true   </data><data key="d"> 0.5
      </data></node><node id="b"/></graph></graphml>"""
    graph = parse_graph(content, "g.graphml")
    assert dict(graph.nodes(data=True)) == {"a": {"acid": True, "charge": 0.5}, "b": {"acid": False}}
    with pytest.raises(DataError, match="true or false"):
        parse_graph(content.replace(b" FALSE ", b" maybe "), "g.graphml")


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
LINK = '"links": [{}]'
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + "]><graphml>&j;</graphml>"
)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("g.graphml", "", ":1: not XML (no element found)"),
        ("g.graphml", "<graphml>\n<graph>", ":2: not XML (no element found)"),
        ("g.graphml", '<?xml version="1.0" encoding="klingon"?><a/>', ": not XML (unknown encoding"),
        ("g.graphml", BOMB, ": has a DOCTYPE"),
        ("g.graphml", '<!DOCTYPE x SYSTEM "file:///etc/passwd"><graphml/>', ": has a DOCTYPE"),
        ("g.graphml", "<html/>", ": no <graph> elements where one belongs"),
        ("g.graphml", "<svg><graph/></svg>", ": not a GraphML graph"),
        ("g.graphml", GRAPHML.format("<graph/><graph/>"), ": 2 <graph> elements where one belongs"),
        ("g.graphml", GRAPHML.format("<graph/>"), ": the graph has no nodes"),
        (
            "g.graphml",
            GRAPHML.format('<graph><node id="a"/><node id="a"/></graph>'),
            ":1: the node 'a' is listed twice",
        ),
        ("g.graphml", GRAPHML.format('<graph>\n<node id="a"/>\n<node/></graph>'), ":3: a <node> without an id"),
        (
            "g.graphml",  # as many nodes as ids
            GRAPHML.format('<graph><node id="a"/><node id="b"/><node id="b"/><edge source="a" target="typo"/></graph>'),
            "'b' is listed twice",
        ),
        (
            "g.graphml",
            GRAPHML.format('<graph><node id="a"/>\n<edge source="a" target="typo"/></graph>'),
            ":2: an edge names the node 'typo', which is not there",
        ),
        ("g.graphml", GRAPHML.format('<graph><node id="a"/><edge source="a"/></graph>'), "the node None"),
        ("g.graphml", GRAPHML.format('<graph><node id="a"/></graph><node id="b"/>'), "not directly in the <graph>"),
        (
            "g.graphml",
            GRAPHML.format(
                "".join(f'<key id="{i}" for="node" attr.name="{i}"><default>1</default></key>' for i in range(1000))
                + "<graph>"
                + "".join(f'<node id="{i}"/>' for i in range(1001))
                + "</graph>"
            ),
            "1,000 attributes with a default for 1,001 nodes",
        ),
        ("g.graphml", GRAPHML.format('<graph><node id="a"/><edge source="a" target="b"/></graph>'), "is not there"),
        (
            "g.graphml",
            GRAPHML.format('<graph><node id="a"><data key="k">1</data></node></graph>'),
            ":1: there is no key 'k'",
        ),
        ("g.graphml", GRAPHML.format("<a>" * 3000 + "</a>" * 3000), ": no <graph> elements"),
        ("g.json", "", ": not JSON"),
        ("g.json", "{", ": not JSON"),
        ("g.json", "\ud800".encode(errors="surrogatepass"), ": not JSON"),
        ("g.json", "1" * 5000, ": not JSON"),
        ("g.json", "[1, 2]", ': not a node-link graph, which has the lists "nodes" and "links"'),
        ("g.json", '{"nodes": [], "adjacency": []}', ": not a node-link graph"),
        ("g.json", '{"nodes": [], "links": []}', ": the graph has no nodes"),
        ("g.json", "[" * 100_000, ": nested too deeply"),
        ("g.json", f'{{"nodes": [{{}}, {{}}], {LINK.format("")}, "links": []}}', ": 'links' is there twice"),
        ("g.json", '{"nodes": [{"id": 1, "label": "C", "label": "N"}], "links": []}', ": 'label' is there twice"),
        (
            "g.json",
            '{"nodes": [{}, {}], "links": [], "edges": [{"source": 0, "target": 1}]}',
            ': has both "links" and "edges", and they differ',
        ),
        ("g.json", '{"nodes": [{"id": 1}, {"id": "1"}], "links": []}', ": node 1 is listed twice"),
        ("g.json", f'{{"nodes": [1], {LINK.format("")}}}', ": node 0 is not an object"),
        ("g.json", f'{{"nodes": [{{"id": {{}}}}], {LINK.format("")}}}', ": the name of a node is text or a number"),
        ("g.json", f'{{"nodes": [{{"id": 1}}, {{"id": 1}}], {LINK.format("")}}}', ": node 1 is listed twice"),
        ("g.json", f'{{"nodes": [{{"id": 1}}], {LINK.format("{}")}}}', ": edge 0 is not an object"),
        (
            "g.json",
            f'{{"nodes": [{{"id": 1}}], {LINK.format(json.dumps({"source": 1, "target": 2}))}}}',
            ": edge 0 names the node 2, which is not there",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence_that_names_it(tmp_path, name, content, reason):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as error:
        read_graph(file)
    assert str(error.value).startswith(str(file))
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


KEYS = """<key id="w" for="edge" attr.name="weight" attr.type="double"/>
<key id="n" for="node" attr.name="rank" attr.type="int">{default}</key>
<key id="b" for="node" attr.name="acid" attr.type="boolean"/>
<graph edgedefault="undirected">
<node id="a"/>
{nodes}
<edge source="a" target="b">
  {data}
</edge>
</graph>"""


@pytest.mark.parametrize(
    ("where", "text", "line", "facts"),
    [
        ("data", '<data key="w">abc</data>', 8, ("'weight'", "'abc'", "a number")),
        ("data", '<data key="w"><![CDATA[a]]>&amp;c</data>', 8, ("'weight'", "'a&c'", "a number")),
        ("data", '<data key="w">1.5</data>\n<data key="n">1.5</data>', 9, ("'rank'", "'1.5'", "a whole number")),
        ("nodes", '<node id="b"><data key="n">many</data></node>', 6, ("'rank'", "'many'", "a whole number")),
        ("nodes", '<node id="b"><data key="b">maybe</data></node>', 6, ("'acid'", "'maybe'", "true or false")),
        ("default", "<default>x</default>", 2, ("'rank'", "'x'", "a whole number")),
        ("default", "<default/>", 2, ("'rank'", "''", "a whole number")),
        ("default", '</key><key id="x" attr.name="hue" attr.type="color">', 2, ("'x'", "'color'", "double")),
        ("data", '</edge>\n<edge source="b" target="b" directed="true">', 9, ("directed", "undirected")),
    ],
)
def test_what_networkx_refuses_is_named_with_its_line(tmp_path, where, text, line, facts):
    parts = {"nodes": '<node id="b"/>', "data": "", "default": ""} | {where: text}
    file = tmp_path / "g.graphml"
    file.write_text(GRAPHML.format(KEYS.format(**parts)))
    with pytest.raises(DataError) as error:
        FileGraph.read(file)
    assert str(error.value).startswith(f"{file}:{line}: ")
    for fact in facts:
        assert fact in str(error.value)


@given(st.data())
@settings(max_examples=150)
def test_damage_of_any_kind_is_an_error_of_one_line(data):
    name = data.draw(st.sampled_from(["g.graphml", "g.json"]))
    graph = path_of("C", "O", "N")
    text = (
        "\n".join(nx.generate_graphml(graph))
        if name == "g.graphml"
        else json.dumps(nx.node_link_data(graph, edges="links"))
    )
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(start + 20, len(content))))
        content[start:stop] = data.draw(st.binary(max_size=4) | st.just(bytes(content[stop : stop + 9])))
    message = f"{name}: fine"
    try:
        damaged = FileGraph.of(parse_graph(bytes(content), name), name)
        join([damaged], [NodeSchema.of([damaged])], name=name)
    except DataError as error:
        message = str(error)
    assert message.startswith(name)
    assert "\n" not in message


ids = st.sampled_from(["a", "b", "c", "1", " ", "é", "a&amp;b"])


@given(
    st.lists(ids, min_size=1, max_size=5),
    st.lists(st.tuples(ids, ids), max_size=4),
    st.sampled_from(["graphml", "json"]),
)
def test_a_graph_is_read_if_each_node_is_there_once_and_each_end_of_an_edge_is_a_node(nodes, edges, ending):
    if ending == "json":
        links = [{"source": u, "target": v} for u, v in edges]
        content = json.dumps({"nodes": [{"id": node} for node in nodes], "links": links})
    else:
        inner = "".join(f'<node id="{node}"/>' for node in nodes)
        inner += "".join(f'<edge source="{u}" target="{v}"/>' for u, v in edges)
        content = GRAPHML.format(f'<graph edgedefault="undirected">{inner}</graph>')
    if len(set(nodes)) == len(nodes) and all({u, v} <= set(nodes) for u, v in edges):
        graph = parse_graph(content.encode(), f"g.{ending}")
        joined = {frozenset(ends) for ends in graph.edges()}  # parallel edges are joined later
        assert (len(graph), len(joined)) == (len(nodes), len({frozenset(edge) for edge in edges}))
    else:
        with pytest.raises(DataError, match="twice|not there"):
            parse_graph(content.encode(), f"g.{ending}")


def test_an_edge_that_is_a_list_of_a_huge_number_is_refused(tmp_path):
    file = tmp_path / "g.json"
    file.write_text(json.dumps({"nodes": [], "links": [[10**200]]}))
    with pytest.raises(DataError, match="edge 0 is not an object"):
        FileGraph.read(file)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("tapnet.io.graph_file.MAX_FILE_BYTES", 100)
    with pytest.raises(DataError, match="larger than"):
        read_graph(write(path_of(*"CCCCCC"), tmp_path / "g.json"))
    with pytest.raises(DataError, match="nothing.json: cannot be read"):
        read_graph(tmp_path / "nothing.json")


# ---- what attributes mean ----


def schema(*graphs):
    return NodeSchema.of([FileGraph.of(graph, f"{i}.json") for i, graph in enumerate(graphs)])


def with_attributes(**attributes):
    graph = nx.Graph()
    graph.add_node("a", **attributes)
    graph.add_node("b", **attributes)
    return graph


@pytest.mark.parametrize(
    ("attributes", "categories", "numbers"),
    [
        ({"label": "C", "kind": "x", "mass": 1.5}, ("label",), ("mass",)),
        ({"label": 6, "mass": 12, "charge": 0}, ("label",), ("charge", "mass")),
        ({"element": "C", "mass": 1.5}, ("element",), ("mass",)),
        ({"aromatic": True, "mass": 1.5}, ("aromatic",), ("mass",)),
        ({"element": "C", "aromatic": True, "mass": 1.5}, ("aromatic", "element"), ("mass",)),
        ({"element": "C", "name": "a", "id": "n1"}, ("element",), ()),
        ({"name": "a"}, ("name",), ()),
        ({"name": "a", "id": "n1"}, (), ()),
        ({"mass": 1.5}, (), ("mass",)),
        ({"mass": 1.5, "attributes": [1, 2, 3]}, (), ("attributes",)),
        ({"element": "C", "where": {"x": 1}, "empty": None}, ("element",), ()),
        ({}, (), ()),
    ],
)
def test_the_categories_are_the_label_or_all_texts(attributes, categories, numbers):
    assert schema(with_attributes(**attributes))[:2] == (categories, numbers)


def test_what_only_some_files_have_does_not_count():
    both = schema(with_attributes(element="C", comment="?", mass=1), with_attributes(element="C", charge=1))
    assert both[:2] == (("element",), ())


def test_labels_that_some_lack_are_said():
    lacks = path_of("C", "O")
    del lacks.nodes["b"]["label"]
    with pytest.raises(DataError, match="0.json: node 'b' has no 'label', though others have"):
        schema(lacks)
    with pytest.raises(DataError, match="1.json: its nodes have no 'label', though those of 0.json have"):
        schema(path_of("C"), with_attributes(element="C"))


@pytest.mark.parametrize("label", [["C"], {"C": 1}, float("nan")])
def test_a_label_is_text_or_a_number(label):
    graph = FileGraph.of(path_of(label), "g.json")
    with pytest.raises(DataError, match=r"g.json: the 'label' of the node '.' is .*, where text or a number"):
        join([graph], [NodeSchema.of([graph])], name="g")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, 10**400, "1,5", [1.0, None], {}])
def test_what_is_no_finite_number_is_named_with_its_node(number):
    plain = with_attributes(mass=1)
    plain.nodes["b"]["mass"] = number
    graph = FileGraph.of(plain, "g.json")
    with pytest.raises(DataError, match=r"^g.json: the 'mass' of the node 'b' is .*, where a finite number"):
        join([graph], [NodeSchema((), ("mass",))], name="g")


def test_numbers_of_numpy_are_numbers():
    graphs = []
    for kinds in ((int, float, str), (np.int64, np.float32, np.str_)):
        graph = with_attributes(label=kinds[0](3), mass=kinds[1](1.5), tone=kinds[2]("a"))
        graph.add_edge("a", "b", weight=kinds[1](2.5))
        graphs.append(FileGraph.of(graph, "g"))
    assert repr(graphs[0]) == repr(graphs[1])


def test_lists_of_numbers_are_of_one_length():
    plain = with_attributes(mass=[1])
    plain.nodes["b"]["mass"] = [1, 2]
    graph = FileGraph.of(plain, "g.json")
    with pytest.raises(DataError, match=r"^g.json: 'mass' is not as many numbers"):
        join([graph], [NodeSchema((), ("mass",))], name="g")


def test_a_number_and_its_text_are_one_category():
    graphs = [FileGraph.of(path_of(*labels), "g") for labels in ((1, 2), ("1", "2"))]
    dataset = join(graphs, [NodeSchema.of(graphs)] * 2, name="g")
    assert dataset.categories == ("1", "2")
    assert dataset.x.tolist() == [0, 1, 0, 1]


def test_without_any_text_the_degrees_count(tmp_path):
    dataset = read(write(nx.star_graph(3), tmp_path / "g.json"))
    assert (dataset.features, dataset.categories) == ("degrees", (1, 3))


# ---- a folder of graphs ----

ABC = {"a": path_of("C"), "b": path_of("C", "O"), "c": path_of("C", "O", "N")}


@pytest.mark.parametrize(
    "table",
    [
        "graph,class\nc,ring\na.json,star\nb,ring\n",
        "file,label\nc,ring\na,star\nb,ring",
        "class,file\nring,c\nstar,a\nring,b\n",
        "id,family,class\nc,?,ring\na,?,star\nb,?,ring\n",
        "\ufeffGraph;Class\r\nc;ring\r\n\r\na;star\r\nb;ring\r\n",
        "the graph\tits family\nc\tring\na\tstar\nb\tring\n",
        'graph,class\n"c", ring\n"a", star \n"b", "ring"\n',
    ],
)
def test_the_table_orders_the_graphs_and_gives_their_classes(tmp_path, table):
    folder = folder_of(tmp_path, table, **ABC)
    dataset = load_dataset(folder)
    assert dataset.name == "MINE"
    assert dataset.nodes_per_graph.tolist() == [3, 1, 2]
    assert [dataset.classes[y] for y in dataset.y] == ["ring", "star", "ring"]
    assert graph_names(folder) == ["c.json", "a.json", "b.json"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("", "labels.csv:1: the first line is a header of two columns, such as graph,class"),
        ("graph\na\n", "labels.csv:1: the first line is a header"),
        ("a,ring\nb,star\n", "labels.csv:1: the first line is a header"),
        ("graph,class\n", "labels.csv: lists no graphs"),
        ("graph,class\na,ring\nd,star\n", "labels.csv:3: 'd' is no graph file in this folder"),
        ("graph,class\n../MINE/a,ring\n", "labels.csv:2: '../MINE/a' is no graph file in this folder"),
        ("graph,class\na,ring\nb\n", "labels.csv:3: a file's name and its class belong here, not 'b'"),
        ("graph,class\na,\n", "labels.csv:2: a file's name and its class belong here"),
        ("graph,class\na,ring\na.json,star\n", "labels.csv:3: a.json is listed twice"),
        ("graph,class\ntwin,ring\n", "labels.csv:2: 'twin' stands for twin.graphml and twin.json"),
        (b"graph,class\na,\xff\n", "labels.csv: not UTF-8 text"),
        ("graph,class\na," + "x" * 200_000, "labels.csv:2: not a table (field larger than"),
    ],
)
def test_what_is_wrong_with_the_table_is_said_with_its_line(tmp_path, table, reason):
    folder = folder_of(tmp_path, **ABC, twin=path_of("C"))
    write(path_of("C"), folder / "twin.graphml")
    (folder / "labels.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    with pytest.raises(DataError) as error:
        load_dataset(folder)
    assert reason in str(error.value)


def test_a_file_that_is_not_listed_is_left_out_with_one_note(tmp_path):
    folder = folder_of(tmp_path, "graph,class\na,x\nb,y\n", **ABC)
    (folder / "broken.json").write_text("{")
    with pytest.warns(UserWarning, match="labels.csv does not list broken.json, c.json: left out") as notes:
        assert len(load_dataset(folder)) == 2
    assert len(notes) == 1


def test_a_broken_file_that_is_listed_is_named(tmp_path):
    folder = folder_of(tmp_path, "graph,class\na,x\nb,y\nc,y\n", **ABC)
    (folder / "b.json").write_text("{")
    with pytest.raises(DataError, match="b.json: not JSON"):
        load_dataset(folder)


def test_without_a_table_the_classes_are_not_known(tmp_path):
    folder = folder_of(tmp_path, **ABC)
    dataset = load_dataset(folder)
    assert dataset.classes == (None,)
    assert dataset.nodes_per_graph.tolist() == [1, 2, 3]
    assert graph_names(folder) == ["a.json", "b.json", "c.json"]
    with pytest.raises(DataError, match=r"Write them into labels.csv .*graph,class"):
        require_targets(dataset)
    assert load_dataset(folder).classes == (None,)  # from the parsed copy


def of_many_kinds(size, **more):
    """A ring with two texts, a number that could be a category, and numbers."""
    graph = nx.cycle_graph(size)
    for i in graph:
        graph.nodes[i].update(element="CNO"[i % 3], aromatic=i % 2 == 0, period=1 + i % 2, mass=i / 4, **more)
    for i, j in graph.edges:
        graph.edges[i, j].update(order=("single", "double")[i % 2], ring=i % 2 == 0, weight=1 + i, length=j / 4)
    return nx.relabel_nodes(graph, {i: f"n{i}" for i in graph})


@pytest.mark.parametrize("ending", ["json", "graphml"])
@pytest.mark.parametrize("plain", [True, False])
def test_several_texts_are_categories_each_and_that_is_said(tmp_path, monkeypatch, ending, plain):
    if not plain:
        monkeypatch.setattr(graph_folder, "read_plain_graph", read_graph)
    graphs = [of_many_kinds(size, name="x") for size in (3, 4, 7)]
    folder = tmp_path / "MINE"
    for i, graph in enumerate(graphs):
        write(graph, folder / f"{i}.{ending}")
    said = (
        r"read of the nodes: categories aromatic, element; numbers mass, period; "
        r"of the edges: categories order, ring; weight weight; numbers length; left aside: node attribute name$"
    )
    for _ in range(2):  # the second time from the parsed copy
        with pytest.warns(UserWarning, match=said):
            dataset = load_dataset(folder)
        assert (dataset.features, dataset.num_features) == ("all", 7)
        elements = [("element", element) for element in "CNO"]
        assert dataset.categories == (("aromatic", "false"), ("aromatic", "true"), *elements)
        orders = [("order", order) for order in ("double", "single")]
        assert dataset.edge_categories == (*orders, ("ring", "false"), ("ring", "true"))
        assert dataset.node_attributes[:3].tolist() == [[0, 1], [0.25, 2], [0.5, 1]]
        assert (dataset.edge_attribute_names, dataset.edge_weight[0]) == (("length",), 1)
        assert dataset.not_read == ("node attribute name",)
        oracle = GraphDataset.from_networkx(
            graphs, [0, 1, 0], node_label=["aromatic", "element"], edge_label=["order", "ring"]
        ).with_edge_features()
        found = dataset.with_edge_features()
        for ours, theirs in ((found.x, oracle.x), (found.edge_attr, oracle.edge_attr)):
            assert torch.equal(ours.table[ours.combination], theirs.table[theirs.combination])


def test_the_user_names_the_categories(tmp_path):
    folder = folder_of(tmp_path, a=of_many_kinds(3, label="X"), b=of_many_kinds(5, label="X"))
    dataset = load_dataset(folder, node_label="period, element", edge_label="length")
    assert dataset.node_columns == ("period", "element")
    assert dataset.categories[:3] == (("period", "1"), ("period", "2"), ("element", "C"))
    assert (dataset.attribute_names, dataset.features) == (("mass",), "all")
    assert (dataset.edge_columns, dataset.edge_label_attribute) == (None, "length")
    assert dataset.edge_label_values == (0.25, 0.5, 0.75, 1)
    assert dataset.edge_attribute_names is None
    assert dataset.not_read == (
        *(f"node attribute {name}" for name in ("aromatic", "label")),
        *(f"edge attribute {name}" for name in ("order", "ring")),
    )
    one = load_dataset(folder, node_label=["element"])
    assert (one.features, one.categories, one.node_columns) == ("labels", ("C", "N", "O"), None)
    none = load_dataset(folder, node_label=[], edge_label=[])
    assert (none.features, none.node_labels, none.edge_labels) == ("degrees", None, None)


def test_all_features_are_all_texts_and_numbers(tmp_path):
    folder = folder_of(tmp_path, a=of_many_kinds(3, label="X", name="a"), b=of_many_kinds(5, label="Y", name="b"))
    assert load_dataset(folder).categories == ("X", "Y")
    for directed in (False, True):  # from the parsed copy, and without one
        dataset = load_dataset(folder, features="all", directed=directed)
        assert dataset.node_columns == ("label", "aromatic", "element")
        assert dataset.attribute_names == ("mass", "period")
    named = load_dataset(folder, features="all", node_label="label")
    assert (named.categories, named.num_features) == (("X", "Y"), 4)


@pytest.mark.parametrize(
    ("option", "names", "reason"),
    [
        ("node_label", "elment", r"a\.json: its nodes have no 'elment'; did you mean element\?"),
        ("node_label", "element,part", r"a\.json: node 'n0' has no 'part', though others have"),
        ("edge_label", "oder", r"a\.json: its edges have no 'oder'; did you mean order\?"),
        ("edge_label", ["order", "part"], r"a\.json: the edge from 'n0' to 'n1' has no 'part', though others have"),
    ],
)
def test_a_category_that_is_not_there_is_named(tmp_path, option, names, reason):
    graph = of_many_kinds(3)
    graph.nodes["n1"]["part"] = graph.edges["n1", "n2"]["part"] = "x"
    with pytest.raises(DataError, match=reason):
        load_dataset(folder_of(tmp_path, a=graph), **{option: names})


def test_categories_are_named_for_graphs_only(tmp_path):
    with pytest.raises(SettingError, match="node_label and edge_label are for GraphML and JSON"):
        load_dataset("MUTAG", node_label="element")
    with pytest.raises(SettingError, match="node_label names an attribute, or several"):
        load_dataset(folder_of(tmp_path, a=of_many_kinds(3)), node_label="element,")
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "a", 1: "b", 2: "a"}, "kind")
    graph.graph["y"] = 1
    assert load_dataset([graph], node_label="kind").categories == ("a", "b")
    with pytest.raises(SettingError, match="edge_label is for graphs of NetworkX and in files"):
        load_dataset([load_dataset("MUTAG")[0]], edge_label="x")


def test_numbers_of_two_files_are_one_category_whichever_way_they_are_written(tmp_path):
    texts = of_many_kinds(3)
    for node in texts:
        texts.nodes[node]["period"] = str(texts.nodes[node]["period"])
    dataset = load_dataset(folder_of(tmp_path, a=of_many_kinds(3), b=texts), node_label=["element", "period"])
    assert [value for column, value in dataset.categories if column == "period"] == ["1", "2"]
    assert torch.equal(dataset.node_labels[:3], dataset.node_labels[3:])


def test_one_file_is_a_data_set_of_one_graph(tmp_path):
    file = write(ABC["c"], tmp_path / "c.graphml")
    dataset = load_dataset(str(file))
    assert (dataset.name, len(dataset), dataset.categories) == ("c", 1, ("C", "N", "O"))
    assert graph_names(file) == ["c.graphml"]


def test_the_parsed_copy_follows_the_files(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, "graph,class\na,x\nb,y\nc,x\n", **ABC)
    first = load_dataset(folder)
    with monkeypatch.context() as patch:
        patch.setattr("tapnet.io.load.read_layout", lambda *_, **__: pytest.fail("parsed again"))
        again = load_dataset(folder)
    assert again.checksum == first.checksum
    assert (again.classes, again.categories) == (first.classes, first.categories)
    folder_of(tmp_path, "graph,class\na,x\nc,z\nb,x\n", **ABC)
    assert load_dataset(folder).classes == ("x", "z")


def test_an_archive_of_the_folder_is_the_same(tmp_path):
    folder = folder_of(tmp_path, "graph,class\nb,x\na,y\nc,x\n", **ABC)
    with zipfile.ZipFile(tmp_path / "MINE.zip", "w") as out:
        for file in folder.iterdir():
            out.write(file, f"MINE/{file.name}")
    assert load_dataset(tmp_path / "MINE.zip").checksum == load_dataset(folder).checksum


def test_notes_beside_the_graphs_do_no_harm(tmp_path):
    folder = folder_of(tmp_path, "graph,class\na,x\nb,y\n", a=ABC["a"], b=ABC["b"])
    (folder / "notes.txt").write_text("measured in May\n")
    (folder / ".hidden.json").write_text("{")
    assert len(load_dataset(folder)) == 2


def test_a_text_with_a_json_beside_it_stays_a_text(tmp_path):
    (tmp_path / "X").mkdir()
    (tmp_path / "X" / "X.txt").write_text("1\n2 0\n0 1 1\n1 1 0\n")
    (tmp_path / "X" / "about.json").write_text("{}")
    assert load_dataset(tmp_path / "X").nodes_per_graph.tolist() == [2]


def test_graphs_in_several_folders_are_not_guessed(tmp_path):
    folder = folder_of(tmp_path / "ALL", **ABC)
    assert len(load_dataset(tmp_path / "ALL")) == 3
    shutil.copytree(folder, tmp_path / "ALL" / "OTHER")
    with pytest.raises(DataError, match=r"ALL: graphs in several folders \(MINE, OTHER\); name one of them"):
        load_dataset(tmp_path / "ALL")


def test_the_folder_here_has_its_own_name(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, "graph,class\na,x\nb,y\n", a=ABC["a"], b=ABC["b"])
    monkeypatch.chdir(folder)
    assert load_dataset(".").name == "MINE"
    monkeypatch.chdir(tmp_path)
    assert torch.equal(load_dataset("MINE").y, torch.tensor([0, 1]))


def test_a_graph_may_be_called_graph(tmp_path):
    folder = folder_of(tmp_path, "graph,class\ngraph,x\nb,y\n", graph=ABC["a"], b=ABC["b"])
    assert graph_names(folder) == ["graph.json", "b.json"]
    assert load_dataset(folder).classes == ("x", "y")


def test_an_attribute_that_one_node_lacks_is_named_with_that_node(tmp_path):
    graphs = {name: nx.path_graph(4) for name in ("a", "b")}
    for graph in graphs.values():
        nx.set_node_attributes(graph, {node: "CN"[node % 2] for node in graph}, "element")
    rows = "graph,class\na,x\nb,y\n"
    model_reads = (("element",), None)
    assert read(folder_of(tmp_path, rows, **graphs)).categories == ("C", "N")
    del graphs["b"].nodes[2]["element"]
    folder = folder_of(tmp_path, rows, **graphs)
    with pytest.warns(UserWarning, match=r"b\.json: node '2' has no 'element', though others have.*degree"):
        assert load_dataset(folder).features == "degrees"
    lacking = FileGraph.read(folder / "b.json")
    with pytest.raises(
        DataError, match=r"b\.json: node '2' has no 'element', which the model reads, though others have"
    ):
        NodeSchema.named(lacking, *model_reads)
    for features in ("labels", "attributes"):
        with pytest.raises(DataError, match=r"at every node \(.*node '2' has no 'element'"):
            join([lacking], [NodeSchema.of([lacking])], name="b", features=features)
    nx.set_node_attributes(graphs["b"], {0: "C", 1: "N", 3: "N"}, "label")
    with pytest.raises(DataError, match="graph 0: the node 2 has no attribute 'label'; others have"):
        GraphDataset.from_networkx([graphs["b"]], ["y"], features="labels")


def notes_on(folder):
    """The notes of a folder of graphs, the same in parts."""
    found = read(folder)
    assert_same_as_whole(said_by(lambda: in_parts(folder, whole=True)), found)
    return "\n".join(found.notes)


def person(size, **more):
    graph = nx.cycle_graph(size)
    for node in graph:
        graph.nodes[node].update(role=("boss", "staff")[node % 2], name=f"n{node}", age=20.5 + node, **more)
    for u, v in graph.edges:
        graph.edges[u, v].update(label=("call", "mail")[u % 2], weight=1.5 + u, length=u / 4)
    return graph


@pytest.mark.parametrize("ending", ["json", "graphml"])
@pytest.mark.parametrize(
    ("of", "attribute", "reason"),
    [
        ("nodes", "role", "node attribute role (node '1' of b.{} has none)"),
        ("nodes", "age", "node attribute age (node '1' of b.{} has none)"),
        ("edges", "weight", "edge attribute weight (the edge from '1' to '2' of b.{} has none)"),
        ("edges", "label", "edge attribute label (the edge from '1' to '2' of b.{} has none)"),
        ("edges", "length", "edge attribute length (the edge from '1' to '2' of b.{} has none)"),
    ],
)
@pytest.mark.parametrize("null", [True, False])
def test_what_is_missing_once_is_left_aside_with_the_place(tmp_path, of, attribute, reason, null, ending):
    folder = tmp_path / "MINE"
    graphs = {name: person(size) for name, size in zip("abc", (3, 4, 5), strict=True)}
    place = getattr(graphs["b"], of)[1 if of == "nodes" else (1, 2)]
    del place[attribute]
    if null and ending == "json":
        place[attribute] = None
    for name, graph in graphs.items():
        write(graph, folder / f"{name}.{ending}")
    notes = notes_on(folder)
    assert reason.format(ending) in notes.partition("left aside: ")[2]
    assert notes.count(" has none") == 1


def test_what_a_whole_file_lacks_is_left_aside_with_its_name(tmp_path):
    folder = folder_of(tmp_path, a=person(3), b=person(4, town="Bonn"), c=person(3, town="Ulm"), d=nx.path_graph(1))
    write(person(3, town="Bonn"), folder / "d.json")
    assert "node attribute town (no node of a.json has it)" in notes_on(folder)
    lonely = nx.Graph()
    lonely.add_nodes_from(person(3).nodes(data=True))
    plain = person(3, town="Bonn")
    for u, v in plain.edges:
        del plain.edges[u, v]["weight"]
    folder = folder_of(tmp_path / "edges", a=lonely, b=person(4), c=plain)
    notes = notes_on(folder)
    assert "edge attribute weight (no edge of c.json has it)" in notes
    assert "a.json has" in notes  # no town, but no word of edges, of which it has none


def test_a_label_alone_does_not_hide_that_a_number_is_missing(tmp_path):
    graphs = {name: path_of("C", "N", "O") for name in "ab"}
    for graph in graphs.values():
        nx.set_node_attributes(graph, {node: i / 4 for i, node in enumerate(graph)}, "mass")
    folder = folder_of(tmp_path, **graphs)
    assert notes_on(folder) == ""
    del graphs["b"].nodes["c"]["mass"]
    folder = folder_of(tmp_path, **graphs)
    assert "category label; left aside: node attribute mass (node 'c' of b.json has none)" in notes_on(folder)


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("names", [{}, {1: "x1"}])
def test_a_text_among_numbers_is_named_with_its_place(tmp_path, as_text, names):
    graphs = {name: person(size) for name, size in zip("abc", (3, 4, 5), strict=True)}
    for graph in graphs.values():
        for node, values in graph.nodes(data=True):
            values["age"] = str(values["age"]) if as_text else values["age"]
            graph.nodes[node]["remark"] = "?" if node else "12"
    graphs["b"].nodes[1]["age"] = "40 years"
    graphs["b"].edges[1, 2]["length"] = "long"
    folder = folder_of(tmp_path, **{name: nx.relabel_nodes(graph, names) for name, graph in graphs.items()})
    notes, node = notes_on(folder), names.get(1, "1")
    assert "categories age, remark, role" in notes
    ends = f"'{node}' to '2'"
    assert (
        f"numbers but for some texts: age of nodes (node '{node}' of b.json has '40 years'), length of edges" in notes
    )
    assert f"length of edges (the edge from {ends} of b.json has 'long')" in notes
    assert "remark of" not in notes


# ---- what edges carry ----


def with_edges(*edges, kind=nx.Graph):
    graph = kind()
    graph.add_nodes_from((node, {"label": "C"}) for node in "abc")
    for u, v, values in edges:
        graph.add_edge(u, v, **values)
    return graph


BOND = {"label": "single", "weight": 2.0, "length": 1.5, "note": "?"}
DOUBLE = {"label": "double", "weight": 0.5, "length": 1.2, "note": "!"}


@pytest.mark.parametrize("ending", [".json", ".graphml"])
def test_the_label_weight_and_numbers_of_edges_are_read(tmp_path, ending):
    folder = tmp_path / "MINE"
    write(with_edges(("a", "b", BOND), ("b", "c", DOUBLE)), folder / f"x{ending}")
    write(with_edges(("a", "c", DOUBLE)), folder / f"y{ending}")
    write(with_edges(), folder / f"z{ending}")
    (folder / "labels.csv").write_text("graph,class\nx,0\ny,1\nz,1\n")
    with pytest.warns(UserWarning, match="of the edges: category label; weight weight; numbers length; left"):
        dataset = load_dataset(folder)
    assert dataset.edge_label_values == ("double", "single")
    assert [dataset.edge_label_values[i] for i in dataset.edge_labels] == ["single", "single"] + ["double"] * 4
    assert dataset.edge_weight.tolist() == [2, 2, 0.5, 0.5, 0.5, 0.5]
    assert dataset.edge_attributes[::2].flatten().tolist() == pytest.approx([1.5, 1.2, 1.2])
    assert dataset.edge_attribute_names == ("length",)
    assert dataset.not_read == ("edge attribute note",)
    with pytest.warns(UserWarning, match="of the edges: category label"):
        again = load_dataset(folder)  # from the parsed copy
    assert again.edge_attribute_names == ("length",)
    assert torch.equal(again.edge_weight, dataset.edge_weight)


def test_what_some_edges_lack_is_left_aside(tmp_path):
    folder = folder_of(tmp_path, x=with_edges(("a", "b", BOND)), y=with_edges(("a", "c", {"weight": 3.0})))
    with pytest.warns(UserWarning, match="of the edges: weight weight; left aside: edge attribute label"):
        dataset = load_dataset(folder)
    assert (dataset.edge_labels, dataset.edge_attributes) == (None, None)
    assert dataset.edge_weight.tolist() == [2, 2, 3, 3]
    assert dataset.not_read == ("edge attribute label", "edge attribute length", "edge attribute note")


def test_both_directions_and_parallel_edges_of_a_file_count_by_their_mean(tmp_path):
    both = [("a", "b", {"weight": 1.0}), ("b", "a", {"weight": 4.0}), ("b", "c", {"weight": 2.0})]
    parallel = with_edges(*both, kind=nx.MultiGraph)
    for kind, graph in (("directed", with_edges(*both, kind=nx.DiGraph)), ("parallel", parallel)):
        for ending in (".json", ".graphml"):
            dataset = read(write(graph, tmp_path / f"{kind}{ending}"))
            assert dataset.edge_weight.tolist() == [2.5, 2.5, 2, 2]
            assert any("mean counts" in note for note in dataset.notes)
            assert dataset.edge_attributes is None  # the key of a parallel edge is no attribute


def test_ids_of_edges_are_there_whether_edges_are_parallel_or_not(tmp_path):
    key = '<key id="k" for="edge" attr.name="kind" attr.type="string"/>'
    for name, ends in (("a", "xy yz"), ("b", "xy xy yz")):
        rows = [
            f'<edge id="e{i}" source="{u}" target="{v}"><data key="k">s</data></edge>'
            for i, (u, v) in enumerate(ends.split())
        ]
        nodes = "".join(f'<node id="{node}"/>' for node in "xyz")
        graph = f'<graph edgedefault="undirected">{nodes}{"".join(rows)}</graph>'
        space = "http://graphml.graphdrawing.org/xmlns"
        (tmp_path / f"{name}.graphml").write_text(f'<graphml xmlns="{space}">{key}{graph}</graphml>')
    graph = read_graph(tmp_path / "b.graphml")
    assert sorted(own["id"] for *_, own in graph.edges(data=True)) == ["e0", "e1", "e2"]
    dataset = read(tmp_path)
    assert (dataset.edge_label_attribute, dataset.not_read) == ("kind", ("edge attribute id",))
    assert not any("has it" in note for note in dataset.notes)


@pytest.mark.parametrize("ending", ["json", "graphml"])
def test_parallel_edges_with_different_labels_are_said(tmp_path, ending):
    parallel = with_edges(("a", "b", BOND), ("a", "b", DOUBLE), ("b", "c", BOND), kind=nx.MultiGraph)
    dataset = read(write(parallel, tmp_path / f"g.{ending}"))
    assert [dataset.edge_label_values[i] for i in dataset.edge_labels] == ["single"] * 4
    assert any("1 edge is given several times with different labels and attributes" in n for n in dataset.notes)


@pytest.mark.parametrize("weight", ["heavy", float("nan"), True])
def test_a_weight_that_is_no_number_is_named_with_file_and_edge(tmp_path, weight):
    folder = folder_of(tmp_path, x=with_edges(("a", "b", {"weight": 1})), y=with_edges(("b", "c", {"weight": weight})))
    with pytest.raises(DataError, match=r"y\.json: the 'weight' of the edge from 'b' to 'c' is .* finite number"):
        load_dataset(folder)
    graph = FileGraph.read(folder / "y.json")
    ignored = join([graph], [NodeSchema.of([graph])], name="y")  # as for a model that does not read weights
    assert ignored.not_read == ("edge attribute weight",)


def test_a_graph_that_lacks_what_is_read_of_edges_is_named():
    graph = FileGraph.of(with_edges(("a", "b", {"weight": 1.0}), ("b", "c", {})), "g")
    with pytest.raises(DataError, match=r"g: the edge from 'b' to 'c' has no 'weight', though others have"):
        join([graph], [NodeSchema.of([graph])], name="g", edges=EdgeSchema(weight=True))
    with pytest.raises(DataError, match=r"g: its edges have no 'length'"):
        join([graph], [NodeSchema.of([graph])], name="g", edges=EdgeSchema(numbers=("length",)))


def test_the_default_of_a_graphml_key_is_the_value_of_edges_without_one():
    content = b"""<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <key id="k" for="edge" attr.name="weight" attr.type="double"><default>2</default></key>
      <graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>
      <edge source="a" target="b"/><edge source="b" target="c"><data key="k">3</data></edge></graph></graphml>"""
    assert sorted(w for *_, w in parse_graph(content, "g.graphml").edges(data="weight")) == [2, 3]


# ---- targets.csv ----


def with_targets(tmp_path, table, **more):
    folder = folder_of(tmp_path, **ABC, **more)
    (folder / "targets.csv").write_text(table)
    return folder


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_only_column_is_the_target_and_its_kind_is_found_out(tmp_path):
    dataset = load_dataset(with_targets(tmp_path, "file,logS\nc,-0.5\na.json,1.25\nb,3\n"))
    assert (dataset.task, dataset.target_names) == ("regression", ("logS",))
    assert dataset.graph_names == ("c.json", "a.json", "b.json")
    assert dataset.y.tolist() == [[-0.5], [1.25], [3.0]]
    dataset = load_dataset(with_targets(tmp_path, "file;family\na;ring\nb;star\nc;ring\n"))
    assert (dataset.task, dataset.classes, dataset.y.tolist()) == ("classification", ("ring", "star"), [0, 1, 0])
    again = load_dataset(with_targets(tmp_path, "file;family\na;ring\nb;star\nc;ring\n"))
    assert (again.classes, again.target_names) == (dataset.classes, ("family",))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_columns_of_0_and_1_are_labels_and_gaps_are_kept(tmp_path):
    folder = with_targets(tmp_path, "file,toxic,soluble\na,0,1\nb,,1\nc,,\n")
    dataset = load_dataset(folder)
    assert (dataset.task, dataset.target_names, len(dataset)) == ("multilabel", ("toxic", "soluble"), 2)
    assert dataset.y.nan_to_num(-1).tolist() == [[0, 1], [-1, 1]]
    assert any("1 of 3 graphs are left out, without a target: line 4" in note for note in dataset.notes)
    assert any("2 yes/no columns" in note for note in dataset.notes)
    again = load_dataset(folder)
    assert again.y.nan_to_num(-1).tolist() == dataset.y.nan_to_num(-1).tolist()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_target_and_task_choose_and_the_rest_describes_the_graphs(tmp_path):
    folder = with_targets(tmp_path, "file,site,age,score\na,Bonn,31,1\nb,Bonn,42,2\nc,Ulm,53,\n")
    with pytest.raises(DataError, match=r"targets\.csv: which column is the target\? The columns are site, age, score"):
        load_dataset(folder)
    dataset = load_dataset(folder, target="age", task="regression")
    assert (dataset.task, dataset.y.flatten().tolist()) == ("regression", [31, 42, 53])
    assert dataset.graph_columns == {"site": ("Bonn", "Bonn", "Ulm"), "score": ("1", "2", "")}
    assert any("left aside: site, score" in note for note in dataset.notes)
    dataset = load_dataset(folder, target=["score"])
    assert (dataset.task, len(dataset), dataset.graph_columns["site"]) == ("classification", 2, ("Bonn", "Bonn"))
    both = load_dataset(folder, target="age,score")
    assert (both.task, both.target_names) == ("regression", ("age", "score"))
    assert load_dataset(folder, target=[]).classes == (None,)
    for wrong, reason in (("agee", "no column agee"), ("file", "names the files")):
        with pytest.raises(DataError, match=reason):
            load_dataset(folder, target=wrong)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_columns_of_a_table_are_in_its_parsed_copy(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, **ABC)
    (folder / "targets.csv").write_text("file,y,z\na,0,1\nb,1,1\nc,0,0\n")
    first = load_dataset(folder)
    monkeypatch.setattr("tapnet.io.load.read_layout", lambda *_, **__: pytest.fail("parsed again"))
    again = load_dataset(folder)
    assert (again.task, again.graph_names, again.notes) == (first.task, first.graph_names, first.notes)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("", "targets.csv: there are no rows"),
        ("graph,y\n", "targets.csv: there are no rows"),
        ("file\na\n", "targets.csv:1: the first column names the files"),
        ("file,y\na,1\nd,0\n", "targets.csv:3: 'd' is no graph file in this folder"),
        ("file,y\na,1\na.json,0\n", "targets.csv:3: a.json is listed twice"),
        ("file,y\na,1\nb,2,3\n", "targets.csv:3: 3 cells where the header has 2"),
        ("file,y\na,\nb,\n", "the target column y is empty"),
        ("file,y,y\na,1,2\n", "targets.csv:1: two columns are called 'y'"),
    ],
)
def test_what_is_wrong_with_the_targets_is_said_with_its_line(tmp_path, table, reason):
    with pytest.raises(DataError) as error:
        load_dataset(with_targets(tmp_path, table))
    assert reason in str(error.value)


def test_both_tables_are_not_mixed_up(tmp_path):
    folder = with_targets(tmp_path, "file,y\na,0.5\nb,1.5\nc,7\n")
    (folder / "labels.csv").write_text("graph,class\na,x\nb,y\n")
    with pytest.warns(UserWarning, match=r"the targets are those of targets\.csv; labels\.csv is left aside"):
        assert load_dataset(folder).task == "regression"
    (folder / "targets.csv").write_text("file,y,z\na,0.5,1\nb,1.5,2\nc,7,3\n")
    with pytest.raises(DataError, match=r"targets\.csv counts.*labels\.csv.*which column is the target"):
        load_dataset(folder)


# ---- numbers that are stored as text ----


@pytest.mark.parametrize(
    ("texts", "category", "numbers"),
    [
        (["0.5", "1", "-2e-3"], (), ("x",)),
        (["1", "2", "3"], ("x",), ()),  # may be names
        (["0.5", "1", "C"], ("x",), ()),
        (["0.5", "nan", "1"], ("x",), ()),
    ],
)
def test_texts_that_are_numbers_with_a_fraction_are_numbers(texts, category, numbers):
    assert schema(path_of(*texts, attribute="x"))[:2] == (category, numbers)
    assert schema(path_of(*texts))[:2] == (("label",), ())  # a label is a category whatever it holds


@pytest.mark.parametrize("ending", ["graphml", "json"])
def test_numbers_and_weights_that_are_stored_as_text_are_read_and_said(tmp_path, ending):
    folder = tmp_path / "MINE"
    folder.mkdir()
    for name in "pq":
        graph = path_of("1", "-0.25", "1e2", attribute="x")
        nx.set_edge_attributes(graph, {edge: str(2 + i) for i, edge in enumerate(graph.edges)}, "weight")
        write(graph, folder / f"{name}.{ending}")
    with pytest.warns(UserWarning, match="stored as text: x, weight of edges"):
        dataset = load_dataset(folder, features="attributes")
    assert dataset.x[:3, 0].tolist() == [1, -0.25, 100]
    assert sorted(set(dataset.edge_weight.tolist())) == [2, 3]


def test_labels_that_hardly_recur_are_said(tmp_path):
    folder = folder_of(tmp_path, a=path_of(*(f"{i},5" for i in range(150)), attribute="x"))
    with pytest.warns(UserWarning, match=r"150 different node labels \(x\) on 150 nodes.*decimal commas"):
        load_dataset(folder)
    folder = folder_of(tmp_path / "other", a=path_of(*(f"{i % 70}" for i in range(150)), attribute="x"))
    assert not any("do not recur" in note for note in load_dataset(folder).notes)
    named = path_of(*(f"{i}" for i in range(150)), attribute="x")
    nx.set_node_attributes(named, {node: "CN"[i % 2] for i, node in enumerate(named)}, "element")
    with pytest.warns(UserWarning, match=r"150 different node labels \(x\) on 150 nodes"):  # of two categories this
        load_dataset(folder_of(tmp_path / "two", a=named))


# ---- files of other formats ----


def test_a_file_of_another_format_is_named(tmp_path):
    folder = folder_of(tmp_path, "graph,class\na,ring\nb,star\n", a=path_of("C"))
    (folder / "b.edgelist").write_text("0 1\n")
    with pytest.raises(DataError, match=r"labels\.csv:3: 'b' .*there is b\.edgelist.*\.graphml, \.json"):
        read(folder)


def test_labels_as_excel_writes_them(tmp_path):
    folder = folder_of(tmp_path, "sep=;\ngraph;class\na;Yes\nb;yes \n", a=path_of("C"), b=path_of("C"))
    with pytest.warns(UserWarning, match=r"only in case or spaces: 'Yes', 'yes'"):
        assert load_dataset(folder).classes == ("Yes", "yes")


# ---- more than fits into memory ----


def in_parts(folder, values=1, whole=False, directed=False):
    """Reads a folder in small parts; unless ``whole``, it may not be read as a whole after all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_folder, "LARGE_BYTES", 0)
        patch.setattr(graph_folder, "VALUES_AT_ONCE", values)
        if not whole:
            patch.setattr(graph_folder, "_read_all", lambda *_: pytest.fail("read as a whole"))
        return read_layout(layout_of(folder), directed=directed)


def said_by(read_folder):
    try:
        return read_folder()
    except DataError as error:
        return str(error)


def assert_same_as_whole(found, whole):
    assert_same(found, whole)
    assert found.checksum == whole.checksum
    names = ("attribute_names", "edge_attribute_names", "label_attribute", "edge_label_attribute", "graph_names")
    for key in ("notes", "not_read", "node_columns", "edge_columns", *names):
        assert getattr(found, key) == getattr(whole, key), key


@given(st.lists(node_link_documents(), min_size=1, max_size=4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_folder_in_parts_is_the_whole(tmp_path_factory, documents, directed):
    folder = tmp_path_factory.mktemp("parts")
    for i, document in enumerate(documents):
        (folder / f"{i}.json").write_text(json.dumps(document))
    whole = said_by(lambda: read_layout(layout_of(folder), directed=directed))
    found = said_by(lambda: in_parts(folder, whole=True, directed=directed))
    if isinstance(whole, str):
        assert found == whole
    else:
        assert_same_as_whole(found, whole)


@given(datasets())
@settings(max_examples=20, deadline=None)
def test_a_plain_folder_is_read_in_parts(tmp_path_factory, dataset):
    folder = tmp_path_factory.mktemp("parts")
    for i, graph in enumerate(dataset.to_networkx(i) for i in range(len(dataset))):
        write(graph, folder / f"{i:02}.json")
    assert_same_as_whole(in_parts(folder, whole=not dataset.num_edges), read(folder))


def test_an_archive_is_read_in_parts(tmp_path):
    folder = folder_of(tmp_path / "some", a=path_of("C", "N"), b=path_of("N", "O", "C"))
    archive = Path(shutil.make_archive(tmp_path / folder.name, "zip", folder.parent, folder.name))
    assert_same_as_whole(in_parts(archive), read(archive))


def test_parts_without_edges_and_with_other_attributes(tmp_path):
    heavy = nx.Graph([("a", "b", {"weight": 2.0}), ("b", "c", {"weight": 1.0})])
    light = nx.Graph([("a", "b", {"weight": 1.0, "kind": ["x"]})])
    lonely = nx.empty_graph(["a", "b"])
    for graph in (heavy, light, lonely):
        nx.set_node_attributes(graph, {node: i / 4 for i, node in enumerate(graph)}, "mass")
    for graph in (heavy, lonely):
        nx.set_node_attributes(graph, [["x"]], "note")
    folder = folder_of(tmp_path, "graph,class\nc,1\nb,0\na,1\nd,0\n", a=heavy, b=light, c=lonely, d=lonely)
    found = in_parts(folder)
    assert_same_as_whole(found, read(folder))
    assert found.edge_weight is not None
    assert found.not_read == ("node attribute note", "edge attribute kind")


def test_several_categories_are_read_in_parts(tmp_path):
    graphs = {f"g{size}": of_many_kinds(size, name="x") for size in (3, 4, 5, 8)}
    folder = folder_of(tmp_path, **graphs)
    found = in_parts(folder)
    assert_same_as_whole(found, read(folder))
    assert found.node_columns == ("aromatic", "element")
    assert found.edge_columns == ("order", "ring")


def test_memory_does_not_grow_with_the_files(tmp_path):
    peaks = []
    for count in (10, 100):
        folder = folder_of(tmp_path / str(count), **{f"g{i:03}": nx.complete_graph(25) for i in range(count)})
        tracemalloc.start()
        try:
            in_parts(folder, values=2000)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_reading_leaves_the_garbage_collector_as_it_was(tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "a.json").write_text(
        '{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}'
    )
    before = gc.get_threshold(), gc.get_freeze_count(), gc.isenabled()
    seen = []
    read = graph_folder._read_all

    def look(files):
        seen.append((gc.get_freeze_count(), gc.isenabled()))
        return read(files)

    monkeypatch.setattr(graph_folder, "_read_all", look)
    load_dataset(tmp_path / "graphs")
    assert seen
    assert set(seen) == {before[1:]}  # the objects of a notebook stay where they are
    assert (gc.get_threshold(), gc.get_freeze_count(), gc.isenabled()) == before
