"""TU files read in parts of whole graphs: the same data set as read as a whole, or nothing."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tapnet import load_dataset
from tapnet.io import tu_parts
from tapnet.io.dataset_files import layout_of
from tapnet.io.read import read
from tapnet.io.tu_parts import read_large_tu
from tests.helpers.graphs import assert_same, datasets
from tests.helpers.tu_files import write
from tests.helpers.writers import write_tu


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(tu_parts, "LARGE_BYTES", 0)
    monkeypatch.setattr(tu_parts, "NODES_AT_ONCE", 7)
    monkeypatch.setattr(tu_parts, "LINES_AT_ONCE", 5)


@given(datasets(loops=False))  # the writer lists self-loops last
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_are_put_together_as_the_whole_is_read(tmp_path_factory, dataset):
    assume(dataset.num_edges > 0)
    folder = tmp_path_factory.mktemp("tu")
    write_tu(dataset, folder)
    whole, found = read(folder), read_large_tu(layout_of(folder))
    assert found is not None
    assert_same(found, whole)
    assert found.checksum == whole.checksum


def test_an_archive_is_read_in_parts(tmp_path):
    folder = write(tmp_path)
    archive = Path(shutil.make_archive(tmp_path / folder.name, "zip", folder.parent, folder.name))
    found = read_large_tu(layout_of(archive))
    assert found is not None
    assert_same(found, read(archive))
    assert found.checksum == read(folder).checksum


def test_the_parsed_copy_is_the_same(tmp_path):
    folder = write(tmp_path)
    assert_same(load_dataset(folder), read(folder))
    assert_same(load_dataset(folder), read(folder))


def test_self_loops_directed_and_repeated_edges_and_blank_lines(tmp_path):
    folder = write(tmp_path, A="1, 2\n1, 2\n3, 3\n\n4, 5\n5, 5\n6, 5\n")
    found = read_large_tu(layout_of(folder))
    assert found.self_loop.tolist() == [False, False, True, False, True, False]
    assert_same(found, read(folder))


@pytest.mark.parametrize(
    "changed",
    [
        {"graph_indicator": "1\n2\n1\n2\n1\n2\n"},
        {"A": "4, 5\n5, 4\n5, 6\n6, 5\n1, 2\n2, 1\n"},
        {"A": "1, 2\n2, 1\n3, 4\n4, 3\n5, 6\n6, 5\n"},
        {"node_labels": "0\n3\n3\n0\n1\n"},
        {"node_labels": "one\n3\n3\n0\n1\n0\n"},
        {"node_attributes": "0.5, 1\n-1e3, 2\n0, nan\n1, 1\n2, 2\n3, 3.25\n"},
        {"graph_labels": "-1\n1\n1\n"},
    ],
)
def test_what_cannot_be_read_in_parts_is_left_to_reading_as_a_whole(tmp_path, monkeypatch, changed):
    monkeypatch.setattr(tu_parts, "NODES_AT_ONCE", 2)
    monkeypatch.setattr(tu_parts, "LINES_AT_ONCE", 2)
    assert read_large_tu(layout_of(write(tmp_path / "good"))) is not None
    assert read_large_tu(layout_of(write(tmp_path / "other", **changed))) is None


def test_small_files_are_read_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(tu_parts, "LARGE_BYTES", 1 << 30)
    assert read_large_tu(layout_of(write(tmp_path))) is None
