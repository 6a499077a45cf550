"""The page's server: what it answers, what it refuses, and that no client keeps another from an answer."""

import asyncio
import json
import math
import re
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import httpx
import networkx as nx
import numpy as np
import pytest
import torch
from fastapi import HTTPException
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from torch_geometric.nn import ASAPooling, TopKPooling

import tapnet
from tapnet import GraphDataset
from tapnet.cli import main
from tapnet.errors import DataError, SettingError
from tapnet.explorer import names, server
from tapnet.explorer.load import load_explorer, load_pages
from tapnet.explorer.results import Results
from tapnet.explorer.upload import parsers, read_upload
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.attribution import attribute_graphs
from tapnet.models.registry import find_model
from tests.helpers.pages import EVIL, make_model, node_link, running

HOSTS = ("127.0.0.1", "localhost", "::1")
NITROBENZENE = node_link("CCCCCCNOO", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 6), (6, 7), (6, 8)])


@pytest.fixture(scope="module")
def client(explorer):
    with TestClient(server.make_app(explorer, HOSTS), base_url="http://127.0.0.1") as found:
        yield found


def upload(client, content, name="mine.json", **choice):
    body = content.encode() if isinstance(content, str) else content
    return client.post("/api/graph", params={"name": name, **choice}, content=body)


# ---- answers ----


def test_the_model_says_what_the_sliders_start_with(client):
    model = client.get("/api/model").json()
    assert (model["dataset"], model["pool"], model["graphs"]) == ("MUTAG", "tap", 188)
    assert (model["connectivity"], model["ratios"]) == (0.1, [0.8, 0.6, 0.4])
    assert model["classes"] == ["not mutagenic", "mutagenic"]


def test_the_list_has_every_graph_with_its_class_size_and_part(client, mutag):
    graphs = client.get("/api/graphs").json()
    assert graphs["nodes"] == mutag.nodes_per_graph.tolist()
    assert graphs["class"] == mutag.y.tolist()
    assert sum(graphs["edges"]) == mutag.num_edges // 2
    assert {part: graphs["part"].count(part) for part in set(graphs["part"])} == {
        "training": 150,
        "validation": 19,
        "test": 19,
    }


def test_predictions_come_in_parts_and_agree_with_each_graphs_own(client, explorer, saved):
    predicted = client.get("/api/predictions", params={"first": 0}).json()["predicted"]
    assert predicted == saved.probabilities(explorer.encoded).argmax(dim=1).tolist()
    assert client.get("/api/graphs/7").json()["predicted"] == saved.class_names[predicted[7]]
    assert client.get("/api/predictions", params={"first": 3}).status_code == 400
    assert client.get("/api/predictions", params={"first": 256}).status_code == 404


def test_a_graph_comes_with_layers_votes_places_and_probabilities(client, mutag):
    view = client.get("/api/graphs/3").json()
    n = int(mutag.nodes_per_graph[3])
    assert view["title"] == "MUTAG, graph 3"
    assert len(view["nodes"]) == len(view["places"]) == len(view["category"]) == n
    assert set(view["categories"]) <= {"C", "N", "O", "F", "I", "Cl", "Br"}
    assert sum(view["probabilities"]) == pytest.approx(1, abs=1e-4)
    came = list(range(n))
    for layer, ratio in zip(view["layers"], view["ratios"], strict=True):
        assert layer["nodes"] == came
        for i in range(len(came)):
            assert layer["score"][i] == pytest.approx(
                layer["local"][i] + layer["global"][i] + layer["connectivity"][i], abs=1e-5
            )
        came = [node for node, kept in zip(came, layer["kept"], strict=True) if kept]
        assert len(came) == math.ceil(round(ratio * len(layer["nodes"]), 9))
        lost = [s for s, kept in zip(layer["score"], layer["kept"], strict=True) if not kept]
        assert not lost or max(lost) <= min(s for s, k in zip(layer["score"], layer["kept"], strict=True) if k)


ratio = st.integers(1, 100).map(lambda percent: percent / 100)


@given(st.integers(0, 187), st.floats(-10, 10), st.tuples(ratio, ratio, ratio))
@settings(max_examples=25)
def test_sliders_change_the_answer_and_never_the_model(explorer, number, connectivity, ratios):
    before = explorer.graph(number, Choice(), False)
    view = explorer.graph(number, Choice(connectivity, ratios), False)
    n = len(view["nodes"])
    for layer, share in zip(view["layers"], ratios, strict=True):
        assert len(layer["nodes"]) == n
        n = sum(layer["kept"])
        assert n == max(1, -(-len(layer["nodes"]) * round(100 * share) // 100))
    degree = np.bincount(np.ravel(view["edges"]), minlength=len(view["nodes"]))
    np.testing.assert_allclose(
        view["layers"][0]["connectivity"], connectivity * degree / len(degree), rtol=1e-4, atol=1e-9
    )
    assert explorer.graph(number, Choice(), False) == before


def test_visitors_at_the_same_time_get_what_each_alone_would(client):
    asked = [{"connectivity": i / 10, "ratios": f"0.{1 + i % 9},0.5,0.5"} for i in range(24)]
    alone = [client.get("/api/graphs/5", params=params).json() for params in asked]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda params: client.get("/api/graphs/5", params=params).json(), asked))
    assert together == alone


def test_a_ratio_without_a_point_is_a_number_of_nodes(client):
    view = client.get("/api/graphs/5", params={"ratios": "4,3,1"}).json()
    assert [sum(layer["kept"]) for layer in view["layers"]] == [4, 3, 1]


def test_places_are_left_out_when_the_page_has_them(client):
    assert "places" not in client.get("/api/graphs/5", params={"places": False}).json()
    assert "places" not in upload(client, NITROBENZENE, places=False).json()


def test_a_file_of_the_visitor_keeps_its_names_and_may_name_categories(client):
    view = upload(client, NITROBENZENE, connectivity=0.5).json()
    assert view["nodes"][6] == "atom 6"
    assert view["categories"][view["category"][6]] == "N"
    assert (view["class"], view["notes"], view["connectivity"]) == (None, [], 0.5)
    by_number = upload(client, node_link([0] * 6 + [1, 2, 2], json_edges(NITROBENZENE))).json()
    assert any("not by numbers" in note for note in by_number["notes"])  # which could be those of another copy
    assert set(by_number["categories"]) == {"0", "1", "2"}


