"""Folders of adjacency matrices: formats, thresholds, tables of nodes and targets, and what is wrong with them."""

import csv
import io
import shutil
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from tapnet import load_dataset
from tapnet.errors import DataError, SettingError
from tapnet.io import matrices
from tapnet.io.dataset_files import layout_of
from tapnet.io.matrices import read_matrices, read_matrix
from tapnet.io.read import read, read_layout
from tests.helpers.graphs import assert_same

PATH = np.asarray([[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])
NUMBERS = ["0", "1", "2"]
RING = np.asarray([[9.0, 1, 3], [1, 9, 1], [3, 1, 9]])  # the diagonal does not count


def dense(dataset, graph=0):
    data, size = dataset[graph], int(dataset.nodes_per_graph[graph])
    found = np.zeros((size, size))
    found[tuple(data.edge_index.numpy())] = 1 if dataset.edge_weight is None else data.edge_weight.numpy()
    return found


def folder_of(tmp_path, targets=None, *, table="targets.csv", **entries):
    folder = tmp_path / "BRAINS"
    folder.mkdir(parents=True, exist_ok=True)
    for name, matrix in entries.items():
        np.save(folder / f"{name}.npy", matrix)
    if targets is not None:
        (folder / table).write_text(targets)
    return folder


@pytest.fixture(autouse=True)
def _notes_are_no_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


# ---- one matrix ----

FORMATS = {
    "a.npy": lambda file, m: np.save(file, m),
    "f.npy": lambda file, m: np.save(file, np.asfortranarray(m)),
    "a.npz": lambda file, m: np.savez(file, m),
    "b.npz": lambda file, m: np.savez_compressed(file, adjacency=m, subject=np.asarray([7])),
    "csr.npz": lambda file, m: sparse.save_npz(file, sparse.csr_array(m)),
    "csc.npz": lambda file, m: sparse.save_npz(file, sparse.csc_matrix(m)),
    "coo.npz": lambda file, m: sparse.save_npz(file, sparse.coo_array(m), compressed=False),
    "a.csv": lambda file, m: np.savetxt(file, m, delimiter=","),
    "semicolon.csv": lambda file, m: np.savetxt(file, m, delimiter=";"),
}


@pytest.mark.parametrize("name", FORMATS)
@given(
    st.integers(1, 5).flatmap(
        lambda n: arrays.arrays(np.float64, (n, n), elements=st.sampled_from([0, 1, -0.5, 2.25, 1e3]))
    )
)
@settings(max_examples=15)
def test_every_format_gives_the_entries_beside_the_diagonal(tmp_path_factory, name, matrix):
    file = tmp_path_factory.mktemp("m") / name
    FORMATS[name](file, matrix)
    found = read_matrix(file)
    back = np.zeros_like(matrix)
    back[tuple(found.edge_index)] = found.weight
    assert np.array_equal(back, matrix - np.diag(np.diag(matrix)))
    above = read_matrix(file, 1.0)
    assert (np.abs(above.weight) > 1).all()


@pytest.mark.parametrize("index", [True, False])
def test_a_csv_may_name_its_nodes(tmp_path, index):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PATH, index=list("xyz"), columns=list("xyz"))
    frame.to_csv(tmp_path / "a.csv", index=index)
    found = read_matrix(tmp_path / "a.csv")
    assert (found.size, found.names) == (3, ("x", "y", "z"))
    assert found.weight.tolist() == [2, 2, 0.5, 0.5]


def npz(**values):
    stream = io.BytesIO()
    np.savez(stream, **values)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def huge_header():
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    return stream.getvalue()


