"""Files of molecules: which column is what, what is left out and why, and the ways to write them."""

import gzip
import warnings
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet import GraphDataset, cross_validate, load_dataset
from tapnet.errors import DataError, DataNote, SettingError
from tapnet.io import molecules
from tapnet.io.graph_folder import require_targets
from tapnet.io.molecule_parts import MoleculeParts
from tapnet.io.molecules import read_molecule_table, read_molecules
from tapnet.io.splits import choose_splits
from tests.helpers.graphs import assert_same

Chem = pytest.importorskip("rdkit.Chem")

TABLE = """num,name,p_np,smiles,source
1,ethanol,1,CCO,a
2,bad,0,CN(C)(C)(C)C,a
3,nothing,1,,b

4,salt,0,[Na+].CC(=O)[O-] ,b
5,gap,,CCC,c
6,copy,0,OCC,c
"""


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "BBBP.csv"
    file.write_text(TABLE)
    return file


def refused(*given, **named):
    with pytest.raises(DataError) as error:
        read_molecules(*given, **named)
    return str(error.value)


def test_columns_are_found_and_said(table):
    dataset = read_molecules(table)
    assert (dataset.name, dataset.task, dataset.classes, dataset.target_names) == (
        *("BBBP", "classification", (0, 1)),
        ("p_np",),
    )
    assert dataset.y.tolist() == [1, 0, 0]
    assert dataset.graph_names == ("ethanol", "salt", "copy")
    assert dataset.smiles == ("CCO", "[Na+].CC(=O)[O-]", "OCC")
    assert dataset.graph_columns["source"] == ("a", "b", "c")
    assert dataset.subset([2]).graph_columns["source"] == ("c",)
    columns = dataset.notes[0]
    assert all(
        word in columns for word in ("column smiles", "p_np", "0 (2)", "1 (1)", "names from name", "num, source")
    )


def test_what_is_left_out_is_counted_and_named_with_its_line(table):
    _, empty, no_target, invalid, salts, copies = read_molecules(table).notes
    assert all(word in empty for word in ("1 of 6 rows", "without a molecule", "line 4"))
    assert all(word in no_target for word in ("1 of 6 rows", "without a target", "line 7"))
    assert all(word in invalid for word in ("1 of 6 rows", "line 3", "CN(C)(C)(C)C", "valence"))
    assert "1 of 3 molecules are salts" in salts
    assert "2 of 3 molecules have a copy" in copies
    assert "2 of them one with another target" in copies


def test_every_row_of_the_table_is_there_for_predictions(table):
    read = read_molecule_table(table, target=[])
    assert read.header == ("num", "name", "p_np", "smiles", "source")
    assert [row[1] for row in read.rows] == ["ethanol", "bad", "nothing", "salt", "gap", "copy"]
    assert [read.rows[i][1] for i in read.kept] == list(read.dataset.graph_names)
    assert read.dataset.classes == (None,)
    assert "no target" in read.dataset.notes[0]