def json_edges(text):
    return [tuple(int(link[end].split()[1]) for end in ("source", "target")) for link in json.loads(text)["links"]]


@pytest.mark.parametrize("ending", ["graphml", "json", "GraphML"])
def test_a_graph_of_the_data_set_gives_the_same_as_a_file(client, ending):
    theirs = client.get("/api/graphs/3").json()
    graph = nx.Graph(theirs["edges"])
    nx.set_node_attributes(graph, {i: theirs["categories"][c] for i, c in enumerate(theirs["category"])}, "label")
    if ending.lower() == "graphml":
        content = "\n".join(nx.generate_graphml(graph))
    else:
        content = json.dumps(nx.node_link_data(graph, edges="links"))
    own = upload(client, content, f"three.{ending}").json()
    assert own["probabilities"] == pytest.approx(theirs["probabilities"], abs=1e-4)


def test_an_unknown_category_is_a_note_and_not_an_error(client):
    view = upload(client, node_link(["C", "Xe"], [(0, 1)])).json()
    assert "Xe" in view["notes"][0]
    assert view["categories"] == ["C", "Xe"]


# ---- what a prediction rests on ----


@pytest.mark.parametrize("method", ["surrogate", "occlusion", "masking", "shapley", "gradients"])
def test_an_attribution_is_that_of_the_model_with_its_fidelity(client, saved, method):
    found = client.get("/api/graphs/3/attribution", params={"method": method}).json()
    want = saved.explain(3, method)
    assert found["nodes"] == pytest.approx([node.attribution for node in want.nodes], rel=1e-4, abs=1e-6)
    assert found["edges"] == pytest.approx([edge.attribution for edge in want.edges], rel=1e-4, abs=1e-6)
    assert found["kept"] == [node.kept for node in want.nodes]
    assert found["fidelity"]["sentence"] == want.fidelity.sentence
    assert found["target"] == client.get("/api/graphs/3").json()["predicted"]
    assert (found["errors"] is not None) == (method == "shapley")


def test_sliders_and_files_have_attributions_of_their_own(client):
    usual = client.get("/api/graphs/3/attribution").json()
    assert client.get("/api/graphs/3/attribution?ratios=0.8,0.6,0.4&connectivity=0.1").json() == usual
    assert client.get("/api/graphs/3/attribution?ratios=0.5,0.5,0.5").json()["nodes"] != usual["nodes"]
    found = client.post("/api/attribution", params={"name": "a.json"}, content=NITROBENZENE.encode()).json()
    assert len(found["nodes"]) == 9
    assert client.post("/api/attribution", params={"name": "a.json"}, content=b"{").status_code == 422


@pytest.mark.parametrize("method", ["occlusion", "shapley"])
def test_a_graph_that_would_take_too_long_is_refused(client, method):
    numbers = range(3_000)
    path = node_link("C" * len(numbers), [(i, i + 1) for i in numbers[:-1]])
    answer = client.post("/api/attribution", params={"name": "a.json", "method": method}, content=path.encode())
    assert answer.status_code == 422
    assert "3,000 nodes" in answer.json()["error"]


@given(st.sets(st.integers(0, 10)))
@settings(max_examples=15)
def test_without_nodes_the_prediction_is_that_of_a_file_without_them(explorer, gone):
    whole, part = explorer.graph(3, Choice(), False), explorer.graph(3, Choice(), False, tuple(gone))
    left = [node for node in range(len(whole["nodes"])) if node not in gone]
    labels = [whole["categories"][whole["category"][node]] for node in left]
    edges = [(left.index(u), left.index(v)) for u, v in whole["edges"] if u in left and v in left]
    own = explorer.uploaded("part.json", node_link(labels, edges).encode(), Choice(), False)
    assert part["probabilities"] == pytest.approx(own["probabilities"], abs=1e-5)
    for mine, theirs in zip(part["layers"], own["layers"], strict=True):
        assert mine["nodes"] == [left[node] for node in theirs["nodes"]]
        assert mine["kept"] == theirs["kept"]
    assert part["without"] == sorted(gone)
    assert (part["edges"], part["nodes"]) == (whole["edges"], whole["nodes"])
    assert (part["whole"] or {"probabilities": part["probabilities"]})["probabilities"] == whole["probabilities"]


def test_one_node_has_to_be_left(explorer):
    every = tuple(range(len(explorer.graph(3, Choice())["nodes"])))
    assert explorer.graph(3, Choice(), without=every[1:])["layers"][0]["nodes"] == [0]
    with pytest.raises(SettingError, match="one node"):
        explorer.graph(3, Choice(), without=every)


def test_the_log_odds_change_by_the_occlusion_of_the_node(explorer):
    lost = explorer.attribution(3, "occlusion", Choice())["nodes"]
    for node in (0, 5, 9):
        before, after = explorer.graph(3, Choice(), without=(node,))["whole"]["log_odds"]
        assert before - after == pytest.approx(lost[node], abs=1e-4)


def test_degrees_stay_when_a_neighbour_is_taken_away():
    data = GraphDataset.from_networkx([nx.star_graph(3), nx.path_graph(4)], ["star", "path"], features="degrees")
    explorer = Explorer(make_model(data), data)
    view = explorer.graph(0, Choice(), without=(3,))
    assert [view["categories"][c] for c in view["category"]] == ["3", "1", "1", "1"]
    lost = explorer.attribution(0, "occlusion", Choice())["nodes"][3]
    assert view["whole"]["log_odds"][0] - view["whole"]["log_odds"][1] == pytest.approx(lost, abs=1e-4)


def test_atoms_are_where_chemists_draw_them():
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    data = GraphDataset.from_smiles(["c1ccccc1", "CCO"], ["ring", "chain"])
    view = Explorer(make_model(data), data).graph(0, Choice())
    at = np.array(view["places"])
    assert at.min() >= 0
    assert at.max() <= 1
    bonds = np.linalg.norm(np.diff(at[np.array(view["edges"])], axis=1), axis=-1)
    np.testing.assert_allclose(bonds, bonds.mean(), rtol=0.01)  # a regular hexagon
    assert any("polar surface" in note for note in Explorer(make_model(data), data).model()["notes"])


