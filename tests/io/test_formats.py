"""Files read and checked: what is written comes back, and what is wrong is named by file, line and reason."""

import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tapnet.errors import DataError
from tapnet.io import text
from tapnet.io.read import read
from tests.helpers.graphs import assert_same, datasets
from tests.helpers.tu_files import GOOD, GOOD_TEXT, archive, run_on_terminal, write
from tests.helpers.writers import write_text, write_tu


@given(datasets())
def test_tu_files_come_back_as_they_were_written(tmp_path_factory, dataset):
    assume(dataset.num_edges > 0)
    folder = tmp_path_factory.mktemp("tu")
    write_tu(dataset, folder)
    assert_same(dataset, read(folder, features=dataset.features))


@given(datasets(labels=True, edge_data=False, loops=False))
def test_text_files_come_back_as_they_were_written(tmp_path_factory, dataset):
    file = tmp_path_factory.mktemp("text") / "RANDOM.txt"
    write_text(dataset, file)
    dataset = dataset.with_features("labels")
    assert_same(dataset, read(file, features="labels"))


def test_folder_archive_and_text_are_the_same_data(tmp_path):
    folder = write(tmp_path, edge_labels=None, edge_attributes=None, node_attributes=None)
    (tmp_path / "SMALL.txt").write_text(GOOD_TEXT)
    from_folder = read(folder)
    assert_same(from_folder, read(archive(folder, tmp_path / "SMALL.zip")))
    assert_same(from_folder, read(tmp_path / "SMALL.txt"))
    assert from_folder.name == "SMALL"
    assert from_folder.classes == (-1, 1)
    assert from_folder.categories == (0, 1, 3)


def test_every_part_is_kept(tmp_path):
    dataset = read(write(tmp_path))
    assert dataset.node_attributes.tolist()[1] == [-1000, 2]
    assert dataset.edge_labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert dataset.edge_attributes.tolist() == [[1], [1], [2], [2], [3], [3]]
    assert dataset[1].edge_attributes.tolist() == [[2], [2], [3], [3]]


def test_nodes_of_a_graph_need_not_stand_together(tmp_path):
    scattered = write(
        tmp_path / "a", graph_indicator="1\n2\n1\n2\n1\n2\n", A="1, 3\n2, 4\n6, 4\n", edge_labels=None,
        edge_attributes=None, node_labels="0\n10\n1\n11\n2\n12\n", node_attributes=None,
    )  # fmt: skip
    dataset = read(scattered)
    assert [dataset.categories[i] for i in dataset.x.tolist()] == [0, 1, 2, 10, 11, 12]
    assert dataset[0].edge_index.tolist() == [[0, 1], [1, 0]]
    assert dataset[1].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_labels_of_several_columns_are_one_category_each(tmp_path):
    dataset = read(write(tmp_path, node_labels="0, 1\n0, 0\n1, 1\n0, 1\n0, 0\n0, 0\n"))
    assert dataset.categories == ((0, 0), (0, 1), (1, 1))
    assert dataset.x.tolist() == [1, 0, 2, 1, 0, 0]


def test_windows_line_ends_and_blank_lines_are_no_mistake(tmp_path):
    dataset = read(write(tmp_path, A=GOOD["A"].replace("\n", "\r\n") + "\r\n\r\n"))
    assert dataset.num_edges == 6


