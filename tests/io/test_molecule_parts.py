"""Files of molecules in parts: the same rows, molecules and notes as the whole file, whatever the parts."""

import gzip
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet.errors import DataError
from tapnet.io import molecule_parts
from tapnet.io.molecule_parts import MoleculeParts, reading_ahead
from tapnet.io.molecules import read_molecule_table

pytest.importorskip("rdkit")

CELLS = ("CCO", "OCC", "c1ccccc1", "[Na+].[Cl-]", "C[C@H](N)O", "C1CC", "", " ", "CN(C)(C)(C)C", "\nCC ")


def in_parts(file, rows, multiple=1, smiles=None):
    """All parts with so many rows read at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(molecule_parts, "ROWS_AT_ONCE", rows)
        parts = MoleculeParts(file, smiles, multiple=multiple)
        return parts, list(parts)


def said_by(read):
    """What is read, or why it cannot be."""
    try:
        return read()
    except DataError as error:
        return str(error)


def assert_same_as_whole(file, rows, multiple):
    whole = said_by(lambda: read_molecule_table(file, None, []))
    if isinstance(whole, str):
        assert said_by(lambda: in_parts(file, rows, multiple)) == whole
        return
    parts, found = in_parts(file, rows, multiple)
    assert parts.header == whole.header
    assert parts.num_rows == len(whole.rows)
    assert [row for part in found for row in part.rows] == whole.rows
    assert (parts.description, *parts.notes) == whole.dataset.notes
    first, kept, names, smiles, numbers, atoms = 0, [], [], [], [], []
    for part in found:
        kept += [first + row for row in part.kept]
        first += len(part.rows)
        if part.dataset is not None:
            names += part.dataset.graph_names
            smiles += part.dataset.smiles
            numbers.append(part.dataset.node_attributes.numpy())
            atoms += [part.dataset.node_label_values[i] for i in part.dataset.node_labels.tolist()]
    dataset = whole.dataset
    assert (kept, tuple(names), tuple(smiles)) == (whole.kept, dataset.graph_names, dataset.smiles)
    assert np.array_equal(np.concatenate(numbers), dataset.node_attributes.numpy())
    assert atoms == [dataset.node_label_values[i] for i in dataset.node_labels.tolist()]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(CELLS), st.sampled_from(["", "a", "b, c", 'd "e"', "f\ng"])), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 7),
    st.integers(1, 3),
)
def test_a_table_in_parts_is_the_table(tmp_path_factory, rows, ends, at_once, multiple):
    file = tmp_path_factory.mktemp("table") / "t.csv"
    quoted = [",".join('"{}"'.format(cell.replace('"', '""')) for cell in row) for row in [("smiles", "name"), *rows]]
    file.write_bytes("".join(f"{row}{ends}" for row in quoted).encode())
    assert_same_as_whole(file, at_once, multiple)


@pytest.mark.parametrize(("at_once", "multiple"), [*product((1, 3, 100), (1, 2))])
def test_lists_and_sdf_in_parts(tmp_path, at_once, multiple):
    from rdkit import Chem

    (tmp_path / "a.smi").write_text("SMILES title\nCCO first\n\nC1CC bad\x0bOCC\u2028N\tammonia x \n")
    assert_same_as_whole(tmp_path / "a.smi", at_once, multiple)
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(text)) for text in ("CCO", "C", "OCC", "[Na+].[Cl-]")]
    records = [f"{block}>  <{'ab'[i % 2]}>\n{i}\n\n$$$$\n" for i, block in enumerate(blocks)]
    (tmp_path / "b.sdf").write_text("".join(records).replace("\n", "\r\n") + "no molecule\nM  END\n$$$$")
    assert_same_as_whole(tmp_path / "b.sdf", at_once, multiple)
    (tmp_path / "d.sdf").write_text(f"$$$$\n{records[0]}\n$$$$\n{records[1]}\n")
    assert_same_as_whole(tmp_path / "d.sdf", at_once, multiple)
    (tmp_path / "c.sdf.gz").write_bytes(gzip.compress((tmp_path / "b.sdf").read_bytes()))
    assert_same_as_whole(tmp_path / "c.sdf.gz", at_once, multiple)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"smiles,p\n",
        b"mass,p\nC,1\n",
        b"smiles,smiles\nC,1\n",
        b"smiles,p\nC,1\nC,1,2\n",
        b"smiles,p\nC,1\nC," + b"x" * 200_000 + b"\n",
        b"smiles,p\n,1\n ,2\n",
        b"smiles,p\nx,1\n,\ny,2\nz,3\nu,4\nv,5\n",
        b"smiles,p\nC,\xff\n",
        b"smiles,p\nC,\0\n",
    ],
)
def test_the_same_errors_before_anything_is_read(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    assert isinstance(said_by(lambda: read_molecule_table(tmp_path / "t.csv", None, [])), str)
    assert_same_as_whole(tmp_path / "t.csv", 2, 1)


def test_names_of_rows_that_are_left_out_are_no_names(tmp_path):
    (tmp_path / "t.csv").write_text("smiles,name\nCC,\nC1CC,ring\nCO, \n")
    assert_same_as_whole(tmp_path / "t.csv", 1, 1)
    _, found = in_parts(tmp_path / "t.csv", 1)
    assert [part.dataset.graph_names for part in found if part.dataset] == [("CC",), ("CO",)]


def test_parts_are_multiples_and_rows_without_molecules_do_not_wait(tmp_path):
    rows = ["CC", *["x"] * 50, *["CO"] * 9]
    (tmp_path / "t.csv").write_text("\n".join(["smiles,p", *(f"{row},1" for row in rows)]))
    _, found = in_parts(tmp_path / "t.csv", 4, multiple=2)
    assert max(len(part.rows) for part in found) <= 17 + 4
    assert [len(part.kept) % 2 for part in found].count(1) == 2  # the one that waited too long, and the last


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("smiles,p\nC,1\nCC,2\n")
    parts = MoleculeParts(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("smiles,p\nC,1\nCC,2\nCCC,3\n")
    with pytest.raises(DataError, match="changed while"):
        list(parts)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(DataError, match=r"t\.csv"):
        list(parts)


def test_damaged_archives_are_refused(tmp_path):
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"smiles,p\nCO,1.5\n")[:-9])
    with pytest.raises(DataError, match="unpacked"):
        MoleculeParts(tmp_path / "c.csv.gz")
    with pytest.raises(DataError, match="cannot be read"):
        MoleculeParts(tmp_path / "none.csv")


def test_a_table_that_is_read_ahead_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(molecule_parts, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(molecule_parts, "LEAST_FOR_A_PROCESS", 4)
    monkeypatch.setattr(molecule_parts, "available_cores", lambda: 2)
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["smiles", *["CCO", "C1CC", "c1ccccc1N", "x", "C[C@H](N)O", "OCC"] * 4]))
    alone = list(MoleculeParts(file))
    with reading_ahead(file) as table:
        for found in (list(table), list(table)):  # by what was started before, and again
            assert [part.rows for part in found] == [part.rows for part in alone]
            assert [part.dataset.checksum for part in found] == [part.dataset.checksum for part in alone]
    assert "8 of 24 rows" in table.notes[0]
    assert "16 of 16 molecules have a copy" in table.notes[1]


@pytest.mark.parametrize("content", ["smiles\n\n", "a,b\n1,2\n", None])
def test_what_cannot_be_read_ahead_is_left_to_its_reader(tmp_path, content):
    if content is not None:
        (tmp_path / "t.csv").write_text(content)
    with reading_ahead(tmp_path / "t.csv") as table:
        assert table is None


def test_nothing_of_it_imports_torch():
    program = "import sys, tapnet.io.molecule_parts; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
