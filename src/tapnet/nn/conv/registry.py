"""Convolutions by name: the built-in ones, and PyG's or a user's own by ``package.module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from tapnet.errors import SettingError, did_you_mean
from tapnet.nn.conv.gcn import GraphConv
from tapnet.nn.conv.gin import GINConv
from tapnet.nn.conv.pyg import PyGConv, takes_edges, takes_weights
from tapnet.nn.conv.sage import SAGEConv
from tapnet.nn.imports import class_digest, import_class
from tapnet.ops.csr import Norm

CONVS: Mapping[str, str] = {
    "gcn": "the paper's: neighbours by the normalised adjacency matrix, weights of edges included",
    "gin": "sums of neighbours through an MLP with batch norm; weights of edges included",
    "gine": "gin whose messages read what edges carry",
    "sage": "the mean of the neighbours beside the node itself; weights of edges included",
    "gat": "PyG's attention over neighbours, which reads what edges carry",
}
_registered: dict[str, type[nn.Module]] = {}  # by module:Class


def find_conv(conv: str | type[nn.Module], *, allow_import: bool = False) -> str:
    """The name of a convolution, as settings hold it.

    Args:
        conv: a class, or a name: that of a built-in one or ``"package.module:Class"``.
        allow_import: whether a name may be imported. Pass True only for what a user named or passed in, never for what
            is read from a file.

    Raises:
        SettingError: if there is none of that name, or it is not known in this process and may not be imported.
    """
    if isinstance(conv, type):
        name = f"{conv.__module__}:{conv.__qualname__}"
        _registered[name] = conv
        return name
    if isinstance(conv, str) and (conv in CONVS or conv in _registered):
        return conv
    if not isinstance(conv, str) or ":" not in conv:
        near = did_you_mean(str(conv), CONVS)
        raise SettingError(f"conv is one of {', '.join(CONVS)}, or package.module:Class, not {conv!r:.100}{near}")
    if not allow_import:
        word = conv.rpartition(":")[2]
        raise SettingError(
            f"this uses the convolution {conv}, which is not known here; import the class and pass it (convs=[{word}])"
        )
    return find_conv(import_class(conv, "the convolution"))


def conv_digest(name: str) -> str:
    """A short digest of the source of a convolution that is not built in; "" for those that are."""
    return class_digest(_registered[name]) if name in _registered else ""


def make_conv(
    conv: str, in_channels: int, out_channels: int, norm: Norm, dropout: float, edge_channels: int
) -> nn.Module:
    """One convolution of a network, called with node features and a ``GraphBatch``.

    Args:
        conv: the name, as settings hold it.
        in_channels: the size of each node's features; for ``"gcn"`` also the number of categories.
        out_channels: the size of those that come out.
        norm: of ``"gcn"``.
        dropout: on the input.
        edge_channels: categories and numbers of an edge.

    Raises:
        SettingError: if it reads what edges carry, and they carry nothing.
    """
    sizes: dict[str, Any] = {"in_channels": in_channels, "out_channels": out_channels, "dropout": dropout}
    if conv == "gcn":
        return GraphConv(norm=norm, **sizes)
    if conv in ("gin", "gine"):
        if conv == "gine" and not edge_channels:
            raise SettingError(
                "conv 'gine' reads what edges carry, and the edges of these data carry nothing: use 'gin'"
            )
        return GINConv(edge_channels=edge_channels if conv == "gine" else 0, **sizes)
    if conv == "sage":
        return SAGEConv(**sizes)
    if conv == "gat":
        from torch_geometric.nn import GATConv

        return PyGConv(GATConv, edge_channels=edge_channels, **sizes)
    return PyGConv(_registered[conv], edge_channels=edge_channels, **sizes)


def reads_edges(conv: str) -> bool:
    """Whether a convolution reads what edges carry besides their weights."""
    return takes_edges(_registered[conv]) if conv in _registered else conv in ("gine", "gat")


def is_given_edges(conv: str) -> bool:
    """Whether the data of a convolution have what edges carry, be it read or not: part of the keys of stored trials."""
    return conv not in ("gcn", "gin", "sage")


def reads_weights(conv: str) -> bool:
    """Whether a convolution reads the weights of edges."""
    return takes_weights(_registered[conv]) if conv in _registered else conv != "gat"