@pytest.mark.parametrize(
    ("part", "text", "reason"),
    [
        ("A", "1, 2\n2, 1\n3, 7\n", r"SMALL_A.txt:3: edge 3, 7: the nodes are 1 to 6"),
        ("A", "1, 2\n\n0, 1\n", r"SMALL_A.txt:3: edge 0, 1: the nodes are 1 to 6"),
        ("A", "1, 2\n3, 4\n", r"SMALL_A.txt:2: edge 3, 4 joins graph 1 and graph 2"),
        ("A", "1, 2\n2, x\n", r"SMALL_A.txt:2: 'x' where a whole number belongs"),
        ("A", "1, 2\n2, 1.5\n", r"SMALL_A.txt:2: '1.5' where a whole number belongs"),
        ("A", "1, 2\n2\n", r"SMALL_A.txt:2: 1 value where 2 belong"),
        ("A", "1, 2, 3\n2, 1, 3\n", r"SMALL_A.txt:1: 3 values where 2 belong"),
        ("A", "1, 99999999999999999999\n", r"SMALL_A.txt:1: 99999999999999999999 is too large"),
        ("A", "1, 2\n   \n2, 1\n", r"SMALL_A.txt:2: 1 value where 2 belong"),
        ("A", "1, 2\n2, 1_0\n", r"SMALL_A.txt:2: '1_0' where a whole number belongs"),
        ("A", "", r"SMALL_A.txt: the file is empty"),
        ("A", "\n\n", r"SMALL_A.txt: the file is empty"),
        ("A", None, r"SMALL_A.txt: this file is missing"),
        ("graph_indicator", "1\n1\n1\n2\n2\n3\n", r"SMALL_graph_indicator.txt:6: graph 3, but .* graphs 1 to 2"),
        ("graph_indicator", "1\n1\n1\n2\n2\n0\n", r"SMALL_graph_indicator.txt:6: graph 0"),
        ("graph_indicator", "1\n1\n1\n2\n2\n", r"SMALL_A.txt:5: edge 5, 6: the nodes are 1 to 5"),
        ("graph_labels", "", r"SMALL_graph_labels.txt: the file is empty"),
        ("graph_labels", "yes\nno\n", r"SMALL_graph_labels.txt:1: 'yes' where a whole number belongs"),
        ("node_labels", "0\n1\n2\n", r"SMALL_node_labels.txt: 3 lines for 6 nodes"),
        ("node_attributes", "1\n2\n3\nnan\n5\n6\n", r"SMALL_node_attributes.txt:4: NaN or infinite"),
        ("node_attributes", "1\n2\n3\n4\n-inf\n6\n", r"SMALL_node_attributes.txt:5: NaN or infinite"),
        ("node_attributes", "1\n2\n3, 3\n4\n5\n6\n", r"SMALL_node_attributes.txt:3: 2 values where 1 belong"),
        ("edge_labels", "0\n0\n", r"SMALL_edge_labels.txt: 2 lines for 6 edges"),
        ("edge_attributes", "1\n1\n2\n2\n3\nthree\n", r"SMALL_edge_attributes.txt:6: 'three' where a number belongs"),
    ],
)
def test_what_is_wrong_in_a_tu_file_is_named(tmp_path, part, text, reason):
    folder = write(tmp_path, **{part: text})
    with pytest.raises(DataError, match=reason):
        read(folder)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("2 2\n", "SMALL.txt:1: 2 values where the number of graphs belongs"),
        ("x\n", "SMALL.txt:1: 'x' where a number belongs"),
        ("1\n2 0\n0 1 1\n0 1 0_0\n", "SMALL.txt:4: '0_0' where a number belongs"),
        ("1\n2 0\n0 1 1 1e39\n0 1 0 1\n", "SMALL.txt:3: NaN or infinite"),
        ("1\n2 0\n0 1 1\n0 1 zero\n", "SMALL.txt:4: 'zero' where a number belongs"),
        ("1\n2 0\n0 1 1\n0 1 0.5\n", "SMALL.txt:4: 0.5 where a whole number belongs"),
        ("1\n2 0\n0 1 1\n0 1 2\n", "SMALL.txt:4: neighbour 2, but the graph's nodes are 0 to 1"),
        ("1\n2 0\n0 1 1\n0 2 0\n", "SMALL.txt:4: 2 neighbours announced, 1 values follow"),
        ("1\n2 0\n0 1 1\n0\n", "SMALL.txt:4: a node's line begins with 'tag degree'"),
        ("1\n2 0\n0 1 1 0.5\n0 1 0\n", "SMALL.txt:4: 0 attributes where the first node has 1"),
        ("1\n2 0\n0 1 1 0.5\n0 1 0 nan\n", "SMALL.txt:4: NaN or infinite"),
        ("1\n2 0 0\n0 1 1\n0 1 0\n", "SMALL.txt:2: 3 values where graph 1 should begin with 'n label'"),
        ("1\n0 1\n", "SMALL.txt:2: graph 1 has 0 nodes"),
        ("2\n2 0\n0 1 1\n0 1 0\n", "SMALL.txt: ends before graph 2 of 2"),
        ("1\n3 0\n0 1 1\n0 1 0\n", "SMALL.txt: ends before the last node of graph 1"),
        ("1\n2 0\n0 1 1\n0 1 0\n1 0\n", "SMALL.txt:5: more lines than the 1 graphs"),
        ("99999999999\n2 0\n0 1 1\n0 1 0\n", "ends before graph 2"),
        ("0\n", "has no graphs"),
    ],
)
def test_what_is_wrong_in_a_text_file_is_named(tmp_path, text, reason):
    file = tmp_path / "SMALL.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=reason):
        read(file)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    folder = write(tmp_path)
    (folder / "SMALL_A.txt").write_bytes(b"1, 2\n\xff\xfe, 1\n")
    (tmp_path / "SMALL.txt").write_bytes(b"\xff\xfe1\n")
    for path in (folder, tmp_path / "SMALL.txt"):
        with pytest.raises(DataError, match=r"txt:(1|2): not plain text"):
            read(path)


