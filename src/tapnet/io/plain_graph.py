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
        if set(map(type, names)) == {str}:
            number = dict(zip(names, range(len(names)), strict=True))
            if len(number) < len(names):
                return None
            rows, columns = ([number.get(name, -1) for name in of] for of in ends)
        elif names == list(range(len(names))) and set(map(type, [*names, *ends[0], *ends[1]])) <= {int}:
            rows, columns = ends  # type: ignore[assignment]
        else:
            return None
        if not names or (rows and (min(*rows, *columns) < 0 or max(*rows, *columns) >= len(names))):
            return None
        pairs = {(i, j) if i < j or directed else (j, i) for i, j in zip(rows, columns, strict=True)}
        if len(pairs) < len(rows):
            return None
        return cls(len(names), (rows, columns), node_columns, edge_columns, directed)


def columns_of(rows: Sequence[dict[str, Any]], own_keys: frozenset[str] = frozenset()) -> dict[str, list[Any]]:
    """The attributes by name, without ``own_keys``.

    Raises:
        ValueError: Some row has other attributes, or None as a value.
    """
    keys = set(map(tuple, rows))
    columns = {key: [row[key] for row in rows] for key in next(iter(keys), ()) if key not in own_keys}
    if len(keys) > 1 or any(type(None) in map(type, values) for values in columns.values()):
        raise ValueError
    return columns