# ---- how sure ----


def test_a_graph_says_how_sure_the_model_is(sure, explorer):
    view = sure.graph(3, Choice())
    assert view["probabilities"] != explorer.graph(3, Choice())["probabilities"]
    found = view["sure"]
    assert (found["calibration"], found["confidence"], found["std"]) == ("temperature", 0.9, None)
    assert view["predicted"] in found["set"]
    assert found["coverage"] >= 0.85
    assert 0 <= found["distance"] <= 1
    far = node_link("I" * 60, [(i, j) for i in range(60) for j in range(i)])
    assert "size" in sure.uploaded("far.json", far.encode(), Choice())["sure"]["unlike_training"]


def test_what_the_model_does_not_know_is_not_said(explorer, sure):
    found = explorer.graph(3, Choice())["sure"]
    assert found["calibration"] == "none"
    assert found["set"] is found["coverage"] is found["distance"] is found["unlike_training"] is None
    assert sure.graph(3, Choice(connectivity=0.5))["sure"] is None  # another network than the one that was measured
    assert sure.graph(3, Choice(), without=(1,))["sure"] is None


# ---- results ----


def test_results_have_the_table_the_verdict_and_what_was_tried(results):
    client = TestClient(server.make_app(None, results=results))
    found = client.get("/api/results").json()
    table = tapnet.load_comparison(results.path)
    assert table.verdict in found["verdict"]
    assert [row[0] for row in found["table"][1:]] == [table.label(system) for system in table.systems]
    tried = [row for row in found["settings"][1:] if row[0] == "gin"]
    assert len(tried) == 3 * 2  # folds and configurations
    assert [row[-1] for row in tried].count("chosen") == 3
    assert not found["graphs"]
    assert client.get("/", follow_redirects=False).headers["location"] == "/results.html"
    assert client.get("/api/model").status_code == 404


def test_every_picture_is_what_its_code_draws(results, tmp_path, monkeypatch):
    client = TestClient(server.make_app(None, results=results))
    pictures = client.get("/api/results").json()["pictures"]
    assert [picture["name"] for picture in pictures][:2] == ["comparison", "folds-0"]
    monkeypatch.chdir(tmp_path)
    for picture in pictures[:2]:
        answer = client.get(f"/api/results/pictures/{picture['name']}")
        assert answer.headers["content-type"] == "image/svg+xml"
        exec(picture["code"], {})
        (file,) = tmp_path.glob("*.svg")
        texts = [re.sub("<dc:date>.*</dc:date>", "", text) for text in (answer.text, file.read_text())]
        assert texts[0] == texts[1]
        file.unlink()
    assert client.get("/api/results/pictures/none").status_code == 404


def test_a_run_has_a_row_for_each_fold(compared):
    folder = next(file.parent for file in compared.glob("gin/run.json"))
    found = Results(folder).view()
    assert (found["kind"], found["table"][0][0], len(found["table"])) == ("run", "fold", 1 + 3 + 1)
    assert found["table"][-1][0] == "mean"
    assert [picture["name"] for picture in found["pictures"]] == ["run", "folds-0"]


def test_a_path_has_a_model_or_results_or_both(compared, model_file, tmp_path):
    explorer, none = load_pages(model_file)
    assert (explorer.saved.name, none) == ("MUTAG", None)
    for path in (compared, compared / "comparison.json", compared / "gin"):
        explorer, results = load_pages(path)
        assert explorer is None
        assert results.view()["table"]
    with pytest.raises(DataError, match="no final model"):
        load_pages(tmp_path)
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be read"):
        load_pages(tmp_path)


# ---- refusals ----