def test_a_truncated_archive_is_refused_wherever_it_ends(tmp_path):
    whole = archive(write(tmp_path), tmp_path / "SMALL.zip").read_bytes()
    cut = tmp_path / "CUT.zip"
    for tenth in range(10):
        cut.write_bytes(whole[: len(whole) * tenth // 10])
        with pytest.raises(DataError, match="CUT.zip"):
            read(cut)


def test_a_damaged_archive_is_refused_or_read_rightly_whatever_byte_it_is(tmp_path):
    folder = write(tmp_path)
    good = archive(folder, tmp_path / "SMALL.zip").read_bytes()
    right, file, refused = read(folder), tmp_path / "BAD.zip", 0
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 255
        file.write_bytes(damaged)
        try:
            found = read(file)  # a byte that does not matter, such as a date's or an optional file's name
            assert torch.equal(found.col, right.col)
            assert torch.equal(found.y, right.y)
        except DataError:
            refused += 1
    assert refused > len(good) / 2


@pytest.mark.parametrize("entry", ["../outside.txt", "/etc/outside.txt", "SMALL/../../x", "..\\x", "C:/x"])
def test_an_archive_that_leaves_its_folder_is_not_opened(tmp_path, entry):
    file = archive(write(tmp_path), tmp_path / "SMALL.zip")
    with zipfile.ZipFile(file, "a") as out:
        out.writestr(entry, "1")
    with pytest.raises(DataError, match="leaves the folder"):
        read(file)


def test_an_archive_that_unpacks_to_too_much_is_not_opened(tmp_path):
    file = tmp_path / "SMALL.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("SMALL/SMALL_A.txt", b"\n" * (70 << 20))
    with pytest.raises(DataError, match="refused"):
        read(file)


def test_a_folder_without_graphs_says_what_belongs_there(tmp_path):
    with pytest.raises(DataError, match="the folder is empty"):
        read(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"")
    with pytest.raises(DataError, match="neither a TU data set"):
        read(tmp_path)
    (tmp_path / "X_A.txt").write_text("1, 2\n")
    with pytest.raises(DataError, match="X_graph_indicator.txt is missing"):
        read(tmp_path)


def test_a_text_beside_graphs_is_a_data_set_only_if_it_begins_as_one(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 3)))
    (tmp_path / "notes.txt").write_text("\nfirst measured in May\n")
    found = read(tmp_path)
    assert found.graph_names == ("a.npy",)
    assert any("left aside: notes.txt, no graph file (" in note for note in found.notes)
    (tmp_path / "set.txt").write_text("\n" + GOOD_TEXT)
    assert read(tmp_path).name == "set"


def test_of_several_data_sets_the_one_with_the_folders_name_is_meant(tmp_path):
    write(tmp_path)
    (tmp_path / "LICENSE.txt").write_text("free")
    (tmp_path / "SMALL" / "._SMALL_graph_indicator.txt").write_text("")
    assert read(tmp_path).name == "SMALL"
    write(tmp_path / "x").rename(tmp_path / "OTHER")
    for file in (tmp_path / "OTHER").iterdir():
        file.rename(file.with_name(file.name.replace("SMALL", "OTHER")))
    with pytest.raises(DataError, match=r"several data sets \(OTHER, SMALL\)"):
        read(tmp_path)
    assert read(tmp_path / "OTHER").name == "OTHER"


