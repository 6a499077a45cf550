"""Pooling layers by name: the built-in ones, those of installed packages (entry points), and a user's own classes."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

import torch
from torch import nn

from tapnet.errors import SettingError, did_you_mean
from tapnet.nn.imports import class_digest, import_class
from tapnet.nn.pool.asap import ASAPool
from tapnet.nn.pool.base import Pooling, PoolSetup
from tapnet.nn.pool.cluster import ClusterPool
from tapnet.nn.pool.complement import ComplementPool
from tapnet.nn.pool.degree import DegreePool
from tapnet.nn.pool.diff import DiffPool
from tapnet.nn.pool.dmon import DMoNPool
from tapnet.nn.pool.edge import EdgePool
from tapnet.nn.pool.eigen import EigenPool
from tapnet.nn.pool.gmt import GMTPool
from tapnet.nn.pool.graclus import GraclusPool
from tapnet.nn.pool.haar import HaarPool
from tapnet.nn.pool.hosc import HOSCPool
from tapnet.nn.pool.just_balance import JustBalancePool
from tapnet.nn.pool.kmis import KMISPool
from tapnet.nn.pool.lapool import LaPool
from tapnet.nn.pool.maxcut import MaxCutPool
from tapnet.nn.pool.mem import MemPool
from tapnet.nn.pool.mincut import MinCutPool
from tapnet.nn.pool.ndp import NDPPool
from tapnet.nn.pool.none import NoPool
from tapnet.nn.pool.pan import PANPool
from tapnet.nn.pool.pyg import adapt
from tapnet.nn.pool.random import FixedRandomPool, RandomClustersPool, RandomPool
from tapnet.nn.pool.sag import SAGPool
from tapnet.nn.pool.set2set import Set2SetPool
from tapnet.nn.pool.sort import SortPool
from tapnet.nn.pool.tgp import PREFIX, adapt_tgp, find_pooler, is_tgp
from tapnet.nn.pool.topk import TopKPool
from tapnet.nn.tap import TAPooling

GROUP = "tapnet.pools"  # of entry points

POOLS: dict[str, type[Pooling]] = {
    "tap": TAPooling,
    "topk": TopKPool,
    "sort": SortPool,
    "diff": DiffPool,
    "sag": SAGPool,
    "eigen": EigenPool,
    "haar": HaarPool,
    "mincut": MinCutPool,
    "dmon": DMoNPool,
    "just_balance": JustBalancePool,
    "hosc": HOSCPool,
    "mem": MemPool,
    "lapool": LaPool,
    "maxcut": MaxCutPool,
    "asap": ASAPool,
    "edge": EdgePool,
    "graclus": GraclusPool,
    "ndp": NDPPool,
    "kmis": KMISPool,
    "pan": PANPool,
    "cluster": ClusterPool,
    "gmt": GMTPool,
    "set2set": Set2SetPool,
    "random": RandomPool,
    "random-fixed": FixedRandomPool,
    "degree": DegreePool,
    "random-clusters": RandomClustersPool,
    "complement": ComplementPool,
    "none": NoPool,
}
MUTAG = PoolSetup(in_channels=48, ratios=(0.8,), mean_nodes=17.930851)  # what a layer's parameters are counted on
_registered: dict[str, type[nn.Module]] = {}  # by module:Class


class PoolInfo(NamedTuple):
    """What is known of a pooling layer."""

    name: str  # what settings and commands call it
    kind: str  # "select" (keeps nodes), "merge" (makes new ones), "readout", "none"; "own" where it does not say
    paper: str  # authors, title, venue; "" where there is none
    year: int | None
    about: str  # what is kept or merged, or the first paragraph of its docstring
    parameters: int | None = None  # of one layer with 48 features and ratio 0.8, on MUTAG; None if not imported
    losses: tuple[str, ...] = ()  # that are added while training
    cost: str = ""  # the time of a call: N nodes, E edges, d features, B graphs, K clusters
    memory: str = ""  # the size of what a call makes


def register(cls: type[nn.Module]) -> str:
    """Makes a class known as a pooling layer, in this process.

    Args:
        cls: a :class:`~tapnet.nn.pool.base.Pooling`, or a layer with PyG's calling convention.

    Returns:
        The name by which settings, stored trials and models refer to it: ``module:Class``, or the short name of a
        built-in layer.

    Raises:
        SettingError: if it cannot be a pooling layer; the message says why.

    Example:
        >>> from torch_geometric.nn import SAGPooling
        >>> register(SAGPooling)
        'torch_geometric.nn.pool.sag_pool:SAGPooling'
    """
    for name, built_in in POOLS.items():
        if cls is built_in:
            return name
    _as_pooling(cls)
    name = f"{cls.__module__}:{cls.__qualname__}"
    _registered[name] = cls
    return name


def find_name(pool: str | type[nn.Module], *, allow_import: bool = False) -> str:
    """The name of a pooling layer, as settings hold it.

    Args:
        pool: a class, or a name: that of a built-in layer, ``"package.module:Class"``, that of an entry point, or
            ``"tgp:NAME"`` for a pooler of torch-geometric-pool.
        allow_import: whether a name may be imported. Pass True only for what a user named or passed in, never for what
            is read from a file.

    Raises:
        SettingError: if there is no such layer, or it is not known in this process and may not be imported.
    """
    if isinstance(pool, type):
        return register(pool)
    if not isinstance(pool, str):
        raise SettingError(f"pool is a name or a class of a pooling layer, not {pool!r:.100}")
    if pool in POOLS or pool in _registered:
        return pool
    if pool.startswith(PREFIX):  # a fixed library, not a name that a file could choose
        _registered[pool] = find_pooler(pool.removeprefix(PREFIX))
        return pool
    entry = _entry_points().get(pool)
    if ":" not in pool and entry is None:
        names = known_names()
        raise SettingError(
            f"pool is one of {', '.join(names)}, or package.module:Class, not {pool!r:.100}{did_you_mean(pool, names)}"
        )
    target = pool if entry is None else entry.value
    if not allow_import:
        if target in _registered:
            return target
        word = target.rpartition(":")[2].rpartition(".")[2]
        raise SettingError(
            f"this uses the pooling layer {pool}, which is not known here; import the class and pass it "
            f"(pools=[{word}]), or register it first"
        )
    return register(import_class(target, "the pooling layer"))


def resolve(pool: str | type[nn.Module], *, allow_import: bool = False) -> type[Pooling]:
    """The class of a pooling layer; a class with PyG's calling convention comes adapted.

    Args:
        pool: a class, or a name: that of a built-in layer, ``"package.module:Class"``, that of an entry point, or
            ``"tgp:NAME"`` for a pooler of torch-geometric-pool.
        allow_import: whether a name may be imported. Pass True only for what a user named or passed in, never for what
            is read from a file.

    Raises:
        SettingError: if there is no such layer, or it is not known in this process and may not be imported.

    Example:
        >>> resolve("topk").__name__
        'TopKPool'
    """
    name = find_name(pool, allow_import=allow_import)
    return POOLS.get(name) or _as_pooling(_registered[name])


def known_names() -> list[str]:
    """The names of the pooling layers that can be used here: built in, of installed packages, registered."""
    return [*POOLS, *_entry_points(), *_registered]


def list_pools() -> list[PoolInfo]:
    """Lists the pooling layers that a name stands for here, with paper, year, what each does and what it costs.

    Returns:
        The built-in ones, then those that were registered, then those of entry points, which are not imported to be
        listed. A layer that does not say what it is has the kind ``"own"``.

    Example:
        >>> list_pools()[0].name, list_pools()[0].year
        ('tap', 2021)
    """
    found = [_info(name, resolve(name)) for name in (*POOLS, *_registered)]
    return found + [
        PoolInfo(name, "own", "", None, f"{entry.value}, of {entry.dist.name if entry.dist else 'a package'}")
        for name, entry in _entry_points().items()
        if entry.value not in _registered
    ]


def _info(name: str, cls: type[Pooling]) -> PoolInfo:
    about = vars(cls).get("about") or _first_paragraph(inspect.getdoc(cls) or "")
    return PoolInfo(
        name, cls.kind or "own", cls.paper, cls.year, about, _parameters(cls), cls.losses, cls.cost, cls.memory
    )


def _first_paragraph(text: str) -> str:
    """In one line, and of links only what they are called: PyG's docstrings are reStructuredText."""
    return re.sub(r"`([^`<]+?) *<[^`>]*>`__?", r"\1", " ".join(text.partition("\n\n")[0].split()))


