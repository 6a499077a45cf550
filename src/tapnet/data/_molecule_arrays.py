"""What RDKit says of molecules, as packed integers. Other processes run this module: it imports little else."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapnet.errors import SettingError
from tapnet.files import printable

SHOWN = 3  # of what is wrong, the first ones are named
MOLECULES_AT_ONCE = 1024  # RDKit's, in memory
LEAST_FOR_A_PROCESS = 2000  # molecules: as many as are read in the time that a process takes to start
ATOM_COLUMNS = ("element", "degree", "charge", "hydrogens", "aromatic", "hybridisation", "ring", "chirality")
# What an atom adds to a property of the molecule: Crippen's logP and molar refractivity, Ertl's polar surface, Labute's
# approximate surface. Hydrogens add to none but the last.
ATOM_NUMBERS = ("logP", "refractivity", "polar surface", "surface")
BOND_COLUMNS = ("type", "conjugated", "ring", "stereo")
ISOTOPIC_HYDROGEN = re.compile(r"\[\d+H(?![a-z])")
ISOTOPES_OF_BLOCK = re.compile(r"^M  ISO|^.{30} [DT] |^M  V30 .*(?: [DT] |MASS=)", re.MULTILINE)
STEREO = re.compile(r"[@/\\\n]")  # a text that may say something of it
ATOM_STEREO, BOND_STEREO = ("", "R", "S", "r", "s"), ("", "E", "Z", "e", "z", "M", "P")  # CIP labels
MOST_CIP_STEPS = 100_000  # a large cage could take minutes


class MoleculeArrays(NamedTuple):
    """G molecules with N atoms and M bonds in all; those that are not valid have neither.

    Atoms are in RDKit's canonical order, so that the arrays are the same however a molecule is written; `atom_order`
    has their numbers in the SMILES.
    """

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
    return MoleculeArrays.join(in_parallel(read_arrays, texts))


def canonical_smiles(texts: Sequence[str]) -> list[str]:
    """RDKit's SMILES of each valid molecule, computed on all cores."""
    return [smiles for part in in_parallel(_read_canonical, texts) for smiles in part]


def murcko_scaffolds(texts: Sequence[str]) -> list[str | None]:
    """The SMILES of the Bemis-Murcko scaffold of each molecule, computed on all cores; None where one is not valid.

    Without chirality and atom maps, as chemprop has them; of a molecule without rings it is empty.
    """
    return [scaffold for part in in_parallel(_read_scaffolds, texts) for scaffold in part]


def parse(text: str) -> Any:
    """RDKit's molecule of a SMILES or a MOL block; None where it is not valid or has no atoms.

    Hydrogen is one element: RDKit would keep deuterium and tritium as atoms, where it counts others at their atom.
    """
    from rdkit import Chem

    mol = _parse_block(text) if "\n" in text else Chem.MolFromSmiles(ISOTOPIC_HYDROGEN.sub("[H", text))
    return mol if mol is not None and mol.GetNumAtoms() else None


def _parse_block(text: str) -> Any:
    from rdkit import Chem

    mol = Chem.MolFromMolBlock(text)
    if mol is None or not ISOTOPES_OF_BLOCK.search(text):
        return mol
    for atom in mol.GetAtoms():
        if atom.GetAtomicNum() == 1:
            atom.SetIsotope(0)
    mol = Chem.RemoveHs(mol)
    Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    return mol


def has_isotopic_hydrogen(smiles: str) -> bool:
    """Whether a SMILES names deuterium or tritium."""
    return ISOTOPIC_HYDROGEN.search(smiles) is not None


def atom_order(smiles: str) -> NDArray[np.int64]:
    """[n] the number in the SMILES of each atom, in the order of the arrays; empty where it is not valid."""
    from rdkit import rdBase

    with rdBase.BlockLogs():
        mol = parse(smiles)
        return np.argsort(_ranks(mol)) if mol is not None else np.empty(0, np.int64)


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