def test_reading_shows_a_bar_on_a_terminal_and_takes_it_away(tmp_path):
    """With a file long enough for a bar: the cursor that was hidden comes back."""
    code = "import sys; from pathlib import Path; from tapnet import progress; progress.LONG_BYTES = 1\n"
    code += "from tapnet.io.read import read; read(Path(sys.argv[1]))"
    code, shown = run_on_terminal(code, str(write(tmp_path)))
    assert code == 0
    assert b"SMALL_A.txt" in shown
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") > 0


def test_reading_equals_pyg_on_cuneiform_with_all_its_parts(tmp_path):
    """GraKeL ships a set with two columns of node labels, node and edge attributes, and edge labels."""
    grakel = pytest.importorskip("grakel")  # has wheels up to Python 3.12
    compare_with_pyg(Path(grakel.__file__).parent / "tests" / "data" / "Cuneiform", "Cuneiform")


LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("DD", "REDDIT-BINARY", "COLLAB")]


@pytest.mark.parametrize("name", ["MUTAG", "PTC", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI", *LARGE])
def test_reading_equals_pyg_on_the_real_archives(real_data, tmp_path, name):
    with zipfile.ZipFile(real_data / f"{name}.zip") as packed:
        packed.extractall(tmp_path)
    compare_with_pyg(tmp_path / name, name)


def compare_with_pyg(folder: Path, name: str) -> None:
    from torch_geometric.io import read_tu_data

    ours = read(folder)
    theirs, slices, sizes = read_tu_data(str(folder), name)
    everything = ours.batch(range(len(ours)))
    local = torch.stack([everything.edge_index[0], ours.col.long()])
    local[0] -= everything.ptr[everything.graph[everything.edge_index[0]]]
    assert torch.equal(local, theirs.edge_index)
    assert torch.equal(ours.rowptr[ours.node_ptr], slices["edge_index"])
    assert torch.equal(ours.y, theirs.y)
    attributes = sizes["num_node_attributes"]
    if attributes:
        torch.testing.assert_close(ours.node_attributes, theirs.x[:, :attributes], rtol=0, atol=0)
    if ours.node_labels is not None:
        one_hot = theirs.x[:, attributes:]
        _, theirs_numbers = np.unique(one_hot.numpy()[:, ::-1], axis=0, return_inverse=True)
        ours_rows = {tuple(r) for r in np.stack([ours.node_labels.numpy(), theirs_numbers.reshape(-1)], 1).tolist()}
        assert len(ours_rows) == len(ours.node_label_values) == len(np.unique(theirs_numbers))
    if ours.edge_attributes is not None:
        width = sizes["num_edge_attributes"]
        torch.testing.assert_close(ours.edge_attributes, theirs.edge_attr[:, :width], rtol=0, atol=0)
        assert torch.equal(ours.edge_labels, theirs.edge_attr[:, width:].argmax(1))


# ---- archives that others packed ----


def names_in_archive(name):
    """How tools and collections name the files of a data set inside an archive."""
    return {
        "two slashes": f"SMALL//{name}",
        "dot": f"./SMALL/{name}",
        "no top folder": name,
        "another top folder": f"data-2016/{name}",
        "upper case": f"SMALL/{name.upper()}",
        "lower case": f"SMALL/{name.lower()}",
        "backslashes": f"SMALL\\{name}",
    }


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([c + "/" + "a/" * 30_000 + "x.txt" for c in "abcd"], "10 folders deep"),
        (["a" * 1001], "1,000 characters"),
        (["a\\" * 11 + "x"], "10 folders deep"),
        ([f"{i}" for i in range(100_001)], "100,001 entries"),
        ([f"f{i}/x.txt" for i in range(3_000)], "several data sets"),
    ],
)
def test_an_archive_of_many_or_deep_entries_is_refused_in_time(tmp_path, entries, reason):
    """Going through all entries for each of 3,000 folders took 47 seconds, the parents of four deep names 3 GB."""
    file = tmp_path / "SMALL.zip"
    with zipfile.ZipFile(file, "w") as out:
        for name in entries:
            out.writestr(zipfile.ZipInfo(name), b"")
    begin = time.process_time()
    with pytest.raises(DataError, match=reason) as error:
        read(file)
    assert len(str(error.value)) < 400
    assert time.process_time() - begin < 6


