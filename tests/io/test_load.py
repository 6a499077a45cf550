"""load_dataset: where a set is looked for, the parsed copy, the download, and the catalogue."""

import contextlib
import http.server
import os
import shutil
import socketserver
import sys
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

import tapnet
from tapnet import TAPClassifier, load_dataset
from tapnet.data.catalog import CATALOG, Statistics, find_entry
from tapnet.data.convert import assemble
from tapnet.errors import DataError, DataNote, DatasetNotFoundError, DownloadError, SettingError, TapnetError
from tapnet.files import cache_dir
from tapnet.io import parsed_cache as cache
from tapnet.io.dataset_files import layout_of
from tests.helpers.tu_files import GOOD_TEXT, archive, run_on_terminal, write
from tests.helpers.writers import write_tu


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TAPNET_TU_URL", "http://127.0.0.1:9/none")
    monkeypatch.setenv("TAPNET_PTC_URL", "http://127.0.0.1:9/none/PTC.txt")


# ---- where it is looked for ----


def test_a_path_is_a_folder_an_archive_or_a_text(tmp_path):
    folder = write(tmp_path)
    packed = archive(folder, tmp_path / "SMALL.zip")
    (tmp_path / "T.txt").write_text(GOOD_TEXT)
    assert [len(load_dataset(p)) for p in (folder, str(packed), tmp_path / "T.txt")] == [2, 2, 2]


@pytest.mark.parametrize("layout", ["SMALL", "SMALL/raw", "SMALL.zip", "SMALL.txt"])
@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_name_is_found_in_the_data_folder(tmp_path, monkeypatch, layout, how):
    folder, data = write(tmp_path / "made"), tmp_path / "data"
    data.mkdir()
    if layout.endswith(".zip"):
        archive(folder, data / layout)
    elif layout.endswith(".txt"):
        (data / layout).write_text(GOOD_TEXT)
    else:
        shutil.copytree(folder, data / layout)
    if how == "environment":
        monkeypatch.setenv("TAPNET_DATA", str(data))
    dataset = load_dataset("SMALL", data if how == "argument" else None)
    assert (dataset.name, len(dataset)) == ("SMALL", 2)


def test_mutag_is_there_on_every_machine():
    dataset = load_dataset("mutag")
    assert (dataset.name, dataset.place, len(dataset)) == ("MUTAG", "package", 188)
    assert dataset.checksum == "c4e0f201794ede6d0d40441e78669e65"  # part of the key of a trial


def test_the_data_folder_comes_before_the_package(tmp_path):
    folder = write(tmp_path / "made")
    (tmp_path / "MUTAG").mkdir()
    for file in folder.iterdir():
        shutil.copy(file, tmp_path / "MUTAG" / file.name.replace("SMALL", "MUTAG"))
    assert len(load_dataset("MUTAG", tmp_path)) == 2


def test_a_bare_name_is_not_a_folder_that_happens_to_be_here(tmp_path, monkeypatch):
    (tmp_path / "MUTAG").mkdir()
    (tmp_path / "MUTAG" / "log.txt").write_text("epoch 1\n")
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load_dataset("MUTAG").place == "package"
    assert load_dataset("SMALL").place == "path"


@pytest.mark.parametrize("name", ["", "x" * 300])
def test_impossible_names_are_no_traceback(name):
    with pytest.raises(TapnetError):
        load_dataset(name, download=False)


def test_a_data_folder_that_is_none_is_said(tmp_path, monkeypatch):
    with pytest.raises(SettingError, match="data_dir: .* is not a folder"):
        load_dataset("MUTAG", tmp_path / "nothing")
    monkeypatch.setenv("TAPNET_DATA", str(tmp_path / "nothing"))
    with pytest.raises(SettingError, match="TAPNET_DATA: .* is not a folder"):
        load_dataset("MUTAG")


def test_own_data_under_a_known_name_keep_what_they_have(tmp_path):
    folder = write(tmp_path, node_labels=None).rename(tmp_path / "PTC")
    for file in folder.iterdir():
        file.rename(folder / file.name.replace("SMALL", "PTC"))
    assert load_dataset(folder).features == "attributes"
    (folder / "PTC_node_attributes.txt").unlink()
    assert load_dataset(folder).features == "degrees"