def test_several_targets_in_one_text(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("SMILES,a,b,mol_id\nC,0,1,x\nCC,,,y\nCCC,1,,z\n")
    for target in ("a,b", "a, b", ["a", "b"]):
        dataset = read_molecules(file, target=target)
        assert (dataset.task, dataset.target_names, dataset.graph_names) == ("multilabel", ("a", "b"), ("x", "z"))
    assert read_molecules(file, target="a", task="regression").y.shape == (2, 1)
    message = refused(file)
    assert "which column is the target" in message
    assert "a, b" in message


def test_words_can_be_the_target(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("compound,smiles,effect\na,C,toxic\nb,CC,safe\nc,CCC,safe\nd,CCCC,toxic\n")
    assert read_molecules(file).classes == ("safe", "toxic")


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        ("smiles,p\nC,1\n", {"smiles": "SMILES"}, ["no column SMILES", "did you mean smiles"]),
        ("smiles,p\nC,1\n", {"target": "q"}, ["no column q", "smiles, p"]),
        ("smiles,p\nC,1\n", {"target": "smiles"}, ["cannot be the target"]),
        ("mass,p\nC,1\n", {}, ["which column holds the SMILES", "mass, p"]),
        ("smiles,p\nx,1\n", {}, ["no row has a valid molecule", "line 2"]),
        ("smiles,p\n,1\n", {}, ["no row"]),
        ("smiles,p\nC,1,2\n", {}, [":2:", "3 cells", "2"]),
        ("smiles,p,p\nC,1,2\n", {}, [":1:", "'p'"]),
        ("smiles,p\n", {}, ["a header and one row"]),
        ("", {}, ["a header and one row"]),
        ("smiles,p\nC,\0\n", {}, ["NUL"]),
        ("smiles,p\nC,x\n", {"task": "regression"}, ["which column is the target", "smiles, p"]),
        ("smiles,p\nC,1.5\nCC,x\n", {"task": "regression", "target": "p"}, [":3: p", "'x'"]),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, content, given, said):
    file = tmp_path / "t.csv"
    file.write_text(content)
    message = refused(file, **given)
    assert all(word in message for word in ["t.csv", *said]), message


def test_other_separators_and_compressed_files(tmp_path):
    plain = 'smiles;p\n\n"CC\nO";1.5\nC;2\n'
    (tmp_path / "a.csv").write_text("\ufeff" + plain)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"smiles,p\nCO,1.5\nC,2\n"))
    (tmp_path / "b.tsv").write_text("smiles\tname, with a comma\tp\nCO\tx\t1.5\nC\ty\t2\n")
    assert "line 3" in read_molecules(tmp_path / "a.csv").notes[1]
    assert read_molecules(tmp_path / "a.csv.gz").y.tolist() == [[1.5], [2]]
    assert read_molecules(tmp_path / "a.csv.gz").name == "a"
    assert read_molecules(tmp_path / "b.tsv", target="p").smiles == ("CO", "C")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"smiles,p\nCO,1.5\n")[:-9])
    assert "unpacked" in refused(tmp_path / "c.csv.gz")
    (tmp_path / "d.csv").write_bytes("smiles,p\nC,é\n".encode("latin-1"))
    assert "UTF-8" in refused(tmp_path / "d.csv")


def test_a_list_of_smiles(tmp_path):
    file = tmp_path / "list.smi"
    file.write_text("CCO ethanol, pure\n\nc1ccccc1\tbenzene\nC\n")
    dataset = read_molecules(file)
    assert (dataset.smiles, dataset.graph_names) == (("CCO", "c1ccccc1", "C"), ("ethanol, pure", "benzene", "C"))
    assert dataset.classes == (None,)


def test_sdf(tmp_path):
    file = tmp_path / "set.sdf"
    with Chem.SDWriter(str(file)) as writer:
        for name, smiles, value in (("ethanol", "CCO", 0.5), ("alanine", "C[C@H](N)C(=O)O", -1.5)):
            mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
            mol.SetProp("_Name", name)
            mol.SetProp("logS", str(value))
            writer.write(mol)
    text = file.read_text()
    file.write_text(text.replace("$$$$\n", "$$$$\nbroken\n\n\nnothing\nM  END\n$$$$\n", 1))
    dataset = read_molecules(file)
    assert (dataset.task, dataset.target_names, dataset.y.tolist()) == ("regression", ("logS",), [[0.5], [-1.5]])
    assert dataset.graph_names == ("ethanol", "alanine")
    assert dataset.nodes_per_graph.tolist() == [3, 6]
    assert "S" in {value[-1] for value in dataset.node_label_values}
    assert Chem.CanonSmiles(dataset.smiles[1]) == Chem.CanonSmiles("C[C@H](N)C(=O)O")
    assert f"line {text[: text.index('$$$$')].count(chr(10)) + 2}" in dataset.notes[1]


