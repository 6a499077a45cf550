"""Groups of nodes whose removal is worth a number of its own: components, pieces of the top nodes, rings, groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tapnet.data._molecule_arrays import parse

# SMARTS of the groups' own atoms, the larger groups first: the oxygen of an ester is not also an ether.
FUNCTIONAL_GROUPS = {
    "nitro": "[$([NX3](=O)=O),$([NX3+](=O)[O-])](~[OX1])~[OX1]",
    "azide": "[$(N=[N+]=[N-]),$([N-][N+]#N)]~[#7]~[#7]",
    "diazo": "[#6]=[N+]=[N-]",
    "azo": "[NX2;$(N[#6])]=[NX2;$(N[#6])]",
    "nitroso": "[NX2;!$(N[NX3])]=[OX1]",
    "nitrosamine": "[NX3][NX2]=[OX1]",
    "nitrile": "[CX2]#[NX1]",
    "isocyanate": "[NX2]=[CX2]=[OX1,SX1]",
    "carboxylic acid": "[CX3](=[OX1])[OX2H1,OX1-]",
    "acyl halide": "[CX3](=[OX1])[F,Cl,Br,I]",
    "anhydride": "[CX3](=[OX1])[OX2][CX3]=[OX1]",
    "carbamate": "[NX3][CX3](=[OX1])[OX2]",
    "urea": "[NX3][CX3](=[OX1,SX1])[NX3]",
    "ester": "[CX3](=[OX1])[OX2;$(O[#6])]",
    "amide": "[CX3](=[OX1])[NX3]",
    "guanidine": "[NX3][CX3](=[NX2])[NX3]",
    "sulfonamide": "[SX4](=[OX1])(=[OX1])[NX3]",
    "sulfonic acid or ester": "[SX4](=[OX1])(=[OX1])[OX2,OX1-]",
    "sulfone": "[SX4;$(S([#6])[#6])](=[OX1])=[OX1]",
    "sulfoxide": "[SX3;$(S([#6])[#6])]=[OX1]",
    "phosphate": "[PX4](=[OX1])([OX2,OX1-])[OX2,OX1-]",
    "epoxide": "[CX4]1[OX2][CX4]1",
    "aziridine": "[CX4]1[NX3][CX4]1",
    "aldehyde": "[CX3H1,CX3H2]=[OX1]",
    "ketone": "[CX3;$(C([#6])[#6])]=[OX1]",
    "N-oxide": "[#7+][OX1-]",
    "hydrazine": "[NX3][NX3]",
    "hydroxylamine": "[NX3][OX2]",
    "imine": "[CX3]=[NX2]",
    "peroxide": "[OX2][OX2]",
    "disulfide": "[SX2][SX2]",
    "phenol": "[OX2H1;$(Oc)]",
    "alcohol": "[OX2H1;$(O[CX4])]",
    "thiol": "[SX2H1;$(S[#6])]",
    "aromatic amine": "[NX3;$(N-c);!$(N[C,S]=[O,S,N])]",
    "amine": "[NX3,NX4+;$(N[CX4]);!$(N-c);!$(N[C,S]=[O,S,N])]",
    "ether": "[OX2;$(O([#6])[#6])]",
    "thioether": "[SX2;$(S([#6])[#6])]",
    "trifluoromethyl": "[CX4](F)(F)F",
    "halide": "[F,Cl,Br,I;$(*[#6])]",
    "alkyne": "[CX2]#[CX2]",
    "alkene": "[CX3;!$(C=[O,N,S])]=[CX3;!$(C=[O,N,S])]",
}
CARBON = 6


class Group(NamedTuple):
    """Some nodes of a graph."""

    kind: str  # "component", "piece", "ring" or "functional group"
    name: str
    nodes: tuple[int, ...]


def components(edges: NDArray[np.int64], size: int, among: NDArray[np.bool_] | None = None) -> list[tuple[int, ...]]:
    """The connected components of a graph, or of the part that some of its nodes induce, in the order of their nodes.

    Args:
        edges: ``[2, E]``
        size: The number of nodes.
        among: ``[n]`` which nodes count; None: all.
    """
    there = np.ones(size, dtype=bool) if among is None else among
    inside = edges[:, there[edges].all(axis=0)]
    matrix = coo_array((np.ones(inside.shape[1]), (inside[0], inside[1])), shape=(size, size))
    _, label = connected_components(matrix, directed=False)
    nodes = np.flatnonzero(there)
    order = nodes[np.argsort(label[nodes], kind="stable")]
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return [tuple(part.tolist()) for part in np.split(order, cuts) if len(part)]


def find_groups(edges: NDArray[np.int64], attribution: NDArray[np.float64], smiles: str | None = None) -> list[Group]:
    """The groups of a graph: components and connected pieces of the top nodes, and a molecule's rings and groups.

    Args:
        edges: ``[2, E]`` each edge once.
        attribution: ``[n]`` of the nodes; the 20 % with the highest are the top nodes.
        smiles: Of a molecule whose atoms are the nodes.
    """
    size = len(attribution)
    whole = [nodes for nodes in components(edges, size) if 1 < len(nodes) < size]
    found = [Group("component", f"component {i + 1}", nodes) for i, nodes in enumerate(whole)]
    top = np.zeros(size, dtype=bool)
    top[np.argsort(-attribution, kind="stable")[: -(-size // 5)]] = True
    pieces = [nodes for nodes in components(edges, size, top) if len(nodes) > 1]
    found += [Group("piece", f"{len(nodes)} of the top nodes", nodes) for nodes in pieces]
    return found + (molecule_groups(smiles) if smiles is not None else [])


def molecule_groups(smiles: str) -> list[Group]:
    """The rings and functional groups of a molecule, by RDKit; an atom that is not carbon is in one group alone."""
    mol = parse(smiles)
    if mol is None:
        return []
    aromatic = {atom.GetIdx() for atom in mol.GetAtoms() if atom.GetIsAromatic()}
    found = [
        Group("ring", f"{'aromatic ' if aromatic.issuperset(ring) else ''}ring of {len(ring)}", tuple(sorted(ring)))
        for ring in mol.GetRingInfo().AtomRings()
    ]
    used: set[int] = set()
    for name, pattern in _patterns():
        for match in mol.GetSubstructMatches(pattern):
            own = {i for i in match if mol.GetAtomWithIdx(i).GetAtomicNum() != CARBON} or set(match)
            if not own & used:
                used |= own
                found.append(Group("functional group", name, tuple(sorted(match))))
    return found


@cache
def _patterns() -> Sequence[tuple[str, Any]]:
    from rdkit import Chem

    return [(name, Chem.MolFromSmarts(smarts)) for name, smarts in FUNCTIONAL_GROUPS.items()]
