"""PyGPooling: a layer with PyG's calling convention, such as TopKPooling or a user's own, as a Pooling."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tapnet.data.batch import GraphBatch
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.nn.pool.base import Pooled, Pooling, PoolSetup, construct

METADATA = ("kind", "paper", "year", "about", "losses", "cost", "memory")  # that a class may declare, as a Pooling


class PyGPooling(Pooling):
    """Makes a layer with PyG's calling convention a ``Pooling``, without editing it.

    The layer is called as ``layer(x, edge_index, batch=batch)`` and returns
    ``(x, edge_index, edge_attr, batch, perm, score)``, of which the last two may be missing (as ASAPooling's score is),
    or ``(x, edge_index, batch, unpool_info)``, as EdgePooling does. ``perm`` becomes the kept nodes, ascending; scores
    of nodes that were not kept are not told, so they are NaN. Of the coarsened edges the structure alone is used:
    weights that a layer learns for them (ASAPooling) have no gradient here and are left out.

    Args:
        layer: the layer.
        in_channels: d, the size of each node's features.

    Raises:
        SettingError: if the layer's ``forward`` takes no ``edge_index`` or ``batch``, or needs other arguments.

    Example:
        >>> from torch_geometric.nn import TopKPooling
        >>> from tapnet import TAPNet
        >>> TAPNet(7, 2, pool=TopKPooling).pools[0].layer
        TopKPooling(48, ratio=0.8, multiplier=1.0)
    """

    def __init__(self, layer: nn.Module, in_channels: int) -> None:
        super().__init__()
        self._without = dict.fromkeys(check_convention(type(layer)))
        out_channels = getattr(layer, "out_channels", in_channels)
        self.in_channels = in_channels
        self.out_channels = out_channels if isinstance(out_channels, int) else in_channels
        self.layer = layer

    def forward(self, x: Tensor, batch: GraphBatch | DenseBatch, /) -> Pooled:
        """Calls the layer.

        Raises:
            SettingError: if what the layer returns cannot be read, or a graph has no nodes left.
        """
        name = type(self.layer).__name__
        if not isinstance(batch, GraphBatch):
            raise ValueError(f"{name} pools sparse graphs, not a DenseBatch")
        batch.check_rows(x)
        rows, edge_index, graph, perm, score, assignment = self._read(
            self.layer(x, edge_index=batch.edge_index, batch=batch.graph, **self._without), batch
        )
        if (bad := (torch.bincount(graph, minlength=batch.num_graphs) == 0) & (batch.nodes_per_graph > 0)).any():
            raise SettingError(
                f"{name} left no node of {int(bad.sum())} of {batch.num_graphs} graphs, and a graph without nodes "
                "cannot be classified: it has to keep at least one node of each"
            )
        order = torch.argsort(graph if perm is None else perm, stable=True)
        place = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))
        rows, graph = rows.index_select(0, order), graph.index_select(0, order)
        scores = None
        if perm is not None:
            perm = perm.index_select(0, order)
            if not torch.equal(graph, batch.graph.index_select(0, perm)):
                raise SettingError(f"{name} returned a batch vector that is not that of the nodes in perm")
            if score is not None:
                scores = score.new_full((batch.num_nodes,), torch.nan)
                scores[perm] = score.index_select(0, order)
        coarse = GraphBatch.from_edge_index(rows, place[edge_index], graph)
        ptr = nn.functional.pad(coarse.ptr, (0, batch.num_graphs - coarse.num_graphs), value=len(rows))
        coarse = replace(coarse, x=batch.x, y=batch.y, ptr=ptr)
        return Pooled(rows, coarse, perm, None if assignment is None else place[assignment], scores)

    def _read(
        self, returned: Any, batch: GraphBatch
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """x, edge_index, batch, perm, score and assignment out of the tuple that the layer returned."""
        name = type(self.layer).__name__
        values = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        rows, edge_index = (*values, None, None)[:2]
        if not isinstance(rows, Tensor) or rows.dim() != 2:
            shape = list(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
            raise SettingError(f"{name} returned dense or padded features ({shape}), where [K, d] was expected")
        if rows.size(1) != self.out_channels:
            raise SettingError(
                f"{name} returned {rows.size(1)} features of a node, where {self.out_channels} were expected: "
                "set its attribute out_channels"
            )
        if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise SettingError(f"{name} returned no edge_index [2, E] as its second value")
        at = next((i for i in (3, 2) if i < len(values) and _is_index(values[i], len(rows))), None)
        if at is None:
            raise SettingError(f"{name} returned no batch vector [{len(rows)}] as its fourth value, nor as its third")
        perm, score = (*values[4:6], None, None)[:2] if at == 3 else (None, None)
        if perm is not None and not _is_index(perm, len(rows)):
            raise SettingError(f"{name} returned a perm that is not the numbers of the {len(rows)} kept nodes")
        known = isinstance(score, Tensor) and score.numel() == len(rows)
        clusters = getattr(values[3], "cluster", None) if at == 2 and len(values) > 3 else None
        assignment = clusters if _is_index(clusters, batch.num_nodes) else None
        return rows, edge_index, values[at], perm, score.detach().flatten() if known else None, assignment


def _is_index(values: Any, length: int) -> bool:
    return isinstance(values, Tensor) and values.shape == (length,) and values.dtype == torch.int64


def check_convention(cls: type[nn.Module]) -> tuple[str, ...]:
    """Whether a layer can be called as PyG's are.

    Returns:
        Those arguments of its ``forward`` that must be given, and are None here: it may insist on edge attributes.

    Raises:
        SettingError: if it cannot be called so; the message says why.
    """
    parameters = list(inspect.signature(cls.forward).parameters.values())[2:]  # without self and x
    names = {p.name for p in parameters}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [p.name for p in named if p.default is p.empty]
    without = tuple(name for name in needed if name in ("edge_attr", "edge_weight"))
    if "edge_index" not in names and not takes_any:
        reason = "takes no edge_index"
    elif "batch" not in names and not takes_any:
        reason = "takes no batch, so it would pool all graphs as one"
    elif unknown := [name for name in needed if name not in ("edge_index", "batch", *without)]:
        reason = f"needs {', '.join(unknown)}, which a network does not give"
    else:
        return without
    raise SettingError(f"{cls.__qualname__} cannot be a pooling layer here: its forward {reason}")


class _Adapter(PyGPooling):
    """What the registry holds for such a class: how to build its layers."""

    layer_class: ClassVar[type[nn.Module]]

    @classmethod
    def build(cls, setup: PoolSetup) -> PyGPooling:
        return PyGPooling(construct(cls.layer_class, setup.in_channels, ratio=setup.ratio), setup.in_channels)


def adapt(cls: type[nn.Module]) -> type[PyGPooling]:
    """The ``Pooling`` that a class with PyG's calling convention is.

    Args:
        cls: the class; its layers are built as ``cls(in_channels, ratio=ratio)``, or without a ratio if it takes none.

    Raises:
        SettingError: if its layers cannot be called as PyG's are; the message says why.
    """
    check_convention(cls)
    about = {name: getattr(cls, name) for name in METADATA if hasattr(cls, name)}
    return type(cls.__name__, (_Adapter,), {"layer_class": cls, "__doc__": cls.__doc__, "kind": None, **about})