@pytest.mark.parametrize("blank", ["$$$$\n", "\n\n$$$$\n", " \n$$$$\n"])
def test_a_blank_record_of_an_sdf_is_a_row_without_a_molecule(tmp_path, blank):
    file, block = tmp_path / "set.sdf", Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    records = [f"{block}>  <logS>\n{i}.5\n\n$$$$\n" for i in range(3)]
    file.write_text(f"{records[0]}{blank}{''.join(records[1:])}\n \n")  # what follows the last mark is no record
    table = read_molecule_table(file)
    assert (len(table.rows), table.kept, table.dataset.y.flatten().tolist()) == (4, [0, 2, 3], [0.5, 1.5, 2.5])
    line = records[0].count("\n") + 1
    assert f"1 of 4 rows are left out, without a molecule: line {line}" in table.dataset.notes[1]


def test_an_sdf_is_read_by_its_mol_blocks_whatever_its_fields_are_called(tmp_path):
    file = tmp_path / "set.sdf"
    with Chem.SDWriter(str(file)) as writer:
        for smiles in ("CCO", "CCN"):
            mol = Chem.MolFromSmiles(smiles)
            if smiles == "CCO":
                mol.SetProp("SMILES", smiles)
            writer.write(mol)
    assert read_molecules(file).num_graphs == 2
    assert read_molecules(file, smiles="SMILES").num_graphs == 1


def test_load_dataset_takes_them(table, tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="left out"):
        dataset = load_dataset(table, target="p_np", smiles="smiles", task="regression")
    assert (dataset.task, dataset.name, dataset.features, dataset.place) == ("regression", "BBBP", "all", "path")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load_dataset("BBBP.csv").task == "classification"  # not what was read before
        assert load_dataset("BBBP.csv", features="degrees").features == "degrees"
    with pytest.raises(SettingError, match="molecules"):
        load_dataset("MUTAG", target="p")