def header(shape):
    """An array of zeros under a header that says something of its shape."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(32)


def bomb():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("adjacency.npy", b"\0" * ((1 << 27) + 1))
    return stream.getvalue()


CSR = {"indices": [0], "indptr": [0, 1, 1], "data": [1.0], "shape": [2, 2], "format": b"csr"}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.npy", b"", "not an array of NumPy"),
        ("a.npy", b"\x93NUMPY\x01\x00\x05\x00{1:2}", "not an array of NumPy"),
        ("a.npy", npy(PATH)[:-8], "cut off"),
        ("a.npy", huge_header(), "cut off"),
        *(
            ("a.npy", header(shape), "cut off")
            for shape in ("(-2, -2)", "(0, 10000000000000000000000)", "(True, True)")
        ),
        *(("a.npy", header(shape), "not an array of NumPy") for shape in ("((((", "(2, 2)'", "0000(2, 2)", "(2.0, 2)")),
        ("a.npy", npy(np.asarray([{}, {}])), "numbers belong"),
        ("a.npy", npy(np.asarray([["a"]])), "numbers belong"),
        ("a.npy", npy(1j * PATH), "numbers belong"),
        ("a.npy", npy(PATH[:2]), "square, and this is 2 × 3"),
        ("a.npy", npy(PATH[0]), "square, and this is 3"),
        ("a.npy", npy(np.zeros((0, 0))), "0 nodes"),
        ("a.npy", npy(np.where(PATH == 0.5, np.nan, PATH)), "nan in row 2, column 3"),
        ("a.npy", npy(np.where(PATH == 0.5, np.inf, PATH)), "inf in row 2, column 3"),
        ("a.npy", npy(PATH * 1e200), "in row 1, column 2"),
        ("a.npz", b"PK", "not a readable .npz"),
        ("a.npz", npz(), "holds no array"),
        ("a.npz", npz(names=["a"]), "names: an array of <U1, where numbers belong"),
        ("a.npz", npz(adjacency=["a"], other=PATH), "adjacency: an array of <U1, where numbers belong"),
        ("a.npz", npz(one=PATH, two=PATH), "which array is the matrix? It has one, two"),
        ("a.npz", bomb(), "unpacks to more than 128 MB"),
        ("a.npz", npz(**CSR | {"indices": [7]}), "damaged sparse matrix"),
        ("a.npz", npz(**CSR | {"indptr": [0, 9, 1]}), "damaged sparse matrix"),
        ("a.npz", npz(**CSR | {"shape": [2, 3]}), "square"),
        ("a.npz", npz(**CSR | {"shape": [10**9, 10**9]}), "square, of up to 1,048,576 nodes"),
        ("a.npz", npz(**CSR | {"format": b"bsr"}), "csr, csc and coo, and this is bsr"),
        ("a.npz", npz(**CSR | {"format": b"bsr", "data": [[[1.0]]]}), "csr, csc and coo, and this is bsr"),
        ("a.npz", npz(data=[[1.0, 0.0]], offsets=[0], shape=[2, 2], format=b"dia"), "csc and coo, and this is dia"),
        ("a.npz", npz(**CSR)[1:], "not a readable .npz"),
        ("a.npz", npz(**CSR | {"format": b"\xff\xfe"}), "csr, csc and coo"),
        ("a.csv", b"", "holds no matrix"),
        ("a.csv", b"\xff\xfe", "not UTF-8"),
        (
            "a.csv",
            b"smiles,y\nCCO,1\nCC,0\n\nC,1",
            ":1: 'smiles' in column 1, where a number of an adjacency",
        ),
        ("a.csv", b"0,1\n1,x\n", ":2: 'x' in column 2"),
        ("a.csv", b"0,1\n,0\n", ":2: '' in column 1"),
        ("a.csv", b"0,1\n1\n", ":2: 1 number where the first row has 2"),
        ("a.csv", b"0,nan\n1,0\n", "nan in row 1, column 2"),
    ],
)
def test_what_is_wrong_with_a_matrix_is_one_sentence_that_names_the_file(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        read_matrix(tmp_path / name)
    assert reason in str(error.value)
    assert str(error.value).startswith(str(tmp_path / name))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["adjacency", "corr"])
def test_what_else_a_npz_holds_beside_numbers_is_left_aside(tmp_path, name):
    regions, about = np.asarray(["insula", "cuneus", "pons"]), np.asarray([{"age": 7}], dtype=object)
    np.savez(tmp_path / "a.npz", **{"names": regions, name: PATH, "about": about})
    assert read_matrix(tmp_path / "a.npz").weight.tolist() == [2, 2, 0.5, 0.5]


def test_nan_on_the_diagonal_does_no_harm(tmp_path):
    np.save(tmp_path / "a.npy", PATH + np.diag([np.nan, np.inf, 0]))
    assert read_matrix(tmp_path / "a.npy").weight.tolist() == [2, 2, 0.5, 0.5]


@given(st.binary(max_size=200), st.sampled_from(["npy", "npz", "csv"]), st.booleans())
@settings(max_examples=60)
def test_damage_is_an_error_of_one_line(tmp_path_factory, noise, ending, begins_well):
    file = tmp_path_factory.mktemp("m") / f"a.{ending}"
    whole = {"npy": npy(PATH), "npz": npz(adjacency=PATH), "csv": b"0,1\n1,0\n"}[ending]
    file.write_bytes(whole[: len(whole) // 2] + noise if begins_well else noise)
    message = ""
    try:
        assert read_matrix(file).size >= 1
    except DataError as error:
        message = str(error)
    assert "\n" not in message


# ---- a folder ----


def test_a_folder_of_weighted_matrices_with_targets(tmp_path):
    folder = folder_of(tmp_path, "subject,diagnosis\nb,ill\na.npy,well\n", a=PATH, b=RING)
    assert layout_of(folder).kind == "matrices"
    dataset = load_dataset(folder)
    assert (dataset.name, dataset.graph_names, dataset.classes) == ("BRAINS", ("b.npy", "a.npy"), ("ill", "well"))
    assert dataset.y.tolist() == [0, 1]
    assert np.array_equal(dense(dataset, 1), PATH)
    assert np.array_equal(dense(dataset), RING - np.diag(np.diag(RING)))
    assert (dataset.features, dataset.attribute_names) == ("attributes", ("strength",))
    assert dataset.x.flatten().tolist() == [4, 2, 4, 2, 2.5, 0.5]
    assert any("sum of its weights" in note for note in dataset.notes)
    again = load_dataset(folder)  # from the parsed copy
    assert again.checksum == dataset.checksum
    assert (again.graph_names, again.target_names) == (dataset.graph_names, ("diagnosis",))


def test_labels_csv_an_archive_a_subfolder_and_one_file_do_as_well(tmp_path):
    folder = folder_of(tmp_path, "graph,class\nb,ill\na,well\n", table="labels.csv", a=PATH, b=RING)
    (folder / "notes.txt").write_text("measured in May\n")
    dataset = load_dataset(folder)
    assert dataset.classes == ("ill", "well")
    with zipfile.ZipFile(tmp_path / "BRAINS.zip", "w") as out:
        for file in folder.iterdir():
            out.write(file, f"BRAINS/{file.name}")
    assert load_dataset(tmp_path / "BRAINS.zip").checksum == dataset.checksum
    assert load_dataset(tmp_path).checksum == dataset.checksum
    one = load_dataset(folder / "a.npy")
    assert (len(one), one.classes, one.name) == (1, (None,), "a")
    with pytest.raises(DataError, match=r"labels\.csv: the targets of a folder of graphs; name the folder"):
        load_dataset(folder / "labels.csv")


def test_csv_matrices_are_told_from_tables(tmp_path):
    folder = tmp_path / "CSV"
    folder.mkdir()
    for name in "ab":
        np.savetxt(folder / f"{name}.csv", PATH, delimiter=",")
    (folder / "nodes.csv").write_text("name,lobe\n1,front\n2,front\n3,back\n")
    (folder / "a.nodes.csv").write_text("name,lobe\n1,side\n2,front\n3,back\n")
    dataset = load_dataset(folder)
    assert (dataset.graph_names, dataset.classes) == (("a.csv", "b.csv"), (None,))
    assert [dataset.categories[i] for i in dataset.x] == ["side", "front", "back", "front", "front", "back"]
    assert dataset.label_attribute == "lobe"


def test_weights_of_one_are_an_ordinary_graph_with_degrees(tmp_path):
    dataset = read(folder_of(tmp_path, a=np.triu(np.ones((3, 3), bool), 1), b=PATH > 0))
    assert (dataset.edge_weight, dataset.features) == (None, "degrees")
    assert dataset.degree.tolist() == [2, 2, 2, 1, 2, 1]  # an edge in one direction counts for both
    assert any("1 of 2 matrices are not symmetric" in note for note in dataset.notes)


def test_the_sums_of_weights_of_one_are_there_for_a_model_that_reads_them(tmp_path):
    folder = folder_of(tmp_path, a=PATH > 0, b=np.zeros((2, 2)))
    dataset = read_matrices(folder, name="B", strength=True)
    assert (dataset.edge_weight, dataset.features, dataset.attribute_names) == (None, "attributes", ("strength",))
    assert dataset.x.flatten().tolist() == [1, 2, 1, 0, 0]


def test_files_that_are_wrong_are_left_out_where_that_is_asked_for(tmp_path):
    folder = folder_of(tmp_path, "file,y\na,0\nb,1\nc,0\n", a=PATH, b=PATH[:2], c=RING)
    errors = []
    dataset = read_matrices(folder, name="B", target=[], on_error=errors.append)
    assert dataset.graph_names == ("a.npy", "c.npy")
    assert_same(dataset, read_matrices(folder_of(tmp_path / "good", a=PATH, c=RING), name="B"))
    assert [str(error).startswith(f"{folder / 'b.npy'}: ") for error in errors] == [True]
    with pytest.raises(DataError, match=r"b\.npy"):  # targets are for all or none
        read_matrices(folder, name="B", on_error=errors.append)
    for name in "ac":
        np.save(folder / f"{name}.npy", PATH[0])
    errors.clear()
    with pytest.raises(DataError, match=r"c\.npy"):
        read_matrices(folder, name="B", target=[], on_error=errors.append)
    assert len(errors) == 2


def test_a_threshold_makes_dense_matrices_sparse(tmp_path):
    correlations = np.asarray([[1, 0.9, -0.4, 0.1], [0.9, 1, 0.3, 0.2], [-0.4, 0.3, 1, 0.05], [0.1, 0.2, 0.05, 1]])
    folder = folder_of(tmp_path, a=correlations)
    dataset = load_dataset(folder)
    assert any("100% of all pairs" in note and "threshold" in note for note in dataset.notes)
    dataset = load_dataset(folder, threshold=0.3)
    assert sorted(set(np.round(dataset.edge_weight.tolist(), 3))) == [-0.4, 0.9]
    assert not any("of all pairs" in note for note in dataset.notes)
    for wrong in (-1, float("nan")):
        with pytest.raises(SettingError, match="threshold"):
            load_dataset(folder, threshold=wrong)
    with pytest.raises(SettingError, match="threshold is for matrices"):
        load_dataset("MUTAG", threshold=0.3)


def test_two_directions_count_by_their_mean_and_rounding_is_no_difference(tmp_path):
    dataset = read(folder_of(tmp_path, a=np.asarray([[0, 2.0], [4, 0]])))
    assert dataset.edge_weight.tolist() == [3, 3]
    assert any("not symmetric" in note for note in dataset.notes)
    dataset = read(folder_of(tmp_path, a=np.asarray([[0, 0.1], [0.1 + 1e-15, 0]])))
    assert not any("not symmetric" in note for note in dataset.notes)


def test_node_tables_give_numbers_and_categories(tmp_path):
    folder = folder_of(tmp_path, a=PATH, b=RING)
    (folder / "nodes.csv").write_text("region,lobe,side,x,y\nA,front,l,1,0.5\nB,front,r,2,0\nC,back,l,3,0\n")
    dataset = load_dataset(folder)
    assert (dataset.features, dataset.node_columns, dataset.attribute_names) == ("all", ("lobe", "side"), ("x", "y"))
    assert set(dataset.categories) == {("lobe", "front"), ("lobe", "back"), ("side", "l"), ("side", "r")}
    assert dataset.node_attributes[:3].tolist() == [[1, 0.5], [2, 0], [3, 0]]
    (folder / "nodes.csv").write_text("region,x\nA,1\nB,2\nC,3\n")
    assert load_dataset(folder).x.flatten().tolist() == [1, 2, 3, 1, 2, 3]
    (folder / "nodes.csv").write_text("region\nA\nB\nC\n")
    assert load_dataset(folder).attribute_names == ("strength",)


def test_nodes_that_matrix_and_table_name_are_matched_by_name(tmp_path):
    folder = tmp_path / "NAMED"
    folder.mkdir()
    (folder / "a.csv").write_text(",A,B,C\nA,0,2,0\nB,2,0,0.5\nC,0,0.5,0\n")
    (folder / "nodes.csv").write_text("name,x\nC,3\nA,1\nB,2\n")
    assert load_dataset(folder).x.flatten().tolist() == [1, 2, 3]
    (folder / "b.csv").write_text(",C,A,B\nB,0.5,2,0\nC,0,0,0.5\nA,0,0,2\n")  # another order, rows in yet another
    dataset = load_dataset(folder)
    assert dataset.x.flatten().tolist() == [1, 2, 3, 3, 1, 2]
    order = [2, 0, 1]
    assert np.array_equal(dense(dataset, 0)[np.ix_(order, order)], dense(dataset, 1))


@pytest.mark.parametrize(
    ("table", "where", "name"),
    [
        ("name,x\nA,1\nB left,2\nC,3\n", "nodes.csv:3: ", "'B left'"),
        ("name,x\nA,1\nB,2\nB,3\n", "nodes.csv:3: ", "'B'"),
    ],
)
def test_a_name_that_only_the_table_or_the_matrix_has_is_named(tmp_path, table, where, name):
    folder = tmp_path / "NAMED"
    folder.mkdir()
    (folder / "a.csv").write_text(",A,B,C\nA,0,2,0\nB,2,0,0.5\nC,0,0.5,0\n")
    (folder / "nodes.csv").write_text(table)
    with pytest.raises(DataError) as error:
        load_dataset(folder)
    assert str(error.value).startswith(f"{folder / where}")
    assert name in str(error.value)
    assert "a.csv" in str(error.value) or "second" in str(error.value)


def test_rows_of_nodes_without_any_name_of_the_matrix_are_taken_in_its_order_which_is_said_once(in_parts, tmp_path):
    folder = tmp_path / "NAMED"
    folder.mkdir()
    (folder / "nodes.csv").write_text("name,x\nP,1\nQ,2\nR,3\n")
    for name in "ab":
        (folder / f"{name}.csv").write_text(",0,1,2\n0,0,2,0\n1,2,0,0.5\n2,0,0.5,0\n")
    dataset = read(folder)
    assert not any("order of the matrix" in note for note in dataset.notes)  # numbers are no names
    for name in "ab":
        (folder / f"{name}.csv").write_text(",A,B,C\nA,0,2,0\nB,2,0,0.5\nC,0,0.5,0\n")
    dataset = read(folder)
    assert dataset.x.flatten().tolist() == [1, 2, 3, 1, 2, 3]
    assert ["a.csv" in note for note in dataset.notes if "order of the matrix" in note] == [True]
    assert in_parts(folder, values=1).notes == dataset.notes


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"nodes.csv": "name,x\nA,1\n"}, "nodes.csv: 1 node where the matrix a.npy has 3"),
        ({"nodes.csv": "name,x\nA,1\nB,\nC,3\n"}, "nodes.csv:3: x is empty"),
        ({"nodes.csv": "name,x\nA,1\nB,inf\nC,3\n"}, "nodes.csv:3: x is inf"),
        ({"nodes.csv": "name,x,x\nA,1,2\n"}, "two columns are called 'x'"),
        ({"a.nodes.csv": "name,x\nA,1\nB,2\nC,3\n"}, "b.npy: has no table of nodes, b.nodes.csv"),
        (
            {"a.nodes.csv": "name,x\nA,1\nB,2\nC,3\n", "b.nodes.csv": "name,z\nA,1\nB,2\nC,3\n"},
            "b.nodes.csv: its columns are z, those of",
        ),
        ({"targets.csv": "file,y\na,1\nd,0\n"}, "targets.csv:3: 'd' is no graph file in this folder"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_line(tmp_path, tables, reason):
    folder = folder_of(tmp_path, a=PATH, b=RING)
    for name, text in tables.items():
        (folder / name).write_text(text)
    with pytest.raises(DataError) as error:
        load_dataset(folder)
    assert reason in str(error.value)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("comma", [False, True])
@pytest.mark.parametrize("top", ["names", "numbers", "none"])
@pytest.mark.parametrize("left", ["names", "numbers", "none"])
def test_names_on_every_side_and_decimal_commas(tmp_path, mark, comma, top, left):
    names = {"names": ["Precuneus, L", "Insula", "3rd"], "numbers": NUMBERS, "none": None}
    header, index = names[top], names[left]
    rows = [[f"{weight}".replace(".", "," if comma and mark != "," else ".") for weight in row] for row in PATH]
    if index:
        rows = [[name, *row] for name, row in zip(index, rows, strict=True)]
    if header:
        rows.insert(0, [*[""] * bool(index), *header])
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    found = read_matrix(tmp_path / "a.csv")
    given = [names for names in (header, index) if names]
    assert found.names == (tuple(max(given, key=lambda names: names is not NUMBERS)) if given else None)
    assert found.weight.tolist() == [2, 2, 0.5, 0.5]


@given(
    st.lists(st.text("abxÄ12. -,", min_size=1, max_size=4).map(str.strip).filter(bool), unique=True, min_size=3)
    .filter(lambda names: any(set(name) & set("abxÄ") for name in names))
    .flatmap(lambda names: st.tuples(st.just(names), st.permutations(range(len(names))))),
    st.sampled_from(",;\t"),
)
@settings(max_examples=40, deadline=None)
def test_rows_in_another_order_than_the_columns_are_brought_into_theirs(tmp_path_factory, named, mark):
    names, order = named
    file = tmp_path_factory.mktemp("m") / "a.csv"
    matrix = np.random.default_rng(len(names)).integers(1, 9, (len(names), len(names)))
    found = []
    for rows in (range(len(names)), order):
        lines = [["", *names], *([names[i], *matrix[i]] for i in rows)]
        with file.open("w", newline="") as out:
            csv.writer(out, delimiter=mark).writerows(lines)
        found.append(read_matrix(file))
    assert found[0].names == found[1].names == tuple(names)
    assert np.array_equal(found[0].edge_index, found[1].edge_index)
    assert np.array_equal(found[0].weight, found[1].weight)


@pytest.mark.parametrize(
    ("rows", "where", "named"),
    [
        ("B,0,1,2\nA,1,0,3\nc,2,3,0\n", ":4: ", "'c' is none of the columns; did you mean C"),
        ("B,0,1,2\nA,1,0,3\nA,2,3,0\n", ":4: ", "'A'"),
    ],
)
def test_rows_with_other_names_than_the_columns_are_named(tmp_path, rows, where, named):
    (tmp_path / "a.csv").write_text(",A,B,C\n" + rows)
    with pytest.raises(DataError) as error:
        read_matrix(tmp_path / "a.csv")
    assert str(error.value).startswith(f"{tmp_path / 'a.csv'}{where}")
    assert named in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "x,1,2\n3,0,3\n2,3,0\n",
        "0,x,2\n1,0,3\n2,3,0\n",
        "x\n",
        "5,6,7\n0,1,2\n1,0,3\n2,3,0\n",
        "0,1\n1,2\n2,0\n",  # the edges of a triangle
        "0,5\n",
    ],
)
def test_a_wrong_cell_is_no_name(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=r"a\.csv"):
        read_matrix(tmp_path / "a.csv")


def test_a_list_of_edges_is_named(tmp_path):
    for text in ("0,1\n1,2\n2,3\n3,4\n", "source,target\n0,1\n1,2\n2,3\n3,4\n"):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(DataError, match=r"adjacency matrix.*list of edges.*write_graphml"):
            read_matrix(tmp_path / "a.csv")


def test_a_matrix_may_have_the_minus_of_unicode(tmp_path):
    (tmp_path / "m.csv").write_text("0,\u22120.5\n\u22120.5,0\n", encoding="utf-8")
    assert read_matrix(tmp_path / "m.csv").weight.tolist() == [-0.5, -0.5]


def test_tables_of_nodes_may_have_decimal_commas(tmp_path):
    folder = folder_of(tmp_path, "file,y\na,1\nb,0\n", a=PATH, b=RING)
    (folder / "nodes.csv").write_text("name;x\nA;0,5\nB;2\nC;-1,25\n")
    with pytest.warns(UserWarning, match="x has decimal commas"):
        dataset = load_dataset(folder)
    assert dataset.node_attributes[:3, 0].tolist() == [0.5, 2, -1.25]


# ---- more than fits into memory ----


@pytest.fixture
def in_parts(monkeypatch, tmp_path):
    """Reads a folder in small parts, and checks that it was not read as a whole after all."""
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))

    def read_in_parts(folder, values=10, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matrices, "LARGE_BYTES", 0)
            patch.setattr(matrices, "VALUES_AT_ONCE", values)
            patch.setattr(matrices, "_read_all", lambda *_: pytest.fail("read as a whole"))
            return read_layout(layout_of(folder), **options)

    return read_in_parts


@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0.0, 1, 1, 2, -3.5])), min_size=1, max_size=8), st.booleans()
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_matrices_in_parts_are_the_whole(in_parts, tmp_path_factory, sizes, directed):
    rng = np.random.default_rng(len(sizes))
    made = {f"m{i}": rng.integers(0, 2, (size, size)) * weight for i, (size, weight) in enumerate(sizes)}
    folder = folder_of(tmp_path_factory.mktemp("parts"), **made)
    whole, found = read_layout(layout_of(folder), directed=directed), in_parts(folder, directed=directed)
    assert_same(found, whole)
    assert found.checksum == whole.checksum
    assert found.notes == whole.notes


def test_matrices_in_an_archive_are_read_in_parts(in_parts, tmp_path):
    folder = folder_of(tmp_path / "some", "file,t\na,1\nb,2.5\nc,0\n", a=PATH, b=RING, c=PATH)
    archive = shutil.make_archive(tmp_path / folder.name, "zip", folder.parent, folder.name)
    found, whole = in_parts(Path(archive)), read(Path(archive))
    assert_same(found, whole)
    assert found.checksum == whole.checksum == read(folder).checksum


def test_tables_of_nodes_in_parts(in_parts, tmp_path):
    folder = folder_of(tmp_path, "file,t\na,1\nb,2.5\nc,0\n", a=PATH, b=RING, c=PATH)
    for name, kinds in {"a": "xyz", "b": "xxw", "c": "vwx"}.items():
        rows = [f"{i},{kind},{i / 2}" for i, kind in enumerate(kinds)]
        (folder / f"{name}.nodes.csv").write_text("\n".join(["node,kind,size", *rows]))
    found, whole = in_parts(folder, values=1), read(folder)
    assert_same(found.with_features("labels"), whole.with_features("labels"))
    assert found.checksum == whole.checksum
    assert (found.notes, found.y.tolist(), found.features) == (whole.notes, whole.y.tolist(), "all")


def test_what_does_not_go_together_in_parts_is_read_as_a_whole(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, a=PATH, b=RING)
    (folder / "a.nodes.csv").write_text("node,kind\n0,1\n1,2\n2,3\n")
    (folder / "b.nodes.csv").write_text("node,kind\n0,x\n1,2\n2,3\n")  # so that 1 is no number, either
    whole = read(folder)
    monkeypatch.setattr(matrices, "LARGE_BYTES", 0)
    monkeypatch.setattr(matrices, "VALUES_AT_ONCE", 1)
    assert_same(read(folder), whole)
    np.save(folder / "b.npy", np.ones((2, 3)))
    with pytest.raises(DataError, match=r"b\.npy: an adjacency matrix is square"):
        read(folder)


def test_memory_does_not_grow_with_the_matrices(in_parts, tmp_path):
    peaks = []
    for count in (20, 200):
        matrix = np.random.default_rng(0).normal(size=(40, 40))
        folder = folder_of(tmp_path / str(count), **{f"m{i:03}": matrix for i in range(count)})
        tracemalloc.start()
        try:
            in_parts(folder, values=10_000)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
