"""`tapnet reproduce`: from trials to tables, with real processes and the MUTAG of the package."""

import csv
import json
import os
import shutil

import pytest

from tapnet.cli.terminal import print_sections
from tapnet.experiments.store import Store
from tapnet.paper.tables import Section
from tests.helpers.commands import tapnet as run
from tests.helpers.commands import tapnet_ends as tapnet

QUICK = ("reproduce", "table2", "--systems", "TAPNet,WL,GIN", "--budget", "quick")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run without any data folder: of Table 2 only MUTAG is at hand."""
    folder = tmp_path_factory.mktemp("quick")
    return folder, tapnet(*QUICK, folder=folder)


def test_quick_writes_tables_and_a_picture_and_says_what_is_not_here(quick):
    folder, done = quick
    text = (folder / "results/quick/table2.md").read_text()
    assert "| TAPNet | 93.8 ± 6.0 |" in text
    assert "2 of 3 × 2" in text
    assert "MUTAG: 24 of 188 graphs, 17.9 nodes" in text
    assert "MUTAG: 24 of 188 graphs" in done.stdout
    assert "PTC: 344 graphs" in text
    assert "PTC is not here" in text
    assert "PTC is not here" in done.stdout
    assert (folder / "results/quick/table2.png").stat().st_size > 5000
    assert (folder / "results/quick/table2.svg").read_text().startswith("<?xml")
    with (folder / "results/quick/table2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(r["dataset"], r["system"], r["protocol"]) for r in rows} >= {
        ("MUTAG", "GIN", "fair"),
        ("DD", "WL", "paper"),
    }
    for row in rows:  # a cell without trials is empty
        assert bool(row["mean"]) == (row["dataset"] == "MUTAG")


def test_nothing_is_computed_twice_and_missing_says_what_is_left(quick):
    folder, _ = quick
    trials = sorted((folder / "results/quick/trials").iterdir())
    assert len(trials) == 3 * 2 * 2
    before = [file.stat().st_mtime_ns for file in trials]
    done = tapnet(*QUICK, folder=folder)
    assert [file.stat().st_mtime_ns for file in trials] == before
    assert "fold" not in done.stderr
    assert "0 of 12 trials are missing" in tapnet(*QUICK, "--missing", folder=folder).stdout
    words = (*QUICK[:2], "--budget", "quick", "--systems", "TAPNet,PSCN", "--missing")
    listed = tapnet(*words, folder=folder).stdout.split("\n")
    assert listed[:2] == [f"MUTAG: pscn, {protocol}, 2 epochs, folds 0 1" for protocol in ("paper", "fair")]
    more = tapnet(*words, "--json", folder=folder)
    assert [row["trial"].split(",")[0] for row in json.loads(more.stdout)["missing"]] == ["pscn"] * 4


def test_trials_of_another_machine_are_merged_by_copying_files(quick, tmp_path):
    folder, _ = quick
    shutil.copytree(folder / "results/quick/trials", tmp_path / "store/trials")
    tapnet(*QUICK, "--stored", "--out", "store", folder=tmp_path)  # QUICK's own budget, whose data these are
    assert (tmp_path / "store/table2.csv").read_text() == (folder / "results/quick/table2.csv").read_text()
    assert len(list(Store(tmp_path / "store").results())) == 12


def test_trials_of_another_copy_are_shown_and_said_to_be(quick):
    """The budget `paper` has all of MUTAG at hand; these trials are of 24 graphs."""
    folder, _ = quick
    text = (folder / "results/quick/table2.md").read_text()
    tapnet(*QUICK[:2], "--stored", "--out", "results/quick", folder=folder)
    shown = (folder / "results/quick/table2.md").read_text()
    assert "These trials are of another copy of MUTAG, or a part of it, than is here." in shown
    assert next(line for line in text.split("\n") if "2 of 3 × 2" in line) in shown
    tapnet(*QUICK, "--stored", folder=folder)
    assert (folder / "results/quick/table2.md").read_text() == text


def test_any_data_set_may_be_asked_for_and_none_is_dropped(quick):
    folder, _ = quick
    words = ("reproduce", "table1", "--datasets", "PTC,MUTAG,IMDB-BINARY", "--systems", "WL", "--missing", "--json")
    found = json.loads(tapnet(*words, folder=folder).stdout)
    assert found["data_sets_not_here"] == ["PTC", "IMDB-BINARY"]
    assert {row["dataset"] for row in found["missing"]} <= {"MUTAG"}


def test_a_normalisation_is_called_by_its_name(tmp_path):
    words = ("reproduce", "norm", "--datasets", "MUTAG", "--systems", "Symmetric", "--missing", "--protocol", "fair")
    listed = tapnet(*words, folder=tmp_path).stdout.split("\n")
    assert listed[0] == "MUTAG: tapnet (norm=symmetric), fair, 2 epochs, folds 0 1"
    assert listed[1].startswith("2 of 2 trials are missing")


def test_a_target_without_what_is_asked_for_keeps_its_files(quick, tmp_path):
    folder, _ = quick
    shutil.copytree(folder / "results/quick/trials", tmp_path / "store/trials")
    (tmp_path / "store/table3.md").write_text("as it was")
    words = ("reproduce", "all", "--systems", "GIN", "--budget", "quick", "--stored", "--out", "store")
    tapnet(*words, folder=tmp_path)
    assert (tmp_path / "store/table3.md").read_text() == "as it was"
    assert "| GIN |" in (tmp_path / "store/table2.md").read_text()


def test_a_stored_trial_is_one_short_line(quick):
    folder, _ = quick
    for file in (folder / "results/quick/trials").iterdir():
        text = file.read_text()
        assert text.count("\n") == 1
        assert json.loads(text)["versions"]["torch"]


def test_the_report_is_filled_in(quick, tmp_path):
    folder, _ = quick
    tapnet(*QUICK, "--stored", "--report", tmp_path / "RESULTS.md", folder=folder)
    assert "## Table 2" in (tmp_path / "RESULTS.md").read_text()


def test_illustrations_need_no_data(tmp_path):
    for name in ("voting", "architecture"):
        tapnet("reproduce", name, folder=tmp_path)
        assert (tmp_path / f"results/quick/{name}.png").stat().st_size > 5000
    assert "PTC is not here" in tapnet("reproduce", "coarsening", folder=tmp_path).stdout


def test_the_coarsening_of_ptc(real_data, tmp_path):
    done = tapnet("reproduce", "coarsening", "--data-dir", real_data, folder=tmp_path)
    assert "6 nodes kept of each of" in done.stdout
    assert (tmp_path / "results/quick/coarsening.svg").stat().st_size > 5000


def test_the_coarsening_of_ptc_again_in_a_terminal(real_data, tmp_path):
    """Its networks are listed while they are missing; once they are there, there is no progress to show."""
    words = ("reproduce", "coarsening", "--data-dir", real_data)
    assert "its network, for coarsening" in tapnet(*words, "--missing", folder=tmp_path).stdout
    tapnet(*words, folder=tmp_path)
    assert "0 of 0 trials are missing" in tapnet(*words, "--missing", folder=tmp_path).stdout
    reader, writer = os.openpty()
    try:
        done = run(*words, cwd=tmp_path, capture_output=False, stdout=writer, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 0, os.read(reader, 10_000).decode()
    os.close(reader)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), (b"\xff\xfe", "UTF-8"), (b"no marks", "it has no")]
)
def test_a_page_that_cannot_take_the_tables_is_refused_before_anything_is_trained(tmp_path, content, message):
    page = tmp_path / "page.md"
    page.mkdir() if content is None else page.write_bytes(content)
    done = tapnet(*QUICK, "--report", page, folder=tmp_path, code=1)
    assert message in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table7"], "a target is one of table1"),
        (["tabel2"], "did you mean table2?"),
        (["table1", "--datasets", "IMDB-BINRY"], "did you mean IMDB-BINARY?"),
        (["table1", "--systems", "TAPNet,EigenPol"], "table1 has no 'eigenpol'; it has WL, PSCN"),
        (["table2", "--systems", "SAGPol"], "did you mean SAGPool?"),
        (["all", "--systems", "Net_topk"], "did you mean Net_top-k?"),
        (["table1", "--budget", "huge"], "'huge' is not one of 'quick'"),
        (["table1", "--datasets", "NOPE"], "no data set 'NOPE'"),
        (["table1", "--systems", "NOPE"], "table1 has no 'nope'; it has WL, PSCN"),
        (["table1", "--protocol", "best"], "'best' is not one of 'paper', 'fair', 'both'"),
        (["voting", "--datasets", "NOPE"], "no data set 'NOPE'"),
        (["voting", "--systems", "TAPNet"], "voting has no systems"),
        (["voting", "--report", "page.md"], "voting has no table"),
        (["table1", "--folds", "11", "--budget", "paper"], "folds is at most 10"),
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path):
    done = tapnet("reproduce", *words, folder=tmp_path, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_table_is_never_cut_to_the_width_of_a_pipe(capsys):
    section = Section("T", ("system", *(f"column {i}" for i in range(20))), (("x", *["72.6 ± 7.7 †"] * 20),))
    print_sections("A title", [section], [])
    assert capsys.readouterr().out.count("72.6 ± 7.7 †") == 20