DEEP = "[" * 100_000
BAD = {
    "empty.json": b"",
    "nothing.json": b'{"nodes": [], "links": []}',
    "list.json": b"[1, 2]",
    "deep.json": DEEP.encode(),
    "deep-name.json": b'{"nodes": [{"id": ' + b"[" * 400 + b"]" * 400 + b'}], "links": []}',
    "cut.json": NITROBENZENE[:100].encode(),
    "bytes.json": bytes(range(256)),
    "nan.json": b'{"nodes": [{"id": 1, "label": NaN}], "links": []}',
    "object.json": b'{"nodes": [{"id": 1, "label": {"a": 1}}], "links": []}',
    "half-labelled.json": b'{"nodes": [{"id": 1, "label": "C"}, {"id": 2}], "links": []}',
    "unlabelled.json": b'{"nodes": [{"id": 1}, {"id": 2}], "links": []}',
    "dangling.json": b'{"nodes": [{"id": 1, "label": "C"}], "links": [{"source": 1, "target": 2}]}',
    "surrogate.json": b'{"nodes": [{"id": "\\ud800"}, {"id": "\\ud800"}], "links": []}',
    "one-hash.json": json.dumps({"nodes": [{"id": i * (2**61 - 1)} for i in range(110_000)], "links": []}).encode(),
    "two-links.json": NITROBENZENE[:-1].encode() + b', "links": []}',
    "defaults.graphml": (
        b"<graphml xmlns='http://graphml.graphdrawing.org/xmlns'>"
        + b"".join(b"<key id='%d' for='node' attr.name='%d'><default>1</default></key>" % (i, i) for i in range(10_000))
        + b"<graph>"
        + b"".join(b"<node id='%d'/>" % i for i in range(9_000))
        + b"</graph></graphml>"
    ),
    "many.json": json.dumps({"nodes": [{"id": i, "label": "C"} for i in range(10_001)], "links": []}).encode(),
    "laughs.graphml": b'<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>',
    "cut.graphml": b"<graphml><graph><node id='1'>",
    "text.graphml": b"not XML at all",
    "program.py": b"print(1)",
    "../../etc/passwd": b"root",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_a_sentence_and_the_next_visitor_an_answer(client, name):
    answer = upload(client, BAD[name], name)
    assert 400 <= answer.status_code < 500
    assert 10 < len(answer.json()["error"]) <= 500
    assert "Traceback" not in answer.text
    assert upload(client, NITROBENZENE).status_code == 200


def test_a_file_that_is_too_large_is_refused(client):
    answer = upload(client, b" " * (server.LARGEST_UPLOAD + 1))
    assert answer.status_code == 413
    assert "4 MB" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/graphs/188", 404),
        ("/api/graphs/-1", 404),
        ("/api/graphs/x", 400),
        ("/api/graphs/3?connectivity=nan", 400),
        ("/api/graphs/3?connectivity=much", 400),
        ("/api/graphs/3?ratios=0.5", 400),
        ("/api/graphs/3?without=999", 400),
        ("/api/graphs/3?without=-1", 400),
        ("/api/graphs/3?without=one", 400),
        ("/api/graphs/188/attribution", 404),
        ("/api/graphs/3/attribution?method=guessing", 400),
        ("/api/graphs/3/attribution?ratios=0.5", 400),
        ("/api/results", 404),
        ("/api/graphs/3?ratios=0.5,0.5,1.5", 400),
        ("/api/graphs/3?ratios=0.5,,0.5", 400),
        ("/api/graphs/3?ratios=0,0.0,nan", 400),
        ("/api/graphs/3?ratios=9999999999999999999,1,1", 400),
        (f"/api/graphs/3?ratios={'9' * 900},1,1", 400),
        ("/api/graphs/9999999999999999999", 404),
        ("/api/predictions?first=9999999999999999999", 404),
        ("/docs", 404),
        ("/openapi.json", 404),
        ("/page/index.html", 404),
        ("/page", 404),
        ("/api", 404),
        ("/%00", 404),
        ("/" + 300 * "a", 404),
        ("/server.py", 404),
        ("/..%2f..%2fetc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/style.css/../server.py", 404),
    ],
)
def test_what_cannot_be_answered_gets_a_sentence(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/model", "/api/graphs/900", "/nothing"])
def test_every_answer_keeps_the_browser_strict(client, path):
    headers = client.get(path, headers={"Origin": "http://elsewhere.example"}).headers
    assert headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/dom.js", "text/javascript; charset=utf-8"),
        ("/results.html", "text/html; charset=utf-8"),
        ("/results.js", "text/javascript; charset=utf-8"),
        ("/picture.js", "text/javascript; charset=utf-8"),
        ("/favicon.svg", "image/svg+xml"),
    ],
)
def test_the_files_of_the_page_have_their_types_and_name_no_other_host(client, path, kind):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    addresses = set(re.findall(r"""(?:https?:)?//[a-z0-9.]+[^\s"'<)]*""", answer.text))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example", "127.0.0.1@evil.example:80"),
        *("[::2]:8765", "[::1", "::1", "[::1].evil.example", "localhost:80:80", "localhost/"),
    ],
)
def test_other_names_for_this_machine_are_refused(client, host):
    answer = client.get("/api/model", headers={"Host": host})
    assert answer.status_code == 421
    assert "host" in answer.json()["error"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:8765", "[::1]"])
def test_its_own_names_are_not(client, host):
    assert client.get("/api/model", headers={"Host": host}).status_code == 200


def test_other_sites_get_no_answers_but_may_link_to_the_page(client):
    for site in ("cross-site", "same-site"):
        assert client.get("/api/model", headers={"Sec-Fetch-Site": site}).status_code == 403
        assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200
    assert client.get("/api/model", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert client.options("/api/model").status_code == 405


class Faulty(Explorer):
    def graph(self, number, choice, with_layout=True, without=()):
        if number == 1:
            raise RuntimeError("a secret of this machine")
        time.sleep(0.5)
        return {}


def test_what_goes_wrong_inside_stays_inside(saved, mutag, capsys):
    client = TestClient(server.make_app(Faulty(saved, mutag)))
    answer = client.get("/api/graphs/1")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "RuntimeError: a secret of this machine" in capsys.readouterr().err
    assert client.get("/api/model").status_code == 200


def test_work_that_takes_too_long_is_given_up(saved, mutag, monkeypatch):
    monkeypatch.setattr(server, "WORK_SECONDS", 0.1)
    client = TestClient(server.make_app(Faulty(saved, mutag)))
    answer = client.get("/api/graphs/2")
    assert answer.status_code == 503
    assert "seconds" in answer.json()["error"]


def test_a_crowd_is_told_to_come_back(saved, mutag, monkeypatch):
    monkeypatch.setattr(server, "WAITING", 3)
    with (
        TestClient(server.make_app(Faulty(saved, mutag))) as client,  # one loop for all
        ThreadPoolExecutor(12) as pool,
    ):
        statuses = list(pool.map(lambda i: client.get(f"/api/graphs/{i}").status_code, range(2, 14)))
        assert set(statuses) == {200, 503}
        assert client.get("/api/graphs/2").status_code == 200


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_read(client, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tapnet.explorer.parse.PARSE_SECONDS", 0.0)
        answer = upload(client, node_link("C" * 10_000, []))
        assert answer.status_code == 422
        assert "takes longer than" in answer.json()["error"]
    assert upload(client, NITROBENZENE).status_code == 200


def test_a_parser_that_was_killed_is_replaced(client):
    assert upload(client, NITROBENZENE).status_code == 200
    parsers.close()
    assert upload(client, NITROBENZENE).status_code == 200


def answers(*asked, threads=1):
    """(client, number) in the order in which a pool that was busy at first answers; None for those that it refuses."""
    order, go = [], threading.Event()

    async def ask(pool, client, number):
        try:
            await pool.answer(client, lambda: order.append((client, number)) or {})
        except HTTPException as error:
            order.append(None if error.status_code == 503 else error)

    async def run():
        pool = server.WorkerPool(threads)
        first = [asyncio.create_task(pool.answer("", lambda: go.wait(30) and {})) for _ in range(threads)]
        await asyncio.sleep(0)
        others = [asyncio.create_task(ask(pool, *one)) for one in asked]
        for _ in range(5):
            await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*first, *others)

    asyncio.run(run())
    return order


def test_clients_take_turns():
    asked = [("a", i) for i in range(20)] + [("b", 0), ("b", 1), ("c", 0)]
    assert answers(*asked)[:6] == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2)]