def _parameters(cls: type[Pooling]) -> int | None:
    """How many a layer learns; None where a user's own cannot be built."""
    with torch.random.fork_rng(devices=[]):  # building draws weights: a program that lists layers stays reproducible
        try:
            setup = replace(MUTAG, level=len(MUTAG.ratios) - 1) if cls.kind == "readout" else MUTAG
            return sum(p.numel() for p in cls.build(setup).parameters())
        except SettingError:
            return None


def source_digest(name: str) -> str:
    """A short digest of the source of a class that is not built in, so that results of edited layers are told apart.

    Args:
        name: as settings hold it; known in this process.

    Returns:
        16 hexadecimal digits; "" for built-in layers.
    """
    if name in POOLS or name not in _registered:
        return ""
    return class_digest(_registered[name])


def _as_pooling(cls: type[nn.Module]) -> type[Pooling]:
    if not issubclass(cls, nn.Module):
        raise SettingError(f"{cls.__qualname__} is no torch.nn.Module, so it cannot be a pooling layer")
    if not issubclass(cls, Pooling):
        return adapt_tgp(cls) if is_tgp(cls) else adapt(cls)
    if missing := getattr(cls, "__abstractmethods__", ()):
        raise SettingError(f"{cls.__qualname__} does not implement {', '.join(sorted(missing))}")
    return cls


def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in POOLS}