def test_the_table_of_a_folder_of_graphs_is_no_table_of_molecules(tmp_path):
    (tmp_path / "a.graphml").write_text("")
    (tmp_path / "labels.csv").write_text("graph,class\na,1\n")
    with pytest.raises(DataError, match="name the folder"):
        load_dataset(tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("name", "target", "task", "shape"),
    [
        ("BBBP", None, "classification", (2039,)),
        ("ESOL", "measured log solubility in mols per litre", "regression", (1128, 1)),
    ],
)
def test_real_tables(real_data, name, target, task, shape):
    dataset = read_molecules(real_data / "molecules" / f"{name}.csv", target=target)
    assert (dataset.task, tuple(dataset.y.shape)) == (task, shape)
    mols = [Chem.MolFromSmiles(smiles) for smiles in dataset.smiles[:100]]
    assert dataset.nodes_per_graph[:100].tolist() == [mol.GetNumAtoms() for mol in mols]
    edges = [dataset[i].num_edges // 2 for i in range(100)]
    assert edges == [mol.GetNumBonds() for mol in mols]


def test_a_table_without_a_target_asks_for_its_column(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,activity\nCCO,<3.5\nCCN,<3\nCCC,>2\n")
    with pytest.warns(UserWarning, match="no target"):
        dataset = load_dataset(tmp_path / "m.csv")
    with pytest.raises(DataError, match="activity") as error:
        require_targets(dataset)
    assert "labels.csv" not in str(error.value)


def test_rows_without_a_part_are_in_no_part_of_the_split(tmp_path):
    rows = ["CCO,train,1", "CCN,,2", "CCC,train,3", "CCCC,test,4", "CO, ,1", "CN,val,2"]
    (tmp_path / "m.csv").write_text("\n".join(["smiles,part,y", *rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = load_dataset(tmp_path / "m.csv", target="y", task="regression")
    with pytest.warns(DataNote, match="2 graphs"):
        (split,) = choose_splits("column:part", dataset, 10).parts
    assert [part.tolist() for part in (split.train, split.validation, split.test)] == [[0, 2], [5], [3]]
    wrong = replace(dataset, graph_columns={"part": ("train", "Bonn", "test", "train", "train", "train")})
    with pytest.raises(DataError, match=r"m\.csv: the column 'part' says 'Bonn' of graph 1 \(CCN\)"):
        choose_splits("column:part", wrong, 10)


SMILES = ["C", "CC", "CCC", "CCCC", "CCCCC", "CCCCCC", "CO", "CCO", "CN", "CCN", "CF", "CCF"]


def written(path, mark, cells, header="y"):
    lines = [mark.join(["smiles", header]), *(f"{s}{mark}{c}" for s, c in zip(SMILES, cells, strict=True))]
    path.write_text("\n".join(lines))
    return path


def test_the_cell_that_keeps_a_column_from_being_the_target_is_named(tmp_path):
    cells = ["0,07", "-2,5", "3", "1,5", "abc", "1,25", "2,5", "1,5", "1,75", "1,8"]
    file = tmp_path / "t.csv"
    file.write_text("smiles;y\n" + "\n".join(f"CC{'C' * i};{cell}" for i, cell in enumerate(cells)))
    assert "y ('abc' in line 6: not a number)" in read_molecules(file).notes[0]
    file.write_text(file.read_text(encoding="utf-8").replace("abc", "\u22121,5"), encoding="utf-8")
    assert read_molecules(file).y[4].item() == -1.5


def test_decimal_commas_are_numbers_and_said(tmp_path):
    numbers = [i / 4 for i in range(12)]
    file = written(tmp_path / "t.csv", ";", [f"{n:.2f}".replace(".", ",") for n in numbers])
    for target in ("y", None):
        dataset = read_molecules(file, target=target)
        assert (dataset.task, dataset.y[:, 0].tolist()) == ("regression", numbers)
        assert "y has decimal commas" in dataset.notes[0]
    assert read_molecule_table(file, target=[]).rows[1] == ["CC", "0,25"]


def test_dashes_among_numbers_are_gaps_that_are_counted(tmp_path):
    file = written(tmp_path / "t.csv", ",", [*(f"{i}.5" for i in range(10)), "-", "?"])
    dataset = read_molecules(file)
    assert (dataset.task, len(dataset)) == ("regression", 10)
    assert any("2 cells" in note and "y" in note for note in dataset.notes)
    assert any("2 of 12 rows" in note for note in dataset.notes)
    assert read_molecules(written(tmp_path / "s.csv", ",", ["+", "-"] * 6)).classes == ("+", "-")


def test_a_column_without_a_name_is_not_said_to_be_left_aside(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(",smiles,y\n0,C,1\n1,CC,0\n")
    assert "left aside" not in read_molecules(file).notes[0]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([*(f"{i}.06" for i in range(11)), "inf"], "y ('inf' in line 13: numbers are finite)"),
        ([*(f"{i}.06" for i in range(11)), "1e400"], "y ('1e400' in line 13: numbers are finite)"),
        (["", *(f"1.{i:03},5" for i in range(11))], "y ('1.000,5' in line 3: numbers are written as 1234.5, "),
        ([f"{i}.2%" for i in range(12)], "y ('0.2%' in line 2: numbers are written without a unit)"),
        ([f"{i}.2 mg/L" for i in range(12)], "y ('0.2 mg/L' in line 2: numbers are written without a unit)"),
        ([*(f"{i}.5" for i in range(11)), "high"], "y ('high' in line 13: not a number)"),
        ([str(2000 + i) for i in range(12)], "y (taken for an id: "),
        ([f"word {i}" for i in range(12)], "y (12 different texts)"),
        ([f"{i}{letter}" for i in (1, 2) for letter in "abcdef"], "y (12 different texts)"),  # names of compounds
        (["same"] * 12, "y (the same everywhere)"),
        ([""] * 12, "y (empty)"),
    ],
)
def test_why_a_column_is_left_aside_is_said_where_there_is_no_target(tmp_path, cells, words):
    dataset = read_molecules(written(tmp_path / "t.csv", ";", cells))
    assert dataset.classes == (None,)
    assert f"no target; left aside: {words}" in dataset.notes[0]


def test_why_numbers_are_left_aside_is_said_where_the_target_was_found(tmp_path):
    cells = [f"{'inf' if i == 4 else i + 0.5},{'Bonn' if i % 2 else 'Ulm'},note {i}" for i in range(12)]
    file = written(tmp_path / "t.csv", ",", cells, header="y,lab,note")
    assert read_molecules(file).notes[0].endswith("left aside: y ('inf' in line 6: numbers are finite), note")
    assert read_molecules(file, target="lab").notes[0].endswith("left aside: y, note")  # the user's own choice


def test_targets_with_a_unit_are_remarked_with_their_line(tmp_path):
    dataset = read_molecules(written(tmp_path / "t.csv", ",", [f"{i}.5 mg/L" for i in range(12)]), target="y")
    assert dataset.num_classes == 12
    assert any("unit" in note and "'0.5 mg/L' in" in note and "t.csv:2" in note for note in dataset.notes)


# ---- more than fits into memory ----


@given(
    st.lists(
        st.tuples(st.sampled_from(["CCO", "OCC", "C", "[Na+].[Cl-]", "x", "", "c1ccccc1N", "N"]), st.integers(0, 1))
    ),
    st.integers(1, 4),
)
@settings(max_examples=30, deadline=None)
def test_molecules_in_parts_are_the_whole(tmp_path_factory, rows, at_once):
    file, made = tmp_path_factory.mktemp("parts") / "t.csv", []
    file.write_text("\n".join(["smiles,p,name,more", "CC,1,a,z", *(f"{text},{p},{p}b,x" for text, p in rows)]))
    whole = read_molecule_table(file, target="p")

    class Counted(molecules.MappedParts):
        def dataset(self):
            made.append(super().dataset())
            return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPNET_CACHE", str(file.parent / "cache"))
        patch.setattr(molecules, "LARGE_ROWS", 0)
        patch.setattr(molecules, "MOST_ROWS", at_once)
        patch.setattr(molecules, "MappedParts", Counted)
        found = read_molecule_table(file, target="p")
    assert len(made) == 1
    assert (found.header, found.rows, found.kept) == (whole.header, whole.rows, whole.kept)
    assert found.dataset.checksum == whole.dataset.checksum
    assert_same(found.dataset.with_features("labels"), whole.dataset.with_features("labels"))
    for key in ("notes", "smiles", "graph_names", "graph_columns", "label_names", "categories", "task", "target_names"):
        assert getattr(found.dataset, key) == getattr(whole.dataset, key), key


def test_without_room_on_the_disk_molecules_are_read_as_a_whole(table, monkeypatch, tmp_path):
    (tmp_path / "no folder").write_text("")
    whole = read_molecules(table)
    monkeypatch.setenv("TAPNET_CACHE", str(tmp_path / "no folder"))
    monkeypatch.setattr(molecules, "LARGE_ROWS", 0)
    assert read_molecules(table).checksum == whole.checksum


# ---- DataFrames ----


def test_a_dataframe_is_read_as_the_same_table_in_a_file(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(table, index_col="num")
    with pytest.warns(DataNote) as shown:
        found = load_dataset(frame, target="p_np")
    file = read_molecules(table, target="p_np")
    assert (found.checksum, found.classes, found.categories) == (file.checksum, file.classes, file.categories)
    assert (found.graph_names, found.smiles, found.task) == (file.graph_names, file.smiles, file.task)
    assert found.graph_columns["source"] == file.graph_columns["source"]
    notes = [str(warning.message) for warning in shown if warning.category is DataNote]
    assert notes == list(found.notes)
    for words in ("1 of 6 rows are left out, not valid: row 2 (CN(C)(C)(C)C", "without a target: row 5", "are salts"):
        assert any(words in note for note in notes)
    assert any("2 of 3 molecules have a copy" in note for note in notes)


def test_a_dataframe_of_values_of_any_kind():
    pandas = pytest.importorskip("pandas")
    smiles = ["CCO", "CCC", "CCN", "CO"]
    frame = pandas.DataFrame({"drug": smiles, "logP": [0.5, None, 1.5, 2.0], "toxic": [True, False, None, pandas.NA]})
    numbers = load_dataset(frame, smiles="drug", target="logP")
    assert (numbers.task, numbers.y.flatten().tolist()) == ("regression", [0.5, 1.5, 2.0])
    labels = load_dataset(frame, smiles="drug", target=["toxic", "toxic"], task="multilabel", features="labels")
    assert (labels.y.flatten().tolist(), labels.features) == ([1.0, 0.0], "labels")


def test_a_dataframe_is_cross_validated():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"smiles": ["C" * n + "O" * (n % 2) for n in range(1, 13)], "y": [0, 1] * 6, "z": [1, 2] * 6}
    )
    found = cross_validate(frame, "bag", folds=3, epochs=1, jobs=1, reading={"target": "y"})
    assert (len(found.scores), found.results[0].trial.dataset) == (3, "molecules")


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"a": [1]}, {}, "DataFrame: which column holds the SMILES. The columns are a"),
        ({"smiles": []}, {}, "DataFrame: holds no molecules"),
        ({"smiles": ["CCO"], "y": [1]}, {"target": "x"}, "DataFrame: no column x; the columns are smiles, y"),
        ({"smiles": ["C(", "O"], "y": [1, None]}, {"target": "y"}, "no row has a valid molecule: row 0 .C.:"),
        (
            {"smiles": ["C", "O"], "y": ["0.5", "1.5?"]},
            {"target": "y", "task": "regression"},
            "DataFrame, row 1: y: '1.5.'",
        ),
    ],
)
def test_what_is_wrong_with_a_dataframe_is_named(columns, options, words):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=words):
        load_dataset(pandas.DataFrame(columns), **options)


