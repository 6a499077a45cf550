"""Molecules as graphs: what RDKit knows of atoms and bonds, the same for every way to write a molecule."""

import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tapnet import GraphDataset
from tapnet.data import _molecule_arrays as arrays
from tapnet.data.catalog import describe
from tapnet.data.molecules import in_written_order
from tapnet.errors import DataError, SettingError

Chem = pytest.importorskip("rdkit.Chem")

MOLECULES = ["CCO", "c1ccccc1C(=O)[O-]", "C[C@H](N)C(=O)O", "C/C=C/C#N", "[Na+].[Cl-]", "C[C@H]1CC[C@@H](C)CC1"]


def atoms_of(dataset, graph):
    """In the order of the SMILES."""
    nodes = slice(dataset.node_ptr[graph], dataset.node_ptr[graph + 1])
    rows = [dataset.node_label_values[i] for i in dataset.node_labels[nodes][np.argsort(dataset.atom_order(graph))]]
    return [dict(zip(dataset.node_columns, row, strict=True)) for row in rows]


def bonds_of(dataset, graph):
    data, atom = dataset[graph], dataset.atom_order(graph)
    rows = (dataset.edge_label_values[i] for i in data.edge_labels.tolist())
    pairs = ((atom[u], atom[v]) for u, v in data.edge_index.T.tolist())
    return {pair: dict(zip(dataset.edge_columns, row, strict=True)) for pair, row in zip(pairs, rows, strict=True)}


def test_atoms_and_bonds_carry_what_rdkit_knows():
    dataset = GraphDataset.from_smiles(MOLECULES)
    assert [len(atoms_of(dataset, i)) for i in range(6)] == [3, 9, 6, 5, 2, 8]
    carbon = {"element": "C", "degree": 1, "charge": 0, "hydrogens": 3, "aromatic": False}
    carbon |= {"hybridisation": "SP3", "ring": False, "chirality": ""}
    assert atoms_of(dataset, 0)[0] == carbon
    acid = atoms_of(dataset, 1)
    assert acid[0] == carbon | {"degree": 2, "hydrogens": 1, "aromatic": True, "hybridisation": "SP2", "ring": True}
    assert (acid[-1]["element"], acid[-1]["charge"]) == ("O", -1)
    assert [atom["chirality"] for atom in atoms_of(dataset, 2)] == ["", "S", "", "", "", ""]
    plain = {"type": "SINGLE", "conjugated": False, "ring": False, "stereo": ""}
    assert bonds_of(dataset, 0) == dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1)], plain)
    nitrile = bonds_of(dataset, 3)
    assert nitrile[1, 2] == {"type": "DOUBLE", "conjugated": True, "ring": False, "stereo": "E"}
    assert (nitrile[3, 4]["type"], bonds_of(dataset, 1)[0, 1]["type"]) == ("TRIPLE", "AROMATIC")
    assert len(bonds_of(dataset, 4)) == 0


def test_what_goes_with_a_molecule():
    dataset = GraphDataset.from_smiles(MOLECULES, names=list("abcdef"))
    assert (dataset.smiles, dataset.graph_names) == (tuple(MOLECULES), tuple("abcdef"))
    assert dataset.features == "all"
    assert ("element", "Na") in dataset.categories
    part = dataset.subset([4, 0])
    assert (part.smiles, part.graph_names) == (("[Na+].[Cl-]", "CCO"), ("e", "a"))
    assert GraphDataset.from_smiles(["CCO"]).graph_names == ("CCO",)
    names = dataset.with_features("labels").category_names
    assert sorted({names[i] for i in dataset.node_labels.tolist()}) == ["C", "Cl", "N", "Na", "O"]