@pytest.mark.parametrize("name", ["O=[N+]([O-])c1ccccc1", "CC(=O)O", "my set", "Größe", "x" * 65, "C#N", "a:b", "a?b"])
def test_what_can_be_no_name_is_never_asked_for_on_the_network(tmp_path, monkeypatch, name):
    monkeypatch.setattr("tapnet.io.download.download", lambda *_: pytest.fail("it became an address"))
    with pytest.raises(DatasetNotFoundError) as error:
        load_dataset(name)
    assert str(error.value).startswith(name[:60])
    assert "no name of a data set" in str(error.value)
    monkeypatch.chdir(tmp_path)
    if set(name).isdisjoint(":?"):
        write(tmp_path).rename(tmp_path / name)
        assert len(load_dataset(name)) == 2  # a folder may be called so


def test_what_is_nowhere_is_said_with_the_places_looked_at(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"NOWHERE is not in .*\(data-dir\).*\(package\).*\(cache\)"):
        load_dataset("NOWHERE", tmp_path, download=False)
    with pytest.raises(DatasetNotFoundError, match="no such file or folder"):
        load_dataset(tmp_path / "nothing.zip")


# ---- the parsed copy ----


def test_the_second_load_does_not_parse(tmp_path, monkeypatch):
    folder = write(tmp_path)
    first = load_dataset(folder)
    monkeypatch.setattr("tapnet.io.load.read_layout", lambda *_, **__: pytest.fail("parsed again"))
    second = load_dataset(folder)
    assert second.checksum == first.checksum
    assert second.categories == first.categories
    assert second.edge_attributes.tolist() == first.edge_attributes.tolist()


def test_a_changed_file_is_parsed_again(tmp_path):
    folder = write(tmp_path)
    assert load_dataset(folder).num_edges == 6
    write(tmp_path, A="1, 2\n", edge_labels=None, edge_attributes=None)
    (folder / "SMALL_edge_labels.txt").unlink()
    (folder / "SMALL_edge_attributes.txt").unlink()
    assert load_dataset(folder).num_edges == 2


def test_a_damaged_parsed_copy_is_not_believed(tmp_path):
    folder = write(tmp_path)
    load_dataset(folder)
    (copy,) = (tmp_path / "cache" / "parsed").glob("*.npz")
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 255
    copy.write_bytes(content)
    assert load_dataset(folder).num_edges == 6
    copy.write_bytes(content[: len(content) // 2])
    assert load_dataset(folder).num_edges == 6


def test_nothing_half_read_is_cached(tmp_path):
    folder = write(tmp_path, edge_attributes="1\n")
    with pytest.raises(DataError):
        load_dataset(folder)
    assert not list((tmp_path / "cache").rglob("*.npz"))


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "file" / "below"))
    assert len(load_dataset(write(tmp_path))) == 2


def test_features_can_be_chosen_and_are_not_cached(tmp_path):
    folder = write(tmp_path)
    assert load_dataset(folder, features="attributes").x.shape == (6, 2)
    assert load_dataset(folder, features="degrees").categories == (0, 1, 2)
    assert load_dataset(folder).features == "labels"
    assert cache.load(layout_of(folder)).features == "labels"


# ---- the download ----


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A web server over ``served``, which a test fills; ``cut`` makes it hang up half-way."""
    served = tmp_path / "served"
    served.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        cut = False

        def __init__(self, *args):
            super().__init__(*args, directory=str(served))

        def copyfile(self, source, outputfile):
            content = source.read()
            outputfile.write(content[: len(content) // 2] if self.cut else content)

        def log_message(self, *_):
            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as tcp:
        threading.Thread(target=tcp.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{tcp.server_address[1]}"
        monkeypatch.setenv("TAPNET_TU_URL", url)
        monkeypatch.setenv("TAPNET_PTC_URL", f"{url}/PTC.txt")
        yield served, Handler
        tcp.shutdown()


def write_like(entry, file: Path) -> None:
    """A text with as many graphs and classes as the paper's set has, each graph a single edge."""
    graphs = [f"2 {g % entry.classes}\n0 1 1\n1 1 0\n" for g in range(entry.graphs)]
    file.write_text(f"{entry.graphs}\n" + "".join(graphs))


