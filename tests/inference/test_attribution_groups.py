"""Groups of nodes: components, rings, functional groups."""

import numpy as np
import pytest

from tapnet.inference.attribution_groups import FUNCTIONAL_GROUPS, components, find_groups, molecule_groups

pytest.importorskip("rdkit")


def named(smiles, kind="functional group"):
    return {group.name: group.nodes for group in molecule_groups(smiles) if group.kind == kind}


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC(=O)Oc1ccccc1C(=O)O", {"ester": (1, 2, 3), "carboxylic acid": (10, 11, 12)}),
        ("O=[N+]([O-])c1ccc(N)cc1", {"nitro": (0, 1, 2), "aromatic amine": (7,)}),
        ("CN(C)N=O", {"nitrosamine": (1, 3, 4)}),
        ("CC(=O)Nc1ccc(O)cc1", {"amide": (1, 2, 3), "phenol": (8,)}),
        ("C1OC1CBr", {"epoxide": (0, 1, 2), "halide": (4,)}),
        ("CCCC", {}),
    ],
)
def test_functional_groups_are_found_once(smiles, expected):
    assert named(smiles) == expected


def test_every_pattern_is_valid_and_finds_something():
    from rdkit import Chem

    patterns = {name: Chem.MolFromSmarts(smarts) for name, smarts in FUNCTIONAL_GROUPS.items()}
    assert all(patterns.values())


def test_rings_say_their_size():
    assert named("c1ccc2ccccc2c1", "ring") == {"aromatic ring of 6": (3, 4, 5, 6, 7, 8)}
    assert named("C1CCCC1", "ring") == {"ring of 5": (0, 1, 2, 3, 4)}


def test_components_of_a_graph_and_of_its_top_nodes():
    edges = np.asarray([[0, 1, 3, 4], [1, 2, 4, 5]])
    assert components(edges, 7) == [(0, 1, 2), (3, 4, 5), (6,)]
    assert components(edges, 7, np.asarray([1, 1, 0, 1, 0, 1, 0], bool)) == [(0, 1), (3,), (5,)]
    groups = find_groups(edges, np.asarray([3.0, 2.0, 0, 0, 0, 0, -1]))
    assert [(group.kind, group.nodes) for group in groups] == [
        ("component", (0, 1, 2)),
        ("component", (3, 4, 5)),
        ("piece", (0, 1)),
    ]
