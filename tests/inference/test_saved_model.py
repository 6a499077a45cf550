"""Stored models: what they read and predict, and files that are none."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from tapnet import load_dataset
from tapnet.errors import DataError
from tapnet.explorer.views import Choice, Explorer
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import read_model
from tests.helpers.writers import write_tu


def test_a_stored_model_predicts_what_it_did_while_it_was_trained(model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    read = saved.encode(mutag)
    assert read.checksum == mutag.checksum
    one, many = saved.probabilities(read.subset([5])), saved.probabilities(read)
    torch.testing.assert_close(one[0], many[5])
    torch.testing.assert_close(many.sum(1), torch.ones(188))


def test_a_copy_that_numbers_its_labels_otherwise_is_read_by_what_they_mean(model, tmp_path):
    mutag = load_dataset("MUTAG")
    write_tu(replace(mutag, node_label_values=(2, 5, 6, 3, 4, 1, 0)), tmp_path / "MUTAG")
    copy = load_dataset("MUTAG", tmp_path)
    assert (copy.category_names[0], copy.category_names[2]) == ("Br", "C")
    saved = SavedModel.load(model)
    assert torch.equal(saved.encode(copy).x, saved.encode(mutag).x)
    assert saved.encode(copy).category_names == tuple(map(str, mutag.categories))
    first, second = (Explorer(saved, data).graph(0, Choice()) for data in (mutag, copy))
    assert [first["categories"][i] for i in first["category"]] == [second["categories"][i] for i in second["category"]]


def test_a_category_that_it_never_saw_counts_as_none_and_is_named(model):
    saved, mutag = SavedModel.load(model), load_dataset("MUTAG")
    other = mutag.subset([0])
    strange = type(other)(**{**vars(other), "categories": ("Xe", *other.categories[1:]), "label_names": None})
    with pytest.warns(UserWarning, match="Xe"):
        read = saved.encode(strange)
    assert read.x.shape == (17, 7)
    assert read.x.sum() == (other.x != 0).sum()


@pytest.mark.parametrize("damage", ["weights", "types", "settings", "no description", "not a file of tensors", "huge"])
def test_a_file_that_is_no_model_is_one_sentence(model, tmp_path, damage):
    weights, about = load_file(model), read_model(model)[1].to_dict()
    file = tmp_path / "bad.safetensors"
    if damage == "weights":
        weights.pop(next(iter(weights)))
    if damage == "types":
        weights = {name: weight.half() for name, weight in weights.items()}
    if damage == "settings":
        about["trial"]["settings"]["pool"] = "__import__('os')"
    if damage == "huge":
        about["shape"]["in_channels"] = 10**15
    described = {} if damage == "no description" else {"tapnet": json.dumps(about)}
    save_file(weights, file, metadata=described)
    if damage == "not a file of tensors":
        file.write_bytes(b"\x80\x04\x95" + b"pickle" * 10)
    with pytest.raises(DataError, match="not a model"):
        SavedModel.load(file)
