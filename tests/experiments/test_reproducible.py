"""Which machine a number is from, and numbers that are the same on every machine of a kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tapnet import cross_validate
from tapnet.errors import SettingError
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary, machines_note
from tapnet.experiments.trial import Trial, TrialResult, versions
from tapnet.machine import NOT_RECORDED, REPRODUCIBLE, describe_machine
from tapnet.models.registry import find_model
from tapnet.paper.cells import Cell, StoredResults
from tapnet.paper.tables import make_sections
from tapnet.paper.targets import TAPNET, TARGETS
from tests.helpers.commands import tapnet

FIXED = pytest.mark.skipif(sys.platform == "darwin", reason="Accelerate cannot be fixed")
OTHER_PROCESSOR = {"ATEN_CPU_CAPABILITY": "avx2", "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse3"}


def result(**changes):
    trial = Trial("MUTAG", "data", "tapnet", find_model("tapnet").make_settings("MUTAG", {}), "paper", 0)
    trial = replace(trial, reproducible=changes.pop("reproducible", False))
    curves = {"train_loss": [1.0] * 200, "test_accuracy": [50.0] * 200}
    return TrialResult(trial, curves, 1.0, 1, versions() | changes)


def test_a_result_records_the_processor_the_instruction_sets_the_blas_and_the_threads():
    found = versions()
    assert {"machine", "cpu", "torch_cpu", "numba_cpu", "blas", "threads"} <= found.keys()
    assert all(isinstance(value, str) for value in found.values())
    assert all(found[name] for name in describe_machine())


def test_folds_of_different_machines_are_said_once_each():
    here, there = result(), result(cpu="another one", torch_cpu="AVX2")
    assert machines_note([here, here]) == ""
    assert "another one" in machines_note([here, there, there])
    assert machines_note([here, there]).count("another one") == 1
    assert Summary([here, there]).to_dict()["machines"] == sorted([here.machine, there.machine])


def test_results_of_before_are_not_recorded_and_contradict_nothing():
    old = replace(result(), versions={"torch": "2.4", "machine": "Linux x86_64"})
    assert old.machine == NOT_RECORDED
    assert machines_note([old, result()]) == ""
    assert Summary([old]).to_dict()["machines"] == [NOT_RECORDED]


def test_reproducible_results_of_two_processors_are_no_mixture():
    assert machines_note([result(reproducible=True), result(reproducible=True, cpu="another one")]) == ""


def test_reproducible_is_a_part_of_a_trials_name_but_not_of_its_seed():
    usual, fixed = result().trial, result(reproducible=True).trial
    assert "reproducible" not in usual.to_dict()
    assert usual.key != fixed.key
    assert usual.derived_seed == fixed.derived_seed
    assert Trial.from_dict(fixed.to_dict()) == fixed


def test_tables_take_one_of_the_two_arithmetics():
    both = [result(), result(reproducible=True)]
    assert StoredResults(both).checksums("MUTAG") == {"data"}
    assert StoredResults(both[:1], reproducible=True).checksums("MUTAG") == set()


def test_a_table_says_that_its_numbers_are_of_different_machines():
    cells = [Cell("MUTAG", TAPNET, "paper", None, (result(), result(cpu="another one")))]
    assert any("another one" in note for note in make_sections(TARGETS["table2"], cells, {}, {})[0].notes)
    alike = [replace(cells[0], results=(result(), result()))]
    assert not any("machine" in note for note in make_sections(TARGETS["table2"], alike, {}, {})[0].notes)


def test_a_gpu_is_not_reproducible():
    with pytest.raises(SettingError, match="cpu"):
        replace(result().trial, reproducible=True, device="cuda")


def test_a_process_that_was_started_otherwise_is_told_what_to_set(monkeypatch):
    with pytest.raises(SettingError, match="MKL_CBWR=COMPATIBLE"):
        cross_validate("MUTAG", reproducible=True)
    for name, value in REPRODUCIBLE.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match="before"):  # too late: torch is loaded
        cross_validate("MUTAG", reproducible=True)


def weights_and_curves(folder, *words, **environment):
    """Of two folds, by the command."""
    options = ["--folds", 3, "--only-folds", "0,1", "--epochs", 1, "--json"]
    done = tapnet("train", "MUTAG", *options, *words, "--out", folder, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    stored = sorted(Store(folder).results(), key=lambda r: r.trial.fold)
    models = [Store(folder).model_file(r.trial).read_bytes() for r in stored]
    return json.loads(done.stdout)["machines"], models, [r.curves for r in stored]


@FIXED
def test_the_same_bits_whatever_instruction_set_the_environment_asks_for(tmp_path):
    """Real commands: seconds. On the processor itself, and as if it were another."""
    first = weights_and_curves(tmp_path / "a", "--reproducible", "--jobs", 2)
    second = weights_and_curves(tmp_path / "b", "--reproducible", "--jobs", 1, **OTHER_PROCESSOR, MKL_CBWR="AVX2")
    assert first == second
    assert len(first[0]) == 1
    assert "torch DEFAULT, Numba generic" in first[0][0]


def test_a_user_keeps_the_other_tunables_of_glibc():
    code = "import tapnet.machine as m, json; print(json.dumps(m.is_reproducible()))"
    ours = REPRODUCIBLE.get("GLIBC_TUNABLES", "")
    other = "glibc.malloc.check=0"
    for tunables, expected in ((ours, True), (f"{other}:{ours}", True), (other, not ours)):
        env = {**os.environ, **REPRODUCIBLE, "GLIBC_TUNABLES": tunables}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) is expected
