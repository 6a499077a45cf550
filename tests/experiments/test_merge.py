"""Results of several folders in one: packed lines are read as single files are."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tapnet.errors import DamagedFileWarning, DataError, TapnetError
from tapnet.experiments.merge import merge_trials
from tapnet.experiments.store import Store
from tapnet.experiments.trial import TrialResult, digest
from tapnet.files import write_atomically
from tests.helpers.commands import tapnet_ends
from tests.helpers.readers import small_trial


def make_results(folder: Path, folds=(0, 1), accuracy=50.0, dataset="SMALL") -> list[TrialResult]:
    found = []
    for fold in folds:
        trial = replace(small_trial(), fold=fold, folds=9, dataset=dataset)
        curves = {"train_loss": [1.0], "test_accuracy": [accuracy + fold]}
        found.append(TrialResult(trial, curves, 1.0, 1, {}))
        Store(folder).save(found[-1])
    return found


def test_packed_results_are_read_as_before(tmp_path):
    kept = make_results(tmp_path) + make_results(tmp_path, dataset="a/../b c")
    before = {r.trial.key: r.to_dict() for r in Store(tmp_path).results()}
    merged = merge_trials(tmp_path)
    assert merged.files == {"SMALL.jsonl": 2, "a_.._b_c.jsonl": 2}
    assert sorted(file.name for file in (tmp_path / "trials").iterdir()) == sorted(merged.files)
    assert {r.trial.key: r.to_dict() for r in Store(tmp_path).results()} == before
    assert Store(tmp_path).load(kept[0].trial).to_dict() == kept[0].to_dict()
    content = {file: (tmp_path / "trials" / file).read_bytes() for file in merged.files}
    merge_trials(tmp_path)
    assert {file: (tmp_path / "trials" / file).read_bytes() for file in merged.files} == content


def test_a_folder_without_results_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("none", "empty"):
        with pytest.raises(DataError, match=f"{name}: no results are there"):
            merge_trials(tmp_path / name)
    assert not (tmp_path / "none").exists()
    make_results(tmp_path / "run", folds=[0])
    with pytest.raises(DataError, match="1 result is not in a folder trials"):
        merge_trials(tmp_path / "run" / "trials")
    assert str(merge_trials(tmp_path / "new", [tmp_path / "run" / "trials"])).startswith("1 trial in 1 file of")


def test_a_new_result_joins_the_packed_ones(tmp_path):
    make_results(tmp_path, folds=[0])
    merge_trials(tmp_path)
    make_results(tmp_path, folds=[1])
    assert [r.trial.fold for r in Store(tmp_path).results()].count(1) == 1
    assert len(list(Store(tmp_path).results())) == 2
    assert merge_trials(tmp_path).files == {"SMALL.jsonl": 2}


def test_other_folders_are_merged_and_stay(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    first = make_results(ours, [0, 1])
    make_results(theirs, [1, 2], accuracy=60.0)
    merged = merge_trials(ours, [theirs / "trials"])
    assert (merged.new, merged.twice, merged.different) == (1, 1, (first[1].trial.key,))
    assert sorted(r.reading.accuracy for r in Store(ours).results()) == [50.0, 51.0, 62.0]
    assert len(list((theirs / "trials").glob("*.json"))) == 2
    assert merge_trials(tmp_path / "new", [ours]).new == 3
    with pytest.raises(DataError, match="no results"):
        merge_trials(ours, [tmp_path])
    with pytest.raises(TapnetError, match="is a file"):
        merge_trials(ours / "trials" / "SMALL.jsonl")


def test_damaged_results_are_said_and_never_packed(tmp_path):
    results = make_results(tmp_path, [0, 1, 2])
    file = Store(tmp_path).result_file(results[0].trial)
    file.write_text(file.read_text().replace('"seconds":1.0', '"seconds":2.0'))
    merged = merge_trials(tmp_path)
    assert merged.files == {"SMALL.jsonl": 2}
    assert file.name in merged.damaged[0]
    assert file.exists()


def test_a_damaged_line_is_a_trial_that_is_not_done(tmp_path):
    results = make_results(tmp_path, [0, 1])
    merge_trials(tmp_path)
    file = tmp_path / "trials" / "SMALL.jsonl"
    lines = file.read_text().split("\n")
    write_atomically(file, ("\n".join([lines[0].replace("1.0", "1.5", 1), lines[1], "no result"]) + "\n").encode())
    with pytest.warns(DamagedFileWarning) as said:
        found = list(Store(tmp_path).results())
    assert len(found) == 1
    words = " ".join(str(one.message) for one in said)
    assert "line 3" in words
    (lost,) = {r.trial.key for r in results} - {found[0].trial.key}
    assert lost in words
    (again,) = (r for r in results if r.trial.key == lost)
    Store(tmp_path).save(again)
    merged = merge_trials(tmp_path)
    assert merged.files == {"SMALL.jsonl": 2}
    assert len(merged.damaged) == 2
    assert "no result" in file.with_suffix(".damaged").read_text()


def test_the_command_counts_and_checks(tmp_path):
    make_results(tmp_path / "results")
    found = json.loads(tapnet_ends("merge", "results", "--json", folder=tmp_path).stdout)
    assert found["files"] == {"SMALL.jsonl": 2}
    (tmp_path / "results/trials/0123456789abcdef.json").write_text("{}")
    done = tapnet_ends("merge", "results", folder=tmp_path, code=1)
    assert "0123456789abcdef.json" in done.stdout
    assert "Traceback" not in done.stderr


def test_hostile_packed_files_are_damaged_and_no_more(tmp_path):
    key = small_trial().key
    unknown = {"key": key, "trial": {"setting": "of a newer version"}}
    sealed = json.dumps(unknown | {"digest": digest(unknown)}, separators=(",", ":"))
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials/\x1b[31m.jsonl").write_text(f'{{"key":"{key}","a":' + "[" * 100_000 + "\n")
    (tmp_path / "trials/new.jsonl").write_text(sealed)
    os.mkfifo(tmp_path / "trials/pipe.jsonl")
    merged = merge_trials(tmp_path / "ours", [tmp_path])
    assert len(merged.damaged) == 2
    assert "pipe.jsonl: not a regular file" in str(merged)
    assert "\x1b" not in str(merged)
    assert merged.files == {"data.jsonl": 1}  # what this version does not know is kept
    (tmp_path / "trials/\x1b[31m.jsonl").unlink()
    assert len(merge_trials(tmp_path).damaged) == 1
