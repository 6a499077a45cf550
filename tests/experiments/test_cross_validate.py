"""cross_validate as a notebook calls it: the numbers of single trials, nothing left behind, mistakes in a sentence."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import tapnet
from tapnet.data.checks import graph_codes
from tapnet.data.splits import stratified_folds
from tapnet.errors import SettingError
from tapnet.experiments.final import FinalTrial
from tapnet.experiments.load_run import load_run
from tapnet.experiments.run_trial import Interrupted
from tapnet.experiments.store import Store
from tapnet.experiments.summary import Summary
from tapnet.inference.uncertainty import distances, fit_reference, with_quantiles
from tapnet.models.predictor import embed_graphs

QUICK = {"epochs": 2, "folds": 3, "hidden_channels": 8}


@pytest.fixture(scope="module")
def mutag():
    return tapnet.load_dataset("MUTAG")


def test_a_name_a_path_and_a_data_set_give_the_same_numbers(mutag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_name = tapnet.cross_validate("MUTAG", jobs=1, **QUICK)
    by_value = tapnet.cross_validate(mutag, jobs=2, **QUICK)
    assert by_name.scores == by_value.scores
    assert [r.curves for r in by_name.results] == [r.curves for r in by_value.results]
    assert (by_name.mean, by_name.std) == (np.mean(by_name.scores), np.std(by_name.scores))
    assert (by_name.folder, by_name.final) == (None, None)
    assert not list(tmp_path.iterdir())
    for fact in ("MUTAG", "tapnet", "fair", "3 folds", "2 epochs", f"{by_name.mean:.1f}"):
        assert fact in repr(by_name)


def test_what_is_stored_is_not_trained_again(mutag, tmp_path):
    events = []
    first = tapnet.cross_validate(mutag, jobs=1, out=tmp_path / "{run}", progress=events.append, **QUICK)
    assert [(event.trial.fold, event.epoch) for event in events] == [(f, e) for f in range(3) for e in (1, 2)]
    again = tapnet.cross_validate(mutag, jobs=1, out=tmp_path / "{run}", progress=events.append, **QUICK)
    assert len(events) == 6
    assert again.to_dict() == first.to_dict()
    assert first.folder.name.startswith("MUTAG-tapnet-fair-")
    run = json.loads((first.folder / "run.json").read_text())
    assert run.pop("digest")
    assert run == json.loads(json.dumps({**first.to_dict(), "state": "complete"}))


@pytest.mark.parametrize("protocol", ["paper", "fair"])
def test_the_baseline_is_the_majority_class_on_the_same_test_folds(mutag, tmp_path, protocol):
    result = tapnet.cross_validate(mutag, protocol=protocol, jobs=1, only_folds=[1, 2], out=tmp_path, **QUICK)
    shares = [100 * float((mutag.y[f] == 1).double().mean()) for f in stratified_folds(mutag.y, 3)[1:]]
    assert result.baseline == {"accuracy": pytest.approx(np.mean(shares))}
    assert f"majority class: {np.mean(shares):.1f} %" in repr(result)
    assert load_run(tmp_path).baseline == result.baseline
    assert load_run(tmp_path).notes == result.notes
    assert any("copy in another fold" in note for note in result.notes)


@pytest.mark.parametrize("stored", [{}, {"baseline": 3, "notes": 3}, {"baseline": {"f1": "?"}}])
def test_a_run_that_was_stored_without_its_baseline_is_read(mutag, tmp_path, stored):
    result = tapnet.cross_validate(mutag, jobs=1, only_folds=[1], out=tmp_path, **QUICK)
    run = json.loads((tmp_path / "run.json").read_text())
    del run["baseline"], run["notes"], run["digest"]
    (tmp_path / "run.json").write_text(json.dumps(run | stored))
    assert (load_run(tmp_path).baseline, load_run(tmp_path).notes) == (None, ())
    assert load_run(tmp_path).mean == result.mean
    assert load_run(tmp_path).baseline_warning == ""
    assert "majority" not in repr(load_run(tmp_path))


def test_a_final_model_is_ready_to_predict(mutag, tmp_path):
    result = tapnet.cross_validate(mutag, jobs=1, out=tmp_path, final=True, only_folds=[0], **QUICK)
    assert result.to_dict()["final"]["graphs"] == 188
    model = tapnet.load_model(result.folder)
    assert model.card.cross_validation.mean == result.mean
    assert model.card.cross_validation.baseline == result.baseline
    assert model.card.final.epochs == result.results[0].reading.epoch
    with pytest.warns(UserWarning, match="earlier run"):
        tapnet.cross_validate(mutag, jobs=1, out=tmp_path, only_folds=[0], **QUICK | {"epochs": 3})


def test_a_final_model_has_the_connectivity_of_its_epoch(mutag):
    settings = {"connectivity": 0.0, "connectivity_end": 1.0, "hidden_channels": 8, "epochs": 5}
    (fold,) = tapnet.cross_validate(mutag, jobs=1, folds=3, only_folds=[0], **settings).results
    second = replace(fold, curves={**fold.curves, "validation_loss": [2.0, 1.0, 2.0, 2.0, 2.0]})
    final = FinalTrial.after(Summary([second]))
    assert (final.training.epochs, final.settings.connectivity_end) == (2, 0.25)


def test_an_interrupt_leaves_checkpoints_that_continue_to_the_same_numbers(mutag, tmp_path):
    def stop(event):
        if event.trial.fold == 1 and event.epoch == 1:
            os.kill(os.getpid(), signal.SIGINT)

    quick = QUICK | {"epochs": 4}
    with pytest.raises(Interrupted, match="1 of 3"):
        tapnet.cross_validate(mutag, jobs=1, out=tmp_path, progress=stop, **quick)
    assert len(list(tmp_path.glob("checkpoints/*.pt"))) == 1
    resumed = tapnet.cross_validate(mutag, jobs=1, out=tmp_path, **quick)
    assert resumed.scores == tapnet.cross_validate(mutag, jobs=1, **quick).scores


def test_settings_of_training_come_by_name(mutag, tmp_path):
    tapnet.cross_validate(mutag, lr=0.01, out=tmp_path, jobs=1, only_folds=[0], **QUICK)
    (stored,) = Store(tmp_path).results()
    assert stored.trial.training.lr == 0.01


@pytest.mark.parametrize(
    ("given", "similarity"), [({}, "dot"), ({"heads": 2}, "bilinear"), ({"pool": "topk"}, "bilinear")]
)
def test_what_is_usual_for_molecules_gives_way_to_what_is_given(given, similarity):
    pytest.importorskip("rdkit")
    molecules = tapnet.GraphDataset.from_smiles(
        ["CCO", "CCN", "CCC", "CO", "CN", "CC"] * 2, [float(i) for i in range(12)]
    )
    trial = tapnet.cross_validate(molecules, folds=3, only_folds=[0], epochs=1, jobs=1, **given).results[0].trial
    assert (trial.settings.similarity, trial.settings.conv, trial.training.select_from) == (similarity, "gine", 0.5)


@pytest.mark.parametrize("new_folds", [False, True])
def test_several_seeds_train_every_fold_again(mutag, tmp_path, new_folds):
    alone = tapnet.cross_validate(mutag, jobs=1, out=tmp_path, **QUICK)
    result = tapnet.cross_validate(mutag, jobs=1, out=tmp_path, seeds=3, new_folds=new_folds, final=True, **QUICK)
    assert result.scores[:3] == alone.scores
    assert [(r.trial.seed, r.trial.fold) for r in result.results] == [(s, f) for s in range(3) for f in range(3)]
    assert (result.mean, result.std) == (np.mean(result.scores), np.std(result.scores))
    assert len({tuple(r.curves["train_loss"]) for r in result.results}) == 9
    tests = [tuple(r.predicted["test"].graphs.tolist()) for r in result.results]
    assert len(set(tests)) == (9 if new_folds else 3)
    for seed, first in enumerate((0, 3, 6)):
        expected = stratified_folds(mutag.y, 3, seed if new_folds else 0)
        assert tests[first : first + 3] == [tuple(fold.tolist()) for fold in expected]
    values = result.to_dict()
    assert (values["seeds"], values["new_folds"]) == (3, new_folds)
    assert [fold["seed"] for fold in values["folds"]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert "3 folds × 2 epochs × 3 seeds" in result.rules
    assert load_run(tmp_path).scores == result.scores
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert lines[0].startswith("graph,name,seed,fold,")
    assert len(lines) == 1 + 3 * len(mutag)
    assert tapnet.load_model(tmp_path).card.trial.seed == 0


def test_a_final_model_is_compared_with_graphs_that_the_folds_were_not_trained_on(mutag, tmp_path):
    """Also where the folds are those of another seed."""
    result = tapnet.cross_validate(mutag, jobs=1, out=tmp_path, seed=1, new_folds=True, final=True, **QUICK)
    far = []
    for r in result.results:
        network = tapnet.load_model(Store(tmp_path).model_file(r.trial)).network
        rows, test = embed_graphs(network, mutag).numpy(), r.predicted["test"].graphs
        far.append(distances(fit_reference(rows[r.trial.split_of(mutag).train.numpy()]), rows[test]))
    saved = tapnet.load_model(tmp_path)
    reference = fit_reference(embed_graphs(saved.network, mutag).numpy())
    assert saved.card.reference.quantiles == with_quantiles(reference, np.concatenate(far)).quantiles


def test_folds_by_groups_are_drawn_anew_and_keep_groups_together(mutag):
    result = tapnet.cross_validate(mutag, jobs=1, split="deduplicate", seeds=2, new_folds=True, **QUICK)
    codes = graph_codes(mutag)
    tests = [r.predicted["test"].graphs for r in result.results]
    assert len({tuple(test.tolist()) for test in tests}) == 6
    for seed in (0, 1):
        fold_of = np.empty(len(mutag), int)
        for fold in range(3):
            fold_of[tests[3 * seed + fold]] = fold
        assert all(len(set(fold_of[codes == code])) == 1 for code in np.unique(codes))


@pytest.mark.parametrize(
    ("changed", "fact"),
    [
        ({"hiden_channels": 8}, "hidden_channels"),
        ({"model": "gcn"}, "model is one of"),
        ({"protocol": "best"}, "protocol is one of"),
        ({"only_folds": [7]}, "no fold 7"),
        ({"only_folds": []}, "only_folds"),
        ({"jobs": 0}, "jobs is at least 1"),
        ({"seeds": 0}, "seeds is at least 1"),
        ({"device": "tpu"}, "device is auto, cpu or cuda"),
        ({"final": True}, "out"),
        ({"model": "wl", "lr": 0.1}, "lr"),
        ({"learning_rate": 0.1}, "learning_rate"),
        ({"features": "colours"}, "features is one of"),
    ],
)
def test_a_mistake_is_a_sentence_without_flags(mutag, changed, fact):
    with pytest.raises(SettingError) as error:
        tapnet.cross_validate(mutag, **{"folds": 3, "epochs": 1, **changed})
    assert fact in str(error.value)
    assert "--" not in str(error.value)


SCRIPT = """
import tapnet
from torch_geometric.nn import TopKPooling

