"""The graph of a file as columns: building a NetworkX graph takes several times as long."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple


class PlainGraph(NamedTuple):
    """A graph as columns: all nodes have the same attributes, all edges too, and none is parallel."""

    size: int
    ends: tuple[list[int], list[int]]  # where each edge begins, and where it ends
    node_columns: dict[str, list[Any]]
    edge_columns: dict[str, list[Any]]
    directed: bool = False

    @classmethod
    def of(
        cls,
        names: Sequence[Hashable],
        ends: Sequence[Sequence[Hashable]],
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
        rows, columns = ends
        if set(map(type, names)) == {str}:
            number = dict(zip(names, range(len(names)), strict=True))
            rows, columns = list(map(number.get, rows)), list(map(number.get, columns))
            if len(number) < len(names) or None in rows or None in columns:
                return None
        elif names != list(range(len(names))) or set(map(type, [*names, *rows, *columns])) != {int}:
            return None
        elif rows and (min(*rows, *columns) < 0 or max(*rows, *columns) >= len(names)):
            return None
        if any(None in values for of in (node_columns, edge_columns) for values in of.values()):
            return None
        pairs = {(i, j) if i < j or directed else (j, i) for i, j in zip(rows, columns, strict=True)}
        if len(pairs) < len(rows):
            return None
        return cls(len(names), (rows, columns), node_columns, edge_columns, directed)
