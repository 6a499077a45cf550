"""`tapnet train` as a user types it: real processes, real output."""

import json
import os
import signal
import subprocess
import sys
import time

import networkx as nx
import pytest

from tapnet.cli import main
from tapnet.paper.numbers import printed
from tests.helpers.commands import CONSOLE, tapnet

QUICK = ("--epochs", 2, "--folds", 3, "--jobs", 1)


def test_train_prints_folds_protocol_and_the_papers_number(tmp_path):
    result = tapnet("train", "MUTAG", *QUICK[:4], "--out", tmp_path / "run")  # as many processes as by default
    assert result.returncode == 0, result.stderr
    assert "MUTAG, tapnet: " in result.stdout
    assert "(protocol fair: epoch with the lowest validation loss; 3 folds × 2 epochs)" in result.stdout
    assert "the paper prints 93.8 ± 6.0" in result.stdout
    assert result.stdout.count(" %") == 6  # the headline, the majority class, the paper's and three other readings
    assert "majority class: 66.5 %" in result.stdout
    (others,) = [line for line in result.stdout.splitlines() if "best test epoch of each fold" in line]
    assert others.count("±") == 3
    assert {"models", "run.json", "trials"} <= {p.name for p in (tmp_path / "run").iterdir()}


def test_train_json_is_one_object_and_nothing_else(tmp_path):
    out = tmp_path / "run"
    result = tapnet("train", *QUICK, "--protocol", "paper", "--only-folds", "0,2", "--json", "--out", out)
    values = json.loads(result.stdout)
    assert (values["dataset"], values["model"], values["pool"]) == ("MUTAG", "tapnet", "tap")
    assert values["protocol"] == "paper"
    assert [f["fold"] for f in values["folds"]] == [0, 2]
    accuracies = [f["accuracy"] for f in values["folds"]]
    assert values["mean"] == pytest.approx(sum(accuracies) / 2)
    assert 0 <= values["std"] <= 50 < max(accuracies) <= 100
    again = tapnet("train", *QUICK, "--protocol", "paper", "--only-folds", "0,2", "--json", "--out", out)
    assert "fold 0" not in again.stderr  # nothing was left to do
    assert json.loads(again.stdout) == values


def test_progress_names_the_metric_and_the_seed_and_the_papers_number_stands_beside_accuracies_alone(tmp_path):
    words = ("train", "MUTAG", *QUICK, "--only-folds", 0, "--seeds", 2, "--out", tmp_path / "run")
    first = tapnet(*words, "--metric", "roc_auc")
    assert first.returncode == 0, first.stderr
    assert "MUTAG seed 0, fold 0: roc_auc " in first.stderr
    assert "MUTAG seed 1, fold 0: roc_auc " in first.stderr
    assert "the paper prints" not in first.stdout
    assert "the paper prints" in tapnet(*words, "--metric", "roc_auc,accuracy").stdout