@pytest.mark.parametrize(
    "smiles", ["C[C@H](N)C(=O)O", "OC1CC[C@@H](C)CC1", "C[C@H]1CC[C@@H](C)CC1", "F/C=C\\[C@H](F)Cl"]
)
def test_another_way_to_write_a_molecule_is_the_same_graph(smiles):
    others = Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(smiles), 8, randomSeed=1)
    dataset = GraphDataset.from_smiles([smiles, *others])
    first = dataset.subset([0])
    for i, text in enumerate(dataset.smiles):
        assert dataset.subset([i]).checksum == first.checksum
        assert dataset.subset([i]).with_edge_features().checksum == first.with_edge_features().checksum
        molecule = Chem.MolFromSmiles(text)
        assert [atom["element"] for atom in atoms_of(dataset, i)] == [atom.GetSymbol() for atom in molecule.GetAtoms()]
        assert all(molecule.GetBondBetweenAtoms(u, v) for u, v in bonds_of(dataset, i))
    assert "9 of 9 molecules have a copy" in dataset.notes[-1]


def test_a_mol_block_is_the_same_graph_and_its_atoms_are_those_of_the_smiles_made_of_it():
    smiles = ["OC1CCC(C)CC1", "CC(=O)Oc1ccccc1C(=O)NC2CC2", "[Na+].[Cl-]", "CC=C(C)C=NN"]
    blocks = []
    for text in smiles:
        molecule = Chem.MolFromSmiles(text)
        shuffled = np.random.default_rng(0).permutation(molecule.GetNumAtoms()).tolist()
        blocks.append(Chem.MolToMolBlock(Chem.RenumberAtoms(molecule, shuffled)))
    ours, theirs = arrays.read_arrays(blocks), arrays.read_arrays(smiles)
    np.testing.assert_array_equal(ours.numbers, theirs.numbers)
    np.testing.assert_array_equal(ours.atoms, theirs.atoms)
    first = 0
    for text, size in zip(ours.smiles, ours.num_atoms, strict=True):
        elements = [Chem.MolFromSmiles(text).GetAtomWithIdx(int(i)).GetAtomicNum() for i in arrays.atom_order(text)]
        assert (ours.atoms[first : first + size] & 127).tolist() == elements
        first += size


def test_a_model_from_before_atoms_had_an_order_of_their_own_knows_its_data(monkeypatch):
    now = GraphDataset.from_smiles(MOLECULES)
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "_ranks", lambda mol: list(range(mol.GetNumAtoms())))
        before = GraphDataset.from_smiles(MOLECULES)
    assert before.checksum != now.checksum
    for dataset in (now, now.with_edge_features()):
        was = before if dataset.edge_attr is None else before.with_edge_features()
        assert in_written_order(dataset).checksum == was.checksum
    assert in_written_order(now).with_edge_features().checksum == before.with_edge_features().checksum


def test_graphs_that_are_no_molecules_have_no_order_of_atoms():
    dataset = GraphDataset.from_smiles(["CCO"])
    with pytest.raises(SettingError, match="no molecules"):
        replace(dataset, smiles=None).atom_order(0)


@pytest.mark.parametrize(
    ("isotopic", "plain"),
    [
        ("[2H]OCC", "OCC"),
        ("[3H]C([2H])([2H])O", "CO"),
        ("C[C@]([2H])(O)F", "C[C@H](O)F"),
        ("C[C@H]([2H])O", "CCO"),
        ("[2H]/C(C)=C/F", "C/C=C\\F"),
        ("[2H]c1ccccc1", "c1ccccc1"),
        ("[2H][2H]", "[H][H]"),
        ("[2H+]", "[H+]"),
        ("[13CH4]", "C"),
        ("[202Hg]", "[Hg]"),
    ],
)
def test_isotopes_of_hydrogen_are_hydrogen(isotopic, plain):
    dataset = GraphDataset.from_smiles([isotopic, plain])
    assert dataset.subset([0]).checksum == dataset.subset([1]).checksum
    assert dataset.smiles == (isotopic, plain)
    has_some = any(f"[{mass}H{end}" in isotopic for mass in (2, 3) for end in "]+")
    assert any("1 of 2 molecules have deuterium" in note for note in dataset.notes) == has_some
    usual = arrays.read_arrays([plain])
    for version in (False, True):
        found = arrays.read_arrays([Chem.MolToMolBlock(Chem.MolFromSmiles(isotopic), forceV3000=version)])
        np.testing.assert_array_equal(found.atoms & 127, usual.atoms & 127)
        np.testing.assert_array_equal(found.atoms >> 21 & 255, usual.atoms >> 21 & 255)


