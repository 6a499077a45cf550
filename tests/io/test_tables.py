"""Tables as spreadsheets write them: separators, decimal commas, columns without a name."""

import csv
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapnet import load_dataset
from tapnet.errors import DataError
from tapnet.io.graph_folder import require_targets
from tapnet.io.tables import parse_table, read_table, separator

NUMBERS = st.lists(st.floats(-1e6, 1e6).map(lambda number: f"{number:.3f}"), min_size=1)


@given(NUMBERS, st.sampled_from(";\t|"))
def test_numbers_with_decimal_commas_are_those_with_points(numbers, mark):
    lines = [f"a{mark}{number.replace('.', ',')}" for number in numbers]
    text = "\n".join([f"name{mark}y", *lines, f"b{mark}-", f"c{mark}7", f"d{mark}"])
    table = parse_table(text if mark != "|" else f"sep=|\n{text}", "t.csv")
    assert table.column("y") == [*numbers, "-", "7", ""]
    assert table.rows[0] == ["a", numbers[0].replace(".", ",")]  # as it was written
    assert table.decimal_commas_note(["name", "y"]) == "y has decimal commas"


@pytest.mark.parametrize("cells", [["1,5", "2.5"], ["1,5", "x"], ["1.234,5", "2,5"], ["1,2,3", "4,5"], ["1", "2"]])
def test_other_columns_stay_as_they_are(cells):
    table = parse_table("\n".join(["a;y", *(f"b;{cell}" for cell in cells)]), "t.csv")
    assert table.column("y") == cells
    assert not table.decimal_commas_note(["y"])


def test_the_minus_of_unicode_is_read_beside_decimal_commas(tmp_path):
    table = parse_table("name;y\na;0,07\nb;\u22122,57\n\u2212c;\u22123\n", tmp_path / "t.csv")
    assert table.column("y") == ["0.07", "-2.57", "-3"]
    assert table.decimal_commas_note(["y"])
    assert table.column("name") == ["a", "b", "\u2212c"]


# ---- spreadsheets ----


def save_excel(path):
    """What a spreadsheet is from outside: an archive with a folder ``xl``."""
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("[Content_Types].xml", "<Types/>")
        out.writestr("xl/workbook.xml", "<workbook/>")


@pytest.mark.parametrize("name", ["data.xlsx", "data.XLSX", "data.csv", "data.tsv", "data.txt"])
@pytest.mark.parametrize("content", ["archive", "start of one", "old"])
def test_an_excel_file_is_called_so(tmp_path, name, content):
    file = tmp_path / name
    save_excel(file)
    if content != "archive":
        file.write_bytes(b"PK\x03\x04\0\0" if content == "start of one" else b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0")
    if name.endswith(".txt") and content != "archive":
        pytest.skip("a text with an ending of its own")
    with pytest.raises(DataError, match=r"data\.\w+: an Excel file; save it as CSV .UTF-8.$"):
        load_dataset(file)


@pytest.mark.parametrize("table", ["targets.xlsx", "Labels.xls"])
@pytest.mark.filterwarnings("ignore::tapnet.errors.DataNote")
def test_targets_in_an_excel_file_are_called_so(tmp_path, table):
    np.save(tmp_path / "a.npy", np.ones((3, 3)))
    np.save(tmp_path / "b.npy", np.ones((4, 4)))
    save_excel(tmp_path / table)
    found = load_dataset(tmp_path)
    assert any(f"left aside: {table}, an Excel file; save it as CSV (UTF-8)" in note for note in found.notes)
    for call in (lambda: require_targets(found), lambda: load_dataset(tmp_path, target="y")):
        with pytest.raises(DataError, match=f"{table}: an Excel file; save it as CSV"):
            call()


def test_a_folder_with_nothing_but_an_excel_file(tmp_path):
    save_excel(tmp_path / "molecules.xlsx")
    with pytest.raises(DataError, match="an Excel file"):
        load_dataset(tmp_path)


def test_where_commas_separate_a_quoted_one_is_no_decimal_comma():
    assert parse_table('a,y\nb,"1,5"\n', "t.csv").column("y") == ["1,5"]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("a;LogS (mol/L, 25 °C);b", 3),
        ("a,b;c,d", 3),
        ('"a;b;c",d', 2),
        ("2,4-D;3,5-D;4,6-D", 3),
        ("a\tb,c", 2),
    ],
)
def test_the_separator_is_what_the_header_has_most_of(header, columns):
    assert len(parse_table(f"{header}\n1\n", "t.csv").header) == columns


@given(
    st.sampled_from(",;\t"),
    st.lists(st.text("abµ (),;.25\t\"'", max_size=9).map("x{}y".format), min_size=2, max_size=4, unique=True),
    st.lists(st.lists(st.sampled_from(["1,5", "-0,25", "2", "1.5", "a"]), min_size=4, max_size=4), min_size=2),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_columns_may_be_called_anything(mark, header, rows, quoting):
    written = io.StringIO()
    csv.writer(written, delimiter=mark, quoting=quoting).writerows([header, *(row[: len(header)] for row in rows)])
    table = parse_table(written.getvalue(), "t.csv")
    assert (table.mark, table.header) == (mark, tuple(header))


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Name;SMILES;logS (25 °C, pH 7, Wasser)\nA;CCO;1,5\nB;CCN;2,5\n", ";"),
        ("SMILES;logS (25 °C, pH 7)\nCCO;1,5\nCCN;2,5\n", ";"),
        ("SMILES\tlogS (25 °C, pH 7; n=3; x)\nCCO\t1.5\nCCN\t2.5\n", "\t"),
        (";L, A;L, B\nL, A;1,0;0,5\nL, B;0,5;1,0\n", ";"),
        ("smiles,IC50 [nM; pH 7]\nCCO,1\nCCN,2;3\n", ","),
        ("a,b\n1,2\n3,4\n", ","),
        ('a;b, c\n"x\n, y";1\n"z, z, z";2\n', ";"),
        ("a;b, c\n1;2,5\n3\n\n4;5,5\n", ";"),
        ("smiles\nCCO\n", ","),
    ],
)
def test_the_separator_is_judged_by_several_lines(text, mark):
    assert separator(text) == mark


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "SEP=;\n"])
def test_a_first_line_of_excel_names_the_separator(first):
    table = parse_table(f"{first}a,b;c\n1;2\n", "t.csv")
    assert (table.header, table.rows, table.lines) == (("a,b", "c"), [["1", "2"]], [3])


def test_columns_without_a_name_and_a_value_are_left_aside():
    assert parse_table(",a,,\n0,1,,\n1,2,,\n", "t.csv").header == ("", "a")
    assert parse_table("a;b;;;\n1;2;;;\n", "t.csv").rows == [["1", "2"]]
    with pytest.raises(DataError, match=r"t\.csv:2: 5 cells where the header has 2"):
        parse_table("a;b;;;\n1;2;;;3\n", "t.csv")


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_another_encoding_is_said_with_a_remedy(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("Größe,y\n1,2\n", encoding=encoding)
    with pytest.raises(DataError, match=r"t\.csv: not UTF-8 text.*CSV UTF-8"):
        read_table(tmp_path / "t.csv")
