"""`tapnet datasets`, `tapnet models` and `tapnet pools`."""

import json

from tapnet.models.registry import MODELS
from tapnet.training.settings import TrainingSettings
from tests.helpers.commands import tapnet


def test_datasets_lists_the_papers_ten():
    result = tapnet("datasets", "--json")
    assert result.returncode == 0, result.stderr
    rows = {row["name"]: row for row in json.loads(result.stdout)["datasets"]}
    assert len(rows) == 10
    assert rows["MUTAG"]["place"] == "package"
    assert rows["MUTAG"]["differs_from_paper"] == []
    assert rows["MUTAG"]["category_values"]["5"] == "Cl"
    table = tapnet("datasets")
    assert "MUTAG" in table.stdout
    assert "not here" in table.stdout


def test_data_with_a_known_truth_are_generated(tmp_path):
    made = tapnet("datasets", "--make", "path", "--out", tmp_path / "own", "--graphs", "30", "--nodes", "20", "--json")
    assert made.returncode == 0, made.stderr
    (row,) = json.loads(made.stdout)["datasets"]
    assert (row["name"], row["graphs"], row["classes"], row["largest_class"]) == ("own", 30, 2, 50.0)
    assert len((tmp_path / "own" / "own_node_truth.txt").read_text().splitlines()) == round(30 * row["mean_nodes"])
    for words in (["--make", "path"], ["--out", tmp_path], ["--make", "paths", "--out", tmp_path / "other"]):
        wrong = tapnet("datasets", *words)
        assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_models_lists_every_system_and_tells_all_about_one():
    rows = json.loads(tapnet("models", "--json").stdout)["models"]
    names = {row["name"] for row in rows}
    baselines = {row["name"] for row in rows if row["kind"] == "baseline"}
    assert baselines == {"majority", "size", "bag"}
    assert names - baselines == {
        "wl",
        "pscn",
        "dgcnn",
        "diffpool",
        "gunet",
        "sagpool",
        "gin",
        "eigenpool",
        "haarpool",
        "tapnet",
    }
    table = tapnet("models").stdout
    assert all(name in table for name in names)
    one = tapnet("models", "gin").stdout
    assert "How Powerful are Graph Neural Networks?" in one
    assert "hidden_channels = 64" in one
    all_of_tapnet = tapnet("models", "tapnet").stdout
    for name in (*MODELS["tapnet"].settings.names(), *TrainingSettings.names()):
        assert f"  {name} = " in all_of_tapnet
    assert "learn_connectivity = false  whether λ is learned" in all_of_tapnet  # as --set takes it
    wrong = tapnet("models", "resnet")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_pools_lists_every_layer_and_tells_all_about_one():
    rows = json.loads(tapnet("pools", "--json").stdout)
    assert {"tap", "mincut", "dmon", "just_balance", "hosc", "mem", "none"} <= {row["name"] for row in rows}
    assert {"name", "kind", "paper", "year", "about", "parameters", "losses", "cost", "memory"} == set(rows[0])
    assert rows[0]["year"] == 2021
    table = tapnet("pools").stdout
    assert all(row["name"] in table for row in rows)
    one = tapnet("pools", "mincut").stdout
    assert "Spectral Clustering with Graph Neural Networks" in one
    assert "orthogonality" in one
    wrong = tapnet("pools", "mincutt")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
    assert "did you mean mincut" in wrong.stderr


def test_what_is_not_known_of_a_layer_is_left_out():
    shown = tapnet("pools", "torch_geometric.nn:SAGPooling").stdout
    assert 'from the "Self-Attention Graph Pooling" and "Understanding Attention' in shown
    assert "papers.\n" in shown
    assert "http" not in shown
    assert "losses: none" in shown
    assert not any(f"{word}: " in shown for word in ("cost", "memory"))


def test_a_listing_with_a_broken_set_shows_the_others_and_ends_with_one(tmp_path):
    (tmp_path / "DD.zip").write_bytes(b"PK")
    result = tapnet("datasets", "--data-dir", tmp_path)
    assert result.returncode == 1
    assert "MUTAG" in result.stdout
    assert "DD.zip" in result.stdout.replace("\n", "").replace(" ", "")


def test_a_broken_data_set_is_one_line(tmp_path):
    (tmp_path / "X_A.txt").write_text("1, 2\n2, x\n")
    (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n")
    (tmp_path / "X_graph_labels.txt").write_text("1\n")
    result = tapnet("datasets", tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"tapnet: {tmp_path / 'X_A.txt'}:2: 'x' where a whole number belongs"]


def test_datasets_reads_as_train_does(tmp_path):
    lines = [f"{'C' * (i + 1)},{i}.5,{i % 2}" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["smiles,a,b", *lines]))
    unclear = tapnet("datasets", "t.csv", cwd=tmp_path)
    assert (unclear.returncode, len(unclear.stderr.splitlines())) == (1, 1)
    assert "--target" in unclear.stderr
    read = tapnet("datasets", "t.csv", "--target", "b", cwd=tmp_path)
    assert "the largest class has 50.0 %" in read.stdout
    assert (read.stderr.count("classification by b"), read.stdout.count("classification by b")) == (1, 0)
    rows = json.loads(tapnet("datasets", "t.csv", "--target", "a", "--json", cwd=tmp_path).stdout)["datasets"]
    assert rows[0]["task"] == "regression"
    assert any("regression of a" in note for note in rows[0]["notes"])
    missing = tapnet("datasets", "t.csv", "--smiles", "smile", cwd=tmp_path)
    assert "did you mean smiles" in missing.stderr


def test_data_without_a_target_are_listed_as_such(tmp_path):
    (tmp_path / "g.json").write_text('{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}')
    listed = tapnet("datasets", "g.json", cwd=tmp_path)
    assert "no target" in listed.stdout
    assert "largest class" not in listed.stdout
    (row,) = json.loads(tapnet("datasets", "g.json", "--json", cwd=tmp_path).stdout)["datasets"]
    assert (row["task"], row["largest_class"], row["class_counts"]) == (None, None, None)


def test_what_graphs_carry_is_listed():
    (row,) = json.loads(tapnet("datasets", "MUTAG", "--json").stdout)["datasets"]
    assert (row["class_counts"], row["degrees"]) == ({"not mutagenic": 63, "mutagenic": 125}, [1, 4])
    assert (row["nodes_carry"], row["edges_carry"]) == (["7 labels"], ["4 labels"])
    listed = tapnet("datasets", "MUTAG").stdout
    assert "mutagenic (125)" in listed
    assert "degrees 1 to 4" in " ".join(listed.split())
