"""What is cached: damage is noticed, planted arrays never reach a compiled loop, a changed source is read again."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tapnet import load_dataset
from tapnet.data.structure import check_structure
from tapnet.errors import DataError
from tapnet.io import sealed_arrays
from tapnet.io.computed_cache import computed_once
from tapnet.io.dataset_files import layout_of
from tapnet.io.read import read_layout
from tapnet.io.sealed_arrays import read_arrays, write_arrays
from tests.helpers.faults import write_rings


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def text(tmp_path, own_cache):
    """A small data set, and its parsed copy."""
    file = write_rings(tmp_path / "RINGS.txt", graphs=4)
    load_dataset(file)
    (copy,) = own_cache.rglob("*.npz")
    return file, copy


def same(a, b):
    return a.checksum == b.checksum and a.classes == b.classes and a.node_label_values == b.node_label_values


@pytest.mark.parametrize("every", [997, pytest.param(1, marks=pytest.mark.slow)])
def test_every_flipped_bit_of_a_parsed_copy_is_noticed_or_harmless(text, every):
    file, copy = text
    whole, content, tried = load_dataset(file), copy.read_bytes(), 0
    arrays = read_arrays(copy)
    for bit in range(0, 8 * len(content), every):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(changed)
        found = read_arrays(copy)
        assert found is None or all(np.array_equal(found[name], arrays[name]) for name in arrays)
        tried += 1
    assert tried * every >= 8 * len(content)
    assert same(load_dataset(file), whole)


PLANTED = {
    "rowptr": lambda a: a + 10**12,
    "node_ptr": lambda a: a[::-1],
    "col": lambda a: a + 2**30,
    "y": lambda a: a - 1,
    "x": lambda a: a + 10**6,
    "node_labels": lambda a: a[:-1],
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("how", ["values", "type"])
def test_a_planted_parsed_copy_with_a_valid_checksum_is_read_from_the_source_instead(text, name, how):
    file, copy = text
    whole, arrays = load_dataset(file), read_arrays(copy)
    arrays[name] = PLANTED[name](arrays[name]) if how == "values" else arrays[name].astype(np.float64)
    write_arrays(copy, arrays)
    assert same(load_dataset(file), whole)
    assert read_arrays(copy)[name].dtype != np.float64


@pytest.mark.parametrize(
    "change", [{"classes": [{}]}, {"notes": [5]}, {"name": "other"}, {"features": "any"}, {"x": 1}]
)
def test_planted_words_are_not_believed(text, change):
    file, copy = text
    whole, arrays = load_dataset(file), read_arrays(copy)
    words = json.loads(arrays["words"].tobytes()) | change
    write_arrays(copy, arrays | {"words": np.frombuffer(json.dumps(words).encode(), np.uint8)})
    assert same(load_dataset(file), whole)


def test_a_source_that_was_edited_with_the_same_size_and_time_is_read_again(text):
    file, _ = text
    before, stat = load_dataset(file), file.stat()
    first, rest = file.read_text().split("\n", 1)
    size, ring = rest.split("\n", 1)[0].split()
    file.write_text(f"{first}\n{size} {1 - int(ring)}\n" + rest.split("\n", 1)[1])
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert load_dataset(file).y.tolist() != before.y.tolist()


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
def test_a_cache_that_is_no_regular_file_is_not_waited_for(text, kind):
    file, copy = text
    whole = load_dataset(file)
    copy.unlink()
    {"a pipe": os.mkfifo, "a device": lambda f: f.symlink_to("/dev/zero"), "a folder": Path.mkdir}[kind](copy)
    assert same(load_dataset(file), whole)


def test_a_bomb_is_not_unpacked(tmp_path):
    zeros = np.zeros(1 << 27, np.uint8)
    write_arrays(tmp_path / "bomb.npz", {"zeros": zeros}, compressed=True)
    assert read_arrays(tmp_path / "bomb.npz") is None


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "empty": np.zeros((0, 2), np.float32), "bool": np.array([True, False])}
    write_arrays(tmp_path / "a.npz", arrays)
    found = read_arrays(tmp_path / "a.npz")
    assert {k: (v.dtype, v.shape, v.tolist()) for k, v in found.items()} == {
        k: (v.dtype, v.shape, v.tolist()) for k, v in arrays.items()
    }


@pytest.fixture
def mapped(monkeypatch):
    """Parsed copies are mapped, however small they are."""
    monkeypatch.setattr(sealed_arrays, "MAPPED_BYTES", 0)
    monkeypatch.setattr(sealed_arrays, "MAPPED_ARRAY_BYTES", 1)


def test_large_arrays_are_mapped_and_the_same(text, mapped):
    file, copy = text
    arrays = read_arrays(copy)
    assert all(isinstance(arrays[name], np.memmap) for name in ("rowptr", "col", "x"))
    assert all(array.ctypes.data % 64 == 0 and array.flags.aligned for array in arrays.values())
    with np.load(copy) as stored:
        assert all(np.array_equal(stored[name], array) for name, array in arrays.items())
    found, parsed = load_dataset(file), read_layout(layout_of(file))
    assert same(found, parsed)
    assert torch.equal(found.batch([2, 0]).col, parsed.batch([2, 0]).col)
    assert same(found.subset([3, 1]), parsed.subset([3, 1]))


def test_damage_to_a_mapped_copy_is_noticed(text, mapped):
    file, copy = text
    whole, content = read_layout(layout_of(file)), copy.read_bytes()
    place = read_arrays(copy)["col"].offset
    copy.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    assert read_arrays(copy) is None
    assert same(load_dataset(file), whole)


def test_a_mapped_copy_that_is_replaced_stays_readable(text, mapped):
    file, copy = text
    found = load_dataset(file)
    before = found.col.tolist()
    write_arrays(copy, {"other": np.zeros(3)})
    assert found.col.tolist() == before


def test_the_structure_of_every_kind_of_data_set_is_accepted_and_nothing_else(text):
    dataset = load_dataset(text[0])
    for features in ("labels", "degrees"):
        check_structure(dataset.with_features(features))
    check_structure(dataset.subset([1, 0]))
    check_structure(dataset.subset([]))
    dataset.col[0] = 100
    with pytest.raises(DataError, match="col"):
        check_structure(dataset)


def test_planted_parts_of_what_is_computed_are_computed_again(own_cache):
    def compute(i):
        return {"index": np.arange(i + 1)}

    def get(fits=lambda _: True):
        found = computed_once("test", "data", {}, 3, compute, "", at_once=2, fits=fits)["index"]
        return found.values.tolist(), found.ptr.tolist()

    whole = get()
    first, second = sorted(own_cache.rglob("*.npz"))
    arrays = read_arrays(first)
    for wrong in (
        {"count index": np.array([2**40, -(2**40)])},
        {"count index": np.array([1.0, 2.0])},
        {"values index": arrays["values index"][:-1]},
        {"values other": np.zeros(3), "count other": np.array([1, 2])},
    ):
        write_arrays(first, arrays | wrong)
        assert get() == whole
    write_arrays(first, arrays | {"values index": arrays["values index"] + 7})
    assert get(lambda found: int(found["index"].values.max()) < 3) == whole
    assert torch.equal(torch.from_numpy(read_arrays(first)["values index"]), torch.tensor([0, 0, 1]))
    assert second.exists()


def test_a_source_that_changes_while_it_is_read_is_not_believed(tmp_path, own_cache, monkeypatch):
    file = write_rings(tmp_path / "RINGS.txt", graphs=4)

    def read_and_change(layout):
        found = read_layout(layout)
        file.write_text(file.read_text() + "\n")
        return found

    monkeypatch.setattr("tapnet.io.load.read_layout", read_and_change)
    with pytest.raises(DataError, match="changed while it was read"):
        load_dataset(file)
    assert not list(own_cache.rglob("*.npz"))


REFUSED = [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file"), MemoryError()]


@pytest.mark.parametrize("error", REFUSED)
def test_what_the_system_refuses_while_a_data_set_is_read_is_a_data_error(tmp_path, own_cache, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("tapnet.io.load.find", refuse)
    with pytest.raises(DataError, match="somewhere"):
        load_dataset(tmp_path / "somewhere")