def test_options_that_molecules_do_not_have_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"smiles": ["CCO"]})
    for options in ({"threshold": 0.5}, {"directed": True}):
        with pytest.raises(SettingError):
            load_dataset(frame, **options)
    twice = pandas.DataFrame([["C", "O"]], columns=["smiles", "smiles"])
    with pytest.raises(DataError, match="two columns are called 'smiles'"):
        load_dataset(twice)


def test_smiles_alone_have_no_targets():
    assert len(load_dataset(["CCO", "CCC"])) == 2
    with pytest.raises(DataError, match=r"no target is known; give y, as in GraphDataset.from_smiles\(smiles, y\)"):
        cross_validate(["CCO", "CCC"])


def test_a_molecule_without_a_name_among_others_with_one_is_called_by_its_smiles(tmp_path):
    (tmp_path / "t.csv").write_text("Name,SMILES,y\nethanol,CCO,1.5\n,CCN,2.5\n  ,CCC,0.5\n")
    expected = ("ethanol", "CCN", "CCC")
    dataset = read_molecules(tmp_path / "t.csv")
    assert dataset.graph_names == expected
    (part,) = MoleculeParts(tmp_path / "t.csv")
    assert part.dataset.graph_names == expected
    assert GraphDataset.from_smiles(["CCO", "CCN"], names=["", "amine"]).graph_names == ("CCO", "amine")
    with pytest.raises(DataError, match="2 SMILES, but 1 names"):
        GraphDataset.from_smiles(["CCO", "CCN"], names=["amine"])