def check_rdkit() -> None:
    """Raises a SettingError where RDKit, which reads molecules, is not installed."""
    if find_spec("rdkit") is None:
        raise SettingError('molecules need RDKit: pip install "tapnet[molecules]", or pip install rdkit')


def name_invalid(texts: Sequence[str], places: Sequence[object], total: int | None = None) -> str:
    """Names the first of some molecules that are not valid, with the reason.

    Args:
        texts: The SMILES or MOL block of each.
        places: Where each of them stands.
        total: How many there are, where these are only the first.
    """
    total = len(texts) if total is None else total
    named = []
    for text, place in list(zip(texts, places, strict=True))[:SHOWN]:
        shown = "" if not text or "\n" in text else f"{printable(text)[:60]}: "
        named.append(f"{place} ({shown}{why_not_valid(text)})")
    return ", ".join(named) + (f" and {total - SHOWN} more" if total > SHOWN else "")


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


def read_arrays(texts: Sequence[str]) -> MoleculeArrays:
    """`molecule_arrays`, computed by this process alone."""
    starts = range(0, len(texts) or 1, MOLECULES_AT_ONCE)
    blocks = []
    for start in starts:
        blocks.append(_read_block(texts[start : start + MOLECULES_AT_ONCE]))
        _restore_interrupts()
    return MoleculeArrays.join(blocks)


def _restore_interrupts() -> None:
    """Lets Python have Ctrl-C again: RDKit's Crippen patterns leave a handler behind that swallows it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _read_block(texts: Sequence[str]) -> MoleculeArrays:
    """The arrays of some molecules, which are all in memory."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdCIPLabeler, rdMolDescriptors

    a: Any = Chem.Atom
    b: Any = Chem.Bond
    of_atoms = a.GetAtomicNum, a.GetFormalCharge, a.GetTotalNumHs, a.GetIsAromatic, a.GetHybridization
    of_bonds = b.GetBeginAtomIdx, b.GetEndAtomIdx, b.GetBondType, b.GetIsConjugated, b.IsInRing
    atom_columns: list[list[int]] = [[] for _ in (*of_atoms, "chirality")]
    bond_columns: list[list[int]] = [[] for _ in (*of_bonds, "stereo")]
    polar, surface = array("d"), array("d")  # [N]
    ranks: list[int] = []  # [N] the place of each atom in its molecule
    num_atoms, num_bonds = np.zeros((2, len(texts)), np.int64)
    smiles, mols = list(texts), list[Any]()
    with rdBase.BlockLogs():
        for i, text in enumerate(texts):
            mols.append(mol := parse(text))
            if mol is None:
                continue
            if "\n" in text:
                smiles[i] = Chem.MolToSmiles(mol)
            n, m = num_atoms[i], num_bonds[i] = mol.GetNumAtoms(), mol.GetNumBonds()
            ranks.extend(_ranks(mol) if smiles[i] is text else _ranks_of_block(mol, smiles[i]))
            atoms = [*map(mol.GetAtomWithIdx, range(n))]  # twice as fast as the iterator of GetAtoms
            bonds = [*map(mol.GetBondWithIdx, range(m))]
            for column, function in zip(atom_columns, of_atoms, strict=False):
                column.extend(map(function, atoms))
            for column, function in zip(bond_columns, of_bonds, strict=False):
                column.extend(map(function, bonds))
            if STEREO.search(text):
                with contextlib.suppress(RuntimeError):
                    rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=MOST_CIP_STEPS)
                atom_columns[-1].extend(_labels(atoms, a.HasProp, ATOM_STEREO))
                bond_columns[-1].extend(_labels(bonds, b.HasProp, BOND_STEREO))
            else:
                atom_columns[-1].extend([0] * n)
                bond_columns[-1].extend([0] * m)
            polar.extend(rdMolDescriptors._CalcTPSAContribs(mol))
            labute = rdMolDescriptors._CalcLabuteASAContribs(mol)[0]
            surface.extend(map(labute.__getitem__, range(n)))  # faster than RDKit's iterator
        element, charge, hydrogens, aromatic, hybridisation, chirality = map(_integers, atom_columns)
        begin, end, kind, conjugated, ring_bond, stereo = map(_integers, bond_columns)
        first_atom = np.cumsum(num_atoms) - num_atoms
        edges = np.stack([begin, end]) + np.repeat(first_atom, num_bonds)
        degree = np.bincount(edges.reshape(-1), minlength=len(element))
        in_ring = np.zeros_like(element)
        in_ring[edges[:, ring_bond > 0]] = 1
        local = element | degree << 7 | charge + 128 << 13 | hydrogens << 21 | aromatic << 29
        crippen = _crippen(mols, ["\n" in text for text in texts], num_atoms, local, kind, edges)
    packed = local | hybridisation << 30 | in_ring << 34 | chirality << 35
    packed_bonds = kind | conjugated << 6 | ring_bond << 7 | stereo << 8
    numbers = np.nan_to_num(np.stack([*crippen, polar, surface]).astype(np.float32))
    place = _integers(ranks)
    atom = np.empty_like(place)
    atom[place + np.repeat(first_atom, num_atoms)] = np.arange(len(place))
    return MoleculeArrays(num_atoms, num_bonds, packed[atom], packed_bonds, place[edges], numbers[:, atom], smiles)