def downloads(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache" / "downloads"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_a_download_that_arrives_is_used_and_kept(tmp_path, server):
    served, _ = server
    archive(write(tmp_path / "made"), served / "SMALL.zip")
    write_like(CATALOG["PTC"], served / "PTC.txt")
    assert load_dataset("SMALL").place == "download"
    assert load_dataset("PTC").name == "PTC"
    shutil.rmtree(served)
    assert load_dataset("SMALL").place == "cache"
    assert downloads(tmp_path) == ["PTC.txt", "PTC.txt.sha256", "SMALL.zip", "SMALL.zip.sha256"]


def test_a_download_that_changed_on_the_disk_is_not_parsed(tmp_path, server):
    served, _ = server
    archive(write(tmp_path / "made"), served / "SMALL.zip")
    load_dataset("SMALL")
    kept = tmp_path / "cache" / "downloads" / "SMALL.zip"
    archive(write(tmp_path / "other", A="1, 2\n", edge_labels=None, edge_attributes=None), kept)
    with pytest.raises(DataError, match="SMALL.zip: has changed since it was downloaded"):
        load_dataset("SMALL")
    kept.unlink()
    assert load_dataset("SMALL").num_edges == 6


def test_a_download_shows_a_bar_on_a_terminal_and_takes_it_away(tmp_path, server):
    served, _ = server
    archive(write(tmp_path / "made"), served / "SMALL.zip")
    code, shown = run_on_terminal("from tapnet import load_dataset; load_dataset('SMALL')")
    assert code == 0, shown
    assert b"downloading SMALL.zip" in shown
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") > 0


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("TAPNET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert cache_dir() == tmp_path / "xdg" / "tapnet"


def test_the_collections_own_name_is_asked_for(tmp_path, server):
    served, _ = server
    text = tmp_path / "REDDIT-MULTI-5K.txt"
    write_like(CATALOG["REDDIT-MULTI5K"], text)
    with zipfile.ZipFile(served / "REDDIT-MULTI-5K.zip", "w") as out:
        out.write(text, text.name)
    assert load_dataset("REDDIT-MULTI5K").name == "REDDIT-MULTI5K"


def test_a_download_that_is_cut_off_leaves_nothing(tmp_path, server):
    served, handler = server
    archive(write(tmp_path / "made"), served / "SMALL.zip")
    (served / "PTC.txt").write_text(GOOD_TEXT)
    handler.cut = True
    for name in ("SMALL", "PTC"):
        with pytest.raises(DownloadError, match="cut off|IncompleteRead"):
            load_dataset(name)
    assert downloads(tmp_path) == []


def test_a_download_of_something_else_leaves_nothing(tmp_path, server):
    served, _ = server
    (served / "SMALL.zip").write_text("<html>sign in first</html>")
    (served / "PTC.txt").write_text("<html>sign in first</html>")
    with zipfile.ZipFile(served / "OTHER.zip", "w") as out:
        out.writestr("OTHER/readme.md", "no graphs here")
    archive(write(tmp_path / "made"), served / "DD.zip")
    archive(write(tmp_path / "made"), served / "UNKNOWN.zip")
    for name in ("SMALL", "PTC", "OTHER", "DD", "UNKNOWN"):
        with pytest.raises(DownloadError, match=r"what arrived is not the data set \(.*" + name):
            load_dataset(name)
    assert downloads(tmp_path) == []


@pytest.mark.parametrize("name", ["ENZYMES", "NCI1"])
def test_a_copy_of_the_collections_archive_arrives_byte_for_byte(tmp_path, server, real_data, name):
    shutil.copy(real_data / f"{name}.zip", server[0])
    entry, dataset = find_entry(name), load_dataset(name)
    assert dataset.place == "download"
    assert (tmp_path / "cache" / "downloads" / f"{name}.zip").read_bytes() == (real_data / f"{name}.zip").read_bytes()
    assert dataset.checksum == load_dataset(name, real_data).checksum
    assert entry is None or len(dataset) == entry.graphs


@pytest.mark.parametrize(
    ("limit", "head", "body", "seconds", "reason"),
    [
        ({"SLOW_SECONDS": 0.3, "SLOWEST_BYTES": 1000}, b"Content-Length: 9999\r\n", b"PK", 0.05, "too slow"),
        ({"WHOLE_SECONDS": 0.3}, b"", b"PK" * 1000, 0.05, "too slow"),
        ({"SILENT_SECONDS": 0.3}, b"", b"", 9, "timed out"),
        ({"MAX_UNANNOUNCED_BYTES": 1 << 20}, b"", b"PK" * 50_000, 0, "larger than 1 MB"),
        ({}, b"Content-Length: 99999999999\r\n", b"PK", 0.05, "larger than 1024 MB"),
        ({}, b"", bytes(100_000), 0, "is no .zip archive"),
        ({}, b"Content-Encoding: gzip\r\n", b"\x1f\x8b" * 1000, 0, "is no .zip archive"),
    ],
)
def test_a_server_that_is_slow_or_never_ends_is_given_up(tmp_path, monkeypatch, limit, head, body, seconds, reason):
    taken = []

    class Endless(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(1 << 16)
            self.request.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
            with contextlib.suppress(OSError):  # the client has left
                while not given_up.wait(seconds):
                    self.request.sendall(body)
                    taken.append(len(body))

    for name, value in limit.items():
        monkeypatch.setattr(f"tapnet.io.download.{name}", value)
    given_up = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as tcp:
        threading.Thread(target=tcp.serve_forever, daemon=True).start()
        monkeypatch.setenv("TAPNET_TU_URL", f"http://127.0.0.1:{tcp.server_address[1]}")
        begin = time.monotonic()
        with pytest.raises(DownloadError, match=reason):
            load_dataset("SMALL")
        assert time.monotonic() - begin < 5
        given_up.set()
        tcp.shutdown()
    assert sum(taken) < 16 << 20  # with what is on its way
    assert downloads(tmp_path) == []


def test_a_pipe_in_the_place_of_a_checksum_keeps_no_one_waiting(tmp_path, server):
    archive(write(tmp_path / "made"), server[0] / "SMALL.zip")
    load_dataset("SMALL")
    shutil.rmtree(tmp_path / "cache" / "parsed")
    note = tmp_path / "cache" / "downloads" / "SMALL.zip.sha256"
    note.unlink()
    os.mkfifo(note)
    assert load_dataset("SMALL").place == "cache"


def test_a_name_that_the_collection_does_not_have(tmp_path, server):
    with pytest.raises(DatasetNotFoundError, match="Nor is it at http"):
        load_dataset("NOWHERE")


def test_without_a_network_the_message_says_what_to_do(tmp_path):
    with pytest.raises(DownloadError, match=r"data_dir or TAPNET_DATA.*failed: .*refused"):
        load_dataset("REDDIT-MULTI12K")
    assert downloads(tmp_path) == []


# ---- the catalogue ----


def test_the_catalogue_has_the_papers_ten_sets_under_all_their_names():
    assert len(CATALOG) == 10
    assert find_entry("reddit-multi-12k") is find_entry("REDDIT-MULTI12K") is CATALOG["REDDIT-MULTI12K"]
    names = [name for entry in CATALOG.values() for name in entry.names]
    assert len(names) == len(set(names))


def test_a_mean_may_be_rounded_or_cut():
    entry = CATALOG["PTC"]
    assert Statistics(344, 25.56, 26, 2).differences(entry) == []
    assert Statistics(344, 25.46, 26, 2).differences(entry) == []
    assert Statistics(344, 14.29, 14, 2).differences(entry) == ["25.5 nodes in the paper"]
    assert len(Statistics(343, 14.29, 14, 3).differences(entry)) == 3


def test_mutag_is_that_of_grakel():
    """The folds of a trial are drawn over these graphs in this order."""
    grakel = pytest.importorskip("grakel")  # has wheels up to Python 3.12
    with zipfile.ZipFile(load_dataset("MUTAG").source) as packed:
        for file in (Path(grakel.__file__).parent / "tests" / "data" / "MUTAG").glob("MUTAG_*.txt"):
            assert packed.read(f"MUTAG/{file.name}") == file.read_bytes()
        assert "Debnath" in packed.read("MUTAG/README.txt").decode()


def test_mutag_has_element_names():
    dataset = load_dataset("MUTAG")
    assert dataset.category_names == ("C", "N", "O", "F", "I", "Cl", "Br")
    assert dataset.class_names == ("not mutagenic", "mutagenic")
    assert dataset.subset([0]).category_names == dataset.category_names
    assert load_dataset("MUTAG", features="degrees").category_names == ("1", "2", "3", "4")


# graphs, mean nodes, mean edges, classes, features: as counted when the archives were packed
REAL = {
    "MUTAG": (188, 17.93, 19.79, 2, 7),
    "PTC": (344, 25.56, 25.96, 2, 19),
    "PROTEINS": (1113, 39.06, 72.82, 2, 3),
    "DD": (1178, 284.32, 715.66, 2, 82),
    "IMDB-BINARY": (1000, 19.77, 96.53, 2, 65),
    "IMDB-MULTI": (1500, 13.00, 65.94, 3, 59),
    "REDDIT-BINARY": (2000, 429.63, 497.75, 2, 566),
    "COLLAB": (5000, 74.49, 2457.50, 3, 367),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n == "COLLAB" else []) for n in REAL])
def test_the_real_archives_have_the_known_numbers(real_data, name):
    dataset = load_dataset(name, real_data)
    found = Statistics.of(dataset)
    measured = (found.graphs, round(found.mean_nodes, 2), round(found.mean_edges, 2), found.classes)
    assert (*measured, dataset.num_features) == REAL[name]
    assert found.differences(CATALOG[name]) == []
    assert CATALOG[name].largest_class == round(100 * int(dataset.y.bincount().max()) / len(dataset), 1)
    if name == "REDDIT-BINARY":
        assert int((dataset.degree == 0).sum()) == 21


def test_both_copies_of_mutag_are_the_same_molecules(real_data):
    ours, theirs = load_dataset("MUTAG"), load_dataset("MUTAG", real_data)
    assert ours.place != theirs.place
    assert sorted(ours.category_names) == sorted(theirs.category_names)
    unmatched = molecules(theirs)
    for mine in molecules(ours):
        twin = next(
            m for m in unmatched if m[:2] == mine[:2] and nx.is_isomorphic(m[2], mine[2], node_match=dict.__eq__)
        )
        unmatched.remove(twin)
    assert unmatched == []


def molecules(dataset) -> list[tuple[str, str, nx.Graph]]:
    """Per graph its class, a hash that isomorphic graphs share, and the graph with elements on its nodes."""
    found = []
    for i in range(len(dataset)):
        data, graph = dataset[i], nx.Graph()
        graph.add_nodes_from((n, {"element": dataset.category_names[c]}) for n, c in enumerate(data.x.tolist()))
        graph.add_edges_from(data.edge_index.T.tolist())
        digest = nx.weisfeiler_lehman_graph_hash(graph, node_attr="element", iterations=4)
        found.append((dataset.class_names[int(data.y)], digest, graph))
    return found


@pytest.mark.slow
def test_graphs_of_the_size_of_reddit_multi12k(tmp_path):
    """The two sets that are not at hand have 11,929 graphs of 391 nodes: sizes as in the paper, trees as graphs."""
    entry = CATALOG["REDDIT-MULTI12K"]
    rng = np.random.default_rng(0)
    sizes = rng.geometric(1 / entry.mean_nodes, entry.graphs)
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    within = np.arange(sizes.sum()) - start
    parent = start + (rng.random(len(within)) * within).astype(np.int64)
    edges = np.stack([np.flatnonzero(within), parent[within > 0]])
    dataset = assemble(name="BIG", nodes_per_graph=sizes, edge_index=edges, y=rng.integers(0, 11, entry.graphs))
    assert dataset.num_edges == 2 * (len(within) - entry.graphs)
    write_tu(dataset, tmp_path / "BIG")
    back = load_dataset(tmp_path / "BIG")
    assert back.checksum == dataset.checksum
    assert load_dataset(tmp_path / "BIG").checksum == dataset.checksum  # from the parsed copy
    assert back.batch(range(64)).num_nodes == int(sizes[:64].sum())


def test_loading_shows_no_progress_where_nobody_watches(tmp_path, capsys):
    load_dataset(write(tmp_path))
    assert capsys.readouterr().err == ""


# ---- what is in memory ----

TINY = {"folds": 3, "epochs": 1, "jobs": 1}


class Collection(InMemoryDataset):
    """Graphs as PyG's TUDataset and OGB's PygGraphPropPredDataset hold them."""

    name = "collection"

    def __init__(self, graphs):
        super().__init__()
        self.data, self.slices = self.collate(graphs)


class Split(Collection):
    def get_idx_split(self):
        return {"train": torch.arange(100), "valid": torch.arange(100, 140), "test": torch.arange(140, 188)}


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def pyg(mutag):
    return [Data(x=g.x, edge_index=g.edge_index, y=g.y) for g in mutag]


def test_graphs_in_memory_are_the_data_set_that_they_are(mutag, pyg):
    pairs = [
        ({"edge_index": g.edge_index.numpy(), "edge_feat": None, "node_feat": g.x.numpy(), "num_nodes": 0}, g.y.numpy())
        for g in pyg
    ]
    for graph, _ in pairs:
        graph["num_nodes"] = len(graph["node_feat"])
    held = (Collection(pyg), pyg, tuple(pyg), pairs, mutag)
    assert [load_dataset(graphs).checksum for graphs in held] == [mutag.checksum] * len(held)
    named = load_dataset([mutag.to_networkx(i) for i in range(len(mutag))])  # which are called C, N and so on
    assert [named.categories[i] for i in named.x] == [mutag.category_names[i] for i in mutag.x]
    assert replace(named, x=mutag.x).checksum == mutag.checksum
    assert load_dataset(Collection(pyg)).name == "collection"
    assert load_dataset(pyg, features="degrees").checksum == mutag.with_features("degrees").checksum
    assert load_dataset(mutag, features="degrees").features == "degrees"


def test_every_function_takes_graphs_in_memory(mutag, pyg):
    named = tapnet.cross_validate(mutag, "bag", **TINY)
    assert tapnet.cross_validate(Collection(pyg), "bag", **TINY).scores == named.scores
    assert tapnet.compare(pyg, ["bag"], **TINY)["bag"].scores == tuple(named.scores)
    assert tapnet.tune(pyg, "bag", configs=1, **TINY).dataset == "graphs"


def test_a_data_set_keeps_its_own_split_for_those_who_ask(pyg):
    graphs = Split(pyg)
    with pytest.warns(DataNote, match="a split of its own .train, valid, test.: split='column:split'"):
        found = tapnet.cross_validate(graphs, "bag", split="column:split", **TINY)
    assert [part.test.tolist() for part in found.splits] == [list(range(140, 188))]
    assert load_dataset(graphs[:50]).graph_columns is None  # the numbers are those of all graphs


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "a data set is a name, a path, .* not int"),
        (None, "a column of SMILES or of such graphs, not NoneType"),
        ({"y": [1]}, "not dict"),
        (iter([]), "not list_iterator"),
        ([], "the list is empty"),
        ([1, 2], "graph 0 is neither a NetworkX graph nor a PyG Data nor a SMILES but int"),
        (np.zeros((3, 3)), "not as ndarray of shape"),
        (nx.path_graph(3), "one graph is not a list"),
        (Data(edge_index=torch.zeros(2, 0).long(), num_nodes=1), "one graph is not a list"),
        ([nx.path_graph(3)], r'graph 0 has no class: set graph.graph\["y"\], or give y to GraphDataset.from_networkx'),
        ([Data(edge_index=torch.zeros(2, 0).long(), num_nodes=1)], "graph 0: y is its class"),
        ([({"edge_index": np.zeros((2, 0), int), "num_nodes": 2}, ["a", "name"])], "graph 0: y is its class"),
    ],
)
def test_what_is_no_data_set_is_said_in_one_sentence(given, words):
    with pytest.raises(DataError, match=words):
        load_dataset(given)


