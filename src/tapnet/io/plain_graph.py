"""The graph of a file as columns: building a NetworkX graph takes several times as long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class PlainGraph(NamedTuple):
    """A graph as columns: all nodes have the same attributes, all edges too, and none is parallel."""

    names: Sequence[str | int]  # of the nodes
    ends: tuple[list[int], list[int]]  # where each edge begins, and where it ends
    node_columns: dict[str, list[Any]]
    edge_columns: dict[str, list[Any]]
    directed: bool = False

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @classmethod
    def of(
        cls,
        names: Sequence[Any],
        ends: Sequence[list[Any]],
        node_columns: dict[str, list[Any]],
        edge_columns: dict[str, list[Any]],
        directed: bool,
    ) -> PlainGraph | None:
        """The graph of nodes with these names; None where it is wrong, or not plain.

        Args:
            names: Of the nodes: all text, or 0, 1, 2 and so on, since other numbers could be chosen to have one hash.
            ends: The names of the nodes where edges begin, and of those where they end.
            node_columns: The attributes of the nodes.
            edge_columns: The attributes of the edges.
            directed: Whether edges have a direction.
        """
        size, (rows, columns) = len(names), ends
        if set(map(type, names)) == {str}:
            number = dict(zip(names, range(size), strict=True))
            rows, columns = [number.get(name, -1) for name in rows], [number.get(name, -1) for name in columns]
            if len(number) < size:
                return None
        elif names != list(range(size)) or set(map(type, [*names, *rows, *columns])) != {int}:
            return None
        else:
            names = range(size)
        if rows and (min(*rows, *columns) < 0 or max(*rows, *columns) >= size):
            return None
        pairs = {(i, j) if i < j or directed else (j, i) for i, j in zip(rows, columns, strict=True)}
        if len(pairs) < len(rows) or any(None in values for values in (*node_columns.values(), *edge_columns.values())):
            return None
        return cls(names, (rows, columns), node_columns, edge_columns, directed)