def test_the_list_of_entries_of_an_archive_is_not_read_if_it_is_too_long(tmp_path, monkeypatch):
    file = archive(write(tmp_path), tmp_path / "SMALL.zip")
    monkeypatch.setattr("tapnet.io.archive.MAX_DIRECTORY_BYTES", 200)
    with pytest.raises(DataError, match="list of entries"):
        read(file)


def test_folders_that_hold_no_data_set_do_no_harm(tmp_path):
    file = archive(write(tmp_path), tmp_path / "SMALL.zip")
    expected = read(file)
    with zipfile.ZipFile(file, "a") as out:
        for i in range(300):
            out.writestr(f".git/objects/{i}/a/b", b"x")
    assert_same(read(file), expected)


@pytest.mark.parametrize("packed", names_in_archive(""))
def test_archives_are_read_as_unzip_reads_them(tmp_path, packed):
    expected = read(write(tmp_path / "plain"))
    with zipfile.ZipFile(tmp_path / "SMALL.zip", "w") as archive:
        for file in sorted((tmp_path / "plain").glob("**/*.txt")):
            archive.writestr(names_in_archive(file.name)[packed], file.read_bytes())
            archive.writestr(f"__MACOSX/SMALL/._{file.name}", b"\x00\x05\x16\x07")
    assert_same(read(tmp_path / "SMALL.zip"), expected)


@pytest.mark.parametrize("name", ["../SMALL_A.txt", "/etc/SMALL_A.txt", "SMALL/../../SMALL_A.txt", "C:\\SMALL_A.txt"])
def test_an_archive_that_leaves_its_folder_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "SMALL.zip", "w") as archive:
        archive.writestr(name, "1, 2")
    with pytest.raises(DataError, match="leaves the folder"):
        read(tmp_path / "SMALL.zip")


@pytest.mark.parametrize(("name", "graphs"), [("NCI1", 4110), ("ENZYMES", 600)])
def test_the_collections_own_archives_are_read(real_data, name, graphs):
    assert len(read(real_data / f"{name}.zip")) == graphs


def test_graphs_without_nodes_are_left_out_and_counted(tmp_path):
    folder = write(tmp_path, graph_labels="-1\n1\n1\n")
    dataset = read(folder)
    assert len(dataset) == 2
    assert len(dataset.notes) == 1
    assert "1 of 3 graphs" in dataset.notes[0]


def test_labels_for_twice_as_many_graphs_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"SMALL_graph_labels.txt: 2 of 4 graphs have no nodes"):
        read(write(tmp_path, graph_labels="-1\n1\n-1\n1\n"))


numbers = st.integers(-1, 6)  # the nodes are 1 to 5, the first three of them of graph 1


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_the_first_edge_that_is_wrong_is_named_by_its_line(tmp_path_factory, edges):
    folder = tmp_path_factory.mktemp("tu") / "SMALL"
    folder.mkdir()
    (folder / "SMALL_A.txt").write_text("".join(f"{u}, {v}\n" for u, v in edges))
    (folder / "SMALL_graph_indicator.txt").write_text("1\n1\n1\n2\n2\n")
    (folder / "SMALL_graph_labels.txt").write_text("1\n-1\n")
    outside = [i for i, edge in enumerate(edges, start=1) if not all(1 <= node <= 5 for node in edge)]
    across = [i for i, (u, v) in enumerate(edges, start=1) if (u <= 3) != (v <= 3)]
    if not outside and not across:
        assert len(read(folder)) == 2
        return
    with pytest.raises(DataError, match=f"SMALL_A.txt:{(outside or across)[0]}: "):
        read(folder)