def test_where_the_queue_is_full_the_longest_part_of_it_loses_its_last(monkeypatch):
    monkeypatch.setattr(server, "WAITING", 4)
    order = answers(*(("a", i) for i in range(5)), ("b", 0), ("c", 0), ("c", 1))
    assert order.count(None) == 4
    assert [one for one in order if one] == [("a", 0), ("b", 0), ("c", 0), ("a", 1)]


def test_twenty_uploads_at_once_do_not_keep_a_visitor_from_a_graph(saved, mutag, monkeypatch):
    held = threading.Event()
    monkeypatch.setattr(Explorer, "uploaded", lambda *_: held.wait(30) and {})
    with TestClient(server.make_app(Explorer(saved, mutag))) as client, ThreadPoolExecutor(20) as pool:
        uploads = [pool.submit(upload, client, NITROBENZENE) for _ in range(20)]
        assert client.get("/api/graphs/3").status_code == 200
        assert not any(one.done() for one in uploads)
        held.set()
        assert {one.result().status_code for one in uploads} == {200}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *[(name, 200) for name in ("127.0.0.1", "localhost", "192.0.2.7:8765", "[2001:db8::1]:80", "gpu3.example")],
        *[(name, 421) for name in ("evil.example", "192.0.2.7.evil.example", "2001:db8::1", "[192.0.2.7]", "")],
    ],
)
def test_a_public_page_answers_to_addresses_and_the_names_that_were_allowed(explorer, host, status):
    with server.listen("0.0.0.0", 0) as listener:
        app = server.make_server(explorer, listener, ["GPU3.example"]).config.app
    assert TestClient(app).get("/api/model", headers={"Host": host}).status_code == status


# ---- other models ----


def test_a_model_without_votes_has_scores_alone(mutag):
    explorer = Explorer(make_model(mutag, pool="topk"), mutag)
    assert explorer.model()["connectivity"] is None
    layer = explorer.graph(0, Choice(ratios=(0.5, 0.5, 0.5)))["layers"][0]
    assert set(layer) == {"nodes", "kept", "score", "parts"}
    assert layer["parts"] == []
    with pytest.raises(SettingError, match="connectivity"):
        explorer.graph(0, Choice(connectivity=0.5))