def test_attributes_of_graphs_in_memory_are_there_if_they_are_named():
    graphs = [nx.path_graph(3), nx.cycle_graph(3)]
    for y, graph in enumerate(graphs):
        graph.graph["y"] = y
        nx.set_node_attributes(graph, {n: "ac"[n % 2] for n in graph}, "label")
        nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, "b"), "label")
    found = load_dataset(graphs)
    assert (found.features, found.edge_label_values) == ("labels", ("b",))
    none = load_dataset(graphs, node_label=[], edge_label=[])
    assert (none.features, none.edge_labels) == ("degrees", None)
    with pytest.raises(DataError, match="node 0 has no attribute 'kind'"):
        load_dataset(graphs, node_label="kind")
    with pytest.raises(DataError, match="no attribute 'order'"):
        load_dataset(graphs, edge_label="order")
    with pytest.raises(SettingError, match="node_label names an attribute"):
        load_dataset(graphs, node_label=3)
    model = TAPClassifier(epochs=1, node_label=[], edge_label=[]).fit(graphs, [0, 1])
    assert model.predict(graphs).shape == (2,)


def test_options_of_files_are_not_for_graphs_in_memory(mutag, pyg):
    with pytest.raises(SettingError, match="target is for tables and files, and this is a list"):
        load_dataset(pyg, target="y")
    with pytest.raises(SettingError, match="MUTAG is a data set already"):
        load_dataset(mutag, directed=True)
    assert load_dataset(pyg, task="regression").task == "regression"
    assert load_dataset(pyg, directed=True).directed
