"""`tapnet.paper.reproduce` and `missing` as a notebook calls them."""

import json
from contextlib import contextmanager

import pytest

from tapnet import paper
from tapnet.errors import SettingError

ASKED = {"datasets": ["MUTAG"], "systems": "TAPNet", "protocol": "fair", "budget": "quick"}


def test_a_table_is_trained_once_and_returned(tmp_path):
    assert len(paper.missing("table2", out=tmp_path, **ASKED).trials) == 2
    events = []

    @contextmanager
    def progress(trials):
        assert len(trials) == 2
        yield events.append

    done = paper.reproduce("table2", out=tmp_path, jobs=1, progress=progress, **ASKED)
    assert {event.epoch for event in events} == {1, 2}
    (row,) = done.rows
    assert (row["dataset"], row["system"], row["folds"], row["epochs"]) == ("MUTAG", "TAPNet", 2, 2)
    assert [file.name for file in done.files] == ["table2.md", "table2.csv", "table2.png", "table2.svg"]
    assert all(file.exists() for file in done.files)
    assert (tmp_path / "table2.md").read_text() == str(done) == done._repr_markdown_()
    assert json.loads(json.dumps(done.to_dict()))["cells"] == done.rows
    again = paper.reproduce("table2", out=tmp_path, stored=True, progress=pytest.fail, **ASKED)
    assert again.rows == done.rows
    left = paper.missing("table2", out=tmp_path, **ASKED)
    assert (left.trials, left.total) == ((), 2)
    assert "0 of 2" in str(left)


def test_a_data_set_that_is_not_here_is_noted(tmp_path):
    done = paper.reproduce("table2", datasets="PTC", systems="WL", out=tmp_path)
    assert "PTC" in done.notes
    assert done.rows[0]["mean"] is None
    assert paper.missing("table2", datasets="PTC", systems="WL", out=tmp_path).datasets == ("PTC",)


def test_an_early_end_says_what_is_left_and_keeps_what_was_stored(tmp_path, monkeypatch):
    monkeypatch.setattr("tapnet.paper.session.run_trials", lambda *_, **__: False)
    with pytest.raises(KeyboardInterrupt, match="2 trials"):
        paper.reproduce("table2", out=tmp_path, jobs=1, **ASKED)


def test_mistakes_name_no_option_of_the_command(tmp_path):
    for wrong in ({"jobs": 0}, {"device": "tpu"}, {"report": tmp_path / "page.md", "target": "voting"}):
        with pytest.raises(SettingError) as error:
            paper.reproduce(**{"target": "table2", "out": tmp_path, "stored": True, **wrong})
        assert "--" not in str(error.value)
