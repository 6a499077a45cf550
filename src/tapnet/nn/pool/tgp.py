"""Poolers of torch-geometric-pool as layers here, and TAPooling as one of its poolers; imported where they are used."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tapnet._loops.ranges import offsets
from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError, did_you_mean
from tapnet.nn.pool.base import Pooled, Pooling, PoolSetup
from tapnet.nn.tap import TAPooling

PREFIX = "tgp:"  # of their names here


class TGPPooling(Pooling):
    """Makes a pooler of torch-geometric-pool a ``Pooling``: ``pool="tgp:topk"``, or one of its classes.

    A dense pooler has as many clusters as ``"diff"`` has. Its dense graphs have a gradient; the weights of the edges
    that a sparse one returns have none here. Losses are added as they are.

    Args:
        pooler: the pooler, a ``tgp.src.SRCPooling``.
        in_channels: d, the size of each node's features.
    """

    def __init__(self, pooler: nn.Module, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = in_channels * getattr(pooler, "num_modes", 1)  # that of EigenPooling
        self.pooler = pooler

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """Calls the pooler.

        Raises:
            SettingError: if what it returns cannot be read, or a graph has no nodes left.
        """
        out = self._call(x, batch)
        name, losses = type(self.pooler).__name__, list((out.loss or {}).values())
        loss = torch.stack(losses).sum() if losses and self.training else None
        width = out.x.size(-1)
        if width != self.out_channels:
            raise SettingError(f"{name} returned {width} features of a node, where {self.out_channels} were expected")
        if out.x.dim() == 2 and isinstance(batch, GraphBatch):
            return self._sparse(out, batch)._replace(loss=loss)
        if out.x.dim() != 3:
            raise SettingError(f"{name} returned sparse graphs for dense ones")
        rows, coarse = out.x.flatten(0, 1), DenseBatch(out.edge_index)
        if out.mask is None or out.mask.all():
            return Pooled(rows, coarse, assignment=_soft_assignment(out.so), loss=loss)
        return Pooled(*_without_padding(rows, coarse, out.mask, batch), loss=loss)

    def _call(self, x: Tensor, batch: GraphBatch | DenseBatch) -> Any:
        """The ``PoolingOutput`` of the pooler."""
        try:
            if isinstance(batch, DenseBatch):
                return self.pooler(x=x.view(batch.num_graphs, -1, x.size(1)), adj=batch.adjacency)
            batch.check_rows(x)
            weight = torch.ones(len(batch.col), device=x.device) if batch.weight is None else batch.weight
            return self.pooler(x=x, adj=batch.edge_index, edge_weight=weight.to(x.dtype), batch=batch.graph)
        except ImportError as error:
            raise SettingError(f"{type(self.pooler).__name__} needs another package: {error}") from error

    def _sparse(self, out: Any, batch: GraphBatch) -> Pooled:
        """Its rows graph by graph; of kept nodes in their order."""
        count = len(out.x)
        if (torch.bincount(out.batch, minlength=batch.num_graphs)[batch.nodes_per_graph > 0] == 0).any():
            raise SettingError(f"{type(self.pooler).__name__} left no node of a graph, which cannot be classified then")
        node, cluster = out.so.node_index, out.so.cluster_index
        perm = assignment = None
        if node is None:  # a soft assignment
            pass
        elif len(node) == count:  # one node of each
            perm = torch.empty_like(node).index_copy_(0, cluster, node)
        elif len(node) == batch.num_nodes:  # each in one cluster
            assignment = torch.empty_like(node).index_copy_(0, node, cluster)
        order = torch.argsort(out.batch if perm is None else perm, stable=True)
        place = torch.argsort(order)
        ends, weight = place[out.edge_index], out.edge_weight
        between = ends[0] != ends[1]
        key, where = torch.unique((ends[0] * count + ends[1])[between], return_inverse=True)
        rowptr = offsets(torch.bincount(key // max(count, 1), minlength=count)).int()
        if weight is not None:
            weight = weight.detach().float().flatten()[between]
            weight = weight.new_zeros(len(key)).index_add_(0, where, weight)
        ptr = offsets(torch.bincount(out.batch, minlength=batch.num_graphs))
        coarse = GraphBatch(batch.x, batch.y, ptr, rowptr, (key % max(count, 1)).int(), weight=weight)
        return Pooled(
            out.x.index_select(0, order),
            coarse,
            None if perm is None else perm[order],
            None if assignment is None else place[assignment],
        )


def _soft_assignment(so: Any) -> Tensor | None:
    """[N, K] without padding."""
    s: Tensor = so.s.detach()
    if s.dim() < 3:
        return s
    return s.flatten(0, 1) if so.in_mask is None else s[so.in_mask]


def _without_padding(
    rows: Tensor, graphs: DenseBatch, mask: Tensor, batch: GraphBatch | DenseBatch
) -> tuple[Tensor, GraphBatch]:
    """Sparse graphs of the clusters that are there: graphs may have different numbers of them."""
    kept = mask.flatten()
    adjacency = torch.block_diag(*graphs.adjacency.detach())[kept][:, kept].fill_diagonal_(0)
    ptr = offsets(mask.sum(1))
    rowptr, col = offsets((adjacency != 0).sum(1)).int(), adjacency.nonzero()[:, 1].int()
    x, y = (batch.x, batch.y) if isinstance(batch, GraphBatch) else (rows, ptr[:-1])
    return rows[kept], GraphBatch(x, y, ptr, rowptr, col, weight=adjacency[adjacency != 0].float())


class _Adapter(TGPPooling):
    """What the registry holds for such a class: how to build its layers."""

    pooler_class: ClassVar[Any]

    @classmethod
    def build(cls, setup: PoolSetup) -> TGPPooling:
        from tgp.poolers import get_pooler, pooler_map
        from tgp.src import Precoarsenable

        given: dict[str, Any] = {"in_channels": setup.in_channels, "ratio": setup.ratio, "dropout": setup.dropout}
        if setup.mean_nodes is not None:
            nodes = setup.mean_nodes
            for ratio in setup.ratios[: setup.level + 1]:
                nodes = ratio if isinstance(ratio, int) else nodes * ratio
            given["k"] = max(1, math.ceil(nodes))
        if issubclass(cls.pooler_class, Precoarsenable):  # by the graph alone: its edges need no gradient
            given["sparse_output"] = True
        name = next((name for name, one in pooler_map.items() if one is cls.pooler_class), None)
        try:
            pooler = cls.pooler_class(**given) if name is None else get_pooler(name, **given)
        except (TypeError, ImportError, AssertionError) as error:
            raise SettingError(f"{cls.pooler_class.__name__} cannot be built: {error}") from error
        return TGPPooling(pooler, setup.in_channels)


def is_tgp(cls: type) -> bool:
    """Whether a class is a pooler of torch-geometric-pool."""
    return any(base.__module__ == "tgp.src" for base in cls.__mro__)


def adapt_tgp(cls: type[nn.Module]) -> type[TGPPooling]:
    """The ``Pooling`` that a pooler of torch-geometric-pool is."""
    doc = (cls.__doc__ or "").strip().partition("\n")[0]
    return type(cls.__name__, (_Adapter,), {"pooler_class": cls, "__doc__": doc, "kind": None})


def find_pooler(name: str) -> type[nn.Module]:
    """The class of torch-geometric-pool that it calls by this name.

    Args:
        name: as ``tgp.poolers.get_pooler`` takes it, without the prefix ``tgp:``.

    Raises:
        SettingError: if the library cannot be imported, or has no such pooler.
    """
    try:
        from tgp.poolers import pooler_map
    except ImportError as error:
        raise SettingError(
            f"the pooling layer {PREFIX}{name} is one of torch-geometric-pool, which cannot be imported ({error}): "
            "pip install torch-geometric-pool"
        ) from error
    if name not in pooler_map:
        near = did_you_mean(name, pooler_map)
        raise SettingError(f"torch-geometric-pool has no pooler {name!r}; it has {', '.join(pooler_map)}{near}")
    found: type[nn.Module] = pooler_map[name]
    return found


@cache
def tap_pooler() -> Any:
    """``TAPooling`` as a pooler of torch-geometric-pool, which has to be installed.

    Returns:
        A class derived from ``tgp.src.SRCPooling``, with the arguments of ``TAPooling``. Called as
        ``pool(x=x, adj=edge_index, batch=batch)`` it returns a ``PoolingOutput``; ``pool.selector.tap`` is the layer.
    """
    from tgp.connect import SparseConnect
    from tgp.lift import BaseLift
    from tgp.reduce import BaseReduce
    from tgp.select import Select, SelectOutput
    from tgp.src import PoolingOutput, SRCPooling

    class TAPSelect(Select):  # type: ignore[misc]
        """Selects the nodes that TAPooling keeps; their weight in S is its gate."""

        is_dense = False

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__()
            self.tap = TAPooling(*args, **kwargs)

        def reset_parameters(self) -> None:
            self.tap.reset_parameters()

        def forward(self, x: Tensor, edge_index: Tensor, *, batch: Tensor | None = None, **_: Any) -> Any:
            *_, perm, score = self.tap(x, edge_index, None, batch)
            if self.tap.gate == "straight-through":
                gate = score / score.detach()
            else:
                gate = self.tap.scale(torch.ones_like(score).unsqueeze(1), score).squeeze(1)
            numbers = torch.arange(len(perm), device=perm.device)
            return SelectOutput(
                node_index=perm, num_nodes=len(x), cluster_index=numbers, num_supernodes=len(perm), weight=gate
            )

    class TAPPooling(SRCPooling):  # type: ignore[misc]
        """The topology-aware pooling operator from *Topology-Aware Graph Pooling Networks* (Gao, Liu, Ji)."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(TAPSelect(*args, **kwargs), BaseReduce(), BaseLift(), SparseConnect())

        def forward(
            self,
            x: Tensor,
            adj: Tensor | None = None,
            edge_weight: Tensor | None = None,
            so: Any = None,
            batch: Tensor | None = None,
            lifting: bool = False,
            **_: Any,
        ) -> Any:
            if lifting:
                return self.lift(x_pool=x, so=so)
            so = self.select(x=x, edge_index=adj, batch=batch)
            pooled, graph = self.reduce(x=x, so=so, batch=batch)
            ends, weight = self.connect(edge_index=adj, so=so, edge_weight=edge_weight, batch_pooled=graph)
            return PoolingOutput(x=pooled, edge_index=ends, edge_weight=weight, batch=graph, so=so)

    return TAPPooling
