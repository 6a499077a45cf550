"""What RDKit says of molecules, as packed integers. Other processes run this module: it imports little else."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_FOR_A_PROCESS = 2000  # molecules: as many as are read in the time that a process takes to start
ATOM_COLUMNS = ("element", "degree", "charge", "hydrogens", "aromatic", "hybridisation", "ring", "chirality")
# What an atom adds to a property of the molecule: Crippen's logP and molar refractivity, Ertl's polar surface, Labute's
# approximate surface. Hydrogens add to none but the last.
ATOM_NUMBERS = ("logP", "refractivity", "polar surface", "surface")
BOND_COLUMNS = ("type", "conjugated", "ring", "stereo")
ATOM_STEREO, BOND_STEREO = ("", "R", "S", "r", "s"), ("", "E", "Z", "e", "z", "M", "P")  # CIP labels
MOST_CIP_STEPS = 100_000  # a large cage could take minutes


class MoleculeArrays(NamedTuple):
    """G molecules with N atoms and M bonds in all; those that are not valid have neither."""

    num_atoms: NDArray[np.int64]  # [G]
    num_bonds: NDArray[np.int64]  # [G]
    atoms: NDArray[np.int64]  # [N] the packed columns
    bonds: NDArray[np.int64]  # [M]
    ends: NDArray[np.int64]  # [2, M] atoms, numbered within each molecule
    numbers: NDArray[np.float32]  # [4, N] ATOM_NUMBERS
    smiles: list[str]  # [G] as given; RDKit's of a MOL block

    @classmethod
    def join(cls, parts: Sequence[MoleculeArrays]) -> MoleculeArrays:
        """Those of several parts, one after another."""
        columns = zip(*(part[:-1] for part in parts), strict=True)
        smiles = [text for part in parts for text in part.smiles]
        num_atoms, num_bonds, atoms, bonds, ends, numbers = (np.concatenate(column, axis=-1) for column in columns)
        return cls(num_atoms, num_bonds, atoms, bonds, ends, numbers, smiles)

    def valid(self) -> MoleculeArrays:
        """Without the molecules that are not valid."""
        good = self.num_atoms > 0
        smiles = [text for text, there in zip(self.smiles, good, strict=True) if there]
        return self._replace(num_atoms=self.num_atoms[good], num_bonds=self.num_bonds[good], smiles=smiles)

    def split(self, count: int) -> tuple[MoleculeArrays, MoleculeArrays]:
        """The first molecules, and the others."""
        n, m = int(self.num_atoms[:count].sum()), int(self.num_bonds[:count].sum())
        first, rest = (
            MoleculeArrays(
                self.num_atoms[g],
                self.num_bonds[g],
                self.atoms[atoms],
                self.bonds[bonds],
                self.ends[:, bonds],
                self.numbers[:, atoms],
                self.smiles[g],
            )
            for g, atoms, bonds in (map(slice, (count, n, m)), (slice(at, None) for at in (count, n, m)))
        )
        return first, rest


def molecule_arrays(texts: Sequence[str]) -> MoleculeArrays:
    """The arrays of molecules, computed on all cores.

    Args:
        texts: A SMILES or the MOL block of each molecule.

    Returns:
        The arrays; see `atom_values` and `bond_values` for what is packed into them.
    """
    return MoleculeArrays.join(in_parallel(_read_arrays, texts))


def canonical_smiles(texts: Sequence[str]) -> list[str]:
    """RDKit's SMILES of each valid molecule, computed on all cores."""
    return [smiles for part in in_parallel(_read_canonical, texts) for smiles in part]


def murcko_scaffolds(texts: Sequence[str]) -> list[str | None]:
    """The SMILES of the Bemis-Murcko scaffold of each molecule, computed on all cores; None where one is not valid.

    Without chirality and atom maps, as chemprop has them; of a molecule without rings it is empty.
    """
    return [scaffold for part in in_parallel(_read_scaffolds, texts) for scaffold in part]


def parse(text: str) -> Any:
    """RDKit's molecule of a SMILES or a MOL block; None where it is not valid or has no atoms."""
    from rdkit import Chem

    mol = Chem.MolFromMolBlock(text) if "\n" in text else Chem.MolFromSmiles(text)
    return mol if mol is not None and mol.GetNumAtoms() else None


def is_valid(text: str) -> bool:
    """Whether `parse` returns a molecule."""
    from rdkit import rdBase

    with rdBase.BlockLogs():
        return parse(text) is not None


