"""What errors say."""

import pytest

from tapnet.errors import did_you_mean


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("acc", ["balanced_accuracy", "accuracy", "mcc"], "accuracy"),  # what it begins comes before what is nearer
        ("Rand", ["random-clusters", "random"], "random"),
        ("gni", ["gin", "wl"], "gin"),
        ("Toxic", ["Toxic?", "id"], "Toxic"),
    ],
)
def test_the_nearest_word_is_suggested_with_one_question_mark(word, known, meant):
    assert did_you_mean(word, known) == f"; did you mean {meant}?"


@pytest.mark.parametrize("word", ["", "x", "nothing like it"])
def test_nothing_is_suggested_that_is_not_like_the_word(word):
    assert did_you_mean(word, ["xylophone", "gin"]) == ""