@pytest.mark.parametrize(("layer", "scored"), [(TopKPooling, True), (ASAPooling, False)])
def test_a_layer_of_pyg_has_sliders_and_null_where_it_tells_no_score(mutag, layer, scored):
    explorer = Explorer(make_model(mutag, pool=layer), mutag)
    assert explorer.model()["ratios"] == [0.8, 0.6, 0.4]
    assert explorer.model()["connectivity"] is None
    view = TestClient(server.make_app(explorer)).get("/api/graphs/0?ratios=0.5,0.5,0.5").json()
    for one in view["layers"]:
        assert sum(one["kept"]) == -(-len(one["nodes"]) // 2)
        for kept, score in zip(one["kept"], one["score"], strict=True):
            assert (score is not None) == (kept and scored)
    assert explorer.graph(0, Choice())["layers"] == explorer.graph(0, Choice(ratios=(0.8, 0.6, 0.4)))["layers"]


def test_a_final_model_was_trained_on_every_graph(mutag):
    saved = make_model(mutag)
    final = {"key": "0", "graphs": len(mutag), "epochs": 5, "epochs_rule": "the median"}
    measured = {"mean": 84.04, "std": 7.5, "baseline": {"accuracy": 84.04}}
    card = saved.card.replace(final=final, cross_validation=measured)
    explorer = Explorer(replace(saved, card=card), mutag)
    assert set(explorer.parts) == {"training"}
    assert explorer.model()["accuracy"] == [84.0, 7.5]
    assert explorer.model()["baseline"] == {"accuracy": 84.04}
    assert "not above 84.0 %" in explorer.model()["notes"][0]


def test_an_accuracy_comes_with_the_share_of_the_largest_class(mutag, explorer):
    name, share = explorer.model()["largest_class"]
    assert (name, share) == ("mutagenic", pytest.approx(66.5))
    unknown = replace(mutag, y=mutag.y * 0, classes=(None,), class_names=None)
    assert Explorer(make_model(mutag), unknown).model()["largest_class"] is None


@pytest.mark.parametrize(("model", "ratios"), [("gunet", [0.9, 0.7, 0.6, 0.5]), ("sagpool", [])])
def test_other_networks_whose_layers_keep_nodes_have_a_page(mutag, model, ratios):
    explorer = Explorer(make_model(mutag, model), mutag)
    assert explorer.model()["ratios"] == ratios
    assert explorer.model()["connectivity"] is None
    view = explorer.graph(0, Choice(ratios=(0.5,) * len(ratios) or None))
    assert sum(view["layers"][0]["kept"]) == -(-len(view["nodes"]) // 2)


# ---- names ----


def test_files_and_nodes_are_found_by_their_names(named):
    client = TestClient(server.make_app(named))
    assert client.get("/api/model").json()["named"]
    assert client.get("/api/graphs").json()["files"] == ["Ring.json", EVIL, "numbers.json"]
    view = client.get("/api/graphs/0").json()
    assert view["title"].endswith(", graph 0, Ring.json")
    assert view["nodes"][:2] == ["Alice", "42"]

    def found(text):
        answer = client.get("/api/search", params={"text": text}).json()
        return dict(zip(answer["graphs"], answer["nodes"], strict=True))

    assert found("ring") == {0: None}
    assert found("LICE") == {0: 0, 1: 2}  # part of a node's name
    assert found("42") == {0: 1}  # a number is a whole name
    assert found("4") == found("2") == {}  # and 0, 1, 2, … are no names
    assert found("<img") == {1: None}
    assert found("  ") == found("nobody") == {}
    assert client.get("/api/search", params={"text": "x" * 101}).status_code == 400


def test_files_that_have_changed_since_show_numbers(named, tmp_path):
    data = replace(named.data, source=str(tmp_path))
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_text(node_link(["a"], []))
    explorer = Explorer(named.saved, data)
    assert explorer.graph(0, Choice())["nodes"] == ["0", "1", "2"]
    (tmp_path / "c.json").unlink()
    assert Explorer(named.saved, data).graphs()["files"] == list(data.graph_names)  # not the files of these graphs


def test_the_search_reads_no_more_names_than_it_may(named, monkeypatch):
    monkeypatch.setattr(names, "SEARCHED_CHARACTERS", 1)
    answer = Explorer(named.saved, named.data).names.search("alice")
    assert answer["searched"] == 1
    assert answer["graphs"] == [0]


def test_a_data_set_without_files_of_its_graphs_has_no_names(explorer):
    client = TestClient(server.make_app(explorer))
    assert not client.get("/api/model").json()["named"]
    assert client.get("/api/graphs").json()["files"] is None
    assert client.get("/api/search", params={"text": "a"}).json()["graphs"] == []


@pytest.mark.parametrize(
    ("model", "settings", "reason"), [("gin", {}, "no pooling layers"), ("tapnet", {"pool": "diff"}, "merges nodes")]
)
def test_networks_that_keep_no_nodes_have_a_page_with_attributions(mutag, model, settings, reason):
    explorer = Explorer(make_model(mutag, model, **settings), mutag)
    assert reason in explorer.model()["no_layers"]
    assert explorer.model()["ratios"] == []
    assert explorer.graph(0, Choice())["layers"] == []
    assert any(explorer.attribution(0, "occlusion", Choice())["nodes"])


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_numbers_and_labels_have_a_page_too(mutag, task):
    y = torch.stack([mutag.y.float(), 1 - mutag.y.float()], dim=1)
    data = replace(mutag, y=y, classes=(), class_names=None, task=task, target_names=("one", "two"))
    explorer = Explorer(make_model(data), data)
    client = TestClient(server.make_app(explorer))
    assert client.get("/api/model").json()["classes"] == ["one", "two"]
    assert client.get("/api/graphs").json()["classes"] == [None]
    view = client.get("/api/graphs/3?without=1").json()
    assert (view["class"], len(view["probabilities"])) == (None, 2)
    assert "one" in view["truth"] + view["predicted"]
    assert (view["whole"]["log_odds"] is None) == (task == "regression")
    assert client.get("/api/predictions?first=0").status_code == 200
    found = client.get("/api/graphs/3/attribution").json()
    assert len(found["nodes"]) == len(view["nodes"])
    assert found["target"] in ("one", "two")
    other = Explorer(explorer.saved, mutag)  # whose graphs have classes, which say nothing of this prediction
    assert other.graphs()["classes"] == [None]
    assert other.graph(3, Choice())["class"] is other.graph(3, Choice())["truth"] is None


def test_the_true_labels_have_no_probability_and_missing_ones_are_not_known(mutag):
    y = torch.tensor([[1.0, 0.0], [0.0, 0.0], [torch.nan, torch.nan], [1.0, 1.0]])
    labels = {"classes": (), "class_names": None, "task": "multilabel", "target_names": ("one", "two")}
    data = replace(mutag.subset(range(4)), y=y, **labels)
    explorer = Explorer(make_model(data), data)
    assert [explorer.graph(i, Choice())["truth"] for i in range(4)] == ["one", "no label", None, "one, two"]


def test_degrees_are_named_and_need_no_labels():
    graphs = [nx.star_graph(5), nx.path_graph(4)]
    data = GraphDataset.from_networkx(graphs, ["star", "path"], features="degrees")
    explorer = Explorer(make_model(data), data)
    view = explorer.graph(0, Choice())
    assert [view["categories"][c] for c in view["category"]] == ["5", "1", "1", "1", "1", "1"]
    assert view["class"] == "star"
    plain = json.dumps({"nodes": [{"id": i} for i in range(3)], "links": [{"source": 0, "target": 1}]})
    assert explorer.uploaded("a.json", plain.encode(), Choice())["layers"]


def test_graphs_of_no_known_class_are_neither_right_nor_wrong(mutag):
    unknown = replace(mutag, y=mutag.y * 0, classes=(None,), class_names=None)
    client = TestClient(server.make_app(Explorer(make_model(mutag), unknown)))
    assert client.get("/api/graphs").json()["classes"] == [None]
    assert client.get("/api/graphs/0").json()["class"] is None


def test_a_network_that_answers_nan_is_shown_as_such(mutag):
    saved = make_model(mutag)
    for parameter in saved.network.parameters():
        parameter.data.fill_(math.nan)
    view = TestClient(server.make_app(Explorer(saved, mutag))).get("/api/graphs/0").json()
    assert view["probabilities"] == [None, None]


# ---- the process, and slow or broken clients ----


@contextmanager
def hanging(address):
    """50 clients of every bad kind, all connected: silent, slow at asking, slow at sending, deaf, talking nonsense."""
    host, port = address.removeprefix("http://").split(":")
    post = f"POST /api/graph?name=a.json HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\n".encode()
    ask = f"GET /api/graphs/3 HTTP/1.1\r\nHost: {host}\r\n".encode()
    kinds = (b"", b"GET /", ask, post, post + b'{"nodes": [', (ask + b"\r\n") * 20, b"\x16\x03\x01\x00\xff" * 5)
    with ExitStack() as stack:
        held = []
        for i in range(50):
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            client.sendall(kinds[i % len(kinds)])
            held.append(client)
        yield held


def test_fifty_bad_clients_do_not_keep_the_next_visitor_from_an_answer(page):
    with hanging(page), httpx.Client(base_url=page, timeout=60) as visitor:
        assert visitor.get("/").status_code == 200
        assert len(visitor.get("/api/graphs/3").json()["layers"]) == 3
        assert upload(visitor, NITROBENZENE).status_code == 200


@contextmanager
def serving(explorer):
    """The server in a thread of this process, so that its limits can be made short."""
    listener = server.listen("127.0.0.1", 0)
    runs = server.make_server(explorer, listener)
    thread = threading.Thread(target=runs.run, args=([listener],))
    thread.start()
    try:
        yield server.address_of(listener)
    finally:
        runs.should_exit = True
        thread.join(30)


def test_connections_that_are_too_slow_are_ended(explorer, monkeypatch):
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(server, "EXCHANGE_SECONDS", 1.0)
    with serving(explorer) as address, hanging(address) as held:
        for client in held:  # each ends: read to the end, or reset
            try:
                while client.recv(1 << 16):
                    pass
            except ConnectionError:
                pass


def test_an_upload_that_does_not_arrive_in_time_is_told_so(explorer, monkeypatch):
    monkeypatch.setattr(server, "RECEIVE_SECONDS", 0.3)
    with serving(explorer) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(
                f"POST /api/graph?name=a.json HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{{".encode()
            )
            answer = b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()
    assert answer.startswith("HTTP/1.1 408")
    assert "seconds" in answer


def test_a_large_upload_is_refused_after_it_was_sent(page):
    with httpx.Client(base_url=page, timeout=60) as visitor:
        assert upload(visitor, b" " * (2 * server.LARGEST_UPLOAD)).status_code == 413
        assert visitor.get("/api/model").status_code == 200


def test_ctrl_c_ends_it_without_a_word_of_trouble_whoever_is_connected(model_file):
    with running(model_file) as (address, process):
        assert httpx.get(f"{address}/api/model", timeout=60).status_code == 200
        with hanging(address):
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_ctrl_c_ends_it_while_a_large_file_is_read(model_file):
    numbers = range(10_000)
    content = node_link("C" * len(numbers), [(i, i * 7 % len(numbers)) for i in numbers])
    with running(model_file) as (address, process), ThreadPoolExecutor(1) as pool:
        assert httpx.get(f"{address}/api/model", timeout=60).status_code == 200
        pool.submit(httpx.post, f"{address}/api/graph", params={"name": "a.json"}, content=content, timeout=60)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
        assert process.stderr.read() == ""


def test_without_its_data_set_there_are_files_of_ones_own(mutag):
    client = TestClient(server.make_app(load_explorer(make_model(replace(mutag, name="MY-GRAPHS")))))
    assert "MY-GRAPHS" in client.get("/api/model").json()["missing"]
    assert client.get("/api/model").json()["graphs"] == 0
    assert client.get("/api/graphs/0").status_code == 404
    assert upload(client, NITROBENZENE).status_code == 200


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.safetensors"], 1, "nowhere.safetensors: no such file"),
        (["."], 1, ".: this folder has no final model"),
        (["MODEL", "--dataset", "NOWHERE"], 1, "NOWHERE is not in"),
        (["MODEL", "--host", "256.0.0.1"], 2, "cannot listen at 256.0.0.1"),
        (["MODEL", "--port", "TAKEN"], 2, "port 0 takes any free one"),
        (["MODEL", "--port", "70000"], 2, "65535"),
    ],
)
def test_a_mistake_is_one_line(words, code, message, model_file, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        known = {"MODEL": model_file, "TAKEN": taken.getsockname()[1]}
        words = ["tapnet", "explore", *(str(known.get(word, word)) for word in words), "--no-browser"]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stopped:
            main()
    shown = capsys.readouterr().err
    assert stopped.value.code == code, shown
    assert message in shown
    assert shown.count("\n") == 1


def test_without_fastapi_one_line_says_what_to_install(model_file, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setattr(sys, "argv", ["tapnet", "explore", str(model_file)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "tapnet: the page needs FastAPI and uvicorn: pip install fastapi uvicorn\n"


def test_edges_of_a_directed_graph_are_in_the_order_of_their_attributions() -> None:
    graphs = [nx.DiGraph([(0, 1), (1, 0), (2, 1), (2, 3), (3, 0)]), nx.DiGraph([(0, 1), (1, 2)])]
    dataset = GraphDataset.from_networkx(graphs, [0, 1], features="degrees", directed=True)
    saved = make_model(dataset)
    explorer, found = Explorer(saved, dataset), saved.explain(graphs[0], method="occlusion")
    view = explorer.graph(0, Choice())
    assert view["directed"]
    assert view["edges"] == [[edge.source, edge.target] for edge in found.edges]
    shown = explorer.attribution(0, "occlusion", Choice())["edges"]
    assert shown == pytest.approx([edge.attribution for edge in found.edges], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("conv", ["gcn", "gine"])
@pytest.mark.parametrize("with_data", [True, False])
def test_a_model_of_atoms_with_numbers_and_bonds_has_a_page(with_data: bool, conv: str) -> None:
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    dataset = GraphDataset.from_smiles(["c1ccccc1", "CCO"], ["ring", "chain"])
    spec = find_model("tapnet")
    saved = make_model(spec.prepare(dataset, spec.settings(conv=conv)), conv=conv)
    explorer = Explorer(saved, dataset if with_data else None)
    assert explorer.model()["ratios"] == [0.8, 0.6, 0.4]
    if with_data:
        assert len(explorer.graph(0, Choice())["layers"]) == 3


@pytest.fixture
def molecules():
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    dataset = GraphDataset.from_smiles(["c1ccccc1", "CCO", "CC(=O)O"], ["ring", "chain", "chain"])
    spec = find_model("tapnet")
    return make_model(spec.prepare(dataset, spec.settings(conv="gine")), conv="gine"), dataset


def test_a_molecule_can_be_typed_in(molecules) -> None:
    saved, dataset = molecules
    explorer = Explorer(saved)
    assert explorer.model()["molecules"]
    view = explorer.uploaded("molecule.smi", b"OC(C)=O acetic acid", Choice())
    assert view["title"] == "OC(C)=O"
    assert len(view["places"]) == len(view["nodes"]) == 4
    known = explorer.uploaded("molecule.smi", b"CCO", Choice())["probabilities"]
    assert known == pytest.approx(saved.probabilities(saved.encode(dataset))[1].tolist(), abs=1e-5)
    assert len(explorer.uploaded_attribution("molecule.smi", b"CCO", "occlusion", Choice())["nodes"]) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"C1CC", "C1CC: not a SMILES"),
        (b"CN(C)(C)(C)C", "Explicit valence"),
        (b"", "holds no molecules"),
        (b"CCO\nCCN", "2 molecules; the page shows one"),
        (b"C" * 2000, "2,000 atoms; the page draws molecules of up to 1,000"),
        (b"\xff\x00", "not a SMILES"),
    ],
)
def test_what_is_no_molecule_is_said(molecules, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read_upload(molecules[0], "molecule.smi", content)


def test_bonds_have_as_many_lines_as_chemists_draw(molecules, explorer) -> None:
    saved, dataset = molecules
    ring, _, acid = (Explorer(saved, dataset).graph(number, Choice()) for number in range(3))
    assert sorted(ring["bonds"]) == [1, 1, 1, 2, 2, 2]
    assert dict(zip(map(tuple, acid["edges"]), acid["bonds"], strict=True)) == {(0, 1): 1, (1, 2): 2, (1, 3): 1}
    assert Explorer(saved).uploaded("molecule.smi", b"C#N", Choice())["bonds"] == [3]
    assert explorer.graph(0, Choice())["bonds"] is None


@pytest.mark.parametrize("text", ["OC(C)=O", "C(=O)(C)O", "CC(=O)O"])
def test_atoms_are_shown_as_they_are_written(molecules, text) -> None:
    from rdkit import Chem

    saved, _ = molecules
    explorer, name = Explorer(saved), "molecule.smi"
    view = explorer.uploaded(name, text.encode(), Choice())
    written = Chem.MolFromSmiles(text)
    elements = [view["categories"][i] for i in view["category"]]
    assert elements == [atom.GetSymbol() for atom in written.GetAtoms()]
    bonds = [written.GetBondBetweenAtoms(u, v) for u, v in view["edges"]]
    assert [int(bond.GetBondTypeAsDouble()) for bond in bonds] == view["bonds"]
    found = explorer.uploaded_attribution(name, text.encode(), "occlusion", Choice())
    double = next(i for i, bonds in enumerate(view["bonds"]) if bonds == 2)
    alone = GraphDataset.from_smiles(["CC(=O)O"])  # however it is written
    known = attribute_graphs(saved, alone, method="occlusion")
    atoms, ends = alone.atom_order(0), tuple(known.edge_index)
    by_atom = dict(zip(atoms, known.nodes.tolist(), strict=True))
    by_bond = {frozenset((atoms[u], atoms[v])): value for u, v, value in zip(*ends, known.edges, strict=True)}
    match = written.GetSubstructMatch(Chem.MolFromSmiles("CC(=O)O"))
    assert found["nodes"] == pytest.approx([by_atom[match.index(i)] for i in range(4)], rel=1e-4, abs=1e-6)
    assert found["edges"][double] == pytest.approx(by_bond[frozenset((1, 2))], rel=1e-4, abs=1e-6)
    for group in found["groups"]:
        if group["name"] == "carboxylic acid":
            assert sorted(group["nodes"]) == sorted(match[1:])
    for atom in range(4):
        left = explorer.uploaded(name, text.encode(), Choice(), without=[atom])
        usual = Explorer(saved, alone).graph(0, Choice(), without=[match.index(atom)])
        assert left["probabilities"] == pytest.approx(usual["probabilities"], abs=1e-5)
        assert all(atom not in layer["nodes"] for layer in left["layers"])


def test_molecules_are_found_by_their_smiles(molecules) -> None:
    saved, dataset = molecules
    explorer = Explorer(saved, dataset)
    assert explorer.model()["named"]
    assert explorer.graphs()["files"] == ["c1ccccc1", "CCO", "CC(=O)O"]
    assert explorer.graph(1, Choice())["title"].endswith("graph 1, CCO")
    assert explorer.names.search("(=o)") == {"graphs": [2], "nodes": [None], "searched": 3}


def test_a_model_of_other_graphs_takes_no_molecule(saved) -> None:
    assert not Explorer(saved).model()["molecules"]
    with pytest.raises(DataError, match="not trained on molecules"):
        read_upload(saved, "molecule.smi", b"CCO")


def test_a_model_of_several_categories_has_a_page_and_takes_graphs() -> None:
    graphs = [nx.path_graph(4), nx.cycle_graph(4)]
    for graph in graphs:
        nx.set_node_attributes(graph, {i: {"kind": "ab"[i % 2], "size": i // 2, "first": i == 0} for i in graph})
        nx.set_edge_attributes(graph, {e: {"order": 1 + e[0] % 2, "ring": len(graph) > 3} for e in graph.edges})
    names = ["kind", "size", "first"]
    dataset = GraphDataset.from_networkx(graphs, [0, 1], node_label=names, edge_label=["order", "ring"])
    spec = find_model("tapnet")
    saved = make_model(spec.prepare(dataset, spec.settings(conv="gine")), conv="gine")
    assert set(Explorer(saved, dataset).graph(0, Choice())["categories"]) == {"a", "b"}
    upload = read_upload(saved, "one.json", json.dumps(nx.node_link_data(graphs[1], edges="links")).encode())
    assert upload.notes == []  # every category is known, whether it is text, a number, or true and false
    expected = saved.probabilities(saved.encode(dataset))[1]
    torch.testing.assert_close(saved.probabilities(upload.encoded)[0], expected)
    torch.testing.assert_close(saved.probabilities(saved.encode(saved.to_dataset(graphs)))[1], expected)
    with pytest.raises(DataError, match="its nodes have no 'size', which the model reads"):
        read_upload(saved, "one.json", b'{"nodes": [{"id": 1, "kind": "a", "first": false}], "links": []}')


def test_edges_that_a_model_reads_are_not_said_to_be_left_out(mutag: GraphDataset) -> None:
    nodes = [{"id": i, "label": "C"} for i in range(3)]
    links = [{"source": i, "target": i + 1, "label": f"{i}"} for i in range(2)]
    body = json.dumps({"nodes": nodes, "links": links}).encode()
    spec = find_model("tapnet")
    for conv, left_out in (("gcn", True), ("gine", False)):
        saved = make_model(spec.prepare(mutag, spec.settings(conv=conv)), conv=conv)
        notes = read_upload(saved, "three.json", body).notes
        assert any("not used" in note for note in notes) == left_out