def why_not_valid(text: str) -> str:
    """Why `parse` returns None."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        mol = Chem.MolFromMolBlock(text, sanitize=False) if "\n" in text else Chem.MolFromSmiles(text, sanitize=False)
        if mol is None:
            return "not a MOL block" if "\n" in text else "not a SMILES"
        problems = [problem.Message() for problem in Chem.DetectChemistryProblems(mol)]
    return problems[0] if problems else "it has no atoms" if mol.GetNumAtoms() == 0 else "RDKit refuses it"


def atom_values(codes: NDArray[np.int64]) -> list[tuple[Any, ...]]:
    """The values of `ATOM_COLUMNS` that packed atoms stand for."""
    from rdkit import Chem

    element, hybridisation = Chem.GetPeriodicTable().GetElementSymbol, Chem.HybridizationType.values
    fields = zip(*_unpack(codes, (7, 6, 8, 8, 1, 4, 1, 3)), strict=True)
    return [
        (element(z), degree, charge - 128, hydrogens, bool(aromatic), hybridisation[h].name, bool(ring), ATOM_STEREO[c])
        for z, degree, charge, hydrogens, aromatic, h, ring, c in fields
    ]


def bond_values(codes: NDArray[np.int64]) -> list[tuple[Any, ...]]:
    """The values of `BOND_COLUMNS` that packed bonds stand for."""
    from rdkit import Chem

    fields = zip(*_unpack(codes, (6, 1, 1, 3)), strict=True)
    return [(Chem.BondType.values[t].name, bool(c), bool(r), BOND_STEREO[s]) for t, c, r, s in fields]


def _unpack(codes: NDArray[np.int64], bits: Sequence[int]) -> Iterator[list[int]]:
    for width in bits:
        yield (codes & ((1 << width) - 1)).tolist()
        codes = codes >> width


def _read_arrays(texts: Sequence[str]) -> MoleculeArrays:
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdCIPLabeler, rdMolDescriptors

    atoms: list[int] = []
    crippen, polar, surface = array("d"), array("d"), array("d")  # [2 N], [N], [N]
    bonds: list[int] = []
    ends: list[int] = []
    num_atoms, num_bonds = np.zeros((2, len(texts)), np.int64)
    smiles = list(texts)
    with rdBase.BlockLogs():
        for i, text in enumerate(texts):
            mol = parse(text)
            if mol is None:
                continue
            has_stereo = any(mark in text for mark in "@/\\\n")
            if has_stereo:
                with contextlib.suppress(RuntimeError):
                    rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=MOST_CIP_STEPS)
            num_atoms[i], num_bonds[i] = mol.GetNumAtoms(), mol.GetNumBonds()
            for a in map(mol.GetAtomWithIdx, range(num_atoms[i])):  # twice as fast as the iterator of GetAtoms
                atoms.append(
                    a.GetAtomicNum()
                    | a.GetFormalCharge() + 128 << 13
                    | a.GetTotalNumHs() << 21
                    | a.GetIsAromatic() << 29
                    | a.GetHybridization() << 30
                    | a.IsInRing() << 34
                    | (_label(a, ATOM_STEREO) << 35 if has_stereo else 0)
                )
            for b in map(mol.GetBondWithIdx, range(num_bonds[i])):
                ends.append(b.GetBeginAtomIdx())
                ends.append(b.GetEndAtomIdx())
                stereo = _label(b, BOND_STEREO) << 8 if has_stereo else 0
                bonds.append(b.GetBondType() | b.GetIsConjugated() << 6 | b.IsInRing() << 7 | stereo)
            crippen.extend(chain.from_iterable(rdMolDescriptors._CalcCrippenContribs(mol)))
            polar.extend(rdMolDescriptors._CalcTPSAContribs(mol))
            surface.extend(rdMolDescriptors._CalcLabuteASAContribs(mol)[0])
            if "\n" in text:
                smiles[i] = Chem.MolToSmiles(mol)
    both_ends = np.asarray(ends, np.int64).reshape(-1, 2).T
    first_atom = np.repeat(np.cumsum(num_atoms) - num_atoms, num_bonds)
    degree = np.bincount((both_ends + first_atom).reshape(-1), minlength=len(atoms))
    packed = np.asarray(atoms, np.int64) | degree << 7
    logp_and_refractivity = np.asarray(crippen).reshape(-1, 2).T
    numbers = np.nan_to_num(np.stack([*logp_and_refractivity, polar, surface]).astype(np.float32))
    return MoleculeArrays(num_atoms, num_bonds, packed, np.asarray(bonds, np.int64), both_ends, numbers, smiles)


def _label(part: Any, labels: tuple[str, ...]) -> int:
    """The number of the CIP label of an atom or bond."""
    label = part.GetProp("_CIPCode") if part.HasProp("_CIPCode") else ""
    return labels.index(label) if label in labels else 0


def _read_canonical(texts: Sequence[str]) -> list[str]:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return [Chem.MolToSmiles(parse(text)) for text in texts]


def _read_scaffolds(texts: Sequence[str]) -> list[str | None]:
    from rdkit import rdBase
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffolds: list[str | None] = []
    with rdBase.BlockLogs():
        for text in texts:
            mol = parse(text)
            if mol is None:
                scaffolds.append(None)
                continue
            if ":" in text:
                for atom in mol.GetAtoms():
                    atom.SetAtomMapNum(0)
            scaffolds.append(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=False))
    return scaffolds


# ---- on all cores ----


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(function: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> list[Any]:
    """A function of this module, of one part of the texts for each core.

    The other parts are computed by Python processes that import this module alone: unlike those of
    ``multiprocessing`` they do not run the user's program again. What such a process fails at is computed here.
    """
    count = max(1, min(available_cores(), len(texts) // LEAST_FOR_A_PROCESS))
    bounds = [len(texts) * i // count for i in range(count + 1)]
    own, *others = (texts[start:stop] for start, stop in pairwise(bounds))
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_process(function.__name__, part)) for part in others]
        results = [function(own)]
        for process, part in zip(processes, others, strict=True):
            result = _result(process)
            results.append(function(part) if result is None else result)
    return results


@contextlib.contextmanager
def _process(function: str, texts: Sequence[str]) -> Iterator[subprocess.Popen[bytes] | None]:
    program = f"from {__name__} import _run; _run()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen([sys.executable, "-c", program], env=environment, **pipes)
    except OSError:
        yield None
        return
    with process:
        try:
            with contextlib.suppress(OSError), process.stdin or contextlib.nullcontext():
                pickle.dump((function, list(texts)), process.stdin)  # type: ignore[arg-type]
            yield process
        finally:
            process.kill()


def _result(process: subprocess.Popen[bytes] | None) -> Any:
    if process is None or process.stdout is None:
        return None
    try:
        return pickle.load(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _run() -> None:
    """The program of a process of `in_parallel`."""
    function, texts = pickle.load(sys.stdin.buffer)
    pickle.dump(globals()[function](texts), sys.stdout.buffer)
    sys.stdout.buffer.flush()