class MyPool(TopKPooling):
    pass

result = tapnet.cross_validate("MUTAG", pool=MyPool, epochs=1, folds=3, hidden_channels=8, out="run", final=True)
assert result.to_dict()["pool"] == "__main__:MyPool"
try:
    tapnet.cross_validate("MUTAG", pool=MyPool, cluster=object())
except tapnet.TapnetError as error:
    assert "__main__:MyPool" in str(error)
assert len(tapnet.load_model("run", pools=[MyPool]).predict("MUTAG")) == 188
"""


@pytest.mark.parametrize("how", ["script", pytest.param("cell", marks=pytest.mark.slow)])
def test_a_pooling_class_of_the_script_itself(tmp_path, how):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = ["script.py"] if how == "script" else ["-c", SCRIPT]  # a notebook's cell has no file either
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(tapnet.TapnetError, match="__main__:MyPool"):  # nothing is imported because a file says so
        tapnet.load_model(tmp_path / "run")


def test_the_callers_threads_and_random_numbers_stay_as_they_were(mutag):
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    tapnet.cross_validate(mutag, folds=3, only_folds=[0], epochs=1, jobs=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


PLAIN_SCRIPT = """
import enum, networkx as nx, tapnet

class Kind(enum.IntEnum):
    PATH = 0
    RING = 1

graphs = [nx.path_graph(n) for n in range(4, 12)] + [nx.cycle_graph(n) for n in range(4, 12)]
dataset = tapnet.GraphDataset.from_networkx(graphs, [Kind.PATH] * 8 + [Kind.RING] * 8)
print("ran")
for data in (dataset, "MUTAG"):
    tapnet.cross_validate(data, epochs=1, folds=3, hidden_channels=8, jobs=2)
"""


def test_a_script_needs_no_guard_for_processes(tmp_path):
    (tmp_path / "script.py").write_text(PLAIN_SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ran\n"  # once: the processes do not run it again


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_json_says_whether_classes_were_weighted(weight):
    result = tapnet.cross_validate("MUTAG", "bag", folds=3, epochs=1, jobs=1, class_weight=weight)
    assert result.to_dict()["class_weight"] == weight