def test_mirror_images_are_no_copies():
    dataset = GraphDataset.from_smiles(["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"])
    assert not any("copy" in note for note in dataset.notes)


def test_targets_of_every_kind():
    smiles = ["CCO", "CC", "OCC"]
    classes = GraphDataset.from_smiles(smiles, ["toxic", "safe", "safe"])
    assert (classes.task, classes.classes, classes.y.tolist()) == ("classification", ("safe", "toxic"), [1, 0, 0])
    assert "2 of 3 molecules have a copy" in classes.notes[0]
    assert "2 of them one with another target" in classes.notes[0]
    numbers = GraphDataset.from_smiles(smiles, np.array([0.5, np.nan, 0.5]))
    assert (numbers.task, numbers.classes, numbers.y.dtype) == ("regression", (), torch.float32)
    assert "another target" not in numbers.notes[0]
    labels = GraphDataset.from_smiles(smiles, {"a": [0, 1, None], "b": [1, 1, 0]})
    assert (labels.task, labels.target_names, labels.num_outputs) == ("multilabel", ("a", "b"), 2)
    matrix = GraphDataset.from_smiles(smiles, torch.tensor([[0.5, 1], [2, 3], [4, 5]]))
    assert matrix.target_names == ("target 1", "target 2")
    assert GraphDataset.from_smiles(smiles).classes == (None,)


def test_columns_of_a_dataframe():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"smiles": ["CCO", "CC"], "p": [1.5, None], "q": [0.25, 3.0]})
    assert GraphDataset.from_smiles(table["smiles"], table["p"]).target_names == ("p",)
    assert GraphDataset.from_smiles(table["smiles"], table[["p", "q"]]).target_names == ("p", "q")


@pytest.mark.parametrize(
    ("smiles", "y", "said"),
    [
        (["CCO", "CN(C)(C)(C)C", "C1CC", "", "x", "y"], None, ["5 of 6", "molecule 1", "valence", "2 more"]),
        (["CCO", "CC"], [1], ["2 SMILES", "1 targets"]),
        (["CCO", "CC"], ["a", None], ["molecule 1", "no class"]),
        (["CCO", "CC"], [[0, 1], [1]], ["same number of targets"]),
    ],
)
def test_bad_molecules_are_named(smiles, y, said, capfd):
    with pytest.raises(DataError) as error:
        GraphDataset.from_smiles(smiles, y)
    assert all(word in str(error.value) for word in said), error.value
    assert capfd.readouterr().err == ""  # RDKit's own words would come between


