"""What columns ask for is found out, can be said otherwise, and is refused where it does not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapnet.data.targets import detect_task
from tapnet.errors import DataError, SettingError


@pytest.mark.parametrize(
    ("cells", "task", "classes"),
    [
        (["0", "1", "1", ""], "classification", (0, 1)),
        (["0.0", "1.0", "nan"], "classification", (0, 1)),  # as pandas writes whole numbers with gaps
        ([3, 1, 2], "classification", (1, 2, 3)),
        (["active", "inactive", " active "], "classification", ("active", "inactive")),
        ([True, False, None], "classification", (False, True)),
        (["none", "mild", "1"], "classification", ("1", "mild", "none")),
        (["0.5", "1", "NA"], "regression", ()),
        ([str(i) for i in range(11)], "regression", ()),
    ],
)
def test_one_column(cells, task, classes):
    found = detect_task({"p": cells})
    assert (found.task, found.classes, found.names) == (task, classes, ("p",))
    assert [type(value) for value in found.classes] == [type(value) for value in classes]
    assert found.y.shape == ((len(cells),) if task == "classification" else (len(cells), 1))
    assert "p" in found.note


def test_gaps_are_known():
    assert detect_task({"p": ["b", "", "a", "NaN", None]}).y.tolist() == [1, -1, 0, -1, -1]
    found = detect_task({"p": ["0.5", "", "2"], "q": ["n/a", "null", "1e3"]})
    assert found.task == "regression"
    np.testing.assert_array_equal(found.y, np.float32([[0.5, np.nan], [np.nan, np.nan], [2, 1000]]))
    assert found.known.tolist() == [True, False, True]


def test_several_columns_of_0_and_1_are_labels():
    found = detect_task({"a": ["0", "1", ""], "b": ["true", "False", "yes"]})
    assert (found.task, found.y.dtype) == ("multilabel", np.float32)
    np.testing.assert_array_equal(found.y, [[0, 1], [1, 0], [np.nan, 1]])
    assert "2" in found.note
    assert "17%" in found.note


def test_a_task_overrides_what_would_be_found():
    assert detect_task({"p": [0, 1, 1]}, "regression").y.tolist() == [[0], [1], [1]]
    assert detect_task({"p": [0, 1, None]}, "multilabel").y.shape == (3, 1)
    assert detect_task({"p": list(range(30))}, "classification").classes == tuple(range(30))
    assert detect_task({"p": [0, 1], "q": [1, 1]}, "regression").task == "regression"


@pytest.mark.parametrize(
    ("columns", "task", "said"),
    [
        ({"p": ["a", "b"]}, "regression", ["row 0", "p", "'a'", "number"]),
        ({"p": [0.5, 1]}, "classification", ["row 0", "0.5", "class"]),
        ({"p": [0, 2]}, "multilabel", ["row 1", "2", "0, 1"]),
        ({"p": [0, 1], "q": [1, 0]}, "classification", ["one column", "multilabel"]),
        ({"p": ["", None]}, None, ["p", "empty"]),
        ({"p": [1, 0], "q": ["x", 1]}, None, ["row 0", "q", "'x'"]),
        ({"p": [*map(str, np.arange(40) / 7), "inf"]}, None, ["row 40", "'inf'"]),
        ({"p": [0.1, 1e200]}, "regression", ["row 1"]),
        ({}, None, ["no target"]),
    ],
)
def test_what_does_not_fit_is_refused_with_its_row(columns, task, said):
    with pytest.raises(DataError) as error:
        detect_task(columns, task)
    assert all(word in str(error.value) for word in said), error.value


def test_rows_are_called_as_the_caller_says():
    with pytest.raises(DataError, match="data.csv:3: p"):
        detect_task({"p": ["1.5", "x"]}, "regression", rows=["data.csv:2", "data.csv:3"])


def test_an_unknown_task_is_refused():
    with pytest.raises(SettingError, match="regression"):
        detect_task({"p": [1]}, "ranking")


@given(st.lists(st.one_of(st.none(), st.integers(-5, 4)), min_size=1).filter(any))
def test_classes_stand_for_the_values(cells):
    found = detect_task({"p": cells})
    assert [None if i < 0 else found.classes[i] for i in found.y] == cells
    assert list(found.classes) == sorted({cell for cell in cells if cell is not None})


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1).filter(any))
def test_numbers_are_kept_and_text_is_read_alike(cells):
    values = detect_task({"p": cells}, "regression").y[:, 0]
    np.testing.assert_array_equal(values, np.array([np.nan if c is None else c for c in cells], np.float32))
    text = detect_task({"p": ["" if c is None else repr(c) for c in cells]}, "regression")
    np.testing.assert_array_equal(text.y[:, 0], values)


def test_dashes_are_gaps_among_numbers_and_words_elsewhere():
    found = detect_task({"p": ["1.5", "-", "2", "–", "?", "--"]})
    assert found.task == "regression"
    np.testing.assert_array_equal(found.y[:, 0], np.float32([1.5, *[np.nan] * 1, 2, *[np.nan] * 3]))
    (remark,) = found.remarks
    assert "4 cells" in remark
    assert "p" in remark
    assert detect_task({"p": ["1", "0", "-"]}).y.tolist() == [1, 0, -1]
    assert detect_task({"p": ["+", "-", "+"]}).classes == ("+", "-")
    assert not detect_task({"p": ["1.5", "2", ""]}).remarks


@pytest.mark.parametrize("odd", [">10", "n.d.", "1,5", "3.000,5"])
def test_a_column_of_decimals_with_something_else_holds_no_classes(odd):
    with pytest.raises(DataError) as error:
        detect_task({"p": ["0.5", "1", "0.5", "2.5", odd]}, rows=[f"t.csv:{i}" for i in range(2, 7)])
    assert all(word in str(error.value) for word in ("t.csv:6", "p", odd))
    assert detect_task({"p": ["0.5", "1", "0.5", "2.5", odd]}, "classification").task == "classification"
    assert detect_task({"p": ["0", "1", "0", "1", "unknown"]}).classes == ("0", "1", "unknown")


def test_the_minus_of_unicode_is_a_minus():
    found = detect_task({"y": ["\u22121.5", "2e\u22123", "-0.25", "\u2212"]})
    np.testing.assert_allclose(found.y[:, 0], [-1.5, 0.002, -0.25, np.nan])
    assert detect_task({"y": ["\u22121", "1", "-1"]}).classes == (-1, 1)
    assert detect_task({"y": ["\u2212a", "b"]}).classes == ("b", "\u2212a")
    assert detect_task({"y": ["\u20131.5", "b"]}).task == "classification"  # an en dash is none


@pytest.mark.parametrize("odd", ["abc", ">10", "0.5"])
def test_the_cell_at_fault_is_named_not_those_with_commas(odd):
    with pytest.raises(DataError, match=f"row 4: y: '{odd}'"):
        detect_task({"y": ["0,07", "-2,5", "3", "1,5", odd, "1,25", "2,5", "1,5", "1,75", "1,8"]})


def test_numbers_with_commas_are_no_classes():
    with pytest.raises(DataError, match=r"row 0: p: '4,3'.*1234\.5"):
        detect_task({"p": ["4,3", "4,4", "4,3"]})


def test_classes_that_differ_only_in_case_or_spaces_are_remarked():
    (remark,) = detect_task({"p": ["Yes", "yes", "no ", "No  way", "no way"]}).remarks
    assert "'Yes', 'yes'" in remark
    assert "'No  way', 'no way'" in remark
    assert not detect_task({"p": ["yes", "no", "no "]}).remarks


@pytest.mark.parametrize("unit", ["mg/L", " mg/L", "%", " °C", " µM", " g/m3", " mg per L"])
def test_classes_that_look_like_numbers_with_a_unit_are_remarked(unit):
    cells = ["", *(f"{i}.03{unit}" for i in range(5))]
    found = detect_task({"sol": cells}, rows=[f"t.csv:{i}" for i in range(2, 8)])
    assert (found.task, len(found.classes)) == ("classification", 5)
    (remark,) = found.remarks
    assert all(words in remark for words in ("sol", repr(cells[1]), "t.csv:3", "unit"))
    with pytest.raises(DataError, match=r"t\.csv:3: sol: .*unit"):
        detect_task({"sol": cells}, "regression", rows=[f"t.csv:{i}" for i in range(2, 8)])


@pytest.mark.parametrize(
    "cells",
    [
        ["5 mg", "10 mg", "5 mg"],  # doses
        ["1st", "2nd", "3rd"],
        [f"1.{i}.{j}.1" for i in range(4) for j in range(4)],
        [f"{i}{letter}" for i in (1, 2) for letter in "abcdefg"],
        ["1.5 mg", "low", "high", "low"],
        [*(f"{i}e5" for i in range(12)), *["x"] * 12],
    ],
)
def test_other_classes_with_digits_are_not(cells):
    assert not detect_task({"p": cells}).remarks


def test_one_label_is_one_column():
    assert "1 yes/no column (" in detect_task({"p": [0, 1, 1]}, "multilabel").note


def test_an_infinite_number_is_called_so():
    with pytest.raises(DataError, match="row 1: p: 'inf' .*finite"):
        detect_task({"p": ["0.5", "inf"]}, "regression")