@given(st.lists(st.lists(st.integers(-1, 4), max_size=4), min_size=1, max_size=4), st.integers(-1, 1))
def test_a_text_is_read_if_every_neighbour_is_a_node_and_every_count_fits(tmp_path_factory, neighbours, more):
    file = tmp_path_factory.mktemp("text") / "T.txt"
    rows = [f"0 {len(near) + (more if i == 0 else 0)} {' '.join(map(str, near))}" for i, near in enumerate(neighbours)]
    file.write_text("\n".join(["1", f"{len(rows)} 7", *rows]) + "\n")
    right = more == 0 and all(0 <= node < len(rows) for near in neighbours for node in near)
    if more == -1 and len(rows) == 1 and len(neighbours[0]) > 0:
        right = all(0 <= node < 1 for node in neighbours[0][:-1])  # the last is an attribute
    if right:
        assert len(read(file)) == 1
        return
    with pytest.raises(DataError, match=r"T.txt:\d+: "):
        read(file)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    folder = write(tmp_path)
    plain = read(folder)
    for file in folder.iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    (tmp_path / "SMALL.txt").write_text(GOOD_TEXT, encoding="utf-8-sig")
    assert_same(read(folder), plain)
    assert len(read(tmp_path / "SMALL.txt")) > 0
    assert_same(read(archive(folder, tmp_path / "SMALL.zip")), plain)


def test_utf_16_is_said(tmp_path):
    folder = write(tmp_path)
    file = folder / "SMALL_A.txt"
    file.write_text(file.read_text(), encoding="utf-16")
    with pytest.raises(DataError, match=r"SMALL_A\.txt:1: not plain text: it is UTF-16"):
        read(folder)


def test_files_that_are_not_read_are_told_what_to_use(tmp_path):
    for name in ("graphs.pkl", "graphs.pt"):
        (tmp_path / name).write_bytes(b"PK\x03\x04")
        with pytest.raises(DataError, match=rf"{name}.*GraphDataset\.from_pyg"):
            read(tmp_path / name)
    with pytest.raises(DataError, match=r"graphs\.pkl.*GraphDataset\.from_pyg"):
        read(tmp_path)
    (tmp_path / "one.edgelist").write_text("0 1 {}\n1 2 {}\n")
    with pytest.raises(DataError, match=r"edgelist:1: .*text of GIN and DGCNN.*\.graphml"):
        read(tmp_path / "one.edgelist")


def test_several_texts_are_shown_in_short(tmp_path):
    for number in range(9):
        np.savetxt(tmp_path / f"s{number}.txt", np.eye(3))
    with pytest.raises(DataError, match=r"s0\.txt, s1\.txt, s2\.txt and 6 more.*matrices are \.csv"):
        read(tmp_path)


# ---- a text of more than fits into memory ----


@pytest.fixture
def large_text(monkeypatch, tmp_path):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))

    def read_in_parts(file, lines=6, whole=False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text, "LARGE_BYTES", 0)
            patch.setattr(text, "LINES_AT_ONCE", lines)
            if not whole:
                patch.setattr(text, "read_content", lambda *_: pytest.fail("read as a whole"))
            return read(file)

    return read_in_parts


@given(dataset=datasets(labels=True, edge_data=False, loops=False))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_text_in_parts_is_the_whole(large_text, tmp_path_factory, dataset):
    file = tmp_path_factory.mktemp("text") / "SMALL.txt"
    write_text(dataset, file)
    whole, found = read(file), large_text(file)
    assert_same(found, whole)
    assert found.checksum == whole.checksum


@pytest.mark.parametrize(
    "content",
    ["2\n1 0\n0 0\n", "1\n1 0\n0 0\n0 0\n", "x\n", "", "1\n1_0 0\n", "2\n1 0\n0 0\n2 1\n0 1 7\n0 0\n"],
)
def test_what_is_wrong_with_a_large_text_is_said_by_line(large_text, tmp_path, content):
    (tmp_path / "SMALL.txt").write_text(content)
    said = []
    for readers in (read, lambda file: large_text(file, whole=True)):
        with pytest.raises(DataError) as error:
            readers(tmp_path / "SMALL.txt")
        said.append(str(error.value))
    assert said[0] == said[1]