def _ranks(mol: Any) -> list[int]:
    """[n] the place of each atom in RDKit's canonical order."""
    from rdkit import Chem

    ranks = Chem.CanonicalRankAtoms(mol)
    return [*map(ranks.__getitem__, range(mol.GetNumAtoms()))]


def _ranks_of_block(mol: Any, smiles: str) -> list[int]:
    """The same by the SMILES that was made of a MOL block: `atom_order` of it is that of the arrays."""
    written = [int(number) for number in mol.GetProp("_smilesAtomOutputOrder").strip("[],").split(",")]
    again = parse(smiles)
    ranks = _ranks(again) if again is not None else []
    places = dict(zip(written, ranks if len(ranks) == len(written) else range(len(written)), strict=True))
    return [places[atom] for atom in range(len(written))]


def _integers(values: list[int]) -> NDArray[np.int64]:
    return np.fromiter(values, np.int64, len(values))


def _labels(parts: Sequence[Any], has: Callable[[Any, str], int], labels: tuple[str, ...]) -> Iterator[int]:
    """The numbers of the CIP labels of atoms or bonds."""
    for part, there in zip(parts, map(has, parts, repeat("_CIPCode")), strict=True):
        label = part.GetProp("_CIPCode") if there else ""
        yield labels.index(label) if label in labels else 0


_crippen_known: dict[int, tuple[float, float]] = {}  # by the code of an atom and what is around it


def _crippen(
    mols: Sequence[Any],
    from_blocks: Sequence[bool],
    num_atoms: NDArray[np.int64],
    atoms: NDArray[np.int64],
    bonds: NDArray[np.int64],
    edges: NDArray[np.int64],
) -> NDArray[np.float64]:
    """[2, N] what each atom adds to logP and refractivity.

    RDKit matches 110 patterns to every molecule, which takes longer than to parse it. The patterns look at an atom and
    its neighbours, those of oxygen at theirs too: RDKit is asked for the molecules that have something new. Patterns of
    explicit hydrogens reach further, and a MOL block may hold queries: such molecules are never taken from others.
    """
    from rdkit.Chem import rdMolDescriptors

    values = np.zeros((len(atoms), 2))
    stops = np.cumsum(num_atoms)
    starts, molecule = stops - num_atoms, np.repeat(np.arange(len(num_atoms)), num_atoms)
    alone = np.asarray(from_blocks, bool) & (num_atoms > 0)
    alone[molecule[atoms & 127 == 1]] = True
    for i in np.flatnonzero(alone):
        values[starts[i] : stops[i]] = rdMolDescriptors._CalcCrippenContribs(mols[i])
    shared = np.flatnonzero(~alone[molecule])
    codes = _environments(atoms, bonds, edges)
    found, first, where = np.unique(codes[shared], return_index=True, return_inverse=True)
    for atom in shared[np.sort(first)].tolist():
        if int(codes[atom]) not in _crippen_known:
            i = molecule[atom]
            own = rdMolDescriptors._CalcCrippenContribs(mols[i])
            _crippen_known.update(zip(codes[starts[i] : stops[i]].tolist(), own, strict=True))
    values[shared] = np.array([_crippen_known[code] for code in found.tolist()]).reshape(-1, 2)[where]
    return values.T