@pytest.fixture
def imbalanced(tmp_path):
    """92.5 % of the graphs are of one class, and nothing tells the others apart; edges have weights."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    for i in range(40):
        graph = nx.gnm_random_graph(6, 6 + i % 5, seed=i)
        nx.set_edge_attributes(graph, 0.5, "weight")
        nx.write_graphml(graph, folder / f"{i}.graphml")
    rows = "".join(f"{i},{'active' if i % 14 == 5 else 'inactive'}\n" for i in range(40))
    (folder / "labels.csv").write_text(f"graph,class\n{rows}")
    return folder


def test_the_majority_class_is_not_sold_as_a_result(imbalanced, tmp_path):
    """In the text, in JSON, and of the stored run; the weights that nothing reads are named."""
    words = ("train", imbalanced, "--model", "wl", "--folds", 4, "--jobs", 1, "--out", tmp_path / "run")
    text = tapnet(*words)
    assert text.returncode == 0, text.stderr
    assert "92.5 ± " in text.stdout
    assert "majority class: 92.5 %" in text.stdout
    assert "not above 92.5 %" in text.stderr
    assert "does not use the edges' weights" in text.stderr
    values = json.loads(tapnet(*words, "--json").stdout)
    assert values["baseline"] == {"accuracy": pytest.approx(92.5)}
    assert "majority class" in values["baseline_warning"]
    assert any("weight" in note for note in values["notes"])


def test_a_number_to_predict_is_called_one(imbalanced):
    rows = "".join(f"{i},{i * 0.37:.2f}\n" for i in range(40))
    (imbalanced / "labels.csv").write_text(f"graph,solubility\n{rows}")
    done = tapnet("train", imbalanced)
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert "40 different numbers for 40 graphs" in line
    assert "regression" in line


def test_train_takes_every_setting(tmp_path):
    words = "--pool tap --connectivity 1 --similarity concat --gate tanh --norm symmetric --no-global-voting --aux 0.1"
    more = "--batch-size 32 --lr 0.01 --seed 5 --jobs 1 --threads 2 --device cpu --only-folds 1 --features degrees"
    result = tapnet("train", "MUTAG", *QUICK, *words.split(), *more.split(), "--json", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    values = json.loads(result.stdout)
    assert values["settings"]["similarity"] == "concat"
    assert values["settings"]["global_voting"] is False
    assert values["training"]["lr"] == 0.01
    assert (values["seed"], values["threads"]) == (5, 2)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--pool max", 2, "pool is one of tap, topk, "),
        ("--similarity cosine", 2, "similarity is one of"),
        ("--gate relu", 2, "gate is one of"),
        ("--norm left", 2, "norm is one of"),
        ("--protocol best", 2, "'--protocol': 'best' is not one of 'paper', 'fair'"),
        ("--model resnet", 2, "model is one of"),
        ("--features colour", 2, "'colour' is not one of 'labels'"),
        ("--epochs 0", 2, "'--epochs': Input should be greater than or equal to 1"),
        ("--epochs many", 2, "Invalid value for '--epochs'"),
        ("--lr 0", 2, "lr is above 0"),
        ("--folds 2", 2, "needs at least 3 folds"),
        ("--only-folds 0,x", 2, "--only-folds is a list such as 0,3"),
        ("--only-folds 11", 2, "there is no fold 11"),
        ("--jobs 0", 2, "'--jobs': Input should be greater than or equal to 1"),
        ("--threads 0", 2, "'--threads': Input should be greater than or equal to 1"),
        ("--seed -1", 2, "'--seed': Input should be greater than or equal to 0"),
        ("--device tpu", 2, "'--device': 'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        ("--aux 1 --pool none", 2, "aux uses the similarities"),
        ("--aux inf", 2, "aux is a finite number"),
        ("--connectivity nan", 2, "connectivity is a finite number"),
        ("--batch-size 1000000000000000000000", 2, "batch"),
        ("--model gin --pool topk", 2, "the model gin has no setting 'pool'"),
        ("--model gin --set layers=1", 2, "layers is "),
        ("--model gin --set hidden_channels=abc", 2, "hidden_channels is a whole number"),
        ("--model gin --set dropout=true", 2, "dropout is a finite number"),
        ("--set ratios=5", 2, "ratios is a list such as [0.8, 0.6], not 5"),
        ("--model dgcnn --set k=3.5", 2, "k is a whole number or null, not 3.5"),
        ("--model dgcnn --set k=3", 2, "k is at least 10"),
        ("--model wl --lr 0.1", 2, "the model wl is not trained in steps: it has no lr"),
        ("--pool topk --connectivity 0.2", 2, "connectivity is a setting of pool 'tap'"),
        ("--model GINN", 2, "did you mean gin?"),
        ("--model gin --set halve_lr_every=-1", 2, "halve_lr_every is at least 0"),
        ("--set lr=fast", 2, "lr is a finite number"),
        ("--lr inf", 2, "lr is a finite number"),
        ("--set layers", 2, "--set takes NAME=VALUE"),
        ("--set dropout=null", 2, "--set dropout=null"),
        ("--set depht=3", 2, "the model tapnet has no setting 'depht'; "),
        ("--set dropuot=0.2", 2, "did you mean dropout?"),
        ("--set batch-sise=8", 2, "did you mean batch_size?"),
        ("--set progress=3", 2, "--set progress: not a setting"),
        ("--pool nothere:Pool", 2, "nothere:Pool cannot be imported"),
        ("--pool tapnet.nn.pool.topk:Nothing", 2, "tapnet.nn.pool.topk has no class Nothing"),
        ("--pool collections:Counter", 2, "Counter is no torch.nn.Module"),
        ("--set epochs=3", 2, "--set epochs: not a setting of the model"),
        ("--pool topkk", 2, "not 'topkk'; did you mean topk?"),
        ("--out /proc/nowhere", 1, "cannot be written"),
        ("--out README.md", 1, "README.md: is a file; results go into a folder"),
        ("--configs 3", 2, "--configs is an option of the protocol nested, not of fair"),
        ("--protocol paper --search random", 2, "--search is an option of the protocol nested, not of paper"),
        ("--final both", 2, "(both); --final takes single or ensemble"),
        ("--data-dir no-such-folder", 2, "--data-dir: no-such-folder is not a folder"),
    ],
)
def test_a_wrong_value_is_one_line_and_exit_code_two(words, code, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tapnet", "train", "MUTAG", *words.split()])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == code
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert message in line


@pytest.mark.parametrize(
    "words",
    ["--model gin --set hidden_channels=8 --set readout=mean --set halve_lr_every=3", "--pool topk --set ratios=[0.5]"],
)
def test_other_systems_and_any_setting_are_trained_by_name(words, tmp_path):
    result = tapnet("train", "MUTAG", *QUICK, *words.split(), "--json", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    values = json.loads(result.stdout)
    if values["model"] == "gin":
        assert (values["settings"]["hidden_channels"], values["settings"]["readout"]) == (8, "mean")
        assert [values["training"][k] for k in ("lr", "batch_size", "halve_lr_every")] == [0.01, 32, 3]
    else:
        assert (values["settings"]["ratios"], values["pool"]) == ([0.5], "topk")


def test_wl_is_said_to_have_no_epochs(tmp_path):
    result = tapnet("train", "MUTAG", "--model", "wl", "--folds", 3, "--jobs", 1, "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "no epochs, settings chosen within the training folds; 3 folds" in " ".join(result.stdout.split())
    stored = [json.loads(file.read_text()) for file in (tmp_path / "trials").iterdir()]
    assert [set(trial["curves"]) for trial in stored] == [{"test_accuracy"}] * 3  # and no loss that nobody measured


def test_a_changed_setting_is_named_and_compared_with_its_own_row(tmp_path):
    quick = ("--epochs", 1, "--folds", 3, "--only-folds", 0, "--jobs", 1, "--out", tmp_path)
    result = tapnet("train", "MUTAG", *quick, "--pool", "none", "--dropout", "0.999999")
    assert "MUTAG, tapnet with pool none, dropout 0.999999: " in result.stdout, result.stderr
    assert "the paper prints" not in result.stdout
    assert printed("tapnet", "PTC", {"pool": "none"}).mean == 70.6
    assert printed("tapnet", "PTC", {"aux": 0.5}).mean == 73.7
    assert printed("tapnet", "PTC", {"norm": "sum"}) is None
    assert printed("tapnet", "REDDIT-BINARY", {"local_voting": False, "global_voting": False}).mean == 91.5
    assert printed("gin", "PTC") == (64.6, 7.0)


def test_a_missing_data_set_is_one_line_and_exit_code_one(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPNET_TU_URL", "http://127.0.0.1:9")
    result = tapnet("train", "NOWHERE", "--data-dir", tmp_path)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert str(tmp_path) in line


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path):
    words = ["train", "MUTAG", "--epochs", "24", "--folds", "3", "--checkpoint-every", "1", "--json", "--out"]
    command = [sys.executable, "-m", "tapnet", *words, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "checkpoints").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    resumed, whole = tapnet(*words, tmp_path), tapnet(*words, tmp_path / "whole", "--jobs", 1)
    assert json.loads(resumed.stdout)["folds"] == json.loads(whole.stdout)["folds"]


@pytest.mark.parametrize("after", [3.0, pytest.param(5.0, marks=pytest.mark.slow)])
def test_ctrl_c_while_it_starts_is_one_line_too(tmp_path, after):
    command = [
        sys.executable,
        "-m",
        "tapnet",
        "train",
        "MUTAG",
        "--jobs",
        "2",
        "--epochs",
        "50",
        "--out",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        time.sleep(after)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # the latter before Python itself has started
    assert "Traceback" not in err


def test_a_killed_run_leaves_no_process_behind(tmp_path):
    words = ["train", "MUTAG", "--epochs", "500", "--folds", "3", "--jobs", "2", "--checkpoint-every", "1", "--out"]
    command = [sys.executable, "-m", "tapnet", *words, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "checkpoints").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    while time.monotonic() < deadline + 60:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process of the run is still there")


def test_a_pooling_layer_in_the_current_folder_is_trained_and_used(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch_geometric.nn import TopKPooling\n"
        "class Mine(TopKPooling):\n    pass\n"
        "class Wrong(torch.nn.Module):\n"
        "    def __init__(self, in_channels, ratio=0.5):\n        super().__init__()\n"
        "    def forward(self, x, edge_index, batch):\n        return x\n"
    )
    console = {"program": CONSOLE, "cwd": tmp_path}
    if sys.version_info < (3, 11):
        pytest.skip("-P, which leaves the current folder out as the console script does, is of Python 3.11")
    quick = ("--epochs", 1, "--folds", 3, "--jobs", 2, "--final", "--json", "--out")
    done = tapnet("train", "MUTAG", "--pool", "mine:Mine", *quick, "run", **console)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["pool"] == "mine:Mine"
    wrong = tapnet("train", "MUTAG", "--pool", "mine:Wrong", *quick, "wrong", **console)
    assert (wrong.returncode, wrong.stderr.splitlines()[-1].startswith("tapnet: Wrong")) == (2, True), wrong.stderr
    assert "Wrong returned" in wrong.stderr
    for words in (("predict", "run", "MUTAG"), ("show", "run")):
        unknown = tapnet(*words, **console)  # a file's word alone imports nothing
        assert (unknown.returncode, unknown.stderr.count("\n")) == (1 if len(words) == 3 else 2, 1)
        assert "mine:Mine, which is not known here; name it with --pool" in unknown.stderr
        assert tapnet(*words, "--pool", "mine:Mine", **console).returncode == 0


def test_a_convolution_of_pyg_is_trained_in_processes_and_used_when_it_is_named(tmp_path):
    quick = ("--epochs", 1, "--folds", 3, "--jobs", 2, "--final", "--json", "--out", "run")
    done = tapnet("train", "MUTAG", "--conv", "torch_geometric.nn:GATv2Conv", *quick, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["conv"].endswith(":GATv2Conv")
    unknown = tapnet("predict", "run", "MUTAG", cwd=tmp_path)  # a file's word alone imports nothing
    assert unknown.returncode in (1, 2)
    assert "--conv" in unknown.stderr.splitlines()[-1]
    named = tapnet("predict", "run", "MUTAG", "--conv", "torch_geometric.nn:GATv2Conv", cwd=tmp_path)
    assert named.returncode == 0, named.stderr


def test_what_does_not_fit_the_targets_is_refused_before_training(tmp_path):
    file = tmp_path / "numbers.csv"
    file.write_text("smiles,logp\n" + "".join(f"{'C' * n}O,{n * 0.37:.2f}\n" for n in range(1, 31)))
    for words in (("--model", "wl"), ("--class-weight", "balanced"), ("--metric", "accuracy"), ("--epochs", "0")):
        done = tapnet("train", file, *words, "--out", tmp_path / "run")
        assert done.returncode == 2, done.stderr
        assert not (tmp_path / "run").exists()


def test_final_stands_alone_or_takes_a_kind_and_the_model_says_how_sure_it_is(tmp_path):
    """From a run to sets, marks and calibration, as a user types it."""
    words = ("train", "--final", "MUTAG", *QUICK, "--set", "hidden_channels=8", "--out", "run")
    alone = tapnet(*words, cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert "trained on all 188 graphs" in alone.stdout
    assert " MB" in alone.stdout
    several = tapnet(*words[:1], "--final", "ensemble", *words[2:], "--json", cwd=tmp_path)
    final = json.loads(several.stdout)["final"]
    assert final["members"] == 3
    assert final["bytes"] == (tmp_path / "run/final.safetensors").stat().st_size
    assert tapnet("train", "MUTAG", "--final=many", cwd=tmp_path).returncode == 2

    predicted = tapnet("predict", "run", "MUTAG", "--confidence", 0.9, "--format", "jsonl", cwd=tmp_path)
    assert predicted.returncode == 0, predicted.stderr
    rows = [json.loads(line) for line in predicted.stdout.splitlines()]
    assert all(row["class"] in row["set"] for row in rows)
    assert all(0 <= row["distance"] <= 1 and row["std"] >= 0 for row in rows)
    assert rows[0]["calibration"] in ("none", "temperature", "isotonic")
    (line,) = (line for line in predicted.stderr.splitlines() if "asked for" in line)
    assert "asked for 90 %, measured " in line
    assert line.endswith("on 188 held-out graphs")
    table = tapnet("predict", "run", "MUTAG", "--confidence", 0.9, cwd=tmp_path).stdout.splitlines()
    assert table[0].endswith(",std,set,distance,unlike_training")
    refused = tapnet("predict", "run", "MUTAG", "--confidence", 0.999, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "needs at least 999 held-out graphs" in refused.stderr
    (fold, *_) = (tmp_path / "run/models").iterdir()
    refused = tapnet("predict", fold, "MUTAG", "--confidence", 0.9, cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "train one with --final" in refused.stderr

    shown = tapnet("show", "run", "--json", cwd=tmp_path)
    found = json.loads(shown.stdout)
    assert found["calibration"]["graphs"] == 188
    assert found["calibration"]["before"].keys() == {"ece", "brier", "log_loss", "accuracy"}
    assert found["calibration"]["after"]["log_loss"] <= found["calibration"]["before"]["log_loss"]
    assert (tmp_path / found["written"]).stat().st_size > 5000
    graph = json.loads(tapnet("show", "run", 0, "--json", cwd=tmp_path).stdout)
    assert graph["probabilities"] == pytest.approx(list(rows[0]["probabilities"].values()), abs=1e-5)


def test_systems_for_undirected_graphs_are_refused_where_directions_are_asked_for(tmp_path):
    folder = tmp_path / "graphs"
    folder.mkdir()
    for i in range(6):
        nx.write_graphml(nx.DiGraph([(0, 1), (1, 2)] if i % 2 else [(1, 0), (2, 1)]), folder / f"{i}.graphml")
    rows = [f"{i}.graphml,{i % 2}" for i in range(6)]
    (folder / "labels.csv").write_text("\n".join(["graph,class", *rows]))
    for command in (("train", "--pool", "mincut"), ("tune", "--model", "wl"), ("compare", "--systems", "tapnet,wl")):
        refused = tapnet(command[0], folder, "--directed", *command[1:], "--folds", 3, "--out", tmp_path / "run")
        assert (refused.returncode, "undirected graphs" in refused.stderr) == (2, True), refused.stderr