def test_several_processes_read_the_same(monkeypatch):
    alone = arrays.molecule_arrays(MOLECULES)
    monkeypatch.setattr(arrays, "LEAST_FOR_A_PROCESS", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    for program in (sys.executable, "/bin/false"):  # a process that fails is made up for
        monkeypatch.setattr(sys, "executable", program)
        for ours, theirs in zip(alone, arrays.molecule_arrays(MOLECULES), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_without_rdkit_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("tapnet.data._molecule_arrays.find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"tapnet\[molecules\]"):
        GraphDataset.from_smiles(["CCO"])


def test_the_numbers_of_atoms_add_up_to_rdkit_s_properties():
    from rdkit.Chem import rdMolDescriptors

    smiles = [*MOLECULES, "*", "[U]"]
    dataset = GraphDataset.from_smiles(smiles)
    assert dataset.attribute_names == ("logP", "refractivity", "polar surface", "surface")
    assert torch.isfinite(dataset.node_attributes).all()
    for i, text in enumerate(smiles):
        sums = dataset[i].node_attributes.sum(0).tolist()
        molecule = Chem.MolFromSmiles(text)
        crippen = np.sum(rdMolDescriptors._CalcCrippenContribs(molecule), axis=0)
        assert sums[:2] == pytest.approx(crippen.tolist(), abs=1e-4)
        assert sums[2] == pytest.approx(rdMolDescriptors.CalcTPSA(molecule), abs=1e-3)
        hydrogens = rdMolDescriptors._CalcLabuteASAContribs(molecule)[1]
        assert sums[3] + hydrogens == pytest.approx(rdMolDescriptors.CalcLabuteASA(molecule), abs=1e-3)


def test_the_numbers_of_atoms_are_the_same_for_every_way_to_write_a_molecule():
    from tapnet.data.checks import graph_codes

    molecule = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)NC2CC2")
    ways = [Chem.MolToSmiles(molecule, doRandom=True) for _ in range(8)]
    assert len(set(graph_codes(GraphDataset.from_smiles(ways)).tolist())) == 1


def test_a_description_of_molecules_counts_copies_once_and_leaves_no_bonds_out():
    dataset = GraphDataset.from_smiles(["CCO", "OCC", "C=C"], [0, 1, 0])
    notes = describe(dataset)["notes"]
    assert sum("have a copy" in note for note in notes) == 1
    assert not any("not used" in note for note in notes)


FRAGMENTS = ["C", "CC", "C(=O)", "C(O)", "C(=N)", "C(F)(Cl)", "C=C", "C#C", "N", "N(C)", "[N+](C)(C)", "N=", "O", "OO"]
FRAGMENTS += [
    "S",
    "S(=O)(=O)",
    "[S-]",
    "[O-]",
    "C(=O)[O-].",
    "P(=O)(O)",
    "c1ccc(cc1)",
    "c1cnc(o1)",
    "n1cccc1",
    "[nH]1c2c(cc1)",
]
FRAGMENTS += [
    "[2H]",
    "[2H]O",
    "[H]",
    "B",
    "[Si]",
    "*",
    "I",
    "Br.",
    "[Na+].",
    "[Zn+2].",
    "N=[N+]=[N-]",
    "C(=S)",
    "C1OC1",
    "1",
    "2",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=7).map("".join), min_size=1, max_size=8))
def test_numbers_taken_from_other_molecules_are_rdkit_s_own(texts):
    from rdkit import rdBase
    from rdkit.Chem import rdMolDescriptors

    found = arrays.molecule_arrays(texts)
    with rdBase.BlockLogs():
        mols = [mol for mol in map(arrays.parse, texts) if mol is not None]
    orders = [np.argsort(list(Chem.CanonicalRankAtoms(mol))) for mol in mols]
    crippen = [rdMolDescriptors._CalcCrippenContribs(mol) for mol in mols]
    own = [values[i] for values, order in zip(crippen, orders, strict=True) for i in order]
    expected = np.nan_to_num(np.asarray(own, np.float32).reshape(-1, 2).T)
    np.testing.assert_array_equal(found.numbers[:2], expected)


def test_no_pattern_of_rdkit_looks_further_than_we_do():
    from rdkit import RDConfig

    lines = (Path(RDConfig.RDDataDir) / "Crippen.txt").read_text().splitlines()
    patterns = [line.split("\t")[:2] for line in lines if line.strip() and not line.startswith("#")]
    assert len(patterns) == 110
    for name, smarts in patterns:
        pattern = Chem.MolFromSmarts(smarts)
        reach = Chem.GetDistanceMatrix(pattern)[0].max()
        assert reach <= {"O": 2, "H": 3}.get(name[0], 1), (name, smarts)
        assert pattern.GetNumBonds() == pattern.GetNumAtoms() - 1  # a tree
        assert "$" not in smarts
        assert not set("rRx@") & set(re.sub(r"Br", "", smarts)), smarts  # rings and chirality


def test_a_process_reads_one_list_after_another_and_ends():
    with arrays.Readers(1) as readers:
        results = [readers.submit(arrays.read_arrays, MOLECULES[i:]) for i in range(3)]
        for i, result in enumerate(results):
            assert result().smiles == MOLECULES[i:]
            np.testing.assert_array_equal(result().atoms, arrays.read_arrays(MOLECULES[i:]).atoms)
        (process,) = readers._processes
        readers.submit(arrays.read_arrays, MOLECULES * 2000)  # nobody waits for it
    assert process.poll() is not None


def test_ctrl_c_works_after_molecules_were_read():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it from the start
    arrays.read_arrays(MOLECULES)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(10)