def _environments(atoms: NDArray[np.int64], bonds: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.uint64]:
    """[N] a code of each atom with its neighbours, of oxygen with theirs too."""
    source, target = edges.reshape(-1), edges[::-1].reshape(-1)
    kind = _scrambled(np.tile(bonds, 2))
    codes = [_scrambled(atoms)]
    for _ in range(2):
        around = np.zeros(len(atoms), np.uint64)
        np.add.at(around, target, _scrambled(codes[-1][source] + kind))
        codes.append(_scrambled(codes[-1] ^ _scrambled(around)))
    return np.where(atoms & 127 == 8, codes[2], codes[1])


def _scrambled(values: NDArray[Any]) -> NDArray[np.uint64]:
    """64 bits that look random, as SplitMix64 makes them."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


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
    """A function of this module, of one part of the texts for each core."""
    count = max(1, min(available_cores(), len(texts) // LEAST_FOR_A_PROCESS))
    bounds = [len(texts) * i // count for i in range(count + 1)]
    own, *others = (texts[start:stop] for start, stop in pairwise(bounds))
    with Readers(count - 1) as readers:
        results = [readers.submit(function, part) for part in others]
        return [function(own), *(result() for result in results)]


class Readers:
    """Python processes that compute functions of this module while this one does something else.

    They import this module alone: unlike those of ``multiprocessing`` they do not run the user's program again. What
    such a process fails at is computed here.

    Args:
        count: How many; of none, what is submitted is computed here when its result is asked for.
    """

    def __init__(self, count: int) -> None:
        self._processes = [process for _ in range(count) if (process := _start()) is not None]
        self._free: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        for process in self._processes:
            self._free.put(process)
        self._threads = ThreadPoolExecutor(len(self._processes)) if self._processes else None
        self._closed = False

    def submit(self, function: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Callable[[], Any]:
        """Has a function of this module computed; what is returned waits for its result."""
        if self._threads is None:
            return partial(function, texts)
        return self._threads.submit(self._compute, function, texts).result

    def _compute(self, function: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Any:
        process = self._free.get()
        try:
            result = _ask(process, function.__name__, texts)
        finally:
            self._free.put(process)
        return function(texts) if result is None and not self._closed else result

    def close(self) -> None:
        """Ends the processes, whatever they are doing."""
        self._closed = True
        for process in self._processes:
            process.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            with contextlib.suppress(OSError), process:
                pass

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _start() -> subprocess.Popen[bytes] | None:
    program = f"from {__name__} import _run; _run()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        return subprocess.Popen([sys.executable, "-c", program], env=environment, **pipes)
    except OSError:
        return None


def _ask(process: subprocess.Popen[bytes], function: str, texts: Sequence[str]) -> Any:
    """What a process answers; None where it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump((function, list(texts)), process.stdin)
        process.stdin.flush()
        return pickle.load(process.stdout)
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):  # ValueError: the pipe is closed
        return None


def _run() -> None:
    """The program of a process of `Readers`, which ends it, also after Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError):
        while True:
            function, texts = pickle.load(sys.stdin.buffer)
            pickle.dump(globals()[function](texts), sys.stdout.buffer)
            sys.stdout.buffer.flush()
